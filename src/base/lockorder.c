/* Under `--debug`: who holds which lock, and in what order locks are taken. Two that are ever taken in both orders
 * could lock each other up some day; that is said on the day on which it is first seen, whether it comes to it or not.
 *
 * Threads are told by the kernel's number, since there may be no thread-local storage. Slow, and small: what does not
 * fit is not looked at. */
#include "base/lockorder.h"
#include "base/check.h"
#include "base/sys.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { HOLDERS = 64, MOST_HELD = 8, PAIRS = 256 };

typedef struct holder {
    long tid; /* 0: free */
    unsigned count;
    const inl_lock *held[MOST_HELD];
} holder;
typedef struct pair {
    const inl_lock *first, *then;
} pair;

static holder holders[HOLDERS]; /* of the process: locks are everybody's */
static pair pairs[PAIRS];
static unsigned pair_count;
static uint32_t busy; /* who is at it, 0: nobody; no inl_lock: that would ask here */

/* Whoever has it has it for a moment; a thread that a fork has left behind, for ever. */
static bool is_left_behind(uint32_t owner)
{
    return sys_call3(SYS_tgkill, sys_call0(SYS_getpid), (long)owner, 0) == -ESRCH;
}

static void begin(void)
{
    enum { MOMENT = 1 << 16 };
    uint32_t mine = (uint32_t)sys_call0(SYS_gettid), owner = 0;
    for (unsigned spins = 1;
         !__atomic_compare_exchange_n(&busy, &owner, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); spins++) {
        if (spins % MOMENT || !is_left_behind(owner)) owner = 0; /* otherwise it is taken from that owner */
        sys_pause();
    }
}

static void done(void) { __atomic_store_n(&busy, 0, __ATOMIC_RELEASE); }

static holder *holder_of(long tid, bool make)
{
    holder *free = NULL;
    for (unsigned i = 0; i < HOLDERS; i++) {
        if (holders[i].tid == tid) return &holders[i];
        if (!holders[i].tid) free = &holders[i];
    }
    if (!make || !free) return NULL;
    free->tid = tid;
    free->count = 0;
    return free;
}

static bool is_known(const inl_lock *first, const inl_lock *then)
{
    for (unsigned i = 0; i < pair_count; i++)
        if (pairs[i].first == first && pairs[i].then == then) return true;
    return false;
}

void inl_lock_order_take(const inl_lock *l)
{
    const inl_lock *wrong = NULL;
    begin();
    holder *h = holder_of(sys_call0(SYS_gettid), true);
    for (unsigned i = 0; h && i < h->count && !wrong; i++) {
        if (h->held[i] == l || is_known(l, h->held[i])) wrong = h->held[i];
        else if (pair_count < PAIRS && !is_known(h->held[i], l)) pairs[pair_count++] = (pair){h->held[i], l};
    }
    if (h && h->count < MOST_HELD) h->held[h->count++] = l;
    done();
    INL_CHECK(wrong != l, "lock %p is taken by a thread that holds it", (const void *)l);
    INL_CHECK(!wrong, "lock %p is taken under %p, and was the other way round before", (const void *)l,
              (const void *)wrong);
}

void inl_lock_order_release(const inl_lock *l)
{
    begin();
    holder *h = holder_of(sys_call0(SYS_gettid), false);
    for (unsigned i = 0; h && i < h->count; i++) {
        if (h->held[i] != l) continue;
        h->held[i] = h->held[--h->count];
        break;
    }
    if (h && !h->count) h->tid = 0;
    done();
}
