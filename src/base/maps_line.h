/* One line of /proc/PID/maps (and of smaps):  low-high rwxp offset device inode      name
 *
 * Needs no C library, and no memory. */
#ifndef INL_BASE_MAPS_LINE_H
#define INL_BASE_MAPS_LINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct inl_maps_line {
    uint64_t low, high, offset, inode;
    int prot; /* PROT_* */
    bool shared;
    char perms[5], device[16]; /* as they stand there */
    char *name;                /* in the line; the kernel escapes a newline as \012, and nothing else */
} inl_maps_line;

/* `line` ends with 0. False: it is not such a line. */
bool inl_maps_line_read(char *line, inl_maps_line *);

/* Makes of a name there, where it stands, the path that it is. */
void inl_maps_name_unescape(char *name);

#endif
