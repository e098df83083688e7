/* Has a process ended, and how? Whoever is its parent is told by waitpid; others by what is left of it: /proc as long
 * as its parent has not asked, then the kernel's own note of it (PIDFD_GET_INFO, where there is such), then the last
 * word of the mutator's file in it. */
#include "tool/mutator.h"

#include <inlay/process.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* The last number of /proc/PID/stat; -1: it is no longer there, or was not for us to see. */
static int status_of_zombie(pid_t pid)
{
    char path[64], line[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    const char *behind = strrchr(line, ')'), *last = strrchr(line, ' ');
    return behind && last && behind[2] == 'Z' ? atoi(last + 1) : -1;
}

static int status_of_pidfd(int pidfd)
{
    enum { INFO_EXIT = 1 << 3 };
    struct { /* struct pidfd_info */
        uint64_t mask, cgroup;
        uint32_t ids[11];
        int32_t status;
    } info = {.mask = INFO_EXIT};
    return ioctl(pidfd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, sizeof info), &info) == 0 && info.mask & INFO_EXIT
               ? info.status
               : -1;
}

/* A status of 0 in /proc may only mean that it is not for us to see. */
static int status_of(const mutatee *m)
{
    int zombie = status_of_zombie(m->live.pid), gone = status_of_pidfd(m->pidfd);
    if (zombie > 0 || gone >= 0) return zombie > 0 ? zombie : gone;
    if (m->ring && !m->has_execed && __atomic_load_n(&m->ring->ended, __ATOMIC_ACQUIRE)) return (int)m->ring->status;
    return zombie;
}

bool mutator_has_ended(mutatee *m)
{
    struct pollfd of = {.fd = m->pidfd, .events = POLLIN};
    int status = -1;
    if (m->has_ended) return true;
    m->has_ended = live_reap(&m->live, m->is_stopped, &status);
    if (m->has_ended) {
        m->status = status;
        return true;
    }
    if (m->is_child) {
        m->has_ended = waitpid(m->live.pid, &status, WNOHANG | __WALL) == m->live.pid && !WIFSTOPPED(status);
    } else if (poll(&of, 1, 0) == 1) {
        m->has_ended = true;
        status = status_of(m);
    }
    if (m->has_ended) m->status = status;
    return m->has_ended;
}

bool mutator_is_ending(mutatee *m)
{
    enum { PATIENCE = 1000 }; /* ms; to give back a large memory takes a while */
    struct pollfd of = {.fd = m->pidfd, .events = POLLIN};
    inl_error ignored;
    if (!mutator_has_ended(m) && live_read_maps(&m->live, &ignored) != INL_OK) poll(&of, 1, PATIENCE);
    return mutator_has_ended(m);
}

bool inlay_process_is_running(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    return !m || !mutator_has_ended(m);
}

int inlay_process_status(const inlay_process *p)
{
    const mutatee *m = mutatee_of(p);
    return m && m->has_ended ? m->status : -1;
}
