/* The parts of `inlay atom`: commands that it runs, symbols of object files, descriptions of tools. */
#ifndef INL_CLI_ATOM_H
#define INL_CLI_ATOM_H

#include "cli/cli.h"

#include <stddef.h>

/* A command's words, NULL behind the last. */
typedef struct cli_words {
    const char **items;
    int count;
} cli_words;
bool cli_words_add(cli_words *, const char *); /* false: out of memory */
/* Runs it and waits; as a shell has it: status, or 128 + signal. */
int cli_status(const cli_words *);
bool cli_command(const cli_words *); /* the same, true for 0; a message when it cannot be started */

/* What an object file defines for others: functions; and everything but what may be defined twice. */
typedef struct atom_symbols {
    const char **names, **strong;
    size_t count, strong_count;
} atom_symbols;
bool atom_symbols_read(const char *object, atom_symbols *);
bool atom_symbols_have(const atom_symbols *, const char *name);

/* A tool's description: lines INST_FILE=, ANAL_FILE=, ATOM_REQ=. Files are named from its folder. */
bool atom_read_description(const char *path, const char **inst, const char **anal, cli_words *tool_args,
                           cli_words *options);

#endif
