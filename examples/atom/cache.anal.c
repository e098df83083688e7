#include <stdio.h>

#define SIZE 65536
#define SHIFT 5

static long lines[SIZE >> SHIFT]; /* line number + 1: 0 is empty */
static long references, misses;

void Reference(long address)
{
    long line = (unsigned long)address >> SHIFT, place = line & ((SIZE >> SHIFT) - 1);

    references++;
    if (lines[place] != line + 1) {
        misses++;
        lines[place] = line + 1;
    }
}

void Report()
{
    FILE *f = fopen("cache.out", "w");
    fprintf(f, "%ld references, %ld misses, %.2f %%\n", references, misses,
            references ? 100.0 * misses / references : 0.0);
    fclose(f);
}
