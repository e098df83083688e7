/* A process that ends where it should not says by whose fault: the tool's, with procedure, file and line, or Inlay's.
 *
 *     what happens                     how it is noticed
 *     a fault, a stack that is full    main, the instrumentor: the handler below; else the engine's handler, which
 *                                      knows whether the program's code, a routine, a snippet or the runtime was
 *                                      interrupted (run_client.crashed)
 *     abort, a failed assertion, exit  the C library's last functions are Inlay's (libc.c)
 *     no end                           SIGINT, SIGTERM, SIGHUP, SIGQUIT come when the tool's code has run for long: the
 *                                      handler below; else hung.c
 *
 *     sg: the tool has crashed in each_block (sg.c:5), a block callback: SIGSEGV, address 0x10
 *     sg:   called by helper (sg.c:9)
 *     sg: ls ends by it with SIGSEGV, without a report
 *
 * The process that crashes only walks up its stack (trace.c). Lines are looked up by a child that executes the tool's
 * own file anew, since nothing here can be relied on any more; a rewritten program has no such file, and carries them
 * (source.c). The process then ends as it would have: by the signal, so that a core shows the tool; by exit's status,
 * which is 1 where the tool asked for 0, since the program has not come to its end. */
#include "tool/blame.h"
#include "tool/glibc.h"
#include "tool/source.h"
#include "tool/state.h"
#include "tool/trace.h"
#include "base/log.h"
#include "base/sys.h"
#include "live/live.h"
#include "moved/moved.h"
#include "run/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

enum { PLACES = 24, STACK = 64 << 10, WORDS = 7, NEAR_STACK = 64 << 10 };
enum { LONG_RUNNING = 1000, LONG_WAITING = 10000 }; /* milliseconds */
static const int watched[BLAME_SIGNALS] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const char answer_option[] = "--inlay-blame";

static tool_blame *state(void) { return &tool_now->blame; }

/* --- words --- */

typedef struct event {
    const char *did, *doing; /* doing NULL: it is not the tool that did it */
    char what[96], end[300];
    uint32_t places[PLACES];
    unsigned count;
} event;

static const char *signal_name(int signo)
{
    static const char *const names[] = {
        [SIGSEGV] = "SIGSEGV", [SIGBUS] = "SIGBUS",   [SIGILL] = "SIGILL",   [SIGFPE] = "SIGFPE",
        [SIGABRT] = "SIGABRT", [SIGINT] = "SIGINT",   [SIGTERM] = "SIGTERM", [SIGHUP] = "SIGHUP",
        [SIGQUIT] = "SIGQUIT", [SIGTRAP] = "SIGTRAP", [SIGSYS] = "SIGSYS"};
    const char *name = (size_t)signo < sizeof names / sizeof *names ? names[signo] : NULL;
    return name ? name : "a signal";
}

void blame_name_images(const char *name) { state()->image_callback = name; }

static const char *callback_name(unsigned kind)
{
    static const char *const names[] = {
        [ON_IMAGE_LOAD] = "an image callback",
        [ON_IMAGE_UNLOAD] = "an image unload callback",
        [ON_PROC] = "a procedure callback",
        [ON_PROC_LEFT] = "a callback of a procedure that is left alone",
        [ON_BLOCK] = "a block callback",
        [ON_INSN] = "an instruction callback",
        [ON_THREAD_START] = "a thread start callback",
        [ON_THREAD_END] = "a thread end callback",
        [ON_SYSCALL_ENTRY] = "a system call callback",
        [ON_SYSCALL_EXIT] = "a system call callback",
        [ON_SIGNAL] = "a signal callback",
        [ON_FORK_CHILD] = "a fork callback",
        [ON_EXEC] = "an exec callback",
        [ON_START] = "a start callback",
        [ON_EXIT] = "an exit callback",
        [ON_KEPT_BLOCK] = "a callback of kept blocks",
        [ON_WORKER] = "a worker",
        [ON_KINDS] = "a buffer's function",
    };
    if (kind == ON_IMAGE_LOAD && state()->image_callback) return state()->image_callback;
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "a callback";
}

/* NULL: nothing of the tool's. */
static const char *doing_now(void)
{
    switch (state()->phase) {
    case BLAME_BEFORE_INIT: return "before inlay_init";
    case BLAME_BEFORE_START: return "between inlay_init and inlay_start";
    case BLAME_INLAY: return tool_here.doing ? callback_name(tool_here.doing - 1) : NULL;
    case BLAME_STARTED: break;
    }
    if (tool_here.doing) return callback_name(tool_here.doing - 1);
    bool engine = tool_handoff_data.role != TOOL_INSTRUMENTOR && run_here.engine;
    return engine && run_self()->frame.in_tool ? "an analysis routine" : NULL;
}

/* By the instrumentor. */
static const char *left_as_it_was(void)
{
    if (tool_handoff_data.target) return "the program has not run";
    return tool_now->options.attaching ? "nothing is put into the process" : "nothing is written";
}

/* A process that ran already goes on without the tool (live/put.c, which sees that it would end). */
static bool leaves_process(void) { return tool_handoff_data.role == TOOL_CARRIED && moved_is_being_put(); }

void blame_leave(void)
{
    if (!leaves_process()) return;
    blame_unwatch();
    if (run_here.signals) run_signals_give_back(run_here.signals);
}

static void set_end(event *e, const char *how)
{
    const char *program = inlay_program();
    if (tool_handoff_data.role == TOOL_INSTRUMENTOR) snprintf(e->end, sizeof e->end, "%s", left_as_it_was());
    else if (leaves_process()) snprintf(e->end, sizeof e->end, "nothing is put into the process");
    else if (state()->phase != BLAME_STARTED) snprintf(e->end, sizeof e->end, "the program has not run");
    else if (tool_here.doing == ON_EXIT + 1)
        snprintf(e->end, sizeof e->end, "%s was about to end; it ends by this with %s, and the report is not whole",
                 program, how);
    else snprintf(e->end, sizeof e->end, "%s ends by it with %s, without a report", program, how);
}

/* --- the report; of the first only --- */

static bool put_place(char **at, char *end, const source_place *p, uint32_t offset)
{
    int n;
    if (p->proc && p->file) n = snprintf(*at, (size_t)(end - *at), "%s (%s:%u)", p->proc, p->file, p->line);
    else if (p->proc) n = snprintf(*at, (size_t)(end - *at), "%s", p->proc);
    else n = snprintf(*at, (size_t)(end - *at), "its code at offset %#x", offset);
    *at += n < end - *at ? n : end - *at;
    return *at < end;
}

static void put_line(const char *name, const char *line)
{
    char text[1400];
    int n = snprintf(text, sizeof text, "%s: %s\n", name, line);
    sys_call3(SYS_write, inl_log_fd, (long)text, n < (int)sizeof text ? n : (int)sizeof text - 1);
}

static const char exit_with_0[] = "exit with status 0", has_ended[] = "has ended";

/* What stands around main, and between the tool and the end of its process. */
static bool is_around(const char *proc)
{
    static const char *const names[] = {"exit", "_exit", "__run_exit_handlers", "_start"};
    static const char *const begins[] = {"__libc_start_", "__assert_", "__libc_message"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(proc, names[i])) return true;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(proc, begins[i], strlen(begins[i]))) return true;
    return false;
}

/* The innermost frame of the tool's own sources; none: the innermost of which something is known; `count`: none is
 * worth a word. */
static unsigned own_frame(const source_place *all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (all[i].owner == SOURCE_TOOL) return i;
    unsigned i = 0;
    while (i < count && (all[i].owner == SOURCE_INLAY || !all[i].proc || is_around(all[i].proc))) i++;
    bool around = count && all[0].proc && is_around(all[0].proc);
    return i < count || around ? i : 0;
}

static void tell(const char *name, const event *e, source_lookup *lookup, void *arg)
{
    source_place all[PLACES];
    char line[1200], *at = line, *end = line + sizeof line - 200;
    for (unsigned i = 0; i < e->count; i++) lookup(arg, e->places[i], &all[i]);
    unsigned own = e->doing ? own_frame(all, e->count) : 0;
    if (!e->doing) at += snprintf(at, 100, "internal error of Inlay: its code %s", e->did);
    else at += snprintf(at, 100, "the tool %s", e->did);
    if (own < e->count) {
        bool refused = !strcmp(e->did, has_ended) && all[0].owner == SOURCE_INLAY; /* for what has been told already */
        bool called = own && all[0].proc && !is_around(all[0].proc) && !refused;
        at = stpcpy(at, " in ");
        if (called && put_place(&at, end, &all[0], e->places[0])) at = stpcpy(at, ", called by ");
        put_place(&at, end, &all[own], e->places[own]);
    }
    bool returned = own == e->count && e->doing && !strcmp(e->what, exit_with_0); /* from main */
    snprintf(at, 200, "%s%s%s%s%s", e->doing ? ", " : "", e->doing ? e->doing : "", e->what[0] ? ": " : "", e->what,
             returned ? " (a tool's main ends with `return inlay_start();`)" : "");
    put_line(name, line);
    for (unsigned i = own + 1; i < e->count; i++) {
        if (!all[i].file || (e->doing && all[i].owner != SOURCE_TOOL)) continue;
        unsigned same = 1;
        while (i + 1 < e->count && e->places[i + 1] == e->places[i]) i++, same++;
        at = stpcpy(line, "  called by ");
        put_place(&at, end, &all[i], e->places[i]);
        if (same > 1) snprintf(at, 100, ", %u times%s", same, e->count == PLACES ? " and more" : "");
        put_line(name, line);
    }
    put_line(name, e->end);
}

static bool by_nothing(void *arg, uint32_t place, source_place *out)
{
    (void)arg, (void)place;
    *out = (source_place){0};
    return false;
}

void blame_answer(int argc, char **argv)
{
    event e = {0};
    image *im = NULL;
    inl_error error = {0};
    if (argc < WORDS || strcmp(argv[1], answer_option)) return;
    e.did = argv[2];
    e.doing = *argv[3] ? argv[3] : NULL;
    snprintf(e.what, sizeof e.what, "%s", argv[4]);
    snprintf(e.end, sizeof e.end, "%s", argv[5]);
    for (int i = WORDS; i < argc && e.count < PLACES; i++) e.places[e.count++] = (uint32_t)strtoul(argv[i], NULL, 16);
    state()->phase = BLAME_INLAY;
    if (image_open("/proc/self/exe", &im, &error) == INL_OK) tell(argv[6], &e, source_by_image, im);
    else tell(argv[6], &e, by_nothing, NULL);
    sys_call1(SYS_exit_group, 0);
}

/* The child has this process's memory and descriptors, and only makes calls. */
static bool ask_child(const event *e)
{
    char offsets[PLACES][12];
    const char *argv[WORDS + PLACES + 1] = {tool_name(), answer_option, e->did,     e->doing ? e->doing : "",
                                            e->what,     e->end,        tool_name()};
    static const char *const none[] = {NULL};
    for (unsigned i = 0; i < e->count; i++) {
        snprintf(offsets[i], sizeof offsets[i], "%x", e->places[i]);
        argv[WORDS + i] = offsets[i];
    }
    int file = tool_handoff_data.fds.tool, status = -1;
    long child = sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (child == 0) {
        sys_call3(SYS_dup3, inl_log_fd, 2, 0);
        if (file >= 0) sys_call(SYS_execveat, file, (long)"", (long)argv, (long)none, AT_EMPTY_PATH, 0);
        sys_call3(SYS_execve, (long)"/proc/self/exe", (long)argv, (long)none);
        sys_call1(SYS_exit_group, 1);
    }
    if (sys_failed(child)) return false;
    while (sys_call4(SYS_wait4, child, (long)&status, __WALL, 0) == -EINTR) {}
    return status == 0;
}

static void report(const event *e)
{
    if (__atomic_exchange_n(&state()->told, true, __ATOMIC_ACQ_REL))
        for (;;) sys_wait();
    if (tool_handoff_data.role == TOOL_CARRIED) tell(tool_name(), e, source_by_table, (void *)state()->sources);
    else if (!ask_child(e)) tell(tool_name(), e, by_nothing, NULL);
}

/* --- faults --- */

static void set_places(event *e, trace_registers *r) { e->count = trace_walk(r, e->places, PLACES); }

static void tell_fault(event *e, int signo, int code, uint64_t address, const void *uc)
{
    trace_registers r;
    trace_of_context(uc, &r);
    bool full = signo == SIGSEGV && address - (r.value[trace_stack] - NEAR_STACK) < 2 * NEAR_STACK;
    bool has_address = (signo == SIGSEGV && code != SI_KERNEL) || signo == SIGBUS;
    e->did = full ? "has used up its stack" : "has crashed";
    int n = snprintf(e->what, sizeof e->what, "%s", signal_name(signo));
    if (has_address) snprintf(e->what + n, sizeof e->what - (size_t)n, ", address %#lx", (long)address);
    set_end(e, signal_name(signo));
    if (!e->count) set_places(e, &r);
    report(e);
}

static void tell_hung(event *e, int signo, const void *uc, long waited)
{
    trace_registers r;
    trace_of_context(uc, &r);
    e->did = "hangs";
    if (waited < 0) snprintf(e->what, sizeof e->what, "%s has come", signal_name(signo));
    else snprintf(e->what, sizeof e->what, "%s has waited for %ld seconds", signal_name(signo), waited);
    set_end(e, signal_name(signo));
    set_places(e, &r);
    report(e);
}

static void end_before_it_began(void)
{
    blame_leave();
    if (leaves_process()) sys_call1(SYS_exit_group, TOOL_EXIT_FAILED);
}

void blame_crash(void *arg, run_thread *t, const run_crash *c)
{
    (void)arg, (void)t;
    event e = {0};
    char where[96] = "";
    switch (c->where) {
    case RUN_CRASH_ROUTINE: e.doing = tool_here.doing ? doing_now() : "an analysis routine"; break;
    case RUN_CRASH_RUNTIME: e.doing = doing_now(); break;
    case RUN_CRASH_CODE: break;
    case RUN_CRASH_SNIPPET:
        e.doing = where;
        snprintf(where, sizeof where, "%s the program's code at %#lx",
                 c->routine ? "a routine written into" : "an expression inserted into", (long)c->point);
        if (trace_is_own(c->routine)) {
            e.places[0] = (uint32_t)(c->routine - (uint64_t)(uintptr_t)&__ehdr_start);
            e.count = 1;
        }
        break;
    }
    if (c->waited >= 0) tell_hung(&e, c->signo, c->uc, c->waited);
    else tell_fault(&e, c->signo, c->code, c->addr, c->uc);
    end_before_it_began();
}

/* --- main and the instrumentor --- */

/* The program that the instrumentor holds, which has not begun, ends as it would with the tool in it. */
static void end_program(int status, int signo)
{
    live_process *held = tool_now->held;
    if (tool_handoff_data.role != TOOL_INSTRUMENTOR) return;
    tool_now->held = NULL;
    if (held && signo) live_end_by(held, signo);
    else if (held) live_end(held, status);
    else if (tool_handoff_data.target) live_end_begun(tool_handoff_data.target, status, signo);
}

static void end_held(int signo)
{
    end_before_it_began();
    end_program(128 + signo, signo);
}

static void die_by(int signo)
{
    end_held(signo);
    run_signal_default(signo);
    sys_call3(SYS_tgkill, sys_call0(SYS_getpid), sys_call0(SYS_gettid), signo);
}

static int64_t milliseconds(clockid_t clock)
{
    struct timespec now = {0};
    sys_call2(SYS_clock_gettime, clock, (long)&now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A program that ends a child which it has just made is no sign that the tool hangs in the child's beginning. */
static bool for_long(void)
{
    return milliseconds(CLOCK_THREAD_CPUTIME_ID) - state()->began_cpu >= LONG_RUNNING ||
           milliseconds(CLOCK_MONOTONIC) - state()->began >= LONG_WAITING;
}

/* What asks to end while Inlay itself works is no mistake of anybody's. */
static void arrived(int signo, siginfo_t *info, void *uc)
{
    int error = errno;
    event e = {.doing = doing_now()};
    bool fault = info->si_code > 0 && signo != SIGINT && signo != SIGTERM && signo != SIGHUP && signo != SIGQUIT;
    if (fault) tell_fault(&e, signo, info->si_code, (uint64_t)(uintptr_t)info->si_addr, uc);
    else if (e.doing && for_long()) tell_hung(&e, signo, uc, -1);
    if (fault) end_held(signo);
    if (fault) run_signal_default(signo); /* it happens again */
    else die_by(signo);
    errno = error;
}

/* A rewritten program begins with all signals blocked, and has its mask from elsewhere: what it blocks waits for it, a
 * fault excepted that is raised now. */
static void let_in(sigset_t *ours)
{
    sigset_t pending;
    sigpending(&pending);
    for (unsigned i = 0; i < BLAME_SIGNALS; i++) {
        bool fault = RUN_FAULTS & RUN_BIT(watched[i]), blocked = moved_handoff_data.sigmask & RUN_BIT(watched[i]);
        if (blocked && (!fault || sigismember(&pending, watched[i]))) sigdelset(ours, watched[i]);
    }
    sigprocmask(SIG_UNBLOCK, ours, NULL);
}

void blame_watch(void)
{
    tool_blame *b = state();
    struct sigaction now = {.sa_sigaction = arrived, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    b->pid = (int)sys_call0(SYS_getpid);
    b->began = milliseconds(CLOCK_MONOTONIC);
    b->began_cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
    b->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->stack == MAP_FAILED) b->stack = NULL;
    if (!b->stack) return;
    sigaltstack(NULL, &b->stack_before); /* its mode outlives an exec, and so it goes to the program */
    stack_t own = {.ss_sp = b->stack, .ss_flags = b->stack_before.ss_flags & (int)SS_AUTODISARM, .ss_size = STACK};
    sigaltstack(&own, NULL);
    sigset_t ours;
    sigfillset(&now.sa_mask);
    sigemptyset(&ours);
    for (unsigned i = 0; i < BLAME_SIGNALS; i++) {
        libc_sigaction(watched[i], NULL, &b->before[i]);
        if (b->before[i].sa_handler != SIG_DFL) continue;
        libc_sigaction(watched[i], &now, NULL);
        sigaddset(&ours, watched[i]);
    }
    if (tool_handoff_data.role == TOOL_CARRIED) let_in(&ours);
    if (tool_handoff_data.target) run_kernel_mask_faults(); /* this instrumentor has blocked all */
}

void blame_unwatch(void)
{
    tool_blame *b = state();
    if (!b->stack) return;
    for (unsigned i = 0; i < BLAME_SIGNALS; i++) libc_sigaction(watched[i], &b->before[i], NULL);
    sigaltstack(&b->stack_before, NULL);
    munmap(b->stack, STACK);
    b->stack = NULL;
}

/* --- exit and abort --- */

/* Up from a return address of this thread's stack. */
static void set_caller(event *e, const void *from)
{
    ucontext_t here;
    trace_registers r;
    uint32_t wanted = (uint32_t)((uint64_t)(uintptr_t)from - (uint64_t)(uintptr_t)&__ehdr_start - 1);
    unsigned ours = 0;
    getcontext(&here);
    trace_of_context(&here, &r);
    set_places(e, &r);
    while (ours < e->count && e->places[ours] != wanted) ours++;
    if (ours == e->count) return;
    e->count -= ours;
    memmove(e->places, e->places + ours, e->count * sizeof *e->places);
}

/* Not a child that the tool has made, nor an end that Inlay itself has chosen. */
static bool concerns(void)
{
    int own = run_here.engine && run_here.pid ? run_here.pid : state()->pid;
    return !state()->ends && own == (int)sys_call0(SYS_getpid);
}

static void tell_end(event *e, int status, const char *how, const void *from)
{
    e->did = has_ended;
    snprintf(e->what, sizeof e->what, "exit with status %d", status);
    set_end(e, how);
    set_caller(e, from);
    report(e);
}

void blame_exit(int *status, const void *from)
{
    event e = {.doing = doing_now()};
    char how[40];
    if (!concerns() || !e.doing) return;
    int wanted = *status & 0xff;
    if (!wanted) *status = 1;
    snprintf(how, sizeof how, "status %d", *status & 0xff);
    if (!state()->refuses) tell_end(&e, wanted, how, from);
    end_program(*status, 0);
    blame_leave();
}

void blame_abort(const void *from)
{
    event e = {.doing = doing_now(), .did = "has called abort"};
    if (concerns()) {
        set_end(&e, "SIGABRT");
        set_caller(&e, from);
        report(&e);
    }
    sigset_t only;
    die_by(SIGABRT);
    sigemptyset(&only);
    sigaddset(&only, SIGABRT);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    for (;;) sys_call1(SYS_exit_group, 128 + SIGABRT);
}
