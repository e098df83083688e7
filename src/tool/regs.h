/* Registers as the public headers number them: what an instruction set's table says (<isa>/regs.c). */
#ifndef INL_TOOL_REGS_H
#define INL_TOOL_REGS_H

#include <inlay/reg.h>

typedef struct tool_reg_group { /* registers with numbers from `first` on */
    inlay_reg first;
    unsigned count;
    const char *const *names; /* NULL in the list: there is none of this number */
    inlay_reg_kind kind;
    unsigned bits;
    inlay_reg whole; /* number k is a part of whole + k * step, */
    unsigned step;
    unsigned shift, shift_step; /* from bit shift + k * shift_step on */
} tool_reg_group;

extern const tool_reg_group tool_reg_groups[];
extern const unsigned tool_reg_group_count;
extern const inlay_reg tool_reg_thread_pointer; /* what inlay_thread_pointer reads */
extern const inlay_reg tool_reg_segment;        /* number 1 of those that an operand of the ISA's has (isa_mem) */

#endif
