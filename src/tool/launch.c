/* The launcher becomes the program; a helper puts the tool into it on the way.
 *
 * The helper is a child without an exit signal, which the resident reaps before the program's first
 * instruction: the program finds no child that it did not make, nor does an ancestor that adopts
 * orphans. It traces the launcher from before the exec to the exec stop, and is gone then. It keeps no
 * descriptor open but its two pipes and standard error: a reader must see the end of the program's
 * pipes when the program ends. PTRACE_O_EXITKILL sees to it that a helper that dies half-way takes
 * the program along: never is a program half-run.
 *
 *     launcher                         helper
 *       <--------- its pid -------------
 *       prctl(PR_SET_PTRACER)
 *       ---------- go ----------------->  PTRACE_SEIZE
 *       <--------- 0 or errno ----------    (negative: of reading and writing memory)
 *       execve                            wait for the exec stop, inject, end
 *
 * With --engine=live the helper becomes the instrumentor (attacher.c), and is gone when the program runs.
 */
#include "tool/state.h"
#include "base/log.h"
#include "base/sys.h"
#include "live/live.h"

#include <inlay/tool.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct helper_pipes {
    int to_helper[2], to_launcher[2];
} helper_pipes;

/* A number that the program is unlikely to look at before the resident hides it. */
static int lift(int fd)
{
    struct rlimit limit;
    int low = 900;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1000)
        low = limit.rlim_cur > 32 ? (int)limit.rlim_cur - 16 : 3;
    int high = fcntl(fd, F_DUPFD, low);
    return high;
}

static void keep(int fd)
{
    if (fd >= 0) fcntl(fd, F_SETFD, 0);
}

/* The folder is kept so that other processes' reports land there wherever they change to. */
void launch_open_output(tool_fds *f, const char *path, bool keeps)
{
    int fd = -1;
    if (!tool_now->options.followed) {
        fd = result_open_first(path, keeps);
        if (fd < 0) tool_fail(TOOL_EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
        f->out = lift(fd);
        f->shared = lift(fd);
        close(fd);
    }
    char *copy = strdup(path);
    fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        f->out_dir = lift(fd);
        close(fd);
    }
    free(copy);
}

static void prepare_fds(void)
{
    tool_fds *f = &tool_now->options.fds;
    if (f->tool < 0) {
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (fd < 0) tool_fail(TOOL_EXIT_FAILED, "cannot open my own file through /proc/self/exe: %s", strerror(errno));
        f->tool = lift(fd);
        close(fd);
    }
    if (f->err < 0) f->err = lift(STDERR_FILENO);
    if (tool_now->options.output && f->out_dir < 0) {
        launch_open_output(f, tool_now->options.output, true);
        tool_handoff_data.empties = f->out >= 0;
    }
    if (f->tool < 0) tool_fail(TOOL_EXIT_FAILED, "no file descriptor left for the tool");
    keep(f->tool);
    keep(f->err);
    keep(f->out);
    keep(f->out_dir);
    keep(f->shared);
    keep(f->gdb);
    tool_handoff_data.fds = *f;
}

/* --- the helper's side --- */

static void close_all_but(int a, int b, int c)
{
    int keep[] = {a, b, c}, from = 0;
    for (int i = 0; i < 3; i++)
        for (int j = i + 1; j < 3; j++)
            if (keep[j] < keep[i]) {
                int t = keep[i];
                keep[i] = keep[j];
                keep[j] = t;
            }
    for (int i = 0; i < 3; i++) {
        if (keep[i] < from) continue;
        if (keep[i] > from && sys_call3(SYS_close_range, from, keep[i] - 1, 0) != 0)
            for (int fd = from; fd < keep[i]; fd++) close(fd);
        from = keep[i] + 1;
    }
    if (sys_call3(SYS_close_range, from, ~0u, 0) != 0)
        for (int fd = from; fd < 4096; fd++) close(fd);
}

/* What the program may use up is not meant for the analysis of it: as much as there is a right to. */
static void raise_limits(void)
{
    static const int all[] = {RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rlimit limit, most = {RLIM_INFINITY, RLIM_INFINITY};
        if (getrlimit(all[i], &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
        if (setrlimit(all[i], &most) == 0) continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(all[i], &limit);
    }
}

/* 0, or the error with which the launcher's memory cannot be read or written: filters of system calls may deny that and
 * not ptrace. A word that nobody looks at, and that both have at one address. */
static int32_t memory_error(pid_t target)
{
    static uint64_t word;
    uint64_t copy;
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    bool can = process_vm_readv(target, &here, 1, &there, 1, 0) == sizeof copy &&
               process_vm_writev(target, &here, 1, &there, 1, 0) == sizeof copy;
    return can ? 0 : errno;
}

static void helper_main(pid_t target, const helper_pipes *p, char **argv)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int own = tool_now->options.fds.err, err = own >= 0 ? own : STDERR_FILENO;
    if (own >= 0) libc_redirect_stdio(own); /* the program's may be something else, or a pipe of these */
    close_all_but(p->to_helper[0], p->to_launcher[1], err);
    int32_t word = (int32_t)sys_call0(SYS_getpid);
    if (write(p->to_launcher[1], &word, sizeof word) != sizeof word ||
        read(p->to_helper[0], &word, sizeof word) != sizeof word)
        _exit(1);
    int32_t memory = memory_error(target);
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | (memory ? 0 : PTRACE_O_EXITKILL);
    word = ptrace(PTRACE_SEIZE, target, 0, options) == 0 ? -memory : errno;
    bool told = write(p->to_launcher[1], &word, sizeof word) == sizeof word;
    close(p->to_launcher[1]);
    close(p->to_helper[0]);
    if (word != 0 || !told || !remote_wait_for_exec(target)) _exit(word != 0);
    if (tool_now->options.engine == ENGINE_LIVE) {
        raise_limits();
        attacher_enter_at_exec(target, argv);
    }
    inject_job job = {.pid = target, .tool_fd = tool_handoff_data.fds.tool, .argv = argv, .envp = environ};
    inl_error e = {0};
    inl_status s = inject_tool(&job, &e);
    if (s == INL_ERR_NOT_FOUND && own >= 0) _exit(TOOL_EXIT_FAILED); /* whoever has started it has ended it */
    if (s != INL_OK) tool_fail(TOOL_EXIT_FAILED, "%s", e.text);
    _exit(0);
}

/* --- the launcher's side --- */

/* A child without an exit signal: nothing becomes pending in us when it ends. */
static pid_t fork_quietly(void) { return (pid_t)sys_call(SYS_clone, 0, 0, 0, 0, 0, 0); }

static void reap(pid_t helper)
{
    while (waitpid(helper, NULL, __WALL) < 0 && errno == EINTR) {}
}

/* 0, or the error for which there is no tracing; negative: no access to memory. */
static int arrange_tracing(char **argv)
{
    helper_pipes p;
    int32_t word;
    if (pipe2(p.to_helper, O_CLOEXEC) != 0) return errno;
    if (pipe2(p.to_launcher, O_CLOEXEC) != 0) {
        word = errno;
        close(p.to_helper[0]);
        close(p.to_helper[1]);
        return word;
    }
    pid_t self = getpid(), helper = fork_quietly();
    if (helper == 0) helper_main(self, &p, argv);
    close(p.to_helper[0]);
    close(p.to_launcher[1]);
    word = sys_failed(helper) ? -helper : ECHILD;
    if (helper > 0 && read(p.to_launcher[0], &word, sizeof word) == sizeof word) {
        prctl(PR_SET_PTRACER, word);
        if (write(p.to_helper[1], &word, sizeof word) != sizeof word ||
            read(p.to_launcher[0], &word, sizeof word) != sizeof word)
            word = ECHILD;
    }
    close(p.to_helper[1]);
    close(p.to_launcher[0]);
    if (word != 0 && helper > 0) reap(helper);
    return word;
}

/* A program that another has started, which goes on as natively. */
static void run_natively(const char *path, char **argv, const char *why)
{
    const tool_fds *f = &tool_now->options.fds;
    tool_say("%s runs without the tool: %s", path, why);
    fflush(NULL);
    const int all[] = {f->tool, f->err, f->out, f->out_dir, f->shared, f->gdb};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] >= 0) fcntl(all[i], F_SETFD, FD_CLOEXEC);
    execve(path, argv, environ);
}

/* What arrange_tracing could not. */
static const char *without_tracing(int error)
{
    static char why[200];
    const char *what = "ptrace is not possible here";
    if (error < 0) what = "the memory of other processes cannot be read and written here (process_vm_readv, _writev)";
    if (error == EAGAIN || error == ENOMEM) what = "no process can be made that would put the tool in; see ulimit -u";
    if (error == EMFILE || error == ENFILE) what = "no file descriptor is left to put the tool in by; see ulimit -n";
    snprintf(why, sizeof why, "%s (%s)", what, strerror(abs(error)));
    return why;
}

static void refuse_live(const char *path, char **argv, const char *why)
{
    if (tool_now->options.followed) run_natively(path, argv, why);
    tool_fail(TOOL_EXIT_FAILED, "%s, as --engine=live needs it; use --engine=jit", why);
}

static void check_live(const char *path, char **argv)
{
    inl_error e = {0};
    if (tool_now->options.engine == ENGINE_LIVE && live_check_numbers(&e) != INL_OK) refuse_live(path, argv, e.text);
}

void tool_launch(const char *path, char **argv, char **launcher_argv)
{
    if (tool_now->options.fds.err >= 0) libc_redirect_stdio(tool_now->options.fds.err);
    if (tool_now->options.gdb && !tool_now->options.followed) tool_now->options.fds.gdb = lift(tool_jit_gdb_launch());
    if (tool_now->options.engine == ENGINE_JIT || tool_now->options.followed) prepare_fds();
    strcpy(tool_handoff_data.program, path);
    if (!tool_now->options.no_ptrace) {
        check_live(path, argv);
        int error = arrange_tracing(launcher_argv);
        if (error == 0) {
            inl_log(INL_LOG_INJECT, "exec of %s; a helper will put the tool in", path);
            fflush(NULL);
            execve(path, argv, environ);
            tool_fail(TOOL_EXIT_FAILED, "cannot run %s: %s", path, strerror(errno));
        }
        if (tool_now->options.engine == ENGINE_LIVE) refuse_live(path, argv, without_tracing(error));
        if (tool_now->options.gdb) tool_fail(TOOL_EXIT_FAILED, "--gdb: %s", without_tracing(error));
        tool_say("%s; loading the program into the tool's process", without_tracing(error));
        tool_now->options.no_ptrace = true;
    }
    inl_error e = {0};
    if (load_program(path, argv, environ, &e) == INL_OK) return;
    if (tool_now->options.followed) run_natively(path, argv, e.text);
    tool_fail(TOOL_EXIT_FAILED, "cannot run %s: %s", path, e.text);
}
