/* Rows of line tables for stubs: each instruction has the line that it had in its old place. Breakpoints go to
 * statements: these are rows of what is no longer in its old place, not the jump's, which has a row there. */
#include "base/search.h"
#include "object/lines.h"

#include <stdlib.h>

bool object_is_left(const object_region *r, uint64_t addr)
{
    return addr - r->from < r->end - r->from && (addr > r->from || !r->jumps);
}

bool object_rows_add(object_rows *r, object_row row, bool last)
{
    if (r->open) r->all.items[r->all.count - 1].end = row.addr;
    r->open = !last;
    return last || inl_vec_push(&r->all, row);
}

static int by_address(const void *a, const void *b)
{
    const object_row *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end; /* empty ones in front */
}

void object_rows_sort(object_rows *r)
{
    if (r->open) r->all.count--; /* a sequence without an end */
    r->open = false;
    if (r->all.count) qsort(r->all.items, r->all.count, sizeof *r->all.items, by_address);
}

const object_row *object_rows_at(const object_rows *r, uint64_t addr)
{
    size_t behind = INL_FIRST(r->all.count, k, r->all.items[k].addr > addr);
    const object_row *row = behind ? &r->all.items[behind - 1] : NULL;
    return row && addr < row->end ? row : NULL;
}

/* Does a statement begin at the address, in a row of its own or in an empty one? */
static bool begins(const object_rows *r, uint64_t addr)
{
    size_t first = INL_FIRST(r->all.count, k, r->all.items[k].addr >= addr);
    for (; first < r->all.count && r->all.items[first].addr == addr; first++)
        if (r->all.items[first].statement) return true;
    return false;
}

static void put_number(inl_bytes *b, unsigned op, uint64_t value)
{
    inl_bytes_number(b, op, 1);
    inl_bytes_uleb(b, value);
}

typedef struct state {
    uint64_t offset, line;
    uint32_t file, column;
    bool statement, any;
} state;

static void put(inl_bytes *b, state *s, uint64_t offset, const object_row *row, bool statement)
{
    if (offset != s->offset) put_number(b, ADVANCE_PC, offset - s->offset);
    if (row->file != s->file) put_number(b, SET_FILE, row->file);
    if (row->column != s->column) put_number(b, SET_COLUMN, row->column);
    if (statement != s->statement) inl_bytes_number(b, NEGATE, 1);
    if (row->line != s->line) {
        inl_bytes_number(b, ADVANCE_LINE, 1);
        inl_bytes_sleb(b, (int64_t)(row->line - s->line));
    }
    inl_bytes_number(b, LINES_COPY, 1);
    *s = (state){offset, row->line, row->file, row->column, statement, true};
}

bool object_rows_put(const object_rows *r, const object_plan *p, const object_stub *stub, bool statement, inl_bytes *b,
                     object_relas *relas)
{
    object_file *o = p->o;
    state s = {.offset = stub->begin, .line = 1, .file = 1, .statement = statement};
    inl_bytes_put(b, (uint8_t[]){0, 1 + 8, SET_ADDRESS}, 3);
    Elf64_Rela rela = {.r_offset = b->size,
                       .r_info = ELF64_R_INFO((uint64_t)object_section_symbol(o, stub->section), o->isa->absolute64),
                       .r_addend = (int64_t)stub->begin};
    inl_bytes_number(b, 0, 8);
    for (size_t i = 0; i < stub->places.count; i++) {
        const object_place *k = &stub->places.items[i];
        const object_row *row = object_rows_at(r, k->old);
        bool begun = row && object_is_left(&p->regions.items[stub->region], k->old) && begins(r, k->old);
        bool other = row && (!s.any || row->line != s.line || row->file != s.file || row->column != s.column);
        if (begun || other) put(b, &s, k->offset, row, begun);
    }
    put_number(b, ADVANCE_PC, stub->end - s.offset);
    inl_bytes_put(b, (uint8_t[]){0, 1, END_SEQUENCE}, 3);
    return inl_vec_push(relas, rela);
}
