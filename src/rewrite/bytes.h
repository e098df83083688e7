/* Bytes: a growing buffer that knows its own link-time address, and a cursor over bytes that are not
 * to be trusted. Both remember a failure instead of answering each call with one: the caller looks
 * once, at the end. The encodings are those of DWARF and of .eh_frame.
 */
#ifndef INL_REWRITE_BYTES_H
#define INL_REWRITE_BYTES_H

#include "image/image.h" /* IMAGE_PE_*: encodings of pointers */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rewrite_bytes {
    uint8_t *data;
    size_t size, room;
    uint64_t addr; /* of data[0] */
    bool failed;   /* out of memory */
    bool far;      /* a number does not fit its field */
} rewrite_bytes;

void rewrite_bytes_free(rewrite_bytes *b);
void rewrite_put(rewrite_bytes *b, const void *bytes, size_t size);
/* Zeroed room; its offset. */
size_t rewrite_reserve(rewrite_bytes *b, size_t size);
void rewrite_put_number(rewrite_bytes *b, uint64_t value, size_t size); /* little endian */
void rewrite_put_uleb(rewrite_bytes *b, uint64_t value);
void rewrite_put_sleb(rewrite_bytes *b, int64_t value);
/* Zeroes up to a multiple of `to` of the address. */
void rewrite_align(rewrite_bytes *b, uint64_t to);
void rewrite_set(rewrite_bytes *b, size_t at, const void *bytes, size_t size);
/* Four bytes: the distance from their own place to `target`. */
void rewrite_put_relative(rewrite_bytes *b, uint64_t target);
/* Address of the next byte. */
static inline uint64_t rewrite_here(const rewrite_bytes *b) { return b->addr + b->size; }

typedef struct rewrite_cursor {
    const uint8_t *at, *end;
    uint64_t addr; /* of `at` */
    bool bad;      /* more was asked for than there is; every answer since then is 0 */
} rewrite_cursor;

bool rewrite_more(const rewrite_cursor *c);
uint64_t rewrite_take(rewrite_cursor *c, size_t size);
uint64_t rewrite_take_uleb(rewrite_cursor *c);
int64_t rewrite_take_sleb(rewrite_cursor *c);
void rewrite_skip(rewrite_cursor *c, uint64_t size);
/* A number in the format of an encoding, whatever it is relative to. */
uint64_t rewrite_take_format(rewrite_cursor *c, uint8_t encoding);
/* Bytes of a number in that format; 0 when it varies or is unknown. */
size_t rewrite_format_size(uint8_t encoding);
/* A pointer: absolute or relative to its own place; of an indirect one, where the pointer stands. A
 * zero stands for no pointer. */
uint64_t rewrite_take_pointer(rewrite_cursor *c, uint8_t encoding);

#endif
