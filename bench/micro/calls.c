/* Recursive Fibonacci: nothing but calls and returns.
 * operations: 11405773 (calls) */
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noipa)) unsigned long fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned long sum = 0;
    for (int i = 0; i < rounds; i++) sum += fib(33);
    printf("%lu\n", sum);
    return 0;
}
