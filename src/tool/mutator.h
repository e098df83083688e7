/* Mutators: programs that change others while these run (include/inlay/process.h).
 *
 * A mutator is a tool's file too. Started, it goes on at MOVE_TOOL_HIGH, which processes of all kinds
 * have free, with the carried heap (as the instrumentor of
 * a program does, rewriter.c); what lives in a process that it changes is the same file, as the carried tool, whose
 * main gets no further than inlay_mutator. So what snippets name, routines, variables, memory of inlay_alloc, lies at
 * the same address here and there, and the process goes on, instrumented as it is, when the mutator ends.
 *
 *     mutator.c          roles; attaching and letting go; what is meant by `tool_now->process`
 *     mutator_create.c   a program that it starts
 *     mutator_end.c      has one ended, and how?
 *     mutator_hold.c     stopping, threads one by one too, and working on a process that stands still
 *     mutator_put.c      the tool gets into the process, before anything else
 *     mutator_wanted.c   which procedures are to be instrumented otherwise than they are
 *     mutator_again.c    what was removed comes back
 *     mutator_same.c     what is equal is there once
 *     mutator_images.c   what is known of images of processes that were let go
 *     mutator_piece.c    plans of these: a piece of new code, recorded as a change
 *     mutator_bytes.c    what is under jumps, and whose they are
 *     mutator_commit.c   the change is made
 *     mutator_memory.c   memory
 *     mutator_once.c     what is executed once: snippets, procedures; values
 *     mutator_run.c      a snippet computed by the mutator
 *     mutator_routine.c  a routine of the mutator's, in the process, once
 *     mutator_calm.c     threads, and where one may call a procedure
 *     mutator_stack.c   up the stack of a thread
 *     switch.c           code that is switched off and on
 *     mutator_watch.c    memory that both have, through which a process tells of events (mutator_ring.h)
 *     mutator_next.c     events as the mutator gets them
 *     mutator_events.c   as the process tells them
 *     mutator_children.c children of fork that tell events, too
 *     mutator_follow.c   programs that are executed
 *
 * All is for one thread of the mutator's. */
#ifndef INL_TOOL_MUTATOR_H
#define INL_TOOL_MUTATOR_H

#include "tool/state.h"
#include "live/change.h"
#include "tool/rewriter.h"
#include "base/bytes.h"
#include "base/page.h"
#include "moved/pieces.h"
#include "tool/mutator_ring.h"

#include <inlay/event.h>

struct tool_code;
typedef struct mutatee mutatee;

/* Fixed places in the process, between what live_put_in puts there and the carried heap. */
enum { MUTATOR_PIECES = 8192, MUTATOR_ASKED = 4 << 20, MUTATOR_STACK = 256 << 10 };
#define MUTATOR_AREA         (MOVE_LIVE_BASE + 0x80000000ull)
#define MUTATOR_ASKED_AT     (MUTATOR_AREA + inl_page_up(MUTATOR_PIECES * sizeof(moved_piece)))
#define MUTATOR_STACK_TOP    (MUTATOR_ASKED_AT + MUTATOR_ASKED + MUTATOR_STACK)
/* What a process and its mutator have both (mutator_watch.c): | ring | memory of inlay_process_share |. One for each
 * handle, below what is told of tools (MOVE_TOLD_BASE). */
#define MUTATOR_CHANNELS     (MOVE_LIVE_BASE + 0x100000000ull)
#define MUTATOR_CHANNEL_SIZE 0x8000000ull
enum { MUTATOR_CHANNEL_COUNT = 128, MUTATOR_SHARE = 64 << 20 };
#define MUTATOR_HEAP_THERE (MOVE_HEAP_BASE + 0x800000000ull) /* where the carried tool's own memory begins */

typedef struct mutator_piece {
    struct mutator_piece *next;
    mutatee *of;
    inlay_image *image;
    live_target live; /* for its place, and the file's bytes */
    uint64_t bytes;   /* of the old code */
    move_target target;
    move_plan *plan;
    move_applied *applied;
    uint8_t *text;          /* as it is to be there */
    bool is_there;          /* it has been written */
    uint64_t keys[2];       /* what it was to hold, and what it does (mutator_again.c) */
    inl_bytes ro;           /* map, unwind table, behind them `in` */
    size_t in_at, in_count; /* offset in ro */
    uint32_t *in_procs;     /* of each */
    size_t tables_at, table_count, patches_at;
    INL_VEC(move_told_patch) patches; /* all that it was ever put in with */
    live_unwind unwind;
    uint32_t slot, procs; /* in the table; so many are in force */
    moved_piece told;     /* what is there */
} mutator_piece;

typedef struct mutated_image { /* by procedure of the analysis */
    struct mutated_image *next;
    inlay_image *image;
    cfg_program *cfg;
    uint64_t *wanted, *now; /* what is inserted; what of it is in force: 0: nothing */
    mutator_piece **in;     /* where it is in force */
    const char **why;       /* it is not, though it is wanted */
    const move_plan *fixed; /* procedures that have moved for good (finders); NULL: none */
    bool is_gone;           /* it has been unmapped: nothing is written there */
} mutated_image;

typedef struct mutator_seen { /* a piece of the process's memory */
    uint64_t at;
    size_t size; /* 0: none */
    uint8_t bytes[1 << 16];
} mutator_seen;

struct mutatee {
    inlay_process process; /* first */
    mutatee *next;
    live_process live;
    module_set *modules;
    int pidfd;
    int mem; /* its memory, for switches; -1: not open */
    bool is_child, is_stopped, has_tool, has_ended, is_broken;
    int status; /* as from waitpid, once it has ended; -1: not known */
    uint64_t heap_sent, heap_mapped;
    mutated_image *images;
    mutator_piece *pieces, *dead; /* dead: nothing of them is in force, threads may be in them */
    uint32_t slots;               /* of the table, that were in use */
    inl_map saved;                /* place of a patch in force -> mutator_saved */
    inl_map granules;             /* whose patch lies over which bytes, what they become (mutator_bytes.c) */
    inl_arena granule_memory;
    mutator_seen seen; /* of what is read while a change is prepared */
    uint64_t change_number;
    bool restored;      /* some are, by the change in work */
    live_change change; /* in work */
    /* mutator_watch.c, mutator_next.c */
    unsigned number;    /* of its channel */
    mutator_ring *ring; /* NULL: there is none */
    int socket;         /* readable: something is in the ring; ends with the program that runs in the process */
    uint64_t share_next, lost_seen;
    uint32_t kinds;
    bool end_watched, end_told, has_execed;
    bool is_former; /* the process is another program, which has a handle of its own (mutator_follow.c) */
    char *exec_path;
    /* mutator_children.c */
    bool shares, follows;  /* with children of fork; what is executed (mutator_follow.c) */
    bool loads_wait;       /* a thread that has loaded libraries */
    INL_VEC(int) children; /* that are known, as they see themselves */
    uint64_t pid_space;    /* the namespace of all these numbers */
    pid_t reads;           /* the child whose memory is meant; 0: its own */
};
typedef struct mutator_saved {
    uint8_t size, bytes[MOVE_MOST_PATCH];
} mutator_saved;

/* NULL: it is none of another process, or of one that was let go. */
mutatee *mutatee_of(const inlay_process *);
#define MUTATOR_NO_OTHER "this is the handle of no other process, or of one that was let go"
/* The error of the last call that failed; false. */
bool mutator_fail(const inl_error *);
bool mutator_refuse(inl_status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* --- mutator.c --- */
mutatee *mutator_new(void); /* NULL, with an error */
void mutator_forget(mutatee *);
/* m->live is open: its images become known. */
inl_status mutator_open(mutatee *, pid_t, inl_error *);

/* --- mutator_images.c --- */
typedef struct mutator_kept mutator_kept;
bool mutator_keep_image(module *);         /* its handle and image are taken over; false: they are not */
void mutator_take_images(mutatee *);       /* those that are known, when none has been asked for */
void mutator_tell_images(const mutatee *); /* of the handles that travel these are its own */

/* --- mutator_hold.c --- */
/* On the stopped process: as it is held, or else in a child that stops it and lets it go. */
inl_status mutator_work(mutatee *, inl_status (*)(mutatee *, void *arg, void *answer, inl_error *), void *arg,
                        void *answer, size_t size, inl_error *);
/* The same, with something before: `first` in a stop of its own, `meanwhile` while it runs, or, where it is held, is
 * not to run. give_up: stopped again, since that has failed. */
typedef struct mutator_steps {
    inl_status (*first)(mutatee *, void *arg, bool runs, inl_error *); /* NULL: nothing before */
    inl_status (*meanwhile)(mutatee *, void *arg, inl_error *);
    void (*give_up)(mutatee *, void *arg);
    inl_status (*then)(mutatee *, void *arg, void *answer, inl_error *);
} mutator_steps;
inl_status mutator_work_in_steps(mutatee *, const mutator_steps *, void *arg, void *answer, size_t size, inl_error *);

/* --- mutator_commit.c --- */
/* Pieces that nobody needs go, as far as no thread is in them. */
inl_status mutator_drop_dead(mutatee *, inl_error *);

/* --- mutator_put.c --- */
inl_status mutator_put(mutatee *, inl_error *);

/* --- mutator_wanted.c --- */
/* NULL: out of memory, or the image has not been analysed. */
mutated_image *mutator_image(mutatee *, inlay_image *);
/* Reads what is inserted in all images into `wanted`. */
inl_status mutator_read_wanted(mutatee *, inl_error *);

/* By content: `contents` by procedure. */
void mutator_read_contents(mutated_image *, uint64_t *contents);

/* --- mutator_again.c --- */
uint64_t mutator_mix(uint64_t, uint64_t);
uint64_t mutator_content(const snippet *); /* equal where the trees are */
/* *out: NULL where what is inserted is not all that may be woven; else to be freed. false: out of memory. */
bool mutator_contents(mutated_image *, uint64_t **out);
/* Of what the marked procedures are to hold; 0: not known. */
uint64_t mutator_key(const mutated_image *, const uint64_t *contents, const uint8_t *marked);
/* A piece that was made for this key, and of which nothing is in force. NULL: there is none. */
mutator_piece *mutator_find_dead(const mutatee *, const mutated_image *, uint64_t key, const uint8_t *marked);
void mutator_revive(mutatee *, mutator_piece *); /* out of the list of these */

/* --- mutator_piece.c --- */
/* Takes `marked` procedures of the image out where they are in force, and puts them in with what is wanted of them. */
inl_status mutator_change_image(mutatee *, mutated_image *, uint8_t *marked, inl_error *);
void mutator_piece_free(mutator_piece *);
extern const char mutator_is_gone[]; /* why nothing is inserted there */

/* --- mutator_bytes.c --- */
/* What is there when nothing of the mutator's is, by the end of the change in work. false: it cannot be read. */
bool mutator_original(mutatee *, uint64_t from, uint8_t *to, size_t);
/* A patch of a procedure's lies over these bytes. false: out of memory. */
#define MUTATOR_FINDERS CFG_NONE /* of those that stay (finders.h) */
bool mutator_own(mutatee *, uint64_t at, size_t, uint32_t owner);
void mutator_disown(mutatee *, uint64_t at, const uint8_t *bytes, size_t); /* `bytes` are there again */
/* The first byte from *at on and before `end` that is owned; *at is then behind it. */
bool mutator_next_owner(const mutatee *, uint64_t *at, uint64_t end, uint32_t *owner);
void mutator_bytes_begin(mutatee *); /* a change */
void mutator_bytes_free(mutatee *);

/* --- mutator_watch.c --- */
typedef struct mutator_joint { /* at MUTATOR_ASKED_AT, for mutator_offer and mutator_connect */
    uint64_t at;               /* where the ring is */
    int32_t memory, pair[2];   /* answer of the first: hidden descriptors */
    int32_t error;             /* answer: 0: it is done */
} mutator_joint;
typedef struct mutator_listener {
    struct mutator_listener *next;
    unsigned kinds;
    void (*f)(const inlay_event *, void *);
    void *arg;
} mutator_listener;
typedef struct mutator_watching {
    int descriptor; /* of epoll */
    mutator_listener *listeners;
    void *kept; /* what the last event points to */
} mutator_watching;
mutator_watching *mutator_watching_now(void); /* NULL: out of memory, or descriptors */
void mutator_watch_end(mutatee *);            /* the handle goes */
void mutator_unwatch(int fd);
void mutator_tell_kinds(mutatee *); /* the process is told which are wanted */
void mutator_quiet(mutatee *);      /* nobody tells anything any more, and who waits goes on */
/* While it is being stopped its children of vfork do not wait for anything. */
void mutator_tell_stops(mutatee *, bool yes);

/* --- mutator_out.c --- */
/* For live_apart, of a pid_t: what is inserted comes out of the process. */
inl_status mutator_leave(void *pid, void *answer, inl_error *e);

/* --- mutator_children.c --- */
void mutator_share_begins(mutatee *);
/* The process that sees itself as `inner` in that one's namespace. 0: there is none. */
pid_t mutator_pid_here(const mutatee *, int inner);
void mutator_note_child(mutatee *, int inner);
/* What is inserted comes out of all children that have it. */
inl_status mutator_children_out(mutatee *, inl_error *);

/* --- mutator_follow.c --- */
/* A thread waits in front of an exec: *new is the program's handle, or NULL, with an error. false: nothing has been
 * executed. */
bool mutator_follow(mutatee *, const ring_record *, const char *path, inlay_process **new);

/* --- mutator_calm.c --- */
/* A thread of the held process at a place where procedures may be called: it runs until it is; not in one that the
 * caller holds. */
inl_status mutator_calm(mutatee *, int tid, remote **, inl_error *);
/* The thread; 0: the first. NULL: there is none. */
remote *mutator_thread(mutatee *, int tid, inl_error *);
/* Does it stand in code of the program's own, with its own registers? */
bool mutator_in_program(const mutatee *, const remote *);
int mutator_thread_number(const mutatee *, int tid);                               /* -1: not known */
bool mutator_read_there(const mutatee *, const void *from, void *to, size_t size); /* what is at the same place */
/* Where its block lies in the process; 0: it has none. */
uint64_t mutator_thread_block(const mutatee *, int tid, run_thread *copy);

/* --- mutator_run.c --- */
/* The value of a tree, computed here, on a process that is held. `r` may be NULL where nothing asks for a thread.
 * `room`: TOOL_CALL_ROOM bytes, for what procedures give as a whole. */
inl_status mutator_run(mutatee *, remote *r, const snippet *, uint8_t *room, uint64_t *value, inl_error *);
/* What an address means that is in the room, and not in the process: of so many bytes. NULL: it is not. */
void *mutator_run_room(uint8_t *room, uint64_t at, uint64_t size);
typedef struct mutator_needs {
    bool calls; /* procedures, or routines: a safe place */
    bool tool;  /* routines of the mutator's: its file in the process */
} mutator_needs;
/* Why it cannot be (NULL: it can), and what for. */
const char *mutator_run_refuses(const snippet *, mutator_needs *);

/* --- mutator_routine.c --- */
/* A routine of the mutator's own, in the process: what it is given, in the order of its kinds, and answers. */
enum { MUTATOR_INTS = 14, MUTATOR_REALS = 8 };
typedef struct mutator_routine {
    void (*fn)(void);
    uint64_t ints[MUTATOR_INTS], reals[MUTATOR_REALS], answer;
    unsigned int_count, real_count;
    bool is_real; /* it answers a float or a double: its bits */
} mutator_routine;
inl_status mutator_call_routine(mutatee *, remote *, mutator_routine *, inl_error *);
/* live_call_program; of one that is given up the thread is where it was for the mutator's file in the process, too. */
inl_status mutator_call(mutatee *, remote *, live_call *, inl_error *);

/* --- mutator_end.c --- */
/* Has it ended? Then m->status is known, as far as it can be. */
bool mutator_has_ended(mutatee *);
/* The same, for when something has failed: a process that is on its way to its end has no memory any more, and that end
 * is waited for. */
bool mutator_is_ending(mutatee *);

/* --- mutator_events.c --- */
void mutator_offer(void);
void mutator_connect(void);
void mutator_resident(void) __attribute__((noreturn)); /* the carried tool's main */

#endif
