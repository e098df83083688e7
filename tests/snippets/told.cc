// What told.c is in C: classes, references, templates, exceptions, what is inlined into each other.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

static volatile long opaque;
__attribute__((noinline)) static void seen(long v) { opaque = opaque + v; }

namespace space {
struct point {
    int x = 0, y = 0;
    int sum(int by) const { return (x + y) * by; }
};

class figure {
public:
    explicit figure(long id_) : id(id_) { seen(id); }
    virtual ~figure() { seen(-id); }
    __attribute__((noinline)) virtual long area(int scale, double factor)
    {
        long whole = id * scale;
        scale += 4;
        seen(whole + scale);
        factor = factor * 2 + (double)scale;
        seen((long)factor);
        return whole + (long)factor + corner.sum(scale);
    }
    long id;
    point corner;
};

class square : public figure {
public:
    square(long id_, int side_) : figure(id_), side(side_) {}
    __attribute__((noinline)) long area(int scale, double factor) override
    {
        long before = figure::area(scale + 1, factor);
        int turns = side;
        while (turns > 0) {
            before += scale * turns;
            seen(before);
            turns--;
        }
        return before;
    }
    int side;
};

template <typename number> __attribute__((noinline)) number folded(const std::vector<number> &list, number start)
{
    number sum = start;
    for (const number &each : list) {
        number half = each / 2;
        sum += half;
        seen((long)sum);
    }
    return sum;
}
} // namespace space

__attribute__((noinline)) static long thrown(int n, long carried)
{
    long kept = carried * 3;
    try {
        if (n & 1) throw n + 40;
        seen(kept);
        kept += n;
    } catch (int what) {
        kept -= what;
        seen(kept + what);
    }
    return kept + n;
}

__attribute__((noinline)) static long by_reference(space::point p, const space::figure &f, std::string name, short narrow, bool yes)
{
    long length = (long)name.size();
    p.x += (int)length;
    narrow = (short)(narrow * 2);
    seen(p.x + narrow + yes);
    auto added = [&](int more) { return length + more + p.y; };
    length = added(narrow);
    seen(length + f.id);
    return length;
}

int main()
{
    long sum = 0;
    for (int turn = 0; turn < 3; turn++) {
        std::unique_ptr<space::figure> f(new space::square(turn + 5, 3));
        f->corner.x = turn, f->corner.y = 2;
        sum += f->area(turn + 7, turn / 2.0);
        sum += space::folded<long>({1, 20, 300, turn}, turn);
        sum += (long)space::folded<double>({0.5, 2.25}, turn);
        sum += thrown(turn + 1, turn + 90);
        sum += by_reference(f->corner, *f, std::string("name") + (char)('a' + turn), (short)(turn + 100), turn & 1);
    }
    std::printf("%ld %ld\n", sum, opaque);
    return 0;
}
