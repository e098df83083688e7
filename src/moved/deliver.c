/* Signals of a rewritten program. Masks, frames and sigreturn are the kernel's; actions and alternate stacks are
 * virtual: the kernel has moved_signal_entry for each signal that the program handles or that would kill it, and calls
 * it on a stack of Inlay's. What is interrupted decides:
 *
 *   code that is not rewritten     the program's handler is entered, as if the kernel had called it
 *   moved code                     the same, with a frame that shows the program's own state (<isa>/frames.c)
 *   a snippet, a signal sent       steps are made, everything blocked, to the next instruction of the
 *                                  program; there the signal is sent again
 *   an analysis routine            the same, from its return on
 *   the runtime                    only faults arrive there: an error of Inlay's, or one of a copy from
 *                                  the program's memory; a sent one waits, blocked
 *
 *   another signal's way to here   a sent one waits, blocked: it comes when the other's handler begins
 *
 * A handler is entered by the kernel's way back from here, which sets its registers, its mask and its stack at once:
 * no other signal can come in between, and the program's alternate stack has nothing on it but what it has natively.
 *
 * A signal that kills runs the end of the tool first, then the default action: at a fault by returning to
 * the instruction, otherwise on the kernel's way back, so that a core shows the program.
 *
 * Runs with the FS base of what was interrupted: nothing here uses thread-local storage. */
#include "moved/private.h"
#include "base/sys.h"
#include "run/confine.h"
#include INL_ARCH_HEADER(run, abi)

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

enum { MOST_STEPS = 4000, MOST_REPEATS = 32 };

/* --- dispositions --- */

/* Faults always: steps are made by them, and copies from the program's memory end by them, whatever it ignores. */
static bool is_ours(int signo, const run_action *a)
{
    return RUN_BIT(signo) & RUN_FAULTS || run_signal_matters(signo, a);
}

static bool is_handled(const run_action *a) { return a->handler != RUN_DEFAULT && a->handler != RUN_IGNORE; }

/* Where its handler returns to: by the gate. */
static uint64_t restorer_of(const run_action *a)
{
    bool good = a->flags & SA_RESTORER && is_handled(a) && moved_returns_by_gate(a->restorer);
    return good ? a->restorer : moved_restorer_at();
}

/* run_engine.install. Faults may come while one of their kind is on its way: copies from the program's memory end by
 * them. */
void moved_install(int signo, const run_action *a)
{
    run_action k = *a;
    if (is_ours(signo, a)) {
        uint64_t kept = SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT | SA_NODEFER;
        k.handler = (uint64_t)(uintptr_t)moved_signal_entry;
        k.flags = SA_SIGINFO | SA_RESTORER | SA_ONSTACK | (a->flags & kept);
        if (RUN_BIT(signo) & RUN_FAULTS) k.flags |= SA_NODEFER;
        if (!run_signal_matters(signo, a)) k.flags |= SA_RESTART;
        k.mask = (is_handled(a) ? a->mask : ~0ull) & ~RUN_FAULTS;
        k.restorer = restorer_of(a);
    }
    sys_call4(SYS_rt_sigaction, signo, (long)&k, 0, sizeof k.mask);
}

/* Without the lock: other signals may come at any moment in here, and find their own way to this. A change
 * by another thread at the same time may be seen in part; by this thread's own call it cannot be. Each part is read
 * once: the handler that is looked at is the one that is entered. */
static run_action action_now(const run_action *at)
{
    return (run_action){__atomic_load_n(&at->handler, __ATOMIC_ACQUIRE), __atomic_load_n(&at->flags, __ATOMIC_ACQUIRE),
                        __atomic_load_n(&at->restorer, __ATOMIC_ACQUIRE), __atomic_load_n(&at->mask, __ATOMIC_ACQUIRE)};
}

static run_action take_action(run_thread *t, int signo)
{
    run_action *at = &t->signals->action[signo], a = action_now(at);
    if (!(a.flags & SA_RESETHAND) || a.handler == RUN_IGNORE || a.handler == RUN_DEFAULT) return a;
    uint64_t handler = a.handler;
    if (__atomic_compare_exchange_n(&at->handler, &handler, RUN_DEFAULT, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        moved_install(signo, at);
    return a;
}

/* --- the tool's stack --- */

typedef struct call_there {
    run_thread *t;
    void (*f)(void *);
    void *arg;
} call_there;

/* What is on the stack of signals stays as it is: frames of faults come down somewhere else. */
static void call_apart(void *arg)
{
    const call_there *call = arg;
    stack_t own = run_altstack_own(call->t), none = {.ss_flags = SS_DISABLE};
    sys_call2(SYS_sigaltstack, (long)&none, 0);
    call->f(call->arg);
    sys_call2(SYS_sigaltstack, (long)&own, 0);
}

void moved_on_tool_stack(run_thread *t, void (*f)(void *), void *arg)
{
    call_there call = {t, f, arg};
    if (run_altstack_disarms()) moved_switch_stack(t, f, arg);
    else moved_switch_stack(t, call_apart, &call);
}

/* --- death --- */

typedef struct death {
    run_thread *t;
    int signo;
} death;

static void end_of_tool(void *arg)
{
    death *d = arg;
    d->t->where = RUN_IN_RUNTIME;
    run_process_end(d->t, 0, d->signo);
    d->t->where = RUN_IN_CODE;
}

/* A fault happens again. Another one comes on the kernel's way back to the program, whose registers (`c`) a core shows
 * then. */
static void die(run_thread *t, const siginfo_t *info, uint64_t frame, const weave_context *c, bool fault)
{
    int signo = info->si_signo;
    death d = {t, signo};
    run_kernel_mask_sent();
    if (!t->is_vfork_child) moved_on_tool_stack(t, end_of_tool, &d);
    run_signal_default(signo);
    if (fault && signo != SIGTRAP && signo != SIGSYS) return;
    run_kernel_mask_all();
    if (!run_signal_send_last(t, info)) sys_call1(SYS_exit_group, 128 + signo);
    run_frame *f = (run_frame *)frame;
    moved_frame_set(f, c);
    f->mask = ~RUN_BIT(signo);
}

/* --- the tool's callback --- */

typedef struct notice {
    run_thread *t;
    int signo;
    const siginfo_t *info;
    bool delivers;
} notice;

static void tell_client(void *arg)
{
    notice *n = arg;
    n->t->where = RUN_IN_RUNTIME;
    n->delivers = run_here.client.signal(run_here.client.arg, n->t, n->signo, n->info, &n->t->ctx);
    n->t->where = RUN_IN_CODE;
}

static bool is_same(const weave_context *a, const weave_context *b)
{
    return memcmp(a->gpr, b->gpr, sizeof a->gpr) == 0 && a->flags == b->flags && a->pc == b->pc;
}

/* `c`: the program's context. False: it is not delivered; *resumes: the program goes on with what `c` is now. */
static bool notify(run_thread *t, int signo, const siginfo_t *info, weave_context *c, bool *resumes)
{
    *resumes = false;
    if (!run_here.client.signal) return true;
    uint64_t before = run_kernel_mask_sent();
    notice n = {t, signo, info, true};
    weave_context kept = t->ctx;
    t->ctx = *c;
    t->ctx.pc = moved_original((real_addr){c->pc}).at; /* what the tool knows code by */
    weave_context told = t->ctx;
    moved_on_tool_stack(t, tell_client, &n);
    *resumes = !n.delivers && !is_same(&told, &t->ctx);
    if (*resumes) *c = t->ctx;
    t->ctx = kept;
    run_kernel_mask_set(before);
    return n.delivers;
}

/* --- delivery --- */

bool moved_in_gate(uint64_t pc)
{
    return pc >= (uint64_t)(uintptr_t)moved_gate_begin && pc < (uint64_t)(uintptr_t)moved_gate_end;
}

/* Where nothing of the tool's is at work: is a signal on its way through here? */
bool moved_in_delivery(uint64_t pc)
{
    return pc >= run_here.start.tool_low && pc < run_here.start.tool_high && !moved_in_gate(pc);
}

/* In the gate, while the kernel has Inlay's mask, which lets the faults in: is a sent signal of their kind one that the
 * program blocks? */
static bool is_blocked_in_gate(const run_thread *t, int signo, uint64_t pc)
{
    static const struct {
        const char *from, *to;
    } ours[] = {{moved_gate_blocked, moved_leave_allowed},
                {(const char *)moved_gate_pass, moved_pass_allowed},
                {(const char *)moved_gate_call, moved_call_allowed},
                {moved_called_blocked, moved_gate_end}};
    if (!(moved_of(t)->mask & RUN_BIT(signo))) return false;
    for (unsigned i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (pc >= (uint64_t)(uintptr_t)ours[i].from && pc < (uint64_t)(uintptr_t)ours[i].to) return true;
    return false;
}

static void locate(run_thread *t, void *uc, const siginfo_t *info, bool fault, moved_where *at, weave_context *c)
{
    unsigned back = fault ? moved_fault_back(info, uc) : 0;
    run_uc_context(uc, t, 0, c);
    moved_locate(c->pc, c, back, fault && !moved_is_step(info), at);
    at->is_fault = fault;
    run_uc_unspill(t, c, at->state.spilled, at->state.flags_saved);
    c->pc = at->pc;
}

/* What was blocked. A call that waits under a mask of its own is interrupted under that one; the kernel has it still,
 * with what has been held back here. */
static uint64_t mask_before(void *uc, uint64_t held)
{
    uint64_t before = *run_uc_mask(uc);
    if (run_uc_answer(uc) == -EINTR) sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&before, sizeof before);
    return before & ~held;
}

static uint64_t mask_in_handler(int signo, const run_action *a, void *uc, uint64_t held)
{
    return mask_before(uc, held) | a->mask | (a->flags & SA_NODEFER ? 0 : RUN_BIT(signo));
}

/* By the kernel, or, where its frame is on the program's stack, by a jump. */
static moved_jump enter(run_thread *t, int signo, const run_action *a, void *uc, uint64_t frame, uint64_t to,
                        const weave_context *c)
{
    moved_handler h = {a->handler, restorer_of(a), mask_in_handler(signo, a, uc, moved_of(t)->held)};
    moved_frame_returns(to, &h);
    if (moved_frame_is_ours(t, frame)) {
        moved_frame_enter(t, (run_frame *)frame, to, &h, c);
        return (moved_jump){0, 0};
    }
    run_kernel_mask_set(h.mask);
    return (moved_jump){h.at, to};
}

/* Where no frame can be made for a handler the kernel raises SIGSEGV, which may have a handler with another stack. */
static bool segv_is_handled(const run_thread *t, void *uc)
{
    return is_handled(&t->signals->action[SIGSEGV]) && !(mask_before(uc, moved_of(t)->held) & RUN_BIT(SIGSEGV));
}

/* As if a handler had changed what it returns to. Counts are those of who has left. */
static void resume(run_thread *t, weave_context *c, uint64_t frame)
{
    uint64_t to = moved_at(c->pc) ? 0 : moved_onward((real_addr){c->pc}).at;
    if (to) {
        moved_enter_run(t, to, true);
        moved_fill_slots(t, c);
        c->pc = to;
    }
    moved_frame_set((run_frame *)frame, c);
}

static moved_jump deliver(run_thread *t, int signo, siginfo_t *info, void *uc, uint64_t frame, bool fault)
{
    moved_jump none = {0, 0};
    run_action a = action_now(&t->signals->action[signo]);
    if (fault && a.handler == RUN_IGNORE) a.handler = RUN_DEFAULT;
    if (!fault && !run_signal_matters(signo, &a)) return none;
    moved_where at;
    weave_context c;
    locate(t, uc, info, fault, &at, &c);
    if (fault && signo == SIGSYS) info->si_call_addr = (void *)(uintptr_t)c.pc; /* not where it was made */
    bool resumes, leaves = at.place && (a.handler != RUN_DEFAULT || fault || run_kills_by_default(signo));
    if (leaves) moved_leave_run(t, at.place, at.before);
    if (!notify(t, signo, info, &c, &resumes)) {
        if (leaves && !resumes) moved_enter_run(t, at.place, at.before);
        if (!leaves && resumes && at.place) moved_leave_run(t, at.place, at.before);
        if (resumes) resume(t, &c, frame);
        return none;
    }
    if (a.handler != RUN_DEFAULT) a = take_action(t, signo);
    if (!is_handled(&a)) { /* another thread may have changed it, or been quicker */
        if (fault || (a.handler == RUN_DEFAULT && run_kills_by_default(signo))) die(t, info, frame, &c, fault);
        else if (leaves) moved_enter_run(t, at.place, at.before);
        return none;
    }
    uint64_t to = moved_frame_show(t, frame, &a, &at, &c);
    if (!to) {
        *info = (siginfo_t){.si_signo = SIGSEGV, .si_code = SI_KERNEL};
        if (signo == SIGSEGV || !segv_is_handled(t, uc)) {
            die(t, info, frame, &c, false);
            return none;
        }
        if (leaves) moved_enter_run(t, at.place, at.before);
        return deliver(t, SIGSEGV, info, uc, frame, false);
    }
    return enter(t, signo, &a, uc, frame, to, &c);
}

/* --- waiting --- */

/* It would come at once, into here, were it not blocked until the return. */
static void send_back(run_thread *t, const siginfo_t *info)
{
    uint64_t bit = RUN_BIT(info->si_signo);
    moved_of(t)->held |= bit;
    sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&bit, 0, sizeof bit);
    run_signal_send_back(info);
}

/* Stays with the kernel until the thread's mask allows it again. */
static void postpone(run_thread *t, const siginfo_t *info, void *uc)
{
    *run_uc_mask(uc) |= RUN_BIT(info->si_signo);
    send_back(t, info);
}

static void end_wait(run_thread *t, void *uc, bool forced)
{
    run_hung_end(t);
    t->pending.present = false;
    moved_of(t)->forced = forced;
    *run_uc_mask(uc) = t->pending.mask;
    moved_uc_step(t, uc, false);
    send_back(t, &t->pending.info);
}

/* Does a sent signal find the program's state here? Not in what stands in for a finder (finders.c), nor on the way
 * there, in code that is new and nobody's. */
static bool is_clear(uint64_t pc)
{
    moved_where at;
    moved_locate(pc, NULL, 0, false, &at);
    if (!at.known || moved_in_delivery(pc)) return false;
    return !moved_is_live() || moved_at(pc) || at.pc != pc || !moved_is_new(pc);
}

/* Where the tool may be taken out while the handler runs, it must also be one that old code can go on with. */
static bool can_leave(run_thread *t, const void *uc)
{
    moved_where at;
    weave_context c;
    if (!is_clear(run_uc_pc(uc))) return false;
    if (!moved_is_live() || !moved_at(run_uc_pc(uc))) return true;
    run_uc_context(uc, t, 0, &c);
    moved_locate(c.pc, &c, 0, false, &at);
    run_uc_unspill(t, &c, at.state.spilled, at.state.flags_saved);
    c.pc = at.pc;
    return !moved_is_about_to_jump(&c);
}

/* It cannot be made: the signal is delivered here and now, or behind the next call of the tool's. */
static void no_step(run_thread *t, void *uc)
{
    if (t->frame.in_tool) moved_stop_after_routine(t);
    else end_wait(t, uc, true);
}

/* On to where the signal can be delivered. */
static void go_on(run_thread *t, void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    bool moved = moved_at(pc);
    if (t->frame.in_tool && !moved) { /* the routine is left to run to its return */
        moved_uc_step(t, uc, false);
        moved_stop_after_routine(t);
        return;
    }
    bool repeats = pc == moved_of(t)->last;
    moved_of(t)->steps += repeats ? MOST_STEPS / MOST_REPEATS : 1;
    moved_of(t)->last = pc;
    if (!t->frame.in_tool && can_leave(t, uc)) end_wait(t, uc, false);
    else if (!t->frame.in_tool && (moved_of(t)->steps > MOST_STEPS || moved_is_syscall(pc))) end_wait(t, uc, true);
    else if (!moved_uc_step(t, uc, true)) no_step(t, uc);
}

static bool must_wait(run_thread *t, const void *uc)
{
    if (moved_of(t)->forced) return false;
    return t->frame.in_tool || !(moved_in_gate(run_uc_pc(uc)) || can_leave(t, uc));
}

static void begin_wait(run_thread *t, const siginfo_t *info, void *uc)
{
    t->pending.info = *info;
    t->pending.mask = *run_uc_mask(uc);
    t->pending.present = true;
    moved_of(t)->steps = 0;
    moved_of(t)->last = 0;
    *run_uc_mask(uc) = ~RUN_FAULTS;
    if (t->frame.in_tool) run_hung_watch(t, run_uc_mask(uc));
    go_on(t, uc);
}

/* --- the whole --- */

/* A thread that Inlay does not know: started by a call that could not be patched. */
static moved_jump deliver_elsewhere(int signo, void *uc, uint64_t frame, bool fault)
{
    run_action a = run_here.signals ? action_now(&run_here.signals->action[signo]) : (run_action){0};
    if (is_handled(&a)) {
        run_kernel_mask_set(mask_in_handler(signo, &a, uc, 0));
        return (moved_jump){a.handler, frame};
    }
    if (!fault && !run_signal_matters(signo, &a)) return (moved_jump){0, 0};
    run_signal_default(signo);
    if (!fault) run_signal_self(signo);
    return (moved_jump){0, 0};
}

/* The program has made a call that the strict mode forbids. */
static void end_by_strict_mode(run_thread *t)
{
    death d = {t, SIGKILL};
    if (!t->is_vfork_child) moved_on_tool_stack(t, end_of_tool, &d);
    run_signal_self(SIGKILL);
}

static bool is_page_fault(int signo) { return signo == SIGSEGV || signo == SIGBUS; }
/* Faults that inserted code can raise. */
static bool is_snippets(int signo) { return is_page_fault(signo) || signo == SIGFPE || signo == SIGILL; }

/* Where inserted code stands at an instruction of the program's: not at the instruction itself. */
static bool in_snippet(const run_thread *t, uint64_t pc, uint64_t *point, uint64_t *routine)
{
    moved_where at;
    *routine = 0;
    if (t->where != RUN_IN_CODE || t->frame.in_tool || !moved_at(pc)) return false;
    if (moved_inlined(pc, point, routine)) return true;
    moved_locate(pc, 0, 0, true, &at);
    *point = at.pc;
    return !at.known;
}

/* The fault is not the program's. The tool's thread-local storage is put in for the while. */
static void die_of_bug(run_thread *t, const siginfo_t *info, const void *uc)
{
    run_crash c = {.where = t->frame.in_tool ? RUN_CRASH_ROUTINE : RUN_CRASH_RUNTIME,
                   .signo = info->si_signo,
                   .code = info->si_code,
                   .addr = (uint64_t)(uintptr_t)info->si_addr,
                   .uc = uc,
                   .waited = -1};
    uint64_t tls_base = run_tls_base();
    if (in_snippet(t, run_uc_pc(uc), &c.point, &c.routine)) c.where = RUN_CRASH_SNIPPET;
    run_set_tls_base(t->frame.tool_tls_base);
    run_signal_die_of_bug(t, &c);
    run_set_tls_base(tls_base);
}

static bool hung_again(run_thread *t, const siginfo_t *info, const void *uc)
{
    uint64_t tls_base = run_tls_base();
    run_set_tls_base(t->frame.tool_tls_base);
    bool seen = run_hung_again(t, info, uc, t->frame.in_tool);
    run_set_tls_base(tls_base);
    return seen;
}

static bool arrived_in_callback(run_thread *t, const siginfo_t *info, void *uc)
{
    uint64_t tls_base = run_tls_base();
    run_set_tls_base(t->frame.tool_tls_base);
    bool seen = t->where == RUN_IN_RUNTIME && run_hung_arrived(t, info, uc);
    run_set_tls_base(tls_base);
    return seen;
}

/* Nobody but Inlay is there: a sent one waits, and only copies from the program's memory may fault. */
static moved_jump put_off(run_thread *t, const siginfo_t *info, void *uc, bool fault)
{
    if (!fault) {
        postpone(t, info, uc);
    } else if (is_page_fault(info->si_signo) && run_in_safe_copy(run_uc_pc(uc))) {
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_safe_copy_done);
    } else {
        die_of_bug(t, info, uc);
    }
    return (moved_jump){0, 0};
}

/* It comes before the exec: that is given up, the signal delivered in the gate, and the call made anew (gate.c).
 * Blocked until then, it would stay so in the new program. */
static moved_jump before_exec(run_thread *t, const siginfo_t *info, void *uc)
{
    const char *pc = (const char *)(uintptr_t)run_uc_pc(uc);
    t->pending.info = *info;
    t->pending.present = true;
    *run_uc_mask(uc) = ~RUN_FAULTS;
    if (pc >= run_blocking_check && pc <= run_blocking_insn)
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_blocking_interrupted);
    return (moved_jump){0, 0};
}

static moved_jump in_runtime(run_thread *t, const siginfo_t *info, void *uc, bool fault)
{
    if (!fault && t->execs && !t->pending.present) return before_exec(t, info, uc);
    if (!fault && arrived_in_callback(t, info, uc)) return (moved_jump){0, 0};
    return put_off(t, info, uc, fault);
}

/* Code of Inlay's or the tool's: no instruction of the program's is there. */
static bool is_inlays(const run_thread *t, uint64_t pc)
{
    moved_where at;
    if (t->where == RUN_IN_RUNTIME || t->frame.in_tool) return true;
    moved_locate(pc, NULL, 0, true, &at);
    return moved_at(pc) && !at.known;
}

/* An unaligned access of Inlay's is done; a signal may wait in the middle of steps. */
static moved_jump stepped_over(run_thread *t, void *uc)
{
    if (t->pending.present) go_on(t, uc);
    return (moved_jump){0, 0};
}

static moved_jump arrived(run_thread *t, int signo, siginfo_t *info, void *uc, uint64_t frame, bool fault,
                          moved_stepped step)
{
    const moved_jump back = {0, 0};
    if (run_stepped_over(t, signo, info, uc)) return stepped_over(t, uc);
    if (step == MOVED_NO_STEP && moved_is_step(info) && moved_is_no_step(t, uc)) return back;
    bool second = moved_frame_is_ours(t, run_uc_sp(uc));
    if (fault && (second || is_inlays(t, run_uc_pc(uc))) && run_settings_fault(t, signo, uc)) return back;
    if (second) return put_off(t, info, uc, fault); /* the stack is in use: another is on its way */
    if (fault && signo == SIGSYS && run_confine_is_strict(t)) end_by_strict_mode(t);
    if (t->where == RUN_IN_RUNTIME) return in_runtime(t, info, uc, fault);
    if (!moved_is_step(info)) moved_settle(t, uc);
    if (step == MOVED_STEP_ENDED) {
        moved_of(t)->stepped = t->pending.present;
        moved_uc_step(t, uc, false);
        if (t->pending.present) go_on(t, uc);
        return back;
    }
    uint64_t point, routine;
    if (fault && (t->frame.in_tool || (is_snippets(signo) && in_snippet(t, run_uc_pc(uc), &point, &routine))))
        return in_runtime(t, info, uc, true);
    if (run_hung_is_timer(info) && !t->pending.present) return back;
    if (!fault && t->pending.present && hung_again(t, info, uc)) return back;
    if (!fault && (t->pending.present || is_blocked_in_gate(t, signo, run_uc_pc(uc)))) {
        postpone(t, info, uc);
        return back;
    }
    if (!fault && must_wait(t, uc)) {
        begin_wait(t, info, uc);
        return back;
    }
    /* A step faults, whose handler may never return: what waits is sent again now, to come under the handler's mask. */
    if (t->pending.present) end_wait(t, uc, false);
    moved_of(t)->forced = false;
    return deliver(t, signo, info, uc, frame, fault);
}

/* Called by moved_signal_entry; `t` is NULL in a thread without a block. */
moved_jump moved_deliver(int signo, siginfo_t *info, void *uc, run_thread *t, uint64_t frame)
{
    bool fault = !run_signal_unmark(info) && run_signal_is_fault(signo, info);
    if (fault && run_own_call_failed(signo, info, uc)) return (moved_jump){0, 0};
    if (!t) return deliver_elsewhere(signo, uc, frame, fault);
    if (t->worker && !fault) {
        run_worker_pass_on(info, uc);
        return (moved_jump){0, 0};
    }
    moved_stepped step = moved_step_ended(t, info, uc);
    moved_jump to = arrived(t, signo, info, uc, frame, fault, step);
    if (step == MOVED_STEP_CUT && !to.handler && t->pending.present) go_on(t, uc);
    if (!moved_frame_is_ours(t, run_uc_sp(uc))) moved_of(t)->held = 0;
    return to;
}
