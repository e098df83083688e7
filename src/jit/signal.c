/* Inlay's handler: runs on the thread's own signal stack, with all but the faults blocked, at any
 * instruction of translated code, of an analysis routine or of the runtime. It takes no lock (but for
 * what jit_memory_write_fault takes care of itself) and decides one thing: how the thread gets to
 * a boundary where the signal can be delivered.
 *
 *   sleeping call, not started       it answers RUN_RESTART; the call starts anew after delivery
 *   gate, call not started           the context is that of the system call instruction: go there
 *   on the way into the cache        once more from the top, where the pending signal is seen
 *   in the runtime otherwise         nothing: the dispatcher looks before it enters the cache
 *   in translated code               the fragment's direct exits lead to the dispatcher now, indirect
 *                                    branches hit a table that faults: a boundary is near
 *
 * A fault in translated code is the program's own, and its context is known exactly from the
 * fragment's map; or it is one that Inlay arranged.
 */
#include "run/confine.h"
#include "jit/core.h"
#include "run/kernel.h"
#include "weave/isa.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

static bool between(uint64_t pc, const char *from, const char *to)
{
    return pc >= (uint64_t)(uintptr_t)from && pc <= (uint64_t)(uintptr_t)to;
}

static bool is_at(uint64_t pc, const char *label) { return pc == (uint64_t)(uintptr_t)label; }

/* The thread goes to the dispatcher with `leave`; t->ctx has been filled. */
static void redispatch(run_thread *t, void *uc, uint64_t leave)
{
    t->leave = leave;
    jit_of(t)->in_gate = 0;
    t->where = RUN_IN_RUNTIME;
    run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_redispatch);
    /* Not the program's: there are kernels that cannot return with an address that no memory can have. */
    run_uc_set_sp(uc, t->runtime_stack);
}

/* --- signals that were sent, and other versions of the code --- */

/* Of Inlay's own. */
static bool in_handler(const run_thread *t, const void *uc)
{
    return run_uc_sp(uc) - (uint64_t)(uintptr_t)t->signal_stack < t->signal_stack_size;
}

/* No handler of the program's will run: a call that the kernel ends with EINTR for one is made anew. */
static bool interrupted_by_nudge(run_thread *t, void *uc, uint64_t tls_base)
{
    uint64_t pc = run_uc_pc(uc);
    if (run_uc_answer(uc) != -EINTR) return false;
    if (is_at(pc, run_blocking_after)) {
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_blocking_interrupted);
        return true;
    }
    if (t->where != RUN_IN_CODE || !is_at(pc, jit_gate_after)) return false;
    uint64_t args[6];
    jit_uc_gate_context(uc, t, tls_base, jit_of(t)->syscall_resume - RUN_SYSCALL_BYTES, &t->ctx);
    run_set_answer(&t->ctx, run_call_made(t, args)); /* its number is where its answer would be */
    jit_join_restart(t);
    weave_context behind = t->ctx;
    behind.pc += RUN_SYSCALL_BYTES;
    run_wait_interrupted(t, &behind);
    redispatch(t, uc, RUN_LEAVE_SIGNAL);
    return true;
}

static jit_fragment *running_fragment(run_thread *t, uint64_t pc)
{
    jit_fragment *f = jit_fragment_of_cache(pc);
    if (f || !t->frame.in_tool) return f;
    return jit_fragment_of_cache(((uint64_t *)t->frame.tool_stack)[-(int64_t)t->frame.in_tool]);
}

static void stop_at_next_boundary(run_thread *t, uint64_t pc)
{
    jit_fragment *f = running_fragment(t, pc);
    jit_of(t)->unlinked = f;
    if (f) jit_unlink_exits(f);
    jit_ibl_block(t);
}

/* From an analysis routine: its fragment is left as for a signal. From a callback the dispatcher is near. */
void jit_switch_version(run_thread *t, unsigned version)
{
    uint64_t mask = run_kernel_mask_faults(); /* a signal's handler would do the same */
    jit_of(t)->wanted = version;
    if (t->where == RUN_IN_CODE && t->frame.in_tool && !jit_of(t)->unlinked) stop_at_next_boundary(t, 0);
    run_kernel_mask_set(mask);
}

static void arrived(run_thread *t, const siginfo_t *info, void *uc, uint64_t tls_base)
{
    uint64_t pc = run_uc_pc(uc);
    bool in_tool = t->frame.in_tool || t->where == RUN_IN_RUNTIME;
    if (t->pending.present && run_hung_again(t, info, uc, in_tool)) return;
    if (t->pending.present && !(RUN_BIT(info->si_signo) & RUN_FAULTS)) {
        /* A sent one of the fault kind, which nothing holds back, came just when the program's mask was set again. */
        t->mask_is_ours = true;
        *run_uc_mask(uc) |= ~RUN_FAULTS;
        run_signal_send_back(info);
        return;
    }
    if (t->pending.present) { /* one of the fault kind, and it is no fault */
        int i = __builtin_popcountll(RUN_FAULTS & (RUN_BIT(info->si_signo) - 1));
        t->held[i] = *info;
        __atomic_fetch_or(&t->held_set, RUN_BIT(info->si_signo), __ATOMIC_SEQ_CST);
        return;
    }
    t->pending.info = *info;
    t->pending.temporary = t->temp_active && is_at(pc, run_blocking_after);
    t->pending.mask = t->pending.temporary ? t->temp_mask : t->sigmask;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    t->pending.present = true;
    t->mask_is_ours = true;
    *run_uc_mask(uc) |= ~RUN_FAULTS;
    bool blocked = t->pending.temporary && t->pending.mask & RUN_BIT(info->si_signo); /* SIGSYS, which nudges are */
    if (run_signal_is_nudge(info) || blocked) {
        if (interrupted_by_nudge(t, uc, tls_base)) return;
    } else if (in_tool) {
        run_hung_watch(t, run_uc_mask(uc));
    }

    if (between(pc, run_blocking_check, run_blocking_insn)) {
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_blocking_interrupted);
    } else if (between(pc, run_enter_begin, run_enter_end)) {
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_enter_begin);
    } else if (t->where == RUN_IN_RUNTIME) {
        return;
    } else if (between(pc, jit_gate_check, jit_gate_syscall)) {
        jit_uc_gate_context(uc, t, tls_base, jit_of(t)->syscall_resume - RUN_SYSCALL_BYTES, &t->ctx);
        redispatch(t, uc, RUN_LEAVE_SIGNAL);
    } else {
        stop_at_next_boundary(t, pc);
    }
}

/* --- faults --- */

static bool is_page_fault(int signo) { return signo == SIGSEGV || signo == SIGBUS; }

static void subtract(void *thread, uint32_t counter, int64_t amount)
{
    run_thread *t = thread;
    if (weave_is_next(counter)) {
        t->frame.buffers[counter - WEAVE_NEXT_OF].next -= (uint64_t)amount;
        return;
    }
    int64_t *at = &((int64_t *)((char *)thread + WEAVE_COUNTERS))[counter];
    if (counter < t->counter_room || run_counters_reach(t, (uint64_t)at)) *at -= amount;
}

/* The fragment whose instruction of the program's, told by *entry, is at a cache address; NULL: there is none. */
static jit_fragment *program_insn(uint64_t pc, weave_map_entry *entry)
{
    bool in_snippet;
    jit_fragment *f = jit_fragment_of_cache(pc);
    return f && jit_fragment_map(f, pc, entry, &in_snippet) && !in_snippet ? f : NULL;
}

void jit_section_context(run_thread *t, uint64_t exec)
{
    const weave_isa *w = weave_isa_of(jit.isa);
    weave_map_entry entry;
    jit_fragment *f = program_insn(exec, &entry);
    if (!f) return;
    bool whole = jit_of(t)->whole;
    run_uc_unspill(t, &t->ctx, whole ? w->all & ~w->reserved : entry.spilled | jit_landing_spills, entry.flags_saved);
    t->ctx.pc = entry.app;
    jit_fragment_undo(f, exec, false, subtract, t);
}

/* The program's state at the fault, into t->ctx; false when it is not the program's fault. `begun`: snippets before
 * the instruction have run, and will not run again. */
static bool fault_context(run_thread *t, int signo, void *uc, uint64_t tls_base, bool begun)
{
    bool trap = run_uc_is_behind(uc, signo);
    uint64_t pc = run_uc_pc(uc) - trap;
    weave_map_entry entry;
    jit_fragment *f = program_insn(pc, &entry);
    if (f) {
        run_uc_context(uc, t, tls_base, &t->ctx);
        run_uc_unspill(t, &t->ctx, entry.spilled, entry.flags_saved);
        t->ctx.pc = trap ? run_after_trap(entry.app) : entry.app;
        if (!trap) jit_fragment_undo(f, pc, begun, subtract, t);
        return true;
    }
    if (jit_sections_abort_code(pc)) { /* the kernel has aborted the sequence in which it faulted */
        run_uc_context(uc, t, tls_base, &t->ctx);
        jit_section_context(t, jit_of(t)->sequence.start);
        return true;
    }
    if (is_at(pc, jit_gate_after)) { /* SIGSYS */
        jit_uc_gate_context(uc, t, tls_base, jit_of(t)->syscall_resume, &t->ctx);
        return true;
    }
    return false;
}

/* The write changes the page that the running fragment was made from, maybe right behind the instruction:
 * that is run alone, what follows is translated anew. */
static void leave_stale_code(run_thread *t, uint64_t addr, void *uc, uint64_t tls_base)
{
    if (t->where != RUN_IN_CODE || t->frame.in_tool) return;
    const jit_fragment *f = jit_fragment_of_cache(run_uc_pc(uc));
    if (!f || !f->dropped || !fault_context(t, SIGSEGV, uc, tls_base, true)) return;
    jit_guard_own_write(addr);
    redispatch(t, uc, RUN_LEAVE_STEP);
}

static bool arranged(run_thread *t, const siginfo_t *info, uint64_t addr, void *uc, uint64_t tls_base)
{
    const int signo = info->si_signo;
    uint64_t pc = run_uc_pc(uc);
    uint64_t table = (uint64_t)(uintptr_t)t + WEAVE_IBL;
    bool in_code = t->where == RUN_IN_CODE && is_page_fault(signo);
    bool of_returns = jit_of(t)->returns && addr - (uint64_t)(uintptr_t)jit_of(t)->returns < JIT_RETURNS_BYTES;
    bool blocked = in_code && (addr - table < JIT_RETURNS_BYTES || of_returns) && jit_of(t)->ibl_blocked;
    if (blocked && of_returns && jit_uc_skip_landing(uc)) return true;
    if (blocked) {
        jit_uc_ibl_context(uc, t, tls_base, &t->ctx);
        redispatch(t, uc, RUN_LEAVE_INDIRECT);
        return true;
    }
    if (signo == SIGSEGV && addr - (uint64_t)(uintptr_t)t < WEAVE_BLOCK_SIZE && run_counters_reach(t, addr))
        return true;
    if (signo == SIGSEGV && run_uc_is_write(uc) && jit_memory_write_fault(addr)) {
        leave_stale_code(t, addr, uc, tls_base);
        return true;
    }
    if (is_page_fault(signo) && run_in_safe_copy(pc)) {
        jit_of(t)->missing = (jit_fault){signo, info->si_code, addr};
        run_uc_set_pc(uc, (uint64_t)(uintptr_t)run_safe_copy_done);
        return true;
    }
    return false;
}

/* Does an instruction of the program's own run at a cache address? */
static bool is_programs(const run_thread *t, uint64_t pc)
{
    weave_map_entry entry;
    return t->where == RUN_IN_CODE && !t->frame.in_tool && program_insn(pc, &entry);
}

/* What it is if it is not the program's. */
static run_crash crash_of(run_thread *t, const siginfo_t *info, const void *uc)
{
    run_crash c = {.where = RUN_CRASH_CODE,
                   .signo = info->si_signo,
                   .code = info->si_code,
                   .addr = (uint64_t)(uintptr_t)info->si_addr,
                   .uc = uc,
                   .waited = -1};
    const jit_fragment *f = jit_fragment_of_cache(run_uc_pc(uc));
    weave_map_entry entry;
    bool in_snippet;
    if (t->where == RUN_IN_RUNTIME) {
        c.where = RUN_CRASH_RUNTIME;
    } else if (t->frame.in_tool) {
        c.where = RUN_CRASH_ROUTINE;
    } else if (f && jit_fragment_inlined(f, run_uc_pc(uc), &c.point, &c.routine)) {
        c.where = RUN_CRASH_SNIPPET;
    } else if (f && jit_fragment_map(f, run_uc_pc(uc), &entry, &in_snippet) && in_snippet) {
        c.where = RUN_CRASH_SNIPPET;
        c.point = entry.app;
    }
    return c;
}

/* Translated code has found that the program is about to step itself: the runtime carries the instruction out. */
static bool begins_stepping(run_thread *t, int signo, void *uc, uint64_t tls_base)
{
    weave_map_entry entry;
    uint64_t pc = run_uc_pc(uc);
    if (signo != SIGILL || t->where != RUN_IN_CODE || t->frame.in_tool) return false;
    if (!program_insn(pc, &entry) || !jit_step_guards(pc, entry.app)) return false;
    fault_context(t, signo, uc, tls_base, true);
    redispatch(t, uc, RUN_LEAVE_FLAGS);
    return true;
}

/* Nothing of Inlay's has the processor step or watch, but a tracer may have, that has gone without a word: what its
 * last stop was for is a signal. It is not to be taken for a fault of the instruction there, which may be one of
 * several that stand for the program's. */
static bool is_left_by_tracer(const run_thread *t, int signo, const void *uc)
{
    weave_map_entry entry;
    if (!run_uc_is_debug(signo, uc)) return false;
    bool programs = t->where == RUN_IN_CODE && !t->frame.in_tool &&
                    program_insn(run_uc_pc(uc) - run_uc_is_behind(uc, signo), &entry);
    return !programs || !run_at_int1(entry.app);
}

static void fault(run_thread *t, int signo, const siginfo_t *info, void *uc, uint64_t tls_base)
{
    uint64_t pc = run_uc_pc(uc), addr = (uint64_t)(uintptr_t)info->si_addr;
    if (run_own_call_failed(signo, info, uc) || arranged(t, info, addr, uc, tls_base)) return;
    if (run_stepped_over(t, signo, info, uc) || begins_stepping(t, signo, uc, tls_base)) return;
    if (!is_programs(t, pc) && run_settings_fault(t, signo, uc)) return;
    if (signo == SIGSEGV && info->si_code == SI_KERNEL && !is_programs(t, pc) && jit_sections_refused(t)) {
        arrived(t, info, uc, tls_base);
        return;
    }
    if (is_left_by_tracer(t, signo, uc)) {
        arrived(t, info, uc, tls_base);
        return;
    }
    const run_crash crash = crash_of(t, info, uc);
    if (t->where == RUN_IN_RUNTIME) {
        if (signo != SIGSYS) {
            run_signal_die_of_bug(t, &crash);
            return;
        }
        t->fault.info = *info; /* a call made for the program; it goes on behind it */
        t->fault.present = true;
        return;
    }
    bool inserted = crash.where == RUN_CRASH_SNIPPET && !run_uc_is_behind(uc, signo);
    if (t->frame.in_tool || inserted || !fault_context(t, signo, uc, tls_base, false)) {
        run_signal_die_of_bug(t, &crash);
        return;
    }
    run_uc_keep_trap(t, uc);
    t->fault.info = *info;
    if (addr && jit_cache_contains(addr)) t->fault.info.si_addr = (void *)(uintptr_t)t->ctx.pc;
    t->fault.present = true;
    redispatch(t, uc, RUN_LEAVE_SIGNAL);
}

void jit_signal(run_thread *t, int signo, siginfo_t *info, void *uc, uint64_t tls_base)
{
    bool is_fault = !run_signal_unmark(info) && run_signal_is_fault(signo, info);
    if (t->worker && !is_fault) {
        run_worker_pass_on(info, uc);
        return;
    }
    if (run_signal_is_nudge(info)) {
        int value = info->si_value.sival_int;
        uint32_t who = (uint32_t)((uint64_t)info->si_value.sival_ptr >> 32);
        if (value == JIT_NUDGE_LEAVE) jit_leave_nudged();
        else if (value == JIT_NUDGE_TAKEN) jit_stops_taken(who);
        else if (value == JIT_NUDGE_REPORT) jit_stops_report(who);
        else jit_stops_nudged(value);
        if (in_handler(t, uc)) return; /* which may be about to note a signal; there will be another nudge */
        if (t->pending.present) {      /* it comes to a boundary anyway */
            interrupted_by_nudge(t, uc, tls_base);
            return;
        }
    }
    __atomic_fetch_add(is_fault ? &jit.stats.faults : &jit.stats.sent, 1, __ATOMIC_RELAXED);
    if (is_fault) fault(t, signo, info, uc, tls_base);
    else arrived(t, info, uc, tls_base);
}
