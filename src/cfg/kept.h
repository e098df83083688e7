/* An analysis that is kept from run to run: a finished cfg_program as bytes, and back again.
 *
 *     head     magic, sizes, a sum of all that is behind it
 *     key      text: what the analysis follows from; compared whole
 *     body     counts, then procedures, blocks, edges, tables: numbers in few bytes (base/leb.h), most of them
 *              distances from what is before them
 *
 * The key has a sum of what the analysis starts from (image_sum), and of the source that it is made by: so neither a
 * file's name nor its times have to be believed, and a program that was analysed in one tool need not be in another.
 * What is read is held against the sum, and each number to its bounds: damaged bytes are no analysis. */
#ifndef INL_CFG_KEPT_H
#define INL_CFG_KEPT_H

#include "base/bytes.h"
#include "cfg/program.h"

#define CFG_KEPT_MAGIC "inlaycf1"
enum { CFG_KEPT_KEY = 512 };

typedef struct cfg_kept_head {
    char magic[8];
    uint64_t sum;  /* of the rest of this and all behind it */
    uint64_t size; /* of all */
    uint32_t key_size, procs;
} cfg_kept_head;

/* False: it cannot be kept. */
bool cfg_kept_key(image *, char key[CFG_KEPT_KEY]);
/* False: out of memory. */
bool cfg_kept_write(const cfg_program *, const char *key, inl_bytes *out);
/* NULL: they are not what was written with that key. */
cfg_program *cfg_kept_read(image *, const char *key, const uint8_t *bytes, size_t size);

#endif
