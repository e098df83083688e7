/* Calls through a table of function pointers: 16 targets from one place, in an order that repeats
 * only after a long time.
 * operations: 10000000 (indirect calls) */
#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define TARGET(n) static unsigned long target##n(unsigned long x) { return x * (2 * n + 3) + n; }
TARGET(0) TARGET(1) TARGET(2) TARGET(3) TARGET(4) TARGET(5) TARGET(6) TARGET(7)
TARGET(8) TARGET(9) TARGET(10) TARGET(11) TARGET(12) TARGET(13) TARGET(14) TARGET(15)

static unsigned long (*const table[16])(unsigned long) = {
    target0, target1, target2,  target3,  target4,  target5,  target6,  target7,
    target8, target9, target10, target11, target12, target13, target14, target15,
};
/* clang-format on */

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned long x = 1;
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 10000000; k++) x = table[x >> 60](x);
    }
    printf("%lu\n", x);
    return 0;
}
