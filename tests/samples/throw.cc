// Exceptions through frames, destructors on the way, rethrow, a handler in the middle, and a
// backtrace of a known depth. throw [TIMES]
#include <cstdio>
#include <cstdlib>
#include <execinfo.h>
#include <stdexcept>
#include <string>
#include <vector>

static int destroyed;
struct guard {
    ~guard() { destroyed++; }
};

__attribute__((noinline)) static int deep(int n)
{
    guard g;
    if (n == 0) throw std::runtime_error("bottom");
    return deep(n - 1) + 1;
}

__attribute__((noinline)) static int middle(int n)
{
    try {
        return deep(n);
    } catch (const std::logic_error &) {
        return -1;
    } catch (...) {
        guard g;
        throw;
    }
}

__attribute__((noinline)) static int frames(int n)
{
    if (n > 0) {
        int count = frames(n - 1);
        __asm__ volatile("" : "+r"(count)); // so that the call is not turned into a jump
        return count;
    }
    void *at[64];
    int count = backtrace(at, 64);
    for (int i = 0; i < count; i++) {
        if (!at[i]) return -1;
    }
    return count;
}

int main(int argc, char **argv)
{
    int caught = 0, times = argc > 1 ? std::atoi(argv[1]) : 50;
    for (int i = 0; i < times; i++) {
        try {
            middle(i);
        } catch (const std::exception &e) {
            caught += std::string(e.what()) == "bottom";
        }
    }
    std::printf("caught %d, destroyed %d\n", caught, destroyed);
    std::printf("backtrace grows by %d\n", frames(20) - frames(10));
    try {
        (void)std::vector<int>(3).at(7);
    } catch (const std::out_of_range &) {
        std::puts("out of range");
    }
    return 0;
}
