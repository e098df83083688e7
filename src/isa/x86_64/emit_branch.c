/* Branches of emit.h: direct ones by the shortest or a patchable displacement, indirect ones, and
 * short forward labels. A displacement counts from the end of the instruction, which for all of
 * them is the end of the displacement. */
#include "isa/x86_64/emit.h"

#include "isa/x86_64/encode.h"

/* A fix-up of 4 bytes: how many of the instruction lie behind them; and the distance counts modulo 4 GB. */
enum { BEHIND = 15, WRAPS = 128 };

/* From the end of an instruction of `length` bytes, emitted here, to the target. */
static int64_t distance(const x86_code *c, unsigned length, uint64_t target)
{
    return (int64_t)(target - (x86_here(c) + length));
}

static x86_form jcc32(unsigned cond) { return (x86_form){4, (uint8_t)(0x80 | (cond & 15)), X86_MAP_0F}; }

static const x86_form jmp32 = {4, 0xe9, 0};
static const x86_form jmp8 = {4, 0xeb, 0};
static const x86_form call32 = {4, 0xe8, 0};

static x86_form jcc8(unsigned cond) { return (x86_form){4, (uint8_t)(0x70 | (cond & 15)), 0}; }

static bool emit8(x86_code *c, x86_form f, uint64_t target)
{
    int64_t d = distance(c, 2, target);
    if (!x86_fits8(d) || !isa_moves_along(c, target)) return false;
    x86_encode_op(c, f, (x86_imm){1, (uint64_t)d});
    return true;
}

static unsigned length32(x86_form f) { return f.bits & X86_MAP_0F ? 6 : 5; }

static bool emit32(x86_code *c, x86_form f, uint64_t target)
{
    int64_t d = distance(c, length32(f), target);
    if (!x86_fits32(d)) return false;
    x86_encode_op(c, f, (x86_imm){4, (uint64_t)d});
    isa_fix_later(c, c->at - 4, 0, target);
    return true;
}

bool x86_jmp_to(x86_code *c, uint64_t target) { return emit8(c, jmp8, target) || emit32(c, jmp32, target); }

bool x86_jcc_to(x86_code *c, unsigned cond, uint64_t target)
{
    return emit8(c, jcc8(cond), target) || emit32(c, jcc32(cond), target);
}

bool x86_call_to(x86_code *c, uint64_t target) { return emit32(c, call32, target); }

/* Padding that keeps four bytes at `address` within one 8-byte line. */
static unsigned padding(uint64_t address)
{
    unsigned in_line = address & 7;
    return in_line > 4 ? 8 - in_line : 0;
}

static size_t patchable(x86_code *c, x86_form f, uint64_t target, bool aligned)
{
    unsigned before = length32(f) - 4;
    unsigned pad = aligned ? padding(x86_here(c) + before) : 0;
    size_t at = c->at + pad + before;
    if (c->full || pad + length32(f) > c->size - c->at) {
        c->full = true;
        return at;
    }
    if (!x86_fits32(distance(c, pad + length32(f), target))) {
        x86_refuse(c);
        return at;
    }
    x86_nop(c, pad);
    emit32(c, f, target);
    return at;
}

size_t x86_jmp_rel32(x86_code *c, uint64_t target, bool aligned) { return patchable(c, jmp32, target, aligned); }

size_t x86_jcc_rel32(x86_code *c, unsigned cond, uint64_t target, bool aligned)
{
    return patchable(c, jcc32(cond), target, aligned);
}

bool x86_patch_rel32(uint8_t *write_at, uint64_t exec_at, uint64_t target)
{
    typedef int32_t __attribute__((aligned(1), may_alias)) unaligned_i32;
    int64_t d = (int64_t)(target - (exec_at + 4));
    if (!x86_fits32(d)) return false;
    /* Code that the displacement leads to must be visible before the displacement is. The volatile
     * store is one mov; the atomic builtins would call a library for a pointer of this alignment. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *(volatile unaligned_i32 *)write_at = (int32_t)d;
    return true;
}

void x86_fix_relocated(x86_code *c, const isa_insn *in)
{
    bool wraps = false; /* modulo 4 GB everything is near */
    for (unsigned i = 0; i < in->opcode_at; i++) wraps |= in->raw[i] == 0x67;
    unsigned behind = in->len - in->disp_at - 4u;
    if (in->bits & ISA_BIT_PCREL_MEM) isa_fix_later(c, c->at - behind - 4, behind | (wraps ? WRAPS : 0), in->target);
}

bool x86_place(const isa_fixups *all, uint8_t *write, uint64_t exec, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const isa_fixup *f = &all->items[i];
        if (f->target - low < high - low) continue;
        int64_t d = (int64_t)(f->target - (exec + f->at + 4 + (f->kind & BEHIND)));
        if (!x86_fits32(d) && !(f->kind & WRAPS)) return false;
        for (unsigned k = 0; k < 4; k++) write[f->at + k] = (uint8_t)((uint64_t)d >> 8 * k);
    }
    return true;
}

void x86_jmp_r(x86_code *c, unsigned reg) { x86_encode_reg(c, (x86_form){4, 0xff, 0}, 4, reg, x86_no_imm); }

void x86_jmp_m(x86_code *c, x86_addr a) { x86_encode_mem(c, (x86_form){4, 0xff, 0}, 4, a, x86_no_imm); }

void x86_call_r(x86_code *c, unsigned reg) { x86_encode_reg(c, (x86_form){4, 0xff, 0}, 2, reg, x86_no_imm); }

void x86_call_m(x86_code *c, x86_addr a) { x86_encode_mem(c, (x86_form){4, 0xff, 0}, 2, a, x86_no_imm); }

/* Emits a displacement of zero; where there was no room the label is void (kind 0). */
static x86_label labelled(x86_code *c, x86_form f, unsigned width)
{
    if (width != 1 && width != 4) {
        x86_refuse(c);
        return (x86_label){c->at, 0};
    }
    x86_encode_op(c, f, (x86_imm){width, 0});
    if (c->full) return (x86_label){c->at, 0};
    return (x86_label){c->at - width, (uint8_t)width};
}

x86_label x86_jcc_label(x86_code *c, unsigned cond, unsigned width)
{
    return labelled(c, width == 1 ? jcc8(cond) : jcc32(cond), width);
}

x86_label x86_jmp_label(x86_code *c, unsigned width) { return labelled(c, width == 1 ? jmp8 : jmp32, width); }

x86_label x86_jrcxz_label(x86_code *c) { return labelled(c, (x86_form){4, 0xe3, 0}, 1); }

bool x86_bind(x86_code *c, x86_label l)
{
    if (!l.kind) return true; /* `full` or `unreachable` tells of it */
    int64_t d = (int64_t)(c->at - (l.at + l.kind));
    if (l.kind == 1 ? !x86_fits8(d) : !x86_fits32(d)) return false;
    for (unsigned i = 0; i < l.kind; i++) c->write[l.at + i] = (uint8_t)((uint64_t)d >> (8 * i));
    return true;
}
