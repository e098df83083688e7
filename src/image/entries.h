/* The records of .eh_frame and the search table over them (.eh_frame_hdr), wherever their bytes lie: in a file, in this
 * process's images, in the tool's own. Takes no memory and no lock; handlers of signals ask too.
 *
 *     length  id      body                     id 0: a common entry; else an entry for a range of code, whose
 *     4       4       length - 4               common entry stands at (address of id) - id
 *
 * Bytes are handed over as a cursor that begins at the record and ends where they end, and whose address is the
 * record's: link-time in a file, real in a process.
 */
#ifndef INL_IMAGE_ENTRIES_H
#define INL_IMAGE_ENTRIES_H

#include "image/file.h"

typedef struct image_record {
    image_cursor body; /* behind the id, as far as there are bytes */
    uint64_t common;   /* address of its common entry */
    uint64_t next;     /* address of what follows */
    bool is_common;
    bool whole; /* the bytes go to its end */
} image_record;
/* False: there is none, which a length of 0 says too. */
bool image_record_at(image_cursor from, image_record *out);

typedef struct image_cie { /* a common entry */
    uint64_t addr;         /* where it stands */
    uint64_t code_align, return_reg;
    int64_t data_align;
    uint64_t personality; /* address of it, or of the pointer to it; 0: none, or not to be told */
    uint8_t personality_encoding, lsda_encoding, encoding;
    bool has_augmentation, signal;
    bool odd; /* says what image_frames does not write anew */
    image_cursor program;
} image_cie;
/* False: there is none, or it is not understood. */
bool image_cie_at(image_cursor from, image_cie *out);

typedef struct image_range_entry { /* of a range of code */
    uint64_t addr, size, lsda;     /* lsda 0: none */
    bool odd;                      /* there is one, and where it is cannot be told */
    image_cursor program;
} image_range_entry;
/* `data_base`: what data-relative pointers count from, the search table's address. */
bool image_entry_read(const image_record *, const image_cie *, uint64_t data_base, image_range_entry *out);

typedef struct image_search {
    uint64_t header, frame, count; /* addresses of this table and of .eh_frame; rows */
    image_cursor table;
    uint8_t encoding;
} image_search;
bool image_search_at(image_cursor from, image_search *out);
/* The next row; false behind the last. */
bool image_search_next(image_search *, uint64_t *addr, uint64_t *record);
/* The last row that begins at or before an address. `behind`: where the next one begins, 0: none does. */
bool image_search_find(const image_search *, uint64_t addr, uint64_t *record, uint64_t *begin, uint64_t *behind);

#endif
