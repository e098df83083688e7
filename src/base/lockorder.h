/* The order in which locks are taken, watched under `--debug` (lock.c asks when inl_debug is set). */
#ifndef INL_BASE_LOCKORDER_H
#define INL_BASE_LOCKORDER_H

#include "base/lock.h"

void inl_lock_order_take(const inl_lock *);    /* before it waits */
void inl_lock_order_release(const inl_lock *); /* by whoever */

#endif
