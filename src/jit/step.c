/* The program steps itself: it has set the flag by which the processor traps behind each instruction, with a handler of
 * its own for the signal. In the cache the trap would come behind each of Inlay's instructions. So the flag is never
 * set while translated code runs: what could set it (one instruction; a handler's return; iret) is watched, and a
 * thread whose program has it set runs one instruction at a time, from a fragment that nobody finds again and no exit
 * is linked to; behind it the signal is raised in the dispatcher.
 *
 * As natively: the instruction that sets the flag is not followed by a trap, the one that clears it is; none follows a
 * system call, at which the processor forgets, or a move to the stack's segment; a repeated string instruction traps
 * behind each repetition, and snippets run before the first one only.
 *
 * A debugger's steps (stops.c) go the same way, without the flag: then the program is told nothing.
 */
#include "jit/core.h"
#include "run/kernel.h"

/* Lock not held; what the thread left for has not been served. Is a trap due, when it has been? */
bool jit_step_end(run_thread *t)
{
    jit_stepping *s = &jit_of(t)->stepping;
    if (!s->on) return false;
    s->on = false;
    bool left = t->leave == RUN_LEAVE_EXIT || t->leave == RUN_LEAVE_INDIRECT;
    jit_step_restore(t, s, left);
    if (!s->program) return false;
    if (t->leave == RUN_LEAVE_FLAGS) return true;
    return (left || t->leave == RUN_LEAVE_SPECIAL) && !(s->kind & (JIT_STEP_CALLS | JIT_STEP_SILENT));
}

/* The thread is about to enter `f`, made by jit_translate_step or jit_translate_once. Lock held. */
void jit_step_begin(run_thread *t, const jit_fragment *f)
{
    jit_stepping *s = &jit_of(t)->stepping;
    s->on = true;
    s->pc = f->app;
    jit_step_prepare(t, s);
    if (s->kind & JIT_STEP_INDIRECT) jit_ibl_block(t); /* else it would go on without us */
}
