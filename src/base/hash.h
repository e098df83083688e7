/* A hash of bytes (FNV-1a), for tables: not against those who choose what is hashed. */
#ifndef INL_BASE_HASH_H
#define INL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INL_HASH_BEGIN 0xcbf29ce484222325ull

/* Goes on with a hash that began with INL_HASH_BEGIN. */
static inline uint64_t inl_hash(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}

static inline uint64_t inl_hash_text(uint64_t hash, const char *text) { return inl_hash(hash, text, strlen(text)); }

#endif
