/* A program goes where nothing can be executed, faults while its stack pointer is an address that no memory can have,
 * and returns from handlers to segments that there are not: what its handlers are told. And what their frames say of an
 * alternate stack that there never was, was taken away, or is there. */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, RESUME = 0x10000, NO_SEGMENT = 0, DATA_SEGMENT = 0x2b };

static sigjmp_buf back;
static uint8_t *page; /* code, and behind it nothing */
static volatile int selector = -1;
static volatile sig_atomic_t asked_for; /* an alternate stack */
static volatile sig_atomic_t returning; /* by a frame that names another segment: RF then differs between machines */
static uint8_t alternate[1 << 16];

/* Distances within the page, low addresses as they are, others as all ones. */
static unsigned long place(unsigned long at)
{
    unsigned long within = at - (unsigned long)page;
    return within <= PAGE ? within : at < PAGE ? at : ~0ul;
}

static void told(int signo, siginfo_t *info, void *context)
{
    const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    printf("  signal %d code %d address %lx at %lx stack %s flag RF %d trap %d error %lx\n", signo, info->si_code,
           place((unsigned long)info->si_addr), place((unsigned long)g[REG_RIP]),
           (uint64_t)g[REG_RSP] + PAGE > 2 * PAGE && (uint64_t)g[REG_RSP] >> 47 == 0 ? "there" : "wild",
           !returning && g[REG_EFL] & RESUME, (int)g[REG_TRAPNO], (unsigned long)g[REG_ERR]);
    returning = 0;
    siglongjmp(back, 1);
}

static void go(const char *what, unsigned long to)
{
    printf("%s\n", what);
    if (!sigsetjmp(back, 1)) ((void (*)(void))to)();
}

static void wild_stack(unsigned long sp, int how)
{
    printf("stack pointer %lx, %s\n", sp, how == 0 ? "ud2" : how == 1 ? "int3" : how == 2 ? "push" : "call");
    if (sigsetjmp(back, 1)) return;
    switch (how) {
    case 0: __asm__ volatile("mov %0, %%rsp\n ud2" : : "r"(sp) : "memory"); break;
    case 1: __asm__ volatile("mov %0, %%rsp\n int3" : : "r"(sp) : "memory"); break;
    case 2: __asm__ volatile("mov %0, %%rsp\n push %%rax" : : "r"(sp) : "memory"); break;
    default: __asm__ volatile("mov %0, %%rsp\n call 1f\n1: nop" : : "r"(sp) : "memory");
    }
}

static void frame(int signo, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)signo;
    (void)info;
    stack_t now;
    sigaltstack(NULL, &now);
    /* A program that never asked for one has the flags of whoever started it. */
    printf("  frame: flags %x size %zu; asked: flags %x size %zu\n", asked_for ? u->uc_stack.ss_flags : SS_DISABLE,
           u->uc_stack.ss_size, now.ss_flags, now.ss_size);
    if (selector < 0) return;
    uint16_t cs = (uint16_t)selector;
    selector = -1;
    returning = 1;
    memcpy(&u->uc_mcontext.gregs[REG_CSGSFS], &cs, sizeof cs);
}

static void handle(int signo, void (*f)(int, siginfo_t *, void *), int flags)
{
    struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&a.sa_mask);
    sigaction(signo, &a, NULL);
}

static void ask(const char *what, int wanted)
{
    printf("%s\n", what);
    selector = wanted;
    if (!sigsetjmp(back, 1)) raise(SIGUSR1);
}

int main(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
    setvbuf(stdout, NULL, _IOLBF, 0);
    page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || munmap(page + PAGE, PAGE)) return 1;
    memset(page, 0x90, PAGE);
    handle(SIGUSR1, frame, 0);
    ask("no alternate stack yet", -1);
    stack_t s = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&s, NULL);
    asked_for = 1;
    ask("an alternate stack", -1);
    s.ss_flags = SS_DISABLE;
    sigaltstack(&s, NULL);
    ask("none any more", -1);
    s.ss_flags = 0;
    sigaltstack(&s, NULL);

    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) handle(faults[i], told, SA_ONSTACK);
    ask("back to no segment", NO_SEGMENT);
    ask("back to a segment of data", DATA_SEGMENT);
    ask("back as it was", -1);
    go("a low address", 16);
    go("behind the page", (unsigned long)page + PAGE);
    go("up to the page's end", (unsigned long)page + PAGE - 3);
    page[PAGE - 2] = 0x0f; /* the first byte of two or more */
    page[PAGE - 1] = 0x84;
    go("an instruction that goes on behind the page", (unsigned long)page + PAGE - 2);
    mprotect(page, PAGE, PROT_READ);
    go("not executable", (unsigned long)page + 8);
    static const unsigned long wild[] = {8, 0x8000000000000000, 0x123456789abcdef0};
    for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++)
        for (int how = 0; how < 4; how++) wild_stack(wild[i], how);
    return 0;
}
