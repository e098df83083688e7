/* Linear probing over a power-of-two array of slots.
 *
 * Invariant: from a key's home slot to the slot that holds it there is no EMPTY slot. So a removal
 * leaves a TOMB, unless the next slot is EMPTY anyway. Slots in use (LIVE and TOMB together) stay
 * below three quarters, so that every probe ends; a rebuild drops the tombs.
 */
#include "base/ahead.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

enum { EMPTY, LIVE, TOMB };
enum { LARGE = 1024 }; /* slots: they will all be touched, here and there */

struct inl_map_slot {
    uint64_t key, value;
    uint64_t state;
};

/* Addresses differ in their low and middle bits; the multiplication spreads them upwards and the
 * shift brings them down (Fibonacci hashing with a fold). */
static uint64_t spread(uint64_t key) { return (key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 32; }

/* Of code, each line of 64 bytes has its 16 slots, one behind the other. Small numbers, of which there may be one
 * behind the other, are no addresses. */
static size_t home(const inl_map *m, uint64_t key)
{
    bool near = m->of_code && key >> 16;
    uint64_t h = near ? (spread(key >> 6) << 4) + (key >> 2 & 15) : spread(key);
    return (size_t)h & (m->capacity - 1);
}

static inl_map_slot *find(const inl_map *m, uint64_t key)
{
    if (!m->capacity) return NULL;
    for (size_t i = home(m, key);; i = (i + 1) & (m->capacity - 1)) {
        inl_map_slot *s = &m->slots[i];
        if (s->state == EMPTY) return NULL;
        if (s->state == LIVE && s->key == key) return s;
    }
}

/* The key must be absent. */
static void insert(inl_map *m, uint64_t key, uint64_t value)
{
    size_t i = home(m, key);
    while (m->slots[i].state == LIVE) i = (i + 1) & (m->capacity - 1);
    if (m->slots[i].state == TOMB) m->tombs--;
    m->slots[i] = (inl_map_slot){key, value, LIVE};
    m->count++;
}

/* Clearing touches them all: so the memory is asked for before. */
static inl_map_slot *empty_slots(size_t capacity)
{
    size_t bytes = capacity * sizeof(inl_map_slot);
    if (capacity < LARGE) return calloc(capacity, sizeof(inl_map_slot));
    inl_map_slot *slots = malloc(bytes);
    if (!slots) return NULL;
    inl_pages_want((uint64_t)(uintptr_t)slots, bytes, true);
    return memset(slots, 0, bytes);
}

static bool rebuild(inl_map *m)
{
    size_t capacity = m->capacity ? m->capacity : 16;
    if (m->count >= capacity / 2) capacity *= 2;
    inl_map fresh = {empty_slots(capacity), 0, 0, capacity, m->of_code};
    if (!fresh.slots) return false;
    for (size_t i = 0; i < m->capacity; i++)
        if (m->slots[i].state == LIVE) insert(&fresh, m->slots[i].key, m->slots[i].value);
    free(m->slots);
    *m = fresh;
    return true;
}

bool inl_map_put(inl_map *m, uint64_t key, uint64_t value)
{
    inl_map_slot *s = find(m, key);
    if (s) {
        s->value = value;
        return true;
    }
    if (m->count + m->tombs + 1 > m->capacity / 4 * 3 && !rebuild(m)) return false;
    insert(m, key, value);
    return true;
}

bool inl_map_get(const inl_map *m, uint64_t key, uint64_t *value)
{
    const inl_map_slot *s = find(m, key);
    if (s && value) *value = s->value;
    return s != NULL;
}

void inl_map_expect(const inl_map *m, uint64_t key)
{
    if (m->capacity) __builtin_prefetch(&m->slots[home(m, key)]);
}

bool inl_map_remove(inl_map *m, uint64_t key)
{
    inl_map_slot *s = find(m, key);
    if (!s) return false;
    size_t next = ((size_t)(s - m->slots) + 1) & (m->capacity - 1);
    bool ends_run = m->slots[next].state == EMPTY;
    s->state = ends_run ? EMPTY : TOMB;
    if (!ends_run) m->tombs++;
    m->count--;
    return true;
}

void inl_map_clear(inl_map *m)
{
    if (m->slots) memset(m->slots, 0, m->capacity * sizeof *m->slots);
    m->count = m->tombs = 0;
}

void inl_map_free(inl_map *m)
{
    free(m->slots);
    *m = (inl_map){.of_code = m->of_code};
}

bool inl_map_next(const inl_map *m, size_t *at, uint64_t *key, uint64_t *value)
{
    while (*at < m->capacity) {
        const inl_map_slot *s = &m->slots[(*at)++];
        if (s->state != LIVE) continue;
        if (key) *key = s->key;
        if (value) *value = s->value;
        return true;
    }
    return false;
}
