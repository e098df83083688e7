/* Signals of a rewritten program. Masks, alternate stacks, frames and sigreturn are the kernel's; only the
 * actions are virtual: the kernel has rewrite_signal_entry for each signal that the program handles or that
 * would kill it. What is interrupted decides:
 *
 *   code that is not rewritten     the program's handler is jumped to, as if the kernel had called it
 *   moved code                     the same, with a frame that shows the program's own state (<isa>/frames.c)
 *   a snippet, a signal sent       steps are made, everything blocked, to the next instruction of the
 *                                  program; there the signal is sent again
 *   an analysis routine            the same, from its return on
 *   the runtime                    only faults arrive there: an error of Inlay's, or one of a copy from
 *                                  the program's memory; a sent one waits, blocked
 *   another signal's way to here   the program's handler is jumped to, and what that signal is still to find in
 *                                  the slots comes back at its return; if that one will wait, so does this
 *
 * A signal that kills runs the end of the tool first, then the default action: at a fault by returning to
 * the instruction, so that a core shows it.
 *
 * Runs with the FS base of what was interrupted: nothing here uses thread-local storage. */
#include "rewrite/run_private.h"
#include "base/sys.h"
#include "jit/confine.h"
#include "jit/x86_64/abi.h"

#include <errno.h>
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

/* Does the way back from a handler come by the gate? Code of the usual form does not if it is still whole. */
static bool is_gated(uint64_t restorer)
{
    static const uint8_t short_form[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05},
                         long_form[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    uint8_t code[sizeof long_form];
    for (int jumps = 0; jumps < 4; jumps++) {
        int32_t distance;
        if (!jit_read(code, restorer, sizeof code)) return false;
        if (code[0] != 0xe9 && code[0] != 0xeb) break;
        memcpy(&distance, code + 1, sizeof distance);
        restorer += code[0] == 0xe9 ? 5 + (uint64_t)(int64_t)distance : 2 + (uint64_t)(int8_t)code[1];
    }
    return memcmp(code, short_form, sizeof short_form) && memcmp(code, long_form, sizeof long_form);
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
        if (!(a->flags & SA_RESTORER) || !handled || !is_gated(a->restorer))
            k.restorer = (uint64_t)(uintptr_t)rewrite_restorer;
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

/* `c`: the program's context. */
static void notify(jit_thread *t, int signo, const siginfo_t *info, const weave_context *c)
{
    if (!jit.client.signal) return;
    uint64_t before = jit_kernel_mask_all();
    notice n = {t, signo, info};
    weave_context kept = t->ctx;
    t->ctx = *c;
    t->ctx.pc = rewrite_original(c->pc);
    rewrite_on_tool_stack(t, tell_client, &n);
    t->ctx = kept;
    jit_kernel_mask_set(before);
}

/* --- delivery --- */

bool rewrite_in_gate(uint64_t pc)
{
    return pc >= (uint64_t)(uintptr_t)rewrite_gate_begin && pc < (uint64_t)(uintptr_t)rewrite_gate_end;
}

/* Where nothing of the tool's is at work: is a signal on its way through here? */
bool rewrite_in_delivery(uint64_t pc)
{
    return pc >= jit.start.tool_low && pc < jit.start.tool_high && !rewrite_in_gate(pc);
}

/* Two signals at once: the kernel lets the second in where the first one begins. */
static bool is_arriving(uint64_t pc)
{
    return pc >= (uint64_t)(uintptr_t)rewrite_signal_entry && pc < (uint64_t)(uintptr_t)rewrite_signal_entered;
}

/* In the gate, while the kernel has Inlay's mask, which lets the faults in: is a sent signal of their kind one that the
 * program blocks? */
static bool is_blocked_in_gate(const jit_thread *t, int signo, uint64_t pc)
{
    static const struct {
        const char *from, *to;
    } ours[] = {{rewrite_gate_blocked, rewrite_leave_allowed},
                {(const char *)rewrite_gate_pass, rewrite_pass_allowed},
                {(const char *)rewrite_gate_call, rewrite_call_allowed},
                {rewrite_called_blocked, rewrite_gate_end}};
    if (!(t->native_mask & JIT_BIT(signo))) return false;
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (pc >= (uint64_t)(uintptr_t)ours[i].from && pc < (uint64_t)(uintptr_t)ours[i].to) return true;
    return false;
}

static void locate(jit_thread *t, void *uc, const siginfo_t *info, bool fault, rewrite_where *at, weave_context *c)
{
    unsigned back = fault ? rewrite_fault_back(info) : 0;
    jit_uc_context(uc, t, 0, c);
    rewrite_locate(c->pc, c->gpr[JIT_RCX], back, fault && !rewrite_is_step(info), at);
    if (back && at->image) at->pc = info->si_signo == SIGTRAP ? jit_after_trap(at->pc) : at->pc + back;
    at->is_fault = fault;
    jit_uc_unspill(t, c, at->state.spilled, at->state.flags_saved);
    c->pc = at->pc;
}

static rewrite_jump deliver(jit_thread *t, int signo, siginfo_t *info, void *uc, uint64_t frame, bool fault)
{
    rewrite_jump none = {0, 0}, to;
    jit_action a = take_action(t, signo);
    if (fault && a.handler == IGNORE) a.handler = DEFAULT;
    if (a.handler == IGNORE) return none;
    rewrite_where at;
    weave_context c;
    locate(t, uc, info, fault, &at, &c);
    if (fault && signo == SIGSYS) info->si_call_addr = (void *)(uintptr_t)c.pc; /* not where it was made */
    bool leaves = at.place && (a.handler != DEFAULT || fault || jit_kills_by_default(signo));
    if (leaves) rewrite_leave_run(t, at.place, at.before);
    notify(t, signo, info, &c);
    if (a.handler == DEFAULT) {
        if (fault || jit_kills_by_default(signo)) die(t, signo, fault);
        return none;
    }
    to = (rewrite_jump){a.handler, rewrite_frame_show(t, frame, &at, &c)};
    if (!to.sp) die(t, SIGSEGV, false);
    return to;
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
    jit_hung_end(t);
    t->pending.present = false;
    t->native_forced = forced;
    *jit_uc_mask(uc) = t->pending.mask;
    rewrite_uc_step(uc, false);
    jit_signal_send_back(&t->pending.info); /* blocked until the return from here */
}

/* Does a sent signal find the program's state here? */
static bool is_clear(uint64_t pc)
{
    rewrite_where at;
    rewrite_locate(pc, 0, 0, false, &at);
    return at.known;
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
    if (!t->frame.in_tool && is_clear(pc)) end_wait(t, uc, false);
    else if (!t->frame.in_tool && (t->native_steps > MOST_STEPS || rewrite_is_syscall(pc))) end_wait(t, uc, true);
    else rewrite_uc_step(uc, true);
}

static bool must_wait(const jit_thread *t, uint64_t pc)
{
    if (t->native_forced) return false;
    return t->frame.in_tool || !(rewrite_in_gate(pc) || is_clear(pc));
}

static void begin_wait(jit_thread *t, const siginfo_t *info, void *uc)
{
    t->pending.info = *info;
    t->pending.mask = *jit_uc_mask(uc);
    t->pending.present = true;
    t->native_steps = 0;
    t->native_last = 0;
    *jit_uc_mask(uc) = ~JIT_FAULTS;
    if (t->frame.in_tool) jit_hung_watch(t, jit_uc_mask(uc));
    go_on(t, uc);
}

/* A step faults. Its handler may never return: what waits is sent again now, to come under the mask that the
 * fault's handler runs with natively. Answers that mask. */
static uint64_t fault_comes_first(jit_thread *t, int signo, void *uc)
{
    const jit_action *a = &t->signals->action[signo];
    uint64_t mask = t->pending.mask | a->mask | (a->flags & SA_NODEFER ? 0 : JIT_BIT(signo));
    end_wait(t, uc, false);
    return mask;
}

/* --- the whole --- */

/* A thread that Inlay does not know: started by a call that could not be patched. */
static rewrite_jump deliver_elsewhere(int signo, uint64_t frame, bool fault)
{
    jit_action a = jit.signals ? jit.signals->action[signo] : (jit_action){0};
    if (a.handler != DEFAULT && a.handler != IGNORE) return (rewrite_jump){a.handler, frame};
    jit_action by_default = {0};
    sys_call4(SYS_rt_sigaction, signo, (long)&by_default, 0, sizeof by_default.mask);
    if (!fault) sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
    return (rewrite_jump){0, 0};
}

/* A call of Inlay's or of the tool's own that a filter, which was there before them, has trapped: it fails. */
static bool own_call_failed(int signo, const siginfo_t *info, void *uc)
{
    uint64_t pc = jit_uc_pc(uc);
    if (signo != SIGSYS || info->si_code != SYS_SECCOMP || jit_is_program_call(pc)) return false;
    if (pc < jit.start.tool_low || pc >= jit.start.tool_high) return false;
    jit_uc_set_answer(uc, -ENOSYS);
    return true;
}

/* The program has made a call that the strict mode forbids. */
static void end_by_strict_mode(jit_thread *t)
{
    death d = {t, SIGKILL};
    if (!t->is_vfork_child) rewrite_on_tool_stack(t, end_of_tool, &d);
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), SIGKILL);
}

static bool is_page_fault(int signo) { return signo == SIGSEGV || signo == SIGBUS; }

static rewrite_jump in_runtime(jit_thread *t, int signo, const siginfo_t *info, void *uc, bool fault)
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
    return (rewrite_jump){0, 0};
}

/* A step of the program's own (the trap flag) that ends among snippets is none. */
static bool is_no_step(const siginfo_t *info, const void *uc)
{
    return rewrite_is_step(info) && rewrite_moved_at(jit_uc_pc(uc)) && !is_clear(jit_uc_pc(uc));
}

/* Code of Inlay's or the tool's: no instruction of the program's is there. */
static bool is_inlays(const jit_thread *t, uint64_t pc)
{
    rewrite_where at;
    if (t->where == JIT_IN_RUNTIME || t->frame.in_tool) return true;
    rewrite_locate(pc, 0, 0, true, &at);
    return rewrite_moved_at(pc) && !at.known;
}

/* An unaligned access of Inlay's is done; a signal may wait in the middle of steps. */
static rewrite_jump stepped_over(jit_thread *t, void *uc)
{
    if (t->pending.present) go_on(t, uc);
    return (rewrite_jump){0, 0};
}

/* Called by rewrite_signal_entry; `t` is NULL in a thread without a block. */
rewrite_jump rewrite_deliver(int signo, siginfo_t *info, void *uc, jit_thread *t, uint64_t frame)
{
    const rewrite_jump back = {0, 0};
    bool fault = !jit_signal_unmark(info) && jit_signal_is_fault(signo, info);
    if (fault && own_call_failed(signo, info, uc)) return back;
    if (!t) return deliver_elsewhere(signo, frame, fault);
    if (jit_stepped_over(t, signo, info, uc)) return stepped_over(t, uc);
    if (fault && is_inlays(t, jit_uc_pc(uc)) && jit_settings_fault(t, signo, uc)) return back;
    if (fault && signo == SIGSYS && jit_confine_is_strict(t)) end_by_strict_mode(t);
    if (t->where == JIT_IN_RUNTIME) return in_runtime(t, signo, info, uc, fault);
    if (!rewrite_is_step(info)) rewrite_settle(t, uc);
    if (rewrite_is_step(info) && (t->pending.present || t->native_stepped)) {
        t->native_stepped = t->pending.present;
        rewrite_uc_step(uc, false);
        if (t->pending.present) go_on(t, uc);
        return back;
    }
    if (t->frame.in_tool && fault) return in_runtime(t, signo, info, uc, true);
    if (is_no_step(info, uc)) return back;
    if (jit_hung_is_timer(info) && !t->pending.present) return back;
    if (!fault && t->pending.present && jit_hung_again(t, info, jit_uc_pc(uc), t->frame.in_tool)) return back;
    bool after_another = t->frame.in_tool && is_arriving(jit_uc_pc(uc)); /* which is about to begin to wait */
    if (!fault && (t->pending.present || after_another || is_blocked_in_gate(t, signo, jit_uc_pc(uc)))) {
        postpone(info, uc);
        return back;
    }
    if (!fault && must_wait(t, jit_uc_pc(uc))) {
        begin_wait(t, info, uc);
        return back;
    }
    bool interrupts = t->pending.present;
    uint64_t mask = interrupts ? fault_comes_first(t, signo, uc) : 0;
    t->native_forced = false;
    rewrite_jump to = deliver(t, signo, info, uc, frame, fault);
    if (interrupts && to.handler) jit_kernel_mask_set(mask);
    return to;
}
