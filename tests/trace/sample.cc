/* Calls of which each way is known: `sample MODE`. What each mode calls how often stands in run.py. */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define ALONE extern "C" __attribute__((noinline, noclone))

volatile int sink;

/* Bytes that are no instruction, where nobody comes: how much of it is code cannot be known. */
asm(".text\n.globl unclear\n.type unclear, @function\nunclear:\n\ttest %edi, %edi\n\tje 1f\n\tret\n1:\t.byte 0x06, 0x0e\n"
    ".size unclear, . - unclear\n");
extern "C" void unclear(int);

ALONE void leaf() { sink = sink + 1; }

/* --- tail calls: a jump ends each --- */
ALONE void third() { leaf(); sink = sink * 3; }
ALONE void second() { sink = sink + 2; return third(); }
ALONE void first() { sink = sink + 1; return second(); }

/* --- recursion --- */
ALONE int down(int n)
{
    if (n == 0) return 0;
    int below = down(n - 1);
    sink = sink + below;
    return below + 1;
}

/* --- an exception, and longjmp, through frames --- */
ALONE void thrower(int n)
{
    if (n == 0) throw 7;
    thrower(n - 1);
    sink = sink + n;
}
ALONE void catcher()
{
    try {
        thrower(9);
    } catch (int) {
        leaf();
    }
    sink = sink + 1;
}
static jmp_buf place;
ALONE void jumper(int n)
{
    if (n == 0) longjmp(place, 1);
    jumper(n - 1);
    sink = sink + n;
}
ALONE void lands()
{
    if (setjmp(place) == 0) jumper(4);
    else leaf();
    sink = sink + 1;
}
ALONE void after() { leaf(); sink = sink + 1; }

/* --- signals: on the thread's stack, and on one of their own --- */
ALONE void handler(int) { leaf(); sink = sink + 1; }
ALONE void raiser(int with_stack)
{
    static char room[1 << 16];
    stack_t s = {};
    s.ss_sp = room;
    s.ss_size = sizeof room;
    if (with_stack) sigaltstack(&s, nullptr);
    struct sigaction a = {};
    a.sa_handler = handler;
    a.sa_flags = with_stack ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &a, nullptr);
    raise(SIGUSR1);
    leaf();
    sink = sink + 1;
}

/* --- threads, one of which is cancelled --- */
ALONE void *worker(void *arg)
{
    for (long i = 0; i < (long)arg; i++) leaf();
    return nullptr;
}
static pthread_barrier_t waits;
ALONE void *endless(void *)
{
    leaf();
    pthread_barrier_wait(&waits);
    for (;;) pause();
}
ALONE void threads()
{
    pthread_t t[4];
    pthread_barrier_init(&waits, nullptr, 2);
    for (long i = 0; i < 3; i++) pthread_create(&t[i], nullptr, worker, (void *)(100 * (i + 1)));
    pthread_create(&t[3], nullptr, endless, nullptr);
    pthread_barrier_wait(&waits);
    pthread_cancel(t[3]);
    for (pthread_t one : t) pthread_join(one, nullptr);
}

/* --- coroutines: their frames wait while their stack does --- */
static ucontext_t back, here[2];
static char stacks[2][1 << 16];
ALONE void yields(int k) { swapcontext(&here[k], &back); sink = sink + 1; }
ALONE void body(int k)
{
    for (int i = 0; i < 3; i++) {
        leaf();
        yields(k);
    }
    sink = sink + 1;
}
ALONE void resumes(int k) { swapcontext(&back, &here[k]); sink = sink + 1; }
ALONE void coroutines()
{
    for (int k = 0; k < 2; k++) {
        getcontext(&here[k]);
        here[k].uc_stack.ss_sp = stacks[k];
        here[k].uc_stack.ss_size = sizeof stacks[k];
        here[k].uc_link = &back;
        makecontext(&here[k], (void (*)())body, 1, k);
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) resumes(k);
}

/* --- much to record: near and far stack pointers, short and long waits --- */
ALONE void far_away()
{
    volatile char room[100000];
    room[0] = 1;
    leaf();
    sink = sink + room[0];
}
ALONE void farther_away()
{
    volatile char room[700000];
    room[0] = 1;
    leaf();
    sink = sink + room[0];
}
ALONE void packs()
{
    for (int i = 0; i < 20000; i++) {
        leaf();
        if (i % 100 == 0) far_away();
        if (i % 200 == 0) farther_away();
        if (i % 1000 == 0) usleep(100);
        if (i % 4000 == 0) sink = down(200);
    }
}

/* --- time that is known --- */
ALONE void spin(long ms)
{
    timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ms * 1000000L);
}
ALONE void inner() { spin(5); sink = sink + 1; }
ALONE void outer()
{
    inner();
    spin(10);
    inner();
    sink = sink + 1;
}

static const struct {
    const char *name;
    void (*run)();
} modes[] = {
    {"tail", [] { first(); first(); leaf(); }},
    {"recursion", [] { sink = down(50); leaf(); }},
    {"throw", [] { catcher(); after(); }},
    {"longjmp", [] { lands(); after(); }},
    {"signal", [] { raiser(0); after(); }},
    {"stack", [] { raiser(1); after(); }},
    {"threads", [] { threads(); after(); }},
    {"coroutines", [] { coroutines(); after(); }},
    {"packs", [] { packs(); after(); }},
    {"time", [] { outer(); }},
    {"killed", [] { for (int i = 0; i < 20000; i++) leaf(); raise(SIGKILL); }},
    {"endless", [] { puts("ready"); fflush(stdout); for (;;) { leaf(); usleep(1000); } }},
    {"many", [] { for (int i = 0; i < 200000; i++) leaf(); after(); }},
    {"fork", [] {
         leaf();
         fflush(stdout);
         if (fork() == 0) {
             after();
             _exit(3);
         }
         wait(nullptr);
         leaf();
     }},
};

int main(int argc, char **argv)
{
    unclear(argc);
    if (argc > 2 && !strcmp(argv[1], "exec")) {
        leaf();
        execl("/proc/self/exe", argv[0], argv[2], nullptr);
    }
    for (const auto &mode : modes)
        if (argc > 1 && !strcmp(mode.name, argv[1])) mode.run();
    printf("%d\n", sink);
    return 0;
}
