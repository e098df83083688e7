/* What analysis files may call (<cmplrs/atom.anal.h>). */
#include "atom/xlate.h"

#include <cmplrs/atom.anal.h>
#include <inlay/tool.h>

#include <stdlib.h>

unsigned XlateNum(XLATE *x) { return x->count; }
unsigned long XlateAddr(XLATE *x, unsigned k) { return k < x->count ? x->addresses[k] : 0; }
unsigned long XlateInstTextStart(XLATE *x) { return x->text; }
unsigned long XlateInstTextSize(XLATE *x) { return x->text_size; }
long XlateLoadShift(XLATE *x) { return (void)x, 0; }

static long next_id;
static __thread long own_id; /* plus one */

long ThreadGetId(void)
{
    if (!own_id) own_id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
    return own_id - 1;
}

long ThreadLockedAdd(long *to, long amount) { return __atomic_fetch_add(to, amount, __ATOMIC_SEQ_CST); }

_Static_assert(sizeof(ThreadMutex) == sizeof(inlay_mutex), "one is the other");
void ThreadMutexInit(ThreadMutex *m) { m->word = 0; }
void ThreadMutexLock(ThreadMutex *m) { inlay_lock((inlay_mutex *)m); }
void ThreadMutexUnlock(ThreadMutex *m) { inlay_unlock((inlay_mutex *)m); }

/* --- tables: elements in groups that never move --- */

enum { GROUP = 64, GROUPS = 1024 };
struct atom_thread_table {
    unsigned long size;
    char *groups[GROUPS];
};

ThreadTable *ThreadTableCreate(unsigned long size)
{
    ThreadTable *t = calloc(1, sizeof *t);
    if (t) t->size = (size + 63) & ~63ul; /* no two threads in one line of the cache */
    return t;
}

void *ThreadTableOf(ThreadTable *t, long id)
{
    if (id < 0 || id >= (long)GROUP * GROUPS) return NULL;
    char *group = __atomic_load_n(&t->groups[id / GROUP], __ATOMIC_ACQUIRE);
    return group ? group + (unsigned long)(id % GROUP) * t->size : NULL;
}

void *ThreadTableGet(ThreadTable *t)
{
    long id = ThreadGetId();
    void *own = ThreadTableOf(t, id);
    if (own || id >= (long)GROUP * GROUPS) return own;
    char *fresh = calloc(GROUP, t->size), *none = NULL;
    if (fresh && !__atomic_compare_exchange_n(&t->groups[id / GROUP], &none, fresh, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE))
        free(fresh);
    return ThreadTableOf(t, id);
}

long ThreadTableCount(ThreadTable *t) { return (void)t, __atomic_load_n(&next_id, __ATOMIC_RELAXED); }

void *AnalHeapBase(void)
{
    static char *first;
    if (!first) first = malloc(1);
    return first;
}
