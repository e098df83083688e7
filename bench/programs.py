"""The programs that are measured: ten that people run, and the micro-benchmarks.

A program is a name, a command, what of its output depends on the clock, and (micro) how many
operations it does. Sizes are chosen so that a native run takes about a second.
"""

import glob
import os
import re
import shutil
import subprocess

import inputs


class Program:
    def __init__(self, name, command, unsteady=None, operations=0):
        self.name = name
        self.command = command
        self.unsteady = re.compile(unsteady) if unsteady else None
        self.operations = operations


class Missing(Exception):
    """What a program needs is not on this machine."""


def find(name, *places):
    for path in (*places, shutil.which(name)):
        if path and os.access(path, os.X_OK):
            return path
    raise Missing(f"{name} is not installed")


def _text(scratch, quick, megabytes):
    size = int(megabytes * inputs.MEGABYTE / (4 if quick else 1))
    return inputs.make(f"{scratch}/text-{size}", inputs.text(size))


def _script(scratch, name, source, **numbers):
    tag = "-".join(str(n) for n in numbers.values())
    return inputs.make(f"{scratch}/{name}-{tag}" if tag else f"{scratch}/{name}",
                       inputs.script(source, **numbers))


def gzip(scratch, quick):
    return Program("gzip", [find("gzip"), "-9c", _text(scratch, quick, 24)])


def bzip2(scratch, quick):
    return Program("bzip2", [find("bzip2"), "-c", _text(scratch, quick, 24)])


def xz(scratch, quick):
    return Program("xz", [find("xz"), "-3", "-T1", "-c", _text(scratch, quick, 24)])


def perl(scratch, quick):
    return Program("perl", [find("perl"), _script(scratch, "words.pl", inputs.PERL),
                            _text(scratch, quick, 11)])


def python(scratch, quick):
    # Debian's own: what is first on the path may be a wrapper script.
    path = find("python3", "/usr/bin/python3")
    fib, rows = (18, 5000) if quick else (22, 41000)
    return Program("python3", [path, "-I", _script(scratch, "mixed.py", inputs.PYTHON, FIB=fib, ROWS=rows)])


def lua(scratch, quick):
    fib, items = (22, 20000) if quick else (31, 280000)
    return Program("lua5.4", [find("lua5.4"), _script(scratch, "mixed.lua", inputs.LUA, FIB=fib,
                                                      ITEMS=items)])


def sqlite(scratch, quick):
    rows = 20000 if quick else 65000
    path = inputs.make(f"{scratch}/sale-{rows}.sql", inputs.sql(rows))
    return Program("sqlite3", [find("sqlite3"), "-init", "/dev/null", "-batch", ":memory:",
                               f".read {path}"])


def gawk(scratch, quick):
    return Program("gawk", [find("gawk"), "-f", _script(scratch, "fields.awk", inputs.GAWK),
                            _text(scratch, quick, 14)])


def stockfish(scratch, quick):
    depth = "7" if quick else "10"
    return Program("stockfish", [find("stockfish", "/usr/games/stockfish"), "bench", "16", "1",
                                 depth],
                   unsteady=rb"\b(time|nps) \d+")


def cc1(scratch, quick):
    gcc = find("gcc")
    path = subprocess.run([gcc, "-print-prog-name=cc1"], capture_output=True, text=True,
                          check=True).stdout.strip()
    if not os.access(path, os.X_OK):
        raise Missing("gcc's cc1 is not installed")
    count = 150 if quick else 2500
    source = inputs.make(f"{scratch}/functions-{count}.i", inputs.c_functions(count))
    return Program("cc1", [path, "-fpreprocessed", source, "-quiet", "-O2", "-o", "-"])


ALL = {
    "gzip": gzip, "bzip2": bzip2, "xz": xz, "perl": perl, "python": python, "lua": lua,
    "sqlite": sqlite, "gawk": gawk, "stockfish": stockfish, "cc1": cc1,
}


# What a micro-benchmark must not have optimised away.
MICRO_FLAGS = ["-fno-inline", "-fno-optimize-sibling-calls", "-pthread"]


def micro(folder, scratch, quick):
    """Compiles bench/micro/*.c and *.cc. The words `operations: N` in a file's opening comment say how often
    the measured thing happens with argument 1. The argument scales it, unless it says `N in all`;
    argument 0 does none of it, which gives the start-up to subtract."""
    found = {}
    for source in sorted(glob.glob(f"{folder}/*.c") + glob.glob(f"{folder}/*.cc")):
        name, suffix = os.path.splitext(os.path.basename(source))
        compiler, standard = (find("cc"), "-std=gnu11") if suffix == ".c" else (find("c++"), "-std=gnu++17")
        out = f"{scratch}/micro-{name}"
        if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
            level = "-O1" if name == "cold" else "-O2"  # it is long
            subprocess.run([compiler, standard, *MICRO_FLAGS, level, source, "-o", out], check=True)
        with open(source, encoding="ascii") as f:
            number, fixed = re.search(r"operations: (\d+)( in all)?", f.read()).groups()
        scale = 1 if quick or fixed else 4
        found[name] = Program(name, [out, str(scale)], operations=int(number) * scale)
    return found
