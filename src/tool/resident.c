/* The tool inside the program, up to the moment when the engine takes over. */
#include "tool/glibc.h"
#include "tool/state.h"
#include "base/log.h"
#include "base/region.h"
#include "base/sys.h"
#include "moved/moved.h"
#include "run/kernel.h"

#include <inlay/output.h>
#include <inlay/tool.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int resident_hide(int fd)
{
    if (fd < 0) return -1;
    int hidden = run_fd_hide(fd);
    return hidden < 0 ? fd : hidden;
}

/* The helper is our child, invisible to an ordinary wait, and about to end. It has no signal for its end, but the
 * kernel makes one of it all the same when the parent has executed another program since: where the program begins with
 * that signal blocked it would find it. One of another child's end is put back. */
static void reap_helper(int pid)
{
    static const struct timespec now;
    const uint64_t ends = RUN_BIT(SIGCHLD);
    siginfo_t why;
    if (pid <= 0) return;
    while (sys_call4(SYS_wait4, pid, 0, __WALL, 0) == -EINTR) {}
    long signo = sys_call4(SYS_rt_sigtimedwait, (long)&ends, (long)&why, (long)&now, sizeof ends);
    if (signo == SIGCHLD && why.si_pid != pid)
        sys_call3(SYS_rt_sigqueueinfo, sys_call0(SYS_getpid), SIGCHLD, (long)&why);
}

/* A tool that has been linked otherwise is told when it is run by itself; the inlay command looks before. */
static void refuse_other_link(void)
{
    static const char dynamic[] = "linked dynamically", fixed[] = "static, but cannot lie anywhere";
    const Elf64_Phdr *ph = (const Elf64_Phdr *)((uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
    const char *wrong = __ehdr_start.e_type == ET_DYN ? NULL : fixed;
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_INTERP) wrong = dynamic;
    if (wrong) tool_fail(TOOL_EXIT_FAILED, "this tool is %s; link it with -static-pie, as inlay cc does", wrong);
}

/* Before main, so that nothing that main does comes too early; before the tool's own constructors, which may crash. */
__attribute__((constructor(101))) static void begin(int argc, char **argv)
{
    tool_handoff *h = &tool_handoff_data;
    refuse_other_link();
    blame_answer(argc, argv);
    if (moved_handoff_data.carried) {
        carried_begin();
    } else if (h->resident) {
        resident_begin();
    } else if (h->role == TOOL_INSTRUMENTOR) {
        rewriter_begin();
    } else {
        inject_choose_region(&h->region_low, &h->region_high);
        inl_region_set(h->region_low, h->region_high);
    }
    bool joins = (moved_is_live() && !moved_began_here()) || h->joined; /* there the handlers are the program's */
    if (!joins) blame_watch();
}

/* The engine knows nothing of such a child, whose memory it shares in part. */
static void before_fork(void)
{
    tool_say_limited("the tool forks: its child cannot go on as the program, only execute something or end "
                     "(examples/forkserver.c has the program fork itself)");
}

void resident_begin(void)
{
    tool_handoff *h = &tool_handoff_data;
    int err = h->fds.err;
    if (err < 0) err = open("/dev/null", O_WRONLY | O_CLOEXEC);
    h->fds.err = resident_hide(err);
    h->fds.tool = resident_hide(h->fds.tool);
    h->fds.out = resident_hide(h->fds.out);
    h->fds.out_dir = resident_hide(h->fds.out_dir);
    h->fds.shared = resident_hide(h->fds.shared);
    h->fds.gdb = resident_hide(h->fds.gdb);
    libc_redirect_stdio(h->fds.err);
    tls_prepare();
    pthread_atfork(before_fork, NULL, NULL);
    inl_log_fd = h->fds.err;
    if (!h->loaded) reap_helper(h->helper);
}

void inlay_use_stdout(void)
{
    if (!tool_handoff_data.resident) return;
    int fd = resident_hide(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    fflush(stdout);
    stdout->_fileno = fd;
    setvbuf(stdout, NULL, _IOFBF, 0);
}

/* What the tool's C library told the kernel about the thread, taken back: the program's will say its
 * own. */
static void forget_thread_registrations(void)
{
    sys_call1(SYS_set_tid_address, 0);
    sys_call2(SYS_set_robust_list, 0, 3 * sizeof(long));
}

static void log_places(const tool_handoff *h)
{
    const run_start_state *s = &h->start;
    inl_log(INL_LOG_INJECT, "%s: %s, entered at %#llx", h->program,
            h->loaded ? "loaded beside the tool" : "exec'ed, the tool put in by ptrace", (unsigned long long)s->ctx.pc);
    inl_log(INL_LOG_INJECT, "tool at [%#llx, %#llx), its stack [%#llx, %#llx)", (unsigned long long)s->tool_low,
            (unsigned long long)s->tool_high, (unsigned long long)s->stack_low, (unsigned long long)s->stack_high);
    inl_log(INL_LOG_INJECT, "later mappings in [%#llx, %#llx); descriptors: tool %d, messages %d, output %d",
            (unsigned long long)h->region_low, (unsigned long long)h->region_high, h->fds.tool, h->fds.err, h->fds.out);
}

int inlay_start(void)
{
    tool_handoff *h = &tool_handoff_data;
    tool_now->blame.phase = BLAME_INLAY;
    if (h->role == TOOL_INSTRUMENTOR && (tool_now->options.attaching || h->target)) attacher_run();
    if (h->role == TOOL_INSTRUMENTOR) rewriter_run();
    if (h->role == TOOL_CARRIED) carried_run();
    if (!h->resident) tool_fail(TOOL_EXIT_FAILED, "inlay_start was called before inlay_init");
    tool_output_begin();
    if (!tool_locals_begin()) tool_fail(TOOL_EXIT_FAILED, "cannot run %s: out of memory", h->program);
    run_client client;
    tool_client_fill(&client);
    inl_error e = {0};
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    memcpy(&h->start.sigmask, &now, sizeof h->start.sigmask);
    if (h->joined) join_begin();
    else forget_thread_registrations();
    log_places(h);
    blame_unwatch();
    if (tool_jit_set_up(&client, &h->start, &e) != INL_OK)
        tool_fail(TOOL_EXIT_FAILED, "cannot run %s: %s%s", h->program, e.text,
                  e.code == INL_ERR_NO_MEMORY ? " (out of memory or address space; see ulimit -v and -d)" : "");
    tool_counters_begin();
    if (!h->loaded) tool_told_begin();
    run_own_locked(h->region_low, h->region_high, true);
    tool_now->blame.phase = BLAME_STARTED;
    TOOL_CALL_BARE(ON_START);
    tool_workers_begin();
    if (h->joined) join_end();
    tool_jit_run();
}

const char *inlay_program(void)
{
    const char *slash = strrchr(tool_handoff_data.program, '/');
    return slash ? slash + 1 : tool_handoff_data.program;
}
