/* The program is about to do what it can only do natively (set GS for itself), and the tool leaves by itself: as `inlay
 * detach` takes it out, from another process, which is the tool's file once more.
 *
 *     the process                          A                     B
 *     tool_leaves     fork ------------>   fork ------------->   TOOL --inlay-leave PID
 *       <-------- B's number ------------- ends
 *       prctl(PR_SET_PTRACER, B)
 *       -------- go ------------------------------------------>  live_ask(LIVE_LEAVE)
 *     its threads wait in the gate (moved_gate_wait)             ends
 *
 * B is nobody's child whom the program could find, or would have to reap. All that the process has of it is one end of
 * a pair of sockets, among the hidden descriptors; when the other end is closed, and this code still runs, it has
 * failed. */
#include "tool/state.h"
#include "base/sys.h"
#include "live/live.h"
#include "moved/moved.h"

#include <inlay/tool.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char leave_option[] = "--inlay-leave";

/* --- B --- */

void native_command(int argc, char **argv)
{
    inl_error e = {0};
    char go;
    if (argc != 3 || strcmp(argv[1], leave_option) != 0) return;
    pid_t pid = (pid_t)strtol(argv[2], NULL, 10);
    sys_call3(SYS_close_range, STDERR_FILENO + 1, ~0u, 0); /* the process's own */
    if (setsid() < 0 || read(STDIN_FILENO, &go, 1) != 1) exit(TOOL_EXIT_FAILED);
    if (live_ask(pid, LIVE_LEAVE, -1, NULL, &e) == INL_OK) exit(0);
    if (write(STDIN_FILENO, "", 1) != 1) exit(TOOL_EXIT_FAILED); /* it has ended */
    tool_fail(TOOL_EXIT_FAILED, "the tool cannot be taken out: %s", e.text);
}

/* --- the process --- */

typedef struct helper {
    int ends[2];
    char file[64], number[24];
    const char *argv[4];
} helper;

/* In copies of the process, which only make calls. */
static void become_b(const helper *h)
{
    static const char *const none[] = {NULL};
    sys_call3(SYS_dup3, h->ends[1], STDIN_FILENO, 0);
    sys_call3(SYS_dup3, tool_handoff_data.fds.err, STDERR_FILENO, 0);
    sys_call3(SYS_execve, (long)h->file, (long)h->argv, (long)none);
    sys_call1(SYS_exit_group, TOOL_EXIT_FAILED);
}

static void be_a(const helper *h)
{
    long b = sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (b == 0) become_b(h);
    sys_call3(SYS_write, h->ends[1], (long)&b, sizeof b);
    sys_call1(SYS_exit_group, 0);
}

/* The tool's file: open where programs are followed, else by its name. */
static bool name_file(helper *h, const char *path)
{
    int open_as = tool_handoff_data.fds.tool;
    int n = open_as >= 0 ? snprintf(h->file, sizeof h->file, "/proc/self/fd/%d", open_as)
                         : snprintf(h->file, sizeof h->file, "%s", path);
    return n > 0 && n < (int)sizeof h->file && access(h->file, X_OK) == 0;
}

static bool start(int *end)
{
    helper h = {.argv = {tool_name(), leave_option, h.number}};
    long b = -1;
    snprintf(h.number, sizeof h.number, "%d", getpid());
    if (!name_file(&h, moved_live_tool()) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, h.ends) != 0)
        return false;
    long a = sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (a == 0) be_a(&h);
    close(h.ends[1]);
    while (!sys_failed(a) && sys_call4(SYS_wait4, a, 0, __WALL, 0) == -EINTR) {}
    bool there = !sys_failed(a) && read(h.ends[0], &b, sizeof b) == (ssize_t)sizeof b && b > 0;
    if (there) prctl(PR_SET_PTRACER, b, 0, 0, 0);
    if (!there || write(h.ends[0], "", 1) != 1) {
        close(h.ends[0]);
        return false;
    }
    __atomic_store_n(end, resident_hide(h.ends[0]), __ATOMIC_RELEASE);
    return true;
}

static bool has_ended(int end)
{
    struct pollfd p = {.fd = end, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* moved_hooks.leaves, on any thread. */
bool tool_leaves(struct run_thread *t)
{
    tool_native *n = &tool_now->native;
    int none = TOOL_NATIVE_NOT;
    (void)t;
    if (__atomic_compare_exchange_n(&n->state, &none, TOOL_NATIVE_GOES, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        n->end = -1;
        tool_say("the program sets GS for itself: the tool leaves it, and it goes on natively");
        if (!start(&n->end)) __atomic_store_n(&n->state, TOOL_NATIVE_FAILED, __ATOMIC_RELEASE);
    }
    int end = __atomic_load_n(&n->end, __ATOMIC_ACQUIRE);
    if (end >= 0 && has_ended(end)) __atomic_store_n(&n->state, TOOL_NATIVE_FAILED, __ATOMIC_RELEASE);
    return __atomic_load_n(&n->state, __ATOMIC_ACQUIRE) != TOOL_NATIVE_FAILED;
}
