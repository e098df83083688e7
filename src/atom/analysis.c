/* What analysis files may call (<cmplrs/atom.anal.h>). */
#include "atom/xlate.h"

#include <cmplrs/atom.anal.h>
#include <inlay/callback.h>
#include <inlay/tool.h>

#include <stdlib.h>

unsigned XlateNum(XLATE *x) { return x->count; }
unsigned long XlateAddr(XLATE *x, unsigned k) { return k < x->count ? x->addresses[k] : 0; }
unsigned long XlateInstTextStart(XLATE *x) { return x->text; }
unsigned long XlateInstTextSize(XLATE *x) { return x->text_size; }
long XlateLoadShift(XLATE *x) { return (void)x, 0; }

long ThreadGetId(void) { return inlay_thread_number_now(); }

long ThreadLockedAdd(long *to, long amount) { return __atomic_fetch_add(to, amount, __ATOMIC_SEQ_CST); }

_Static_assert(sizeof(ThreadMutex) == sizeof(inlay_mutex), "one is the other");
void ThreadMutexInit(ThreadMutex *m) { m->word = 0; }
void ThreadMutexLock(ThreadMutex *m) { inlay_lock((inlay_mutex *)m); }
void ThreadMutexUnlock(ThreadMutex *m) { inlay_unlock((inlay_mutex *)m); }

/* --- tables: elements in groups that never move --- */

enum { GROUP = 64, GROUPS = 1 << 16 };
struct atom_thread_table {
    unsigned long size;
    long count; /* greatest id that has asked, plus one */
    char *groups[GROUPS];
};

ThreadTable *ThreadTableCreate(unsigned long size)
{
    ThreadTable *t = calloc(1, sizeof *t);
    if (t) t->size = (size + 63) & ~63ul; /* no two threads in one line of the cache */
    return t;
}

static void *element(const ThreadTable *t, unsigned long id)
{
    char *group = id < (unsigned long)GROUP * GROUPS ? __atomic_load_n(&t->groups[id / GROUP], __ATOMIC_ACQUIRE) : NULL;
    return group ? group + id % GROUP * t->size : NULL;
}

void *ThreadTableOf(ThreadTable *t, long id) { return element(t, (unsigned long)id); }

/* This thread asks for the first time. */
static __attribute__((noinline)) void *first_time(ThreadTable *t, long id)
{
    long count = __atomic_load_n(&t->count, __ATOMIC_RELAXED);
    char *fresh = NULL, *none = NULL;
    if (id >= (long)GROUP * GROUPS) return NULL;
    if (!element(t, (unsigned long)id)) fresh = calloc(GROUP, t->size);
    if (fresh &&
        !__atomic_compare_exchange_n(&t->groups[id / GROUP], &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        free(fresh);
    while (count <= id &&
           !__atomic_compare_exchange_n(&t->count, &count, id + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
    return element(t, (unsigned long)id);
}

void *ThreadTableGet(ThreadTable *t)
{
    long id = ThreadGetId();
    void *own = id < __atomic_load_n(&t->count, __ATOMIC_RELAXED) ? element(t, (unsigned long)id) : NULL;
    return own ? own : first_time(t, id);
}

long ThreadTableCount(ThreadTable *t) { return __atomic_load_n(&t->count, __ATOMIC_ACQUIRE); }

void *AnalHeapBase(void)
{
    static char *first; /* the one thing that the analysis side remembers; it knows nothing of the other's context */
    if (!first) first = malloc(1);
    return first;
}
