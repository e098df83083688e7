/* An ELF file or an ELF image in memory (the vdso): segments, symbols, procedures, lines.
 *
 * Opening is cheap (headers only, well under a millisecond); symbols, procedure ranges and line
 * tables are built when first asked for and kept. All addresses here are link-time virtual
 * addresses; a mapped module (module.h) adds its load bias. Every number in the file is distrusted:
 * hostile input ends in INL_ERR_FORMAT or in fewer symbols, never in a crash or a huge allocation.
 * Not thread-safe: the caller serialises. The strings live as long as the image.
 */
#ifndef INL_IMAGE_IMAGE_H
#define INL_IMAGE_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct image image;

typedef struct image_segment { /* a PT_LOAD */
    uint64_t addr, mem_size, file_offset, file_size, alignment;
    bool read, write, exec;
} image_segment;

typedef struct image_section {
    const char *name; /* "" where the file has no section names */
    uint64_t addr, size, file_offset;
    uint32_t type;
    uint64_t flags;
} image_section;

typedef enum image_proc_source {
    IMAGE_PROC_SYMTAB, /* .symtab, also of a separate debug file */
    IMAGE_PROC_DYNSYM,
    IMAGE_PROC_TABLE,  /* a run time's own table, which stripping leaves: Go's */
    IMAGE_PROC_PLT,    /* "name@plt" */
    IMAGE_PROC_UNWIND, /* a range of .eh_frame without a name: "sub_<hex address>" */
    IMAGE_PROC_ENTRY,  /* the entry point or an init/fini function without a name */
} image_proc_source;

typedef struct image_proc {
    uint64_t addr, size; /* never 0 size; ranges do not overlap: an alias is listed in `aliases` */
    const char *name;    /* as in the file, mangled; the preferred of several (global over local,
                            then without leading underscores, then alphabetical) */
    image_proc_source source;
    bool is_open; /* nothing says its size, nor has the file the names of all: it reaches to the next one known */
    const char *const *aliases; /* NULL-terminated or NULL */
} image_proc;

inl_status image_open(const char *path, image **out, inl_error *e);
/* An image that is mapped at `base` (e.g. the vdso); `size` bytes are readable; copied. */
inl_status image_open_memory(const void *base, size_t size, const char *name, image **out, inl_error *e);
void image_close(image *);

const char *image_path(const image *);
const char *image_name(const image *); /* the last path component */
uint16_t image_machine(const image *); /* EM_* */
uint16_t image_type(const image *);    /* ET_EXEC or ET_DYN */
uint64_t image_entry(const image *);
uint64_t image_got(image *);               /* the global offset table, 0: none that is told of */
bool image_is_program(image *);            /* can it be started, or is it a library? */
bool image_is_static(image *);             /* a program without a dynamic linker: it relocates itself */
const char *image_interp(const image *);   /* PT_INTERP or NULL */
const char *image_build_id(const image *); /* hex or NULL */
size_t image_segments(const image *, const image_segment **out);
size_t image_sections(image *, const image_section **out);
/* Was the program, or library, made by Go's compiler? go.c */
bool image_is_go(image *);
/* Where Go's run time has procedures go on when a panic in them has been recovered from: calls of what runs the rest of
 * their deferred calls. In old tables other numbers may stand there. */
void image_go_recoveries(image *, void (*each)(void *arg, uint64_t addr), void *arg);
uint64_t image_phdr_addr(const image *); /* link-time address of the program headers, 0 if not mapped */
/* File bytes at a link-time address: returns how many are available (0: none). */
size_t image_bytes(const image *, uint64_t addr, const uint8_t **out);

/* Procedures, sorted by address. A symbol without a size reaches to the next procedure, or the end
 * of its unwind range or section. Where ranges overlap, each byte belongs to the last procedure that
 * begins at or before it. A nameless entry point, init or fini function is called _start, _init,
 * _fini. Symbols first (symtab of the file, of its separate debug file by
 * build-id or .gnu_debuglink, dynsym, PLT), then unwind ranges that no symbol covers. */
size_t image_procs(image *, const image_proc **out);
const image_proc *image_proc_at(image *, uint64_t addr);       /* covering addr, or NULL */
const image_proc *image_proc_named(image *, const char *name); /* also by alias; NULL */

/* The ranges that the unwind table (.eh_frame) describes, sorted by address, each once. They are
 * found through the section or, where section headers are stripped, PT_GNU_EH_FRAME. */
typedef struct image_unwind_range {
    uint64_t addr, size;
    uint64_t fde;  /* where its entry stands */
    uint64_t lsda; /* the language's exception table, 0 when it has none */
} image_unwind_range;
size_t image_unwind_ranges(image *, const image_unwind_range **out);
const image_unwind_range *image_unwind_at(image *, uint64_t addr); /* that covers it, or NULL */
/* What else the search table of .eh_frame_hdr leads to, sorted by address: entries that are not understood. Of
 * them only addr and fde are known. */
size_t image_unwind_unread(image *, const image_unwind_range **out);

/* Where the frame begins when the instruction at `addr` is about to run: *offset from register *reg
 * (DWARF's number), as the unwind table has it. False when it does not say, or by an expression. */
bool image_frame_at(image *, uint64_t addr, unsigned *reg, int64_t *offset);
/* ... or by what the debug information has for it. */
bool image_frame_told(image *, uint64_t addr, unsigned *reg, int64_t *offset);
/* The most that it is anywhere around `addr` from the register that it is counted from at the entry. */
bool image_frame_most(image *, uint64_t addr, int64_t *offset);

/* Pointer encodings of unwind and exception tables (DW_EH_PE_*): the low four bits are the format, the
 * next three what it is relative to. */
enum {
    IMAGE_PE_ABSPTR = 0x00,
    IMAGE_PE_ULEB128 = 0x01,
    IMAGE_PE_UDATA2 = 0x02,
    IMAGE_PE_UDATA4 = 0x03,
    IMAGE_PE_UDATA8 = 0x04,
    IMAGE_PE_SLEB128 = 0x09,
    IMAGE_PE_SDATA2 = 0x0a,
    IMAGE_PE_SDATA4 = 0x0b,
    IMAGE_PE_SDATA8 = 0x0c,
    IMAGE_PE_RELATIVE = 0x70, /* mask */
    IMAGE_PE_PCREL = 0x10,
    IMAGE_PE_DATAREL = 0x30,
    IMAGE_PE_INDIRECT = 0x80,
    IMAGE_PE_OMIT = 0xff,
};

/* An exception table (.gcc_except_table) of one procedure: its header and call sites. */
typedef struct image_call_site {
    uint64_t start, length; /* address and size of the code */
    uint64_t landing_pad;   /* address; 0: none, exceptions pass */
    uint64_t action;        /* 0: cleanup only; else 1 + offset into the action table */
} image_call_site;
typedef struct image_lsda {
    uint64_t lpstart;              /* address that landing pads are relative to */
    uint64_t ttype;                /* address of the type table's base (entries lie before it), 0: none */
    uint64_t sites_at, actions_at; /* addresses of the call-site and the action table */
    uint8_t lpstart_encoding, ttype_encoding, site_encoding;
    image_call_site *sites;
    size_t count, capacity;
} image_lsda;
/* Reads the table at `addr` (image_unwind_range.lsda) of the range that begins at `start`. `out` is
 * zeroed before first use, may be reused, and ends with image_lsda_free. False when the bytes make no
 * sense; what could be read is there all the same. */
bool image_lsda_read(image *, uint64_t addr, uint64_t start, image_lsda *out);
void image_lsda_free(image_lsda *);

/* Every relocation that the dynamic linker (or a static program's start code) applies: .rela.dyn,
 * .rela.plt and RELR, sorted by offset. */
typedef enum image_reloc_kind {
    IMAGE_RELOC_OTHER,
    IMAGE_RELOC_RELATIVE, /* the image's place and the addend */
    IMAGE_RELOC_RESOLVER, /* what the function at the addend answers (IRELATIVE) */
    IMAGE_RELOC_ABSOLUTE, /* a symbol's address and the addend */
    IMAGE_RELOC_SYMBOL,   /* a symbol's address */
    IMAGE_RELOC_SLOT,     /* the same, of a slot that an import stub jumps through */
} image_reloc_kind;
typedef struct image_reloc {
    uint64_t offset;       /* the place, a link-time address */
    uint64_t addend;       /* of RELR: the word in the file */
    uint64_t value;        /* the link-time address stored there, as far as this image defines it; else 0.
                              IRELATIVE: the resolver */
    uint32_t type, symbol; /* R_*; index in the dynamic symbol table, 0 none */
    uint8_t kind;          /* image_reloc_kind */
} image_reloc;
size_t image_relocs(image *, const image_reloc **out);
const image_reloc *image_reloc_at(image *, uint64_t addr); /* of what stands there; or NULL */
/* Has the program a copy of what the library exports there, which all use instead? */
bool image_copied(image *program, image *library, uint64_t addr, uint64_t *copy);
typedef struct image_tls {
    int64_t program; /* from the thread pointer to its block, if it is the program itself */
    uint64_t slot;   /* a word that has the distance of the variable at slot_of in its block, once it is loaded; 0: */
    int64_t slot_of; /* none */
    /* Two words, as __tls_get_addr takes them: the image's number, once it is loaded, and a distance in the block; 0:
     * none. And where, from the thread pointer, the C library's table of the thread's blocks stands. */
    uint64_t module;
    uint32_t table;
} image_tls;
/* So many bytes of a block are not 0 at first; where in the image they stand. */
uint64_t image_tls_initial(image *, uint64_t *start);
bool image_tls_place(image *, image_tls *); /* false: it has no thread-local variables */

/* The function symbols of all tables as they stand there, sorted by address. */
typedef struct image_code_symbol {
    uint64_t addr, size;
    const char *name;
    bool dynamic;  /* in the dynamic symbol table: other images can reach it */
    bool function; /* STT_FUNC */
    bool resolver; /* STT_GNU_IFUNC: yields the function's address while relocations are applied */
} image_code_symbol;
size_t image_code_symbols(image *, const image_code_symbol **out);

/* A sum of what an analysis of the image starts from: its segments' bytes, sections, procedures and function symbols,
 * wherever those come from. False: it was opened in memory. */
bool image_sum(image *, uint64_t *out);

/* Addresses that are run as functions at start and end: DT_INIT, DT_FINI and the three arrays, read from
 * the file or their relocations. At most `room` are stored; answers how many there are. */
size_t image_startup(image *, uint64_t *out, size_t room);

/* Source position of an address; false when unknown. */
bool image_line_at(image *, uint64_t addr, const char **file, unsigned *line);
/* ... with its column, and the folder that its name is relative to. */
typedef struct image_spot {
    const char *file, *folder; /* NULL: the name is whole */
    unsigned line, column;     /* 0: not told */
} image_spot;
bool image_spot_at(image *, uint64_t addr, image_spot *out);
/* ... and up to which address the answer, be it false, is the same. */
bool image_line_until(image *, uint64_t addr, const char **file, unsigned *line, uint64_t *end);

/* The source that code was compiled from, as the compiler was given it, and the folder in which it ran. And all of
 * them, each with its rows in order of address: a row holds up to the next one's address; `file` NULL: none does. */
typedef struct image_source {
    const char *name, *folder; /* "" where they are not told */
} image_source;
typedef struct image_line {
    uint64_t addr;
    const char *file;
    unsigned line;
} image_line;
bool image_source_at(image *, uint64_t addr, image_source *out);
/* Each by its number, also of those without code; that of the one an address belongs to, or how many there are. */
size_t image_unit_count(image *);
image_source image_unit(image *, size_t k);
size_t image_unit_number_at(image *, uint64_t addr);
void image_sources(image *, void (*each)(void *arg, const image_source *, const image_line *, size_t), void *arg);

/* Where what the procedure that begins at `entry` does first for itself is over, as the lines tell it; 0: they do not.
 */
uint64_t image_begun(image *, uint64_t entry);

/* Address of a data or function symbol (dynsym or symtab); false when absent. */
bool image_symbol(image *, const char *name, uint64_t *addr, uint64_t *size);
/* All of them, by address, each once: an array from malloc. */
typedef struct image_named {
    const char *name;
    uint64_t addr, size;
    bool is_code, is_global;
} image_named;
size_t image_symbol_list(image *, image_named **out);
/* Is it a dynamic symbol, defined here or (imported) not? */
bool image_has_dynamic(image *, const char *name, bool defined);
/* The variable that an address lies in, by the symbols with a size; false when they do not tell. */
bool image_variable_at(image *, uint64_t addr, uint64_t *start, uint64_t *size);

/* Types and variables, by debug information: that of the file itself or of its separate debug file. */
typedef enum image_place_kind {
    IMAGE_PLACE_ADDRESS,        /* it lies at `offset`, a link-time address, */
    IMAGE_PLACE_TLS,            /* or there in the image's block of each thread (image_tls_place), */
    IMAGE_PLACE_RELATIVE,       /* or so far from what the register has */
    IMAGE_PLACE_REGISTER,       /* it is in the register */
    IMAGE_PLACE_VALUE,          /* it is `offset`; has no place */
    IMAGE_PLACE_VECTOR,         /* it is in vector register `reg` */
    IMAGE_PLACE_MEMORY,         /* it lies where `steps` end, */
    IMAGE_PLACE_COMPUTED,       /* or is what they end with */
    IMAGE_PLACE_ENTERED,        /* what the register had at `entry`, where the procedure begins, */
    IMAGE_PLACE_ENTERED_VECTOR, /* or the vector register */
    IMAGE_PLACE_BYTES,          /* it is `bytes`; has no place */
    IMAGE_PLACE_PIECES,         /* it is in pieces, one behind the other */
    IMAGE_PLACE_NOWHERE,        /* of a piece: nobody knows it */
} image_place_kind;
/* A step of a computation on a stack of 64-bit words. Operators take the uppermost one or two. */
/* clang-format off */
typedef enum image_step_kind {
    STEP_CONSTANT, STEP_ADDRESS, /* value: a number; a link-time address */
    STEP_REGISTER,               /* what the register has, and value */
    STEP_ENTERED,                /* what it had where the procedure begins, at `value` */
    STEP_LOAD,                   /* value: bytes */
    STEP_EXTEND,                 /* of the low `value` bytes; reg: 1: by the sign */
    STEP_PICK, STEP_DROP, STEP_SWAP, STEP_ROTATE, /* value: how far below the top */
    STEP_ADD, STEP_SUB, STEP_MUL, STEP_DIV, STEP_MOD, STEP_AND, STEP_OR, STEP_XOR, STEP_SHL, STEP_SHR, STEP_SAR,
    STEP_EQ, STEP_NE, STEP_LT, STEP_LE, STEP_GT, STEP_GE, STEP_NEG, STEP_NOT,
    STEP_BRANCH, STEP_SKIP /* go on at step `value`, further on, if the top (which goes) is not 0; in any case */
} image_step_kind;
/* clang-format on */
typedef struct image_step {
    image_step_kind kind;
    unsigned reg; /* as in isa.h */
    int64_t value;
} image_step;
typedef struct image_variable {
    const struct image_ctype *type;
    image_place_kind kind;
    unsigned reg; /* as in isa.h */
    int64_t offset;
    uint64_t entry;     /* ENTERED: link-time; of a procedure's own variable: in any case */
    unsigned parameter; /* its number from 1 on; 0: none of the procedure around */
    bool by_frame;      /* RELATIVE: counted from where the procedure's frame begins */
    bool is_for_here;   /* the place is that of some addresses alone, so it is right at the very first, too */
    unsigned count;     /* of steps, bytes, pieces */
    const image_step *steps;
    const uint8_t *bytes;
    const struct image_piece *pieces;
} image_variable;
typedef struct image_piece {
    image_variable where; /* but for its type */
    uint64_t size;
} image_piece;
/* A variable or parameter of the procedure around `pc`, seen from there. False: there is none (*why NULL), or it
 * cannot be reached there (*why says so). */
bool image_local(image *, uint64_t pc, const char *name, image_variable *out, const char **why);
/* Those that are seen there, or all that the procedure has, those of blocks within it too: calls `each`. What another
 * one of its name hides is left out, where all are not asked for. Then those outside of procedures, of the image. */
typedef struct image_listed {
    const char *name; /* during the call; with the spaces that it is in */
    const struct image_ctype *type;
    bool is_parameter;
    unsigned line; /* that it is declared in; 0: not told */
    uint64_t low,
        high; /* of code that sees it; of one outside of procedures its bytes; 0: not told, or not one place */
} image_listed;
void image_locals(image *, uint64_t pc, bool all, void (*each)(void *arg, const image_listed *), void *arg);
void image_globals(image *, void (*each)(void *arg, const image_listed *), void *arg);
extern const char image_local_around[]; /* *why, of one that belongs to a procedure which this one stands in */
/* What debug information says of a parameter of the procedure that begins at `pc`: has it a place, in parts of the
 * procedure, at its beginning too (HERE), or one for all of it? Is it anywhere where, or what, the register leads to?
 */
typedef enum image_told { IMAGE_TOLD_NOTHING, IMAGE_TOLD_IN_PARTS, IMAGE_TOLD_HERE, IMAGE_TOLD } image_told;
image_told image_parameter_told(image *, uint64_t pc, unsigned number);
bool image_parameter_is_by(image *, uint64_t pc, unsigned number, unsigned reg);
/* May parameters of the procedures around `pc` be passed by reference, though their types do not say so? */
bool image_passes_references(image *, uint64_t pc);
/* Was the code around `pc` compiled by LLVM? It drops parameters of procedures that nobody outside calls, and what is
 * behind them moves up; of what was dropped it tells no place, of the others the registers that they come in. */
bool image_may_drop_parameters(image *, uint64_t pc);
/* A variable of the whole program; one of the source file around `pc` comes first. */
bool image_global(image *, uint64_t pc, const char *name, image_variable *out, const char **why);
/* By name: "struct stat", "union u", "enum e", "size_t", "int". NULL: none. */
const struct image_ctype *image_ctype_named(image *, uint64_t pc, const char *name);
/* Of the procedure at `pc`, which need not be its beginning: its result and parameters. NULL: not known. */
const struct image_ctype *image_proc_type(image *, uint64_t pc);
/* A constant of an enumeration, one of the source file around `pc` first. */
bool image_enumerator(image *, uint64_t pc, const char *name, uint64_t *value);
/* Which part of its debug information the source file around `pc` has elsewhere, where it is not; NULL: none. */
const char *image_debug_lacks(image *, uint64_t pc);
bool image_has_types(image *); /* is there debug information? */

/* The demangled name of C++, Rust, D or a Fortran module into out (returns out), or the name itself when it is not
 * mangled. */
const char *image_demangle(const char *name, char *out, size_t size);
/* Does `is` hold for the name in a form that people write it in: as it is, demangled, with its parameters or without,
 * with a template's result and tags ("[abi:cxx11]") or without? */
bool image_name_is(const char *name, bool (*is)(const char *form, const void *arg), const void *arg);
/* Is that, in one of these forms, the pattern (*, ?, []), or like it? */
bool image_name_matches(const char *name, const char *pattern);
/* Instead of a name: addresses in a file, "0x11b9", "0x11b9-0x13ff", "libc.so.6:0x2a1c0" (places.c). */
typedef struct image_place {
    char image[256]; /* "": the program */
    uint64_t low, high;
    bool is_range;
} image_place;
bool image_place_read(const char *pattern, image_place *); /* false: it is a name */
bool image_place_is_in(const image_place *, const char *path, const char *name, bool is_program);
bool image_place_has(const image_place *, uint64_t low, uint64_t size); /* the procedure there */
/* Of a name in such a form the last component ("push_back"), which the mangled one has in it as well; "": none that
 * could be told. In `out`, or in a part of it. */
const char *image_name_last(const char *name, char *out, size_t size);

#endif
