/* A hash map from uint64_t keys to uint64_t values (open addressing, linear probing).
 * Keys may be any value. Zero-initialised is empty. Not thread-safe. */
#ifndef INL_BASE_MAP_H
#define INL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct inl_map_slot inl_map_slot;
typedef struct inl_map {
    inl_map_slot *slots;
    size_t count, tombs, capacity; /* capacity is a power of two or 0 */
    bool
        of_code; /* set while it is empty: keys are addresses of code, most of them, and neighbours share cache lines */
} inl_map;

bool inl_map_put(inl_map *m, uint64_t key, uint64_t value); /* false: out of memory */
bool inl_map_get(const inl_map *m, uint64_t key, uint64_t *value);
void inl_map_expect(const inl_map *m, uint64_t key); /* it will be asked for soon */
bool inl_map_remove(inl_map *m, uint64_t key);
void inl_map_clear(inl_map *m);
void inl_map_free(inl_map *m);
/* Iterates: start with *at = 0; false at the end. The map must not change meanwhile. */
bool inl_map_next(const inl_map *m, size_t *at, uint64_t *key, uint64_t *value);

#endif
