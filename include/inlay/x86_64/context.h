/* The registers of an x86-64 program (context.h). */
#ifndef INLAY_X86_64_CONTEXT_H
#define INLAY_X86_64_CONTEXT_H

#include <inlay/types.h>

typedef struct inlay_context {
    uint64_t gpr[16]; /* by inlay_reg */
    uint64_t pc, flags, fs_base, gs_base;
    void *xsave; /* vector state in XSAVE layout; NULL where it was not saved */
} inlay_context;

#endif
