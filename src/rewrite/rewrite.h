/* The rewrite engine: a plan of what goes where, and a writer that applies it to an ELF file.
 *
 *     cfg_program_analyse -> rewrite_plan_make (asks the client for snippets, weaves) -> rewrite_write
 *
 * The plan knows nothing of files: new code and data at new addresses, patches over old bytes, the map
 * between old and new. All its addresses are assumed addresses: link-time address + `bias` (a bias
 * chosen so that the images of one instrumentation do not overlap; see docs/design.md).
 */
#ifndef INL_REWRITE_REWRITE_H
#define INL_REWRITE_REWRITE_H

#include "base/error.h"
#include "cfg/program.h"
#include "weave/weave.h"

/* Where the carried tool lies in every rewritten program's process, and in the instrumentor: so low that its
 * variables' addresses are 32-bit displacements, and above all that fixed programs and their heaps use. */
#define REWRITE_TOOL_BASE   0x70000000ull
#define REWRITE_HEAP_BASE   0x651000000000ull /* the carried heap */
#define REWRITE_REGION_LOW  0x652000000000ull /* the tool's later mappings */
#define REWRITE_REGION_HIGH 0x660000000000ull

/* Counts by constants that the engine placed elsewhere (count.c): the flow graph of a procedure, which of
 * its edges have counters, and what follows: for each term, `counter` += amount x flow of `edge`. */
typedef struct rewrite_flow_edge {
    uint32_t from, to, counter; /* 0: derived */
} rewrite_flow_edge;
typedef struct rewrite_flow_term {
    uint32_t counter, edge;
    uint64_t amount;
} rewrite_flow_term;
typedef struct rewrite_flows {
    uint32_t node_count, edge_count, term_count; /* the first edges are the procedure's blocks */
    const rewrite_flow_edge *edges;
    const rewrite_flow_term *terms;
} rewrite_flows;

typedef struct rewrite_client {
    void *arg;
    /* Both or none. A fresh counter (0: no more); and the flows of a procedure whose counts were placed: to be
     * copied, the answer is their number (0: no memory). Without them counts stay where they were inserted. */
    uint32_t (*new_counter)(void *arg);
    uint32_t (*placed)(void *arg, const rewrite_flows *);
    /* Is the procedure to be moved and shown? NULL: all. */
    bool (*wanted)(void *arg, const cfg_program *, uint32_t proc);
    /* Is it certain that nothing is inserted there? Such a procedure stays where it is, unless another one could
     * not move then, or it makes system calls. NULL: no. */
    bool (*empty)(void *arg, const cfg_program *, uint32_t proc);
    /* The procedure's code as one run: its blocks in order of address, instructions at assumed addresses.
     * NULL: nothing is inserted (null rewriting). */
    void (*instrument)(void *arg, const cfg_program *, uint32_t proc, weave_run *run);
    void (*progress)(void *arg, const char *stage, uint64_t done, uint64_t of); /* may be NULL */
    weave_options weave;
} rewrite_client;

typedef enum rewrite_how {
    REWRITE_MOVED,         /* entry holds a 5-byte jump */
    REWRITE_MOVED_SHORT,   /* ... a 2-byte jump to a springboard */
    REWRITE_MOVED_QUIETLY, /* moved without snippets: it runs before the tool does */
    REWRITE_LEFT,          /* left alone, see reason */
    REWRITE_UNWANTED,      /* by the user's filter */
} rewrite_how;
typedef struct rewrite_proc { /* by index of cfg procedure */
    uint64_t new_addr;        /* assumed; 0 when not moved */
    uint32_t new_size;
    uint8_t how;
    bool renamed;             /* all that name its entry may name the new code: dynamic symbols are to do so */
    const char *reason;       /* NULL or static text */
    uint32_t points, refused; /* snippets asked for; of these not woven */
} rewrite_proc;

typedef struct rewrite_patch { /* over the original bytes */
    uint64_t addr;
    uint8_t size, bytes[15];
} rewrite_patch;

/* One entry for every moved instruction: ascending by old address and by new place (first byte of the
 * instruction's snippets; then of itself). The plan keeps them in a shorter form, see below and map.c. */
typedef struct rewrite_map {
    uint64_t old_addr;
    uint32_t new_off;  /* from plan->text_addr: where snippets before it begin */
    uint32_t code_off; /* ... the instruction itself */
} rewrite_map;
enum { REWRITE_GROUP = 64 };
typedef struct rewrite_map_group { /* of so many entries, less for the last */
    uint64_t old_addr;
    uint32_t new_off;
    uint32_t at; /* in plan->map_steps */
} rewrite_map_group;

/* Instructions whose state is not wholly the program's own, by index in the map, ascending; see weave.h. */
typedef struct rewrite_state {
    uint32_t index;
    weave_parked before, at;
} rewrite_state;
typedef struct rewrite_fault { /* a snippet's load for instruction `index`; ascending by `from` */
    uint32_t from, to, index;
    uint16_t spilled, junk;
    uint8_t flags_saved;
} rewrite_fault;

typedef struct rewrite_run_counts {
    uint32_t first, at; /* in the map; in `counts` */
} rewrite_run_counts;
typedef struct rewrite_placed {
    uint32_t proc, flows; /* the client's number */
} rewrite_placed;

typedef struct rewrite_plan {
    const cfg_program *cfg;
    uint64_t bias;      /* assumed = link + bias */
    uint64_t text_addr; /* assumed address of the new code; multiple of 4096 */
    uint8_t *text;      /* new code and copies of jump tables */
    size_t text_size;
    rewrite_patch *patches; /* ascending, not overlapping */
    size_t patch_count;
    const rewrite_map_group *map_groups;
    const uint8_t *map_steps;
    size_t map_count; /* entries */
    rewrite_state *states;
    size_t state_count;
    rewrite_fault *faults;
    size_t fault_count;
    rewrite_run_counts *runs; /* constant counts that were merged, in groups of runs: ascending by `first` */
    size_t run_count;
    uint8_t *counts; /* what they are, see undo.c */
    size_t counts_size;
    rewrite_placed *placed; /* procedures whose counts were placed elsewhere, ascending */
    size_t placed_count;
    bool tells_states;                 /* the file is to hold what states.h says */
    rewrite_proc *procs;               /* cfg->proc_count */
    uint64_t moved_procs, moved_bytes; /* bytes: of original text */
    bool uses_frame;                   /* any woven code that needs the thread frame: the file must carry a tool */
    bool has_syscalls;                 /* system calls go through the gate */
    void *priv;
} rewrite_plan;

/* `text_at`: link-time address for the new code (rewrite_new_base), multiple of 4096. */
inl_status rewrite_plan_make(const cfg_program *, uint64_t bias, uint64_t text_at, const rewrite_client *,
                             rewrite_plan **out, inl_error *);
void rewrite_plan_free(rewrite_plan *);
/* New address of an original instruction (assumed addresses), of its snippets (`code`: of itself); 0 when
 * it has not moved. And back: the original instruction at or before a new address, 0 when it is none. */
uint64_t rewrite_new_address(const rewrite_plan *, uint64_t old_addr, bool code);
uint64_t rewrite_old_address(const rewrite_plan *, uint64_t new_addr);
/* The map's entries: one, or all from one on, in order.
 *     rewrite_map_walk walk = rewrite_map_from(plan, 0);
 *     for (rewrite_map m; rewrite_map_next(&walk, &m);) ... */
typedef struct rewrite_map_walk {
    const rewrite_plan *plan;
    size_t next; /* its number */
    const uint8_t *at;
    rewrite_map last;
} rewrite_map_walk;
rewrite_map rewrite_map_at(const rewrite_plan *, size_t i);
rewrite_map_walk rewrite_map_from(const rewrite_plan *, size_t i);
bool rewrite_map_next(rewrite_map_walk *, rewrite_map *out);

/* --- the writer (elf*.c) --- */

/* Link-time address behind the image's last segment where new segments can begin. */
uint64_t rewrite_new_base(const image *);
/* Has the writer made it? */
bool rewrite_is_rewritten(const image *);

/* What a rewritten program carries: boot code (position independent, executed) and data (read). The
 * boot code begins with a rewrite_boot_links that the writer fills in. NULL in a library, or where
 * nothing needs the tool. */
typedef struct rewrite_boot_links {
    uint64_t self; /* link-time addresses: of this struct */
    uint64_t data, data_size;
    uint64_t entry;           /* the program's original entry point */
    uint64_t text, text_size; /* the moved code */
    uint64_t map;             /* see rewrite_carried_map */
    uint64_t bias, low;       /* what was assumed; the image's lowest link-time address */
    uint64_t set;             /* of all images that were rewritten together the same: the carried data's id */
    uint64_t dynamic;         /* 1: called as an initialiser (argc, argv, envp); 0: as the entry point */
} rewrite_boot_links;
typedef struct rewrite_carry {
    const uint8_t *boot;
    size_t boot_size;
    uint32_t init_at, entry_at; /* offsets in boot: called as an initialiser; jumped to as entry point */
    const uint8_t *data;
    size_t data_size;
} rewrite_carry;

/* Written into each rewritten image (program and libraries): blocks' new and old link-time addresses,
 * ascending by new, for translation at run time by a tool that the program carries. In the file it is a section
 * ".inlay.map"; libraries are found by an ELF note of owner "Inlay" (type 1: rewrite_boot_links). */
typedef struct rewrite_carried_map {
    uint64_t count;
    uint64_t states; /* offset from here of a rewrite_carried_states (states.h), 0: there is none */
    struct {
        uint32_t new_off, old_off;
    } entries[]; /* from text, from the image's lowest address */
} rewrite_carried_map;

typedef struct rewrite_write_options {
    const rewrite_carry *carry;
    bool has_tool;        /* the program that it belongs to carries a tool, which needs the map */
    uint64_t set;         /* see rewrite_boot_links */
    const char *run_path; /* --with-libs: DT_RPATH to set ("$ORIGIN"), or NULL */
    void (*progress)(void *arg, const char *stage, uint64_t done, uint64_t of);
    void (*notice)(void *arg, const char *what); /* of the written file, for the user; or NULL */
    void *arg;
} rewrite_write_options;
/* Writes `out` (a temporary name, then renamed; the input's mode, never the input itself). */
inl_status rewrite_write(const rewrite_plan *, const rewrite_write_options *, const char *out, inl_error *);

#endif
