/* How run times with stacks of their own look whether there is room: by a limit that they find through a register that
 * C code sets before it uses it.
 *
 *     ldr x16,[x28,#16]        x19 to x28; V8 uses x26, Go x28
 *     cmp sp,x16 */
#include "isa/a64_tables.h"
#include "isa/aarch64/a64.h"
#include "move/aarch64/machine.h"

enum { FIRST_KEPT = 19, LAST_KEPT = 28, CMP_SP = 0xeb2063ff /* cmp sp, x0 */, LDR = 0xf9400000 /* ldr x0, [x0] */ };

static uint32_t word_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The register from which `reg` was last loaded in front of the comparison, or -1. */
static int loaded_from(const uint8_t *bytes, uint32_t at, unsigned reg)
{
    while (at >= 4) {
        isa_insn in;
        isa_effects fx;
        uint32_t word = word_at(bytes + (at -= 4));
        unsigned base = word >> 5 & 31;
        if (isa_aarch64.decode(bytes + at, 4, 0, &in) > ISA_UNKNOWN) return -1;
        isa_aarch64.effects(&in, &fx);
        if (!(fx.writes >> reg & 1)) continue;
        bool load = (word & 0xffc00000) == (uint32_t)LDR && (word & 31) == reg;
        return load && base >= FIRST_KEPT && base <= LAST_KEPT ? (int)base : -1;
    }
    return -1;
}

int move_a64_checks_stack(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t at = 0; at + 4 <= size; at += 4) {
        uint32_t word = word_at(bytes + at);
        unsigned reg = word >> 16 & 31;
        int base = (word & ~0x1f0000u) == CMP_SP && reg != 31 ? loaded_from(bytes, at, reg) : -1;
        if (base >= 0) return base;
    }
    return -1;
}
