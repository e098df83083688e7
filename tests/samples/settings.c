/* What a program can set that is no register: flags that are not arithmetic, the floating-point environment, the
 * time-stamp counter's switch. Set, they stay set over system calls, code that runs for the first time and
 * signals; handlers see what they see natively. While alignment is checked only assembly runs, and handlers
 * that touch nothing unaligned. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

enum { DF = 0x400, NT = 0x4000, AC = 0x40000, ARITHMETIC = 0x8d5, SHOWN = DF | NT | AC };

static volatile uint64_t in_handler, in_frame;
static volatile long faults, code_of_fault;

static uint64_t flags(void)
{
    uint64_t f;
    __asm__ volatile("pushfq; pop %0" : "=r"(f));
    return f;
}

static void handler(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    (void)info;
    in_handler = flags() & SHOWN;
    in_frame = (uint64_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL] & SHOWN;
}

/* The access is repeated without the check. */
static void unaligned(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    faults++;
    code_of_fault = info->si_code;
    ((ucontext_t *)uc)->uc_mcontext.gregs[REG_EFL] &= ~AC;
}

/* The rdtsc is skipped. */
static void no_time(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    faults++;
    code_of_fault = info->si_code;
    ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* A call that needs no care and one that does, code of its own for each N, a signal to this process. */
#define WORK(N)                                                                                                        \
    "mov $39, %%eax; syscall; mov %%eax, %%edi\n"                                                                      \
    "mov $10, %%esi; mov $62, %%eax; syscall\n" /* SIGUSR1 */                                                          \
    "xor %%edi, %%edi; xor %%esi, %%esi; xor %%edx, %%edx; mov $8, %%r10d; mov $14, %%eax; syscall\n"                  \
    "mov $" #N " + 10, %%ecx; 1: lea 2f(%%rip), %%rax; jmp *%%rax; nop; 2: dec %%ecx; jnz 1b\n"
#define CLOBBERS "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r10", "r11", "r12", "cc", "memory"

#define UNDER(NAME, N)                                                                                                 \
    __attribute__((noinline)) static uint64_t NAME(uint64_t set)                                                       \
    {                                                                                                                  \
        uint64_t after;                                                                                                \
        __asm__ volatile(                                                                                              \
            "pushfq; mov (%%rsp), %%r12; or %1, (%%rsp); popfq\n" WORK(N) "pushfq; pop %0; push %%r12; popfq"          \
            : "=&r"(after)                                                                                             \
            : "r"(set)                                                                                                 \
            : CLOBBERS);                                                                                               \
        return after & SHOWN;                                                                                          \
    }
UNDER(under_alignment, 1)
UNDER(under_direction, 2)
UNDER(under_nesting, 3)
UNDER(under_all, 4)

static void show(const char *what, uint64_t after)
{
    printf("%s: %#lx, handler %#lx, frame %#lx\n", what, (long)after, (long)in_handler, (long)in_frame);
}

static void flags_are_kept(void)
{
    show("alignment", under_alignment(AC));
    show("direction", under_direction(DF));
    show("nesting", under_nesting(NT));
    show("all", under_all(AC | DF | NT));
}

static void unaligned_access_faults(void)
{
    static const uint64_t words[2] __attribute__((aligned(16))) = {0x1122334455667788, 0x99};
    uint64_t value;
    __asm__ volatile("pushfq; mov (%%rsp), %%r12; orq $0x40000, (%%rsp); popfq; mov 3(%1), %0\n"
                     "push %%r12; popfq"
                     : "=&r"(value)
                     : "r"(words)
                     : "r12", "cc", "memory");
    printf("unaligned: %lx, %ld faults, code %ld\n", (long)value, faults, code_of_fault);
}

static void floating_point_is_kept(void)
{
    static uint32_t mxcsr = 0xffc0, mxcsr_after, normal = 0x1f80; /* not on the stack, which is moved */
    static uint16_t control = 0x77f, control_after;
    static double left;
    __asm__ volatile("sub $128, %%rsp; ldmxcsr %3; fldcw %4; fldpi\n" WORK(
                         5) "stmxcsr %0; fnstcw %1; fstpl %2; ldmxcsr %5; fninit; add $128, %%rsp"
                     : "=m"(mxcsr_after), "=m"(control_after), "=m"(left)
                     : "m"(mxcsr), "m"(control), "m"(normal)
                     : CLOBBERS);
    printf("floating point: %#x %#x %.17g\n", mxcsr_after, control_after, left);
}

static void time_stamps_fault(void)
{
    faults = 0;
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    __asm__ volatile(
        "sub $128, %%rsp\n" WORK(6) "rdtsc\n"
                                    "mov $1000, %%ecx; 3: call 4f; dec %%ecx; jnz 3b; jmp 5f; 4: nop; ret; 5:\n"
                                    "add $128, %%rsp" ::
                                        : CLOBBERS);
    int now = 0;
    prctl(PR_GET_TSC, &now, 0, 0, 0);
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    long while_off = faults, code = code_of_fault;
    __asm__ volatile("rdtsc" ::: "rax", "rdx");
    printf("time stamps: %ld faults, code %ld, switch %d; then %ld\n", while_off, code, now, faults);
}

/* Not blocked meanwhile: a tool's code may fault in the handler as well. */
static void catch (int signo, void (*with)(int, siginfo_t *, void *))
{
    struct sigaction sa = {.sa_sigaction = with, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(signo, &sa, NULL);
}

int main(void)
{
    catch (SIGUSR1, handler);
    catch (SIGBUS, unaligned);
    catch (SIGSEGV, no_time);
    flags_are_kept();
    unaligned_access_faults();
    floating_point_is_kept();
    time_stamps_fault();
    return 0;
}
