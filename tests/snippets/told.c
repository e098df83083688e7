/* Variables of many kinds in code of many shapes, for told.py, which has each looked at at every instruction. What is
 * not static is written once in a way that compilers cannot see through. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct point {
    int x, y;
} point;
typedef struct figure {
    long id;
    double weight;
    point corners[3];
    unsigned low : 3, high : 9;
    char name[12];
} figure;
typedef struct pair {
    long a;
    double b;
} pair;
enum colour { RED = -3, GREEN, BLUE = 8 };

static figure first = {7, 2.5, {{1, 2}, {3, 4}, {5, 6}}, 5, 300, "first"};
static volatile long opaque;

__attribute__((noinline)) static void seen(long v) { opaque += v; }
__attribute__((noinline)) static void seen_real(double v) { opaque += (long)v; }
__attribute__((noinline)) static void taken(int *p) { *p += 1; }

__attribute__((noinline)) long changed(int n, long m, unsigned char c, short s, unsigned u, long long l, int on_stack,
                                       double d, float f)
{
    long sum = n;
    n = n * 3 + 1;
    seen(n);
    m -= n, c += 7, s = (short)(s - 300);
    seen(m + c + s);
    u ^= 0x55, l = l / 3, on_stack += (int)m, d = d * 0.5 + 1, f -= 2;
    seen_real(d + (double)f);
    sum += n + m + c + s + u + l + on_stack + (long)d + (long)f;
    seen(sum);
    return sum;
}

__attribute__((noinline)) long forgotten(int n, long m, double d, const figure *g)
{
    long first_use = n + m;
    seen(first_use);
    seen_real(d);
    seen(g->id);
    for (int i = 0; i < 3; i++) seen(i);
    return opaque & 1;
}

int often = 888; /* which is another one than that of what is inlined */

static inline __attribute__((always_inline)) long inlined(long a, int b)
{
    static volatile int often = 40;
    long inner = a * b;
    seen(inner);
    often += 3;
    return inner + b;
}

__attribute__((noinline)) long nested(long a, int turns)
{
    long sum = 0;
    for (int i = 0; i < turns; i++) {
        long square = (long)i * i;
        if (i & 1) {
            int odd = i + 100;
            sum += inlined(square, odd);
        } else {
            short even = (short)(i * 7);
            sum -= inlined(even, i);
        }
        seen(sum);
    }
    return sum + a;
}

__attribute__((noinline)) long whole(point p, figure big, pair q)
{
    p.x += 3;
    big.corners[1].y = p.x;
    q.b = q.b * 2;
    seen(p.x + p.y + big.corners[1].y);
    seen_real(q.b + big.weight);
    q.a += big.high;
    seen(q.a + big.low);
    return p.y + q.a + big.name[0];
}

__attribute__((noinline)) long addressed(int n, int m)
{
    int local = n * 2;
    taken(&local);
    taken(&n);
    seen(local + n);
    return m + local;
}

__attribute__((noinline)) long recursive(int depth, long carried)
{
    long mine = carried * 2 + depth;
    if (depth) mine += recursive(depth - 1, mine);
    seen(mine);
    return mine;
}

__attribute__((noinline)) double reals(double a, float b, int n)
{
    double sum = a;
    float product = 1;
    for (int i = 0; i < n; i++) {
        sum += b * i;
        product *= 1.5f;
        seen_real(sum);
    }
    return sum + product;
}

__attribute__((noinline)) long listed(int count, ...)
{
    va_list args;
    long sum = 0;
    va_start(args, count);
    for (int i = 0; i < count; i++) sum += va_arg(args, int);
    va_end(args);
    seen(sum);
    return sum;
}

__attribute__((noinline)) int chosen(enum colour which, _Bool yes, char letter)
{
    static int times = 40;
    int answer = 0;
    times++;
    switch (which) {
    case RED: answer = yes ? 11 : 12; break;
    case GREEN: answer = letter - 'a'; break;
    case BLUE: answer = times; break;
    }
    seen(answer);
    return answer + times;
}

__attribute__((noinline)) long varying(int n)
{
    int list[n];
    long sum = 0;
    for (int i = 0; i < n; i++) list[i] = i * i;
    for (int i = 0; i < n; i++) sum += list[i];
    seen(sum);
    return sum;
}

__attribute__((noinline)) long wide_frame(int n, long m)
{
    char text[600];
    long length = n;
    snprintf(text, sizeof text, "%d and %ld", n, m);
    length = (long)strlen(text);
    seen(length);
    return length * n;
}

int main(void)
{
    point p = {11, 12};
    pair q = {31, 4.5};
    long sum = 0;
    for (int turn = 0; turn < 3; turn++) {
        sum += changed(turn + 5, turn * 1000, (unsigned char)(turn + 250), (short)(turn - 20), 77u + (unsigned)turn,
                       1ll << 40, turn + 9, 0.25 * turn, 8.5f);
        sum += forgotten(turn + 50, turn + 600, turn / 4.0, &first);
        sum += nested(turn + 2, 5);
        sum += whole(p, first, q);
        sum += addressed(turn + 21, turn + 31);
        sum += recursive(4, turn + 1);
        sum += (long)reals(turn + 0.5, 2.25f, 4);
        sum += listed(4, 1, 2, 3, turn);
        sum += chosen(turn == 0 ? RED : turn == 1 ? GREEN : BLUE, turn & 1, (char)('m' + turn));
        sum += varying(turn + 3);
        sum += wide_frame(turn + 70, turn + 8000);
    }
    printf("%ld %ld\n", sum, opaque);
    return 0;
}
