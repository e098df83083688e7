/* The instruction sets that Inlay knows. */
#include "isa/isa.h"

const isa *isa_for_machine(uint16_t elf_machine)
{
    static const isa *const known[] = {&isa_x86_64, &isa_aarch64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i]->elf_machine == elf_machine) return known[i];
    return NULL;
}
