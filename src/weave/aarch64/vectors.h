/* Offsets in the frame that vectors.S uses, checked in vectors.c; what chooses is declared for C. */
#ifndef INL_WEAVE_AARCH64_VECTORS_H
#define INL_WEAVE_AARCH64_VECTORS_H

#define OFF_VECTOR_AREA 0x208
/* The area: q0 to q31, status and control; behind them, where vectors are longer, all of them, predicates, and the
 * predicate of first faults. */
#define VECTOR_STATUS   512
#define VECTOR_LONG     576

#ifndef __ASSEMBLER__
#include "weave/aarch64/frame.h"

enum { WEAVE_VECTOR_ROOM = 12288 }; /* of the longest vectors that there can be */

/* The frame's way of saving the vector state, on the processor that this runs on; its area is there already. */
void weave_vectors_choose(weave_frame *);

void weave_save_neon(void);
void weave_load_neon(void);
void weave_save_sve(void);
void weave_load_sve(void);
#endif

#endif
