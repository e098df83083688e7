/* Which memory an instruction is about to touch, by Zydis and the registers before it.
 *
 * Masked operands have a file of their own (elements.c). Explicit and string operands are base + index*scale + disp (+
 * segment base). Pushes and calls write below the stack pointer; Zydis describes their hidden operand by its base only.
 * xsave and its kin touch as much as their feature mask asks for. */
#include "elements.h"

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct machine {
    pid_t pid;
    const struct user_regs_struct *regs;
} machine;

static uint64_t register_value(const struct user_regs_struct *r, ZydisRegister reg, uint64_t next)
{
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return next;
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    uint64_t v = 0;
    switch (whole) {
    case ZYDIS_REGISTER_RAX: v = r->rax; break;
    case ZYDIS_REGISTER_RCX: v = r->rcx; break;
    case ZYDIS_REGISTER_RDX: v = r->rdx; break;
    case ZYDIS_REGISTER_RBX: v = r->rbx; break;
    case ZYDIS_REGISTER_RSP: v = r->rsp; break;
    case ZYDIS_REGISTER_RBP: v = r->rbp; break;
    case ZYDIS_REGISTER_RSI: v = r->rsi; break;
    case ZYDIS_REGISTER_RDI: v = r->rdi; break;
    case ZYDIS_REGISTER_R8: v = r->r8; break;
    case ZYDIS_REGISTER_R9: v = r->r9; break;
    case ZYDIS_REGISTER_R10: v = r->r10; break;
    case ZYDIS_REGISTER_R11: v = r->r11; break;
    case ZYDIS_REGISTER_R12: v = r->r12; break;
    case ZYDIS_REGISTER_R13: v = r->r13; break;
    case ZYDIS_REGISTER_R14: v = r->r14; break;
    case ZYDIS_REGISTER_R15: v = r->r15; break;
    default: return 0;
    }
    return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32 ? (uint32_t)v : v;
}

static uint64_t segment_base(const struct user_regs_struct *r, ZydisRegister segment)
{
    if (segment == ZYDIS_REGISTER_FS) return r->fs_base;
    if (segment == ZYDIS_REGISTER_GS) return r->gs_base;
    return 0;
}

static uint64_t effective(const machine *m, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    uint64_t next = m->regs->rip + in->length;
    /* What an instruction pushes or pops is at the whole of rsp, whatever its address size. */
    if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
        (op->mem.base == ZYDIS_REGISTER_RSP || op->mem.base == ZYDIS_REGISTER_ESP))
        return m->regs->rsp + (op->mem.disp.has_displacement ? (uint64_t)op->mem.disp.value : 0);
    uint64_t a = register_value(m->regs, op->mem.base, next); /* a vector index counts as 0 here */
    a += register_value(m->regs, op->mem.index, next) * op->mem.scale;
    if (op->mem.disp.has_displacement) a += (uint64_t)op->mem.disp.value;
    if (in->mnemonic == ZYDIS_MNEMONIC_XLAT) a += m->regs->rax & 0xff; /* Zydis does not name al */
    if (in->address_width == 32) a = (uint32_t)a;
    return a + segment_base(m->regs, op->mem.segment);
}

/* What the kernel lets a process use that has not asked for more; all that is switched on where it does not know
 * the question. */
static uint64_t permitted(void)
{
    enum { GET_PERMITTED = 0x1022 };
    uint64_t mask = 0;
    return syscall(SYS_arch_prctl, GET_PERMITTED, &mask) ? UINT64_MAX : mask;
}

/* Bytes of the extended state that `mask` selects: legacy area and header, then components. */
static uint32_t xsave_size(uint64_t mask, bool compact)
{
    unsigned a, b, c, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    mask &= ((uint64_t)d << 32 | a) & permitted();
    uint32_t end = 576, next = 576;
    for (unsigned i = 2; i < 63; i++) {
        if (!(mask >> i & 1)) continue;
        __cpuid_count(0xd, i, a, b, c, d);
        if (c & 2) next = (next + 63) & ~63u;
        next += a;
        if (b + a > end) end = b + a;
    }
    return compact ? next : end;
}

static uint32_t operand_size(const machine *m, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    uint64_t mask = m->regs->rdx << 32 | (uint32_t)m->regs->rax;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64: return xsave_size(mask, false);
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64: return xsave_size(mask, true);
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64: {
        uint64_t compact = 0;
        struct iovec to = {&compact, 8};
        struct iovec from = {(void *)(effective(m, in, op) + 520), 8};
        process_vm_readv(m->pid, &to, 1, &from, 1, 0);
        return xsave_size(mask, compact >> 63);
    }
    default: return op->size / 8;
    }
}

static bool is_push(const ZydisDecodedInstruction *in)
{
    return in->meta.category == ZYDIS_CATEGORY_PUSH || in->meta.category == ZYDIS_CATEGORY_CALL;
}

/* One operand's accesses of one direction. */
static int operand_accesses(const machine *m, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
                            const ZydisDecodedOperand *op, bool write, step_access *out, int n)
{
    ZydisOperandActions want = write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !(op->actions & want)) return n;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return n;
    const ZydisDecodedOperand *mask = step_mask(in, ops, op);
    if (mask) {
        uint64_t base = segment_base(m->regs, op->mem.segment);
        step_place at = {effective(m, in, op) - base, base};
        return n + step_elements(m->pid, in, mask, op, &at, write, out + n);
    }
    uint64_t address = effective(m, in, op);
    uint32_t size = operand_size(m, in, op);
    bool hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    if (write && hidden && is_push(in) && op->mem.base == ZYDIS_REGISTER_RSP) address -= size;
    /* pop [rsp+x] uses the stack pointer after the pop. */
    if (write && !hidden && in->mnemonic == ZYDIS_MNEMONIC_POP && op->mem.base == ZYDIS_REGISTER_RSP)
        address += in->operand_width / 8;
    if (size == 0) return n;
    out[n] = (step_access){address, size, 1, write};
    return n + 1;
}

int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t code_size,
                  step_access out[STEP_MAX_ACCESSES], bool *is_rep)
{
    static ZydisDecoder decoder;
    static bool ready;
    if (!ready) {
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        ready = true;
    }
    *is_rep = false;
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, code_size, &in, ops))) return 0;
    if (in.meta.category == ZYDIS_CATEGORY_PREFETCH || in.meta.category == ZYDIS_CATEGORY_NOP ||
        in.meta.category == ZYDIS_CATEGORY_WIDENOP || in.mnemonic == ZYDIS_MNEMONIC_NOP)
        return 0;

    *is_rep = in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    uint64_t count = in.address_width == 32 ? (uint32_t)regs->rcx : regs->rcx;
    if (*is_rep && count == 0) return 0;

    machine m = {pid, regs};
    int n = 0;
    for (int write = 0; write < 2; write++) {
        for (unsigned i = 0; i < in.operand_count && n <= STEP_MAX_ACCESSES - 64; i++)
            n = operand_accesses(&m, &in, ops, &ops[i], write, out, n);
    }
    for (int i = 0; *is_rep && i < n; i++) out[i].count = (uint32_t)count;
    return n;
}
