/* The state of a tool, and what the files behind the public headers share.
 *
 * All that a tool remembers lies in one `tool_state`, at the end of this file: a field a subject, whose one file
 * looks after it. The public calls name no tool, so this is where they find it: `tool_now`, set before main. What
 * analysis code, callbacks and the engine's hooks need of it is found the same way. Outside of it there are only
 *
 *     tool_here           what a thread does at this moment (below): each thread has its own
 *     tool_handoff_data   filled in from outside, before anything of this copy of the tool runs (tool.h)
 *     heap.c              malloc names no state and is called before any constructor
 *     libc.c              variables that are the C library's by name
 *
 * tool_state_end takes a state down and leaves it as tool_state_begin makes it.
 *
 * Callbacks that see code run under the engine's lock, on whatever thread met the code. The flag `holds_lock` of
 * tool_here says that they do, so that public calls work from everywhere: they take the lock (tool_enter) unless
 * the thread has it.
 */
#ifndef INL_TOOL_STATE_H
#define INL_TOOL_STATE_H

#include "tool/blame.h"
#include "tool/tool.h"
#include "base/arena.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/vec.h"
#include "isa/isa.h"
#include "move/live.h"

#include <inlay.h>

#include <time.h>

/* --- what a thread does at this moment --- */
typedef struct tool_signal { /* what callbacks have said of it */
    bool delivers, resumes;
    weave_context next; /* with which the program goes on then */
} tool_signal;
typedef struct tool_thread_now {
    bool holds_lock;                /* the engine's */
    bool sees_code;                 /* a callback of procedures, blocks or instructions is under way */
    bool plans;                     /* carried: an image that was mapped later is instrumented, procedures as a whole */
    inl_arena *run_arena;           /* a run is shown to the tool: what is made dies with it; NULL: it stays */
    char **exec_options;            /* of the exec that callbacks are asked about: one block; NULL: this process's */
    const struct run_thread *owner; /* of the records that a buffer's function has now; NULL: it has none */
    struct tool_signal *signal;     /* that callbacks are shown; NULL: they are shown none */
    const weave_context *asked;     /* the registers at the system call that they are shown; NULL: none */
    unsigned doing;                 /* 1 + the kind of the callback that runs; 0: none (blame.h) */
    char refusal[320];              /* why there is no point, for the message of inlay_insert */
    char mistake[240];              /* what was wrong with an expression, which is NULL then, likewise */
} tool_thread_now;
extern __thread tool_thread_now tool_here;

/* --- callbacks.c --- */
typedef enum callback_kind {
    ON_IMAGE_LOAD,
    ON_IMAGE_UNLOAD,
    ON_PROC,
    ON_PROC_LEFT,
    ON_BLOCK,
    ON_INSN,
    ON_THREAD_START,
    ON_THREAD_END,
    ON_SYSCALL_ENTRY,
    ON_SYSCALL_EXIT,
    ON_SIGNAL,
    ON_FORK_CHILD,
    ON_EXEC,
    ON_START,
    ON_EXIT,
    ON_KEPT_BLOCK,
    ON_WORKER, /* of no list: what a worker does */
    ON_KINDS,
    ON_BUFFER_FULL = ON_KINDS /* registered elsewhere */
} callback_kind;
typedef struct callback {
    struct callback *next;
    void (*f)(void);
    void *arg;
} callback;
/* What is within is the tool's doing: TOOL_DOING(kind) statement. */
#define TOOL_DOING(kind)                                                                                               \
    for (unsigned was_ = tool_here.doing, once_ = (tool_here.doing = (kind) + 1, 1); once_;                            \
         once_ = 0, tool_here.doing = was_)
/* Calls each callback of a kind with leading arguments and its own `arg`. */
#define TOOL_CALL(kind, type, ...)                                                                                     \
    do {                                                                                                               \
        TOOL_DOING(kind)                                                                                               \
        for (callback *c_ = tool_now->callbacks[kind]; c_; c_ = c_->next) ((type)c_->f)(__VA_ARGS__, c_->arg);         \
    } while (0)
#define TOOL_CALL_BARE(kind)                                                                                           \
    do {                                                                                                               \
        TOOL_DOING(kind)                                                                                               \
        for (callback *c_ = tool_now->callbacks[kind]; c_; c_ = c_->next) ((void (*)(void *))c_->f)(c_->arg);          \
    } while (0)

/* --- memory.c --- */
struct tool_heap_root;
typedef struct tool_memory {
    inl_arena arena;
    struct tool_large *large;    /* mappings */
    struct tool_heap_root *heap; /* the carried heap; NULL: there is none */
    uint64_t mapped;             /* of it, to here */
    bool started;                /* main has called inlay_start */
    struct tool_replay *replay;  /* carried: main's next request */
} tool_memory;
/* Zeroed, kept as long as the state; any thread. NULL when there is none. */
void *tool_alloc(size_t bytes);
void tool_memory_end(tool_memory *);

/* The carried heap (see rewriter.c): what is allocated here while code is instrumented is stored in the
 * program that is written and found at the same address there. In other roles the process's memory. */
void *tool_carried_alloc(size_t bytes);
void *tool_carried_alloc_at(size_t bytes, size_t align); /* at most 16 */
bool tool_heap_create(void);                             /* instrumentor, before main; false: the place is taken */
void tool_heap_attach(void);                             /* carried, before main: the content has been mapped */
void tool_heap_begin(void);                              /* instrumentor and carried, at inlay_start: no more replay */
size_t tool_heap_size(void);                             /* bytes from MOVE_HEAP_BASE on, whole pages */
bool tool_heap_holds(const void *);                      /* in the carried heap? */
/* The instrumentor's pointers to what must be found again, by number. */
/* clang-format off */
typedef enum tool_root { ROOT_RECORDS, ROOT_COUNTERS, ROOT_IMAGES, ROOT_BUFFERS, ROOT_PROCS, ROOT_FLOWS,
                       ROOT_SUMS, ROOT_BANKED, ROOTS } tool_root;
typedef struct tool_heap_root {
    uint64_t magic, next; /* where free memory begins */
    uint64_t start;       /* where it began at inlay_start */
    struct tool_replay *replay, *replay_last;
    void *roots[ROOTS];
    uint64_t numbers[ROOTS]; /* next counter, next procedure id ... */
    const char *program;     /* as it was named */
    uint64_t next_there;     /* where the carried tool's free memory begins, 0: behind this */
    const struct source_table *sources;
} tool_heap_root;
/* clang-format on */
tool_heap_root *tool_heap(void); /* NULL in roles without one */

/* --- lock.c --- */
typedef struct tool_locks { /* in the order in which they nest */
    inl_lock records, output, small;
} tool_locks;
bool tool_enter(void); /* true: the lock was taken and tool_leave must give it back */
void tool_leave(bool entered);
void tool_locks_fork(int phase); /* 0 take, 1 release in the parent, 2 in the child */
struct tool_thread;
void tool_locks_give_back(const struct tool_thread *gone, const struct tool_thread *survivor);

/* --- snippets.c --- */
void *tool_snippet_alloc(size_t bytes);
snippet *tool_snippet(snippet_kind);
inlay_expr tool_snippet_of(snippet); /* with a copy of its arguments; a mutator's may be one that is there already */
inlay_expr tool_snippet_new(const snippet *like);

/* --- reads.c: there, if the tool is linked with what makes snippets that read registers or flags which the instruction
 * at their point does not use --- */
extern const char tool_reads_registers __attribute__((weak));
inlay_expr tool_register(snippet_kind, unsigned reg, inlay_expr); /* a whole general one */

/* --- counters.c --- */
uint32_t tool_counter_fresh(bool with_banks); /* of the engine's own; 0: none is left */
void tool_counters_begin(void);
uint32_t tool_counters_count(void);
void tool_counters_restore(void);                            /* carried: indices as they were given at rewriting time */
bool tool_is_static(const void *p);                          /* in the tool's own image? */
uint64_t tool_counter_total(const void *of, uint32_t index); /* a tool_counter_reader: of all threads */
bool tool_counter_has_place(inlay_counter *, bool with_banks); /* gives it one; that snippets look at before anything
                                                                  counts has no banks */

/* --- counter_values.c: there, if the tool is linked with what makes snippets that look at counters --- */
extern const char tool_reads_counters __attribute__((weak));

/* --- joint.c --- */
typedef struct tool_joint_term {
    int64_t amount;
    uint32_t counter, joint;
    uint32_t next; /* of the same counter, from 1 on */
} tool_joint_term;
typedef struct tool_joint_set {
    uint32_t joint, first, count; /* in terms */
} tool_joint_set;
typedef struct tool_joints {
    INL_VEC(tool_joint_term) terms;
    INL_VEC(tool_joint_set) sets;
    INL_VEC(uint32_t) heads; /* of lists of terms, by counter */
    inl_map by_hash;         /* of what in sets */
} tool_joints;
typedef uint64_t tool_counter_reader(const void *of, uint32_t index);
uint32_t tool_joint(const weave_term *, uint32_t count); /* weave_options.joint */
/* What joint counters say of `counter`. */
uint64_t tool_joint_part(uint32_t counter, tool_counter_reader *read, const void *of);
void tool_joints_end(tool_joints *);

/* --- records.c --- */
typedef struct tool_records {
    inl_map by_key;
    bool attached; /* those that travelled are in it */
} tool_records;

/* --- derive.c: counts that the rewrite engine placed --- */
typedef struct tool_derivation {
    uint64_t *final;            /* the solution at the program's end, by counter */
    const void *final_of;       /* ... of which thread, NULL: of all */
    bool reporting;             /* ... or, before an exec, of a report that may turn out not to be the last */
    bool values_wanted;         /* some snippet reads a counter where it runs, */
    bool value_late;            /* and said so when counts had been placed elsewhere */
    struct tool_flow_end *ends; /* a table; NULL where no counts are derived */
    bool any_end;
} tool_derivation;
struct move_flows;
uint32_t tool_derive_counter(void *arg);                           /* move_client.new_counter */
uint32_t tool_derive_placed(void *arg, const struct move_flows *); /* move_client.placed */
bool tool_derive_used(void);
bool tool_derive_begin(void); /* carried, at inlay_start; false: no memory */
/* moved_hooks.flow_ends; async-signal-safe */
void tool_derive_flow_ends(struct run_thread *, uint32_t number, uint32_t block, bool entered, int64_t times);
void tool_derive_forked(void);        /* in the child: no flow has ended yet */
void tool_derive_report(bool begins); /* a report in the program's midst: the solution is kept for it */
bool tool_counter_value_wanted(void); /* false: it is too late */
bool tool_derive_failed(void);        /* it has been too late for one */
/* What is to be added to what counter `index` itself holds; `of` is handed to `read`, NULL: all threads. */
uint64_t tool_derived(uint32_t index, tool_counter_reader *read, const void *of);
/* The same for all counters: an array to be freed. NULL: out of memory. */
uint64_t *tool_derive_all(tool_counter_reader *read, const void *of);

/* --- sums.c: additions that wait for the end --- */
struct inlay_image;
/* Instrumentor, when all that is inserted is known: which these are. */
void tool_sums_decide(inlay_image *const *images, size_t count);
void tool_sums_add(void);        /* carried: now */
void tool_sums_fork_child(void); /* before counters are reset */

/* --- points.c --- */
typedef enum point_kind {
    POINT_BEFORE,
    POINT_AFTER,
    POINT_TAKEN,
    POINT_ANYWHERE,
    POINT_HEAD, /* of a block that control falls into as well; index is the block */
    POINT_PROC_ENTRY,
    POINT_PROC_EXIT,
    POINT_PROC_RETURN
} point_kind;
typedef struct proc_insert { /* kept, and applied whenever the code is translated */
    struct proc_insert *next;
    inlay_expr code;
    bool predicated;
    bool returns_only; /* at an exit: not before jumps */
} proc_insert;
void tool_points_apply(weave_run *, uint32_t insn, inlay_proc *);
struct inlay_insertion { /* where it is kept, for inlay_remove (process.c) */
    const inlay_point *at;
    union {
        weave_insert *node;           /* NULL: it belongs to the block in which its instruction is shown once more */
        proc_insert *kept;            /* of a procedure */
        struct inlay_insertion *next; /* gone: a mutator's that is used again */
    };
    bool gone;
};
/* With the handle of what is inserted first, which for nearly all is the only one: handles are free. */
struct inlay_point {
    point_kind kind;
    uint32_t index;
    weave_run *run;   /* code points */
    inlay_proc *proc; /* procedure points */
    inlay_expr guard; /* NULL: none; an edge without a place of its own: when control will take it */
    inlay_insertion first;
};
weave_where tool_point_where(const inlay_point *);
inlay_point *tool_point_guarded(inlay_insn *before, inlay_expr condition);
uint32_t tool_point_insn(const inlay_point *); /* the instruction's index in the run */
/* NULL, and what is inserted there is refused with "WHAT jz at 0x...". */
inlay_point *tool_no_point(const weave_insn *, const char *what);
void tool_point_refused(const weave_insn *, const char *why); /* when its code was made */
inlay_point *tool_point_of_nothing(const char *what);

/* --- images.c, procs.c --- */
/* In a carried tool there is no module: the handles are what the instrumentor left, and the file is
 * opened again when something is asked that they do not know. */
struct inlay_image {
    inlay_process *process;
    module *m;
    const char *path, *name;
    uint64_t low, high, bias;
    unsigned id;
    bool is_main, wanted;
    bool is_other, is_gone; /* carried: was not rewritten; is not mapped any more */
    bool procs_asked, sections_asked;
    uint64_t entry;          /* 0: none */
    inlay_section *sections; /* as in the file, once asked for; they travel */
    unsigned section_count;
    const image_proc *procs; /* asked for when first needed; NULL when the file is gone */
    size_t proc_count;
    inlay_proc **made;             /* handles, by index in procs */
    size_t last;                   /* the last procedure found */
    struct tool_code *code;        /* once asked for (code.c) */
    struct mutator_points *points; /* of a mutator's (mutator_same.c) */
    inlay_module *modules;         /* likewise (units.c), module_count of them */
    size_t module_count;
    /* carried: */
    inlay_image *next;
    uint64_t shift;               /* real address - assumed, once the program runs */
    int64_t file_size, file_time; /* as they were */
    image *file;
    bool file_asked;
    const char *mapped; /* of one that was not rewritten: the path by which the linker knows it */
};
struct inlay_proc {
    inlay_image *image;
    const char *name;
    uint64_t low, high; /* mapped */
    size_t index;
    unsigned id;
    bool wanted, announced;
    char *display; /* the demangled name, once asked for; NULL: none, or not asked for */
    void *record;
    size_t record_size;
    proc_insert *entry, *exit;
};
inlay_image *tool_image_of(module *);
inlay_image *tool_image_at(uint64_t address); /* lock held */
inlay_proc *tool_proc_at(uint64_t address);   /* lock held */
void tool_image_forget(inlay_image *);
/* Carried, for an image that is mapped later (later.c): a number that none has; its module is about to go; it has gone
 * itself, and is not found any more. */
unsigned tool_image_fresh_id(void);
void tool_image_settle(inlay_image *);
void tool_image_gone(inlay_image *);
inlay_image *tool_image_carried(uint64_t low); /* that begins there, or NULL */
image *tool_image_file(inlay_image *);         /* NULL: gone */
void *tool_handle_alloc(size_t bytes);         /* zeroed; travels where there is a carried heap */
void tool_handle_free(void *);
const char *tool_handle_string(const char *); /* likewise; or the string itself */
void tool_images_attach(void);                /* carried, before main */
void tool_images_begin(void);                 /* carried, at inlay_start: where they lie now */

/* --- code.c: the static view --- */
struct cfg_program;
struct cfg_program *tool_code_take(inlay_image *); /* its analysis, if there is one */
bool tool_code_note(weave_insn *);                 /* of the view: something was inserted at it, or at its block */
void tool_code_unnote(const weave_insn *);         /* something of that is gone again */
void tool_code_apply(weave_run *);
/* Each list with something in it, and each result of a replaced procedure; NULL: not these. */
typedef struct tool_code_visitor {
    void *arg;
    void (*list)(void *arg, weave_run *, weave_list *);
    void (*replaced)(void *arg, const snippet *);
} tool_code_visitor;
void tool_code_visit(inlay_image *, const tool_code_visitor *);
bool tool_code_touched(const inlay_image *, uint32_t proc); /* of the analysis: is there anything to weave? */
/* Where the run holds a procedure that is replaced: takes it out of sight and returns what replaces it, which
 * tool_code_replace puts in when the rest has been seen to. NULL: there is none. */
typedef struct tool_cut { /* where, and how far the run went */
    uint32_t index, insn_count, block_count;
} tool_cut;
const snippet *tool_code_cut(weave_run *, tool_cut *);
void tool_code_replace(weave_run *, const tool_cut *, const snippet *);
void tool_code_replace_calls(weave_run *);
inlay_proc *tool_code_proc(const weave_run *); /* of a view's run */
void tool_code_forget(inlay_image *);
bool tool_code_has_any(const inlay_image *);         /* something is inserted or replaced in its static view */
bool tool_image_has_insertions(const inlay_image *); /* or was, or is at its procedures */
void tool_code_reset(inlay_image *);                 /* it is as just analysed */

/* --- filter.c --- */
void tool_filter_warn(void);                /* of patterns that match nothing in any image that is loaded */
void tool_filter_warn_images(void);         /* the half of it that is of images */
bool tool_filter_follows(const char *path); /* a program that is exec'ed */
bool tool_filter_images(void);              /* is there a filter? */
bool tool_filter_procs(void);
bool tool_image_matches(const char *path, const char *name);
struct image_proc;
bool tool_proc_matches(const inlay_image *, const struct image_proc *);
bool tool_address_wanted(uint64_t address); /* lock held */

/* --- insns.c --- */
const isa *tool_isa(void);
void tool_insns_begin(void); /* another run: nothing that was remembered holds */
/* Does the block go on over the run's instruction `index`, at which another one begins? */
bool tool_insn_is_shared(const weave_block *, uint32_t index);
/* Tools inspect one instruction after the other, often several things of each: the last one's details are kept.
 * Under the engine's lock, like all that has an instruction in hand. */
typedef struct tool_insn_details {
    const weave_insn *memory_of, *effects_of, *operands_of;
    int memory_count;
    unsigned operand_count;
    isa_operand operands[ISA_MAX_OPERANDS];
    isa_mem memory[ISA_MAX_MEM];
    isa_effects effects;
} tool_insn_details;

/* --- worker.c --- */
typedef struct tool_workers {
    inlay_worker *first; /* that begin when the program does */
    bool begun;
} tool_workers;
void tool_workers_begin(void); /* the program is about to */

/* --- threads.c, buffers.c --- */
enum { TOOL_HELD_LOCKS = 8 };
enum { TOOL_RETURNED_DEPTH = 8 };
typedef struct tool_thread {
    struct tool_thread *next;
    run_thread *owner;   /* NULL: free */
    inl_lock flushing;   /* its buffers are being emptied */
    bool done;           /* emptied for the last time */
    unsigned held_count; /* locks that it holds, is about to take, or has just given back */
    inlay_mutex *held[TOOL_HELD_LOCKS];
    void *locals;                           /* its piece of locals.c; NULL: none, or the spare one */
    struct tool_stacks *stacks;             /* wrap_stacks.c; NULL: there is one */
    uint8_t *returned[TOOL_RETURNED_DEPTH]; /* call.c: what procedures have given as a whole; NULL: nothing yet */
} tool_thread;
typedef void tool_full_callback(const void *records, size_t count, unsigned thread_id, void *arg);
typedef void *tool_next_callback(void *filled, size_t count, unsigned thread_id, size_t *room, void *arg);
struct inlay_buffer {
    snippet_buffer woven;
    size_t bytes;
    tool_full_callback *full;
    tool_next_callback *next; /* fed: the memory is the tool's, and nothing is handed out */
    void *arg;
};
typedef struct tool_buffers {
    inlay_buffer own[WEAVE_BUFFERS], *table; /* table: it travels, in case a callback made one of them; NULL: own */
    unsigned count;
    uint64_t spare[WEAVE_BUFFERS]; /* memory of ended threads; each piece begins with the next one's address */
} tool_buffers;
tool_thread *tool_thread_of(run_thread *); /* NULL when out of memory */
void tool_thread_end(run_thread *);
void tool_threads_fork_child(run_thread *survivor);
void tool_buffers_flush(run_thread *);
void tool_buffers_flush_others(run_thread *);
void tool_buffers_flush_all(void);   /* at the end of the process */
void tool_buffers_end(run_thread *); /* the thread ends */
void tool_buffers_fork_child(run_thread *);
void tool_buffers_attach(void); /* carried, before main */
void tool_buffers_begin(void);  /* carried, at inlay_start */

/* --- locals.c --- */
typedef struct tool_locals {
    size_t size; /* of what main has asked for */
    bool closed; /* nothing more is asked for */
    void *spare;
} tool_locals;
bool tool_locals_begin(void);         /* at inlay_start; false: no memory */
void tool_locals_start(run_thread *); /* before the callbacks of its start */
void tool_locals_end(tool_thread *);

/* --- output.c, json.c --- */
typedef struct tool_output {
    FILE *stream;
    bool is_file, failed;
    int left_over; /* the parent's file, in a forked child that has not opened its own; -1 */
} tool_output;
enum { TOOL_JSON_DEPTH = 64 };
typedef struct tool_json {
    FILE *target; /* NULL: the tool's result */
    bool one_line;
    unsigned depth;
    char closing[TOOL_JSON_DEPTH];
    bool begun[TOOL_JSON_DEPTH + 1]; /* the level has an element already */
} tool_json;
void tool_output_begin(void); /* what the file of -o held goes, unless it has gone */
void tool_output_flush(void);
void tool_output_close(void);
void tool_output_end(tool_output *);

/* --- on_request.c --- */
/* moved_hooks.report */
int tool_report_on_request(struct run_thread *, bool ends, bool captures);
void tool_output_fork_child(void);

/* --- native.c --- */
typedef struct tool_native { /* is the tool being taken out for the program's sake? */
    int state, end;          /* of the sockets, -1: none yet */
} tool_native;
enum { TOOL_NATIVE_NOT, TOOL_NATIVE_GOES, TOOL_NATIVE_FAILED };
bool tool_leaves(struct run_thread *);
void native_command(int argc, char **argv); /* this is the process that takes it out: does not return */

/* --- later.c --- */
struct moved_later;
struct moved_mapped;
/* moved_hooks.opened, .closed */
struct moved_later *tool_later_opened(struct run_thread *, const struct moved_mapped *);
void tool_later_closed(struct run_thread *, const struct moved_mapped *);

/* --- client.c, say.c --- */
void tool_client_fill(run_client *);
void tool_client_sees(void *arg, weave_run *); /* what the JIT engine calls when it sees code */
void tool_client_refused(void *arg, const weave_insn *, const char *why);

/* --- under_jit.c, without_jit.c --- */
const char *tool_jit_missing(void); /* why there is no JIT engine; NULL: there is one */
inl_status tool_jit_set_up(const run_client *, const run_start_state *, inl_error *);
void tool_jit_run(void) __attribute__((noreturn));
void tool_jit_image_gone(const image *);
void tool_jit_forked(void); /* in the child */
void tool_jit_ends(void);   /* after the exit callbacks */
/* --gdb: starts it, or waits for it, in a process of its own (the descriptor by which the program speaks with it); what
 * the launcher of a program that is exec'ed is told; the process's life. */
int tool_jit_gdb_launch(void);
size_t tool_jit_gdb_state(char *out, size_t size); /* 0: there is no gdb */
const char *tool_jit_take_gdb(const char *state);  /* NULL: good */
void tool_jit_gdb_ended(run_thread *, int status, int signo);
void tool_jit_gdb_execs(run_thread *, bool follows);
run_thread *tool_jit_join(const jit_joining *, bool first, inl_error *);
void tool_jit_joined(void);
void tool_told_begin(void); /* told.c */
void tool_told_end(void);
/* A report while the program runs, as jit_reporter has it: what becomes of it is told there. */
void tool_told_report(struct run_thread *, uint32_t who, const struct run_thread *late);
void tool_told_taken(uint32_t who);
bool tool_jit_leave(const char **why); /* the tool is to leave the process; false: *why it cannot */
void tool_client_instrument(weave_run *);
void tool_client_image(module *);
bool tool_client_sees_code(void); /* does any callback look at code? */
/* What is wrong with an expression that is being made: the first one found is told where it is inserted. */
void tool_mistake(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* It, once; or what is said where nothing is known. */
const char *tool_mistaken(char *out, size_t size);
void tool_say_limited(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "cannot insert WHERE: WHY", the first few times that there is this reason; `where` may be NULL. */
enum { TOOL_REASONS = 32 };
typedef struct tool_reasons { /* of what was refused */
    uint64_t key[TOOL_REASONS];
    unsigned met[TOOL_REASONS];
} tool_reasons;
void tool_say_refused(const char *where, const char *why);

/* --- exec.c --- */
typedef struct tool_command { /* that started the tool: argv[1 .. options_end) are options */
    char **argv;
    int options_end;
} tool_command;
void tool_exec_remember(int argc, char **argv, int program);
/* `is_other`: a process that shares memory with its parent, whose output it must leave alone. */
bool tool_exec_plan(const char *path, char *const *argv, bool is_other, run_exec_plan *);
/* The new program is without the tool: this process's report is due now; and it has failed after all. */
void tool_exec_report(run_thread *);
void tool_exec_failed(run_thread *);

/* --- <isa>/context.c --- */
void tool_syscall_read(const weave_context *, long nr, inlay_syscall *);
void tool_syscall_write(weave_context *, const inlay_syscall *); /* number and arguments */
long tool_syscall_result(const weave_context *);
void tool_syscall_set_result(weave_context *, long);

/* --- <isa>/tls.c --- */
void *tls_new(void);
void tls_free(void *);
uint64_t tls_base_of(void *);
void tls_prepare(void);          /* in the first thread */
void tls_enter(void *, int tid); /* in the new thread, first of all */
void tls_leave(void);            /* in a thread that ends */
void tls_fork(int phase);        /* the C library's own locks */
void tls_fork_child(void *, int tid);

/* --- check.c: --debug; lock held --- */
void tool_check(void);
void tool_check_sometimes(void);

/* --- state.c: all of it --- */
/* A process as a tool sees it: its images, procedures and threads. There is the present one; a mutator has others
 * besides (mutator.h), and the one that its calls speak of is `tool_now->process` meanwhile. */
struct inlay_process {
    bool is_other;           /* it is begun by a struct mutatee */
    inlay_image *last_found; /* by tool_image_at */
    unsigned next_proc;      /* id */
    size_t proc_record_size; /* one size a tool; 0: none was asked for */
    bool proc_points;        /* has any procedure snippets at its entry or exit? */
    bool code_inserted;      /* is there anything in static views that translation must look for? */
    inlay_image *others;     /* carried: images that were not rewritten, in order of their being met */
    tool_thread *threads;    /* those of ended threads have no owner */
};

typedef struct tool_command_line {   /* while it is read */
    INL_VEC(struct tool_option) own; /* options that the tool has declared */
    INL_VEC(const char *) carried;   /* options that the carried tool's main is to find, in order */
    bool by_command;                 /* `inlay rewrite` */
    const char *program;             /* what is named behind the options: a program, or a process */
    char **words;                    /* the whole, as it was typed */
} tool_command_line;

typedef struct tool_refusal { /* of an insertion */
    uint64_t address;
    const char *what, *why;
} tool_refusal;

/* --- mutator.c --- */
typedef struct tool_mutating {
    inl_error error; /* of the last call that failed */
    struct mutatee *first;
    move_told_holder self;             /* this mutator */
    const char *arguments;             /* it was started with */
    uint32_t switches;                 /* that there are (switch.c) */
    uint64_t changes;                  /* of the pieces in processes */
    struct mutator_kept *kept;         /* images of processes that were let go, the last one first */
    inl_map expressions;               /* that there are, by a sum (mutator_same.c) */
    struct mutator_watching *watching; /* mutator_watch.c */
    /* in the process (mutator_events.c): NULL: nobody is told */
    struct mutator_ring *ring;
    int socket;
    bool is_child;   /* the ring is that of a process which this one was forked by, or by whose children */
    bool executes;   /* another program, if the kernel does */
    bool has_loaded; /* libraries, by the thread that has the linker's lock */
} tool_mutating;
/* From now on calls that name no process mean this one. */
bool tool_process_mean(inlay_process *); /* false: there is none */
int mutator_pid(const inlay_process *);  /* of another process; 0: of none */
struct inlay_stack_frame;
unsigned mutator_stack(inlay_process *, const inlay_context *, struct inlay_stack_frame *out, unsigned most);
const char *mutator_program(const inlay_process *);
/* mutator_same.c. Is what is inserted there a mutator's, and is inserted perhaps again and again (run: NULL: at a
 * procedure)? Then: the point there; its handle, and node; an expression as simple as it gets; what was removed. */
typedef struct mutator_points mutator_points;
bool mutator_keeps_points(const weave_run *);
inlay_point *mutator_point(const inlay_point *like);
inlay_insertion *mutator_handle(const inlay_point *);
proc_insert *mutator_proc_insert(const inlay_point *);
inlay_expr mutator_simplify(const inlay_point *, inlay_expr);
void mutator_removed(inlay_insertion *);
void mutator_points_free(inlay_image *);
inlay_expr mutator_same(const snippet *like); /* the one that is equal */
bool mutator_shares(const void *);            /* is it memory of inlay_process_share? */
/* In the process: what callbacks do not tell. */
void mutator_forked(void *arg, run_thread *, int child);
void mutator_exec_failed(run_thread *);
void mutator_listed(const char *name, uint64_t bias, bool gone);
void mutator_all_listed(void);

typedef struct tool_kept {         /* translations from run to run (kept.c) */
    bool promised;                 /* block callbacks may be left out */
    bool changed;                  /* what is inserted is not what was inserted before */
    uint64_t counters_hash;        /* which variables have which numbers */
    INL_VEC(const char *) options; /* the tool's own, as they were given */
} tool_kept;

typedef struct tool_state {
    tool_command_line command_line;
    tool_options options;
    tool_command command;
    struct timespec began; /* the run (result.c) */
    char *real_path;       /* of the program, where it was loaded beside the tool (load.c) */
    move_told *told;       /* told.c: the record; NULL: there is none */
    tool_native native;
    tool_memory memory;
    tool_locks locks;
    tool_workers workers;
    callback *callbacks[ON_KINDS];
    const weave_block *block_shown; /* to a callback, now; NULL: none is */
    tool_insn_details insn;
    unsigned said; /* by tool_say_limited */
    tool_reasons reasons;
    unsigned checks; /* that were due (check.c) */
    bool is_forked;
    uint32_t next_counter, next_banked; /* those below WEAVE_BANKED have banks */
    weave_places places;
    unsigned tid_offset; /* where the C library keeps a thread's id (tls.c) */
    tool_records records;
    tool_buffers buffers;
    tool_locals locals;
    tool_derivation derive;
    tool_joints joints;
    struct tool_entered *entered; /* of procedures, the newest first (entered.c) */
    bool sums_may_wait, plans;    /* instrumentor: what is inserted is being woven */
    uint64_t *inherited;          /* of a forked child: what had waited then, by counter (sums_run.c) */
    off_t size_before;            /* an exec, of the output; -1: not a file (carried.c) */
    tool_output output;
    tool_json json;
    INL_VEC(tool_refusal) refusals; /* instrumentor: in order of address, nearly */
    finders_unnamed unnamed;        /* of the process that was looked at last */
    const image *walker;            /* likewise: who walks by its unwinder is told old places (finders.h); or NULL */
    struct live_process *held;      /* instrumentor: it has not begun, and ends with this process; or NULL */
    bool held_goes_on;              /* ... or runs on without the tool: another program has started it */
    inlay_process own, *process;    /* the present one; the one that is meant */
    tool_mutating mutating;
    tool_blame blame;
    tool_kept kept;
    struct cfg_thunks *thunks;     /* NULL: not asked yet (points.c) */
    struct tool_gdb *gdb;          /* NULL: there is none */
    struct debug_info *debug_info; /* NULL: not asked for */
    struct tool_ahead *ahead;      /* NULL: nothing is analysed by another process (ahead.h) */
} tool_state;
extern tool_state *tool_now;
void tool_state_begin(tool_state *);
void tool_state_end(tool_state *); /* nothing of it is in use any more */

#endif
