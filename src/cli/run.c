/* inlay run: becomes the tool.
 *
 *     inlay run -o x --image libc* inscount --threads -- ls -l
 *  -> TOOLS/inscount  -o x --image libc* --threads -- ls -l
 *
 * The tool's launcher does everything else and its errors are its own. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options before the tool's name: those that every tool has. */
enum value { NONE, VALUE, MAYBE }; /* MAYBE: --name, or --name=value */
static const struct common {
    const char *name;
    enum value value;
} common_options[] = {
    {"-o", VALUE},         {"--output", VALUE},    {"--format", VALUE},   {"--image", VALUE},      {"--proc", VALUE},
    {"--not-proc", VALUE}, {"--follow", VALUE},    {"--log", VALUE},      {"--stress", VALUE},     {"--dump", VALUE},
    {"--dump-at", VALUE},  {"--no-follow", NONE},  {"--strict", NONE},    {"--debug-info", MAYBE}, {"--gdb", MAYBE},
    {"--rewrite", VALUE},  {"--with-libs", VALUE}, {"--no-ptrace", NONE}, {"--lib", VALUE},        {"--result", VALUE},
    {"--report", VALUE},   {"--attach", VALUE},    {"--map", VALUE},      {"--no-sums", NONE},     {"--stats", NONE},
    {"--engine", VALUE},   {"--help", NONE},       {"-F", VALUE},         {"-N", VALUE},           {"--cache", NONE},
    {"--no-cache", NONE},  {"--debug", NONE},
};

int cli_option_width(char **argv)
{
    for (size_t i = 0; i < sizeof common_options / sizeof *common_options; i++) {
        const struct common *c = &common_options[i];
        size_t n = strlen(c->name);
        if (strncmp(argv[0], c->name, n) != 0) continue;
        if (argv[0][n] == 0) return c->value == VALUE ? (argv[1] ? 2 : 0) : 1;
        if (c->value != NONE && (argv[0][n] == '=' || n == 2)) return 1;
    }
    return 0;
}

static bool names_process(char **argv)
{
    while (*argv && strcmp(*argv, "--") != 0 && strcmp(*argv, "--attach") != 0 && strncmp(*argv, "--attach=", 9) != 0)
        argv++;
    return *argv && strcmp(*argv, "--") != 0;
}

static bool names_program(char **argv)
{
    while (*argv && strcmp(*argv, "--") != 0) argv++;
    return *argv && argv[1];
}

int cli_run(int argc, char **argv)
{
    static const char usage[] = "inlay run TOOL [OPTIONS] -- PROGRAM [ARGS]";
    int tool = 1;
    while (tool < argc && argv[tool][0] == '-' && strcmp(argv[tool], "--") != 0) {
        int width = cli_option_width(argv + tool);
        if (width == 0) {
            cli_say("option '%s' is not known before the tool's name, or lacks its value", argv[tool]);
            return EXIT_USAGE;
        }
        tool += width;
    }
    if (tool >= argc || strcmp(argv[tool], "--") == 0) {
        if (cli_asks_for_help(argv + 1)) return cli_help_with_tools(usage);
        cli_say("no tool named (usage: %s)", usage);
        return EXIT_USAGE;
    }
    if (!names_program(argv + tool + 1) && !names_process(argv + 1) && !cli_asks_for_help(argv + 1)) {
        cli_say("no program named: it stands after '--' (inlay run %s -- PROGRAM [ARGS])", argv[tool]);
        return EXIT_USAGE;
    }

    cli_place place;
    char path[PATH_MAX];
    if (!cli_place_find(&place) || !cli_tool_find(&place, argv[tool], path)) return EXIT_FAILED;

    /* The options before the name move one place on; the name's place is argv[0]'s new neighbour. */
    memmove(argv + 2, argv + 1, (size_t)(tool - 1) * sizeof *argv);
    argv[1] = path;
    execv(path, argv + 1);
    cli_say("cannot start %s: %s", path, strerror(errno));
    return EXIT_FAILED;
}
