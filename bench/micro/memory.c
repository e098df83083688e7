/* Loads and stores over 32 kB: what a trace of memory accesses costs each.
 * operations: 49152000 (accesses) */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    static volatile unsigned words[8192];
    unsigned sum = 0;
    for (int i = 0; i < rounds * 2000; i++) {
        for (int k = 0; k < 8192; k++) {
            sum += words[k];
            words[k ^ 1] = sum;
            sum ^= words[k];
        }
    }
    printf("%u\n", sum);
    return 0;
}
