/* Bytes of the process's old code: what is there when nothing of the mutator's is, and whose jump lies over each.
 *
 * Patches come by the ten thousand, mostly in the order of their addresses: what is read of the process is read in
 * pieces that are kept while one change is prepared (nobody else writes code meanwhile), and owners are kept for
 * granules of bytes. */
#include "tool/mutator.h"
#include "base/page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { GRANULE = 16 };

typedef struct granule {
    uint32_t owner[GRANULE];
    uint16_t owned, restored; /* a bit for each byte */
    uint64_t change;          /* by which some are restored */
    uint8_t bytes[GRANULE];   /* what these become */
} granule;

static granule *granule_at(const mutatee *m, uint64_t at)
{
    uint64_t found;
    return inl_map_get(&m->granules, at / GRANULE, &found) ? (granule *)(uintptr_t)found : NULL;
}

static granule *granule_made(mutatee *m, uint64_t at)
{
    granule *g = granule_at(m, at);
    if (g) return g;
    g = inl_arena_alloc(&m->granule_memory, sizeof *g);
    return g && inl_map_put(&m->granules, at / GRANULE, (uint64_t)(uintptr_t)g) ? g : NULL;
}

/* --- what is read --- */

static bool is_seen(const mutator_seen *seen, uint64_t from, size_t size)
{
    return from >= seen->at && from + size <= seen->at + seen->size;
}

/* As much from its page on as there is, up to a whole piece. */
static void read_piece(mutatee *m, uint64_t from)
{
    mutator_seen *seen = &m->seen;
    seen->at = inl_page_down(from);
    struct iovec here = {seen->bytes, sizeof seen->bytes}, there = {(void *)seen->at, sizeof seen->bytes};
    ssize_t n = process_vm_readv(m->live.pid, &here, 1, &there, 1, 0);
    seen->size = n > 0 ? (size_t)n : 0;
}

bool mutator_original(mutatee *m, uint64_t from, uint8_t *to, size_t size)
{
    const mutator_seen *seen = &m->seen;
    if (!is_seen(seen, from, size)) read_piece(m, from);
    if (!is_seen(seen, from, size)) return false;
    memcpy(to, seen->bytes + (from - seen->at), size);
    for (uint64_t a = from; m->restored && a < from + size; a++) {
        const granule *g = granule_at(m, a);
        if (!g || g->change != m->change_number) a |= GRANULE - 1;
        else if (g->restored >> a % GRANULE & 1) to[a - from] = g->bytes[a % GRANULE];
    }
    return true;
}

/* --- owners --- */

bool mutator_own(mutatee *m, uint64_t at, size_t size, uint32_t owner)
{
    granule *g = NULL;
    for (uint64_t a = at; a < at + size; a++) {
        if (!g || a % GRANULE == 0) g = granule_made(m, a);
        if (!g) return false;
        g->owner[a % GRANULE] = owner;
        g->owned |= (uint16_t)(1u << a % GRANULE);
    }
    return true;
}

void mutator_disown(mutatee *m, uint64_t at, const uint8_t *bytes, size_t size)
{
    granule *g = NULL;
    m->restored = true;
    for (uint64_t a = at; a < at + size; a++) {
        uint16_t bit = (uint16_t)(1u << a % GRANULE);
        if (!g || a % GRANULE == 0) g = granule_at(m, a);
        if (!g) return; /* owned by nobody */
        if (g->change != m->change_number) g->restored = 0;
        g->change = m->change_number;
        g->owned &= (uint16_t)~bit;
        g->restored |= bit;
        g->bytes[a % GRANULE] = bytes[a - at];
    }
}

bool mutator_next_owner(const mutatee *m, uint64_t *at, uint64_t end, uint32_t *owner)
{
    for (uint64_t a = *at; a < end; a++) {
        const granule *g = granule_at(m, a);
        if (!g || !g->owned) {
            a |= GRANULE - 1;
            continue;
        }
        if (!(g->owned >> a % GRANULE & 1)) continue;
        *owner = g->owner[a % GRANULE];
        *at = a + 1;
        return true;
    }
    return false;
}

void mutator_bytes_begin(mutatee *m)
{
    m->change_number++;
    m->restored = false;
    m->seen.size = 0;
}

void mutator_bytes_free(mutatee *m)
{
    inl_map_free(&m->granules);
    inl_arena_free(&m->granule_memory);
}
