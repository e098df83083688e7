#include <stdio.h>
#include <cmplrs/atom.anal.h>

static unsigned long atomic, locked;
static ThreadMutex mutex;
static ThreadTable *table;

void Open() { table = ThreadTableCreate(sizeof(long)); }

void Block()
{
    ThreadLockedAdd(&atomic, 1);
    ++*(long *)ThreadTableGet(table);
    ThreadMutexLock(&mutex, ThreadGetId());
    locked++;
    ThreadMutexUnlock(&mutex);
}

void Report()
{
    FILE *f = fopen("threads.out", "w");
    long sum = 0, i;
    for (i = 0; i < ThreadTableCount(table); i++)
        if (ThreadTableOf(table, i)) sum += *(long *)ThreadTableOf(table, i);
    fprintf(f, "%s %s %s\n", atomic == locked && atomic == sum ? "equal" : "different",
            atomic > 1000 ? "many" : "few", ThreadTableCount(table) > 1 ? "threads" : "one thread");
    fclose(f);
}
