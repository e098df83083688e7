/* The `inlay` command: an ordinary program that finds a tool and becomes it; whatever it knows
 * about a tool it learns from the tool's file (an ELF note) or by asking the tool (`TOOL --help`). Of the
 * library it links with the analysis of programs, for `inlay info`. */
#ifndef INL_CLI_H
#define INL_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

/* Where things are. Two layouts are known, told apart by what stands beside the command:
 *
 *     build/inlay  build/tools/  build/libinlay.a  <source>/include     built, not installed
 *     P/bin/inlay  P/lib/inlay/tools/  P/lib/libinlay.a  P/include      installed anywhere
 */
typedef struct cli_place {
    char tools[PATH_MAX];
    char lib[PATH_MAX];
    char include[PATH_MAX];
} cli_place;

/* False, with a message printed, when /proc/self/exe cannot be read. */
bool cli_place_find(cli_place *p);

/* Fills `path` with the file of the tool called `name`: itself when it holds a slash, else a file of
 * the tools folder. Checks that it is a tool. Prints one line and returns false when it is not. */
bool cli_tool_find(const cli_place *p, const char *name, char path[PATH_MAX]);

/* Does this file carry the note that libinlay.a puts into every tool? */
bool cli_is_tool(const char *path);

/* How many arguments the option at argv[0] takes up; 0 when it is none of those that every tool has. */
int cli_option_width(char **argv);

int cli_run(int argc, char **argv);
int cli_rewrite(int argc, char **argv);
int cli_snippet(int argc, char **argv);
int cli_attach(int argc, char **argv);
int cli_detach(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_ps(int argc, char **argv);
int cli_live(int argc, char **argv); /* a command that is a mutator of its own: tools/live */
bool cli_is_live(char **argv);       /* has it -p or --children, in front of `--`? */
int cli_info(int argc, char **argv);
int cli_merge(int argc, char **argv);
int cli_trace(int argc, char **argv);
/* Of a recording; -1: it is no such command. */
int cli_trace_read(int argc, char **argv);
int cli_object(int argc, char **argv);
int cli_wrap(int argc, char **argv);
int cli_cache(int argc, char **argv);
int cli_tools(int argc, char **argv);
bool cli_asks_for_help(char **argv);        /* in front of "--" */
int cli_help_with_tools(const char *usage); /* of a command that takes a tool; its status */
int cli_cc(int argc, char **argv);
int cli_atom(int argc, char **argv);
bool cli_is_cxx(const char *file); /* by its name */
/* The first line that a program prints, found as a shell finds it; `quiet`: its messages are left out. false: it says
 * nothing, or cannot be run. */
bool cli_answer(char *const argv[], bool quiet, char *line, size_t size);

/* "inlay: " and one line on standard error. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
