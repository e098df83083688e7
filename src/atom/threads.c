/* Threads, for analysis files (<cmplrs/atom.anal.h>): numbers, locks, tables with an element for each thread.
 *
 * A table's elements stand in groups that are made once and never move, so that finding one's own takes no lock:
 *
 *     table -> groups[id / GROUP] -> | state | mutex | bytes of the tool | state | ...
 *
 * `state` says whether the thread has asked for its element and not had it removed. The table's lock is held by who
 * goes over all elements, or has locked the table. */
#include <cmplrs/atom.anal.h>
#include <inlay/callback.h>
#include <inlay/tool.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

ThreadId ThreadGetId(void) { return inlay_thread_number_now() + 1ul; }
int ThreadIsInternal(ThreadId id) { return (void)id, 0; }

unsigned long ThreadLockedAdd(unsigned long *to, unsigned long amount)
{
    return __atomic_fetch_add(to, amount, __ATOMIC_SEQ_CST);
}

/* --- locks: a lock of Inlay's in one half of the word, its holder in the other --- */

typedef struct lock {
    inlay_mutex mutex;
    uint32_t holder;
} lock;
_Static_assert(sizeof(ThreadMutex) == sizeof(lock), "one is the other");

void ThreadMutexInit(ThreadMutex *m) { *m = 0; }

static bool holds(const ThreadMutex *m, ThreadId id)
{
    return __atomic_load_n(&((const lock *)m)->holder, __ATOMIC_RELAXED) == (uint32_t)id;
}

ThreadStatus ThreadMutexLock(ThreadMutex *m, ThreadId id)
{
    lock *l = (lock *)m;
    if (id == ThreadNoId) return THREAD_NO_ID;
    if (holds(m, id)) return THREAD_LOCKED;
    inlay_lock(&l->mutex);
    __atomic_store_n(&l->holder, (uint32_t)id, __ATOMIC_RELAXED);
    return THREAD_SUCCESS;
}

void ThreadMutexUnlock(ThreadMutex *m)
{
    lock *l = (lock *)m;
    __atomic_store_n(&l->holder, 0, __ATOMIC_RELAXED);
    inlay_unlock(&l->mutex);
}

void ThreadMutexPoll(int microseconds) { (void)microseconds; }

/* --- tables --- */

enum { GROUP = 64, GROUPS = 1 << 16, LINE = 64 };
typedef struct element {
    uint64_t there;
    ThreadMutex mutex;
    char bytes[];
} element;
struct atom_thread_table {
    unsigned long stride, bytes;
    long count; /* greatest id that has asked, plus one */
    ThreadMutex mutex;
    char *groups[GROUPS];
};

ThreadTable *ThreadTableInit(unsigned long threads, unsigned long bytes)
{
    ThreadTable *t = calloc(1, sizeof *t);
    (void)threads;
    if (!t) return NULL;
    t->bytes = bytes;
    t->stride = (sizeof(element) + bytes + LINE - 1) & ~(LINE - 1ul); /* no two threads in one line of the cache */
    return t;
}

ThreadTable *ThreadTableCreate(unsigned long bytes) { return ThreadTableInit(0, bytes); }

void ThreadTableFree(ThreadTable *t)
{
    for (unsigned i = 0; i < GROUPS; i++) free(t->groups[i]);
    free(t);
}

static element *find(const ThreadTable *t, ThreadId id)
{
    char *group = id < (ThreadId)GROUP * GROUPS ? __atomic_load_n(&t->groups[id / GROUP], __ATOMIC_ACQUIRE) : NULL;
    return group ? (element *)(group + id % GROUP * t->stride) : NULL;
}

static bool is_there(const element *e) { return e && __atomic_load_n(&e->there, __ATOMIC_ACQUIRE); }

static void raise_count(ThreadTable *t, ThreadId id)
{
    long count = __atomic_load_n(&t->count, __ATOMIC_RELAXED);
    while (count <= (long)id &&
           !__atomic_compare_exchange_n(&t->count, &count, (long)id + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

/* The thread asks for the first time. */
static __attribute__((noinline)) element *make(ThreadTable *t, ThreadId id)
{
    char *fresh = NULL, *none = NULL;
    if (id >= (ThreadId)GROUP * GROUPS) return NULL;
    if (!find(t, id)) fresh = calloc(GROUP, t->stride);
    if (fresh &&
        !__atomic_compare_exchange_n(&t->groups[id / GROUP], &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        free(fresh);
    element *e = find(t, id);
    if (!e) return NULL;
    __atomic_store_n(&e->there, 1, __ATOMIC_RELEASE);
    raise_count(t, id);
    return e;
}

static element *find_or_make(ThreadTable *t, ThreadId id)
{
    element *e = find(t, id);
    return is_there(e) ? e : make(t, id);
}

void *ThreadLookup(ThreadTable *t, ThreadId id, unsigned long flags)
{
    if (id == ThreadNoId) return NULL;
    element *e = find(t, id);
    if (!is_there(e)) {
        if (flags & THREAD_EXISTING) return NULL;
        bool own = ThreadMutexLock(&t->mutex, ThreadGetId()) == THREAD_SUCCESS;
        e = make(t, id);
        if (own) ThreadMutexUnlock(&t->mutex);
    }
    if (e && flags & THREAD_LOCK) ThreadMutexLock(&e->mutex, ThreadGetId());
    return e ? e->bytes : NULL;
}

ThreadMutex *ThreadAddr(ThreadTable *t, ThreadId id)
{
    element *e = find(t, id);
    return is_there(e) ? &e->mutex : NULL;
}

ThreadStatus ThreadUnlock(ThreadTable *t, ThreadId id)
{
    ThreadMutex *m = ThreadAddr(t, id);
    if (id == ThreadNoId) return THREAD_NO_ID;
    if (!m) return THREAD_NO_DATA;
    ThreadMutexUnlock(m);
    return THREAD_SUCCESS;
}

ThreadStatus ThreadRemove(ThreadTable *t, ThreadId id)
{
    element *e = find(t, id);
    if (id == ThreadNoId) return THREAD_NO_ID;
    if (!is_there(e)) return THREAD_NO_DATA;
    memset(e->bytes, 0, t->bytes);
    if (holds(&e->mutex, ThreadGetId())) ThreadMutexUnlock(&e->mutex);
    __atomic_store_n(&e->there, 0, __ATOMIC_RELEASE);
    return THREAD_SUCCESS;
}

ThreadStatus ThreadTableLock(ThreadTable *t, ThreadId id) { return ThreadMutexLock(&t->mutex, id); }
void ThreadTableUnlock(ThreadTable *t, ThreadId id) { (void)id, ThreadMutexUnlock(&t->mutex); }

ThreadStatus ThreadForeach(ThreadTable *t, ThreadId id, unsigned long flags, void *data, void *result,
                           void (*each)(ThreadId, void *, void *, void *))
{
    ThreadStatus table = ThreadTableLock(t, id);
    if (table == THREAD_NO_ID) return table;
    for (ThreadId k = 1; (long)k < ThreadTableCount(t); k++) {
        element *e = find(t, k);
        if (!is_there(e)) continue;
        bool lock = flags & THREAD_LOCK && ThreadMutexLock(&e->mutex, id) == THREAD_SUCCESS;
        each(k, e->bytes, data, result);
        if (lock && is_there(e)) ThreadMutexUnlock(&e->mutex);
    }
    if (table == THREAD_SUCCESS) ThreadTableUnlock(t, id);
    return THREAD_SUCCESS;
}

/* --- the same for a thread's own element, without locks --- */

void *ThreadTableGet(ThreadTable *t)
{
    element *e = find_or_make(t, ThreadGetId());
    return e ? e->bytes : NULL;
}

void *ThreadTableOf(ThreadTable *t, ThreadId id)
{
    element *e = find(t, id);
    return e ? e->bytes : NULL;
}

long ThreadTableCount(ThreadTable *t) { return __atomic_load_n(&t->count, __ATOMIC_ACQUIRE); }
