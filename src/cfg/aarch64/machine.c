/* AArch64: which instructions carry values along, what a comparison says, padding, prologues.
 *
 * Instructions with three operands are told in the words of two (`what dst, src`), which is what those who follow
 * values understand:
 *
 *     add x0, x1, #8             lea    8(x1), x0           sub: -8
 *     add x0, x1, w2, sxtb #2    lea    (x1, x2's low byte, 4), x0
 *     lsl x0, x1, #3             lea    (, x1, 8), x0
 *     adrp, adr                  lea    of an address
 *     subs xzr, x1, #8           cmp    8, x1
 *     ldr, ldrb, ldrsw, str      mov, movzx, movsx
 *     and, ubfx; lsr             and, shr: by a constant, of whatever */
#include "cfg/work.h"
#include "isa/a64_tables.h"
#include "isa/aarch64/a64.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
}

static bool skippable(uint8_t byte)
{
    (void)byte; /* there are no prefixes */
    return false;
}

/* nop, and the trap that one linker fills up with. Not zero words: they may be somebody's constants. */
static size_t padding(const isa *a, const uint8_t *p, size_t have)
{
    (void)a;
    return have >= 4 && (word_at(p) == 0xd503201f || word_at(p) == 0xd4200020) ? 4 : 0;
}

static bool filler(const uint8_t *p, size_t have) { return have >= 4 && word_at(p) == 0; }

static bool prologue(const uint8_t *p, size_t have)
{
    if (have < 4) return false;
    uint32_t word = word_at(p);
    return word == 0xd503233f || word == 0xd503245f || /* paciasp; bti c */
           (word & 0xffc003e0) == 0xa98003e0 ||        /* stp x, x, [sp, #-n]! */
           (word & 0xffe00fe0) == 0xf8000fe0 ||        /* str x, [sp, #-n]! */
           (word & 0xff8003ff) == 0xd10003ff;          /* sub sp, sp, #n */
}

/* --- shapes --- */

typedef struct parts {
    const isa_insn *in;
    isa_operand o[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    int count, mems;
} parts;

static void set(cfg_shape *s, cfg_sem sem, isa_operand dst, isa_operand src)
{
    s->sem = (uint8_t)sem;
    s->dst = dst;
    s->src = src;
    s->has_dst = s->has_src = true;
}

static isa_operand constant(int64_t value)
{
    return (isa_operand){.kind = ISA_OPERAND_IMM, .access = ISA_READ, .reg = ISA_NO_REG, .size = 8, .imm = value};
}

/* The zero register is a constant. */
static isa_operand value(isa_operand o) { return o.kind == ISA_OPERAND_REG && o.reg == A64_ZR ? constant(0) : o; }

static void lea(cfg_shape *s, const parts *p, isa_mem mem)
{
    isa_operand src = {.kind = ISA_OPERAND_MEM, .access = ISA_ADDRESS_ONLY, .reg = ISA_NO_REG, .size = p->o[0].size};
    mem.access = ISA_ADDRESS_ONLY;
    set(s, SEM_LEA, p->o[0], src);
    s->mem = mem;
    s->has_mem = true;
}

static void add_constant(cfg_shape *s, const parts *p, bool subtracts)
{
    int64_t by = p->o[2].imm;
    lea(s, p, (isa_mem){.base = p->o[1].reg, .index = ISA_NO_REG, .scale = 1, .disp = subtracts ? -by : by});
}

/* How many low bytes an extension leaves, 0: all; false when the register is not shifted to the left. */
static bool extension(const isa_operand *o, isa_mem *m)
{
    static const uint8_t low[] = {1, 2, 4, 0};
    if (o->amount > 4) return false;
    m->scale = (uint8_t)(1 << o->amount);
    if (o->modify < ISA_MODIFY_UXTB) return o->modify == ISA_MODIFY_LSL || o->amount == 0;
    m->index_low = low[(o->modify - ISA_MODIFY_UXTB) & 3];
    m->index_signed = o->modify >= ISA_MODIFY_SXTB && m->index_low;
    return true;
}

static void add_register(cfg_shape *s, const parts *p)
{
    isa_mem m = {.base = p->o[1].reg, .index = p->o[2].reg, .scale = 1};
    if (p->o[1].reg == A64_ZR || p->o[2].reg == A64_ZR || !extension(&p->o[2], &m)) return;
    lea(s, p, m);
}

static void compare(cfg_shape *s, const parts *p)
{
    if (p->o[2].amount == 0 && p->o[2].modify <= ISA_MODIFY_LSL) set(s, SEM_CMP, p->o[1], value(p->o[2]));
}

static void shift_left(cfg_shape *s, const parts *p, unsigned by)
{
    if (by > 4) return;
    lea(s, p, (isa_mem){.base = ISA_NO_REG, .index = p->o[1].reg, .scale = (uint8_t)(1 << by)});
}

/* ubfm, the many things it is called: bits `first` to `last`, or shifted to the left when first > last. */
static void bits_taken(cfg_shape *s, const parts *p, unsigned bits)
{
    unsigned first = (unsigned)p->o[2].imm, last = (unsigned)p->o[3].imm;
    isa_operand src = p->o[1];
    if (last == bits - 1) {
        set(s, SEM_SHR, p->o[0], constant(first));
    } else if (last + 1 == first) {
        shift_left(s, p, bits - first);
    } else if (first == 0 && (last == 7 || last == 15 || last == 31)) {
        src.size = (uint16_t)((last + 1) / 8);
        set(s, last == 31 ? SEM_MOV : SEM_MOVZX, p->o[0], src);
        if (last == 31) s->dst.size = 4;
    } else if (first <= last) {
        set(s, SEM_AND, p->o[0], constant((int64_t)((2ull << (last - first)) - 1)));
    }
}

static void bits_signed(cfg_shape *s, const parts *p)
{
    unsigned first = (unsigned)p->o[2].imm, last = (unsigned)p->o[3].imm;
    isa_operand src = p->o[1];
    if (first != 0 || (last != 7 && last != 15 && last != 31)) return;
    src.size = (uint16_t)((last + 1) / 8);
    set(s, SEM_MOVSX, p->o[0], src);
}

/* One general register, from or to memory. */
static void access_memory(cfg_shape *s, const parts *p)
{
    const isa_mem *m = &p->mem[0];
    if (p->mems != 1 || p->count != 2 || p->o[0].kind != ISA_OPERAND_REG || p->o[1].kind != ISA_OPERAND_MEM) return;
    isa_operand reg = p->o[0], place = p->o[1];
    s->mem = *m;
    s->has_mem = true;
    if (m->access == ISA_WRITE) {
        reg.size = m->size;
        set(s, SEM_MOV, place, value(reg));
        return;
    }
    const char *name = isa_aarch64.mnemonic(p->in->op);
    bool is_signed = strncmp(name, "ldrs", 4) == 0 || strncmp(name, "ldurs", 5) == 0;
    set(s, is_signed ? SEM_MOVSX : m->size < 4 ? SEM_MOVZX : SEM_MOV, reg, place);
}

/* What is added to the register that an address is in. */
static void note_step(cfg_shape *s, const parts *p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->o[i].kind != ISA_OPERAND_MEM || !(p->mem[0].bits & ISA_MEM_WRITEBACK) || p->o[i].reg != ISA_NO_REG)
            continue;
        s->has_step = true;
        s->step_reg = p->mem[0].base;
        s->step = p->o[i].imm;
    }
}

static void shape_arithmetic(cfg_shape *s, const parts *p)
{
    uint64_t number, mask;
    bool to_nowhere = p->o[0].reg == A64_ZR;
    switch (p->in->row) {
    case A64_ADD_IMM: add_constant(s, p, false); return;
    case A64_SUB_IMM: add_constant(s, p, true); return;
    case A64_ADD_SHIFT:
    case A64_ADD_EXT: add_register(s, p); return;
    case A64_SUBS_IMM:
        if (to_nowhere) compare(s, p);
        else add_constant(s, p, true);
        return;
    case A64_SUBS_SHIFT:
        if (to_nowhere) compare(s, p);
        return;
    case A64_ORR_SHIFT:
        if (p->o[1].reg == A64_ZR && p->o[2].amount == 0) set(s, SEM_MOV, p->o[0], value(p->o[2]));
        return;
    case A64_ORR_IMM:
        if (p->o[1].reg == A64_ZR) set(s, SEM_MOV, p->o[0], p->o[2]);
        return;
    case A64_ANDS_IMM:
    case A64_AND_IMM: set(s, to_nowhere ? SEM_TEST : SEM_AND, to_nowhere ? p->o[1] : p->o[0], p->o[2]); return;
    case A64_UBFM_W: bits_taken(s, p, 32); return;
    case A64_UBFM_X: bits_taken(s, p, 64); return;
    case A64_SBFM_W:
    case A64_SBFM_X: bits_signed(s, p); return;
    case A64_MOVZ:
    case A64_MOVN:
        if (a64_wide_constant(p->in, &number, &mask)) set(s, SEM_MOV, p->o[0], constant((int64_t)number));
        return;
    default: return;
    }
}

static void shape(const cfg_work *w, const isa_insn *in, cfg_shape *s)
{
    parts p = {.in = in};
    p.count = w->isa->operands(in, p.o);
    p.mems = w->isa->memory(in, p.mem);
    *s = (cfg_shape){.sem = w->sems[in->op]};
    if (p.count) s->dst = p.o[0], s->has_dst = true;
    if (in->row == A64_ADR || in->row == A64_ADRP) lea(s, &p, p.mem[0]);
    else if (in->bits & ISA_BIT_MEM) access_memory(s, &p);
    else if (in->flow == ISA_FLOW_NEXT) shape_arithmetic(s, &p);
    if (in->bits & ISA_BIT_MEM) note_step(s, &p);
}

/* --- addresses that are named --- */

static bool follow(const cfg_trail *t, unsigned reg, uint64_t *at)
{
    if (reg >= 64 || !(t->known >> reg & 1)) return false;
    *at = t->value[reg];
    return true;
}

/* adrp gives a page; an add or the offset of an access the rest. */
static unsigned names(const cfg_work *w, const isa_insn *in, cfg_trail *trail, cfg_name out[CFG_MAX_NAMES])
{
    cfg_shape s;
    uint64_t at = 0;
    unsigned n = 0;
    isa_regs writes = cfg_insn_writes(w, in);
    if (!trail->known && !(in->bits & ISA_BIT_PCREL_MEM)) return 0;
    shape(w, in, &s);
    bool page = in->row == A64_ADRP, address = false;
    if (in->bits & ISA_BIT_PCREL_MEM) {
        at = in->target;
        address = s.sem == SEM_LEA;
        if (!page) out[n++] = (cfg_name){at, address, address, !address};
    } else if (s.has_mem && s.mem.index == ISA_NO_REG && follow(trail, s.mem.base, &at)) {
        at += (uint64_t)s.mem.disp;
        address = s.sem == SEM_LEA;
        out[n++] = (cfg_name){at, address, address, !address};
    }
    trail->known &= ~writes;
    if (address && s.dst.reg < 64 && s.dst.size == 8) {
        trail->value[s.dst.reg] = at;
        trail->known |= 1ull << s.dst.reg;
    }
    return n;
}

const cfg_machine cfg_machine_aarch64 = {
    .isa = &isa_aarch64,
    .call_clobbers = 0x7ffffu | 1u << A64_LR, /* x0 to x18 */
    .stack = A64_SP,
    .frame = A64_FP,
    .dwarf_stack = 31,
    .unit = 4,
    .small_tables = true,
    .tail_regs = 1u << A64_IP0 | 1u << A64_IP1,
    .results = 3, /* x0, x1 */
    .sems =
        {
            [SEM_LEA] = LIST("adr", "adrp"),
            [SEM_NOP] = LIST("nop", "bti", "hint"),
            [SEM_HALT] = LIST("udf", "brk", "hlt"),
            [SEM_SYSCALL] = LIST("svc"),
        },
    .conds = {.at_most = A64_LS, .below = A64_LO, .equal = A64_EQ},
    .skippable = skippable,
    .padding = padding,
    .filler = filler,
    .prologue = prologue,
    .shape = shape,
    .names = names,
};
