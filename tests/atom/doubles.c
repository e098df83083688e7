/* Calls scaled with doubles, all of which its result depends on. */
#include <stdio.h>

__attribute__((noinline)) double scaled(double a, double b, double c, long n)
{
    return a * b + c * (double)n;
}

int main(void)
{
    double sum = 0, kept = 1.25;
    for (int i = 0; i < 10; i++) sum = scaled(i, kept, sum / 2, 3) + kept;
    printf("%.6f\n", sum);
    return 0;
}
