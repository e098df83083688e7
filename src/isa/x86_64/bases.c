#include "isa/x86_64/bases.h"

bool x86_bases_by_call, x86_bases_late, x86_bases_nowhere;

enum x86_bases x86_bases_choose(uint64_t hwcap2)
{
    enum x86_bases kind = x86_bases_of(hwcap2);
    x86_bases_by_call = kind == X86_BASES_BY_CALL;
    return kind;
}
