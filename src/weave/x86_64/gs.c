/* The program's own use of the GS segment, which holds Inlay's thread frame while woven code runs. The
 * program's GS base is in the frame:
 *
 *   - an operand that names its address in ModRM, an absolute one (moffs), xlat: the address is computed
 *     into a scratch register, and the instruction, without its prefixes, finds it there;
 *   - gathers and scatters: the same, done to the base that is added to the indices;
 *   - an operand that a fixed register points to (string instructions, maskmovdqu): the base is added to
 *     that register for the moment of the instruction. Its own value waits in the slot; that of one that a
 *     REP prefix counts on is told by the register itself (WEAVE_AHEAD), which is ahead by the base;
 *   - rdgsbase, wrgsbase and loads of the selector act on the frame's copy.
 *
 * Nothing here touches the flags.
 */
#include "weave/copy.h"
#include "weave/x86_64/machine.h"

static const char no_such_form[] = "a GS-relative operand of this form cannot be moved";

static bool refuse(weaver *w, const char *why)
{
    weave_fail(w, INL_ERR_UNSUPPORTED, why);
    return false;
}

static void load_base(weaver *w, unsigned reg) { x86_load(w->c, 8, reg, x86_gs(WEAVE_OFF(app_gs_base))); }

static bool is_legacy_prefix(uint8_t b)
{
    return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || (b >= 0x64 && b <= 0x67) || b == 0xf0 || b == 0xf2 ||
           b == 0xf3;
}

/* The prefixes of `in` up to `end`, without segment and address size and, when asked, without REP. */
static unsigned put_prefixes(const isa_insn *in, unsigned end, bool rep, uint8_t *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < end && is_legacy_prefix(in->raw[i]); i++) {
        uint8_t p = in->raw[i];
        bool is_rep = p == 0xf2 || p == 0xf3;
        if (p != 0x65 && p != 0x64 && p != 0x67 && (rep || !is_rep)) out[n++] = p;
    }
    return n;
}

unsigned weave_x86_prefix_end(const isa_insn *in)
{
    unsigned at = 0;
    while (at < in->opcode_at && is_legacy_prefix(in->raw[at])) at++;
    return at;
}

bool weave_x86_put_with_base(weaver *w, const isa_insn *in, unsigned reg, bool vector_index)
{
    uint8_t out[20];
    unsigned at = weave_x86_prefix_end(in), n = put_prefixes(in, at, true, out), head = n;
    const uint8_t keep_b = vector_index ? 0x20 : 0x60; /* X extends the index */
    const bool is_xop = x86_encoding_of(in) == X86_XOP;
    for (; at < in->modrm_at; at++) out[n++] = in->raw[at];
    if ((out[head] & 0xf0) == 0x40) out[head] &= (uint8_t)~3;                           /* REX.X, REX.B */
    else if (out[head] == 0xc4 || out[head] == 0x62 || is_xop) out[head + 1] |= keep_b; /* inverted */
    uint8_t field = in->raw[in->modrm_at] & 0x38;
    out[n++] = field | (vector_index ? 4 : (uint8_t)reg);
    if (vector_index) out[n++] = (in->raw[in->modrm_at + 1] & 0xf8) | (uint8_t)reg;
    for (unsigned i = 0; i < in->imm_len; i++) out[n++] = in->raw[in->imm_at + i];
    x86_bytes(w->c, out, n);
    return true;
}

bool weave_x86_put_accumulator(weaver *w, const isa_insn *in, unsigned reg)
{
    static const uint8_t opcodes[] = {0x8a, 0x8b, 0x88, 0x89};
    uint8_t out[20], op = in->raw[in->opcode_at];
    unsigned at = weave_x86_prefix_end(in), n = put_prefixes(in, at, false, out);
    bool wide = (in->raw[at] & 0xf8) == 0x48, xlat = op == 0xd7;
    if (!xlat && (op & 0xfc) != 0xa0) return refuse(w, no_such_form);
    if (wide && !xlat) out[n++] = 0x48;
    out[n++] = xlat ? 0x8a : opcodes[op & 3];
    out[n++] = (uint8_t)reg;
    x86_bytes(w->c, out, n);
    return true;
}

/* The address without its segment. */
static void offset_into(weaver *w, const isa_mem *m, unsigned reg)
{
    x86_addr at = {m->base, m->index, m->scale ? m->scale : 1, 0, false, m->disp};
    if (m->bits & ISA_MEM_VECTOR_INDEX) at.index = ISA_NO_REG, at.scale = 1;
    if (m->bits & ISA_MEM_INDEX8) {
        x86_movzx_rr(w->c, 1, reg, m->index);
        at.index = (uint8_t)reg;
    }
    if (at.base == ISA_NO_REG && at.index == ISA_NO_REG) x86_mov_ri(w->c, reg, (uint64_t)m->disp);
    else x86_lea(w->c, reg, at);
    if (m->bits & ISA_MEM_ADDR32) x86_movzx_rr(w->c, 4, reg, reg);
}

static bool copy_by_address(weaver *w, const isa_insn *in, const isa_mem *m, weave_map_entry *entry, bool plain)
{
    bool vector_index = m->bits & ISA_MEM_VECTOR_INDEX;
    if (vector_index && m->bits & ISA_MEM_ADDR32) return refuse(w, no_such_form);
    weave_scratch s = weave_scratch_begin(w, in, WEAVE_LOW_REGS, plain);
    if (s.reg == ISA_NO_REG) return false;
    offset_into(w, m, s.reg);
    weave_scratch t = weave_scratch_begin(w, in, WEAVE_ALL_REGS & ~WEAVE_BIT(s.reg), plain);
    if (t.reg == ISA_NO_REG) return false;
    load_base(w, t.reg);
    x86_lea(w->c, s.reg, x86_indexed(s.reg, t.reg, 1, 0));
    weave_scratch_end(w, t);
    weave_scratch_mark(w, entry, s);
    bool done = in->modrm_at ? weave_x86_put_with_base(w, in, s.reg, vector_index)
                             : weave_x86_put_accumulator(w, in, s.reg);
    weave_scratch_end(w, s);
    return done;
}

void weave_x86_put_without_segment(weaver *w, const isa_insn *in)
{
    uint8_t out[20];
    unsigned at = weave_x86_prefix_end(in), n = put_prefixes(in, at, true, out);
    for (; at < in->len; at++) out[n++] = in->raw[at];
    x86_bytes(w->c, out, n);
}

static void subtract_base(weaver *w, unsigned reg, unsigned base)
{
    x86_not(w->c, 8, base);
    x86_lea(w->c, reg, x86_indexed(reg, base, 1, 1));
    x86_not(w->c, 8, base);
}

/* A register points to the operand: RSI of a string instruction, RDI of maskmovdqu. A repeated instruction stays
 * one, so that a fault shows the registers and flags that this processor shows (some put the flags back to those
 * of the beginning, some leave those of the last iteration); RSI is ahead of the program's meanwhile. */
static bool copy_by_register(weaver *w, const isa_insn *in, const isa_mem *m, weave_map_entry *entry, bool plain)
{
    isa_effects fx;
    unsigned reg = m->base;
    bool rep = in->bits & ISA_BIT_REP;
    if (m->bits & ISA_MEM_ADDR32 || reg >= X86_REGS || reg == X86_RSP || (rep && reg != X86_RSI))
        return refuse(w, no_such_form);
    weave_scratch t = weave_scratch_begin(w, in, WEAVE_ALL_REGS, plain);
    if (t.reg == ISA_NO_REG) return false;
    w->run->isa->effects(in, &fx);
    load_base(w, t.reg);
    if (rep) {
        x86_store(w->c, 8, x86_gs(WEAVE_OFF(ahead[0])), t.reg);
        x86_store_imm(w->c, 8, x86_gs(WEAVE_OFF(ahead[1])), 0);
    } else {
        x86_store(w->c, 8, weave_slot_addr(reg), reg);
    }
    x86_lea(w->c, reg, x86_indexed(reg, t.reg, 1, 0));
    weave_scratch_mark(w, entry, t);
    entry->spilled |= rep ? WEAVE_AHEAD : WEAVE_BIT(reg);
    weave_x86_put_without_segment(w, in);
    if (fx.writes >> reg & 1) subtract_base(w, reg, t.reg);
    else x86_load(w->c, 8, reg, weave_slot_addr(reg));
    weave_scratch_end(w, t);
    return true;
}

static const isa_mem *gs_operand(const weaver *w, const isa_insn *in, isa_mem room[ISA_MAX_MEM])
{
    int n = w->run->isa->memory(in, room);
    for (int i = 0; i < n; i++)
        if (room[i].segment == X86_SEG_GS && room[i].access != ISA_ADDRESS_ONLY) return &room[i];
    return NULL;
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
    if (op[0] == 0x0f && op[1] == 0xae && modrm >= 0xc0 && x86_is_rdfsbase_family(in) && (field == 1 || field == 3)) {
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

/* Whether the instruction may be one of these: cheap, errs on the safe side. */
static inline bool maybe_special(const isa_insn *in)
{
    uint8_t op = in->raw[in->opcode_at];
    if (op == 0x8e || op == 0xa9 || op == 0xae || op == 0x9d) return true;
    for (unsigned i = 0; i < in->opcode_at; i++)
        if (in->raw[i] == 0x65) return true;
    return false;
}

/* In front of popf: would it set TF? The flags that this changes it sets anew. */
static void stop_stepping(x86_code *c)
{
    static const uint8_t code[] = {0xf6, 0x44, 0x24, 0x01, 0x01, /* test byte ptr [rsp + 1], 1 */
                                   0x74, 0x02,                   /* jz */
                                   0x0f, 0x0b};                  /* ud2 */
    x86_bytes(c, code, sizeof code);
}

int weave_x86_copy_special(weaver *w, const isa_insn *in, weave_map_entry *entry, bool plain)
{
    isa_mem room[ISA_MAX_MEM];
    if (!maybe_special(in)) return 0;
    if (w->opt->stops_stepping && x86_is_popf(in)) stop_stepping(w->c);
    const isa_mem *m = gs_operand(w, in, room);
    if (in->bits & ISA_BIT_UNKNOWN) {
        if (m) refuse(w, "an unknown instruction with a GS-relative operand cannot be moved");
        return m ? -1 : 0;
    }
    if (copy_gs_register(w, in)) return 1;
    if (!m) return 0;
    bool by_register = m->bits & ISA_MEM_IMPLICIT && !(m->bits & ISA_MEM_INDEX8);
    bool done = by_register ? copy_by_register(w, in, m, entry, plain) : copy_by_address(w, in, m, entry, plain);
    return done ? 1 : -1;
}
