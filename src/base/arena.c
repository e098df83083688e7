/* Bump allocation in a list of chunks, newest first.
 *
 *     a->chunk -> [header|used....|free] -> [header|used....] -> NULL
 *
 * The head of the list is the chunk that is being filled. An allocation that would waste most of a
 * fresh chunk gets one of its own, which is linked behind the head so that the head's free room is
 * not lost. Chunks are not cleared when made or reset; each allocation clears what it hands out.
 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, FIRST_CHUNK = 16 << 10, LAST_CHUNK = 1 << 20 };

struct inl_arena_chunk {
    inl_arena_chunk *next;
    size_t size; /* of the bytes */
    _Alignas(ALIGN) unsigned char bytes[];
};

static inl_arena_chunk *chunk_new(size_t size)
{
    if (size > SIZE_MAX - sizeof(inl_arena_chunk)) return NULL;
    inl_arena_chunk *c = malloc(sizeof *c + size);
    if (c) c->size = size;
    return c;
}

static void *alloc_apart(inl_arena *a, size_t bytes)
{
    inl_arena_chunk *c = chunk_new(bytes);
    if (!c) return NULL;
    c->next = a->chunk->next;
    a->chunk->next = c;
    return memset(c->bytes, 0, bytes);
}

static size_t next_chunk_size(const inl_arena *a, size_t bytes)
{
    size_t size = a->chunk ? a->size * 2 : FIRST_CHUNK;
    if (size > LAST_CHUNK) size = LAST_CHUNK;
    return size < bytes ? bytes : size;
}

void *inl_arena_alloc(inl_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (bytes > a->size - a->used) {
        if (a->chunk && bytes > FIRST_CHUNK / 4) return alloc_apart(a, bytes);
        inl_arena_chunk *c = chunk_new(next_chunk_size(a, bytes));
        if (!c) return NULL;
        c->next = a->chunk;
        a->chunk = c;
        a->used = 0;
        a->size = c->size;
    }
    void *p = a->chunk->bytes + a->used;
    a->used += bytes;
    return memset(p, 0, bytes);
}

char *inl_arena_strdup(inl_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = inl_arena_alloc(a, n);
    return copy ? memcpy(copy, s, n) : NULL;
}

static void free_list(inl_arena_chunk *c)
{
    while (c) {
        inl_arena_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void inl_arena_reset(inl_arena *a)
{
    a->used = 0;
    if (!a->chunk) return;
    free_list(a->chunk->next);
    a->chunk->next = NULL;
}

void inl_arena_free(inl_arena *a)
{
    free_list(a->chunk);
    *a = (inl_arena){0};
}
