/* Restartable sequences (rseq) by hand, as an allocator uses them, and whatever can happen in one: other threads on the
 * same processor, moves to another, signals, faults, membarrier, fork, a registration with another signature, a
 * descriptor that no instruction names, one that is wrong. Status 77 where the C library has not registered the thread.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 6, TIMES = 30000, PROCESSORS = 1024, NODES = 64, OTHER_SIGNATURE = 0x12345678 };

typedef struct node {
    struct node *next;
    long value;
} node;
static struct {
    _Alignas(64) volatile uint64_t count;
    node *volatile list;
    volatile long pair[2];
} own[PROCESSORS];
static _Atomic long aborts;
static _Atomic int stop, ended, disturbed = 1;

static struct rseq *area(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

/* Descriptor, arming, the check of the processor; then the body, which ends with the store; r8 is scratch. */
#define SECTION(name, body)                                                                                            \
    ".pushsection __rseq_cs, \"aw\"\n .balign 32\n"                                                                    \
    ".globl " name "_descriptor\n" name "_descriptor: .long 0, 0\n .quad " name "_start, " name "_end - " name         \
    "_start, " name "_abort\n .popsection\n"                                                                           \
    "lea " name "_descriptor(%%rip), %%r8\n"                                                                           \
    "mov %%r8, 8(%[area])\n" name "_start:\n"                                                                          \
    "cmp %[cpu], 4(%[area])\n jnz %l[moved]\n" body "\n" name "_end:\n"                                                \
    ".pushsection __rseq_abort, \"ax\"\n .byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n" name                             \
    "_abort: jmp %l[aborted]\n .popsection\n"

/* 1: done; 0: it was aborted, or the processor is another by now. */
__attribute__((noinline)) static int add(volatile uint64_t *to, uint32_t cpu)
{
    __asm__ goto(SECTION("add", "mov (%[to]), %%rax\n mov $2, %%ecx\n"
                                "1: .rept 8\n pause\n .endr\n dec %%ecx\n jnz 1b\n"
                                "inc %%rax\n mov %%rax, (%[to])")
                 :
                 : [area] "r"(area()), [cpu] "r"(cpu), [to] "r"(to)
                 : "rax", "rcx", "r8", "cc", "memory"
                 : aborted, moved);
    return 1;
aborted:
    aborts++;
moved:
    return 0;
}

__attribute__((noinline)) static int push(node *volatile *list, node *n, uint32_t cpu)
{
    __asm__ goto(SECTION("push", "mov (%[list]), %%rax\n mov %%rax, (%[n])\n pause\n mov %[n], (%[list])")
                 :
                 : [area] "r"(area()), [cpu] "r"(cpu), [list] "r"(list), [n] "r"(n)
                 : "rax", "r8", "cc", "memory"
                 : aborted, moved);
    return 1;
aborted:
    aborts++;
moved:
    return 0;
}

/* Reads what the first points to: the section is left in its middle where there is none. */
__attribute__((noinline)) static node *pop(node *volatile *list, uint32_t cpu, int *done)
{
    node *first = NULL;
    *done = 0;
    __asm__ goto(SECTION("pop", "mov (%[list]), %%rax\n test %%rax, %%rax\n jz %l[none]\n pause\n"
                                "mov (%%rax), %%rcx\n pause\n mov %%rax, (%[out])\n mov %%rcx, (%[list])")
                 :
                 : [area] "r"(area()), [cpu] "r"(cpu), [list] "r"(list), [out] "r"(&first)
                 : "rax", "rcx", "r8", "cc", "memory"
                 : aborted, moved, none);
    *done = 1;
    return first;
none:
    *done = 1;
    return NULL;
aborted:
    aborts++;
moved:
    return NULL;
}

/* Two reads that belong together, and no store. */
__attribute__((noinline)) static int read_pair(volatile long *pair, long *a, long *b, uint32_t cpu)
{
    long x, y;
    __asm__ goto(
        SECTION("both",
                "mov (%[pair]), %%rax\n pause\n mov 8(%[pair]), %%rcx\n") "mov %%rax, (%[a])\n mov %%rcx, (%[b])\n"
        :
        : [area] "r"(area()), [cpu] "r"(cpu), [pair] "r"(pair), [a] "r"(&x), [b] "r"(&y)
        : "rax", "rcx", "r8", "cc", "memory"
        : aborted, moved);
    *a = x, *b = y;
    return 1;
aborted:
    aborts++;
moved:
    return 0;
}

__attribute__((noinline)) static int write_pair(volatile long *pair, uint32_t cpu)
{
    __asm__ goto(SECTION("two", "mov (%[pair]), %%rax\n inc %%rax\n mov %%rax, 8(%[pair])\n mov %%rax, (%[pair])")
                 :
                 : [area] "r"(area()), [cpu] "r"(cpu), [pair] "r"(pair)
                 : "rax", "r8", "cc", "memory"
                 : aborted, moved);
    return 1;
aborted:
    aborts++;
moved:
    return 0;
}

static uint32_t processor(void) { return *(volatile uint32_t *)&area()->cpu_id_start; }

static void *works(void *torn)
{
    node *mine = NULL;
    for (int i = 0; i < TIMES; i++) {
        int done;
        uint32_t cpu;
        while (cpu = processor(), !add(&own[cpu].count, cpu)) {}
        do {
            cpu = processor();
            mine = pop(&own[cpu].list, cpu, &done);
        } while (!done);
        if (mine) {
            mine->value++;
            while (cpu = processor(), !push(&own[cpu].list, mine, cpu)) {}
        }
        long a, b;
        if (i % 16 == 0)
            while (cpu = processor(), !write_pair(own[cpu].pair, cpu)) {}
        while (cpu = processor(), !read_pair(own[cpu].pair, &a, &b, cpu)) {}
        if (b != a && b != a + 1) ++*(_Atomic long *)torn; /* aborted between the two stores: one more */
    }
    ended++;
    while (!stop) usleep(1000); /* a thread that has ended must not be sent to */
    return NULL;
}

/* --- what disturbs them --- */

static _Atomic long handled;
static _Atomic int inside;
extern const char add_start[], add_end[];

static void on_alarm(int signo, siginfo_t *info, void *uc)
{
    (void)signo, (void)info;
    const char *pc = (const char *)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
    if (pc >= add_start && pc < add_end) inside = 1;
    handled++;
}

static void *disturbs(void *threads)
{
    pthread_t *t = threads;
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    for (unsigned k = 0; disturbed; k++) {
        int cpu = (int)(k % PROCESSORS);
        if (!CPU_ISSET(cpu, &all)) cpu = sched_getcpu();
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(t[k % THREADS], sizeof one, k % 3 ? &all : &one);
        if (k % 4 == 0) pthread_kill(t[k % THREADS], SIGALRM);
        if (k % 8 == 0) syscall(SYS_membarrier, 128 /* PRIVATE_EXPEDITED_RSEQ */, 0, 0);
        if (k % 16 == 0) usleep(50);
    }
    return NULL;
}

static void crowd(void)
{
    static node nodes[NODES];
    static _Atomic long torn;
    pthread_t t[THREADS], d;
    struct sigaction a = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &a, NULL);
    syscall(SYS_membarrier, 256 /* REGISTER_PRIVATE_EXPEDITED_RSEQ */, 0, 0);
    for (int i = 0; i < NODES; i++) {
        uint32_t cpu;
        while (cpu = processor(), !push(&own[cpu].list, &nodes[i], cpu)) {}
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, works, &torn);
    pthread_create(&d, NULL, disturbs, t);
    while (ended < THREADS) usleep(1000);
    disturbed = 0;
    pthread_join(d, NULL);
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    long sum = 0, listed = 0;
    for (int i = 0; i < PROCESSORS; i++) {
        sum += (long)own[i].count;
        for (node *n = own[i].list; n && listed <= NODES; n = n->next) listed++;
    }
    printf("counted %ld of %ld, listed %ld of %d, torn %ld\n", sum, (long)THREADS * TIMES, listed, NODES, (long)torn);
    printf("handlers ran: %d, saw a section from inside: %d\n", handled > 0, inside);
}

/* --- faults --- */

static volatile uint64_t fault_at, fault_pc;
static void on_fault(int signo, siginfo_t *info, void *uc)
{
    (void)signo;
    fault_at = (uint64_t)(uintptr_t)info->si_addr;
    fault_pc = (uint64_t)((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
}
extern const char add_abort[];

static void faults(void)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    sigaction(SIGSEGV, &a, &before);
    long aborted = aborts;
    int done = 1;
    for (int k = 0; k < 100 && !fault_at; k++) done = add((volatile uint64_t *)16, processor());
    sigaction(SIGSEGV, &before, NULL);
    printf("fault at %llu, in the abort handler %d, done %d, aborted %d, pointer %#llx\n", (unsigned long long)fault_at,
           fault_pc == (uint64_t)(uintptr_t)add_abort, done, aborts > aborted, (unsigned long long)area()->rseq_cs);
}

/* --- a section without end: only an interruption ends it --- */

__attribute__((noinline)) static int waits(struct rseq *r, uint32_t cpu, long *seen)
{
    __asm__ goto(SECTION("waits", "movq $7, %%rax\n 1: mov (%[seen]), %%rcx\n add $1, %%rax\n jmp 1b\n")
                 :
                 : [area] "r"(r), [cpu] "r"(cpu), [seen] "r"(seen)
                 : "rax", "rcx", "r8", "cc", "memory"
                 : aborted, moved);
    return 2;
aborted:
    return 1;
moved:
    return 0;
}

static void endless(void)
{
    long seen = 0;
    int done;
    struct itimerval soon = {.it_value.tv_usec = 3000};
    long before = handled;
    setitimer(ITIMER_REAL, &soon, NULL);
    do done = waits(area(), processor(), &seen);
    while (done == 0 || handled == before);
    printf("endless: left by %d, pointer %#llx\n", done, (unsigned long long)area()->rseq_cs);
}

/* --- one long instruction, which a signal interrupts in its middle --- */

static _Alignas(4096) char filled[1 << 20];

__attribute__((noinline)) static int fills(uint32_t cpu, _Atomic long *now, long *before)
{
    char *to = filled;
    long size = sizeof filled, was;
    __asm__ goto(SECTION("fills", "mov (%[now]), %%rdx\n mov %[size], %%rcx\n mov %[to], %%rdi\n mov $1, %%al\n"
                                  "rep stosb") "mov %%rdx, (%[was])\n"
                 :
                 : [area] "r"(area()), [cpu] "r"(cpu), [now] "r"(now), [was] "r"(&was), [size] "r"(size), [to] "r"(to)
                 : "rax", "rcx", "rdx", "rdi", "r8", "cc", "memory"
                 : aborted, moved);
    *before = was;
    return 1;
aborted:
moved:
    return 0;
}

static void long_instruction(void)
{
    enum { TRIES = 400, FEW = 8 };
    struct itimerval soon = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    long before, wrong = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < TRIES; i++)
        if (fills(processor(), &handled, &before)) wrong += handled != before;
    setitimer(ITIMER_REAL, &never, NULL);
    printf("interrupted and not aborted: %s\n", wrong < FEW ? "never" : "often"); /* between its end and here */
}

/* --- registrations --- */

static long call_rseq(struct rseq *r, int flags, uint32_t signature)
{
    long answer = syscall(SYS_rseq, r, 32, flags, signature);
    return answer < 0 ? -errno : answer;
}

/* The code is made at run time and nothing in it names the descriptor: its address is read from memory. */
typedef int made_code(struct rseq *, volatile uint64_t *, void *descriptor, uint64_t times);
static const uint8_t made[] = {
    0x48, 0x89, 0x57, 0x08,                   /*       mov %rdx, 8(%rdi) */
    0x48, 0x8b, 0x06,                         /* start: mov (%rsi), %rax */
    0x48, 0xff, 0xc9, 0x75, 0xfb,             /* 1:    dec %rcx ; jnz 1b */
    0x48, 0xff, 0xc0,                         /*       inc %rax */
    0x48, 0x89, 0x06,                         /*       mov %rax, (%rsi) */
    0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3,       /* end:  mov $1, %eax ; ret */
    0x0f, 0xb9, 0x3d, 0x78, 0x56, 0x34, 0x12, /*       the signature */
    0x31, 0xc0, 0xc3,                         /* abort: xor %eax, %eax ; ret */
};
enum { MADE_START = 4, MADE_END = 18, MADE_ABORT = 31 };

static _Alignas(32) struct rseq other;

static void *registers(void *made_page)
{
    struct rseq_cs *d = aligned_alloc(32, 32);
    static volatile uint64_t total;
    uint64_t code = (uint64_t)(uintptr_t)made_page;
    long first = call_rseq(&other, 0, OTHER_SIGNATURE);
    long mine = call_rseq(area(), RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
    long second = call_rseq(&other, 0, OTHER_SIGNATURE);
    long again = call_rseq(&other, 0, OTHER_SIGNATURE), wrong = call_rseq(&other, 0, RSEQ_SIG);
    printf("rseq: other area %ld, unregister %ld, register %ld, again %ld, other signature %ld, processor known %d\n",
           first, mine, second, again, wrong, (int)other.cpu_id >= 0);
    *d = (struct rseq_cs){0, 0, code + MADE_START, MADE_END - MADE_START, code + MADE_ABORT};
    made_code *run = (made_code *)made_page;
    long n = 0;
    while (n < 300) n += run(&other, &total, d, 30000);
    printf("made: %ld, total %llu, unregister %ld, processor known %d\n", n, (unsigned long long)total,
           call_rseq(&other, RSEQ_FLAG_UNREGISTER, OTHER_SIGNATURE), (int)other.cpu_id >= 0);
    free(d);
    return NULL;
}

static void registrations(void)
{
    pthread_t t;
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, made, sizeof made);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    pthread_create(&t, NULL, registers, page);
    pthread_join(t, NULL);
}

/* --- children --- */

static void child(const char *what, void (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        body();
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("%s: status %#x\n", what, (unsigned)status);
}

static void counts(void)
{
    uint64_t n = 0;
    uint32_t cpu;
    for (int i = 0; i < 1000;) cpu = processor(), i += add(&n, cpu);
    printf("child counted %llu, processor known %d\n", (unsigned long long)n, (int)area()->cpu_id >= 0);
}

static void unregisters(void)
{
    long answer = call_rseq(area(), RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
    printf("unregister %ld, processor known %d\n", answer, (int)area()->cpu_id >= 0);
}

/* No signature stands in front of the handler: death, as soon as it is interrupted, wherever it is then. */
static void misdescribes(void)
{
    static _Alignas(32) struct rseq_cs wrong;
    extern const char add_descriptor[];
    struct itimerval soon = {.it_value.tv_usec = 1000, .it_interval.tv_usec = 1000};
    memcpy(&wrong, add_descriptor, sizeof wrong);
    wrong.abort_ip += 1;
    prctl(PR_SET_DUMPABLE, 0);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (time_t end = time(NULL) + 60; time(NULL) < end;)
        ((volatile struct rseq *)area())->rseq_cs = (uint64_t)(uintptr_t)&wrong;
}

int main(void)
{
    if (!__rseq_size) return 77;
    crowd();
    faults();
    endless();
    long_instruction();
    registrations();
    child("fork", counts);
    child("unregistered", unregisters);
    child("misdescribed", misdescribes);
    return 0;
}
