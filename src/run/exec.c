/* exec: the new program runs under the tool as well. That takes another command line (the tool's
 * launcher, then the program), so what would go wrong natively must be found out before: once the
 * launcher runs, there is no caller left to get an error.
 *
 *     certain to fail, or in doubt     the call as it stands: the kernel finds the right error
 *     not for the tool (foreign        the call as it stands, with a line in the log, when the client has been told:
 *     machine, set-user-id, unreadable) this process will not come back
 *     the process is being traced      the same, with a notice: its tracer is to find the
 *                                      program's own code and calls, not Inlay's
 *     otherwise                        the client's plan; when that fails, the call as it stands
 *
 * In a vfork child the memory is the parent's: nothing of it may be left changed, and the plan's
 * memory is freed by the parent, after the exec.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/sys.h"
#include "run/confine.h"
#include "run/kernel.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

enum {
    HEAD = 256, /* what the kernel reads of a file to tell its kind */
    SCRIPT_DEPTH = 5,
    SLACK = 16384, /* room for the launcher's own arguments */
};

enum kind { KIND_DOUBT, KIND_ELF, KIND_SCRIPT, KIND_FOREIGN, KIND_PRIVILEGED, KIND_HIDDEN };

typedef struct request {
    int dirfd, flags;
    const char *path;
    uint64_t path_address, argv, envp;
} request;

/* --- what kind of file it is --- */

static bool changes_ids(int fd)
{
    struct stat st;
    char value[64];
    if (sys_call2(SYS_fstat, fd, (long)&st)) return true;
    if (st.st_mode & S_ISUID && st.st_uid != (uid_t)sys_call0(SYS_geteuid)) return true;
    if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != (gid_t)sys_call0(SYS_getegid))
        return true;
    return sys_call0(SYS_geteuid) != 0 &&
           sys_call4(SYS_fgetxattr, fd, (long)"security.capability", (long)value, sizeof value) > 0;
}

static enum kind kind_of_elf(const unsigned char *head)
{
    const Elf64_Ehdr *h = (const void *)head;
    if (head[EI_CLASS] != ELFCLASS64 || h->e_machine != RUN_ELF_MACHINE) return KIND_FOREIGN;
    return h->e_type == ET_EXEC || h->e_type == ET_DYN ? KIND_ELF : KIND_DOUBT;
}

/* The interpreter's name out of "#!  name argument"; false when it is cut off or missing. */
static bool interpreter_of(char *head, char **name)
{
    char *at = head + 2;
    at[strcspn(at, "\n")] = 0;
    at += strspn(at, " \t");
    size_t n = strcspn(at, " \t");
    if (n == 0 || at + n >= head + HEAD) return false;
    at[n] = 0;
    *name = at;
    return true;
}

static enum kind kind_of(int dirfd, const char *path, int depth)
{
    _Alignas(16) char head[HEAD + 1] = {0};
    if (depth > SCRIPT_DEPTH) return KIND_DOUBT;
    int fd = (int)sys_call4(SYS_openat, dirfd, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return fd == -EACCES ? KIND_HIDDEN : KIND_DOUBT;
    long n = sys_call4(SYS_pread64, fd, (long)head, HEAD, 0);
    bool privileged = changes_ids(fd);
    sys_call1(SYS_close, fd);
    if (n >= (long)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG)) {
        enum kind k = kind_of_elf((unsigned char *)head);
        return k == KIND_ELF && privileged ? KIND_PRIVILEGED : k;
    }
    char *interpreter;
    if (n < 3 || head[0] != '#' || head[1] != '!' || !interpreter_of(head, &interpreter)) return KIND_DOUBT;
    if (sys_call4(SYS_faccessat2, AT_FDCWD, (long)interpreter, X_OK, AT_EACCESS)) return KIND_DOUBT;
    enum kind k = kind_of(AT_FDCWD, interpreter, depth + 1);
    return k == KIND_ELF ? KIND_SCRIPT : k;
}

/* --- the vectors --- */

/* Bytes that argv or envp takes up on the new stack; -EFAULT. */
static long vector_bytes(uint64_t vector)
{
    long bytes = 0;
    for (uint64_t at = vector; vector; at += sizeof at) {
        uint64_t string;
        if (!run_read(&string, at, sizeof string)) return -EFAULT;
        if (!string) break;
        char chunk[4096];
        long n;
        while ((n = run_read_string(chunk, string, sizeof chunk)) == -ENAMETOOLONG) {
            bytes += (long)sizeof chunk;
            string += sizeof chunk;
        }
        if (n < 0) return n;
        bytes += n + 1 + (long)sizeof string;
    }
    return bytes;
}

static bool vectors_fit(const request *r)
{
    long argv = vector_bytes(r->argv), envp = vector_bytes(r->envp);
    if (argv < 0 || envp < 0) return false;
    struct rlimit limit = {0};
    sys_call4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit);
    long room = 6 << 20;
    if (limit.rlim_cur / 4 < (rlim_t)room) room = (long)(limit.rlim_cur / 4);
    if (room < 128 << 10) room = 128 << 10;
    return argv + envp + SLACK <= room;
}

/* --- the path --- */

/* /proc/self/exe and its other names: after the exec they would mean the launcher. */
static bool names_own_exe(const char *path)
{
    char own[48];
    snprintf(own, sizeof own, "/proc/%ld/exe", sys_call0(SYS_getpid));
    return !strcmp(path, "/proc/self/exe") || !strcmp(path, "/proc/thread-self/exe") || !strcmp(path, own);
}

static bool own_exe(char *out, size_t size)
{
    const char *link = "/proc/self/exe";
    long n = 0;
    if (run_here.client.proc_link) n = (long)run_here.client.proc_link(run_here.client.arg, link, out, size - 1);
    if (n <= 0) n = sys_readlink(link, out, size - 1);
    if (n <= 0) return false;
    out[n] = 0;
    return sys_call4(SYS_faccessat2, AT_FDCWD, (long)out, X_OK, AT_EACCESS) == 0;
}

/* A path that names the file from any process: of a descriptor, what /proc says of it. False when
 * there is none that will still be good after the exec. */
static bool settle_path(const request *r, char *out, size_t size)
{
    if (names_own_exe(r->path)) return own_exe(out, size);
    if (r->dirfd == AT_FDCWD || r->path[0] == '/') {
        size_t n = strlen(r->path);
        if (n >= size) return false;
        memcpy(out, r->path, n + 1);
        return true;
    }
    if (!r->path[0] && !sys_call3(SYS_fcntl, r->dirfd, F_GETFD, 0)) { /* open after the exec as well */
        snprintf(out, size, "/dev/fd/%d", r->dirfd);                  /* as the kernel names it */
        if (!sys_call4(SYS_faccessat2, AT_FDCWD, (long)out, X_OK, AT_EACCESS)) return true;
    }
    if (!run_proc_fd_path(r->dirfd, out, size) || out[0] != '/') return false;
    size_t n = strlen(out);
    if (r->path[0] && (size_t)snprintf(out + n, size - n, "/%s", r->path) >= size - n) return false;
    return sys_call4(SYS_faccessat2, AT_FDCWD, (long)out, X_OK, AT_EACCESS) == 0;
}

static bool can_be_found(const request *r, char *out, size_t size)
{
    if (settle_path(r, out, size)) return true;
    if (r->path[0]) run_say("%s runs without the tool: its file has no name any more", r->path);
    else
        run_say(
            "what is executed through descriptor %d runs without the tool: its file has no name, and the descriptor "
            "closes (without O_CLOEXEC, MFD_CLOEXEC it is followed)",
            r->dirfd);
    return false;
}

/* 0: by its rights the file may be executed. */
static long check_rights(const request *r)
{
    return sys_call4(SYS_faccessat2, r->dirfd, (long)r->path, X_OK,
                     AT_EACCESS | (r->flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)));
}

/* 0 when the kernel would let the file be run; else its error, or 1 when this kernel cannot tell. */
static long kernel_check(const request *r)
{
    long answer = sys_call(SYS_execveat, r->dirfd, (long)r->path, (long)r->argv, (long)r->envp,
                           r->flags | RUN_EXEC_CHECK, 0);
    if (answer != -EINVAL) return answer;
    answer = check_rights(r);
    return answer == -ENOSYS ? 1 : answer;
}

/* --- the call --- */

/* The exec itself: with the program's own mask, what it ignores and the mode of its alternate stack, which the new
 * program inherits. */
static long exec_now(run_thread *t, long nr, const long args[6])
{
    run_kernel_mask_all();
    if (t->pending.present) {
        run_kernel_mask_set(~RUN_FAULTS);
        return RUN_RESTART;
    }
    run_signals_for_exec(t->signals, false);
    run_altstack_for_exec(t, false);
    t->execs = true;
    run_kernel_mask_set(t->sigmask);
    long answer = run_pass_args(t, nr, args);
    t->execs = false;
    run_altstack_for_exec(t, true);
    run_signals_for_exec(t->signals, true);
    if (t->pending.present) run_kernel_mask_set(~RUN_FAULTS);
    else run_mask_apply(t);
    return answer;
}

static long exec_natively(run_thread *t, const request *r)
{
    if (run_number(&t->ctx) == SYS_execve) {
        long args[6] = {(long)r->path_address, (long)r->argv, (long)r->envp, 0, 0, 0};
        return exec_now(t, SYS_execve, args);
    }
    long args[6] = {r->dirfd, (long)r->path_address, (long)r->argv, (long)r->envp, r->flags, 0};
    return exec_now(t, SYS_execveat, args);
}

/* As far as can be seen it will be executed, without the tool: the client is told, as of an exec that it has refused.
 */
static long exec_alone(run_thread *t, const request *r)
{
    const run_client *c = &run_here.client;
    char number[24];
    snprintf(number, sizeof number, "/dev/fd/%d", r->dirfd); /* as the kernel names it */
    (void)c->exec(c->arg, t, r->path[0] ? r->path : number, (char *const *)r->argv, (char *const *)r->envp, NULL);
    long answer = exec_natively(t, r);
    if (c->exec_failed) c->exec_failed(c->arg, t);
    return answer;
}

bool run_is_traced(void)
{
    char text[4096];
    long fd = run_proc_open("self/status");
    if (sys_failed(fd)) return false;
    long n = sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
    sys_call1(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nTracerPid:\t");
    return line && line[12] != '0'; /* called where there is no thread of the C library's */
}

/* By a debugger that runs under Inlay too, or has been attached since. Who traced all from the beginning wants to
 * see Inlay. */
static bool has_tracer(const request *r)
{
    if (run_here.born_traced || !run_is_traced()) return false;
    if (!check_rights(r)) run_say("%s is started under a debugger or tracer; it runs without the tool", r->path);
    return true;
}

/* The new program keeps the filters of system calls, and the tool in it is not known to them. */
static bool is_barred(const run_thread *t, const request *r)
{
    const char *name = run_confine_bars_tool(t);
    if (name && !check_rights(r))
        run_say("%s runs without the tool: the program that starts it has given up calls that the tool needs (%s)",
                r->path, name);
    return name;
}

/* Nor will it get back the right to make code, by which the live engine begins. */
static bool makes_no_code(const run_thread *t, const request *r)
{
    if (!run_here.engine->is_native || run_confine_lets_make_code(t)) return false;
    if (!check_rights(r))
        run_say("%s runs without the tool: memory may not become executable here, which the live engine needs; the JIT "
                "engine "
                "does without",
                r->path);
    return true;
}

/* The kernel starts no script through a descriptor that its interpreter will not find. */
static bool closes(const request *r)
{
    return r->dirfd != AT_FDCWD && r->path[0] != '/' && sys_call3(SYS_fcntl, r->dirfd, F_GETFD, 0) & FD_CLOEXEC;
}

static enum kind kind_of_request(const request *r)
{
    static const char *const why[] = {[KIND_FOREIGN] = "it is of another machine",
                                      [KIND_PRIVILEGED] = "it changes its user or group",
                                      [KIND_HIDDEN] = "it may be executed but not read"};
    int dirfd = r->dirfd;
    const char *path = r->path;
    char link[64];
    if (!path[0]) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        dirfd = AT_FDCWD;
        path = link;
    }
    enum kind k = kind_of(dirfd, path, 0);
    if (k >= KIND_FOREIGN) inl_log(INL_LOG_INJECT, "%s runs without the tool: %s", r->path, why[k]);
    return k == KIND_SCRIPT && closes(r) ? KIND_DOUBT : k;
}

static long exec_planned(run_thread *t, const request *r, const run_exec_plan *plan)
{
    char link[40];
    long args[6] = {plan->fd, (long)"", (long)plan->argv, (long)r->envp, AT_EMPTY_PATH, 0};
    long other_args[6] = {(long)link, (long)plan->argv, (long)r->envp, 0, 0, 0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", plan->fd);
    bool may = run_confine_lets(t, SYS_execveat);
    t->exec_argv = plan->argv;
    long answer = exec_now(t, may ? SYS_execveat : SYS_execve, may ? args : other_args);
    t->exec_argv = NULL;
    free(plan->argv);
    run_fd_seal(); /* the client has opened them up for its launcher */
    return answer == RUN_RESTART ? answer : exec_natively(t, r);
}

static long execute(run_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags)
{
    char name[PATH_MAX], settled[PATH_MAX];
    request r = {.dirfd = dirfd, .flags = flags, .path = name, .path_address = path, .argv = argv, .envp = envp};
    run_exec_plan plan = {.fd = -1};
    if (flags & RUN_EXEC_CHECK) return sys_call(SYS_execveat, dirfd, (long)path, (long)argv, (long)envp, flags, 0);
    if (!run_here.client.exec || run_read_string(name, path, sizeof name) < 0 || !vectors_fit(&r))
        return exec_natively(t, &r);
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) return exec_natively(t, &r);
    if (!name[0] && !(flags & AT_EMPTY_PATH)) return exec_natively(t, &r);
    if (has_tracer(&r) || is_barred(t, &r) || makes_no_code(t, &r))
        return check_rights(&r) ? exec_natively(t, &r) : exec_alone(t, &r);
    long answer = kernel_check(&r);
    if (answer < 0) return answer;
    enum kind k = answer > 0 ? KIND_DOUBT : kind_of_request(&r);
    if (k == KIND_DOUBT) return exec_natively(t, &r);
    if (k >= KIND_FOREIGN || !can_be_found(&r, settled, sizeof settled)) return exec_alone(t, &r);
    if (!run_here.client.exec(run_here.client.arg, t, settled, (char *const *)argv, (char *const *)envp, &plan)) {
        answer = exec_natively(t, &r);
        if (run_here.client.exec_failed) run_here.client.exec_failed(run_here.client.arg, t);
        return answer;
    }
    inl_log(INL_LOG_INJECT, "exec of %s under the tool", settled);
    return exec_planned(t, &r, &plan);
}

enum { LONG_FOR_WORKERS = 100 }; /* ms */

/* The kernel ends all other threads, wherever they are: the client's own are where they sleep, if they come there soon.
 */
long run_sys_execve(run_thread *t, int dirfd, uint64_t path, uint64_t argv, uint64_t envp, int flags)
{
    if (t->is_vfork_child || !run_here.workers) return execute(t, dirfd, path, argv, envp, flags);
    run_workers_pause(LONG_FOR_WORKERS);
    long answer = execute(t, dirfd, path, argv, envp, flags);
    run_workers_resume();
    return answer;
}
