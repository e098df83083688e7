/* The instruction sets whose code can be moved. */
#include "move/isa.h"

const move_isa *move_isa_of(const isa *set)
{
    static const move_isa *const known[] = {&move_isa_x86_64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->isa == set) return known[i];
    return NULL;
}
