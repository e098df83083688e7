/* Signals of a rewritten program. Masks, alternate stacks, frames and sigreturn are the kernel's; only the
 * actions are virtual: the kernel has rewrite_signal_entry for each signal that the program handles or that
 * would kill it. What is interrupted decides:
 *
 *   code that is not rewritten     the program's handler is jumped to, as if the kernel had called it
 *   moved code, a signal sent      the registers may be in slots, so steps are made, everything blocked, to
 *                                  the next block's start, or out of moved code; there the signal is sent
 *                                  again and finds the program's own state in every register
 *   an analysis routine            the same, from its return on
 *   moved code, a fault;           the handler is called with the thread's slots kept beside it, and they
 *   a `syscall` or a long rep      are put back when it returns
 *   comes before a block's start
 *   the runtime                    only faults arrive there: an error of Inlay's, or one of a copy from
 *                                  the program's memory; a sent one waits, blocked
 *
 * A signal that kills runs the end of the tool first, then the default action: at a fault by returning to
 * the instruction, so that a core shows it.
 *
 * Runs with the FS base of what was interrupted: nothing here uses thread-local storage. */
#include "rewrite/run_private.h"
#include "base/sys.h"

#include <string.h>
#include <sys/syscall.h>

enum { MOST_STEPS = 4000, MOST_REPEATS = 32 };

#define DEFAULT ((uint64_t)(uintptr_t)SIG_DFL)
#define IGNORE  ((uint64_t)(uintptr_t)SIG_IGN)

/* --- dispositions --- */

static bool is_ours(int signo, const jit_action *a)
{
    if (signo == SIGTRAP) return true; /* steps */
    if (a->handler == IGNORE) return false;
    return a->handler != DEFAULT || (jit_kills_by_default(signo) && jit.pid != 1);
}

/* jit_native.install. A fatal one may be for a stack that is used up: it takes the alternate stack. */
void rewrite_install(int signo, const jit_action *a)
{
    jit_action k = *a;
    if (is_ours(signo, a)) {
        bool handled = a->handler != DEFAULT && a->handler != IGNORE;
        uint64_t kept = SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT | SA_NODEFER | SA_ONSTACK;
        k.handler = (uint64_t)(uintptr_t)rewrite_signal_entry;
        k.flags = SA_SIGINFO | SA_RESTORER | (a->flags & kept);
        if (!handled) k.flags |= SA_ONSTACK;
        if (!handled) k.mask = ~JIT_FAULTS;
        if (!(a->flags & SA_RESTORER) || !a->restorer)
            k.restorer = (uint64_t)(uintptr_t)jit_signal_restorer;
    }
    sys_call4(SYS_rt_sigaction, signo, (long)&k, 0, sizeof k.mask);
}

/* Without the lock: other signals may come at any moment in here, and find their own way to this. A change
 * by another thread at the same time may be seen in part; by this thread's own call it cannot be. */
static jit_action take_action(jit_thread *t, int signo)
{
    jit_action *at = &t->signals->action[signo], a = *at;
    if (!(a.flags & SA_RESETHAND) || a.handler == IGNORE || a.handler == DEFAULT) return a;
    uint64_t handler = a.handler;
    if (__atomic_compare_exchange_n(&at->handler, &handler, DEFAULT, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        rewrite_install(signo, at);
    return a;
}

/* --- death --- */

typedef struct death {
    jit_thread *t;
    int signo;
} death;

static void end_of_tool(void *arg)
{
    death *d = arg;
    d->t->where = JIT_IN_RUNTIME;
    jit_process_end(d->t, 0, d->signo);
    d->t->where = JIT_IN_CACHE;
}

static void die(jit_thread *t, int signo, bool fault)
{
    death d = {t, signo};
    jit_kernel_mask_all();
    if (!t->is_vfork_child) rewrite_on_tool_stack(t, end_of_tool, &d);
    jit_action by_default = {0};
    sys_call4(SYS_rt_sigaction, signo, (long)&by_default, 0, sizeof by_default.mask);
    if (fault && signo != SIGTRAP && signo != SIGSYS) return; /* it happens again */
    jit_kernel_mask_set(~JIT_BIT(signo));
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
    sys_call1(SYS_exit_group, 128 + signo);
}

/* --- the tool's callback --- */

typedef struct notice {
    jit_thread *t;
    int signo;
    const siginfo_t *info;
} notice;

static void tell_client(void *arg)
{
    notice *n = arg;
    n->t->where = JIT_IN_RUNTIME;
    jit.client.signal(jit.client.arg, n->t, n->signo, n->info, &n->t->ctx);
    n->t->where = JIT_IN_CACHE;
}

static void notify(jit_thread *t, int signo, const siginfo_t *info, void *uc)
{
    if (!jit.client.signal) return;
    uint64_t before = jit_kernel_mask_all();
    notice n = {t, signo, info};
    weave_context kept = t->ctx;
    jit_uc_context(uc, t, 0, &t->ctx);
    t->ctx.pc = rewrite_original(t->ctx.pc);
    rewrite_on_tool_stack(t, tell_client, &n);
    t->ctx = kept;
    jit_kernel_mask_set(before);
}

/* --- delivery --- */

static bool in_gate(uint64_t pc)
{
    return pc >= (uint64_t)(uintptr_t)rewrite_gate_begin && pc < (uint64_t)(uintptr_t)rewrite_gate_end;
}

typedef struct kept { /* what interrupted code may have in the thread's frame */
    uint64_t words[(offsetof(weave_frame, tool_fs_base) - offsetof(weave_frame, slot)) / 8];
    uint64_t resume;
} kept;

static void keep(const jit_thread *t, kept *k)
{
    memcpy(k->words, t->frame.slot, sizeof k->words);
    k->resume = t->ctx.pc;
}

static void put_back(jit_thread *t, const kept *k)
{
    memcpy(t->frame.slot, k->words, sizeof k->words);
    t->ctx.pc = k->resume;
}

typedef void handler_function(int, siginfo_t *, void *);

/* Code that was interrupted between a snippet's use of vector registers and their return has them in the
 * frame as well. */
__attribute__((noinline)) static void call_in_moved_code(jit_thread *t, handler_function *f, int signo,
                                                         siginfo_t *info, void *uc)
{
    uint8_t vectors[sizeof t->frame.vec_save];
    kept k;
    keep(t, &k);
    memcpy(vectors, t->frame.vec_save, sizeof vectors);
    f(signo, info, uc);
    put_back(t, &k);
    memcpy(t->frame.vec_save, vectors, sizeof vectors);
}

__attribute__((noinline)) static void call_in_gate(jit_thread *t, handler_function *f, int signo,
                                                   siginfo_t *info, void *uc)
{
    kept k;
    keep(t, &k);
    f(signo, info, uc);
    put_back(t, &k);
}

static bool is_clean(uint64_t pc)
{
    if (in_gate(pc)) return pc == (uint64_t)(uintptr_t)rewrite_gate_begin;
    const run_image *i = rewrite_moved_at(pc);
    return !i || rewrite_is_block_start(i, pc);
}

/* Answers the program's handler if it is to be jumped to, else 0. */
static uint64_t deliver(jit_thread *t, int signo, siginfo_t *info, void *uc, bool fault)
{
    uint64_t pc = jit_uc_pc(uc);
    jit_action a = take_action(t, signo);
    if (fault && a.handler == IGNORE) a.handler = DEFAULT;
    if (a.handler == IGNORE) return 0;
    notify(t, signo, info, uc);
    if (a.handler == DEFAULT) {
        if (fault || jit_kills_by_default(signo)) die(t, signo, fault);
        return 0;
    }
    handler_function *f = (handler_function *)(uintptr_t)a.handler;
    if (is_clean(pc)) return a.handler;
    if (in_gate(pc)) call_in_gate(t, f, signo, info, uc);
    else call_in_moved_code(t, f, signo, info, uc);
    return 0;
}

/* --- waiting --- */

/* Stays with the kernel until the thread's mask allows it again. */
static void postpone(const siginfo_t *info, void *uc)
{
    *jit_uc_mask(uc) |= JIT_BIT(info->si_signo);
    jit_signal_send_back(info);
}

static void end_wait(jit_thread *t, void *uc, bool forced)
{
    t->pending.present = false;
    t->native_forced = forced;
    *jit_uc_mask(uc) = t->pending.mask;
    rewrite_uc_step(uc, false);
    jit_signal_send_back(&t->pending.info); /* blocked until the return from here */
}

/* On to where the signal can be delivered. */
static void go_on(jit_thread *t, void *uc)
{
    uint64_t pc = jit_uc_pc(uc);
    bool moved = rewrite_moved_at(pc);
    if (t->frame.in_tool && !moved) { /* the routine is left to run to its return */
        uint64_t *ret = (uint64_t *)t->frame.tool_stack - t->frame.in_tool;
        rewrite_uc_step(uc, false);
        if (!rewrite_moved_at(*ret)) return;
        t->leave_arg = *ret;
        *ret = (uint64_t)(uintptr_t)rewrite_after_routine;
        return;
    }
    bool repeats = pc == t->native_last;
    t->native_steps += repeats ? MOST_STEPS / MOST_REPEATS : 1;
    t->native_last = pc;
    if (!t->frame.in_tool && is_clean(pc)) end_wait(t, uc, false);
    else if (!t->frame.in_tool && (t->native_steps > MOST_STEPS || rewrite_is_syscall(pc)))
        end_wait(t, uc, true);
    else rewrite_uc_step(uc, true);
}

static bool must_wait(const jit_thread *t, uint64_t pc)
{
    if (t->native_forced) return false;
    return t->frame.in_tool || !(in_gate(pc) || is_clean(pc));
}

static void begin_wait(jit_thread *t, const siginfo_t *info, void *uc)
{
    t->pending.info = *info;
    t->pending.mask = *jit_uc_mask(uc);
    t->pending.present = true;
    t->native_steps = 0;
    t->native_last = 0;
    *jit_uc_mask(uc) = ~JIT_FAULTS;
    go_on(t, uc);
}

/* A step faults. Its handler may never return: what waits is sent again now, under the mask that the fault's
 * handler would have run with natively. */
static void fault_comes_first(jit_thread *t, int signo, void *uc)
{
    const jit_action *a = &t->signals->action[signo];
    uint64_t mask = t->pending.mask | a->mask | (a->flags & SA_NODEFER ? 0 : JIT_BIT(signo));
    end_wait(t, uc, true);
    jit_kernel_mask_set(mask);
}

/* --- the whole --- */

/* A thread that Inlay does not know: started by a call that could not be patched. */
static uint64_t deliver_elsewhere(int signo, bool fault)
{
    jit_action a = jit.signals ? jit.signals->action[signo] : (jit_action){0};
    if (a.handler != DEFAULT && a.handler != IGNORE) return a.handler;
    jit_action by_default = {0};
    sys_call4(SYS_rt_sigaction, signo, (long)&by_default, 0, sizeof by_default.mask);
    if (!fault) sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
    return 0;
}

static bool is_page_fault(int signo) { return signo == SIGSEGV || signo == SIGBUS; }

static uint64_t in_runtime(jit_thread *t, int signo, const siginfo_t *info, void *uc, bool fault)
{
    uint64_t pc = jit_uc_pc(uc);
    if (!fault) {
        postpone(info, uc);
    } else if (is_page_fault(signo) && pc == (uint64_t)(uintptr_t)jit_safe_copy_insn) {
        jit_uc_set_pc(uc, (uint64_t)(uintptr_t)jit_safe_copy_done);
    } else {
        const char *where = t->frame.in_tool ? "the tool's code" : "Inlay's runtime";
        jit_signal_die_of_bug(where, signo, pc, (uint64_t)(uintptr_t)info->si_addr);
    }
    return 0;
}

/* Called by rewrite_signal_entry; `t` is NULL in a thread without a block. */
uint64_t rewrite_deliver(int signo, siginfo_t *info, void *uc, jit_thread *t)
{
    bool fault = jit_signal_is_fault(signo, info);
    if (!t) return deliver_elsewhere(signo, fault);
    if (t->where == JIT_IN_RUNTIME) return in_runtime(t, signo, info, uc, fault);
    if (!rewrite_is_step(info)) rewrite_settle(t, uc);
    if (rewrite_is_step(info) && (t->pending.present || t->native_stepped)) {
        t->native_stepped = t->pending.present;
        rewrite_uc_step(uc, false);
        if (t->pending.present) go_on(t, uc);
        return 0;
    }
    if (t->frame.in_tool && fault) return in_runtime(t, signo, info, uc, true);
    if (fault && t->pending.present) fault_comes_first(t, signo, uc);
    if (!fault && t->pending.present) {
        postpone(info, uc);
        return 0;
    }
    if (!fault && must_wait(t, jit_uc_pc(uc))) {
        begin_wait(t, info, uc);
        return 0;
    }
    t->native_forced = false;
    return deliver(t, signo, info, uc, fault);
}
