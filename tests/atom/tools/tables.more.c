#include <string.h>
#include <cmplrs/atom.anal.h>

ThreadTable *table;

/* What each routine answers to what it cannot do; "right" or the first that is not. */
const char *check_statuses(void)
{
    ThreadMutex m = 0;
    ThreadTable *t = ThreadTableInit(0, 24);
    ThreadId me = ThreadGetId();
    char *own;
    if (ThreadMutexLock(&m, ThreadNoId) != THREAD_NO_ID) return "lock by nobody";
    if (ThreadMutexLock(&m, me) != THREAD_SUCCESS || ThreadMutexLock(&m, me) != THREAD_LOCKED) return "locked twice";
    ThreadMutexUnlock(&m);
    if (m) return "not free";
    if (ThreadLookup(t, me, THREAD_EXISTING)) return "exists";
    if (ThreadRemove(t, me) != THREAD_NO_DATA || ThreadRemove(t, ThreadNoId) != THREAD_NO_ID) return "removed nothing";
    if (ThreadAddr(t, me) || ThreadUnlock(t, me) != THREAD_NO_DATA) return "has a lock";
    own = ThreadLookup(t, me, 0);
    if (!own || own != ThreadLookup(t, me, THREAD_EXISTING) || own[0] || own[23]) return "own";
    memset(own, 1, 24);
    if (!ThreadAddr(t, me) || *ThreadAddr(t, me)) return "lock held";
    ThreadLookup(t, me, THREAD_LOCK);
    if (!*ThreadAddr(t, me) || ThreadMutexLock(ThreadAddr(t, me), me) != THREAD_LOCKED) return "lock not held";
    if (ThreadUnlock(t, me) != THREAD_SUCCESS || *ThreadAddr(t, me)) return "unlocked";
    if (ThreadTableLock(t, me) != THREAD_SUCCESS || ThreadTableLock(t, me) != THREAD_LOCKED) return "table";
    ThreadTableUnlock(t, me);
    if (ThreadTableLock(t, ThreadNoId) != THREAD_NO_ID) return "table by nobody";
    if (ThreadRemove(t, me) != THREAD_SUCCESS || ThreadLookup(t, me, THREAD_EXISTING)) return "removed";
    if (((char *)ThreadLookup(t, me, 0))[5]) return "not cleared";
    if (ThreadForeach(t, ThreadNoId, 0, 0, 0, 0) != THREAD_NO_ID) return "each by nobody";
    if (ThreadIsInternal(me) || !AnalHeapBase()) return "rest";
    ThreadMutexPoll(10);
    ThreadTableFree(t);
    return "right";
}
