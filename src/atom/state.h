/* ATOM's interface, a layer on the public headers: what its files share.
 *
 * A tool made by `inlay atom` is an Inlay tool whose main is atom_main. Its instrumentation file runs in
 * the first image callback; calls of the whole program (ProgramBefore, ...) are remembered in memory that
 * travels, and made when the program starts and ends.
 */
#ifndef INL_ATOM_STATE_H
#define INL_ATOM_STATE_H

#include <inlay.h>

#include <instrument.h>
#include <inlay_atom.h>

#include "atom/xlate.h"

#include <stdarg.h>

/* --- handles: Inlay's own under ATOM's names; an entry is its procedure --- */
static inline inlay_image *atom_image(Obj *o) { return (inlay_image *)o; }
static inline inlay_proc *atom_proc(Proc *p) { return (inlay_proc *)p; }
static inline inlay_proc *atom_entry_proc(Entry *e) { return (inlay_proc *)e; }
static inline inlay_block *atom_block(Block *b) { return (inlay_block *)b; }
static inline inlay_insn *atom_insn(Inst *i) { return (inlay_insn *)i; }

/* --- program.c --- */
enum { ATOM_MAX_ARGS = 12 };
typedef struct atom_call { /* of the whole program or an object; made by inlay_alloc */
    struct atom_call *next;
    void (*code)(void);
    unsigned count;
    uint64_t args[ATOM_MAX_ARGS];
} atom_call;
typedef struct atom_list {
    atom_call *first, *last;
} atom_list;
typedef struct atom_state { /* travels */
    atom_list program_before, program_after, object_before, object_after;
    bool instrumented;
} atom_state;
/* The tool is wrong: a line, and nothing is run or written. */
void atom_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *atom_alloc(size_t bytes); /* travels; never NULL */
bool atom_is_object(inlay_image *);

/* --- proto.c --- */
/* clang-format off */
typedef enum atom_kind {
    ATOM_INT, ATOM_UNSIGNED, ATOM_LONG, ATOM_STRING, ATOM_ARRAY, ATOM_POINTER, ATOM_VALUE, ATOM_REGV,
    ATOM_FREGV, ATOM_XLATE
} atom_kind;
/* clang-format on */
typedef struct atom_type {
    atom_kind kind;
    size_t bytes; /* ATOM_ARRAY: of all of it */
} atom_type;
typedef struct atom_proto {
    struct atom_proto *next;
    char *name;
    void (*code)(void);
    unsigned count;
    atom_type types[ATOM_MAX_ARGS];
} atom_proto;
const atom_proto *atom_proto_named(const char *name); /* fails when there is none */
void (*atom_routine_named(const char *name))(void);   /* likewise */
/* One argument: a constant, or what is still to be computed where the call is made. */
typedef struct atom_arg {
    atom_kind kind;
    uint64_t value;
} atom_arg;
void atom_args(const atom_proto *, va_list *, atom_arg out[ATOM_MAX_ARGS]);

/* --- resolve.c --- */
enum { ATOM_NAME_SIZE = 512 }; /* of a name without its ending, kept for a stub */

/* --- walk.c --- */
bool atom_is_stub(inlay_proc *); /* an import stub: has no blocks here, in either engine */

/* --- procs.c --- */
long atom_blocks_of(inlay_proc *); /* 0 of a stub */
long atom_insts_of(inlay_proc *);

/* --- file.c --- */
typedef struct atom_file {
    uint64_t text, text_size, data, data_size, bss, bss_size; /* the first segments of their kind, where they are */
    bool interpreted;                                         /* it asks for a dynamic linker */
    bool symbolic;                                            /* its symbols are looked for in itself first */
} atom_file;
atom_file atom_file_of(inlay_image *);
ProcSymResType atom_file_binding(inlay_image *, const char *name);

/* --- objects.c --- */
bool atom_in_hand(Obj *); /* may it be walked and changed now? */

/* --- insts.c --- */
int atom_operand(const inlay_insn *, bool write); /* number of the first that is read (written); -1 */

/* --- the whole: ATOM's calls name no context, so it stands in one place --- */
typedef struct atom_numbers {
    long procs, blocks, insts;
} atom_numbers;
typedef struct atom_context {
    const atom_tool *tool; /* as generated (cli/atom.c) */
    atom_state *travels;
    Obj *object;              /* that Instrument was called for */
    bool started, ran, ended; /* ended: before an exec that then failed files are closed, there is no second end */
    atom_proto *protos;
    struct {
        const Obj *objects[ATOM_MAX_OBJECTS];
        unsigned count;
    } built; /* and not yet written or released */
    bool ever_built;
    unsigned not_behind, not_ends; /* places where a call cannot be added, of each kind (calls.c) */
    inlay_image *counted;          /* last, with these numbers (query.c) */
    atom_numbers numbers;
} atom_context;
extern atom_context atom_now;

#endif
