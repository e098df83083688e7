/* A growing buffer that knows the address of its first byte. It remembers a failure instead of answering each call
 * with one: the caller looks once, at the end. */
#ifndef INL_BASE_BYTES_H
#define INL_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct inl_bytes {
    uint8_t *data;
    size_t size, room;
    uint64_t addr; /* of data[0] */
    bool failed;   /* out of memory */
    bool far;      /* a number does not fit its field */
} inl_bytes;

void inl_bytes_free(inl_bytes *b);
void inl_bytes_put(inl_bytes *b, const void *bytes, size_t size);
/* Zeroed room; its offset. */
size_t inl_bytes_reserve(inl_bytes *b, size_t size);
void inl_bytes_number(inl_bytes *b, uint64_t value, size_t size); /* little endian */
void inl_bytes_uleb(inl_bytes *b, uint64_t value);
void inl_bytes_sleb(inl_bytes *b, int64_t value);
/* Zeroes up to a multiple of `to` of the address. */
void inl_bytes_align(inl_bytes *b, uint64_t to);
void inl_bytes_set(inl_bytes *b, size_t at, const void *bytes, size_t size);
/* Four bytes: the distance from their own place to `target`. */
void inl_bytes_relative(inl_bytes *b, uint64_t target);
/* Address of the next byte. */
static inline uint64_t inl_bytes_here(const inl_bytes *b) { return b->addr + b->size; }

#endif
