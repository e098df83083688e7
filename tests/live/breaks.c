/* Calls that breakpoints are set at: each line "poke N" makes N of them, and answers
 * (SUMS) the sum of their results. */
#include <stdio.h>
#include <string.h>

enum colour { RED, GREEN = 5 };
struct pair {
    int a;
    long b[4];
    const char *text;
    struct {
        enum colour colour;
        char letter;
    } last;
};
struct small { /* goes in registers of two kinds */
    unsigned low : 4;
    signed high : 4;
    double real;
};

__attribute__((noinline)) long poke(int n, const char *name, double x, float f, struct pair *p, struct pair whole,
                                    struct small small)
{
    __asm__ volatile("");
    return n + (long)strlen(name) + (long)x + (long)f + p->a + whole.b[1] + small.high;
}

__attribute__((noinline)) long outer(int n)
{
    struct pair p = {.a = n, .b = {1, 2, 3, 4}, .text = "te\"xt", .last = {GREEN, 'c'}};
    long sum = poke(n, "it is\n", n * 0.5, 0.25f, &p, p, (struct small){9, -3, 1.5});
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

int main(void)
{
    int times;
    while (scanf(" poke %d", &times) == 1) {
        long sum = 0;
        for (int i = 0; i < times; i++) sum += outer(i);
#ifdef SUMS
        printf("%ld\n", sum);
#else
        printf("poke %d\n", times);
#endif
        fflush(stdout);
    }
    return 0;
}
