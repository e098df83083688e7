/* --stats: what the engine has done, in numbers. Counting costs nothing where translated code runs, but for indirect
 * branches: with jit_options.stats each counts itself in its thread's block, by kind, and the miss routine counts those
 * that the thread's own table did not know (x86_64/lower.c, dispatch.S).
 *
 * Everything else is counted where it happens, under the process's lock; signals by handlers, atomically.
 */
#include "jit/core.h"
#include INL_ARCH_HEADER(run, abi)

#include <string.h>

static void add_thread(jit_stats *to, const run_thread *t)
{
    const jit_own *own = jit_of(t);
    for (unsigned k = 0; k < JIT_KINDS; k++) {
        to->executed[k] += own->executed[k];
        to->missed[k] += own->missed[k];
    }
    to->dispatcher_cycles += t->frame.own_cycles - own->cycles_before;
}

void jit_stats_thread_made(run_thread *t)
{
    jit_own *own = jit_of(t);
    memset(own->executed, 0, sizeof own->executed);
    memset(own->missed, 0, sizeof own->missed);
    own->cycles_before = t->frame.own_cycles;
}

/* It stays in the list a little longer. */
void jit_stats_thread_ends(run_thread *t)
{
    inl_lock_take(&run_here.lock);
    add_thread(&jit.stats, t);
    jit_stats_thread_made(t);
    inl_lock_release(&run_here.lock);
}

void jit_stats_begin(void) { jit.stats_since = jit.options.stats ? run_cycles() : 0; }

/* The parent tells what was before. */
void jit_stats_forked(void)
{
    memset(&jit.stats, 0, sizeof jit.stats);
    for (run_thread *t = run_here.threads; t; t = t->next) jit_stats_thread_made(t);
    jit_stats_begin();
}

void jit_stats_take(jit_stats *out)
{
    inl_lock_take(&run_here.lock);
    *out = jit.stats;
    for (const run_thread *t = run_here.threads; t; t = t->next) add_thread(out, t);
    out->cycles = run_self()->no_cycles ? 0 : run_cycles() - jit.stats_since;
    inl_lock_release(&run_here.lock);
}
