/* What emulators and old programs ask of the kernel: system calls that the program hears of itself, calls of the
 * vsyscall page, memory that can be executed because it can be read, code that is moved by mremap, the error code of a
 * jump to data, and clone3 with half a stack or a structure of any size. */
#include <errno.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { USER_DISPATCH = 59, ON = 1, OFF = 0, WITHIN = 2, ANSWER = 4242, PAGE = 4096 };

static void ends_as(const char *what, pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: signal %d\n", what, WTERMSIG(status));
    else printf("%s: status %d\n", what, WEXITSTATUS(status));
    fflush(stdout);
}

/* --- calls that are diverted --- */

static volatile char selector;
static volatile int heard, code, number, at_call;

static void on_sys(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    (void)signo;
    selector = OFF;
    heard++;
    code = info->si_code;
    number = info->si_syscall;
    at_call = (long)(intptr_t)info->si_call_addr == uc->uc_mcontext.gregs[REG_RIP];
    if (uc->uc_mcontext.gregs[REG_RAX] == number) uc->uc_mcontext.gregs[REG_RAX] = ANSWER;
}

static long diverted(long nr)
{
    selector = ON;
    long answer = syscall(nr, 0, 0, 0);
    selector = OFF;
    return answer;
}

/* Only calls of `size` bytes from there on are heard of. */
static void within(long size)
{
    printf("within nothing %d, over the end %d\n", prctl(USER_DISPATCH, WITHIN, 1, 0, 0),
           prctl(USER_DISPATCH, WITHIN, 1, -1l, 0));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const int known = !prctl(USER_DISPATCH, WITHIN, (char *)(uintptr_t)&syscall, size, &selector);
        _exit(known ? diverted(SYS_getppid) == ANSWER : 2);
    }
    ends_as("within", child);
}

static void diversions(void)
{
    struct sigaction a = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &a, NULL);
    printf("off with a range %d", prctl(USER_DISPATCH, OFF, 0, 1, 0));
    printf(" on twice the sky %d", prctl(USER_DISPATCH, ON, 1, -1l, 0));
    printf(" mode 9 %d\n", prctl(USER_DISPATCH, 9, 0, 0, 0));
    if (prctl(USER_DISPATCH, ON, 0, 0, &selector)) {
        printf("not on this kernel\n");
        return;
    }
    long first = diverted(SYS_getppid), second = diverted(499);
    printf("answers %ld %ld, heard %d, code %d, number %d, at the call %d\n", first, second, heard, code, number,
           at_call);
    pid_t child = fork();
    if (child == 0) _exit(diverted(SYS_getppid) == ANSWER);
    ends_as("child that diverts nothing", child);
    child = fork();
    if (child == 0) {
        char *low = (char *)(uintptr_t)&syscall;
        prctl(USER_DISPATCH, ON, low, 64, &selector); /* from there calls are made */
        _exit(diverted(SYS_getppid) == getppid() ? 3 : 4);
    }
    ends_as("range", child);
    within(64);
    within(1);
    child = fork();
    if (child == 0) {
        prctl(USER_DISPATCH, ON, 0, 0, &selector);
        selector = 7;
        syscall(SYS_getppid);
    }
    ends_as("no such selector", child);
    child = fork();
    if (child == 0) {
        prctl(USER_DISPATCH, ON, 0, 0, 8);
        syscall(SYS_getppid);
    }
    ends_as("no selector", child);
    printf("off %d, then %d\n", prctl(USER_DISPATCH, OFF, 0, 0, 0), diverted(SYS_getppid) == getppid());
}

/* --- faults --- */

static sigjmp_buf back;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    printf("signal %d code %d error %#llx\n", signo, info->si_code, uc->uc_mcontext.gregs[REG_ERR]);
    siglongjmp(back, 1);
}

static void jumps_to_data(void)
{
    char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    for (int i = 0; i < 3; i++) {
        uintptr_t to = i < 2 ? (uintptr_t)page + (unsigned)i * PAGE : PAGE; /* there, not yet there, nothing */
        if (!sigsetjmp(back, 1)) ((void (*)(void))to)();
    }
}

/* --- the vsyscall page, where there is one --- */

static void old_calls(void)
{
    const uintptr_t base = 0xffffffffff600000ul;
    char line[256];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, "[vsyscall]") != NULL;
    if (maps) fclose(maps);
    printf("page %d\n", found);
    if (!found) return;
    long (*get_time)(long *) = (long (*)(long *))(base + 1024);
    int (*get_clock)(struct timeval *, void *) = (int (*)(struct timeval *, void *))base;
    int (*get_cpu)(unsigned *, unsigned *, void *) = (int (*)(unsigned *, unsigned *, void *))(base + 2048);
    struct timeval v = {0};
    unsigned cpu = ~0u;
    long t = 0, answer = get_time(&t), now = time(NULL);
    printf("time %d", answer == t && labs(now - t) < 10);
    printf(" clock %d %d", get_clock(&v, NULL), labs(v.tv_sec - now) < 10);
    printf(" cpu %d %d\n", get_cpu(&cpu, NULL, NULL), cpu != ~0u);
    if (!sigsetjmp(back, 1)) get_time((long *)8);
    if (!sigsetjmp(back, 1)) ((void (*)(void))(base + 1))();
}

/* --- code --- */

static const unsigned char five[] = {0xb8, 5, 0, 0, 0, 0xc3}; /* mov $5, %eax ; ret */

static int call(const void *code) { return ((int (*)(void))(uintptr_t)code)(); }

static void readable_is_executable(void)
{
    pid_t child = fork();
    if (child == 0) {
        personality(READ_IMPLIES_EXEC);
        unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(page, five, sizeof five);
        int sum = call(page);
        page[1] = 6;
        sum += call(page);
        mprotect(page, PAGE, PROT_READ);
        sum += call(page);
        unsigned char *top = sbrk(PAGE);
        memcpy(top, five, sizeof five);
        _exit(sum + call(top)); /* 5 + 6 + 6 + 5 */
    }
    ends_as("readable", child);
}

static void moved_code(void)
{
    int prot = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *from = mmap(NULL, 3 * PAGE, prot, flags, -1, 0);
    unsigned char *room = mmap(NULL, 3 * PAGE, PROT_NONE, flags, -1, 0);
    memcpy(from + PAGE, five, sizeof five);
    int sum = call(from + PAGE); /* a page in the middle has been translated */
    unsigned char *to = mremap(from, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    printf("moved %d\n", to == room);
    if (to != room) return;
    to[PAGE + 1] = 7;
    sum += call(to + PAGE);
    unsigned char *rest = mremap(to, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    pid_t child = fork();
    if (child == 0) { /* what is left behind is empty */
        signal(SIGSEGV, SIG_DFL);
        mprotect(rest, 3 * PAGE, PROT_READ | PROT_EXEC);
        if (call(rest + PAGE) == 7) mremap(rest, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
        _exit(call(rest + PAGE));
    }
    ends_as("emptied", child);
    memcpy(to + PAGE, five, sizeof five);
    sum += 100 * call(to + PAGE) + 1000 * call(rest + PAGE);
    printf("sum %d\n", sum); /* 5 + 7 + 500 + 7000 */
}

static void half_a_stack(void)
{
    static char stack[PAGE];
    struct clone_args a = {.flags = CLONE_VM, .exit_signal = SIGCHLD, .stack = (uintptr_t)stack};
    long answer = syscall(SYS_clone3, &a, sizeof a);
    printf("no size %ld %s", answer, strerror(errno));
    a = (struct clone_args){.exit_signal = SIGCHLD, .stack_size = sizeof stack};
    answer = syscall(SYS_clone3, &a, sizeof a);
    if (!answer) _exit(1);
    printf(", no stack %ld %s\n", answer, strerror(errno));
}

static void cloned_by(const char *what, const void *structure, size_t size)
{
    long child = syscall(SYS_clone3, structure, size);
    if (!child) _exit(9);
    if (child > 0) ends_as(what, (pid_t)child);
    else printf("%s: %s\n", what, strerror(errno));
}

/* More than any kernel knows, and what ends where nothing can be read: at `wall`. */
static void sizes(void)
{
    enum { LARGE = 400, KNOWN = sizeof(struct clone_args), BEYOND = 160 };
    const struct clone_args a = {.exit_signal = SIGCHLD};
    char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *wall = page + PAGE;
    munmap(wall, PAGE);
    memcpy(page, &a, sizeof a);
    cloned_by("too small", page, 63);
    cloned_by("large", page, LARGE);
    cloned_by("a page", page, PAGE);
    cloned_by("too large", page, PAGE + 1);
    page[LARGE - 1] = 1;
    cloned_by("too much", page, LARGE);
    memcpy(wall - BEYOND, &a, sizeof a);
    cloned_by("to the wall", wall - BEYOND, BEYOND);
    cloned_by("through the wall", wall - BEYOND, BEYOND + 8);
    cloned_by("far through the wall", wall - BEYOND, LARGE);
    wall[-1] = 1;
    cloned_by("too much before the wall", wall - BEYOND, BEYOND + 8);
    cloned_by("known before the wall", wall - KNOWN / 2, KNOWN);
}

int main(void)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    diversions();
    jumps_to_data();
    old_calls();
    readable_is_executable();
    moved_code();
    half_a_stack();
    sizes();
    return 0;
}
