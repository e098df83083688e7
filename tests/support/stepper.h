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
    uint32_t count; /* iterations asked for by REP, elements of a gather; 1 otherwise */
    bool write;
} step_access;

enum { STEP_MAX_ACCESSES = 8 };

/* Memory that the instruction at `regs->rip` (bytes in `code`) is about to touch, in operand order,
 * reads before writes. Returns how many. A REP string instruction gives its first iteration's (none
 * when the count is zero), a gather or scatter its base. */
int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code,
                  size_t code_size, step_access out[STEP_MAX_ACCESSES], bool *is_rep);

#endif
