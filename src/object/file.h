/* What the files of this part share. */
#ifndef INL_OBJECT_FILE_H
#define INL_OBJECT_FILE_H

#include "base/vec.h"
#include "cfg/program.h"
#include "cfg/thunks.h"
#include "image/file.h"
#include "object/object.h"

typedef INL_VEC(Elf64_Rela) object_relas;

typedef struct object_section {
    Elf64_Shdr h;
    const char *name;
    inl_bytes data;     /* what it holds, but for SHT_NOBITS and tables that are made anew */
    object_relas relas; /* by offset, as many as `sorted`; then what is added */
    size_t sorted;
    uint32_t rela;         /* the section that holds them, 0: none */
    uint32_t group;        /* of which it is a member, 0: none */
    uint64_t at;           /* where it lies for the analysis, 0: nowhere */
    uint32_t stubs, tells; /* sections added for it: code, descriptors; 0: none yet */
    uint32_t symbol;       /* a section symbol of it, 0: not known yet */
} object_section;

typedef struct object_symbol {
    Elf64_Sym s;
    uint32_t section; /* that it lies in, 0: none; whatever s.st_shndx has room for */
    uint32_t number;  /* in the new table */
} object_symbol;

typedef struct object_isa object_isa;

typedef struct object_file {
    const char *path;
    const object_isa *isa;
    image_view view;
    inl_arena arena;
    INL_VEC(object_section) sections;
    INL_VEC(object_symbol) symbols; /* as in the file, then what is added */
    uint32_t symtab, old_symbols;
    uint32_t numbers;           /* the table of symbols' sections whose numbers want more than 16 bits, 0: none */
    inl_bytes strings;          /* of symbols */
    inl_bytes linked;           /* an image (link.c) */
    INL_VEC(uint32_t) laid_out; /* sections that have addresses there, ascending by these */
    image *im;
    cfg_program *cfg;
    uint32_t recorders[2][2]; /* the recorder's symbols: of entries, exits; of those where flags are kept. 0: not named
                                 yet */
} object_file;

/* How a relocation's value is made. */
typedef enum object_value {
    OBJECT_NOTHING,
    OBJECT_ABSOLUTE,
    OBJECT_RELATIVE, /* to its own place */
    OBJECT_SLOT,     /* relative: where the symbol's address stands */
    OBJECT_THREAD,   /* of the thread's data; no address */
    OBJECT_UNKNOWN,
} object_value;

/* What stands at an entry or exit, and is to be filled in: the recorder's routine, and distances to fields of what
 * tells of the procedure, each from `base` on. */
typedef struct object_hook {
    size_t call;
    unsigned count;
    struct {
        size_t at, base, member;
    } fields[3];
} object_hook;

struct object_isa {
    const isa *isa;
    unsigned jump_size;  /* of the jump to a stub */
    uint32_t arithmetic; /* the flags that instructions' results are told by */
    object_value (*reloc)(uint32_t type, unsigned *size);
    bool (*glues)(uint32_t type); /* linkers change its instruction and the next as one */
    uint32_t relative32;          /* the type: 4 bytes, relative to their place; */
    uint32_t call32;              /* the same, of the slot with a procedure's address, as `record` calls it; */
    uint32_t relative64, absolute64, absolute32, none;
    /* A procedure that returns, or that never does, in 16 bytes. */
    void (*dummy)(uint8_t *to, bool returns);
    /* The same, of a name that stands for a jump to where a register leads; false: it is none. */
    bool (*dummy_thunk)(uint8_t *to, const char *name);
    /* Bytes that are never executed by those who fall or jump where they should. */
    bool (*is_padding)(const uint8_t *at, size_t have, unsigned *size);
    void (*fill)(uint8_t *at, size_t size);
    /* A branch in place whose displacement may lead anywhere: where in it that stands. */
    bool (*reaches)(const isa_insn *, unsigned *field);
    /* Code that cannot be displaced: why. */
    const char *(*fixed)(const isa_insn *);
    bool (*may_fault)(const isa_insn *);  /* where a handler of signals may throw */
    bool (*is_landing)(const isa_insn *); /* marks where indirect jumps may lead, stays in front */

    /* These append to the code. Fields that follow from others' places are put in by relocations of `stubs`, or
     * answered as offsets. */
    void (*jump)(inl_bytes *, size_t *field);                         /* anywhere; the displacement's offset */
    void (*branch)(inl_bytes *, const isa_insn *, size_t *field);     /* a direct one, likewise */
    void (*skip_unless)(inl_bytes *, const isa_insn *, size_t *from); /* over what is put before skip_here, */
    void (*skip_here)(inl_bytes *, size_t from);                      /* if the branch is not taken */
    /* What stands at an entry or exit (record/tells.h). */
    void (*record)(inl_bytes *, bool leaves, bool keeps_flags, object_hook *);
    unsigned field_end; /* displacements count from so many bytes behind their fields */
};
extern const object_isa object_isa_x86_64;
const object_isa *object_isa_for(uint16_t machine);

/* --- file.c, added.c, write.c --- */
inl_status object_read(object_file *, const void *bytes, size_t size, const char *path, inl_error *);
void object_free(object_file *);
inl_status object_no_memory(const object_file *, inl_error *);
uint32_t object_add_section(object_file *, const char *name, uint32_t type, uint64_t flags, uint64_t align,
                            uint32_t group);                                              /* 0: no memory */
uint32_t object_add_symbol(object_file *, const char *name, Elf64_Sym, uint32_t section); /* likewise */
uint32_t object_section_symbol(object_file *, uint32_t section);                          /* likewise */
uint32_t object_section_named(const object_file *, const char *name); /* that has bytes as they are; 0: none */
bool object_add_rela(object_file *, uint32_t section, uint64_t offset, uint32_t type, uint32_t symbol, int64_t addend);
Elf64_Rela *object_rela_in(object_section *, uint64_t from, uint64_t end); /* the first in a range, or NULL */
inl_status object_write(object_file *, inl_bytes *out, inl_error *);

/* --- link.c --- */
inl_status object_link(object_file *, inl_error *);
/* The section that an address of the analysis lies in, 0: none; *offset within. */
uint32_t object_section_at(const object_file *, uint64_t addr, uint64_t *offset);

/* --- plan.c, named.c, flags.c, returns.c, room.c --- */
typedef struct object_region { /* displaced code, one or more whole blocks but for the first's beginning */
    uint64_t from, end;
    uint64_t room; /* up to here nothing is executed behind it */
    bool jumps;    /* it begins with a jump to its stub; else all who come have been caught */
} object_region;
typedef struct object_plan {
    object_file *o;
    bool entries;                   /* exits are left alone */
    bool by_hand;                   /* no compiler has made it (flags.c) */
    cfg_thunks *thunks;             /* who knows of jumps that are not written as such */
    uint64_t *from;                 /* by block: displaced from this instruction to its end, 0: not */
    uint64_t *head;                 /* by block, of those that begin procedures: displaced up to here */
    uint8_t *covered;               /* by block: nobody comes to its old place */
    const char **why;               /* by procedure: not instrumented */
    uint8_t *keeps;                 /* by procedure: flags may be handed to it, or by it (flags.c) */
    uint8_t *looks;                 /* by procedure: at its return address (returns.c) */
    uint32_t *parent;               /* by procedure: of which it is a part, else itself */
    uint32_t *in, *in_at;           /* edges into block b: in[in_at[b]] .. in[in_at[b + 1]] */
    INL_VEC(uint32_t) parts;        /* procedures that are parts of others */
    INL_VEC(uint64_t) aimed;        /* branches in place that get another target */
    INL_VEC(object_region) regions; /* ascending */
    INL_VEC(uint32_t) undo;         /* private */
    INL_VEC(uint64_t) named;        /* ascending: code that tables of the program's own name (named.c) */
} object_plan;
inl_status object_plan_make(object_file *, const object_options *, object_plan *, inl_error *);
void object_plan_free(object_plan *);
bool object_was_asked(const object_plan *, uint32_t proc);

bool object_find_named(object_plan *);                                  /* false: no memory */
bool object_is_named(const object_plan *, uint64_t from, uint64_t end); /* anything in a range */
bool object_index_edges(object_plan *);                                 /* false: no memory */
/* Finds room for a procedure's entry and exits; why there is none, and then nothing has changed. */
const char *object_displace(object_plan *, uint32_t proc);
/* --- flags.c --- */
void object_find_flags(object_plan *); /* `by_hand`, `keeps` */
/* --- returns.c --- */
void object_find_returns(object_plan *);                        /* `looks` */
bool object_call_stays(const object_plan *, const isa_insn *);  /* its return address may be looked at */
bool object_calls_oddly(const object_plan *, const cfg_proc *); /* what stands behind a call may be no code */
/* --- path.c --- */
uint32_t object_shortest_way(const object_plan *, uint32_t proc); /* in instructions; UINT32_MAX: it never leaves */
/* --- room.c --- */
uint64_t object_first_movable(const object_plan *, const cfg_block *);
/* Up to where nothing is executed behind the end of a block. A section's last block may have more. */
uint64_t object_dead_end(const object_plan *, uint64_t from);
/* Does control leave the procedure behind the block's last instruction? By a jump that is not always taken:
 * *conditional. */
bool object_block_leaves(const object_plan *, uint32_t block, bool *conditional);
bool object_is_thunk(const object_plan *, uint64_t addr); /* jumps to it are jumps to where a register leads */
/* May control come to what stands behind the instruction? */
bool object_goes_on(const isa_insn *);
bool object_insn_at(const object_file *, uint64_t addr, isa_insn *);
bool object_last_insn(const object_file *, const cfg_block *, isa_insn *);

/* --- stubs.c, frames.c, lines.c, shown.c --- */
typedef struct object_place {
    uint64_t old;    /* of an instruction */
    uint64_t offset; /* of its stub code, a record in front of it included */
} object_place;
typedef struct object_stub { /* of one region, in their order */
    uint32_t section, home;  /* where it is, and whose code is displaced */
    uint32_t region;
    uint32_t symbol;              /* that names it */
    uint64_t begin, end;          /* offsets */
    INL_VEC(object_place) places; /* ascending */
} object_stub;
typedef INL_VEC(object_stub) object_stubs;
inl_status object_put_stubs(object_plan *, object_stubs *, inl_error *);
void object_stubs_free(object_stubs *);
/* Where a displaced instruction is now; false: it is where it was. */
bool object_new_place(const object_plan *, const object_stubs *, uint64_t addr, uint32_t *section, uint64_t *offset);
inl_status object_put_frames(object_plan *, const object_stubs *, inl_error *);
inl_status object_put_lines(object_plan *, const object_stubs *, inl_error *);

#endif
