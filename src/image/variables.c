/* Where variables are, read from debug information through libdw.
 *
 * Of location expressions those are understood that compilers write for nearly everything: a register, a place so far
 * from a register or from the frame's beginning, a fixed address, one in a thread's block, a constant. The others
 * (pieces, what has been optimised away) are refused by name. */
#include "image/units.h"

#include <dwarf.h>
#include <stdlib.h>

typedef struct reader {
    image *im;
    uint64_t pc, entry; /* entry: of the procedure around */
    Dwarf_Die *scopes;  /* the innermost first */
    int count, proc;    /* proc: which of them is the procedure; -1: none */
    const char *why;
} reader;

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
    if (!image_frame_at(r->im, r->pc, &number, &up))
        return refuse(r, "the unwind table does not say where its frame is");
    return relative(r, number, up + offset, v);
}

static bool frame_base(reader *r, int64_t offset, image_variable *v)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    if (r->proc < 0 || !dwarf_attr_integrate(&r->scopes[r->proc], DW_AT_frame_base, &attr) ||
        dwarf_getlocation_addr(&attr, r->pc, &ops, &n, 1) != 1 || n != 1)
        return refuse(r, "its frame's beginning is not known");
    if (ops[0].atom == DW_OP_call_frame_cfa) return from_frame(r, offset, v);
    if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31)
        return relative(r, ops[0].atom - DW_OP_breg0, (int64_t)ops[0].number + offset, v);
    if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
        return relative(r, ops[0].atom - DW_OP_reg0, offset, v);
    return refuse(r, "its frame's beginning is told by an expression");
}

/* The value that a register had at the entry: still there. */
static bool entry_value(reader *r, const Dwarf_Op *op, Dwarf_Attribute *attr, image_variable *v)
{
    Dwarf_Attribute block;
    Dwarf_Op *inner;
    size_t n;
    bool understood = r->pc == r->entry && dwarf_getlocation_attr(attr, op, &block) == 0 &&
                      dwarf_getlocation(&block, &inner, &n) == 0 && n == 1 && inner[0].atom >= DW_OP_reg0 &&
                      inner[0].atom <= DW_OP_reg31;
    if (!understood) return refuse(r, "its value is that of the procedure's entry, which is not kept");
    v->kind = IMAGE_PLACE_REGISTER;
    return general_register(r, inner[0].atom - DW_OP_reg0, &v->reg);
}

static bool fixed(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *op, image_variable *v)
{
    Dwarf_Attribute entry;
    Dwarf_Addr at = op->number;
    bool listed = op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index;
    if (listed && (dwarf_getlocation_attr(attr, op, &entry) || dwarf_formaddr(&entry, &at)))
        return refuse(r, "its address is not where the debug information says");
    if (!listed && op->atom != DW_OP_addr) return refuse(r, "its place is told by an expression");
    v->kind = IMAGE_PLACE_ADDRESS;
    v->offset = (int64_t)at;
    return true;
}

static bool constant(const Dwarf_Op *op, int64_t *value)
{
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) *value = op->atom - DW_OP_lit0;
    else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) *value = (int64_t)op->number;
    else return false;
    return true;
}

/* A constant, and that it is counted from the beginning of the image's block. */
static bool in_block(reader *r, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    bool known = n == 2 && (constant(ops, &v->offset) || ops[0].atom == DW_OP_addr);
    if (!known) return refuse(r, "it is thread-local, in a block that is told by an expression");
    if (ops[0].atom == DW_OP_addr) v->offset = (int64_t)ops[0].number;
    v->kind = IMAGE_PLACE_TLS;
    return true;
}

static bool understand(reader *r, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n, image_variable *v)
{
    bool is_value = n == 2 && ops[1].atom == DW_OP_stack_value;
    unsigned op = n ? ops[0].atom : DW_OP_piece;
    if (op == DW_OP_GNU_push_tls_address ||
        (n == 2 && (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address)))
        return in_block(r, ops, n, v);
    if ((op == DW_OP_entry_value || op == DW_OP_GNU_entry_value) && is_value) return entry_value(r, ops, attr, v);
    if (is_value && constant(ops, &v->offset)) {
        v->kind = IMAGE_PLACE_VALUE;
        return true;
    }
    if (n != 1) return refuse(r, n ? "its place is told by an expression" : "it has been optimised away here");
    if (op >= DW_OP_reg0 && op <= DW_OP_reg31) {
        v->kind = IMAGE_PLACE_REGISTER;
        return general_register(r, op - DW_OP_reg0, &v->reg);
    }
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return relative(r, op - DW_OP_breg0, (int64_t)ops[0].number, v);
    if (op == DW_OP_fbreg) return frame_base(r, (int64_t)ops[0].number, v);
    return fixed(r, attr, ops, v);
}

static bool locate(reader *r, Dwarf_Die *die, image_variable *v)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    Dwarf_Sword value;
    v->type = image_ctype_of(r->im, die);
    if (!v->type) return refuse(r, "out of memory");
    if (dwarf_attr_integrate(die, DW_AT_const_value, &attr) && dwarf_formsdata(&attr, &value) == 0) {
        v->kind = IMAGE_PLACE_VALUE;
        v->offset = value;
        return true;
    }
    if (!dwarf_attr_integrate(die, DW_AT_location, &attr)) return refuse(r, "it has been optimised away");
    if (dwarf_getlocation_addr(&attr, r->pc, &ops, &n, 1) != 1) return refuse(r, "it has been optimised away here");
    return understand(r, &attr, ops, n, v);
}

/* --- by name --- */

static bool is_variable(Dwarf_Die *die, const char *name)
{
    int tag = dwarf_tag(die);
    if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) return false;
    return image_is_named(die, name);
}

/* The variable in that scope; *parameter: its number. */
static bool named_in(Dwarf_Die *scope, const char *name, Dwarf_Die *out, unsigned *parameter)
{
    unsigned parameters = 0;
    *parameter = 0;
    if (dwarf_child(scope, out)) return false;
    do {
        bool counts = dwarf_tag(out) == DW_TAG_formal_parameter;
        parameters += counts;
        if (!is_variable(out, name)) continue;
        if (counts) *parameter = parameters;
        return true;
    } while (dwarf_siblingof(out, out) == 0);
    return false;
}

static bool open_scopes(reader *r, image_lines *l)
{
    r->count = image_scopes_at(l, r->pc, &r->scopes);
    r->proc = -1;
    for (int i = 0; i < r->count; i++) {
        Dwarf_Addr base, low, high;
        if (dwarf_tag(&r->scopes[i]) != DW_TAG_subprogram) continue;
        r->proc = i;
        if (dwarf_ranges(&r->scopes[i], 0, &base, &low, &high) > 0) r->entry = low;
        if (dwarf_entrypc(&r->scopes[i], &low) == 0) r->entry = low;
        return true;
    }
    return false;
}

bool image_local(image *im, uint64_t pc, const char *name, image_variable *out, const char **why)
{
    reader r = {.im = im, .pc = pc};
    image_lines *l = image_units(im);
    Dwarf_Die die;
    bool found = false, there = false;
    *out = (image_variable){0};
    if (l && open_scopes(&r, l)) {
        /* What is inlined at the very beginning comes behind the procedure's own parameters. */
        for (int i = pc == r.entry ? r.proc : 0; i <= r.proc && !found; i++) {
            found = named_in(&r.scopes[i], name, &die, &out->parameter);
            if (i < r.proc) out->parameter = 0; /* of what is inlined */
        }
        if (found) there = locate(&r, &die, out);
    }
    free(r.scopes);
    *why = found ? r.why : NULL;
    return there;
}

/* deep: in namespaces as well, so many levels of them. */
static bool global_in(reader *r, Dwarf_Die *parent, const char *name, unsigned deep, image_variable *out)
{
    Dwarf_Die kid;
    if (dwarf_child(parent, &kid)) return false;
    do {
        /* What is only declared is somewhere else. A definition may leave name and type to its declaration. */
        bool is_it = dwarf_tag(&kid) == DW_TAG_variable && !dwarf_hasattr(&kid, DW_AT_declaration) &&
                     is_variable(&kid, name);
        if (is_it && locate(r, &kid, out)) return true;
        if (deep && image_is_space(&kid, false) && global_in(r, &kid, name, deep - 1, out)) return true;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

bool image_global(image *im, uint64_t pc, const char *name, image_variable *out, const char **why)
{
    reader r = {.im = im, .proc = -1};
    image_lines *l = image_units(im);
    *out = (image_variable){0};
    Dwarf_Die *own = l ? image_unit_at(l, pc) : NULL;
    bool found = false;
    for (unsigned deep = 0; !found && deep <= IMAGE_SPACES; deep += IMAGE_SPACES) {
        found = own && global_in(&r, own, name, deep, out);
        for (size_t i = 0; l && !found && i < l->units.count; i++)
            found = !(deep && image_is_c(&l->units.items[i])) && global_in(&r, &l->units.items[i], name, deep, out);
    }
    *why = found ? NULL : r.why;
    return found;
}
