/* Writing the items of a routine's body (weave/body.h). */
#include "isa/x86_64/rename.h"
#include "weave/body.h"
#include "weave/x86_64/machine.h"

/* Tried with all registers exchanged for others, so that it cannot fail later. */
bool weave_x86_can_rename(const isa_insn *in, isa_regs *fixed)
{
    uint8_t room[32], map[X86_REGS];
    uint16_t insists;
    x86_code c = {.write = room, .size = sizeof room};
    x86_addr zero = x86_abs(0);
    isa_mem m[ISA_MAX_MEM];
    if (!x86_fixed_registers(in, &insists)) return false;
    *fixed = insists;
    for (unsigned r = 0; r < X86_REGS; r++) map[r] = insists >> r & 1 ? (uint8_t)r : (uint8_t)(r ^ 8);
    map[X86_RSP] = X86_RSP;
    return x86_rename(&c, in, map, isa_x86_64.memory(in, m) ? &zero : NULL);
}

static bool fits32(uint64_t v) { return v == (uint64_t)(int64_t)(int32_t)v; }

bool weave_x86_takes_immediate(unsigned kind, unsigned op, unsigned width, uint64_t v)
{
    (void)kind, (void)op, (void)width;
    return fits32(v);
}

bool weave_x86_is_far(const weaver *w, uint64_t here, uint64_t address)
{
    return !fits32(address) && !weave_is_near(w, here, address);
}

static x86_addr address(const weaver *w, const weave_naming *n, const weave_address *m)
{
    if (m->base == ISA_NO_REG && m->index == ISA_NO_REG) {
        uint64_t at = (uint64_t)m->disp;
        if (weave_is_near(w, n->here, at)) return x86_rip(at);
        if (fits32(at)) return x86_abs((int32_t)at);
        return x86_at(n->map[BODY_FAR], (int32_t)(at - n->far));
    }
    x86_addr a = {ISA_NO_REG, ISA_NO_REG, m->scale, 0, false, m->disp};
    if (m->base != ISA_NO_REG) a.base = n->map[m->base];
    if (m->index != ISA_NO_REG) a.index = n->map[m->index];
    return a;
}

static void put_const(weaver *w, unsigned reg, uint64_t v)
{
    bool shorter = v >> 32 && !fits32(v) && weave_is_near(w, x86_here(w->c), v);
    if (shorter) x86_lea(w->c, reg, x86_rip(v));
    else x86_mov_ri(w->c, reg, v);
}

static x86_alu alu_of(unsigned op)
{
    switch (op) {
    case SNIPPET_ADD: return X86_ADD;
    case SNIPPET_SUB: return X86_SUB;
    case SNIPPET_AND: return X86_AND;
    case SNIPPET_OR: return X86_OR;
    default: return X86_XOR;
    }
}

static x86_shift shift_of(unsigned op) { return op == SNIPPET_SHL ? X86_SHL : op == SNIPPET_SHR ? X86_SHR : X86_SAR; }

/* Two operands share a register: dst is src wherever both are. */
bool weave_x86_put_item(weaver *w, const weave_naming *n, const item *it)
{
    x86_addr mem = it->has_mem ? address(w, n, &it->mem) : x86_abs(0);
    unsigned dst = n->map[it->dst], src = n->map[it->src];
    int64_t imm = (int64_t)it->imm;
    x86_code *c = w->c;
    switch (it->kind) {
    case ITEM_COPY: return x86_rename(c, &it->of->in, n->map, it->has_mem ? &mem : NULL) || c->full;
    case ITEM_CONST: put_const(w, dst, it->imm); return true;
    case ITEM_ALU_RI: return x86_alu_ri(c, alu_of(it->op), it->width, dst, imm);
    case ITEM_ALU_MI: return x86_alu_mi(c, alu_of(it->op), it->width, mem, imm);
    case ITEM_COMPARE_RI:
        if (it->op == SNIPPET_SUB) return x86_alu_ri(c, X86_CMP, it->width, src, imm);
        x86_test_ri(c, it->width, src, (int32_t)imm);
        return true;
    case ITEM_COMPARE_MI: return x86_alu_mi(c, X86_CMP, it->width, mem, imm);
    case ITEM_STORE: return x86_store_imm(c, it->width, mem, imm);
    case ITEM_SHIFT: x86_shift_ri(c, shift_of(it->op), it->width, dst, (unsigned)it->imm); return true;
    case ITEM_SX: x86_movsx_rr(c, 4, dst, src); return true;
    default: return true;
    }
}
