// Tru64's routines for analysis files have Tru64's signatures: assigned without a cast.
#include <cmplrs/atom.anal.h>
#include <cmplrs/atom.inst.h> // some include both
#include <cstdio>

#define SAME(a, b) static_assert((a) == (b), #a)
SAME(THREAD_SUCCESS, 0); SAME(THREAD_NO_DATA, 1); SAME(THREAD_FOREACH, 2); SAME(THREAD_NO_ID, 3);
SAME(THREAD_LOCKED, 4); SAME(THREAD_INTERNAL, 5); SAME(THREAD_LOCK, 1); SAME(THREAD_EXISTING, 2); SAME(ThreadNoId, 0);
SAME(sizeof(REGV), sizeof(long)); SAME(sizeof(FREGV), 8);

static unsigned long (*const a1)(void) = AnalHeapBase;
static ThreadId (*const a2)(void) = ThreadGetId;
static int (*const a3)(ThreadId) = ThreadIsInternal;
static ThreadTable *(*const a4)(unsigned long, unsigned long) = ThreadTableInit;
static ThreadStatus (*const a5)(ThreadTable *, ThreadId) = ThreadTableLock;
static void (*const a6)(ThreadTable *, ThreadId) = ThreadTableUnlock;
static void (*const a7)(ThreadTable *) = ThreadTableFree;
static void *(*const a8)(ThreadTable *, ThreadId, unsigned long) = ThreadLookup;
static ThreadStatus (*const a9)(ThreadTable *, ThreadId) = ThreadRemove;
static ThreadStatus (*const a10)(ThreadTable *, ThreadId, unsigned long, void *, void *,
                                 void (*)(ThreadId, void *, void *, void *)) = ThreadForeach;
static ThreadMutex *(*const a11)(ThreadTable *, ThreadId) = ThreadAddr;
static ThreadStatus (*const a12)(ThreadMutex *, ThreadId) = ThreadMutexLock;
static void (*const a13)(ThreadMutex *) = ThreadMutexUnlock;
static void (*const a14)(int) = ThreadMutexPoll;
static unsigned long (*const a15)(unsigned long *, unsigned long) = ThreadLockedAdd;
static unsigned long (*const a16)(XLATE *, unsigned) = XlateAddr;
static long (*const a17)(XLATE *) = XlateLoadShift;

struct counter { // made before the program starts
    int value;
    counter() : value(17) {}
} made;

extern "C" void Answer(int sets, int good, long functions)
{
    const void *const all[] = {(void *)a1,  (void *)a2,  (void *)a3,  (void *)a4,  (void *)a5,  (void *)a6,
                               (void *)a7,  (void *)a8,  (void *)a9,  (void *)a10, (void *)a11, (void *)a12,
                               (void *)a13, (void *)a14, (void *)a15, (void *)a16, (void *)a17};
    printf("%d sets %s, %ld functions, %d more\n", sets, good ? "right" : "wrong", functions,
           (int)(sizeof all / sizeof *all) == made.value ? made.value : -1);
}
