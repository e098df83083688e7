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
#ifndef INL_ELF_PRIVATE_H
#define INL_ELF_PRIVATE_H

#include "base/arena.h"
#include "base/vec.h"
#include "image/file.h"
#include "base/bytes.h"
#include "base/page.h"
#include "elf/elf.h"
#include "elf/isa.h"
#include "move/boot.h"

typedef struct elf_edit { /* over the original file's bytes */
    uint64_t offset;
    size_t size;
    const uint8_t *bytes;
} elf_edit;

typedef struct elf_area { /* a new section */
    const char *name;
    uint32_t type;
    uint64_t flags, addr, size, align, entry_size;
    uint32_t replaces; /* the original section whose header is re-aimed; 0: a new one */
} elf_area;

typedef struct elf_unit { /* what can make room at the file's front */
    uint64_t addr, size, align;
    int64_t tag; /* of a dynamic table; 0: a program header's */
    bool is_note, moves;
    uint64_t to; /* its new address, 0: none */
} elf_unit;
enum { ELF_UNITS = 32 };

typedef struct elf_writer {
    elf_target *target;
    const move_plan *plan;
    const elf_isa *isa;
    const elf_write_options *options;
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
    INL_VEC(elf_edit) edits;
    INL_VEC(elf_area) areas;
    inl_bytes boot, ro, rw;
    inl_bytes tail;                        /* behind the segments; its addr is a file offset */
    size_t notes_at, notes_size;           /* in ro */
    struct {                               /* elf_front.c */
        bool fits;                         /* the program headers stay at the file's front */
        bool one_segment;                  /* to save program headers: code and constants in one */
        elf_unit units[ELF_UNITS], *notes; /* notes: the one that Inlay's go with, or NULL */
        size_t count;
        uint64_t low; /* the first segment's address */
    } front;
    bool only_moved;             /* the unwind table tells of moved code alone */
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
} elf_writer;

/* elf_check.c */
inl_status elf_check_input(elf_writer *w, inl_error *e);

/* elf_front.c: is there room; moves what program headers name; the program headers there, and their address. */
void elf_front_plan(elf_writer *w);
void elf_front_move(elf_writer *w);
bool elf_front_put(elf_writer *w, uint64_t *addr);
/* Moves a dynamic table that is in the way: its address then. And the new address of anything that has moved. */
uint64_t elf_front_move_table(elf_writer *w, int64_t tag, uint64_t addr);
uint64_t elf_front_moved(const elf_writer *w, uint64_t addr);

/* elf_dynamic.c: first what goes to `ro`, then, when the address of `rw` is known, the rest. */
inl_status elf_dynamic_begin(elf_writer *w, inl_error *e);
inl_status elf_dynamic_end(elf_writer *w, inl_error *e);
bool elf_starts_by_preinit(const image *im);

/* elf_names.c: symbols that name moved code, into `ro`; where the tables that changed are now, 0: they have not. */
typedef struct elf_dynamic_places {
    uint64_t symtab, versym, gnu_hash;
} elf_dynamic_places;
inl_status elf_dynamic_names(elf_writer *w, elf_dynamic_places *to, inl_error *e);

/* elf_notes.c */
void elf_reserve_notes(elf_writer *w);
void elf_fill_notes(elf_writer *w, move_boot_links links);
inl_status elf_clear_marks(elf_writer *w, inl_error *e);

/* unwind.c */
inl_status elf_unwind(elf_writer *w, inl_error *e);
inl_status elf_unwind_of_return(elf_writer *w, inl_error *e); /* the entry of what the tool's calls return to, alone */

/* symtab.c, elf_sections.c: into the tail */
inl_status elf_sections(elf_writer *w, inl_error *e);
typedef struct elf_symtab {
    const uint32_t *numbers; /* of the original's sections in the new file */
    uint32_t number_count, text_section;
    /* what symtab.c leaves for the section table: */
    uint64_t symbols, symbols_size, strings, strings_size; /* file offsets */
    uint32_t locals;
} elf_symtab;
inl_status elf_symbols(elf_writer *w, elf_symtab *t, inl_error *e);
inl_status elf_dynamic_symbols(elf_writer *w, const elf_symtab *t, inl_error *e);

/* lines.c: what goes behind the original's debug information. False: nothing. */
enum { ELF_DEBUG_ABBREV, ELF_DEBUG_INFO, ELF_DEBUG_LINE, ELF_DEBUG_ARANGES, ELF_DEBUG_TABLES };
typedef struct elf_debug {
    uint32_t section[ELF_DEBUG_TABLES]; /* the original's; 0: it has none */
    const uint8_t *old[ELF_DEBUG_TABLES];
    uint64_t old_size[ELF_DEBUG_TABLES];
    inl_bytes added[ELF_DEBUG_TABLES];
} elf_debug;
bool elf_debug_make(const elf_writer *w, elf_debug *d);
void elf_debug_free(elf_debug *d);

/* elf_file.c */
inl_status elf_check_output(const elf_writer *w, const char *path, inl_error *e);
inl_status elf_write_file(elf_writer *w, const char *path, inl_error *e);
/* Has somebody appended something to the original that is not ELF's (an archive, a heap, a file system), which the
 * program reads from its file? Where it begins. */
bool elf_appended(const elf_writer *w, uint64_t *from);

/* elf.c: helpers */
inl_status elf_no_memory(const elf_writer *w, inl_error *e);
inl_status elf_check_bytes(const elf_writer *w, const inl_bytes *b, inl_error *e);
void elf_notice(const elf_writer *w, const char *what);
bool elf_add_edit(elf_writer *w, uint64_t offset, const void *bytes, size_t size);
bool elf_add_area(elf_writer *w, elf_area area);
/* The original section at an address (and of a type, SHT_NULL: any), 0 when there is none. */
uint32_t elf_section_at(const elf_writer *w, uint64_t addr, uint32_t type);
/* File offset of `size` bytes at an address; false when they are not all in the file. */
bool elf_file_offset(const elf_writer *w, uint64_t addr, uint64_t size, uint64_t *offset);
Elf64_Phdr *elf_phdr(elf_writer *w, uint32_t type); /* the first of a type, or NULL */
/* The next page of the file's processor. */
static inline uint64_t elf_page_up(uint64_t x) { return (x + elf_isa_here.page - 1) & -(uint64_t)elf_isa_here.page; }

#endif
