#!/usr/bin/python3
"""What a tool sees of its counters, whenever it looks: in the middle of a superblock, in a handler, of one thread as it
ends, in a child of fork and its parent, before exec and behind it, when the code is made anew. The JIT adds to joint
counters where several count together; it must not show: counters that are added to where they stand, and the other
engines, tell the same.

  tests/cli/counters.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import glob
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
# Where code is moved a tool that does not ask for values in snippets counts where it costs least: what its sums lack in
# the middle of a procedure is there when that is left.
DERIVED = {"joint": ("looks",), "place": ()}
STRESS = ("flush", "tiny-cache", "one-block", "no-link", "random-regs", "check", "paired", "elsewhere")


class Counters:
    def __init__(self, build, folder):
        self.inlay, self.folder = f"{build}/inlay", folder
        self.program = f"{folder}/program"
        if driver.build("dynamic", f"{HERE}/counters_program.c", self.program, "-pthread"):
            raise SystemExit("counters_program.c is not compiled")
        for name, words in ("joint", []), ("place", ["-DIN_PLACE"]):
            made = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", *words, f"{HERE}/counters_tool.c", "-o",
                               f"{folder}/{name}"], LIMIT)
            if made.status != 0:
                raise SystemExit(made.stderr.decode())
        self.native = driver.run([self.program], LIMIT, env=driver.ENVIRONMENT)
        self.expected = None

    def reports(self, argv, **env):
        """All lines that were written, in no order: processes have numbers of their own, threads end one before another."""
        for old in glob.glob(f"{self.folder}/out*"):
            os.unlink(old)
        done = driver.run(argv, LIMIT, cwd=self.folder, env=driver.ENVIRONMENT | env)
        if (done.status, done.stdout) != (self.native.status, self.native.stdout):
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr)[-6:])
        found = []
        for name in glob.glob(f"{self.folder}/out*"):
            with open(name, encoding="utf-8") as f:
                found += f.read().splitlines()
        return sorted(found)

    def in_place(self):
        if not self.expected:
            self.expected = self.reports([self.inlay, "run", f"{self.folder}/place", "-o", "out", "--", self.program])
        return self.expected

    def same(self, found, what, but=(), more=()):
        """But for these kinds of lines; of `more` there may be others besides."""
        mine, theirs = ([line for line in of if line.split()[0] not in but] for of in (found, self.in_place()))
        mine = [line for line in mine if line in theirs or line.split()[0] not in more]
        if mine != theirs:
            raise Failed(what, f"{len(mine)} lines, {len(theirs)} expected", *(f"+ {line}" for line in mine if line not in theirs),
                         *(f"- {line}" for line in theirs if line not in mine))

    def looks(self):
        """The test itself: each kind of look is there, and tells of something."""
        lines = self.in_place()
        for what, many in ("mark 100", 12), ("mark 200", 13), ("thread 0", 5), ("end", 2), ("looks", 2), ("mark 1:", 1):
            if sum(line.startswith(what) for line in lines) != many:
                raise Failed(f"{what}: not {many}", *lines)
        if len(set(lines)) < 25:
            raise Failed("they tell the same", *lines)

    def joint(self):
        self.same(self.reports([self.inlay, "run", f"{self.folder}/joint", "-o", "out", "--", self.program]), "joint")

    def stress(self):
        for switch in STRESS:
            self.same(self.reports([self.inlay, "run", f"{self.folder}/joint", "-o", "out", "--", self.program],
                                   INLAY_STRESS=switch), switch)

    def live(self):
        for tool in "joint", "place":
            self.same(self.reports([self.inlay, "run", "--engine=live", f"{self.folder}/{tool}", "-o", "out", "--",
                                    self.program]), f"live, {tool}", DERIVED[tool])

    def rewritten(self):
        """A rewritten program reports when it executes another, too."""
        for tool in "joint", "place":
            driver.rewrite(self.inlay, [f"{self.folder}/{tool}", self.program, "-o", f"{self.folder}/rewritten"], LIMIT)
            self.same(self.reports([f"{self.folder}/rewritten"], INLAY_OUT=f"{self.folder}/out",
                                   INLAY_OUT_SECOND=f"{self.folder}/out2"), f"rewritten, {tool}", DERIVED[tool], ("end", "looks"))


TESTS = ("looks", "joint", "stress", "live", "rewritten")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("counters", options) as results:
        tests = Counters(options.build, results.folder)
        for name in TESTS:
            if driver.chosen(name, options):
                results.check(name, getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
