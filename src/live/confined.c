/* Processes that have confined themselves (seccomp). While a thread is held its filters are suspended, so that what is
 * called in it for the tool goes, whatever they say. What the tool calls afterwards, while the process runs, they are
 * asked of beforehand: they must let go what no tool can do without, and end nobody for anything else, since what a
 * tool does besides is not known here. Filters are inherited and never taken away; threads may have different ones.
 *
 * Whether memory may become executable the tool finds out by itself (run_may_make_code). */
#include "live/live.h"
#include "run/bpf.h"
#include INL_ARCH_HEADER(run, abi)

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif
#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

/* As many filters as the first process has are those of a container, if this process has them too: it makes the same
 * calls. */
static bool is_containers(pid_t pid)
{
    static const char key[] = "Seccomp_filters:";
    char its[32], first[32], own[32];
    return live_status_word(pid, key, its) && live_status_word(1, key, first) && live_status_word(getpid(), key, own) &&
           !strcmp(its, first) && !strcmp(its, own);
}

/* Of any of its threads. */
bool live_is_confined(pid_t pid)
{
    char path[64], word[32];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && !found && (entry = readdir(d));) {
        pid_t tid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;
        found = tid && live_status_word(tid, "Seccomp:", word) && strcmp(word, "0") && !is_containers(tid);
    }
    if (d) closedir(d);
    return found;
}

long live_seize_options(const live_process *p)
{
    return PTRACE_O_TRACESYSGOOD | (p->is_confined ? PTRACE_O_SUSPEND_SECCOMP : 0);
}

/* --- what the filters say --- */

/* clang-format off */
typedef struct call {
    int nr;
    const char *name;
} call;
#define CALL(name) {SYS_##name, #name}
/* Without these no tool works: its memory, its report, signals' masks around what the program calls. */
static const call needs[] = {
    CALL(openat), CALL(read), CALL(write), CALL(close), CALL(pread64), CALL(newfstatat), CALL(fcntl), CALL(mmap),
    CALL(mprotect), CALL(munmap), CALL(madvise), CALL(rt_sigprocmask), CALL(rt_sigaction), CALL(rt_sigreturn),
    CALL(sigaltstack), CALL(prlimit64), CALL(getpid), CALL(gettid), CALL(futex), CALL(exit_group),
};
/* Inlay, the C library, or a tool that writes, measures or waits may make these; where they fail they fail. */
static const call others[] = {
    CALL(fstat), CALL(statx), CALL(lseek), CALL(ioctl), CALL(readv), CALL(writev), CALL(pwrite64), CALL(faccessat),
    CALL(faccessat2), CALL(pipe2), CALL(mremap), CALL(mincore), CALL(dup), CALL(dup3), CALL(nanosleep),
    CALL(clock_nanosleep), CALL(clock_gettime), CALL(getrandom), CALL(sched_yield), CALL(sched_getaffinity),
    CALL(uname), CALL(getcwd), CALL(readlinkat), CALL(renameat2), CALL(unlinkat), CALL(mkdirat), CALL(ftruncate),
    CALL(flock), CALL(getdents64), CALL(sysinfo), CALL(tgkill), CALL(rt_tgsigqueueinfo), CALL(rt_sigpending),
    CALL(timer_create), CALL(timer_settime), CALL(timer_delete), CALL(set_robust_list), CALL(set_tid_address),
    CALL(rseq), CALL(membarrier), CALL(memfd_create), CALL(process_vm_readv), CALL(prctl), CALL(clone), CALL(clone3),
    CALL(exit), CALL(wait4), CALL(getppid), CALL(getuid), CALL(sched_getscheduler), CALL(ppoll),
#ifdef SYS_open
    CALL(open), CALL(stat), CALL(lstat), CALL(access), CALL(pipe), CALL(dup2), CALL(rename), CALL(unlink), CALL(mkdir),
    CALL(readlink), CALL(time), CALL(arch_prctl), CALL(poll),
#endif
};
#undef CALL
/* clang-format on */

typedef struct filter {
    unsigned count;
    struct sock_filter *code;
} filter;

/* A tool's calls come from elsewhere, and so do the program's where code has moved. */
static bool looks_at_place(const filter *f)
{
    const uint32_t at = offsetof(struct seccomp_data, instruction_pointer);
    for (unsigned i = 0; i < f->count; i++) {
        const struct sock_filter *c = &f->code[i];
        if (BPF_CLASS(c->code) == BPF_LD && BPF_MODE(c->code) == BPF_ABS && (c->k == at || c->k == at + 4)) return true;
    }
    return false;
}

static uint32_t answer_to(const filter *f, const call *c)
{
    struct seccomp_data d = {.nr = c->nr, .arch = RUN_AUDIT_ARCH};
    bool looks;
    if (c->nr == SYS_mmap)
        d.args[1] = 4096, d.args[2] = PROT_READ | PROT_WRITE, d.args[3] = MAP_PRIVATE | MAP_ANONYMOUS;
    if (c->nr == SYS_mprotect) d.args[1] = 4096, d.args[2] = PROT_READ | PROT_WRITE;
    return run_bpf_run(f->code, f->count, &d, &looks) & SECCOMP_RET_ACTION_FULL;
}

static bool goes(uint32_t action)
{
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_USER_NOTIF;
}

static bool fails_at_most(uint32_t action)
{
    return goes(action) || action == SECCOMP_RET_ERRNO || action == SECCOMP_RET_TRAP || action == SECCOMP_RET_TRACE;
}

static inl_status refuse(const live_process *p, const char *what, const char *name, inl_error *e)
{
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "process %d is confined: a filter of system calls (seccomp) %s%s; start it under the tool instead "
                    "(inlay run, inlay rewrite)",
                    p->pid, what, name);
}

static inl_status look(const live_process *p, const filter *f, inl_error *e)
{
    if (looks_at_place(f)) return refuse(p, "looks at where calls are made, and a tool makes them elsewhere", "", e);
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (!goes(answer_to(f, &needs[i]))) return refuse(p, "forbids what no tool can do without: ", needs[i].name, e);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!fails_at_most(answer_to(f, &others[i])))
            return refuse(p, "would end it at a call that a tool may make: ", others[i].name, e);
    return INL_OK;
}

/* The thread's filter of that number; *more: there is one. */
static inl_status read_filter(const live_process *p, pid_t tid, long number, filter *f, bool *more, inl_error *e)
{
    long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, NULL);
    *more = count > 0;
    if (count < 0 && errno == ENOENT) return INL_OK;
    *f = (filter){.count = *more ? (unsigned)count : 0, .code = calloc(*more ? (size_t)count : 1, sizeof *f->code)};
    if (*more && f->code && ptrace(PTRACE_SECCOMP_GET_FILTER, tid, number, f->code) == count) return INL_OK;
    free(f->code);
    return refuse(p, "cannot be read: ", strerror(f->code ? errno : ENOMEM), e);
}

/* Most threads have the same ones. */
static bool is_known(const filter *known, size_t count, const filter *f)
{
    for (size_t i = 0; i < count; i++)
        if (known[i].count == f->count && !memcmp(known[i].code, f->code, f->count * sizeof *f->code)) return true;
    return false;
}

inl_status live_check_filters(const live_process *p, inl_error *e)
{
    INL_VEC(filter) known = {0};
    inl_status s = INL_OK;
    for (size_t i = 0; i < p->threads.count && s == INL_OK; i++) {
        bool more = true;
        for (long k = 0; more && s == INL_OK; k++) {
            filter f;
            s = read_filter(p, p->threads.items[i].pid, k, &f, &more, e);
            if (s != INL_OK || !more) break;
            bool is_new = !is_known(known.items, known.count, &f);
            if (is_new) s = look(p, &f, e);
            if (!is_new || !inl_vec_push(&known, f)) free(f.code);
        }
    }
    for (size_t i = 0; i < known.count; i++) free(known.items[i].code);
    inl_vec_free(&known);
    return s;
}
