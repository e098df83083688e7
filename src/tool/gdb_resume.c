/* How threads go on: vCont's actions, each for one thread or for all, the first that fits; and signals, which gdb
 * numbers in a way of its own. */
#include "tool/gdb.h"

#include <string.h>

/* gdb's numbers of the kernel's signals 1 to 31. */
static const uint8_t numbers[32] = {
    [SIGHUP] = 1,     [SIGINT] = 2,   [SIGQUIT] = 3,   [SIGILL] = 4,   [SIGTRAP] = 5,  [SIGABRT] = 6,
    [SIGFPE] = 8,     [SIGKILL] = 9,  [SIGBUS] = 10,   [SIGSEGV] = 11, [SIGSYS] = 12,  [SIGPIPE] = 13,
    [SIGALRM] = 14,   [SIGTERM] = 15, [SIGURG] = 16,   [SIGSTOP] = 17, [SIGTSTP] = 18, [SIGCONT] = 19,
    [SIGCHLD] = 20,   [SIGTTIN] = 21, [SIGTTOU] = 22,  [SIGIO] = 23,   [SIGXCPU] = 24, [SIGXFSZ] = 25,
    [SIGVTALRM] = 26, [SIGPROF] = 27, [SIGWINCH] = 28, [SIGUSR1] = 30, [SIGUSR2] = 31, [SIGPWR] = 32,
};
enum { UNKNOWN = 143, FIRST_REALTIME = 33, LAST_REALTIME = 63, REALTIME_33 = 45, REALTIME_32 = 77, REALTIME_64 = 78 };

int gdb_signal_out(int signo)
{
    if (signo > 0 && signo < 32) return numbers[signo] ? numbers[signo] : UNKNOWN;
    if (signo == 32) return REALTIME_32;
    if (signo == 64) return REALTIME_64;
    return signo >= FIRST_REALTIME && signo <= LAST_REALTIME ? signo - FIRST_REALTIME + REALTIME_33 : UNKNOWN;
}

int gdb_signal_in(int number)
{
    for (int signo = 1; signo <= 64 && number; signo++)
        if (gdb_signal_out(signo) == number) return signo;
    return 0;
}

typedef struct action {
    char what; /* c, s or r; 0: none fits */
    int signo;
    uint64_t low, high;
    int64_t thread; /* 0: all */
} action;

/* One of "c", "C05", "s", "S05", "r1000,1010", each perhaps with ":THREAD". */
static const char *take(const char *text, action *a)
{
    *a = (action){.what = *text++};
    if (a->what == 'C' || a->what == 'S') {
        a->signo = gdb_signal_in((int)gdb_take_number(&text));
        a->what = a->what == 'C' ? 'c' : 's';
    } else if (a->what == 'r') {
        a->low = gdb_take_number(&text);
        if (*text == ',') text++;
        a->high = gdb_take_number(&text);
    }
    if (*text == ':') {
        text++;
        if (*text != '-') a->thread = (int64_t)gdb_take_number(&text);
    }
    return text + strcspn(text, ";");
}

static action action_for(const char *actions, int tid)
{
    action a;
    while (*actions == ';') {
        actions = take(actions + 1, &a);
        if (!a.thread || a.thread == tid) return a;
    }
    return (action){0};
}

void gdb_resume(tool_gdb *g, const char *actions)
{
    int tids[4096];
    unsigned count = jit_stops_threads(tids, sizeof tids / sizeof *tids);
    for (unsigned i = 0; i < count; i++) {
        run_thread *t = jit_stops_thread(tids[i]);
        if (!t) continue;
        action a = action_for(actions, tids[i]);
        enum jit_go go = a.what == 's' || a.what == 'r' ? JIT_GO_STEP : a.what == 'c' ? JIT_GO_RUN : JIT_GO_HOLD;
        jit_stops_go(t, go, a.signo, a.low, a.high);
    }
    g->goes_on = true;
}
