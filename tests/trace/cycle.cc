// Threads that do the same over and over, each round with the same entries and exits: `cycle THREADS [ROUNDS]`. What a tool
// records that is put in and taken out meanwhile is a piece of it.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

#define ALONE extern "C" __attribute__((noipa))

volatile int sink;
static thread_local jmp_buf back;

ALONE void leaf() { sink = sink + 1; }
ALONE void inner() { leaf(); sink = sink + 1; leaf(); sink = sink + 1; }
ALONE void tails(int n) { sink = sink + n; if (n) return tails(n - 1); return inner(); }
ALONE void deep(int n) { if (n) deep(n - 1); else leaf(); sink = sink + 1; }
ALONE void throws(int n) { if (!n) throw std::runtime_error("thrown"); throws(n - 1); sink = sink + 1; }
ALONE void catches() { try { throws(3); } catch (const std::exception &) { sink = sink + 1; } leaf(); sink = sink + 1; }
ALONE void jumps(int n) { if (!n) longjmp(back, 1); jumps(n - 1); sink = sink + 1; }
ALONE void lands() { if (!setjmp(back)) jumps(2); leaf(); sink = sink + 1; }
ALONE void handler(int) { leaf(); sink = sink + 1; }
ALONE void turn() { inner(); tails(2); deep(3); catches(); lands(); raise(SIGUSR1); usleep(50); sink = sink + 1; }
static long rounds = -1;
ALONE void *worker(void *) { for (long i = rounds; i; i--) turn(); return nullptr; }

int main(int argc, char **argv)
{
    pthread_t t;
    signal(SIGUSR1, handler);
    if (argc > 2) rounds = atol(argv[2]);
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 1; i--) pthread_create(&t, nullptr, worker, nullptr);
    puts("runs");
    fflush(stdout);
    worker(nullptr);
}
