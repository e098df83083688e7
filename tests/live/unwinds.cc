// Two threads in which exceptions are on their way nearly all the time: in one frames are looked at, in the other a
// destructor sleeps between them. It ends when it is told something.
//
//     unwinds [N]     N more of the first kind
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

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

int main(int argc, char **argv)
{
    std::thread a(work, &quick, false), b(work, &slow, true);
    std::vector<std::thread> more;
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) more.emplace_back(work, &quick, false);
    getchar();
    while (quick <= 100 || slow <= 2) usleep(1000); // on a busy machine they may hardly have begun
    stop = true;
    a.join();
    b.join();
    for (auto &t : more) t.join();
    puts("caught");
    return 5;
}
