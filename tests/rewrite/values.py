#!/usr/bin/python3
"""What expressions say of instructions, each against what the instruction did (values_tool.c): values and addresses of
operands, where branches go, and what procedures return, and where to; in programs of switches over arrays, made here in several ways, and in programs of the
distribution. Under the JIT, with the tool put in at the start (live), and rewritten.

  tests/rewrite/values.py [--build DIR] [--only CASE] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
ENGINES = ("jit", "live", "rewritten")
KINDS = ("load", "store", "place", "lea", "sum", "jump", "call", "result")
# In front of each switch, in its block, something is read with a base and an index, of the size of the table's entries.
SWITCHES = r"""#include <stdio.h>
#include <stdlib.h>
static int small[64];
static long wide[64];
/* A call whose way back is an aligned head of a loop. */
long loops(void);
__attribute__((used, noinline)) long leaf(void) { return wide[3]; }
__asm__(".text; .balign 16; .globl loops; .type loops, @function; loops: push %rbx; mov $3, %ebx; nop; nop; nop; nop; nop;"
        "call leaf; 1: dec %ebx; jnz 1b; pop %rbx; ret; .size loops, . - loops");
__attribute__((noinline, noreturn)) static void end(long sum)
{
    printf("%ld\n", sum);
    exit(0);
}
__attribute__((noinline)) static long step(const int *a, const long *b, long i, unsigned char op, long sum)
{
    long x = a[i], y = b[i];
    switch (op) {
    case 0: return sum + x;
    case 1: return sum - y;
    case 2: return sum * 3 + x;
    case 3: return sum ^ y;
    case 4: return (sum >> 1) + x * y;
    case 5: return sum + y * 5;
    case 6: return sum - x * 7;
    case 7: return x + y;
    default: return sum + 1;
    }
}
int main(void)
{
    long sum = 0;
    for (int i = 0; i < 64; i++) small[i] = i * 37 - 900, wide[i] = i * 1000003l - 77;
    for (int i = 0; i < 20000; i++) sum = step(small, wide, i * 11 % 64, (unsigned char)(i * 7 % 13), sum);
    end(sum + loops());
}
"""
FORMS = [f"{compiler} {flags}" for compiler in ("gcc", "clang")
         for flags in ("-O1", *(["-O0 -no-pie -fno-pie"] if compiler == "gcc" else []), "-O2 -no-pie -fno-pie",
                       "-O3 -static", "-Os")]
PROGRAMS = {
    "python3": ["-S", "-c", "print(sum(x * 3 % 7 for x in range(2000)))"],
    "gawk": ["BEGIN { for (i = 0; i < 900; i++) x[i % 7] += i; print x[3] }"],
    "sqlite3": [":memory:", "with recursive c(x) as (select 1 union all select x + 1 from c where x < 900) select sum(x * x) from c"],
    "perl": ["-e", "$s .= join(',', map { $_ * 3 } 1 .. 400); print length $s"],
    "bash": ["-c", "for i in {1..200}; do x=$x$i; done; echo ${#x}"],
    "bzip2": ["-c", "/etc/services"],
}


class Values:
    def __init__(self, options, folder):
        self.inlay, self.folder, self.tool = f"{options.build}/inlay", folder, f"{folder}/values_tool"

    def command(self, *argv):
        done = driver.run([*argv], LIMIT)
        if done.status:
            raise Failed(f"{' '.join(argv)}: {done.status}", *driver.as_lines(done.stderr)[-6:])

    def make(self):
        self.command(self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/values_tool.c", "-o", self.tool)

    def switches(self, form):
        source, program = f"{self.folder}/switches.c", f"{self.folder}/switches"
        with open(source, "w", encoding="ascii") as f:
            f.write(SWITCHES)
        self.command(*form.split(), source, "-o", program)
        self.check([program])

    def check(self, argv):
        native = driver.run(argv, LIMIT, env=driver.ENVIRONMENT)
        for engine in ENGINES:
            report = f"{self.folder}/report"
            if engine == "rewritten":
                driver.rewrite(self.inlay, [self.tool, argv[0], "-o", f"{self.folder}/rewritten"], LIMIT)
                here = driver.run([f"{self.folder}/rewritten", *argv[1:]], LIMIT, env=driver.ENVIRONMENT | {"INLAY_OUT": report})
            else:
                image = os.path.basename(os.path.realpath(argv[0]))
                here = driver.run([self.inlay, "run", f"--engine={engine}", "--image", image, self.tool, "-o", report, "--", *argv],
                                  LIMIT, env=driver.ENVIRONMENT)
            told = driver.differences(native, here, ("noerr",))  # what is left alone is said there
            with open(report, encoding="ascii") as f:
                found = f.read().splitlines()
            right = {m[1] for line in found if (m := re.fullmatch(r"(\w+) [1-9]\d* right, 0 wrong", line))}
            if told or right != set(KINDS):
                raise Failed(engine, *told, *found)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("values", options) as results:
        values = Values(options, results.folder)
        values.make()
        for form in FORMS:
            if driver.chosen(f"switches {form}", options):
                results.check(f"switches {form}", lambda f=form: values.switches(f))
        for name, argv in PROGRAMS.items():
            if driver.chosen(name, options):
                results.check(name, lambda n=name, a=argv: values.check([f"/usr/bin/{n}", *a]))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
