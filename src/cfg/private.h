/* What a finished cfg_program keeps for itself: a bit for each byte of text that begins a block, and how
 * many blocks begin before each word of bits. Blocks ascend by address, so that is the block's index. */
#ifndef INL_CFG_PRIVATE_H
#define INL_CFG_PRIVATE_H

#include "cfg/work.h"

typedef struct cfg_text_span {
    uint64_t addr, end;
    size_t base; /* bit of its first byte */
} cfg_text_span;

typedef struct cfg_private {
    cfg_text_span *spans;
    size_t span_count, words;
    uint64_t *bits;
    uint64_t *skips; /* sorted: addresses that stand for the block one byte before */
    size_t skip_count;
    uint32_t *ranks;
} cfg_private;

/* build.c: room for so many bytes of text; a block begins there (false: in no span); all have been noted. */
bool cfg_private_open(cfg_private *, size_t bytes);
bool cfg_private_note(cfg_private *, uint64_t addr);
void cfg_private_rank(cfg_private *);

#endif
