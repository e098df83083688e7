/* A process that has run natively goes on under the engine. Its threads stand still, and each will come as from the
 * cache, by run_leave_code, which takes all registers as they are: so there is nothing to bring but a block.
 *
 * What a thread's call has left in the kernel to go on with (restart_syscall) stays there until the thread returns from
 * a signal's handler, of Inlay's as well, which leaving Inlay is, too: then the call itself is made (jit_join_restart).
 */
#include "jit/core.h"
#include "run/kernel.h"

#include <string.h>
#include <sys/syscall.h>

#include INL_ARCH_HEADER(run, abi)

static run_thread *block_of(const jit_joining *j, bool first, inl_error *e)
{
    if (!first) return run_thread_adopt(j->tid, j->ctx, j->sigmask, &j->alternate, e);
    run_thread *t = run_self();
    t->sigmask = j->sigmask;
    t->altstack = j->alternate;
    run_bases_take(t, j->ctx);
    return t;
}

run_thread *jit_join(const jit_joining *j, bool first, inl_error *e)
{
    run_thread *t = block_of(j, first, e);
    if (!t) return NULL;
    jit_own *o = jit_of(t);
    t->ctx = *j->ctx;
    t->ctx.vectors = t->frame.vector_area;
    t->frame.app_tls_base = t->ctx.tls_base;
    t->clear_tid = j->clear_tid;
    t->robust = j->robust;
    t->leave = RUN_LEAVE_START;
    o->begins = true;
    o->restarts = j->restarts;
    if (j->rseq && !jit_sections_take(t, j->rseq, j->rseq_signature)) {
        inl_fail(e, INL_ERR_NO_MEMORY, "no memory for a thread's restartable sequences");
        return NULL;
    }
    return t;
}

void jit_joined(void)
{
    run_here.born_traced = false; /* by who has put the tool in */
    if (run_here.client.module_loaded)
        for (module *m = module_first(run_here.modules); m; m = m->next)
            run_here.client.module_loaded(run_here.client.arg, m);
    run_self()->where = RUN_IN_CODE;
}

void jit_join_begin(run_thread *t)
{
    jit_of(t)->begins = false;
    if (run_here.client.thread_start) run_here.client.thread_start(run_here.client.arg, t);
}

void jit_join_restart(run_thread *t)
{
    uint8_t insn[RUN_SYSCALL_BYTES];
    if (run_number(&t->ctx) != SYS_restart_syscall || !jit_of(t)->restarts) return;
    if (!run_read(insn, t->ctx.pc, sizeof insn) || insn[0] != 0x0f || insn[1] != 0x05) return;
    run_set_answer(&t->ctx, (long)jit_of(t)->restarts); /* the number is where the answer would be */
}
