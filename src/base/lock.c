/* Three-state futex lock: a holder that finds the word at 1 when it leaves has woken nobody and
 * makes no system call; 2 says that somebody may sleep. The kernel compares the word again before
 * it puts a thread to sleep, which closes the race between the exchange and the wait. */
#include "base/lock.h"
#include "base/check.h"
#include "base/lockorder.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/sys.h"

enum { FREE, HELD, HELD_AND_WAITED };
enum { SPINS = 64 };

static bool try_take(inl_lock *l)
{
    uint32_t expected = FREE;
    return __atomic_compare_exchange_n(&l->word, &expected, HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void inl_lock_take_inner(inl_lock *l)
{
    if (try_take(l)) return;
    for (int i = 0; i < SPINS; i++) {
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == FREE && try_take(l)) return;
        sys_pause();
    }
    while (__atomic_exchange_n(&l->word, HELD_AND_WAITED, __ATOMIC_ACQUIRE) != FREE)
        sys_call4(SYS_futex, (long)&l->word, FUTEX_WAIT_PRIVATE, HELD_AND_WAITED, 0);
}

void inl_lock_release_inner(inl_lock *l)
{
    if (__atomic_exchange_n(&l->word, FREE, __ATOMIC_RELEASE) == HELD_AND_WAITED)
        sys_call3(SYS_futex, (long)&l->word, FUTEX_WAKE_PRIVATE, 1);
}

void inl_lock_reset(inl_lock *l) { __atomic_store_n(&l->word, FREE, __ATOMIC_RELAXED); }

void inl_lock_take(inl_lock *l)
{
    if (__builtin_expect(inl_debug, 0)) inl_lock_order_take(l);
    inl_lock_take_inner(l);
}

void inl_lock_release(inl_lock *l)
{
    if (__builtin_expect(inl_debug, 0)) inl_lock_order_release(l);
    inl_lock_release_inner(l);
}
