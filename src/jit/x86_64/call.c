/* A tool's routine calls a procedure of the program's. The program's stack is as where it is called natively, so that
 * unwinders and exceptions find nothing odd: the return address is the program's own, and it is the thread's table of
 * indirect branches that notices when control comes there with the stack of this call. */
#include "jit/core.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

bool jit_call(run_thread *t, run_call *c)
{
    const uint64_t word = sizeof(uint64_t);
    c->begin_sp = c->frame;
    c->sp = c->frame + word;
    if (!run_write(c->frame, &c->behind, word) || !run_write(c->frame + word, c->stack, c->words * word)) return false;
    if (c->goes_on) {
        jit_own *own = jit_of(t);
        c->kept[0] = own->held, c->kept[1] = own->epoch;
        if (!own->held) __atomic_store_n(&own->held, own->epoch, __ATOMIC_RELEASE);
    }
    run_set_sp(&t->ctx, c->begin_sp);
    jit_ibl_watch(t, c->behind, true);
    return true;
}

void jit_called(run_thread *t, const run_call *over)
{
    uint64_t where = t->where;
    if (over->goes_on) { /* into the code of its epoch again, if it has not been given up */
        if (!over->waits) __atomic_store_n(&jit_of(t)->epoch, over->kept[1], __ATOMIC_RELEASE);
        __atomic_store_n(&jit_of(t)->held, over->kept[0], __ATOMIC_RELEASE);
    }
    for (const run_call *c = t->calls; c; c = c->outer)
        if (c != over && c->waits && jit_ibl_same_entry(c->behind, over->behind)) return;
    jit_ibl_watch(t, over->behind, false);
    t->where = where;
}
