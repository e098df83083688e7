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
    uint64_t addr, mem_size, file_offset, file_size;
    bool read, write, exec;
} image_segment;

typedef struct image_section {
    const char *name; /* "" where the file has no section names */
    uint64_t addr, size, file_offset;
    uint32_t type;
    uint64_t flags;
} image_section;

typedef enum image_proc_source {
    IMAGE_PROC_SYMTAB,  /* .symtab, also of a separate debug file */
    IMAGE_PROC_DYNSYM,
    IMAGE_PROC_PLT,     /* "name@plt" */
    IMAGE_PROC_UNWIND,  /* a range of .eh_frame without a name: "sub_<hex address>" */
    IMAGE_PROC_ENTRY,   /* the entry point or an init/fini function without a name */
} image_proc_source;

typedef struct image_proc {
    uint64_t addr, size;  /* never 0 size; ranges do not overlap: an alias is listed in `aliases` */
    const char *name;     /* as in the file, mangled; the preferred of several (global over local,
                             then without leading underscores, then alphabetical) */
    image_proc_source source;
    const char *const *aliases; /* NULL-terminated or NULL */
} image_proc;

inl_status image_open(const char *path, image **out, inl_error *e);
/* An image that is mapped at `base` (e.g. the vdso); `size` bytes are readable; copied. */
inl_status image_open_memory(const void *base, size_t size, const char *name, image **out,
                             inl_error *e);
void image_close(image *);

const char *image_path(const image *);
const char *image_name(const image *); /* the last path component */
uint16_t image_machine(const image *); /* EM_* */
uint16_t image_type(const image *);    /* ET_EXEC or ET_DYN */
uint64_t image_entry(const image *);
const char *image_interp(const image *); /* PT_INTERP or NULL */
const char *image_build_id(const image *); /* hex or NULL */
size_t image_segments(const image *, const image_segment **out);
size_t image_sections(image *, const image_section **out);
uint64_t image_phdr_addr(const image *);  /* link-time address of the program headers, 0 if not mapped */
/* File bytes at a link-time address: returns how many are available (0: none). */
size_t image_bytes(const image *, uint64_t addr, const uint8_t **out);

/* Procedures, sorted by address. A symbol without a size reaches to the next procedure, or the end
 * of its unwind range or section. Where ranges overlap, each byte belongs to the last procedure that
 * begins at or before it. A nameless entry point, init or fini function is called _start, _init,
 * _fini. Symbols first (symtab of the file, of its separate debug file by
 * build-id or .gnu_debuglink, dynsym, PLT), then unwind ranges that no symbol covers. */
size_t image_procs(image *, const image_proc **out);
const image_proc *image_proc_at(image *, uint64_t addr); /* covering addr, or NULL */
const image_proc *image_proc_named(image *, const char *name); /* also by alias; NULL */

/* The ranges that the unwind table (.eh_frame) describes, sorted by address, each once. They are
 * found through the section or, where section headers are stripped, PT_GNU_EH_FRAME. */
typedef struct image_unwind_range {
    uint64_t addr, size;
    uint64_t fde;  /* where its entry stands */
    uint64_t lsda; /* the language's exception table, 0 when it has none */
} image_unwind_range;
size_t image_unwind_ranges(image *, const image_unwind_range **out);

/* Source position of an address; false when unknown. */
bool image_line_at(image *, uint64_t addr, const char **file, unsigned *line);

/* Address of a data or function symbol (dynsym or symtab); false when absent. */
bool image_symbol(image *, const char *name, uint64_t *addr, uint64_t *size);

/* Demangled C++/Rust name into out (returns out), or the name itself when it is not mangled.
 * The work is done by the C++ run time's __cxa_demangle where the program is linked with it
 * (-Wl,-u,__cxa_demangle -lstdc++); otherwise names stay mangled. */
const char *image_demangle(const char *name, char *out, size_t size);

#endif
