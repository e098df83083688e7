/* Random programs, random snippets, and what the snippets must compute. */
#ifndef WEAVE_GEN_H
#define WEAVE_GEN_H

#include "weave_harness.h"

/* A program of about `count` instructions; returns its size. Instructions may fault only when asked. */
size_t gen_program(uint8_t *out, size_t room, unsigned count, bool faults);
/* A start state that suits the last program. */
void gen_state(machine *m);

/* What snippets leave outside the program, once as woven code did it, once as the model says. */
enum { LOG_SIZE = 4096, TOOL_WORDS = 16, GEN_COUNTERS = 4 };
typedef struct effects_log {
    uint64_t log[LOG_SIZE], words[TOOL_WORDS], counters[GEN_COUNTERS];
    uint32_t used;
} effects_log;
extern effects_log real_effects, model_effects;

const snippet *gen_snippet(const weave_insn *insn, bool after, unsigned depth);
const snippet *gen_value(const weave_insn *insn, bool after, unsigned depth);
const snippet *gen_const(uint64_t v);
/* Runs a snippet on the model: `before` is the state in front of the instruction, `now` at the
 * point; the program's memory must be as it is at the point. */
uint64_t model_run(const snippet *s, const weave_insn *insn, const machine *before, const machine *now);
bool model_executes(const weave_insn *insn, const machine *before);

#endif
