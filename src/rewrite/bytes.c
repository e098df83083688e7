#include "rewrite/bytes.h"

#include <stdlib.h>
#include <string.h>

void rewrite_bytes_free(rewrite_bytes *b)
{
    free(b->data);
    b->data = NULL;
    b->size = b->room = 0;
}

size_t rewrite_reserve(rewrite_bytes *b, size_t size)
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

void rewrite_put(rewrite_bytes *b, const void *bytes, size_t size)
{
    size_t at = rewrite_reserve(b, size);
    if (!b->failed && size) memcpy(b->data + at, bytes, size);
}

void rewrite_put_number(rewrite_bytes *b, uint64_t value, size_t size) { rewrite_put(b, &value, size); }

void rewrite_put_uleb(rewrite_bytes *b, uint64_t value)
{
    do {
        uint8_t byte = value & 127;
        value >>= 7;
        if (value) byte |= 128;
        rewrite_put(b, &byte, 1);
    } while (value);
}

void rewrite_put_sleb(rewrite_bytes *b, int64_t value)
{
    for (bool more = true; more;) {
        uint8_t byte = value & 127;
        value >>= 7;
        more = !(byte & 64 ? value == -1 : value == 0);
        if (more) byte |= 128;
        rewrite_put(b, &byte, 1);
    }
}

void rewrite_align(rewrite_bytes *b, uint64_t to) { rewrite_reserve(b, (size_t)(-rewrite_here(b) & (to - 1))); }

void rewrite_set(rewrite_bytes *b, size_t at, const void *bytes, size_t size)
{
    if (!b->failed && at <= b->size && size <= b->size - at) memcpy(b->data + at, bytes, size);
}

void rewrite_put_relative(rewrite_bytes *b, uint64_t target)
{
    int64_t distance = (int64_t)(target - rewrite_here(b));
    if (distance != (int32_t)distance) b->far = true;
    rewrite_put_number(b, (uint64_t)distance, 4);
}

bool rewrite_more(const rewrite_cursor *c) { return !c->bad && c->at < c->end; }

void rewrite_skip(rewrite_cursor *c, uint64_t size)
{
    if (c->bad || size > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return;
    }
    c->at += size;
    c->addr += size;
}

uint64_t rewrite_take(rewrite_cursor *c, size_t size)
{
    const uint8_t *from = c->at;
    uint64_t value = 0;
    rewrite_skip(c, size);
    if (!c->bad) memcpy(&value, from, size);
    return value;
}

static uint64_t take_leb(rewrite_cursor *c, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)rewrite_take(c, 1);
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte & 128);
    if (is_signed && shift < 64 && byte & 64) value |= ~0ull << shift;
    return c->bad ? 0 : value;
}

uint64_t rewrite_take_uleb(rewrite_cursor *c) { return take_leb(c, false); }
int64_t rewrite_take_sleb(rewrite_cursor *c) { return (int64_t)take_leb(c, true); }

size_t rewrite_format_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c: return 8;
    case 0x02:
    case 0x0a: return 2;
    case 0x03:
    case 0x0b: return 4;
    default: return 0;
    }
}

uint64_t rewrite_take_format(rewrite_cursor *c, uint8_t encoding)
{
    size_t size = rewrite_format_size(encoding);
    if ((encoding & 0x0f) == 0x01) return rewrite_take_uleb(c);
    if ((encoding & 0x0f) == 0x09) return (uint64_t)rewrite_take_sleb(c);
    if (size == 0) c->bad = true;
    uint64_t value = rewrite_take(c, size);
    if (encoding & 0x08 && size < 8 && size > 0) {
        uint64_t sign = 1ull << (8 * size - 1);
        value = (value ^ sign) - sign;
    }
    return value;
}

uint64_t rewrite_take_pointer(rewrite_cursor *c, uint8_t encoding)
{
    uint64_t here = c->addr;
    if (encoding == IMAGE_PE_OMIT) return 0;
    uint64_t value = rewrite_take_format(c, encoding);
    uint8_t base = encoding & IMAGE_PE_RELATIVE;
    if (value == 0) return 0;
    if (base == IMAGE_PE_PCREL) return value + here;
    if (base != 0) c->bad = true;
    return value;
}
