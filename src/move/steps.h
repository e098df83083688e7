/* Places of moved instructions, each told by how far it is from the one before: in the plan, which knows tens of
 * millions of them, and in what a file carries for signals (states.h). A step begins with a byte
 *
 *     bits 0..3  old address less that of the one before; 0: it follows as a signed number (the group's
 *                first: the group says it)
 *     bit 4      new place less that of the one before follows; else it is as far as the old one
 *     bit 5      length of the snippets in front follows
 *     bits 6, 7  whoever writes it may use them
 *
 * and then what follows. Numbers are ULEB128, of zigzag where they have a sign. */
#ifndef INL_MOVE_STEPS_H
#define INL_MOVE_STEPS_H

#include "move/move.h"

enum { MOVE_STEP_MOST = 24 }; /* bytes */

/* `from`: the one before in the group, NULL for its first. */
unsigned move_step_head(const move_map *m, const move_map *from);
uint8_t *move_step_put(uint8_t *to, unsigned head, const move_map *m, const move_map *from);
/* The head; *m is the one before and becomes the next. For the group's first it is what the group says. */
unsigned move_step_take(const uint8_t **p, move_map *m, bool first);

#endif
