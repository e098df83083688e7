/* waits: which procedures run, and which wait for a processor: what the kernel's scheduler tells of each thread.
 *
 *     $ inlay cc --trace waits.c -o waits
 *     $ inlay trace --tool ./waits -- make -j8
 *     $ inlay trace report make.trace
 *
 * It costs three system calls at each entry and exit, which are not charged to the program. In objects it is compiled
 * as it is, and linked with them. */
#include <inlay/trace.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

const char *const inlay_trace_names[] = {"ran-ns", "waited-ns", NULL};

static void read_times(uint64_t *values)
{
    char text[128];
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0) close(file);
    if (n <= 0) return;
    text[n] = 0;
    char *next;
    values[0] = strtoull(text, &next, 10);
    values[1] = strtoull(next, NULL, 10);
}

void inlay_trace_enter(const inlay_trace_at *at) { read_times(at->values); }
void inlay_trace_exit(const inlay_trace_at *at) { read_times(at->values); }
