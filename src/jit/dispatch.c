/* The loop around the cache: a thread comes here with a reason for leaving it, and goes back in at the
 * fragment of the address where the program is then.
 *
 * Order matters: a signal that waits is delivered before anything that may sleep or run, with the
 * program's state at an instruction boundary; writes to translated code are taken note of before code is
 * looked up; and an exit is linked only while the fragment that it is part of is still in use.
 */
#include "base/check.h"
#include "base/libc_ready.h"
#include "base/log.h"
#include "base/page.h"
#include "jit/core.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

jit_state jit;

enum { CHECK_EVERY = 0xff };

static void take_version(run_thread *t)
{
    if (jit_ibl_take_version(t)) return;
    jit_of(t)->wanted = jit_of(t)->version;
    inl_log(INL_LOG_CACHE, "no memory for another version of the code: the thread stays in the one that it is in");
}

/* The thread is outside the cache now: what a handler did to get it here is undone. Lock held. */
static void arrive(run_thread *t)
{
    uint64_t epoch = jit_of(t)->epoch;
    __atomic_store_n(&jit_of(t)->epoch, 0, __ATOMIC_RELEASE);
    if (jit_of(t)->unlinked) {
        jit_relink(jit_of(t)->unlinked);
        jit_of(t)->unlinked = NULL;
    }
    if (jit_of(t)->ibl_blocked) jit_ibl_unblock(t);
    if (epoch && epoch != jit.epoch) jit_ibl_empty(t); /* the miss routine may have had a landing in its hands */
    if (jit_of(t)->wanted != jit_of(t)->version) take_version(t);
    t->pending.passes = false;
    if (t->leave == RUN_LEAVE_START) jit_settle_again(t);
    else if (t->leave != RUN_LEAVE_EXIT) jit_settle_none(t);
}

/* Has a call of the tool's come back? Then it goes on there. (Other branches may lead to the same place.) */
static void come_back(run_thread *t)
{
    if (t->fault.present || !run_call_back(t)) return;
    inl_libc_ready();
    inl_lock_release(&run_here.lock);
    run_here.client.returned(run_here.client.arg, t, true);
}

/* At first every few dispatches, then ever more rarely: a program whose loops need more fragments than
 * fit between two flushes must come to its end too. */
static void stress(void)
{
    if (!(jit.options.stress & JIT_STRESS_FLUSH) || ++jit.since_flush < 8 + jit.flushes / 4) return;
    jit.since_flush = 0;
    jit.flushes++;
    jit_flush_all();
}

/* What the thread left for; after it ctx is whole. Lock not held. */
static void serve(run_thread *t)
{
    switch (t->leave) {
    case RUN_LEAVE_SYSCALL: run_syscall(t); break;
    case RUN_LEAVE_FLAGS:
    case RUN_LEAVE_SPECIAL: run_special(t); break;
    default: break;
    }
}

static bool steps(const run_thread *t) { return jit_steps(&t->ctx) || jit_stops_step(t); }

static void deliver(run_thread *t)
{
    uint64_t before = t->ctx.pc;
    inl_lock_release(&run_here.lock);
    run_signal_deliver_pending(t);
    if (t->ctx.pc == before) jit_join_restart(t); /* only Inlay's own handler has run */
    inl_lock_take(&run_here.lock);
    jit_stops_delivered(t, before);
}

/* Somebody is to see its registers, of which some are missing: it goes on until they have been overwritten. */
static jit_fragment *settle(run_thread *t, bool continues)
{
    jit_fault fault;
    unsigned length = jit_settle_length(t);
    uint32_t rights = run_rights_open();
    jit_fragment *f = length ? jit_translate_piece(t, t->ctx.pc, continues, length, &fault) : NULL;
    run_rights_close(rights);
    if (f) jit_settle_begin(t);
    else jit_settle_none(t);
    return f;
}

/* One try to find where to go on; NULL when ctx has changed instead. Lock held, and released for the
 * delivery of signals. */
static jit_fragment *next_fragment(run_thread *t, bool indirect, bool continues)
{
    jit_fault fault = {0};
    /* Each is asked once: what comes behind that is seen when the thread is about to enter the cache. */
    bool signal = run_signal_waits(t), stops = jit_stops_due(t), leaves = jit_leave_wanted(t);
    if (signal || stops || leaves) inl_libc_ready();
    if ((signal || stops || leaves) && jit_settle_due(t)) return settle(t, continues);
    if (signal) {
        deliver(t);
        return NULL;
    }
    if (stops) {
        inl_lock_release(&run_here.lock);
        jit_stops_come(t);
        inl_lock_take(&run_here.lock);
        return NULL;
    }
    if (leaves) {
        inl_lock_release(&run_here.lock);
        jit_leave_come(t);
        inl_lock_take(&run_here.lock);
        return NULL;
    }
    if (jit.memory.pages_late) {
        inl_lock_release(&run_here.lock);
        jit_memory_await(t->ctx.pc);
        inl_lock_take(&run_here.lock);
    }
    uint32_t rights = run_rights_open();
    if (jit.guards.written) jit_memory_take_writes();
    if (jit.options.stress) stress();
    jit_paired_look(t);
    bool alone = steps(t), again = alone && jit_of(t)->stepping.again;
    bool once = t->leave == RUN_LEAVE_STEP || again;
    t->leave = RUN_LEAVE_START;
    jit_fragment *f = once    ? jit_translate_once(t, t->ctx.pc, &fault)
                      : alone ? jit_translate_step(t, t->ctx.pc, continues, &fault)
                              : jit_translate(t, t->ctx.pc, indirect, continues, &fault);
    run_rights_close(rights);
    if (f && !once && !alone && jit.guards.written) return NULL; /* the client has written to code, maybe to this */
    if (f) return f;
    if (once && !again && !fault.signo) t->leave = RUN_LEAVE_STEP;
    inl_lock_release(&run_here.lock);
    inl_libc_ready();
    /* Without one others must leave the cache first. */
    if (fault.signo && !jit_old_call(t)) run_signal_raise(t, fault.signo, fault.code, fault.at);
    inl_lock_take(&run_here.lock);
    return NULL;
}

/* Reading the counter may be forbidden to the thread. */
static uint64_t cycles(const run_thread *t) { return t->no_cycles ? 0 : run_cycles(); }

/* It found its code changed. Another thread may have replaced it by now: that is done twice then. */
static void drop_stale(const run_thread *t, uint64_t app, bool continues)
{
    jit_fragment *f = jit_fragment_find(app, continues, jit_of(t)->version);
    if (f) jit_drop_fragment(f);
}

/* Nothing was counted in advance where a routine is called (weave/count.c), so there is nothing to put right. */
static void resume(run_thread *t)
{
    t->where = RUN_IN_RUNTIME;
    t->frame.in_tool = 0;
    run_dispatch_again();
}

/* Behind an instruction of a program that steps itself. Lock held, and released meanwhile. */
static void raise_trap(run_thread *t)
{
    inl_libc_ready();
    inl_lock_release(&run_here.lock);
    run_signal_raise(t, SIGTRAP, TRAP_TRACE, t->ctx.pc);
    inl_lock_take(&run_here.lock);
}

/* By a direct exit. Does the block go on behind it? Lock held, and released meanwhile: the exit may be gone then. */
static bool left_by(run_thread *t, const jit_exit *from, bool trap)
{
    uint64_t app = from->target - from->told_by;
    bool continues = from->continues;
    jit_settle_left(t, from->target);
    if (!jit_of(t)->stepping.again || !trap) t->ctx.pc = from->target;
    if (!from->told_by) return continues;
    inl_lock_release(&run_here.lock);
    jit_pointer_stored(t, app);
    inl_lock_take(&run_here.lock);
    return continues;
}

/* May it be that nothing but the engine is asked? Then who wants more says so (base/libc_ready.h). */
static bool is_plain(const run_thread *t)
{
    return (t->leave == RUN_LEAVE_EXIT || t->leave == RUN_LEAVE_INDIRECT) && !jit_of(t)->begins && !inl_debug;
}

uint64_t jit_dispatch(run_thread *t)
{
    if (!is_plain(t)) inl_libc_ready();
    uint64_t begun = cycles(t);
    if (jit_of(t)->begins) jit_join_begin(t);
    bool trap = jit_step_end(t);
    jit_exit *from = NULL;
    inl_lock_take(&run_here.lock);
    uint64_t epoch = jit_of(t)->epoch; /* of what the thread comes from */
    arrive(t);
    bool indirect = t->leave == RUN_LEAVE_INDIRECT, continues = false, entered = false;
    jit.stats.dispatches[t->leave]++;
    jit_stops_left(t);
    if (indirect) jit.stats.unknown[jit_of(t)->kind]++;
    if (t->leave == RUN_LEAVE_EXIT) {
        from = jit_meta_at((uint32_t)t->leave_arg);
        continues = left_by(t, from, trap);
    } else if (t->leave == RUN_LEAVE_STALE) {
        continues = t->leave_arg;
        drop_stale(t, t->ctx.pc, continues);
    } else if (t->leave == RUN_LEAVE_SECTION) {
        continues = t->leave_arg == JIT_SECTION_ENTERED + 1;
        entered = jit_sections_serve(t);
    } else if (!indirect) {
        inl_lock_release(&run_here.lock);
        uint64_t before = cycles(t);
        continues = t->leave == RUN_LEAVE_FLAGS; /* no block ends there */
        serve(t);
        if (t->leave == RUN_LEAVE_START) trap = false; /* it was a fault instead */
        begun += cycles(t) - before;
        inl_lock_take(&run_here.lock);
        if (jit_of(t)->wanted != jit_of(t)->version) take_version(t);
    }
    if (jit_of(t)->sequence_field) jit_sections_arrive(t);
    if (indirect && t->calls) come_back(t);
    uint64_t pc = t->ctx.pc;
    if (trap) raise_trap(t);
    jit_fragment *f = next_fragment(t, indirect && !trap, continues && t->ctx.pc == pc);
    while (!f) {
        from = NULL;
        indirect = false;
        f = next_fragment(t, false, continues && t->ctx.pc == pc);
    }
    if (from && epoch == jit.epoch && from->from->version == f->version)
        jit_link(from, f); /* what has been flushed may be gone */
    if (indirect && f->landing) jit_ibl_enter(t, f);
    if (steps(t)) jit_step_begin(t, f);
    jit_stops_entered(t);
    __atomic_store_n(&jit_of(t)->epoch, jit.epoch, __ATOMIC_RELEASE);
    jit_cache_reclaim();
    if (inl_debug && !(++jit.dispatches & CHECK_EVERY)) jit_check();
    if (jit_of(t)->section) jit_sections_depart(t);
    uint64_t exec = f->exec + (entered && t->ctx.pc == pc ? f->section_bytes : 0);
    inl_lock_release(&run_here.lock);
    if (!t->no_cycles) t->frame.own_cycles += run_cycles() - begun;
    return exec;
}

/* --- life --- */

static bool skip_ours(uint64_t low, uint64_t high, void *arg)
{
    (void)arg;
    return run_is_ours(low, high);
}

static void announce_modules(void)
{
    if (!run_here.client.module_loaded) return;
    for (module *m = module_first(run_here.modules); m; m = m->next)
        run_here.client.module_loaded(run_here.client.arg, m);
}

static inl_status set_up_tables(inl_error *e)
{
    inl_status st = jit_cache_init(e);
    if (st) return st;
    run_here.modules = module_set_new();
    if (!run_here.modules || !jit_ibl_init()) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    jit_memory_init();
    return module_set_scan(run_here.modules, skip_ours, NULL, e);
}

static const char *const program_calls[] = {jit_gate_after, NULL};

static unsigned version_of(const run_thread *t) { return t ? jit_of(t)->wanted : jit.now.version; }

static void thread_made(run_thread *t)
{
    jit_ibl_init_thread(t);
    jit_of(t)->section_abort = (uint64_t)(uintptr_t)jit_section_aborted;
    jit_stats_thread_made(t);
}

static void thread_ends(run_thread *t)
{
    jit_stats_thread_ends(t);
    jit_guard_thread_end(t);
}

static void fork_child(void)
{
    jit_cache_fork_child();
    jit_stats_forked();
    jit_kept_forked();
    jit_stops_forked();
}

static const run_watch watch = {
    .mapped = jit_memory_mapped,
    .unmapped = jit_memory_unmapped,
    .protected = jit_memory_protected,
    .changed = jit_drop_range,
    .moves = jit_guards_lift,
    .shown_again = jit_drop_shown,
    .gives_way = jit_cache_give_way,
    .handles_fault = jit_wanted_handled,
    .prot = jit_memory_prot,
    .is_shared = jit_memory_shared,
    .mapped_behind = jit_memory_mapped_behind,
    .keys_used = jit_guard_keys,
    .pages_late = jit_memory_late,
    .call_begins = jit_guard_call,
    .call_ends = jit_guard_call_end,
    .no_more = jit_guard_no_more,
    .thread_ends = thread_ends,
    .sequences = jit_sequences,
    .interrupted = jit_sections_interrupted,
    .pointer_shown = jit_pointer_shown,
    .fork_prepare = jit_cache_fork_prepare,
    .fork_parent = jit_cache_fork_parent,
    .fork_child = fork_child,
};

static const run_engine engine = {
    .dispatch = jit_dispatch,
    .signal = jit_signal,
    .delivers = jit_stops_signal,
    .gate = jit_syscall_gate,
    .resume = resume,
    .switch_version = jit_switch_version,
    .version = version_of,
    .call = jit_call,
    .called = jit_called,
    .program_calls = program_calls,
    .thread_made = thread_made,
    .room = JIT_RETURNS_BYTES,
    .watch = &watch,
};

inl_status jit_init(const run_client *client, const jit_options *options, const run_start_state *start, inl_error *e)
{
    jit.guards.low = UINT64_MAX; /* all else is 0, at first and behind jit_end */
    jit.by_app.of_code = true;
    jit.isa = isa_for_machine(RUN_ELF_MACHINE);
    if (options) jit.options = *options;
    jit.options.weave.cold_exits = jit.options.weave.stops_stepping = jit.options.weave.appends_ahead = true;
    if (jit.options.stress & JIT_STRESS_RANDOM_REGS) jit.options.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    jit_stats_begin();
    jit_kept_begin();
    jit_stops_begin(&jit.options.debugger);
    inl_status st = run_begin(&engine, client, start, e);
    if (!st && jit.options.stress & JIT_STRESS_BASE_CALLS) run_bases_by_call();
    if (!st) st = set_up_tables(e);
    jit_wanted_begin();
    return st ? st : run_first_thread(e);
}

void jit_run(void)
{
    announce_modules();
    if (run_here.client.thread_start) run_here.client.thread_start(run_here.client.arg, run_self());
    run_bases_late();
    run_go();
}

void jit_end(void)
{
    jit_guards_end();
    jit_flush_all(); /* nobody is in the cache: everything is retired, and can go */
    jit_ibl_end();
    jit_cache_end();
    jit_memory_end();
    jit_sections_end();
    jit_kept_end();
    jit_wanted_end();
    jit_stops_free();
    inl_map_free(&jit.by_app);
    inl_arena_free(&jit.now.arena);
    module_set_free(run_here.modules);
    run_end();
    memset(&jit, 0, sizeof jit);
}
