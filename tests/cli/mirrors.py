#!/usr/bin/python3
"""Operands whose addresses a tool sets (inlay_set_effective_address), under each engine: what a program does to a piece of
memory happens elsewhere, and the program sees no difference; programs of the distribution of which every operand that can
be set is set to where it is.

  tests/cli/mirrors.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
COMMANDS = {
    "gzip": ["gzip", "-c", f"{ROOT}/docs/design.md"],
    "sort": ["sort", "-n", "/etc/services"],
    "perl": ["perl", "-e", "print join ' ', map { sprintf '%.3f', sqrt } sort { $b <=> $a } 1 .. 2000"],
}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Mirrors:
    def __init__(self, options, folder):
        self.inlay, self.samples, self.folder = f"{options.build}/inlay", f"{options.build}/tests/samples", folder
        self.tool, self.report, self.new = (f"{folder}/{n}" for n in ("mirror_tool", "report", "new"))
        self.moved = {}

    def same(self, native, argv, env=None):
        done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT | (env or {}))
        if (done.status, done.stdout) != (native.status, native.stdout):
            raise Failed(f"status {done.status}, natively {native.status}",
                         *[f"{a} instead of {b}" for a, b in zip(driver.as_lines(done.stdout), driver.as_lines(native.stdout))
                           if a != b][:4], *driver.as_lines(done.stderr)[:4])
        return done

    def told(self, name):
        """Everything has gone to the other piece, and as often under each engine."""
        found = re.fullmatch(r"(\d+) moved, 0 wrong, 0 touched, seen, status 0, \d+ instructions\n", read(self.report))
        if not found or int(found[1]) == 0:
            raise Failed(read(self.report))
        if name != "ticks" and self.moved.setdefault(name, found[1]) != found[1]:
            raise Failed(f"{found[1]} moved, {self.moved[name]} by another engine")

    def sample(self, name, way, *words, stress=None):
        path = f"{self.samples}/{name}"
        native = driver.run([path, *words], LIMIT)
        if way == "rewrite":
            driver.rewrite(self.inlay, [self.tool, path, "-o", self.new], LIMIT)
            self.same(native, [self.new, *words], {"INLAY_OUT": self.report})
        else:
            image = [] if "own" in words else ["--image=mirrored*"]
            self.same(native, [self.inlay, "run", f"--engine={way}", self.tool, *image, "-o", self.report, "--", path, *words],
                      {"INLAY_STRESS": stress} if stress else {})
        self.told("ticks" if "ticks" in words else f"{name} {words}")

    def refused(self):
        """Of each reason some are told, and the program runs."""
        done = driver.run([self.inlay, "run", self.tool, "--all", "-o", self.report, "--", "/bin/true"], LIMIT,
                          env=driver.ENVIRONMENT)
        text = done.stderr.decode()
        for why in ("in a register that the instruction itself names", "does not access this operand",
                    "at which a transfer of control reads", "is set before its instruction"):
            if why not in text:
                raise Failed(f"not told: {why}", *text.splitlines()[:4])
        if done.status:
            raise Failed(f"status {done.status}")

    def command(self, name, way):
        argv = COMMANDS[name]
        native = driver.run(argv, LIMIT)
        path = os.path.realpath(f"/usr/bin/{argv[0]}")
        if way == "rewrite":
            libs = driver.fresh(f"{self.folder}/libs")
            driver.rewrite(self.inlay, [self.tool, "--same", path, "--with-libs", libs], LIMIT)
            self.same(native, [f"{libs}/{os.path.basename(path)}", *argv[1:]], {"INLAY_OUT": self.report})
        else:
            self.same(native, [self.inlay, "run", self.tool, "--same", "-o", self.report, "--", path, *argv[1:]])


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("mirrors", options) as results:
        m = Mirrors(options, results.folder)
        made = driver.run([m.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/mirror_tool.c", "-o", m.tool], LIMIT)
        results.count("compile", driver.as_lines(made.stderr)[-6:] if made.status else [])
        for way in ("jit", "rewrite", "live"):
            results.check(f"sample {way}", lambda w=way: m.sample("mirrored", w))
            results.check(f"ticks {way}", lambda w=way: m.sample("mirrored", w, "ticks"))
        results.check("sample random-regs", lambda: m.sample("mirrored", "jit", stress="random-regs"))
        for way in ("jit", "rewrite"):
            results.check(f"static {way}", lambda w=way: m.sample("mirrored_static", w))
        results.check("own", lambda: m.sample("mirrored", "jit", "own"))
        results.check("refused", m.refused)
        for name, way in (("perl", "jit"), ("gzip", "rewrite"), ("sort", "rewrite")):
            results.check(f"{name} {way}", lambda n=name, w=way: m.command(n, w))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
