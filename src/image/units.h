/* The debug information of an image, as libdw has it: what those share that read lines, types and variables. */
#ifndef INL_IMAGE_UNITS_H
#define INL_IMAGE_UNITS_H

#include "base/map.h"
#include "image/file.h"
#include "image/ctype.h"

#include <elfutils/libdw.h>

typedef struct image_unit_range {
    uint64_t low, high;
    size_t unit;
} image_unit_range;

struct image_lines {
    Elf *elf;
    Dwarf *dwarf;
    struct image_package *package; /* NULL: there is none */
    Dwarf *split;                  /* the last .dwo file whose types are among the trees */
    struct image_shared *shared;   /* NULL: nothing is in a file that others have, too */
    INL_VEC(Dwarf_Die) units;
    INL_VEC(Dwarf_Die)
    trees; /* of the same units, what holds types and variables: of one that has a .dwo file, that.
            * Behind them those that are shared with others */
    INL_VEC(image_unit_range) ranges;
    inl_map types; /* by the bytes of their entries: image_ctype */
    struct {       /* global_names.c */
        inl_map hashes;
        bool read, lacks; /* lacks: memory, and so some names */
    } names;
    unsigned depth; /* of types that are being read */
    struct {        /* image_scopes_at's last answer: each parameter of a procedure asks for the same */
        uint64_t addr;
        Dwarf_Die *list; /* NULL: none yet */
        int count;
    } scopes;
};

/* NULL: the image has no debug information, or it cannot be read. Opened when first asked for. */
image_lines *image_units(image *);
image_lines *image_trees(image *); /* NULL, too, where what types are made of is in a file that is not there */
Dwarf_Die *image_unit_at(image_lines *, uint64_t addr); /* NULL: none covers it */
Dwarf_Die *image_tree_at(image_lines *, uint64_t addr);

/* The entries around an address, by where its code lies: the innermost first, the unit last. To be freed; how many, 0:
 * none. */
int image_scopes_at(image_lines *, uint64_t addr, Dwarf_Die **out);

/* names.c: is that the entry's name, or the end of its qualified one? Does it hold others, as namespaces do (types
 * too)? Is the unit's language one in which types have words before their names? */
enum { IMAGE_SPACES = 16 }; /* so many are looked into, one in the other */
bool image_is_named(Dwarf_Die *, const char *name);
const char *image_last_part(const char *name);
bool image_is_constant_named(Dwarf_Die *, Dwarf_Die *of, const char *name); /* of an enumeration */
bool image_is_space(Dwarf_Die *, bool types_too);
bool image_is_c(Dwarf_Die *unit);
bool image_is_fortran(Dwarf_Die *unit);

/* types.c: is it of nullptr's type, which has one value? Compilers may say nowhere where that is. */
bool image_is_only_null(Dwarf_Die *variable);

/* global_names.c: may there be a variable, or an enumerator, of that name outside of procedures? */
bool image_may_tell_of(image_lines *, const char *name);

/* conventions.c: of a procedure's entry. And is this one of its results (Go has them among the parameters)? */
image_convention image_convention_of(Dwarf_Die *proc);
bool image_is_of_go(Dwarf_Die *);
bool image_is_of_rust(Dwarf_Die *);
bool image_is_result(Dwarf_Die *parameter);

/* locations.c: where location expressions say that something is, seen from `pc`. */
typedef struct image_reader {
    image *im;
    uint64_t pc, entry; /* entry: of the procedure around */
    Dwarf_Die *scopes;  /* the innermost first */
    int count, proc;    /* proc: which of them is the procedure; -1: none */
    const char *why;    /* what could not be understood */
} image_reader;
/* variables.c: the scopes around r->pc, up to the procedure and beyond; to be freed. False: there is no procedure. */
bool image_open_scopes(image_reader *r, image_lines *);
/* blocks.c: the operations of an expression, at `pc` if it is a list. False: there are none. */
bool image_operations(image *, Dwarf_Attribute *, uint64_t pc, Dwarf_Op **, size_t *count);
bool image_location(image_reader *, Dwarf_Attribute *, const Dwarf_Op *, size_t count, image_variable *out);

/* types.c: the type that an entry refers to (DW_AT_type); void where it has none. NULL: out of memory. A number that an
 * attribute has; false: it has none. How many such an entry holds, of members and parameters those that count. */
const image_ctype *image_ctype_of(image *, Dwarf_Die *);
bool image_number_of(Dwarf_Die *, unsigned attribute, uint64_t *out);
size_t image_count_tags(Dwarf_Die *, int tag);
/* Where a member lies in what it is of; 0 where nothing is said. False: that is known at run time alone. */
bool image_member_offset(Dwarf_Die *, uint64_t *offset);
/* What stands for a type that has a unit of its own (-fdebug-types-section) becomes the entry there, which alone says
 * what the type is: others may have no name, and each type is one. */
void image_enter_type_unit(Dwarf_Die *);

/* shared.c: what is in a file that several share (dwz), for which `of` then looks there. NULL: nothing is. The DWARF of
 * that file; NULL: it cannot be had. `file`: where the view is from. */
typedef struct image_shared image_shared;
image_shared *image_shared_open(const image_view *, const char *file, Dwarf *of);
Dwarf *image_shared_dwarf(const image_shared *);
void image_shared_free(image_shared *);

/* arrays.c: of an array's entry, and of a string's of Fortran. */
void image_read_array(image *, Dwarf_Die *, image_ctype *);
void image_read_string(Dwarf_Die *, image_ctype *);

/* go_pieces.c: Go's compiler tells the parts of a value one behind the other, without what lies between them. Puts each
 * to its place. False: they are not the type's. */
bool image_spread_pieces(image *, image_variable *);

/* variants.c: the forms that values of a structure's entry have; NULL: one. */
const image_variants *image_read_variants(image *, Dwarf_Die *);
/* A Go procedure's results, as one type: void, the only one's, or a structure of them. */
const image_ctype *image_read_results(image *, Dwarf_Die *proc, bool *many);

#endif
