#!/usr/bin/python3
"""Edges, loops, calls that come back and the order of insertions (inlay/loop.h, inlay_insert_first): edges_tool.c counts
them in programs of the distribution under each engine. What leaves a block has entered it, and the engines agree
where the program does the same each time.

  tests/cli/edges.py [--build DIR] [--only PATTERN] [--keep]
"""

import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 240
TEXT = "".join(f"line {n} of {n % 7} and {n * n}\n" for n in range(3000))
PROGRAMS = {
    "sort": ["/usr/bin/sort", "-k3n", "-S8M"],  # else its buffer hangs on the memory that is free
    "sed": ["/usr/bin/sed", "-E", r"s/([0-9]+) of/<\1>/; /9$/d"],
    "grep": ["/usr/bin/grep", "-c", "1.*2"],
    "gzip": ["/usr/bin/gzip", "-c", "-n"],
    "bc": ["/usr/bin/bc", "-q"],
    "bash": ["/usr/bin/bash", "-c", "while read a b c; do ((n += b)); done; echo $n"],
    "perl": ["/usr/bin/perl", "-ne", "$n += length; END {print $n}"],
    "tails": [],
}
# Ways on that lead to another procedure: two of a jump table's, and one where a branch is not taken.
TAILS = r"""
#include <stdio.h>
#define PROC(name, code) \
    __asm__(".text; .globl " name "; .type " name ", @function; " name ": .cfi_startproc; " code "; .cfi_endproc; .size " name ", . - " name)
PROC("pick", "cmp $3, %edi; ja 2f; mov %edi, %edi; lea table(%rip), %rdx; movslq (%rdx, %rdi, 4), %rax; add %rdx, %rax;"
             "jmp *%rax; seven: mov $7, %eax; ret; one: 2: lea 1(%rdi), %eax; ret");
PROC("more", "lea 3(%rdi), %eax; add $2, %eax; ret");
PROC("falls", "xor %eax, %eax; 1: inc %eax; cmp %edi, %eax; jb 1b");
PROC("next", "add $3, %eax; ret");
PROC("tries", "xbegin 1f; xend; xor %eax, %eax; ret; 1: ret"); /* nobody calls it */
__asm__(".section .rodata; .balign 4; table: .long seven - table, one - table, more - table, more - table; .text");
int pick(unsigned), more(int), falls(int);
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 600; i++) sum = sum * 3 + pick(i % 5) + falls(i % 4) + more(i);
    printf("%d\n", sum);
    return 0;
}
"""
QUICK = "sort,sed,tails"
SAME = ("sort", "sed", "bc", "tails")  # the others look at their names, environment, addresses, or come back by longjmp


def check(name, argv, native, report, data, env=driver.ENVIRONMENT):
    done = driver.run(argv, LIMIT, env=env, stdin=data)
    if (done.status, done.stdout) != (native.status, native.stdout):
        raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[:4])
    if b"cannot insert" in done.stderr:
        raise Failed("a point that is none", *driver.as_lines(done.stderr)[:4])
    with open(report, encoding="utf-8") as f:
        found = json.load(f)
    if found["wrong"] or found["disorder"] or not found["loops"] or not found["turns"] or not found["returns"] or not found["dominators"]:
        raise Failed(repr(found), *driver.as_lines(done.stderr)[:4])
    if name in SAME and found["left_too_often"]:
        raise Failed("loops are left more often than they are entered", *driver.as_lines(done.stderr)[:4])
    return found


def made(folder):
    with open(f"{folder}/made.c", "w", encoding="ascii") as f:
        f.write(TAILS)
    done = driver.run(["gcc", "-O1", f"{folder}/made.c", "-o", f"{folder}/made"], LIMIT)
    if done.status:
        raise Failed(*driver.as_lines(done.stderr)[-6:])
    return f"{folder}/made"


def program(inlay, tool, folder, name):
    command, report = PROGRAMS[name] or [made(folder)], f"{folder}/{name}.json"
    data = f"{folder}/{name}.in"
    with open(data, "w", encoding="utf-8") as f:
        f.write("".join(f"{n}*{n}+3\n" for n in range(500)) if name == "bc" else TEXT)
    native = driver.run(command, LIMIT, env=driver.ENVIRONMENT, stdin=data)
    jit = check(name, [inlay, "run", tool, "-o", report, "--", *command], native, report, data)
    live = check(name, [inlay, "run", "--engine=live", tool, "-o", report, "--", *command], native, report, data)
    driver.rewrite(inlay, [tool, command[0], "-o", f"{folder}/{name}"], LIMIT)
    environment = driver.ENVIRONMENT | {"INLAY_OUT": report}
    written = check(name, [f"{folder}/{name}", *command[1:]], native, report, data, environment)
    if name in SAME and not jit == live == written:
        raise Failed("the engines do not agree", f"jit {jit}", f"live {live}", f"rewrite {written}")


def main():
    options = driver.parser(__doc__, only=QUICK).parse_args()
    inlay = f"{options.build}/inlay"
    with driver.Results("edges", options) as results:
        tool = f"{results.folder}/edges_tool"
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/edges_tool.c", "-o", tool], LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        for name in PROGRAMS:
            if driver.chosen(name, options) and (not PROGRAMS[name] or os.path.exists(PROGRAMS[name][0])):
                results.check(name, lambda n=name: program(inlay, tool, results.folder, n))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
