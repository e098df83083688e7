/* Holds as many numbers as it has room for, one after the other from what a line says on; a line that is none asks how
 * many are others than those. */
#include <stdint.h>
#include <stdio.h>

enum { MOST = 4 << 20 };
static volatile uint64_t numbers[MOST];

__attribute__((noinline)) static void fill(uint64_t first)
{
    for (uint64_t i = 0; i < MOST; i++) numbers[i] = first + i;
}

__attribute__((noinline)) static unsigned others(uint64_t first)
{
    unsigned found = 0;
    for (uint64_t i = 0; i < MOST; i++) found += numbers[i] != first + i;
    return found;
}

int main(void)
{
    char line[80];
    unsigned long long first = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%llx", &first) == 1) fill(first);
        printf("%u others\n", others(first));
        fflush(stdout);
    }
    return 0;
}
