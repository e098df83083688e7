/* The parts of `inlay object` and `inlay wrap`. */
#ifndef INL_CLI_OBJECT_H
#define INL_CLI_OBJECT_H

#include "base/error.h"
#include "cli/cli.h"

#include <stdint.h>
#include <stdio.h>

/* Which procedures; patterns are a shell's, for names as they are and as people write them. */
typedef struct object_choice {
    const char *only[256], *not [256]; /* NULL-terminated; no `only`: all */
    bool met[256];                     /* by `only`: something matched */
    unsigned only_count, not_count;
    uint64_t min_size, min_path;
    char *settings; /* the recorder's, with commas; NULL: none */
    bool counts;    /* calls are counted alone */
} object_choice;

/* Reads an option at argv[0]; how many words it took, 0: it is none of these, -1: wrong, said. */
int object_choice_take(object_choice *, char **argv);
/* All have been read; false: settings are wrong, said. */
bool object_choice_agrees(object_choice *);

/* --- object_settings.c --- */
/* The same of settings alone. */
int object_settings_take(object_choice *, char **argv);

/* How the work on files is told. */
typedef struct object_log {
    FILE *to; /* NULL: not at all */
    bool json, began;
    uint64_t done, refused;
} object_log;
void object_log_begin(object_log *);
void object_log_end(object_log *);

/* Instruments an object or an archive of them; `to` may be `from`. Other files are an error. */
inl_status object_do_file(const char *from, const char *to, object_choice *, object_log *, inl_error *);

#endif
