/* Between the files that move the program's own instructions (copy.c, and an instruction set's own): a register for the
 * moment of one instruction, whose own value waits in its slot meanwhile. */
#ifndef INL_WEAVE_COPY_H
#define INL_WEAVE_COPY_H

#include "weave/weaver.h"

typedef struct weave_scratch {
    uint8_t reg;
    bool plain; /* without the allocator: stored before and loaded behind the instruction */
} weave_scratch;

/* A register that `in` does not use, out of `allowed`; reg is ISA_NO_REG when there is none. */
weave_scratch weave_scratch_begin(weaver *, const isa_insn *in, isa_regs allowed, bool plain);
/* The instruction itself follows: the map entry gets its place and state. */
void weave_scratch_mark(weaver *, weave_map_entry *, weave_scratch);
void weave_scratch_end(weaver *, weave_scratch);

#endif
