/* What the files behind the public headers share: callbacks, handles, memory, locks.
 *
 * Callbacks that see code run under the engine's lock, on whatever thread met the code. The flag
 * `tool_holds_lock` of a thread says that they do, so that public calls work from everywhere: they
 * take the lock (tool_enter) unless the thread has it.
 */
#ifndef INL_TOOL_STATE_H
#define INL_TOOL_STATE_H

#include "tool/tool.h"
#include "base/arena.h"
#include "base/lock.h"
#include "isa/isa.h"

#include <inlay.h>

/* --- callbacks.c --- */
typedef enum callback_kind {
    ON_IMAGE_LOAD,
    ON_IMAGE_UNLOAD,
    ON_PROC,
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
    ON_KINDS
} callback_kind;
typedef struct callback {
    struct callback *next;
    void (*f)(void);
    void *arg;
} callback;
extern callback *tool_callbacks[ON_KINDS];
/* Calls each callback of a kind with leading arguments and its own `arg`. */
#define TOOL_CALL(kind, type, ...)                                                                                     \
    do {                                                                                                               \
        for (callback *c_ = tool_callbacks[kind]; c_; c_ = c_->next) ((type)c_->f)(__VA_ARGS__, c_->arg);              \
    } while (0)
#define TOOL_CALL_BARE(kind)                                                                                           \
    do {                                                                                                               \
        for (callback *c_ = tool_callbacks[kind]; c_; c_ = c_->next) ((void (*)(void *))c_->f)(c_->arg);               \
    } while (0)

/* --- memory.c --- */
/* Zeroed, never freed; any thread. NULL when there is none. */
void *tool_alloc(size_t bytes);

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
                       ROOT_SUMS, ROOTS } tool_root;
typedef struct tool_heap_root {
    uint64_t magic, next; /* where free memory begins */
    uint64_t start;       /* where it began at inlay_start */
    struct tool_replay *replay, *replay_last;
    void *roots[ROOTS];
    uint64_t numbers[ROOTS]; /* next counter, next procedure id ... */
    const char *program;     /* as it was named */
} tool_heap_root;
/* clang-format on */
tool_heap_root *tool_heap(void); /* NULL in roles without one */

/* --- lock.c --- */
extern __thread bool tool_holds_lock;
bool tool_enter(void); /* true: the lock was taken and tool_leave must give it back */
void tool_leave(bool entered);
extern inl_lock tool_exec_lock, tool_records_lock, tool_output_lock, tool_small_lock;
void tool_locks_fork(int phase); /* 0 take, 1 release in the parent, 2 in the child */

/* --- snippets.c --- */
/* Where snippets made on this thread live; NULL: for ever. */
extern __thread inl_arena *tool_run_arena;
void *tool_snippet_alloc(size_t bytes);

/* --- counters.c --- */
uint32_t tool_counter_fresh(void);
void tool_counters_begin(void);
uint32_t tool_counters_count(void);
void tool_counters_restore(void);                            /* carried: indices as they were given at rewriting time */
bool tool_is_static(const void *p);                          /* in the tool's own image? */
uint64_t tool_counter_total(const void *of, uint32_t index); /* a tool_counter_reader: of all threads */

/* --- derive.c: counts that the rewrite engine placed --- */
struct move_flows;
typedef uint64_t tool_counter_reader(const void *of, uint32_t index);
uint32_t tool_derive_counter(void *arg);                           /* move_client.new_counter */
uint32_t tool_derive_placed(void *arg, const struct move_flows *); /* move_client.placed */
bool tool_derive_used(void);
/* rewrite_hooks.flow_ends; async-signal-safe */
void tool_derive_flow_ends(struct run_thread *, uint32_t number, uint32_t block, bool entered, int64_t times);
void tool_derive_forked(void);        /* in the child: no flow has ended yet */
void tool_derive_report(bool begins); /* a report in the program's midst: the solution is kept for it */
void tool_counter_value_wanted(void);
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
    POINT_PROC_EXIT
} point_kind;
struct inlay_point {
    point_kind kind;
    weave_run *run; /* code points */
    uint32_t index;
    inlay_proc *proc; /* procedure points */
};
typedef struct proc_insert { /* kept, and applied whenever the code is translated */
    struct proc_insert *next;
    inlay_expr code;
    bool predicated;
} proc_insert;
void tool_points_apply(weave_run *, uint32_t insn, inlay_proc *);

/* --- images.c, procs.c --- */
/* In a carried tool there is no module: the handles are what the instrumentor left, and the file is
 * opened again when something is asked that they do not know. */
struct inlay_image {
    module *m;
    const char *path, *name;
    uint64_t low, high, bias;
    unsigned id;
    bool is_main, wanted;
    bool procs_asked;
    const image_proc *procs; /* asked for when first needed; NULL when the file is gone */
    size_t proc_count;
    inlay_proc **made;      /* handles, by index in procs */
    size_t last;            /* the last procedure found */
    struct tool_code *code; /* once asked for (code.c) */
    /* carried: */
    inlay_image *next;
    uint64_t shift;               /* real address - assumed, once the program runs */
    int64_t file_size, file_time; /* as they were */
    image *file;
    bool file_asked;
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
image *tool_image_file(inlay_image *); /* NULL: gone */
void *tool_handle_alloc(size_t bytes); /* zeroed; travels where there is a carried heap */
void tool_handle_free(void *);
const char *tool_handle_string(const char *); /* likewise; or the string itself */
void tool_images_attach(void);                /* carried, before main */
void tool_images_begin(void);                 /* carried, at inlay_start: where they lie now */
/* Does any procedure have snippets at its entry or exit, so that translation must look? */
extern bool tool_proc_points;

/* --- code.c: the static view --- */
extern bool tool_code_inserted; /* is there anything that translation must look for? */
struct cfg_program;
struct cfg_program *tool_code_take(inlay_image *); /* its analysis, if there is one */
bool tool_code_note(weave_insn *);                 /* of the view: something was inserted at it, or at its block */
void tool_code_apply(weave_run *);
/* Each list with something in it, and each result of a replaced procedure; NULL: not these. */
void tool_code_visit(inlay_image *, void (*list)(weave_run *, weave_list *), void (*replaced)(const snippet *));
bool tool_code_touched(const inlay_image *, uint32_t proc); /* of the analysis: is there anything to weave? */
/* Where the run holds a procedure that is replaced: takes it out of sight and returns what replaces it, which
 * tool_code_replace puts in when the rest has been seen to. NULL: there is none. */
const snippet *tool_code_cut(weave_run *);
void tool_code_replace(weave_run *, const snippet *);
void tool_code_replace_calls(weave_run *);
inlay_proc *tool_code_proc(const weave_run *); /* of a view's run */
void tool_code_forget(inlay_image *);

/* --- filter.c --- */
void tool_filter_warn(void);   /* of patterns that match nothing in any image that is loaded */
bool tool_filter_images(void); /* is there a filter? */
bool tool_filter_procs(void);
bool tool_image_matches(const char *path, const char *name);
bool tool_proc_matches(const char *name, const char *const *aliases);
bool tool_address_wanted(uint64_t address); /* lock held */

/* --- insns.c --- */
const isa *tool_isa(void);
void tool_insns_begin(void); /* another run: nothing that was remembered holds */
/* Does the block go on over the run's instruction `index`, at which another one begins? */
bool tool_insn_is_shared(const weave_block *, uint32_t index);
extern const weave_block *tool_block_shown; /* to a callback, now; NULL: none is */

/* --- threads.c, buffers.c --- */
enum { TOOL_HELD_LOCKS = 8 };
typedef struct tool_thread {
    struct tool_thread *next;
    run_thread *owner; /* NULL: free */
    inl_lock flushing; /* its buffers are being emptied */
    bool done;         /* emptied for the last time */
    unsigned held_count;
    inlay_mutex *held[TOOL_HELD_LOCKS];
} tool_thread;
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

/* --- output.c --- */
void tool_output_flush(void);
void tool_output_close(void);
void tool_output_fork_child(void);

/* --- client.c --- */
void tool_client_fill(run_client *);
void tool_client_options(jit_options *); /* what the engine calls when it sees code */
void tool_client_instrument(weave_run *);
void tool_client_image(module *);
bool tool_client_sees_code(void); /* does any callback look at code? */
void tool_say_limited(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- exec.c --- */
void tool_exec_remember(int argc, char **argv, int program);
/* `is_other`: a process that shares memory with its parent, whose output it must leave alone. */
bool tool_exec_plan(const char *path, char *const *argv, bool is_other, run_exec_plan *);

/* --- <isa>/context.c --- */
void tool_syscall_read(const weave_context *, long nr, inlay_syscall *);
void tool_syscall_write(weave_context *, const inlay_syscall *); /* number and arguments */
long tool_syscall_result(const weave_context *);
void tool_syscall_set_result(weave_context *, long);

/* --- <isa>/tls.c --- */
void *tls_new(void);
void tls_free(void *);
uint64_t tls_fs_base(void *);
void tls_prepare(void);          /* in the first thread */
void tls_enter(void *, int tid); /* in the new thread, first of all */
void tls_leave(void);            /* in a thread that ends */
void tls_fork(int phase);        /* the C library's own locks */
void tls_fork_child(void *, int tid);

#endif
