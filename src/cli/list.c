/* inlay tools, and the help of commands that take one: the tools folder, each tool with the first line of its own
 * --help. */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ask_tool(int out, const char *path)
{
    dup2(out, STDOUT_FILENO);
    execl(path, path, "--help", (char *)NULL);
    _exit(127);
}

/* The first line of the tool's help, without a leading "NAME: ". Empty when it does not say. */
static void first_line(const char *path, const char *name, char *line, int size)
{
    line[0] = 0;
    int ends[2];
    if (pipe(ends) != 0) return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        ask_tool(ends[1], path);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    if (f) {
        if (child > 0 && !fgets(line, size, f)) line[0] = 0;
        for (int c = 0; c != EOF;) c = getc(f); /* so that the tool can finish writing */
        fclose(f);
    } else {
        close(ends[0]);
    }
    if (child > 0) waitpid(child, NULL, 0);

    line[strcspn(line, "\n")] = 0;
    size_t n = strlen(name);
    if (strncmp(line, name, n) == 0) {
        const char *rest = line + n + strspn(line + n, ": -");
        memmove(line, rest, strlen(rest) + 1);
    }
}

static int is_visible(const struct dirent *d) { return d->d_name[0] != '.'; }

static int list_tools(void)
{
    cli_place place;
    if (!cli_place_find(&place)) return EXIT_FAILED;
    struct dirent **list;
    int n = scandir(place.tools, &list, is_visible, alphasort);
    if (n < 0) {
        cli_say("cannot read the tools folder %s: %s", place.tools, strerror(errno));
        return EXIT_FAILED;
    }
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX], line[200];
        if (snprintf(path, sizeof path, "%s/%s", place.tools, list[i]->d_name) < PATH_MAX && access(path, X_OK) == 0 &&
            cli_is_tool(path)) {
            first_line(path, list[i]->d_name, line, sizeof line);
            printf("%-12s %s\n", list[i]->d_name, line);
        }
        free(list[i]);
    }
    free(list);
    return EXIT_OK;
}

bool cli_asks_for_help(char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--help") == 0) return true;
    return false;
}

int cli_help_with_tools(const char *usage)
{
    printf("usage: %s\n`inlay run TOOL --help` shows a tool's options. The tools that are installed:\n\n", usage);
    return list_tools();
}

int cli_tools(int argc, char **argv)
{
    static const char usage[] =
        "usage: inlay tools\nLists the tools that are installed, each with what it does: names for `inlay run`, `inlay "
        "rewrite` and\n`inlay attach`, which take the path of any other tool as well.\n";
    if (argc == 1) return list_tools();
    if (argc == 2 && cli_asks_for_help(argv + 1)) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    cli_say("tools takes no arguments");
    return EXIT_USAGE;
}
