/* Snippets with types: what C's operators mean for them, in terms of the untyped tree.
 *
 * A typed snippet is an untyped one whose topmost node says its type, so it can be inserted as it is. Each function
 * here takes typed snippets and answers the tree of the operation; a type error is refused at once, NULL with the text
 * in maker->why, and what is made of NULL is NULL: the first error stays.
 *
 * How a value of a type lies in the 64 bits of a node:
 *
 *   integers, bool, enumerations   extended to 64 bits by their own sign
 *   pointers                       as they are
 *   float and double               the bits of a double; those of a float's value where the type is float
 *
 * Floating point is computed by small routines (real.h), which the weaver calls like any analysis routine.
 *
 * An OBJECT is something that has a type and can be read, assigned or have its address taken: a LOAD (of size 0 where
 * a whole structure or array is meant), a REG, or a LOCAL (which holds the value as above, not as in memory). It
 * becomes a value where one is asked for (typed_value): an array the address of its first element, a structure none.
 *
 * An object may also be IN PIECES (role TYPED_PIECES): a structure that was passed in registers, or that a compiler has
 * taken apart. Its node is never executed: args[] are the pieces, one behind the other, each the bits of arg_sizes[]
 * bytes (NULL: nobody knows them); the object is what begins `value` bytes behind the first one's beginning. It has
 * members, elements by constant numbers, and can be assigned to others and passed; it has no address.
 *
 * Where what is assigned lies elsewhere than what is read, kid c of an object is that address (a variable of a thread
 * that has no room for it yet).
 *
 * Structures, and numbers of 16 bytes, are handled as a whole: by objects. A long double is computed with as a double.
 *
 * Arithmetic wraps; division by zero gives 0; shifts count modulo the width; what does not fit an integer, or is no
 * number, becomes the nearest, or 0. A value without a type counts as `long`. */
#ifndef INL_SNIPPET_TYPED_H
#define INL_SNIPPET_TYPED_H

#include "image/ctype.h"
#include "snippet/snippet.h"

typedef enum snippet_role {
    TYPED_VALUE,
    TYPED_OBJECT,
    TYPED_PIECES,  /* an object that has no address */
    TYPED_DONE,    /* an assignment: its value is computed where one asks for it */
    TYPED_ROUTINE, /* a CONST, the address of a routine of the tool; type FUNCTION; b: another one of its name */
} snippet_role;

typedef struct snippet_maker {
    void *(*alloc)(void *arg, size_t bytes); /* zeroed; NULL: memory is used up */
    /* A call of a procedure of the program's; arguments are values of the types that are passed. Its own value is the
     * result's 64 bits, a double's where that is floating point, the address of a whole one. NULL: there can be none.
     * Arguments of such types are objects; their addresses may be computed more than once. */
    const snippet *(*procedure)(struct snippet_maker *, const image_ctype *, const snippet *address, unsigned count,
                                const snippet *const *arguments);
    /* The argument of a routine that takes texts (typed_text_routine): of the object. NULL: there can be none. */
    const snippet *(*text)(struct snippet_maker *, const snippet *object);
    void *arg;
    unsigned rooms; /* procedure's own: how far it has come in the room for what is given as a whole */
    char why[300];  /* the first error */
    bool placed;    /* it says where in a text it is */
} snippet_maker;

/* NULL, and the text is kept when it is the first. */
const snippet *typed_refuse(snippet_maker *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* typed.c: leaves and places */
snippet *typed_node(snippet_maker *, snippet_kind, const image_ctype *, const snippet *a, const snippet *b);
const snippet *typed_constant(snippet_maker *, const image_ctype *, uint64_t value);
const snippet *typed_real(snippet_maker *, double value);
const snippet *typed_routine(snippet_maker *, void (*fn)(void), const image_ctype *, const snippet *others);
/* One that takes the text of any object (its type has no parameters). */
const snippet *typed_text_routine(snippet_maker *, void (*fn)(void), const image_ctype *, const snippet *others);
bool typed_takes_text(const snippet *routine);
/* 64 bits of which the low ones are a value of an integer or pointer type, whatever the others are. */
const snippet *typed_as(snippet_maker *, const image_ctype *, const snippet *raw);
const snippet *typed_object(snippet_maker *, const image_ctype *, const snippet *address);
const snippet *typed_local(snippet_maker *, const image_ctype *, uint32_t index);
const snippet *typed_deref(snippet_maker *, const snippet *pointer);
const snippet *typed_address(snippet_maker *, const snippet *object);
const snippet *typed_member(snippet_maker *, const snippet *object, const char *name);
const snippet *typed_index(snippet_maker *, const snippet *array, const snippet *index);
const image_ctype *typed_pointer_to(snippet_maker *, const image_ctype *);
const image_ctype *typed_array_of(snippet_maker *, const image_ctype *, uint64_t count);
const image_ctype *typed_type(const snippet *); /* `long` of one without */

const snippet *typed_word(snippet_maker *, snippet_op, const snippet *, uint64_t); /* of unsigned longs */
/* Can it be computed twice, as well as once? */
bool typed_is_cheap(const snippet *);
/* number := value; body */
snippet *typed_let(snippet_maker *, uint32_t number, const snippet *value, const snippet *body);
const snippet *typed_assigned(snippet_maker *, const snippet *object); /* as where it is assigned */
bool typed_is_object(const snippet *);                                 /* in memory, in a register, or in pieces */

/* typed_pieces.c */
const snippet *typed_in_pieces(snippet_maker *, const image_ctype *, unsigned count, const snippet *const *pieces,
                               const uint8_t *sizes);
/* So much further on in the same pieces. */
const snippet *typed_of_pieces(snippet_maker *, const image_ctype *, const snippet *pieces, uint64_t offset);
/* Up to 8 bytes of an object, as they lie there, as an unsigned long. */
const snippet *typed_part(snippet_maker *, const snippet *object, uint64_t offset, unsigned size);
/* The same of any number of bytes up to 8, each read once. */
const snippet *typed_bytes(snippet_maker *, const snippet *object, uint64_t offset, unsigned size);
/* Of what its two halves give; an object's address is computed once. */
typedef const snippet *typed_of_halves(snippet_maker *, const snippet *low, const snippet *high);
const snippet *typed_halves(snippet_maker *, const snippet *object, typed_of_halves *);
/* A number of 16 bytes as one of 8, where that can be: a long double as a double. */
const snippet *typed_narrow(snippet_maker *, const snippet *object);
/* An object that has the value, of a type of 16 bytes. */
const snippet *typed_widen(snippet_maker *, const image_ctype *, const snippet *value);

/* What there is to execute of an object as a whole that nobody looks at: its address. Others as they are. */
const snippet *typed_executed(const snippet *);

/* typed_convert.c */
const snippet *typed_value(snippet_maker *, const snippet *); /* what an object holds; other values as they are */
const snippet *typed_cast(snippet_maker *, const image_ctype *, const snippet *);
/* As where something is assigned or passed: pointers to other things, and integers to pointers, are refused. `what`
 * stands in the message: "assign", "pass". */
const snippet *typed_convert(snippet_maker *, const image_ctype *, const snippet *, const char *what);
const snippet *typed_truth(snippet_maker *, const snippet *);              /* not 0: for conditions */
const image_ctype *typed_common(const image_ctype *, const image_ctype *); /* of two arithmetic operands */
/* An object's content as it is in memory, and back. */
const snippet *typed_from_memory(snippet_maker *, const image_ctype *, const snippet *bits);
const snippet *typed_to_memory(snippet_maker *, const image_ctype *, const snippet *value);

/* typed_operators.c. Of a comparison, division ... the signed operation is given; the types say which it is. */
const snippet *typed_binary(snippet_maker *, snippet_op, const snippet *, const snippet *);
const snippet *typed_unary(snippet_maker *, snippet_op, const snippet *);
const snippet *typed_choice(snippet_maker *, const snippet *condition, const snippet *, const snippet *);
const snippet *typed_call(snippet_maker *, const snippet *routine, unsigned count, const snippet *const *arguments);

/* typed_overload.c */
const snippet *typed_suiting(const snippet *routine, unsigned count, const snippet *const *arguments);

/* typed_assign.c */
const snippet *typed_assign(snippet_maker *, const snippet *object, const snippet *value);
const snippet *typed_update(snippet_maker *, snippet_op, const snippet *object, const snippet *value); /* x op= y */
/* The value from before; by +1 or -1. */
const snippet *typed_step_behind(snippet_maker *, const snippet *object, int by);
/* first; second, whose value is the whole's. */
const snippet *typed_sequence(snippet_maker *, const snippet *first, const snippet *second);

#endif
