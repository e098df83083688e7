#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: inlay COMMAND [...]\n"
    "\n"
    "  run [OPTIONS] TOOL [TOOL OPTIONS] -- PROGRAM [ARGS]\n"
    "                        run PROGRAM with TOOL woven into it\n"
    "  rewrite TOOL [TOOL OPTIONS] PROGRAM -o OUT\n"
    "                        write OUT, a program that carries TOOL inside\n"
    "  info PROGRAM          what the analysis finds: procedures, blocks, jump tables\n"
    "                        (--proc PATTERN, --blocks, --format=json, -o FILE)\n"
    "  atom PROGRAM INST.c ANAL.c -o OUT\n"
    "                        the same for a tool made of ATOM's pair of files\n"
    "                        (--engine=jit: run it, or make OUT run it, under the JIT)\n"
    "  tools                 list the tools that are installed\n"
    "  cc FILE.c -o TOOL     compile a tool (further arguments go to the C compiler)\n"
    "  help                  this text\n"
    "  --version             the version\n"
    "\n"
    "Options that every tool has (before or after its name):\n"
    "  -o FILE               write the result to FILE instead of standard error\n"
    "  --format=text|json    how the result is written\n"
    "  --image PATTERN       only images whose file name matches (repeatable)\n"
    "  --proc PATTERN        only procedures whose name matches (repeatable)\n"
    "  --no-ptrace           load the program into the tool's own process\n"
    "  --log DOMAINS         tell what Inlay does (see TOOL --help)\n"
    "\n"
    "inlay run ends with the program's own status, or dies of the same signal. Inlay's own errors\n"
    "are status 1, wrong usage is status 2. `inlay run TOOL --help` shows a tool's options.\n";

void cli_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("inlay: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int help(int argc, char **argv)
{
    (void)argc, (void)argv;
    fputs(usage, stdout);
    return EXIT_OK;
}

static int version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("inlay " INLAY_VERSION);
    return EXIT_OK;
}

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", cli_run},     {"rewrite", cli_rewrite}, {"info", cli_info}, {"atom", cli_atom},
    {"tools", cli_tools}, {"cc", cli_cc},           {"help", help},     {"--help", help},
    {"-h", help},         {"--version", version},   {"-V", version},
};

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    cli_say("unknown command '%s' (see: inlay help)", argv[1]);
    return EXIT_USAGE;
}
