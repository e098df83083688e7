/* What the files of the whole-program analysis share: the state of one analysis under way.
 *
 *     seeds ----> todo --explore--> marks on text bytes, calls, jumps elsewhere, pointers
 *                  ^                       |
 *                  |   callee returns <----+----> indirect jumps --resolve--> tables
 *                  +-----------------------------------------------------------+
 *
 * One byte of marks stands for each byte of text and is all that is kept of an instruction. Whoever
 * needs blocks (resolving an indirect jump, the final result) makes them from the marks again, for one
 * procedure (a view). Code behind a call is only looked at when something in the callee may return, so
 * that what does not return needs no list of names.
 *
 * Invariant: a byte carries MARK_INSN when an instruction was decoded there, MARK_BODY when it is a
 * later byte of one; both only where instructions overlap, and then the procedure has a reason not to be
 * whole.
 */
#ifndef INL_CFG_WORK_H
#define INL_CFG_WORK_H

#include "base/map.h"
#include "base/vec.h"
#include "cfg/program.h"

enum {
    MARK_INSN = 1,
    MARK_BODY = 2,
    MARK_BLOCK = 4,  /* a block begins here */
    MARK_TERM = 8,   /* an instruction that ends its block */
    MARK_NORET = 16, /* a call that does not return, as far as is known yet */
    MARK_ENTRY = 32, /* a procedure begins here */
    MARK_ROOT = 64,  /* may be entered from elsewhere: registers hold anything */
    MARK_HELD = 128, /* a relocation's address: mostly code, seldom data in a text */
};

/* clang-format off */
typedef enum cfg_sem { /* what matters of an instruction to whoever follows values */
    SEM_OTHER, SEM_MOV, SEM_LEA, SEM_MOVSX, SEM_MOVZX, SEM_ADD, SEM_SUB, SEM_AND, SEM_XOR, SEM_CMP,
    SEM_TEST, SEM_SHL, SEM_SHR, SEM_PUSH, SEM_POP, SEM_LEAVE, SEM_CDQE, SEM_NOP, SEM_INT3, SEM_HALT, SEM_INC,
    SEM_SELECT, SEM_SCAN, SEM_SYSCALL,
} cfg_sem;
/* clang-format on */

typedef struct cfg_work cfg_work;
typedef struct cfg_shape { /* an instruction as `what dst, src` */
    uint8_t sem;
    isa_operand dst, src;
    isa_mem mem; /* the operand that is memory, if one is */
    bool has_dst, has_src, has_mem;
    bool has_step; /* adds `step` to the register step_reg besides */
    uint8_t step_reg;
    int64_t step;
} cfg_shape;

/* What is known of registers along a straight run of instructions: addresses that several instructions name, and those
 * that instructions read by. */
typedef struct cfg_trail {
    uint64_t value[64];
    isa_regs known;
} cfg_trail;
typedef struct cfg_name { /* an address that an instruction names */
    uint64_t to;
    bool sure;    /* certainly an address; else a number that may be one, or something inside what is named */
    bool of_code; /* if it lies in code, something may go there */
    bool operand; /* the instruction reads or writes there */
} cfg_name;
enum { CFG_MAX_NAMES = 3 };

typedef struct cfg_machine { /* per instruction set */
    const isa *isa;
    isa_regs call_clobbers; /* registers that a procedure need not preserve */
    uint8_t stack, frame;   /* register numbers */
    uint8_t dwarf_stack;    /* the stack pointer's number in unwind tables */
    uint8_t pushed;         /* bytes that a call pushes */
    uint8_t unit;           /* instructions are multiples of so many bytes, and aligned to them */
    bool small_tables;      /* tables' entries may be of 1 or 2 bytes, unsigned, scaled */
    /* Jumps through these registers are calls, if the stack is as at the entry: so that landings of calls can be
     * told from others. */
    isa_regs tail_regs;
    isa_regs results;                         /* registers in which a procedure hands back a value */
    const char *const *sems[SEM_SYSCALL + 1]; /* NULL-terminated lists of mnemonics */
    /* Conditions of branches behind a comparison, unsigned, as isa_insn.cond has them; the opposite of each differs in
     * the lowest bit. */
    struct {
        uint8_t at_most, below, equal;
    } conds;
    /* Is the byte a prefix that a branch may skip and change nothing by it but how atomic the instruction
     * is? `je 1f; lock; 1: cmpxchg` */
    bool (*skippable)(uint8_t byte);
    /* Bytes of padding at p: the size of one padding instruction or filler byte, 0: none. */
    size_t (*padding)(const isa *, const uint8_t *p, size_t have);
    /* Something that no compiler writes as code, but linkers between pieces of it? */
    bool (*filler)(const uint8_t *p, size_t have);
    /* Does a procedure plausibly begin here? */
    bool (*prologue)(const uint8_t *p, size_t have);
    void (*shape)(const cfg_work *, const isa_insn *, cfg_shape *out);
    /* The addresses that an instruction names; `trail` is what came before it, and is brought up to date. */
    unsigned (*names)(const cfg_work *, const isa_insn *, cfg_trail *trail, cfg_name out[CFG_MAX_NAMES]);
} cfg_machine;
extern const cfg_machine cfg_machine_x86_64, cfg_machine_aarch64;

/* isas.c */
const cfg_machine *cfg_machine_for(const isa *); /* NULL: not known */
extern const char *const cfg_no_return[];        /* imports that do not return, NULL-terminated, sorted */
bool cfg_means(const cfg_machine *, const char *mnemonic, cfg_sem);

typedef struct cfg_region { /* a stretch of text */
    uint64_t addr, end;
    const uint8_t *bytes;
    size_t base; /* of its marks */
    bool stubs;  /* a procedure linkage table */
} cfg_region;

typedef struct cfg_data { /* a stretch of the file's bytes in memory, with a bit for each */
    uint64_t addr, end;
    size_t base;
} cfg_data;

typedef struct cfg_draft { /* a procedure under way */
    uint64_t addr;
    uint64_t end; /* code at or behind this is not its own */
    const char *name, *reason;
    uint32_t waits;  /* those who want to know whether it returns, CFG_NONE: none */
    uint32_t origin; /* the first found to jump into it, CFG_NONE: none */
    uint16_t flags;
    uint8_t source;
    bool sized;         /* `end` was declared; else it is where the next one begins */
    bool returns;       /* something in it may return */
    bool never_returns; /* known by name */
    bool dirty;         /* explored further since its indirect jumps were looked at */
    bool jumps;         /* has indirect jumps */
    bool put_off;       /* ... of which some wait for an open-ended look */
    bool taken_inside;  /* addresses inside it are taken */
    bool absent;        /* its bytes turned out to be no code: dropped at the end */
} cfg_draft;

typedef struct cfg_wait {
    uint64_t site; /* the call; 0: a tail call */
    uint32_t next, proc;
    uint8_t size; /* of the call instruction */
} cfg_wait;

typedef enum cfg_event_kind {
    EVENT_CALL,   /* `from` calls `to` */
    EVENT_AWAY,   /* jumps (or falls) to another procedure */
    EVENT_INSIDE, /* calls a few instructions of the procedure's own, as if it jumped there */
    EVENT_NAMES,  /* names the address of code */
    EVENT_INDIRECT,
    EVENT_RETURNS,
    EVENT_DATA,    /* names something that is not code */
    EVENT_OPERAND, /* reads or writes in the text */
} cfg_event_kind;
typedef struct cfg_event {
    uint64_t from, to;
    uint32_t proc;
    uint8_t kind, size;
} cfg_event;

typedef struct cfg_note { /* a flag that a block will have */
    uint64_t addr;
    uint32_t flags;
} cfg_note;

typedef struct cfg_pointer { /* data or code that holds the address of something inside a procedure */
    uint64_t to, at;
    bool sure;    /* certainly an address (a relocation, lea); else a word that looks like one */
    bool in_code; /* `at` is an instruction */
    bool used;    /* leads to an instruction */
} cfg_pointer;

typedef enum cfg_way {
    WAY_NEW,
    WAY_TABLE, /* as the table says */
    WAY_GOTO,  /* to anything in the procedure whose address is taken, and as the table says, if any */
    WAY_TAIL,
    WAY_UNKNOWN
} cfg_way;
typedef struct cfg_indirect {
    uint64_t site;
    uint32_t proc;
    uint32_t table; /* index in work.tables, CFG_NONE: none */
    uint32_t spare; /* the one it once had */
    uint8_t way;
    bool leaves; /* WAY_GOTO: may leave the procedure as well */
} cfg_indirect;

typedef struct cfg_span {
    uint64_t addr, end;
} cfg_span;

typedef struct cfg_fresh { /* a procedure that somebody calls or jumps to, and is not known yet */
    uint64_t addr;
    cfg_wait wait;
    uint16_t flags;
    uint8_t source;
} cfg_fresh;

struct cfg_work {
    image *image;
    const isa *isa;
    const cfg_machine *machine;
    const cfg_options *options;
    uint8_t *sems; /* by opcode identity */
    bool fixed;    /* addresses are absolute: any constant may be one */
    uint64_t got;  /* what large numbers in instructions may count from, 0: nothing */
    bool go;       /* stacks change: who loads the stack pointer from memory may come back */
    bool failed;   /* out of memory */

    INL_VEC(cfg_region) regions;
    uint8_t *marks;
    size_t mark_count;
    uint64_t low, high;   /* of all regions */
    uint64_t least, most; /* what code may name: the image, and a good deal around it */
    INL_VEC(cfg_data) data;
    uint64_t *named;    /* bits: code or a relocation names this address, so something begins there */
    uint64_t *hinted;   /* ... or some constant may name it */
    uint64_t *operands; /* bits, as marks: some instruction reads or writes there */
    uint64_t *sites;    /* likewise: it may be one of `by_site`, which is large, and asked for at most blocks' ends */

    INL_VEC(cfg_draft) procs; /* by number, in order of discovery */
    INL_VEC(uint32_t) order;  /* numbers by address */
    INL_VEC(uint64_t) starts; /* addresses, in the same order */
    size_t settled;           /* so many are listed, less those that were dropped */
    INL_VEC(cfg_fresh) fresh;
    INL_VEC(cfg_wait) waits;

    INL_VEC(uint64_t) todo;
    INL_VEC(cfg_event) events; /* held back while trying */
    INL_VEC(uint64_t) trial;   /* places whose marks are new in this trial */
    bool trying, trial_failed, trial_overlaps, trial_traps;

    INL_VEC(cfg_note) notes;
    INL_VEC(uint64_t) skips;       /* branch targets behind such a prefix */
    INL_VEC(uint64_t) overlaps;    /* instructions that overlap others, in whatever procedure they are in the end */
    INL_VEC(cfg_pointer) pointers; /* sorted by `to` */
    INL_VEC(cfg_pointer) found;    /* new ones */
    INL_VEC(cfg_indirect) indirects;
    inl_map by_site; /* their numbers */
    INL_VEC(cfg_table) tables;
    INL_VEC(cfg_span) table_spans; /* sorted: where the tables lie */
    INL_VEC(uint64_t) table_bases; /* sorted: code that tables' entries count from */
    uint32_t current;              /* procedure that is being explored */
    cfg_trail handed;              /* what is known of registers by a jump to here */
    uint64_t handed_to;
};

#define cfg_keep(w, v, ...)                                                                                            \
    do {                                                                                                               \
        if (!inl_vec_push((v), __VA_ARGS__)) (w)->failed = true;                                                       \
    } while (0)

/* program.c: w->sems; false: out of memory */
bool cfg_name_sems(cfg_work *w);

/* text.c */
bool cfg_text_open(cfg_work *w, inl_error *e);
const cfg_region *cfg_region_at(const cfg_work *w, uint64_t addr); /* or NULL */
uint8_t *cfg_mark(const cfg_work *w, uint64_t addr);               /* or NULL: no text */
/* Notes that an instruction reads or writes at an address of the text; does one, somewhere in these bytes? */
void cfg_name_operand(cfg_work *w, uint64_t addr);
/* An indirect jump is found at an instruction; which one is there? NULL: none. */
void cfg_add_site(cfg_work *w, uint64_t site, uint64_t number);
cfg_indirect *cfg_indirect_at(const cfg_work *w, uint64_t site);
bool cfg_holds_operand(const cfg_work *w, const cfg_region *, uint64_t addr, unsigned size);
/* Is everything from addr to end padding? */
bool cfg_is_padding(const cfg_work *w, uint64_t addr, uint64_t end);
/* The first address at or behind addr, before end, that is no padding; or end. */
uint64_t cfg_skip_padding(const cfg_work *w, uint64_t addr, uint64_t end);
/* Notes that something begins at an address of the image, surely or perhaps. Is there such a place, or the end of its
 * data, behind `addr` and up to `until`? */
void cfg_name_data(cfg_work *w, uint64_t addr, bool surely);
bool cfg_has_name(const cfg_work *w, uint64_t addr, uint64_t until, bool surely);
bool cfg_decode(const cfg_work *w, uint64_t addr, uint64_t end, isa_insn *out);

/* procs.c */
void cfg_procs_seed(cfg_work *w);
/* The procedure that begins at or before addr and reaches beyond it, be it only by the gap behind
 * it; CFG_NONE. */
uint32_t cfg_proc_near(const cfg_work *w, uint64_t addr);
void cfg_procs_merge(cfg_work *w); /* takes in w->fresh */
uint32_t cfg_procs_add(cfg_work *w, uint64_t addr, uint64_t end, const char *name, uint8_t source,
                       uint16_t flags); /* unsorted: cfg_procs_settle must follow */
void cfg_procs_settle(cfg_work *w);
void cfg_procs_drop(cfg_work *w); /* takes those that are absent off the list */
void cfg_wait_for(cfg_work *w, uint32_t callee, cfg_wait wait);
/* The procedure at `from` returns when that at `to` does, which control reaches otherwise than by a call or a branch.
 */
void cfg_wait_for_piece(cfg_work *w, uint64_t from, uint64_t to);
void cfg_returns(cfg_work *w, uint32_t proc);
static inline bool cfg_inside(const cfg_draft *p, uint64_t addr) { return addr >= p->addr && addr < p->end; }
void cfg_blame(cfg_work *w, uint32_t proc, const char *reason);

/* explore.c */
void cfg_explore(cfg_work *w);                              /* until todo is empty */
void cfg_enter(cfg_work *w, uint64_t addr, uint32_t flags); /* a way into code: noted, put on todo */
/* The address of the instruction that runs when control goes to addr: addr, or the prefix it skips. */
uint64_t cfg_behind_prefix(const cfg_work *w, uint64_t addr);
/* Explores from addr in `proc`; where that makes no sense everything is as before, and false. */
bool cfg_try(cfg_work *w, uint32_t proc, uint64_t addr);

/* thunks.c: an indirect jump that is written as a jump, call or return */
typedef struct cfg_leap {
    isa_operand value; /* what it leads to */
    isa_mem mem;       /* ... if that is in memory */
    bool before;       /* ... in the instruction before it, which stores it */
    bool pushed;       /* ... below where the stack was */
    bool plain;        /* the jump that it leads to is written as one */
} cfg_leap;
typedef enum cfg_detour {
    CFG_GOES_ON,
    CFG_LEAPS,
    CFG_COMES_BACK, /* a call that has the effect of a return */
} cfg_detour;
/* `before`: the instruction that is executed before it, or NULL. *out is set where it leaps. */
cfg_detour cfg_leaps(const cfg_work *w, const isa_insn *in, const isa_insn *before, cfg_leap *out);

/* seeds.c */
void cfg_seed_pointers(cfg_work *w);
void cfg_seed_landing_pads(cfg_work *w);
bool cfg_follow_pointers(cfg_work *w); /* true: something new */
bool cfg_search_gaps(cfg_work *w);
bool cfg_search_traps(cfg_work *w); /* code that only a handler can go to */
/* Is the place an entry of a table that was read? Tables are sorted by place first. */
bool cfg_in_table(const cfg_work *w, uint64_t at);
void cfg_index_tables(cfg_work *w);

/* view.c: the blocks of one procedure */
typedef struct cfg_view_edge {
    uint64_t target;
    uint32_t from, to; /* blocks of the view; `to` CFG_NONE: elsewhere */
    uint8_t kind;
} cfg_view_edge;
typedef struct cfg_view_block {
    uint64_t addr, last, end; /* first and last instruction, end */
    uint64_t writes;          /* registers, when has_writes */
    uint32_t first_edge, edge_count;
    uint32_t first_pred, pred_count;
    uint32_t insns, seen;
    uint32_t flags; /* CFG_BLOCK_* that follow from the last instruction */
    bool has_writes, term;
    bool indirect; /* ends with an indirect jump */
} cfg_view_block;
typedef struct cfg_point { /* before an instruction of a block */
    uint32_t block, index;
} cfg_point;
typedef struct cfg_place { /* where a search is to go on, for one of the things that it looks for */
    uint32_t number;
    cfg_point at;
} cfg_place;
enum { CFG_VIEW_CACHE = 4 };
typedef struct cfg_view_cache {
    uint32_t block;
    INL_VEC(isa_insn) insns;
} cfg_view_cache;
typedef struct cfg_view {
    cfg_work *work;
    uint32_t proc;
    INL_VEC(cfg_view_block) blocks;
    INL_VEC(cfg_view_edge) edges; /* by `from` */
    INL_VEC(uint32_t) preds;      /* edge numbers, by `to` */
    INL_VEC(uint32_t) stack;      /* for walks */
    INL_VEC(cfg_place) places;    /* likewise, when several things are looked for */
    INL_VEC(uint64_t) seen;       /* ... bits, by thing and block */
    uint32_t epoch;
    cfg_view_cache cache[CFG_VIEW_CACHE];
    unsigned next_cache;
    uint32_t budget;          /* block visits left for this procedure */
    INL_VEC(int64_t) heights; /* height.c: by block */
    bool has_heights;
} cfg_view;
void cfg_view_make(cfg_view *v, cfg_work *w, uint32_t proc, bool with_preds);
void cfg_view_free(cfg_view *v);
uint32_t cfg_view_find(const cfg_view *v, uint64_t addr); /* block that covers it, or CFG_NONE */
/* The block's instructions, valid until four other blocks are asked for. */
const isa_insn *cfg_view_insns(cfg_view *v, uint32_t block, uint32_t *count);
uint64_t cfg_view_writes(cfg_view *v, uint32_t block);
/* A call's clobbers included; for cfg_changes only those registers that certainly hold another value behind
 * a call: what a compiler relies on behind a call, it knows the callee to preserve. */
uint64_t cfg_insn_writes(const cfg_work *w, const isa_insn *in);
uint64_t cfg_changes(const cfg_work *w, const isa_insn *in);

/* values.c: where a register's value comes from */
typedef struct cfg_def {
    cfg_point at;
    isa_insn in;
} cfg_def;
enum { CFG_MAX_DEFS = 40 };
typedef struct cfg_defs {
    cfg_def def[CFG_MAX_DEFS];
    unsigned count;
    bool unknown; /* other values may arrive as well */
} cfg_defs;
typedef struct cfg_wanted { /* what a definition is looked for of */
    unsigned reg;
    const isa_mem *slot; /* NULL: the register */
} cfg_wanted;
typedef enum cfg_finding { CFG_FOUND_NONE, CFG_FOUND_DEF, CFG_FOUND_UNKNOWN } cfg_finding;
/* The last definition in a block, before instruction `index` (CFG_NONE: in all of it). */
cfg_finding cfg_search_block(cfg_view *v, uint32_t block, uint32_t index, const cfg_wanted *what, cfg_def *out);
bool cfg_ends_at_entry(const cfg_view *v, uint32_t block); /* control may come there from outside */
void cfg_shape_of(const cfg_work *w, const isa_insn *in, cfg_shape *out);
void cfg_reach(cfg_view *v, unsigned reg, cfg_point at, cfg_defs *out);
bool cfg_is_slot(const cfg_work *w, const isa_mem *m);
void cfg_reach_slot(cfg_view *v, const isa_mem *slot, cfg_point at, cfg_defs *out);
/* What a register certainly holds before `at`: a number, an address, or the sum of such. */
bool cfg_exact_value(cfg_view *v, unsigned reg, cfg_point at, uint64_t *value);
bool cfg_is_exact(cfg_view *v, unsigned reg, cfg_point at); /* ... or one of several such */

/* restores.c: does the jump at the block's end go on with registers that were kept where it learns its target, as
 * longjmp does, or on a stack that it is given? */
bool cfg_restores(cfg_view *v, uint32_t block);

/* constant.c */
typedef struct cfg_constant {
    uint64_t value;
    uint64_t named_at; /* the instruction that names it, 0: several, or computed */
} cfg_constant;
bool cfg_constant_of(cfg_view *v, unsigned reg, cfg_point at, cfg_constant *out);

/* bound.c: how many values an index has at a place. What stands above its low `size` bytes is taken for zero:
 * a comparison of 32 bits bounds the whole register where code is right. */
typedef enum cfg_limit_kind {
    CFG_LIMIT_NONE,
    CFG_LIMIT_MOST,     /* all that a mask, a shift or the type leaves: the table may be shorter */
    CFG_LIMIT_DISPUTED, /* what a comparison lets pass, but something else begins before that: one of them is wrong */
    CFG_LIMIT_COMPARED, /* what a comparison lets pass: the table's length, as a rule */
} cfg_limit_kind;
typedef struct cfg_limit {
    uint64_t count;
    uint8_t kind;
} cfg_limit;
cfg_limit cfg_bound(cfg_view *v, unsigned reg, unsigned size, cfg_point at);

/* entries.c: a table's entries. What the table's own place adds to what bounds its index. */
cfg_limit cfg_limit_of_table(const cfg_work *w, const cfg_table *t, cfg_limit limit);
/* Reads as many as there may be; false when it is no table. */
bool cfg_read_table(cfg_view *v, cfg_table *t, cfg_limit limit);
uint64_t cfg_read_target(image *im, const cfg_table *t, uint32_t i, bool *ok);
/* The first of a table's entries that leads into the view's procedure, what may be a part of it, or what it is a part
 * of
 * (*own: not what may be one), or CFG_NONE: none that is near. */
uint32_t cfg_first_inside(const cfg_view *v, const cfg_table *t, bool *own);
uint32_t cfg_first_code(const cfg_view *v, const cfg_table *t); /* ... that may lead to any code at all */
/* An entry that no index leads to: compilers that know so let it lead to the end of the procedure's code. */
bool cfg_is_hole(const cfg_work *w, uint32_t proc, uint64_t target);
/* Nothing is known to call it, to jump to it or to take its address: it may be a piece of any procedure. */
bool cfg_has_unknown_origin(const cfg_draft *p);
/* What is no jump table: may it be one of pointers to procedures? */
bool cfg_may_be_pointers(const cfg_view *v, const cfg_table *t);

/* table.c */
/* Looks at the indirect jumps of procedures that have changed; true: there is new code. Tables whose length
 * nothing tells are only read when `open_ended`: the more code is known by then, the sooner it shows where
 * one stops making sense. */
bool cfg_resolve(cfg_work *w, bool open_ended);

/* height.c: where the stack pointer is behind a block's last instruction, counted from the entry; false
 * when that cannot be said */
bool cfg_stack_height(cfg_view *v, uint32_t block, int64_t *height);

/* build.c */
inl_status cfg_build(cfg_work *w, cfg_program *out, inl_error *e);
void cfg_mark_loops(cfg_program *p);

#endif
