#include <stdio.h>

static double first, second, mixed, sum;
static char text[64];

void Two(double b, double a) { first += a, second += b; }

/* printf takes whatever vector registers it likes: the program's are to be saved. */
void Mixed(long three, double c, long n, double b)
{
    sprintf(text, "%.1f %ld %ld %.1f", c, three, n, b);
    mixed += three * c + n * b;
}

void Simple(double c) { sum += c; }

void Report() { printf("%g %g %g %g %s\n", first, second, mixed, sum, text); }
