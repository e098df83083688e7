/* An ELF file that is open: what the files of the image part share, and what who writes such a file reads. Its parts
 * are built when first asked for; there are checked ways to its bytes.
 *
 * Nothing of a file is reached through a plain pointer computed from the file's own numbers: file
 * offsets go through image_view_bytes, link-time addresses through image_bytes, and records are
 * copied out with memcpy, since a hostile offset may be misaligned.
 */
#ifndef INL_IMAGE_FILE_H
#define INL_IMAGE_FILE_H

#include "base/arena.h"
#include "base/vec.h"
#include "image/image.h"

#include <elf.h>
#include <string.h>

/* The bytes of an ELF file with a header that has been checked. */
typedef struct image_view {
    const uint8_t *data;
    size_t size;
    Elf64_Ehdr header;
    uint32_t section_count, section_names; /* both 0 where there is no usable section table */
} image_view;

typedef struct image_strings { /* a string table */
    const char *text;
    size_t size;
} image_strings;

typedef struct image_dynamic { /* what PT_DYNAMIC says; addresses are link-time, 0 when absent */
    uint64_t symtab, strtab, strtab_size, hash, gnu_hash, versym;
    uint64_t rela, rela_size, jmprel, jmprel_size;
    uint64_t relr, relr_size;
    uint64_t init, fini;
    uint64_t got; /* what offsets from the global offset table are counted from */
    uint64_t init_array, init_array_size, fini_array, fini_array_size;
    uint64_t preinit_array, preinit_array_size;
    bool present, has_soname, pie;
} image_dynamic;

typedef struct image_symtab { /* a symbol table and what is needed to understand it */
    const uint8_t *symbols;
    size_t count;
    image_strings strings;
    const uint8_t *versions; /* 16 bits a symbol, or NULL */
    const image_view *view;  /* whose sections st_shndx means; NULL: unknown */
    image_proc_source source;
} image_symtab;

typedef enum image_symbol_kind {
    IMAGE_SYMBOL_FUNC,  /* typed as a function */
    IMAGE_SYMBOL_LABEL, /* untyped and global, in an executable section */
    IMAGE_SYMBOL_PLT,
    IMAGE_SYMBOL_MADE, /* the name is made up, not the file's */
    IMAGE_SYMBOL_DATA,
} image_symbol_kind;

typedef struct image_sym {
    const char *name;
    uint64_t addr, size;
    uint8_t kind, source;
    bool global;
    bool hidden; /* a version that is not the default one */
} image_sym;

/* Bytes of an image that are read one after the other. */
typedef struct image_cursor {
    const uint8_t *at, *end;
    uint64_t addr; /* of `at` */
} image_cursor;

typedef INL_VEC(image_sym) image_syms;
typedef INL_VEC(image_proc) image_proc_list;
typedef INL_VEC(image_unwind_range) image_range_list;

typedef INL_VEC(image_reloc) image_reloc_list;
typedef INL_VEC(image_code_symbol) image_code_symbol_list;

typedef struct image_lines image_lines;

struct image {
    char *path;
    const char *name;
    image_view view;
    void *map;          /* the file, mapped; or NULL */
    void *copy;         /* the bytes, copied; or NULL */
    bool in_memory;     /* laid out by address, not by file offset */
    uint64_t low;       /* in memory: the link-time address of the first byte */
    uint64_t mapped_at; /* in memory: where it was mapped */
    inl_arena arena;    /* strings and alias lists */

    INL_VEC(image_segment) segments;
    Elf64_Phdr dynamic_header, unwind_header, tls_header; /* p_memsz 0 when absent */
    uint64_t phdr_addr;
    const char *interp, *build_id;
    uint8_t build_id_bytes[64];
    size_t build_id_size;

    /* Built when first asked for. */
    bool has_sections, has_symbols, has_unwind, has_unread, has_procs, has_lines, has_debug, has_dynamic;
    bool has_all_symbols; /* the file, or its debug file, has a table of all */
    bool has_relocs, has_code_symbols;
    INL_VEC(image_section) sections;
    image_syms symbols;
    image_range_list unwind, unread;
    image_proc_list procs;
    image_reloc_list relocs;
    image_code_symbol_list code_symbols;
    uint32_t *index; /* open addressing: symbol number + 1, 0 is free */
    size_t index_size;
    image_lines *lines;
    void *debug_map;
    image_view debug;       /* the separate debug file, data NULL when there is none */
    const char *debug_path; /* its path */
    image_dynamic dynamic;
};

/* isas.c: what the files of one processor have of their own. */
typedef struct image_processor {
    uint16_t machine;                                    /* EM_* */
    uint32_t relative, resolver, absolute, symbol, slot; /* R_*, by image_reloc_kind */
    uint32_t copied;                                     /* R_*: a library's variable, which the program has then */
    uint32_t tls_offset;                                 /* R_*: a distance from the thread pointer */
    uint32_t tls_module;                                 /* R_*: an image's number */
    uint32_t tls_table;                                  /* image_tls.table, with glibc */
    uint32_t tls_above;       /* blocks lie so far above the thread pointer, behind its own words; 0: below it */
    const uint8_t *registers; /* by DWARF's numbers: those of isa.h, of the general ones */
    unsigned register_count;
    unsigned vectors, vector_count;   /* likewise the first one's number, and how many there are */
    unsigned stub_step, stub_longest; /* distance at which import stubs may begin, size of the longest */
    /* The slot that the import stub at `p` jumps through; false when it is none. */
    bool (*stub)(const uint8_t *p, size_t have, uint64_t addr, uint64_t *slot);
    /* Does the code there end a signal's handler (rt_sigreturn)? NULL: programs have none. */
    bool (*restores)(const uint8_t *p, size_t have);
} image_processor;
extern const image_processor image_processor_x86_64, image_processor_aarch64;
const image_processor *image_processor_of(const image *im); /* NULL: not known */
image_reloc_kind image_kind_of(const image_processor *m, uint32_t type);

/* view.c */
inl_status image_view_open(image_view *v, const void *data, size_t size, const char *path, inl_error *e);
const uint8_t *image_view_bytes(const image_view *v, uint64_t offset, uint64_t size); /* or NULL */
bool image_view_section(const image_view *v, uint32_t i, Elf64_Shdr *out);
/* The section's name, "" when it has none. */
const char *image_view_section_name(const image_view *v, const Elf64_Shdr *section);
/* The first section of that type (SHT_NULL: any) and name (NULL: any). */
bool image_view_find(const image_view *v, uint32_t type, const char *name, Elf64_Shdr *out);
bool image_view_section_bytes(const image_view *v, const Elf64_Shdr *s, const uint8_t **out);
const char *image_string(const image_strings *s, uint64_t offset); /* or NULL */
size_t image_find_build_id(const uint8_t *notes, size_t size, uint8_t id[64]);
size_t image_view_build_id(const image_view *v, uint8_t id[64]); /* from its notes; 0: none */
/* To decompress a section, libelf changes its header where it stands: those pages become writable,
 * private ones. What it changes there (size and one flag of .debug_* sections) is put back where others look at the
 * file. */
bool image_view_make_sections_writable(const image_view *v);
/* Before elfutils is asked for anything. */
bool image_elfutils_ready(void);
/* Maps a regular file; NULL with errno. */
void *image_map_file(const char *path, size_t *size);

/* image.c */
bool image_read(const image *im, uint64_t addr, void *out, size_t size);
bool image_executable(const image *im, uint64_t addr, uint64_t *end); /* end of the segment */

/* cursor.c: false, and nothing to rely on, when the bytes end too soon. */
bool image_take(image_cursor *c, void *out, size_t size);
bool image_skip(image_cursor *c, uint64_t size);
bool image_take_leb(image_cursor *c, bool is_signed, uint64_t *out);
bool image_take_format(image_cursor *c, uint8_t encoding, uint64_t *out); /* as it stands there */
/* A pointer; false for what cannot be known from the file (text-relative, indirect). */
bool image_take_pointer(image_cursor *c, uint8_t encoding, uint64_t data_base, uint64_t *out);

/* unwind.c: the call frame instructions of a range. */
typedef struct image_frame {
    image_cursor common, own; /* the CIE's, then the FDE's */
    uint64_t code_align;
    int64_t data_align;
} image_frame;
bool image_frame_code(image *im, const image_unwind_range *range, image_frame *out);

/* cfi.c: where the caller's registers are when the instruction at `addr` is about to run, in a range that begins at
 * `start`; by DWARF's numbers. False where the CFA cannot be told. */
enum { IMAGE_SAVED_REGS = 34, IMAGE_SAVED_DEPTH = 4 };
typedef enum image_saved_how { IMAGE_SAVED_SAME, IMAGE_SAVED_AT, IMAGE_SAVED_LOST } image_saved_how;
typedef struct image_saved_rules {
    uint8_t how[IMAGE_SAVED_REGS];
    int32_t offset[IMAGE_SAVED_REGS]; /* IMAGE_SAVED_AT: from the CFA */
} image_saved_rules;
typedef struct image_saved {
    unsigned cfa_reg;
    int64_t cfa_offset;
    image_saved_rules now, common, remembered[IMAGE_SAVED_DEPTH];
} image_saved;
bool image_frame_registers(const image_frame *, uint64_t start, uint64_t addr, image_saved *out);

/* dynamic.c */
const image_dynamic *image_dynamic_info(image *im);
bool image_find_dynsym(image *im, image_symtab *out);
const char *image_symtab_name(const image_symtab *, uint32_t number); /* NULL: there is no such symbol */

/* debugfile.c: the separate debug file's view, or NULL; looked for once. */
const image_view *image_debug_view(image *im);

/* symbols.c */
bool image_find_symtab(const image_view *v, image_symtab *out);
void image_load_symbols(image *im);
void image_index_symbols(image *im);

/* relocs.c: what the word at `addr` holds when the program runs, a link-time address. */
uint64_t image_word_at(image *im, uint64_t addr);

/* go.c: appends the procedures of Go's own table. */
void image_add_go(image *im);

/* plt.c: appends the entries of the procedure linkage tables to the symbols. */
void image_add_plt(image *im);

/* lines.c */
void image_lines_free(image_lines *l);

#endif
