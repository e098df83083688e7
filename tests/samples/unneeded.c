/* Values that the program does not need any more, which its handlers see all the same: registers and flags that are
 * overwritten before anybody reads them, in code with many ways from one piece to the next. Signals that come at any
 * instruction; and, once there is a handler, faults of code that has run before there was one. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

enum { PIECES = 60, SIGNALS = 300, PAGE = 4096, CARRY = 1, ZERO = 0x40 };

/* Where an instruction is, and what there is in front of it: the number c in rcx, 3 * d in rdx, and flags which tell
 * whether f is odd. */
typedef struct place {
    uint64_t pc, c, d, f;
} place;
extern const place places[], places_end[];

/* Each piece overwrites what the one before has left, and reads the word of its number. */
__asm__(".text\n"
        ".macro before c, d, f\n"
        "7: .pushsection .data.rel.local, \"aw\"\n .quad 7b, \\c, \\d, \\f\n .popsection\n"
        ".endm\n"
        ".pushsection .data.rel.local, \"aw\"\n .p2align 3\n .globl places\n places:\n .popsection\n"
        ".globl walk\n.type walk, @function\n"
        "walk:\n" /* (rounds, words) */
        "mov $0, %ecx\n mov $0, %edx\n xor %r9d, %r9d\n cmp $0, %r9d\n"
        ".set n, 0\n"
        ".rept 60\n"
        ".set p, n\n"
        ".set n, n + 1\n"
        "1:\n"
        "before p, p, p\n mov %r10, %r11\n"
        "before p, p, p\n mov 8 * n(%rsi), %r10\n"
        "before p, p, p\n lea (%r10, %r11), %r8\n"
        "before p, p, p\n mov $n, %ecx\n"
        "before n, p, p\n mov $(3 * n), %edx\n"
        "before n, n, p\n cmp $(n & 1), %r9d\n"
        "before n, n, n\n"
        ".if n % 5 == 0\n jmp 1f\n .elseif n & 1\n jc 1f\n .else\n je 1f\n .endif\n" /* always */
        "ud2\n"
        ".endr\n"
        "1: dec %rdi\n"
        "jnz walk\n"
        "ret\n"
        ".size walk, .-walk\n"
        ".pushsection .data.rel.local, \"aw\"\n .globl places_end\n places_end:\n .popsection\n");
extern void walk(uint64_t rounds, const uint64_t *words);

static volatile long inside, wrong;

static const place *find(uint64_t pc)
{
    const place *low = places, *high = places_end;
    while (high - low > 1) {
        const place *middle = low + (high - low) / 2;
        if (middle->pc <= pc) low = middle;
        else high = middle;
    }
    return low->pc == pc ? low : NULL;
}

static void check(const greg_t *g)
{
    const place *p = find((uint64_t)g[REG_RIP]);
    uint64_t flags = p && p->f & 1 ? CARRY : ZERO;
    if (!p) return;
    inside++;
    if ((uint64_t)g[REG_RCX] != p->c || (uint64_t)g[REG_RDX] != 3 * p->d) wrong |= 1;
    if ((g[REG_EFL] & (CARRY | ZERO)) != flags) wrong |= 2;
}

static void on_tick(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    check(((ucontext_t *)context)->uc_mcontext.gregs);
}

static uint64_t words[PIECES + 1];

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info;
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    check(g);
    g[REG_RSI] = (greg_t)(uintptr_t)words;
}

static void handle(int signo, void (*f)(int, siginfo_t *, void *))
{
    struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(signo, &a, NULL);
}

static void storm(const char *name)
{
    struct itimerval every = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
    inside = wrong = 0;
    handle(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &every, NULL);
    while (inside < SIGNALS) walk(1000, words);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("%s: wrong %ld\n", name, wrong);
}

/* The words end with each piece's in turn. */
static void faults(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE)) return;
    inside = wrong = 0;
    handle(SIGSEGV, on_fault);
    for (int piece = 1; piece <= PIECES; piece++) walk(1, (const uint64_t *)(void *)(pages + PAGE) - piece);
    printf("faults: %ld, wrong %ld\n", inside, wrong);
}

int main(void)
{
    storm("signals");
    faults();
    storm("signals, when faults are handled");
    return 0;
}
