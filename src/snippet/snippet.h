/* The snippet: a small expression tree, the only thing Inlay ever inserts.
 *
 * Nodes are made through the public constructors (include/inlay/snippet.h), live in an arena and are
 * immutable afterwards; a node may be shared by several trees. A node that depends on its point
 * (effective address, branch target, original PC ...) is resolved by the weaver at that point.
 * Values are 64 bits; narrower memory reads are zero-extended, `SIGNED` variants are nodes.
 */
#ifndef INL_SNIPPET_SNIPPET_H
#define INL_SNIPPET_SNIPPET_H

#include "base/arena.h"
#include "isa/isa.h"

typedef enum snippet_kind {
    /* leaves */
    SNIPPET_CONST,       /* value */
    SNIPPET_REG,         /* value of general register `reg` of the program at the point */
    SNIPPET_FLAGS,       /* the program's flags register */
    SNIPPET_PC,          /* original address of the point's instruction */
    SNIPPET_EA,          /* effective address of memory operand `index` of the instruction */
    SNIPPET_ACCESS_SIZE, /* its size in bytes, run-time value where it depends on state (xsave) */
    SNIPPET_MEM_VALUE,   /* its content (before or after the instruction, as the point says), <= 8 bytes */
    SNIPPET_TAKEN,       /* 1 when the branch will be taken, else 0 */
    SNIPPET_TARGET,      /* where the branch goes when taken (direct or indirect) */
    SNIPPET_FALLTHROUGH, /* address behind the instruction */
    SNIPPET_ARG,         /* integer argument `index` (0..) of the procedure, valid at its entry or at a call site */
    SNIPPET_RETVAL,      /* return value, valid at procedure exit or after a call */
    SNIPPET_RETADDR,     /* return address, valid at procedure entry */
    SNIPPET_THREAD,      /* Inlay's small thread number, 0 for the first */
    SNIPPET_CYCLES,      /* the time-stamp counter */
    SNIPPET_CONTEXT,     /* pointer to an inlay_context of the program, valid during the call */
    SNIPPET_REG_REF,     /* as a call argument: pointer to register `reg`; what is stored there is
                            written back to the program's register */
    SNIPPET_VEC_ARG,     /* as a call argument: the low 64 bits of vector register `reg`, for the
                            routine's next floating-point parameter */
    SNIPPET_EXECUTES,    /* 1 when the instruction's predicate holds (cmov, rep count != 0), else 0 */
    SNIPPET_REP_COUNT,   /* iterations a REP instruction may do (rcx), 1 for others */
    SNIPPET_SYSCALL_NR,
    SNIPPET_ELEMENT_EA,     /* address of element `value` of memory operand `index` (isa_mem.mask) */
    SNIPPET_ELEMENT_ACTIVE, /* 1 when the mask, as it is before the instruction, lets it through */
    SNIPPET_THREAD_DATA,    /* where the thread's own data of the tool begins */
    SNIPPET_OWN_CYCLES,     /* what the thread has spent in the engine so far */
    SNIPPET_THREAD_POINTER, /* the program's own, from which its thread-local variables are counted */
    SNIPPET_SWITCH,         /* as a condition: what the byte at address `value` says when it is woven; the code can be
                               switched later (weave_switch), by `index` */
    /* inner nodes: kids a, b, c */
    SNIPPET_LOAD,      /* memory at a, `size` bytes, zero-extended (is_signed: sign) */
    SNIPPET_STORE,     /* memory at a := b, `size` bytes */
    SNIPPET_ADD_TO,    /* memory at a += b, `size` bytes, in one piece for all threads; what was there before */
    SNIPPET_SET_REG,   /* program's register `reg` := a */
    SNIPPET_SET_EA,    /* memory operand `index` of the instruction behind the point is at a */
    SNIPPET_BINARY,    /* a `op` b */
    SNIPPET_UNARY,     /* `op` a */
    SNIPPET_IF,        /* if a then b else c (c may be NULL); as a value: b's or c's */
    SNIPPET_WHILE,     /* while a do b */
    SNIPPET_SEQ,       /* a; b; value is b's */
    SNIPPET_COUNT,     /* thread-private counter `index` += a */
    SNIPPET_COUNTER,   /* this thread's value of counter `index`, in bank `value` */
    SNIPPET_CALL,      /* analysis routine `fn` with args[0..nargs); `value`: a mask of the instructions of its
                          inlined body that are left out (bit k: the k-th); such a call must be inlined. `size`: 4 or 8,
                          it answers a float or a double, whose bits are the value; else 0 */
    SNIPPET_APPEND,    /* append args[0..nargs) as one record of a thread-private buffer */
    SNIPPET_BREAK,     /* leaves the innermost loop; stands where no value is asked for (snippet_check) */
    SNIPPET_LET,       /* b, in which local `index` is a at first; value is b's */
    SNIPPET_LOCAL,     /* value of local `index` */
    SNIPPET_SET_LOCAL, /* local `index` := a */
    SNIPPET_REAL_ARG,  /* as a call argument: the bits of a double, or (in the low half) of a float, for the routine's
                          next  floating-point parameter */
} snippet_kind;

/* clang-format off */
typedef enum snippet_op {
    SNIPPET_ADD, SNIPPET_SUB, SNIPPET_MUL, SNIPPET_DIV, SNIPPET_MOD, SNIPPET_AND, SNIPPET_OR,
    SNIPPET_XOR, SNIPPET_SHL, SNIPPET_SHR, SNIPPET_SAR,
    SNIPPET_EQ, SNIPPET_NE, SNIPPET_LT, SNIPPET_LE, SNIPPET_GT, SNIPPET_GE, /* signed */
    SNIPPET_ULT, SNIPPET_ULE, SNIPPET_UGT, SNIPPET_UGE,
    SNIPPET_MIN, SNIPPET_MAX, SNIPPET_UMIN, SNIPPET_UMAX, /* signed, unsigned */
    SNIPPET_LAND, SNIPPET_LOR, /* short-circuit */
    SNIPPET_NEG, SNIPPET_NOT, SNIPPET_LNOT, /* unary */
    SNIPPET_EXTEND /* the low `size` bytes, extended by zeros or (is_signed) their sign */
} snippet_op;
/* clang-format on */

enum {
    SNIPPET_MAX_ARGS = 12,   /* that a tool may pass, */
    SNIPPET_MAX_PASSED = 15, /* and a call can have */
    SNIPPET_MAX_LOCALS = 12, /* that one place of a tree sees */
};

/* A thread-private buffer's place in the thread frame (see weave/buffer.h) and its record. */
typedef struct snippet_buffer {
    uint32_t slot;               /* index of the buffer: its pointers are frame.buffers[slot] */
    uint32_t record_size;        /* bytes */
    void (*full)(uint32_t slot); /* called (as an analysis routine) when the next record would not fit */
    uint32_t slack;              /* so many records fit behind the end, for who looks less often (weave/append.c) */
} snippet_buffer;

typedef struct snippet {
    uint8_t kind, op, size, is_signed;
    uint8_t reg, nargs;
    uint8_t role;     /* of one with a type: snippet_role (typed.h) */
    uint8_t no_value; /* CALL: nobody may ask for what the routine returns, which is no integer */
    uint8_t at_entry; /* holds what is meant where the procedure begins alone */
    uint32_t index;
    uint64_t value;
    const struct snippet *a, *b, *c;
    const struct snippet *const *args;
    const uint8_t *arg_sizes; /* APPEND: bytes of each field, in order, packed */
    void (*fn)(void);
    const snippet_buffer *buffer;
    const struct image_ctype *type; /* NULL: a 64-bit value of no type (typed.h); of no concern to who weaves */
} snippet;

/* A new zeroed node, NULL when memory is used up (the builders pass NULL kids on as NULL). */
snippet *snippet_new(inl_arena *, snippet_kind);

/* Checks a tree for use at a point: kids present, sizes 1,2,4,8, argument counts; text in `why`
 * (static string) when refused. */
bool snippet_check(const snippet *, const char **why);
/* Without kids. */
static inline bool snippet_is_leaf(const snippet *s)
{
    return s->kind < SNIPPET_LOAD || s->kind == SNIPPET_COUNTER || s->kind == SNIPPET_BREAK || s->kind == SNIPPET_LOCAL;
}
/* A number for a new local that none in the trees has (each may be NULL). */
uint32_t snippet_fresh_local(const snippet *, const snippet *);
/* Does the tree (not counting what analysis routines do) contain a node of this kind? */
bool snippet_has(const snippet *, snippet_kind);
/* Is any of it meant for a procedure's entry alone? */
bool snippet_is_for_entry(const snippet *);
/* A call whose arguments and result are values in general registers: none has to be handed over in another way. */
bool snippet_call_is_plain(const snippet *call);
/* Constant folding where the value is known without a point; returns the node or a simpler one. */
const snippet *snippet_simplify(inl_arena *, const snippet *);
uint64_t snippet_extend(uint64_t value, unsigned size, bool is_signed); /* what SNIPPET_EXTEND computes */
/* What SNIPPET_BINARY and SNIPPET_UNARY compute (SNIPPET_EXTEND excepted). */
uint64_t snippet_compute(unsigned op, uint64_t a, uint64_t b, bool is_signed);
/* Prints a tree as text for dumps. */
void snippet_print(const snippet *, char *out, size_t size);

#endif
