/* A small deterministic program whose reads, writes, allocations and calls run.py knows.
 *
 *     sample FOLDER    makes FOLDER/data */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int leaf(int x)
{
    __asm__ volatile("");
    return x + 1;
}
__attribute__((noinline)) int twice(int x) { return leaf(x) + leaf(x + 1); }

static char buffer[1000];
void *volatile kept[4];

static void files(const char *folder)
{
    char path[4096];
    strcpy(path, folder);
    strcat(path, "/data");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, buffer, 700) != 700 || write(fd, buffer, 50) != 50) exit(3);
    lseek(fd, 0, SEEK_SET);
    if (read(fd, buffer, 500) != 500 || read(fd, buffer, 500) != 250 || read(fd, buffer, 10) != 0) exit(4);
    close(fd);
}

static void memory(void)
{
    kept[0] = malloc(100);
    kept[1] = calloc(10, 20);
    kept[2] = malloc(7);
    memset(kept[0], 1, 100);
    for (int i = 0; i < 200; i++)
        if (((char *)kept[1])[i]) exit(5);
    kept[0] = realloc(kept[0], 300);
    if (((char *)kept[0])[99] != 1) exit(6);
    free(kept[0]);
    free(kept[1]);
    free(NULL);
}

int main(int argc, char **argv)
{
    files(argc > 1 ? argv[1] : ".");
    memory();
    int sum = fib(10) + twice(1) + twice(2);
    return sum == 55 + 5 + 7 ? 0 : 7;
}
