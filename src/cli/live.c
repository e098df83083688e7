/* inlay count and its like: commands that change a process while it runs. Each is a mutator, a program beside the tools
 * (tools/live), which this one becomes. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cli_is_live(char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (!strcmp(*argv, "-p") || !strncmp(*argv, "-p=", 3) || !strcmp(*argv, "--children")) return true;
    return false;
}

int cli_live(int argc, char **argv)
{
    cli_place place;
    char name[64], path[PATH_MAX];
    (void)argc;
    snprintf(name, sizeof name, "live/%s", argv[0]);
    if (!cli_place_find(&place)) return EXIT_FAILED;
    if (snprintf(path, sizeof path, "%s/%s", place.tools, name) >= PATH_MAX || access(path, X_OK) != 0) {
        cli_say("%s is not there: %s is part of an installation of Inlay", argv[0], path);
        return EXIT_FAILED;
    }
    execv(path, argv);
    cli_say("cannot start %s: %s", path, strerror(errno));
    return EXIT_FAILED;
}
