#!/usr/bin/python3
"""Procedures and calls that a tool replaces: the same tool (replaced_tool.c) under each engine, and what the program
(replaced.c) must say then.

  tests/snippets/replaced.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 180
# Each call is to be there, and no procedure to be known to others.
APART = ["-fno-inline", "-fno-builtin", "-fno-ipa-cp", "-fno-ipa-ra", "-fno-ipa-pure-const", "-fno-ipa-icf", "-fno-ipa-sra"]
ENGINES = ("jit", "live", "rewrite")
EXPECTED = {  # through, whole; how often was noted; what the tool has counted
    "calls": (lambda n: (1005 * 10000 + 77 + n + n, n + 1), 0, "0 0 4"),
    "procs": (lambda n: (20000 * n + 3 * n + 28 + n + n, n + 100), 0, "0 0 0"),
    "stub": (lambda n: (20000 * n + 3 * n + 28 + n + 7, n + 1), 4, "0 0 0"),
    "mistake": (lambda n: (20000 * n + 3 * n + 28 + n + n, n + 1), 4, "0 0 0"),
    "both": (lambda n: (20000 * n + 77 + 28 + n + n, 9), 4, "4 10 0"),
}


def expected(what):
    of, noted, counted = EXPECTED[what]
    lines = []
    for n in range(4):
        through, whole = of(n)
        lines.append(f"{through} {2 * n + n + 1} {whole} {2 * n if n % 2 else 2 * (n + 1)}")
    return [*lines, str(noted)], counted


class Replaced:
    def __init__(self, options, folder):
        self.inlay, self.folder = f"{options.build}/inlay", folder
        self.program, self.tool = f"{folder}/replaced", f"{folder}/replaced_tool"
        self.must(["gcc", "-g", "-O2", *APART, f"{HERE}/replaced.c", "-o", self.program])
        self.must([self.inlay, "cc", "-O2", f"{HERE}/replaced_tool.c", "-o", self.tool])

    def must(self, argv):
        done = driver.run(argv, LIMIT)
        if done.status:
            raise Failed(" ".join(argv[:3]), *driver.as_lines(done.stderr))

    def run(self, what, engine):
        report, options = f"{self.folder}/{what}-{engine}", [self.tool, f"--what={what}"]
        if engine != "rewrite":
            return driver.run([self.inlay, "run", f"--engine={engine}", *options, "-o", report, "--", self.program], LIMIT), report
        made = f"{self.program}-{what}"
        self.must([self.inlay, "rewrite", *options, self.program, "-o", made, f"--result={report}"])
        return driver.run([made], LIMIT), report

    def same(self, what, engine):
        lines, counted = expected(what)
        done, report = self.run(what, engine)
        with open(report) as f:
            told = f.read().strip()
        here = done.stdout.decode().splitlines()
        silent = what == "mistake" or not done.stderr
        if done.status != 5 or not silent or here != lines or told != counted:
            raise Failed(f"status {done.status}; counted {told} instead of {counted}; it should say", *lines, "--- but", *here,
                         *driver.as_lines(done.stderr))


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("replaced", options) as results:
        replaced = Replaced(options, results.folder)
        for what in EXPECTED:
            for engine in ENGINES:
                if driver.chosen(f"{what}-{engine}", options):
                    results.check(f"{what}-{engine}", lambda w=what, e=engine: replaced.same(w, e))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
