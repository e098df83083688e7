#!/usr/bin/python3
"""--debug-info: what gdb and perf are told of translated code.

  tests/cli/debuginfo.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed, N skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

PATIENCE = 60
SOURCE = f"{HERE}/debug_program.c"


def line_of(word):
    with open(SOURCE) as f:
        return 1 + next(n for n, text in enumerate(f) if f"/* {word} */" in text)


class DebugInfo:
    def __init__(self, build, folder):
        self.inlay, self.folder = f"{build}/inlay", folder
        self.program = f"{folder}/program"
        subprocess.run(["cc", "-g", "-O1", "-o", self.program, SOURCE], check=True)

    def start(self, *words):
        """The program, when it waits."""
        p = subprocess.Popen([self.inlay, "run", "bbcount", f"--debug-info={self.folder}", "-o", f"{self.folder}/out",
                              *words, "--", self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             cwd=self.folder, env=driver.ENVIRONMENT)
        if p.stdout.readline() != b"ready\n":
            raise Failed("the program does not begin")
        return p

    def map_of(self, p):
        """What has been written; the last line may be there in part."""
        with open(f"{self.folder}/perf-{p.pid}.map") as f:
            return [(int(a, 16), int(n, 16), name) for a, n, name in (line.split() for line in f if line.endswith("\n"))]

    def turn(self, p):
        """Until its loop has been translated."""
        p.stdin.write(b"t")
        p.stdin.flush()
        end = time.monotonic() + PATIENCE
        while not any(name == "turns" for _, _, name in self.map_of(p)):
            if time.monotonic() > end:
                raise Failed("no line for the loop in perf's map")
            time.sleep(0.05)

    def gdb(self, p, *commands):
        words = [w for c in commands for w in ("-ex", c)]
        done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x",
                               f"{self.folder}/inlay-{p.pid}.gdb", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE * 2)
        return done.stdout.decode(errors="replace")

    def end(self, p):
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()

    def in_code(self, *words):
        p = self.start(*words)
        try:
            self.turn(p)
            end = time.monotonic() + PATIENCE
            while True:  # it may still be on its way there
                text = self.gdb(p, "bt", "info symbol $pc")
                if re.search(r"^#0 .*\bturns \(", text, re.M) or time.monotonic() > end:
                    break
        finally:
            self.end(p)
        frames = re.findall(r"^#\d+ +(?:0x\w+ in )?(\S+) \(.*?(?:at .*:(\d+))?$", text, re.M)
        names = [f[0] for f in frames]
        if names[:3] != ["turns", "waits", "main"] or "in section .text" not in text:
            raise Failed(f"frames: {names}", text[-1500:])
        if abs(int(frames[0][1]) - line_of("turning")) > 1 or int(frames[1][1]) != line_of("waiting"):
            raise Failed(f"lines: {frames}", text[-1500:])

    def in_call(self, *words):
        p = self.start(*words)
        try:
            text = self.gdb(p, "bt")
        finally:
            self.end(p)
        names = re.findall(r"^#\d+ +(?:0x\w+ in )?(\S+) \(", text, re.M)
        if "??" in names or names[-2:] != ["waits", "main"]:
            raise Failed(f"frames: {names}", text[-1500:])

    def gdb_in_code(self):
        self.in_code()

    def gdb_in_call(self):
        self.in_call()

    def gdb_after_flushes(self):
        """What has been flushed is taken back from gdb's list; groups are made anew."""
        self.in_code("--stress=tiny-cache")

    def maps(self):
        """Pieces do not overlap where nothing was flushed; the forked child has a file of its own."""
        p = self.start()
        try:
            self.turn(p)
            pieces = sorted(self.map_of(p))
            self.child_has_mapped(p)
        finally:
            self.end(p)
        for a, b in zip(pieces, pieces[1:]):
            if a[0] + a[1] > b[0]:
                raise Failed(f"{a} and {b} overlap")
        if {"main", "waits", "turns"} - {name for _, _, name in pieces}:
            raise Failed("a procedure is missing")

    def child_has_mapped(self, p):
        """The child may come to it only now."""
        end = time.monotonic() + PATIENCE
        while True:
            others = [f for f in os.listdir(self.folder) if re.fullmatch(r"perf-\d+\.map", f) and f != f"perf-{p.pid}.map"]
            if others:
                with open(f"{self.folder}/{max(others, key=lambda f: os.stat(f'{self.folder}/{f}').st_mtime)}") as f:
                    if " main\n" in f.read():
                        return
            if time.monotonic() > end:
                raise Failed("the child's map lacks what it has inherited")
            time.sleep(0.05)

    def through_no_link(self):
        """The folder may be everybody's."""
        done = driver.run([self.inlay, "run", "null", f"--debug-info={self.folder}/none", "--", "true"], PATIENCE,
                          cwd=self.folder, env=driver.ENVIRONMENT)
        if done.status != 0 or b"cannot write into" not in done.stderr:
            raise Failed("a folder that is not there", done.stderr.decode())

    def only_for_translation(self):
        done = driver.run([self.inlay, "rewrite", "null", "--debug-info", self.program, "-o", "x"], PATIENCE,
                          cwd=self.folder, env=driver.ENVIRONMENT)
        if done.status != 2 or b"inlay run" not in done.stderr:
            raise Failed("rewriting", done.stderr.decode())


GDB = ("gdb_in_code", "gdb_in_call", "gdb_after_flushes")
TESTS = GDB + ("maps", "through_no_link", "only_for_translation")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("debuginfo", options) as results:
        tests = DebugInfo(options.build, results.folder)
        for name in TESTS:
            if name in GDB and not shutil.which("gdb"):
                results.skip(name, "there is no gdb")
                continue
            results.check(name, getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
