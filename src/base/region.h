/* Where Inlay's own mappings go inside a program.
 *
 * A mapping without an address would take the place that the kernel has next for the program, and
 * every later mapping of the program would lie elsewhere than natively. So whoever maps memory for
 * Inlay asks here for a place in a region of the tool's own, and hands it to mmap as a hint: should
 * it be taken, the kernel chooses another. Before a region is set (in the launcher, in tests) the
 * answer is 0, the kernel's choice. */
#ifndef INL_BASE_REGION_H
#define INL_BASE_REGION_H

#include <stdbool.h>
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

/* Memory that grows in its place. Address space counts against limits (RLIMIT_AS, RLIMIT_DATA) as soon as it is
 * mapped, touched or not; but nobody else maps anything in the region, so a place there need not be mapped to be
 * kept. Where there is no region, all of it is mapped at once. */
typedef struct inl_room {
    uint64_t at;
    size_t size, mapped; /* bytes kept for it; [at, at + mapped) is there, writable, zero at first */
} inl_room;

bool inl_room_take(inl_room *, size_t size, size_t first); /* false: no memory */
bool inl_room_grow(inl_room *, size_t mapped);             /* async-signal-safe; false: no memory, or no room */
void inl_room_give_back(inl_room *);

/* Inlay must be able to go on when the program has used up what it may map: a piece is kept for that, and given
 * back to the kernel at the first mapping of Inlay's that fails. False: there is none (any more). */
void inl_spare_keep(size_t size);
bool inl_spare_drop(void);
/* mmap of anonymous memory, with the spare's help; `at` 0: where the region has room. 0: no memory. */
uint64_t inl_region_map(uint64_t at, size_t size, int prot, int flags);

#endif
