/* Registers that a call of a procedure may leave changed. */
#ifndef INL_CFG_CHANGES_H
#define INL_CFG_CHANGES_H

#include "cfg/program.h"

typedef struct cfg_changed { /* of those that a procedure need not preserve, as bits */
    isa_regs regs;
    uint32_t vectors; /* perhaps in part */
} cfg_changed;
/* None too when memory is used up. */
cfg_changed cfg_proc_changes(const cfg_program *, uint32_t proc);

#endif
