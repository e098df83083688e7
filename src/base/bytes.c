#include "base/bytes.h"

#include "base/leb.h"

#include <stdlib.h>
#include <string.h>

void inl_bytes_free(inl_bytes *b)
{
    free(b->data);
    b->data = NULL;
    b->size = b->room = 0;
}

size_t inl_bytes_reserve(inl_bytes *b, size_t size)
{
    size_t at = b->size;
    if (b->failed) return at;
    if (size > b->room - b->size) {
        size_t room = b->room ? b->room : 4096;
        while (room - b->size < size && room < SIZE_MAX / 4) room *= 2;
        uint8_t *data = room - b->size < size ? NULL : realloc(b->data, room);
        if (!data) {
            b->failed = true;
            return at;
        }
        b->data = data;
        b->room = room;
    }
    if (size) memset(b->data + at, 0, size);
    b->size += size;
    return at;
}

void inl_bytes_put(inl_bytes *b, const void *bytes, size_t size)
{
    size_t at = inl_bytes_reserve(b, size);
    if (!b->failed && size) memcpy(b->data + at, bytes, size);
}

void inl_bytes_number(inl_bytes *b, uint64_t value, size_t size) { inl_bytes_put(b, &value, size); }

void inl_bytes_uleb(inl_bytes *b, uint64_t value)
{
    uint8_t number[10];
    inl_bytes_put(b, number, (size_t)(inl_leb_put(number, value) - number));
}

void inl_bytes_sleb(inl_bytes *b, int64_t value)
{
    for (bool more = true; more;) {
        uint8_t byte = value & 127;
        value >>= 7;
        more = !(byte & 64 ? value == -1 : value == 0);
        if (more) byte |= 128;
        inl_bytes_put(b, &byte, 1);
    }
}

void inl_bytes_align(inl_bytes *b, uint64_t to) { inl_bytes_reserve(b, (size_t)(-inl_bytes_here(b) & (to - 1))); }

void inl_bytes_set(inl_bytes *b, size_t at, const void *bytes, size_t size)
{
    if (!b->failed && at <= b->size && size <= b->size - at) memcpy(b->data + at, bytes, size);
}

void inl_bytes_relative(inl_bytes *b, uint64_t target)
{
    int64_t distance = (int64_t)(target - inl_bytes_here(b));
    if (distance != (int32_t)distance) b->far = true;
    inl_bytes_number(b, (uint64_t)distance, 4);
}
