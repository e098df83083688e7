/* How run times with stacks of their own look whether there is room: cmp disp(%r13),%rsp, also by r12, r14, r15. */
#include "move/x86_64/machine.h"
#include "isa/x86_64/x86.h"

#include <string.h>

enum { REX_WB = 0x49, CMP_LOAD = 0x3b, SHORTEST = 4 };

/* REX.W and REX.B, the opcode, and a ModRM byte that says: rsp, and memory at r12 to r15 with a displacement. */
static bool is_check(const uint8_t *p)
{
    unsigned mod = p[2] >> 6, reg = p[2] >> 3 & 7, rm = p[2] & 7;
    return p[0] == REX_WB && p[1] == CMP_LOAD && (mod == 1 || mod == 2) && reg == X86_RSP && rm >= 4;
}

int move_x86_checks_stack(const uint8_t *bytes, uint32_t size)
{
    const uint8_t *p = bytes, *end = bytes + size, *found = NULL;
    while (!found && end - p >= SHORTEST && (p = memchr(p, REX_WB, (size_t)(end - p) - SHORTEST + 1))) {
        if (is_check(p)) found = p;
        p++;
    }
    isa_insn in;
    for (p = bytes; found && p < found; p += in.len) /* not in the middle of another one */
        if (isa_x86_64.decode(p, (size_t)(end - p), 0, &in) > ISA_UNKNOWN) return -1;
    return found && p == found ? 8 + (found[2] & 7) : -1;
}
