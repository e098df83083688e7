// Two threads in which exceptions are on their way nearly all the time: in one frames are looked at, in the other a
// destructor sleeps between them. It ends when it is told something.
//
//     unwinds [N [M]]     N more of the first kind; interrupted, mostly there, by a handler that takes M microseconds of four times M
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ctime>
#include <signal.h>
#include <sys/time.h>
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

static long lasts;

static long now()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void interrupted(int)
{
    for (long end = now() + lasts; now() < end;) {}
}

static void interrupt_often()
{
    struct sigaction act = {};
    act.sa_handler = interrupted;
    act.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &act, nullptr);
    itimerval often = {{0, lasts * 4}, {0, lasts * 4}};
    setitimer(ITIMER_REAL, &often, nullptr);
}

int main(int argc, char **argv)
{
    lasts = argc > 2 ? atoi(argv[2]) : 0;
    if (lasts) interrupt_often();
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
