/* Instructions that trap or fault, with handlers that return or jump away, each by itself and stepped by the trap flag:
 * what the handler is told, the same natively and from elsewhere. They stand in a page of their own, since some would
 * not assemble. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>

enum { PAGE = 4096, MOST = 12, FLAGS = 0xdd5 };

typedef struct {
    int signo, code;
    long at, addr;
    unsigned long flags;
    int trapno, error;
} told;

static told seen[MOST];
static volatile int count, most;
static sigjmp_buf back;
static uint8_t *code;

typedef struct {
    const char *name;
    uint8_t bytes[16];
    size_t size;
} instruction;

#define ROW(name, ...)                                                                                                 \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})                                                    \
    }
static const instruction all[] = {
    ROW("int1", 0xf1),
    ROW("rep int1", 0xf3, 0xf1),
    ROW("int1 with 16 bits", 0x66, 0xf1),
    ROW("int3", 0xcc),
    ROW("rex int3", 0x48, 0xcc),
    ROW("int3 with 16 bits", 0x66, 0xcc),
    ROW("int $3", 0xcd, 3),
    ROW("int $0", 0xcd, 0),
    ROW("int $1", 0xcd, 1),
    ROW("int $4", 0xcd, 4),
    ROW("int $0x2d", 0xcd, 0x2d),
    ROW("int $0xff", 0xcd, 0xff),
    ROW("int $0x80", 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x31, 0xc0),
    ROW("into", 0xce),
    ROW("bound", 0x62, 0x00),
    ROW("push of es", 0x06),
    ROW("far jump", 0xea, 0, 0, 0, 0, 0, 0),
    ROW("ud0", 0x0f, 0xff, 0xc0),
    ROW("ud1", 0x0f, 0xb9, 0xc0),
    ROW("ud2", 0x0f, 0x0b),
    ROW("locked nop", 0xf0, 0x90),
    ROW("locked add to a register", 0xf0, 0x01, 0xc0),
    ROW("too many prefixes", 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
        0x90),
    ROW("iretq to no segment", 0x6a, 0, 0x6a, 0, 0x6a, 0, 0x6a, 0, 0x6a, 0, 0x48, 0xcf),
    ROW("far return to data", 0x6a, 0x2b, 0x6a, 0, 0x48, 0xcb),
    ROW("far return to the kernel", 0x6a, 0x10, 0x6a, 0, 0x48, 0xcb),
    ROW("far jump through no memory", 0x31, 0xc0, 0xff, 0x28),
    ROW("rsm", 0x0f, 0xaa),
    ROW("hlt", 0xf4),
    ROW("in", 0xec),
    ROW("in from a number", 0xe4, 0x10),
    ROW("out", 0xee),
    ROW("insb", 0x6c),
    ROW("cli", 0xfa),
    ROW("sti", 0xfb),
    ROW("sysexit", 0x0f, 0x35),
    ROW("sysret", 0x0f, 0x07),
    ROW("rdmsr", 0x0f, 0x32),
    ROW("mov from cr0", 0x0f, 0x20, 0xc0),
    ROW("lgdt", 0x0f, 0x01, 0x10),
    ROW("wbinvd", 0x0f, 0x09),
    ROW("clts", 0x0f, 0x06),
    ROW("swapgs", 0x0f, 0x01, 0xf8),
    ROW("div", 0xf7, 0xf2),
    ROW("no segment", 0xb8, 0xfb, 0xff, 0, 0, 0x8e, 0xc0),
    ROW("no address", 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x8b, 0x00),
    ROW("no page", 0x8b, 0x00),
    ROW("mov to ss", 0x8c, 0xd0, 0x8e, 0xd0),
    ROW("mov to ss and int3", 0x8c, 0xd0, 0x8e, 0xd0, 0xcc),
    ROW("syscall without a stack", 0x48, 0x89, 0xe6, 0x31, 0xe4, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x89, 0xf4),
};

static long distance(long addr)
{
    long from = addr - (long)code;
    return !addr ? 0 : from >= 0 && from < PAGE ? from : -1;
}

static void handler(int signo, siginfo_t *info, void *context)
{
    const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    seen[count] = (told){.signo = signo,
                         .code = info->si_code,
                         .at = distance(g[REG_RIP]),
                         .addr = distance((long)info->si_addr),
                         .flags = (unsigned long)g[REG_EFL] & FLAGS,
                         .trapno = (int)g[REG_TRAPNO],
                         .error = (int)g[REG_ERR]};
    if (++count == most || signo != SIGTRAP) siglongjmp(back, 1);
}

static void write_code(const instruction *in, int stepped)
{
    static const uint8_t set[] = {0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90}; /* pushf; orl; popf; nop */
    static const uint8_t clear[] = {0x90, 0x90, 0x9c, 0x81, 0x24, 0x24, 0xff, 0xfe, 0xff, 0xff, 0x9d, 0xc3};
    uint8_t *p = code;
    *p++ = 0x90;
    if (stepped) p = (uint8_t *)memcpy(p, set, sizeof set) + sizeof set;
    p = (uint8_t *)memcpy(p, in->bytes, in->size) + in->size;
    memcpy(p, clear, sizeof clear);
}

static void try(const instruction *in, int stepped, int times)
{
    const char *volatile how = "jumped away";
    write_code(in, stepped);
    count = 0;
    most = times;
    if (!sigsetjmp(back, 1)) {
        __asm__ volatile("xor %%eax, %%eax\n xor %%edx, %%edx\n call *%0\n"
                         :
                         : "r"(code), "b"(0l), "D"(0l), "S"(0l)
                         : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
        how = "went on";
    }
    __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" : : : "memory", "cc");
    printf("%s%s, at most %d: %s\n", in->name, stepped ? " stepped" : "", times, how);
    for (int i = 0; i < count; i++)
        printf("  signal %d code %d at %ld addr %ld flags %lx trap %d error %x\n", seen[i].signo, seen[i].code,
               seen[i].at, seen[i].addr, seen[i].flags, seen[i].trapno, seen[i].error);
}

int main(void)
{
    static const int signals[] = {SIGTRAP, SIGSEGV, SIGILL, SIGBUS, SIGFPE};
    static char stack[1 << 16];
    const stack_t alt = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction act = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alt, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) sigaction(signals[i], &act, NULL);
    code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        try(&all[i], 0, 1);
        try(&all[i], 0, 3);
        try(&all[i], 1, MOST);
    }
    return 0;
}
