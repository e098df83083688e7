/* The comparison itself. Each check_* function looks at one aspect and names the first thing that
 * differs; the exceptions stand at the top. */
#include "isa_zydis.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isa/x86_64/x86.h"

typedef struct pair {
    const isa_insn *in;
    isa_effects fx;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    const char *what; /* first difference */
    uint64_t ours, theirs;
} pair;

static ZydisDecoder decoder;
static const isa *set;

void isa_zydis_init(void)
{
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    set = isa_for_machine(62);
}

static bool same(pair *p, const char *what, uint64_t ours, uint64_t theirs)
{
    if (ours == theirs) return true;
    p->what = what;
    p->ours = ours;
    p->theirs = theirs;
    return false;
}

/* ---- exceptions ------------------------------------------------------------------------- */

/* Knights Corner shares encodings with everything else; no processor that runs Linux today has it. */
static bool foreign_processor(const ZydisDecodedInstruction *z)
{
    return z->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX || z->meta.isa_ext == ZYDIS_ISA_EXT_KNC ||
           z->meta.isa_ext == ZYDIS_ISA_EXT_KNCE || z->meta.isa_ext == ZYDIS_ISA_EXT_KNCV;
}

/* REX2 and its operands are newer than Zydis 4.0, which takes D5 for an invalid opcode. */
static bool has_rex2(const uint8_t *bytes, size_t avail)
{
    for (size_t i = 0; i < avail && i < 15; i++) {
        if (bytes[i] == 0xd5) return true;
        if (!strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", bytes[i]) || !bytes[i])
            if ((bytes[i] & 0xf0) != 0x40) return false;
    }
    return false;
}

/* A nop's operands are not read, though Zydis says so. */
static bool is_nop(const pair *p)
{
    return p->z.meta.category == ZYDIS_CATEGORY_NOP || p->z.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

/* Control leaves: Inlay says that everything is read. */
static bool leaves(const pair *p)
{
    return p->in->flow == ISA_FLOW_SYSCALL || p->in->flow == ISA_FLOW_TRAP || p->in->flow == ISA_FLOW_FAR;
}

/* Zydis lacks pointer registers of cmps, ins and some others; Inlay has its own rule, tested by name
 * in isa_semantics. */
static bool is_string(const pair *p)
{
    return p->z.meta.category == ZYDIS_CATEGORY_STRINGOP || p->z.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

/* xor r,r and the like read nothing. */
static bool is_clearing(const pair *p)
{
    switch (p->z.mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
        return p->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER && p->op[0].reg.value == p->op[1].reg.value;
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
    case ZYDIS_MNEMONIC_VPXORD:
    case ZYDIS_MNEMONIC_VPXORQ: {
        int last = p->z.operand_count_visible - 1;
        return p->op[last].type == ZYDIS_OPERAND_TYPE_REGISTER && p->op[last].reg.value == p->op[last - 1].reg.value;
    }
    default: return false;
    }
}

/* A destination that is kept when no bit was found, the selector is bad, or shadow stacks are off. */
static bool may_keep(const pair *p)
{
    switch (p->z.mnemonic) {
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ: return true;
    default: return false;
    }
}

static bool is_shift(const pair *p)
{
    return p->z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           (p->z.meta.category == ZYDIS_CATEGORY_SHIFT || p->z.meta.category == ZYDIS_CATEGORY_ROTATE);
}

/* With a 67 prefix and REX.B, Zydis 4.0 takes SIB base 5 without displacement for r13d; the hardware
 * has no base there, as in every other case. */
static bool false_base(const pair *p, ZydisRegister base)
{
    return base == ZYDIS_REGISTER_R13D && p->z.raw.modrm.mod == 0 && p->z.attributes & ZYDIS_ATTRIB_HAS_SIB &&
           p->z.raw.sib.base == 5;
}

/* MPX ignores the 67 prefix. What is left of it are nops. */
static bool is_mpx(const pair *p) { return p->z.meta.isa_ext == ZYDIS_ISA_EXT_MPX; }

/* ---- what it is ------------------------------------------------------------------------- */

static bool check_fields(pair *p)
{
    const isa_insn *in = p->in;
    const ZydisDecodedInstruction *z = &p->z;
    unsigned disp = z->raw.disp.size / 8, imm = (z->raw.imm[0].size + z->raw.imm[1].size) / 8;
    return same(p, "length", in->len, z->length) &&
           same(p, "mnemonic", strcmp(set->mnemonic(in->op), ZydisMnemonicGetString(z->mnemonic)), 0) &&
           same(p, "ModRM offset", in->modrm_at, z->raw.modrm.offset) &&
           same(p, "displacement size", in->disp_len, disp) &&
           same(p, "displacement offset", in->disp_at, disp ? z->raw.disp.offset : 0) &&
           same(p, "immediate size", in->imm_len, imm) &&
           same(p, "immediate offset", in->imm_at, imm ? z->raw.imm[0].offset : 0) &&
           same(p, "opcode", in->raw[in->opcode_at], z->opcode) &&
           same(p, "LOCK", !!(in->bits & ISA_BIT_LOCK), !!(z->attributes & ZYDIS_ATTRIB_HAS_LOCK)) &&
           same(p, "privileged", !!(in->bits & ISA_BIT_PRIV), !!(z->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED));
}

static unsigned branch_flow(const pair *p)
{
    bool direct = p->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && p->op[0].imm.is_relative;
    if (p->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return ISA_FLOW_FAR;
    switch (p->z.mnemonic) {
    case ZYDIS_MNEMONIC_JMP: return direct ? ISA_FLOW_JUMP : ISA_FLOW_JUMP_IND;
    case ZYDIS_MNEMONIC_CALL: return direct ? ISA_FLOW_CALL : ISA_FLOW_CALL_IND;
    case ZYDIS_MNEMONIC_RET: return ISA_FLOW_RETURN;
    case ZYDIS_MNEMONIC_XBEGIN: return ISA_FLOW_TX;
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE: return ISA_FLOW_COND_REG;
    default: return direct ? ISA_FLOW_COND : ISA_FLOW_NEXT;
    }
}

static bool check_flow(pair *p)
{
    unsigned flow = branch_flow(p);
    ZyanU64 target;
    if (flow == ISA_FLOW_NEXT) { /* system calls, traps, far returns are told in isa_semantics */
        if (p->in->flow != ISA_FLOW_NEXT && !leaves(p)) return same(p, "flow", p->in->flow, flow);
    } else if (!same(p, "flow", p->in->flow, flow)) {
        return false;
    }
    if (flow == ISA_FLOW_COND && !same(p, "condition", p->in->cond, p->z.opcode & 15)) return false;
    if (flow == ISA_FLOW_COND && p->in->cond < 16 &&
        !same(p, "condition's flags", x86_cond_flags(p->in->cond), p->z.cpu_flags->tested))
        return false;
    for (int i = 0; i < p->z.operand_count_visible; i++) {
        const ZydisDecodedOperand *o = &p->op[i];
        bool relative = o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative;
        bool pcrel = o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
                     (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP);
        if (!relative && !pcrel) continue;
        ZydisCalcAbsoluteAddress(&p->z, o, p->in->addr, &target);
        if (pcrel && is_mpx(p) && p->z.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE) target = (uint32_t)target;
        return same(p, "target", p->in->target, target) &&
               same(p, "PC-relative", !!(p->in->bits & ISA_BIT_PCREL_MEM), pcrel);
    }
    return same(p, "PC-relative", !!(p->in->bits & ISA_BIT_PCREL_MEM), 0);
}

/* ---- registers -------------------------------------------------------------------------- */

typedef struct sets {
    uint64_t reads, writes, kills;
    uint32_t vr, vw, vk;
    uint8_t mr, mw;
} sets;

static void add_access(sets *s, ZydisRegister reg, unsigned actions, const pair *p)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    bool read = actions & ZYDIS_OPERAND_ACTION_MASK_READ, write = actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    bool sure = actions & ZYDIS_OPERAND_ACTION_WRITE;
    if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15) {
        uint64_t bit = 1ull << (whole - ZYDIS_REGISTER_RAX);
        if (read) s->reads |= bit;
        if (write) s->writes |= bit;
        if (sure && ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) >= 32) s->kills |= bit;
    } else if (whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31) {
        uint32_t bit = 1u << (whole - ZYDIS_REGISTER_ZMM0);
        if (read) s->vr |= bit;
        if (write) s->vw |= bit;
        /* legacy SSE keeps the upper part */
        if (sure && p->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) s->vk |= bit;
    } else if (reg >= ZYDIS_REGISTER_K0 && reg <= ZYDIS_REGISTER_K7) {
        if (read) s->mr |= 1u << (reg - ZYDIS_REGISTER_K0);
        if (write) s->mw |= 1u << (reg - ZYDIS_REGISTER_K0);
    }
}

static void collect(const pair *p, sets *s)
{
    for (int i = 0; i < p->z.operand_count; i++) {
        const ZydisDecodedOperand *o = &p->op[i];
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            if (!false_base(p, o->mem.base)) add_access(s, o->mem.base, ZYDIS_OPERAND_ACTION_READ, p);
            add_access(s, o->mem.index, ZYDIS_OPERAND_ACTION_READ, p);
        }
        if (o->type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        /* k0 as a write mask means none */
        if (o->encoding == ZYDIS_OPERAND_ENCODING_MASK && o->reg.value == ZYDIS_REGISTER_K0) continue;
        add_access(s, o->reg.value, o->actions, p);
    }
}

static void mend(const pair *p, sets *s)
{
    uint64_t pointers = 1u << X86_RSI | 1u << X86_RDI | 1u << X86_RCX;
    switch (p->z.mnemonic) {
    case ZYDIS_MNEMONIC_XLAT: s->reads |= 1u << X86_RAX; break; /* Zydis lacks the index */
    case ZYDIS_MNEMONIC_LLWPCB:
        s->reads |= s->writes;
        s->writes = s->kills = 0;
        break; /* it reads */
    case ZYDIS_MNEMONIC_VZEROALL:
        s->vk = 0xffff;
        s->vw = 0xffff;
        break; /* Zydis lists no registers */
    case ZYDIS_MNEMONIC_VZEROUPPER: s->vw = 0xffff; break;
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
        s->writes |= 1u << X86_RAX; /* the kernel's answer */
        break;
    default: break;
    }
    if (is_nop(p)) memset(s, 0, sizeof *s);
    if (leaves(p)) s->reads = 0xffff;
    if (is_string(p)) {
        s->reads = (s->reads & ~pointers) | (p->fx.reads & pointers);
        s->writes = (s->writes & ~pointers) | (p->fx.writes & pointers);
        s->kills = (s->kills & ~pointers) | (p->fx.kills & pointers);
    }
    if (may_keep(p)) s->kills = 0;
    if (is_clearing(p)) {
        s->reads &= p->fx.reads;
        s->vr &= p->fx.vec_reads;
    }
    if (p->z.meta.category == ZYDIS_CATEGORY_AVX512_4FMAPS || p->z.meta.category == ZYDIS_CATEGORY_AVX512_4VNNIW)
        s->vr |= 15u << ((unsigned)ZydisRegisterGetId(p->op[2].reg.value) & ~3u); /* a block of four */
    if (p->z.meta.category == ZYDIS_CATEGORY_AVX512_VP2INTERSECT)
        s->mw |= 3u << ((unsigned)ZydisRegisterGetId(p->op[0].reg.value) & ~1u); /* a pair */
}

static bool check_registers(pair *p)
{
    sets s = {0};
    collect(p, &s);
    mend(p, &s);
    const isa_effects *e = &p->fx;
    return same(p, "reads", e->reads, s.reads) && same(p, "writes", e->writes, s.writes) &&
           same(p, "kills", e->kills, s.kills) && same(p, "vector reads", e->vec_reads, s.vr) &&
           same(p, "vector writes", e->vec_writes, s.vw) && same(p, "vector kills", e->vec_kills, s.vk) &&
           same(p, "mask reads", e->mask_reads, s.mr) && same(p, "mask writes", e->mask_writes, s.mw) &&
           same(p, "kills beyond writes", e->kills & ~e->writes, 0);
}

/* ---- flags ------------------------------------------------------------------------------ */

/* Shifts by an immediate: does the count keep the flags? REX.W before a byte operand may or may not
 * widen the count to six bits, so a count of 32 is then written, but kills nothing. */
static bool count_is_zero(const pair *p, bool *perhaps)
{
    unsigned count = p->z.raw.imm[0].value.u & 63;
    bool wide = p->z.raw.rex.W;
    *perhaps = false;
    if (!is_shift(p) || !p->z.raw.imm[0].size) return false;
    *perhaps = wide && p->z.operand_width == 8 && !(count & 31);
    return !(wide ? count : count & 31);
}

static bool check_flags(pair *p)
{
    enum { USER = X86_ARITH | X86_TF | X86_IF | X86_DF | X86_AC | X86_ID };
    const ZydisAccessedFlags *f = p->z.cpu_flags;
    const isa_effects *e = &p->fx;
    uint32_t written = (f->modified | f->set_0 | f->set_1) & USER, undefined = f->undefined & USER;
    if (leaves(p)) return same(p, "flags read", e->flags_read, USER) && same(p, "flags killed", e->flags_kill, 0);
    if (is_shift(p)) { /* OF is defined when the count is 1 */
        written |= undefined & X86_OF;
        undefined &= ~X86_OF;
    }
    bool sure = false;
    for (int i = 0; i < p->z.operand_count; i++)
        if (p->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && p->op[i].reg.value == ZYDIS_REGISTER_RFLAGS)
            sure = p->op[i].actions & ZYDIS_OPERAND_ACTION_WRITE;
    for (int i = 1; i < p->z.operand_count_visible; i++) /* a count of 0 keeps them */
        if (is_shift(p) && p->op[i].encoding == ZYDIS_OPERAND_ENCODING_NONE &&
            p->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && p->op[i].reg.value == ZYDIS_REGISTER_CL)
            sure = false;
    if (is_string(p) && p->in->bits & ISA_BIT_REP) sure = false; /* likewise */
    bool perhaps;
    if (count_is_zero(p, &perhaps)) written = undefined = 0;
    if (perhaps) sure = false;
    /* IF and TF are left out: popf may not change the first. */
    uint32_t killed = sure ? (written | undefined) & (X86_ARITH | X86_DF | X86_AC | X86_ID) : 0;
    return same(p, "flags read", e->flags_read, f->tested & USER) &&
           same(p, "flags written", e->flags_written, written) &&
           same(p, "flags undefined", e->flags_undefined, undefined) && same(p, "flags killed", e->flags_kill, killed);
}

/* ---- memory ----------------------------------------------------------------------------- */

static unsigned number_of(ZydisRegister r)
{
    if (r == ZYDIS_REGISTER_NONE || r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP) return ISA_NO_REG;
    return ZydisRegisterGetId(r);
}

static bool check_address(pair *p, const ZydisDecodedOperand *o, const isa_mem *m)
{
    unsigned segment = o->mem.segment == ZYDIS_REGISTER_FS   ? X86_SEG_FS
                       : o->mem.segment == ZYDIS_REGISTER_GS ? X86_SEG_GS
                                                             : X86_SEG_NONE;
    bool pcrel = o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP;
    int64_t disp = o->mem.disp.value;
    unsigned index = number_of(o->mem.index), scale = index == ISA_NO_REG ? 1 : o->mem.scale;
    if (p->z.mnemonic == ZYDIS_MNEMONIC_XLAT) {
        index = X86_RAX;
        scale = 1;
    }
    if (false_base(p, o->mem.base)) disp = p->z.raw.disp.value;
    if (pcrel) disp = (int64_t)p->in->target;
    /* A 32-bit absolute address is not sign-extended. */
    if (m->base == ISA_NO_REG && m->bits & ISA_MEM_ADDR32 && !p->in->modrm_at) disp = (uint32_t)disp;
    /* Inlay counts from the stack pointer before the instruction. */
    if (m->bits & ISA_MEM_STACK && m->access == ISA_WRITE) disp = -(int64_t)m->size;
    if (p->z.mnemonic == ZYDIS_MNEMONIC_POP && o->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM &&
        (o->mem.base == ZYDIS_REGISTER_RSP || o->mem.base == ZYDIS_REGISTER_ESP))
        disp += m->size;
    unsigned base = false_base(p, o->mem.base) ? ISA_NO_REG : number_of(o->mem.base);
    return same(p, "base", m->base, base) && same(p, "index", m->index, index) && same(p, "scale", m->scale, scale) &&
           same(p, "displacement", m->disp, disp) && same(p, "segment", m->segment, segment) &&
           same(p, "PC-relative operand", !!(m->bits & ISA_MEM_PCREL), pcrel);
}

/* Zydis knows of no frames around that of enter: what is pushed for them, and read. */
static unsigned frames_of(const pair *p)
{
    return p->z.mnemonic == ZYDIS_MNEMONIC_ENTER ? (unsigned)p->z.raw.imm[1].value.u & 31 : 0;
}

static bool check_access(pair *p, const ZydisDecodedOperand *o, const isa_mem *m)
{
    unsigned access = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? ISA_READ : 0) |
                      (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ISA_WRITE : 0);
    if (m->access == ISA_PREFETCH || m->access == ISA_ADDRESS_ONLY) access = m->access;
    if (!same(p, "access", m->access, access)) return false;
    if (m->bits & ISA_MEM_VARIABLE) return same(p, "variable size", m->size, 0);
    if (m->bits & ISA_MEM_VECTOR_INDEX) return same(p, "element size", m->size, o->element_size / 8);
    /* far transfers move CS too */
    if (m->bits & ISA_MEM_STACK && p->in->flow == ISA_FLOW_FAR) return true;
    return same(p, "size", m->size, o->size / 8 * (1 + frames_of(p)));
}

static bool check_memory(pair *p)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = set->memory(p->in, mem), k = 0;
    bool touches = false;
    for (int i = 0; i < p->z.operand_count; i++) {
        if (p->op[i].type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        if (!same(p, "memory operand", k < n, 1)) return false;
        if (!check_address(p, &p->op[i], &mem[k]) || !check_access(p, &p->op[i], &mem[k])) return false;
        touches |= mem[k++].access & ISA_READ_WRITE;
    }
    if (frames_of(p) > 1) {
        const unsigned copied = (frames_of(p) - 1) * (p->z.operand_width == 16 ? 2 : 8);
        if (!same(p, "frame's base", k < n ? mem[k].base : ISA_NO_REG, X86_RBP) ||
            !same(p, "frame's pointers", mem[k].size, copied))
            return false;
        k++;
    }
    return same(p, "memory operands", n, k) && same(p, "memory bit", !!(p->in->bits & ISA_BIT_MEM), touches);
}

/* ---- operands --------------------------------------------------------------------------- */

static bool left_out(const ZydisDecodedOperand *o)
{
    if (o->type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
    switch (ZydisRegisterGetClass(o->reg.value)) {
    case ZYDIS_REGCLASS_FLAGS:
    case ZYDIS_REGCLASS_IP: return true;
    default: return o->encoding == ZYDIS_OPERAND_ENCODING_MASK && o->reg.value == ZYDIS_REGISTER_K0;
    }
}

static unsigned set_of(ZydisRegister reg)
{
    switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_XMM: return X86_CLASS_XMM;
    case ZYDIS_REGCLASS_YMM: return X86_CLASS_YMM;
    case ZYDIS_REGCLASS_ZMM: return X86_CLASS_ZMM;
    case ZYDIS_REGCLASS_MASK: return X86_CLASS_MASK;
    case ZYDIS_REGCLASS_MMX: return X86_CLASS_MMX;
    case ZYDIS_REGCLASS_X87: return X86_CLASS_ST;
    case ZYDIS_REGCLASS_SEGMENT: return X86_CLASS_SEGMENT;
    case ZYDIS_REGCLASS_CONTROL: return X86_CLASS_CR;
    case ZYDIS_REGCLASS_DEBUG: return X86_CLASS_DR;
    case ZYDIS_REGCLASS_BOUND: return X86_CLASS_BND;
    case ZYDIS_REGCLASS_TMM: return X86_CLASS_TMM;
    default: return X86_CLASS_SPECIAL;
    }
}

static bool check_register_operand(pair *p, const ZydisDecodedOperand *z, const isa_operand *o)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, z->reg.value);
    bool high = z->reg.value >= ZYDIS_REGISTER_AH && z->reg.value <= ZYDIS_REGISTER_BH;
    switch (o->kind) {
    case ISA_OPERAND_REG:
        return same(p, "operand register", o->reg, whole - ZYDIS_REGISTER_RAX) &&
               same(p, "high byte", o->high_byte, high) &&
               same(p, "operand size", o->size, ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, z->reg.value) / 8);
    case ISA_OPERAND_VEC:
        return same(p, "operand vector", o->reg, whole - ZYDIS_REGISTER_ZMM0) &&
               same(p, "vector's set", o->set, set_of(z->reg.value));
    case ISA_OPERAND_MASK: return same(p, "operand mask", o->reg, z->reg.value - ZYDIS_REGISTER_K0);
    case ISA_OPERAND_OTHER: return same(p, "operand's set", o->set, set_of(z->reg.value));
    default: return same(p, "operand kind", o->kind, ISA_OPERAND_REG);
    }
}

static bool check_operand(pair *p, const ZydisDecodedOperand *z, const isa_operand *o)
{
    unsigned access = (z->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? ISA_READ : 0) |
                      (z->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ISA_WRITE : 0);
    if (!same(p, "operand access", o->access, access) ||
        !same(p, "implicit", o->implicit, z->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN))
        return false;
    switch (z->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: return check_register_operand(p, z, o);
    case ZYDIS_OPERAND_TYPE_MEMORY: return same(p, "operand kind", o->kind, ISA_OPERAND_MEM);
    default:
        if (z->imm.is_relative) return same(p, "operand kind", o->kind, ISA_OPERAND_TARGET);
        return same(p, "operand kind", o->kind, ISA_OPERAND_IMM) &&
               same(p, "immediate", (uint64_t)o->imm, z->imm.value.u);
    }
}

static bool check_operands(pair *p)
{
    isa_operand list[ISA_MAX_OPERANDS];
    int n = set->operands(p->in, list), k = 0;
    for (int i = 0; i < p->z.operand_count; i++) {
        if (left_out(&p->op[i])) continue;
        if (!same(p, "operand", k < n, 1) || !check_operand(p, &p->op[i], &list[k])) return false;
        k++;
    }
    return same(p, "operands", n, k + (frames_of(p) > 1));
}

static bool check_text(pair *p)
{
    char text[160];
    int n = set->format(p->in, text, sizeof text);
    return same(
        p, "text",
        n > 0 && n < (int)sizeof text && (int)strlen(text) == n && strstr(text, set->mnemonic(p->in->op)) != NULL, 1);
}

/* ---- both ------------------------------------------------------------------------------- */

static void report(const pair *p, const uint8_t *bytes, size_t avail, isa_tally *t)
{
    char text[160] = "";
    if (t->differences++ >= t->limit) return;
    printf("  %-20s ours %" PRIx64 ", Zydis' %" PRIx64 ":", p->what, p->ours, p->theirs);
    for (size_t i = 0; i < avail && i < 15; i++) printf(" %02x", bytes[i]);
    set->format(p->in, text, sizeof text);
    printf("  (%s)\n", text);
}

/* What Zydis rejects must not be taken for a valid instruction, and the other way round. */
static bool check_verdict(pair *p, isa_result ours, ZyanStatus theirs, const uint8_t *bytes, size_t avail)
{
    if (has_rex2(bytes, avail)) return true;
    if (ZYAN_SUCCESS(theirs))
        return foreign_processor(&p->z) ? same(p, "verdict", ours == ISA_OK, 0) : same(p, "verdict", ours, ISA_OK);
    if (theirs == ZYDIS_STATUS_NO_MORE_DATA) return same(p, "verdict (truncated)", ours == ISA_OK, 0);
    return same(p, "verdict", ours == ISA_OK, 0);
}

unsigned isa_zydis_compare(const uint8_t *bytes, size_t avail, uint64_t addr, isa_tally *t)
{
    pair p = {0};
    isa_insn in;
    isa_result ours = set->decode(bytes, avail, addr, &in);
    ZyanStatus theirs = ZydisDecoderDecodeFull(&decoder, bytes, avail, &p.z, p.op);
    p.in = &in;
    t->compared++;
    t->known += ours == ISA_OK;
    t->unknown += ours == ISA_UNKNOWN;
    t->rejected += ours == ISA_INVALID;
    if (!check_verdict(&p, ours, theirs, bytes, avail)) report(&p, bytes, avail, t);
    if (ours == ISA_OK && ZYAN_SUCCESS(theirs)) {
        set->effects(&in, &p.fx);
        if (!(check_fields(&p) && check_flow(&p) && check_registers(&p) && check_flags(&p) && check_memory(&p) &&
              check_operands(&p) && check_text(&p)))
            report(&p, bytes, avail, t);
    }
    if (ours != ISA_TRUNCATED && (!in.len || in.len > 15 || in.len > avail)) {
        p.what = "length out of range";
        report(&p, bytes, avail, t);
    }
    return ZYAN_SUCCESS(theirs) ? p.z.length : 1;
}

uint64_t isa_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* clang-format off */
static unsigned vector_prefix(uint64_t *state, uint8_t *out)
{
    static const uint8_t maps[] = {1, 2, 3, 1, 2, 3, 5, 6};
    uint64_t r = isa_random(state);
    switch (r & 7) {
    case 0: out[0] = 0xc5; out[1] = r >> 8; return 2;
    case 1: case 2: out[0] = 0xc4; out[1] = (r >> 8 & 0xe0) | maps[r >> 16 & 3]; out[2] = r >> 24; return 3;
    case 3: out[0] = 0x8f; out[1] = (r >> 8 & 0xe0) | (8 + (r >> 16) % 3); out[2] = r >> 24; return 3;
    default:
        out[0] = 0x62;
        out[1] = (r >> 8 & 0xf0) | maps[r >> 16 & 7];
        out[2] = (r >> 24 & 0xff) | 4;
        out[3] = r >> 32;
        /* Half of them with the fields that many forms want. */
        if (r & 8) { out[2] |= 0x78; out[3] |= 8; }
        return 4;
    }
}
/* clang-format on */

/* clang-format off */
void isa_random_bytes(uint64_t *state, bool structured, uint8_t out[32])
{
    static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x64, 0x65, 0x2e};
    unsigned n = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        uint64_t r = isa_random(state);
        memcpy(out + i, &r, 8);
    }
    if (!structured) return;
    uint64_t r = isa_random(state);
    while ((r & 3) == 0 && n < 4) {
        out[n++] = prefixes[r >> 2 & 7];
        r = isa_random(state);
    }
    r >>= 8;
    if ((r & 3) == 0) { vector_prefix(state, out + n); return; }
    if (r & 4) out[n++] = 0x40 | (r >> 4 & 15);
    switch (r >> 8 & 7) {
    case 0: case 1: case 2: out[n++] = 0x0f; break;
    case 3: out[n++] = 0x0f; out[n++] = 0x38; break;
    case 4: out[n++] = 0x0f; out[n++] = 0x3a; break;
    default: break;
    }
}
/* clang-format on */
