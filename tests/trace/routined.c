/* A program whose calls are known: tests/trace/routines.py. */
#include <errno.h>
#include <stdio.h>

#define ALONE __attribute__((noinline, noclone))
static volatile long sink;

ALONE long down(long n)
{
    sink = sink + n;
    return n ? down(n - 1) + sink : 0;
}

ALONE double six(long a, long b, long c, long d, long e, long f, double g)
{
    sink = sink + a + b * c + d + e * f;
    return g * 1.5 + (double)(a + b + c + d + e + f);
}

int main(void)
{
    errno = 7;
    double sum = 0;
    for (int i = 0; i < 100; i++) sum += six(1, 2, 3, 4, 5, 6, i);
    printf("%ld %g %d\n", down(4), sum, errno);
    return 0;
}
