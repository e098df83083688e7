/* Of a process whose code is x86-64. */
#include "weave/x86_64/machine.h"

const weave_isa *weave_isa_here(void) { return &weave_isa_x86_64; }
