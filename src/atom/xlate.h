/* A list of addresses, shared by the files of the instrumentation and the analysis side. */
#ifndef INL_ATOM_XLATE_H
#define INL_ATOM_XLATE_H

#include <stdint.h>

struct atom_xlate {
    uint64_t text, text_size;
    uint64_t *addresses;
    unsigned count, capacity;
};

enum { ATOM_MAX_OBJECTS = 256 };

#endif
