/* A small futex lock that needs no thread-local storage and no libc, so that it works in a signal
 * handler's thread, in a fresh clone, and before the private libc is up. Not recursive. */
#ifndef INL_BASE_LOCK_H
#define INL_BASE_LOCK_H

#include <stdint.h>

typedef struct inl_lock {
    uint32_t word; /* 0 free, 1 held, 2 held and waited for */
} inl_lock;

void inl_lock_take(inl_lock *l);
void inl_lock_release(inl_lock *l);
/* For a lock under which no other is taken: the order is not watched (lockorder.h), and nothing but this is called. */
void inl_lock_take_inner(inl_lock *l);
void inl_lock_release_inner(inl_lock *l);
void inl_lock_reset(inl_lock *l); /* after fork, in the child, for a lock held by the forker */

#endif
