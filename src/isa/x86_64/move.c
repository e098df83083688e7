/* Instructions at another address: displacements corrected, or the operand put into a register.
 *
 * rebase() takes a RIP-relative form, whose ModRM byte is mod 0, rm 5 with a 32-bit displacement,
 * and writes it with [reg] instead. The displacement goes, so the result is never longer than the
 * original, save for a REX, a wider VEX, a SIB or a zero displacement, which together need less
 * room than the four bytes freed. Registers 8 to 15 need the encoding's B bit, which sits in a
 * different place in each of the five prefix styles.
 */
#include <string.h>
#include "isa/x86_64/tables.h"

static bool is_branch(const isa_insn *in)
{
    switch (in->flow) {
    case ISA_FLOW_JUMP:
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG:
    case ISA_FLOW_CALL:
    case ISA_FLOW_JUMP_IND:
    case ISA_FLOW_CALL_IND:
    case ISA_FLOW_RETURN:
    case ISA_FLOW_TX: return true;
    default: return false;
    }
}

isa_move x86_relocate(const isa_insn *in, uint64_t to, uint8_t *out, uint8_t *len)
{
    isa_move done = is_branch(in) ? ISA_MOVE_BRANCH : ISA_MOVE_COPIED;
    *len = 0;
    if (x86_row_of(in)->form & X86_FORM_RELATIVE) return ISA_MOVE_BRANCH;
    memcpy(out, in->raw, 16);
    if (in->bits & ISA_BIT_PCREL_MEM) {
        int64_t disp = (int64_t)(in->target - (to + in->len));
        int32_t narrow = (int32_t)disp;
        bool wraps = in->x[X86_X_PREFIX] & X86_PREFIX_A32; /* modulo 4 GB everything is near */
        if (narrow != disp && !wraps) return is_branch(in) ? ISA_MOVE_BRANCH : ISA_MOVE_FAR;
        memcpy(out + in->disp_at, &narrow, 4);
    }
    *len = in->len;
    return done;
}

/* Where escapes and opcode of a legacy encoding begin. */
static unsigned legacy_start(const isa_insn *in)
{
    const uint8_t *p = in->raw + in->modrm_at;
    if (in->modrm_at >= 2 && p[-2] == 0x0f) return in->modrm_at - 2;
    if (in->modrm_at >= 3 && p[-3] == 0x0f && (p[-2] == 0x38 || p[-2] == 0x3a)) return in->modrm_at - 3;
    return in->modrm_at - 1;
}

static bool uses_high_byte(const isa_insn *in)
{
    return in->x[X86_X_PREFIX] & X86_PREFIX_NOREX && in->x[X86_X_REG] >= 4 &&
           x86_fxs[x86_row_of(in)->fx].quirks & X86_FX_HIGH_REG;
}

/* Each writes everything before the ModRM byte with the base extension bit set to `b` and the
 * index extension cleared; the number of bytes, or 0 when there is no such encoding. */
static unsigned head_legacy(const isa_insn *in, unsigned b, uint8_t *out)
{
    unsigned start = legacy_start(in), n = start;
    memcpy(out, in->raw, start);
    if (!(in->x[X86_X_PREFIX] & X86_PREFIX_NOREX)) {
        out[start - 1] = (in->raw[start - 1] & ~3) | b;
    } else if (b) {
        if (uses_high_byte(in)) return 0;
        out[n++] = 0x41;
    }
    memcpy(out + n, in->raw + start, in->modrm_at - start);
    return n + in->modrm_at - start;
}

static unsigned head_rex2(const isa_insn *in, unsigned b, uint8_t *out)
{
    memcpy(out, in->raw, in->modrm_at);
    out[in->modrm_at - 2] = (out[in->modrm_at - 2] & ~0x33) | b;
    return in->modrm_at;
}

static unsigned head_vex(const isa_insn *in, unsigned b, uint8_t *out)
{
    unsigned at = in->modrm_at, first = at >= 4 ? in->raw[at - 4] : 0;
    bool wide = first == 0xc4 || first == 0x8f;
    if (wide || !b) {
        memcpy(out, in->raw, at);
        if (wide) out[at - 3] = (out[at - 3] | 0x60) & ~(b << 5);
        return at;
    }
    unsigned vex = at - 3, low = in->raw[vex + 1];
    memcpy(out, in->raw, vex);
    out[vex] = 0xc4;
    out[vex + 1] = (low & 0x80) | 0x41; /* R, X clear, B set, map 1 */
    out[vex + 2] = low & 0x7f;
    out[vex + 3] = in->raw[vex + 2];
    return at + 1;
}

static unsigned head_evex(const isa_insn *in, unsigned b, uint8_t *out)
{
    unsigned at = in->modrm_at;
    memcpy(out, in->raw, at);
    out[at - 4] = ((out[at - 4] | 0x60) & ~(b << 5)) & ~8;
    out[at - 3] |= 4;
    return at;
}

bool x86_rebase(const isa_insn *in, unsigned reg, uint8_t *out, uint8_t *len)
{
    unsigned prefix = in->x[X86_X_PREFIX], b = reg >> 3 & 1, n;
    uint8_t bytes[24];
    if (!(in->bits & ISA_BIT_PCREL_MEM) || reg >= X86_REGS) return false;
    if (prefix & X86_PREFIX_EVEX) n = head_evex(in, b, bytes);
    else if (prefix & X86_PREFIX_VEX) n = head_vex(in, b, bytes);
    else if (prefix & X86_PREFIX_REX2) n = head_rex2(in, b, bytes);
    else n = head_legacy(in, b, bytes);
    if (!n) return false;
    unsigned low = reg & 7, modrm = (in->raw[in->modrm_at] & 0x38) | low;
    bytes[n++] = low == 5 ? modrm | 0x40 : modrm;
    if (low == 4) bytes[n++] = 0x24;
    if (low == 5) bytes[n++] = 0;
    unsigned rest = in->disp_at + 4u;
    memcpy(bytes + n, in->raw + rest, in->len - rest);
    n += in->len - rest;
    memcpy(out, bytes, n);
    *len = n;
    return true;
}
