/* Snippets with types, and as text.
 *
 *     inlay_scope *names = inlay_scope_new(image, inlay_proc_address(proc));    in a procedure's callback
 *     inlay_insert(inlay_proc_entry(proc), inlay_scope_parse(names, "static long calls; if (fd == 1) calls++;"));
 *
 * A typed snippet is an inlay_expr like any other, with a type; it is made from names, by text or by the functions
 * below, which follow C's rules for their operands. Where a type is wrong they answer NULL, and inlay_scope_error says
 * why; what is made of NULL is NULL. An expression of snippet.h counts as a `long`.
 *
 * The language of texts is told in docs/howto-snippets.md. Names are looked for among the variables and routines that
 * were given to the scope, the parameters and variables that the debug information has at the scope's address, and the
 * variables of the image, then of the others; $arg0 ... $arg11, $ret, $retaddr, $pc, $ea, $bytes, $value, $taken,
 * $target, $next, $thread, $cycles, $sp and registers ($rdi, $eax) belong to the point.
 *
 * Scopes are made and used where code is looked at: in callbacks of images, procedures, blocks and instructions. */
#ifndef INLAY_TYPED_H
#define INLAY_TYPED_H

#include <inlay/snippet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_scope inlay_scope; /* for ever; does not travel into a rewritten program: what a report is to show
                                         * is kept in memory from inlay_alloc, under its name (inlay_scope_variable) */

/* Names as they are seen at an address of the image; 0: of the whole image only. NULL: memory is used up. */
inlay_scope *inlay_scope_new(inlay_image *, uint64_t address);
/* The same as it is seen from another address of the image: what the tool gives to one of them and what texts declare
 * static is known in both. */
inlay_scope *inlay_scope_at(inlay_scope *, uint64_t address);
/* The same as it is seen where its procedure is left: for inlay_proc_exit and inlay_proc_return. Parameters ($arg0 ...
 * too) are what the procedure was called with, whatever it has done with them since: that is kept from its entry, from
 * the insertion on; a call which had begun before does not execute the snippet. NULL: the scope is of no procedure. */
inlay_scope *inlay_scope_at_exit(inlay_scope *);
/* A routine of the tool: "void note(long value, const char *text)", "double f(float, int)". Of several with one name a
 * call is one of that whose parameters suit the arguments best. */
bool inlay_scope_routine(inlay_scope *, const char *prototype, void (*routine)(void));
/* One that gets the text of an object: of a structure, a union, or an array that is no text: {x = 1, kind = RED}. A
 * call of `name` with such an argument alone is one of it. Of what lies in memory 1024 bytes are told at most, "..."
 * behind them; pointers are told as addresses, strings of C++ and Rust that are no part of something else as "text".
 * The text holds during the call. */
bool inlay_scope_text_routine(inlay_scope *, const char *name, void (*routine)(const char *text));
/* A variable in the tool's memory (static, or from inlay_alloc): its name and type, as text: "long", "int [16]". */
bool inlay_scope_variable(inlay_scope *, const char *name, const char *type, void *at);
/* The code of a text. NULL: it is wrong; the error begins with the column. */
inlay_expr inlay_scope_parse(inlay_scope *, const char *text);
/* A variable or parameter of the program, what was given to the scope, or what a text calls so ("$ret"), to be read,
 * assigned, taken apart. */
inlay_expr inlay_scope_find(inlay_scope *, const char *name);
/* `address` as a pointer to that type, which is a text: "struct stat", "char *". */
inlay_expr inlay_scope_cast(inlay_scope *, const char *type, inlay_expr);
size_t inlay_scope_size_of(inlay_scope *, const char *type); /* 0: not known */
const char *inlay_scope_error(const inlay_scope *);          /* of the last call that failed */

/* Variables that texts have declared `static`: where they are, and in what form. `format` is 'i' or 'u' for signed and
 * unsigned integers of `size` bytes, 'f' for floating point, 'p' for pointers, 0 for others. */
typedef struct inlay_scope_static {
    const char *name, *type; /* for ever */
    void *at;                /* inlay_alloc's */
    size_t size;
    char format;
    const char *layout; /* what is where in it, as docs/trace-format.md tells it; NULL: a plain number or pointer */
} inlay_scope_static;
/* The value of such a one, whose bytes are at `at`, as people read it: by its format; by its layout; else its bytes. */
void inlay_scope_static_text(const inlay_scope_static *, const void *at, char *out, size_t room);
void inlay_scope_statics(inlay_scope *, void (*each)(const inlay_scope_static *, void *arg), void *arg);

/* Variables that debug information tells of, one after the other, for who does not know their names. */
typedef struct inlay_scope_local {
    inlay_scope_static what; /* name, type, size and form; `at` is NULL */
    bool is_parameter;
    unsigned line;      /* that it is declared in; 0: not told */
    uint64_t low, high; /* the first and the last of the code that sees it lie between; of one outside of procedures its
                         * bytes; 0: not told, or it has no address (of a thread, a constant) */
} inlay_scope_local;
/* Those that are seen at the scope's address, parameters too, the innermost block's first, without those that another
 * one of the name hides; or all of its procedure, also those that only blocks elsewhere in it see. A scope at an
 * address between `low` and `high` finds each by its name (inlay_scope_find), perhaps. */
void inlay_scope_locals(inlay_scope *, bool all, void (*each)(const inlay_scope_local *, void *arg), void *arg);
/* Those outside of procedures, of the scope's image, static ones of its source files too, with the namespaces that they
 * are in. */
void inlay_scope_globals(inlay_scope *, void (*each)(const inlay_scope_local *, void *arg), void *arg);
/* The parameters of the procedure at the scope's address, in their order, where debug information has them; `at` is
 * NULL. A scope finds each by its name (inlay_scope_find), perhaps. */
void inlay_scope_parameters(inlay_scope *, void (*each)(const inlay_scope_static *, void *arg), void *arg);

/* The same by a prototype as text: "double pow(double x, double y)". False: it is none, and nothing is told. */
bool inlay_scope_prototype(inlay_scope *, const char *prototype, void (*each)(const inlay_scope_static *, void *arg),
                           void *arg);
/* One of them, from 1 on, with or without a name; by a prototype, if that is not NULL. *value: where it is as the
 * procedure begins, for its entry alone; NULL: inlay_scope_error says why not. False: there are not so many. */
bool inlay_scope_parameter(inlay_scope *, const char *prototype, unsigned number, inlay_scope_static *out,
                           inlay_expr *value);
/* What the procedure at the scope's address returns, or by a prototype, if that is not NULL. False: nothing
 * (*out has the type "void"), or it is not known (NULL). */
bool inlay_scope_result(inlay_scope *, const char *prototype, inlay_scope_static *out);

/* C's operators. Of INLAY_DIV, INLAY_LT, INLAY_SHR, INLAY_MIN and their like the types say which it is. */
inlay_expr inlay_typed_binary(inlay_scope *, inlay_op, inlay_expr, inlay_expr);
inlay_expr inlay_typed_unary(inlay_scope *, inlay_op, inlay_expr);
inlay_expr inlay_typed_assign(inlay_scope *, inlay_expr variable, inlay_expr value);
inlay_expr inlay_typed_if(inlay_scope *, inlay_expr condition, inlay_expr then,
                          inlay_expr otherwise); /* as a value: ?: */
inlay_expr inlay_typed_deref(inlay_scope *, inlay_expr pointer);
inlay_expr inlay_typed_address(inlay_scope *, inlay_expr variable);
inlay_expr inlay_typed_member(inlay_scope *, inlay_expr structure, const char *name);
inlay_expr inlay_typed_index(inlay_scope *, inlay_expr array, inlay_expr index);
/* `routine`: what inlay_scope_find answers for a routine's name. */
inlay_expr inlay_typed_call(inlay_scope *, inlay_expr routine, unsigned count, const inlay_expr *arguments);
inlay_expr inlay_typed_real(inlay_scope *, double value);
inlay_expr inlay_typed_string(inlay_scope *, const char *text); /* copied to where the program can see it */

/* Of an object, a structure too that was passed in registers: its bytes; and up to 8 of them, from `offset` on, as they
 * lie in memory (of fewer the low ones). */
size_t inlay_typed_size(inlay_expr);
inlay_expr inlay_typed_word(inlay_scope *, inlay_expr, size_t offset, unsigned size);
/* A value of the expression's type as people read it: {x = 1, p = 0x5581 "abc", kind = RED}; "..." where the room ends.
 * `bytes`: as it lies in memory, inlay_typed_size of them. `read` copies what a pointer leads to, and answers how many
 * bytes; NULL: such are not looked at. */
typedef size_t inlay_reader(void *arg, void *to, uint64_t from, size_t bytes);
void inlay_typed_text(inlay_expr, const void *bytes, inlay_reader *read, void *arg, char *out, size_t room);

#ifdef __cplusplus
}
#endif

#endif
