/* What has several parts that are no members: the forms of an enumeration of Rust's, each with what belongs to it, and
 * the results of a procedure of Go's. */
#include "image/units.h"

#include <dwarf.h>

enum { MOST_RESULTS = 64 };

static bool first_with(Dwarf_Die *parent, int tag, Dwarf_Die *out)
{
    if (dwarf_child(parent, out)) return false;
    do
        if (dwarf_tag(out) == tag) return true;
    while (dwarf_siblingof(out, out) == 0);
    return false;
}

static bool read_variant(image *im, Dwarf_Die *die, image_variant *v)
{
    Dwarf_Die member;
    if (!first_with(die, DW_TAG_member, &member)) return false;
    const char *name = dwarf_diename(&member);
    v->name = inl_arena_strdup(&im->arena, name ? name : "?");
    v->type = image_ctype_of(im, &member);
    v->value = 0;
    v->otherwise = !image_number_of(die, DW_AT_discr_value, &v->value);
    return v->name && v->type;
}

const image_variants *image_read_variants(image *im, Dwarf_Die *die)
{
    Dwarf_Attribute attr;
    Dwarf_Die part, kid, number;
    if (!image_is_of_rust(die) || !first_with(die, DW_TAG_variant_part, &part)) return NULL;
    size_t n = image_count_tags(&part, DW_TAG_variant), i = 0;
    image_variants *all = inl_arena_alloc(&im->arena, sizeof *all);
    image_variant *list = all && n ? inl_arena_alloc(&im->arena, n * sizeof *list) : NULL;
    if (!list || dwarf_child(&part, &kid)) return NULL;
    *all = (image_variants){.list = list};
    if (dwarf_attr(&part, DW_AT_discr, &attr) && dwarf_formref_die(&attr, &number)) {
        all->number = image_ctype_of(im, &number);
        if (!image_member_offset(&number, &all->offset)) return NULL;
    }
    do
        if (dwarf_tag(&kid) == DW_TAG_variant && read_variant(im, &kid, &list[i])) i++;
    while (i < n && dwarf_siblingof(&kid, &kid) == 0);
    all->count = i;
    return all;
}

static const char *result_name(image *im, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    while (name && *name == '~') name++; /* of one without a name: ~r0 */
    return inl_arena_strdup(&im->arena, name ? name : "");
}

const image_ctype *image_read_results(image *im, Dwarf_Die *proc, bool *many)
{
    Dwarf_Die kid;
    image_member list[MOST_RESULTS];
    size_t n = 0;
    uint64_t end = 0;
    if (dwarf_child(proc, &kid)) return &image_ctype_void;
    do {
        if (dwarf_tag(&kid) != DW_TAG_formal_parameter || !image_is_result(&kid) || n == MOST_RESULTS) continue;
        list[n] = (image_member){result_name(im, &kid), image_ctype_of(im, &kid), 0};
        if (!list[n].type || !list[n].name) return NULL;
        list[n].offset = image_ctype_behind(list[n].type, end);
        end = list[n].offset + list[n].type->size;
        n++;
    } while (dwarf_siblingof(&kid, &kid) == 0);
    *many = n > 1;
    if (n < 2) return n ? list[0].type : &image_ctype_void;
    image_ctype *all = inl_arena_alloc(&im->arena, sizeof *all);
    image_member *members = inl_arena_alloc(&im->arena, n * sizeof *members);
    if (!all || !members) return NULL;
    memcpy(members, list, n * sizeof *members);
    *all = (image_ctype){.kind = IMAGE_CTYPE_STRUCT, .name = "struct results", .members = members, .member_count = n};
    all->size = image_ctype_behind(all, end);
    return all;
}
