#include "live/change.h"
#include "live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "inlay-apart"

typedef struct outcome {
    inl_status s;
    inl_error e;
} outcome;

static bool send(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size;) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool receive(int fd, void *bytes, size_t size)
{
    for (char *at = bytes; size;) {
        ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

bool live_ends_work(pid_t tracer)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", tracer);
    FILE *f = tracer ? fopen(path, "re") : NULL;
    bool good = f && fgets(name, sizeof name, f);
    if (f) fclose(f);
    return good && !strcmp(name, NAME "\n");
}

inl_status live_apart(pid_t whom, inl_status (*work)(void *arg, void *answer, inl_error *), void *arg, void *answer,
                      size_t answer_size, inl_error *e)
{
    int ends[2], status;
    outcome o = {.s = INL_ERR_SYSTEM};
    if (pipe2(ends, O_CLOEXEC) != 0) return inl_fail(e, INL_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return inl_fail(e, INL_ERR_SYSTEM, "no child: %s", strerror(errno));
    }
    if (child == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        setsid();
        prctl(PR_SET_NAME, NAME);
        o.s = work(arg, answer, &o.e);
        _exit(!send(ends[1], &o, sizeof o) || !send(ends[1], answer, answer_size));
    }
    close(ends[1]);
    if (!receive(ends[0], &o, sizeof o) || !receive(ends[0], answer, answer_size))
        o.s = inl_fail(&o.e, INL_ERR_SYSTEM, "who did it has ended in the middle: process %d may be damaged", whom);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (e && o.s != INL_OK) *e = o.e;
    return o.s;
}
