"""Objects of programs that are particular about what surrounds them: cancelled threads, small stacks, own procedures of the
names of system calls, destructors, code that people write by hand."""
import os
import re

from exports import calls
from run import need, same

CANCELLED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(volatile int x) { return x + 1; }
__attribute__((noinline)) int nest(int n) { return n ? nest(n - 1) + leaf(n) : 0; }
static int ready[2], go[2];
static void *later(void *arg) /* asynchronously, in the midst of what is recorded */
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    for (;;) nest(20);
    return arg;
}
static void *never(void *arg) /* cancelled already, and at no point of cancellation */
{
    char c = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1) return 0;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    for (int i = 0; i < 20000; i++) nest(8);
    return arg;
}
int main(void)
{
    pthread_t t;
    void *result;
    char c = 0;
    for (int k = 0; k < 12; k++) {
        pthread_create(&t, 0, later, 0);
        usleep(k * 1500);
        pthread_cancel(t);
        pthread_join(t, &result);
        if (result != PTHREAD_CANCELED) puts("was not cancelled");
    }
    if (pipe(ready) || pipe(go)) return 1;
    pthread_create(&t, 0, never, &c);
    if (read(ready[0], &c, 1) != 1) return 1;
    pthread_cancel(t);
    if (write(go[1], &c, 1) != 1) return 1;
    pthread_join(t, &result);
    puts(result == &c ? "came to its end" : "was cancelled where it should not be");
    return 0;
}
"""

STACKS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t before, on;
static int sum;
__attribute__((noinline)) int leaf(volatile int x) { return x * 3 + 1; }
__attribute__((noinline)) int first(int n) { return leaf(n) + 1; }
__attribute__((noinline)) int deep(int n) { char room[9000]; __asm__ volatile("" :: "r"(room) : "memory"); return n ? deep(n - 1) : 7; }
void body(void) { for (int i = 0; i < 5; i++) sum += first(i); }
void handler(int n) { sum += leaf(n) + deep(20); }
int main(void)
{
    const int page = 4096, room = 1500;
    char *p = mmap(0, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + page, page, PROT_READ | PROT_WRITE);
    getcontext(&on);
    on.uc_stack.ss_sp = p + page;
    on.uc_stack.ss_size = room; /* pages in front are not there */
    on.uc_link = &before;
    makecontext(&on, body, 0);
    swapcontext(&before, &on);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    printf("%d\n", sum);
    return 0;
}
"""

SHARED = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[64 << 10];
__attribute__((noinline)) int leaf(volatile int x) { return x + 1; }
__attribute__((noinline)) int other(int x) { return leaf(x) + leaf(x + 1); }
static int child(void *sum)
{
    for (int i = 0; i < 150000; i++) *(volatile long *)sum += other(i);
    return syscall(SYS_exit, 0);
}
int main(void)
{
    long sums[2] = {0, 0};
    int status, pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, sums);
    for (int i = 0; i < 150000; i++) sums[1] += leaf(i) + leaf(i + 1);
    waitpid(pid, &status, 0);
    printf("%d %d\n", status, sums[0] == sums[1]);
    return 0;
}
"""

NAMES = r"""
#include <stdio.h>
static int asked;
long read(int a) { return asked += a; }
int open(int a) { return asked += a; }
int close(void) { return asked++; }
int fcntl(void) { return asked++; }
long pwritev(void) { return asked++; }
int ftruncate(void) { return asked++; }
void *mmap64(void) { asked++; return 0; }
int fallocate64(void) { return asked++; }
int getpid(void) { return asked++; }
int flock(void) { return asked++; }
__attribute__((destructor)) static void last(void) { printf("%d\n", open(1)); }
int main(void)
{
    for (int i = 0; i < 20000; i++) open(1), close();
    printf("%ld\n", read(2));
    return 0;
}
"""

HAND = r"""
        .text
        .globl  compare, with_carry, skips, tells, shares, hand, reads_below, words
        .type   compare, @function
compare:                                # its answer is in flags
        cmp     %rsi, %rdi
        nop
        nop
        nop
        nop
        ret
        .size   compare, . - compare
        .type   with_carry, @function
with_carry:                             # carry is an argument
        adc     %rsi, %rdi
        mov     %rdi, %rax
        nop
        nop
        ret
        .size   with_carry, . - with_carry
        .type   skips, @function
skips:                                  # a word stands behind its call
        pop     %rdx
        mov     (%rdx), %eax
        add     $4, %rdx
        push    %rdx
        nop
        nop
        nop
        nop
        ret
        .size   skips, . - skips
        .type   words, @function
words:  sub     $8, %rsp
        call    skips
        .byte   0xc3, 0xe9, 0xc3, 0x10
        add     $8, %rsp
        nop
        nop
        ret
        .size   words, . - words
        .type   shares, @function
shares: mov     %rsi, -128(%rsp)        # what lies below the stack pointer, and flags, go with a jump
        test    %rdi, %rdi
        nop
        nop
        jmp     reads_below
        .size   shares, . - shares
        .type   reads_below, @function
reads_below:
        mov     -128(%rsp), %rax
        jne     1f
        add     $100, %rax
1:      nop
        nop
        nop
        ret
        .size   reads_below, . - reads_below
        .type   hand, @function
hand:   nop                             # the direction of strings is down throughout
        nop
        push    %rbx
        std
        xor     %ebx, %ebx
        call    compare
        adc     $0, %ebx
        mov     $5, %edi
        mov     $6, %esi
        stc
        call    with_carry
        cld
        shl     $8, %eax
        or      %ebx, %eax
        pop     %rbx
        ret
        .size   hand, . - hand
        .section .note.GNU-stack, "", @progbits
"""
USES_HAND = r"""
#include <stdio.h>
int hand(long, long), shares(long, long), words(void);
int main(void)
{
    for (int i = 0; i < 40; i++)
        if (hand(1, 2) != 0xc01 || hand(2, 1) != 0xc00) return puts("flags"), 1;
    printf("%d %d %x\n", shares(1, 5), shares(0, 6), words());
    return 0;
}
"""
SANITIZED = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(volatile int x) { return x + 1; }
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static void *adds(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&lock);
        sum = leaf(sum);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}
int main(void) /* two at a time, and others where they have been */
{
    pthread_t t[2];
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, adds, 0);
        for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
        if (k == 3 && !fork()) _exit(leaf(0));
    }
    wait(0);
    printf("%d\n", sum);
    return 0;
}
"""
SETTINGS = ("", "counts", "every=2", "thin=3", "clock=monotonic", "event=page-faults", "last=1", "off")


def build(t, name, text, *flags):
    source, program = f"{t.folder}/{name}.c", f"{t.folder}/{name}"
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    command = ["gcc", "-O1", "-w", "-fno-builtin", "-fno-inline", "-pthread", *flags, source]
    t.command([*command, "-o", f"{program}.native"])
    t.command([t.inlay, "wrap", "--report=/dev/null", *command, "-o", program])
    return program


def runs(t, program, settings):
    """As natively, under all of them. The last recording's calls."""
    native = t.command([f"{program}.native"]).stdout
    for setting in settings:
        done = t.command([program], env=os.environ | {"INLAY_OUT": f"{program}.trace", "INLAY_TRACE": setting})
        same((done.stdout, done.stderr), (native, ""), f"{setting}: the output")
    return calls(t.report(f"{program}.trace"))


def check_hand(t):
    """Flags, directions and what lies below the stack pointer are handed over; data behind a call stay data."""
    with open(f"{t.folder}/hand.s", "w", encoding="utf-8") as f:
        f.write(HAND)
    t.command(["gcc", "-c", f"{t.folder}/hand.s", "-o", f"{t.folder}/hand.o"])
    t.object("--all", f"{t.folder}/hand.o", "-o", f"{t.folder}/made")
    program = build(t, "uses-hand", USES_HAND, f"{t.folder}/hand.o")
    t.link("uses-hand", t.compile(USES_HAND, "uses-hand", "-O1"), f"{t.folder}/made/hand.o")
    runs(t, program, SETTINGS)
    found = runs(t, program, ("",))
    same({name: found.get(name) for name in ("hand", "compare", "with_carry", "shares", "reads_below", "skips", "words")},
         {"hand": 80, "compare": 80, "with_carry": 80, "shares": 2, "reads_below": 2, "skips": 1, "words": None}, "calls")


def check_names(t):
    """The recorder calls nobody's read and open; what runs behind the end is counted, too."""
    program = build(t, "names", NAMES, "-fno-pie", "-no-pie")
    for setting in ("", "counts"):
        found = runs(t, program, (setting,))
        same({name: found[name] for name in ("open", "close", "read", "last")},
             {"open": 20001, "close": 20000, "read": 1, "last": 1}, f"{setting}: calls")


def check_sanitized(t):
    """ThreadSanitizer finds nothing where it finds nothing in the program itself."""
    found = runs(t, build(t, "sanitized", SANITIZED, "-fsanitize=thread"), (*SETTINGS, ""))
    same({name: found.get(name) for name in ("main", "adds", "leaf")}, {"main": 1, "adds": 12, "leaf": 24000}, "calls")


LOST = r"""
__attribute__((noinline)) int leaf(volatile int x) { return x + 1; }
int main(void) { int sum = 0; for (int i = 0; i < 900000; i++) sum += leaf(i); return sum == 1; }
"""


def check_lost(t):
    """Where there is no room for the file the end of the run says how much is lost, and so does the report; what is nowhere
    on the disk is read as what it is."""
    program = build(t, "lost", LOST)
    out = f"{program}.trace"
    done = t.command(["sh", "-c", f"trap '' XFSZ; ulimit -f 300; exec {program}"], env=os.environ | {"INLAY_OUT": out})
    said = re.search(r"(\d+) records found no room", done.stderr)
    need(said and int(said[1]) > 100000, "the end of the run", done.stderr)
    need(f"{said[1]} records were lost" in t.read("report", out), "the report")
    need(os.path.getsize(out) <= 300 * 1024, "the file's size", os.path.getsize(out))
    whole = t.command([program], env=os.environ | {"INLAY_OUT": out}) and t.read("report", out)
    t.command(["cp", "--sparse=always", out, f"{out}.holes"])
    with open(f"{out}.holes", "r+b") as f:
        f.truncate(os.path.getsize(out) + (64 << 20))
    same(t.read("report", f"{out}.holes"), whole, "a file with holes")


def tests(t):
    yield "lost", lambda: check_lost(t)
    yield "cancelled threads", lambda: runs(t, build(t, "cancelled", CANCELLED), ("", "thin=100", "clock=monotonic"))
    yield "small stacks", lambda: need(runs(t, build(t, "stacks", STACKS), ("counts", "thin=3", "")) ==
                                       {"main": 1, "body": 1, "first": 5, "leaf": 6, "handler": 1, "deep": 21}, "calls")
    yield "shared data", lambda: runs(t, build(t, "shared", SHARED), ("thin=100", "clock=monotonic", ""))
    yield "sanitized threads", lambda: check_sanitized(t)
    yield "names", lambda: check_names(t)
    yield "by hand", lambda: check_hand(t)
