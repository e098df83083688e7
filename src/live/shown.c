/* What debuggers are told of moved code: an ELF file in the process's memory, in the form that gdb's JIT interface
 * takes (run/debugger.h). Its .eh_frame is the very table by which the process itself unwinds:
 *
 *     ELF header | unwind table | section headers' contents: names, lines where the image has some, ...
 */
#include "live/live.h"
#include "base/search.h"
#include "elf/elf.h"
#include "image/debug_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shown {
    INL_VEC(debug_code) code;
    INL_VEC(debug_row) rows;
    char *names; /* of procedures without one */
    bool failed;
} shown;

static int by_address(const void *a, const void *b)
{
    const debug_code *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void list_code(shown *s, const move_plan *p)
{
    enum { ROOM = sizeof "sub_0123456789abcdef" };
    size_t made = 0, nameless = 0;
    for (uint32_t i = 0; i < p->cfg->proc_count; i++) nameless += p->procs[i].new_addr && !p->cfg->procs[i].name;
    s->names = malloc(nameless * ROOM + 1);
    s->failed = !s->names;
    for (uint32_t i = 0; i < p->cfg->proc_count && !s->failed; i++) {
        debug_code c = {p->procs[i].new_addr, p->procs[i].new_size, p->cfg->procs[i].name};
        if (!c.addr) continue;
        if (!c.name) {
            c.name = s->names + made;
            snprintf(s->names + made, ROOM, "sub_%llx", (unsigned long long)p->cfg->procs[i].addr);
            made += ROOM;
        }
        s->failed = !inl_vec_push(&s->code, c);
    }
    if (s->code.count) qsort(s->code.items, s->code.count, sizeof *s->code.items, by_address);
}

/* Each row begins where the line, or whether there is one, changes. */
static void list_rows(shown *s, const move_plan *p)
{
    move_map_walk insns = move_map_from(p, 0);
    debug_row last = {0};
    uint64_t from = 0, end = 0; /* `last` tells of what was there */
    for (move_map m; !s->failed && move_map_next(&insns, &m);) {
        debug_row row = {.addr = p->text_addr + m.new_off};
        uint64_t addr = m.old_addr - p->bias;
        if (addr >= from && addr < end) continue;
        from = addr;
        if (!image_line_until(p->cfg->image, addr, &row.file, &row.line, &end)) row.file = NULL;
        if (row.file == last.file && (!row.file || row.line == last.line)) continue;
        s->failed = !inl_vec_push(&s->rows, row);
        last = row;
    }
    if (last.file && !s->failed)
        s->failed = !inl_vec_push(&s->rows, ((debug_row){.addr = p->text_addr + p->text_size}));
}

inl_status live_unwind_put(const move_plan *p, bool lines, inl_bytes *to, live_unwind *out, inl_error *e)
{
    elf_unwind_place table = {0};
    shown s = {0};
    *out = (live_unwind){0};
    inl_bytes_align(to, 16);
    size_t begin = debug_object_begin(to);
    inl_bytes_align(to, 16);
    inl_status st = to->failed ? inl_fail(e, INL_ERR_NO_MEMORY, "out of memory") : elf_unwind_table(p, to, &table, e);
    if (st != INL_OK) return st;
    list_code(&s, p);
    if (lines && image_unit_count(p->cfg->image)) list_rows(&s, p);
    debug_object o = {.machine = image_machine(p->cfg->image),
                      .name = "code that has moved",
                      .code = s.code.items,
                      .code_count = s.code.count,
                      .rows = s.rows.items,
                      .row_count = s.rows.count};
    if (table.header) {
        o.eh_frame_at = (size_t)(table.frames - to->addr);
        o.eh_frame_size = table.frames_size;
        o.eh_frame_addr = table.frames + p->bias;
    }
    if (s.failed || to->failed) st = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    else if (s.code.count && debug_object_end(&o, begin, to))
        *out = (live_unwind){.at = to->addr + begin + p->bias, .size = to->size - begin};
    if (table.header) out->header = table.header + p->bias;
    inl_vec_free(&s.code);
    inl_vec_free(&s.rows);
    free(s.names);
    return st;
}
