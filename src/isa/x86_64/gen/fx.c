/* From Zydis' operands and flags to an effects template.
 *
 * Zydis names what an instruction touches; this file decides what that means for a register's old
 * value, and mends the few places where its data leave something out or say more than the
 * hardware does. Each correction stands in its own small function with the reason.
 */
#include <string.h>
#include "gen.h"

enum {
    FLAGS = X86_ARITH | X86_TF | X86_IF | X86_DF | X86_AC | X86_ID,
    FLAGS_KILLABLE = X86_ARITH | X86_DF | X86_AC | X86_ID,
    ALL_GPR = 0xffff,
    ALL_OTHER = ISA_OTHER_OLD_FP | ISA_OTHER_FP_STATUS | ISA_OTHER_TLS_BASE | ISA_OTHER_BASE_2 | ISA_OTHER_ALL_VEC |
                ISA_OTHER_SYSTEM
};
enum {
    READS = ZYDIS_OPERAND_ACTION_MASK_READ,
    WRITES = ZYDIS_OPERAND_ACTION_MASK_WRITE,
    OVERWRITES = ZYDIS_OPERAND_ACTION_WRITE
};

unsigned slot_of(ZydisOperandEncoding e)
{
    switch (e) {
    case ZYDIS_OPERAND_ENCODING_MODRM_REG: return X86_SLOT_REG;
    case ZYDIS_OPERAND_ENCODING_MODRM_RM:
    case ZYDIS_OPERAND_ENCODING_OPCODE: return X86_SLOT_RM;
    case ZYDIS_OPERAND_ENCODING_NDSNDD: return X86_SLOT_V;
    case ZYDIS_OPERAND_ENCODING_IS4: return X86_SLOT_IS4;
    case ZYDIS_OPERAND_ENCODING_MASK: return X86_SLOT_MASK;
    default: return X86_SLOT_FIXED;
    }
}

/* The lanes of an access to register number 0. */
static uint64_t lanes(unsigned actions, bool whole)
{
    return (actions & READS ? 1 : 0) | (actions & WRITES ? 1ull << X86_LANE_WRITES : 0) |
           (actions & OVERWRITES && whole ? 1ull << X86_LANE_KILLS : 0);
}

static uint64_t *lane_slot(x86_fx *fx, unsigned slot)
{
    return slot == X86_SLOT_REG ? &fx->reg : slot == X86_SLOT_RM ? &fx->rm : &fx->v;
}

static void add_fixed(x86_fx *fx, unsigned regs, unsigned actions, bool whole)
{
    for (unsigned n = 0; n < 16; n++)
        if (regs >> n & 1) fx->fixed |= lanes(actions, whole) << n;
}

static void add_slot(x86_slots *s, unsigned slot, unsigned actions, bool whole)
{
    if (actions & READS) s->read |= 1u << slot;
    if (actions & WRITES) s->write |= 1u << slot;
    if (actions & OVERWRITES && whole) s->kill |= 1u << slot;
}

static void add_gpr(x86_fx *fx, const ZydisDecodedOperand *o, const reg_id *r)
{
    unsigned slot = slot_of(o->encoding);
    bool whole = r->bytes >= 4; /* 32-bit results clear the upper half */
    if (slot == X86_SLOT_FIXED) {
        add_fixed(fx, 1u << r->number, o->actions, whole);
        return;
    }
    *lane_slot(fx, slot) |= lanes(o->actions, whole);
    if (r->bytes == 1 && slot == X86_SLOT_REG) fx->quirks |= X86_FX_HIGH_REG;
    if (r->bytes == 1 && slot == X86_SLOT_RM) fx->quirks |= X86_FX_HIGH_RM;
}

static void add_vec(const answer *a, x86_fx *fx, const ZydisDecodedOperand *o, const reg_id *r)
{
    unsigned slot = slot_of(o->encoding);
    bool whole = form_is_vector(&a->form); /* legacy SSE keeps what lies above 128 bits */
    fx->has_vec = 1;
    if (slot != X86_SLOT_FIXED) {
        add_slot(&fx->vec, slot, o->actions, whole);
        return;
    }
    x86_vec_set set = *(x86_vec_set *)pool_at(&gen_vec_sets, fx->vec_fixed);
    if (o->actions & READS) set.reads |= 1u << r->number;
    if (o->actions & WRITES) set.writes |= 1u << r->number;
    if (o->actions & OVERWRITES && whole) set.kills |= 1u << r->number;
    fx->vec_fixed = pool_add(&gen_vec_sets, &set);
}

static void add_mask(const answer *a, x86_fx *fx, const ZydisDecodedOperand *o, const reg_id *r)
{
    unsigned slot = slot_of(o->encoding);
    if (slot == X86_SLOT_MASK && !(a->form.context & 0x80)) return; /* no masking */
    fx->has_vec = 1;
    if (slot != X86_SLOT_FIXED) {
        add_slot(&fx->mask, slot, o->actions, true);
        return;
    }
    if (o->actions & READS) fx->mask_reads |= 1u << r->number;
    if (o->actions & WRITES) fx->mask_writes |= 1u << r->number;
}

static void add_other(x86_fx *fx, unsigned actions, unsigned state)
{
    if (actions & READS) fx->other_reads |= state;
    if (actions & WRITES) fx->other_writes |= state;
}

static void add_reg(const answer *a, x86_fx *fx, const ZydisDecodedOperand *o)
{
    reg_id r;
    if (!reg_of(o->reg.value, &r)) return;
    switch (r.class) {
    case X86_CLASS_GPR: add_gpr(fx, o, &r); break;
    case X86_CLASS_XMM:
    case X86_CLASS_YMM:
    case X86_CLASS_ZMM: add_vec(a, fx, o, &r); break;
    case X86_CLASS_MASK: add_mask(a, fx, o, &r); break;
    case X86_CLASS_MMX:
    case X86_CLASS_ST: add_other(fx, o->actions, ISA_OTHER_OLD_FP); break;
    case X86_CLASS_SEGMENT: /* a write may load FS or GS, and with it the base */
        add_other(fx, o->actions, ISA_OTHER_SYSTEM);
        add_other(fx, o->actions & WRITES, ISA_OTHER_TLS_BASE | ISA_OTHER_BASE_2);
        break;
    case X86_CLASS_SPECIAL:
        add_other(fx, o->actions,
                  r.number <= X86_X87TAG  ? ISA_OTHER_OLD_FP
                  : r.number == X86_MXCSR ? ISA_OTHER_FP_STATUS
                                          : ISA_OTHER_SYSTEM);
        break;
    default: add_other(fx, o->actions, ISA_OTHER_SYSTEM);
    }
}

/* Registers of an address that ModRM does not name. */
static void add_address(const answer *a, x86_fx *fx, const ZydisDecodedOperand *o)
{
    reg_id r;
    if (o->encoding != ZYDIS_OPERAND_ENCODING_NONE || answer_stores_at_reg(a)) return;
    if (o->mem.base >= ZYDIS_REGISTER_EAX && reg_of(o->mem.base, &r)) add_fixed(fx, 1u << r.number, READS, false);
}

static void add_flags(const answer *a, x86_fx *fx)
{
    const ZydisAccessedFlags *f = a->in.cpu_flags;
    if (!f) return;
    fx->flags_read = f->tested & FLAGS;
    fx->flags_written = (f->modified | f->set_0 | f->set_1) & FLAGS;
    fx->flags_undefined = f->undefined & FLAGS;
    for (int i = 0; i < a->in.operand_count; i++)
        if (a->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && a->op[i].reg.value == ZYDIS_REGISTER_RFLAGS &&
            a->op[i].actions & OVERWRITES)
            fx->flags_kill = (fx->flags_written | fx->flags_undefined) & FLAGS_KILLABLE;
}

/* Shifts and rotates leave the flags alone when the count is 0, and define OF when it is 1. */
static void mend_shift(const answer *a, x86_fx *fx)
{
    if (form_is_vector(&a->form) ||
        (a->in.meta.category != ZYDIS_CATEGORY_SHIFT && a->in.meta.category != ZYDIS_CATEGORY_ROTATE))
        return;
    if (fx->flags_undefined & X86_OF) {
        fx->flags_undefined &= ~X86_OF;
        fx->flags_written |= X86_OF;
    }
    for (int i = 0; i < a->in.operand_count_visible; i++) {
        if (a->op[i].encoding == ZYDIS_OPERAND_ENCODING_UIMM8)
            fx->quirks |= X86_FX_COUNT | (a->in.operand_width == 64 ? X86_FX_COUNT64 : 0);
        if (a->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && a->op[i].reg.value == ZYDIS_REGISTER_CL &&
            a->op[i].encoding == ZYDIS_OPERAND_ENCODING_NONE)
            fx->flags_kill = 0;
    }
}

/* Zydis leaves out some of the pointer registers, and does not say that a repeated compare of
 * zero iterations keeps the flags. */
static void mend_string(const answer *a, x86_fx *fx)
{
    static const ZydisMnemonic no_source[] = {ZYDIS_MNEMONIC_STOSB, ZYDIS_MNEMONIC_STOSW, ZYDIS_MNEMONIC_STOSD,
                                              ZYDIS_MNEMONIC_STOSQ, ZYDIS_MNEMONIC_SCASB, ZYDIS_MNEMONIC_SCASW,
                                              ZYDIS_MNEMONIC_SCASD, ZYDIS_MNEMONIC_SCASQ, ZYDIS_MNEMONIC_INSB,
                                              ZYDIS_MNEMONIC_INSW,  ZYDIS_MNEMONIC_INSD,  0};
    static const ZydisMnemonic no_target[] = {
        ZYDIS_MNEMONIC_LODSB, ZYDIS_MNEMONIC_LODSW, ZYDIS_MNEMONIC_LODSD, ZYDIS_MNEMONIC_LODSQ,
        ZYDIS_MNEMONIC_OUTSB, ZYDIS_MNEMONIC_OUTSW, ZYDIS_MNEMONIC_OUTSD, 0};
    if (!answer_is_string(a)) return;
    unsigned moved = (mnemonic_in(a, no_source) ? 0 : 1u << X86_RSI) | (mnemonic_in(a, no_target) ? 0 : 1u << X86_RDI);
    if (answer_repeats(a)) {
        moved |= 1u << X86_RCX;
        fx->fixed &= (1ull << X86_LANE_KILLS) - 1;
        fx->flags_kill = 0;
        add_fixed(fx, moved, READS | ZYDIS_OPERAND_ACTION_CONDWRITE, false);
    } else {
        add_fixed(fx, moved, READS | WRITES, true);
    }
}

/* Destinations that keep their value in some cases: no bit found, a selector that is not
 * accessible, shadow stacks switched off. */
static void mend_conditional(const answer *a, x86_fx *fx)
{
    static const ZydisMnemonic keeps[] = {ZYDIS_MNEMONIC_BSF,
                                          ZYDIS_MNEMONIC_BSR,
                                          ZYDIS_MNEMONIC_LAR,
                                          ZYDIS_MNEMONIC_LSL,
                                          ZYDIS_MNEMONIC_RDSSPD,
                                          ZYDIS_MNEMONIC_RDSSPQ,
                                          0};
    if (mnemonic_in(a, keeps)) fx->reg &= ~(1ull << X86_LANE_KILLS), fx->rm &= ~(1ull << X86_LANE_KILLS);
}

/* Zydis lists no registers. */
static void set_vectors(x86_fx *fx, x86_vec_set set)
{
    fx->vec_fixed = pool_add(&gen_vec_sets, &set);
    fx->has_vec = 1;
    fx->other_writes = 0;
}

static void mend_single(const answer *a, x86_fx *fx)
{
    switch (a->in.mnemonic) {
    case ZYDIS_MNEMONIC_XLAT: add_fixed(fx, 1u << X86_RAX, READS, false); break; /* the index */
    case ZYDIS_MNEMONIC_LLWPCB: fx->rm = lanes(READS, false); break;
    case ZYDIS_MNEMONIC_VZEROALL: set_vectors(fx, (x86_vec_set){0, 0xffff, 0xffff}); break;
    case ZYDIS_MNEMONIC_VZEROUPPER: set_vectors(fx, (x86_vec_set){0, 0xffff, 0}); break;
    case ZYDIS_MNEMONIC_RDFSBASE: fx->other_reads |= ISA_OTHER_TLS_BASE; break;
    case ZYDIS_MNEMONIC_RDGSBASE: fx->other_reads |= ISA_OTHER_BASE_2; break;
    case ZYDIS_MNEMONIC_WRFSBASE: fx->other_writes |= ISA_OTHER_TLS_BASE; break;
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_SWAPGS: fx->other_writes |= ISA_OTHER_BASE_2; break;
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPID:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDPRU: fx->other_reads |= ISA_OTHER_SYSTEM; break;
    default: break;
    }
}

/* xor r,r and its like. */
static void add_idiom(const answer *a, x86_fx *fx)
{
    static const ZydisMnemonic two[] = {ZYDIS_MNEMONIC_XOR,   ZYDIS_MNEMONIC_SUB,   ZYDIS_MNEMONIC_PXOR,
                                        ZYDIS_MNEMONIC_XORPS, ZYDIS_MNEMONIC_XORPD, 0};
    static const ZydisMnemonic three[] = {ZYDIS_MNEMONIC_VPXOR,  ZYDIS_MNEMONIC_VPXORD, ZYDIS_MNEMONIC_VPXORQ,
                                          ZYDIS_MNEMONIC_VXORPS, ZYDIS_MNEMONIC_VXORPD, 0};
    unsigned both = 1u << X86_SLOT_REG | 1u << X86_SLOT_RM;
    if (form_is_memory(&a->form)) return;
    if (mnemonic_in(a, two) && ((fx->reg & fx->rm & 1) || (fx->vec.read & both) == both)) fx->quirks |= X86_FX_SAME_RM;
    if (mnemonic_in(a, three)) fx->quirks |= X86_FX_SAME_V_RM;
}

/* State that is not an operand: saved areas, the exception flags of SSE arithmetic. */
static void add_state(const answer *a, x86_fx *fx)
{
    ZydisInstructionAttributes at = a->in.attributes;
    enum { VECTORS = ISA_OTHER_ALL_VEC | ISA_OTHER_FP_STATUS };
    if (at & ZYDIS_ATTRIB_FPU_STATE_CR) fx->other_reads |= ISA_OTHER_OLD_FP;
    if (at & ZYDIS_ATTRIB_FPU_STATE_CW) fx->other_writes |= ISA_OTHER_OLD_FP;
    if (at & ZYDIS_ATTRIB_XMM_STATE_CR) fx->other_reads |= VECTORS;
    if (at & ZYDIS_ATTRIB_XMM_STATE_CW) fx->other_writes |= VECTORS;
    if (a->in.meta.category == ZYDIS_CATEGORY_X87_ALU || a->in.meta.category == ZYDIS_CATEGORY_FCMOV) {
        fx->other_reads |= ISA_OTHER_OLD_FP;
        fx->other_writes |= ISA_OTHER_OLD_FP;
    }
    switch (a->in.meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_SSE2:
    case ZYDIS_EXCEPTION_CLASS_SSE3:
    case ZYDIS_EXCEPTION_CLASS_AVX2:
    case ZYDIS_EXCEPTION_CLASS_AVX3:
    case ZYDIS_EXCEPTION_CLASS_AVX11:
    case ZYDIS_EXCEPTION_CLASS_E2:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
        fx->other_reads |= ISA_OTHER_FP_STATUS;
        fx->other_writes |= ISA_OTHER_FP_STATUS;
        break;
    default: break;
    }
}

/* Control leaves to where everything may be looked at. */
static void add_exits(const answer *a, x86_fx *fx, unsigned flow)
{
    if (flow != ISA_FLOW_SYSCALL && flow != ISA_FLOW_TRAP && flow != ISA_FLOW_FAR) return;
    add_fixed(fx, ALL_GPR, READS, false);
    fx->flags_read = FLAGS;
    fx->flags_kill = 0;
    fx->other_reads = ALL_OTHER;
    if (flow == ISA_FLOW_SYSCALL || a->in.mnemonic == ZYDIS_MNEMONIC_INT) {
        add_fixed(fx, 1u << X86_RAX, ZYDIS_OPERAND_ACTION_CONDWRITE, false); /* the result */
        fx->flags_written = fx->flags_undefined = 0;                         /* restored on return */
    }
    if (flow == ISA_FLOW_TRAP) fx->flags_written = fx->flags_undefined = 0;
}

void fx_of(const answer *a, unsigned flow, x86_fx *fx)
{
    memset(fx, 0, sizeof *fx);
    if (answer_is_nop(a)) return; /* its operands only fill space */
    fx->quirks = X86_FX_ADDRESS;
    for (int i = 0; i < a->in.operand_count; i++) {
        if (a->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER) add_reg(a, fx, &a->op[i]);
        if (a->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY) add_address(a, fx, &a->op[i]);
    }
    add_flags(a, fx);
    add_state(a, fx);
    add_idiom(a, fx);
    mend_shift(a, fx);
    mend_string(a, fx);
    mend_conditional(a, fx);
    mend_single(a, fx);
    if (a->in.meta.category == ZYDIS_CATEGORY_AVX512_4FMAPS || a->in.meta.category == ZYDIS_CATEGORY_AVX512_4VNNIW)
        fx->rare = X86_RARE_BLOCK4;
    if (a->in.meta.category == ZYDIS_CATEGORY_AVX512_VP2INTERSECT) fx->rare = X86_RARE_MASK_PAIR;
    if (fx->rare || fx->has_vec) fx->quirks |= X86_FX_RARE;
    add_exits(a, fx, flow);
}
