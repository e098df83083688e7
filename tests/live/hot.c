/* Several threads come to one place all the time, and to one that nothing can be put into: its code has a single byte.
 * It has so much memory (in MB) that its end takes a moment. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void narrow(void);
void behind(void);
__asm__(".text\n.globl narrow, behind\n"
        ".type narrow, @function\nnarrow: ret\n.size narrow, 1\n"
        ".type behind, @function\nbehind: nop; ret\n.size behind, 2\n");

__attribute__((noinline)) int place(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static void *comes_there(void *arg)
{
    for (;;) {
        place(100);
        narrow();
        behind();
    }
    return arg;
}

int main(int argc, char **argv)
{
    enum { THREADS = 2 };
    pthread_t one;
    size_t size = (argc > 1 ? (size_t)atoi(argv[1]) : 0) << 20;
    char *memory = malloc(size + 1);
    if (!memory) return 1;
    memset(memory, 1, size + 1);
    for (int i = 0; i < THREADS && argc == 1; i++)
        if (pthread_create(&one, NULL, comes_there, NULL)) return 1;
    puts("there");
    fflush(stdout);
    pause();
    return memory[size];
}
