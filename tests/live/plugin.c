/* Opened by libraries.c: a constructor, a jump table, a thread of its own C library's. `Q` tells two of the same code
 * apart. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#ifndef Q
#define Q 1
#endif

#ifndef CALLS
#define CALLS 2000
#endif
#define TEXT_OF(n) #n
#define TEXT(n)    TEXT_OF(n)

static int state;

__attribute__((constructor)) static void plugin_begins(void) { state += Q; }

__attribute__((noinline)) int plugin_kind(int n)
{
    switch (n % 9) {
    case 0: return n + 3;
    case 1: return n * 7;
    case 2: return n ^ 5;
    case 3: return n - Q;
    case 4: return n << 2;
    case 5: return 11 - n;
    case 6: return n / 3;
    default: return n;
    }
}

int plugin_work(int n)
{
    int sum = state;
    for (int i = 0; i < n; i++) sum += plugin_kind(i);
    return sum;
}

static void *work(void *n) { return (void *)(long)plugin_work((int)(long)n); }

int plugin_thread(int n)
{
    pthread_t t;
    void *answer = 0;
    pthread_create(&t, 0, work, (void *)(long)n);
    pthread_join(t, &answer);
    return (int)(long)answer;
}

static volatile int caught;
static void catch_it(int signo) { caught = signo; }

/* A signal that arrives in the library's own code. */
int plugin_signal(int n)
{
    void (*before)(int) = signal(SIGUSR1, catch_it);
    raise(SIGUSR1);
    signal(SIGUSR1, before);
    return caught == SIGUSR1 ? plugin_kind(n) : -1;
}

/* System calls of its own, so many that one who changes them all takes some time: rt_sigaction of no signal. */
int plugin_calls(int n)
{
    long answer;
    __asm__ volatile(".rept " TEXT(CALLS) "\n\tmov $13, %%eax\n\tsyscall\n\t.endr"
                     : "=a"(answer)
                     : "D"(0L), "S"(0L), "d"(0L)
                     : "rcx", "r11", "r10", "memory");
    return answer == -EINVAL ? n : -1;
}

/* The rest of a line is read in the library's frame: `get` calls back into the program. */
int plugin_reads(int n, int (*get)(void)) { return get() + plugin_kind(n); }
