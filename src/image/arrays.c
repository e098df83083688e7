/* Arrays, read from debug information: how many elements of which type lie one behind the other.
 *
 * Texts count elements from 0, and the first index is the one that leads farthest, as in C: what other languages say of
 * first indices, and Fortran of the order of dimensions, is turned into that. Elements that do not lie one behind the
 * other, and arrays of which a descriptor tells where they lie, are none of C's arrays. */
#include "image/units.h"

#include <dwarf.h>

enum { MOST_DIMENSIONS = 8 };

static uint64_t first_index(Dwarf_Die *unit)
{
    switch (dwarf_srclang(unit)) {
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Pascal83:
    case DW_LANG_Modula2:
    case DW_LANG_Modula3:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_PLI:
    case DW_LANG_Julia: return 1;
    default: return image_is_fortran(unit);
    }
}

/* 0: not known. */
static uint64_t elements(Dwarf_Die *range, uint64_t first)
{
    uint64_t count, last;
    if (image_number_of(range, DW_AT_count, &count)) return count;
    if (dwarf_hasattr(range, DW_AT_lower_bound) && !image_number_of(range, DW_AT_lower_bound, &first)) return 0;
    if (!image_number_of(range, DW_AT_upper_bound, &last)) return 0;
    return (int64_t)last < (int64_t)first ? 0 : last - first + 1;
}

/* Is so far from one element to the next, in one of the dimensions? */
static bool has_stride(Dwarf_Die *die)
{
    return dwarf_hasattr(die, DW_AT_byte_stride) || dwarf_hasattr(die, DW_AT_bit_stride);
}

/* The dimensions are the children. *apart: elements do not lie one behind the other. */
static unsigned read_dimensions(Dwarf_Die *die, uint64_t first, uint64_t counts[MOST_DIMENSIONS], bool *apart)
{
    Dwarf_Die kid;
    unsigned n = 0;
    *apart = has_stride(die);
    if (dwarf_child(die, &kid)) return 0;
    do {
        if (dwarf_tag(&kid) != DW_TAG_subrange_type) continue;
        *apart |= has_stride(&kid);
        counts[n++] = elements(&kid, first);
    } while (n < MOST_DIMENSIONS && dwarf_siblingof(&kid, &kid) == 0);
    return n;
}

static void turn_round(uint64_t *counts, unsigned n)
{
    for (unsigned i = 0; i < n / 2; i++) {
        uint64_t its = counts[i];
        counts[i] = counts[n - 1 - i], counts[n - 1 - i] = its;
    }
}

static void name_alone(image_ctype *t, const char *name)
{
    t->kind = IMAGE_CTYPE_OTHER;
    t->name = name;
}

/* Where a descriptor stands: Fortran's begins with the address of the first element. */
static void read_described(image_ctype *t, const image_ctype *of, bool is_fortran)
{
    if (!is_fortran) return name_alone(t, "array with a descriptor");
    t->kind = IMAGE_CTYPE_POINTER;
    t->size = 8;
    t->of = of;
}

void image_read_array(image *im, Dwarf_Die *die, image_ctype *t)
{
    Dwarf_Die unit;
    uint64_t counts[MOST_DIMENSIONS];
    bool apart, known = dwarf_diecu(die, &unit, NULL, NULL), is_fortran = known && image_is_fortran(&unit);
    const image_ctype *of = image_ctype_of(im, die);
    if (!of) of = &image_ctype_void;
    if (dwarf_hasattr(die, DW_AT_data_location)) return read_described(t, of, is_fortran);
    unsigned n = read_dimensions(die, known ? first_index(&unit) : 0, counts, &apart);
    if (apart) return name_alone(t, "array whose elements lie apart");
    if (is_fortran) turn_round(counts, n);
    for (unsigned i = n; i-- > 1;) {
        image_ctype *inner = inl_arena_alloc(&im->arena, sizeof *inner);
        if (!inner) break;
        *inner = (image_ctype){.kind = IMAGE_CTYPE_ARRAY, .of = of, .count = counts[i], .size = of->size * counts[i]};
        of = inner;
    }
    t->kind = IMAGE_CTYPE_ARRAY;
    t->is_vector = dwarf_hasattr(die, DW_AT_GNU_vector);
    t->of = of;
    t->count = n ? counts[0] : 0;
    t->size = of->size * t->count;
}

void image_read_string(Dwarf_Die *die, image_ctype *t)
{
    if (dwarf_hasattr(die, DW_AT_string_length)) t->size = 0; /* it was the size of what tells the length */
    t->kind = IMAGE_CTYPE_ARRAY;
    t->of = &image_ctype_char;
    t->count = t->size;
}
