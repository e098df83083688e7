/* The C library's thread-local storage for the program's threads. The library did not start these threads and knows
 * nothing of them; what its functions need of a thread is made by hand: here what is the same on every architecture,
 * in <isa>/tls.c what a thread control block is made of. */
#include "tool/glibc.h"
#include "tool/heap.h"
#include "tool/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/single_threaded.h>

enum { LOCK, UNLOCK_PARENT, UNLOCK_CHILD };

/* To be called once, in the first thread, which has its id from the library. */
void tls_prepare(void)
{
    tls_block_prepare();
    __libc_single_threaded = 0;
    _IO_enable_locks();
}

/* Where the tables of <ctype.h> are, which the library's own threads note as they begin: all threads have the same. Of
 * those that were there before the tool came some enter it for the first time when they end the process. */
static void share_ctype(char *tls)
{
    const void *const mine[] = {__ctype_b_loc(), __ctype_tolower_loc(), __ctype_toupper_loc()};
    for (unsigned i = 0; i < sizeof mine / sizeof *mine; i++)
        memcpy(tls + ((const char *)mine[i] - (const char *)tls_block_own()), mine[i], sizeof(void *));
}

void *tls_new(void)
{
    if (heap_threads_begin) heap_threads_begin();
    char *tls = _dl_allocate_tls(NULL);
    if (tls) tls_block_fill(tls);
    if (tls) share_ctype(tls);
    return tls;
}

void tls_free(void *tls) { _dl_deallocate_tls(tls, true); }
uint64_t tls_base_of(void *tls) { return (uint64_t)(uintptr_t)tls; }

void tls_enter(void *tls, int tid) { tls_block_set_tid(tls, tid); }

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

/* A stream that another thread held at the fork stays locked for ever: its lock is made anew. What it has in its buffer
 * is the parent's to write. */
static void reset_stream(FILE *f)
{
    struct {
        int lock, count;
        void *owner;
    } *lock = (void *)f->_lock;
    if (lock) memset(lock, 0, sizeof *lock);
    if (__fwriting(f)) __fpurge(f);
}

void tls_fork_child(void *tls, int tid)
{
    tls_block_set_tid(tls ? tls : tls_block_own(), tid);
    for (void *i = _IO_iter_begin(); i != _IO_iter_end(); i = _IO_iter_next(i)) reset_stream(_IO_iter_file(i));
}
