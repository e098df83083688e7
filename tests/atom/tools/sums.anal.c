/* Additions of which some may wait for the end and some may not: one routine for each case of sums.inst.c. */
#include <stdio.h>
#include <stdlib.h>

static long plain, seen, odd, taken, by_value, maybe, zero = 3, zeros, fixed, again, first, cells[16], near[4];
static int narrow;
static unsigned shared;
static long *table, *walking, ring[64];
long *to_taken = &taken; /* which the compiler cannot know to stay so */
static struct { int a; long b; } both;

void Begin() { table = calloc(16, sizeof *table); walking = ring; }

void Plain(long n) { plain += n; narrow -= 3; both.b += 2 * n; }
void Cells(int k) { cells[k & 15]++; }
void Table(long k, long n) { table[k & 15] += n; }
void Shared() { __sync_fetch_and_add(&shared, 5); }
void Mixed(long address) { plain++; if (address & 8) odd++; near[address & 3]++; }

/* The rest must be done at once. */
void Seen(long n) { seen += n; }
void Look() { if (seen & 1) odd++; }
void Taken(long n) { taken += n; }
void LookThrough() { if (*to_taken & 1) odd++; }
void Walking(long n) { *walking += n; }
void Walk() { if (++walking == ring + 64) walking = ring; }
void Value(long address) { by_value += address & 7; }
void Maybe(long n) { if (n > 3) maybe += n; }
void Asks(long n) { if (--zero == 0) zeros += n, zero = 3; }
void Called(long n) { again += n; if (again > 100) first = again, again = 0; }
void Library(long n) { fixed += n; if (fixed % 1000 == 0) odd += abs(atoi("-1")); }

void Report()
{
    int i;
    FILE *f = fopen("sums.out", "a");
    fprintf(f, "%ld %d %ld:", plain, narrow, both.b);
    for (i = 0; i < 16; i++) fprintf(f, " %ld %ld", cells[i], table ? table[i] : 0);
    for (i = 0; i < 64; i++) fprintf(f, " %ld", ring[i]);
    fprintf(f, ": %u %ld %ld %ld", shared, seen, odd, taken);
    fprintf(f, " %ld %ld %ld %ld %ld %ld %ld", by_value, maybe, zero, zeros, fixed, again, first);
    fprintf(f, " %ld %ld %ld %ld\n", near[0], near[1], near[2], near[3]);
    fclose(f);
}
