#include "tool/mutator_ring.h"

#include <string.h>

static uint64_t place_of(uint64_t at) { return at % RING_BYTES; }

static ring_record *at_place(mutator_ring *r, uint64_t at) { return (ring_record *)(r->bytes + place_of(at)); }

/* What is left in front of the end is filled, where the record does not fit in there. */
static uint64_t filler_before(uint64_t head, uint64_t size)
{
    uint64_t left = RING_BYTES - place_of(head);
    return left < size ? left : 0;
}

/* False: no room. */
static bool reserve(mutator_ring *r, uint64_t size, uint64_t *at, uint64_t *filler)
{
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
    do {
        uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
        *filler = filler_before(head, size);
        if (head + *filler + size - tail > RING_BYTES) return false;
        *at = head;
    } while (
        !__atomic_compare_exchange_n(&r->head, &head, head + *filler + size, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return true;
}

/* A filler may be shorter than a record: its first 8 bytes tell all of it. */
static void fill(ring_record *f, uint64_t size)
{
    __atomic_store_n((uint64_t *)f, size | (uint64_t)RING_FILLER << 32, __ATOMIC_RELEASE);
}

bool ring_put(mutator_ring *r, const ring_record *what, const void *data)
{
    uint64_t size = (sizeof *what + what->bytes + 7) & ~7ull, at, filler;
    if (size > RING_BYTES / 4 || !reserve(r, size, &at, &filler)) {
        __atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
        return false;
    }
    if (filler) fill(at_place(r, at), filler);
    ring_record *to = at_place(r, at + filler), copy = *what;
    copy.size = (uint32_t)size;
    copy.ready = 0;
    memcpy(to, &copy, sizeof copy);
    if (what->bytes) memcpy(to + 1, data, what->bytes);
    __atomic_store_n(&to->ready, 1, __ATOMIC_RELEASE);
    return true;
}

static void give_back(mutator_ring *r, uint64_t tail, uint64_t size)
{
    memset(r->bytes + place_of(tail), 0, size);
    __atomic_store_n(&r->tail, tail + size, __ATOMIC_RELEASE);
}

const ring_record *ring_first(mutator_ring *r)
{
    for (;;) {
        uint64_t tail = r->tail;
        if (tail == __atomic_load_n(&r->head, __ATOMIC_ACQUIRE)) return NULL;
        ring_record *f = at_place(r, tail);
        uint32_t ready = __atomic_load_n(&f->ready, __ATOMIC_ACQUIRE);
        uint64_t behind = place_of(tail) + f->size;
        if (!ready || !f->size || f->size & 7 || behind > RING_BYTES) return NULL;
        if (ready != RING_FILLER) return sizeof *f + f->bytes <= f->size ? f : NULL;
        give_back(r, tail, f->size);
    }
}

void ring_drop(mutator_ring *r)
{
    const ring_record *f = ring_first(r);
    if (f) give_back(r, r->tail, f->size);
}
