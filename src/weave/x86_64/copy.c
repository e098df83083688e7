/* The program's own instructions, moved into the run.
 *
 * Most are copied as they are. What cannot be:
 *   - a PC-relative operand that does not reach: its address goes into a scratch register and the
 *     instruction is rebased on it;
 *   - an operand in the GS segment, which holds Inlay's thread frame: the effective address is
 *     computed from the frame's copy of the program's GS base, and the instruction loses its prefix;
 *   - rdgsbase, wrgsbase and loads of the GS selector: they act on the frame's copy.
 *
 * A scratch register's own value waits in its slot meanwhile; the map entry says so.
 */
#include "weave/x86_64/weaver.h"

#include <string.h>

typedef struct scratch {
    uint8_t reg;
    bool plain; /* without the allocator: stored before and loaded behind the instruction */
} scratch;

static uint16_t used_regs(const weaver *w, const isa_insn *in)
{
    isa_effects fx;
    w->run->isa->effects(in, &fx);
    return (uint16_t)((fx.reads | fx.writes) & WEAVE_ALL_REGS) | WEAVE_BIT(X86_RSP);
}

/* A register that `in` does not use, out of `allowed`; reg is ISA_NO_REG when there is none. */
static scratch scratch_begin(weaver *w, const isa_insn *in, uint16_t allowed, bool plain)
{
    uint16_t free = allowed & ~used_regs(w, in);
    if (!free) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "no register is left to move an instruction with");
        return (scratch){ISA_NO_REG, plain};
    }
    if (!plain) return (scratch){(uint8_t)weave_take(w, (uint16_t)~free, ISA_NO_REG), false};
    unsigned reg = (unsigned)__builtin_ctz(free);
    x86_store(w->c, 8, weave_slot_addr(reg), reg);
    return (scratch){(uint8_t)reg, true};
}

static void mark(weaver *w, weave_map_entry *entry, scratch s)
{
    entry->code_at = (uint32_t)w->c->at;
    entry->scratch = s.reg;
    if (s.plain) {
        entry->spilled = (uint16_t)WEAVE_BIT(s.reg);
        return;
    }
    entry->spilled = w->st.in_slot & (uint16_t)~w->st.in_reg;
    entry->flags_saved = w->st.flags_slot && !w->st.flags_hw;
}

static void scratch_end(weaver *w, scratch s)
{
    if (s.plain) x86_load(w->c, 8, s.reg, weave_slot_addr(s.reg));
    else weave_unlock(w, s.reg);
}

static bool copy_far(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    scratch s = scratch_begin(w, in, WEAVE_ALL_REGS, plain);
    if (s.reg == ISA_NO_REG) return false;
    x86_mov_ri(w->c, s.reg, in->target);
    uint8_t out[16], len;
    if (!w->run->isa->rebase(in, s.reg, out, &len)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a PC-relative instruction cannot be moved that far");
        return false;
    }
    mark(w, entry, s);
    x86_bytes(w->c, out, len);
    scratch_end(w, s);
    return true;
}

static bool is_legacy_prefix(uint8_t b)
{
    return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || (b >= 0x64 && b <= 0x67) ||
           b == 0xf0 || b == 0xf2 || b == 0xf3;
}

/* Writes `in` with its memory operand replaced by [reg], reg being one of those that need neither
 * REX nor SIB nor displacement, and without segment and address-size prefixes. */
static bool put_with_base(weaver *w, const isa_insn *in, unsigned reg)
{
    uint8_t out[16];
    unsigned n = 0, at = 0;
    if (!in->modrm_at) return false;
    for (; at < in->opcode_at && is_legacy_prefix(in->raw[at]); at++)
        if (in->raw[at] != 0x65 && in->raw[at] != 0x64 && in->raw[at] != 0x67)
            out[n++] = in->raw[at];
    unsigned head = n;
    for (; at < in->modrm_at; at++) out[n++] = in->raw[at];
    if ((out[head] & 0xf0) == 0x40) out[head] &= (uint8_t)~3;       /* REX.X, REX.B */
    else if (out[head] == 0xc4) out[head + 1] |= 0x60;              /* VEX, inverted */
    else if (out[head] == 0x62) out[head + 1] |= 0x60;              /* EVEX, inverted */
    out[n++] = (uint8_t)((in->raw[in->modrm_at] & 0x38) | reg);
    for (unsigned i = 0; i < in->imm_len; i++) out[n++] = in->raw[in->imm_at + i];
    x86_bytes(w->c, out, n);
    return true;
}

static const isa_mem *gs_operand(const weaver *w, const isa_insn *in, isa_mem room[ISA_MAX_MEM])
{
    int n = w->run->isa->memory(in, room);
    for (int i = 0; i < n; i++)
        if (room[i].segment == X86_SEG_GS && room[i].access != ISA_ADDRESS_ONLY) return &room[i];
    return NULL;
}

static bool copy_gs(weaver *w, const isa_insn *in, const isa_mem *m, weave_map_entry *entry,
                    bool plain)
{
    const uint16_t low = WEAVE_BIT(X86_RAX) | WEAVE_BIT(X86_RCX) | WEAVE_BIT(X86_RDX) |
                         WEAVE_BIT(X86_RBX) | WEAVE_BIT(X86_RSI) | WEAVE_BIT(X86_RDI);
    if (!in->modrm_at || m->bits & (ISA_MEM_IMPLICIT | ISA_MEM_ADDR32 | ISA_MEM_VECTOR_INDEX)) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "a GS-relative operand of this form cannot be moved");
        return false;
    }
    scratch s = scratch_begin(w, in, low, plain);
    if (s.reg == ISA_NO_REG) return false;
    if (m->bits & ISA_MEM_PCREL) {
        x86_mov_ri(w->c, s.reg, (uint64_t)m->disp);
        scratch t = scratch_begin(w, in, low & (uint16_t)~WEAVE_BIT(s.reg), plain);
        if (t.reg == ISA_NO_REG) return false;
        x86_load(w->c, 8, t.reg, x86_gs(WEAVE_OFF(app_gs_base)));
        x86_lea(w->c, s.reg, x86_indexed(s.reg, t.reg, 1, 0));
        scratch_end(w, t);
    } else {
        x86_load(w->c, 8, s.reg, x86_gs(WEAVE_OFF(app_gs_base)));
        if (m->base != ISA_NO_REG)
            x86_lea(w->c, s.reg, x86_indexed(m->base, s.reg, 1, (int32_t)m->disp));
        else if (m->disp) x86_lea(w->c, s.reg, x86_at(s.reg, (int32_t)m->disp));
        if (m->index != ISA_NO_REG)
            x86_lea(w->c, s.reg, x86_indexed(s.reg, m->index, m->scale, 0));
    }
    mark(w, entry, s);
    if (!put_with_base(w, in, s.reg)) return false;
    scratch_end(w, s);
    return true;
}

/* rdgsbase, wrgsbase and loads of the selector. False: it is none of them. */
static bool copy_gs_register(weaver *w, const isa_insn *in)
{
    unsigned at = 0, rex = 0;
    while (at < in->opcode_at && is_legacy_prefix(in->raw[at])) at++;
    if ((in->raw[at] & 0xf0) == 0x40) rex = in->raw[at++];
    const uint8_t *op = in->raw + at;
    unsigned modrm = in->modrm_at ? in->raw[in->modrm_at] : 0, field = modrm >> 3 & 7;
    unsigned reg = (modrm & 7) | (rex & 1) << 3, width = rex & 8 ? 8 : 4;
    x86_addr base = x86_gs(WEAVE_OFF(app_gs_base));
    if (op[0] == 0x0f && op[1] == 0xae && modrm >= 0xc0 && x86_is_rdfsbase_family(in) &&
        (field == 1 || field == 3)) {
        if (field == 1) {
            x86_load(w->c, width, reg, base);
        } else {
            x86_store(w->c, width, base, reg);
            base.disp += 4;
            if (width == 4) x86_store_imm(w->c, 4, base, 0);
        }
        return true;
    }
    if (op[0] == 0x8e && field == 5) { /* mov gs, r/m: a null selector, the only sensible one */
        x86_store_imm(w->c, 8, base, 0);
        return true;
    }
    if (op[0] == 0x0f && op[1] == 0xa9) { /* pop gs */
        x86_store_imm(w->c, 8, base, 0);
        x86_lea(w->c, X86_RSP, x86_at(X86_RSP, 8));
        return true;
    }
    return false;
}

/* Whether the instruction may be one of the special ones: cheap, errs on the safe side. */
static inline bool maybe_special(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    if (op == 0x8e || op == 0xa9 || op == 0xae) return true;
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x65) return true;
    return false;
}

/* 1 done, 0 not special, -1 failed */
static int copy_special(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    isa_mem room[ISA_MAX_MEM];
    if (in->bits & ISA_BIT_UNKNOWN) return 0;
    if (copy_gs_register(w, in)) return 1;
    const isa_mem *m = gs_operand(w, in, room);
    if (!m) return 0;
    return copy_gs(w, in, m, entry, plain) ? 1 : -1;
}

static bool copy(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    x86_code *c = w->c;
    uint8_t len;
    if (maybe_special(in)) {
        int done = copy_special(w, in, entry, plain);
        if (done) return done > 0;
    }
    if (c->full || c->size - c->at < 16) {
        c->full = true;
        return true;
    }
    switch (w->run->isa->relocate(in, x86_here(c), c->write + c->at, &len)) {
    case ISA_MOVE_COPIED: c->at += len; return true;
    case ISA_MOVE_FAR: return copy_far(w, in, entry, plain);
    default: weave_fail(w, INL_ERR_UNSUPPORTED, "a branch where none was expected"); return false;
    }
}

bool weave_copy_plain(weaver *w, const weave_insn *insn, weave_map_entry *entry)
{
    return copy(w, &insn->in, entry, true);
}

bool weave_copy(weaver *w, uint32_t insn, weave_map_entry *entry)
{
    return copy(w, &w->run->insns[insn].in, entry, false);
}
