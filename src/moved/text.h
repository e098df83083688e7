/* Writing to code that is there, and making code of memory. Where memory that has been written to may not become code
 * (PR_SET_MDWE, filters of service managers) it is written through /proc instead, and stays executable all the time. */
#ifndef INL_MOVED_TEXT_H
#define INL_MOVED_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct moved_text {
    uint64_t low, size; /* pages */
    int mem;            /* of /proc; negative: written to where it is */
} moved_text;
/* What is code is about to be written to. False: it cannot be, and stays as it is. */
bool moved_text_open(moved_text *, uint64_t low, uint64_t high);
/* Fresh memory there, whose contents will be code; -errno, or where it is: FIXED_NOREPLACE, unless the place is `held`.
 */
long moved_text_make(moved_text *, uint64_t low, uint64_t size, bool held);
bool moved_text_put(const moved_text *, uint64_t at, const void *bytes, size_t size);
/* False: some of it could not be written, or is no code now. */
bool moved_text_close(moved_text *);

#endif
