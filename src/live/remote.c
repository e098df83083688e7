#include "live/remote.h"
#include "base/arch.h"
#include "move/live.h"

#include INL_ARCH_HEADER(move, park)

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80 };

/* Of a process of another width or instruction set there are fewer, or others. */
static bool get_registers(const remote *r, struct user_regs_struct *u)
{
    struct iovec all = {u, sizeof *u};
    if (ptrace(PTRACE_GETREGSET, r->pid, NT_PRSTATUS, &all) != 0) return false;
    if (all.iov_len != sizeof *u) memset(u, 0, sizeof *u);
    return true;
}

static bool set_registers(const remote *r, struct user_regs_struct *u)
{
    struct iovec all = {u, sizeof *u};
    return ptrace(PTRACE_SETREGSET, r->pid, NT_PRSTATUS, &all) == 0;
}

char remote_state(pid_t tid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    const char *behind = strrchr(line, ')');
    return behind && behind[1] ? behind[2] : '\0';
}

/* A first thread cannot be waited for then as long as others, which are traced, have not been. */
bool remote_has_ended(pid_t tid)
{
    const char state = remote_state(tid);
    return !state || state == 'Z' || state == 'X';
}

/* As waitpid; *status is that of an end where there is none to be had. 0: nothing for so many seconds (0: for ever). */
static pid_t wait_for_stop(remote *r, int *status, unsigned patience)
{
    enum { SPINS = 200, LOOKS = 1000 };
    const struct timespec nap = {.tv_nsec = 100000};
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const time_t end = t.tv_sec + patience + 1;
    for (unsigned n = 0;; n++) {
        pid_t got = waitpid(r->pid, status, __WALL | WNOHANG);
        if (got > 0 || (got < 0 && errno != EINTR)) return got;
        if (n % LOOKS == LOOKS - 1 && remote_has_ended(r->pid)) {
            *status = 0;
            return r->pid;
        }
        if (n < SPINS) continue;
        nanosleep(&nap, NULL);
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (patience && t.tv_sec >= end) return 0;
    }
}

/* Goes on to the next stop, a stop signal's excepted: with everything blocked no other comes through, and it is kept
 * for the end. */
static inl_status go_on_with(remote *r, enum __ptrace_request how, int signo, int *status, inl_error *e)
{
    enum { STEP = 1 /* seconds: it has come to a call that waits */ };
    for (;;) {
        if (ptrace(how, r->pid, 0, (long)signo) != 0) return remote_fail(r, "letting it go on", e);
        pid_t got = wait_for_stop(r, status, how == PTRACE_SINGLESTEP ? STEP : 0);
        const bool waits = got == 0;
        if (waits) {
            ptrace(PTRACE_INTERRUPT, r->pid, 0, 0L);
            got = wait_for_stop(r, status, 0);
        }
        if (got < 0) return remote_fail(r, "waitpid", e);
        if (!WIFSTOPPED(*status)) {
            r->gone = true;
            return inl_fail(e, INL_ERR_NOT_FOUND, "process %d ended while the tool was put into it", r->pid);
        }
        if (waits && *status >> 16 == PTRACE_EVENT_STOP) return INL_OK;
        if (WSTOPSIG(*status) != SIGSTOP && *status >> 16 == 0) return INL_OK;
        if (*status >> 16 == 0) r->stop_signal = SIGSTOP;
        signo = 0;
    }
}

static inl_status go_on(remote *r, enum __ptrace_request how, int *status, inl_error *e)
{
    return go_on_with(r, how, 0, status, e);
}

static bool is_fault(int signo)
{
    return signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE || signo == SIGTRAP;
}

/* Not where a call has sent it, as handlers do that pass a fault on. */
bool remote_comes_again(pid_t tid, int signo)
{
    remote r = {.pid = tid};
    siginfo_t info;
    if (signo == SIGTRAP || !is_fault(signo) || ptrace(PTRACE_GETSIGINFO, tid, 0, &info) != 0) return false;
    if (info.si_code <= 0 || info.si_code >= SI_KERNEL || (signo == SIGBUS && info.si_code == BUS_MCEERR_AO))
        return false;
    if (!get_registers(&r, &r.regs) || remote_registers_number(&r.regs) != -1) return false;
    return (signo != SIGILL && signo != SIGFPE) || (uint64_t)(uintptr_t)info.si_addr == remote_registers_pc(&r.regs);
}

/* Runs to the next entry to or exit from a system call. */
static inl_status run_to_syscall(remote *r, inl_error *e)
{
    int status;
    for (;;) {
        inl_status s = go_on(r, PTRACE_SYSCALL, &status, e);
        if (s != INL_OK || WSTOPSIG(status) == SYSCALL_STOP) return s;
        if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP && is_fault(WSTOPSIG(status)))
            return inl_fail(e, INL_ERR_SYSTEM, "a call in process %d has failed: %s", r->pid,
                            strsignal(WSTOPSIG(status)));
    }
}

static inl_status hold_signals(remote *r, inl_error *e)
{
    uint64_t all = ~0ull;
    if (ptrace(PTRACE_GETSIGMASK, r->pid, sizeof r->sigmask, &r->sigmask) == 0 &&
        ptrace(PTRACE_SETSIGMASK, r->pid, sizeof all, &all) == 0)
        return INL_OK;
    return remote_fail(r, "holding signals back", e);
}

bool remote_wait_for_exec(pid_t pid)
{
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, __WALL);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || !WIFSTOPPED(status)) return false;
        int event = status >> 16, sig = WSTOPSIG(status);
        if (event == PTRACE_EVENT_EXEC) return true;
        if (event == PTRACE_EVENT_STOP) ptrace(sig == SIGTRAP ? PTRACE_CONT : PTRACE_LISTEN, pid, 0, 0);
        else ptrace(PTRACE_CONT, pid, 0, (long)sig);
    }
}

inl_status remote_begin_at(remote *r, pid_t pid, inl_error *e)
{
    *r = (remote){.pid = pid};
    inl_status s = hold_signals(r, e);
    if (s == INL_OK) s = run_to_syscall(r, e); /* the end of execve itself */
    if (s != INL_OK) return s;
    if (!get_registers(r, &r->regs)) return remote_fail(r, "reading registers", e);
    if (!remote_is_ours(r)) return inl_fail(e, INL_ERR_UNSUPPORTED, "the program is not of this architecture");
    return INL_OK;
}

inl_status remote_begin(remote *r, pid_t pid, inl_error *e)
{
    long word;
    inl_status s = remote_begin_at(r, pid, e);
    if (s != INL_OK) return s;
    memcpy(&word, remote_syscall_insn, sizeof word);
    r->code_at = remote_registers_pc(&r->regs) & ~(uint64_t)7;
    errno = 0;
    r->code_word = ptrace(PTRACE_PEEKTEXT, pid, r->code_at, 0);
    if (errno || ptrace(PTRACE_POKETEXT, pid, r->code_at, word) != 0) {
        r->code_at = 0;
        return remote_fail(r, "writing at the entry point", e);
    }
    r->code_put = true;
    return INL_OK;
}

inl_status remote_take(remote *r, pid_t tid, inl_error *e)
{
    *r = (remote){.pid = tid, .slot = r->slot, .is_first = r->is_first};
    if (!get_registers(r, &r->regs)) return remote_fail(r, "reading registers", e);
    if (!remote_is_ours(r)) return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d is not of this architecture", tid);
    long nr = remote_registers_number(&r->regs);
    if (nr == SYS_restart_syscall) nr = remote_asked_for(r);
    r->restarts = nr > 0 ? (uint64_t)nr : 0;
    remote_registers_restart(&r->regs);
    remote_leave_sequence(r);
    if (!set_registers(r, &r->regs)) return remote_fail(r, "writing registers", e);
    if (ptrace(PTRACE_GETSIGMASK, r->pid, sizeof r->sigmask, &r->sigmask) == 0) return INL_OK;
    return remote_fail(r, "reading the mask of signals", e);
}

/* Registers and memory are as a call needs them. */
static inl_status call_now(remote *r, struct user_regs_struct *u, long *answer, inl_error *e)
{
    if (!set_registers(r, u)) return remote_fail(r, "writing registers", e);
    inl_status s = run_to_syscall(r, e);
    if (s == INL_OK) s = run_to_syscall(r, e);
    if (s != INL_OK) return s;
    if (!get_registers(r, u)) return remote_fail(r, "reading registers", e);
    *answer = remote_registers_answer(u);
    return INL_OK;
}

inl_status remote_call(remote *r, long *answer, long nr, const long args[6], inl_error *e)
{
    struct user_regs_struct u = r->regs;
    remote_registers_call(&u, r->slot ? MOVE_PARK_CALL : r->code_at, nr, args);
    if (r->slot) remote_registers_set_sp(&u, r->slot);
    return call_now(r, &u, answer, e);
}

/* At a call's begin: the call is not made. */
static void skip_call(remote *r)
{
    int status;
    inl_error ignored;
    remote_skip_call(r);
    go_on(r, PTRACE_SYSCALL, &status, &ignored);
}

/* A stretch that the tool has begun by that call: its word's address, or 0. */
static uint64_t begins_alone(const remote *r, long nr)
{
    struct __ptrace_syscall_info call;
    if (nr != SYS_getpid || ptrace(PTRACE_GET_SYSCALL_INFO, r->pid, sizeof call, &call) <= 0) return 0;
    return call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.args[0] == MOVE_ALONE_MAGIC ? call.entry.args[1] : 0;
}

/* A signal's stop is no end: it goes on. *held: the stop is the one that was asked for, or that of a process which job
 * control has stopped. */
static inl_status pass_stop(remote *r, int status, bool *held, inl_error *e)
{
    int signo = status >> 16 ? 0 : WSTOPSIG(status);
    r->gone = !WIFSTOPPED(status);
    if (r->gone) return inl_fail(e, INL_ERR_SYSTEM, "process %d ended while the tool was at work in it", r->pid);
    bool holds = held && status >> 16 == PTRACE_EVENT_STOP;
    if (held) *held = holds;
    if (holds) return INL_OK;
    if (signo == SIGSTOP) r->stop_signal = signo;
    if (ptrace(PTRACE_CONT, r->pid, 0, signo == SIGSTOP ? 0L : (long)signo) == 0) return INL_OK;
    return remote_fail(r, "letting it go on", e);
}

/* Until the word says that it waits. */
static inl_status await_end(remote *r, uint64_t word, uint64_t *state, inl_error *e)
{
    enum { LOOKS = 1000 };
    const struct timespec nap = {.tv_nsec = 20000};
    inl_status s = INL_OK;
    for (unsigned n = 1; s == INL_OK && *state == MOVE_ALONE_GOES; n++) {
        int status = 0;
        pid_t got = waitpid(r->pid, &status, __WALL | WNOHANG);
        if (got > 0 || (n % LOOKS == 0 && remote_has_ended(r->pid))) s = pass_stop(r, status, NULL, e);
        else nanosleep(&nap, NULL);
        if (s == INL_OK) s = remote_read(r, word, state, sizeof *state, e);
    }
    return s;
}

/* The thread stands at the call that begins a stretch, and is stopped at its end. */
static inl_status leave_alone(remote *r, uint64_t word, inl_error *e)
{
    uint64_t state = MOVE_ALONE_GOES;
    inl_status s = remote_write(r, word, &state, sizeof state, e);
    if (s == INL_OK && ptrace(PTRACE_CONT, r->pid, 0, 0L) != 0) s = remote_fail(r, "letting it go on", e);
    if (s == INL_OK) s = await_end(r, word, &state, e);
    if (s == INL_OK && ptrace(PTRACE_INTERRUPT, r->pid, 0, 0L) != 0) s = remote_fail(r, "stopping it", e);
    for (bool held = false; s == INL_OK && !held;) {
        int status = 0;
        pid_t got = wait_for_stop(r, &status, 0);
        s = got < 0 ? remote_fail(r, "waitpid", e) : pass_stop(r, status, &held, e);
    }
    if (s == INL_OK) s = remote_read(r, word, &state, sizeof state, e);
    if (s == INL_OK && state != MOVE_ALONE_DONE) {
        r->gone = true; /* as if this process had been killed */
        return inl_fail(e, INL_ERR_SYSTEM, "process %d has waited too long, and goes on by itself", r->pid);
    }
    state = MOVE_ALONE_SEEN;
    return s == INL_OK ? remote_write(r, word, &state, sizeof state, e) : s;
}

/* A fault that ends it: nobody handles it. The kernel has seen to that where it was held back. */
static bool is_deadly(const remote *r, int signo)
{
    char path[64], line[128];
    unsigned long long caught = ~0ull;
    if (!is_fault(signo)) return false;
    snprintf(path, sizeof path, "/proc/%d/status", r->pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "SigCgt: %llx", &caught);
    if (f) fclose(f);
    return !(caught >> (signo - 1) & 1);
}

static inl_status has_crashed(remote *r, int signo, inl_error *e)
{
    struct user_regs_struct u = {0};
    siginfo_t why = {0};
    get_registers(r, &u);
    ptrace(PTRACE_GETSIGINFO, r->pid, 0, &why);
    uint64_t pc = remote_registers_pc(&u);
    return inl_fail_at(e, INL_ERR_SYSTEM, pc,
                       "the tool did not start in process %d: %s in its code at 0x%llx, address %p", r->pid,
                       strsignal(signo), (unsigned long long)pc, why.si_addr);
}

/* The text at an address of the process's; empty: there is none. */
static void read_text(remote *r, uint64_t at, char *text, size_t size)
{
    inl_error ignored;
    size_t n = 0;
    while (at && n + 1 < size && remote_read(r, at + n, text + n, 1, &ignored) == INL_OK && text[n]) n++;
    text[n] = 0;
}

/* It ends by itself. The boot code says why, or the tool. */
static inl_status has_given_up(remote *r, inl_error *e)
{
    char why[1024], more[64];
    struct __ptrace_syscall_info call;
    bool told = ptrace(PTRACE_GET_SYSCALL_INFO, r->pid, sizeof call, &call) > 0 &&
                call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.args[1] == MOVE_BOOT_FAILED;
    read_text(r, told ? call.entry.args[2] : 0, why, sizeof why);
    read_text(r, told ? call.entry.args[3] : 0, more, sizeof more);
    return inl_fail(e, INL_ERR_SYSTEM, "the tool did not start in process %d%s%s%s", r->pid, told ? ": " : "", why,
                    more);
}

inl_status remote_run(remote *r, uint64_t pc, uint64_t sp, uint64_t until, bool spared, inl_error *e)
{
    struct user_regs_struct u = r->regs;
    int status, signo = 0;
    bool inside = false;
    remote_registers_jump(&u, pc, sp);
    if (!set_registers(r, &u)) return remote_fail(r, "writing registers", e);
    for (;;) {
        inl_status s = go_on_with(r, PTRACE_SYSCALL, signo, &status, e);
        if (s != INL_OK) return s;
        signo = WSTOPSIG(status) == SYSCALL_STOP ? 0 : status >> 16 ? 0 : WSTOPSIG(status);
        if (spared && is_deadly(r, signo)) return has_crashed(r, signo, e);
        if (WSTOPSIG(status) != SYSCALL_STOP) continue;
        inside = !inside;
        if (!inside) continue;
        if (!get_registers(r, &u)) return remote_fail(r, "reading registers", e);
        long nr = remote_registers_number(&u);
        bool there = remote_registers_pc(&u) == until, ends = nr == SYS_exit_group || nr == SYS_exit;
        uint64_t word = begins_alone(r, nr);
        if (word) {
            s = leave_alone(r, word, e);
            if (s != INL_OK) return s;
            inside = false;
        }
        if (!there && !ends) continue;
        if (!there) r->status = (int)remote_registers_first(&u);
        s = there ? INL_OK : has_given_up(r, e);
        skip_call(r);
        return s;
    }
}

/* --- calls --- */

inl_status remote_put_frame(remote *r, remote_call_frame *f, uint64_t top, uint64_t *sp, inl_error *e)
{
    uint8_t bytes[REMOTE_FRAME_BYTES];
    f->back = MOVE_PARK_BACK;
    f->slot = r->slot;
    size_t size = remote_frame_bytes(f, bytes);
    *sp = top - size;
    return size ? remote_write(r, *sp, bytes, size, e) : INL_OK;
}

/* Faults come through, others wait as ever: a procedure may have faults that its process's handlers resolve. */
static inl_status let_faults_in(remote *r, bool in, inl_error *e)
{
    uint64_t mask = ~0ull;
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (unsigned i = 0; in && i < sizeof faults / sizeof *faults; i++) mask &= ~(1ull << (faults[i] - 1));
    if (ptrace(PTRACE_SETSIGMASK, r->pid, sizeof mask, &mask) == 0) return INL_OK;
    return remote_fail(r, "setting the mask of signals", e);
}

/* The next stop, or none in time: then the thread is stopped, wherever it is. */
static inl_status wait_with(remote *r, unsigned patience, int *status, inl_error *e)
{
    pid_t got = wait_for_stop(r, status, patience);
    if (got < 0) return remote_fail(r, "waitpid", e);
    if (got > 0 && WIFSTOPPED(*status)) return INL_OK;
    if (got > 0) {
        r->gone = true;
        return inl_fail(e, INL_ERR_SYSTEM, "process %d ended in the procedure that was called", r->pid);
    }
    ptrace(PTRACE_INTERRUPT, r->pid, 0, 0);
    while (waitpid(r->pid, status, __WALL) < 0 && errno == EINTR) {}
    r->gone = !WIFSTOPPED(*status);
    return inl_fail(
        e, INL_ERR_SYSTEM,
        "the procedure that was called in thread %d does not come back within %u s: it waits for something, "
        "perhaps for a lock that the thread holds",
        r->pid, patience);
}

/* The kernel keeps of one interrupted call a thread how it goes on with it: these put their own in its place, or say
 * that there is none. */
static bool forgets_interrupted(long nr)
{
    static const long calls[] = {SYS_rt_sigreturn, SYS_nanosleep, SYS_clock_nanosleep, SYS_futex, SYS_restart_syscall,
#ifdef SYS_poll
                                 SYS_poll
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (nr == calls[i]) return true;
    return false;
}

/* Up to the call that ends at `until`; of faults the second at one place is the last. */
static inl_status run_call(remote *r, bool faults_end, unsigned patience, uint64_t *results, inl_error *e)
{
    const uint64_t until = MOVE_PARK_AFTER;
    struct user_regs_struct u;
    uint64_t faulted = 0;
    int status, signo = 0;
    for (bool inside = false;;) {
        if (ptrace(PTRACE_SYSCALL, r->pid, 0, (long)signo) != 0) return remote_fail(r, "letting it go on", e);
        inl_status s = wait_with(r, patience, &status, e);
        if (s != INL_OK) return s;
        bool call = WSTOPSIG(status) == SYSCALL_STOP;
        signo = call || status >> 16 ? 0 : WSTOPSIG(status);
        if (call) inside = !inside;
        if (signo == SIGSTOP) r->stop_signal = signo;
        if (signo && !is_fault(signo)) signo = 0;
        if (!get_registers(r, &u)) return remote_fail(r, "reading registers", e);
        if (signo && (faults_end || faulted == remote_registers_pc(&u)))
            return inl_fail_at(e, INL_ERR_SYSTEM, remote_registers_pc(&u),
                               "the procedure that was called has failed at 0x%llx: %s",
                               (unsigned long long)remote_registers_pc(&u), strsignal(signo));
        if (signo) faulted = remote_registers_pc(&u);
        const long nr = call && inside ? remote_registers_number(&u) : -1;
        uint64_t word = nr < 0 ? 0 : begins_alone(r, nr);
        if (forgets_interrupted(nr)) remote_registers_anew(&r->regs, r->restarts);
        if (word) {
            s = leave_alone(r, word, e);
            if (s != INL_OK) return s;
            inside = false;
        }
        if (word || !call || !inside || remote_registers_pc(&u) != until) continue;
        if (results) remote_registers_results(&u, results);
        skip_call(r);
        return INL_OK;
    }
}

inl_status remote_run_call(remote *r, const remote_call_frame *f, uint64_t sp, unsigned patience, uint64_t results[2],
                           inl_error *e)
{
    struct user_regs_struct u = r->regs;
    remote_registers_frame(&u, f, sp);
    inl_status s = let_faults_in(r, true, e);
    if (s == INL_OK && !set_registers(r, &u)) s = remote_fail(r, "writing registers", e);
    if (s == INL_OK) s = run_call(r, f->faults_end, patience, results, e);
    inl_error ignored;
    if (!r->gone) let_faults_in(r, false, &ignored);
    return s;
}

inl_status remote_next(remote *r, int signo, remote_stop *stop, inl_error *e)
{
    int status;
    siginfo_t why;
    struct __ptrace_syscall_info call;
    inl_status s = go_on_with(r, PTRACE_SYSCALL, signo, &status, e);
    if (s != INL_OK) return s;
    if (!get_registers(r, &r->regs)) return remote_fail(r, "reading registers", e);
    *stop = (remote_stop){.kind = REMOTE_SIGNAL, .signo = status >> 16 ? 0 : WSTOPSIG(status)};
    if (WSTOPSIG(status) != SYSCALL_STOP) {
        bool faults = stop->signo && ptrace(PTRACE_GETSIGINFO, r->pid, 0, &why) == 0 && why.si_code > 0;
        if (faults) stop->fault = (uint64_t)(uintptr_t)why.si_addr;
        return INL_OK;
    }
    if (ptrace(PTRACE_GET_SYSCALL_INFO, r->pid, sizeof call, &call) <= 0)
        return remote_fail(r, "asking for its system call", e);
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
        stop->kind = REMOTE_CALL_BEGINS;
        stop->nr = (long)call.entry.nr;
        for (int i = 0; i < 6; i++) stop->args[i] = call.entry.args[i];
    } else {
        stop->kind = REMOTE_CALL_ENDS;
        stop->answer = (long)call.exit.rval;
    }
    return INL_OK;
}

inl_status remote_set_registers(remote *r, inl_error *e)
{
    return set_registers(r, &r->regs) ? INL_OK : remote_fail(r, "writing registers", e);
}

inl_status remote_vectors(remote *r, void **state, size_t *size, inl_error *e)
{
    enum { ROOM = 64 << 10 };
    *state = malloc(ROOM);
    struct iovec all = {*state, ROOM};
    if (!*state) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (ptrace(PTRACE_GETREGSET, r->pid, remote_vector_set, &all) != 0)
        return remote_fail(r, "reading vector registers", e);
    *size = all.iov_len;
    return INL_OK;
}

inl_status remote_set_vectors(remote *r, const void *state, size_t size, inl_error *e)
{
    struct iovec all = {(void *)state, size};
    if (ptrace(PTRACE_SETREGSET, r->pid, remote_vector_set, &all) == 0) return INL_OK;
    return remote_fail(r, "writing vector registers", e);
}

static bool set_mask(const remote *r, uint64_t mask)
{
    return ptrace(PTRACE_SETSIGMASK, r->pid, sizeof mask, &mask) == 0;
}

/* --- parked --- */

inl_status remote_tell(remote *r, inl_error *e)
{
    size_t size = remote_slot_size();
    void *bytes = malloc(size);
    if (!bytes) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = remote_slot_make(r, r->slot, bytes, e);
    if (s == INL_OK) s = remote_write(r, r->slot, bytes, size, e);
    free(bytes);
    return s;
}

/* In this order: whenever the holder dies, the thread's own mask is its mask or the frame's. */
inl_status remote_park(remote *r, inl_error *e)
{
    struct user_regs_struct u = r->regs;
    inl_status s = remote_tell(r, e);
    if (s != INL_OK) return s;
    remote_registers_jump(&u, MOVE_PARK_AFTER, r->slot);
    if (!set_registers(r, &u) || !set_mask(r, ~0ull)) return remote_fail(r, "holding signals back", e);
    r->is_parked = true;
    return INL_OK;
}

inl_status remote_unpark(remote *r, inl_error *e)
{
    if ((r->is_parked && !set_mask(r, r->sigmask)) || !set_registers(r, &r->regs))
        return remote_fail(r, "writing registers", e);
    r->is_parked = false;
    return INL_OK;
}

/* The thread stands at the way to rt_sigreturn, with its own mask if it was not told of it yet. */
static inl_status call_instead(remote *r, uint64_t returns, long *answer, long nr, const long args[6], inl_error *e)
{
    struct user_regs_struct u;
    inl_status s = set_mask(r, ~0ull) ? run_to_syscall(r, e) : remote_fail(r, "holding signals back", e);
    if (s != INL_OK) return s;
    if (!get_registers(r, &u)) return remote_fail(r, "reading registers", e);
    remote_registers_instead(&u, returns, nr, args);
    if (!set_registers(r, &u)) return remote_fail(r, "writing registers", e);
    s = run_to_syscall(r, e);
    if (s == INL_OK && !get_registers(r, &u)) s = remote_fail(r, "reading registers", e);
    if (s == INL_OK) *answer = remote_registers_answer(&u);
    return s;
}

/* What lay below the stack is put back: the thread may be on one that is smaller than it says. */
inl_status remote_call_alone(remote *r, uint64_t returns, long *answer, long nr, const long args[6], inl_error *e)
{
    size_t size = remote_slot_size();
    uint64_t at = remote_below_stack(&r->regs, size);
    struct user_regs_struct u = r->regs;
    uint8_t *frame = malloc(2 * size), *before = frame ? frame + size : NULL;
    inl_error ignored;
    if (!frame) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = remote_slot_make(r, at, frame, e);
    if (s == INL_OK && remote_read(r, at, before, size, e) != INL_OK) s = INL_ERR_RANGE;
    if (s == INL_OK && remote_write(r, at, frame, size, e) != INL_OK) s = INL_ERR_RANGE;
    if (s == INL_OK) {
        remote_registers_return(&u, returns, at);
        s = set_registers(r, &u) ? call_instead(r, returns, answer, nr, args, e)
                                 : remote_fail(r, "writing registers", e);
        if (!r->gone && !(set_mask(r, r->sigmask) && set_registers(r, &r->regs)))
            s = remote_fail(r, "writing registers", e);
        if (!r->gone) remote_write(r, at, before, size, &ignored);
    }
    free(frame);
    return s;
}

/* --- on its way --- */

void remote_continue(remote *r)
{
    inl_error ignored;
    remote_unpark(r, &ignored);
    ptrace(PTRACE_CONT, r->pid, 0, 0L);
}

/* With its own mask, since it must be able to go on alone: a signal that comes takes it to the first instruction of a
 * handler. But the trap at the end must not find its signal blocked: the kernel would take the handler away. */
inl_status remote_step(remote *r, inl_error *e)
{
    int status, signo = 0;
    bool entered = false;
    uint8_t code[REMOTE_STEP_BYTES] = {0};
    struct user_regs_struct before = r->regs;
    inl_error ignored;
    remote_read(r, remote_registers_pc(&r->regs), code, sizeof code, &ignored);
    const uint64_t trap = r->sigmask & 1ull << (SIGTRAP - 1);
    inl_status s = remote_unpark(r, e);
    if (s == INL_OK && trap && !set_mask(r, r->sigmask & ~trap)) s = remote_fail(r, "setting the mask of signals", e);
    if (s != INL_OK) return s;
    do {
        s = go_on_with(r, PTRACE_SINGLESTEP, signo, &status, e);
        if (s != INL_OK) return s;
        /* It waited in a call. That this was a step is told when it goes on, before anything else. */
        const bool waited = status >> 16 == PTRACE_EVENT_STOP;
        if (waited && entered) break;
        signo = status >> 16 ? 0 : WSTOPSIG(status);
        entered = entered || waited || (signo && signo != SIGTRAP);
    } while (signo != SIGTRAP);
    int stop = r->stop_signal;
    s = remote_take(r, r->pid, e);
    r->stop_signal = stop;
    r->sigmask |= trap;
    if (s != INL_OK) return s;
    remote_after_step(r, &before, entered ? (const uint8_t[REMOTE_STEP_BYTES]){0} : code);
    return remote_park(r, e);
}

static bool stands_where_it_was(remote *r, inl_error *e)
{
    return r->slot ? remote_unpark(r, e) == INL_OK : set_registers(r, &r->regs) && set_mask(r, r->sigmask);
}

inl_status remote_give_back(remote *r, inl_error *e)
{
    if (stands_where_it_was(r, e) && ptrace(PTRACE_DETACH, r->pid, 0, (long)r->stop_signal) == 0) return INL_OK;
    return remote_fail(r, "letting it go", e);
}

inl_status remote_leave_parked(remote *r, inl_error *e)
{
    inl_status s = remote_park(r, e);
    if (s == INL_OK && ptrace(PTRACE_DETACH, r->pid, 0, (long)r->stop_signal) != 0)
        s = remote_fail(r, "letting it go", e);
    return s;
}

inl_status remote_keep(remote *r, long options, inl_error *e)
{
    if (r->stop_signal) syscall(SYS_tkill, r->pid, r->stop_signal); /* waits until it goes on */
    r->stop_signal = 0;
    if (stands_where_it_was(r, e) && ptrace(PTRACE_SETOPTIONS, r->pid, 0, options) == 0) return INL_OK;
    return remote_fail(r, "keeping it", e);
}

inl_status remote_go(remote *r, uint64_t pc, uint64_t sp, inl_error *e)
{
    struct user_regs_struct u = r->regs;
    remote_registers_start(&u, pc, sp);
    if (ptrace(PTRACE_POKETEXT, r->pid, r->code_at, r->code_word) != 0 || !set_registers(r, &u) ||
        ptrace(PTRACE_SETSIGMASK, r->pid, sizeof r->sigmask, &r->sigmask) != 0 ||
        ptrace(PTRACE_DETACH, r->pid, 0, (long)r->stop_signal) != 0)
        return remote_fail(r, "starting the tool", e);
    return INL_OK;
}

void remote_end(remote *r, int status)
{
    if (r->gone) return;
    if (r->code_put) {
        struct user_regs_struct u = r->regs;
        remote_registers_call(&u, r->code_at, SYS_exit_group, (long[6]){status});
        if (set_registers(r, &u) && ptrace(PTRACE_DETACH, r->pid, 0, 0) == 0) return;
    }
    kill(r->pid, SIGKILL);
}
