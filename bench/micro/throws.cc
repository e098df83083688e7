/* A C++ exception that is thrown through three frames with destructors to run, and caught.
 * operations: 250000 */
#include <cstdlib>
#include <stdexcept>

static volatile unsigned ended;

struct guard {
    ~guard() { ended = ended + 1; }
};

static int fail(int n)
{
    guard g;
    if (n >= 0) throw std::runtime_error("thrown");
    return n;
}

static int between(int n)
{
    guard g;
    return fail(n) + 1;
}

static int outer(int n)
{
    guard g;
    return between(n) + 1;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? std::atol(argv[1]) * 250000 : 0;
    int caught = 0;
    for (long i = 0; i < count; i++) {
        try {
            outer(1);
        } catch (const std::exception &e) {
            caught += e.what()[0] == 't';
        }
    }
    return caught == count && ended == 3 * (unsigned)count ? 0 : 1;
}
