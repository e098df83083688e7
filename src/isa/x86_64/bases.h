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
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum x86_bases { X86_BASES_BY_INSTRUCTION, X86_BASES_BY_CALL, X86_BASES_NOT };

/* Which of the first two; chosen before anything is set. Assembly reads it, hence a variable of its own. */
extern bool x86_bases_by_call __attribute__((visibility("hidden")));
/* The tool's FS base is taken when something asks for the C library, not at each way out of the program's code:
 * run/border.S. */
extern bool x86_bases_late __attribute__((visibility("hidden")));
enum x86_bases x86_bases_choose(uint64_t hwcap2);

/* A child in the same memory tries to read one; it touches nothing, and would die of it as if it handled no signals. */
static inline bool x86_bases_readable(void)
{
    struct {
        void (*handler)(int);
        uint64_t flags, restorer, mask;
    } fresh = {0}, before;
    register long r10 __asm__("r10") = 0;
    long child, flags = CLONE_VM | CLONE_VFORK;
    int status = 1;
    sys_call4(SYS_rt_sigaction, SIGILL, (long)&fresh, (long)&before, sizeof fresh.mask);
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "rdfsbase %%rcx\n\t"
                     "mov %[exit], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(child), "+D"(flags), "+r"(r10)
                     : "0"((long)SYS_clone), "S"(0l), "d"(0l), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory", "cc");
    if (child > 0) sys_call4(SYS_wait4, child, (long)&status, __WALL, 0);
    sys_call4(SYS_rt_sigaction, SIGILL, (long)&before, 0, sizeof fresh.mask);
    return child > 0 && !status;
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
