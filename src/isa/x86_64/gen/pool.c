/* Stores equal things once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gen.h"

static void *grow(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p) {
        perror("gen");
        exit(1);
    }
    return p;
}

static uint32_t hash(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;
    while (n--) h = (h ^ *p++) * 16777619u;
    return h;
}

void *pool_at(const pool *p, size_t i) { return p->data + i * p->size; }

static uint32_t *find(const pool *p, const void *item)
{
    uint32_t i = hash(item, p->size) & (p->slot_count - 1);
    while (p->slots[i] && memcmp(pool_at(p, p->slots[i] - 1), item, p->size)) i = (i + 1) & (p->slot_count - 1);
    return &p->slots[i];
}

static void rehash(pool *p)
{
    p->slot_count = p->slot_count ? p->slot_count * 2 : 1024;
    p->slots = grow(p->slots, p->slot_count * sizeof *p->slots);
    memset(p->slots, 0, p->slot_count * sizeof *p->slots);
    for (size_t i = 0; i < p->count; i++) *find(p, pool_at(p, i)) = i + 1;
}

size_t pool_add(pool *p, const void *item)
{
    if (p->count * 2 >= p->slot_count) rehash(p);
    uint32_t *slot = find(p, item);
    if (!*slot) {
        if (p->count == p->room) {
            p->room = p->room ? p->room * 2 : 256;
            p->data = grow(p->data, p->room * p->size);
        }
        memcpy(p->data + p->count * p->size, item, p->size);
        *slot = ++p->count;
    }
    return *slot - 1;
}

size_t lists_add(lists *l, const void *items, size_t n)
{
    for (size_t i = 0; i + n <= l->count; i++)
        if (!memcmp(l->data + i * l->size, items, n * l->size)) return i;
    if (l->count + n > l->room) {
        l->room = (l->count + n) * 2;
        l->data = grow(l->data, l->room * l->size);
    }
    memcpy(l->data + l->count * l->size, items, n * l->size);
    l->count += n;
    return l->count - n;
}
