/* Snippets: what is inserted at points. Small expression trees of 64-bit values.
 *
 * Constructors never fail loudly: out of memory or a wrong argument gives NULL, NULL kids give NULL,
 * and inserting NULL is refused with a message that names the point.
 */
#ifndef INLAY_SNIPPET_H
#define INLAY_SNIPPET_H

#include <inlay/context.h>
#include <inlay/counter.h>
#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef const inlay_snippet *inlay_expr;

/* Values. */
inlay_expr inlay_const(uint64_t value);
inlay_expr inlay_pointer(const void *p); /* a tool's address as a value */
/* The program's register at the point, general ones and their parts, flags, the pc, the thread pointer (reg.h); NULL,
 * with a message, for one that has no value in an expression. */
inlay_expr inlay_register(inlay_reg reg);
/* Also where the program has no use for them, as at a procedure's entry. Where code is moved (rewritten, or in a
 * process that runs) a procedure that is shown before anything looks at flags may leave other ones at its calls and
 * returns, and the addition that finds the target in a jump table may have its own. */
inlay_expr inlay_flags(void);
inlay_expr inlay_pc(void);                                      /* the instruction's original address */
inlay_expr inlay_effective_address(unsigned k);                 /* of memory operand k (insn.h) */
inlay_expr inlay_element_address(unsigned k, unsigned element); /* of a masked operand's element */
inlay_expr inlay_element_active(unsigned k, unsigned element);  /* 1 when the mask lets it through; the
                                                     mask before the instruction, after it too */
inlay_expr inlay_access_size(unsigned k);                       /* bytes, known at run time even for xsave */
inlay_expr inlay_memory_value(unsigned k);                      /* what is there now, up to 8 bytes */
inlay_expr inlay_rep_count(void);     /* iterations that a REP instruction may make, before and after it; 1 otherwise */
inlay_expr inlay_executes(void);      /* 1 when the instruction's predicate holds */
inlay_expr inlay_taken(void);         /* 1 when the branch will be taken */
inlay_expr inlay_branch_target(void); /* original address it goes to when taken */
inlay_expr inlay_fall_through(void);  /* original address behind the instruction */
inlay_expr inlay_argument(unsigned n); /* integer argument 0.. at a procedure's entry or a call, on the stack too */
inlay_expr inlay_return_value(void);   /* at a procedure's return (point.h); elsewhere what its register has */
inlay_expr inlay_return_address(void); /* at a procedure's entry or return, as the tool is shown it */
inlay_expr inlay_thread_id(void);      /* 0 for the first thread, then 1, 2, ... */
inlay_expr inlay_thread_pointer(void); /* the program's, from which its thread-local variables are counted */
inlay_expr inlay_cycles(void);         /* time-stamp counter */
inlay_expr inlay_own_cycles(void);     /* of these what the thread has spent in Inlay (inlay_thread_own_cycles) */
inlay_expr inlay_stack_pointer(void);
/* As arguments of calls: pointers valid during the call. */
inlay_expr inlay_context_arg(void);           /* const inlay_context *, the whole register state */
inlay_expr inlay_register_ref(inlay_reg reg); /* uint64_t *: what is stored goes to the whole general register */
inlay_expr inlay_vector_register(unsigned n); /* low 64 bits of vector register n (0 to 15), for the
                                                 routine's next parameter of type double; at most 8 */

/* Memory and registers. size is 1, 2, 4 or 8 bytes. */
inlay_expr inlay_load(inlay_expr address, unsigned size);
inlay_expr inlay_load_signed(inlay_expr address, unsigned size);
inlay_expr inlay_store(inlay_expr address, inlay_expr value, unsigned size);
/* Adds to memory in one piece, whichever threads do the same; the value is what was there before. */
inlay_expr inlay_atomic_add(inlay_expr address, inlay_expr amount, unsigned size);
/* A general register or a part of one. As instructions do: 32 bits clear the rest, fewer leave it. */
inlay_expr inlay_set_register(inlay_reg reg, inlay_expr value);
/* The instruction accesses memory operand k at this address, and not where the program says; in front of it alone
 * (inlay_before). From there on inlay_effective_address and inlay_memory_value are of it, behind the instruction too;
 * registers are as ever: those of a string instruction go on from where they were. What is not set on the way that is
 * taken stays. Refused for operands on the stack (push, call), of lea and prefetches, gathers, tiles, bit strings with
 * a register for the bit, and branches, which read where they go; and on AArch64. inlay_memory (insn.h) says which are
 * `settable`. Where code has moved one more is not set, and that is said: the entry of a jump table that is read. */
inlay_expr inlay_set_effective_address(unsigned k, inlay_expr address);

/* Operators. Comparisons, minimum and maximum are signed unless INLAY_U...; results are 0 or 1. */
/* clang-format off */
typedef enum inlay_op {
    INLAY_ADD, INLAY_SUB, INLAY_MUL, INLAY_DIV, INLAY_MOD, INLAY_AND, INLAY_OR, INLAY_XOR,
    INLAY_SHL, INLAY_SHR, INLAY_SAR, INLAY_EQ, INLAY_NE, INLAY_LT, INLAY_LE, INLAY_GT, INLAY_GE,
    INLAY_ULT, INLAY_ULE, INLAY_UGT, INLAY_UGE, INLAY_MIN, INLAY_MAX, INLAY_UMIN, INLAY_UMAX, INLAY_LAND, INLAY_LOR,
    INLAY_NEG, INLAY_NOT, INLAY_LNOT
} inlay_op;
/* clang-format on */
inlay_expr inlay_binary(inlay_op op, inlay_expr a, inlay_expr b);
inlay_expr inlay_unary(inlay_op op, inlay_expr a);
/* The low 1, 2, 4 or 8 bytes of a value, extended to 8 by zeros or by their sign. */
inlay_expr inlay_extend(inlay_expr a, unsigned size, bool is_signed);

/* Control. `otherwise` may be NULL. */
inlay_expr inlay_if(inlay_expr condition, inlay_expr then, inlay_expr otherwise);
inlay_expr inlay_while(inlay_expr condition, inlay_expr body);
inlay_expr inlay_break(void); /* leaves the innermost loop; a statement of it, not part of a value */
inlay_expr inlay_sequence(inlay_expr first, inlay_expr second);

/* `code`, where that thread executes it: a number as inlay_thread_id() has it (a negative one: NULL). No value. */
inlay_expr inlay_on_thread(int number, inlay_expr code);

/* A value that is computed once and looked at (and set) several times in `body`, whose value is the whole's: a variable
 * of this one execution. At most 12 may be in sight at a place; an inner one hides an outer one of its number. */
inlay_expr inlay_let(unsigned number, inlay_expr value, inlay_expr body);
inlay_expr inlay_let_value(unsigned number);
inlay_expr inlay_let_set(unsigned number, inlay_expr value);

/* Counters (counter.h): thread-private, exact, no locks. A constant in front of an instruction that faults is taken
 * back: it has not been executed. */
inlay_expr inlay_count(inlay_counter *c, uint64_t amount);
inlay_expr inlay_count_by(inlay_counter *c, inlay_expr amount);
/* This thread's value. The rewrite engine otherwise counts where it costs least and derives the sums: a tool that looks
 * at values makes one such expression in main, or for the first code that it is shown. One that only does so later is
 * refused, and no program is written. */
inlay_expr inlay_counter_value(inlay_counter *c);

/* Calls of analysis routines, with up to 12 integer or pointer arguments:
 *     inlay_call(record, inlay_pc(), inlay_effective_address(0))
 * Small leaf routines are inlined. A routine may use the tool's C library. The value is what it returns, an integer of
 * any size or a pointer; that of a routine which returns nothing cannot be used. As many arguments as the routine has
 * parameters, or the compiler says so. inlay_call_array does not look: there a result is 64 bits. */
inlay_expr inlay_call_array(void (*routine)(void), unsigned count, const inlay_expr *arguments);
/* What inlay_call is made of. `returns`: bytes, 0 for nothing, and whether they have a sign. */
enum { INLAY_RETURNS_SIGNED = 0x100, INLAY_RETURNS_REAL = 0x200 };
inlay_expr inlay_call_returning(void (*routine)(void), unsigned returns, unsigned count, const inlay_expr *arguments);
#ifndef __cplusplus
#define inlay_call(routine, ...)                                                                                       \
    inlay_call_returning((void (*)(void))(routine), INLAY_RETURNS((routine)INLAY_ZEROS(__VA_ARGS__)),                  \
                         sizeof((inlay_expr[]){NULL __VA_OPT__(, ) __VA_ARGS__}) / sizeof(inlay_expr) - 1,             \
                         (inlay_expr[]){NULL __VA_OPT__(, ) __VA_ARGS__} + 1)
/* (0, 0), a zero for each argument: a call with them, which is never made, has a type. */
#define INLAY_ZEROS(...)                                                                                               \
    INLAY_EIGHTEENTH(0 __VA_OPT__(, ) __VA_ARGS__, (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),                   \
                     (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),        \
                     (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),                    \
                     (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0, 0),   \
                     (0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0),             \
                     (0, 0, 0, 0), (0, 0, 0), (0, 0), (0), ())
#define INLAY_EIGHTEENTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, ...) r
#define INLAY_RETURNS(call)                                                                                            \
    (__builtin_types_compatible_p(__typeof__(call), void) ? 0 : sizeof(INLAY_VALUE(call)) | INLAY_SIGN(call))
#define INLAY_VALUE(call)                                                                                              \
    __builtin_choose_expr(__builtin_types_compatible_p(__typeof__(call), void), (unsigned char)0, call)
#define INLAY_SIGN(call)                                                                                               \
    _Generic(INLAY_VALUE(call), signed char                                                                            \
             : INLAY_RETURNS_SIGNED, char                                                                              \
             : (char)-1 < 0 ? INLAY_RETURNS_SIGNED : 0, short                                                          \
             : INLAY_RETURNS_SIGNED, int                                                                               \
             : INLAY_RETURNS_SIGNED, float                                                                             \
             : INLAY_RETURNS_REAL, double                                                                              \
             : INLAY_RETURNS_REAL, default : 0)
#endif

#ifdef __cplusplus
}
#include <type_traits>
template <typename type> struct inlay_size_of : std::integral_constant<unsigned, sizeof(type)> {
};
template <> struct inlay_size_of<void> : std::integral_constant<unsigned, 0> {
};
template <typename result, typename... parameters, typename... values>
static inline inlay_expr inlay_call(result (*f)(parameters...), values... arguments)
{
    static_assert(sizeof...(parameters) == sizeof...(values), "the routine has another number of parameters");
    const inlay_expr list[] = {nullptr, arguments...};
    const unsigned is_signed = std::is_integral<result>::value && std::is_signed<result>::value;
    const unsigned returns = inlay_size_of<result>::value | (is_signed ? INLAY_RETURNS_SIGNED : 0) |
                             (std::is_floating_point<result>::value ? INLAY_RETURNS_REAL : 0);
    return inlay_call_returning((void (*)(void))f, returns, sizeof...(arguments), list + 1);
}
/* A lambda that captures nothing is a routine as well. */
template <typename lambda, typename... values>
static inline typename std::enable_if<std::is_class<lambda>::value, inlay_expr>::type inlay_call(lambda f,
                                                                                                 values... arguments)
{
    return inlay_call(+f, arguments...);
}
#endif

#endif
