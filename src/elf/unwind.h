/* The original's unwind entries, written for old and new code (unwind.c, lsda.c). */
#ifndef INL_ELF_UNWIND_H
#define INL_ELF_UNWIND_H

#include "elf/private.h"
#include "image/frames.h"

/* A contiguous run of moved instructions that one original entry describes. */
typedef struct elf_piece {
    uint64_t start, end; /* new addresses */
    uint64_t lsda;       /* its new exception table, 0: none */
    size_t first, last;  /* entries of the plan's map, `last` not included */
    uint32_t fde;
    bool is_old; /* the original code of the entry, of which parts have moved */
} elf_piece;

typedef struct elf_frames {
    elf_writer *w;
    image_frames old;
    size_t *cie_at; /* of the common entries: offsets in the new .eh_frame, SIZE_MAX: not written yet */
    INL_VEC(elf_piece) pieces;
    INL_VEC(uint64_t) old_lsdas; /* new tables for entries, by number, 0: the original's; or none at all */
} elf_frames;

/* lsda.c: appends the exception table of a piece to w->ro, at a multiple of 4. */
inl_status elf_put_lsda(elf_frames *f, elf_piece *piece, inl_error *e);

#endif
