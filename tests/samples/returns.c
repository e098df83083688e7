/* Returns that are more than the end of a procedure: ones that drop arguments, ones that are jumps, ones whose stack
 * cannot be written to; with an argument also what the words below the stack pointer hold behind them. x86-64. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096, STEPS = 5 };

uint64_t dropped(void), jumping(void), behind(void), threaded(const uint64_t *steps);
extern char step[], last_step[];

__asm__(".text\n"
        "drops_two: ret $16\n"
        "dropped: sub $136, %rsp\n push $0x1234\n push $0x5678\n call drops_two\n"
        "  mov -8(%rsp), %rax\n shl $32, %rax\n add -16(%rsp), %rax\n add $136, %rsp\n ret\n"
        "jumping: lea 3f(%rip), %rax\n call 1f\n2: pause\n jmp 2b\n"
        "1: mov %rax, (%rsp)\n ret\n"
        "3: lea 4f(%rip), %rax\n push %rax\n ret\n"
        "4: mov $7, %eax\n ret\n"
        "nothing: ret\n"
        "behind: call nothing\n"
        "1: mov -8(%rsp), %rax\n lea 1b(%rip), %rcx\n sub %rcx, %rax\n ret\n"
        /* the stack pointer goes through a table, three times */
        "threaded: mov %rsp, %rdx\n xor %eax, %eax\n mov $3, %ecx\n"
        "1: mov %rdi, %rsp\n ret\n"
        "step: inc %rax\n ret\n"
        "last_step: dec %ecx\n jnz 1b\n mov %rdx, %rsp\n ret\n");

int main(int argc, char **argv)
{
    uint64_t *steps = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)argv;
    if (steps == MAP_FAILED) return 1;
    steps += PAGE / sizeof *steps; /* a program that has handlers needs room below */
    for (int i = 0; i < STEPS; i++) steps[i] = (uint64_t)(uintptr_t)step;
    steps[STEPS] = (uint64_t)(uintptr_t)last_step;
    printf("dropped %#lx, jumping %lu\n", (unsigned long)dropped(), (unsigned long)jumping());
    mprotect(steps, PAGE, PROT_READ);
    printf("threaded %lu\n", (unsigned long)threaded(steps));
    if (argc == 1) return 0;
    mprotect(steps, PAGE, PROT_READ | PROT_WRITE);
    printf("behind %ld\n", (long)behind());
    printf("threaded %lu\n", (unsigned long)threaded(steps));
    printf("kept: %d\n", steps[0] == (uint64_t)(uintptr_t)step && steps[STEPS] == (uint64_t)(uintptr_t)last_step);
    return 0;
}
