#!/usr/bin/python3
"""Rewritten programs and libraries that other tools have rebuilt: stripped, copied, split from their debug
information, given another search path. They must behave and report as before.

  tests/rewrite/rebuilt.py [--build DIR] [--tools null,inscount] [--only CASE] [--jobs 2] [--keep]

Prints a line for each failure and at the end N passed, N failed.
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

LIMIT = 120
SOURCE = f"{HERE}/unwinding.cc"
# Each step by a shell, in a folder that holds the file `x`.
REBUILDS = {
    "strip": "strip x",
    "strip -g": "strip -g x",
    "objcopy": "objcopy x y && mv y x",
    "split": "objcopy --only-keep-debug x x.debug && "
             "objcopy --strip-debug -R .gnu_debuglink --add-gnu-debuglink=x.debug x",
    "strip twice": "strip -g x && strip x",
    "eu-strip": "eu-strip x",
    "eu-strip -f": "eu-strip -f x.debug x",
    "eu-elfcompress": "eu-elfcompress -f -q x",
    "llvm-strip": "llvm-strip x",
    "llvm-objcopy": "llvm-objcopy --strip-debug x",
    "patchelf": "patchelf --set-rpath /nowhere:/nowhere/else x",
}
# name, compiler, flags
FORMS = [
    ("pie", "g++", "-O2 -g"),
    ("no-pie", "g++", "-O2 -g -no-pie -fno-pie"),
    ("static", "g++", "-O2 -static"),
    ("static-pie", "g++", "-O2 -static-pie"),
    ("relr", "g++", "-O2 -Wl,-z,pack-relative-relocs"),
    ("no-spare-tags", "g++", "-O2 -Wl,--spare-dynamic-tags=0"),
    ("no-build-id", "g++", "-O2 -Wl,--build-id=none"),
    ("link-relocations", "g++", "-O2 -g -Wl,--emit-relocs"),
    ("stripped", "g++", "-O2 -s"),
    ("lld", "clang++", "-O2 -fuse-ld=lld"),
    ("lld-static", "clang++", "-O2 -static -fuse-ld=lld"),
    ("gold", "g++", "-O2 -fuse-ld=gold"),
]
# Programs of the distribution, with what they are to do.
PROGRAMS = {
    "gzip": ["gzip", "-c", SOURCE], "bash": ["bash", "-c", "for i in 1 2 3; do echo $((i * i)); done"],
    "perl": ["perl", "-e", "print join(',', map { $_ * 2 } 1..5), qq(\\n)"],
    "sqlite3": ["sqlite3", ":memory:", "select 6*7"],
    "lua": ["lua5.4", "-e", "print(2^10)"],
    "ldconfig": ["/sbin/ldconfig", "-p"],
}
# What these tools refuse, or spoil, when it is not rewritten.
NOT_FOR = {(name, step) for name in ("static", "lld-static", "static-pie", "ldconfig") for step in ("patchelf",)} | \
          {("static", step) for step in ("llvm-strip", "llvm-objcopy")}
LIBRARY = """
#include <stdexcept>
#include <string>
extern "C" int lib_throw(int k) { if (k & 1) throw std::runtime_error("lib"); return std::to_string(k).size(); }
"""
USER = """
#include <cstdio>
#include <exception>
extern "C" int lib_throw(int);
int main() { for (int k = 0; k < 4; k++) try { std::printf("%d\\n", lib_throw(k)); }
             catch (const std::exception &e) { std::puts(e.what()); } }
"""


class Place:
    def __init__(self, options, root):
        self.inlay, self.root, self.tools = f"{options.build}/inlay", root, options.tools.split(",")

    def outcome(self, argv, program):
        """What it does, and what it reports. How much, that depends on addresses and the time."""
        result = f"{program}.result"
        done = driver.run([program, *argv[1:]], LIMIT, env=driver.ENVIRONMENT | {"INLAY_OUT": result})
        report = None
        if os.path.exists(result):
            with open(result) as f:
                report = f.read()
            os.unlink(result)
        return done, report

    def rebuild(self, command, file):
        folder = os.path.dirname(file)
        os.rename(file, f"{folder}/x")
        done = driver.run(["sh", "-c", command], LIMIT, cwd=folder, env=driver.ENVIRONMENT)
        if done.status != 0 or done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[:6])
        os.rename(f"{folder}/x", file)

    def settled(self, report):
        return re.sub(r"\d\d+", "N", report) if report else report

    def compare(self, before, now):
        told = driver.differences(before[0], now[0])
        if self.settled(before[1]) != self.settled(now[1]):
            told.append(f"report {now[1]!r} instead of {before[1]!r}")
        if told:
            raise Failed(*told)


class Subject:
    """A program, or a library that is rewritten with its program; what is rebuilt is `file`."""

    def __init__(self, place, name, argv, program, is_library=False):
        self.place, self.name, self.argv, self.program, self.is_library = place, name, argv, program, is_library

    def rewrite(self, tool, folder):
        base = os.path.basename(self.program)
        to = ["--with-libs", folder] if self.is_library else ["-o", f"{folder}/{base}"]
        return f"{folder}/{base}", driver.rewrite(self.place.inlay, [tool, self.program, *to], LIMIT)

    def file(self, program):
        return f"{os.path.dirname(program)}/librebuilt.so" if self.is_library else program

    def check(self, tool, step):
        folder = driver.fresh(f"{self.place.root}/{self.name}/{tool}-{step}".replace(" ", "_"))
        program, said = self.rewrite(tool, folder)
        native, before = (self.place.outcome(self.argv, p) for p in (self.program, program))
        self.place.compare((native[0], before[1]), before)
        if tool != "null" and not before[1]:
            raise Failed("it reports nothing")
        self.place.rebuild(REBUILDS[step], self.file(program))
        # Where rewriting warns of it: newer linkers leave no room at a static program's front, and elfutils clears what
        # no section holds.
        if "strip and objcopy would damage it" not in said or not step.startswith("eu-strip"):
            self.place.compare(before, self.place.outcome(self.argv, program))
        shutil.rmtree(folder)

    def results(self):
        return [(f"{self.name} {tool} {step}", driver.problem(self.check, tool, step))
                for tool in self.place.tools for step in REBUILDS if (tool != "null" or step == "strip") and
                shutil.which(REBUILDS[step].split()[0], path=driver.PATH) and (self.name, step) not in NOT_FOR]


def compiled(place, name, compiler, flags):
    program = f"{place.root}/{name}.program"
    done = driver.run([compiler, "-std=c++14", "-w", *flags.split(), SOURCE, "-o", program, "-pthread"], LIMIT)
    return None if done.status else Subject(place, name, [program, "3"], program)


def with_library(place):
    folder = driver.fresh(f"{place.root}/library.files")
    for name, text in (("lib.cc", LIBRARY), ("user.cc", USER)):
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
    for step in (["-shared", "-fPIC", "lib.cc", "-o", "librebuilt.so"],
                 ["user.cc", "-o", "user", "-L.", "-lrebuilt", f"-Wl,-rpath,{folder}"]):
        if driver.run(["g++", "-O2", *step], LIMIT, cwd=folder).status:
            return None
    return Subject(place, "library", ["user"], f"{folder}/user", True)


def subject(row, place):
    kind, *how = row
    if kind == "library":
        return with_library(place)
    if kind == "form":
        return compiled(place, *how) if shutil.which(how[1]) else None
    program = shutil.which(how[1][0], path=driver.PATH)
    return program and Subject(place, how[0], how[1], os.path.realpath(program))


class Row:
    def __init__(self, *how):
        self.how, self.name = how, how[1]


def run_row(row, place):
    """For Results.check_rows."""
    what = subject(row.how, place)
    return (None, what.results()) if what else ("it cannot be had here", [])


def main():
    options = driver.parser(__doc__, tools="null,inscount", jobs=True).parse_args()
    rows = [Row("form", *form) for form in FORMS] + [Row("program", *p) for p in PROGRAMS.items()]
    rows.append(Row("library", "library"))
    with driver.Results("rebuilt", options) as results:
        for step, command in REBUILDS.items():
            if not shutil.which(command.split()[0], path=driver.PATH):
                results.skip(step, f"there is no {command.split()[0]}")
        place = Place(options, results.folder)
        results.check_rows([r for r in rows if driver.chosen(r.name, options)], lambda row: run_row(row, place))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
