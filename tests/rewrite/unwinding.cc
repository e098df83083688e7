// Everything that goes through unwind and exception tables: throwing across frames with cleanups,
// handlers by type, rethrow, nested handlers, a handler in a cold part, types with bases, exception
// filters, a thread that is cancelled, a backtrace. With an argument: TIMES throws, for timing; with
// "abort": ends by abort() three calls deep.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))

static int cleaned;
struct guard {
    ~guard() { cleaned++; }
};
struct base {
    virtual ~base() {}
    int value;
    base(int v) : value(v) {}
};
struct derived : base {
    derived(int v) : base(v) {}
};

extern "C" {
NOINLINE int leaf(int n)
{
    void *at[32];
    int count = backtrace(at, 32);
    if (n > 1000) abort();
    return count;
}
NOINLINE int middle(int n)
{
    guard g;
    return leaf(n + 1) + 0 * cleaned;
}
NOINLINE int top(int n)
{
    guard g;
    return middle(n + 1) + 0 * cleaned;
}
}

NOINLINE static int thrower(int kind)
{
    guard g;
    if (kind == 1) throw 42;
    if (kind == 2) throw std::runtime_error("text");
    if (kind == 3) throw derived(7);
    if (kind == 4) throw "letters";
    if (kind == 5) throw std::string("string");
    return kind;
}

NOINLINE static int passes(int kind)
{
    guard g;
    std::vector<int> v(10, kind);
    int r = thrower(kind);
    return r + v[3];
}

NOINLINE static int catches(int kind)
{
    guard g;
    try {
        return passes(kind);
    } catch (int i) {
        return 100 + i;
    } catch (const std::exception &e) {
        return 200 + (int)strlen(e.what());
    } catch (const base &b) {
        return 300 + b.value;
    }
}

NOINLINE static int rethrows(int kind)
{
    try {
        guard g;
        return catches(kind);
    } catch (...) {
        if (kind == 5) throw;
        return 400;
    }
}

NOINLINE static int nested(int kind)
{
    try {
        try {
            throw 1;
        } catch (int) {
            try {
                passes(kind);
            } catch (int j) {
                throw j + 1;
            }
        }
    } catch (int z) {
        return z;
    }
    return -1;
}

NOINLINE __attribute__((cold)) static void throws_seldom(int n)
{
    if (n) throw n;
}

NOINLINE static int cold_handler(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            if (__builtin_expect(i == 3, 0)) throws_seldom(i);
            sum += i;
        } catch (int j) {
            sum += 1000 * j;
        }
    }
    return sum;
}

NOINLINE static int filtered(int kind) throw(int, std::string)
{
    return passes(kind);
}

NOINLINE static int filters(int kind)
{
    try {
        return filtered(kind);
    } catch (int) {
        return 1;
    } catch (...) {
        return 2;
    }
}

static int choose(int n) // a jump table and exceptions in one procedure
{
    guard g;
    switch (n) {
    case 0: return passes(0) + 11;
    case 1: return passes(1) + 12;
    case 2: return catches(2) + 13;
    case 3: return catches(3) * 14;
    case 4: return rethrows(4) - 15;
    case 5: return nested(1) ^ 16;
    case 6: return cold_handler(6) | 17;
    default: throw n;
    }
}

static void told(void *text) { std::printf("cancelled: %s\n", (const char *)text); }
static void *waits(void *)
{
    guard g;
    pthread_cleanup_push(told, (void *)"handler");
    for (;;) usleep(1000);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "abort") == 0) return top(2000) + cleaned;
    for (long i = 0, n = argc > 1 ? atol(argv[1]) : 0; i < n; i++) catches(1);
    for (int i = 0; i < 4; i++) std::printf("%d: %d\n", i, catches(i));
    for (int i = 0; i < 6; i++) {
        try {
            std::printf("%d: %d\n", i, rethrows(i));
        } catch (const std::string &s) {
            std::printf("%s\n", s.c_str());
        }
    }
    std::printf("%d %d %d %d\n", nested(1), cold_handler(6), filters(1), filters(5));
    for (int i = 0; i < 9; i++) {
        try {
            std::printf("%d: %d\n", i, choose(i));
        } catch (int j) {
            std::printf("%d: threw %d\n", i, j);
        }
    }
    std::printf("depth %d\n", top(0) - leaf(0));
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, waits, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::printf("%d, cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
    return 0;
}
