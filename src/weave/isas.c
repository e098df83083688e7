/* The instruction sets that the weaver knows. */
#include "weave/isa.h"

const weave_isa *weave_isa_of(const isa *set)
{
    static const weave_isa *const known[] = {&weave_isa_x86_64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->isa == set) return known[i];
    return NULL;
}
