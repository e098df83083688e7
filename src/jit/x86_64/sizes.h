/* How long the fixed pieces of code are (glue.c). */
#ifndef INL_JIT_X86_64_SIZES_H
#define INL_JIT_X86_64_SIZES_H

enum {
    JIT_TAILS_ROOM = 160,
    JIT_STUB_BYTES = 17,
    JIT_LANDING_ROOM = 64,
};

#endif
