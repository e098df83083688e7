/* Accesses of masked operands (elements.c). */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include <Zydis/Zydis.h>

#include "stepper.h"

/* The operand that masks `mem`, or NULL; what it lets through, up to 64 accesses. `at` is the address without the
 * segment and without a vector index. */
typedef struct step_place {
    uint64_t offset, segment_base;
} step_place;
const ZydisDecodedOperand *step_mask(const ZydisDecodedInstruction *, const ZydisDecodedOperand *ops,
                                     const ZydisDecodedOperand *mem);
int step_elements(pid_t pid, const ZydisDecodedInstruction *, const ZydisDecodedOperand *mask,
                  const ZydisDecodedOperand *mem, const step_place *at, bool write, step_access *out);

#endif
