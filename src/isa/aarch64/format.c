/* An instruction as text, as assemblers write it without aliases: "ldr x0, [x1, w2, uxtw #3]". */
#include <inttypes.h>
#include <stdio.h>
#include "isa/text.h"
#include "isa/aarch64/encode.h"

static const char *const names64[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
                                      "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
                                      "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "xzr"};
static const char *const conditions[] = {"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc",
                                         "hi", "ls", "ge", "lt", "gt", "le", "al", "nv"};
static const char *const modifiers[] = {"",     "lsl",  "lsr",  "asr",  "ror",  "uxtb", "uxth",
                                        "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"};

const char *a64_reg_name(unsigned reg) { return reg <= A64_ZR ? names64[reg] : "?"; }

static void put_general(isa_text *t, unsigned reg, unsigned size)
{
    if (reg == A64_ZR) isa_text_put(t, size == 4 ? "wzr" : "xzr");
    else if (reg == A64_SP) isa_text_put(t, size == 4 ? "wsp" : "sp");
    else isa_text_put(t, "%c%u", size == 4 ? 'w' : 'x', reg);
}

static char vector_letter(const a64_slot *s, unsigned size)
{
    if (s->rule == A64_RULE_Q || s->kind == A64_SLOT_VEC_ELEMENT) return 'v';
    return size == 1 ? 'b' : size == 2 ? 'h' : size == 4 ? 's' : size == 8 ? 'd' : 'q';
}

static void put_registers(isa_text *t, const a64_slot *s, const isa_operand *o)
{
    bool general = o->kind == ISA_OPERAND_REG, list = !general && s->count > 1;
    if (list) isa_text_put(t, "{");
    for (unsigned i = 0; i < s->count; i++) {
        if (i) isa_text_put(t, ", ");
        unsigned next = o->reg + i < A64_SP ? o->reg + i : A64_ZR;
        if (general) put_general(t, i ? next : o->reg, o->size);
        else isa_text_put(t, "%c%u", vector_letter(s, o->size), (o->reg + i) & 31);
    }
    if (list) isa_text_put(t, "}");
    if (!general || !o->modify || (o->modify == ISA_MODIFY_LSL && !o->amount)) return;
    isa_text_put(t, ", %s", modifiers[o->modify]);
    if (o->amount || o->modify < ISA_MODIFY_UXTB) isa_text_put(t, " #%u", o->amount);
}

static void put_index(isa_text *t, const isa_mem *m)
{
    unsigned shift = (unsigned)__builtin_ctz(m->scale ? m->scale : 1);
    isa_text_put(t, ", ");
    put_general(t, m->index, m->index_low ? 4 : 8);
    if (m->index_low) isa_text_put(t, m->index_signed ? ", sxtw" : ", uxtw");
    else if (shift) isa_text_put(t, ", lsl");
    if (shift) isa_text_put(t, " #%u", shift);
}

static void put_memory(isa_text *t, const isa_insn *in, const a64_slot *s, const isa_operand *o, const isa_mem *m)
{
    if (m->bits & ISA_MEM_PCREL) {
        isa_text_put(t, "0x%" PRIx64, in->target);
        return;
    }
    bool writes = m->bits & ISA_MEM_WRITEBACK, pre = writes && a64_is_pre(s->at);
    isa_text_put(t, "[");
    put_general(t, m->base, 8);
    if (m->index != ISA_NO_REG) put_index(t, m);
    if (m->disp || pre) isa_text_put(t, ", #%" PRId64, m->disp);
    isa_text_put(t, "]");
    if (!writes) return;
    unsigned by = a64_field(a64_word(in), 16, 5);
    if (s->at == A64_MEM_VPOST && by != 31) isa_text_put(t, ", x%u", by);
    else if (pre) isa_text_put(t, "!");
    else isa_text_put(t, ", #%" PRId64, o->imm);
}

/* Names of system registers would be a long list: their numbers. */
static void put_system_register(isa_text *t, int64_t v)
{
    unsigned n = (unsigned)v;
    isa_text_put(t, "s%u_%u_c%u_c%u_%u", 2 + (n >> 14 & 1), n >> 11 & 7, n >> 7 & 15, n >> 3 & 15, n & 7);
}

static void put_immediate(isa_text *t, const a64_slot *s, const isa_operand *o)
{
    switch (s->kind) {
    case A64_SLOT_COND: isa_text_put(t, "%s", conditions[o->imm & 15]); return;
    case A64_SLOT_CRN:
    case A64_SLOT_CRM: isa_text_put(t, "c%" PRId64, o->imm); return;
    case A64_SLOT_SYSREG: put_system_register(t, o->imm); return;
    case A64_SLOT_IMM_SIGNED: isa_text_put(t, "#%" PRId64, o->imm); return;
    default: isa_text_put(t, "#0x%" PRIx64, (uint64_t)o->imm);
    }
    if (o->modify && o->amount) isa_text_put(t, ", lsl #%u", o->amount);
}

static void put_operand(isa_text *t, const isa_insn *in, const a64_slot *s, const isa_operand *o, const isa_mem *mem)
{
    switch (o->kind) {
    case ISA_OPERAND_MEM: put_memory(t, in, s, o, &mem[o->mem]); break;
    case ISA_OPERAND_TARGET: isa_text_put(t, "0x%" PRIx64, (uint64_t)o->imm); break;
    case ISA_OPERAND_REG:
    case ISA_OPERAND_VEC: put_registers(t, s, o); break;
    default: put_immediate(t, s, o);
    }
}

/* The address of dc zva and its like is the register that is written before it. */
static bool is_shown(const a64_slot *s) { return s->kind != A64_SLOT_MEM || s->at != A64_MEM_T; }

int a64_format(const isa_insn *in, char *out, size_t size)
{
    isa_text t = {out, size, 0};
    isa_operand op[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    const a64_row *r = a64_row_of(in);
    bool conditional = in->row == A64_B_COND || in->row == A64_BC_COND;
    if (!in->row) {
        isa_text_put(&t, ".inst 0x%08x", a64_word(in));
        return t.length;
    }
    isa_text_put(&t, "%s", a64_mnemonics[in->op]);
    int n = a64_operands(in, op), shown = 0;
    a64_memory(in, mem);
    for (int i = 0; i < n; i++) {
        const a64_slot *s = &a64_slots[r->slots + i];
        if (!is_shown(s)) continue;
        isa_text_put(&t, i == 0 && conditional ? "." : shown++ ? ", " : " ");
        put_operand(&t, in, s, &op[i], mem);
    }
    return t.length;
}
