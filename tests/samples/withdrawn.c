/* Code in memory that is taken away, or fixed, by rarer ways than munmap and mprotect: guards and advice for children,
 * a file that is cut off beneath it, and mseal, after which nobody can change its protection. Where the kernel has no
 * such call, that is what the program tells. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, GUARD_INSTALL = 102, GUARD_REMOVE = 103, MSEAL = 462, RWX = PROT_READ | PROT_WRITE | PROT_EXEC };

static sigjmp_buf back;
static siginfo_t fault;

static void handler(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)context;
    fault = *info;
    siglongjmp(back, 1);
}

/* mov $N, %eax; ret */
static void put(uint8_t *at, uint8_t n) { memcpy(at, (uint8_t[]){0xb8, n, 0, 0, 0, 0xc3}, 6); }

/* Zeros are additions to what rax leads to. */
static int called(uint8_t *at)
{
    static char sums[8];
    int answer;
    __asm__ volatile("call *%1" : "=a"(answer) : "r"(at), "a"(sums) : "cc", "memory");
    return answer;
}

static void call(const char *what, uint8_t *at)
{
    if (sigsetjmp(back, 1)) {
        printf("%s: signal %d, code %d, %ld bytes from it\n", what, fault.si_signo, fault.si_code,
               (long)((uint8_t *)fault.si_addr - at));
    } else {
        printf("%s: %d\n", what, called(at));
    }
    fflush(stdout);
}

static uint8_t *room(size_t size) { return mmap(NULL, size, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void guards(void)
{
    uint8_t *p = room(4 * PAGE), *over = p + 3 * PAGE - 2;
    put(p + PAGE, 1);
    put(over, 2);
    call("before the guards", p + PAGE);
    call("across", over);
    printf("guards: %d\n", madvise(p + PAGE, PAGE, GUARD_INSTALL) || madvise(p + 3 * PAGE, PAGE, GUARD_INSTALL));
    call("a guard", p + PAGE);
    call("into a guard", over);
    madvise(p + PAGE, 3 * PAGE, GUARD_REMOVE);
    put(p + PAGE, 3);
    call("no guard", p + PAGE);
    struct iovec v = {p + PAGE, PAGE};
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    printf("of the process: %d\n", syscall(SYS_process_madvise, self, &v, 1, GUARD_INSTALL, 0) == PAGE);
    call("a guard again", p + PAGE);
}

static void in_child(void (*what)(uint8_t *), uint8_t *p)
{
    pid_t child = fork();
    if (!child) {
        what(p);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void calls(uint8_t *p)
{
    call("in a child", p);
    call("and behind it", p + 64);
}

static void calls_in_child(uint8_t *p)
{
    calls(p);
    in_child(calls, p);
}

static void children(void)
{
    uint8_t *wiped = room(2 * PAGE), *lost = room(PAGE), *kept = room(PAGE), *moved;
    put(wiped, 4), put(lost, 5), put(lost + 64, 6), put(kept, 7), put(kept + 64, 8);
    mprotect(wiped, PAGE, PROT_READ | PROT_EXEC);
    mprotect(wiped + PAGE, PAGE, PROT_NONE);
    call("to be wiped", wiped);
    call("to be lost", lost);
    call("to be kept", kept);
    madvise(wiped, PAGE, MADV_WIPEONFORK);
    madvise(lost, PAGE, MADV_DONTFORK);
    madvise(kept, PAGE, MADV_DONTFORK);
    madvise(kept, PAGE, MADV_DOFORK);
    in_child(calls_in_child, wiped);
    in_child(calls, lost);
    in_child(calls_in_child, kept);
    moved = mremap(lost, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room(PAGE));
    call("moved", moved);
    in_child(calls, moved);
    call("wiped elsewhere", wiped);
    munmap(moved, PAGE);
    mmap(moved, PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    put(moved, 9), put(moved + 64, 10);
    in_child(calls, moved);
}

static void cut_off(void)
{
    int file = memfd_create("code", 0);
    uint8_t code[PAGE] = {0};
    put(code, 11), put(code + 64, 12);
    if (write(file, code, PAGE) != PAGE) return;
    uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    call("a file", p);
    printf("cut off: %d\n", ftruncate(file, 0));
    call("behind its end", p + 64);
}

static void seals(void)
{
    uint8_t *p = room(2 * PAGE), *later = p + PAGE;
    put(p, 13), put(later, 14);
    call("before the seal", p);
    printf("sealed: %d\n", syscall(MSEAL, p, 2 * PAGE, 0) == 0 || errno == ENOSYS);
    call("sealed", p);
    put(p, 15);
    call("written", p);
    call("first", later);
    put(later, 16);
    call("and written", later);
    printf("nothing: %d\n", syscall(MSEAL, NULL, PAGE, 0) == 0);
}

int main(void)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    guards();
    children();
    cut_off();
    seals();
    return 0;
}
