/* Waits in a call and turns in a loop, in procedures whose names and lines a debugger is to find. */
#include <stdio.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void turns(void)
{
    volatile unsigned long room[40];                         /* a frame */
    for (unsigned long i = 0;; i++) sum += room[i % 40] = i; /* turning */
}

__attribute__((noinline)) static void waits(void)
{
    char c;
    if (read(0, &c, 1) == 1 && c == 't') turns(); /* waiting */
    sum++;
}

int main(void)
{
    if (fork() == 0) _exit(0);
    puts("ready");
    fflush(stdout);
    waits();
    return 0;
}
