/* inlay-events is started, and its answer read. */
#include "cli/cli.h"
#include "cli/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a program prints, with its messages left out; false: it cannot be run. */
static bool ask(const char *path, const char *word, char *out, size_t size)
{
    int ends[2];
    size_t n = 0;
    ssize_t got;
    if (pipe(ends)) return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (!freopen("/dev/null", "w", stderr)) _exit(127);
        execl(path, path, word, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    while (child > 0 && n < size - 1 && (got = read(ends[0], out + n, size - 1 - n)) > 0) n += (size_t)got;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    return n > 0;
}

bool events_of_library(const char *word, events_code *out, char why[512])
{
    cli_place place;
    char path[PATH_MAX + 32], answer[1024];
    *out = (events_code){0};
    if (!cli_place_find(&place)) return false;
    snprintf(path, sizeof path, "%s/../inlay-events", place.tools);
    if (!ask(path, word, answer, sizeof answer)) {
        snprintf(why, 512, "it is none of the kernel's, and inlay-events, which asks libpfm4 and PAPI, cannot be run");
        return false;
    }
    if (!strncmp(answer, "no ", 3)) snprintf(why, 512, "%.500s", answer + 3);
    return sscanf(answer, "code %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %3[ukh]", &out->type, &out->config[0],
                  &out->config[1], &out->config[2], out->modifiers) >= 4;
}
