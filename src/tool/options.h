/* Options: what their files share (options.c, options_parse.c). */
#ifndef INL_TOOL_OPTIONS_H
#define INL_TOOL_OPTIONS_H

#include "tool/state.h"

typedef enum option_kind {
    OPTION_FLAG,
    OPTION_UINT,
    OPTION_STRING,
    OPTION_MAYBE, /* a string, or NAME alone: the first of `words` */
    OPTION_CHOICE,
    OPTION_GLOB,
    OPTION_ACTION
} option_kind;

typedef struct tool_option {
    option_kind kind;
    const char *name;
    char letter;
    void *value; /* NULL: in the state's options, */
    size_t at;   /* ... there */
    const char *help;
    const char *const *words;                 /* OPTION_CHOICE */
    const char *what;                         /* the value's name in --help */
    const char *(*action)(const char *value); /* OPTION_ACTION: a text says what is wrong */
} tool_option;

/* --- options.c: the common ones --- */
enum { OPTIONS_DUMP_ALL = JIT_DUMP_DECODED | JIT_DUMP_SNIPPETS | JIT_DUMP_LOWERED | JIT_DUMP_BYTES };
extern const tool_option options_common[];
extern const unsigned options_common_count;
extern const char *const options_formats[];
/* Of these the program that is written knows nothing. */
bool options_is_for_rewriting(const tool_option *);
/* INLAY_STRESS and the like; *name is the variable that is wrong, the answer says why. NULL: all are well. */
const char *options_from_environment(const char **name);

#endif
