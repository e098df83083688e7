#!/usr/bin/python3
"""Instrumentation that changes while the program runs: code shown again, versions of code, the example that samples.

  tests/cli/versions.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
REGIONS = 50
STRESS = ("flush", "tiny-cache", "no-link", "one-block", "random-regs", "elsewhere")


class Versions:
    def __init__(self, build, folder):
        self.inlay, self.folder = f"{build}/inlay", folder
        self.program = f"{folder}/program"
        subprocess.run(["cc", "-O1", "-pthread", "-o", self.program, f"{HERE}/versions_program.c"], check=True)
        self.tool = self.made(f"{HERE}/versions_tool.c")
        self.region, self.sampling = (self.made(f"{ROOT}/examples/{name}.c") for name in ("region", "sampling"))

    def made(self, source):
        tool = f"{self.folder}/{os.path.basename(source)[:-2]}"
        done = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", source, "-o", tool], LIMIT)
        if done.status != 0:
            raise SystemExit(done.stderr.decode())
        return tool

    def run(self, *words, program=None, said=b""):
        """What the tool writes; the program does what it does by itself."""
        out = f"{self.folder}/out"
        done = driver.run([self.inlay, "run", words[0], "-o", out, *words[1:], "--", *(program or [self.program])], LIMIT,
                          cwd=self.folder, env=driver.ENVIRONMENT)
        if done.status != 0 or said not in done.stderr or (not program and done.stdout != b"1\n"):
            raise Failed(f"status {done.status}", done.stderr.decode()[-400:])
        with open(out, encoding="utf-8") as f:
            return f.read()

    def inside(self):
        """Instructions in regions, but for the returns that end them: those are plain again."""
        m = re.match(r"(\d+) of \d+ instructions in (\d+) regions", self.run(self.region, "--from=region"))
        if int(m[2]) != REGIONS:
            raise Failed(m[0])
        return int(m[1]) - REGIONS

    def changes(self, *words):
        text = self.run(self.tool, *words, said=b"cannot go on in version 8")
        found = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", text)}
        known = {"refused": 0, "worked": 10, "detailed": self.inside(), "wrong": 0}
        if {k: found[k] for k in known} != known:
            raise Failed(text, str(known))
        return found["shown"]

    def shown_again(self):
        """Four times, and once before."""
        if self.changes() != 5:
            raise Failed("not shown five times")

    def under_stress(self):
        for switch in STRESS:
            if self.changes(f"--stress={switch}") < 5:
                raise Failed(switch)

    def plain_is_free(self):
        """Code of version 0 that nothing is inserted into is what it is without a tool, but for registers that are
        loaded for a tool which could look at them."""
        def code(tool, *words):
            done = driver.run([self.inlay, "run", tool, "--stats", "-o", "out", *words, "--", self.program], LIMIT,
                              cwd=self.folder, env=driver.ENVIRONMENT)
            return {k: int(v) for k, v in re.findall(r"^  (.*?) +(\d+)$", done.stderr.decode(), re.M)}
        plain, none = code(self.sampling, "--every=1000000000", "--image=nothing"), code("null")
        if abs(plain["bytes of code"] - none["bytes of code"]) > none["bytes of code"] / 40:
            raise Failed(f"{plain['bytes of code']} bytes, {none['bytes of code']} without")

    def samples(self):
        """Bursts without end count all that is executed in procedures; short ones some of it."""
        def count(*words):
            text = self.run(self.sampling, *words)
            return int(text.split()[0]), text
        every, (some, text) = count("--every=1", "--burst=1000000000")[0], count("--every=20", "--burst=5")
        if not every / 50 < some < every / 2 or " work\n" not in text:
            raise Failed(f"{some} of {every}", text)


TESTS = ("shown_again", "under_stress", "plain_is_free", "samples")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("versions", options) as results:
        tests = Versions(options.build, results.folder)
        for name in TESTS:
            results.check(name, getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
