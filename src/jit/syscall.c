/* System calls that the engine must see. A call without a row here is made as it stands: in the
 * assembly gate, without any of this, or by jit_pass when the client watches every call.
 *
 * Whatever may sleep goes through jit_blocking_syscall, so that no signal is lost: a signal that waits
 * sends the thread back to the system call's own address, and the call is made after the program's
 * handler has returned, just as if the signal had come an instruction earlier.
 *
 * To add a call: a row in the table of its subject (syscall_memory.c ...), with a handler that returns
 * the kernel's answer. */
#include "jit/confine.h"
#include "jit/kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include "jit/writes.h"
#include "jit/x86_64/abi.h"

uint64_t jit_native_syscalls[JIT_SYSCALLS / 64];
static uint64_t guarded_syscalls[JIT_SYSCALLS / 64];
const uint64_t *jit_gate_calls = jit_native_syscalls;
static const jit_syscall_row *rows[JIT_SYSCALLS];

static void add_rows(const jit_syscall_row *table)
{
    for (const jit_syscall_row *r = table; r->run; r++) {
        rows[r->nr] = r;
        jit_native_syscalls[r->nr / 64] &= ~(1ull << r->nr % 64);
    }
}

void jit_syscalls_init(void)
{
    memset(jit_native_syscalls, 0xff, sizeof jit_native_syscalls);
    jit_fd_init();
    add_rows(jit_memory_syscalls);
    add_rows(jit_file_syscalls);
    add_rows(jit_signal_syscalls);
    add_rows(jit_sending_syscalls);
    add_rows(jit_process_syscalls);
    if (!jit.client.proc_link) {
        jit_native_syscalls[SYS_readlink / 64] |= 1ull << SYS_readlink % 64;
        jit_native_syscalls[SYS_readlinkat / 64] |= 1ull << SYS_readlinkat % 64;
    }
    for (long nr = 0; nr < JIT_SYSCALLS; nr++)
        if (writes_later(nr)) jit_native_syscalls[nr / 64] &= ~(1ull << nr % 64);
    if (jit.client.wants_syscalls) memset(jit_native_syscalls, 0, sizeof jit_native_syscalls);
}

void jit_syscall_keep(long nr)
{
    uint64_t bit = 1ull << nr % 64;
    __atomic_fetch_and(&jit_native_syscalls[nr / 64], ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_and(&guarded_syscalls[nr / 64], ~bit, __ATOMIC_RELAXED);
}

void jit_syscalls_guard(bool on)
{
    for (long nr = 0; on && nr < JIT_SYSCALLS; nr++) {
        uint64_t bit = jit_native_syscalls[nr / 64] & 1ull << nr % 64;
        guarded_syscalls[nr / 64] &= ~(1ull << nr % 64);
        if (bit && writes_nothing(nr)) guarded_syscalls[nr / 64] |= bit;
    }
    __atomic_store_n(&jit_gate_calls, on ? guarded_syscalls : jit_native_syscalls, __ATOMIC_SEQ_CST);
}

long jit_pass_args(jit_thread *t, long nr, const long args[6])
{
    return jit_blocking_syscall(&t->pending.present, nr, args);
}

long jit_pass(jit_thread *t, const weave_context *c)
{
    long args[6];
    for (int i = 0; i < 6; i++) args[i] = (long)jit_arg(c, i);
    return jit_pass_args(t, jit_number(c), args);
}

long jit_read_string(char *to, uint64_t from, size_t size)
{
    enum { PAGE = 4096 };
    for (size_t n = 0; n < size;) {
        size_t chunk = PAGE - ((from + n) & (PAGE - 1));
        if (chunk > size - n) chunk = size - n;
        size_t left = jit_safe_copy(to + n, (const void *)(from + n), chunk);
        const char *end = memchr(to + n, 0, chunk - left);
        if (end) return end - to;
        if (left) return -EFAULT;
        n += chunk;
    }
    return -ENAMETOOLONG;
}

static const jit_syscall_row *row_of(long nr) { return nr >= 0 && nr < JIT_SYSCALLS ? rows[nr] : NULL; }

static long make(jit_thread *t, weave_context *c)
{
    const jit_syscall_row *row = row_of(jit_number(c));
    jit_verdict verdict = jit_confine_ask(t, c);
    if (verdict == JIT_CALL_KILLS) jit_confine_kill(t);
    if (verdict == JIT_CALL_REFUSED) return jit_pass(t, c);
    uint64_t args[6];
    jit_args(c, args);
    if (jit_fd_is_refused(jit_number(c), args)) return -EBADF;
    return row ? row->run(t, c) : jit_pass(t, c);
}

/* The call is known to who guards a page (guard.c) before it is made. */
static long make_known(jit_thread *t, weave_context *c)
{
    uint64_t args[6];
    if (jit.native) return make(t, c);
    jit_call_keep(t, c);
    __atomic_store_n(&t->in_gate, 1, __ATOMIC_SEQ_CST);
    long nr = jit_call_made(t, args);
    jit_guard_call(nr, args);
    long answer = make(t, c);
    __atomic_store_n(&t->in_gate, 0, __ATOMIC_RELEASE);
    if (writes_later(nr) && !sys_failed(answer)) jit_guard_no_more();
    return answer;
}

void jit_syscall(jit_thread *t)
{
    weave_context *c = &t->ctx;
    uint64_t behind = c->pc, at = t->leave_arg;
    if (t->pending.present) {
        c->pc = at;
        return;
    }
    weave_context before = *c;
    long nr = jit_number(c);
    bool watched = jit.client.wants_syscalls, skipped = false;
    if (watched && jit.client.syscall_enter) skipped = jit.client.syscall_enter(jit.client.arg, t, c, nr);
    long answer = skipped ? jit_number(c) : make_known(t, c);
    if (answer == JIT_RESTART) {
        *c = before;
        c->pc = at;
        return;
    }
    if (answer != JIT_NO_ANSWER) {
        jit_set_answer(c, answer);
        c->pc = behind;
        jit_set_clobbers(c);
        const jit_syscall_row *row = row_of(nr);
        if (row) inl_log(INL_LOG_SYSCALL, "%s -> %ld", row->name, answer);
    }
    if (watched && jit.client.syscall_exit) jit.client.syscall_exit(jit.client.arg, t, c, nr);
}
