/* One of two files: the other has the table (tables.more.c). */
#include <stdio.h>
#include <cmplrs/atom.anal.h>

extern ThreadTable *table;
extern const char *check_statuses(void);
static ThreadMutex mutex = ThreadNoId;
static unsigned long entered;

void Open() { table = ThreadTableInit(4, sizeof(long)); }

void Entered()
{
    ThreadId id = ThreadGetId();
    long *own = ThreadLookup(table, id, THREAD_LOCK);
    *own += (long)id * 10;
    ThreadUnlock(table, id);
    ThreadMutexLock(&mutex, id);
    entered++;
    ThreadMutexUnlock(&mutex);
}

static void each(ThreadId id, void *element, void *data, void *result)
{
    *(long *)result += *(long *)element / (long)id + *(long *)data;
}

void Close()
{
    long sum = 0, extra = 1000;
    ThreadStatus s = ThreadForeach(table, ThreadGetId(), THREAD_LOCK, &extra, &sum, each);
    printf("%lu entered, sum %ld, status %d, thread %lu, %s\n", entered, sum, s, ThreadGetId(), check_statuses());
    ThreadTableFree(table);
}
