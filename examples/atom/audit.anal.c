#include <stdio.h>
#include <stdlib.h>

struct load { long count, wasted; };
static struct load *loads;
static long value;
static long count, wasted;
static FILE *out;

void Open(int n) { loads = calloc(n + 1, sizeof *loads); }

void Before(long old) { value = old; }

void After(int n, long now)
{
    loads[n].count++;
    if (value == now) loads[n].wasted++;
}

static void begin()
{
    out = fopen("audit.out", "w");
    fprintf(out, "%18s %12s %12s\n", "address", "executed", "wasted");
}

void Line(int n, long pc)
{
    if (!out) begin();
    count += loads[n].count;
    wasted += loads[n].wasted;
    if (loads[n].wasted) fprintf(out, "0x%016lx %12ld %12ld\n", pc, loads[n].count, loads[n].wasted);
}

void Close()
{
    if (!out) begin();
    fprintf(out, "%18s %12ld %12ld\n", "total", count, wasted);
    fclose(out);
}
