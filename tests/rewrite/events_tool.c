/* Writes down every callback from the moment the program makes the system call MARK, one line each, straight to
 * the output: each line has its number of thread first, so that threads can be looked at one by one.
 *
 * It also changes what the program sees: getppid is not made and answers 4711, getuid's answer is raised by
 * 1000, getgid becomes getuid, a write to descriptor 77 goes to 1, and a read of 77 bytes is one of 76. */
#include <inlay.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>

enum { MARK = 0x1234 };
static atomic_bool marked;

static void say(inlay_thread *t, const char *fmt, ...)
{
    char line[300];
    if (!marked) return;
    int n = snprintf(line, sizeof line, "%u ", t ? inlay_thread_number(t) : 0);
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n, fmt, args);
    va_end(args);
    inlay_write(line, (size_t)n);
}

/* Calls that a C library makes of its own accord, differently under the engines, are left out. */
/* clang-format off */
static const char *name_of(long nr)
{
    static const struct { long nr; const char *name; } calls[] = {
        {SYS_getpid, "getpid"}, {SYS_getppid, "getppid"}, {SYS_getuid, "getuid"}, {SYS_write, "write"},
        {SYS_read, "read"}, {SYS_pipe2, "pipe2"}, {SYS_close, "close"}, {SYS_dup2, "dup2"}, {SYS_kill, "kill"},
        {SYS_tgkill, "tgkill"}, {SYS_rt_sigaction, "rt_sigaction"}, {SYS_pause, "pause"}, {SYS_poll, "poll"},
        {SYS_clock_nanosleep, "clock_nanosleep"}, {SYS_wait4, "wait4"}, {SYS_vfork, "vfork"}, {SYS_execve, "execve"},
        {SYS_exit_group, "exit_group"}, {SYS_getdents64, "getdents64"}, {SYS_chdir, "chdir"}, {SYS_alarm, "alarm"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"}, {SYS_sched_yield, "sched_yield"},
    };
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].nr == nr) return calls[i].name;
    return NULL;
}
/* clang-format on */

/* Addresses and process ids differ. */
static long small(long v) { return v > -5000 && v < 4096 ? v : 999999; }

static bool tells_pid(long nr) { return nr == SYS_getpid || nr == SYS_wait4 || nr == SYS_vfork; }

/* The frames up to the program's main. */
static unsigned frames_to_main(const inlay_context *c)
{
    inlay_stack_frame frames[32];
    unsigned n = c ? inlay_process_stack(inlay_process_self(), c, frames, 32) : 0;
    for (unsigned k = 0; k < n; k++) {
        const inlay_proc *p = inlay_proc_at(frames[k].address);
        if (p && !strcmp(inlay_proc_name(p), "main")) return k + 1;
    }
    return 0;
}

static void entry(inlay_thread *t, inlay_syscall *s, void *arg)
{
    (void)arg;
    if (s->number == MARK) marked = true;
    const char *name = name_of(s->number);
    bool pids = s->number == SYS_kill || s->number == SYS_tgkill || s->number == SYS_wait4;
    if (name)
        say(t, "call %s %ld %ld\n", name, pids ? 0 : small(s->args[0]),
            s->number == SYS_tgkill ? 0 : small(s->args[1]));
    if (s->number == SYS_getppid) {
        s->skip = true;
        s->result = 4711;
    }
    if (s->number == SYS_getgid) s->number = SYS_getuid;
    if (s->number == SYS_write && s->args[0] == 77) s->args[0] = 1;
    if (s->number == SYS_read && s->args[2] > 70 && s->args[2] < 80) s->args[2]--; /* however often it is asked */
}

static void leave(inlay_thread *t, inlay_syscall *s, void *arg)
{
    (void)arg;
    const char *name = name_of(s->number);
    if (name)
        say(t, "%s of %ld answers %ld\n", name, s->number == SYS_read ? small(s->args[2]) : 0,
            tells_pid(s->number) && s->result > 0 ? 1 : small(s->result));
    inlay_context c;
    if (s->number == SYS_getuid) s->result += 1000;
    if (s->number == SYS_getuid && inlay_context_now(&c)) say(t, "asked from %u frames\n", frames_to_main(&c));
}

static void got_signal(inlay_thread *t, int signo, const siginfo_t *info, const inlay_context *c, void *arg)
{
    (void)arg;
    uint64_t word; /* nothing is at low addresses: a fault while the signal is on its way */
    size_t nothing = inlay_memory_read(&word, 16, sizeof word);
    size_t whole = c ? inlay_memory_read(&word, c->gpr[INLAY_RSP], sizeof word) : 0;
    say(t, "signal %d code %d%s, read %zu and %zu, %u frames\n", signo, info->si_code, c && c->pc ? "" : " nowhere",
        nothing, whole, frames_to_main(c));
}

static void thread_start(inlay_thread *t, void *arg) { say(t, "%s\n", (const char *)arg); }
static void thread_end(inlay_thread *t, void *arg) { say(t, "%s\n", (const char *)arg); }
static void fork_child(void *arg) { say(NULL, "%s\n", (const char *)arg); }

static bool exec(const char *path, char *const argv[], void *arg)
{
    (void)arg;
    say(NULL, "exec %s %s %s\n", path, argv[0], argv[1]);
    return false;
}

static void ended(int status, void *arg)
{
    (void)arg;
    say(NULL, "exit %d\n", status);
}

int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "writes down all callbacks");
    inlay_on_syscall_entry(entry, NULL);
    inlay_on_syscall_exit(leave, NULL);
    inlay_on_signal(got_signal, NULL);
    inlay_on_thread_start(thread_start, "thread starts");
    inlay_on_thread_end(thread_end, "thread ends");
    inlay_on_fork_child(fork_child, "forked");
    inlay_on_exec(exec, NULL);
    inlay_on_exit(ended, NULL);
    return inlay_start();
}
