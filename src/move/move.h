/* A plan of moved code: what goes where.
 *
 *     cfg_program_analyse -> move_plan_make (asks the client for snippets, weaves) -> a target commits it
 *
 * The plan knows nothing of files or processes: new code and data at new addresses, patches over old bytes, the map
 * between old and new. All its addresses are assumed addresses: link-time address + `bias` (a bias
 * chosen so that the images of one instrumentation do not overlap; see docs/design.md). What is kept of it beside the
 * code at run time is in carried.h, and how a carried tool is started in boot.h.
 */
#ifndef INL_MOVE_MOVE_H
#define INL_MOVE_MOVE_H

#include "base/error.h"
#include "cfg/program.h"
#include "move/carried.h"
#include "move/records.h"
#include "move/target.h"
#include "weave/weave.h"

/* Counts by constants that the engine placed elsewhere (count.c): the flow graph of a procedure, which of
 * its edges have counters, and what follows: for each term, `counter` += amount x flow of `edge`. */
typedef struct move_flow_edge {
    uint32_t from, to, counter; /* 0: derived */
} move_flow_edge;
typedef struct move_flow_term {
    uint32_t counter, edge;
    uint64_t amount;
} move_flow_term;
typedef struct move_flows {
    uint32_t node_count, edge_count, term_count; /* the first edges are the procedure's blocks */
    const move_flow_edge *edges;
    const move_flow_term *terms;
} move_flows;

/* System calls that somebody has to know of go by way of a gate. */
typedef struct move_gate {
    int32_t at;               /* offset in the thread's frame of the gate's address */
    bool (*matters)(long nr); /* a call of this number; a negative one: it is not known. NULL: no call does */
} move_gate;

typedef struct move_client {
    void *arg;
    /* Both or none. A fresh counter (0: no more); and the flows of a procedure whose counts were placed: to be
     * copied, the answer is their number (0: no memory). Without them counts stay where they were inserted. */
    uint32_t (*new_counter)(void *arg);
    uint32_t (*placed)(void *arg, const move_flows *);
    /* Is the procedure to be moved and shown? NULL: all. */
    bool (*wanted)(void *arg, const cfg_program *, uint32_t proc);
    /* Is it certain that nothing is inserted there? Such a procedure stays where it is, unless another one could
     * not move then, or it makes system calls. NULL: no. */
    bool (*empty)(void *arg, const cfg_program *, uint32_t proc);
    /* Is its old entry to be called by moved code, too? Somebody else has it answered there. NULL: none is. */
    bool (*keeps_entry)(void *arg, const cfg_program *, uint32_t proc);
    /* The procedure's code as one run: its blocks in order of address, instructions at assumed addresses.
     * NULL: nothing is inserted (null rewriting). */
    void (*instrument)(void *arg, const cfg_program *, uint32_t proc, weave_run *run);
    void (*progress)(void *arg, const char *stage, uint64_t done, uint64_t of); /* may be NULL */
    /* A routine that is called with the program's registers (SNIPPET_CONTEXT) instead of a return, and goes on where
     * that would lead, at the new place of whatever instruction. NULL: there is none. */
    void (*go_back)(void);
    weave_options weave;
    move_gate gate;
} move_client;

/* A jump table's copy in new code, and the table. */
typedef struct move_table_copy {
    assumed_addr now, old;
} move_table_copy;

typedef enum move_how {
    MOVE_MOVED,         /* entry holds a 5-byte jump */
    MOVE_MOVED_SHORT,   /* ... a 2-byte jump to a springboard */
    MOVE_MOVED_QUIETLY, /* moved without snippets: it runs before the tool does */
    MOVE_LEFT,          /* left alone, see reason */
    MOVE_UNWANTED,      /* by the user's filter */
} move_how;
typedef struct move_proc { /* by index of cfg procedure */
    uint64_t new_addr;     /* assumed; 0 when not moved */
    uint32_t new_size;
    uint8_t how;
    bool calls_stay;          /* its calls are made where they were: return addresses are the old ones */
    bool renamed;             /* all that name its entry may name the new code: dynamic symbols are to do so */
    const char *reason;       /* NULL or static text */
    uint32_t points, refused; /* snippets asked for; of these not woven */
} move_proc;

/* One entry for every moved instruction: ascending by old address and by new place (first byte of the
 * instruction's snippets; then of itself). The plan keeps them in a shorter form, see below and map.c. */
typedef struct move_map {
    uint64_t old_addr;
    uint32_t new_off;  /* from plan->text_addr: where snippets before it begin */
    uint32_t code_off; /* ... the instruction itself */
} move_map;
typedef struct move_map_group { /* of so many entries, less for the last */
    uint64_t old_addr;
    uint32_t new_off;
    uint32_t at; /* in plan->map_steps */
} move_map_group;

/* Instructions whose state is not wholly the program's own, by index in the map, ascending; see weave.h. */
typedef struct move_state {
    uint32_t index;
    weave_parked before, at;
} move_state;
typedef struct move_fault { /* a snippet's load for instruction `index`; ascending by `from` */
    uint32_t from, to, index;
    isa_regs spilled, junk;
    uint8_t flags_saved;
} move_fault;

/* An instruction of a routine that was written in place of a call, where it may fault. */
typedef struct move_inlined {
    uint32_t at, index; /* in the new code; of the instruction of the program's, in the map */
    uint64_t routine;
} move_inlined;

/* A byte of the new code that switches something on or off (weave_switch). */
typedef struct move_switch {
    uint32_t at, index; /* in the new code; of the instruction, in the map */
    uint32_t number;
    uint8_t on, off;
} move_switch;

typedef struct move_placed {
    uint32_t proc, flows; /* the client's number */
} move_placed;

typedef struct move_plan {
    const cfg_program *cfg;
    uint64_t bias;      /* assumed = link + bias */
    uint64_t text_addr; /* assumed address of the new code; multiple of 4096 */
    uint8_t *text;      /* new code and copies of jump tables */
    size_t text_size;
    move_patch *patches; /* ascending, not overlapping */
    size_t patch_count;
    const move_map_group *map_groups;
    const uint8_t *map_steps;
    size_t map_count; /* entries */
    move_state *states;
    size_t state_count;
    move_fault *faults;
    size_t fault_count;
    move_inlined *inlined; /* ascending by `at` once the plan is made */
    size_t inlined_count;
    move_switch *switches;
    size_t switch_count;
    move_run_counts *runs; /* constant counts that were merged, in groups of runs: ascending by `first` */
    size_t run_count;
    uint8_t *counts; /* what they are, see records.h */
    size_t counts_size;
    move_placed *placed; /* procedures whose counts were placed elsewhere, ascending */
    size_t placed_count;
    bool tells_states; /* what carried.h says is to be there: who may stand in old code is brought to new code by it */
    move_proc *procs;  /* cfg->proc_count */
    uint64_t moved_procs, moved_bytes; /* bytes: of original text */
    bool uses_frame;                   /* any woven code that needs the thread frame: the file must carry a tool */
    bool has_syscalls;                 /* system calls go through the gate */
    void *priv;
} move_plan;

/* For a target, which is only asked. */
inl_status move_plan_make(const cfg_program *, uint64_t bias, const move_target *, const move_client *, move_plan **out,
                          inl_error *);
void move_plan_free(move_plan *);
/* New address of an original instruction (assumed addresses), of its snippets (`code`: of itself); 0 when
 * it has not moved. And back: the original instruction at or before a new address, 0 when it is none. */
assumed_addr move_new_address(const move_plan *, assumed_addr old, bool code);
assumed_addr move_old_address(const move_plan *, assumed_addr now);
static inline assumed_addr move_assume(const move_plan *p, link_addr a) { return (assumed_addr){a.at + p->bias}; }
static inline link_addr move_linked(const move_plan *p, assumed_addr a) { return (link_addr){a.at - p->bias}; }
/* Appends a move_carried_map, with the states behind it where they are told; `low` is the image's lowest link-time
 * address. The bytes so far are a multiple of 8. */
struct inl_bytes;
void move_map_put(const move_plan *, uint64_t low, struct inl_bytes *to);
/* Appends what carried.h says of instructions and their states. `low` is the image's lowest address, as assumed. */
void move_states_put(const move_plan *, assumed_addr low, struct inl_bytes *to);
/* The map's entries: one, or all from one on, in order.
 *     move_map_walk walk = move_map_from(plan, 0);
 *     for (move_map m; move_map_next(&walk, &m);) ... */
typedef struct move_map_walk {
    const move_plan *plan;
    size_t next; /* its number */
    const uint8_t *at;
    move_map last;
} move_map_walk;
move_map move_map_at(const move_plan *, size_t i);
move_map_walk move_map_from(const move_plan *, size_t i);
bool move_map_next(move_map_walk *, move_map *out);
/* The copies of jump tables, ascending; how many, at most `most` of them into `out`. */
size_t move_table_copies(const move_plan *, move_table_copy *out, size_t most);

#endif
