#!/usr/bin/python3
"""Programs of a few lines in which the rewriter has only just enough room, or something to do that hardly any
program needs; what it does is held to the original's behaviour and, where that says too little, to its report.

  tests/rewrite/corners.py [--build DIR] [--only CASE] [--keep]

  pad-first     a landing pad is the first instruction of what an unwind entry describes
  boards        springboards at every distance about the longest that a short jump reaches, in front and behind
  reentered     code behind a call that returns after all comes back to a procedure that has moved
  over-calls    numbers of system calls in registers that calls change or keep, in code that is not rewritten
  search-path   a library that is opened by name is found along the program's own path, or its library's
  aligned       segments aligned to more than a page: addresses are those of the kernel without randomisation
  holes         calls of places in the image where nothing is mapped, or no code is; a handler sees where
  options       a loop over letters, with a switch of which some cases end the program and others say something
  packed        initialisers and pointers that DT_RELR relocates
  appended      a program reads what was appended to its file, from the end, by its offset, and behind the section headers
  skipped       a handler has the program go on behind an instruction that only traps
  adjacent      a procedure ends with a call of the one behind it
  pieces        a procedure returns in pieces alone that exceptions land in, or a table leads to
  sections      each block is in a section of its own (-fbasic-block-sections), with an exception table in front of the next
  stale         two unwind entries describe one procedure, of which unwinders find the shorter (BOLT leaves such)
  labels        a jump goes to an entry of a table or to a label itself
  slots         a jump to one of several pieces of code of one size, by a mask, a comparison, or nothing that says
  twice         a jump table that the load and the addition name by themselves, as code has it that is not optimised
  short-calls   jumps over procedures that call the kernel hold bytes that would load its call's number
  cold-labels   a jump table's first entries lead elsewhere than to the part of a procedure that reads it, others to
                where an unwind entry begins, as that of a procedure would
  behind-calls  what is called looks for data behind the call, or only keeps the address for a while
  astray        code that never runs as it is in the file, and leads to where new code does not reach
  placed        a program that may lie anywhere has no dynamic section: it is no library, and its file stays as it is
  large         procedures, labels and words are named by their distance from a table (-mcmodel=large)
"""

import json
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60
STACK = '.section .note.GNU-stack,"",@progbits\n'
# The end of C++ in assembly that catches: what compilers write themselves for its `.cfi_personality 0x9b`.
PERSONALITY = r"""    .weak DW.ref.__gxx_personality_v0
    .section .data.rel.local.DW.ref.__gxx_personality_v0,"awG",@progbits,DW.ref.__gxx_personality_v0,comdat
    .p2align 3
    .type DW.ref.__gxx_personality_v0,@object
    .size DW.ref.__gxx_personality_v0, 8
DW.ref.__gxx_personality_v0: .quad __gxx_personality_v0
    .text
)");"""

PAD_FIRST = r"""
#include <cstdio>
extern "C" { void again(int); __attribute__((noinline)) void thrower(int n) { std::printf("throw %d\n", n); throw n; } }
asm(R"(
    .text
    .globl again
    .type again,@function
again:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %edi, %ebx
    jmp again_next
    .cfi_endproc
    .size again, .-again
    .type again_part,@function
again_part:
    .cfi_startproc
    .cfi_personality 0x9b,DW.ref.__gxx_personality_v0
    .cfi_lsda 0x1b,again_table
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %rax, %rdi
    call __cxa_begin_catch@PLT
    call __cxa_end_catch@PLT
    dec %ebx
    jz 2f
again_next:
    mov %ebx, %edi
again_call:
    call thrower@PLT
again_behind:
2:  pop %rbx
    .cfi_def_cfa_offset 8
    .cfi_restore 3
    ret
    .cfi_endproc
    .size again_part, .-again_part
    .section .gcc_except_table,"a",@progbits
    .p2align 2
again_table:
    .byte 0x1b
1:  .long again - 1b
    .byte 0x9b
    .uleb128 4f - 3f
3:  .byte 1
    .uleb128 6f - 5f
5:  .uleb128 again_call - again_part, again_behind - again_call, again_part - again, 1
6:  .byte 1, 0
    .p2align 2
    .long 0
4:  .text
""" + PERSONALITY + r"""
int main() { again(3); std::puts("done"); }
"""

# Procedures of three bytes, and at a distance the only room for a springboard: behind the jump that catches
# `room`. What lies between is left alone, since it asks where it is.
SMALL = """
    .p2align 4
    .type filler_{name},@function
filler_{name}: call 1f
1:  pop %rax
    ret
    .fill {lead}, 1, 0x90
    ret
    .size filler_{name}, .-filler_{name}
"""
BOARD_BEHIND = """
    .globl small_{name}
    .type small_{name},@function
small_{name}: xor %eax, %eax
    ret
    .size small_{name}, .-small_{name}
    .type between_{name},@function
between_{name}: call 1f
1:  pop %rax
    ret
    .fill {distance} - 14, 1, 0x90
    ret
    .size between_{name}, .-between_{name}
    .globl room_{name}
    .type room_{name},@function
room_{name}: mov $1, %eax
    add $0x1000, %eax
    ret
    .size room_{name}, .-room_{name}
"""
BOARD_IN_FRONT = """
    .globl room_{name}
    .type room_{name},@function
room_{name}: mov $1, %eax
    add $0x1000, %eax
    ret
    .size room_{name}, .-room_{name}
    .type between_{name},@function
between_{name}: call 1f
1:  pop %rax
    ret
    .fill {distance} - 16, 1, 0x90
    ret
    .size between_{name}, .-between_{name}
    .globl small_{name}
    .type small_{name},@function
small_{name}: xor %eax, %eax
    ret
    .size small_{name}, .-small_{name}
"""
AFTER = """
    .type after_{name},@function
after_{name}: call 1f
1:  pop %rax
    ret
    .fill 200, 1, 0x90
    ret
    .size after_{name}, .-after_{name}
"""
DISTANCES = range(122, 138)

# `seems` is taken for one that does not return: err.
REENTERED = r"""
    .text
    .globl small_a, small_b, small_c, small_d
    .type small_a,@function
small_a: xor %eax, %eax
    ret
    .size small_a, .-small_a
    .type small_b,@function
small_b: xor %eax, %eax
    ret
    .size small_b, .-small_b
    .type small_c,@function
small_c: xor %eax, %eax
    ret
    .size small_c, .-small_c
    .globl seems_to_end
    .type seems_to_end,@function
seems_to_end:
    .cfi_startproc
    test %edi, %edi
    jne 2f
    jmp 1f
1:  push %rbx
    .cfi_def_cfa_offset 16
    call err@PLT
    mov $5, %ebx
    lea 3f(%rip), %rcx
    jmp *%rcx
    .cfi_def_cfa_offset 8
2:  push %rbx
    .cfi_def_cfa_offset 16
    xor %ebx, %ebx
    .byte 0x0f, 0x1f, 0x44, 0, 0
3:  lea 40(%rbx), %eax
    add $0x100, %eax
    add $0x1000, %eax
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size seems_to_end, .-seems_to_end
"""
REENTERED_MAIN = r"""
#include <stdio.h>
int small_a(int), small_b(int), small_c(int), seems_to_end(int);
int (*volatile all[])(int) = {small_a, small_b, small_c, seems_to_end};
int main(void) { for (int i = 0; i < 4; i++) for (int k = 0; k < 2; k++) printf("%d\n", all[i](k)); return 0; }
"""
ERR = "int err(void) { return 1; }\n"

# In a library: the number of the call is what `number` answers, not what stood in rax before; and one that a
# register keeps over the call, which does not matter.
OVER_CALLS = r"""
    .text
    .globl ends
    .type ends,@function
ends:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %edi, %ebx
    mov $39, %eax
    call number
    mov %ebx, %edi
    syscall
    pop %rbx
    .cfi_def_cfa_offset 8
    .cfi_restore 3
    ret
    .cfi_endproc
    .size ends, .-ends
    .globl asks
    .type asks,@function
asks:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov $39, %ebx
    call number
    mov %ebx, %eax
    syscall
    pop %rbx
    .cfi_def_cfa_offset 8
    .cfi_restore 3
    ret
    .cfi_endproc
    .size asks, .-asks
    .type number,@function
number:
    .cfi_startproc
    mov $231, %eax
    ret
    .cfi_endproc
    .size number, .-number
"""
OVER_CALLS_MAIN = r"""
#include <unistd.h>
long asks(void); void ends(int);
int main(void) { ends(asks() == getpid() ? 7 : 8); return 9; }
"""

PLUGIN = "int plugin(void) { return {value}; }\n"
OPENS = r"""
#include <dlfcn.h>
#include <stdio.h>
int of_library(void);
int open_it(const char *name)
{
    void *lib = dlopen(name, RTLD_NOW);
    int (*f)(void) = lib ? (int (*)(void))dlsym(lib, "plugin") : 0;
    return f ? f() : -1;
}
"""

APPENDED = r"""
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    char text[40] = "", again[40] = "", behind[40] = "";
    Elf64_Ehdr h;
    long trailer[2]; /* where the text begins, how long it is */
    if (!f || fseek(f, -(long)sizeof trailer, SEEK_END) || fread(trailer, sizeof trailer, 1, f) != 1) return 1;
    if (trailer[1] != 30 || fseek(f, -(long)sizeof trailer - trailer[1], SEEK_END) || !fread(text, 30, 1, f)) return 2;
    if (fseek(f, trailer[0], SEEK_SET) || !fread(again, 30, 1, f)) return 3;
    if (fseek(f, 0, SEEK_SET) || !fread(&h, sizeof h, 1, f)) return 4;
    if (fseek(f, h.e_shoff + h.e_shnum * h.e_shentsize, SEEK_SET) || !fread(behind, 30, 1, f)) return 5;
    puts(text);
    puts(again);
    puts(behind);
    return 0;
}
"""

SKIPPED = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
static int skipped;
static void skip(int sig, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)info;
    skipped++;
    r[REG_RIP] += sig == SIGILL ? 2 : 1;
}
__attribute__((noinline)) long plain(long n) { asm volatile("ud2" : "+r"(n)); return n * 3 + 1; }
__attribute__((noinline)) long loops(int times)
{
    long n = 1;
    for (int i = 0; i < times; i++) {
        asm volatile("ud2" : "+r"(n));
        n = n * 5 + i;
        if (i & 1) asm volatile("hlt; add $1, %0" : "+r"(n));
    }
    return n;
}
int main(void)
{
    struct sigaction a = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &a, 0);
    sigaction(SIGSEGV, &a, 0);
    long first = plain(4), second = loops(9);
    printf("%ld %ld %d\n", first, second, skipped);
    return 0;
}
"""

PACKED = r"""
#include <stdio.h>
static int order;
static void first(void) { order = order * 10 + 1; }
static void second(void) { order = order * 10 + 2; }
__attribute__((section(".preinit_array"), used)) static void (*const before[])(void) = {first, second, first};
static int by_label(int n)
{
    static const struct { const void *to; long value; const void *often[3]; } table[] = {
#define ROW(a, b) {&&a, __LINE__, {&&b, 0, &&a}}
        ROW(one, two), ROW(two, three), ROW(three, one), ROW(two, two), ROW(one, three), ROW(three, three),
        ROW(one, two), ROW(two, three), ROW(three, one), ROW(two, two), ROW(one, three), ROW(three, three),
        ROW(one, two), ROW(two, three), ROW(three, one), ROW(two, two), ROW(one, three), ROW(three, three)};
    const void *to = n & 1 ? table[n % 18].to : table[n % 18].often[n % 3 & 2];
    goto *to;
one: n += 5; n ^= 0x55; return n * 3;
two: n += 7; n ^= 0x33; return n * 5;
three: n += 9; n ^= 0x11; return n * 7;
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++) sum = sum * 3 + by_label(i);
    printf("%d %d\n", order, sum);
    return 0;
}
"""


ALIGNED = r"""
#include <stdio.h>
extern char counts[];
int sum;
__asm__(".text\ncount:\ncounts: addl %edi, sum(%rip)\nret");
void count(int);
int main(int n, char **v) { count(n); printf("%lx\n", (unsigned long)counts); return 0; }
"""

HOLES = r"""
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
extern char __executable_start, etext, edata, end;
static sigjmp_buf back;
static volatile long at, where;
static void handler(int signo, siginfo_t *info, void *uc)
{
    at = (long)info->si_addr;
    where = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(back, signo);
}
int main(void)
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    char *page = (char *)((long)&end + 0xafff & ~0xfffL), *places[] = {&etext + 0x100000, page, &edata, &__executable_start};
    sigaction(SIGSEGV, &a, NULL);
    for (int i = 0; i < 4; i++) {
        if (!sigsetjmp(back, 1)) ((void (*)(void))places[i])();
        printf("%d %d %d\n", i, at == (long)places[i], where == (long)places[i]);
    }
    return 7;
}
"""


# Cases that end the program stand in front of ones that go on: what is behind a call of exit is not reached from there, else
# nobody knew what the registers hold with which the switch goes round.
OPTIONS = r"""
#include <stdio.h>
#include <stdlib.h>
static volatile int verbose, small, level, keep;
__attribute__((noinline)) static void say(const char *s) { printf("%s %d\n", s, level); }
int main(int argc, char **argv)
{
    for (const char *c = argc > 1 ? argv[1] : "vk37vsV"; *c; c++)
        switch (*c) {
        case '1': level = 1; break;
        case '2': level = 2; break;
        case '3': level = 3; break;
        case '7': level = 7; break;
        case 'h': case 'L': say("help"); exit(0);
        case 'k': keep = 1; break;
        case 's': small = 1; break;
        case 'V': say("version"); exit(7);
        case 'v': verbose++; break;
        case 'z': level = 9; break;
        default: say("bad"); exit(2);
        }
    return 0;
}
"""

ADJACENT = r"""
#include <stdio.h>
#include <stdlib.h>
extern "C" void first(int);
extern "C" __attribute__((used)) void ends(int n) { printf("%d\n", n); exit(7); }
asm(R"(
    .text
    .globl first
    .type first,@function
first:
    .cfi_startproc
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    lea 3(%rdi,%rdi), %edi
    call second
    .cfi_endproc
    .size first, .-first
    .globl second
    .type second,@function
second:
    .cfi_startproc
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    add $5, %edi
    call ends
    .cfi_endproc
    .size second, .-second
)");
int main(int argc, char **argv) { first(argc); }
"""

# A part of it that lies elsewhere, without a symbol, dispatches through the same table, whose first entries are not its.
COLD_LABELS = r"""
#include <stdio.h>
int run(const unsigned char *what);
asm(R"(
    .macro dispatch
    movzbl (%rbx), %eax
    inc %rbx
    jmp *table(,%rax,8)
    .endm
    .text
    .globl run
    .type run,@function
run:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %rdi, %rbx
    mov $1, %ecx
    test %rdi, %rdi
    je .Lcold
.Lnext: dispatch
.Lmore: add $3, %ecx
    dispatch
.Ltimes: imul $5, %ecx, %ecx
    dispatch
.Lend: mov %ecx, %eax
    pop %rbx
    .cfi_remember_state
    .cfi_def_cfa_offset 8
    ret
    .cfi_restore_state
    .cfi_endproc
    .size run, .-run
    .section .text.unlikely,"ax",@progbits
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
.Lcold: mov $-1, %ecx
    jmp .Lend
.Lless: sub $7, %ecx
    jmp .Lnext
.Lxor: xor $0x55, %ecx
    dispatch
.Lnot: not %ecx
    jmp .Lnext
    .cfi_endproc
    .balign 16
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
.Lodd: lea 5(%rcx,%rcx), %ecx
    dispatch
    .cfi_endproc
    .section .rodata
    .balign 8
table: .quad .Lmore, .Ltimes, .Lend, .Lless, .Lxor, .Lnot, .Lodd
    .text
    .globl leaf
    .type leaf,@function
leaf:
    .cfi_startproc
    mov %edi, %r11d
.Lagain: mov %r11d, %eax
    and $7, %eax
    shr $3, %r11d
    jmp *leaves(,%rax,8)
.Lleaf: lea (%rsi,%r11), %eax
    ret
.Lhere: add $9, %esi
    jmp .Lagain
    .cfi_endproc
    .size leaf, .-leaf
    .section .text.unlikely,"ax",@progbits
    .balign 16
    .cfi_startproc
.Lthere: imul $3, %esi, %esi
    jmp .Lagain
    .cfi_endproc
    .section .rodata
    .balign 8
leaves: .quad .Lleaf, .Lhere, .Lthere, .Lhere, .Lthere, .Lhere, .Lthere, .Lhere
    .text
)");
int leaf(unsigned what, int from);
int main(void)
{
    for (unsigned i = 1; i < 3000; i++) {
        unsigned char what[8] = {2, 2, 2, 2, 2, 2, 2, 2};
        for (unsigned n = i, k = 0; n; n /= 7) what[k++] = n % 7;
        printf("%d %d\n", run(what), leaf(i, 5));
    }
    printf("%d\n", run(NULL));
    return 0;
}
"""

# What returns does so in pieces of its own: where an exception lands, and where a table leads.
PIECES = r"""
#include <cstdio>
extern "C" { void catcher(int); int chooser(unsigned); [[noreturn]] void thrower(int n) { throw n; } }
asm(R"(
    .text
    .globl catcher
    .type catcher,@function
catcher:
    .cfi_startproc
    .cfi_personality 0x9b,DW.ref.__gxx_personality_v0
    .cfi_lsda 0x1b,catcher_table
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
catcher_call:
    call thrower@PLT
catcher_behind:
    .cfi_endproc
    .size catcher, .-catcher
    .balign 16
    .type catcher_part,@function
catcher_part:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %rax, %rdi
    call __cxa_begin_catch@PLT
    call __cxa_end_catch@PLT
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size catcher_part, .-catcher_part
    .section .gcc_except_table,"a",@progbits
    .p2align 2
catcher_table:
    .byte 0x1b
1:  .long catcher - 1b
    .byte 0x9b
    .uleb128 4f - 3f
3:  .byte 1
    .uleb128 6f - 5f
5:  .uleb128 catcher_call - catcher, catcher_behind - catcher_call, catcher_part - catcher, 1
6:  .byte 1, 0
    .p2align 2
    .long 0
4:  .text
    .globl chooser
    .type chooser,@function
chooser:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    mov %edi, %ebx
.Lcut: cmp $2, %ebx
    jbe .Lchoose
    shr $1, %ebx
    jmp .Lcut
.Lchoose: lea ways(%rip), %rdx
    movslq (%rdx,%rbx,4), %rax
    add %rdx, %rax
    jmp *%rax
    .cfi_endproc
    .size chooser, .-chooser
    .balign 16
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
.Ltwice: lea 7(%rbx,%rbx), %eax
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .section .rodata
    .balign 4
ways: .long .Ltwice - ways, .Ltwice - ways, .Ltwice - ways
""" + PERSONALITY + r"""
int main()
{
    catcher(3);
    std::printf("%d\n", chooser(77));
}
"""

# Of which clang puts each block in a section of its own, with an exception table.
SECTIONS = r"""
#include <cstdio>
#include <stdexcept>
struct Says {
    int n;
    ~Says() { std::printf("ends %d\n", n); }
};
__attribute__((noinline)) void thrower(int n)
{
    if (n % 4 == 1) throw n;
    if (n % 4 == 2) throw std::runtime_error("two");
    if (n % 4 == 3) throw 1.5;
}
__attribute__((noinline)) int caught(int n)
{
    Says says{n};
    try {
        thrower(n);
        Says also{-n};
        thrower(n + 1);
    } catch (int i) {
        return i;
    } catch (const std::exception &e) {
        std::puts(e.what());
    }
    return -1;
}
int main()
{
    for (int i = 0; i < 8; i++) {
        try {
            std::printf("%d\n", caught(i));
        } catch (double d) {
            std::printf("%g\n", d);
        }
    }
}
"""

# Of two unwind entries of one procedure only that counts which the search table names.
STALE = r"""
#include <cstdio>
extern "C" {
__attribute__((noinline)) void thrower(int n) { throw n; }
__attribute__((noinline)) int catcher(int n)
{
    try {
        thrower(n);
    } catch (int i) {
        return i + 1;
    }
    return 0;
}
__attribute__((noinline)) int decoy(int n) /* longer, and catches nothing else */
{
    int sum = 0;
    try {
        for (int i = 0; i < n; i++) {
            std::printf("%d %d %d\n", i, sum, n);
            thrower(sum += i * i + n);
            std::puts("that was all");
        }
    } catch (const char *s) {
        std::puts(s);
    }
    return sum;
}
}
int main(int argc, char **)
{
    for (int i = 0; i < 5; i++) std::printf("%d\n", argc > 1 ? decoy(i) : catcher(i));
}
"""

# As glibc's printf dispatches: to an entry of a table, which several places read, or to a label itself.
LABELS = r"""
#include <stdio.h>
int run(const unsigned char *s, int keeps);
asm(R"(
    .macro choose
    movzbl (%rdi), %eax
    lea .Lnone(%rip), %rdx
    inc %rdi
    cmp $3, %al
    ja .Lgo
    lea table(%rip), %rcx
    movslq (%rcx,%rax,4), %rdx
    lea .Lnone(%rip), %rcx
    add %rcx, %rdx
    .endm
    .text
    .globl run
    .type run,@function
run:
    .cfi_startproc
    mov $1, %r8d
.Lfirst: choose
.Lgo: add %esi, %r8d
    jmp *%rdx
.Lmore: add $300, %r8d
    jmp .Lsecond
.Ltimes: imul $500, %r8d, %r8d
.Lsecond: choose
    jmp .Lgo
.Lnone: xor $0x12345, %r8d
    jmp .Lfirst
.Lend: mov %r8d, %eax
    shl $1, %eax
    ret
    .cfi_endproc
    .size run, .-run
    .section .rodata
    .balign 4
table: .long .Lmore - .Lnone, .Ltimes - .Lnone, .Lend - .Lnone, .Lmore - .Lnone
    .text
)");
int main(void)
{
    for (unsigned i = 1; i < 2000; i++) {
        unsigned char what[12] = {0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0};
        for (unsigned n = i, k = 0; n; n /= 5) what[k++] = n % 5;
        printf("%d\n", run(what, i & 3));
    }
    return 0;
}
"""

TWICE = r"""
#include <stdio.h>
#define PROC(name, first, again) ".type " #name ", @function\n" #name ":\n.cfi_startproc\n" \
    "cmp $3, %edi\nja 9f\nmov %edi, %edi\nlea 0(,%rdi,4), %rdx\nlea 8f(%rip), %" #first "\nmov (%rdx,%" #first ",1), %eax\ncltq\n" \
    "lea 8f(%rip), %rdx\nadd %rdx, %rax\nclc\njmp *%rax\n" \
    "0: stc\n1: cmc\n2: cmc\n3: cmc\n" again "9: setc %al\nmovzbl %al, %eax\nret\n" /* no room for jumps */ \
    ".cfi_endproc\n.size " #name ", . - " #name "\n.section .rodata\n.balign 4\n" \
    "8: .long 0b - 8b, 1b - 8b, 2b - 8b, 3b - 8b\n.text\n.balign 16\n"
asm(".text\n.balign 16\n" PROC(twice, rax, "") PROC(kept, rax, "mov %rdx, %rcx\n") PROC(kept_too, rcx, "mov %rcx, %rdx\n"));
int twice(unsigned n) asm("twice");
int kept(unsigned n) asm("kept"), kept_too(unsigned n) asm("kept_too"); /* their table's address goes elsewhere, too */
int main(void)
{
    for (unsigned n = 0; n < 5; n++) printf("%d %d %d\n", twice(n), kept(n), kept_too(n));
    return 0;
}
"""

SLOTS = r"""
#include <stdio.h>
#define PROC(name) ".type " #name ", @function\n" #name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ", . - " #name "\n"
#define SLOT(size, n) ".balign " #size "\nmov $" #n ", %eax\nret\n"
asm(".text\n"
    PROC(masked) "and $3, %edi\nlea 0f(%rip), %rcx\nshl $4, %edi\nadd %rcx, %rdi\njmp *%rdi\n"
    ".balign 16\n0:" SLOT(16, 10) SLOT(16, 11) SLOT(16, 12) SLOT(16, 13) END(masked)
    PROC(narrow) "cmp $3, %dil\nmovzbl %dil, %edx\nlea 0f(%rip), %rcx\nmov $20, %eax\nja 1f\n"
    "lea (%rcx,%rdx,8), %rdx\njmp *%rdx\n.balign 8\n"
    "0: ret\n.balign 8\ninc %eax\nret\n.balign 8\npush $22\npop %rax\nret\n.balign 8\ncall other\n1: ret\n" END(narrow)
    PROC(other) "mov $23, %eax\nret\n" END(other)
    PROC(summed) "mov %edi, %ecx\nlea 0f(%rip), %rdx\ncmp $2, %ecx\nlea (%rdx,%rcx,8), %rdx\nja 1f\njmp *%rdx\n"
    ".balign 8\n0:" SLOT(8, 30) SLOT(8, 31) SLOT(8, 32) "1: mov $39, %eax\nret\n" END(summed)
    PROC(thrice) "and $1, %edi\nshl $5, %edi\nlea (%rdi,%rdi,2), %eax\nlea 0f(%rip), %rcx\nadd %rax, %rcx\njmp *%rcx\n"
    ".balign 32\n0: mov $40, %eax\nret\n.fill 90, 1, 0x90\nmov $41, %eax\nret\n" END(thrice)
    PROC(unbound) "mov %edi, %edi\nlea 0f(%rip), %rcx\nlea (%rcx,%rdi,8), %rcx\njmp *%rcx\n"
    ".balign 8\n0:" SLOT(8, 50) SLOT(8, 51) SLOT(8, 52) SLOT(8, 53) END(unbound)
    PROC(changed) "cmp $1, %edi\nmov %esi, %edi\nlea 0f(%rip), %rcx\nja 1f\nlea (%rcx,%rdi,8), %rcx\njmp *%rcx\n"
    ".balign 8\n0:" SLOT(8, 60) SLOT(8, 61) SLOT(8, 62) "1: mov $69, %eax\nret\n" END(changed));
int masked(int), narrow(int), summed(int), thrice(int), unbound(int), changed(int, int);
int main(void)
{
    for (int i = 0; i < 4; i++)
        printf("%d %d %d %d %d %d\n", masked(i + 4), narrow(i), summed(i), thrice(i), unbound(i), changed(i, i % 3));
    return 0;
}
"""

# Short procedures that call the kernel, of which no unwind entry tells. Jumps to their new places hold whatever the
# distance is: in one of them, with what is left of the number, a number loaded in front of the call (b8 3 0 0 0).
SHORT_CALLS = r"""
#include <stdio.h>
extern int (*const calls[300])(void);
char room[0x30000];
asm(R"(
    .text
    .altmacro
    .macro one number
    .type call_\number,@function
    .balign 256
call_\number:
    mov $110, %rax
    syscall
    ret
    .size call_\number, .-call_\number
    .endm
    .macro name number
    .quad call_\number
    .endm
    .set i, 0
    .rept 300
    one %i
    .set i, i + 1
    .endr
    .section .data.rel.ro,"aw"
    .balign 8
    .globl calls
calls:
    .set i, 0
    .rept 300
    name %i
    .set i, i + 1
    .endr
    .text
)");
int main(void)
{
    int same = 0;
    for (int i = 0; i < 300; i++) same += calls[i]() == calls[0]();
    printf("%d %d\n", same, room[same]);
    return 0;
}
"""

# Calls at the end are jumps to sums of constants, of which there may be several; a label is such a sum, too.
LARGE = r"""
#include <stdio.h>
#include <stdlib.h>
extern int abs(int), getpagesize(void);
static int numbers[] = {5, 3, 9, 1, 7};
__attribute__((noinline)) int more(int a, int b) { return a * 3 + b; }
__attribute__((noinline)) int less(int a, int b) { return a - b * 5; }
__attribute__((noinline)) int one_of_two(int a, int b) { return a < b ? more(b, a) : less(a, b); }
__attribute__((noinline)) int elsewhere(int a) { return abs(a - 20); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) void sorted(int *list, size_t n) { qsort(list, n, sizeof *list, compare); }
__attribute__((noinline)) int page(void) { return getpagesize(); }
__attribute__((noinline)) int cases(int n)
{
    switch (n) {
    case 0: return more(n, 4);
    case 1: return less(n, 4);
    case 2: return abs(n) + 9;
    case 3: return n * 77;
    case 4: return elsewhere(n) + 1;
    case 5: return 5;
    case 6: return more(n, n);
    }
    return n + 11;
}
__attribute__((noinline)) int labels(int n)
{
    void *to = n & 1 ? &&odd : &&even;
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        goto *to;
    odd:
        sum += more(i, n);
        to = &&even;
        continue;
    even:
        sum -= less(n, i);
        to = n > 2 ? &&odd : &&even;
    }
    return sum;
}
__attribute__((noinline)) int spilled(int n)
{
    int a = more(n, 1), b = less(n, 2), c = more(a, b), d = less(b, c), e = more(c, d), f = less(d, e);
    if (a + b + c + d + e + f > n) return more(a ^ b ^ c, d ^ e ^ f);
    return less(a, f);
}
int main(void)
{
    sorted(numbers, 5);
    for (int i = 0; i < 5; i++)
        printf("%d %d %d %d %d\n", one_of_two(numbers[i], 4), elsewhere(numbers[i]), labels(i), spilled(numbers[i]), cases(i));
    return page() > 0 ? 7 : 1;
}
"""

# Code that the program changes: it is in a section to write to, or, where there are no sections, in such a segment.
CHANGED = r"""
#include <stdio.h>
int changed(void);
asm(".pushsection .changed,\"awx\",@progbits\n"
    ".type changed, @function\n"
    "changed: mov $1, %eax\n"
    "nop\n nop\n nop\n ret\n"
    ".size changed, .-changed\n"
    ".popsection");
int main(void)
{
    volatile unsigned char *code = (unsigned char *)changed;
    int before = changed();
    code[1] = 2;
    printf("%d %d\n", before, changed());
    return 0;
}
"""

BEHIND_CALLS = r"""
#include <stdio.h>
int told(void), summed(void), kept(int), stored(int), jumped(int), dropped(int);
asm(R"(
    .text
    .macro procedure name
    .p2align 4
    .globl \name
    .type \name,@function
\name:
    .endm
    .macro ends name
    .size \name, . - \name
    .endm
    procedure told
    call 1f
    .ascii "hello"
1:  pop %rax
    movzbl (%rax), %eax
    ret
    ends told
    procedure adds
    pop %rdx
    mov $3, %ecx
    xor %eax, %eax
2:  movzbl 1(%rdx,%rcx), %esi
    add %esi, %eax
    dec %ecx
    jns 2b
    add $5, %rdx
    push %rdx
    ret
    ends adds
    procedure summed
    call adds
    .byte 0x68, 1, 2, 3, 4              # push $0x4030201
    ret
    ends summed
    procedure keeps
    pop %r8
    lea 1(%rdi), %eax
    push %r8
    ret
    ends keeps
    procedure kept
    call keeps
    add $1, %eax
    ret
    ends kept
    procedure stores
    pop %rcx
    mov %rcx, back(%rip)
    lea 2(%rdi), %eax
    jmp *back(%rip)
    ends stores
    procedure stored
    call stores
    add $1, %eax
    ret
    ends stored
    procedure jumps
    pop %rcx
    lea 3(%rdi), %eax
    jmp *%rcx
    ends jumps
    procedure jumped
    call jumps
    add $1, %eax
    ret
    ends jumped
    procedure drops
    pop %rcx
    mov $4, %ecx
    lea (%rdi,%rcx), %eax
    ret
    ends drops
    procedure dropped
    call drops
    add $100, %eax
    ret
    ends dropped
    .local back
    .comm back, 8
)");
int main(void)
{
    for (int i = 0; i < 3; i++)
        printf("%d %d %d %d %d %d\n", told(), summed(), kept(i), stored(i), jumped(i), dropped(i));
    return 0;
}
"""

ASTRAY = r"""
#include <stdio.h>
asm(R"(
    .text
    .type below,@function
below:
    xor %eax, %eax
    .byte 0xe8
    .long -0x7ffffff0                   # call
    ret
    .size below, . - below
    .type above,@function
above:
    xor %eax, %eax
    .byte 0x0f, 0x84
    .long 0x7ffffff0                    # jz
    ret
    .size above, . - above
)");
int main(int argc, char **argv)
{
    printf("%d\n", argc);
    return 0;
}
"""

# Position-independent of itself: the file of a fixed program becomes one by a word of its header.
PLACED = r"""
    .globl _start
_start:
    lea text(%rip), %rsi
    mov $5, %edx
    mov $1, %edi
    mov $1, %eax
    syscall
    call ended
    .globl ended
    .type ended,@function
ended:
    mov $7, %edi
    mov $231, %eax
    syscall
    .size ended, . - ended
    .data
text: .ascii "here\n"
"""


class Test:
    def __init__(self, options, results):
        self.inlay, self.root = f"{options.build}/inlay", results.folder

    def folder(self, name, **files):
        self.here = driver.fresh(f"{self.root}/{name}")
        for file, text in files.items():
            with open(f"{self.here}/{file.replace('_dot_', '.')}", "w") as f:
                f.write(text)

    def build(self, *argv):
        done = driver.run([*argv[0].split(), "-w", *argv[1:]], LIMIT, cwd=self.here)
        if done.status:
            raise Failed(f"{' '.join(argv)}", *driver.as_lines(done.stderr)[-5:])

    def rewrite(self, tool, program="program", *options):
        out = ["-o", f"{program}.{tool}"] if "--with-libs" not in options else []
        done = driver.run([self.inlay, "rewrite", tool, program, *out, "--report", "report", *options], LIMIT,
                          cwd=self.here)
        if done.status:
            raise Failed(f"rewriting: status {done.status}", *driver.as_lines(done.stderr)[-5:])
        with open(f"{self.here}/report") as f:
            return {p["name"]: p for i in json.load(f)["images"] for p in i["list"]}

    def same(self, program, rewritten, *arguments):
        """What it reports, or None."""
        result = f"{self.here}/result"
        native = driver.run([f"./{program}", *arguments], LIMIT, cwd=self.here, env=driver.ENVIRONMENT)
        here = driver.run([f"./{rewritten}", *arguments], LIMIT, cwd=self.here,
                          env=driver.ENVIRONMENT | {"INLAY_OUT": result})
        told = driver.differences(native, here)
        if native.status not in (0, 7):
            told.append(f"natively {native}")
        if told:
            raise Failed(*told)
        if not os.path.exists(result):
            return None
        with open(result) as f:
            text = f.read()
        os.unlink(result)
        return text

    def both(self):
        for tool in ("null", "inscount"):
            report = self.rewrite(tool)
            if tool == "inscount" and not self.same("program", f"program.{tool}"):
                raise Failed("no report")
            self.same("program", f"program.{tool}")
        return report

    def pad_first(self):
        self.folder("pad-first", program_dot_cc=PAD_FIRST)
        self.build("g++ -O1 -fPIC", "program.cc", "-o", "program")
        procs = self.both()
        if procs["again_part"]["status"] != "moved":
            raise Failed(f"the part did not move: {procs['again_part']}")

    def boards(self):
        text, calls = ".text\n", []
        for distance in DISTANCES:
            for where, form in (("behind", BOARD_BEHIND), ("front", BOARD_IN_FRONT)):
                name = f"{where}_{distance}"
                text += SMALL.format(name=name, lead=200) + form.format(name=name, distance=distance)
                text += AFTER.format(name=name)
                calls += [f"small_{name}", f"room_{name}"]
        main = f"#include <stdio.h>\nint {'(), '.join(calls)}();\nint (*volatile all[])() = {{ {', '.join(calls)} }};\n" + \
            'int main(void) { for (int i = 0; i < sizeof all / sizeof *all; i++) printf("%d\\n", all[i]()); }\n'
        self.folder("boards", small_dot_s=text + STACK, main_dot_c=main)
        self.build("gcc -O1", "main.c", "small.s", "-o", "program")
        procs = self.both()
        seen = {"behind": set(), "front": set()}
        for where, (low, high) in (("behind", (5, 127)), ("front", (6, 128))):
            for d in DISTANCES:
                small, room = procs[f"small_{where}_{d}"], procs[f"room_{where}_{d}"]
                if room["status"] != "moved":
                    raise Failed(f"{room}")
                # From behind the short jump to the nearest five bytes that `room` has left.
                distance = abs(room["address"] + low - (small["address"] + 2))
                if (small["status"] == "moved") != (distance <= high):
                    raise Failed(f"{where}: a springboard {distance} bytes away, {small}")
                seen[where].add(distance)
        if not {127, 128} <= seen["behind"] or not {128, 129} <= seen["front"]:
            raise Failed(f"tried {seen}")

    def reentered(self):
        self.folder("reentered", small_dot_s=REENTERED + STACK, main_dot_c=REENTERED_MAIN, err_dot_c=ERR)
        self.build("gcc -O1 -shared -fPIC", "err.c", "-o", "liberr.so")
        self.build("gcc -O1", "main.c", "small.s", "-o", "program", "-L.", "-lerr", "-Wl,-rpath,$ORIGIN")
        procs = self.both()
        if procs["seems_to_end"]["status"] != "moved":
            raise Failed(f"{procs['seems_to_end']}")

    def over_calls(self):
        self.folder("over-calls", calls_dot_s=OVER_CALLS + STACK, main_dot_c=OVER_CALLS_MAIN)
        self.build("gcc -shared", "calls.s", "-o", "libcalls.so")
        self.build("gcc -O1", "main.c", "-o", "program", "-L.", "-lcalls", "-Wl,-rpath,$ORIGIN")
        self.rewrite("inscount", "program", "--log=inject")
        done = driver.run(["./program.inscount"], LIMIT, cwd=self.here,
                          env=driver.ENVIRONMENT | {"INLAY_OUT": "result"})
        sites = [line for line in driver.as_lines(done.stderr) if "libcalls.so: system call" in line]
        if done.status != 7 or not os.path.exists(f"{self.here}/result"):
            raise Failed(f"status {done.status}, report: {os.path.exists(f'{self.here}/result')}")
        if len(sites) != 1:
            raise Failed(f"not one system call is redirected in the library, but {len(sites)}", *sites)

    def search_path(self):
        for flag in ("--enable-new-dtags", "--disable-new-dtags"):
            self.folder(f"search-path{flag}", plug_dot_c=PLUGIN.replace("{value}", "42"), program_dot_c=OPENS +
                        'int main(int n, char **v) { printf("%d %d\\n", open_it("libplug.so"), of_library()); }\n',
                        library_dot_c=OPENS + 'int of_library(void) { return open_it("libother.so"); }\n')
            for folder, name in (("far", "plug"), ("farther", "other")):
                os.makedirs(f"{self.here}/{folder}")
                self.build("gcc -shared -fPIC", "plug.c", "-o", f"{folder}/lib{name}.so")
            self.build("gcc -shared -fPIC -Wl,-soname,liblibrary.so", "library.c", "-o", "far/liblibrary.so",
                       f"-Wl,{flag},-rpath,{self.here}/farther")
            self.build("gcc", "program.c", "-o", "program", "-Lfar", "-llibrary",
                       f"-Wl,{flag},-rpath,{self.here}/far")
            for tool in ("null", "inscount"):
                self.rewrite(tool, "program", "--with-libs", f"libs-{tool}")
                self.same("program", f"libs-{tool}/program")

    def aligned(self):
        self.folder("aligned", program_dot_c=ALIGNED)
        self.build("gcc -O1 -pie -Wl,-z,max-page-size=0x200000", "program.c", "-o", "program")
        self.rewrite("memtrace", "program", "--image=program")
        at = driver.run(["setarch", "-R", "./program"], LIMIT, cwd=self.here).stdout.decode().strip()
        driver.run(["./program.memtrace"], LIMIT, cwd=self.here, env=driver.ENVIRONMENT | {"INLAY_OUT": "result"})
        with open(f"{self.here}/result", encoding="ascii") as f:
            if not any(line.startswith(f"{at} ") for line in f):
                raise Failed(f"nothing was done at {at}")

    def holes(self):
        self.folder("holes", program_dot_c=HOLES)
        self.build("gcc -O1 -no-pie -Wl,-z,max-page-size=0x200000,-z,separate-code", "program.c", "-o", "program")
        self.both()

    def options(self):
        for flags in ("gcc -O2 -fno-guess-branch-probability", "gcc -Os -fno-guess-branch-probability", "clang -O2"):
            self.folder("options", program_dot_c=OPTIONS)
            self.build(flags, "program.c", "-o", "program")
            main = self.both()["main"]
            if main["status"] != "moved":
                raise Failed(f"{flags}: {main}")
            self.ends_there()

    def ends_there(self):
        """No block follows a call of exit."""
        code = driver.run(["objdump", "-d", "--no-show-raw-insn", "program"], LIMIT, cwd=self.here).stdout.decode()
        behind = re.findall(r"call .*<exit@plt>\n +(\w+):", code)
        blocks = driver.run([self.inlay, "info", "--blocks", "program"], LIMIT, cwd=self.here).stdout.decode()
        followed = [at for at in behind if re.search(rf"returned {at}\b", blocks)]
        if not behind or followed:
            raise Failed(f"{len(behind)} calls of exit, of which return: {followed}")

    def appended(self):
        self.folder("appended", program_dot_c=APPENDED)
        for flags in ("gcc -O1", "gcc -O1 -static -s"):
            self.build(flags, "program.c", "-o", "program")
            with open(f"{self.here}/program", "ab") as f:
                f.write(struct.pack("30sQQ", b"what the program brings along", f.tell(), 30))
            self.both()

    def skipped(self):
        self.folder("skipped", program_dot_c=SKIPPED)
        for flags in ("gcc -O0", "gcc -O2 -no-pie", "gcc -O2 -static-pie"):
            self.build(flags, "program.c", "-o", "program")
            procs = self.both()
            if {procs[name]["status"] for name in ("plain", "loops")} != {"moved"}:
                raise Failed(f"{flags}: {procs['plain']} {procs['loops']}")

    def adjacent(self):
        for flags in ("g++ -O1", "g++ -O1 -s"):
            self.folder("adjacent", program_dot_cc=ADJACENT)
            self.build(flags, "program.cc", "-o", "program")
            stayed = [p["reason"] for p in self.both().values() if "its own address" in p.get("reason", "")]
            if stayed:
                raise Failed(f"{flags}: {stayed}")

    def cold_labels(self):
        self.folder("cold-labels", program_dot_c=COLD_LABELS)
        self.build("gcc -O1 -no-pie -fno-pie -s", "program.c", "-o", "program")
        if any(p["status"] != "moved" for p in self.both().values()):
            raise Failed("something was left alone")

    def pieces(self):
        self.folder("pieces", program_dot_cc=PIECES)
        self.build("g++ -O1", "program.cc", "-o", "program")
        self.both()
        said = driver.run([self.inlay, "info", "--blocks", "--proc", "main", "program"], LIMIT, cwd=self.here).stdout.decode()
        if said.count("returned") != 3 or "no return" in said:
            raise Failed("a call in main is taken not to return", said)

    def sections(self):
        self.folder("sections", program_dot_cc=SECTIONS)
        for level in "-O0", "-O2":
            self.build(f"clang++ {level} -fbasic-block-sections=all", "program.cc", "-o", "program")
            stayed = {name: p for name, p in self.both().items() if p["status"] != "moved"}
            if stayed:
                raise Failed(f"{level}: {stayed}")

    def stale(self):
        self.folder("stale", program_dot_cc=STALE)
        self.build("g++ -O1", "program.cc", "-o", "program")
        names = driver.run(["nm", "program"], LIMIT, cwd=self.here).stdout.decode()
        catcher, decoy = (int(re.search(rf"(\w+) T {name}\n", names)[1], 16) for name in ("catcher", "decoy"))
        frames = driver.run(["readelf", "-W", "-S", "--debug-dump=frames", "program"], LIMIT, cwd=self.here).stdout.decode()
        begins = int(re.search(r" \.eh_frame +\w+ +\w+ (\w+)", frames)[1], 16)
        entry = int(re.search(rf"(\w+) \w+ \w+ FDE cie=\w+ pc={decoy:016x}", frames)[1], 16)
        with open(f"{self.here}/program", "r+b") as f:
            f.seek(begins + entry + 8)
            (at,) = struct.unpack("<i", f.read(4))
            f.seek(begins + entry + 8)
            f.write(struct.pack("<i", at + catcher - decoy))
        if self.both()["catcher"]["status"] != "moved":
            raise Failed("left alone")

    def labels(self):
        self.folder("labels", program_dot_c=LABELS)
        self.build("gcc -O1 -fPIE -pie", "program.c", "-o", "program")
        run = self.both()["run"]
        if run["status"] != "moved":
            raise Failed(f"left alone: {run}")
        said = driver.run([self.inlay, "info", "--format=json", "--blocks", "--proc", "run", "program"], LIMIT, cwd=self.here)
        ways = [len(b["edges"]) for p in json.loads(said.stdout)["matching"] for b in p["blocks"]]
        if max(ways) != 4:
            raise Failed("the label is no target of the jump", *map(str, ways))

    def short_calls(self):
        self.folder("short-calls", program_dot_c=SHORT_CALLS)
        self.build("gcc -O1 -no-pie -fno-pie", "program.c", "-o", "program")
        self.both()

    def slots(self):
        self.folder("slots", program_dot_c=SLOTS)
        self.build("gcc -O1", "program.c", "-o", "program")
        procs = self.both()
        moved = {p for p in ("masked", "narrow", "summed", "thrice", "unbound", "changed") if procs[p]["status"] == "moved"}
        if moved != {"masked", "narrow", "summed", "thrice"}:
            raise Failed(f"moved: {moved}")

    def twice(self):
        self.folder("twice", program_dot_c=TWICE)
        self.build("gcc -O1", "program.c", "-o", "program")
        procs = self.both()
        moved = {p for p in ("twice", "kept", "kept_too") if procs[p]["status"] == "moved"}
        if moved != {"twice"}:
            raise Failed(f"moved: {moved}")

    def large(self):
        self.folder("large", program_dot_c=LARGE)
        for flags in ("gcc -O2 -fno-ipa-ra", "gcc -O0", "clang -O2", "gcc -O1 -fno-ipa-ra -static-pie"):
            self.build(f"{flags} -mcmodel=large -fPIE", "program.c", "-o", "program")
            procs = self.both()
            stayed = [p for p in ("more", "less", "one_of_two", "elsewhere", "page", "sorted", "cases", "labels", "spilled", "main")
                      if procs[p]["status"] != "moved"]
            if stayed:
                raise Failed(f"{flags}: {', '.join(f'{p}: {procs[p]}' for p in stayed)}")

    def behind_calls(self):
        self.folder("behind-calls", program_dot_c=BEHIND_CALLS)
        self.build("gcc -O1", "program.c", "-o", "program")
        procs = self.both()
        stayed = {p for p in procs if "for one of data" in procs[p].get("reason", "")}
        moved = {p for p in ("kept", "stored", "jumped", "dropped", "main") if procs[p]["status"] == "moved"}
        if stayed != {"told", "summed"} or len(moved) != 5:
            raise Failed(f"left alone: {stayed}; moved: {moved}")

    def astray(self):
        self.folder("astray", program_dot_c=ASTRAY)
        self.build("gcc -O1", "program.c", "-o", "program")
        procs = self.both()
        if {"far outside" in procs[name].get("reason", "") for name in ("below", "above")} != {True}:
            raise Failed(f"{procs['below']} {procs['above']}")
        self.live(driver.run(["./program"], LIMIT, cwd=self.here))

    def live(self, native, engine="live"):
        here = driver.run([self.inlay, "run", f"--engine={engine}", "inscount", "-o", "result", "--", "./program"], LIMIT, cwd=self.here)
        told = driver.differences(native, here)
        if told or not os.path.getsize(f"{self.here}/result"):
            raise Failed(engine, *told)

    def placed(self):
        self.folder("placed", program_dot_s=PLACED)
        self.build("gcc -nostdlib -static", "program.s", "-o", "program")
        with open(f"{self.here}/program", "r+b") as f:
            f.seek(16)
            f.write(struct.pack("<H", 3))  # e_type: ET_DYN
        native = driver.run(["./program"], LIMIT, cwd=self.here)
        for engine in "jit", "live":
            self.live(native, engine)
        refused = driver.run([self.inlay, "rewrite", "inscount", "program", "-o", "rewritten"], LIMIT, cwd=self.here)
        if refused.status != 1 or b"no dynamic section" not in refused.stderr or os.path.exists(f"{self.here}/rewritten"):
            raise Failed(f"{refused}")

    def packed(self):
        self.folder("packed", program_dot_c=PACKED)
        for flags in ("", "-no-pie", "-static-pie"):
            try:
                self.build(f"gcc -O2 -Wl,-z,pack-relative-relocs {flags}", "program.c", "-o", "program")
            except Failed:
                return
            self.both()

    def changed(self):
        self.folder("changed", program_dot_c=CHANGED)
        self.build("gcc -O1 -no-pie -Wl,--no-warn-rwx-segments", "program.c", "-o", "program")
        if self.both()["changed"]["status"] == "moved":
            raise Failed("it has moved")
        with open(f"{self.here}/program", "r+b") as f:
            for at, size in (40, 8), (60, 4):  # e_shoff; e_shnum, e_shstrndx
                f.seek(at)
                f.write(bytes(size))
        self.both()


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("corners", options) as results:
        if not shutil.which("g++"):
            results.skip("all", "there is no g++")
            return 0
        test = Test(options, results)
        for name in ("pad-first", "boards", "reentered", "over-calls", "search-path", "aligned", "holes", "options", "packed", "changed",
                     "appended", "skipped", "adjacent", "cold-labels", "pieces", "sections", "stale", "labels", "short-calls", "slots", "twice",
                     "behind-calls", "astray", "placed", "large"):
            results.check(name, getattr(test, name.replace("-", "_")))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
