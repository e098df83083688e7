#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: inlay COMMAND [...]\n"
    "\n"
    "  run [OPTIONS] TOOL [TOOL OPTIONS] -- PROGRAM [ARGS]\n"
    "                        run PROGRAM with TOOL woven into it (--attach PID: a process that runs)\n"
    "  rewrite TOOL [TOOL OPTIONS] PROGRAM -o OUT\n"
    "                        write OUT, a program that carries TOOL inside\n"
    "  snippet [OPTIONS] POINT CODE -- PROGRAM [ARGS]\n"
    "                        run CODE, a small C, at a procedure's entry or exit (NAME, NAME:exit)\n"
    "  trace [OPTIONS] -- PROGRAM [ARGS]\n"
    "                        record entry and exit of procedures with their times (trace --help);\n"
    "                        trace report|tree|graph|diff|export FILE show them\n"
    "  attach TOOL [TOOL OPTIONS] PID\n"
    "                        put TOOL into a process that runs\n"
    "  detach PID            take it out again, with its report (-o FILE)\n"
    "  report PID            its report now (-o FILE); it stays\n"
    "  ps                    which processes have a tool inside, and who put it there\n"
    "  count -p PID PROC...  count the calls of procedures in a process that runs\n"
    "  break -p PID 'POINT if CONDITION'\n"
    "                        registers, parameters and stack of threads that come there while it holds\n"
    "  tee PID FILE          what a process writes to standard output goes to FILE too\n"
    "  info PROGRAM          what the analysis finds: procedures, blocks, jump tables\n"
    "                        (--proc PATTERN, --blocks, --format=json, -o FILE)\n"
    "  atom PROGRAM INST.c ANAL.c -o OUT\n"
    "                        the same for a tool made of ATOM's pair of files\n"
    "                        (--engine=jit: run it, or make OUT run it, under the JIT)\n"
    "  object -fn NAME,... FILE.o... -o DIR\n"
    "                        objects whose procedures' entries and exits are recorded\n"
    "  wrap COMPILER [ARGS]  a step of a build that makes such objects and links with the recorder\n"
    "  merge [-o OUT] FILE...  add up the reports of many processes (--format=json)\n"
    "  cache --list|--clear  translations that are kept for the next run (--cache)\n"
    "  tools                 list the tools that are installed\n"
    "  cc FILE.c -o TOOL     compile a tool (further arguments go to the C compiler)\n"
    "  help                  this text\n"
    "  --version             the version\n"
    "\n"
    "Options that every tool has (before or after its name):\n"
    "  -o FILE               write the result to FILE instead of standard error\n"
    "  --format=text|json    how the result is written\n"
    "  --image PATTERN       only images whose file name matches (repeatable)\n"
    "  -F, --proc PATTERN    only procedures whose name matches; -N, --not-proc: none that does (repeatable);\n"
    "                        also by address in the file: 0x1234, 0x1000-0x1fff, libc.so.6:0x1234\n"
    "  --engine=jit|live     run: translate code as it is met, or instrument it in the process first\n"
    "  --cache               keep translations and analyses for the next run (~/.cache/inlay)\n"
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

/* `part`: the last part of the library that the command is of no use without; a build for an instruction set that is
 * not supported whole may lack it. */
static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *part;
} commands[] = {
    {"run", cli_run, "jit"},        {"rewrite", cli_rewrite, "elf"}, {"attach", cli_attach, "live"},
    {"detach", cli_detach, "live"}, {"report", cli_report, "live"},  {"ps", cli_ps, "live"},
    {"info", cli_info, "cfg"},      {"snippet", cli_snippet, "jit"}, {"cache", cli_cache, "jit"},
    {"atom", cli_atom, "atom"},     {"count", cli_live, "live"},     {"break", cli_live, "live"},
    {"tee", cli_live, "live"},      {"merge", cli_merge, "base"},    {"trace", cli_trace, "tool"},
    {"tools", cli_tools, "tool"},   {"cc", cli_cc, "tool"},          {"object", cli_object, "cfg"},
    {"wrap", cli_wrap, "cfg"},      {"help", help, "base"},          {"--help", help, "base"},
    {"-h", help, "base"},           {"--version", version, "base"},  {"-V", version, "base"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* A word of the list that the build gives. */
static bool is_built(const char *part)
{
    static const char parts[] = " " INLAY_PARTS " ";
    char word[32];
    snprintf(word, sizeof word, " %s ", part);
    return strstr(parts, word) != NULL;
}

/* What a command has shown is its result: to lose it is a failure. */
static int shown(int status)
{
    bool lost = fflush(stdout) != 0;
    if (status != EXIT_OK || (!lost && !ferror(stdout))) return status;
    cli_say("standard output: %s", lost ? strerror(errno) : "cannot be written");
    return EXIT_FAILED;
}

static int run_command(const struct command *c, int argc, char **argv)
{
    if (is_built(c->part)) return shown(c->run(argc, argv));
    char there[64] = "";
    for (size_t i = 0; i < COMMANDS; i++) {
        bool counts = commands[i].name[0] != '-' && commands[i].run != help && is_built(commands[i].part);
        if (counts) snprintf(there + strlen(there), sizeof there - strlen(there), " %s", commands[i].name);
    }
    cli_say("'%s' is not there for " INLAY_ISA " yet: this build lacks the part '%s'; what it can do:%s", c->name,
            c->part, there);
    return EXIT_FAILED;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) return run_command(&commands[i], argc - 1, argv + 1);
    }
    cli_say("unknown command '%s' (see: inlay help)", argv[1]);
    return EXIT_USAGE;
}
