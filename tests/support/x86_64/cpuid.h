/* cpuid, carried out for a program that is stepped through.
 *
 * Where a hypervisor does it in the processor's place, some forget the trap behind it: the step goes on over the next
 * instruction. So whoever steps asks the processor himself, on the one that the program runs on, and sets the
 * registers. */
#ifndef STEP_CPUID_H
#define STEP_CPUID_H

#include <cpuid.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

/* The instruction is cpuid, and has been executed. */
static inline bool step_cpuid(pid_t pid, const uint8_t *code, const struct user_regs_struct *before)
{
    struct user_regs_struct regs = *before;
    unsigned a = (unsigned)regs.rax, b, c = (unsigned)regs.rcx, d;
    if (code[0] != 0x0f || code[1] != 0xa2) return false;
    __cpuid_count(a, c, a, b, c, d);
    regs.rax = a;
    regs.rbx = b;
    regs.rcx = c;
    regs.rdx = d;
    regs.rip += 2;
    return ptrace(PTRACE_SETREGS, pid, NULL, &regs) == 0;
}

#endif
