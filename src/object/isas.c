/* The processors whose objects can be instrumented. */
#include "object/file.h"

static const object_isa *const known[] = {&object_isa_x86_64};

const object_isa *object_isa_for(uint16_t machine)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->isa->elf_machine == machine) return known[i];
    return NULL;
}
