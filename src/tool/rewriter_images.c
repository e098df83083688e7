/* The images that are rewritten together: found, opened, given addresses that do not overlap, each with the name of the
 * file that is written for it; all that can be refused is refused before the work. */
#include "tool/rewriter.h"
#include "base/page.h"
#include "elf/elf.h"
#include "run/run.h"

#include <elf.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEGABYTES_2 = 2 << 20 };

const char *rewriter_skip_folders(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- images --- */

void rewriter_extent(const image *im, uint64_t *low, uint64_t *high)
{
    const image_segment *s;
    size_t n = image_segments(im, &s);
    *low = ~0ull;
    *high = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i].addr < *low) *low = s[i].addr;
        if (s[i].addr + s[i].mem_size > *high) *high = s[i].addr + s[i].mem_size;
    }
}

static void check_kind(const rewriter *r, const rewriter_image *i)
{
    const char *why = elf_refuses(i->im);
    if (image_type(i->im) != ET_EXEC && image_type(i->im) != ET_DYN)
        why = "an ELF file, but neither a program nor a library";
    if (why) rewriter_give_up(r, "cannot rewrite %s: %s", i->path, why);
}

void rewriter_open_image(const rewriter *r, rewriter_image *i)
{
    inl_error e = {0};
    if (image_open(i->path, &i->im, &e) != INL_OK) rewriter_give_up_for(r, "cannot rewrite %s: %s", i->path, &e);
    check_kind(r, i);
    if (elf_is_rewritten(i->im))
        rewriter_give_up(r, "cannot rewrite %s: %s", i->path, "it has been rewritten before; rewrite the original");
    i->is_program = image_is_program(i->im);
}

void rewriter_add_libraries(rewriter *r)
{
    inl_error e = {0};
    rewriter_library *libs;
    size_t n;
    if (rewriter_libraries(r->images[0].im, &tool_now->options.libs, &libs, &n, &e) != INL_OK)
        rewriter_give_up_for(r, "cannot rewrite %s: %s", r->images[0].path, &e);
    rewriter_image *more = realloc(r->images, (n + 1) * sizeof *more);
    if (!more) rewriter_give_up(r, "cannot rewrite %s: %s", r->images[0].path, "out of memory");
    r->images = more;
    for (size_t k = 0; k < n; k++) {
        rewriter_image *i = &more[r->count++];
        *i = (rewriter_image){.path = libs[k].path, .name = libs[k].name};
        i->out = rewriter_join(tool_now->options.with_libs, i->name);
        rewriter_open_image(r, i);
        i->is_program = false;
    }
    free(libs);
}

/* Where the kernel puts a program without randomisation: it heeds the greatest alignment of a segment. */
static uint64_t place_of_program(const image *im)
{
    const image_segment *s;
    size_t n = image_segments(im, &s);
    uint64_t most = 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = s[i].alignment;
        if (a > most && a < tool_places.program && (a & (a - 1)) == 0) most = a;
    }
    return tool_places.program & -most;
}

/* Where each one is taken to lie. */
void rewriter_place(rewriter *r)
{
    uint64_t next = tool_places.libraries;
    run_here.modules = module_set_new();
    for (size_t k = 0; k < r->count; k++) {
        rewriter_image *i = &r->images[k];
        uint64_t low, high;
        rewriter_extent(i->im, &low, &high);
        low = inl_page_down(low);
        if (image_type(i->im) == ET_EXEC) {
            i->bias = 0;
        } else if (k == 0 && i->is_program) {
            i->bias = place_of_program(i->im) - low;
        } else {
            i->bias = next - low;
            next += 16 * (high - low) + MEGABYTES_2; /* room for moved code */
            next = (next + MEGABYTES_2 - 1) & ~(MEGABYTES_2 - 1);
        }
        i->m = run_here.modules ? module_set_add(run_here.modules, i->im, i->bias, k == 0) : NULL;
        if (!i->m || !tool_image_of(i->m)) rewriter_give_up(r, "cannot rewrite %s: %s", i->path, "out of memory");
    }
}

/* --- outputs --- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static char *folder_of(const char *path)
{
    char *copy = rewriter_must(strdup(path)), *folder = rewriter_must(strdup(dirname(copy)));
    free(copy);
    return folder;
}

/* With libraries all goes to one folder: -o then is a name in it, or a path into it. */
char *rewriter_program_out(const char *program)
{
    const tool_options *o = &tool_now->options;
    if (!o->with_libs) return rewriter_must(strdup(o->rewrite_out));
    if (!o->rewrite_out) return rewriter_join(o->with_libs, rewriter_skip_folders(program));
    if (!strchr(o->rewrite_out, '/')) return rewriter_join(o->with_libs, o->rewrite_out);
    char *folder = folder_of(o->rewrite_out);
    if (!same_file(folder, o->with_libs))
        tool_fail(TOOL_EXIT_USAGE, "%s is not in %s, where --with-libs puts all files", o->rewrite_out, o->with_libs);
    free(folder);
    return rewriter_must(strdup(o->rewrite_out));
}

bool rewriter_make_folder(const char *folder)
{
    if (folder && mkdir(folder, 0777) == 0) return true;
    if (folder && errno != EEXIST)
        tool_fail(TOOL_EXIT_FAILED, "cannot make the folder %s: %s", folder, strerror(errno));
    return false;
}

/* Before the work, not after it. */
static void check_output(const rewriter *r, const char *out)
{
    struct stat st;
    for (size_t k = 0; k < r->count; k++)
        if (same_file(r->images[k].path, out))
            rewriter_give_up(r, "%s: %s", out, "this is the input, which is never overwritten");
    if (same_file("/proc/self/exe", out)) rewriter_give_up(r, "%s: %s", out, "this is the tool itself");
    if (stat(out, &st) == 0 && !S_ISREG(st.st_mode))
        rewriter_give_up(r, "cannot write %s: %s", out, "not a regular file");
    char *folder = folder_of(out);
    if (access(folder, W_OK | X_OK) != 0) rewriter_give_up(r, "cannot write %s: %s", out, strerror(errno));
    free(folder);
}

/* Will both be one file, which may not exist yet? */
static bool same_output(const char *a, const char *b)
{
    if (!a || !b) return false;
    char *x = folder_of(a), *y = folder_of(b);
    bool same = same_file(a, b) || (same_file(x, y) && !strcmp(rewriter_skip_folders(a), rewriter_skip_folders(b)));
    free(x);
    free(y);
    return same;
}

void rewriter_check_outputs(const rewriter *r)
{
    const char *report = tool_now->options.report, *map = tool_now->options.map;
    for (size_t k = 0; k < r->count; k++) {
        const char *out = r->images[k].out;
        check_output(r, out);
        if (same_output(out, report) || same_output(out, map))
            rewriter_give_up(r, "%s: %s", out, "named for two outputs");
    }
    if (same_output(report, map)) rewriter_give_up(r, "%s: %s", map, "named for two outputs");
    if (report) check_output(r, report);
    if (map) check_output(r, map);
}
