/* Additions of analysis routines that wait for the end (sums.c): what its files share. */
#ifndef INL_TOOL_SUMS_H
#define INL_TOOL_SUMS_H

#include "tool/state.h"
#include "base/vec.h"
#include "image/image.h"
#include "weave/routine.h"

/* A variable that is added to. */
typedef struct sum_cell {
    uint64_t variable; /* the pointer variable that leads to it; 0: none */
    uint64_t at;       /* its address, or the distance from where the pointer points to */
    uint32_t size;
} sum_cell;

typedef struct sum { /* travels */
    struct sum *next;
    sum_cell cell;
    uint32_t counter;
    uint64_t done; /* of the counter's value, what has been added */
} sum;

/* --- alias.c --- */
typedef struct alias_view { /* of the tool's own file */
    image *self;
    INL_VEC(uint64_t) taken; /* addresses, ascending */
} alias_view;
/* False: nothing can be known of the tool's variables. */
bool alias_begin(alias_view *);
void alias_end(alias_view *);
/* Does no access see the cell, or when it is added to? */
bool alias_is_private(const alias_view *, const sum_cell *, const weave_access *, size_t count);

#endif
