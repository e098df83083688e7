/* ATOM's interface for analysis files, on Inlay (docs/atom.md). Names and numbers are those of Tru64 UNIX; what stands
 * here besides says so. */
#ifndef INLAY_COMPAT_ATOM_ANAL_H
#define INLAY_COMPAT_ATOM_ANAL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters' types. */
typedef long REGV;
typedef double FREGV; /* where it was a long that held the same bits */

/* What CreateXlate and AddXlateAddress made. Addresses are original ones, which are what analysis
 * routines get everywhere. */
typedef struct atom_xlate XLATE;
unsigned XlateNum(XLATE *);
unsigned long XlateAddr(XLATE *, unsigned k);
unsigned long XlateInstTextStart(XLATE *); /* the object's text */
unsigned long XlateInstTextSize(XLATE *);
long XlateLoadShift(XLATE *);              /* 0 */

/* Analysis code has a heap of its own, which never lies in the program's way: where it is now. */
unsigned long AnalHeapBase(void);

/* --- threads --- */
#define ThreadNoId 0
typedef unsigned long ThreadId;    /* 1, 2, ... in the order in which threads begin */
typedef unsigned long ThreadMutex; /* 0: free */
typedef struct atom_thread_table ThreadTable;
typedef enum ThreadStatus {
    THREAD_SUCCESS,
    THREAD_NO_DATA, /* ThreadRemove: there was none */
    THREAD_FOREACH, /* not answered here */
    THREAD_NO_ID,   /* the thread named is ThreadNoId */
    THREAD_LOCKED,  /* this thread holds it already */
    THREAD_INTERNAL /* not answered here */
} ThreadStatus;
typedef enum ThreadFlags { THREAD_LOCK = 1, THREAD_EXISTING = 2 } ThreadFlags;

ThreadId ThreadGetId(void);
int ThreadIsInternal(ThreadId); /* 0: the C library has no threads of its own */
unsigned long ThreadLockedAdd(unsigned long *, unsigned long amount); /* atomic; returns the old value */

ThreadStatus ThreadMutexLock(ThreadMutex *, ThreadId);
void ThreadMutexUnlock(ThreadMutex *);
void ThreadMutexPoll(int microseconds); /* without effect: who waits sleeps until it is free */

/* A table with a zeroed element of `bytes` for every thread that asks for its own. */
ThreadTable *ThreadTableInit(unsigned long threads, unsigned long bytes); /* about how many; 0: not known */
/* Nobody else gets an element, or goes over them, in between. */
ThreadStatus ThreadTableLock(ThreadTable *, ThreadId);
void ThreadTableUnlock(ThreadTable *, ThreadId);
void ThreadTableFree(ThreadTable *); /* nobody uses it any more */
/* The thread's element, made when there is none; with THREAD_EXISTING then NULL. With THREAD_LOCK it is this
 * thread's until ThreadUnlock. */
void *ThreadLookup(ThreadTable *, ThreadId, unsigned long flags);
ThreadStatus ThreadUnlock(ThreadTable *, ThreadId);
ThreadStatus ThreadRemove(ThreadTable *, ThreadId);
/* Calls each(thread, its element, data, result) for all elements, by a thread that tells its id; with THREAD_LOCK
 * each element is locked meanwhile. */
ThreadStatus ThreadForeach(ThreadTable *, ThreadId, unsigned long flags, void *data, void *result,
                           void (*each)(ThreadId, void *element, void *data, void *result));
ThreadMutex *ThreadAddr(ThreadTable *, ThreadId); /* the element's lock; NULL: it has none */

/* Inlay's. ThreadTableOf: NULL, or zeros, where the thread has not asked; ids are smaller than the count. */
void ThreadMutexInit(ThreadMutex *);
ThreadTable *ThreadTableCreate(unsigned long bytes);
void *ThreadTableGet(ThreadTable *);
void *ThreadTableOf(ThreadTable *, ThreadId);
long ThreadTableCount(ThreadTable *);

#ifdef __cplusplus
}
#endif

#endif
