/* Registers that a call of a procedure may leave changed. */
#ifndef INL_CFG_CHANGES_H
#define INL_CFG_CHANGES_H

#include "cfg/program.h"

/* Of those that a procedure need not preserve, as bits; 0 too when memory is used up. */
uint64_t cfg_proc_changes(const cfg_program *, uint32_t proc);

#endif
