/* The rows of line tables: those of displaced instructions are left out, since a debugger that put a breakpoint there
 * would put it into a jump, and one behind the displaced code says what line holds from there on. All else stays, each
 * program written anew row by row, and a table of its stubs' rows behind it (rows.c). Tables in an unknown form stay as
 * they are. */
#include "base/search.h"
#include "image/reader.h"
#include "object/lines.h"

typedef struct unit {             /* a line program */
    uint64_t begin, program, end; /* in the old table */
    unsigned step, range, opcodes;
    int base;
    bool statement; /* what rows are, unless it is said */
    uint8_t operands[256];
} unit;

typedef struct moved_unit {
    uint64_t from, to; /* where it begins: in the old table, in the new */
} moved_unit;

typedef struct lines {
    object_plan *p;
    const object_stubs *stubs;
    object_rows rows; /* of a unit */
    object_shown_list shown;
    object_section *s;
    inl_bytes out;
    object_relas relas;
    INL_VEC(moved_unit) units;
    uint64_t addr, line; /* of the program that is read: the registers */
    uint32_t file, column;
    bool statement;
    uint64_t put_addr, put_line; /* of that which is written */
    uint64_t behind;             /* a row is due there: the end of displaced code; 0: none */
    uint64_t behind_line;
    bool known; /* the address is one of this object's code */
    bool failed;
} lines;

/* --- the table --- */

/* False: in a form that is not known. */
static bool read_unit(image_reader *r, const uint8_t *data, unit *u)
{
    u->begin = (uint64_t)(r->c.at - data);
    uint64_t length = image_next(r, 4);
    if (r->bad || length >= 0xfffffff0 || length > image_reader_left(r)) return false;
    u->end = u->begin + 4 + length;
    unsigned version = (unsigned)image_next(r, 2);
    if (version < 2 || version > 5) return false;
    if (version == 5) image_next_skip(r, 2); /* sizes of addresses, of segments */
    uint64_t header = image_next(r, 4);
    u->program = (uint64_t)(r->c.at - data) + header;
    u->step = (unsigned)image_next(r, 1);
    if (version >= 4) image_next_skip(r, 1);
    u->statement = image_next(r, 1) != 0;
    u->base = (int8_t)image_next(r, 1);
    u->range = (unsigned)image_next(r, 1);
    u->opcodes = (unsigned)image_next(r, 1);
    for (unsigned i = 1; i < u->opcodes; i++) u->operands[i] = (uint8_t)image_next(r, 1);
    return !r->bad && u->range && u->opcodes > FIXED_ADVANCE_PC && u->program <= u->end;
}

/* Copies a stretch with its relocations. */
static void copy(lines *l, uint64_t from, uint64_t end)
{
    for (size_t i = INL_FIRST(l->s->sorted, k, l->s->relas.items[k].r_offset >= from);
         i < l->s->sorted && l->s->relas.items[i].r_offset < end; i++) {
        Elf64_Rela r = l->s->relas.items[i];
        r.r_offset = l->out.size + (r.r_offset - from);
        if (!inl_vec_push(&l->relas, r)) l->failed = true;
    }
    inl_bytes_put(&l->out, l->s->data.data + from, end - from);
}

/* --- rows --- */

static const object_region *displaced_at(const object_plan *p, uint64_t addr)
{
    size_t behind = INL_FIRST(p->regions.count, k, p->regions.items[k].from > addr);
    const object_region *r = behind ? &p->regions.items[behind - 1] : NULL;
    return r && object_is_left(r, addr) ? r : NULL;
}

static void put_row(lines *l, uint64_t addr, uint64_t line, bool last)
{
    if (addr != l->put_addr) {
        inl_bytes_number(&l->out, ADVANCE_PC, 1);
        inl_bytes_uleb(&l->out, addr - l->put_addr);
    }
    if (line != l->put_line && !last) {
        inl_bytes_number(&l->out, ADVANCE_LINE, 1);
        inl_bytes_sleb(&l->out, (int64_t)(line - l->put_line));
        l->put_line = line;
    }
    l->put_addr = addr;
    if (last) inl_bytes_put(&l->out, (uint8_t[]){0, 1, END_SEQUENCE}, 3);
    else inl_bytes_number(&l->out, LINES_COPY, 1);
}

static void row(lines *l, bool last)
{
    const object_region *r = l->known ? displaced_at(l->p, l->addr) : NULL;
    const object_row here = {l->addr, l->addr, l->line, l->file, l->column, l->statement};
    if (l->known && !object_rows_add(&l->rows, here, last)) l->failed = true;
    if (r && !last) {
        l->behind = r->end;
        l->behind_line = l->line;
        return;
    }
    if (l->behind && l->behind < l->addr) put_row(l, l->behind, l->behind_line, false);
    l->behind = 0;
    put_row(l, l->addr, l->line, last);
}

/* What the program advances by counts in instructions of `step` bytes, what is written in bytes: step is 1 wherever
 * instructions have any length. */

static void set_address(lines *l, uint64_t at, uint64_t operand, uint64_t end)
{
    const Elf64_Rela *r = object_rela_in(l->s, operand, end);
    uint32_t symbol = r ? (uint32_t)ELF64_R_SYM(r->r_info) : 0;
    const object_symbol *s = &l->p->o->symbols.items[symbol];
    l->known = r && s->section && l->p->o->sections.items[s->section].at;
    l->addr = l->known ? l->p->o->sections.items[s->section].at + s->s.st_value + (uint64_t)r->r_addend : 0;
    l->put_addr = l->addr;
    l->behind = 0;
    copy(l, at, end);
}

/* The registers as a sequence finds them. */
static void begin_sequence(lines *l, const unit *u)
{
    l->addr = l->put_addr = l->behind = 0;
    l->line = l->put_line = l->file = 1;
    l->column = 0;
    l->statement = u->statement;
    l->known = false;
}

static void extended(lines *l, image_reader *r, const unit *u, uint64_t at)
{
    uint64_t size = image_next_uleb(r), operand = (uint64_t)(r->c.at - l->s->data.data), end = operand + size;
    uint8_t op = size ? (uint8_t)image_next(r, 1) : 0;
    if (size) image_next_skip(r, size - 1);
    if (r->bad) return;
    if (op == SET_ADDRESS) {
        set_address(l, at, operand + 1, end);
    } else if (op == END_SEQUENCE) {
        row(l, true);
        begin_sequence(l, u);
    } else {
        copy(l, at, end);
    }
}

static void standard(lines *l, image_reader *r, const unit *u, uint8_t op, uint64_t at)
{
    switch (op) {
    case LINES_COPY: row(l, false); return;
    case ADVANCE_PC: l->addr += image_next_uleb(r) * u->step; return;
    case ADVANCE_LINE: l->line += (uint64_t)image_next_sleb(r); return;
    case CONST_ADD_PC: l->addr += (255 - u->opcodes) / u->range * u->step; return;
    case FIXED_ADVANCE_PC: l->addr += image_next(r, 2); return;
    default:
        for (unsigned i = 0; i < u->operands[op]; i++) {
            uint64_t value = image_next_uleb(r);
            if (op == SET_FILE) l->file = (uint32_t)value;
            if (op == SET_COLUMN) l->column = (uint32_t)value;
        }
        if (op == NEGATE) l->statement = !l->statement;
        if (!r->bad) copy(l, at, (uint64_t)(r->c.at - l->s->data.data));
    }
}

static bool put_program(lines *l, image_reader *r, const unit *u)
{
    begin_sequence(l, u);
    r->c.end = l->s->data.data + u->end;
    while (image_reader_more(r)) {
        uint64_t at = (uint64_t)(r->c.at - l->s->data.data);
        uint8_t op = (uint8_t)image_next(r, 1);
        if (op >= u->opcodes) {
            l->addr += (op - u->opcodes) / u->range * u->step;
            l->line += (uint64_t)(int64_t)(u->base + (int)((op - u->opcodes) % u->range));
            row(l, false);
        } else if (op) {
            standard(l, r, u, op, at);
        } else {
            extended(l, r, u, at);
        }
    }
    return !r->bad;
}

/* A table for stubs whose code this unit has: its files, and their rows. */
static void put_stub_rows(lines *l, const unit *u)
{
    object_rows_sort(&l->rows);
    uint64_t table = l->out.size;
    bool any = false;
    for (uint32_t i = 0; i < l->stubs->count; i++) {
        const object_stub *s = &l->stubs->items[i];
        if (!object_rows_at(&l->rows, s->places.items[0].old)) continue;
        if (!any) copy(l, u->begin, u->program);
        any = true;
        object_shown one = {i, table};
        if (!object_rows_put(&l->rows, l->p, s, u->statement, &l->out, &l->relas) || !inl_vec_push(&l->shown, one))
            l->failed = true;
    }
    uint32_t length = (uint32_t)(l->out.size - table - 4);
    if (any) inl_bytes_set(&l->out, table, &length, 4);
    l->rows.all.count = 0;
}

static bool put_units(lines *l)
{
    const uint8_t *data = l->s->data.data;
    uint64_t size = l->s->data.size;
    for (uint64_t at = 0; at < size;) {
        image_reader r = {{data + at, data + size, at}, false};
        unit u;
        if (!read_unit(&r, data, &u) || u.step != 1) return false;
        moved_unit m = {at, l->out.size};
        if (!inl_vec_push(&l->units, m)) l->failed = true;
        copy(l, u.begin, u.program);
        r = (image_reader){{data + u.program, data + u.end, u.program}, false};
        if (!put_program(l, &r, &u)) return false;
        uint32_t length = (uint32_t)(l->out.size - m.to - 4);
        inl_bytes_set(&l->out, m.to, &length, 4);
        put_stub_rows(l, &u);
        at = u.end;
    }
    return true;
}

/* --- who names the table's units --- */

static void aim_units(lines *l, uint32_t table)
{
    object_file *o = l->p->o;
    for (size_t i = 1; i < o->sections.count; i++) {
        object_section *s = &o->sections.items[i];
        if (s->h.sh_flags & SHF_ALLOC) continue;
        for (size_t k = 0; k < s->relas.count; k++) {
            Elf64_Rela *r = &s->relas.items[k];
            const object_symbol *symbol = &o->symbols.items[ELF64_R_SYM(r->r_info)];
            if (symbol->section != table) continue;
            uint64_t to = symbol->s.st_value + (uint64_t)r->r_addend;
            size_t u = INL_FIRST(l->units.count, n, l->units.items[n].from >= to);
            if (u < l->units.count && l->units.items[u].from == to)
                r->r_addend += (int64_t)(l->units.items[u].to - l->units.items[u].from);
        }
    }
}

static inl_status put_table(object_plan *p, const object_stubs *stubs, uint32_t number, inl_error *e)
{
    lines l = {.p = p, .stubs = stubs, .s = &p->o->sections.items[number]};
    bool good = put_units(&l) && !l.out.failed && !l.failed;
    inl_status st = l.failed || l.out.failed ? object_no_memory(p->o, e) : INL_OK;
    if (good) {
        aim_units(&l, number);
        inl_bytes_free(&l.s->data);
        inl_vec_free(&l.s->relas);
        l.s->data = l.out;
        l.s->relas.items = l.relas.items;
        l.s->relas.count = l.s->sorted = l.relas.count;
        l.s->relas.capacity = l.relas.capacity;
        st = object_put_shown(p, stubs, &l.shown, number, e);
    } else {
        inl_bytes_free(&l.out);
        inl_vec_free(&l.relas);
    }
    inl_vec_free(&l.units);
    inl_vec_free(&l.rows.all);
    inl_vec_free(&l.shown);
    return st;
}

inl_status object_put_lines(object_plan *p, const object_stubs *stubs, inl_error *e)
{
    inl_status st = INL_OK;
    for (uint32_t i = 1; i < p->o->sections.count && p->regions.count && !st; i++) {
        const object_section *s = &p->o->sections.items[i];
        bool table = strcmp(s->name, ".debug_line") == 0 && s->h.sh_type != SHT_NOBITS;
        if (table && !(s->h.sh_flags & SHF_COMPRESSED)) st = put_table(p, stubs, i, e);
    }
    return st;
}
