/* What the files of a rewritten program's run time share. */
#ifndef INL_REWRITE_RUN_PRIVATE_H
#define INL_REWRITE_RUN_PRIVATE_H

#include "jit/jit.h"
#include "jit/kernel.h"
#include "rewrite/boot.h"
#include "rewrite/run.h"

/* --- images.c: what is mapped --- */
enum { REWRITE_MAX_IMAGES = 512 };
typedef struct run_image {
    uint64_t low, high;       /* real addresses, moved code included */
    uint64_t bias;            /* real - link */
    uint64_t to_assumed;      /* assumed - real */
    uint64_t text, text_size; /* moved code; 0, 0: not rewritten */
    const rewrite_carried_map *map;
    uint64_t map_base;        /* real address that the map's old offsets count from */
    const void *phdr;
    unsigned phnum;
    const char *name;
} run_image;
typedef struct run_images {
    run_image *items;
    size_t count;
} run_images;
extern run_images rewrite_images;
void rewrite_images_find(void);
const run_image *rewrite_image_at(uint64_t pc);
/* In moved code? And is it the first byte of a block, where nothing of the weaver's is pending? */
const run_image *rewrite_moved_at(uint64_t pc);
bool rewrite_is_block_start(const run_image *, uint64_t pc);

/* --- gate.c, <isa>/gate.S --- */
extern uint64_t rewrite_gated[8], rewrite_gated_fds[8];
extern bool rewrite_gated_others; /* numbers behind the last */
void rewrite_gate_init(void);
void rewrite_gate(void);
void rewrite_gate_leave(void);
void rewrite_gate_pass(void);
void rewrite_gate_call(void);
extern const char rewrite_gate_begin[], rewrite_gate_end[];
uint64_t rewrite_dispatch(jit_thread *);
/* The call whose number waits in a slot has been made, its answer is in ctx: the tool is told. */
void rewrite_tell_of_exit(jit_thread *);
extern const char rewrite_gate_direct[], rewrite_gate_passed[], rewrite_gate_called[];

/* --- <isa>/settle.c --- */
/* A signal came: a thread in the gate, at or behind the call made there, is put into the program's own code. */
void rewrite_settle(jit_thread *, void *uc);

/* --- deliver.c, <isa>/step.c --- */
void rewrite_install(int signo, const jit_action *);
void rewrite_signal_entry(int, siginfo_t *, void *);
uint64_t rewrite_deliver(int signo, siginfo_t *info, void *uc, jit_thread *t);
void rewrite_after_routine(void);
void rewrite_on_tool_stack(jit_thread *t, void (*f)(void *), void *arg);
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
