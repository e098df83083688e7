/* Procedures and lines of the tool's own code: see source.h. What is Inlay's is told from the tool's by its path: this
 * file's own unit says how Inlay's sources are named. Not by the folder in which it was compiled: a compiler's cache
 * may have the object from another one. */
#include "tool/source.h"
#include "tool/glibc.h"
#include "tool/state.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

/* --- by the file --- */

static bool starts_with(const char *s, const char *prefix, size_t n) { return strncmp(s, prefix, n) == 0; }

/* Inlay's sources, as this one is named: DIR/src/tool/source.c. */
typedef struct home {
    const char *name;
    size_t prefix; /* of the name: up to "tool/source.c"; 0: it is not known */
} home;

static home find_home(image *im)
{
    static const char own[] = "tool/source.c";
    uint64_t here = (uint64_t)(uintptr_t)source_by_image - (uint64_t)(uintptr_t)&__ehdr_start;
    image_source unit;
    if (!image_source_at(im, here, &unit)) return (home){"", 0};
    size_t n = strlen(unit.name);
    bool good = n > sizeof own - 1 && !strcmp(unit.name + n - (sizeof own - 1), own);
    return (home){unit.name, good ? n - (sizeof own - 1) : 0};
}

static bool is_inlays(const home *h, const image_source *u)
{
    static const char *const parts[] = {"base/", "isa/",  "image/", "cfg/", "snippet/", "weave/", "run/",
                                        "jit/",  "move/", "moved/", "elf/", "live/",    "tool/",  "atom/"};
    if (!h->prefix || !starts_with(u->name, h->name, h->prefix)) return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (starts_with(u->name + h->prefix, parts[i], strlen(parts[i]))) return true;
    return false;
}

/* As seen from where the compiler ran. */
static const char *shorter(const image_source *u, const char *file)
{
    size_t n = strlen(u->folder);
    return n && starts_with(file, u->folder, n) && file[n] == '/' ? file + n + 1 : file;
}

bool source_by_image(void *arg, uint32_t place, source_place *out)
{
    image *im = arg;
    const image_proc *p = image_proc_at(im, place);
    image_source unit;
    *out = (source_place){.proc = p ? p->name : NULL};
    if (!image_source_at(im, place, &unit)) return p != NULL;
    home h = find_home(im);
    out->owner = is_inlays(&h, &unit) ? SOURCE_INLAY : SOURCE_TOOL;
    if (image_line_at(im, place, &out->file, &out->line)) out->file = shorter(&unit, out->file);
    return true;
}

/* --- carried --- */

typedef struct source_row { /* up to the next one's place */
    uint32_t at, line;
    uint16_t file, proc; /* of `names`; 0: none */
} source_row;
struct source_table {
    uint32_t count;
    source_row *rows;
    const char **names;
};

enum { MOST_NAMES = 1 << 16 };
typedef struct collecting {
    image *im;
    home home;
    INL_VEC(source_row) rows;
    INL_VEC(const char *) names;
    const char *last_file, *last_proc; /* as the image has them, */
    uint16_t file, proc;               /* and their numbers */
    bool failed;
} collecting;

static uint16_t number_of(collecting *c, const char *name)
{
    if (!name || !*name) return 0;
    for (size_t i = 1; i < c->names.count; i++)
        if (!strcmp(c->names.items[i], name)) return (uint16_t)i;
    char *copy = tool_carried_alloc(strlen(name) + 1);
    c->failed |= !copy || c->names.count == MOST_NAMES;
    if (c->failed) return 0;
    strcpy(copy, name);
    c->failed |= !inl_vec_push(&c->names, copy);
    return (uint16_t)(c->names.count - 1);
}

static void collect(void *arg, const image_source *unit, const image_line *lines, size_t count)
{
    collecting *c = arg;
    if (is_inlays(&c->home, unit)) return;
    for (size_t i = 0; i < count && !c->failed; i++) {
        const image_proc *p = lines[i].file ? image_proc_at(c->im, lines[i].addr) : NULL;
        const char *file = p ? lines[i].file : NULL, *proc = p ? p->name : NULL;
        if (file != c->last_file) c->file = number_of(c, file ? shorter(unit, file) : NULL);
        if (proc != c->last_proc) c->proc = number_of(c, proc);
        c->last_file = file;
        c->last_proc = proc;
        source_row row = {(uint32_t)lines[i].addr, p ? lines[i].line : 0, c->file, c->proc};
        const source_row *last = c->rows.count ? &c->rows.items[c->rows.count - 1] : NULL;
        if (last && last->line == row.line && last->file == row.file && last->proc == row.proc) continue;
        c->failed |= !inl_vec_push(&c->rows, row);
    }
}

/* Where one piece of code ends and the next begins there are two rows: the end comes first. */
static int by_place(const void *a, const void *b)
{
    const source_row *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->file != 0) - (y->file != 0);
}

static const source_table *keep(collecting *c)
{
    source_table *t = tool_carried_alloc(sizeof *t);
    source_row *rows = tool_carried_alloc(c->rows.count * sizeof *rows);
    const char **names = tool_carried_alloc(c->names.count * sizeof *names);
    if (!t || !rows || !names) return NULL;
    memcpy(rows, c->rows.items, c->rows.count * sizeof *rows);
    memcpy(names, c->names.items, c->names.count * sizeof *names);
    *t = (source_table){(uint32_t)c->rows.count, rows, names};
    return t;
}

const source_table *source_carry(void)
{
    collecting c = {0};
    inl_error e = {0};
    const source_table *t = NULL;
    if (image_open("/proc/self/exe", &c.im, &e) != INL_OK) return NULL;
    c.home = find_home(c.im);
    c.failed = !inl_vec_push(&c.names, "");
    image_sources(c.im, collect, &c);
    if (c.rows.count && !c.failed) {
        qsort(c.rows.items, c.rows.count, sizeof *c.rows.items, by_place);
        t = keep(&c);
    }
    inl_vec_free(&c.rows);
    inl_vec_free(&c.names);
    image_close(c.im);
    return t;
}

bool source_by_table(void *arg, uint32_t place, source_place *out)
{
    const source_table *t = arg;
    *out = (source_place){0};
    if (!t) return false;
    size_t behind = INL_FIRST(t->count, i, t->rows[i].at > place);
    const source_row *r = behind ? &t->rows[behind - 1] : NULL;
    if (!r || !r->file) return false;
    *out = (source_place){r->proc ? t->names[r->proc] : NULL, t->names[r->file], r->line, SOURCE_TOOL};
    return true;
}
