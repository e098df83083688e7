/* Instructions and what can be asked of them. */
#ifndef INLAY_INSN_H
#define INLAY_INSN_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t inlay_insn_address(const inlay_insn *);
unsigned inlay_insn_size(const inlay_insn *);
const uint8_t *inlay_insn_bytes(const inlay_insn *);
inlay_insn *inlay_insn_next(const inlay_insn *); /* in the block; NULL at its end */
inlay_block *inlay_insn_block(const inlay_insn *);
inlay_proc *inlay_insn_proc(const inlay_insn *);
bool inlay_insn_wanted(const inlay_insn *);     /* by --image and --proc */
unsigned inlay_insn_opcode(const inlay_insn *); /* small number; 0..inlay_opcode_count()-1 */
unsigned inlay_opcode_count(void);
const char *inlay_opcode_name(unsigned opcode);  /* "mov" */
const char *inlay_opcode_class(unsigned opcode); /* "data transfer", "SSE2", ... */
/* Text in Intel syntax into out; returns out. */
const char *inlay_insn_text(const inlay_insn *, char *out, size_t size);

bool inlay_insn_is_branch(const inlay_insn *); /* any jump, call or return */
bool inlay_insn_is_conditional(const inlay_insn *);
bool inlay_insn_is_call(const inlay_insn *);
bool inlay_insn_is_return(const inlay_insn *);
bool inlay_insn_is_indirect(const inlay_insn *); /* target from register, memory or stack */
bool inlay_insn_is_syscall(const inlay_insn *);
bool inlay_insn_is_rep(const inlay_insn *);        /* string instruction with a REP prefix */
bool inlay_insn_is_predicated(const inlay_insn *); /* cmov, rep */
bool inlay_insn_is_atomic(const inlay_insn *);     /* reads and writes memory in one step, for all processors */
bool inlay_insn_falls_through(const inlay_insn *); /* has an "after" point */
uint64_t inlay_insn_target(const inlay_insn *);    /* direct branch; 0 otherwise */

/* Memory operands, implicit ones (push, call, string) included. Operand k of 0..count-1.
 *
 * A masked operand is made of elements, and each element that the mask lets through is an access of
 * its own: gathers and scatters, vmaskmov, vpmaskmov, maskmovdqu, and what AVX-512 does under an
 * opmask (loads, stores, arithmetic on memory, broadcasts, compress, expand). The elements of a gather
 * or scatter lie anywhere, those of the others one behind the other. Where they lie and which are
 * accessed is known when the instruction executes: inlay_element_address, inlay_element_active
 * (snippet.h). An instruction that reads all of its operand whatever the mask says (a permutation, for
 * instance) is not masked. Of any other operand, element 0 is the whole. */
typedef struct inlay_memory {
    bool read, write, prefetch;
    bool implicit, repeated; /* repeated: for each iteration of REP (inlay_rep_count); its points are met once */
    unsigned size;           /* bytes; of one element when masked; 0: depends on state (xsave) */
    unsigned elements;       /* 1 unless masked */
    bool masked;
    bool settable; /* its address can be set (inlay_set_effective_address) */
} inlay_memory;
/* Also of those that are no access (lea, a long nop): neither `read` nor `write`. */
unsigned inlay_insn_memory_count(const inlay_insn *);
inlay_memory inlay_insn_memory(const inlay_insn *, unsigned k);

/* General registers read and written, as bit masks by inlay_reg number; arithmetic flags as in
 * EFLAGS on x86-64. */
uint64_t inlay_insn_regs_read(const inlay_insn *);
uint64_t inlay_insn_regs_written(const inlay_insn *);
/* Vector registers, of any width, by number; of what saves or restores the whole state (xsave, fxrstor) all. */
uint32_t inlay_insn_vectors_read(const inlay_insn *);
uint32_t inlay_insn_vectors_written(const inlay_insn *);
uint32_t inlay_insn_flags_read(const inlay_insn *);
uint32_t inlay_insn_flags_written(const inlay_insn *);

#ifdef __cplusplus
}
#endif

#endif
