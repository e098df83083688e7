/* What the parts that write line tables share. */
#ifndef INL_OBJECT_LINES_H
#define INL_OBJECT_LINES_H

#include "object/file.h"

enum { LINES_COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, NEGATE, BLOCK, CONST_ADD_PC, FIXED_ADVANCE_PC };
enum { END_SEQUENCE = 1, SET_ADDRESS };

/* --- rows.c: what a program says of displaced code, and rows for its stubs --- */

typedef struct object_row { /* up to `end`; it may be empty */
    uint64_t addr, end, line;
    uint32_t file, column;
    bool statement;
} object_row;

typedef struct object_rows {
    INL_VEC(object_row) all; /* of a unit, of this object's code */
    bool open;               /* the last one's end is not known yet */
} object_rows;

/* A row as it is read; the last of a sequence ends the one in front alone. */
bool object_rows_add(object_rows *, object_row, bool last);
void object_rows_sort(object_rows *);
/* The one that holds an address, NULL: none. */
const object_row *object_rows_at(const object_rows *, uint64_t addr);
/* Appends a sequence for a stub; `statement`: how a sequence begins. */
bool object_rows_put(const object_rows *, const object_plan *, const object_stub *, bool statement, inl_bytes *,
                     object_relas *);
/* Is an instruction's place in a region left to its stub, so that a row in front of it is one of the stub's? */
bool object_is_left(const object_region *, uint64_t addr);

/* --- shown.c --- */

typedef struct object_shown { /* what has lines of its own */
    uint32_t stub;
    uint64_t table; /* its line table's offset */
} object_shown;
typedef INL_VEC(object_shown) object_shown_list;
/* Units for stubs; by table ascending. */
inl_status object_put_shown(object_plan *, const object_stubs *, const object_shown_list *, uint32_t lines,
                            inl_error *);

#endif
