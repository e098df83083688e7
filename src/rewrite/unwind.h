/* Unwind entries, read from the original and written for old and new code (unwind*.c, lsda.c). */
#ifndef INL_REWRITE_UNWIND_H
#define INL_REWRITE_UNWIND_H

#include "base/map.h"
#include "rewrite/elf.h"

typedef struct rewrite_cie {
    uint64_t addr; /* where it stands in the original */
    uint64_t code_align, return_reg;
    int64_t data_align;
    uint64_t personality; /* address of it, or of the pointer to it; 0: none */
    uint8_t personality_encoding, lsda_encoding, encoding;
    bool has_augmentation, signal;
    const uint8_t *program;
    size_t program_size;
    size_t out; /* offset in the new .eh_frame, SIZE_MAX: not written yet */
} rewrite_cie;

typedef struct rewrite_fde {
    uint64_t addr, size, lsda; /* lsda 0: none */
    uint64_t record;           /* where it stands in the original */
    const char *fault;         /* why it cannot be written anew: static text, or NULL */
    uint32_t cie;
    const uint8_t *program; /* call frame instructions */
    size_t program_size;
} rewrite_fde;

typedef struct rewrite_row { /* call frame instructions that hold from `addr` on */
    uint64_t addr;
    const uint8_t *bytes;
    size_t size;
} rewrite_row;
typedef INL_VEC(rewrite_row) rewrite_rows;

/* A contiguous run of moved instructions that one original entry describes. */
typedef struct rewrite_piece {
    uint64_t start, end; /* new addresses */
    uint64_t lsda;       /* its new exception table, 0: none */
    size_t first, last;  /* entries of the plan's map, `last` not included */
    uint32_t fde;
    bool is_old; /* the original code of the entry, of which parts have moved */
} rewrite_piece;

typedef struct rewrite_frames {
    rewrite_writer *w;
    INL_VEC(rewrite_cie) cies;
    inl_map cie_at;            /* address -> index */
    INL_VEC(rewrite_fde) fdes; /* ascending by address, those with faults included */
    INL_VEC(rewrite_piece) pieces;
    INL_VEC(uint64_t) old_lsdas; /* new tables for entries, by number, 0: the original's; or none at all */
    rewrite_rows rows;           /* of the entry at hand */
} rewrite_frames;

/* unwind_read.c: fills cies and fdes (of the writer, only the image and the ELF header are looked at); the rows of
 * one entry. */
inl_status rewrite_read_frames(rewrite_frames *f, inl_error *e);
void rewrite_free_frames(rewrite_frames *f);
inl_status rewrite_read_rows(rewrite_frames *f, const rewrite_fde *fde, inl_error *e);

/* lsda.c: appends the exception table of a piece to w->ro, at a multiple of 4. */
inl_status rewrite_put_lsda(rewrite_frames *f, rewrite_piece *piece, inl_error *e);
/* Why that could not be done for an entry that has a table; NULL: it could. */
const char *rewrite_lsda_fault(const rewrite_frames *f, const rewrite_fde *fde);

/* <isa>/stubs.c: a row that tells by the program counter where in an import stub control is, which holds for the
 * original place only; what it says there. */
bool rewrite_is_stub_row(const rewrite_row *row);
void rewrite_put_stub_row(rewrite_bytes *b, const rewrite_row *row, uint64_t old);

#endif
