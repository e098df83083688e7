/* Where control goes at a jump or a return that is not what it is written as, and behind a procedure's end (thunks.c),
 * told from a file's bytes: no analysis of the program is needed. Addresses are those of the file. */
#ifndef INL_CFG_THUNKS_H
#define INL_CFG_THUNKS_H

#include "image/image.h"
#include "isa/isa.h"

typedef struct cfg_thunks cfg_thunks;
cfg_thunks *cfg_thunks_new(const isa *); /* NULL: out of memory */
void cfg_thunks_free(cfg_thunks *);

typedef enum cfg_departure {
    CFG_AS_WRITTEN,
    CFG_TO_REGISTER, /* a jump to where the register leads */
    CFG_TO_TOP,      /* ... to the word on top of the stack, which was put there for that */
    CFG_TO_CALLEE,   /* the same, as the last piece of a call: it comes back */
    CFG_TO_CALLER,   /* a jump that has the effect of a return */
} cfg_departure;
/* `before`: the instruction that is executed before it, or NULL. *reg is set for CFG_TO_REGISTER. */
cfg_departure cfg_thunks_departure(cfg_thunks *, image *, const isa_insn *in, const isa_insn *before, unsigned *reg);
/* Is there nothing but instructions without effect from one address to the other? Control may run through them. */
bool cfg_thunks_fills(cfg_thunks *, image *, uint64_t from, uint64_t to);

#endif
