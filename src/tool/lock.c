/* Locks of the tool part.
 *
 * The engine's lock as public calls take it; the small locks of this part, in the order in which they
 * nest, all taken before a fork so that the child finds what they guard whole; and the locks of
 * analysis routines: each thread remembers which it holds, so that a fork's child can give back those
 * of the threads that are gone. */
#include "tool/state.h"

#include <inlay/tool.h>

/* In the order in which they nest. */
enum { LOCKS = 3 };
static void list_locks(inl_lock *order[LOCKS])
{
    tool_locks *l = &tool_now->locks;
    order[0] = &l->records;
    order[1] = &l->output;
    order[2] = &l->small;
}
_Static_assert(sizeof(tool_locks) == LOCKS * sizeof(inl_lock), "all are listed");

bool tool_enter(void)
{
    if (tool_here.holds_lock) return false;
    inl_lock_take(&run_here.lock);
    tool_here.holds_lock = true;
    return true;
}

void tool_leave(bool entered)
{
    if (!entered) return;
    tool_here.holds_lock = false;
    inl_lock_release(&run_here.lock);
}

void tool_locks_fork(int phase)
{
    inl_lock *order[LOCKS];
    list_locks(order);
    for (int i = 0; i < LOCKS; i++) {
        if (phase == 0) inl_lock_take(order[i]);
        else if (phase == 1) inl_lock_release(order[LOCKS - 1 - i]);
        else inl_lock_reset(order[i]);
    }
}

static tool_thread *self(void) { return run_here.threads ? tool_thread_of(run_self()) : NULL; }

/* A fork by another thread finds this one anywhere: a lock is noted before it is taken and forgotten after it is given
 * back, each by one store in this order, so that none is ever held that is not noted. */
static void note_held(tool_thread *t, inlay_mutex *m)
{
    if (t->held_count == TOOL_HELD_LOCKS) {
        tool_say_limited("a thread holds more than %d locks: a child of fork may wait for one for ever",
                         TOOL_HELD_LOCKS);
        return;
    }
    __atomic_store_n(&t->held[t->held_count], m, __ATOMIC_RELEASE);
    __atomic_store_n(&t->held_count, t->held_count + 1, __ATOMIC_RELEASE);
}

static void forget_held(tool_thread *t, const inlay_mutex *m)
{
    for (unsigned i = t->held_count; i-- > 0;) {
        if (t->held[i] != m) continue;
        __atomic_store_n(&t->held[i], t->held[t->held_count - 1], __ATOMIC_RELEASE);
        __atomic_store_n(&t->held_count, t->held_count - 1, __ATOMIC_RELEASE);
        return;
    }
}

void inlay_lock(inlay_mutex *m)
{
    tool_thread *t = self();
    if (t) note_held(t, m);
    inl_lock_take((inl_lock *)m);
}

void inlay_unlock(inlay_mutex *m)
{
    inl_lock_release((inl_lock *)m);
    tool_thread *t = self();
    if (t) forget_held(t, m);
}

static bool holds(const tool_thread *t, const inlay_mutex *m)
{
    for (unsigned i = 0; i < t->held_count; i++) {
        if (t->held[i] == m) return true;
    }
    return false;
}

void tool_locks_give_back(const tool_thread *gone, const tool_thread *survivor)
{
    for (unsigned i = 0; i < gone->held_count; i++) {
        if (!survivor || !holds(survivor, gone->held[i])) inl_lock_reset((inl_lock *)gone->held[i]);
    }
}

_Static_assert(sizeof(inlay_mutex) == sizeof(inl_lock), "one is the other");
