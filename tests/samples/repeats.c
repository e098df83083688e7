/* A procedure that is called a thousand times, one call at a time, for tools that change their mind. */
#include <stdio.h>

__attribute__((noinline)) unsigned step(unsigned n)
{
    __asm__ volatile("" : "+r"(n));
    return n * 2654435761u + 12345u;
}

int main(void)
{
    unsigned n = 1;
    for (int i = 0; i < 1000; i++) n = step(n);
    printf("%u\n", n);
    return 0;
}
