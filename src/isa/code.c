#include "isa/code.h"

#include <string.h>

/* Nearly always an instruction: two copies that may overlap, which take less time than a call of the C library's. */
static inline void copy_few(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n > 2 * sizeof(uint64_t)) memcpy(to, from, n);
    else if (n >= sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
        memcpy(to + n - sizeof(uint64_t), from + n - sizeof(uint64_t), sizeof(uint64_t));
    } else if (n >= sizeof(uint32_t)) {
        memcpy(to, from, sizeof(uint32_t));
        memcpy(to + n - sizeof(uint32_t), from + n - sizeof(uint32_t), sizeof(uint32_t));
    } else if (n) {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

void isa_put(isa_code *c, const void *bytes, size_t n)
{
    if (c->full || n > c->size - c->at) {
        c->full = true;
        return;
    }
    copy_few(c->write + c->at, bytes, n);
    c->at += n;
}

void isa_keep_fixup(isa_code *c, isa_fixup f)
{
    isa_fixups *all = c->fixups;
    if (all->count == all->room) c->full = true;
    else all->items[all->count++] = f;
}
