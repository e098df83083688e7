/* Numbers in few bytes: seven bits each, low ones first, the eighth set where more follow (ULEB128). Numbers with a
 * sign are zigzagged before: 0, -1, 1, -2 become 0, 1, 2, 3.
 *
 * For what Inlay itself has written; a file's numbers are read with bounds (image_take_leb). */
#ifndef INL_BASE_LEB_H
#define INL_BASE_LEB_H

#include <stdint.h>

static inline uint64_t inl_zigzag(int64_t v) { return (uint64_t)v << 1 ^ (uint64_t)(v >> 63); }
static inline int64_t inl_unzigzag(uint64_t v) { return (int64_t)(v >> 1) ^ -(int64_t)(v & 1); }

/* Returns the place behind the number. */
static inline uint8_t *inl_leb_put(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static inline uint64_t inl_leb_take(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
}

static inline int64_t inl_leb_take_signed(const uint8_t **p) { return inl_unzigzag(inl_leb_take(p)); }

#endif
