/* What the files of a rewritten program's run time share. */
#ifndef INL_MOVED_PRIVATE_H
#define INL_MOVED_PRIVATE_H

#include "cfg/program.h"
#include "move/carried.h"
#include "moved/states.h"
#include "run/kernel.h"
#include "moved/moved.h"
#include INL_ARCH_HEADER(moved, frames)

#include <link.h>

/* What a thread has under this engine. In the runtime all signals but faults are blocked; the program's mask waits in
 * t->sigmask, and here for the gate. */
typedef struct moved_step { /* one that is made elsewhere, of so many instructions: <isa>/step.c */
    uint64_t from, next, taken;
    uint32_t count;
} moved_step;
typedef struct moved_own {
    uint64_t mask;          /* at this offset for the gate: gate.S */
    void (*returned)(void); /* a call of the tool's has: <isa>/call.S. At this offset for the boot code */
    uint64_t walks;         /* its stack pointer when it began to (walks.c). At this offset for <isa>/walks.S */
    uint64_t finds;         /* the frame of a finder that it has called (passage.h); 0: of none */
    /* Steps made while a signal waits, the address before; no more waiting; a step was made with the trap flag,
     * whose trap may come late. */
    uint32_t steps;
    bool forced, stepped;
    uint32_t spared; /* frames.c: so many have been kept apart */
    uint64_t held;   /* signals that have come while one was on its way */
    uint64_t last;
    uint64_t seen; /* what moved_unwinds has answered, its registers then; how long it has run since, how often slept */
    uint64_t state, ran;
    uint32_t slept;
    moved_step step;
    bool calls;       /* selfsteps.c: a step of the program's own has ended in the gate; */
    uint64_t trapped; /* and one, last, at this instruction */
    run_asked asked;  /* gate.c: of the call that is being made, if the tool is told of it */
} moved_own;
_Static_assert(sizeof(moved_own) <= RUN_ENGINE_BYTES && !offsetof(moved_own, mask) &&
                   offsetof(moved_own, returned) == 8 && offsetof(moved_own, walks) == 16,
               "a thread's block has room");
static inline moved_own *moved_of(const run_thread *t) { return (moved_own *)(uintptr_t)t->engine; }

/* --- images.c: what is mapped --- */
enum { MOVED_MAX_IMAGES = 512 };
typedef struct moved_image {
    uint64_t low, high;       /* real addresses, moved code included */
    uint64_t bias;            /* real - link */
    uint64_t to_assumed;      /* assumed - real */
    uint64_t text, text_size; /* moved code; a size of 0: there is none */
    const move_carried_map *map;
    uint64_t map_base;      /* real address that the map's old offsets count from */
    const Elf64_Phdr *phdr; /* a copy: the linker unmaps an image before it says so; NULL: there is none */
    unsigned phnum;         /* 0: it has been unmapped, though the linker has not said so yet */
    unsigned room;          /* of the place in moved_now.images: how many headers fit where `copies` is, for good */
    Elf64_Phdr *copies;
    const char *name;
    bool is_rewritten; /* perhaps without moved code */
    bool is_new;       /* its system calls have not been looked at */
    bool is_there, is_unlisted;
} moved_image;
void moved_images_find(void);
/* While all other threads stand still: one may stand in the linker, which has unmapped an image and not told of it. */
void moved_images_look(void);
/* The dynamic linker calls this address when its list is about to change, and when it has; 0: none. And what is to
 * be done then, on the tool's stack. */
uint64_t moved_linker_tells(void);
void moved_images_changed(run_thread *);
/* The number of the call that says so, made at `linker_call` only. */
enum { MOVED_IMAGES_CALL = 511 };
const moved_image *moved_image_at(uint64_t pc);
/* In moved code? */
const moved_image *moved_at(uint64_t pc);
/* The number of the block that holds an offset in moved code; UINT32_MAX: none does. */
uint32_t moved_block_of(const moved_image *, uint32_t off);

/* --- mapped.c: reading an image that may be damaged --- */
/* How many bytes can be read from `at` on, 0: none. */
uint64_t moved_mapped_from(const moved_image *, uint64_t at);
bool moved_is_mapped(const moved_image *, uint64_t at, uint64_t size);
const char *moved_mapped_string(const moved_image *, uint64_t at); /* or NULL */
bool moved_dynamic_value(const moved_image *, int64_t tag, uint64_t *value);
uint64_t moved_dynamic_address(const moved_image *, int64_t tag); /* 0: there is none */

/* --- what this part remembers --- */

/* In one fixed place: signals' handlers, which know no thread yet, and woven code's calls must find it, and there is
 * one carried tool in a process. Outside of it are the handoff, which is filled in from outside, and the gate's sets of
 * numbers, which its assembly names. */
/* shown.c: glibc's struct r_debug_extended; the tool's file in a list of its own. */
typedef struct moved_namespace {
    struct r_debug debug;
    struct moved_namespace *next;
} moved_namespace;
typedef struct moved_entered {
    struct link_map map;
    moved_namespace own, *first, **before; /* first: the dynamic linker's, NULL: it is not entered */
    bool first_alone;                      /* it had no successor, and an older version */
} moved_entered;

typedef struct moved_state {
    moved_hooks hooks;
    bool watches;         /* all system calls, for the tool */
    uint64_t alone;       /* alone.c: the word, */
    bool knows_holder;    /* and can it be seen whether the holder lives? */
    bool owns_new;        /* gate.c */
    bool sets_block;      /* code of an image sets GS base */
    bool knows_linker;    /* it has been asked to tell of libraries, as far as it can be */
    uint64_t linker_call; /* where it does */
    struct {              /* procedures.c: the image that was analysed last */
        const moved_image *of;
        image *im;
        cfg_program *program;
    } analysed;
    size_t image_count;
    moved_image images[MOVED_MAX_IMAGES]; /* the program first */
    moved_later *later;
    moved_entered entered;
} moved_state;
extern moved_state moved_now;

/* --- gate.c, <isa>/gate.S --- */
extern uint64_t moved_gated[8], moved_gated_fds[8];
extern bool moved_gated_others; /* numbers behind the last */
void moved_gate_init(void);
void moved_gate(void);
void moved_gate_leave(void);
void moved_gate_pass(void);
void moved_gate_call(void);
void moved_gate_wait(void); /* x86-64 */
extern const char moved_wait_allowed[], moved_gate_waited[];
extern const char moved_gate_begin[], moved_gate_end[];
/* Where the kernel has Inlay's mask from, and from where on the program's again. */
extern const char moved_gate_blocked[], moved_called_blocked[];
extern const char moved_leave_allowed[], moved_pass_allowed[], moved_call_allowed[];
uint64_t moved_call_again(void); /* where to go on in the gate, so that signals come first, and the call is made then */
uint64_t moved_dispatch(run_thread *);
/* The call whose number waits in a slot has been made, its answer is in ctx: the tool is told. */
void moved_tell_of_exit(run_thread *);
/* A call that has been told of is made once more from the beginning: as the program has asked for it. */
void moved_ask_again(const run_thread *, weave_context *);
extern const char moved_gate_direct[], moved_gate_passed[], moved_gate_called[];

/* --- <isa>/settle.c --- */
/* A signal came: a thread in the gate, at or behind the call made there, is put into the program's own code. */
void moved_settle(run_thread *, void *uc);

/* --- locate.c --- */
typedef enum moved_kind {
    MOVED_PLAIN, /* code that has not moved: nothing to translate */
    MOVED_CLEAN, /* moved code, in the program's own state */
    MOVED_KEPT,  /* something waits in the thread's frame */
} moved_kind;
typedef struct moved_where {
    const moved_image *image; /* whose moved code it is, or NULL */
    uint64_t pc;              /* the original address */
    moved_kind kind;
    weave_parked state; /* see weave.h */
    bool known;         /* the state is; a signal can be delivered here */
    bool before;        /* where the instruction's snippets begin */
    bool is_fault;
    uint64_t place; /* in moved code: where the instruction's snippets begin; 0: not known */
} moved_where;
/* `c`: the registers, NULL: they are not known. `back`: so many bytes behind the instruction that is meant. */
void moved_locate(uint64_t pc, const weave_context *c, unsigned back, bool fault, moved_where *);
/* Does an instruction of an inlined routine stand there? Of which, and at which original address. */
bool moved_inlined(uint64_t pc, uint64_t *original, uint64_t *routine);
/* The new address for one of original code, before its snippets; 0: it has not moved. */
real_addr moved_to(real_addr pc);
/* ... for a thread that is to go on there: 0 also where the jump there leads to what takes the procedure's place
 * (finders.c), which goes on to the new code by itself. */
real_addr moved_onward(real_addr pc);
/* Where a moved instruction is itself, behind what was inserted before it; 0: none begins there. */
uint64_t moved_code_of(const moved_image *, uint64_t original);

/* A signal takes the thread out of the run that it is in: counters become what they are with the instruction at
 * `place` not executed (`before`: nor its snippets). The opposite: it goes on there. */
void moved_leave_run(run_thread *, uint64_t place, bool before);
void moved_enter_run(run_thread *, uint64_t place, bool before);

/* --- frames.c --- */
uint64_t moved_cookie(void); /* what marks on the program's stack are made of */
/* Prepares the frame at `sp` for the program's handler, with the registers of `c`; where it is then, 0: there
 * is no room for it. */
uint64_t moved_frame_show(run_thread *, uint64_t sp, const run_action *, const moved_where *, const weave_context *c);
bool moved_frame_is_ours(const run_thread *, uint64_t sp); /* on the stack of Inlay's for signals? */
void moved_sigreturn(run_thread *) __attribute__((noreturn));
/* Every slot holds what its register does. */
void moved_fill_slots(run_thread *, const weave_context *);

/* --- <isa>/frames.c --- */
/* Words of the frame's context that the kernel leaves alone, at least six. */
uint64_t *moved_frame_marks(const run_frame *);
void moved_frame_set(run_frame *, const weave_context *);
/* Does a handler's frame lie at `at` of a stack that can be read up to `end`? NULL: none does. */
const run_frame *moved_frame_on(uint64_t at, uint64_t end);
/* Moves a frame, with room for what is kept behind it; where it is then, 0: it would be lower than it may. */
typedef struct moved_way {
    uint64_t below, least; /* 0: below where it is; and as low as it likes */
    size_t room;
} moved_way;
uint64_t moved_frame_move(uint64_t from, const moved_way *, uint64_t *room_at);
/* The kernel's frame becomes one with which it enters a handler, whose own is at `to`: from the registers of `c`. */
typedef struct moved_handler {
    uint64_t at, restorer, mask;
} moved_handler;
void moved_frame_enter(run_thread *, run_frame *, uint64_t to, const moved_handler *, const weave_context *c);
/* Where that one returns to, whatever the kernel has been told: the restorer may not have come by the gate yet. */
void moved_frame_returns(uint64_t to, const moved_handler *);
/* What of `spilled` is parked in another way than in its slot, in registers that are the program's own. */
void moved_park_otherwise(const run_thread *, weave_context *, isa_regs spilled);
/* Does the way back from a handler, by this restorer, come by the gate? */
bool moved_returns_by_gate(uint64_t restorer);

/* --- <isa>/resume.c --- */
/* run_engine.resume */
void moved_resume(run_thread *);

/* --- <isa>/call.c --- */
bool moved_call(run_thread *, run_call *); /* run_engine.call */
void moved_returned(void);                 /* call.S: moved_own.returned */
void moved_call_returned(run_thread *) __attribute__((noreturn));

/* --- <isa>/prctl.c --- */
long moved_arch_prctl(run_thread *, weave_context *);
/* A call that the program is to make natively: where to wait for the tool to be taken out; 0: it is served. */
uint64_t moved_goes_native(run_thread *, const weave_context *);
/* x86_64/gs.c: does no code that runs as it is use GS, or set it? And where an image may set it itself: what is not
 * right then, NULL: it may. */
bool moved_gs_is_free(void);
const char *moved_owner_refusal(void);

/* --- <isa>/ground.c: a thread that unmaps what its ways to the gate need; the call, made for it --- */
bool moved_loses_ground(const weave_context *);
long moved_unmap_ground(run_thread *, weave_context *);

/* --- deliver.c, <isa>/step.c --- */
bool moved_in_gate(uint64_t pc);
bool moved_in_delivery(uint64_t pc);
uint64_t moved_restorer_at(void); /* where handlers return to */
/* How far behind the instruction that is meant the address of a fault is. */
unsigned moved_fault_back(const siginfo_t *, const void *uc);
void moved_install(int signo, const run_action *);
void moved_signal_entry(int, siginfo_t *, void *);
extern const char moved_signal_entered[]; /* where it has called */
/* The handler to jump to, with its frame's address; 0: back to what was interrupted. */
typedef struct moved_jump {
    uint64_t handler, sp;
} moved_jump;
moved_jump moved_deliver(int signo, siginfo_t *info, void *uc, run_thread *t, uint64_t frame);
/* `f` runs on the thread's private stack, with the tool's thread pointer; the first is for handlers of signals. */
void moved_on_tool_stack(run_thread *t, void (*f)(void *), void *arg);
void moved_switch_stack(run_thread *t, void (*f)(void *), void *arg);
/* The thread makes one step and comes back; and it makes no more. False: there is no step to be made here. */
bool moved_uc_step(run_thread *, void *uc, bool on);
/* A signal has come: does it end a step that was asked for, does it come in the middle of one? The context becomes that
 * of the code that is stepped through, and a trap that is told as another one what it is. */
typedef enum moved_stepped { MOVED_NO_STEP, MOVED_STEP_ENDED, MOVED_STEP_CUT } moved_stepped;
moved_stepped moved_step_ended(run_thread *, siginfo_t *, void *uc);
/* While an analysis routine runs: the thread comes back, as after a step, when it has returned. */
void moved_stop_after_routine(run_thread *);
bool moved_is_syscall(uint64_t pc);
/* Where a jump over old code leads from, a springboard's above all; 0: none stands there. */
uint64_t moved_jumps_to(uint64_t pc);
/* Does the trap come from single-stepping, by whomever? Is the flag for it still set? */
bool moved_is_step(const siginfo_t *info);
bool moved_uc_steps(const void *uc);
bool moved_sets_flags(uint64_t pc); /* an instruction there that may set it */
/* selfsteps.c: of one that Inlay has not asked for: does it end where none does natively? */
bool moved_is_no_step(run_thread *, const void *uc);

/* --- procedures.c --- */
bool moved_procedure_at(const moved_image *, uint64_t at, uint64_t *start, uint64_t *end);
/* What the image's own unwind table says of an address: where its entry's range begins, and the language's exception
 * table, 0: none. */
bool moved_unwind_entry(const moved_image *, uint64_t at, uint64_t *begin, uint64_t *lsda);
void moved_procedures_done(void);
/* The address of a dynamic symbol that the image defines; 0: none. */
uint64_t moved_symbol(const moved_image *, const char *name);

/* --- sites.c --- */
void moved_patch_sites(void);
/* In a process that ran already: where an instruction is now that made room for a jump to the gate; 0: it stands where
 * it stood. */
uint64_t moved_site_place(uint64_t pc);
/* Does the jump to a piece begin there, or the one back? At any time. */
bool moved_site_jumps(uint64_t pc);
/* In a piece: where that instruction stood. False: it is in no piece; *old is 0: it is in the midst of an instruction's
 * substitute (`exact`), or of what has no original. */
bool moved_site_original(uint64_t pc, bool exact, uint64_t *old);
/* That instruction alone; 0: not known. At any time. */
uint64_t moved_site_of(uint64_t pc, bool exact);
/* The bytes that stood there, again; and the memory of all pieces. */
void moved_sites_restore(int mem);
struct move_told_range;
uint64_t moved_site_areas(const struct move_told_range **);

/* --- live.c --- */
const move_boot_links *moved_live_links(uint64_t bias); /* of an image, or NULL */
/* Where system calls may be in its old code, as image-relative addresses: how many. *sites stays NULL if that is not
 * known. */
uint64_t moved_live_sites(uint64_t bias, const uint64_t **sites);
/* The dynamic linker's word for debuggers, and what it calls, where the program does not lead there; 0: it does. */
uint64_t moved_live_word(uint64_t *tells);
struct move_live_image;
uint64_t moved_live_images(const struct move_live_image **); /* how many */
struct move_live_image *moved_live_shown(void);              /* the same, for what is written there */
const struct move_live_image *moved_live_boot(void);
const char *moved_live_file(void); /* the tool's, as a path; NULL: it is not known */
void moved_live_first(run_thread *);
inl_status moved_live_others(void (*begins)(void *arg, run_thread *), void *arg, inl_error *);
void moved_live_places(void);

void moved_live_forget(uint64_t bias); /* the image has gone */

/* --- images.c: the dynamic linker's word for debuggers, and its address; 0: there is none --- */
uint64_t moved_linker_state(struct r_debug *);

/* --- shown.c: all threads stand still --- */
void moved_shown_begin(void);
void moved_shown_end(void);

/* --- later.c --- */
const moved_later *moved_later_first(void);
const moved_later *moved_later_of(uint64_t bias); /* or NULL */
bool moved_later_has(uint64_t at);                /* in new code of one, or what goes with it? */
const moved_later *moved_later_open(run_thread *, const moved_image *);
void moved_later_close(run_thread *, const moved_image *);

/* --- over.c --- */
bool moved_jumps_put(void); /* false: some could not be written */
void moved_jumps_take_back(int mem);
/* --- <isa>/park.c: where a thread goes on by itself, in its slot; 0: it has none --- */
void moved_park_settle(uint64_t slot, const weave_context *);
void moved_park_block(uint64_t slot, uint64_t block); /* what leads to the thread's block */
/* The vector registers in it, as words that may be changed: how many stretches of them. */
typedef struct moved_words {
    uint64_t *at;
    size_t count;
} moved_words;
unsigned moved_park_vectors(uint64_t slot, moved_words out[2]);
void moved_park_stack(uint64_t slot, uint64_t stack, uint64_t flags, uint64_t size);

/* --- leave.c, back.c, <isa>/ask.S: taking the tool out --- */
extern const char moved_ask_entry[], moved_ask_until[];
void moved_ask(void); /* what the entry calls */
/* Words of the process's memory, and of registers, that lead into new code lead to the old. */
uint64_t moved_back(uint64_t word); /* 0: it does not lead there */
typedef struct moved_memory {       /* of /proc */
    int mem, maps, pages;
} moved_memory;
bool moved_memory_open(moved_memory *);
void moved_memory_close(const moved_memory *);
/* The program's registers: do they hold something of a jump table's copy that old code would take for the table's? */
bool moved_is_about_to_jump(const weave_context *);
bool moved_bring_back(const moved_memory *, uint64_t tls_base); /* false: what is mapped cannot be read */
void moved_note_numbers(void);                                  /* before anything runs in new code */

/* --- exceptions.c: those that are on their way when the tool is taken out --- */
uint64_t moved_old_word(uint64_t word); /* as moved_back, and what exceptions keep */
/* What the registers, the stack up to `end` and vector registers in the slot hold of unwind tables of new code for
 * which there is no counterpart in old tables: a number that such words yield, 0: there are none. So do what a handler
 * has interrupted, and the stack from there (*interrupted: some are of that); `t` is NULL where no handler is known of.
 */
uint64_t moved_unwinds(run_thread *, const weave_context *, uint64_t end, uint64_t slot, bool *interrupted);
uint64_t moved_index_size(uint64_t header); /* of the search table of new code (.eh_frame_hdr) that stands there */

/* --- walks.c, <isa>/walks.S: what takes the place of an unwinder's procedures (finders.c) --- */
uint64_t moved_find_ip(void *context);
void moved_walks_forget(uint64_t text, uint64_t size); /* new code that has gone */
uint64_t moved_find_ip_info(void *context, int *exactly);
void moved_walk_begins(void), moved_raise_begins(void), moved_forced_begins(void), moved_resume_begins(void),
    moved_rethrow_begins(void);
extern uint64_t moved_next_walk, moved_next_raise, moved_next_forced, moved_next_resume, moved_next_rethrow;
extern uint64_t (*moved_next_ip)(void *);
extern uint64_t (*moved_next_ip_info)(void *, int *);

/* --- <isa>/back.c --- */
/* What the program has in the register that leads to a thread's block. */
uint64_t moved_block_register(const run_thread *);
uint64_t moved_pointer_guard(uint64_t tls_base);
/* The program's own restorer, where a frame of the kernel's at `word` returns to Inlay's; 0: there is no frame. */
uint64_t moved_restorer_of(const uint64_t *word, uint64_t high);
bool moved_is_new(uint64_t at); /* in what lies near images for the sake of the tool */

#endif
