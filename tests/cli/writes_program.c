/* Calls code that it has written, in memory of its own and in shared memory, and says what it answers. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

volatile int setting = 7;

static int sum_of(int flags)
{
    static const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3}; /* mov $1, %eax; ret */
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags | MAP_ANONYMOUS, -1, 0);
    int sum = 0, (*call)(void);
    if (page == MAP_FAILED) return -1;
    memcpy(page + 64, code, sizeof code);
    page += 64;
    memcpy(&call, &page, sizeof page);
    for (int i = 0; i < 1000; i++) sum += call();
    return sum;
}

int main(void)
{
    int own = sum_of(MAP_PRIVATE), shared = sum_of(MAP_SHARED);
    printf("%d %d %d\n", setting, own, shared);
    return 0;
}
