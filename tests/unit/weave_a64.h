/* Runs AArch64 code natively and woven, on a machine state of the test's choosing, and says what came out: the
 * counterpart of weave_harness.h. The program under test lies in `app`, where it also runs natively; its branches lead
 * to exits, each of which says which it is. Faults are not caught: programs do none. */
#ifndef WEAVE_A64_H
#define WEAVE_A64_H

#include "isa/aarch64/emit.h"
#include "weave/aarch64/frame.h"
#include "weave/weave.h"

typedef struct machine {
    uint64_t gpr[32]; /* x0 to x30, sp */
    uint64_t flags, exit, fpcr, tls;
    uint8_t vec[32][16];
} machine;

enum { DATA_SIZE = 4096, STACK_SIZE = 4096, EXITS = 32, END = EXITS - 1, COUNTERS = 8 };
typedef struct harness {
    uint8_t *app, *data, *stack, *woven;
    weave_frame *frame;
    uint64_t *counters;
    inl_arena arena;
    weave_output out; /* of the last compilation */
    isa_code code, cold;
    bool apart; /* code out of line goes to a place of its own */
    uint8_t native_memory[DATA_SIZE + STACK_SIZE], woven_memory[DATA_SIZE + STACK_SIZE];
} harness;
extern harness bench;

bool harness_open(void);
uint64_t harness_exit(unsigned i); /* where the program's branches may lead; END: what lies behind its end */
uint32_t harness_random(void);
void harness_seed(uint32_t);
void harness_random_state(machine *); /* sp within the stack, everything else anything */

/* Decodes what `c` has been given (at `app`) into a run of blocks that end at branches. */
weave_run *harness_run(const isa_code *c);
isa_code harness_program(void);                                    /* to write one with */
void harness_native(const weave_run *, uint32_t count, machine *); /* its first instructions; memory as it came out */
inl_status harness_weave(const weave_run *, const weave_options *, inl_error *);
bool harness_is_valid(void);   /* every word of what was woven is an instruction that is known */
void harness_woven(machine *); /* runs it */
void harness_fill_memory(void);
void harness_both(const weave_run *, const weave_options *, const machine *start, machine *native, machine *woven);
void harness_same(const weave_run *, const machine *native, const machine *woven); /* memory too; fails the test */

#endif
