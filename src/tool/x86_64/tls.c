/* The C library's thread-local storage for the program's threads.
 *
 * The library did not start these threads and knows nothing of them; what its functions need of a
 * thread is made by hand. glibc's thread control block on x86-64, at FS base:
 *
 *     fs:0x00  self      fs:0x08  dtv         fs:0x10  self
 *     fs:0x18  multiple_threads: nonzero makes malloc and stdio take their locks
 *     fs:0x28  stack protector's canary       fs:0x30  pointer guard
 *     ...      the thread's id, at an offset found by looking for the first thread's
 *
 * The functions below that no header declares are the static library's own.
 */
#include "tool/glibc.h"
#include "tool/heap.h"
#include "tool/state.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

enum {
    TCB_SELF = 0x00,
    TCB_SELF_TOO = 0x10,
    TCB_MULTIPLE = 0x18,
    TCB_CANARY = 0x28,
    TCB_GUARD = 0x30,
    TID_FROM = 0x200,
    TID_TO = 0x600
};
enum { LOCK, UNLOCK_PARENT, UNLOCK_CHILD };

static char *own_block(void)
{
    char *p;
    __asm__("mov %%fs:0, %0" : "=r"(p));
    return p;
}

static uint64_t *word(void *tls, unsigned offset) { return (uint64_t *)((char *)tls + offset); }

static unsigned tid_offset(void)
{
    unsigned found = tool_now->tid_offset;
    if (found) return found;
    int tid = (int)sys_call0(SYS_gettid);
    for (unsigned at = TID_FROM; at < TID_TO && !found; at += sizeof(int))
        if (*(int *)(own_block() + at) == tid) found = at;
    return tool_now->tid_offset = found;
}

static void set_tid(char *tls, int tid)
{
    unsigned at = tid_offset();
    if (at) *(int *)(tls + at) = tid;
}

/* To be called once, in the first thread, which has its id from the library. */
void tls_prepare(void)
{
    tid_offset();
    *(int *)(own_block() + TCB_MULTIPLE) = 1;
    __libc_single_threaded = 0;
    _IO_enable_locks();
}

void *tls_new(void)
{
    if (heap_threads_begin) heap_threads_begin();
    char *tls = _dl_allocate_tls(NULL);
    if (!tls) return NULL;
    *word(tls, TCB_SELF) = *word(tls, TCB_SELF_TOO) = (uint64_t)(uintptr_t)tls;
    *(int *)(tls + TCB_MULTIPLE) = 1;
    *word(tls, TCB_CANARY) = *word(own_block(), TCB_CANARY);
    *word(tls, TCB_GUARD) = *word(own_block(), TCB_GUARD);
    return tls;
}

void tls_free(void *tls) { _dl_deallocate_tls(tls, true); }
uint64_t tls_base_of(void *tls) { return (uint64_t)(uintptr_t)tls; }

void tls_enter(void *tls, int tid)
{
    set_tid(tls, tid);
    __ctype_init();
}

void tls_leave(void) { __malloc_arena_thread_freeres(); }

/* In the order of the library's own fork. */
void tls_fork(int phase)
{
    switch (phase) {
    case LOCK:
        _IO_list_lock();
        __malloc_fork_lock_parent();
        break;
    case UNLOCK_PARENT:
        __malloc_fork_unlock_parent();
        _IO_list_unlock();
        break;
    case UNLOCK_CHILD:
        __malloc_fork_unlock_child();
        _IO_list_resetlock();
        break;
    }
}

/* A stream that another thread held at the fork stays locked for ever: its lock is made anew. */
static void reset_stream(FILE *f)
{
    struct {
        int lock, count;
        void *owner;
    } *lock = (void *)f->_lock;
    if (lock) memset(lock, 0, sizeof *lock);
}

void tls_fork_child(void *tls, int tid)
{
    set_tid(tls ? tls : own_block(), tid);
    reset_stream(stdout);
    reset_stream(stderr);
}
