#!/usr/bin/python3
"""Jumps, calls and returns that go through thunks (retpolines), as compilers make them and as they are written by hand:
rewritten, programs behave as before, and what goes through thunks is found: each instruction is counted. What enters a
procedure leaves it, under each engine, and where it returns is known though it jumps.

  tests/rewrite/thunks.py [--build DIR] [--only CASE] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60

# Computed gotos by offsets and by addresses, a switch, calls and tail calls through pointers, a comparison that the C
# library calls.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
typedef unsigned u;
#define LABELS N; l0: s += 3; N; l1: s *= 7; N; l2: s ^= s >> 3; N; l3: if (--loops) { p -= 5; N; } N; l4: s -= *p++; N; l5: return s;
__attribute__((noinline)) static u offsets(const unsigned char *p, u s)
{
    static const int t[] = {&&l0 - &&l0, &&l1 - &&l0, &&l2 - &&l0, &&l3 - &&l0, &&l4 - &&l0, &&l5 - &&l0};
    int loops = 20;
#define N goto *(&&l0 + t[*p++])
    LABELS
#undef N
}
__attribute__((noinline)) static u labels(const unsigned char *p, u s)
{
    static const void *const t[] = {&&l0, &&l1, &&l2, &&l3, &&l4, &&l5};
    int loops = 20;
#define N goto *t[*p++]
    LABELS
}
__attribute__((noinline)) static u cases(u k, u s)
{
    switch (k) {
    case 0: return s + 1;
    case 1: s *= 5;
    case 2: s ^= 9; break;
    case 3: return s / 3;
    case 4: s -= 7; break;
    case 5: s = ~s; break;
    case 6: s <<= 3; break;
    case 7: return labels((const unsigned char *)"\0\1\5", s);
    }
    return s ^ k;
}
static u f1(u a) { return a + 1; }
static u f2(u a) { return a * 3; }
static u f3(u a) { return a ^ 55; }
static u (*volatile fs[])(u) = {f1, f2, f3};
__attribute__((noinline)) static u tail(u i, u a) { return fs[i % 3](a); }
__attribute__((noinline)) static u twice(u i, u a) { return fs[i % 3](a) + fs[a % 3](i); }
static int compare(const void *a, const void *b) { u x = *(u *)a, y = *(u *)b; return x < y ? -1 : x > y; }
int main(int c, char **v)
{
    const unsigned char code[] = {0, 1, 2, 0, 3, 4, 9, 1, 5};
    u s = c, a[50];
    for (int i = 0; i < 50; i++) { s += cases(i % 11, s); s ^= tail(i, s); s += twice(i, s); a[i] = s; }
    qsort(a, 50, 4, compare);
    printf("%u %u %u %u\n", s, offsets(code, s), labels(code, s), a[25]);
    return s & 63;
}
"""
# What a linker is to bring along itself.
EXTERN = """
    .text
    .irp reg,rax,rbx,rcx,rdx,rsi,rdi,rbp,r8,r9,r10,r11,r12,r13,r14,r15
    .globl __x86_indirect_thunk_\\reg
    .type __x86_indirect_thunk_\\reg,@function
__x86_indirect_thunk_\\reg:
%s
    .size __x86_indirect_thunk_\\reg,.-__x86_indirect_thunk_\\reg
    .endr
    .globl __x86_return_thunk
    .type __x86_return_thunk,@function
__x86_return_thunk:
    call 1f
    int3
1:  add $8,%%rsp
    ret
    .section .note.GNU-stack,"",@progbits
"""
FENCED = "    lfence\n    jmp *%\\reg\n    int3"
PUSHED = "    push %\\reg\n    ret"
STORED = "    sub $8,%rsp\n    mov %\\reg,(%rsp)\n    ret"

# Procedures that run on into the one behind: by their last instruction, or where a jump there is not taken, with padding
# between or without.
RUN_ON = """
    .macro begin name
    .globl \\name
    .type \\name,@function
\\name:
    .endm
    .macro ends name
    .size \\name,.-\\name
    .endm
    .text
    .p2align 6
    begin padded_branch
    cmp $700,%rdi
    jb refuse
    ends padded_branch
    .p2align 6
    begin behind_padded_branch
    sub $600,%rdi
    ret
    ends behind_padded_branch
    begin padded_step
    lea 1(%rdi),%rdi
    ends padded_step
    .p2align 5
    begin behind_padded_step
    ret
    ends behind_padded_step
    begin branch
    test $1,%dil
    jnz refuse
    ends branch
    begin behind_branch
    inc %rdi
    ret
    ends behind_branch
    begin refuse
    add $7,%rdi
    ret
    ends refuse
    begin first_of_all
    push %rdi
    push %rsi
    mov $1000,%esi
    mov $1,%edi
1:  call padded_branch
    call padded_step
    call branch
    dec %esi
    jnz 1b
    pop %rsi
    pop %rdi
    ret
    ends first_of_all
    .section .init_array,"aw",@init_array
    .quad first_of_all
    .section .note.GNU-stack,"",@progbits
"""

# How often each procedure is entered, is left, and returns.
WAYS = r"""
#include <inlay.h>
typedef struct way { struct way *next; const char *name; inlay_counter in, out, back; } way;
static struct { way *first; } *ways;
static void each(inlay_proc *p, void *arg)
{
    way *w = inlay_alloc(sizeof *w);
    *w = (way){.next = ways->first, .name = inlay_proc_name(p)};
    ways->first = w;
    inlay_insert(inlay_proc_entry(p), inlay_count(&w->in, 1));
    inlay_insert(inlay_proc_exit(p), inlay_count(&w->out, 1));
    inlay_insert(inlay_proc_return(p), inlay_count(&w->back, 1));
}
static void last(int status, void *arg)
{
    for (way *w = ways->first; w; w = w->next)
        fprintf(inlay_out(), "%s %lu %lu %lu\n", w->name, inlay_counter_sum(&w->in), inlay_counter_sum(&w->out),
                inlay_counter_sum(&w->back));
}
int main(int n, char **v)
{
    inlay_init(&n, &v, "ways in and out");
    ways = inlay_alloc(sizeof *ways);
    inlay_on_proc(each, NULL);
    inlay_on_exit(last, NULL);
    return inlay_start();
}
"""
# What the C run time brings along.
NOT_OURS = re.compile(r"main|_.*|.*_clones|frame_dummy|sub_.*|.*@plt")

GCC = "gcc -O2 -fjump-tables -fcf-protection=none"
BARE = "-s -fno-asynchronous-unwind-tables"
# How each is made; the thunks, if they are not the compiler's, or other procedures; whether all of it is to move.
CASES = {
    "gcc": (f"{GCC} -mindirect-branch=thunk -mfunction-return=thunk", None, True),
    "gcc, in line": (f"{GCC} -mindirect-branch=thunk-inline -mfunction-return=thunk-inline", None, True),
    "gcc, without unwind tables": (f"{GCC} -O3 {BARE} -mindirect-branch=thunk -mfunction-return=thunk", None, True),
    "gcc, in line, at a fixed place": (f"{GCC} -no-pie -fno-pie -mindirect-branch=thunk-inline", None, False),
    "fenced jumps": (f"{GCC} -mindirect-branch=thunk-extern -mfunction-return=thunk-extern", FENCED, True),
    "pushed, then returned to": (f"{GCC} -mindirect-branch=thunk-extern -mindirect-branch-register", PUSHED, True),
    "stored, then returned to": (f"{GCC} -mindirect-branch=thunk-extern -mfunction-return=thunk-extern", STORED, True),
    "run on into": (GCC, RUN_ON, True),
    "clang": ("clang -O2 -mretpoline -fuse-ld=lld -Wl,-z,retpolineplt,-z,now", None, True),
    "clang, loads hardened": ("clang -O2 -mspeculative-load-hardening", None, False),
}


def must(argv, folder):
    done = driver.run(argv, LIMIT, cwd=folder)
    if done.status:
        raise Failed(f"{' '.join(argv[:3])}: {done.status}", *driver.as_lines(done.stderr)[-6:])


class Case:
    def __init__(self, build, folder, number, name):
        self.inlay, self.folder = f"{build}/inlay", driver.fresh(f"{folder}/{number}")
        flags, thunks, self.whole = CASES[name]
        with open(f"{self.folder}/program.c", "w") as f:
            f.write(PROGRAM)
        sources = ["program.c"]
        if thunks:
            with open(f"{self.folder}/thunks.s", "w") as f:
                f.write(thunks if thunks == RUN_ON else EXTERN % thunks)
            sources.append("thunks.s")
        must([*flags.split(), "-w", *sources, "-o", "program"], self.folder)

    def count(self, path):
        with open(path) as f:
            found = re.match(r"program: (\d+) instructions", f.read())
        if not found:
            raise Failed(f"no count in {path}")
        return int(found[1])

    def check(self):
        program, made = f"{self.folder}/program", f"{self.folder}/out"
        results = [f"{self.folder}/{name}" for name in ("rewritten", "translated")]
        driver.rewrite(self.inlay, ["inscount", "--image", "program", program, "-o", made], LIMIT)
        natively = driver.run([program], LIMIT, cwd=self.folder)
        environment = driver.ENVIRONMENT | {"INLAY_OUT": results[0]}
        told = driver.differences(natively, driver.run([made], LIMIT, cwd=self.folder, env=environment))
        if told:
            raise Failed(*told)
        must_be = driver.run([self.inlay, "run", "inscount", "--image", "program", "-o", results[1], "--", program],
                             LIMIT, cwd=self.folder)
        if must_be.status != natively.status:
            raise Failed(f"translated, it ends with {must_be.status}")
        counts = [self.count(path) for path in results]
        if counts[0] > counts[1] or (self.whole and counts[0] != counts[1]):
            raise Failed(f"{counts[0]} instructions are counted in the rewritten program, {counts[1]} in the other")

    def ways(self, folder):
        program, tool = f"{self.folder}/program", f"{folder}/ways"
        if not os.path.exists(tool):
            with open(f"{tool}.c", "w") as f:
                f.write(WAYS)
            must([self.inlay, "cc", "-w", f"{tool}.c", "-o", tool], folder)
        found = {}
        for engine in ("jit", "live", "rewrite"):
            told = f"{self.folder}/{engine}"
            if engine == "rewrite":
                driver.rewrite(self.inlay, [tool, "--image", "program", program, "-o", f"{told}.out"], LIMIT)
                driver.run([f"{told}.out"], LIMIT, cwd=self.folder, env=driver.ENVIRONMENT | {"INLAY_OUT": told})
            else:
                run = [self.inlay, "run", f"--engine={engine}", tool, "--image", "program", "-o", told, "--", program]
                driver.run(run, LIMIT, cwd=self.folder)
            with open(told) as f:
                rows = [line.split() for line in f]
            found[engine] = {row[0]: [int(n) for n in row[1:]] for row in rows if row[1] != "0"}
        for name, (entered, left, returned) in found["jit"].items():
            if not NOT_OURS.fullmatch(name) and entered != left:
                raise Failed(f"{name} is entered {entered} times, and left {left}")
            returns = not NOT_OURS.fullmatch(name) and not re.search("cold|thunk|tail|retpoline|branch|padded", name)
            if returns and returned == 0:
                raise Failed(f"{name} is entered {entered} times, and never returns")
        for engine in ("live", "rewrite"):
            for name, counts in found[engine].items():
                if counts != found["jit"].get(name) and not re.match("_|.*_clones|frame_dummy", name):
                    raise Failed(f"{name}: {counts} under {engine}, {found['jit'].get(name)} under jit")
        if len(found["rewrite"]) < 8 or len(found["live"]) < 8:
            raise Failed("too few procedures are counted", repr(found))


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("thunks", options) as results:
        for number, name in enumerate(CASES):
            if driver.chosen(name, options):
                results.check(name, lambda n=number, c=name: Case(options.build, results.folder, n, c).check())
            if BARE in CASES[name][0]:  # nameless
                continue
            if driver.chosen(f"{name}, ways", options):
                results.check(f"{name}, ways",
                              lambda n=number, c=name: Case(options.build, results.folder, n, c).ways(results.folder))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
