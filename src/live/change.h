/* A change of a process that has the tool already (put.c): more new code, other jumps over old code, some of it gone.
 * It is prepared while the process runs, and made while all its threads stand still; what leads nobody anywhere yet may
 * be mapped before, in a stop of its own, and is written while it runs again (live_change_map, live_change_fill):
 *
 *     texts     mappings that did not exist
 *     data      what the tool is told, in memory of its
 *     links     branches of new code that was there before
 *     threads   who stands in old code that becomes instrumented goes on in new code (a routine of the tool's says
 * where) patches   over old code, in order gone      mappings of new code that nobody is in any more
 *
 * In this order nothing leads anywhere that is not ready: whoever makes the change may be killed between two steps.
 * Only the system calls and the routine that run in the process must not be left in their middle, so it is made in a
 * process of its own where that is possible (live_apart). */
#ifndef INL_LIVE_CHANGE_H
#define INL_LIVE_CHANGE_H

#include "live/live.h"
#include "move/target.h"

typedef struct live_text {
    uint64_t at;
    const void *bytes;
    size_t size, room; /* of the bytes, of the mapping; 0: the bytes' */
    int prot;
    size_t first; /* of the bytes, those that must be there as soon as it is mapped (ready.c) */
} live_text;
typedef struct live_data {
    uint64_t at;
    const void *bytes;
    size_t size;
} live_data;
typedef struct live_patch {
    uint64_t at;
    uint8_t size, bytes[MOVE_MOST_PATCH];
    uint32_t order; /* patches.c: its number among those that are written together; 0: it has none yet */
} live_patch;
typedef struct live_gone {
    uint64_t low, high;
    uint64_t code_low, code_high; /* of it, where a thread may be */
    uint64_t clears;              /* a word that becomes 0 then; 0: none */
    uint64_t hides;               /* a word that becomes 0 before; 0: none */
    bool done;                    /* answer */
} live_gone;

typedef struct live_change {
    INL_VEC(live_text) texts;
    INL_VEC(live_data) data;
    INL_VEC(live_patch) links, patches;
    INL_VEC(live_gone) gone;
    uint64_t places;            /* the routine; 0: nobody is moved */
    uint64_t hides;             /* a routine that is called before anything goes; 0: none */
    uint64_t asked, asked_size; /* where the move_live for it goes */
    uint64_t stack;             /* its top */
    uint64_t own_low, own_high; /* memory of ours in the process, which leads nobody anywhere */
    size_t mapped;              /* of the texts */
    bool has_memory;            /* the process's is open: */
    int memory;
} live_change;
void live_change_end(live_change *);

/* --- patches.c; puts them in order; all threads are stopped, or nobody writes to that code --- */
void live_patch_prepare(const live_process *, live_patch *, size_t count);
/* Any number of them, in any order (they are put in order): where one lies over another, the later one stays. */
inl_status live_patch_all(const live_process *, live_patch *, size_t count, inl_error *);

/* --- change.c; all threads are stopped but for live_change_fill --- */
inl_status live_change_map(live_process *, live_change *, inl_error *);
void live_change_unmap(live_process *, const live_change *); /* instead of making it */
inl_status live_change_fill(const live_process *, const live_change *, inl_error *);
inl_status live_change_make(live_process *, live_change *, inl_error *);
void live_unmap(live_process *, uint64_t low, uint64_t high); /* what it can still be asked to */
inl_status live_map(live_process *, const live_text *, inl_error *);
/* Sets used[k] where a register of a thread, or a word of memory that it can write to, leads into gone[k]. */
inl_status live_find_users(live_process *, const live_change *, bool *used, inl_error *);

/* --- call.c --- */
/* Runs a routine of the tool's, without arguments, on the first thread, with the stack below `stack`. */
inl_status live_call_tool(live_process *, uint64_t routine, uint64_t stack, inl_error *);

/* Runs a procedure of the program's on a stopped thread, on its own stack. */
typedef struct live_call {
    uint64_t pc, ints[6], reals[8]; /* reals: 64 bits, as they are in registers */
    uint64_t words[REMOTE_WORDS];   /* what finds no register, on the stack */
    unsigned int_count, real_count, word_count, patience;
    uint64_t below;  /* so many bytes below the stack pointer are the caller's */
    bool faults_end; /* as in remote_call_frame */
    uint64_t results[2], real_results[2];
} live_call;
/* The next argument. False: there are too many. */
bool live_call_pass(live_call *, bool real, uint64_t bits);
inl_status live_call_program(live_process *, remote *, live_call *, inl_error *);

/* --- apart.c --- */
/* Calls `work` in a child of its own session, deaf to signals: whoever ends this process, by whatever means, does not
 * leave the other one's threads in the middle of it. `answer` is what work leaves there. */
inl_status live_apart(pid_t whom, inl_status (*work)(void *arg, void *answer, inl_error *), void *arg, void *answer,
                      size_t answer_size, inl_error *);

#endif
