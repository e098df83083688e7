/* The program's registers. */
#ifndef INLAY_CONTEXT_H
#define INLAY_CONTEXT_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
typedef enum inlay_reg { /* x86-64, hardware numbers */
    INLAY_RAX, INLAY_RCX, INLAY_RDX, INLAY_RBX, INLAY_RSP, INLAY_RBP, INLAY_RSI, INLAY_RDI,
    INLAY_R8, INLAY_R9, INLAY_R10, INLAY_R11, INLAY_R12, INLAY_R13, INLAY_R14, INLAY_R15,
    INLAY_REG_COUNT
} inlay_reg;
/* clang-format on */
const char *inlay_reg_name(unsigned reg);

/* Everything here is the program's own: original addresses, its own segment bases. */
typedef struct inlay_context {
    uint64_t gpr[16]; /* by inlay_reg */
    uint64_t pc, flags, fs_base, gs_base;
    void *xsave; /* vector state in XSAVE layout; NULL where it was not saved */
} inlay_context;

#ifdef __cplusplus
}
#endif

#endif
