/* What the files of deltas share: delta.c cuts a plan, applied.c knows what of it is in. */
#ifndef INL_MOVE_DELTA_H
#define INL_MOVE_DELTA_H

#include "move/isa.h"

typedef INL_VEC(move_patch) move_patches;

/* The plan's patches by procedure, and by address within. False: no memory. */
bool move_patches_sort(const move_plan *, move_patches *out);
/* Of a procedure that has moved; its text with all in that the plan has, and no links. */
move_delta move_delta_of(const move_plan *, uint32_t proc, const move_patches *sorted);

#endif
