/* One x86-64 instruction, laid out in the order of the manual (Intel SDM volume 2, chapter 2):
 *
 *     segment  66  F0  F3  REX  [0F] opcode  ModRM  SIB  displacement  immediate
 *
 * An instruction is put together in a small buffer and copied when it is whole, so that a failure
 * leaves the code as it was. A RIP-relative displacement counts from the end of the instruction,
 * immediate included, and is therefore filled in last.
 *
 * What ModRM and SIB cannot say directly:
 *   - rm = 100 means "a SIB follows": rsp and r12 as a base take a SIB without an index;
 *   - mod = 00, rm = 101 means RIP-relative: an absolute address takes a SIB without a base;
 *   - mod = 00, base = 101 means "no base": rbp and r13 as a base take a zero disp8;
 *   - index = 100 means "no index": rsp cannot be an index (r12 can, by REX.X).
 */
#include "isa/x86_64/encode.h"

#include <endian.h>
#include <string.h>

enum { REX = 0x40, REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1 };

typedef struct insn {
    uint8_t bytes[32]; /* 15 at most, and what add_le writes behind them */
    unsigned count;
} insn;

/* ModRM without its reg field, and what follows it. */
typedef struct mode {
    uint8_t mod_rm, sib;
    bool has_sib, rip;
    uint8_t rex; /* REX_X, REX_B */
    uint8_t disp_bytes;
    int64_t disp;
} mode;

static inline void add(insn *i, uint8_t b) { i->bytes[i->count++] = b; }

static void add_le(insn *i, uint64_t value, unsigned bytes)
{
    value = htole64(value);
    memcpy(&i->bytes[i->count], &value, sizeof value); /* what is too much is written over, or left behind */
    i->count += bytes;
}

static void commit(x86_code *c, const insn *i) { x86_bytes(c, i->bytes, i->count); }

static inline bool is_reg(unsigned r) { return r < X86_REGS; }

static inline bool is_width(unsigned w) { return w == 1 || w == 2 || w == 4 || w == 8; }

static inline bool needs_rex_as_byte(unsigned r) { return r >= X86_RSP && r <= X86_RDI; }

static void add_segment(insn *i, unsigned segment)
{
    if (segment == X86_SEG_FS) add(i, 0x64);
    if (segment == X86_SEG_GS) add(i, 0x65);
}

static void add_opcode(insn *i, x86_form f, uint8_t rex, uint8_t opcode)
{
    if (f.width == 2) add(i, 0x66);
    if (f.bits & X86_LOCK) add(i, 0xf0);
    if (f.bits & X86_F3) add(i, 0xf3);
    if (f.width == 8) rex |= REX | REX_W;
    if (rex) add(i, rex | REX);
    if (f.bits & X86_MAP_0F) add(i, 0x0f);
    add(i, opcode);
}

/* Chooses among address forms that mean the same: an index alone with scale 1 is a base, with scale
 * 2 a base and an index (no disp32 then); base and unscaled index change places where the base
 * would cost a displacement or the index is rsp. */
static void simplify(x86_addr *a)
{
    if (a->index == ISA_NO_REG) return;
    if (a->base == ISA_NO_REG && a->scale == 1) {
        a->base = a->index;
        a->index = ISA_NO_REG;
        return;
    }
    if (a->base == ISA_NO_REG && a->scale == 2) {
        a->base = a->index;
        a->scale = 1;
    }
    if (a->scale != 1 || a->base == X86_RSP) return;
    bool base_costs = (a->base & 7) == X86_RBP && a->disp == 0 && (a->index & 7) != X86_RBP;
    if (a->index == X86_RSP || base_costs) {
        uint8_t base = a->base;
        a->base = a->index;
        a->index = base;
    }
}

static bool is_address(const x86_addr *a)
{
    bool base = a->base != ISA_NO_REG, index = a->index != ISA_NO_REG;
    if (a->segment > X86_SEG_GS) return false;
    if (a->rip) return !base && !index;
    if (base && !is_reg(a->base)) return false;
    if (index && (!is_reg(a->index) || a->index == X86_RSP || !is_width(a->scale))) return false;
    return x86_fits32(a->disp);
}

/* `unit` is what an 8-bit displacement counts in: 1, but the vector size under EVEX. */
static bool find_mode(x86_addr a, int unit, mode *m)
{
    if (!a.rip) simplify(&a);
    if (!is_address(&a)) return false;
    *m = (mode){.disp = a.disp, .rip = a.rip, .disp_bytes = 4, .mod_rm = 5};
    if (a.rip) return true;

    bool base = a.base != ISA_NO_REG, index = a.index != ISA_NO_REG;
    unsigned low = base ? a.base & 7 : X86_RBP; /* 101 with mod 00: disp32 alone */
    m->has_sib = index || !base || low == X86_RSP;
    m->mod_rm = (uint8_t)(m->has_sib ? 4 : low);
    unsigned log2 = index ? (unsigned)__builtin_ctz(a.scale) : 0;
    m->sib = (uint8_t)(log2 << 6 | (index ? a.index & 7u : 4u) << 3 | low);
    if (index && a.index & 8) m->rex |= REX_X;
    if (base && a.base & 8) m->rex |= REX_B;
    if (!base) return true;

    if (a.disp == 0 && low != X86_RBP) {
        m->disp_bytes = 0;
    } else if (a.disp % unit == 0 && x86_fits8(a.disp / unit)) {
        m->disp_bytes = 1;
        m->disp = a.disp / unit;
        m->mod_rm |= 0x40;
    } else {
        m->mod_rm |= 0x80;
    }
    return true;
}

/* ModRM to the end; false when a RIP-relative address is out of reach. */
static bool add_mode(const x86_code *c, insn *i, unsigned reg, const mode *m, x86_imm imm)
{
    add(i, (uint8_t)(m->mod_rm | (reg & 7) << 3));
    if (m->has_sib) add(i, m->sib);
    int64_t disp = m->disp;
    if (m->rip) disp -= (int64_t)(x86_here(c) + i->count + 4 + imm.bytes);
    if (!x86_fits32(disp)) return false;
    add_le(i, (uint64_t)disp, m->disp_bytes);
    add_le(i, imm.value, imm.bytes);
    return true;
}

/* Of an instruction just written, with so many bytes behind its displacement. */
static inline void note_mode(x86_code *c, const mode *m, unsigned behind)
{
    if (m->rip) isa_fix_later(c, c->at - behind - 4, behind, (uint64_t)m->disp);
}

void x86_encode_op(x86_code *c, x86_form f, x86_imm imm)
{
    insn i = {.count = 0};
    add_opcode(&i, f, 0, f.opcode);
    add_le(&i, imm.value, imm.bytes);
    commit(c, &i);
}

void x86_encode_plus(x86_code *c, x86_form f, unsigned reg, x86_imm imm)
{
    if (!is_reg(reg) || !is_width(f.width)) {
        x86_refuse(c);
        return;
    }
    insn i = {.count = 0};
    uint8_t rex = reg & 8 ? REX | REX_B : 0;
    if (f.bits & X86_BYTE_RM && needs_rex_as_byte(reg)) rex |= REX;
    add_opcode(&i, f, rex, (uint8_t)(f.opcode | (reg & 7)));
    add_le(&i, imm.value, imm.bytes);
    commit(c, &i);
}

void x86_encode_reg(x86_code *c, x86_form f, unsigned reg, unsigned rm, x86_imm imm)
{
    if (!is_reg(reg) || !is_reg(rm) || !is_width(f.width)) {
        x86_refuse(c);
        return;
    }
    insn i = {.count = 0};
    uint8_t rex = 0;
    if (reg & 8) rex |= REX | REX_R;
    if (rm & 8) rex |= REX | REX_B;
    if (f.bits & X86_BYTE_REG && needs_rex_as_byte(reg)) rex |= REX;
    if (f.bits & X86_BYTE_RM && needs_rex_as_byte(rm)) rex |= REX;
    add_opcode(&i, f, rex, f.opcode);
    add(&i, (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7)));
    add_le(&i, imm.value, imm.bytes);
    commit(c, &i);
}

void x86_encode_mem(x86_code *c, x86_form f, unsigned reg, x86_addr a, x86_imm imm)
{
    mode m;
    if (!is_reg(reg) || !is_width(f.width) || !find_mode(a, 1, &m)) {
        x86_refuse(c);
        return;
    }
    insn i = {.count = 0};
    uint8_t rex = m.rex;
    if (reg & 8) rex |= REX_R;
    if (f.bits & X86_BYTE_REG && needs_rex_as_byte(reg)) rex |= REX;
    add_segment(&i, a.segment);
    add_opcode(&i, f, rex, f.opcode);
    if (!add_mode(c, &i, reg, &m, imm)) {
        x86_refuse(c);
        return;
    }
    commit(c, &i);
    note_mode(c, &m, imm.bytes);
}

/* VEX:  C5 [R vvvv L pp]   or   C4 [R X B mmmmm] [W vvvv L pp]; R, X, B, vvvv inverted. */
static void add_vex(insn *i, bool wide, unsigned vec, uint8_t rex)
{
    uint8_t not_r = vec & 8 ? 0 : 0x80, last = (uint8_t)(0xf << 3 | wide << 2);
    if (!rex) {
        add(i, 0xc5);
        add(i, not_r | last);
        return;
    }
    add(i, 0xc4);
    add(i, (uint8_t)(not_r | (rex & REX_X ? 0 : 0x40) | (rex & REX_B ? 0 : 0x20) | 1));
    add(i, last);
}

/* EVEX: 62 [R X B R' 0 mmm] [W vvvv 1 pp] [z L'L b V' aaa]; R, X, B, R', vvvv, V' inverted. */
static void add_evex(insn *i, unsigned vec_bytes, unsigned vec, uint8_t rex)
{
    unsigned length = vec_bytes == 64 ? 2 : vec_bytes == 32 ? 1 : 0;
    add(i, 0x62);
    add(i, (uint8_t)((vec & 8 ? 0 : 0x80) | (rex & REX_X ? 0 : 0x40) | (rex & REX_B ? 0 : 0x20) |
                     (vec & 16 ? 0 : 0x10) | 1));
    add(i, 0xf << 3 | 1 << 2);
    add(i, (uint8_t)(length << 5 | 1 << 3));
}

void x86_encode_vec(x86_code *c, uint8_t opcode, unsigned vec_bytes, unsigned vec, x86_addr a)
{
    bool evex = vec_bytes == 64 || vec >= 16;
    bool sized = vec_bytes == 16 || vec_bytes == 32 || vec_bytes == 64;
    mode m;
    if (!sized || vec >= 32 || !find_mode(a, evex ? (int)vec_bytes : 1, &m)) {
        x86_refuse(c);
        return;
    }
    insn i = {.count = 0};
    add_segment(&i, a.segment);
    if (evex) add_evex(&i, vec_bytes, vec, m.rex);
    else add_vex(&i, vec_bytes == 32, vec, m.rex);
    add(&i, opcode);
    if (!add_mode(c, &i, vec, &m, x86_no_imm)) {
        x86_refuse(c);
        return;
    }
    commit(c, &i);
    note_mode(c, &m, 0);
}
