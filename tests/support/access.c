/* Which memory an instruction is about to touch, by Zydis and the registers before it.
 *
 * Explicit and string operands are base + index*scale + disp (+ segment base). Pushes and calls
 * write below the stack pointer; Zydis describes their hidden operand by its base only. A gather or
 * scatter touches one element for each mask element that is on. xsave and its kin touch as much as
 * their feature mask asks for. */
#include "stepper.h"

#include <Zydis/Zydis.h>
#include <cpuid.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <elf.h>

typedef struct machine {
    pid_t pid;
    const struct user_regs_struct *regs;
} machine;

/* Masks and indices of gathers are vector registers: the program's saved extended state. */
typedef struct xstate {
    uint8_t bytes[16384];
    size_t size;
} xstate;

static bool read_xstate(pid_t pid, xstate *x)
{
    struct iovec iov = {x->bytes, sizeof x->bytes};
    if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) != 0) return false;
    x->size = iov.iov_len;
    return true;
}

static unsigned component_offset(unsigned component)
{
    unsigned a, b, c, d;
    __cpuid_count(0xd, component, a, b, c, d);
    return b;
}

/* Copies vector register `n` (all 64 bytes, zero where the machine has fewer). */
static void vector_value(const xstate *x, unsigned n, uint8_t out[64])
{
    memset(out, 0, 64);
    if (n < 16) {
        memcpy(out, x->bytes + 160 + 16 * n, 16);
        unsigned ymm = component_offset(2), zmm = component_offset(6);
        if (ymm && ymm + 256 <= x->size) memcpy(out + 16, x->bytes + ymm + 16 * n, 16);
        if (zmm && zmm + 512 <= x->size) memcpy(out + 32, x->bytes + zmm + 32 * n, 32);
    } else {
        unsigned high = component_offset(7);
        if (high && high + 1024 <= x->size) memcpy(out, x->bytes + high + 64 * (n - 16), 64);
    }
}

static uint64_t opmask_value(const xstate *x, unsigned n)
{
    uint64_t k = 0;
    unsigned at = component_offset(5);
    if (at && at + 64 <= x->size) memcpy(&k, x->bytes + at + 8 * n, 8);
    return k;
}

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
    /* xlat adds al; every other narrow address register belongs to 32-bit addressing. */
    if (reg == ZYDIS_REGISTER_AL) return v & 0xff;
    return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32 ? (uint32_t)v : v;
}

static uint64_t segment_base(const struct user_regs_struct *r, ZydisRegister segment)
{
    if (segment == ZYDIS_REGISTER_FS) return r->fs_base;
    if (segment == ZYDIS_REGISTER_GS) return r->gs_base;
    return 0;
}

static uint64_t effective(const machine *m, const ZydisDecodedInstruction *in,
                          const ZydisDecodedOperand *op)
{
    uint64_t next = m->regs->rip + in->length;
    uint64_t a = register_value(m->regs, op->mem.base, next);
    a += register_value(m->regs, op->mem.index, next) * op->mem.scale;
    if (op->mem.disp.has_displacement) a += (uint64_t)op->mem.disp.value;
    if (in->address_width == 32) a = (uint32_t)a;
    return a + segment_base(m->regs, op->mem.segment);
}

/* Bytes of the extended state that `mask` selects: legacy area and header, then components. */
static uint32_t xsave_size(uint64_t mask, bool compact)
{
    unsigned a, b, c, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    mask &= (uint64_t)d << 32 | a;
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

static uint32_t operand_size(const machine *m, const ZydisDecodedInstruction *in,
                             const ZydisDecodedOperand *op)
{
    uint64_t mask = m->regs->rdx << 32 | (uint32_t)m->regs->rax;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
        return xsave_size(mask, false);
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
        return xsave_size(mask, true);
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64: {
        uint64_t compact = 0;
        struct iovec to = {&compact, 8};
        struct iovec from = {(void *)(effective(m, in, op) + 520), 8};
        process_vm_readv(m->pid, &to, 1, &from, 1, 0);
        return xsave_size(mask, compact >> 63);
    }
    default:
        return op->size / 8;
    }
}

static int gather(const machine *m, const ZydisDecodedInstruction *in,
                  const ZydisDecodedOperand *ops, const ZydisDecodedOperand *mem, step_access *out)
{
    static xstate x;
    if (!read_xstate(m->pid, &x)) return 0;
    unsigned element = ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? ops[2].element_size
                                                                : ops[0].element_size;
    bool evex = in->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
    bool scatter = mem->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    const char *name = ZydisMnemonicGetString(in->mnemonic);
    unsigned index_bytes = strstr(name, "therq") || strstr(name, "pgatherq") ||
                                   strstr(name, "terq")
                               ? 8
                               : 4;
    unsigned index_width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, mem->mem.index) / 8;
    const ZydisDecodedOperand *data = &ops[scatter ? 2 : 0];
    unsigned data_bytes = data->size / 8;
    element /= 8;
    unsigned n = index_width / index_bytes;
    if (data_bytes / element < n) n = data_bytes / element;

    uint8_t index[64], mask[64] = {0};
    vector_value(&x, (unsigned)ZydisRegisterGetId(mem->mem.index), index);
    uint64_t k = 0;
    if (evex)
        k = opmask_value(&x, (unsigned)ZydisRegisterGetId(ops[1].reg.value));
    else
        vector_value(&x, (unsigned)ZydisRegisterGetId(ops[2].reg.value), mask);
    uint64_t base = register_value(m->regs, mem->mem.base, 0) + segment_base(m->regs, mem->mem.segment);
    if (mem->mem.disp.has_displacement) base += (uint64_t)mem->mem.disp.value;

    int count = 0;
    for (unsigned i = 0; i < n; i++) {
        bool on = evex ? k >> i & 1 : mask[(i + 1) * element - 1] >> 7;
        if (!on) continue;
        int64_t at = 0;
        if (index_bytes == 8)
            memcpy(&at, index + 8 * i, 8);
        else
            at = (int32_t)(index[4 * i] | index[4 * i + 1] << 8 | index[4 * i + 2] << 16 |
                           (uint32_t)index[4 * i + 3] << 24);
        out[count++] = (step_access){base + (uint64_t)at * mem->mem.scale, element, scatter};
    }
    return count;
}

static bool is_push(const ZydisDecodedInstruction *in)
{
    return in->meta.category == ZYDIS_CATEGORY_PUSH || in->meta.category == ZYDIS_CATEGORY_CALL;
}

static int add(step_access *out, int n, uint64_t address, uint32_t size, bool write)
{
    out[n] = (step_access){address, size, write};
    return n + 1;
}

/* One operand's accesses of one direction. */
static int operand_accesses(const machine *m, const ZydisDecodedInstruction *in,
                            const ZydisDecodedOperand *ops, const ZydisDecodedOperand *op,
                            bool write, step_access *out, int n)
{
    ZydisOperandActions want =
        write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !(op->actions & want)) return n;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return n;
    if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        return n + gather(m, in, ops, op, out + n);
    }
    uint64_t address = effective(m, in, op);
    uint32_t size = operand_size(m, in, op);
    bool hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    if (write && hidden && is_push(in) && op->mem.base == ZYDIS_REGISTER_RSP) address -= size;
    /* pop [rsp+x] uses the stack pointer after the pop. */
    if (write && !hidden && in->mnemonic == ZYDIS_MNEMONIC_POP &&
        op->mem.base == ZYDIS_REGISTER_RSP)
        address += in->operand_width / 8;
    return size ? add(out, n, address, size, write) : n;
}

int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code,
                  size_t code_size, step_access out[STEP_MAX_ACCESSES], bool *is_rep)
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

    *is_rep = in.attributes &
              (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    uint64_t count = in.address_width == 32 ? (uint32_t)regs->rcx : regs->rcx;
    if (*is_rep && count == 0) return 0;

    machine m = {pid, regs};
    int n = 0;
    for (int write = 0; write < 2; write++) {
        for (unsigned i = 0; i < in.operand_count; i++)
            n = operand_accesses(&m, &in, ops, &ops[i], write, out, n);
    }
    return n;
}
