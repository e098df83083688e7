/* Variables by name, and where they are: read from debug information through libdw. */
#include "image/units.h"

#include <dwarf.h>
#include <stdlib.h>

typedef image_reader reader;

static bool refuse(reader *r, const char *why)
{
    r->why = why;
    return false;
}

/* Floating point, a structure: as it would lie in memory. */
static bool constant_bytes(reader *r, Dwarf_Attribute *attr, image_variable *v)
{
    Dwarf_Block block;
    if (dwarf_formblock(attr, &block) || !block.length || block.length < v->type->size)
        return refuse(r, "it is a constant in a form that is not known");
    v->kind = IMAGE_PLACE_BYTES;
    v->bytes = block.data;
    v->count = (unsigned)block.length;
    return true;
}

static bool is_list(Dwarf_Attribute *attr)
{
    unsigned form = dwarf_whatform(attr);
    return form == DW_FORM_loclistx || form == DW_FORM_sec_offset || form == DW_FORM_data4 || form == DW_FORM_data8;
}

static bool locate(reader *r, Dwarf_Die *die, image_variable *v)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    Dwarf_Sword value;
    v->type = image_ctype_of(r->im, die);
    if (!v->type) return refuse(r, "out of memory");
    if (dwarf_attr_integrate(die, DW_AT_const_value, &attr)) {
        v->kind = IMAGE_PLACE_VALUE;
        v->offset = 0;
        if (dwarf_formsdata(&attr, &value)) return constant_bytes(r, &attr, v);
        v->offset = value;
        return true;
    }
    if (!dwarf_attr_integrate(die, DW_AT_location, &attr)) {
        v->kind = IMAGE_PLACE_VALUE;
        v->offset = 0;
        return image_is_only_null(die) || refuse(r, "it has been optimised away");
    }
    v->is_for_here = is_list(&attr);
    if (!image_operations(r->im, &attr, r->pc, &ops, &n)) return refuse(r, "it has been optimised away here");
    if (!image_location(r, &attr, ops, n, v)) return false;
    if (v->kind != IMAGE_PLACE_PIECES || !image_is_of_go(die)) return true;
    return image_spread_pieces(r->im, v) || refuse(r, "its parts are not told as its type has them");
}

/* --- by name --- */

/* Or a constant with a name, as Fortran's and Go's. */
static bool is_variable(Dwarf_Die *die, const char *name)
{
    int tag = dwarf_tag(die);
    if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter && tag != DW_TAG_constant) return false;
    return image_is_named(die, name);
}

/* The variable, where that is a common block of Fortran's with one of that name. */
static bool named_in_common(const Dwarf_Die *block, const char *name, Dwarf_Die *out)
{
    Dwarf_Die from = *block, kid;
    if (dwarf_tag(&from) != DW_TAG_common_block || dwarf_child(&from, &kid)) return false;
    do {
        if (!is_variable(&kid, name)) continue;
        *out = kid;
        return true;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

static bool is_parameter(Dwarf_Die *die) { return dwarf_tag(die) == DW_TAG_formal_parameter && !image_is_result(die); }

/* The variable in that scope; *parameter: its number. */
static bool named_in(Dwarf_Die *scope, const char *name, Dwarf_Die *out, unsigned *parameter)
{
    unsigned parameters = 0;
    *parameter = 0;
    if (dwarf_child(scope, out)) return false;
    do {
        bool counts = is_parameter(out);
        parameters += counts;
        if (named_in_common(out, name, out)) return true;
        if (!is_variable(out, name)) continue;
        if (counts) *parameter = parameters;
        return true;
    } while (dwarf_siblingof(out, out) == 0);
    return false;
}

/* What is inlined, or cloned, tells of its own variables alone: others of its source, which it needs no more or which
 * are one for all its places (static ones, constants), stand there, and hide those of the same name around it. */
static bool named_in_origin(Dwarf_Die *scope, const char *name, Dwarf_Die *out)
{
    Dwarf_Attribute attr;
    Dwarf_Die origin;
    unsigned parameter;
    bool any = dwarf_attr(scope, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin);
    return any && named_in(&origin, name, out, &parameter);
}

bool image_open_scopes(reader *r, image_lines *l)
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

const char image_local_around[] = "it is one of the procedure around this one, whose frame is not known here";

/* It would be taken for a variable of somewhere else. */
static bool is_around(reader *r, const char *name)
{
    Dwarf_Die die;
    unsigned parameter;
    for (int i = r->proc + 1; i < r->count; i++)
        if (dwarf_tag(&r->scopes[i]) == DW_TAG_subprogram && named_in(&r->scopes[i], name, &die, &parameter))
            return !refuse(r, image_local_around);
    return false;
}

bool image_local(image *im, uint64_t pc, const char *name, image_variable *out, const char **why)
{
    reader r = {.im = im, .pc = pc};
    image_lines *l = image_trees(im);
    Dwarf_Die die;
    bool found = false, there = false;
    *out = (image_variable){0};
    if (l && image_open_scopes(&r, l)) {
        /* What is inlined at the very beginning comes behind the procedure's own parameters. */
        for (int i = pc == r.entry ? r.proc : 0; i <= r.proc && !found; i++) {
            found = named_in(&r.scopes[i], name, &die, &out->parameter);
            if (i < r.proc) out->parameter = 0; /* of what is inlined */
            found = found || named_in_origin(&r.scopes[i], name, &die);
        }
        if (found) there = locate(&r, &die, out);
        else found = is_around(&r, name);
        out->entry = r.entry;
    }
    free(r.scopes);
    *why = found ? r.why : NULL;
    return there;
}

/* --- parameters by their numbers --- */

/* Where the parameter of the procedure that begins at `pc` is told. */
static bool parameter_location(image *im, uint64_t pc, unsigned number, Dwarf_Attribute *out)
{
    reader r = {.im = im, .pc = pc};
    image_lines *l = image_trees(im);
    Dwarf_Die die;
    bool told = false;
    if (l && image_open_scopes(&r, l) && !dwarf_child(&r.scopes[r.proc], &die)) {
        bool there = true;
        while (there && !(is_parameter(&die) && --number == 0)) there = dwarf_siblingof(&die, &die) == 0;
        told = there && dwarf_attr(&die, DW_AT_location, out);
    }
    free(r.scopes);
    return told;
}

image_told image_parameter_told(image *im, uint64_t pc, unsigned number)
{
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    if (!parameter_location(im, pc, number, &attr)) return IMAGE_TOLD_NOTHING;
    if (!image_operations(im, &attr, pc, &ops, &n) || !n) return IMAGE_TOLD_IN_PARTS;
    unsigned last = ops[n - 1].atom;
    if (last == DW_OP_stack_value || last == DW_OP_implicit_value) return IMAGE_TOLD_NOTHING; /* nobody need pass it */
    return is_list(&attr) ? IMAGE_TOLD_HERE : IMAGE_TOLD;
}

bool image_parameter_is_by(image *im, uint64_t pc, unsigned number, unsigned reg)
{
    const image_processor *m = image_processor_of(im);
    Dwarf_Attribute attr;
    Dwarf_Addr base, begin, end;
    Dwarf_Op *ops;
    size_t n;
    bool told = m && parameter_location(im, pc, number, &attr);
    for (ptrdiff_t at = 0; told && (at = dwarf_getlocations(&attr, at, &base, &begin, &end, &ops, &n)) > 0;) {
        bool leads = n == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 && !ops[0].number;
        unsigned named = leads ? (unsigned)(ops[0].atom - DW_OP_breg0) : m->register_count;
        if (named < m->register_count && m->registers[named] == reg) return true;
    }
    return false;
}

/* Its value stands where it is declared. There are many of one name (`value`), so it is asked for with its class. */
static bool is_of_class(Dwarf_Die *die, const char *name)
{
    int tag = dwarf_tag(die);
    bool is_static = (tag == DW_TAG_variable || tag == DW_TAG_member) && dwarf_hasattr(die, DW_AT_declaration);
    return is_static && strstr(name, "::") && dwarf_hasattr(die, DW_AT_const_value) && image_is_named(die, name);
}

/* deep: in namespaces as well, so many levels of them. */
static bool global_in(reader *r, Dwarf_Die *parent, const char *name, unsigned deep, image_variable *out)
{
    Dwarf_Die kid, inner;
    if (dwarf_child(parent, &kid)) return false;
    do {
        /* What is only declared is somewhere else. A definition may leave name and type to its declaration. */
        bool is_it = is_variable(&kid, name) && !dwarf_hasattr(&kid, DW_AT_declaration);
        if ((is_it || is_of_class(&kid, name)) && locate(r, &kid, out)) return true;
        if (named_in_common(&kid, name, &inner) && locate(r, &inner, out)) return true;
        bool is_space = deep && image_is_space(&kid, strstr(name, "::") != NULL);
        if (is_space && global_in(r, &kid, name, deep - 1, out)) return true;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    return false;
}

bool image_global(image *im, uint64_t pc, const char *name, image_variable *out, const char **why)
{
    reader r = {.im = im, .proc = -1};
    image_lines *l = image_trees(im);
    *out = (image_variable){0};
    *why = NULL;
    if (!l || !image_may_tell_of(l, name)) return false;
    Dwarf_Die *own = image_tree_at(l, pc);
    bool found = false;
    for (unsigned deep = 0; !found && deep <= IMAGE_SPACES; deep += IMAGE_SPACES) {
        found = own && global_in(&r, own, name, deep, out);
        for (size_t i = 0; !found && i < l->trees.count; i++)
            found = !(deep && image_is_c(&l->trees.items[i])) && global_in(&r, &l->trees.items[i], name, deep, out);
    }
    *why = found ? NULL : r.why;
    return found;
}

bool image_passes_references(image *im, uint64_t pc)
{
    image_lines *l = image_trees(im);
    Dwarf_Die *unit = l ? image_tree_at(l, pc) : NULL;
    return unit && image_is_fortran(unit);
}
