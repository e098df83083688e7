/* The program's registers. */
#ifndef INLAY_CONTEXT_H
#define INLAY_CONTEXT_H

#include <inlay/reg.h>
#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

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
