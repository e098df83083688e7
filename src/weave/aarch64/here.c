/* Of a process whose code is AArch64. */
#include "weave/aarch64/machine.h"

const weave_isa *weave_isa_here(void) { return &weave_isa_aarch64; }
