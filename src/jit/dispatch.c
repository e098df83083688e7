/* The loop around the cache: a thread comes here with a reason for leaving it, and goes back in at the
 * fragment of the address where the program is then.
 *
 * Order matters: a signal that waits is delivered before anything that may sleep or run, with the
 * program's state at an instruction boundary; writes to translated code are taken note of before code is
 * looked up; and an exit is linked only while the fragment that it is part of is still in use.
 */
#include "base/log.h"
#include "jit/core.h"
#include "jit/kernel.h"
#include "jit/x86_64/abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

jit_state jit;

void jit_say(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (jit.client.say) jit.client.say(jit.client.arg, text);
    else inl_log(INL_LOG_TRANSLATE, "%s", text);
}

/* The thread is outside the cache now: what a handler did to get it here is undone. Lock held. */
static void arrive(jit_thread *t)
{
    __atomic_store_n(&t->epoch, 0, __ATOMIC_RELEASE);
    if (t->unlinked) {
        jit_relink(t->unlinked);
        t->unlinked = NULL;
    }
    if (t->ibl_blocked) jit_ibl_unblock(t);
}

/* At first every few dispatches, then ever more rarely: a program whose loops need more fragments than
 * fit between two flushes must come to its end too. */
static void stress(void)
{
    static unsigned dispatches, flushes;
    if (!(jit.options.stress & JIT_STRESS_FLUSH) || ++dispatches < 8 + flushes / 4) return;
    dispatches = 0;
    flushes++;
    jit_flush_all();
}

/* What the thread left for; after it ctx is whole. Lock not held. */
static void serve(jit_thread *t)
{
    switch (t->leave) {
    case JIT_LEAVE_SYSCALL: jit_syscall(t); break;
    case JIT_LEAVE_SPECIAL: jit_special(t); break;
    default: break;
    }
}

/* One try to find where to go on; NULL when ctx has changed instead. Lock held, and released for the
 * delivery of signals. */
static jit_fragment *next_fragment(jit_thread *t, bool indirect, bool continues)
{
    int signo = 0, code = 0;
    if (jit_signal_waits(t)) {
        inl_lock_release(&jit.lock);
        jit_signal_deliver_pending(t);
        inl_lock_take(&jit.lock);
        return NULL;
    }
    uint32_t rights = jit_rights_open();
    if (jit_memory_written) jit_memory_take_writes();
    if (jit.options.stress) stress();
    bool once = t->leave == JIT_LEAVE_STEP;
    t->leave = JIT_LEAVE_START;
    jit_fragment *f = once ? jit_translate_once(t->ctx.pc, &signo, &code)
                           : jit_translate(t, t->ctx.pc, indirect, continues, &signo, &code);
    jit_rights_close(rights);
    if (f) return f;
    if (once && !signo) t->leave = JIT_LEAVE_STEP;
    inl_lock_release(&jit.lock);
    if (signo) jit_signal_raise(t, signo, code, t->ctx.pc); /* otherwise others must leave the cache first */
    inl_lock_take(&jit.lock);
    return NULL;
}

/* Reading the counter may be forbidden to the thread. */
static uint64_t cycles(const jit_thread *t) { return t->no_cycles ? 0 : jit_cycles(); }

/* It found its code changed. Another thread may have replaced it by now: that is done twice then. */
static void drop_stale(uint64_t app, bool continues)
{
    jit_fragment *f = jit_fragment_find(app, continues);
    if (f) jit_drop_fragment(f);
}

uint64_t jit_dispatch(jit_thread *t)
{
    if (jit.native) return jit.native->dispatch(t);
    uint64_t begun = cycles(t);
    jit_exit *from = NULL;
    inl_lock_take(&jit.lock);
    uint64_t epoch = t->epoch; /* of what the thread comes from */
    arrive(t);
    bool indirect = t->leave == JIT_LEAVE_INDIRECT, continues = false;
    if (t->leave == JIT_LEAVE_EXIT) {
        from = jit_meta_at((uint32_t)t->leave_arg);
        t->ctx.pc = from->target;
        continues = from->continues;
    } else if (t->leave == JIT_LEAVE_STALE) {
        continues = t->leave_arg;
        drop_stale(t->ctx.pc, continues);
    } else if (!indirect) {
        inl_lock_release(&jit.lock);
        uint64_t before = cycles(t);
        serve(t);
        begun += cycles(t) - before;
        inl_lock_take(&jit.lock);
    }
    uint64_t pc = t->ctx.pc;
    jit_fragment *f = next_fragment(t, indirect, continues);
    while (!f) {
        from = NULL;
        indirect = false;
        f = next_fragment(t, false, continues && t->ctx.pc == pc);
    }
    if (from && epoch == jit.epoch) jit_link(from, f); /* what has been flushed may be gone */
    if (indirect && f->landing) jit_ibl_enter(t, f);
    __atomic_store_n(&t->epoch, jit.epoch, __ATOMIC_RELEASE);
    jit_cache_reclaim();
    uint64_t exec = f->exec;
    inl_lock_release(&jit.lock);
    if (!t->no_cycles) t->own_cycles += jit_cycles() - begun;
    return exec;
}

/* --- life --- */

static bool skip_ours(uint64_t low, uint64_t high, void *arg)
{
    (void)arg;
    return jit_memory_is_ours(low, high);
}

static void announce_modules(void)
{
    if (!jit.client.module_loaded) return;
    for (module *m = module_first(jit.modules); m; m = m->next) jit.client.module_loaded(jit.client.arg, m);
}

inl_status jit_check_processor(inl_error *e)
{
    const unsigned long fsgsbase = 2; /* HWCAP2_FSGSBASE */
    if (getauxval(AT_HWCAP2) & fsgsbase) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "the processor or kernel lacks FSGSBASE (Linux 5.9 or later is needed)");
}

static inl_status set_up_tables(inl_error *e)
{
    const jit_start_state *s = &jit.start;
    if (s->tool_high) jit_memory_own(s->tool_low, s->tool_high, true);
    if (s->stack_high) jit_memory_own(s->stack_low, s->stack_high, true);
    inl_status st = jit_cache_init(e);
    if (st) return st;
    jit.modules = module_set_new();
    if (!jit.modules || !jit_ibl_init()) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    jit_memory_init();
    return module_set_scan(jit.modules, skip_ours, NULL, e);
}

/* The caller becomes the program's first thread; the private libc's block for it is the one it has. */
inl_status jit_first_thread(inl_error *e)
{
    jit_thread *t = jit_thread_new(e);
    if (!t) return e ? e->code : INL_ERR_NO_MEMORY;
    t->ctx = jit.start.ctx;
    t->ctx.xsave = t->frame.xsave_area;
    jit_arch_adopt(t);
    jit_signals_init_thread(t);
    inl_lock_take(&jit.lock);
    jit_thread_link(t);
    inl_lock_release(&jit.lock);
    return INL_OK;
}

inl_status jit_init(const jit_client *client, const jit_options *options, const jit_start_state *start, inl_error *e)
{
    memset(&jit, 0, sizeof jit);
    if (client) jit.client = *client;
    if (options) jit.options = *options;
    jit.options.weave.cold_exits = true;
    jit.start = *start;
    jit_proc_init();
    jit.born_traced = jit_is_traced();
    if (jit.options.stress & JIT_STRESS_RANDOM_REGS) jit.options.weave.stress |= WEAVE_STRESS_RANDOM_REGS;
    inl_status st = jit_check_processor(e);
    if (!st) st = set_up_tables(e);
    if (st) return st;
    jit_signals_init();
    return jit_first_thread(e);
}

void jit_run(void)
{
    jit_thread *t = jit_self();
    announce_modules();
    if (jit.client.thread_start) jit.client.thread_start(jit.client.arg, t);
    t->leave = JIT_LEAVE_START;
    t->enter_pc = jit_dispatch(t);
    jit_enter_cache(t);
}
