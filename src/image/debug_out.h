/* Debug information for code that Inlay has made out of a program's (moved, translated), by which debuggers name its
 * procedures, show its lines and walk over its frames: DWARF 4, and the ELF file in memory that gdb's JIT interface
 * takes (`struct jit_code_entry`: symfile_addr, symfile_size).
 */
#ifndef INL_IMAGE_DEBUG_OUT_H
#define INL_IMAGE_DEBUG_OUT_H

#include "base/bytes.h"
#include "base/map.h"

/* --- debug_lines.c --- */

/* Room for the length of a table that is about to be appended; the length. */
size_t debug_length_begin(inl_bytes *);
void debug_length_end(inl_bytes *, size_t begin);

/* A line program in the making; zeroed before the first row, given back by debug_lines_put. */
typedef struct debug_lines {
    inl_bytes files, program;
    inl_map numbers;                               /* of files, by their names' addresses */
    uint64_t file_count, addr, file, line, column; /* the machine's registers */
    bool open;                                     /* in a sequence */
} debug_lines;
typedef struct debug_row { /* holds up to the next row's address */
    uint64_t addr;
    const char *file;   /* NULL: none from here on. Names that are the same must be one string */
    const char *folder; /* NULL: the name is whole */
    unsigned line, column;
} debug_row;
/* From its address on, in ascending order within a sequence; up to `addr`, where one ends that was begun. */
void debug_lines_row(debug_lines *, const debug_row *);
void debug_lines_end(debug_lines *, uint64_t addr);
/* Appends the table of one unit (.debug_line); false: there are no lines, or no memory. */
bool debug_lines_put(debug_lines *, inl_bytes *out);

/* A unit over code (.debug_info). Without a size its addresses are those of .debug_ranges. */
typedef struct debug_unit {
    const char *name;
    uint64_t abbrev_at, lines_at; /* in their tables */
    uint64_t addr, size;
    bool has_lines;
} debug_unit;
void debug_abbreviations_put(inl_bytes *out, bool ranges); /* ranges: for units without a size, too */
size_t debug_unit_begin(inl_bytes *out, const debug_unit *);
/* Only those that C would name so; the others are named by their symbols, which debuggers demangle. */
void debug_unit_proc(inl_bytes *out, const char *name, uint64_t addr, uint64_t size);
void debug_unit_end(inl_bytes *out, size_t begin);

/* --- debug_object.c --- */

typedef struct debug_code {
    uint64_t addr, size;
    const char *name; /* the original procedure's */
} debug_code;
/* All addresses are those in the process. */
typedef struct debug_object {
    uint16_t machine;       /* EM_* */
    const char *name;       /* of the unit, for people */
    const debug_code *code; /* ascending */
    size_t code_count;
    const debug_row *rows; /* ascending; the last one has no file */
    size_t row_count;
    const inl_bytes *frames; /* .debug_frame; NULL: none */
    size_t eh_frame_at,
        eh_frame_size; /* .eh_frame is in `out` already, behind where the file begins, from this offset on */
    uint64_t eh_frame_addr;
} debug_object;
/* Appends an ELF file; false: no memory. */
bool debug_object_put(const debug_object *, inl_bytes *out);
/* The same in two steps: between them a part of it is appended that is of use by itself, at the address that it has. */
size_t debug_object_begin(inl_bytes *out);
bool debug_object_end(const debug_object *, size_t begin, inl_bytes *out);

#endif
