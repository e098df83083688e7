/* Where Inlay's own mappings go inside a program.
 *
 * A mapping without an address would take the place that the kernel has next for the program, and
 * every later mapping of the program would lie elsewhere than natively. So whoever maps memory for
 * Inlay asks here for a place in a region of the tool's own, and hands it to mmap as a hint: should
 * it be taken, the kernel chooses another. Before a region is set (in the launcher, in tests) the
 * answer is 0, the kernel's choice. */
#ifndef INL_BASE_REGION_H
#define INL_BASE_REGION_H

#include <stddef.h>
#include <stdint.h>

typedef struct inl_region {
    uint64_t low, high, next;
} inl_region;

/* In the data segment: a C library allocates before any constructor runs, so whoever puts the tool
 * into a program fills this in from outside. */
extern inl_region inl_region_now;

void inl_region_set(uint64_t low, uint64_t high);
uint64_t inl_region_take(size_t size);

#endif
