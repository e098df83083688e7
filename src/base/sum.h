/* A sum of bytes that tells whether they are the same: of files that Inlay has kept, and of what they were made from.
 * Not for those who want to be deceived. */
#ifndef INL_BASE_SUM_H
#define INL_BASE_SUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t inl_sum(const void *bytes, size_t size, uint64_t seed);

#endif
