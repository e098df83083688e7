/* Text of an instruction, piece by piece, into as much room as there is. */
#ifndef INL_ISA_TEXT_H
#define INL_ISA_TEXT_H

#include <stddef.h>

typedef struct isa_text {
    char *at;
    size_t room;
    int length; /* of all of it, as snprintf answers */
} isa_text;

void isa_text_put(isa_text *t, const char *form, ...) __attribute__((format(printf, 2, 3)));

#endif
