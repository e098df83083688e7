/* Commands that are run: words, one by one, and the status. */
#include "cli/words.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool cli_words_add(cli_words *w, const char *word)
{
    const char **more = realloc(w->items, ((size_t)w->count + 2) * sizeof *more);
    if (!more || !word) {
        cli_say("out of memory");
        return false;
    }
    more[w->count++] = word;
    more[w->count] = NULL;
    w->items = more;
    return true;
}

int cli_status(const cli_words *w)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execvp(w->items[0], (char **)w->items);
        cli_say("cannot start %s: %s", w->items[0], strerror(errno));
        _exit(127);
    }
    if (child < 0) {
        cli_say("cannot start %s: %s", w->items[0], strerror(errno));
        return EXIT_FAILED;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool cli_command(const cli_words *w) { return cli_status(w) == 0; }
