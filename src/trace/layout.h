/* Values by what a recording tells of their types. */
#ifndef INL_TRACE_LAYOUT_H
#define INL_TRACE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout of an argument, from 1, or of the result, 0, in what is told of a procedure (NULL: nothing is); it ends
 * with the line. NULL: there is none. */
const char *trace_layout_of(const char *types, unsigned number);
/* Of `size` bytes, which may be the first ones alone. How long the text in `out` is; 0: the layout makes no sense, or
 * there is no room. */
size_t trace_layout_text(const char *layout, const uint8_t *bytes, size_t size, char *out, size_t room);

#endif
