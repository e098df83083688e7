#include "emit_check.h"

#include <stdio.h>
#include <string.h>

static uint8_t window[64];

void emit_start(x86_code *c) { *c = (x86_code){.write = window, .exec = EMIT_EXEC, .size = sizeof window}; }

emit_operand is_reg(unsigned width, unsigned reg) { return (emit_operand){.kind = IS_REG, .width = width, .reg = reg}; }

emit_operand is_vec(unsigned width, unsigned reg) { return (emit_operand){.kind = IS_VEC, .width = width, .reg = reg}; }

emit_operand is_mem(unsigned width, x86_addr addr)
{
    return (emit_operand){.kind = IS_MEM, .width = width, .addr = addr};
}

emit_operand is_imm(unsigned width, uint64_t value)
{
    return (emit_operand){.kind = IS_IMM, .width = width, .value = value};
}

emit_operand is_target(uint64_t address) { return (emit_operand){.kind = IS_TARGET, .width = 8, .value = address}; }

/* Register numbers to Zydis' registers. */

static ZydisRegister general(unsigned width, unsigned reg)
{
    switch (width) {
    case 1: return (ZydisRegister)(ZYDIS_REGISTER_AL + reg + (reg >= 4 ? 4 : 0));
    case 2: return (ZydisRegister)(ZYDIS_REGISTER_AX + reg);
    case 4: return (ZydisRegister)(ZYDIS_REGISTER_EAX + reg);
    default: return (ZydisRegister)(ZYDIS_REGISTER_RAX + reg);
    }
}

static ZydisRegister vector(unsigned width, unsigned reg)
{
    ZydisRegister first = width == 16 ? ZYDIS_REGISTER_XMM0 : width == 32 ? ZYDIS_REGISTER_YMM0 : ZYDIS_REGISTER_ZMM0;
    return (ZydisRegister)(first + reg);
}

/* Addresses, by what they come to. `r` holds what the registers contain; one more entry is zero. */

static void fill_registers(uint64_t *r, uint64_t seed)
{
    for (unsigned i = 0; i < X86_REGS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        r[i] = seed ^ seed >> 29;
    }
}

static uint64_t register_value(const uint64_t *r, ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_NONE ? 0 : r[reg - ZYDIS_REGISTER_RAX];
}

static uint64_t expected_address(const x86_addr *a, const uint64_t *r)
{
    uint64_t at = (uint64_t)a->disp;
    if (a->base != ISA_NO_REG) at += r[a->base];
    if (a->index != ISA_NO_REG) at += r[a->index] * a->scale;
    return at;
}

static uint64_t decoded_address(const emit_decoded *d, const ZydisDecodedOperandMem *m, const uint64_t *r,
                                uint64_t exec)
{
    uint64_t at = m->disp.has_displacement ? (uint64_t)m->disp.value : 0;
    if (m->base == ZYDIS_REGISTER_RIP) return at + exec + d->insn.length;
    return at + register_value(r, m->base) + register_value(r, m->index) * m->scale;
}

static unsigned segment_of(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_FS ? X86_SEG_FS : reg == ZYDIS_REGISTER_GS ? X86_SEG_GS : 0;
}

static bool memory_is(const emit_decoded *d, const ZydisDecodedOperand *o, const emit_operand *e, uint64_t exec)
{
    if (e->width && o->size != e->width * 8) return false;
    if (!e->width && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN && o->size == 0) return false;
    if (o->mem.type != ZYDIS_MEMOP_TYPE_AGEN && segment_of(o->mem.segment) != e->addr.segment) return false;
    if (e->addr.rip != (o->mem.base == ZYDIS_REGISTER_RIP)) return false;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t r[X86_REGS];
        fill_registers(r, seed);
        if (expected_address(&e->addr, r) != decoded_address(d, &o->mem, r, exec)) return false;
    }
    return true;
}

static bool immediate_is(const emit_decoded *d, const ZydisDecodedOperand *o, const emit_operand *e, uint64_t exec)
{
    if (o->type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
    if (e->kind == IS_TARGET) return o->imm.is_relative && exec + d->insn.length + o->imm.value.u == e->value;
    uint64_t mask = e->width >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * e->width) - 1;
    return !o->imm.is_relative && ((o->imm.value.u ^ e->value) & mask) == 0;
}

bool emit_operand_is(const emit_decoded *d, unsigned index, const emit_operand *e, uint64_t exec)
{
    const ZydisDecodedOperand *o = &d->operands[index];
    switch (e->kind) {
    case IS_REG: return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value == general(e->width, e->reg);
    case IS_VEC: return o->type == ZYDIS_OPERAND_TYPE_REGISTER && o->reg.value == vector(e->width, e->reg);
    case IS_MEM: return o->type == ZYDIS_OPERAND_TYPE_MEMORY && memory_is(d, o, e, exec);
    default: return immediate_is(d, o, e, exec);
    }
}

static ZydisDecoder *decoder(void)
{
    static ZydisDecoder d;
    static bool ready;
    if (!ready) ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ready = true;
    return &d;
}

static void tell(const x86_code *c, size_t from, const char *why, const char *file, int line)
{
    char hex[3 * 64 + 1] = "";
    for (size_t i = from; i < c->at && i < from + 64; i++) snprintf(hex + 3 * (i - from), 4, "%02x ", c->write[i]);
    char text[128] = "?";
    emit_decoded d;
    ZydisFormatter f;
    ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL);
    if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder(), c->write + from, c->at - from, &d.insn, d.operands)))
        ZydisFormatterFormatInstruction(&f, &d.insn, d.operands, d.insn.operand_count_visible, text, sizeof text,
                                        c->exec + from, NULL);
    print_error("%s:%d: %s: %s= %s\n", file, line, why, hex, text);
    fail();
}

emit_decoded emit_decode(const x86_code *c, size_t from)
{
    emit_decoded d;
    if (c->full || c->unreachable) tell(c, from, "left out", __FILE__, __LINE__);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder(), c->write + from, c->at - from, &d.insn, d.operands)))
        tell(c, from, "does not decode", __FILE__, __LINE__);
    if (d.insn.length != c->at - from) tell(c, from, "wrong length", __FILE__, __LINE__);
    return d;
}

void emit_check(const x86_code *c, size_t from, ZydisMnemonic mnemonic, unsigned count, const emit_operand *expected,
                const char *file, int line)
{
    emit_decoded d = emit_decode(c, from);
    if (d.insn.mnemonic != mnemonic) tell(c, from, "wrong mnemonic", file, line);
    if (d.insn.operand_count_visible != count) tell(c, from, "wrong operand count", file, line);
    for (unsigned i = 0; i < count; i++)
        if (!emit_operand_is(&d, i, &expected[i], c->exec + from)) tell(c, from, "wrong operand", file, line);
}

void emit_check_short(const x86_code *c, const char *file, int line)
{
    emit_decoded d = emit_decode(c, 0);
    ZydisEncoderRequest request;
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZyanUSize length = sizeof bytes;
    if (!ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(&d.insn, d.operands, d.insn.operand_count_visible,
                                                                     &request)) ||
        !ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, bytes, &length)))
        tell(c, 0, "not encodable by Zydis", file, line);
    if (length < c->at) tell(c, 0, "longer than need be", file, line);
}

void emit_check_refused(const x86_code *c, const char *file, int line)
{
    if (c->at || !c->unreachable || c->full) tell(c, 0, "not refused", file, line);
}

/* A spread of forms: each special base and index, each displacement size, segments, RIP. */

static const int32_t displacements[] = {0, 1, 127, 128, -1, -128, -129, 0x12345678, INT32_MIN, INT32_MAX};
static const uint8_t bases[] = {ISA_NO_REG, X86_RAX, X86_RSP, X86_RBP, X86_RDI, X86_R8, X86_R12, X86_R13, X86_R15};
static const uint8_t indexes[] = {ISA_NO_REG, X86_RCX, X86_RBP, X86_R9, X86_R12, X86_R13};
static const uint64_t targets[] = {EMIT_EXEC, EMIT_EXEC + 5, 0x1000, EMIT_EXEC + 0x7fffff00u};

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum {
    FORMS = COUNT(displacements) * COUNT(bases) * COUNT(indexes) + COUNT(targets),
};

const x86_addr *emit_addresses(unsigned *count)
{
    static x86_addr all[FORMS];
    unsigned n = 0;
    for (unsigned b = 0; b < COUNT(bases); b++)
        for (unsigned i = 0; i < COUNT(indexes); i++)
            for (unsigned d = 0; d < COUNT(displacements); d++, n++) {
                all[n] = x86_indexed(bases[b], indexes[i], 1u << (n & 3), displacements[d]);
                all[n].segment = n % 5 == 3 ? X86_SEG_GS : n % 11 == 7 ? X86_SEG_FS : 0;
            }
    for (unsigned t = 0; t < COUNT(targets); t++) all[n++] = x86_rip(targets[t]);
    *count = n;
    return all;
}
