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

int main(void)
{
    long x = add(-5, "short", 'x', 2.5, 7000000000LL);
    x += add(6, "a string that is much longer than what is recorded of it", 1, 0, -1) + add(7, NULL, 2, 0, 0);
    x += add(8, "", 3, 1, 1) + !name(0) + name(1)[0] + reads("tab\t") + reads((const char *)1) + down(3);
    x += down(4);
    printf("%ld\n", x);
    return 0;
}
