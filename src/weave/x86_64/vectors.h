/* Offsets in the frame that vectors.S uses, checked in vectors.c; what chooses and measures is declared for C. */
#ifndef INL_WEAVE_X86_64_VECTORS_H
#define INL_WEAVE_X86_64_VECTORS_H

#define OFF_APP_TLS    0x160
#define OFF_TOOL_TLS   0x168
#define OFF_XSAVE_AREA 0x190
#define OFF_XSAVE_MASK 0x198
#define OFF_BASE_IN    0x5c0

#ifndef __ASSEMBLER__
#include "weave/x86_64/frame.h"

/* The frame's way of saving the vector state, on the processor that this runs on; its area is there already. */
void weave_vectors_choose(weave_frame *);

/* What an XSAVE-like instruction touches, asked by woven code: the program's eax (and edx: bits 32 and up), which
 * form it has, and the second word of the header of what is restored. Of tiles: their number is `low`. */
enum { WEAVE_STATE_STANDARD, WEAVE_STATE_COMPACTED, WEAVE_STATE_RESTORED, WEAVE_STATE_TILE };
uint64_t weave_state_bytes(uint64_t low, uint64_t high, uint64_t form, uint64_t header);

void weave_save_xsave(void);
void weave_load_xsave(void);
void weave_save_fxsave(void);
void weave_load_fxsave(void);
void weave_take_tool_base(void); /* bases.S */
void weave_take_app_base(void);
void weave_call_tool_base(void); /* where the kernel must be asked */
void weave_call_app_base(void);
#endif

#endif
