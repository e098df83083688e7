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
/* For who has files to remove: from now on SIGHUP, SIGINT, SIGPIPE and SIGTERM end the command that runs, and no other
 * one is started. What failed then has the status cli_failed; with it, or a command's that has died of the signal,
 * cli_end_now ends this process by the signal as well. Any other status it gives back. */
void cli_end_later(void);
int cli_failed(void);
int cli_end_now(int status);
bool cli_command(const cli_words *); /* cli_status, true for 0; a message when it cannot be started */

#endif
