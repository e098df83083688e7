/* Location expressions of debug information: where a variable is, seen from an address.
 *
 * What compilers write for nearly everything has a kind of its own (a register, a place so far from one, an address
 * ...); anything else becomes steps of a computation, and what is in several places pieces. What there is no way to
 * is refused by name. Nothing of a file is relied on: steps and pieces are few, branches lead forward, and whoever
 * follows them looks after the stack. */
#include "image/units.h"

#include <dwarf.h>
#include <stdlib.h>

enum { MOST_STEPS = 64, MOST_PIECES = 32 };

typedef image_reader reader;

static bool refuse(reader *r, const char *why)
{
    r->why = why;
    return false;
}

static bool general_register(reader *r, uint64_t number, unsigned *reg)
{
    const image_processor *m = image_processor_of(r->im);
    if (!m || number >= m->register_count) return refuse(r, "it is in a register that is not a general one");
    *reg = m->registers[number];
    return true;
}

static bool in_register(reader *r, uint64_t number, image_variable *v)
{
    const image_processor *m = image_processor_of(r->im);
    bool vector = m && number >= m->vectors && number - m->vectors < m->vector_count;
    v->kind = vector ? IMAGE_PLACE_VECTOR : IMAGE_PLACE_REGISTER;
    if (!vector) return general_register(r, number, &v->reg);
    v->reg = (unsigned)(number - m->vectors);
    return true;
}

static bool relative(reader *r, uint64_t number, int64_t offset, image_variable *v)
{
    v->kind = IMAGE_PLACE_RELATIVE;
    v->offset = offset;
    return general_register(r, number, &v->reg);
}

static bool from_frame(reader *r, int64_t offset, image_variable *v)
{
    unsigned number;
    int64_t up;
    if (!image_frame_told(r->im, r->pc, &number, &up))
        return refuse(r, "the unwind table does not say where its frame is");
    v->by_frame = true;
    return relative(r, number, (int64_t)((uint64_t)up + (uint64_t)offset), v);
}

/* The number of a register that an operation is, or tells a place by; -1: it does not. */
static int64_t named_register(const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) return op->atom - DW_OP_reg0;
    return op->atom == DW_OP_regx ? (int64_t)op->number : -1;
}

/* Where the frame's beginning is told; NULL: nowhere, or in several steps. */
static const Dwarf_Op *base_of(const reader *r)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    bool known = r->proc >= 0 && dwarf_attr_integrate(&r->scopes[r->proc], DW_AT_frame_base, &attr) &&
                 image_operations(r->im, &attr, r->pc, &ops, &n) && n == 1;
    return known ? ops : NULL;
}

/* Compilers that count from a register say so of the whole procedure, though the register is set up only behind its
 * beginning, and given back before it is left. */
static bool stands(reader *r, uint64_t base)
{
    unsigned number, first;
    int64_t up, begins, most, there = 0;
    bool known = image_frame_at(r->im, r->pc, &number, &up) && image_frame_at(r->im, r->entry, &first, &begins) &&
                 image_frame_most(r->im, r->entry, &most);
    if (!known) return refuse(r, "the unwind table does not say where its frame is");
    uint64_t begun = image_begun(r->im, r->entry);
    unsigned then = first;
    if (begun) image_frame_at(r->im, begun, &then, &there);
    if (then == first && there > begins) most = there;
    if (number == base && (base != first || up == most)) return true;
    return refuse(r, "its frame is not there here, at the procedure's beginning or end");
}

/* So far from a register, which may be what frames are counted from. */
static bool from_register(reader *r, uint64_t number, int64_t offset, image_variable *v)
{
    const Dwarf_Op *base = base_of(r);
    if (base && named_register(base) == (int64_t)number && !stands(r, number)) return false;
    return relative(r, number, offset, v);
}

static bool frame_base(reader *r, int64_t offset, image_variable *v)
{
    const Dwarf_Op *base = base_of(r);
    if (!base) return refuse(r, "its frame's beginning is not known");
    if (base->atom == DW_OP_call_frame_cfa) return from_frame(r, offset, v);
    if (base->atom >= DW_OP_breg0 && base->atom <= DW_OP_breg31)
        return relative(r, base->atom - DW_OP_breg0, (int64_t)(base->number + (uint64_t)offset), v);
    if (named_register(base) >= 0) return from_register(r, (uint64_t)named_register(base), offset, v);
    return refuse(r, "its frame's beginning is told by an expression");
}

/* The value that a register had at the entry; there it still is in it. */
static bool entry_value(reader *r, const Dwarf_Op *op, Dwarf_Attribute *attr, image_variable *v)
{
    Dwarf_Attribute block;
    Dwarf_Op *inner;
    size_t n;
    bool understood = r->proc >= 0 && r->entry && dwarf_getlocation_attr(attr, op, &block) == 0 &&
                      dwarf_getlocation(&block, &inner, &n) == 0 && n == 1;
    int64_t number = understood ? named_register(inner) : -1;
    bool typed = understood && (inner->atom == DW_OP_regval_type || inner->atom == DW_OP_GNU_regval_type);
    if (typed) number = (int64_t)inner->number;
    if (number < 0) return refuse(r, "its value is one of the procedure's entry that is no register's");
    if (!in_register(r, (uint64_t)number, v)) return false;
    if (r->pc == r->entry) return true;
    v->kind = v->kind == IMAGE_PLACE_VECTOR ? IMAGE_PLACE_ENTERED_VECTOR : IMAGE_PLACE_ENTERED;
    v->entry = r->entry;
    return true;
}

static bool fixed(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, int64_t *address)
{
    Dwarf_Attribute entry;
    Dwarf_Addr at = op->number;
    bool listed = op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index;
    if (listed && (dwarf_getlocation_attr(attr, op, &entry) || dwarf_formaddr(&entry, &at)))
        return refuse(r, "its address is not where the debug information says");
    if (!at) return refuse(r, "it was left out when the program was linked");
    *address = (int64_t)at;
    return true;
}

static bool is_fixed(const Dwarf_Op *op)
{
    return op->atom == DW_OP_addr || op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index;
}

static bool constant(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, int64_t *value)
{
    bool listed = op->atom == DW_OP_constx || op->atom == DW_OP_GNU_const_index;
    Dwarf_Attribute entry;
    Dwarf_Word word;
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) *value = op->atom - DW_OP_lit0;
    else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) *value = (int64_t)op->number;
    else if (listed && !dwarf_getlocation_attr(attr, op, &entry) && !dwarf_formudata(&entry, &word))
        *value = (int64_t)word;
    else return false;
    (void)r;
    return true;
}

/* A constant, and that it is counted from the beginning of the image's block. */
static bool in_block(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    bool known = n == 2 && (constant(r, attr, ops, &v->offset) || ops[0].atom == DW_OP_addr);
    if (!known) return refuse(r, "it is thread-local, in a block that is told by an expression");
    if (ops[0].atom == DW_OP_addr) v->offset = (int64_t)ops[0].number;
    /* GCC with -gsplit-dwarf has the address of what it is at first there. */
    const Elf64_Phdr *first = &r->im->tls_header;
    if ((uint64_t)v->offset - first->p_vaddr < first->p_memsz) v->offset -= (int64_t)first->p_vaddr;
    if ((uint64_t)v->offset >= first->p_memsz) return refuse(r, "it is thread-local, and lies outside of the block");
    v->kind = IMAGE_PLACE_TLS;
    return true;
}

/* --- computations --- */

static bool to_type(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, image_step *s)
{
    Dwarf_Die type;
    Dwarf_Word encoding = 0;
    Dwarf_Attribute its;
    if (op->number == 0 && (op->atom == DW_OP_convert || op->atom == DW_OP_reinterpret)) {
        *s = (image_step){STEP_EXTEND, 0, 8};
        return true;
    }
    int size = dwarf_getlocation_die(attr, op, &type) == 0 ? dwarf_bytesize(&type) : -1;
    bool known = (size == 1 || size == 2 || size == 4 || size == 8) && dwarf_attr(&type, DW_AT_encoding, &its) &&
                 !dwarf_formudata(&its, &encoding) && encoding != DW_ATE_float;
    if (!known) return refuse(r, "it is computed in floating point, or more than 64 bits");
    bool is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
    *s = (image_step){STEP_EXTEND, is_signed, size};
    return true;
}

static const struct {
    uint8_t atom;
    uint8_t kind;
    int8_t value;
} plain_steps[] = {
    {DW_OP_dup, STEP_PICK, 0},   {DW_OP_over, STEP_PICK, 1},  {DW_OP_drop, STEP_DROP, 0}, {DW_OP_swap, STEP_SWAP, 0},
    {DW_OP_rot, STEP_ROTATE, 0}, {DW_OP_deref, STEP_LOAD, 8}, {DW_OP_plus, STEP_ADD, 0},  {DW_OP_minus, STEP_SUB, 0},
    {DW_OP_mul, STEP_MUL, 0},    {DW_OP_div, STEP_DIV, 0},    {DW_OP_mod, STEP_MOD, 0},   {DW_OP_and, STEP_AND, 0},
    {DW_OP_or, STEP_OR, 0},      {DW_OP_xor, STEP_XOR, 0},    {DW_OP_shl, STEP_SHL, 0},   {DW_OP_shr, STEP_SHR, 0},
    {DW_OP_shra, STEP_SAR, 0},   {DW_OP_eq, STEP_EQ, 0},      {DW_OP_ne, STEP_NE, 0},     {DW_OP_lt, STEP_LT, 0},
    {DW_OP_le, STEP_LE, 0},      {DW_OP_gt, STEP_GT, 0},      {DW_OP_ge, STEP_GE, 0},     {DW_OP_neg, STEP_NEG, 0},
    {DW_OP_not, STEP_NOT, 0},
};

static bool plain_step(const Dwarf_Op *op, image_step *s)
{
    for (size_t i = 0; i < sizeof plain_steps / sizeof *plain_steps; i++)
        if (plain_steps[i].atom == op->atom) {
            *s = (image_step){plain_steps[i].kind, 0, plain_steps[i].value};
            return true;
        }
    return false;
}

/* Room for two: some operations of theirs are two of ours. The answer is how many; 0: not understood. */
static unsigned steps_of(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, image_step s[2])
{
    image_variable v = {0};
    int64_t reg = op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31 ? op->atom - DW_OP_breg0
                  : op->atom == DW_OP_bregx                           ? (int64_t)op->number
                  : op->atom == DW_OP_regval_type                     ? (int64_t)op->number
                                                                      : -1;
    bool typed = op->atom == DW_OP_regval_type || op->atom == DW_OP_GNU_regval_type;
    if (op->atom == DW_OP_nop) return *s = (image_step){STEP_EXTEND, 0, 8}, 1;
    if (plain_step(op, s)) return 1;
    *s = (image_step){STEP_CONSTANT, 0, 0};
    if (constant(r, attr, op, &s->value)) return 1;
    if (is_fixed(op)) return s->kind = STEP_ADDRESS, fixed(r, attr, op, &s->value);
    if (op->atom == DW_OP_GNU_regval_type) reg = (int64_t)op->number;
    if (op->atom == DW_OP_fbreg || op->atom == DW_OP_call_frame_cfa || reg >= 0) {
        bool known = op->atom == DW_OP_fbreg            ? frame_base(r, (int64_t)op->number, &v)
                     : op->atom == DW_OP_call_frame_cfa ? from_frame(r, 0, &v)
                     : typed                            ? relative(r, (uint64_t)reg, 0, &v)
                                                        : from_register(r, (uint64_t)reg, 0, &v);
        if (op->atom == DW_OP_bregx) v.offset = (int64_t)op->number2;
        else if (reg >= 0 && !typed) v.offset = (int64_t)op->number;
        *s = (image_step){STEP_REGISTER, v.reg, v.offset};
        if (known && typed) return to_type(r, attr, op, s + 1) ? 2 : 0;
        return known;
    }
    switch (op->atom) {
    case DW_OP_pick: *s = (image_step){STEP_PICK, 0, (int64_t)op->number}; return 1;
    case DW_OP_deref_size: *s = (image_step){STEP_LOAD, 0, (int64_t)op->number}; return 1;
    case DW_OP_plus_uconst: s[0].value = (int64_t)op->number, s[1] = (image_step){STEP_ADD, 0, 0}; return 2;
    case DW_OP_convert:
    case DW_OP_GNU_convert:
    case DW_OP_reinterpret:
    case DW_OP_GNU_reinterpret: return to_type(r, attr, op, s);
    case DW_OP_entry_value:
    case DW_OP_GNU_entry_value:
        if (!entry_value(r, op, attr, &v)) return 0;
        if (v.kind == IMAGE_PLACE_REGISTER) *s = (image_step){STEP_REGISTER, v.reg, 0};
        else if (v.kind == IMAGE_PLACE_ENTERED) *s = (image_step){STEP_ENTERED, v.reg, (int64_t)v.entry};
        else break;
        return 1;
    case DW_OP_bra: *s = (image_step){STEP_BRANCH, 0, 0}; return 1;
    case DW_OP_skip: *s = (image_step){STEP_SKIP, 0, 0}; return 1;
    case DW_OP_implicit_pointer:
    case DW_OP_GNU_implicit_pointer: refuse(r, "it points to something that is not in memory any more"); return 0;
    default: break;
    }
    refuse(r, "its place is told by an expression of a kind that is not known");
    return 0;
}

/* Where a branch leads, as a step: `first` has each operation's. */
static bool lead(reader *r, const Dwarf_Op *ops, size_t n, size_t from, const uint8_t *first, image_step *s)
{
    enum { LENGTH = 3 };
    uint64_t to = ops[from].offset + LENGTH + (uint64_t)(int16_t)ops[from].number;
    size_t i = from + 1;
    while (i < n && ops[i].offset != to) i++;
    if (i == n && (n == from + 1 || to <= ops[n - 1].offset))
        return refuse(r, "its place is told by an expression that branches back, or to nowhere");
    s->value = first[i];
    return true;
}

static bool computed(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    bool is_value = n && ops[n - 1].atom == DW_OP_stack_value;
    image_step *steps = inl_arena_alloc(&r->im->arena, (MOST_STEPS + 2) * sizeof *steps);
    uint8_t first[MOST_STEPS + 1];
    if (!steps) return refuse(r, "out of memory");
    v->kind = is_value ? IMAGE_PLACE_COMPUTED : IMAGE_PLACE_MEMORY;
    v->steps = steps;
    v->count = 0;
    n -= is_value;
    for (size_t i = 0; i < n; i++) {
        first[i] = (uint8_t)v->count;
        unsigned more = v->count < MOST_STEPS ? steps_of(r, attr, &ops[i], &steps[v->count]) : 0;
        if (!more) return r->why ? false : refuse(r, "its place is told by a long computation");
        v->count += more;
    }
    first[n] = (uint8_t)v->count;
    for (size_t i = 0; i < n; i++)
        if ((ops[i].atom == DW_OP_bra || ops[i].atom == DW_OP_skip) && !lead(r, ops, n, i, first, &steps[first[i]]))
            return false;
    return true;
}

/* --- one place --- */

static bool implicit(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, image_variable *v)
{
    Dwarf_Block block;
    if (dwarf_getlocation_implicit_value(attr, op, &block) || !block.length || block.length > UINT16_MAX)
        return refuse(r, "its value is not where the debug information says");
    v->kind = IMAGE_PLACE_BYTES;
    v->bytes = block.data;
    v->count = (unsigned)block.length;
    return true;
}

static bool one_place(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    bool is_value = n == 2 && ops[1].atom == DW_OP_stack_value;
    unsigned op = n ? ops[0].atom : DW_OP_piece;
    if (op == DW_OP_GNU_push_tls_address ||
        (n == 2 && (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address)))
        return in_block(r, attr, ops, n, v);
    if ((op == DW_OP_entry_value || op == DW_OP_GNU_entry_value) && is_value) return entry_value(r, &ops[0], attr, v);
    if (is_value && constant(r, attr, ops, &v->offset)) {
        v->kind = IMAGE_PLACE_VALUE;
        return true;
    }
    if (!n) return refuse(r, "it has been optimised away here");
    if (n == 1 && named_register(ops) >= 0) return in_register(r, (uint64_t)named_register(ops), v);
    if (n == 1 && op >= DW_OP_breg0 && op <= DW_OP_breg31)
        return from_register(r, op - DW_OP_breg0, (int64_t)ops[0].number, v);
    if (n == 1 && op == DW_OP_fbreg) return frame_base(r, (int64_t)ops[0].number, v);
    if (n == 1 && op == DW_OP_implicit_value) return implicit(r, attr, ops, v);
    if (n == 1 && is_fixed(ops)) {
        v->kind = IMAGE_PLACE_ADDRESS;
        return fixed(r, attr, ops, &v->offset);
    }
    return computed(r, attr, ops, n, v);
}

/* --- pieces --- */

static bool ends_piece(const Dwarf_Op *op) { return op->atom == DW_OP_piece || op->atom == DW_OP_bit_piece; }

/* One that cannot be understood is as one that nobody knows: others may be all that is asked for. */
static bool add_piece(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_piece *out)
{
    const Dwarf_Op *end = &ops[n];
    bool bits = end->atom == DW_OP_bit_piece;
    out->where = (image_variable){.kind = IMAGE_PLACE_NOWHERE};
    out->size = bits ? end->number / 8 : end->number;
    if (bits && (end->number % 8 || end->number2)) return refuse(r, "it is in pieces of some bits");
    if (n && !one_place(r, attr, ops, n, &out->where)) out->where.kind = IMAGE_PLACE_NOWHERE;
    return true;
}

bool image_location(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    if (!n || !ends_piece(&ops[n - 1])) return one_place(r, attr, ops, n, v);
    image_piece *pieces = inl_arena_alloc(&r->im->arena, MOST_PIECES * sizeof *pieces);
    if (!pieces) return refuse(r, "out of memory");
    v->kind = IMAGE_PLACE_PIECES;
    v->pieces = pieces;
    v->count = 0;
    bool known = false;
    for (size_t i = 0, from = 0; i < n; i++) {
        if (!ends_piece(&ops[i])) continue;
        if (v->count == MOST_PIECES) return refuse(r, "it is in too many pieces");
        if (!add_piece(r, attr, &ops[from], i - from, &pieces[v->count])) return false;
        known |= pieces[v->count++].where.kind != IMAGE_PLACE_NOWHERE;
        from = i + 1;
    }
    if (!known) return r->why ? false : refuse(r, "it has been optimised away here");
    r->why = NULL;
    return true;
}
