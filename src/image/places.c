/* Procedures by their addresses in the file, where names are not known or say too little:
 *
 *     0x11b9                  that which holds the address, of the program
 *     0x11b9-0x13ff           those that begin between the two, both included
 *     libc.so.6:0x2a1c0       of an image by its file's name, or by its path
 */
#include "image/image.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static bool read_address(const char **at, uint64_t *out)
{
    char *end;
    const char *from = *at;
    if (from[0] != '0' || (from[1] != 'x' && from[1] != 'X')) return false;
    *out = strtoull(from + 2, &end, 16);
    *at = end;
    return end != from + 2;
}

bool image_place_read(const char *pattern, image_place *out)
{
    const char *colon = strrchr(pattern, ':'), *at = colon ? colon + 1 : pattern;
    size_t length = colon ? (size_t)(colon - pattern) : 0;
    if (length >= sizeof out->image || (colon && !length) || !read_address(&at, &out->low)) return false;
    memcpy(out->image, pattern, length);
    out->image[length] = 0;
    out->high = out->low;
    out->is_range = *at == '-';
    if (out->is_range && (at++, !read_address(&at, &out->high))) return false;
    return *at == 0;
}

bool image_place_is_in(const image_place *p, const char *path, const char *name, bool is_program)
{
    if (!p->image[0]) return is_program;
    return fnmatch(p->image, strchr(p->image, '/') ? path : name, 0) == 0;
}

bool image_place_has(const image_place *p, uint64_t low, uint64_t size)
{
    return p->is_range ? low >= p->low && low <= p->high : p->low >= low && p->low - low < size;
}
