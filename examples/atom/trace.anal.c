#include <stdio.h>

static FILE *out;

static FILE *file()
{
    if (!out) out = fopen("trace.out", "w");
    return out;
}

void Load(long pc, long address) { fprintf(file(), "%lx load %lx\n", pc, address); }
void Store(long pc, long address) { fprintf(file(), "%lx store %lx\n", pc, address); }
void Branch(long pc, long taken) { fprintf(file(), "%lx branch %s\n", pc, taken ? "taken" : "not taken"); }
void Close() { fclose(file()); }
