/* Random snippets as text, which is C as well: what a C compiler makes of them says what they must do. */
#ifndef SNIPPET_GEN_H
#define SNIPPET_GEN_H

#include "image/image.h"
#include "snippet/parse.h"

enum { GEN_BYTES = 512, GEN_TEXT = 4096 };

/* A library of `count` functions made from as many texts, compiled and loaded. */
typedef struct gen_library {
    image *im;
    void *handle;
    unsigned count;
    char (*texts)[GEN_TEXT];
    const image_ctype *all; /* the structure that holds the variables */
} gen_library;
void gen_build(gen_library *, unsigned count, uint32_t seed);
void gen_close(gen_library *);
/* The same as sources of a program: all.h, the variables' types; functions.c, which has them in a table; routines.c and
 * .h, what they call; texts, a line each. */
void gen_write(const char *folder, unsigned count, uint32_t seed);
/* What the C compiler says it does to the variables. */
void gen_native(const gen_library *, unsigned which, void *variables);
/* Fills the variables with a start state. */
void gen_fill(const gen_library *, void *variables, uint32_t seed);
/* Are they the same? Two that are no numbers are. */
bool gen_same(const gen_library *, const void *a, const void *b, char *which, size_t size);
/* Names are those of the variables at `variables`. */
snippet_names gen_names(gen_library *, void *variables);

/* Runs a tree in this process. */
uint64_t eval_snippet(const snippet *);
snippet_maker eval_maker(void); /* allocates until the process ends */

#endif
