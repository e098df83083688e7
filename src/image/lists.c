/* Variables one after the other, for who does not know their names: those of a procedure, those of an image. */
#include "image/units.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 300 /* a name with the spaces that it is in */, DEEPEST = 200 /* blocks in blocks */ };

typedef struct lister {
    image *im;
    void (*each)(void *arg, const image_listed *);
    void *arg;
    uint64_t low, high; /* of the scope */
} lister;

static bool is_variable(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && dwarf_diename(die);
}

static bool is_block(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_try_block ||
           tag == DW_TAG_catch_block;
}

/* From the first byte of its code to the last one, with what lies between them. */
static void set_range(lister *l, Dwarf_Die *scope)
{
    Dwarf_Addr base, low, high;
    l->low = l->high = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(scope, at, &base, &low, &high)) > 0;) {
        if (!l->high || low < l->low) l->low = low;
        if (high > l->high) l->high = high;
    }
}

static unsigned line_of(Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Word line;
    bool told = dwarf_attr_integrate(die, DW_AT_decl_line, &attr) && !dwarf_formudata(&attr, &line);
    return told ? (unsigned)line : 0;
}

/* Another one of its name stands in a scope further in. */
static bool is_hidden(const char *name, Dwarf_Die *scopes, int count)
{
    Dwarf_Die kid;
    for (int i = 0; i < count; i++) {
        if (dwarf_child(&scopes[i], &kid)) continue;
        do
            if (is_variable(&kid) && !strcmp(dwarf_diename(&kid), name)) return true;
        while (dwarf_siblingof(&kid, &kid) == 0);
    }
    return false;
}

/* Those of a scope that none of `inner` hides; of so many blocks in it, one inside the other, too. */
static void list_scope(lister *l, Dwarf_Die *scope, Dwarf_Die *inner, int inner_count, unsigned deep)
{
    Dwarf_Die kid;
    bool takes = dwarf_tag(scope) == DW_TAG_subprogram;
    set_range(l, scope);
    uint64_t low = l->low, high = l->high;
    if (dwarf_child(scope, &kid)) return;
    do {
        if (deep && is_block(&kid)) list_scope(l, &kid, NULL, 0, deep - 1);
        if (!is_variable(&kid) || is_hidden(dwarf_diename(&kid), inner, inner_count)) continue;
        image_listed v = {.name = dwarf_diename(&kid), .type = image_ctype_of(l->im, &kid), .low = low, .high = high};
        v.is_parameter = takes && dwarf_tag(&kid) == DW_TAG_formal_parameter && !image_is_result(&kid);
        v.line = line_of(&kid);
        if (v.type) l->each(l->arg, &v);
    } while (dwarf_siblingof(&kid, &kid) == 0);
}

void image_locals(image *im, uint64_t pc, bool all, void (*each)(void *, const image_listed *), void *arg)
{
    image_reader r = {.im = im, .pc = pc};
    lister l = {.im = im, .each = each, .arg = arg};
    image_lines *lines = image_trees(im);
    if (lines && image_open_scopes(&r, lines))
        for (int i = all ? r.proc : 0; i <= r.proc; i++)
            list_scope(&l, &r.scopes[i], r.scopes, all ? 0 : i, all ? DEEPEST : 0);
    free(r.scopes);
}

/* --- of an image --- */

/* Where it lies, if that is one place for all. */
static void place(image *im, Dwarf_Die *die, image_listed *v)
{
    image_reader r = {.im = im, .proc = -1};
    image_variable where = {.type = v->type};
    Dwarf_Attribute attr;
    Dwarf_Op *ops;
    size_t n;
    if (!dwarf_attr_integrate(die, DW_AT_location, &attr) || !image_operations(im, &attr, 0, &ops, &n)) return;
    if (!image_location(&r, &attr, ops, n, &where) || where.kind != IMAGE_PLACE_ADDRESS) return;
    v->low = (uint64_t)where.offset;
    v->high = v->low + v->type->size;
}

static void list_space(lister *l, Dwarf_Die *space, const char *prefix, unsigned deep)
{
    Dwarf_Die kid;
    char name[LONGEST];
    if (dwarf_child(space, &kid)) return;
    do {
        const char *own = dwarf_diename(&kid);
        int length = snprintf(name, sizeof name, "%s%s", prefix, own ? own : "");
        if (length >= (int)sizeof name - 3) continue;
        if (dwarf_tag(&kid) == DW_TAG_variable && own && !dwarf_hasattr(&kid, DW_AT_declaration)) {
            image_listed v = {.name = name, .type = image_ctype_of(l->im, &kid), .line = line_of(&kid)};
            if (v.type) place(l->im, &kid, &v);
            if (v.type) l->each(l->arg, &v);
        } else if (deep && image_is_space(&kid, false)) {
            if (own) strcpy(name + length, "::");
            list_space(l, &kid, name, deep - 1);
        }
    } while (dwarf_siblingof(&kid, &kid) == 0);
}

void image_globals(image *im, void (*each)(void *, const image_listed *), void *arg)
{
    lister l = {.im = im, .each = each, .arg = arg};
    image_lines *lines = image_trees(im);
    for (size_t i = 0; lines && i < lines->trees.count; i++) list_space(&l, &lines->trees.items[i], "", IMAGE_SPACES);
}
