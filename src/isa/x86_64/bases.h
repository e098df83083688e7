/* How FS and GS base are set.
 *
 * Kernels from Linux 5.9 on let programs do that by instructions, and say so (HWCAP2). Without that word the kernel may
 * put back, whenever it has run another thread, what it was told last: there both are set by arch_prctl alone. That
 * some virtual machines have the instructions all the same, since the processor is set so for those who run them,
 * serves for reading, which is right at any time. Where there are none at all nothing is instrumented.
 *
 * The calls are made from Inlay's own code, so filters of the program's do not see them. */
#ifndef INL_ISA_X86_64_BASES_H
#define INL_ISA_X86_64_BASES_H

#define X86_SET_GS        0x1001 /* of arch_prctl */
#define X86_SET_FS        0x1002
#define X86_NR_ARCH_PRCTL 158

#define X86_BASE_NOWHERE 0x1000 /* nothing can be mapped there */

#ifdef __ASSEMBLER__
/* clang-format off */

/* The base in rsi becomes that of FS or GS; rax, rcx, rdi, r11 and flags are lost. No stack is needed. */
.macro  SET_BASE instruction, option
        cmpb    $0, x86_bases_by_call(%rip)
        jne     7f
        \instruction %rsi
        jmp     8f
7:      mov     $\option, %edi
        mov     $X86_NR_ARCH_PRCTL, %eax
        syscall
8:
.endm
#define SET_FS_BASE SET_BASE wrfsbase, X86_SET_FS
#define SET_GS_BASE SET_BASE wrgsbase, X86_SET_GS

#else

#include "base/sys.h"

#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

enum x86_bases { X86_BASES_BY_INSTRUCTION, X86_BASES_BY_CALL, X86_BASES_NOT };

/* Which of the first two; chosen before anything is set. Assembly reads it, hence a variable of its own. */
extern bool x86_bases_by_call __attribute__((visibility("hidden")));
/* The tool's FS base is taken when something asks for the C library, not at each way out of the program's code:
 * run/border.S. */
extern bool x86_bases_late __attribute__((visibility("hidden")));
/* For tests: till it is taken, FS base leads nowhere, so that who has not said what he needs is found. */
extern bool x86_bases_nowhere __attribute__((visibility("hidden")));
enum x86_bases x86_bases_choose(uint64_t hwcap2);

/* A handler that goes on behind the instruction below, with the carry flag set. */
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) == 168, "what follows");
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs[REG_EFL]) == 176, "what follows");
static __attribute__((naked, unused)) void x86_bases_illegal(void)
{
    __asm__("addq $5, 168(%rdx)\n\t"
            "orq $1, 176(%rdx)\n\t"
            "ret");
}

_Static_assert(SYS_rt_sigreturn == 15, "what follows");
static __attribute__((naked, unused)) void x86_bases_back(void)
{
    __asm__("mov $15, %eax\n\t"
            "syscall");
}

/* Tried, while there is one thread. No child is made for it, which whoever counts processes would see. */
static inline bool x86_bases_readable(void)
{
    enum { RESTORER = 0x04000000 };
    struct {
        void (*handler)(void);
        uint64_t flags;
        void (*restorer)(void);
        uint64_t mask;
    } ours, before;
    ours.handler = x86_bases_illegal; /* by instructions: where this runs nothing is relocated */
    ours.restorer = x86_bases_back;
    ours.flags = SA_SIGINFO | RESTORER;
    ours.mask = 0;
    uint64_t illegal = 1ull << (SIGILL - 1), mask;
    bool readable;
    sys_call4(SYS_rt_sigaction, SIGILL, (long)&ours, (long)&before, sizeof mask);
    sys_call4(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&illegal, (long)&mask, sizeof mask);
    __asm__ volatile("clc\n\t"
                     "rdfsbase %%rcx\n\t"
                     "setnc %0"
                     : "=r"(readable)
                     :
                     : "rcx", "memory", "cc");
    sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask);
    sys_call4(SYS_rt_sigaction, SIGILL, (long)&before, 0, sizeof mask);
    return readable;
}

static inline enum x86_bases x86_bases_of(uint64_t hwcap2)
{
    const uint64_t said = 2; /* HWCAP2_FSGSBASE */
    unsigned a, b = 0, c, d;
    if (hwcap2 & said) return X86_BASES_BY_INSTRUCTION;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_FSGSBASE)) return X86_BASES_NOT;
    return x86_bases_readable() ? X86_BASES_BY_CALL : X86_BASES_NOT;
}

#endif
#endif
