/* System calls that the engine must see. A call without a row here is made as it stands: in the
 * assembly gate, without any of this, or by run_pass when the client watches every call.
 *
 * Whatever may sleep goes through run_blocking_syscall, so that no signal is lost: a signal that waits
 * sends the thread back to the system call's own address, and the call is made after the program's
 * handler has returned, just as if the signal had come an instruction earlier.
 *
 * To add a call: a row in the table of its subject (syscall_memory.c ...), with a handler that returns
 * the kernel's answer. */
#include "run/confine.h"
#include "run/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "base/log.h"
#include "base/sys.h"
#include "run/writes.h"
#include INL_ARCH_HEADER(run, abi)

uint64_t run_direct_calls[RUN_SYSCALLS / 64];
const uint64_t *run_gate_calls = run_direct_calls;
static const run_syscall_row *rows[RUN_SYSCALLS];

static void add_rows(const run_syscall_row *table)
{
    for (const run_syscall_row *r = table; r->run; r++) {
        if (r->nr >= SYS_ABSENT) continue;
        rows[r->nr] = r;
        run_direct_calls[r->nr / 64] &= ~(1ull << r->nr % 64);
    }
}

static void make_direct(unsigned nr)
{
    if (nr < SYS_ABSENT) run_direct_calls[nr / 64] |= 1ull << nr % 64;
}

void run_syscalls_init(void)
{
    memset(run_direct_calls, 0xff, sizeof run_direct_calls);
    run_fd_init();
    add_rows(run_memory_syscalls);
    add_rows(run_file_syscalls);
    add_rows(run_signal_syscalls);
    add_rows(run_sending_syscalls);
    add_rows(run_process_syscalls);
    add_rows(run_waiting_syscalls);
    add_rows(run_isa_syscalls);
    if (!run_here.client.proc_link) {
        make_direct(SYS_readlink);
        make_direct(SYS_readlinkat);
    }
    run_file_calls_direct(make_direct);
    for (long nr = 0; nr < RUN_SYSCALLS; nr++)
        if (writes_later(nr)) run_direct_calls[nr / 64] &= ~(1ull << nr % 64);
    if (run_here.client.wants_syscalls) memset(run_direct_calls, 0, sizeof run_direct_calls);
}

void run_syscall_keep(long nr)
{
    uint64_t bit = 1ull << nr % 64;
    __atomic_fetch_or(&run_here.kept_calls[nr / 64], bit, __ATOMIC_SEQ_CST);
    __atomic_fetch_and(&run_direct_calls[nr / 64], ~bit, __ATOMIC_SEQ_CST);
    __atomic_fetch_and(&run_here.guarded_calls[nr / 64], ~bit, __ATOMIC_RELAXED);
}

/* Who keeps a call meanwhile has said so first, and is seen here, or takes the bit away later. */
void run_syscall_look(long nr, bool on)
{
    uint64_t bit = 1ull << nr % 64, *direct = &run_direct_calls[nr / 64], *looked = &run_here.looked_calls[nr / 64];
    if (on && __atomic_fetch_and(direct, ~bit, __ATOMIC_SEQ_CST) & bit) *looked |= bit;
    if (on) __atomic_fetch_and(&run_here.guarded_calls[nr / 64], ~bit, __ATOMIC_RELAXED);
    if (on || !(*looked & bit)) return;
    *looked &= ~bit;
    __atomic_fetch_or(direct, bit, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&run_here.kept_calls[nr / 64], __ATOMIC_SEQ_CST) & bit)
        __atomic_fetch_and(direct, ~bit, __ATOMIC_SEQ_CST);
}

void run_syscalls_keep_all(void)
{
    for (long nr = 0; nr < RUN_SYSCALLS; nr++) run_syscall_keep(nr);
}

void run_syscalls_guard(bool on)
{
    for (long nr = 0; on && nr < RUN_SYSCALLS; nr++) {
        uint64_t bit = run_direct_calls[nr / 64] & 1ull << nr % 64;
        run_here.guarded_calls[nr / 64] &= ~(1ull << nr % 64);
        if (bit && writes_nothing(nr)) run_here.guarded_calls[nr / 64] |= bit;
    }
    __atomic_store_n(&run_gate_calls, on ? run_here.guarded_calls : run_direct_calls, __ATOMIC_SEQ_CST);
}

long run_pass_args(run_thread *t, long nr, const long args[6])
{
    long answer = t->waiting.interrupted ? run_wait_on(t, args) : run_blocking_syscall(&t->pending.present, nr, args);
    if (run_is_nudged(t, answer)) run_wait_interrupted(t, &t->ctx);
    else t->waiting.interrupted = false;
    return answer;
}

long run_pass(run_thread *t, const weave_context *c)
{
    long args[6];
    for (int i = 0; i < 6; i++) args[i] = (long)run_arg(c, i);
    return run_pass_args(t, run_number(c), args);
}

long run_read_string(char *to, uint64_t from, size_t size)
{
    for (size_t n = 0; n < size;) {
        size_t chunk = INL_PAGE - ((from + n) & (INL_PAGE - 1));
        if (chunk > size - n) chunk = size - n;
        size_t left = run_safe_copy(to + n, (const void *)(from + n), chunk);
        const char *end = memchr(to + n, 0, chunk - left);
        if (end) return end - to;
        if (left) return -EFAULT;
        n += chunk;
    }
    return -ENAMETOOLONG;
}

static const run_syscall_row *row_of(long nr) { return nr >= 0 && nr < RUN_SYSCALLS ? rows[nr] : NULL; }

static long make(run_thread *t, weave_context *c)
{
    const run_syscall_row *row = row_of(run_number(c));
    run_verdict verdict = run_confine_ask(t, c);
    if (verdict == RUN_CALL_KILLS) run_confine_kill(t);
    if (verdict == RUN_CALL_REFUSED) return run_pass(t, c);
    uint64_t args[6];
    run_args(c, args);
    if (run_fd_is_refused(run_number(c), args)) return -EBADF;
    return row ? row->run(t, c) : run_pass(t, c);
}

/* The call is known to who watches memory before it is made, and when it has been. */
static long make_known(run_thread *t, weave_context *c)
{
    const run_watch *watch = run_here.engine->watch;
    if (!watch) return make(t, c);
    watch->call_begins(t, c);
    long answer = make(t, c);
    watch->call_ends(t, answer);
    return answer;
}

void run_syscall(run_thread *t)
{
    weave_context *c = &t->ctx;
    uint64_t behind = c->pc, at = t->leave_arg;
    if (t->pending.present) {
        c->pc = at;
        return;
    }
    if (run_divert(t)) return;
    weave_context before = *c;
    run_asked asked;
    run_asked_note(c, &asked);
    long nr = run_number(c);
    bool watched = run_here.client.wants_syscalls, skipped = false;
    if (watched && run_here.client.syscall_enter)
        skipped = run_here.client.syscall_enter(run_here.client.arg, t, c, nr);
    if (!skipped) nr = run_number(c);
    long answer = skipped ? run_number(c) : make_known(t, c);
    if (answer == RUN_RESTART) {
        *c = before;
        c->pc = at;
        return;
    }
    if (answer != RUN_NO_ANSWER) {
        run_set_answer(c, answer);
        c->pc = behind;
        run_set_clobbers(c);
        const run_syscall_row *row = row_of(nr);
        if (row) inl_log(INL_LOG_SYSCALL, "%s -> %ld", row->name, answer);
    }
    if (!watched || answer == RUN_NO_ANSWER) return;
    if (run_here.client.syscall_exit) run_here.client.syscall_exit(run_here.client.arg, t, c, nr);
    run_asked_back(c, &asked);
}
