/* Calls with arguments and results that are known. */
#include <stdio.h>
#include <string.h>

#define ALONE __attribute__((noinline, noclone))

ALONE long add(int a, const char *s, unsigned char c, double d, long long e)
{
    return a + (s ? (long)strlen(s) : 0) + c + (long)d + e;
}

ALONE const char *name(int k) { return k ? "a \"name\"" : NULL; }

ALONE int reads(const char *text) { return (unsigned long)text == 1 ? -1 : text[0]; }

ALONE long down(long n) { return n * (n + 1) / 2; }

ALONE float half(float x, int k, double y) { return x / 2 + (float)k + (float)y; }

ALONE double third(double x) { return x / 3; }

struct whole {
    long a, b, c;
};
ALONE struct whole swaps(int first) { return (struct whole){first, first, 2}; }

ALONE long sums(int first, struct whole w, int last) { return w.c + first + w.b + w.a + last; }

/* What is passed in registers of both kinds, and on the stack; results in registers, and where the caller says. */
struct pair {
    long a;
    double b;
};
ALONE double mixes(struct pair p, __int128 wide, long double real, struct whole w, float f, int last)
{
    return p.a + p.b + (double)wide + (double)real + (double)w.a + (double)f + last;
}
ALONE double turns(double _Complex z, int last) { return __real__ z + last; }
ALONE struct pair makes(long a) { return (struct pair){a, 0.5}; }
ALONE struct whole fills(int first, double second) { return (struct whole){first, (long)second, 2}; }

/* One of several procedures, chosen as the program starts. */
ALONE static long implementation(long n)
{
    for (long i = 0; i < 3; i++) __asm__ volatile("" : "+r"(n));
    return n + 1;
}
static long (*resolver(void))(long) { return implementation; }
long picked(long) __attribute__((ifunc("resolver")));

int main(void)
{
    long x = add(-5, "short", 'x', 2.5, 7000000000LL);
    x += add(6, "a string that is much longer than what is recorded of it", 1, 0, -1) + add(7, NULL, 2, 0, 0);
    x += add(8, "", 3, 1, 1) + !name(0) + name(1)[0] + reads("tab\t") + reads((const char *)1) + down(3);
    x += down(4);
    x += (long)mixes((struct pair){1, 0.5}, -2, 1.25L, (struct whole){4, 5, 6}, 0.1f, 99) + (long)turns(3, 4) +
         makes(8).a + fills(3, 2.5).b;
    x += picked(41);
    x += (long)half(2.5f, 3, -1e300) + (long)third(1) + swaps(1).a + sums(1, (struct whole){1, 2, 3}, 4);
    printf("%ld\n", x);
    return 0;
}
