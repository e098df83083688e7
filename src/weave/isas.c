/* The instruction sets that the weaver of this build knows. */
#include "weave/isa.h"

const weave_isa *weave_isa_of(const isa *set)
{
    const weave_isa *const known[] = {weave_isa_here()};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->isa == set) return known[i];
    return NULL;
}
