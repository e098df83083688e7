/* A program that confines itself: filters of system calls (seccomp).
 *
 * Inlay lives in the process and makes calls of its own, which the program's filter knows nothing of. So a filter
 * gets a few instructions in front before the kernel is given it:
 *
 *     called from the tool's image, but not from where it makes the program's calls  ->  allowed
 *     otherwise                                                                       ->  the program's filter
 *
 * Under the JIT the program's code cannot reach the tool's instructions; in a rewritten program it could, if
 * somebody took it over: to that extent the tool opens the sandbox.
 *
 * The other way round: calls that Inlay carries out for the program, or answers itself, do not come by the
 * filter. Each thread therefore knows its filters, as they were, and Inlay asks them first. What they refuse is
 * made as it stands, and the kernel does what is to be done; what kills is told the tool before.
 *
 * SECCOMP_MODE_STRICT becomes a filter of the same meaning.
 *
 * Filters that were there before the tool started are not known. An own call that they trap fails (ENOSYS). */
#include "run/confine.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/own.h"
#include "base/page.h"
#include "base/sys.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef SECCOMP_FILTER_FLAG_TSYNC
#define SECCOMP_FILTER_FLAG_TSYNC 1
#endif
#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER 8
#endif

enum { PREFIX = 24 }; /* instructions, at most */

struct run_filter {
    const struct run_filter *before;
    bool is_strict;
    unsigned count;
    struct sock_filter code[];
};

/* --- the prefix --- */

#define LOAD(member, half)                                                                                             \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member) + (half))
#define JUMP(op, value, yes, no)                                                                                       \
    (struct sock_filter) BPF_JUMP(BPF_JMP | (op) | BPF_K, (uint32_t)(value), (uint8_t)(yes), (uint8_t)(no))
#define RETURN(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, value)

/* The places behind the system calls that are the program's own. */
static unsigned program_calls(uint64_t out[8])
{
    unsigned n = 0;
    out[n++] = (uint64_t)(uintptr_t)run_blocking_after;
    for (const char *const *p = run_here.engine->program_calls; *p; p++) out[n++] = (uint64_t)(uintptr_t)*p;
    return n;
}

bool run_is_program_call(uint64_t pc)
{
    uint64_t calls[8];
    unsigned n = program_calls(calls);
    for (unsigned i = 0; i < n; i++)
        if (calls[i] == pc) return true;
    return false;
}

/* For the part of [low, high) that shares its upper half with `low`: allowed, unless it is one of `calls`. */
static unsigned allow(struct sock_filter *out, uint64_t low, uint64_t high, const uint64_t *calls, unsigned count)
{
    struct sock_filter *p = out;
    unsigned rest = 4 + count; /* from behind the first jump to behind the return */
    *p++ = LOAD(instruction_pointer, 4);
    *p++ = JUMP(BPF_JEQ, low >> 32, 0, rest);
    *p++ = LOAD(instruction_pointer, 0);
    *p++ = JUMP(BPF_JGT, low, 0, --rest - 1);
    *p++ = JUMP(BPF_JGT, high - 1, --rest - 1, 0);
    for (unsigned i = 0; i < count; i++) *p++ = JUMP(BPF_JEQ, calls[i], --rest - 1, 0);
    *p++ = RETURN(SECCOMP_RET_ALLOW);
    return (unsigned)(p - out);
}

/* The tool's image, from which Inlay's calls are made, may lie on both sides of a multiple of 2^32. (What a process is
 * given for Inlay may be far larger.) The accumulator ends as it began. */
static unsigned put_prefix(struct sock_filter *out)
{
    extern const char end[]; /* the linker's */
    uint64_t calls[8], low = inl_own_base(), high = inl_page_up((uint64_t)(uintptr_t)end), middle = (high >> 32) << 32;
    unsigned n = 0, count = program_calls(calls);
    if (low < middle) n += allow(out, low, middle, calls, count);
    if (middle < high) n += allow(out + n, low < middle ? middle : low, high, calls, count);
    out[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
    return n;
}

/* --- asking --- */

/* The kernel's order: the lowest answer counts, as a signed number; what it does not know kills. */
static int32_t action_of(uint32_t answer)
{
    uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
    switch (action) {
    case SECCOMP_RET_KILL_THREAD:
    case SECCOMP_RET_TRAP:
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_USER_NOTIF:
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ALLOW: return (int32_t)action;
    default: return (int32_t)SECCOMP_RET_KILL_PROCESS;
    }
}

static int32_t ask(const run_filter *filters, const struct seccomp_data *d, bool *looks, const run_filter **who)
{
    int32_t lowest = (int32_t)SECCOMP_RET_ALLOW;
    for (const run_filter *f = filters; f; f = f->before) {
        int32_t action = action_of(run_bpf_run(f->code, f->count, d, looks));
        if (action >= lowest) continue;
        lowest = action;
        *who = f;
    }
    return lowest;
}

static run_verdict verdict_of(int32_t action, const run_filter *who)
{
    if (action >= (int32_t)SECCOMP_RET_USER_NOTIF) return RUN_CALL_GOES;
    if (who && who->is_strict) return RUN_CALL_KILLS;
    return action < (int32_t)SECCOMP_RET_TRAP ? RUN_CALL_KILLS : RUN_CALL_REFUSED;
}

static run_verdict ask_for(const run_thread *t, const struct seccomp_data *d, int32_t *action, bool *is_strict)
{
    const run_filter *who = NULL;
    bool looks = false;
    *action = ask(t->filters, d, &looks, &who);
    *is_strict = who && who->is_strict;
    return verdict_of(*action, who);
}

static struct seccomp_data data_of(const weave_context *c)
{
    struct seccomp_data d = {.nr = (int)run_number(c), .arch = RUN_AUDIT_ARCH, .instruction_pointer = c->pc};
    for (int i = 0; i < 6; i++) d.args[i] = run_arg(c, i);
    return d;
}

run_verdict run_confine_ask(const run_thread *t, const weave_context *c)
{
    struct seccomp_data d = data_of(c);
    int32_t action;
    bool is_strict;
    return t->filters ? ask_for(t, &d, &action, &is_strict) : RUN_CALL_GOES;
}

/* What a launcher, its helper and the tool in the new process cannot do without. */
/* clang-format off */
static const struct need {
    int nr;
    const char *name;
} needs[] = {
#define NEED(name) {SYS_##name, #name}
    NEED(openat), NEED(read), NEED(write), NEED(close), NEED(pread64), NEED(newfstatat), NEED(fcntl), NEED(mmap),
    NEED(mprotect), NEED(munmap), NEED(madvise), NEED(memfd_create), NEED(ftruncate), NEED(pipe2), NEED(clone),
    NEED(wait4), NEED(prctl), NEED(arch_prctl), NEED(rt_sigprocmask), NEED(rt_sigaction), NEED(sigaltstack),
    NEED(rt_sigreturn), NEED(prlimit64), NEED(getpid), NEED(gettid), NEED(set_tid_address), NEED(set_robust_list),
    NEED(exit_group), NEED(execve),
#undef NEED
};
/* clang-format on */

const char *run_confine_bars_tool(const run_thread *t)
{
    for (unsigned i = 0; t->filters && i < sizeof needs / sizeof *needs; i++) {
        if (needs[i].nr >= SYS_ABSENT) continue;
        struct seccomp_data d = {.nr = needs[i].nr, .arch = RUN_AUDIT_ARCH};
        int32_t action;
        bool is_strict;
        if (ask_for(t, &d, &action, &is_strict) != RUN_CALL_GOES) return needs[i].name;
    }
    return NULL;
}

bool run_confine_lets(const run_thread *t, long nr)
{
    struct seccomp_data d = {.nr = (int)nr, .arch = RUN_AUDIT_ARCH};
    int32_t action;
    bool is_strict;
    return !t->filters || ask_for(t, &d, &action, &is_strict) == RUN_CALL_GOES;
}

bool run_may_make_code(void)
{
    long at = sys_call(SYS_mmap, 0, INL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(at)) return true;
    bool may = !sys_call3(SYS_mprotect, at, INL_PAGE, PROT_READ | PROT_EXEC);
    sys_call2(SYS_munmap, at, INL_PAGE);
    return may;
}

bool run_confine_lets_make_code(const run_thread *t)
{
    struct seccomp_data d = {.nr = SYS_mprotect, .arch = RUN_AUDIT_ARCH};
    d.args[1] = INL_PAGE, d.args[2] = PROT_READ | PROT_EXEC;
    int32_t action;
    bool is_strict;
    return run_may_make_code() && (!t->filters || ask_for(t, &d, &action, &is_strict) == RUN_CALL_GOES);
}

bool run_confine_is_strict(const run_thread *t) { return t->filters && t->filters->is_strict; }

/* --- death --- */

/* The kernel ends one thread where only one is meant and there are others. */
void run_confine_kill(run_thread *t)
{
    struct seccomp_data d = data_of(&t->ctx);
    int32_t action;
    bool is_strict;
    ask_for(t, &d, &action, &is_strict);
    int signo = is_strict ? SIGKILL : SIGSYS;
    inl_log(INL_LOG_SIGNAL, "a filter of system calls kills at call %d", d.nr);
    bool only_thread = is_strict || action == (int32_t)SECCOMP_RET_KILL_THREAD;
    if (only_thread && !t->is_vfork_child && run_here.thread_count > 1) run_thread_exit(t, signo);
    run_kernel_mask_all();
    if (!t->is_vfork_child) run_process_end(t, 0, signo);
    if (!is_strict) {
        static const bool never;
        long args[6];
        for (int i = 0; i < 6; i++) args[i] = (long)d.args[i];
        run_blocking_syscall(&never, d.nr, args); /* the kernel's own way */
    }
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
    run_exit_raw(&t->busy, SYS_exit_group, 128 + signo);
}

/* --- a new filter --- */

static void only_always_allowed(const run_filter *f)
{
    for (int nr = 0; nr < RUN_SYSCALLS; nr++) {
        struct seccomp_data d = {.nr = nr, .arch = RUN_AUDIT_ARCH};
        bool looks = false;
        uint32_t answer = run_bpf_run(f->code, f->count, &d, &looks);
        if (answer == SECCOMP_RET_ALLOW && !looks) continue;
        run_syscall_keep(nr);
    }
}

/* Threads that are brought into line had no filter that this one does not have. */
static void note(run_thread *t, run_filter *f, bool for_all)
{
    inl_lock_take(&run_here.lock);
    f->before = t->filters;
    t->filters = f;
    for (run_thread *o = for_all ? run_here.threads : NULL; o; o = o->next)
        if (!o->is_vfork_child || o == t) o->filters = f;
    if (!run_here.engine->is_native) only_always_allowed(f);
    inl_lock_release(&run_here.lock);
}

static run_filter *new_filter(unsigned count)
{
    run_filter *f = malloc(sizeof *f + (count + PREFIX) * sizeof *f->code);
    if (f) *f = (run_filter){.count = count};
    return f;
}

/* The kernel gets the filter with its prefix in the place of the one that the program named in argument `place`. */
static long install(run_thread *t, const weave_context *c, int place, uint64_t flags, run_filter *f)
{
    struct sock_filter *whole = malloc((f->count + PREFIX) * sizeof *whole);
    if (!whole) return -ENOMEM;
    unsigned n = put_prefix(whole);
    memcpy(whole + n, f->code, f->count * sizeof *whole);
    struct sock_fprog program = {.len = (unsigned short)(n + f->count), .filter = whole};
    long args[6];
    for (int i = 0; i < 6; i++) args[i] = i == place ? (long)&program : (long)run_arg(c, i);
    long answer = run_pass_args(t, run_number(c), args);
    free(whole);
    bool synchronises = flags & SECCOMP_FILTER_FLAG_TSYNC;
    bool other_failed = synchronises && !(flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) && answer > 0;
    if (answer < 0 || other_failed) return answer;
    note(t, f, synchronises);
    inl_log(INL_LOG_SYSCALL, "a filter of %u instructions; Inlay's own calls are let through", f->count);
    return answer;
}

static long set_filter(run_thread *t, const weave_context *c, int place, uint64_t flags)
{
    struct sock_fprog program;
    if (!run_read(&program, run_arg(c, place), sizeof program) || !program.len || program.len > BPF_MAXINSNS)
        return run_pass(t, c);
    if (program.len > BPF_MAXINSNS - PREFIX) {
        run_say("a filter of system calls (seccomp) of %u instructions leaves no room for Inlay's own calls; "
                "what it forbids the tool cannot do either",
                program.len);
        return run_pass(t, c);
    }
    run_filter *f = new_filter(program.len);
    if (!f) return -ENOMEM;
    size_t bytes = program.len * sizeof *f->code;
    bool readable = run_read(f->code, (uint64_t)(uintptr_t)program.filter, bytes);
    long answer = readable ? install(t, c, place, flags, f) : run_pass(t, c);
    if (t->filters != f) free(f);
    return answer;
}

/* The strict mode needs no privilege, a filter does; that it is given up nobody can see any more. */
static long set_strict(run_thread *t)
{
    static const int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_rt_sigreturn};
    enum { CALLS = sizeof allowed / sizeof *allowed };
    if (t->filters) return -EINVAL;
    run_filter *f = new_filter(CALLS + 3);
    if (!f) return -ENOMEM;
    struct sock_filter *p = f->code;
    *p++ = LOAD(nr, 0);
    for (int i = 0; i < CALLS; i++) *p++ = JUMP(BPF_JEQ, allowed[i], CALLS - i, 0);
    *p++ = RETURN(SECCOMP_RET_TRAP);
    *p++ = RETURN(SECCOMP_RET_ALLOW);
    f->is_strict = true;
    weave_context c = t->ctx;
    run_set_call(&c, SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0);
    sys_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    long answer = install(t, &c, 2, 0, f);
    if (t->filters != f) free(f);
    else sys_call(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0, 0); /* goes with that mode */
    return answer;
}

long run_confine_prctl(run_thread *t, const weave_context *c)
{
    if (run_arg(c, 1) == SECCOMP_MODE_STRICT) return set_strict(t);
    return run_arg(c, 1) == SECCOMP_MODE_FILTER ? set_filter(t, c, 2, 0) : run_pass(t, c);
}

long run_confine_seccomp(run_thread *t, weave_context *c)
{
    uint64_t flags = run_arg(c, 1);
    bool is_strict = (uint32_t)run_arg(c, 0) == SECCOMP_SET_MODE_STRICT && !(uint32_t)flags && !run_arg(c, 2);
    if (is_strict) return set_strict(t);
    return (uint32_t)run_arg(c, 0) == SECCOMP_SET_MODE_FILTER ? set_filter(t, c, 2, flags) : run_pass(t, c);
}

bool run_own_call_failed(int signo, const siginfo_t *info, void *uc)
{
    uint64_t pc = run_uc_pc(uc);
    if (signo != SIGSYS || info->si_code != SYS_SECCOMP || run_is_program_call(pc)) return false;
    if (pc < run_here.start.tool_low || pc >= run_here.start.tool_high) return false;
    run_uc_set_answer(uc, -ENOSYS);
    return true;
}
