/* Commands that are run: words, one by one, and the status. */
#include "cli/words.h"
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALLED = 128 }; /* what shells make of a signal */

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

/* --- being ended meanwhile --- */

static volatile sig_atomic_t asked; /* the signal by which this command is to end; 0: none */
static volatile pid_t child_now;

/* What comes from the terminal the child has got as well. */
static void note_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    asked = signo;
    if (info->si_code <= 0 && child_now > 0) kill(child_now, signo);
}

void cli_end_later(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    struct sigaction before, note = {.sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &note, NULL);
}

int cli_failed(void) { return asked ? SIGNALLED + asked : EXIT_FAILED; }

int cli_end_now(int status)
{
    if (!asked || status != SIGNALLED + asked) return status;
    signal(asked, SIG_DFL);
    raise(asked);
    return status;
}

/* --- commands --- */

int cli_status(const cli_words *w)
{
    int status = 0;
    if (asked) return cli_failed();
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
    child_now = child;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    child_now = 0;
    return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

bool cli_command(const cli_words *w) { return cli_status(w) == 0; }
