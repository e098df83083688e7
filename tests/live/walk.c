/* What snippets can name, one of a kind: walk.py. */
#include <stdio.h>
#include <string.h>

struct inner {
    short s;
    float f;
};
struct thing {
    int number;
    unsigned bits : 5;
    struct inner in[2];
    const char *name;
} thing = {-7, 9, {{1, 1.5f}, {-2, 2.5f}}, "thing"};
long array[4] = {10, 20, 30, 40};
__thread int mine = 77;
unsigned char byte = 200;
long long wide = -1;
enum colour { RED, BLUE = 6 } colour = BLUE;

struct pair {
    long a, b;
} pair = {3, 4};
struct mixed {
    double d;
    int i;
} mixed = {2.5, 9};
struct large {
    long v[5];
    char name[8];
} large = {{1, 2, 3, 4, 5}, "large"};
struct small {
    char c[3];
} small = {"ab"};
struct packed {
    unsigned low : 3;
    int high : 7;
    unsigned long long far : 40;
} packed = {5, -9, 1ull << 35};
__int128 huge = ((__int128)7 << 64) + 5;
long double longer = 6.25L;

__attribute__((noinline)) long of_pair(struct pair p, long x) { return p.a * 10 + p.b + x; }
__attribute__((noinline)) double of_mixed(double before, struct mixed m) { return before + m.d * m.i; }
__attribute__((noinline)) long of_large(struct large l, long x, struct large *p) { return l.v[4] * 100 + p->v[0] + x; }
__attribute__((noinline)) long of_small(struct small s) { return s.c[0] * 1000 + s.c[1]; }
__attribute__((noinline)) struct pair swapped(struct pair p) { return (struct pair){p.b, p.a}; }
__attribute__((noinline)) struct mixed halved(struct mixed m) { return (struct mixed){m.d / 2, m.i / 2}; }
__attribute__((noinline)) struct large moved(struct large l, long by)
{
    for (int i = 0; i < 5; i++) l.v[i] += by;
    return l;
}
__attribute__((noinline)) struct small smaller(void) { return (struct small){{7, 8, 9}}; }
__attribute__((noinline)) __int128 doubled(__int128 v) { return v * 2; }
__attribute__((noinline)) long of_longer(long double v) { return (long)(v * 4); }
__attribute__((noinline)) long no_registers(long a, long b, long c, long d, long e, struct pair p, long f)
{
    return a + b + c + d + e + p.a * 100 + p.b * 1000 + f * 10000;
}

/* Structures as they come. */
__attribute__((noinline)) long takes(struct pair p, struct mixed m, struct large l, struct small s, __int128 w,
                                     long last)
{
    return p.a + m.i + l.v[1] + s.c[0] + (long)w + last;
}
__attribute__((noinline)) struct mixed gives(int i) { return (struct mixed){i * 1.5, i}; }
__attribute__((noinline)) struct large gives_large(int i)
{
    struct large l = large;
    l.v[2] = i;
    return l;
}

__attribute__((noinline)) long helper(long a, double b) { return a * 2 + (long)b; }
long (*volatile by_pointer)(long, double) = helper;

__attribute__((noinline)) long work(int n, const char *text, double real, struct thing *t)
{
    long sum = t->number;
    for (int i = 0; i < n; i++) sum += array[i] + text[i];
    return sum + by_pointer((long)real, 1.0);
}

int main(void)
{
    for (int i = 0; i < 3; i++) printf("%ld\n", work(i + 1, "abcdef", 2.5, &thing));
    printf("%ld\n", takes(pair, mixed, large, small, huge, 11) + gives(6).i + gives_large(8).v[2]);
    printf("%ld %ld %ld %ld\n", of_pair(pair, 1), of_large(large, 2, &large), of_small(small), of_longer(longer));
    printf("%ld %ld\n", no_registers(1, 2, 3, 4, 5, pair, 6),
           (long)doubled(huge) + swapped(pair).a + moved(large, 1).v[0]);
    printf("%g %d\n", of_mixed(1, mixed) + halved(mixed).d, smaller().c[1] + packed.high);
    return byte == 200 ? 0 : 1;
}
