#include "memtrace_sites.h"

#include <inlay.h>

enum { PER_CHUNK = 4096, CHUNKS = 8192, BUCKETS = 1 << 14 };

/* It travels into a program that is rewritten. */
static struct found {
    uint32_t count;
    uint32_t buckets[BUCKETS]; /* the newest of each hash */
    site *chunks[CHUNKS];
} * found;

bool sites_begin(void) { return (found = inlay_alloc(sizeof *found)) != NULL; }

static site *at(uint32_t number) { return &found->chunks[number / PER_CHUNK][number % PER_CHUNK]; }

const site *site_at(uint32_t number) { return at(number); }

uint32_t sites_count(void) { return __atomic_load_n(&found->count, __ATOMIC_ACQUIRE); }

static bool same(const site *a, const site *b) { return a->pc == b->pc && a->size == b->size && a->kind == b->kind; }

/* Threads read while others add: what a record names is there before the code that makes it. */
static uint32_t add(const site *wanted, uint32_t *bucket)
{
    uint32_t number = found->count + 1;
    site **chunk = &found->chunks[number / PER_CHUNK];
    if (number / PER_CHUNK >= CHUNKS || (!*chunk && !(*chunk = inlay_alloc(PER_CHUNK * sizeof **chunk)))) return 0;
    *at(number) = *wanted;
    at(number)->next = *bucket;
    *bucket = number;
    __atomic_store_n(&found->count, number, __ATOMIC_RELEASE);
    return number;
}

uint32_t site_number(const site *wanted)
{
    uint32_t *bucket = &found->buckets[wanted->pc * 0x9e3779b97f4a7c15u >> 50], number = *bucket;
    while (number && !same(at(number), wanted)) number = at(number)->next;
    return number ? number : add(wanted, bucket);
}
