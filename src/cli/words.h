/* Commands that are run. */
#ifndef INL_CLI_WORDS_H
#define INL_CLI_WORDS_H

#include <stdbool.h>

/* A command's words, NULL behind the last. */
typedef struct cli_words {
    const char **items;
    int count;
} cli_words;
bool cli_words_add(cli_words *, const char *); /* false: out of memory */
/* Runs it and waits; as a shell has it: status, or 128 + signal. */
int cli_status(const cli_words *);
bool cli_command(const cli_words *); /* the same, true for 0; a message when it cannot be started */

#endif
