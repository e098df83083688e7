/* Which pages of a process are there, in memory or swapped out: what has never been touched, which may be terabytes
 * (the shadow of a sanitizer), is not looked at. */
#ifndef INL_BASE_PRESENT_H
#define INL_BASE_PRESENT_H

#include <stdint.h>

/* Calls `each` for the stretches of such pages in a range of pages, none of which touches the next. `pagemap` is a
 * process's file of that name; what it does not tell counts as there. */
void inl_present_each(int pagemap, uint64_t low, uint64_t high, void (*each)(void *arg, uint64_t low, uint64_t high),
                      void *arg);

#endif
