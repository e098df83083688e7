/* Snippets as text, in a small C: what the command line takes.
 *
 *     if (fd == 1) { static long calls; calls++; }
 *
 *   program      statements and declarations
 *   statement    expression ; | { ... } | if (e) s [else s] | while (e) s | for (e; e; e) s | break ; | ;
 *   declaration  [static] type name [= expression], ... ;      static: a new variable of the program, there for all
 *                executions and threads; else one of this execution
 *                extern type name [(parameters)] ;     of the program, with another type than is known, or without one
 *   expression   C's, with assignments, ?:, casts, sizeof, ++ and --; min(a, b), max(a, b); calls of routines
 *   $name        what belongs to the point: $arg0, $ret, $pc ... and registers (the names' owner knows them)
 *
 * Names are looked for among those declared, then by the owner (snippet_names). There is no comma operator, goto,
 * switch, initialiser in braces, and no type definition. The last semicolon may be left out.
 *
 * Parsing yields the same tree that the functions of typed.h make. A text that is wrong yields NULL, and the first
 * error says where: "3: cannot assign a 'double' as 'char *'" counts columns from 1. */
#ifndef INL_SNIPPET_PARSE_H
#define INL_SNIPPET_PARSE_H

#include "snippet/typed.h"

/* Who knows what names mean. Each may be NULL, and answers NULL for what it does not know; where a name is known but
 * cannot be used it says so through typed_refuse. */
typedef struct snippet_names {
    void *arg;
    const snippet *(*find)(void *arg, snippet_maker *, const char *name);     /* a variable, parameter, routine ... */
    const snippet *(*special)(void *arg, snippet_maker *, const char *name);  /* behind a $ */
    const image_ctype *(*type)(void *arg, snippet_maker *, const char *name); /* "struct stat", "size_t" */
    /* A new variable in the program, zeroed; the same one when it is declared again. */
    const snippet *(*variable)(void *arg, snippet_maker *, const char *name, const image_ctype *);
    /* The address of a copy of the bytes in the program. */
    const snippet *(*string)(void *arg, snippet_maker *, const char *bytes, size_t size);
    /* Why the name may not be known; NULL: for no reason. May be NULL. */
    const char *(*unknown)(void *arg, const char *name);
} snippet_names;

/* On failure NULL; maker->why begins with the column (and "line:" where there are several lines). */
const snippet *snippet_parse(snippet_maker *, const snippet_names *, const char *text);
/* A type alone: "struct stat *", "char [16]". */
const image_ctype *snippet_parse_type(snippet_maker *, const snippet_names *, const char *text);
/* A routine's declaration, "long f(int fd, const char *path, ...)"; its name is written to `name`. */
const image_ctype *snippet_parse_prototype(snippet_maker *, const snippet_names *, const char *text, char *name,
                                           size_t size);

#endif
