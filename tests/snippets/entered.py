#!/usr/bin/python3
"""What procedures were called with, at their returns and within them, where registers have other values by then: under each
engine, with gcc and clang, optimised or not; what cannot be told is refused.

  tests/snippets/entered.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../live"]
import driver  # noqa: E402
import run as live  # noqa: E402
from commands import Command  # noqa: E402
from driver import Failed  # noqa: E402
from names import engines, values  # noqa: E402

LIMIT = 120
BUILDS = {f"{cc}-{o[1:]}": [cc, o, "-g"] for cc in ("gcc", "clang") for o in ("-O0", "-O1", "-O2")}
BUILDS["gcc-no-debug"] = ["gcc", "-O2"]
SUM = sum(range(100))
LEAPT = [i for i in range(100) if i & 1]
MANY = "more than none"
# point, code, what its variables are at the end; None: any
ROWS = (
    ("lost:return", "static long s, a, k, t; s += n; a += $arg0; k += g; t += h + on_stack", {"s": SUM, "a": SUM, "k": 3 * SUM, "t": 6 * SUM}),
    ("lost:return", "static double r, f, c; static long q, v; r += real; f += narrow; q += p.a; c += p.b; v += b.v[4] - b.v[1]",
     {"r": SUM / 4, "f": SUM / 8, "q": SUM, "c": SUM / 2, "v": 3 * SUM}),
    ("lost:return", "static long c; if (n >= 0 && *text && real >= 0 && narrow >= 0 && p.a + p.b >= 0 && b.v[0] + b.v[1] + b.v[2] + b.v[3] +"
     " b.v[4] >= 0 && g >= 0 && h <= 0 && on_stack >= 0) c++", {"c": 100}),
    ("lost:exit", "static long c, s; c += text[0] == 't'; static unsigned long last; last = *(unsigned char *)text; s += (int)$ret != 0",
     {"c": 50, "last": ord("t"), "s": None}),
    ("lost:return", "static struct pair kept; kept = p; static long last; last = kept.a + times", {"last": 99 + 100}),
    ("deep:return", "static long bad; if (weight != 3 * n || n < 0 || n > 8 || $ret < 0) bad++", {"bad": 0}),
    ("leaps:return", "static long c, s, d; c++; s += n; d += depth",
     {"c": sum(i % 5 + 1 for i in range(0, 100, 2)), "s": sum(i * (i % 5 + 1) for i in range(0, 100, 2)),
      "d": sum(sum(range(i % 5 + 1)) for i in range(0, 100, 2))}),
    ("tail:exit", "static long c, s, m_; c++; s += n; m_ += m", {"c": 100, "s": SUM, "m_": sum(i & 7 for i in range(100))}),
    ("last:return", "static long s; s += n - ($ret - 1)", {"s": 0}),
    ("used:exit", "static long bad; if ($ret != v) bad++", {"bad": 0}),
    ("lost:loads", "static long bad, c; c++; static int last; if ($arg0 < 0 || $arg0 > 99) bad++", {"bad": 0, "c": MANY}),
    ("lost:calls", "static long c; c += $arg0", {"c": None}),
)
# without debug information
BARE = (
    ("lost:return", "static long a, k, t, v; a += (int)$arg0; k += $arg3; t += (short)$arg4 + $arg5; v += $arg10",
     {"a": SUM, "k": 3 * SUM, "t": 6 * SUM, "v": 5 * SUM}),
    ("tail:exit", "static long s; s += $arg0 + $arg1", {"s": SUM + sum(i & 7 for i in range(100))}),
)
WRONG = (("lost:return", "n = 1", b"can be assigned"),)
GONE = (("lost:return", "static long x; x = sum", b"cannot be reached here"),)
# where parameters have moved up
MOVED, DROPPED = ("moved", "static long s; s += kept", {"s": SUM}), ("moved", "static long x; x = unseen", b"optimised away")


def row(inlay, folder, program, native, point, code, expected):
    report = f"{folder}/report"
    for engine, command in engines(inlay, folder, program, point, code, report):
        done = driver.run(command, LIMIT, env=driver.ENVIRONMENT)
        if (done.status, done.stdout) != (0, native):
            raise Failed(f"{engine}: {done.status}, {done.stdout}", *driver.as_lines(done.stderr)[-4:])
        got = values(report)
        for name, value in expected.items():
            good = name in got and (value is None or (float(got[name]) > 0 if value == MANY else float(got[name]) == value))
            if not good:
                raise Failed(f"{engine}, {point}: {name} is {got.get(name)}, should be {value}", *driver.as_lines(done.stderr)[-4:])


def build(folder, name):
    program = f"{folder}/{name}"
    done = driver.run([*BUILDS[name], "-pthread", "-w", f"{HERE}/entered.c", "-o", program], LIMIT)
    if done.status:
        raise Failed("not compiled", *driver.as_lines(done.stderr)[-4:])
    return program


def at_returns(inlay, folder, name):
    program = build(folder, name)
    native = subprocess.run([program], capture_output=True, check=True).stdout
    moved = name == "clang-O2"
    rows = BARE if name == "gcc-no-debug" else ROWS + (MOVED,) * moved
    for point, code, expected in rows:
        row(inlay, folder, program, native, point, code, expected)
    for point, code, says in () if name == "gcc-no-debug" else WRONG if name == "gcc-O0" else WRONG + GONE + (DROPPED,) * moved:
        done = driver.run([inlay, "snippet", point, code, "--", program], LIMIT, env=driver.ENVIRONMENT)
        if says not in done.stderr:
            raise Failed(f"'{code}' is answered by", *driver.as_lines(done.stderr)[-4:])


def branches(inlay, folder):
    """Values that are told by expressions with branches."""
    program = f"{folder}/branches"
    done = driver.run(["gcc", "-O1", "-no-pie", f"{HERE}/branches.c", f"{HERE}/branches.S", "-o", program], LIMIT)
    if done.status:
        raise Failed("not compiled", *driver.as_lines(done.stderr)[-4:])
    row(inlay, folder, program, b"looked\n", "look", "static long s; s = s * 100 + chosen", {"s": 10203020})
    done = driver.run([inlay, "snippet", "look", "static long s; s = endless", "--", program], LIMIT, env=driver.ENVIRONMENT)
    if b"branches back" not in done.stderr:
        raise Failed("an endless expression is answered by", *driver.as_lines(done.stderr)[-4:])


def breaks(inlay, folder):
    """A breakpoint at a return tells all parameters as they were passed."""
    program = build(folder, "gcc-O2")
    done = driver.run([inlay, "break", "--hits", "1", "lost:return if n == 5 && $ret > 0", "--", program], LIMIT, env=driver.ENVIRONMENT)
    told = done.stdout.decode(errors="replace")
    for line in ("n: int = 5", "real: double = 1.25", "narrow: float = 0.625", "{a = 5, b = 2.5}", "{v = {5, 10, 15, 20, 25}}", "g: long = 15",
                 "h: short = -5", "on_stack: long = 35", '"ext"'):
        if line not in told:
            raise Failed(f"'{line}' is not told", *driver.as_lines(done.stdout)[:12])


def attached(inlay, folder, how):
    """The call that has begun before is none of the snippet's; its text is there again behind it."""
    program = build(folder, "gcc-O2")
    report, code = f"{folder}/{how}", "static long c, s; c++; s += n * ($ret == n)"
    with live.Conversation([program, "waits"], folder) as target:
        target.rests()
        words = ["snippet", "-p", target.process.pid, "-o", report, "--format=json", "waits:return", code]
        with Command(inlay, *words, ready="code at") as tool:
            for n in range(1, 6):
                target.process.stdin.write(b".....x" if n == 1 else b"x")
                target.process.stdin.flush()
                target.has_answered(n)
            target.rests()
            if how == "ends":
                answers, _ = target.end()
                if answers != b"1\n2\n3\n4\n5\n":
                    raise Failed("the program does not go on", repr(answers))
            tool.end(signal.SIGINT if how == "left" else None)
        got = values(report)
        expected = {"c": "5", "s": "14"} if how == "ends" else {"c": "4", "s": "14"}
        if got != expected:
            raise Failed(f"{got}, should be {expected}")
        if how == "left" and moved_code(target.process.pid, program):
            raise Failed("its text is not what it was")


def moved_code(pid, program):
    """Does the text of `waits` differ from the file's?"""
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, check=True, text=True).stdout.split("\n")
    at, size = next((int(s.split()[0], 16), int(s.split()[1], 16)) for s in symbols if s.endswith(" waits"))
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        base = min(int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(program))
    with open(f"/proc/{pid}/mem", "rb") as f, open(program, "rb") as whole:
        f.seek(base + at)
        there, file = f.read(size), whole.read()
    return there != file[at:at + size]


def main():
    options = driver.parser(__doc__).parse_args()
    inlay = f"{options.build}/inlay"
    with driver.Results("entered", options) as results:
        for name in BUILDS:
            if driver.chosen(name, options) and shutil.which(BUILDS[name][0]):
                results.check(name, lambda n=name: at_returns(inlay, results.folder, n))
        if driver.chosen("branches", options):
            results.check("branches", lambda: branches(inlay, results.folder))
        if driver.chosen("breaks", options):
            results.check("breaks", lambda: breaks(inlay, results.folder))
        for how in ("ends", "left"):
            if driver.chosen(how, options):
                results.check(how, lambda h=how: attached(inlay, results.folder, h))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
