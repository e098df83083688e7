/* An instruction as text, Intel syntax: "add qword ptr [rbx+rcx*4+0x10], 0x1". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "isa/text.h"
#include "isa/x86_64/tables.h"

static const char *const names64[32] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",  "r9",  "r10",
                                        "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21",
                                        "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"};
static const char *const names32[8] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
static const char *const names16[8] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
static const char *const names8[8] = {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"};
static const char *const names_high[4] = {"ah", "ch", "dh", "bh"};
static const char *const segments[8] = {"es", "cs", "ss", "ds", "fs", "gs", "seg6", "seg7"};
static const char *const specials[] = {"x87control", "x87status", "x87tag", "gdtr",   "ldtr",      "idtr", "tr",
                                       "mxcsr",      "pkru",      "xcr0",   "bndcfg", "bndstatus", "uif"};

const char *x86_reg_name(unsigned reg) { return reg < 32 ? names64[reg] : "?"; }

static void put_general(isa_text *t, unsigned reg, unsigned size, bool high)
{
    reg &= 31;
    if (high) isa_text_put(t, "%s", names_high[reg & 3]);
    else if (size == 8) isa_text_put(t, "%s", names64[reg]);
    else if (reg < 8) isa_text_put(t, "%s", size == 4 ? names32[reg] : size == 2 ? names16[reg] : names8[reg]);
    else isa_text_put(t, "%s%s", names64[reg], size == 4 ? "d" : size == 2 ? "w" : "b");
}

static void put_register(isa_text *t, const x86_operand *p, const isa_operand *o)
{
    static const char *const prefixes[] = {
        [X86_CLASS_XMM] = "xmm", [X86_CLASS_YMM] = "ymm", [X86_CLASS_ZMM] = "zmm", [X86_CLASS_MASK] = "k",
        [X86_CLASS_MMX] = "mm",  [X86_CLASS_ST] = "st",   [X86_CLASS_CR] = "cr",   [X86_CLASS_DR] = "dr",
        [X86_CLASS_BND] = "bnd", [X86_CLASS_TMM] = "tmm"};
    if (p->class == X86_CLASS_GPR) put_general(t, o->reg, o->size, o->high_byte);
    else if (p->class == X86_CLASS_SEGMENT) isa_text_put(t, "%s", segments[o->reg & 7]);
    else if (p->class == X86_CLASS_SPECIAL) isa_text_put(t, "%s", specials[o->reg]);
    else isa_text_put(t, "%s%u", prefixes[p->class], o->reg);
}

static const char *size_name(unsigned size)
{
    switch (size) {
    case 1: return "byte ptr ";
    case 2: return "word ptr ";
    case 4: return "dword ptr ";
    case 6: return "fword ptr ";
    case 8: return "qword ptr ";
    case 10: return "tbyte ptr ";
    case 16: return "xmmword ptr ";
    case 32: return "ymmword ptr ";
    case 64: return "zmmword ptr ";
    default: return "";
    }
}

static void put_number(isa_text *t, int64_t v, bool plus)
{
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    isa_text_put(t, "%s0x%" PRIx64, v < 0 ? "-" : plus ? "+" : "", u);
}

static void put_index(isa_text *t, const isa_insn *in, const isa_mem *m, unsigned width, bool plus)
{
    if (m->index == ISA_NO_REG) return;
    if (plus) isa_text_put(t, "+");
    if (m->bits & ISA_MEM_VECTOR_INDEX) {
        unsigned index = m->size * 8u > 32 && !(in->raw[in->opcode_at] & 1) ? 4 : 8;
        if (!(in->raw[in->opcode_at] & 1)) index = 4;
        unsigned bytes = index * m->count;
        isa_text_put(t, "%s%u", bytes > 32 ? "zmm" : bytes > 16 ? "ymm" : "xmm", m->index);
    } else {
        put_general(t, m->index, width, false);
    }
    if (m->scale > 1) isa_text_put(t, "*%u", m->scale);
}

static void put_memory(isa_text *t, const isa_insn *in, const isa_mem *m, const x86_operand *p)
{
    unsigned width = m->bits & ISA_MEM_ADDR32 ? 4 : 8;
    int64_t disp = m->bits & ISA_MEM_IMPLICIT ? 0 : x86_displacement(in);
    if (m->access != ISA_ADDRESS_ONLY) isa_text_put(t, "%s", size_name(p->size));
    if (m->segment) isa_text_put(t, "%s:", m->segment == X86_SEG_FS ? "fs" : "gs");
    isa_text_put(t, "[");
    if (m->bits & ISA_MEM_PCREL) {
        isa_text_put(t, "0x%" PRIx64, in->target);
    } else if (m->base == ISA_NO_REG && m->index == ISA_NO_REG) {
        isa_text_put(t, "0x%" PRIx64, (uint64_t)disp);
    } else {
        if (m->base != ISA_NO_REG) put_general(t, m->base, width, false);
        put_index(t, in, m, width, m->base != ISA_NO_REG);
        if (disp) put_number(t, disp, true);
    }
    isa_text_put(t, "]");
    if (p->broadcast && p->size) isa_text_put(t, " {1to%u}", p->broadcast);
}

static void put_operand(isa_text *t, const isa_insn *in, const x86_operand *p, const isa_operand *o, const isa_mem *mem)
{
    switch (o->kind) {
    case ISA_OPERAND_MEM: put_memory(t, in, &mem[o->mem], p); break;
    case ISA_OPERAND_TARGET: isa_text_put(t, "0x%" PRIx64, (uint64_t)o->imm); break;
    case ISA_OPERAND_IMM: put_number(t, o->imm, false); break;
    default: put_register(t, p, o);
    }
}

static void put_prefixes(isa_text *t, const isa_insn *in)
{
    const char *name = x86_mnemonics[in->op];
    if (in->bits & ISA_BIT_LOCK) isa_text_put(t, "lock ");
    if (!(in->bits & ISA_BIT_REP)) return;
    bool compares = strncmp(name, "cmps", 4) == 0 || strncmp(name, "scas", 4) == 0;
    isa_text_put(t, "%s ", in->bits & ISA_BIT_REPNE ? "repne" : compares ? "repe" : "rep");
}

static void put_rounding(isa_text *t, const isa_insn *in)
{
    static const char *const modes[] = {"rn", "rd", "ru", "rz"};
    unsigned form = x86_row_of(in)->form;
    if (form & X86_FORM_ROUND) isa_text_put(t, " {%s-sae}", modes[in->x[X86_X_VECTOR] >> 5 & 3]);
    else if (form & X86_FORM_SAE) isa_text_put(t, " {sae}");
}

static void put_bytes(isa_text *t, const isa_insn *in)
{
    isa_text_put(t, "%s", x86_mnemonics[in->op]);
    for (unsigned i = 0; i < in->len; i++) isa_text_put(t, " %02x", in->raw[i]);
}

int x86_format(const isa_insn *in, char *out, size_t size)
{
    isa_text t = {out, size, 0};
    isa_operand op[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    const x86_row *row = x86_row_of(in);
    if (in->row <= X86_ROW_UNKNOWN) {
        put_bytes(&t, in);
        return t.length;
    }
    put_prefixes(&t, in);
    isa_text_put(&t, "%s", x86_mnemonics[in->op]);
    int n = x86_operand_list(in, op), shown = 0;
    x86_memory(in, mem);
    for (int i = 0; i < n; i++) {
        const x86_operand *p = &x86_operands[row->operands + i];
        if (op[i].implicit) continue;
        if (p->slot == X86_SLOT_MASK && p->kind == ISA_OPERAND_MASK) { /* belongs to its neighbour */
            isa_text_put(&t, " {k%u}%s", op[i].reg,
                         x86_operands[row->operands].flags & X86_OPERAND_ZEROING ? " {z}" : "");
            continue;
        }
        isa_text_put(&t, shown++ ? ", " : " ");
        put_operand(&t, in, p, &op[i], mem);
    }
    put_rounding(&t, in);
    return t.length;
}
