/* Walks over its stack for each line that it reads, and says what it saw: offsets in files, as whoever reads those would
 * look them up. From procedures, from what exceptions clean up, in handlers on both kinds of stack, which then
 * return or throw, in threads, and again where the walk before was left by an exception or a jump. */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <initializer_list>
#include <pthread.h>
#include <unwind.h>

static void say(const char *what, unsigned long ip, int exactly)
{
    Dl_info info;
    bool known = dladdr((void *)ip, &info) != 0;
    const char *file = known ? info.dli_fname : "?";
    for (const char *c = file; *c; c++)
        if (*c == '/') file = c + 1;
    printf("  %s %s+%#lx %d\n", what, file, known ? ip - (unsigned long)info.dli_fbase : ip, exactly);
}

static _Unwind_Reason_Code each(_Unwind_Context *c, void *)
{
    int exactly = 0;
    say("ip", _Unwind_GetIP(c), 0);
    unsigned long ip = _Unwind_GetIPInfo(c, &exactly);
    say("info", ip, exactly);
    if (ip) say("in", (unsigned long)_Unwind_FindEnclosingFunction((void *)(ip - !exactly)), 0);
    return _URC_NO_REASON;
}

__attribute__((noinline)) static void walk(const char *from)
{
    void *all[64];
    printf("%s\n", from);
    _Unwind_Backtrace(each, nullptr);
    int n = backtrace(all, 64);
    for (int i = 0; i < n; i++) say("trace", (unsigned long)all[i], 0);
}

struct guard {
    ~guard() { walk("cleaning up"); }
};

__attribute__((noinline)) static int throws(int n)
{
    guard g;
    if (n > 2) throw n;
    return throws(n + 1) + 1;
}

static jmp_buf away;
static _Unwind_Reason_Code jumps(_Unwind_Context *, void *) { longjmp(away, 1); }
static _Unwind_Reason_Code throws_too(_Unwind_Context *, void *) { throw 'x'; }

__attribute__((noinline)) static void leaves()
{
    if (!setjmp(away)) _Unwind_Backtrace(jumps, nullptr);
    walk("after a jump");
    try {
        _Unwind_Backtrace(throws_too, nullptr);
    } catch (char) {
        walk("after an exception");
    }
    try {
        throws(0);
    } catch (int) {
    }
}

static int (*volatile sends)(int) = raise; // which is declared not to throw
static bool throws_away;
static void on_signal(int signo)
{
    walk(signo == SIGUSR1 ? "on its own stack" : "on the thread's stack");
    if (throws_away) throw signo;
}

__attribute__((noinline)) static void interrupted(bool throws)
{
    throws_away = throws;
    for (int signo : {SIGUSR1, SIGUSR2}) {
        try {
            sends(signo);
        } catch (int caught) {
            printf("caught %d\n", caught == signo);
        }
    }
}

/* The jump to new code lies over a part of the call. */
__attribute__((noinline)) static int through(int (*f)()) { return f() + 1; }
static int walks()
{
    walk("through a pointer");
    return 1;
}
static int (*volatile pointer)() = walks;

/* Exceptions whose contexts lie wherever the one of a walk may have lain. */
static _Unwind_Reason_Code counts(_Unwind_Context *c, void *n)
{
    *static_cast<int *>(n) += _Unwind_GetIP(c) != 0;
    return _URC_NO_REASON;
}
static void counts_frames(int *n) { _Unwind_Backtrace(counts, n); }
static void throws_it(int *n) { throw *n > 0; }

__attribute__((noinline)) static void lower(int by, void (*f)(int *), int *n)
{
    volatile char *room = static_cast<char *>(__builtin_alloca(static_cast<size_t>(by) * 16 + 16));
    room[0] = 0;
    f(n);
}

__attribute__((noinline)) static void sweep()
{
    enum { MOST = 160 };
    int caught = 0;
    for (int k = 0; k < MOST; k++) {
        int frames = 0;
        lower(MOST / 2, counts_frames, &frames);
        try {
            lower(k, throws_it, &frames);
        } catch (bool any) {
            caught += any;
        }
    }
    printf("caught %d\n", caught);
}

static void *thread(void *)
{
    walk("a thread");
    return nullptr;
}

__attribute__((noinline)) static int deep(int n)
{
    if (n) return deep(n - 1) + 1;
    walk("deep");
    leaves();
    return 0;
}

int main()
{
    static char room[1 << 16];
    stack_t own = {};
    struct sigaction s = {};
    own.ss_sp = room, own.ss_size = sizeof room;
    sigaltstack(&own, nullptr);
    s.sa_handler = on_signal;
    s.sa_flags = SA_NODEFER;
    sigaction(SIGUSR2, &s, nullptr);
    s.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(SIGUSR1, &s, nullptr);
    for (int c, times = 0; (c = getchar()) != EOF;) {
        pthread_t t;
        if (c != '\n') continue;
        deep(3);
        printf("%d\n", through(pointer));
        sweep();
        interrupted(false);
        interrupted(true);
        pthread_create(&t, nullptr, thread, nullptr);
        pthread_join(t, nullptr);
        printf("walked %d\n", ++times);
        fflush(stdout);
    }
    return 0;
}
