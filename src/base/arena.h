/* Bump allocation for things that die together (one translation, one image).
 *
 *     inl_arena a = {0};
 *     node *n = inl_arena_alloc(&a, sizeof *n);   // zeroed, 16-byte aligned; NULL when out of memory
 *     inl_arena_reset(&a);                        // everything gone, newest chunk kept for reuse
 *     inl_arena_free(&a);
 */
#ifndef INL_BASE_ARENA_H
#define INL_BASE_ARENA_H

#include <stddef.h>

typedef struct inl_arena_chunk inl_arena_chunk;
typedef struct inl_arena {
    inl_arena_chunk *chunk;
    size_t used, size; /* within the current chunk */
} inl_arena;

void *inl_arena_alloc(inl_arena *a, size_t bytes);
char *inl_arena_strdup(inl_arena *a, const char *s);
void inl_arena_reset(inl_arena *a);
void inl_arena_free(inl_arena *a);

#endif
