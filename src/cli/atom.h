/* The parts of `inlay atom`: symbols of object files, options and descriptions of tools. */
#ifndef INL_CLI_ATOM_H
#define INL_CLI_ATOM_H

#include "cli/cli.h"
#include "cli/words.h"

#include <stddef.h>

/* What an object file defines for others: functions; and everything but what may be defined twice. */
typedef struct atom_symbols {
    const char **names, **strong;
    size_t count, strong_count;
} atom_symbols;
bool atom_symbols_read(const char *object, atom_symbols *);
bool atom_symbols_have(const atom_symbols *, const char *name);

/* What is said of a tool, on the command line or in its description. */
typedef struct atom_tool_files {
    cli_words inst, anal;    /* files */
    cli_words compile, link; /* options */
    cli_words args;          /* of the instrumentation file */
    const char *wants_libs;  /* who wants all libraries to be instrumented; NULL: nobody */
} atom_tool_files;
/* An option of Tru64's atom. Returns how many words it took; 0: it is none of them; -1: a mistake, told. `from`: where
 * it stands, for messages. */
int atom_take_flag(const char *from, const char *const *words, atom_tool_files *);
/* Lines of a name and its values: INST_FILE, ANAL_FILE, ..., files named from the description's folder. */
bool atom_read_description(const char *path, atom_tool_files *);
/* NAME.desc or NAME.ENV.desc in the folders of ATOMTOOLPATH, or here; NULL, with a message: there is none. */
char *atom_find_description(const char *name, const char *environment);

#endif
