/* Code given as text, at points given as text: what the tool `snippet` and the command of that name share
 * (docs/howto-snippets.md has both languages). */
#ifndef TEXT_CODE_H
#define TEXT_CODE_H

#include <inlay.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum point_kind {
    AT_ENTRY,
    AT_EXIT,
    AT_RETURN,
    AT_CALLS,
    AT_BLOCKS,
    AT_LOOPS,
    AT_LOADS,
    AT_STORES,
    AT_BRANCHES,
    AT_SYSCALLS,
    AT_INSTRUCTIONS,
    AT_LINE,
    AT_ADDRESS,
} point_kind;

typedef struct text_code {
    const char *point, *code;
    void (*names)(inlay_scope *);                            /* gives routines to each scope */
    void (*inserted)(inlay_insertion *, const inlay_proc *); /* in a procedure, NULL: in none; may be NULL */
    /* What becomes of the code, as the scope sees it at `address`; may be NULL. */
    inlay_expr (*made)(inlay_scope *, inlay_expr, uint64_t address);
    void (*variable)(const inlay_scope_static *, const char *where); /* one that the code declares static, at a place */
    uint64_t *places, *refused;                                      /* are counted there */
    bool *met; /* becomes true with a procedure that is meant; NULL: all are looked at at once */
    /* its own */
    struct {
        char *name; /* of a procedure, a file of source, an image */
        point_kind kind;
        unsigned line;
        uint64_t address; /* link-time */
    } place;
    char said[320]; /* the last error: one text is wrong in the same way at many points */
    const char *where;
    const inlay_proc *proc;
} text_code;

/* The point is read. False: out of memory. */
bool text_code_begin(text_code *);
/* Is it found by image (a line, an address), or by procedure? */
bool text_code_is_by_image(const text_code *);
void text_code_in_image(text_code *, inlay_image *);
void text_code_in_proc(text_code *, inlay_proc *);
bool text_code_means(const text_code *, inlay_proc *); /* by its name */
/* Where no point was found: what is known of the name, to go on with in a message: ": ...", "; near it are ...", "". */
const char *text_code_why_none(const text_code *, inlay_process *, char *out, size_t size);

/* --- text_lines.c --- */

enum { TEXT_LINE = 512 };
/* Gives print(VALUE), print_real(NUMBER) and show(STRING) to a scope. */
void text_line_routines(inlay_scope *);
/* What they call, where the code runs; of whoever links them. */
void text_line(const char *line);

#endif
