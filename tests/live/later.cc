// Opened by opener.c when the program runs already: a constructor, a resolver, exceptions that leave it, a jump table, a
// thread, a destructor. `Q` tells two libraries of the same code apart.
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

#ifndef Q
#define Q 1
#endif

static int state;
static int fast(int n) { return n * Q + state; }
extern "C" {
#ifdef NO_RESOLVER
int chosen(int n) { return fast(n); }
#else
static int (*choose(void))(int) { return fast; }
int chosen(int) __attribute__((ifunc("choose")));
#endif
__attribute__((constructor)) static void library_begins() { state += Q; }
__attribute__((destructor)) static void library_ends() { state = 0; }

__attribute__((noinline)) int kind_of(int n)
{
    switch (n % 11) {
    case 0: return n + 3;
    case 1: return n * 7;
    case 2: return n ^ 5;
    case 3: return n - Q;
    case 4: return n << 2;
    case 5: return 11 - n;
    case 6: return n / 3;
    case 7: return n | 64;
    default: return n;
    }
}

__attribute__((noinline)) void refuse(int n)
{
    if (n % 5 == 0) throw std::runtime_error("five");
}

int library_work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += kind_of(i) + chosen(i);
        try {
            refuse(i);
        } catch (const std::exception &) {
            sum++;
        }
    }
    return sum;
}

static void *work(void *n) { return (void *)(long)library_work((int)(long)n); }
int library_thread(int n)
{
    pthread_t t;
    void *answer = nullptr;
    pthread_create(&t, nullptr, work, (void *)(long)n);
    pthread_join(t, &answer);
    return (int)(long)answer;
}

/* The rest of a line, read in the library; `get` calls back into the program. */
int library_reads(int (*get)(void)) { return get() + kind_of(7); }
void library_throws(int n) { refuse(n); }
}
