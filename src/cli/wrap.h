/* The parts of `inlay wrap`. */
#ifndef INL_CLI_WRAP_H
#define INL_CLI_WRAP_H

#include "cli/object.h"
#include "cli/words.h"

typedef enum wrap_kind { PASSES, COMPILES, LINKS } wrap_kind;

typedef struct wrap_command {
    char **argv;   /* from the compiler's name on, NULL-terminated */
    int first;     /* of its arguments; in front of it stands the compiler */
    cli_words own; /* inlay wrap's own options, as they were given */
    object_choice *choice;
    object_log *log;

    /* What wrap_read finds. */
    cli_words words; /* its arguments, those in files (@FILE) among them */
    wrap_kind kind;
    const char *output;
    int *sources, source_count; /* in `words` */
} wrap_command;

/* --- wrap_read.c --- */
bool wrap_read(wrap_command *);                      /* false: said */
bool wrap_add_words(cli_words *, char *const *argv); /* with what files of them hold; false: said */

/* --- wrap.c --- */
int wrap_instrument(const wrap_command *, const char *path); /* what is no object stays; EXIT_ */

/* --- wrap_link.c --- */
int wrap_link(const wrap_command *);
/* In a linker's place: instruments what the compiler has made in `folder`, then becomes the linker. */
int wrap_as_linker(const wrap_command *, const char *folder, bool kept);

/* --- wrap_version.c --- */
bool wrap_has_version_script(const cli_words *); /* a compiler's words */
/* A linker's words: what a version script of theirs hides, the recorder is not among it; false: out of memory. */
bool wrap_show_recorder(cli_words *, const char *folder);

#endif
