/* Which names the units of an image tell of outside of procedures. Who looks a variable or an enumerator up walks
 * through all units, entry by entry, and in most images there is none of that name (a C library's debug information
 * has half a million entries): the hashes of all such names are read once, and are asked first. */
#include "base/hash.h"
#include "image/units.h"

#include <dwarf.h>

static bool note(image_lines *l, Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    return !name || inl_map_put(&l->names.hashes, inl_hash_text(INL_HASH_BEGIN, name), 1);
}

static bool note_in(image_lines *l, Dwarf_Die *parent, unsigned deep);

static bool note_one(image_lines *l, Dwarf_Die *die, unsigned deep)
{
    switch (dwarf_tag(die)) {
    case DW_TAG_variable:
    case DW_TAG_formal_parameter:
    case DW_TAG_constant:
    case DW_TAG_enumerator: return note(l, die);
    case DW_TAG_member: return !dwarf_hasattr(die, DW_AT_const_value) || note(l, die);
    case DW_TAG_common_block:
    case DW_TAG_enumeration_type: return note_in(l, die, deep);
    default: return !deep || !image_is_space(die, true) || note_in(l, die, deep - 1);
    }
}

static bool note_in(image_lines *l, Dwarf_Die *parent, unsigned deep)
{
    Dwarf_Die kid;
    bool room = true;
    if (dwarf_child(parent, &kid)) return true;
    do room = note_one(l, &kid, deep);
    while (room && dwarf_siblingof(&kid, &kid) == 0);
    return room;
}

bool image_may_tell_of(image_lines *l, const char *name)
{
    uint64_t there;
    if (!l->names.read) {
        l->names.read = true;
        for (size_t i = 0; i < l->trees.count && !l->names.lacks; i++)
            l->names.lacks = !note_in(l, &l->trees.items[i], IMAGE_SPACES);
    }
    return l->names.lacks ||
           inl_map_get(&l->names.hashes, inl_hash_text(INL_HASH_BEGIN, image_last_part(name)), &there);
}
