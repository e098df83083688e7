/* What the kernel may write of the program's memory on behalf of a system call.
 *
 * Guarded pages (guard.c) are read-only, and a call that has to write there would fail after it has
 * consumed its input: a child's status, a datagram, a signal. So what a call may write is known before
 * it is made. The answer may be too much, never too little: a call without a row is taken to write
 * wherever one of its arguments points, and wherever what lies there points. */
#ifndef INL_RUN_WRITES_H
#define INL_RUN_WRITES_H

#include <stdbool.h>
#include <stdint.h>

/* `each` is told of a range [low, high); true ends the search, and is the answer. */
typedef bool writes_range(void *arg, uint64_t low, uint64_t high);
bool writes_of_call(long nr, const uint64_t args[6], writes_range *each, void *arg);
/* The call writes nothing, whatever its arguments are. */
bool writes_nothing(long nr);
/* Once it has succeeded the kernel may write at any time, on no call's behalf. */
bool writes_later(long nr);

#endif
