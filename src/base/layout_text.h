/* Values as text, by what is told of their types (docs/trace-format.md). */
#ifndef INL_BASE_LAYOUT_TEXT_H
#define INL_BASE_LAYOUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of `size` bytes, which may be the first ones alone; the layout ends with the text or a line. How long the text in
 * `out` is; 0: the layout makes no sense, or there is no room. */
size_t inl_layout_text(const char *layout, const uint8_t *bytes, size_t size, char *out, size_t room);

#endif
