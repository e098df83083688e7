/* Work of many forms in one deterministic C program: a switch, computed gotos, recursion, calls through pointers,
 * strings, floating point, setjmp, a comparison that the C library calls, tail calls, a varied argument list. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned (*step)(unsigned);
static jmp_buf out;

static unsigned cases(unsigned k, unsigned s)
{
    switch (k) {
    case 0: return s + 1;
    case 1: s *= 5; /* on */
    case 2: s ^= 9; break;
    case 3: return s / 3;
    case 4: s -= 7; break;
    case 5: s = ~s; break;
    case 6: s <<= 3; break;
    case 9: s = s % 1001; break;
    }
    return s ^ k;
}

static unsigned interpret(const unsigned char *p, unsigned s)
{
    static void *const to[] = {&&add, &&mul, &&again, &&end};
    int loops = 50;
#define NEXT goto *to[*p++ & 3]
    NEXT;
add:
    s += 3;
    NEXT;
mul:
    s *= 7;
    NEXT;
again:
    if (loops--) p -= 3;
    NEXT;
end:
    return s;
}

static unsigned f1(unsigned a) { return a + 1; }
static unsigned f2(unsigned a) { return a * 3; }
static unsigned f3(unsigned a)
{
    if (a % 97 == 5) longjmp(out, (int)(a % 7) + 1);
    return a ^ 55;
}
static step volatile steps[] = {f1, f2, f3};
static unsigned tail(unsigned i, unsigned a) { return steps[i % 3](a); }

static unsigned long ackermann(unsigned long m, unsigned long n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static double sum(int count, ...)
{
    va_list l;
    double s = 0;
    va_start(l, count);
    for (int i = 0; i < count; i++) s += i & 1 ? va_arg(l, double) : va_arg(l, int);
    va_end(l);
    return s;
}

static int compare(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}

int main(void)
{
    static const unsigned char code[] = {0, 1, 2, 0, 1, 3};
    unsigned all[200];
    volatile unsigned s = 1, jumped = 0;
    for (volatile int i = 0; i < 200; i++) {
        if (setjmp(out)) jumped = jumped + 1;
        else s = tail((unsigned)i, cases((unsigned)i % 11, s));
        all[i] = s;
    }
    qsort(all, 200, sizeof *all, compare);
    printf("%u %u %u %u\n", s, jumped, all[100], interpret(code, s));
    printf("%lu\n", ackermann(2, 9));
    printf("%.6f %.3f\n", sum(4, 1, 2.5, 3, 4.25), pow(sin(1.25), 3) + sqrt(s % 1000));
    char text[64] = "", *word;
    for (int i = 0; i < 9; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%x ", cases((unsigned)i, 77));
    for (word = strtok(text, " "); word; word = strtok(NULL, " ")) printf("%s.", word);
    puts("");
    return (int)(s & 63);
}
