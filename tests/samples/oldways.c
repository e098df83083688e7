/* Instructions of older days in 64-bit code: int 0x80, iretq, far returns, jumps and calls. With an argument: those
 * that Inlay refuses. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long int80(long nr, long b, long c, long d)
{
    long answer;
    __asm__ volatile("int $0x80"
                     : "=a"(answer)
                     : "a"(nr), "b"(b), "c"(c), "d"(d), "S"(0), "D"(0)
                     : "memory", "r8", "r9", "r10", "r11", "cc");
    return answer;
}

/* A kernel without the 32-bit table ends the program here; its child tells. */
static int has_table(void)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) _exit((int)int80(20, 0, 0, 0) == getpid() ? 0 : 1);
    waitpid(child, &status, 0);
    return status == 0;
}

static void calls(void)
{
    int fds[2], good = 1;
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low != MAP_FAILED && has_table() && pipe(fds) == 0) {
        long at = (long)(uintptr_t)low;
        strcpy(low, "through the old gate");
        good = int80(4, fds[1], at, 20) == 20 && int80(3, fds[0], at + 100, 99) == 20 && !strcmp(low + 100, low) &&
               int80(6, fds[0], 0, 0) == 0 && int80(4, -1, at, 1) == -9 && int80(39, 1, 0, 0) == -14 &&
               int80(3, fds[1], at, 1) == -9;
    }
    printf("calls %d\n", good);
}

static uint64_t flags_after;

static void returns(void)
{
    uint64_t a = 0, b = 0;
    __asm__ volatile("mov %%rsp, %%rcx\n mov %%ss, %%eax\n push %%rax\n push %%rcx\n"
                     "pushfq\n orq $0x41, (%%rsp)\n mov %%cs, %%eax\n push %%rax\n"
                     "lea 1f(%%rip), %%rax\n push %%rax\n iretq\n ud2\n"
                     "1: pushfq\n pop %0\n mov $1, %1\n"
                     "mov %%cs, %%eax\n push %%rax\n lea 2f(%%rip), %%rax\n push %%rax\n lretq\n ud2\n"
                     "2: add $1, %1\n"
                     : "=&r"(flags_after), "=&r"(a)
                     :
                     : "rax", "rcx", "memory", "cc");
    __asm__ volatile("mov %%rsp, %%rcx\n mov %%cs, %%eax\n push %%rax\n lea 1f(%%rip), %%rax\n push %%rax\n"
                     "sub $24, %%rsp\n add $24, %%rsp\n .byte 0x48, 0xca, 16, 0\n ud2\n"
                     "1: mov %%rsp, %0\n mov %%rcx, %%rsp\n sub %%rcx, %0\n"
                     : "=&r"(b)
                     :
                     : "rax", "rcx", "memory", "cc");
    printf("returns %llu %llu flags %llx\n", (unsigned long long)a, (unsigned long long)b,
           (unsigned long long)flags_after & 0x41);
}

/* Through memory, with addresses of 32 bits: what goes there lies low. */
static void far_transfers(void)
{
    static const uint8_t code[] = {
        0x83, 0xc0, 0x05, 0x41, 0xff, 0xe0, /* add $5, %eax ; jmp *%r8 */
        0x83, 0xc0, 0x07, 0xcb,             /* add $7, %eax ; lret (two words of 32 bits) */
        0xff, 0x1a, 0x41, 0xff, 0xe0,       /* lcall *(%rdx) ; jmp *%r8 */
    };
    struct {
        uint32_t at;
        uint16_t selector;
    } jump, call;
    uint8_t *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    uint64_t a = 1, moved;
    memcpy(low, code, sizeof code);
    mprotect(low, 4096, PROT_READ | PROT_EXEC);
    __asm__("mov %%cs, %0" : "=r"(jump.selector));
    jump.at = (uint32_t)(uintptr_t)low;
    call = jump;
    call.at += 6;
    __asm__ volatile("mov %%rsp, %%rbx\n lea 1f(%%rip), %%r8\n ljmp *(%[jump])\n ud2\n"
                     "1: lea 2f(%%rip), %%r8\n jmp *%[calls]\n ud2\n"
                     "2: sub %%rsp, %%rbx\n mov %%rbx, %[moved]\n"
                     : "+a"(a), [moved] "=r"(moved)
                     : [jump] "r"(&jump), "d"(&call), [calls] "r"(low + 10)
                     : "rbx", "r8", "memory", "cc");
    printf("far %llu, stack %lld\n", (unsigned long long)a, (long long)moved);
}

/* A call whose structures differ; then out of 64-bit mode. */
static void refused(void)
{
    static const struct {
        uint32_t at;
        uint16_t selector;
    } far = {0, 0x23};
    if (has_table()) {
        printf("time %ld\n", int80(13, 0, 0, 0) == -38 ? -38l : 0l);
        int80(13, 0, 0, 0);
    }
    fflush(stdout);
    __asm__ volatile("ljmp *%0" : : "m"(far));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "table")) return !has_table();
    if (argc > 1) {
        refused();
    } else {
        calls();
        returns();
        far_transfers();
    }
    return 0;
}
