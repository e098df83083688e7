/* --debug-info: translated code is told to gdb, by its JIT interface, and to perf, by its map file.
 *
 * gdb finds a list of ELF files in memory (run/debugger.h). A file for each translation would make gdb slow; so those
 * of several translations are put together, eight of one level into one of the next, and each piece of code is written
 * anew a few times only.
 *
 * All that is known is in arrays in the order of making; a group (a file) is a range of each.
 */
#include "tool/debug_info.h"
#include "base/hash.h"
#include "run/debugger.h"
#include "tool/state.h"
#include INL_ARCH_HEADER(run, abi)

#include <stdlib.h>
#include <string.h>

/* --- groups --- */

enum { TOGETHER = 8 };

typedef struct group {
    run_debug_file entry;
    inl_bytes file;
    unsigned level;
    size_t code, rows, frames; /* where its ranges begin; they end where the next one's do */
} group;

struct debug_info {
    debug_files files;
    debug_frames frames;
    INL_VEC(debug_code) code;
    INL_VEC(debug_row) rows;
    INL_VEC(group *) groups;
    inl_map names; /* strings that were copied, by hash: chains are not needed, a second one is copied again */
    inl_arena strings;
};

static debug_info *info(void) { return tool_now->debug_info; }

static int by_address(const void *a, const void *b)
{
    const debug_code *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Where one stretch of lines ends another may begin. */
static int by_place(const void *a, const void *b)
{
    const debug_row *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return (x->file != NULL) - (y->file != NULL);
}

static void *sorted(const void *items, size_t count, size_t size, int (*order)(const void *, const void *))
{
    void *copy = malloc(count * size + 1);
    if (!copy) return NULL;
    memcpy(copy, items, count * size);
    qsort(copy, count, size, order);
    return copy;
}

static void write_file(debug_info *d, group *g)
{
    inl_bytes frames = {0};
    debug_object o = {.machine = RUN_ELF_MACHINE,
                      .name = "translated code",
                      .code_count = d->code.count - g->code,
                      .row_count = d->rows.count - g->rows,
                      .frames = &frames};
    void *code = sorted(d->code.items + g->code, o.code_count, sizeof *o.code, by_address);
    void *rows = sorted(d->rows.items + g->rows, o.row_count, sizeof *o.rows, by_place);
    o.code = code;
    o.rows = rows;
    debug_frames_put(&d->frames, g->frames, d->frames.frames.count, &frames);
    if (frames.failed) o.frames = NULL;
    if (code && rows && debug_object_put(&o, &g->file)) {
        g->entry.at = (uint64_t)(uintptr_t)g->file.data;
        g->entry.size = g->file.size;
        run_debugger_tell(&g->entry, true);
    }
    free(code);
    free(rows);
    inl_bytes_free(&frames);
}

static void drop_last(debug_info *d)
{
    group *g = d->groups.items[--d->groups.count];
    if (g->entry.at) run_debugger_tell(&g->entry, false);
    inl_bytes_free(&g->file);
    free(g);
}

/* Groups of a level in a row, at the end. */
static unsigned row_of(const debug_info *d, unsigned level)
{
    unsigned n = 0;
    while (n < d->groups.count && d->groups.items[d->groups.count - 1 - n]->level == level) n++;
    return n;
}

/* What has been added since the last group, and maybe the groups before, are a group. */
static void add_group(debug_info *d, group start)
{
    while (row_of(d, start.level) == TOGETHER - 1) {
        for (unsigned i = 0; i < TOGETHER - 1; i++) {
            const group *last = d->groups.items[d->groups.count - 1];
            start.code = last->code;
            start.rows = last->rows;
            start.frames = last->frames;
            drop_last(d);
        }
        start.level++;
    }
    group *g = malloc(sizeof *g);
    if (!g) return;
    *g = start;
    if (!inl_vec_push(&d->groups, g)) {
        free(g);
        return;
    }
    write_file(d, g);
}

/* --- a translation --- */

/* Images go with their strings. */
static const char *keep(debug_info *d, const char *text)
{
    uint64_t hash = inl_hash_text(INL_HASH_BEGIN, text), known;
    if (inl_map_get(&d->names, hash, &known) && !strcmp((const char *)(uintptr_t)known, text))
        return (const char *)(uintptr_t)known;
    size_t size = strlen(text) + 1;
    char *copy = inl_arena_alloc(&d->strings, size);
    if (!copy) return NULL;
    memcpy(copy, text, size);
    inl_map_put(&d->names, hash, (uint64_t)(uintptr_t)copy);
    return copy;
}

static const char *proc_name(debug_info *d, uint64_t addr)
{
    const module *m = module_at(run_here.modules, addr);
    const image_proc *p = m ? image_proc_at(m->image, addr - m->bias) : NULL;
    const char *name = p ? keep(d, p->name) : NULL;
    return name ? name : m ? "code_without_a_name" : "code_of_no_image";
}

static void add_code(debug_info *d, const weave_run *run, const weave_output *o, uint64_t start, uint64_t end)
{
    size_t first = d->code.count;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const char *name = proc_name(d, run->insns[i].in.addr);
        debug_code *last = d->code.count > first ? &d->code.items[d->code.count - 1] : NULL;
        if (last && last->name == name) continue;
        uint64_t at = last ? start + o->map[i].snippets_at : start;
        if (last) last->size = at - last->addr;
        if (!inl_vec_push(&d->code, (debug_code){.addr = at, .size = end - at, .name = name})) return;
    }
}

static void add_rows(debug_info *d, const weave_run *run, const weave_output *o, uint64_t start, uint64_t end)
{
    debug_row last = {0};
    for (uint32_t i = 0; i < run->insn_count; i++) {
        uint64_t addr = run->insns[i].in.addr;
        const module *m = module_at(run_here.modules, addr);
        debug_row row = {.addr = start + o->map[i].snippets_at};
        if (!m || !image_line_at(m->image, addr - m->bias, &row.file, &row.line) || !row.line) row.file = NULL;
        if (row.file) row.file = keep(d, row.file);
        if (row.file == last.file && (!row.file || row.line == last.line)) continue;
        if (inl_vec_push(&d->rows, row)) last = row;
    }
    if (last.file) inl_vec_push(&d->rows, (debug_row){.addr = end});
}

void debug_info_made(void *arg, const jit_fragment *f, const weave_run *run, const weave_output *o)
{
    (void)arg;
    debug_info *d = info();
    uint64_t start = f->exec - f->start_to_exec, end = start + f->size;
    group g = {.code = d->code.count, .rows = d->rows.count, .frames = d->frames.frames.count};
    add_code(d, run, o, start, end);
    add_rows(d, run, o, start, end);
    debug_frames_add(&d->frames, run, o, start);
    debug_files_add(&d->files, d->code.items + g.code, d->code.count - g.code);
    add_group(d, g);
}

/* Other code will lie there. */
void debug_info_flushed(void *arg)
{
    (void)arg;
    debug_info *d = info();
    while (d->groups.count) drop_last(d);
    d->code.count = d->rows.count = 0;
    debug_frames_clear(&d->frames);
}

void debug_info_image_gone(const image *im)
{
    if (info()) debug_frames_image_gone(&info()->frames, im);
}

/* --- life --- */

static void open_files(debug_info *d, bool goes_on)
{
    debug_files_open(&d->files, tool_now->options.debug_info, goes_on);
    if (d->files.map < 0)
        tool_say("--debug-info: cannot write into %s; perf will not know translated code",
                 tool_now->options.debug_info);
}

bool debug_info_begin(void)
{
    debug_info *d = calloc(1, sizeof *d);
    if (!d) return false;
    tool_now->debug_info = d;
    open_files(d, tool_now->options.followed);
    return true;
}

/* The parent's file goes on without it: the child has its own, with what it has inherited. */
void debug_info_forked(void)
{
    debug_info *d = info();
    if (!d) return;
    if (d->files.map >= 0) run_fd_close(d->files.map);
    open_files(d, false);
    debug_files_add(&d->files, d->code.items, d->code.count);
}
