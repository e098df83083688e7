/* Routines at entries and exits, for tests/trace/routines.py: how often they were called, and what the first argument
 * of `down` has summed up to. */
#include <inlay/trace.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const inlay_trace_names[] = {"entries", "sum", NULL};
static uint64_t entries, exits, sum;

static void store(uint64_t *values)
{
    values[0] = entries;
    values[1] = sum;
}

static void tell(const inlay_trace_at *at, const char *what)
{
    char line[256];
    const char *slash = strrchr(at->proc->image, '/');
    int n = snprintf(line, sizeof line, "%s %s of %s, number %s, thread %u, %lu times, %lu and %lu\n", what,
                     at->proc->name, slash ? slash + 1 : at->proc->image,
                     at->proc->number && at->proc->size && at->stack ? "good" : "bad", at->thread,
                     (unsigned long)(uintptr_t)at->proc->user, (unsigned long)entries, (unsigned long)exits);
    (void)!write(2, line, (size_t)n);
}

void inlay_trace_enter(const inlay_trace_at *at)
{
    entries++;
    at->proc->user = (char *)at->proc->user + 1;
    if (!strcmp(at->proc->name, "down")) sum += at->arguments[0];
    if (!strcmp(at->proc->name, "six"))
        for (int i = 0; i < INLAY_TRACE_ARGUMENTS; i++) sum += at->arguments[i] * (uint64_t)(i + 1) * 1000;
    store(at->values);
}

void inlay_trace_exit(const inlay_trace_at *at)
{
    exits++;
    store(at->values);
    if (!strcmp(at->proc->name, "down") && !at->arguments) tell(at, "left");
}
