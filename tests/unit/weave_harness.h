/* Runs code natively and woven, on a machine state of the test's choosing, and says what came out.
 *
 * The program under test lives in an "application" area of memory: code, addresses where its
 * branches go (each a stub that notes its own address and leaves), data, a stack and a page that
 * faults. The native run executes it in place; the woven run executes what weave_compile made of it,
 * with an engine that leaves in the same way. Both start from the same registers, flags, vector
 * registers and memory, so all of it can be compared afterwards.
 */
#ifndef WEAVE_HARNESS_H
#define WEAVE_HARNESS_H

#include "isa/x86_64/emit.h"
#include "weave/weave.h"
#include "weave/x86_64/frame.h"

typedef struct machine {
    uint64_t gpr[16];
    uint64_t flags;
    uint64_t exit;     /* application address where the run left */
    uint64_t fault_pc; /* application address of a faulting instruction, or 0 */
    uint32_t mxcsr, pad;
    uint8_t ymm[16][32];
} machine;

enum { DATA_SIZE = 4096, STACK_SIZE = 4096, MAX_EXITS = 64 };
typedef struct harness {
    uint8_t *app;   /* code, writable here */
    uint8_t *exits; /* 16 bytes a stub */
    uint8_t *data, *stack, *bad;
    uint8_t *near, *far; /* places for woven code */
    size_t room;
    weave_frame *frame;
    uint64_t *counters;
    void (*live_at)(void *, uint64_t, uint64_t *, uint32_t *); /* the engine's optional hooks */
    void (*live_behind)(void *, const weave_run *, uint32_t, uint64_t *, uint32_t *);
    void *hook_arg;
    bool apart;       /* code out of line goes to a place of its own */
    int64_t moved_by; /* it is woven for a place so far off, and moved by its fix-ups; 0: not */
    x86_code cold;
    weave_output out; /* of the last compilation */
    x86_code code;
    inl_arena arena;
    uint8_t woven_memory[DATA_SIZE + STACK_SIZE], native_memory[DATA_SIZE + STACK_SIZE];
} harness;

extern harness bench;
bool harness_open(void);         /* false: this machine cannot run the test */
void harness_catch_faults(void); /* at the start of a test: the test framework has its own handlers */
static inline uint64_t harness_exit(unsigned i) { return (uint64_t)(uintptr_t)bench.exits + 16 * i; }

uint32_t harness_random(void);
void harness_seed(uint32_t);
void harness_random_state(machine *); /* rsp within the stack, everything else anything */

/* Decodes `bytes` (copied to the application area) into a run of blocks cut at branches. */
weave_run *harness_run(const uint8_t *bytes, size_t size);
/* Runs the first `count` instructions natively; memory is left as it came out. */
void harness_native(const weave_run *run, uint32_t count, machine *m);
inl_status harness_weave(const weave_run *run, const weave_options *options, bool far, inl_error *e);
void harness_woven(machine *m); /* runs the last compilation */
void harness_fill_memory(uint32_t seed);
void harness_save_memory(uint8_t out[DATA_SIZE + STACK_SIZE]);

#endif
