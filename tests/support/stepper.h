/* Single-steps a program and tells every instruction: the ground truth of the exactness tests.
 *
 * The program is traced from its first user instruction (the stop after exec) to its end. One
 * instruction is one step, with two corrections that make the count what the hardware's "instructions
 * retired" has: a REP string instruction, which traps once an iteration, counts once; a system call
 * counts once. An instruction interrupted by a signal does not count until it runs.
 *
 * Address-space randomisation is off, so addresses agree with another run that has it off too. */
#ifndef STEPPER_H
#define STEPPER_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/user.h>

typedef struct step_access {
    uint64_t address;
    uint32_t size;
    uint32_t count; /* iterations asked for by REP; 1 otherwise */
    bool write;
} step_access;

enum { STEP_MAX_ACCESSES = 72 };

/* Memory that the instruction at `regs->rip` (bytes in `code`) is about to touch, in operand order,
 * reads before writes. Returns how many. A REP string instruction gives its first iteration's (none
 * when the count is zero), a masked operand each element that the mask lets through. */
int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t code_size,
                  step_access out[STEP_MAX_ACCESSES], bool *is_rep);

/* flow.c: what the instruction does with control; all but plain ones end a block. Its length too. */
typedef enum step_kind {
    STEP_PLAIN,
    STEP_DIRECT,      /* jump or call with one target */
    STEP_CONDITIONAL, /* jcc, loop, jrcxz */
    STEP_INDIRECT,    /* through a register or memory; return */
    STEP_OTHER,       /* system call, interrupt, xbegin, certain fault */
} step_kind;
step_kind step_flow(const uint8_t *code, size_t size, unsigned *length);
const char *step_mnemonic(const uint8_t *code, size_t size);

typedef struct step_edge {
    uint64_t from, to, count;
} step_edge;
typedef struct step_edges {
    step_edge *at;
    size_t size, used;
} step_edges;
bool step_edges_add(step_edges *, uint64_t from, uint64_t to); /* false: no memory */
size_t step_edges_sort(step_edges *); /* how many; from `at` on. Nothing can be added any more */

/* elements.c: the operand that masks `mem`, or NULL; what it lets through, up to 64 accesses. `at` is
 * the address without the segment and without a vector index. */
typedef struct step_place {
    uint64_t offset, segment_base;
} step_place;
const ZydisDecodedOperand *step_mask(const ZydisDecodedInstruction *, const ZydisDecodedOperand *ops,
                                     const ZydisDecodedOperand *mem);
int step_elements(pid_t pid, const ZydisDecodedInstruction *, const ZydisDecodedOperand *mask,
                  const ZydisDecodedOperand *mem, const step_place *at, bool write, step_access *out);

#endif
