/* Types of a program's values, as its debug information has them, and those that are made without any.
 *
 * A type is immutable for who looks at it and lives as long as its image (or its maker's memory). Types that come from
 * debug information are read a step at a time: members are filled in when they are first asked for, so that one
 * variable does not bring in all that can be reached from it. Qualifiers and names given by typedef are left out,
 * except that a typedef's name is what a type without one of its own is called by.
 */
#ifndef INL_IMAGE_CTYPE_H
#define INL_IMAGE_CTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum image_ctype_kind {
    IMAGE_CTYPE_VOID,
    IMAGE_CTYPE_BOOL,
    IMAGE_CTYPE_INT, /* characters too */
    IMAGE_CTYPE_ENUM,
    IMAGE_CTYPE_FLOAT,
    IMAGE_CTYPE_POINTER,
    IMAGE_CTYPE_ARRAY,
    IMAGE_CTYPE_STRUCT, /* classes too, and complex numbers of two parts */
    IMAGE_CTYPE_UNION,
    IMAGE_CTYPE_FUNCTION,
    IMAGE_CTYPE_BITS,        /* of a member that is a bit field: `of` is what it is read as */
    IMAGE_CTYPE_WIDE,        /* an integer of 16 bytes */
    IMAGE_CTYPE_LONG_DOUBLE, /* of 16 bytes, in the processor's own form */
    IMAGE_CTYPE_OTHER,       /* known by its name and size alone */
} image_ctype_kind;

/* How a procedure is passed arguments and gives its result. */
typedef enum image_convention {
    IMAGE_CALLS_C,       /* as the platform's standard says */
    IMAGE_CALLS_RUST,    /* Rust's own: by the type's layout, which is not what C makes of it */
    IMAGE_CALLS_GO,      /* Go's, in its own registers */
    IMAGE_CALLS_UNKNOWN, /* the compiler has changed it, or nobody here knows it */
} image_convention;

typedef struct image_ctype image_ctype;

typedef struct image_member { /* of a structure; of a function a parameter, of an enumeration a constant */
    const char *name;         /* "" where it has none */
    const image_ctype *type;
    uint64_t offset; /* the constant's value */
} image_member;

/* One of the forms that a value of the type has (an enumeration of Rust's): the one whose number stands where the
 * type's `number` says. */
typedef struct image_variant {
    const char *name;
    const image_ctype *type; /* counted from the whole's beginning */
    uint64_t value;
    bool otherwise; /* the one that has no number of its own: it is there when no other one is */
} image_variant;

typedef struct image_variants {
    const image_ctype *number; /* NULL: there is one form alone */
    uint64_t offset;           /* of the number */
    size_t count;
    const image_variant *list;
} image_variants;

struct image_ctype {
    uint8_t kind;
    uint8_t convention;            /* FUNCTION: image_convention */
    bool is_signed;                /* INT, ENUM, WIDE */
    bool variadic;                 /* FUNCTION: more arguments may follow */
    bool many;                     /* FUNCTION: its result is a structure of several (Go) */
    bool by_reference;             /* STRUCT, UNION: is never passed by value, but by the address of a copy (C++) */
    bool is_reference;             /* POINTER: of C++ */
    bool is_vector;                /* ARRAY: one of the processor's, which is a value */
    uint8_t bit_offset, bit_count; /* BITS: within `size` bytes, from the least significant one on */
    uint64_t size;                 /* in bytes; 0: not known */
    const char *name;              /* as in C: "unsigned int", "struct stat"; NULL: made of `of` */
    const image_ctype *of;         /* POINTER, ARRAY: to what, of what; FUNCTION: its result; BITS */
    uint64_t count;                /* ARRAY: elements, 0 not known */
    const image_member *members;   /* image_ctype_members */
    size_t member_count;
    const image_variants *variants; /* STRUCT: image_ctype_variants */
    void (*fill)(image_ctype *);    /* reads the members; NULL: they are there */
    uint64_t alignment;             /* STRUCT, UNION: image_ctype_alignment; 0: not asked for yet */
    void *from, *at;                /* fill's own */
};

/* Types that need no image. */
extern const image_ctype image_ctype_void, image_ctype_bool, image_ctype_char, image_ctype_long_double;
const image_ctype *image_ctype_int(unsigned size, bool is_signed); /* 1, 2, 4 or 8 bytes */
const image_ctype *image_ctype_float(unsigned size);               /* 4 or 8 */
/* By a name of C's: "unsigned long int" is written as "unsigned long" here; also size_t, uint8_t and their like. NULL:
 * there is none. */
const image_ctype *image_ctype_basic(const char *name);

size_t image_ctype_members(const image_ctype *, const image_member **out);
const image_variants *image_ctype_variants(const image_ctype *); /* NULL: all of its values have the same form */
/* A member by its name, also of structures without a name inside; *offset is counted from the outer one. */
const image_member *image_ctype_member(const image_ctype *, const char *name, uint64_t *offset);

bool image_ctype_is_integer(const image_ctype *);    /* BOOL, INT, ENUM */
bool image_ctype_is_arithmetic(const image_ctype *); /* and FLOAT */
bool image_ctype_is_scalar(const image_ctype *);     /* and POINTER */
/* Structures, unions and numbers of 16 bytes: assigned, passed and returned as a whole. */
bool image_ctype_is_whole(const image_ctype *);
/* What its address is a multiple of, as its members say. */
uint64_t image_ctype_alignment(const image_ctype *);
uint64_t image_ctype_behind(const image_ctype *, uint64_t end); /* where it lies behind what ends there */
/* Do two descriptions say the same type? Structures are the same by name and size. */
bool image_ctype_same(const image_ctype *, const image_ctype *);
/* As C writes it: "struct stat *", "char [16]". Returns out. */
const char *image_ctype_text(const image_ctype *, char *out, size_t size);

#endif
