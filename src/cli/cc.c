/* inlay cc: the C compiler with what a tool needs. $CC and $CXX are obeyed, words of theirs are the compiler and what
 * it is given first ("ccache gcc"), as make has it.
 *
 *     inlay cc mytool.c -o mytool
 *  -> cc -I<include> -fPIE -fno-stack-protector ... mytool.c -o mytool -L<lib> -static-pie -linlay ...
 *
 * inlay.pc says the same to other build systems. */
#include "cli/cli.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const before[] = {"-fPIE", "-fno-stack-protector", "-fno-optimize-sibling-calls", "-g", "-Wall"};
static const char *const after[] = {"-static-pie", "-linlay", INLAY_ELF_LIBRARIES};
static const char *const trace[] = {"-linlay-tracetool", INLAY_ZSTD};

bool cli_is_cxx(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot && file[0] != '-' &&
           (!strcmp(dot, ".cc") || !strcmp(dot, ".cpp") || !strcmp(dot, ".cxx") || !strcmp(dot, ".C"));
}

enum { COMPILER_WORDS = 16 };

static int pick_compiler(int argc, char **argv, const char **words)
{
    bool cxx = false;
    for (int i = 1; i < argc; i++) cxx |= cli_is_cxx(argv[i]);
    const char *wanted = getenv(cxx ? "CXX" : "CC");
    char *copy = strdup(wanted ? wanted : ""), *state = NULL;
    int n = 0;
    for (char *word = copy ? strtok_r(copy, " \t", &state) : NULL; word && n < COMPILER_WORDS;
         word = strtok_r(NULL, " \t", &state))
        words[n++] = word;
    if (!n) words[n++] = cxx ? "c++" : "cc";
    return n;
}

/* --trace: the tool `trace`, for which the file has routines (inlay/trace.h). It is taken out of the arguments. */
static bool take_trace(int *argc, char **argv)
{
    int n = 1;
    bool found = false;
    for (int i = 1; i < *argc; i++) {
        bool here = strcmp(argv[i], "--trace") == 0;
        found |= here;
        if (!here) argv[n++] = argv[i];
    }
    *argc = n;
    return found;
}

int cli_cc(int argc, char **argv)
{
    static const char usage[] = "inlay cc [--trace] FILE.c -o TOOL [compiler's options]";
    enum {
        N_BEFORE = sizeof before / sizeof *before,
        N_AFTER = sizeof after / sizeof *after,
        N_TRACE = sizeof trace / sizeof *trace
    };
    bool traces = take_trace(&argc, argv);
    if (argc < 2) {
        cli_say("nothing to compile (usage: %s)", usage);
        return EXIT_USAGE;
    }
    if (argc == 2 && cli_asks_for_help(argv + 1)) {
        printf("usage: %s\nCompiles a tool, a static PIE, with the C compiler ($CC), or, FILE.cc and FILE.cpp, with "
               "the C++ "
               "compiler ($CXX).\n"
               "--trace: the tool is `trace`, with the file's own inlay_trace_enter and inlay_trace_exit "
               "(inlay/trace.h).\n",
               usage);
        return EXIT_OK;
    }
    cli_place place;
    if (!cli_place_find(&place)) return EXIT_FAILED;
    static char include[PATH_MAX + 2], lib[PATH_MAX + 2];
    snprintf(include, sizeof include, "-I%s", place.include);
    snprintf(lib, sizeof lib, "-L%s", place.lib);

    const char **args = calloc((size_t)argc + N_BEFORE + N_AFTER + N_TRACE + COMPILER_WORDS + 3, sizeof *args);
    if (!args) {
        cli_say("out of memory");
        return EXIT_FAILED;
    }
    int n = pick_compiler(argc, argv, args);
    args[n++] = include;
    for (int i = 0; i < N_BEFORE; i++) args[n++] = before[i];
    for (int i = 1; i < argc; i++) args[n++] = argv[i];
    args[n++] = lib;
    for (int i = 0; i < N_TRACE && traces; i++) args[n++] = trace[i];
    for (int i = 0; i < N_AFTER; i++) args[n++] = after[i];
    execvp(args[0], (char **)args);
    cli_say("cannot start the compiler %s: %s", args[0], strerror(errno));
    free(args);
    return EXIT_FAILED;
}
