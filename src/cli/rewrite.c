/* inlay rewrite: becomes the tool, which writes the program itself.
 *
 *     inlay rewrite --image app prof --top=5 ./app -o app.inlaid
 *  -> TOOLS/prof --inlay-rewrite --image app --top=5 ./app -o app.inlaid
 *
 * The options behind the tool's name are the tool's to understand: which of them take a value only it
 * knows, and so also which argument is the program. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char rewrite_usage[] =
    "inlay rewrite TOOL [TOOL OPTIONS] PROGRAM -o OUT, or --with-libs DIR [--lib PATTERN]";
static const char attach_usage[] = "inlay attach TOOL [TOOL OPTIONS] PID";

/* The index of the tool's name, or -1 with a message. */
static int find_tool(int argc, char **argv, const char *usage)
{
    int tool = 1;
    while (tool < argc && argv[tool][0] == '-' && strcmp(argv[tool], "--") != 0) {
        int width = cli_option_width(argv + tool);
        if (width == 0) {
            cli_say("option '%s' is not known before the tool's name, or lacks its value", argv[tool]);
            return -1;
        }
        tool += width;
    }
    if (tool < argc && strcmp(argv[tool], "--") != 0) return tool;
    cli_say("no tool named (usage: %s)", usage);
    return -1;
}

/* The tool itself does it, told by its first argument. */
static int become(int argc, char **argv, const char *what, const char *usage, const char *lacks)
{
    if (cli_asks_for_help(argv + 1) && argc == 2) return cli_help_with_tools(usage);
    int tool = find_tool(argc, argv, usage);
    if (tool < 0) return EXIT_USAGE;
    if (tool + 1 == argc) {
        cli_say("%s (usage: %s)", lacks, usage);
        return EXIT_USAGE;
    }
    cli_place place;
    char path[PATH_MAX];
    if (!cli_place_find(&place) || !cli_tool_find(&place, argv[tool], path)) return EXIT_FAILED;

    char **args = calloc((size_t)argc + 2, sizeof *args);
    if (!args) {
        cli_say("out of memory");
        return EXIT_FAILED;
    }
    int n = 0;
    args[n++] = path;
    args[n++] = (char *)what;
    for (int i = 1; i < argc; i++)
        if (i != tool) args[n++] = argv[i];
    execv(path, args);
    cli_say("cannot start %s: %s", path, strerror(errno));
    free(args);
    return EXIT_FAILED;
}

int cli_rewrite(int argc, char **argv)
{
    return become(argc, argv, "--inlay-rewrite", rewrite_usage, "no program named");
}

int cli_attach(int argc, char **argv) { return become(argc, argv, "--inlay-attach", attach_usage, "no process named"); }
