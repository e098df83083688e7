/* The weaver: a run of instructions plus the snippets at their points in; machine code and the map
 * between old and new addresses out. Register allocation, flag saving, argument passing and
 * inlining live here, once, for all engines.
 *
 * What the weaver keeps true:
 *  - At every instruction of the program the machine state is the program's own, except registers
 *    that wait in their spill slots, dead registers and dead flags; the map says which.
 *  - At every call into the engine (`lower`) the state is wholly the program's own.
 *  - Nothing is ever stored on or below the program's stack pointer (red zone).
 *
 * Control transfers belong to the engine: the weaver calls `engine->lower` for each instruction
 * whose flow is not ISA_FLOW_NEXT, in place.
 */
#ifndef INL_WEAVE_WEAVE_H
#define INL_WEAVE_WEAVE_H

#include "base/error.h"
#include "weave/run.h"

/* One entry of the map, for each program instruction, in code order. At cache offset `code_at` (the
 * first byte of the translated instruction itself, after its "before" snippets) the program's state
 * is: PC = `app`, registers in `spilled` (bit mask) hold their values in their slots instead;
 * `flags_saved`: the arithmetic flags are in the frame's flags slot. From `snippets_at` (<= code_at)
 * on, code of snippets inserted before this instruction is running. */
typedef struct weave_map_entry {
    uint64_t app;
    uint32_t snippets_at, code_at;
    uint16_t spilled;
    uint8_t flags_saved;
    uint8_t scratch;       /* a register that the translated instruction itself uses in place of a
                              PC-relative or GS operand (in `spilled` too), or ISA_NO_REG */
} weave_map_entry;

typedef struct weave_output {
    weave_map_entry *map;  /* in run->arena, insn_count entries and a last one at the code's end */
    uint32_t map_count;
} weave_output;

struct x86_code;
typedef struct weave_engine {
    /* Emits the translation of control-transfer instruction `in` (index i of the run; the last
     * instruction may also be a non-branch after which `fallthrough` is called). */
    bool (*lower)(void *arg, struct x86_code *code, const weave_run *run, uint32_t i);
    /* Emits an unconditional direct transfer to application address `target`. */
    bool (*exit_to)(void *arg, struct x86_code *code, uint64_t target);
    void *arg;
} weave_engine;

enum { /* weave_options.stress */
    WEAVE_STRESS_RANDOM_REGS = 1, /* choose scratch registers at random */
    WEAVE_STRESS_NO_DEAD = 2,     /* take nothing for dead: spill and save always */
};
typedef struct weave_options {
    uint32_t stress;
    uint32_t seed;
    bool use_xsave_all;    /* save the whole vector state around every analysis call */
} weave_options;

/* Weaves `run` into `code`. After the last instruction, if it can fall through, engine->exit_to is
 * called with the address behind it. Fails with INL_ERR_RANGE when `code` is too small (the caller
 * retries with more room), INL_ERR_UNSUPPORTED with a text when a snippet cannot be compiled.
 * Runs at translation time under the engine's lock; allocates only from run->arena (and a process-
 * wide cache of what analysis routines clobber). */
inl_status weave_compile(const weave_run *run, const weave_engine *engine,
                         const weave_options *options, struct x86_code *code, weave_output *out,
                         inl_error *e);

#endif
