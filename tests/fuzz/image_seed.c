/* A small program with all that the image fuzzer damages: symbols, a PLT, exception-free unwind
 * tables, debug information. It is never run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
    struct record *next;
    union {
        double real;
        unsigned bits : 5, more : 20;
    };
    char name[4][8];
    enum { small = 1, large = -9 } kind;
    int (*sort)(struct record *, size_t);
};
int table[16] = {1, 2, 3};
struct record values[2];

static int sum(const int *v, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++) total += v[i];
    return total;
}

int main(int argc, char **argv)
{
    char *copy = strdup(argv[0]);
    qsort(table, 16, sizeof *table, (int (*)(const void *, const void *))strcmp);
    printf("%s %d\n", copy, sum(table, 16) + argc);
    free(copy);
    return 0;
}
