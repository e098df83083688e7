#include "base/vec.h"

#include <stdint.h>

bool inl_vec_reserve_(void **items, size_t *capacity, size_t wanted, size_t item_size)
{
    if (wanted <= *capacity) return true;
    if (wanted > SIZE_MAX / 2 / item_size) return false;
    size_t grown = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    if (grown < wanted || grown > SIZE_MAX / 2 / item_size) grown = wanted;
    void *p = realloc(*items, grown * item_size);
    if (!p) return false;
    *items = p;
    *capacity = grown;
    return true;
}
