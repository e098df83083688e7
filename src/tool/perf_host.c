/* Counters in a tool: their descriptors are hidden from the program, whose own filters hold for them, too. */
#include "tool/perf.h"
#include "tool/state.h"
#include "run/confine.h"

int perf_fd_hide(int fd) { return run_fd_hide(fd); }

void perf_fd_close(int fd) { run_fd_close(fd); }

bool perf_fd_is_there(int fd) { return fd >= 0; }

bool perf_may(long nr)
{
    const run_thread *self = run_here.threads ? run_self() : NULL;
    return !self || !self->filters || run_confine_lets(self, nr);
}
