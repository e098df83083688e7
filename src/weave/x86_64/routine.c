/* What of a routine's instructions the effects do not say: segments, the direction flag, and vector registers that are
 * written to their end, however wide they are here (VEX, EVEX). */
#include "weave/x86_64/machine.h"

static void note_memory(weave_routine *r, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = isa_x86_64.memory(in, mem);
    for (int i = 0; i < n; i++) {
        if (mem[i].segment == X86_SEG_FS && mem[i].access != ISA_ADDRESS_ONLY) r->tls = true;
        if (mem[i].segment == X86_SEG_GS && mem[i].access & ISA_WRITE) r->unknown = true;
        if (mem[i].bits & ISA_MEM_IMPLICIT && !(mem[i].bits & ISA_MEM_STACK)) r->modes = true;
    }
}

void weave_x86_note_routine(weave_routine *r, const isa_insn *in, const isa_effects *fx)
{
    if (fx->vec_writes && x86_clears_upper(in)) r->unknown = true;
    if (in->bits & ISA_BIT_MEM) note_memory(r, in);
}
