/* What the files of a rewritten program's run time share. */
#ifndef INL_REWRITE_RUN_PRIVATE_H
#define INL_REWRITE_RUN_PRIVATE_H

#include "move/carried.h"
#include "moved/states.h"
#include "run/kernel.h"
#include "rewrite/run.h"
#include "rewrite/x86_64/frames.h"

/* What a thread has under this engine. In the runtime all signals but faults are blocked; the program's mask waits in
 * t->sigmask, and here for the gate. */
typedef struct rewrite_own {
    uint64_t mask; /* at this offset for the gate: gate.S */
    /* Steps made while a signal waits, the address before; no more waiting; a step was made with the trap flag,
     * whose trap may come late. */
    uint32_t steps;
    bool forced, stepped;
    uint64_t last;
} rewrite_own;
_Static_assert(sizeof(rewrite_own) <= RUN_ENGINE_BYTES && !offsetof(rewrite_own, mask), "a thread's block has room");
static inline rewrite_own *rewrite_of(const run_thread *t) { return (rewrite_own *)(uintptr_t)t->engine; }

/* --- images.c: what is mapped --- */
enum { REWRITE_MAX_IMAGES = 512 };
typedef struct run_image {
    uint64_t low, high;       /* real addresses, moved code included */
    uint64_t bias;            /* real - link */
    uint64_t to_assumed;      /* assumed - real */
    uint64_t text, text_size; /* moved code; 0, 0: not rewritten */
    const move_carried_map *map;
    uint64_t map_base; /* real address that the map's old offsets count from */
    const void *phdr;
    unsigned phnum;
    const char *name;
    bool is_new; /* its system calls have not been looked at */
    bool is_there;
} run_image;
typedef struct run_images {
    run_image *items;
    size_t count;
} run_images;
extern run_images rewrite_images;
void rewrite_images_find(void);
/* The dynamic linker calls this address when its list is about to change, and when it has; 0: none. And what is to
 * be done then, on the tool's stack. */
uint64_t rewrite_linker_tells(void);
void rewrite_images_changed(void);
/* The number of the call that says so, made at `rewrite_linker_call` only. */
enum { REWRITE_IMAGES_CALL = 511 };
extern uint64_t rewrite_linker_call;
const run_image *rewrite_image_at(uint64_t pc);
/* In moved code? And is it the first byte of a block, where nothing of the weaver's is pending? */
const run_image *rewrite_moved_at(uint64_t pc);
bool rewrite_is_block_start(const run_image *, uint64_t pc);
/* The number of the block that holds an offset in moved code; UINT32_MAX: none does. */
uint32_t rewrite_block_of(const run_image *, uint32_t off);

/* --- mapped.c: reading an image that may be damaged --- */
/* How many bytes can be read from `at` on, 0: none. */
uint64_t rewrite_mapped_from(const run_image *, uint64_t at);
bool rewrite_is_mapped(const run_image *, uint64_t at, uint64_t size);
const char *rewrite_mapped_string(const run_image *, uint64_t at); /* or NULL */
bool rewrite_dynamic_value(const run_image *, int64_t tag, uint64_t *value);
uint64_t rewrite_dynamic_address(const run_image *, int64_t tag); /* 0: there is none */

/* --- gate.c, <isa>/gate.S --- */
extern uint64_t rewrite_gated[8], rewrite_gated_fds[8];
extern bool rewrite_gated_others; /* numbers behind the last */
void rewrite_gate_init(void);
void rewrite_gate(void);
void rewrite_gate_leave(void);
void rewrite_gate_pass(void);
void rewrite_gate_call(void);
extern const char rewrite_gate_begin[], rewrite_gate_end[];
/* Where the kernel has Inlay's mask from, and from where on the program's again. */
extern const char rewrite_gate_blocked[], rewrite_called_blocked[];
extern const char rewrite_leave_allowed[], rewrite_pass_allowed[], rewrite_call_allowed[];
uint64_t rewrite_dispatch(run_thread *);
/* The call whose number waits in a slot has been made, its answer is in ctx: the tool is told. */
void rewrite_tell_of_exit(run_thread *);
extern const char rewrite_gate_direct[], rewrite_gate_passed[], rewrite_gate_called[];

/* --- <isa>/settle.c --- */
/* A signal came: a thread in the gate, at or behind the call made there, is put into the program's own code. */
void rewrite_settle(run_thread *, void *uc);

/* --- locate.c --- */
typedef enum rewrite_kind {
    REWRITE_PLAIN, /* code that has not moved: nothing to translate */
    REWRITE_CLEAN, /* moved code, in the program's own state */
    REWRITE_KEPT,  /* something waits in the thread's frame */
} rewrite_kind;
typedef struct rewrite_where {
    const run_image *image; /* whose moved code it is, or NULL */
    uint64_t pc;            /* the original address */
    rewrite_kind kind;
    weave_parked state; /* see weave.h */
    bool known;         /* the state is; a signal can be delivered here */
    bool before;        /* where the instruction's snippets begin */
    bool is_fault;
    uint64_t place; /* in moved code: where the instruction's snippets begin; 0: not known */
} rewrite_where;
/* `rcx`: the register. `back`: so many bytes behind the instruction that is meant. */
void rewrite_locate(uint64_t pc, uint64_t rcx, unsigned back, bool fault, rewrite_where *);
/* The new address for one of original code, before its snippets; 0: it has not moved. */
uint64_t rewrite_moved_to(uint64_t pc);

/* A signal takes the thread out of the run that it is in: counters become what they are with the instruction at
 * `place` not executed (`before`: nor its snippets). The opposite: it goes on there. */
void rewrite_leave_run(run_thread *, uint64_t place, bool before);
void rewrite_enter_run(run_thread *, uint64_t place, bool before);

/* --- <isa>/frames.c --- */
/* Prepares the frame at `sp` for the program's handler, with the registers of `c`; where it is then, 0: there
 * is no room for it. */
uint64_t rewrite_frame_show(run_thread *, uint64_t sp, const rewrite_where *, const weave_context *c);
void rewrite_sigreturn(run_thread *) __attribute__((noreturn));

/* --- deliver.c, <isa>/step.c --- */
bool rewrite_in_gate(uint64_t pc);
bool rewrite_in_delivery(uint64_t pc);
void rewrite_restorer(void);
/* How far behind the instruction that is meant the address of a fault is. */
unsigned rewrite_fault_back(const siginfo_t *);
void rewrite_install(int signo, const run_action *);
void rewrite_signal_entry(int, siginfo_t *, void *);
extern const char rewrite_signal_entered[]; /* where it has called */
/* The handler to jump to, with its frame's address; 0: back to what was interrupted. */
typedef struct rewrite_jump {
    uint64_t handler, sp;
} rewrite_jump;
rewrite_jump rewrite_deliver(int signo, siginfo_t *info, void *uc, run_thread *t, uint64_t frame);
void rewrite_after_routine(void);
void rewrite_on_tool_stack(run_thread *t, void (*f)(void *), void *arg);
void rewrite_uc_step(void *uc, bool on);
uint64_t rewrite_uc_flags_trap(const void *uc);
bool rewrite_is_syscall(uint64_t pc);
/* Does the trap come from single-stepping? */
bool rewrite_is_step(const siginfo_t *info);

/* --- procedures.c --- */
bool rewrite_procedure_at(const run_image *, uint64_t at, uint64_t *start, uint64_t *end);
void rewrite_procedures_done(void);

/* --- sites.c --- */
void rewrite_patch_sites(void);

#endif
