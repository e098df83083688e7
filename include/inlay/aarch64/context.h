/* The registers of an AArch64 program (context.h). */
#ifndef INLAY_AARCH64_CONTEXT_H
#define INLAY_AARCH64_CONTEXT_H

#include <inlay/types.h>

typedef struct inlay_context {
    uint64_t gpr[32]; /* by inlay_reg: x0 to x30, sp */
    uint64_t pc, flags, tls_base;
    void *vectors; /* v0 to v31, fpsr and fpcr (4 bytes each); NULL where they were not saved */
} inlay_context;

#endif
