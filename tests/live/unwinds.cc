// Two threads in which exceptions are on their way nearly all the time: in one frames are looked at, in the other a
// destructor sleeps between them. It ends when it is told something.
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <unistd.h>

struct sleeps {
    bool here;
    ~sleeps()
    {
        if (here) usleep(20000);
    }
};

__attribute__((noinline)) int deep(int n, bool slowly)
{
    sleeps s{slowly && n == 1};
    if (n == 0) throw std::runtime_error("from the depth");
    return deep(n - 1, slowly) + 1;
}

static std::atomic<long> quick, slow;
static std::atomic<bool> stop;

static void work(std::atomic<long> *caught, bool slowly)
{
    while (!stop) {
        try {
            deep(6, slowly);
        } catch (const std::runtime_error &) {
            ++*caught;
        }
    }
}

int main()
{
    std::thread a(work, &quick, false), b(work, &slow, true);
    getchar();
    stop = true;
    a.join();
    b.join();
    puts(quick > 100 && slow > 2 ? "caught" : "too few");
    return 5;
}
