/* inlay snippet: code given as text, at a point.
 *
 *     inlay snippet [OPTIONS] write:entry 'static long n; n++' -- ls -l
 *  -> inlay run [OPTIONS] snippet --at=write:entry --code='static long n; n++' -- ls -l
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: inlay snippet [OPTIONS] POINT CODE -- PROGRAM [ARGS]\n"
    "       inlay snippet -p PID [--children] [--for SECONDS] [-o FILE] [--format=json] POINT CODE\n"
    "       inlay snippet --children [-o FILE] [--format=json] POINT CODE -- PROGRAM [ARGS]\n"
    "\n"
    "POINT is one of\n"
    "  NAME, NAME:entry      a procedure's entry; NAME may be a pattern: 'sqlite3_*'\n"
    "  NAME:exit             before each return and each jump to another procedure; parameters are there what the\n"
    "                        procedure was called with\n"
    "  NAME:return           before each return, where $ret is the result\n"
    "  NAME:KIND             within it: calls, blocks, loops (their heads), loads, stores, branches, syscalls,\n"
    "                        instructions\n"
    "  FILE:LINE             where a line's code begins (with debug information)\n"
    "  0xADDRESS             an instruction of the program, by its address in the file; IMAGE:0xADDRESS of a library\n"
    "CODE is a small C, which sees the program's variables, parameters and types by their names (where there is debug\n"
    "information), $arg0, $ret, $ea, $bytes and registers:\n"
    "\n"
    "  inlay snippet write 'static long calls; if ($arg0 == 1) calls++' -- ls -l\n"
    "\n"
    "Variables that it declares static are reported when the program ends; print(NUMBER), print_real(NUMBER) and\n"
    "show(STRING) write at once. With -p it is put into a process that runs, until Ctrl-C or its end, and taken out\n"
    "again; with --children also into what that forks and executes, which is reported once, with the process's end.\n"
    "--format=json: an object a line, one for each program.\n"
    "OPTIONS are those that every tool has (--engine=live: the program is patched, not translated). For a file: "
    "inlay rewrite snippet --at=POINT\n"
    "--code=CODE.\n";

static char *option(const char *name, const char *value)
{
    char *text = malloc(strlen(name) + strlen(value) + 1);
    if (text) strcat(strcpy(text, name), value);
    return text;
}

int cli_snippet(int argc, char **argv)
{
    int at = 1;
    if (cli_is_live(argv)) return cli_live(argc, argv);
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0) {
        if (strcmp(argv[at], "--help") == 0) {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        int width = cli_option_width(argv + at);
        if (width == 0) {
            cli_say("option '%s' is not known here, or lacks its value", argv[at]);
            return EXIT_USAGE;
        }
        at += width;
    }
    if (at + 2 >= argc || strcmp(argv[at + 2], "--") != 0 || strcmp(argv[at], "--") == 0) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    char **args = calloc((size_t)argc + 3, sizeof *args);
    char *point = option("--at=", argv[at]), *code = option("--code=", argv[at + 1]);
    if (!args || !point || !code) {
        cli_say("out of memory");
        return EXIT_FAILED;
    }
    int n = 0;
    args[n++] = argv[0];
    for (int i = 1; i < at; i++) args[n++] = argv[i];
    args[n++] = "snippet";
    args[n++] = point;
    args[n++] = code;
    for (int i = at + 2; i < argc; i++) args[n++] = argv[i];
    return cli_run(n, args);
}
