#!/usr/bin/python3
"""Files and lines of moved code, as gdb and addr2line tell them.

  tests/rewrite/lines.py [--build DIR] [--only CASE] [--keep]

  Programs with debug information, built in several ways: each moved instruction has the line of the original's, gdb
  stops at lines and procedures of moved code, and its backtraces name files and lines. Where the information is
  compressed nothing is added, and what there is stays readable.
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
C = r"""#include <stdio.h>
#include <stdlib.h>
static volatile int sum;
#line 40 "leaf.h"
__attribute__((noinline)) static int leaf(int n)
{
    sum += n;
    if (n == 3)
        abort();
    return sum * 2;
}
#line 9 "program.c"
__attribute__((noinline)) int middle(int n)
{
    int r = leaf(n) + 1;
    printf("%d\n", r);
    return r;
}
int main(void)
{
    int s = 0;
    for (int i = 0; i < 5; i++)
        s += middle(i);
    return s;
}
"""
CC = r"""#include <cstdlib>
namespace deep { struct thing { int n; int act(int) const; }; }
__attribute__((noinline)) int deep::thing::act(int m) const
{
    if (m + n == 3)
        abort();
    return n + m;
}
__attribute__((noinline)) int middle(int n)
{
    deep::thing t{n};
    return t.act(n + 1) * 2;
}
int main()
{
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += middle(i);
    return sum;
}
"""
# name, source, command, has lines
FORMS = [
    ("c", "program.c", "gcc -g -O1", True),
    ("dwarf-4", "program.c", "gcc -gdwarf-4 -O2", True),
    ("no-pie", "program.c", "gcc -g -O0 -no-pie", True),
    ("static", "program.c", "gcc -g -O1 -static", True),
    ("clang", "program.cc", "clang++ -g -O1", True),
    ("c++", "program.cc", "g++ -g -O1", True),
    ("lld", "program.cc", "clang++ -g -O1 -fuse-ld=lld", True),
    ("compressed", "program.c", "gcc -g -gz -O1", False),
    ("none", "program.c", "gcc -O1", False),
]
FRAMES = {"program.c": [("leaf", "leaf.h:44"), ("middle", "program.c:11"), ("main", "program.c:19")],
          "program.cc": [("deep::thing::act", "program.cc:6"), ("middle", "program.cc:12"), ("main", "program.cc:18")]}


class Case:
    def __init__(self, options, folder, form):
        self.name, self.source, command, self.has_lines = form
        self.inlay, self.here = f"{options.build}/inlay", driver.fresh(f"{folder}/{self.name}")
        self.map = []
        with open(f"{self.here}/{self.source}", "w") as f:
            f.write(C if self.source.endswith(".c") else CC)
        self.must([*command.split(), self.source, "-o", "program"])

    def must(self, argv):
        environment = driver.ENVIRONMENT | {"DEBUGINFOD_URLS": "", "INLAY_OUT": "result"}
        done = driver.run(argv, LIMIT, cwd=self.here, env=environment)
        if done.status:
            raise Failed(f"{' '.join(argv[:4])}: {done.status}", *driver.as_lines(done.stderr)[-5:])
        return done

    def rewrite(self, tool):
        program, new, told = (f"{self.here}/{name}" for name in ("program", "new", "map"))
        driver.rewrite(self.inlay, [tool, program, "-o", new, "--map", told], LIMIT)
        with open(told) as f:
            lines = f.read().splitlines()
        bias = int(re.search(r"bias 0x([0-9a-f]+)", lines[1])[1], 16)
        self.map = [[int(word, 16) - bias for word in line.split()[:2]] for line in lines if line[:1] != "#"]

    def lines_of(self, program, addresses):
        """Name of the file and line of each, or None; columns are left out."""
        # clang leaves out .debug_aranges, without which elfutils find nothing.
        finder = "addr2line" if self.name in ("clang", "lld") else "eu-addr2line"
        said = self.must([finder, "-e", program, *map(hex, addresses)]).stdout.decode().splitlines()
        found = [re.match(r"(?:.*/)?([^/?:]+:[1-9]\d*)", line) for line in said]
        return [m and m[1] for m in found]

    def compare(self):
        known = 0
        for at in range(0, len(self.map), 1000):
            pairs = self.map[at:at + 1000]
            old, new = (self.lines_of(p, [pair[k] for pair in pairs]) for k, p in ((0, "program"), (1, "new")))
            for pair, a, b in zip(pairs, old, new):
                if a != b and self.has_lines:
                    raise Failed(f"{pair[0]:#x} is of {a}, moved to {pair[1]:#x} of {b}")
                known += b is not None
        if (known >= 7) != self.has_lines:
            raise Failed(f"{known} of {len(self.map)} have lines")

    def by_binutils(self):
        """Where main is now."""
        entries = [int(line.split()[0], 16) for line in self.must(["nm", "new"]).stdout.decode().splitlines()
                   if line.endswith((" t main", " T main"))]
        said = [self.must(["addr2line", "-e", "new", hex(at)]).stdout.decode().split()[0] for at in entries]
        if len(entries) != 2 or (self.has_lines and (said[0] != said[1] or not re.search(r":\d+$", said[0]))):
            raise Failed(f"addr2line: main at {entries} is {said}")

    def tables(self):
        done = self.must(["readelf", "--debug-dump=rawline,info,abbrev,aranges", "new"])
        if done.stderr:
            raise Failed(*driver.as_lines(done.stderr)[:3])

    def backtrace(self):
        stop = FRAMES[self.source][0][1]
        commands = ["break middle", "run", "delete", f"break {stop}", "continue", "bt"]
        words = [word for command in commands for word in ("-ex", command)]
        said = self.must(["gdb", "-batch", "-nx", *words, "new"]).stdout.decode(errors="replace")
        frames = [line for line in said.splitlines() if line.startswith("#")]
        for frame, (name, where) in zip(frames, FRAMES[self.source]):
            if name not in frame or not frame.endswith(where):
                raise Failed(f"no {name} at {where}", *frames)
        if len(frames) < 3 or "Breakpoint" not in said.split("#0")[0].split("Continuing")[0]:
            raise Failed("not stopped", said[-400:])

    def check(self, tool):
        self.rewrite(tool)
        self.compare()
        self.tables()
        self.by_binutils()
        if self.has_lines and shutil.which("gdb"):
            self.backtrace()


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("lines", options) as results:
        for form in FORMS:
            compiler = form[2].split()[0]
            if not driver.chosen(form[0], options):
                continue
            if not shutil.which(compiler) or ("lld" in form[2] and not shutil.which("ld.lld")):
                results.skip(form[0], f"there is no {compiler}, or no lld")
                continue
            case = Case(options, results.folder, form)
            for tool in ("null", "inscount"):
                results.count(f"{form[0]} {tool}", driver.problem(case.check, tool))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
