/* Which procedure, file and line of the tool a place in its code is, for messages. Two ways to know:
 *
 *     source_open     by the tool's file: its symbols and debug information. Takes memory: in a process of its own
 *     source_carry    what a rewritten program carries of that, since the tool's file may be gone when it runs:
 *                     the lines of the tool's own sources, in the carried heap; asked in a signal handler
 *
 * Places are offsets from the begin of the tool's image. */
#ifndef INL_TOOL_SOURCE_H
#define INL_TOOL_SOURCE_H

#include "image/image.h"

typedef enum source_owner {
    SOURCE_UNKNOWN, /* a library, or no debug information */
    SOURCE_TOOL,
    SOURCE_INLAY,
} source_owner;
typedef struct source_place {
    const char *proc, *file; /* NULL: not known */
    unsigned line;
    source_owner owner;
} source_place;
typedef bool source_lookup(void *arg, uint32_t place, source_place *out);

/* `arg` is an image of the tool's file. */
bool source_by_image(void *arg, uint32_t place, source_place *out);

typedef struct source_table source_table;
/* Made in the instrumentor, kept in the carried heap; NULL: nothing is known, or there is no memory. */
const source_table *source_carry(void);
bool source_by_table(void *arg, uint32_t place, source_place *out);

#endif
