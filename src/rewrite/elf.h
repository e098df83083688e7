/* What the files of the writer share.
 *
 *     check the input -> lay out -> write to a temporary name -> rename
 *
 * The new file is the original's bytes, at their offsets, with small edits (patches over moved code,
 * .dynamic, a property note) and behind them, from the link-time address `text_at` on:
 *
 *     RX   new code | boot code
 *     R    notes | what made room at the file's front | exception tables | .eh_frame | .eh_frame_hdr | map |
 *          .dynsym | .gnu.version | .gnu.hash | .dynstr | .rela.dyn | carried data
 *     RW   .preinit_array | .dynamic                            (each only where it is needed)
 *     and not loaded: .symtab | .strtab | .shstrtab | section headers
 *
 * Each segment begins on a page of its own. Address minus file offset is the same for all of it and,
 * where the file would not become much larger for it, the same as of the original's first segment.
 * The program headers grow at their place (elf_front.c); where they cannot, they are the first thing in R,
 * where __ehdr_start + e_phoff, the load address + e_phoff (kernels before 5.18) and PT_PHDR all lead to them.
 * Sections describe all of the segments' content, in the order of addresses, so that tools which rebuild files
 * from sections keep it.
 *
 * All addresses here are link-time addresses unless they are called assumed.
 */
#ifndef INL_REWRITE_ELF_H
#define INL_REWRITE_ELF_H

#include "base/arena.h"
#include "base/vec.h"
#include "image/private.h"
#include "rewrite/bytes.h"
#include "rewrite/rewrite.h"

enum { REWRITE_PAGE = 4096 };

typedef struct rewrite_edit { /* over the original file's bytes */
    uint64_t offset;
    size_t size;
    const uint8_t *bytes;
} rewrite_edit;

typedef struct rewrite_area { /* a new section */
    const char *name;
    uint32_t type;
    uint64_t flags, addr, size, align, entry_size;
    uint32_t replaces; /* the original section whose header is re-aimed; 0: a new one */
} rewrite_area;

typedef struct rewrite_unit { /* what can make room at the file's front */
    uint64_t addr, size, align;
    int64_t tag; /* of a dynamic table; 0: a program header's */
    bool is_note, moves;
    uint64_t to; /* its new address, 0: none */
} rewrite_unit;
enum { REWRITE_UNITS = 32 };

typedef struct rewrite_writer {
    const rewrite_plan *plan;
    const rewrite_write_options *options;
    image *im;
    const uint8_t *old; /* the original file */
    uint64_t old_size;
    uint64_t text_at; /* of the new code */
    uint64_t shift;   /* address - file offset of everything new */
    inl_arena arena;
    Elf64_Ehdr header;
    Elf64_Phdr *phdrs; /* the original's, then edited */
    size_t phdr_count;
    size_t phdr_room; /* entries that phdrs and the space in `ro` have */
    INL_VEC(rewrite_edit) edits;
    INL_VEC(rewrite_area) areas;
    rewrite_bytes boot, ro, rw;
    rewrite_bytes tail;                            /* behind the segments; its addr is a file offset */
    size_t notes_at, notes_size;                   /* in ro */
    struct {                                       /* elf_front.c */
        bool fits;                                 /* the program headers stay at the file's front */
        bool one_segment;                          /* to save program headers: code and constants in one */
        rewrite_unit units[REWRITE_UNITS], *notes; /* notes: the one that Inlay's go with, or NULL */
        size_t count;
        uint64_t low; /* the first segment's address */
    } front;
    uint64_t hdr_addr, hdr_size; /* the new .eh_frame_hdr */
    uint64_t eh_frame_addr;
    uint64_t map_addr, data_addr;
    struct { /* elf_dynamic.c */
        Elf64_Dyn *entries;
        size_t count;
        uint64_t room;             /* entries that fit the original place */
        size_t rela_at, rela_size; /* in ro */
        size_t own_relas;          /* the first and */
        size_t extra_relas;        /* the last of them, which are about the new array */
        size_t symbols_at;         /* of the copy of .dynsym in ro, 0: there is none */
        bool changed, preinit;
    } dynamic;
} rewrite_writer;

/* elf_check.c */
inl_status rewrite_check_input(rewrite_writer *w, inl_error *e);

/* elf_front.c: is there room; moves what program headers name; the program headers there, and their address. */
void rewrite_front_plan(rewrite_writer *w);
void rewrite_front_move(rewrite_writer *w);
bool rewrite_front_put(rewrite_writer *w, uint64_t *addr);
/* Moves a dynamic table that is in the way: its address then. And the new address of anything that has moved. */
uint64_t rewrite_front_move_table(rewrite_writer *w, int64_t tag, uint64_t addr);
uint64_t rewrite_front_moved(const rewrite_writer *w, uint64_t addr);

/* elf_dynamic.c: first what goes to `ro`, then, when the address of `rw` is known, the rest. */
inl_status rewrite_dynamic_begin(rewrite_writer *w, inl_error *e);
inl_status rewrite_dynamic_end(rewrite_writer *w, inl_error *e);
bool rewrite_starts_by_preinit(const image *im);

/* elf_names.c: symbols that name moved code, into `ro`; where the tables that changed are now, 0: they have not. */
typedef struct rewrite_dynamic_places {
    uint64_t symtab, versym, gnu_hash;
} rewrite_dynamic_places;
inl_status rewrite_dynamic_names(rewrite_writer *w, rewrite_dynamic_places *to, inl_error *e);

/* elf_notes.c */
void rewrite_reserve_notes(rewrite_writer *w);
void rewrite_fill_notes(rewrite_writer *w, rewrite_boot_links links);
inl_status rewrite_clear_ibt(rewrite_writer *w, inl_error *e);

/* unwind.c */
inl_status rewrite_unwind(rewrite_writer *w, inl_error *e);

/* symtab.c, elf_sections.c: into the tail */
inl_status rewrite_sections(rewrite_writer *w, inl_error *e);
typedef struct rewrite_symtab {
    const uint32_t *numbers; /* of the original's sections in the new file */
    uint32_t number_count, text_section;
    /* what symtab.c leaves for the section table: */
    uint64_t symbols, symbols_size, strings, strings_size; /* file offsets */
    uint32_t locals;
} rewrite_symtab;
inl_status rewrite_symbols(rewrite_writer *w, rewrite_symtab *t, inl_error *e);
inl_status rewrite_dynamic_symbols(rewrite_writer *w, const rewrite_symtab *t, inl_error *e);

/* lines.c: what goes behind the original's debug information. False: nothing. */
enum { REWRITE_DEBUG_ABBREV, REWRITE_DEBUG_INFO, REWRITE_DEBUG_LINE, REWRITE_DEBUG_ARANGES, REWRITE_DEBUG_TABLES };
typedef struct rewrite_debug {
    uint32_t section[REWRITE_DEBUG_TABLES]; /* the original's; 0: it has none */
    const uint8_t *old[REWRITE_DEBUG_TABLES];
    uint64_t old_size[REWRITE_DEBUG_TABLES];
    rewrite_bytes added[REWRITE_DEBUG_TABLES];
} rewrite_debug;
bool rewrite_debug_make(const rewrite_writer *w, rewrite_debug *d);
void rewrite_debug_free(rewrite_debug *d);

/* elf_file.c */
inl_status rewrite_check_output(const rewrite_writer *w, const char *path, inl_error *e);
inl_status rewrite_write_file(rewrite_writer *w, const char *path, inl_error *e);

/* elf.c: helpers */
inl_status rewrite_no_memory(const rewrite_writer *w, inl_error *e);
inl_status rewrite_check_bytes(const rewrite_writer *w, const rewrite_bytes *b, inl_error *e);
void rewrite_notice(const rewrite_writer *w, const char *what);
bool rewrite_add_edit(rewrite_writer *w, uint64_t offset, const void *bytes, size_t size);
bool rewrite_add_area(rewrite_writer *w, rewrite_area area);
/* The original section at an address (and of a type, SHT_NULL: any), 0 when there is none. */
uint32_t rewrite_section_at(const rewrite_writer *w, uint64_t addr, uint32_t type);
/* File offset of `size` bytes at an address; false when they are not all in the file. */
bool rewrite_file_offset(const rewrite_writer *w, uint64_t addr, uint64_t size, uint64_t *offset);
Elf64_Phdr *rewrite_phdr(rewrite_writer *w, uint32_t type); /* the first of a type, or NULL */
static inline uint64_t rewrite_page_up(uint64_t x) { return (x + REWRITE_PAGE - 1) & ~(uint64_t)(REWRITE_PAGE - 1); }

#endif
