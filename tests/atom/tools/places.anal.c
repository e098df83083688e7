#include <stdio.h>
#include <stdlib.h>

static long hits[16], sums[16];

void Hit(int k) { hits[k]++; }
void Value(int k, long v) { hits[k]++; sums[k] += v; }
void Register(int k, long v) { hits[k]++; sums[k] += v; }
void Replaced(long repl, long arg, long pc, long ra)
{
    if (repl != pc || ra < 0x401000 || ra > 0x402000 || arg != 0) exit(9);
    hits[12]++;
}
void Report()
{
    int k;
    for (k = 0; k <= 12; k++) printf("%d: %ld %ld\n", k, hits[k], sums[k]);
}
