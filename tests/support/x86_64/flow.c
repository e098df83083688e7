/* What an instruction is to the stepper: by Zydis, which instructions end a block (docs/glossary.md), and names. */
#include "stepper.h"
#include "x86_64/cpuid.h"

#include <Zydis/Zydis.h>
#include <sys/syscall.h>

static bool decode(const uint8_t *code, size_t size, ZydisDecodedInstruction *in, ZydisDecodedOperand *ops)
{
    static ZydisDecoder decoder;
    static bool ready;
    if (!ready) ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ready = true;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, in, ops));
}

step_kind step_flow(const uint8_t *code, size_t size, unsigned *length)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    *length = 0;
    if (!decode(code, size, &in, ops)) return STEP_OTHER;
    *length = in.length;
    switch (in.meta.category) {
    case ZYDIS_CATEGORY_COND_BR: return in.mnemonic == ZYDIS_MNEMONIC_XBEGIN ? STEP_OTHER : STEP_CONDITIONAL;
    case ZYDIS_CATEGORY_RET: return STEP_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_UNCOND_BR: return ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? STEP_DIRECT : STEP_INDIRECT;
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT: return STEP_OTHER;
    default: break;
    }
    bool traps = in.mnemonic == ZYDIS_MNEMONIC_UD2 || in.mnemonic == ZYDIS_MNEMONIC_HLT;
    return traps ? STEP_OTHER : STEP_PLAIN;
}

bool step_changes_mappings(const uint8_t *code, size_t size, const struct user_regs_struct *regs)
{
    if (size < 2 || code[0] != 0x0f || code[1] != 0x05) return false;
    return regs->rax == SYS_mmap || regs->rax == SYS_munmap || regs->rax == SYS_mprotect || regs->rax == SYS_mremap;
}

const bool step_told_twice = false;

uint64_t step_pc(const struct user_regs_struct *regs) { return regs->rip; }

/* Every instruction can be stepped by itself. */
step_way step_together(pid_t pid, uint64_t pc, step_run *run)
{
    (void)pid, (void)pc, (void)run;
    return STEP_ALONE;
}

bool step_instead(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t size)
{
    return size >= 2 && step_cpuid(pid, code, regs);
}

const char *step_mnemonic(const uint8_t *code, size_t size)
{
    ZydisDecodedInstruction in;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    return decode(code, size, &in, ops) ? ZydisMnemonicGetString(in.mnemonic) : "?";
}
