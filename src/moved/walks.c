/* Whoever walks over the stack with the unwinder of the compiler's run time (a backtrace, a panic's report, a heap
 * profiler) is told old addresses for frames in new code: what it looks up in files itself is there then. Exceptions
 * find their way by the same procedures, and must be told where they are: tables of new code say where they land.
 *
 * Only _Unwind_Backtrace walks. It begins with a note of where its frame is (<isa>/walks.S), and the others of the
 * unwinder's, which raise, strike that out. Nothing of the tool's is on the stack meanwhile, and whoever leaves a walk
 * by a jump need not be noticed: a context is a walk's if it lies where the one of the first walk lay in its frame.
 * What is not recognised as a walk (one that has had another within it) is told new addresses, as it were without this.
 */
#include "moved/passage.h"

#include <stdatomic.h>

/* The procedures' own new code: walks.S leads on by the first five. */
uint64_t moved_next_walk, moved_next_raise, moved_next_forced, moved_next_resume, moved_next_rethrow;
uint64_t (*moved_next_ip)(void *);
uint64_t (*moved_next_ip_info)(void *, int *);

/* From _Unwind_Backtrace's stack pointer at its entry down to its context: the compiler's choice. 0: not known yet. */
static _Atomic uint64_t depth;

bool moved_walks(void) { return moved_next_walk != 0; }

void moved_walks_forget(uint64_t text, uint64_t size)
{
    if (moved_next_walk - text >= size) return;
    moved_next_walk = 0;
    atomic_store(&depth, 0);
}

static bool is_walk(uint64_t context, uint64_t sp)
{
    enum { MOST = 4096 };
    uint64_t began = moved_of(run_self())->walks, down = began - context, known = 0;
    if (!began || context <= sp || down >= MOST) return false;
    return atomic_compare_exchange_strong(&depth, &known, down) || known == down;
}

static uint64_t told(const void *context, uint64_t sp, uint64_t ip)
{
    if (!is_walk((uint64_t)(uintptr_t)context, sp) || !moved_at(ip - 1)) return ip;
    uint64_t old = moved_back(ip);
    return old ? old : moved_old_address(ip); /* a signal came there: no call ends at it */
}

uint64_t moved_find_ip(void *context)
{
    MOVED_PASSES;
    return told(context, here.frame, moved_next_ip(context));
}

uint64_t moved_find_ip_info(void *context, int *exactly)
{
    MOVED_PASSES;
    return told(context, here.frame, moved_next_ip_info(context, exactly));
}
