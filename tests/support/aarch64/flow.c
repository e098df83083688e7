/* What an instruction is to the stepper: which instructions end a block (docs/glossary.md). By the groups of the
 * manual's "Branches, Exception Generating and System instructions". */
#include "stepper.h"

#include <string.h>
#include <sys/syscall.h>

static bool word_of(const uint8_t *code, size_t size, uint32_t *w)
{
    if (size < sizeof *w) return false;
    memcpy(w, code, sizeof *w);
    return true;
}

step_kind step_flow(const uint8_t *code, size_t size, unsigned *length)
{
    uint32_t w;
    *length = 0;
    if (!word_of(code, size, &w)) return STEP_OTHER;
    *length = sizeof w;
    if ((w & 0x7c000000) == 0x14000000) return STEP_DIRECT;      /* b, bl */
    if ((w & 0xff000000) == 0x54000000) return STEP_CONDITIONAL; /* b.cond, bc.cond */
    if ((w & 0x7c000000) == 0x34000000) return STEP_CONDITIONAL; /* cbz, cbnz, tbz, tbnz */
    if ((w & 0xfe000000) == 0xd6000000) return STEP_INDIRECT;    /* br, blr, ret and those that authenticate */
    if ((w & 0xff000000) == 0xd4000000) return STEP_OTHER;       /* svc, brk, hlt ... */
    return w >> 16 == 0 ? STEP_OTHER : STEP_PLAIN;               /* udf */
}

const char *step_mnemonic(const uint8_t *code, size_t size)
{
    (void)code, (void)size;
    return NULL;
}

int step_accesses(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t size,
                  step_access out[STEP_MAX_ACCESSES], bool *is_rep)
{
    (void)pid, (void)regs, (void)code, (void)size, (void)out;
    *is_rep = false;
    return -1;
}

/* Once by ptrace_notify, and then for the step exception, which has been pending since before. */
const bool step_told_twice = true;

uint64_t step_pc(const struct user_regs_struct *regs) { return regs->pc; }

bool step_changes_mappings(const uint8_t *code, size_t size, const struct user_regs_struct *regs)
{
    uint32_t w;
    if (!word_of(code, size, &w) || w != 0xd4000001) return false; /* svc #0 */
    uint64_t nr = regs->regs[8];
    return nr == SYS_mmap || nr == SYS_munmap || nr == SYS_mprotect || nr == SYS_mremap;
}

bool step_instead(pid_t pid, const struct user_regs_struct *regs, const uint8_t *code, size_t size)
{
    (void)pid, (void)regs, (void)code, (void)size;
    return false;
}
