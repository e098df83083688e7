/* A program that the mutator starts: a child that ptrace holds from in front of its exec up to the first instruction of
 * the program or of a library (live_start). Until it is let run for the first time it ends with the mutator: never is a
 * program half-run. From then on nothing holds it.
 *
 *     mutator                          child
 *       seizes it
 *       ---------- go ---------------->  descriptors, folder of the mutator's
 *       waits for the exec stop          exec
 *       <--------- errno --------------  ... that failed */
#include "tool/mutator.h"
#include "tool/tool.h"

#include <inlay/process.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct birth {
    char path[4096];
    const char *const *argv, *const *envp;
    const int *fds;
    int go[2], error[2];
} birth;

/* A standard descriptor that is closed here (take_standard_numbers) is closed there. */
static bool is_closed(int fd) { return (fcntl(fd, F_GETFL) & O_PATH) != 0; }

/* None is overwritten before it has been copied. */
static bool take_descriptors(const int *fds)
{
    int copy[3] = {0, 1, 2};
    for (int i = 0; fds && i < 3; i++) copy[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; fds && i < 3; i++)
        if (copy[i] < 0 || dup2(copy[i], i) < 0) return false;
    for (int i = 0; i < 3; i++)
        if (is_closed(i)) close(i);
    return true;
}

/* Whoever traces it later is a child of the mutator's, of which Yama has to be told. */
static void become(const birth *b)
{
    char byte;
    prctl(PR_SET_PTRACER, getppid());
    close(b->go[1]);
    if (read(b->go[0], &byte, 1) == 1 && take_descriptors(b->fds))
        execve(b->path, (char *const *)b->argv, (char *const *)b->envp);
    int error = errno;
    if (write(b->error[1], &error, sizeof error) < 0) {}
    _exit(127);
}

static inl_status seize(pid_t child, inl_error *e)
{
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
    if (ptrace(PTRACE_SEIZE, child, 0, options) == 0) return INL_OK;
    return inl_fail(e, INL_ERR_ACCESS, "ptrace is not possible here: %s", strerror(errno));
}

static inl_status see_exec(pid_t child, const birth *b, inl_error *e)
{
    int error = 0;
    if (write(b->go[1], "", 1) != 1) return inl_fail(e, INL_ERR_SYSTEM, "cannot start %s", b->path);
    if (remote_wait_for_exec(child)) return INL_OK;
    if (read(b->error[0], &error, sizeof error) != sizeof error) error = ECHILD;
    return inl_fail(e, INL_ERR_SYSTEM, "cannot start %s: %s", b->path, strerror(error));
}

static inl_status give_birth(birth *b, pid_t *child, inl_error *e)
{
    fflush(NULL);
    *child = fork();
    if (*child == 0) become(b);
    close(b->go[0]);
    close(b->error[1]);
    b->go[0] = b->error[1] = -1;
    if (*child < 0) return inl_fail(e, INL_ERR_SYSTEM, "no child: %s", strerror(errno));
    inl_status s = seize(*child, e);
    return s == INL_OK ? see_exec(*child, b, e) : s;
}

static inl_status begin(mutatee *m, birth *b, pid_t *child, inl_error *e)
{
    inl_status s = remote_check(e);
    if (s == INL_OK) s = live_check_numbers(e);
    if (s == INL_OK && pipe2(b->go, O_CLOEXEC) != 0) s = inl_fail(e, INL_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    if (s == INL_OK && pipe2(b->error, O_CLOEXEC) != 0) s = inl_fail(e, INL_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    if (s == INL_OK) s = give_birth(b, child, e);
    for (int i = 0; i < 2; i++) {
        if (b->go[i] >= 0) close(b->go[i]);
        if (b->error[i] >= 0) close(b->error[i]);
    }
    m->is_child = *child > 0;
    m->is_stopped = s == INL_OK;
    if (s == INL_OK) s = live_start(*child, &m->live, e);
    return s == INL_OK ? mutator_open(m, *child, e) : s;
}

inlay_process *inlay_process_create(const char *path, const char *const *argv, const char *const *envp, const int *fds)
{
    birth b = {.argv = argv,
               .envp = envp ? envp : (const char *const *)environ,
               .fds = fds,
               .go = {-1, -1},
               .error = {-1, -1}};
    inl_error e = {0};
    pid_t child = -1;
    if (!path || !argv) {
        mutator_refuse(INL_ERR_USAGE, "no program, or no arguments");
        return NULL;
    }
    mutatee *m = mutator_new();
    if (!m) return NULL;
    inl_status s = program_find(path, b.path, &e);
    if (s == INL_OK) s = program_hidden(b.path, &e);
    if (s == INL_OK) s = begin(m, &b, &child, &e);
    if (s == INL_OK) return &m->process;
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR) {}
    }
    mutator_forget(m);
    mutator_fail(&e);
    return NULL;
}
