/* Analyses that will be asked for, made by another process meanwhile: where images are instrumented one after the
 * other, those of the later ones are there when the first has been planned. The child has a copy of everything,
 * analyses one image after the other, and tells each as bytes (cfg/kept.h). What it does not tell (there is one
 * processor only, it could not be made, it was killed) is analysed here as without it.
 *
 *     tool_ahead_begin(images, count);           // in the order in which they will be asked for
 *     ... tool_analyse(images[k], ...) ...
 *     tool_ahead_end();                          // what has not been asked for is not made any more
 */
#ifndef INL_TOOL_AHEAD_H
#define INL_TOOL_AHEAD_H

#include "cfg/program.h"

#include <stddef.h>

struct image;

void tool_ahead_begin(struct image *const *, size_t count);
cfg_program *tool_ahead_take(struct image *); /* waits for it; NULL: it has to be made here */
void tool_ahead_end(void);

#endif
