/* Ways in which procedures are entered and left, each with what a single-stepper can see of it: `ways MODE`. Each thread
 * does the same in every run. Stacks beside the threads' own are called `stack_...`: sequence.py tells the follower. */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define ALONE extern "C" __attribute__((noinline, noclone, used))
enum { ROOM = 1 << 16 };

volatile int sink;

ALONE void leaf() { sink = sink + 1; }
ALONE void other() { sink = sink + 2; }
ALONE void inner() { leaf(); sink = sink + 1; }

/* --- jumps to other procedures --- */
static void (*volatile to)() = other;
ALONE void tails(int n) { sink = sink + 1; if (n > 3) return leaf(); if (n > 2) return inner(); return to(); }
ALONE void even(int n);
ALONE void odd(int n) { sink = sink + n; if (n) return even(n - 1); leaf(); sink = sink + 1; }
ALONE void even(int n) { sink = sink - n; if (n) return odd(n - 1); other(); sink = sink + 1; }
ALONE size_t into_library(const char *s) { sink = sink + 1; return strlen(s + sink % 2); }
asm(R"(
    .text
    .type falls, @function
    .globl falls
falls:
    .cfi_startproc
    addl $1, sink(%rip)
    .cfi_endproc
    .size falls, . - falls
    .type below, @function
    .globl below
below:
    .cfi_startproc
    addl $1, sink(%rip)
    ret
    .cfi_endproc
    .size below, . - below
    .p2align 4
    .type maybe, @function
    .globl maybe
maybe:
    .cfi_startproc
    testl %edi, %edi
    je leaf
    jmp below
    .cfi_endproc
    .size maybe, . - maybe
    .p2align 4
    .type again, @function
    .globl again
again:
    .cfi_startproc
    subl $1, %edi
    jns again
    ret
    .cfi_endproc
    .size again, . - again
    .p2align 4
    .type pushed, @function
    .globl pushed
pushed:
    .cfi_startproc
    leaq leaf(%rip), %rax
    pushq %rax
    .cfi_adjust_cfa_offset 8
    ret
    .cfi_endproc
    .size pushed, . - pushed
    .p2align 4
    .type drops, @function
    .globl drops
drops:
    .cfi_startproc
    subq $24, %rsp
    .cfi_adjust_cfa_offset 24
    call leaf
    leaq 24(%rsp), %rsp
    .cfi_adjust_cfa_offset -24
    jmp *%rbx
    .cfi_endproc
    .size drops, . - drops
    .p2align 4
    .type uses_drops, @function
    .globl uses_drops
uses_drops:
    .cfi_startproc
    pushq %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    leaq other(%rip), %rbx
    call drops
    popq %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size uses_drops, . - uses_drops
)");
extern "C" void falls(), below(), maybe(int), again(int), pushed(), uses_drops();
static void jumps()
{
    for (int n = 0; n < 6; n++) tails(n);
    even(5);
    odd(6);
    sink = sink + (int)into_library("text");
    falls();
    below();
    maybe(0);
    maybe(1);
    again(3);
    again(0);
    pushed();
    uses_drops();
}

/* --- recursion --- */
ALONE int deep(int n)
{
    char *room = (char *)alloca((size_t)(n % 7) * 100 + 16);
    room[0] = (char)n;
    int below = n ? deep(n - 1) : 0;
    sink = sink + below + room[0];
    return below + 1;
}
ALONE int ackermann(int m, int n) { return !m ? n + 1 : !n ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
static void recursion() { sink = deep(300) + ackermann(2, 2); }

/* --- exceptions --- */
struct closes {
    __attribute__((noinline)) ~closes() { leaf(); sink = sink + 1; }
};
ALONE void thrower(int n)
{
    closes c;
    if (n == 0) throw n;
    thrower(n - 1);
    sink = sink + n;
}
ALONE void catcher() { try { thrower(9); } catch (int) { inner(); } sink = sink + 1; }
ALONE void middle(int n) { try { thrower(n); } catch (int) { other(); throw std::runtime_error("again"); } }
ALONE void rethrows() { try { middle(3); } catch (const std::exception &) { leaf(); try { throw; } catch (...) { other(); } } }
struct tries {
    ~tries() { try { thrower(2); } catch (int) { other(); } }
};
ALONE void nested() { tries t; thrower(1); }
ALONE int compares(const void *a, const void *b)
{
    if (*(const int *)a == 3 || *(const int *)b == 3) throw 1L;
    return *(const int *)a - *(const int *)b;
}
ALONE void through_library() { int list[] = {5, 3, 9, 1}; qsort(list, 4, sizeof *list, compares); }
static void exceptions()
{
    for (int i = 0; i < 2; i++) catcher();
    rethrows();
    try { nested(); } catch (int) { leaf(); }
    try { through_library(); } catch (long) { leaf(); }
    inner();
}

/* --- longjmp --- */
static jmp_buf place, outer_place;
ALONE void jumper(int n) { if (n == 0) longjmp(place, 1); jumper(n - 1); sink = sink + n; }
ALONE void farther(int n) { if (n == 0) longjmp(outer_place, 1); farther(n - 1); sink = sink + n; }
ALONE void lands() { if (setjmp(place) == 0) jumper(4); else leaf(); sink = sink + 1; }
ALONE void lands_twice() { volatile int times = 0; setjmp(place); leaf(); if (times++ < 2) jumper(times); farther(3); }
static void jumping()
{
    lands();
    if (setjmp(outer_place) == 0) lands_twice();
    inner();
}

/* --- signals --- */
static char stack_signals[ROOM];
static sigjmp_buf back;
ALONE void handler(int) { leaf(); sink = sink + 1; }
ALONE void raises_another(int) { leaf(); raise(SIGUSR2); other(); sink = sink + 1; }
ALONE void escapes(int) { inner(); siglongjmp(back, 1); }
ALONE void steps_over(int, siginfo_t *, void *c) { leaf(); ((ucontext_t *)c)->uc_mcontext.gregs[REG_RAX] = (greg_t)&sink; }
ALONE void tails_off(int) { sink = sink + 1; return leaf(); }
static void handles(int signal, void (*with)(int), int flags)
{
    struct sigaction a = {};
    a.sa_handler = with;
    a.sa_flags = flags;
    sigaction(signal, &a, nullptr);
}
ALONE void raiser(int signal) { raise(signal); inner(); sink = sink + 1; }
ALONE void escaped(int signal) { if (sigsetjmp(back, 1) == 0) raiser(signal); else other(); sink = sink + 1; }
ALONE void faults() { void *p = nullptr; asm volatile("movl $1, (%%rax)" : "+a"(p) : : "memory"); leaf(); sink = sink + 1; }
static void signals_with(int flags)
{
    handles(SIGUSR1, handler, flags);
    raiser(SIGUSR1);
    handles(SIGUSR1, raises_another, flags);
    handles(SIGUSR2, handler, flags);
    raiser(SIGUSR1);
    handles(SIGUSR1, tails_off, flags);
    raiser(SIGUSR1);
    handles(SIGUSR1, escapes, flags);
    escaped(SIGUSR1);
    escaped(SIGUSR1);
    struct sigaction a = {};
    a.sa_sigaction = steps_over;
    a.sa_flags = flags | SA_SIGINFO;
    sigaction(SIGSEGV, &a, nullptr);
    faults();
    inner();
}
static void signals() { signals_with(0); }
static void on_stack()
{
    stack_t s = {};
    s.ss_sp = stack_signals;
    s.ss_size = ROOM;
    sigaltstack(&s, nullptr);
    signals_with(SA_ONSTACK);
}

/* --- threads: they end by return, pthread_exit in deep frames, cancellation with handlers --- */
static pthread_barrier_t waits;
static pthread_key_t key;
ALONE void key_ends(void *) { leaf(); sink = sink + 1; }
ALONE void cleans(void *) { other(); }
ALONE void exits(int n) { closes c; if (n == 0) pthread_exit(nullptr); exits(n - 1); sink = sink + n; }
ALONE void *returns(void *n) { pthread_setspecific(key, n); for (long i = 0; i < (long)n; i++) inner(); return nullptr; }
ALONE void *leaves(void *) { exits(5); return nullptr; }
ALONE void waits_long() { closes c; pthread_barrier_wait(&waits); for (;;) pause(); }
ALONE void *cancelled(void *) { pthread_cleanup_push(cleans, nullptr); waits_long(); pthread_cleanup_pop(0); return nullptr; }
static void threads()
{
    pthread_t t[3];
    pthread_key_create(&key, key_ends);
    pthread_barrier_init(&waits, nullptr, 2);
    pthread_create(&t[0], nullptr, returns, (void *)20L);
    pthread_create(&t[1], nullptr, leaves, nullptr);
    pthread_create(&t[2], nullptr, cancelled, nullptr);
    pthread_barrier_wait(&waits);
    pthread_cancel(t[2]);
    for (pthread_t one : t) pthread_join(one, nullptr);
    inner();
}

/* --- other stacks: ucontext, and switched by hand --- */
static ucontext_t main_place, one_place[2];
static char stack_one[ROOM], stack_two[ROOM], stack_hand[ROOM], stack_hand_two[ROOM];
ALONE void yields(int k) { swapcontext(&one_place[k], &main_place); sink = sink + 1; }
ALONE void body(int k) { for (int i = 0; i < 3; i++) { inner(); yields(k); } leaf(); }
ALONE void resumes(int k) { swapcontext(&main_place, &one_place[k]); sink = sink + 1; }
static void contexts()
{
    for (int k = 0; k < 2; k++) {
        getcontext(&one_place[k]);
        one_place[k].uc_stack.ss_sp = k ? stack_two : stack_one;
        one_place[k].uc_stack.ss_size = ROOM;
        one_place[k].uc_link = &main_place;
        makecontext(&one_place[k], (void (*)())body, 1, k);
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) resumes(k);
    inner();
}
asm(R"(
    .text
    .p2align 4
    .type swap, @function
    .globl swap
swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size swap, . - swap
)");
extern "C" void swap(void **save, void *take);
static void *by_hand, *task[2];
ALONE void gives(int k) { swap(&task[k], by_hand); sink = sink + 1; }
ALONE void takes(int k) { swap(&by_hand, task[k]); sink = sink + 1; }
ALONE void works(int k, int n) { if (n) works(k, n - 1); leaf(); gives(k); try { thrower(2); } catch (int) { leaf(); } }
ALONE void first_task() { works(0, 2); for (;;) gives(0); }
ALONE void second_task() { works(1, 1); for (;;) gives(1); }
static void *prepared(char *stack, void (*begin)())
{
    void **at = (void **)(stack + ROOM - 64);
    at[6] = (void *)begin; /* its return address: 0 behind */
    return at;
}
static void hands()
{
    task[0] = prepared(stack_hand, first_task);
    task[1] = prepared(stack_hand_two, second_task);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) takes(k);
    inner();
}

/* --- processes --- */
ALONE int child(int n) { leaf(); if (n) return child(n - 1); pid_t p = fork(); if (p == 0) other(); else waitpid(p, nullptr, 0); return p == 0; }
ALONE void forks() { if (child(2)) { inner(); _exit(3); } inner(); }
static void forking() { fflush(stdout); forks(); leaf(); }
ALONE void vforks()
{
    fflush(stdout);
    pid_t p = vfork();
    if (p == 0) { leaf(); execl("/bin/true", "true", nullptr); _exit(1); }
    waitpid(p, nullptr, 0);
    p = vfork();
    if (p == 0) { other(); _exit(2); }
    waitpid(p, nullptr, 0);
    char *argv[] = {(char *)"true", nullptr};
    if (posix_spawn(&p, "/bin/true", nullptr, nullptr, argv, nullptr) == 0) waitpid(p, nullptr, 0);
    inner();
}
static void executing() { inner(); fflush(stdout); execl("/proc/self/exe", "ways", "jumps", nullptr); }

/* --- called by the library --- */
ALONE void at_end() { leaf(); sink = sink + 1; }
ALONE void once() { inner(); }
ALONE int orders(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((constructor)) static void begins() { leaf(); }
__attribute__((destructor)) static void ends() { other(); }
static void callbacks()
{
    int list[] = {5, 3, 9, 1, 7};
    static pthread_once_t control = PTHREAD_ONCE_INIT;
    atexit(at_end);
    qsort(list, 5, sizeof *list, orders);
    for (int i = 0; i < 2; i++) pthread_once(&control, once);
    exit(sink > 0 ? 0 : 1);
}

static const struct {
    const char *name;
    void (*run)();
} modes[] = {{"jumps", jumps}, {"recursion", recursion}, {"exceptions", exceptions}, {"longjmp", jumping},
             {"signals", signals}, {"on-stack", on_stack}, {"threads", threads}, {"contexts", contexts}, {"hands", hands},
             {"fork", forking}, {"vfork", vforks}, {"exec", executing}, {"callbacks", callbacks}};

int main(int argc, char **argv)
{
    for (const auto &mode : modes)
        if (argc > 1 && !strcmp(mode.name, argv[1])) mode.run();
    return 0;
}
