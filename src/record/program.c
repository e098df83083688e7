/* Of the public headers, what the writers of the trace's file use (tools/trace_file.c, trace_clock.c), for an ordinary
 * program: memory, locks, words on standard error, the clock. */
#include "record/recorder.h"
#include "../tools/trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- memory: never the program's allocator, which may be what is recorded --- */

static inlay_mutex lock;

void record_memory_forked(void) { lock.word = 0; }

void *record_memory(size_t bytes)
{
    enum { CHUNK = 256 << 10, ALIGN = 16 };
    static char *at, *end;
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    inlay_lock(&lock);
    if ((size_t)(end - at) < bytes) {
        size_t size = bytes > CHUNK ? (bytes + 4095) & ~4095ul : CHUNK;
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at = p == MAP_FAILED ? NULL : p;
        end = at ? at + size : NULL;
    }
    char *out = at;
    if (at) at += bytes;
    inlay_unlock(&lock);
    return out;
}

void *inlay_alloc(size_t bytes) { return record_memory(bytes); }

struct inlay_local {
    size_t bytes;
    unsigned number;
};

enum { LOCALS = sizeof record_me.locals / sizeof *record_me.locals };

/* The file's writers have one, counters another; asked for before there are other threads that record. */
inlay_local *inlay_local_new(size_t bytes)
{
    static struct inlay_local all[LOCALS];
    static unsigned count;
    if (count == LOCALS) return NULL;
    all[count] = (struct inlay_local){bytes, count};
    return &all[count++];
}

static void *free_locals[LOCALS]; /* of threads that have ended; each begins with the next one's address */

void *inlay_local_now(const inlay_local *l)
{
    void **here = &record_me.locals[l->number], *old;
    if (*here) return *here;
    inlay_lock(&lock);
    old = free_locals[l->number];
    if (old) free_locals[l->number] = *(void **)old;
    inlay_unlock(&lock);
    return *here = old ? memset(old, 0, l->bytes) : record_memory(l->bytes);
}

void record_locals_give(void)
{
    inlay_lock(&lock);
    for (unsigned i = 0; i < LOCALS; i++) {
        void *one = record_me.locals[i];
        if (!one) continue;
        *(void **)one = free_locals[i];
        free_locals[i] = one;
        record_me.locals[i] = NULL;
    }
    inlay_unlock(&lock);
}

/* --- locks: 0 free, 1 taken, 2 and somebody waits --- */

void inlay_lock(inlay_mutex *m)
{
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&m->word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&m->word, 2, __ATOMIC_ACQUIRE))
        sys_call4(SYS_futex, (long)&m->word, FUTEX_WAIT_PRIVATE, 2, 0);
}

void inlay_unlock(inlay_mutex *m)
{
    if (__atomic_exchange_n(&m->word, 0, __ATOMIC_RELEASE) == 2)
        sys_call4(SYS_futex, (long)&m->word, FUTEX_WAKE_PRIVATE, 1, 0);
}

/* --- the process --- */

const char *inlay_program(void)
{
    static char path[4096];
    ssize_t n = path[0] ? 1 : readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) strncpy(path, program_invocation_name, sizeof path - 1);
    return path;
}

int inlay_pid(void) { return (int)getpid(); }

enum { WARNING = 6144 }; /* two paths, at most, and a sentence */

void inlay_warn(const char *fmt, ...)
{
    char text[WARNING];
    va_list ap;
    int n = snprintf(text, sizeof text / 4, "%s: inlay: ", program_invocation_short_name);
    size_t at = n < (int)sizeof text / 4 ? (size_t)n : sizeof text / 4 - 1;
    va_start(ap, fmt);
    vsnprintf(text + at, sizeof text - at - 1, fmt, ap);
    va_end(ap);
    strcat(text, "\n");
    (void)!write(STDERR_FILENO, text, strlen(text));
}

uint64_t inlay_cycles_now(void) { return __builtin_ia32_rdtsc(); }
uint64_t inlay_own_cycles_now(void) { return record_me.own; }

/* The writers ask for a stream's descriptor, and for nothing else of it. (It is not NULL, which newer C libraries
 * declare that fileno never gets.) */
static char stands_for_output;
FILE *inlay_out(void) { return (FILE *)(void *)&stands_for_output; }
int record_fileno(FILE *f) { return f == inlay_out() ? record_output_open(record_output_name()) : -1; }
