#!/usr/bin/python3
"""Programs of a few lines that do what hardly any compiler's output does: rewritten, they behave as before.

  tests/rewrite/odd.py [--build DIR] [--only CASE] [--keep]
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60

# Calls that seem not to return do: into a block that is known, through padding to one, through padding to the
# next procedure, into code that nothing else leads to and that goes back to what is known.
RETURNS_LIB = "int err(void) { return 1; } int errx(void) { return 2; } int verr(void) { return 3; }\n"
RETURNS = r"""
    .text
    .globl main
    .type main,@function
main:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    cmp $9, %edi
    je 1f
    cmp $8, %edi
    je 3f
    call err@PLT
1:  lea first(%rip), %rdi
    call puts@PLT
    call errx@PLT
    .p2align 4
2:  lea second(%rip), %rdi
    call puts@PLT
    cmp $7, %edi
    je 2b
    call verr@PLT
    mov $4, %ebx
    jmp 4f
3:  mov $0, %ebx
    .byte 0x66, 0x90
4:  lea third(%rip), %rdi
    call puts@PLT
    call last
    mov %ebx, %eax
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size main, .-main
    .p2align 4
    .type last,@function
last:
    .cfi_startproc
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    call err@PLT
    .cfi_endproc
    .size last, .-last
    .p2align 4
    .type behind,@function
behind:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    lea fourth(%rip), %rdi
    call puts@PLT
    add $8, %rsp
    ret
    .cfi_endproc
    .size behind, .-behind
    .section .rodata
first: .string "first"
second: .string "second"
third: .string "third"
fourth: .string "fourth"
    .section .note.GNU-stack,"",@progbits
"""

# An address in the code that is relocated when the program is loaded.
TEXT_RELOCATION = r"""
    .text
    .globl main
    .type main,@function
main:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset 3, -16
    call relocated
    mov %rax, %rdi
    call puts@PLT
    xor %eax, %eax
    pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size main, .-main
    .type relocated,@function
relocated:
    .cfi_startproc
    movabs $text, %rax
    ret
    .cfi_endproc
    .size relocated, .-relocated
    .data
text: .string "relocated"
    .section .note.GNU-stack,"",@progbits
"""

THROWS = r"""
#include <cstdio>
#include <string>
__attribute__((noinline)) int risky(int n) { if (n > 3) throw n; return n; }
struct noisy { std::string s; ~noisy() { std::puts(s.c_str()); } };
__attribute__((noinline)) int passes(int n) { noisy a{std::string(30, 'a' + n)}; return risky(n) + (int)a.s.size(); }
__attribute__((noinline)) int catches(int n) {
    noisy b{std::string(40, 'k' + n)};
    try { return passes(n); } catch (int e) { std::printf("caught %d\n", e); return e; }
}
int main() { int n = 0; for (int i = 0; i < 7; i++) n += catches(i); return n; }
"""


# Words of data that look like addresses: the end of a text leads into an instruction of a procedure that only later
# words lead to. Without names and unwind tables nothing else tells where that begins.
LIKE_ADDRESS = r"""
    .section .note.GNU-stack,"",@progbits
    .text
    .globl _start
_start:
    xor %ebx, %ebx
1:  mov table(,%rbx,8), %rax
    mov %ebx, %edi
    call *%rax
    add %eax, total(%rip)
    inc %ebx
    cmp $3, %ebx
    jne 1b
    mov total(%rip), %edi
    mov $231, %eax
    syscall
    hlt
    .p2align 4, 0
first:
    lea 5(%rdi), %eax
    ret
    .p2align 4, 0
second:
    push %rbx
    push %r12
    lea -8(%rsp), %rsp
inside = . - 3
    mov %edi, %ebx
    xor %r12d, %r12d
    lea 9(%rbx), %eax
    lea 8(%rsp), %rsp
    pop %r12
    pop %rbx
    ret
    .p2align 4, 0
third:
    lea 11(%rdi,%rdi), %eax
    ret
    .data
    .p2align 3
    .quad inside
table:
    .quad first, second, third
total:
    .long 0
"""


def odd_sites(text):
    """Call sites out of order at the end of each exception table: harmless, and not understood."""
    return re.sub(r"^(\.LLSDACSE\d+:)", "\t.uleb128 0\n" * 4 + r"\1", text, flags=re.M)


def absolute_entries(text):
    """Unwind entries with absolute addresses, which the linker has to relocate."""
    text = re.sub(r"\.cfi_personality 0x9b,DW\.ref\.(\w+)", r".cfi_personality 0x0,\1", text)
    return re.sub(r"\.cfi_lsda 0x1b,", ".cfi_lsda 0x0,", text)


# name: program (suffix, text), library, compiler and flags, change of the assembler's input, reason in the report
CASES = {
    "calls that return after all": (("s", RETURNS), RETURNS_LIB, "gcc", None, None),
    "text relocations": (("s", TEXT_RELOCATION), None, "gcc -Wl,-z,notext", None, "relocated when it is loaded"),
    "odd exception tables": (("cc", THROWS), None, "g++ -O2", odd_sites, "exception table is not understood"),
    "odd exception tables of fixed programs": (("cc", THROWS), None, "g++ -O2 -no-pie", odd_sites,
                                               "exception table is not understood"),
    "numbers like addresses": (("s", LIKE_ADDRESS), None, "gcc -nostdlib -static -no-pie -s", None, None),
    "absolute unwind tables": (("cc", THROWS), None, "g++ -O2 -Wl,-z,notext", absolute_entries,
                               "addresses to be relocated"),
    "musl": (("c", '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n'), None, "musl-gcc", None, None),
}


def must(argv, folder):
    done = driver.run(argv, LIMIT, cwd=folder)
    if done.status:
        raise Failed(f"{' '.join(argv[:3])}: {done.status}", *driver.as_lines(done.stderr)[-6:])


class Case:
    def __init__(self, build, folder, number, name):
        self.inlay, self.folder = f"{build}/inlay", driver.fresh(f"{folder}/{number}")
        (suffix, program), library, flags, change, self.reason = CASES[name]
        self.program = f"{self.folder}/program"
        with open(f"{self.program}.{suffix}", "w") as f:
            f.write(program)
        link = []
        if library:
            with open(f"{self.folder}/lib.c", "w") as f:
                f.write(library)
            must(["gcc", "-O1", "-w", "-shared", "-fPIC", "lib.c", "-o", "libodd.so"], self.folder)
            link = ["-L.", "-lodd", f"-Wl,-rpath,{self.folder}"]
        if change:
            must([*flags.split(), "-w", "-S", f"program.{suffix}"], self.folder)
            suffix = "s"
            with open(f"{self.program}.s") as f:
                text = f.read()
            with open(f"{self.program}.s", "w") as f:
                f.write(change(text))
        must([*flags.split(), "-w", f"program.{suffix}", "-o", "program", *link], self.folder)

    def check(self, tool, libraries):
        """Alone, or with its libraries."""
        out = f"{self.folder}/{'folder' if libraries else 'out'}"
        where = ["--with-libs", out] if libraries else ["-o", out]
        report = f"{self.folder}/report"
        driver.rewrite(self.inlay, [tool, self.program, *where, "--report", report], LIMIT)
        with open(report) as f:
            if self.reason and self.reason not in f.read():
                raise Failed(f"the report does not say '{self.reason}'")
        made = f"{out}/program" if libraries else out
        environment = driver.ENVIRONMENT | {"INLAY_OUT": f"{self.folder}/result"}
        told = driver.differences(driver.run([self.program], LIMIT, cwd=self.folder),
                                  driver.run([made], LIMIT, cwd=self.folder, env=environment))
        if told:
            raise Failed(*told)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("odd", options) as results:
        for number, name in enumerate(CASES):
            if not driver.chosen(name, options):
                continue
            case = Case(options.build, results.folder, number, name)
            for tool in ("null", "bbcount"):
                for libraries in (False, True):
                    results.check(f"{name}: {tool}{' and libraries' if libraries else ''}",
                                  lambda t=tool, l=libraries: case.check(t, l))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
