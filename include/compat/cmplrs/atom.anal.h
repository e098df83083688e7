/* ATOM's interface for analysis files, on Inlay (docs/atom.md). */
#ifndef INLAY_COMPAT_ATOM_ANAL_H
#define INLAY_COMPAT_ATOM_ANAL_H

#ifdef __cplusplus
extern "C" {
#endif

/* What CreateXlate and AddXlateAddress made. Addresses are original ones, which are what analysis
 * routines get everywhere. */
typedef struct atom_xlate XLATE;
unsigned XlateNum(XLATE *);
unsigned long XlateAddr(XLATE *, unsigned k);
unsigned long XlateInstTextStart(XLATE *); /* the object's text */
unsigned long XlateInstTextSize(XLATE *);
long XlateLoadShift(XLATE *);              /* 0 */

typedef struct ThreadMutex { unsigned word; } ThreadMutex; /* zeroed: free */
long ThreadGetId(void);                    /* 0, 1, ... in the order in which threads begin */
long ThreadLockedAdd(long *, long amount); /* atomic; returns the old value */
void ThreadMutexInit(ThreadMutex *);
void ThreadMutexLock(ThreadMutex *);
void ThreadMutexUnlock(ThreadMutex *);
/* A table with a zeroed element of `size` bytes for every thread: this thread's; and thread by thread
 * (NULL, or zeros: it has not asked for its own). */
typedef struct atom_thread_table ThreadTable;
ThreadTable *ThreadTableCreate(unsigned long size);
void *ThreadTableGet(ThreadTable *);
void *ThreadTableOf(ThreadTable *, long id);
long ThreadTableCount(ThreadTable *);      /* ids are smaller than this */

/* Analysis code has a heap of its own, which never lies in the program's way: where it is now. */
void *AnalHeapBase(void);

#ifdef __cplusplus
}
#endif

#endif
