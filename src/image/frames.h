/* The unwind entries of an image, read so far that they can be written anew at another place, with other pointer
 * encodings, for other addresses: see frames.c. And its exception tables likewise. */
#ifndef INL_IMAGE_FRAMES_H
#define INL_IMAGE_FRAMES_H

#include "base/map.h"
#include "base/vec.h"
#include "image/entries.h"

typedef struct image_fde {
    uint64_t addr, size, lsda; /* lsda 0: none */
    uint64_t record;           /* where it stands */
    const char *fault;         /* why it cannot be written anew: static text, or NULL */
    uint32_t cie;
    image_cursor program; /* call frame instructions */
} image_fde;

typedef struct image_row { /* call frame instructions that hold from `addr` on */
    uint64_t addr;
    const uint8_t *bytes;
    size_t size;
} image_row;
typedef INL_VEC(image_row) image_rows;

typedef struct image_frames {
    image *im;
    INL_VEC(image_cie) cies;
    inl_map cie_at;          /* address -> index */
    INL_VEC(image_fde) fdes; /* ascending by address, those with faults included */
    image_rows rows;         /* of the entry at hand */
} image_frames;

/* All of an image's; false: no memory. */
bool image_frames_read(image *, image_frames *out);
void image_frames_free(image_frames *);
/* The rows of one entry. */
inl_status image_frames_rows(image_frames *, const image_fde *, inl_error *);

/* An exception table, with how much there is of what its call sites refer to. */
typedef struct image_except {
    image_lsda lsda;
    size_t type_count, list_size, action_size; /* list: of types, for exception specifications */
} image_except;
/* False: it is not understood. `out` is zeroed before; image_except_free in either case. */
bool image_except_read(image *, const image_fde *, image_except *out);
void image_except_free(image_except *);
/* Type number n, 1 is the first; 0: any. */
bool image_except_type(image *, const image_except *, size_t n, uint64_t *type);
/* Why the table of an entry that has one could not be written anew; NULL: it could. */
const char *image_except_fault(image *, const image_fde *);

#endif
