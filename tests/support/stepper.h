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

/* --- one folder for each architecture --- */

/* Memory that the instruction at the program counter (bytes in `code`) is about to touch, in operand order,
 * reads before writes. Returns how many; negative: not known for this architecture. A REP string instruction gives its
 * first iteration's (none when the count is zero), a masked operand each element that the mask lets through. */
int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t code_size,
                  step_access out[STEP_MAX_ACCESSES], bool *is_rep);

uint64_t step_pc(const struct user_regs_struct *);
/* A system call after which other code may be at an address. */
bool step_changes_mappings(const uint8_t *code, size_t size, const struct user_regs_struct *);

/* The kernel tells the step over a system call twice, and the entry into a handler; the second time nothing has been
 * executed. */
extern const bool step_told_twice;

/* Some instructions cannot be stepped one by one: between a load-exclusive and its store-exclusive each stop makes the
 * store fail, for ever. When such a sequence begins at `pc`, it is run in one go to a stop. */
enum { STEP_TOGETHER = 32 };
typedef struct step_run {
    uint64_t at[STEP_TOGETHER]; /* what has been executed */
    int n, status;              /* of waitpid */
} step_run;
typedef enum step_way {
    STEP_ALONE,   /* no such place: nothing was done */
    STEP_RUN,     /* until what `status` says */
    STEP_UNKNOWN, /* what it would execute cannot be told from where it stops */
} step_way;
step_way step_together(pid_t, uint64_t pc, step_run *);
/* What a step would not stop behind has been carried out instead; false: it is not such an instruction. */
bool step_instead(pid_t, const struct user_regs_struct *, const uint8_t *code, size_t size);

/* What the instruction does with control; all but plain ones end a block. Its length too. */
typedef enum step_kind {
    STEP_PLAIN,
    STEP_DIRECT,      /* jump or call with one target */
    STEP_CONDITIONAL, /* jcc, loop, jrcxz */
    STEP_INDIRECT,    /* through a register or memory; return */
    STEP_OTHER,       /* system call, interrupt, xbegin, certain fault */
} step_kind;
step_kind step_flow(const uint8_t *code, size_t size, unsigned *length);
const char *step_mnemonic(const uint8_t *code, size_t size); /* NULL: no names for this architecture */

/* --- edges.c --- */

typedef struct step_edge {
    uint64_t from, to, count;
} step_edge;
typedef struct step_edges {
    step_edge *at;
    size_t size, used;
} step_edges;
bool step_edges_add(step_edges *, uint64_t from, uint64_t to); /* false: no memory */
size_t step_edges_sort(step_edges *); /* how many; from `at` on. Nothing can be added any more */

#endif
