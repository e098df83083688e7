/* Numbers of a file read one after the other, where asking after each whether it was there would bury what is read:
 * a reader remembers that more was asked for than there is, and the caller looks once, at the end. */
#ifndef INL_IMAGE_READER_H
#define INL_IMAGE_READER_H

#include "image/file.h"

typedef struct image_reader {
    image_cursor c;
    bool bad; /* every answer since then is 0 */
} image_reader;

/* From an address of the image on, to its segment's end; bad when there is nothing. */
image_reader image_reader_at(const image *im, uint64_t addr);
/* Good, and not at its end. */
bool image_reader_more(const image_reader *r);
size_t image_reader_left(const image_reader *r); /* bytes */
uint64_t image_next(image_reader *r, size_t size);
uint64_t image_next_uleb(image_reader *r);
int64_t image_next_sleb(image_reader *r);
void image_next_skip(image_reader *r, uint64_t size);
/* A number in the format of an encoding (IMAGE_PE_*), whatever it is relative to. */
uint64_t image_next_format(image_reader *r, uint8_t encoding);
/* A pointer: absolute or relative to its own place; of an indirect one, where the pointer stands. A
 * zero stands for no pointer. */
uint64_t image_next_pointer(image_reader *r, uint8_t encoding);
/* Bytes of a number in that format; 0 when it varies or is unknown. */
size_t image_format_size(uint8_t encoding);

#endif
