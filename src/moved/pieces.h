/* Moved code that came later than the tool, a piece at a time: what a mutator (src/tool/mutator.h) has put into a
 * process since. It writes the table while all threads stand still; who reads it takes no lock.
 *
 * A piece is a plan of some procedures of one image. A procedure may be in several, as it was changed several times; it
 * is in force in one at most, or in none. Threads leave the others' text by themselves. */
#ifndef INL_MOVED_PIECES_H
#define INL_MOVED_PIECES_H

#include "moved/private.h"

#include "move/live.h"

typedef struct moved_piece {
    moved_image image; /* low = high = 0: it is no image of its own; text_size 0: the place is free */
    uint64_t unwind;   /* as in move_live_image */
    run_debug_file shown;
    bool is_shown;      /* told to debuggers */
    const uint8_t *in;  /* by block of the map: is its procedure in force here? */
    uint64_t low, high; /* what is mapped for it */
    uint64_t comes;     /* not 0: that is mapped, and nothing else of it is there yet */
    uint64_t table_count;
    const move_told_table *tables; /* its copies of jump tables, ascending */
    uint64_t patch_count;
    const move_told_patch *patches; /* its jumps over old code, ascending; what is in force of them is there */
} moved_piece;

/* In the tool's own image, so that the mutator, which is the same file at the same place, knows where they are. */
typedef struct moved_pieces {
    const moved_piece *all;
    uint64_t count;
    move_live *asked; /* for moved_pieces_places */
} moved_pieces;
extern moved_pieces moved_pieces_now;

bool moved_pieces_have(uint64_t at);            /* in what is mapped for one */
const moved_piece *moved_piece_at(uint64_t pc); /* whose text it is in, or NULL */
/* Where an old place is in the piece in which it is in force; 0: in none. */
uint64_t moved_piece_to(uint64_t pc);
/* For live_call_tool: the threads of moved_pieces_now.asked are told where to go on: those that stand in old code of a
 * procedure that is in force in a piece. Answer: their pc, and their block; 0: they go on where they are. */
void moved_pieces_places(void);
/* Likewise: debuggers are told of those that are in the table, and of no others (shown.c). */
void moved_pieces_shown(void);

#endif
