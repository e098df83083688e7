/* What C++ programs call things: `names.py` asks for them by name. */
#include <cstdio>
#include <pthread.h>
#include <string>

namespace space {
int plain = 11;
namespace {
volatile int hidden = 12;
}
inline namespace version {
long counted = 13;
}
enum class colour { red = 3, green = 8 };
enum unscoped { first = 21, second };
colour paint = colour::green;
struct point {
    short x, y;
    static int made;
    static constexpr short few = 9; // nobody defines it
    int sum() const { return x + y; }
};
int point::made = 14;
template <typename T> struct box {
    T held;
    int count;
    static int boxes;
    __attribute__((noinline, noclone)) T get(int add) { return held + add + count; }
};
template <typename T> int box<T>::boxes = 16;
box<long> large = {1000, 5};
template <typename T, unsigned long n> struct row {
    T cells[n];
};
row<box<unsigned short>, 2> cells = {{{1, 2}, {3, 4}}};
} // namespace space

struct base {
    int id;
    int shared;
};
struct other_base {
    double weight;
};
class derived : public base, public other_base {
  public:
    int shared; /* hides base's */
    unsigned low : 3, high : 9;
    union {
        int whole;
        unsigned char part[4];
    };
    space::point corners[3];
    int (*chosen)(int);
    struct part_of { /* of a unit of its own, in a class that has one */
        long mass;
        part_of *next;
        enum kind { worst = -5, best } how;
    } parts[2];
    __attribute__((noinline)) long method(int by);
    virtual ~derived() {}
};
long derived::method(int by)
{
    id += by;
    asm volatile("" ::: "memory");
    return id;
}

thread_local long own = 100;
static thread_local int own_static[4] = {1, 2, 3, 4};
std::string text = "a text";
int unneeded = 15; /* by anybody: the linker leaves it out */

extern "C" __attribute__((noinline)) int twice(int x) { return 2 * x; }
__attribute__((noinline)) int overloaded(int x) { return x + 1; }
__attribute__((noinline)) double overloaded(double x) { return x * 2; }
template <typename T> __attribute__((noinline)) T grown(T x) { return x + 3; }
namespace space {
__attribute__((noinline)) long mixed(long a, const point &p) { return a * p.x + p.y; }
// As all that gives a std::string is.
__attribute__((noinline, abi_tag("v2"))) int marked(const point *p) { return p->x + 20; }
} // namespace space

extern "C" __attribute__((noinline)) void hit(int n, derived *d)
{
    own += n;
    own_static[n & 3]++;
    space::counted += d->corners[n % 3].x;
    asm volatile("" ::: "memory");
}

static void *work(void *p)
{
    static derived d;
    d.id = 40, d.base::shared = 41, d.weight = 2.5, d.shared = 42, d.low = 5, d.high = 300, d.whole = 0x01020304;
    for (short i = 0; i < 3; i++) d.corners[i] = {i, (short)(10 * i)};
    d.chosen = twice;
    d.parts[0] = {7, &d.parts[1], derived::part_of::best};
    d.parts[1] = {8, nullptr, derived::part_of::worst};
    for (int i = 0; i < 6; i++) hit(i, &d);
    *(long *)p += d.method(2) + overloaded(1) + (long)overloaded(1.5) + space::mixed(2, d.corners[1]) + grown(1) + grown(1L) + space::marked(d.corners) +
                  space::large.get(1) + d.corners[2].sum();
    return nullptr;
}

// Pointers to members: where one lies; of a method its address, and what is added to `this`.
static long chooses(std::nullptr_t none, short space::point::*member, long (derived::*of)(int), int last)
{
    return last + (none == nullptr) + (member == &space::point::y) + (of == &derived::method); /* both its halves */
}
// Nothing is passed for it where the compiler sees all calls: then nobody says where it is.
__attribute__((noinline, noclone)) static long unpassed(std::nullptr_t gone, int last, bool narrow)
{
    asm volatile("");
    return (narrow && last > 0) + (gone == nullptr);
}
static long (*volatile choose)(std::nullptr_t, short space::point::*, long (derived::*)(int), int) = chooses;

int main()
{
    long sum = choose(nullptr, &space::point::y, &derived::method, 5) + unpassed(nullptr, own_static[0], choose != nullptr);
    pthread_t t;
    work(&sum);
    pthread_create(&t, nullptr, work, &sum);
    pthread_join(t, nullptr);
    std::printf("%ld %ld %d %s\n", sum + space::plain + space::hidden + (int)space::paint + space::first +
                    space::box<long>::boxes + space::cells.cells[1].count,
                own,
                own_static[1] + space::point::made, text.c_str());
    return 0;
}
