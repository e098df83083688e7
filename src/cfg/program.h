/* A whole image, statically: procedures, basic blocks, edges, jump tables.
 *
 * What is found: procedures from symbols, unwind tables, the entry point, init and fini arrays, PLT,
 * call targets, code pointers in data (relative relocations of position-independent files; words that
 * look like code addresses otherwise), and prologues in the gaps. Nothing is guessed silently: a
 * procedure is WHOLE (every way through it is known, and every way into it) or PARTLY known (an indirect
 * jump could not be resolved, bytes do not decode ...), and
 * `reason` says why. An engine that moves code moves WHOLE procedures only.
 *
 * Shape: flat arrays, ascending by address, indices instead of pointers, no heap object per instruction
 * (instructions are decoded again by whoever wants them; a block is decoded from its first byte). All
 * addresses are link-time addresses. A block belongs to exactly one procedure; procedures do not
 * overlap; blocks of one procedure are contiguous in `blocks`, edges of one block in `edges`.
 * Memory: linear in the size of text; everything lives until cfg_program_free.
 */
#ifndef INL_CFG_PROGRAM_H
#define INL_CFG_PROGRAM_H

#include "base/error.h"
#include "image/image.h"
#include "isa/isa.h"

#define CFG_NONE 0xffffffffu

typedef enum cfg_edge_kind {
    CFG_EDGE_FALL,  /* into the next block, no branch */
    CFG_EDGE_TAKEN, /* a conditional branch, taken */
    CFG_EDGE_NOT_TAKEN,
    CFG_EDGE_JUMP,     /* an unconditional jump within the procedure */
    CFG_EDGE_TABLE,    /* an indirect jump through a known table (one edge a distinct target) */
    CFG_EDGE_RETURNED, /* behind a call, when it returns */
    CFG_EDGE_TAIL,     /* a jump (conditional or not) to another procedure: `to` is the block there or
                          CFG_NONE when the target is outside what is known */
} cfg_edge_kind;

typedef struct cfg_edge { /* there are tens of millions of them in large programs */
    uint64_t target : 56; /* address control goes to */
    uint64_t kind : 7;
    uint64_t back : 1; /* closes a loop (its target dominates or precedes in the loop's order) */
    uint32_t from, to; /* blocks; `to` may be CFG_NONE */
} cfg_edge;

enum {                              /* cfg_block.flags */
       CFG_BLOCK_ENTRY = 1,         /* the procedure's first instruction */
       CFG_BLOCK_TABLE = 2,         /* a target of a jump table */
       CFG_BLOCK_LANDING = 4,       /* an exception landing pad */
       CFG_BLOCK_ADDRESS_TAKEN = 8, /* data, a relocation or code (lea) holds this address */
       CFG_BLOCK_OUTSIDE = 16,      /* reached by a direct branch from another procedure */
       CFG_BLOCK_CALL = 32,         /* ends with a call */
       CFG_BLOCK_NO_RETURN = 64,    /* ... which does not return */
       CFG_BLOCK_RETURN = 128,      /* ends with a return */
       CFG_BLOCK_LOOP_HEAD = 256,
       CFG_BLOCK_UNRESOLVED = 512, /* ends with an indirect jump whose targets are not known */
       CFG_BLOCK_TAIL_IND = 1024,  /* ends with an indirect jump that leaves the procedure (tail call
                                      through a pointer, PLT stub): shown by stack depth or unwind state */
       CFG_BLOCK_SYSCALL = 2048,   /* ends with a system call, which may be the last thing that is executed */
};
typedef struct cfg_block {
    uint64_t addr;
    uint32_t size; /* bytes */
    uint32_t proc;
    uint32_t first_edge;
    uint16_t edge_count, insn_count;
    uint32_t flags;
} cfg_block;

typedef enum cfg_table_kind {
    CFG_TABLE_ABSOLUTE, /* entries are 8-byte addresses */
    CFG_TABLE_RELATIVE, /* entries are offsets from `base`, signed and of 4 bytes if nothing else is said */
    CFG_TABLE_CODE,     /* entries are the code itself, each at so many bytes from the one before */
} cfg_table_kind;
typedef struct cfg_table {
    uint64_t jump;        /* address of the indirect jump */
    uint64_t table, base; /* of its first entry; what relative entries are added to (usually = table) */
    uint64_t named_at;    /* address of the instruction that names the table (lea, or the jump or load with
                             the table as displacement); 0: several or unknown, so it cannot be re-aimed */
    uint64_t added_at; /* relative: of the one that names it once more, for the addition (code that is not optimised);
                          0: there is none */
    uint64_t read_at;  /* address of the instruction that reads the entry; 0: there are several */
    uint32_t count;
    uint8_t kind, entry_size;
    uint8_t shift;       /* relative: offsets are shifted to the left by so much */
    bool unsigned_entry; /* relative: they are not negative */
    bool exact;          /* no other entry can be read: what bounds the index says so, or what stands behind the
                            table; else it was read until entries stopped making sense */
    bool broken;         /* an entry that a comparison lets pass leads into an instruction */
    bool ends;           /* the word behind it leads to nothing of the procedure's */
    bool each_names;     /* several instructions read an entry, each names the table by its own operand */
    bool relocated;      /* entries have run-time relocations (an absolute table of a PIE) */
    uint8_t unused[3];   /* named, so that they are set: analyses that are kept are compared byte by byte */
    uint32_t block;      /* that ends with the jump */
} cfg_table;

typedef enum cfg_proc_status { CFG_PROC_WHOLE, CFG_PROC_PARTLY } cfg_proc_status;
enum { /* cfg_proc.flags */
       CFG_PROC_NO_RETURN = 1,
       CFG_PROC_PLT = 2,    /* an import stub */
       CFG_PROC_IFUNC = 4,  /* a resolver: runs while the image is being relocated */
       CFG_PROC_UNWIND = 8, /* described by an unwind entry that begins at its address */
       CFG_PROC_ADDRESS_TAKEN = 16,
       CFG_PROC_EXPORTED = 32, /* a dynamic symbol */
       CFG_PROC_CALLED = 64,   /* a direct call reaches its entry */
       CFG_PROC_GUESSED = 128, /* found by prologue search only */
};
typedef struct cfg_proc {
    uint64_t addr, size; /* size: to the end of its last instruction; padding behind is not part */
    const char *name;    /* NULL when it has none of its own; lives as long as the image */
    const char *reason;  /* static text, NULL for WHOLE */
    uint32_t first_block, block_count;
    uint32_t padding;       /* bytes of padding behind it that nothing uses */
    uint8_t status, source; /* cfg_proc_status; image_proc_source or CFG_SOURCE_* */
    uint16_t flags;
} cfg_proc;
enum { CFG_SOURCE_CALL = 64, CFG_SOURCE_POINTER, CFG_SOURCE_PROLOGUE }; /* beyond image_proc_source */

typedef struct cfg_program {
    image *image;
    const isa *isa;
    cfg_proc *procs;
    cfg_block *blocks;
    cfg_edge *edges;
    cfg_table *tables; /* ascending by `jump` */
    uint32_t proc_count, block_count, edge_count, table_count;
    uint64_t text_bytes, covered_bytes; /* executable section bytes; those in WHOLE procedures */
    void *priv;
} cfg_program;

typedef struct cfg_options {
    void (*progress)(void *arg, const char *stage, uint64_t done, uint64_t of); /* may be NULL */
    void *arg;
} cfg_options;

/* The image must stay open as long as the program. */
inl_status cfg_program_analyse(image *, const cfg_options *, cfg_program **out, inl_error *);
void cfg_program_free(cfg_program *);
/* A branch that skips a lock prefix (`je 1f; lock; 1: cmpxchg`) counts as one to the prefix: the locked
 * instruction does the same and more. So the edge leads to the block that begins with the prefix, and
 * block_at answers that block for the skipping address too.
 * Index of the block that begins at (block_at) or covers (block_covering) an address, or CFG_NONE. */
uint32_t cfg_block_at(const cfg_program *, uint64_t addr);
uint32_t cfg_block_covering(const cfg_program *, uint64_t addr);
/* What control comes to at an address, padding passed over: the block *at, an instruction *at that only
 * traps, or something that is not known. */
typedef enum cfg_sight { CFG_SEES_BLOCK, CFG_SEES_TRAP, CFG_SEES_UNKNOWN } cfg_sight;
cfg_sight cfg_look_at(const cfg_program *, uint64_t addr, uint64_t *at);
uint32_t cfg_proc_covering(const cfg_program *, uint64_t addr);
/* Is it mere padding, up to the next procedure? What data or a label lead to may be. */
bool cfg_proc_is_padding(const cfg_program *, uint32_t proc);
const cfg_table *cfg_table_at(const cfg_program *, uint64_t jump);
/* Stretch i of the text, ascending: text_bytes is the sum of all. False: there are not so many. */
bool cfg_text_stretch(const cfg_program *, size_t i, uint64_t *addr, uint64_t *end);
/* False: a procedure of another image that is known, by its name, never to return. */
bool cfg_name_returns(const char *name);
/* What -pg has each procedure call (with -mfentry as its first instruction): it returns and never throws.
 * NULL-terminated. */
extern const char *const cfg_call_counters[];
/* When the walk that told which edges lead back met a block of those of one procedure or more, and the last one that it
 * met from there: an edge leads back from where its target's numbers hold its origin's. False: no memory. */
typedef struct cfg_loop_order {
    uint32_t number, last;
} cfg_loop_order;
bool cfg_loop_orders(const cfg_program *, uint32_t first_block, uint32_t count, cfg_loop_order *out);
/* The distinct targets of a table, in table order: entry i's target address. */
uint64_t cfg_table_target(const cfg_program *, const cfg_table *, uint32_t i);

#endif
