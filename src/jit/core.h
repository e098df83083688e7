/* What the files of the engine's core share: arenas, the metadata that belongs to translated code, and
 * a translation in the making. All under the process's lock unless said otherwise.
 *
 * An arena:
 *
 *     exec (R-X) and write (RW-) are two views of the same memory
 *     +--------+----------------------------->        <-------------------------------+
 *     | shared | bodies, in order of making |  free  | constants and stubs, downwards |
 *     | tails  |                            |        |                                |
 *     +--------+----------------------------->        <-------------------------------+
 *     0                                  code_at    stub_at                          size
 *
 * Bodies stay dense this way: a stub runs once, until its exit is linked.
 *
 * Metadata (fragments, exits, maps) is bump-allocated in one reserved region and dies as a whole with
 * the arenas of its generation, at a flush; so a stub can name its exit with 32 bits, and a signal
 * handler can follow any pointer of a fragment that its thread stands in.
 */
#ifndef INL_JIT_CORE_H
#define INL_JIT_CORE_H

#include "base/arena.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "jit/jit.h"
#include "jit/kept.h"
#include INL_ARCH_HEADER(jit, sizes)

enum {
    JIT_MAX_INSNS = 256, /* upper bound of jit_options.max_block_insns */
    JIT_MAX_BLOCKS = 64,
    JIT_MAX_EXITS = JIT_MAX_INSNS + JIT_MAX_INSNS / 2,
    JIT_MAX_MARKS = 2 * JIT_MAX_INSNS,
    JIT_CHECKED_INSNS = 32,         /* in a run whose code is checked at each entry */
    JIT_FIXUPS = 4 * JIT_MAX_INSNS, /* of a translation that is to be kept */
    JIT_LOOKS = 48,                 /* likewise: pieces of code that it relies on besides its own */
};

/* A piece of an arena's code and the fragment it belongs to. */
typedef struct jit_piece {
    uint32_t at;       /* offset in the arena */
    uint32_t fragment; /* jit_meta_ref */
} jit_piece;

typedef struct jit_arena {
    struct jit_arena *next;
    uint64_t exec;
    uint8_t *write;
    size_t size;
    size_t code_at, stub_at;
    size_t code_ready, stub_ready; /* the kernel has been asked for the memory up to here, and from here on */
    uint32_t exit_tail, indirect_miss, return_miss; /* offsets of the shared tails */
    uint64_t fork_copy;                             /* 0, or the memory that a child about to be forked gets */
    uint64_t epoch;                                 /* retired at the end of this epoch */
    /* Index for signal handlers: append-only, counts stored with release. `code` ascends by offset;
     * `stubs` descends. */
    jit_piece *code, *stubs;
    uint32_t code_count, stub_count, max_pieces;
} jit_arena;

/* --- cache.c --- */
/* An arena with at least `room` free bytes that reaches `app`; NULL with the error filled. May flush
 * everything (then jit.epoch has changed). */
jit_arena *jit_arena_for(uint64_t app, size_t room, inl_error *e);
void *jit_meta_alloc(size_t bytes); /* zeroed, 8-byte aligned; NULL when used up */
/* Retires all arenas and metadata; called by jit_flush_all. */
void jit_cache_retire(void);
void jit_cache_end(void);
bool jit_cache_is_held(void);                         /* memory will be free when other threads have left the cache */
void jit_cache_reclaim(void);                         /* frees what no thread can be in any more */
void jit_cache_give_way(uint64_t low, uint64_t high); /* no arena is there any more, if nobody else is in it */
void jit_cache_dropped(const jit_fragment *f);        /* its code is not used any more */
size_t jit_cache_bytes(void);                         /* code bytes in use, live generation */
jit_arena *jit_arena_of(uint64_t exec);               /* async-signal-safe; live or retired */
static inline uint8_t *jit_write_view(const jit_arena *a, uint64_t exec) { return a->write + (exec - a->exec); }

/* --- fragment.c --- */
bool jit_fragment_publish(jit_fragment *f); /* by application address */
jit_fragment *jit_fragment_find(uint64_t app, bool continues, unsigned version);
void jit_fragment_expect(uint64_t app, bool continues); /* of version 0: it will be looked for soon */
/* Tells handlers that [at, next piece) of the arena's code (or stubs) is of `f`. */
bool jit_piece_add(jit_arena *, jit_fragment *f, uint32_t at, bool stubs);
void jit_relink(jit_fragment *f); /* undoes jit_unlink_exits */

/* --- translate.c --- */
/* The fragment for `app`, translated when needed (lock held). NULL: no code there (the program must get SIGSEGV at that
 * address) with *fault set; or there will be memory later. `continues`: entered by the exit of a run
 * that was cut for length. */
jit_fragment *jit_translate(run_thread *, uint64_t app, bool indirect, bool continues, jit_fault *fault);

/* One instruction, for one execution: with what stands before it, and without, from a page that is not guarded. */
jit_fragment *jit_translate_step(run_thread *, uint64_t app, bool continues, jit_fault *fault);
/* Likewise a piece of straight code, with what stands before its instructions. */
jit_fragment *jit_translate_piece(run_thread *, uint64_t app, bool continues, unsigned insns, jit_fault *fault);
jit_fragment *jit_translate_once(run_thread *, uint64_t app, jit_fault *fault);

/* Likewise from what was kept: jit.now says what it is, kept.c has looked at it. NULL: no room, or out of reach. */
jit_fragment *jit_translate_kept(uint64_t app, bool continues, bool landing, kept_entry *);

/* --- wanted.c: what is dead where an exit leads; lock held, where it is not said otherwise --- */
enum { JIT_WANTS = 1 << 12 };
typedef struct jit_want {
    uint64_t at;
    uint64_t regs;
    uint32_t flags;
} jit_want;
typedef struct jit_wanted {
    bool on;    /* code in front of an exit may destroy what is dead there */
    bool used;  /* it was, or is */
    bool hides; /* also where an instruction in between may fault: no handler of the program's would see it */
    jit_want known[JIT_WANTS];
    inl_map looked; /* pages of code that decisions depend on */
} jit_wanted;
void jit_wanted_begin(void);
void jit_wanted_end(void);
void jit_wanted_clear(void);   /* at a flush */
void jit_wanted_handled(void); /* run_watch.handles_fault; lock not held */
void jit_wanted_stop(void);
void jit_wanted_changed(uint64_t low, uint64_t high); /* other code may be there from now on, or none */
/* For the run in the making: its hooks and options. `keep`: what is looked at for it is noted, until it is woven. */
void jit_wanted_weave(weave_engine *, bool keep);
void jit_wanted_woven(void);
bool jit_wanted_relied(uint64_t low, uint64_t high); /* code that is used relies on what is there; false: no memory */
/* Of these, what the run in the making wants at its entry (behind jit_wanted_weave); what code at `app` does. */
isa_regs jit_wanted_at_entry(isa_regs of);
isa_regs jit_wanted_by_landing(uint64_t app, isa_regs of);
/* A thread has left by an exit for `target`; was about to enter the cache, and comes once more; has left by other ways,
 * with all that the program has. */
void jit_settle_left(run_thread *, uint64_t target);
void jit_settle_again(run_thread *);
void jit_settle_none(run_thread *);
/* Something is to see its registers: must it go on before, by a piece of how many instructions, since some are missing?
 * It does: the piece is jit.now.run. */
bool jit_settle_due(run_thread *);
unsigned jit_settle_length(run_thread *);
void jit_settle_begin(run_thread *);

/* --- kept.c --- */
void jit_kept_begin(void);
void jit_kept_end(void);
void jit_kept_forked(void); /* in the child: it keeps nothing */
void jit_kept_module_gone(const module *);
bool jit_kept_wanted(void); /* the translation in the making: then its fix-ups are listed */
void jit_kept_record(const jit_fragment *, const weave_output *, const isa_fixups *);
/* A translation of version 0, with others behind it; NULL: there is none that fits. */
jit_fragment *jit_kept_take(uint64_t app, bool continues, bool landing);

/* --- stats.c --- */
void jit_stats_begin(void);
void jit_stats_thread_made(run_thread *);
void jit_stats_thread_ends(run_thread *);
void jit_stats_forked(void); /* in the child, lock held */

/* --- step.c, <isa>/step.c --- */
bool jit_steps(const weave_context *); /* does the program trap behind each instruction? */
bool jit_step_end(run_thread *);
void jit_step_begin(run_thread *, const jit_fragment *);
void jit_step_prepare(run_thread *, jit_stepping *);
void jit_step_restore(run_thread *, jit_stepping *, bool done); /* done: the instruction has been executed */
/* Is cache address `pc` where the translation of the instruction at `app` has found that it would? async-signal-safe.
 */
bool jit_step_guards(uint64_t pc, uint64_t app);
/* There is no code at t->ctx.pc: is it where the kernel answers instead? Then that has been done. Lock not held. */
bool jit_old_call(run_thread *t);
bool jit_step_sets(const isa_insn *); /* may the program begin to step itself by it? */

/* --- <isa>/pointers.c: the address of the last floating-point instruction, where the processor tells one --- */
/* Does it store that address? Then in so many bytes, so far behind the begin of its operand; width 0: it does not. */
typedef struct jit_pointer_place {
    uint8_t at, width;
} jit_pointer_place;
jit_pointer_place jit_pointer_told(const isa_insn *);
void jit_pointer_stored(run_thread *, uint64_t app); /* the instruction at `app` has just done so; lock not held */
uint64_t jit_pointer_shown(uint64_t told);           /* as the program is to see it; lock not held */

/* --- sections.c, <isa>/sections.c: restartable sequences --- */
enum { JIT_SIGNATURES = 16 };
#define JIT_USUAL_SIGNATURE                                                                                            \
    0x53053053u /* the C library's; sections of another are known once it has been registered                          \
                 */
typedef struct jit_signature {
    uint32_t value;
    uint64_t abort_code; /* where the kernel leads to, with the signature in front of it */
} jit_signature;
typedef struct jit_sections {
    INL_VEC(jit_section *) all; /* also those that are gone: code may name them */
    uint64_t low, high;         /* all lie in here */
    jit_signature signatures[JIT_SIGNATURES];
    unsigned signature_count;
} jit_sections;
const jit_section *jit_section_at(uint64_t app);         /* lock held */
void jit_sections_named(const isa_insn *);               /* lock held: does it name a descriptor? */
void jit_sections_see(uint64_t address);                 /* lock held: is one there? */
void jit_sections_unmapped(uint64_t low, uint64_t high); /* lock held */
bool jit_sections_area_on(uint64_t page);                /* lock held: the kernel writes to it at any time */
bool jit_sections_abort_code(uint64_t pc);               /* is it there? async-signal-safe */
long jit_sequences(run_thread *, const weave_context *); /* run_watch.sequences */
void jit_sections_interrupted(run_thread *);             /* run_watch.interrupted */
/* May the kernel have found a descriptor that is none, and sent a SIGSEGV wherever the thread was? async-signal-safe */
bool jit_sections_refused(const run_thread *);
/* In the dispatcher, lock held: on RUN_LEAVE_SECTION (true: into the fragment behind what enters the section); when a
 * thread comes that has registered itself; before it goes. */
bool jit_sections_serve(run_thread *);
void jit_sections_arrive(run_thread *);
void jit_sections_depart(run_thread *);
/* The thread, which ran natively, has registered its area; false: no memory. */
bool jit_sections_take(run_thread *, uint64_t area, uint32_t signature);
bool jit_sections_leave(run_thread *); /* the program's area is as natively; false: a signal is to be delivered first */
void jit_sections_end(void);
/* signal.c: the registers are those at the guard of cache address `exec`; ctx gets the program's. */
void jit_section_context(run_thread *, uint64_t exec);
void jit_section_aborted(void);               /* dispatch.S */
uint64_t jit_section_named(const isa_insn *); /* the address that it makes or stores, 0: none */
bool jit_emit_section_entry(isa_code *, const jit_section *, uint64_t app, bool continues);
bool jit_emit_section_exit(isa_code *, bool done); /* done: the last instruction has been guarded */
void jit_emit_section_abort(isa_code *);
bool jit_guard_begin(void *build, isa_code *, const weave_run *, uint32_t i); /* weave_engine.guard, */
bool jit_guard_end(void *build, isa_code *, const weave_run *, uint32_t i);   /* .guard_ends */

/* --- leave.c, <isa>/leave.c: all threads go back to the program's own code --- */
typedef struct jit_way { /* in the program's own code; 0: it has none */
    uint64_t call;       /* a system call, and a return behind it */
    uint64_t back;       /* rt_sigreturn */
} jit_way;
typedef struct jit_way_bytes {
    uint8_t size, bytes[15];
} jit_way_bytes;
extern const jit_way_bytes jit_ways_to_call[], jit_ways_back[]; /* each ends with one of size 0 */
typedef struct jit_last_call {
    long nr, args[6];
} jit_last_call;
typedef struct jit_leaving {
    bool wanted, nudged, way_known;
    uint32_t stage;            /* a futex */
    int64_t since, next_nudge; /* milliseconds */
    jit_way way;
    uint32_t out, others; /* how many are out (a futex), of how many; where there is no way to call nobody can tell */
    int last;             /* the thread that waits for them */
} jit_leaving;
void jit_leave_nudged(void);                /* async-signal-safe */
bool jit_leave_wanted(const run_thread *t); /* is this thread to come? */
void jit_leave_come(run_thread *t);         /* at a boundary, lock not held; returns where it does not go after all */
/* The bases are those of `before`, the stack pointer is sp: the call is made at `at`, which returns by the stack. */
void jit_leave_by(uint64_t sp, const weave_context *before, const jit_last_call *, uint64_t at)
    __attribute__((noreturn));

/* --- stops.c --- */
enum { JIT_WATCHES = 16, JIT_WATCH_BYTES = 64 };
typedef struct jit_watch {
    uint64_t low;
    uint32_t size;
    uint8_t before[JIT_WATCH_BYTES];
} jit_watch;
typedef struct jit_stops {
    bool on;
    uint32_t stage, turns; /* turns: a futex on which threads wait */
    int asked, answered;   /* the last request for a stop; the last that has led to one */
    uint32_t reports_to;   /* who asks for a report; 0: nobody */
    uint32_t taken;        /* who has what was made for him; 0: nobody */
    bool reports;          /* one is being made */
    uint64_t passed;       /* signals */
    inl_map points;        /* addresses of the program's code */
    jit_watch watches[JIT_WATCHES];
    unsigned watch_count;
    jit_debugger debugger;
} jit_stops;
void jit_stops_begin(const jit_debugger *);
void jit_stops_free(void);
void jit_stops_forked(void);
void jit_stops_nudged(int value);    /* async-signal-safe */
void jit_stops_report(uint32_t who); /* likewise */
void jit_stops_taken(uint32_t who);  /* likewise: he has his */
/* Lock held: must the thread stop at the boundary where it is? Does it go on by single instructions? Must a run not
 * go on over this address? */
bool jit_stops_due(const run_thread *);
bool jit_stops_step(const run_thread *);
bool jit_stops_at(uint64_t app);
void jit_stops_come(run_thread *);                /* lock not held */
bool jit_stops_signal(run_thread *, siginfo_t *); /* run_engine.delivers */
void jit_stops_entered(run_thread *);             /* it is about to enter the cache, */
void jit_stops_left(run_thread *);                /* and has come out again: maybe without having done anything */
void jit_stops_delivered(run_thread *, uint64_t before); /* signals have been, the counter was `before` */

/* --- join.c --- */
void jit_join_begin(run_thread *);   /* a thread comes for the first time; lock not held */
void jit_join_restart(run_thread *); /* it is about to leave, or a handler of Inlay's has run; async-signal-safe */

/* --- check.c --- */
void jit_check(void);

/* --- dump.c --- */
void jit_dump(const jit_fragment *f, const weave_run *run, const weave_output *o);

/* --- memory.c --- */
void jit_memory_end(void);
/* As jit_memory_code, but later writes are not noticed; `check` stays as it is. */
size_t jit_memory_peek(uint64_t addr, bool *check);
bool jit_memory_is_known(uint64_t addr); /* something of the program's is mapped there, as far as it has been seen */
bool jit_memory_is_fixed(uint64_t low, uint64_t high); /* code that can be read, and that nobody can write to */
/* Why jit_memory_code had nothing at `app` (or right behind an instruction that begins there). */
void jit_memory_fault(uint64_t app, jit_fault *out);
bool jit_memory_cover(jit_fragment *f, uint64_t low, uint64_t high); /* f translates [low, high) */
void jit_memory_clear(void);                                         /* at a flush: no fragments any more */

/* --- guard.c --- */
void jit_guards_end(void);                         /* all pages are as the program believes */
void jit_guards_lift(uint64_t low, uint64_t high); /* those of a range are */
/* Code on the page is to be translated; `prot` is what the program believes. False: it must be checked each time
 * that it is entered; `never`: it is in any case. */
bool jit_guard(uint64_t page, int prot, bool never);
void jit_unguard_range(uint64_t low, uint64_t high); /* their protection is being changed anyway */
void jit_memory_take_writes(void);                   /* drops pages that the runtime itself wrote to */

/* --- ibl.c --- */
/* The hash of the second table. */
enum { JIT_TABLE2_FACTOR = -0x61c88647, JIT_TABLE2_SHIFT = 20 };

bool jit_ibl_init(void);
void jit_ibl_end(void);
void jit_ibl_expect(uint64_t app);                      /* a landing is about to be added, of version 0 */
void jit_ibl_clear(void);                               /* at a flush: both tables, all threads */
void jit_ibl_enter(run_thread *, const jit_fragment *); /* into the thread's own first-level table */
/* The calling thread's branches to `app`, and to what shares its entry, all go to the dispatcher. It is in its runtime
 * then. */
void jit_ibl_watch(run_thread *, uint64_t app, bool on);
bool jit_ibl_same_entry(uint64_t a, uint64_t b);
void jit_ibl_empty(run_thread *); /* its own table; lock held, not blocked */

/* --- paired.c; lock held --- */
enum { JIT_ENTRIES = 1 << 16, JIT_RETURNS_BYTES = JIT_ENTRIES * sizeof(uint64_t) };
typedef struct jit_paired {
    bool on, never;
} jit_paired;
/* The thread is about to be given a fragment: are calls to be paired from now on (then all is flushed), and has it what
 * that needs? */
void jit_paired_look(run_thread *);
void jit_paired_end(void);                       /* never again */
void jit_paired_empty(run_thread *);             /* its table of returns, which is not blocked or */
void jit_paired_protect(run_thread *, int prot); /* no table: nothing happens; async-signal-safe */
void jit_paired_heed(const weave_run *);         /* what a tool has inserted: may there be pairs? */
struct jit_build;
bool jit_paired_wanted(const struct jit_build *);

/* --- <isa>/call.c: run_engine.call, called --- */
bool jit_call(run_thread *, run_call *);
void jit_called(run_thread *, const run_call *);

/* --- a translation in the making (translate.c, lowering) --- */
typedef struct jit_wanted_exit {
    uint64_t target;
    uint32_t rel32_at; /* in build->code */
    uint8_t told_by;   /* as in jit_exit */
} jit_wanted_exit;
typedef struct jit_wanted_const {
    uint64_t value;
    uint32_t disp_at; /* RIP-relative displacement that ends its instruction */
} jit_wanted_const;
/* Within the translation of an instruction, from `at` on registers in `spilled` are in their slots. */
typedef struct jit_mark {
    uint32_t at;
    uint32_t insn;
    isa_regs spilled;
} jit_mark;

/* Encodes the weaver's map into metadata. */
bool jit_fragment_encode_map(jit_fragment *f, const weave_output *out, const jit_mark *marks, unsigned mark_count);

/* Of a call that is paired: code that depends on the return address, from `at` on. */
typedef struct jit_pair {
    uint64_t back;
    uint32_t at, size; /* 0: there is none */
} jit_pair;

typedef struct jit_build {
    jit_arena *arena;
    isa_code *code;
    const weave_run *run;
    bool cut;                   /* the run ends because of its length */
    bool once;                  /* one instruction, not to be found again, and without snippets before it */
    bool step;                  /* likewise, but with them */
    bool checked;               /* it compares its code with the program's at each entry: `source` */
    unsigned most;              /* instructions, or 0 */
    const jit_section *section; /* that the run lies in, or NULL */
    const module *module;       /* likewise, where code that follows is looked at */
    bool done;                  /* the run's last instruction has just been guarded */
    uint8_t told_by;            /* bytes of the run's last instruction where it tells an address (pointers.c), or 0 */
    isa_regs stored;            /* whose slots hold the program's values where a transfer is to be lowered */
    uint32_t guard_from;        /* the code that the thread's descriptor describes begins there */
    unsigned exit_count, const_count, mark_count, check_bytes, section_bytes;
    jit_pair pair;
    const kept_entry *kept; /* it was made from this; NULL: woven */
    uint32_t landing_at;    /* in the code, where there is one */
    jit_wanted_exit exits[JIT_MAX_EXITS];
    jit_wanted_const consts[JIT_MAX_INSNS];
    jit_mark marks[JIT_MAX_MARKS];
    uint8_t source[JIT_CHECKED_INSNS * ISA_MAX_INSN]; /* the program's bytes, by extent and address */
} jit_build;

/* --- the engine's state --- */

enum { JIT_MAX_ARENAS = 512, JIT_MAX_CHUNKS = 1024, JIT_GUARDS = 1 << 14 };

typedef struct jit_cache { /* cache.c; fixed arrays, so that a signal handler may walk them at any time */
    jit_arena arenas[JIT_MAX_ARENAS];
    uint32_t arena_high; /* slots in use lie below */
    bool something_retired;
    size_t dropped;    /* bytes of code and stubs that are used no more, live generation */
    inl_room meta;     /* JIT_MAX_CHUNKS, mapped as far as they have been used */
    size_t arena_size; /* less under a limit of address space */
    uint64_t chunk_state[JIT_MAX_CHUNKS];
    uint32_t meta_chunk; /* being filled */
    size_t meta_at;      /* in it; the size of a chunk when there is none */
    size_t meta_ready;   /* in it: asked of the kernel up to here */
} jit_cache;

typedef struct jit_memory { /* memory.c */
    inl_ranges regions;
    inl_map pages;   /* page number -> page_use */
    bool pages_late; /* reading one that is missing may take another thread, and so is not done with the lock held */
} jit_memory;
void jit_memory_late(void);
void jit_memory_await(uint64_t addr); /* lock not held: what is translated first will be there */

typedef struct jit_guards { /* guard.c, which says what an entry holds */
    uint64_t table[JIT_GUARDS];
    uint32_t guarded, used;
    uint64_t low, high; /* all guarded pages lie in here */
    bool keys_used;     /* a protection key may forbid reading what runs: such code cannot look at itself */
    bool always_checked;
    uint32_t written; /* entries marked WRITTEN */
} jit_guards;

typedef struct jit_extent {
    uint64_t low, high;
} jit_extent;
typedef struct jit_translation { /* translate.c: the one in the making; used again and again */
    inl_arena arena;
    weave_insn insns[JIT_MAX_INSNS];
    weave_block blocks[JIT_MAX_BLOCKS];
    jit_extent extents[JIT_MAX_BLOCKS];
    unsigned extent_count;
    jit_extent looks[JIT_LOOKS]; /* other code that it relies on, where that is noted */
    unsigned look_count;
    bool notes_looks, looks_full; /* full: there was more */
    weave_run run;
    jit_build build;
    uint32_t source_size; /* bytes in build.source */
    bool undefined;       /* the instruction that was fetched: it will fault */
    uint8_t version;
    isa_fixups fixups; /* of one that is to be kept, or was */
    isa_fixup fixup_room[JIT_FIXUPS];
    uint8_t map_room[JIT_MAX_INSNS * 16 + JIT_MAX_MARKS * 12 + 64];
} jit_translation;

struct jit_table2;
typedef struct jit_state {
    const isa *isa; /* of this process */
    jit_options options;
    jit_leaving leaving;
    jit_stops stops;
    uint64_t epoch; /* grows with each flush; arenas of an older epoch are freed when no thread is in it */
    jit_arena *arenas, *retired;
    uint8_t *meta_base;
    jit_cache cache;
    inl_map by_app;                          /* fragments; key: application address, top bit: continues */
    struct jit_table2 *second[RUN_VERSIONS]; /* of indirect branches: ibl.c; NULL: that version is not in use */
    jit_memory memory;
    jit_guards guards;
    jit_translation now;
    jit_sections sections;
    jit_paired paired;
    jit_wanted wanted;
    jit_kept kept;
    unsigned since_flush, flushes; /* under stress */
    unsigned dispatches;           /* under --debug */
    jit_stats stats;               /* but for what threads that run have in their blocks */
    uint64_t stats_since;
    uint64_t miss; /* the routine that empty entries of tables of indirect branches lead to */
} jit_state;
/* All of it; taken down by jit_end, set up by jit_init. One a process, like run_here: signal handlers must find it. */
extern jit_state jit;

static inline uint32_t jit_meta_ref(const void *p) { return (uint32_t)(((const uint8_t *)p - jit.meta_base) >> 3); }
static inline void *jit_meta_at(uint32_t ref) { return jit.meta_base + ((uint64_t)ref << 3); }

/* --- the architecture's part: <isa>/lower.c, <isa>/glue.c --- */
bool jit_lower(void *build, isa_code *code, const weave_run *run, uint32_t i);
bool jit_lower_exit(void *build, isa_code *code, uint64_t target);
bool jit_lower_end(void *build, isa_code *code, uint64_t target);                 /* behind the last instruction */
isa_regs jit_parks(void *build, const weave_run *run, uint32_t i, isa_regs held); /* weave_engine.parks */
/* The shared tails at an arena's start. */
void jit_emit_tails(jit_arena *);
void jit_emit_stub(isa_code *, const jit_arena *, const jit_exit *);
/* The check in front of a body that is entered indirectly; falls through into it. */
void jit_emit_landing(isa_code *, const jit_arena *, uint64_t app, isa_regs wanted); /* of jit_landing_spills */
void jit_spoil_landing(uint8_t *landing, uint64_t app); /* in the write view: who comes goes on to the miss routine */
void jit_emit_return_landing(isa_code *, const jit_arena *, uint64_t app);
/* Writes a jit_pair's code once more, over what `c` spans; false: it would not be of the same size. */
bool jit_emit_pair_again(isa_code *c, const jit_arena *, uint64_t back);
/* Registers of the program's that wait in their slots in a landing, and in the check at a body's entry. */
extern const isa_regs jit_landing_spills;
void jit_processor(char *out, size_t size); /* what this processor can do, as text */
/* The displacement at `at`, written through `where`, is one to `target` now; false: that is too far. */
bool jit_patch(uint8_t *where, uint64_t at, uint64_t target);
void jit_emit_jump(isa_code *, uint64_t target);
/* At a body's entry: unless the program's memory still holds what the fragment was made from, to the dispatcher
 * with RUN_LEAVE_STALE. `begin` is what jit_emit_check_begin answered. */
size_t jit_emit_check_begin(isa_code *, uint64_t app, bool continues);
void jit_emit_check(isa_code *, size_t begin, const uint8_t *bytes, uint64_t app, uint64_t size);
void jit_emit_check_end(isa_code *);

#endif
