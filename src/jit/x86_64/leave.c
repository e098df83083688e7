/* Where the program's own code has what a thread needs to be out of Inlay's. */
#include "jit/core.h"

const jit_way_bytes jit_ways_to_call[] = {{3, {0x0f, 0x05, 0xc3}}, {0}}; /* syscall; ret */
/* What the C libraries' restorers are. */
const jit_way_bytes jit_ways_back[] = {
    {9, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}}, {7, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}}, {0}};
