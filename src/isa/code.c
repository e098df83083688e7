#include "isa/code.h"

#include <string.h>

void isa_put(isa_code *c, const void *bytes, size_t n)
{
    if (c->full || n > c->size - c->at) {
        c->full = true;
        return;
    }
    memcpy(c->write + c->at, bytes, n);
    c->at += n;
}

void isa_keep_fixup(isa_code *c, isa_fixup f)
{
    isa_fixups *all = c->fixups;
    if (all->count == all->room) c->full = true;
    else all->items[all->count++] = f;
}
