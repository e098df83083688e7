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

void inlay_lock(inlay_mutex *m)
{
    inl_lock_take((inl_lock *)m);
    tool_thread *t = self();
    if (t && t->held_count < TOOL_HELD_LOCKS) t->held[t->held_count++] = m;
}

void inlay_unlock(inlay_mutex *m)
{
    tool_thread *t = self();
    for (unsigned i = 0; t && i < t->held_count; i++) {
        if (t->held[i] != m) continue;
        t->held[i] = t->held[--t->held_count];
        break;
    }
    inl_lock_release((inl_lock *)m);
}

_Static_assert(sizeof(inlay_mutex) == sizeof(inl_lock), "one is the other");
