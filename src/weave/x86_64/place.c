/* An instruction whose operand is where a snippet says (weave/place.c):
 *
 *   - one that names its address in ModRM, an absolute one (moffs), xlat: a scratch register gets the address, and the
 *     instruction, without its segment, finds it there;
 *   - string instructions and maskmovdqu, whose registers point to their operands: RSI and RDI go where the operands
 * are for the moment of the instruction, and are then as far behind that as they were before it. Meanwhile the
 * program's values are told by the registers themselves (WEAVE_AHEAD), repeated or not.
 *
 * Nothing here touches the flags.
 */
#include "weave/copy.h"
#include "weave/x86_64/machine.h"

enum { NAMED = 0, SOURCE = 0, TARGET = 1 }; /* temporaries: of RSI and RDI those of their places in `ahead` */

static bool is_string(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    bool escaped = in->opcode_at && in->raw[in->opcode_at - 1] == 0x0f;
    return escaped ? op == 0xf7 : (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) || op == 0xf7;
}

const char *weave_x86_placeable(const isa_insn *in, const isa_mem *m, unsigned *place)
{
    uint8_t op = in->raw[in->opcode_at];
    bool is_legacy = x86_encoding_of(in) == X86_LEGACY;
    if (in->bits & ISA_BIT_UNKNOWN) return "the instruction is not known";
    if (m->bits & ISA_MEM_BIT_OFFSET) return "the address of a bit string cannot be set: a register counts on from it";
    if (m->bits & ISA_MEM_VARIABLE && !is_legacy) return "the address of a tile cannot be set: its rows lie apart";
    if (is_legacy && op == 0x8e) return "an instruction that loads a segment register is carried out otherwise";
    if (m->bits & ISA_MEM_IMPLICIT && !(m->bits & ISA_MEM_INDEX8)) {
        bool points = m->base == X86_RSI || m->base == X86_RDI;
        if (!points || !is_string(in) || m->bits & ISA_MEM_ADDR32)
            return "the address is in a register that the instruction itself names, as the stack pointer is";
        *place = m->base == X86_RDI ? TARGET : SOURCE;
        return NULL;
    }
    *place = NAMED;
    return NULL;
}

static x86_addr ahead_addr(unsigned which) { return x86_gs(WEAVE_OFF(ahead) + 8 * (int32_t)which); }

static bool copy_string(weaver *w, const isa_insn *in, weave_map_entry *entry, unsigned places, bool plain)
{
    static const uint8_t regs[] = {[SOURCE] = X86_RSI, [TARGET] = X86_RDI};
    weave_scratch t = weave_scratch_begin(w, in, WEAVE_ALL_REGS, plain);
    if (t.reg == ISA_NO_REG) return false;
    for (unsigned k = 0; k < 2; k++) {
        if (!(places >> k & 1)) {
            x86_store_imm(w->c, 8, ahead_addr(k), 0);
            continue;
        }
        x86_mov_rr(w->c, 8, t.reg, regs[k]);
        x86_not(w->c, 8, t.reg);
        x86_load(w->c, 8, regs[k], weave_temp_addr(k));
        x86_lea(w->c, t.reg, x86_indexed(regs[k], t.reg, 1, 1));
        x86_store(w->c, 8, ahead_addr(k), t.reg);
    }
    weave_scratch_mark(w, entry, t);
    entry->spilled |= WEAVE_AHEAD;
    weave_x86_put_without_segment(w, in);
    for (unsigned k = 0; k < 2; k++) {
        if (!(places >> k & 1)) continue;
        x86_load(w->c, 8, t.reg, ahead_addr(k));
        x86_not(w->c, 8, t.reg);
        x86_lea(w->c, regs[k], x86_indexed(regs[k], t.reg, 1, 1));
    }
    weave_scratch_end(w, t);
    return true;
}

bool weave_x86_copy_placed(weaver *w, const isa_insn *in, weave_map_entry *entry, unsigned places, bool plain)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = w->run->isa->memory(in, mem);
    for (int k = 0; k < n; k++)
        if (mem[k].bits & ISA_MEM_IMPLICIT && !(mem[k].bits & ISA_MEM_INDEX8) && is_string(in))
            return copy_string(w, in, entry, places, plain);
    weave_scratch s = weave_scratch_begin(w, in, WEAVE_LOW_REGS, plain);
    if (s.reg == ISA_NO_REG) return false;
    x86_load(w->c, 8, s.reg, weave_temp_addr(NAMED));
    weave_scratch_mark(w, entry, s);
    bool done = in->modrm_at ? weave_x86_put_with_base(w, in, s.reg, false) : weave_x86_put_accumulator(w, in, s.reg);
    weave_scratch_end(w, s);
    return done;
}
