/* Stacks for what is rare, one a thread: what runs where the first record of a thread or a procedure is made may have
 * no more stack than it wants itself (coroutines, handlers on a stack of their own).
 *
 * Where routines of the user's run there is none: these are the program's code, and have its stack. */
#include "record/recorder.h"

enum { SIZE = 64 << 10, GUARD = 4 << 10 }; /* some 20 KB are wanted at most; pages that are not touched are not there */

/* Of threads that have ended; each has the next one's end at its end. */
static char *unused;
static inlay_mutex lock;

static char **next_of(char *end) { return (char **)end - 1; }

static char *map(void)
{
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    sys_call3(SYS_mprotect, (long)p, GUARD, PROT_NONE);
    return p + SIZE;
}

char *record_stack_take(void)
{
    if (trace_routine_is_there(false) || trace_routine_is_there(true)) return NULL;
    int cause = errno;
    inlay_lock(&lock);
    char *end = unused;
    if (end) unused = *next_of(end);
    inlay_unlock(&lock);
    record_me.stack = end ? end : map();
    errno = cause;
    return record_me.stack;
}

void record_stack_give(void)
{
    char *end = record_me.stack;
    if (!end) return;
    inlay_lock(&lock);
    *next_of(end) = unused;
    unused = end;
    record_me.stack = NULL;
    inlay_unlock(&lock);
}

void record_stack_forked(void) { lock.word = 0; }
