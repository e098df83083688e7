/* Ranges of addresses, sorted and disjoint; each has a kind, and neighbours of one kind are one range. */
#ifndef INL_BASE_RANGES_H
#define INL_BASE_RANGES_H

#include "base/vec.h"

#include <stdint.h>

typedef struct inl_range {
    uint64_t low, high;
    unsigned kind;
} inl_range;
typedef INL_VEC(inl_range) inl_ranges;

/* The first range that ends behind `addr`; count: there is none. */
size_t inl_ranges_behind(const inl_ranges *, uint64_t addr);
/* [low, high) is of the range's kind from now on, whatever it was. Where memory is used up it may be left out. */
void inl_ranges_put(inl_ranges *, inl_range r);
/* Takes [low, high) out of all. */
void inl_ranges_cut(inl_ranges *, uint64_t low, uint64_t high);

void inl_ranges_check(const inl_ranges *); /* under --debug: they are as said above */

#endif
