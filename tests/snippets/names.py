#!/usr/bin/python3
"""Names of C++ in snippets' texts: spaces, classes and their bases, `this`, bit fields, unions, templates, overloads, data of
threads; with what compilers make of them (gcc and clang, DWARF 4 and 5, optimised and not), under each engine.

  tests/snippets/names.py [--build DIR] [--only PATTERN] [--keep]
"""

import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
# point, code, what its variables are at the end; both threads come by
ROWS = (
    ("hit", "static long a, b, c, d; a += own; b += own_static[n & 3]; if (n == 5) { own += 1; c++; } d += own_static[3]",
     {"a": 2 * (600 + 0 + 0 + 1 + 3 + 6 + 10), "b": 2 * (1 + 2 + 3 + 4 + 2 + 3), "c": 2}),
    ("hit", "static long a, b, c, e, f; a = space::plain; b = space::hidden + hidden; c += space::colour::green == 8;"
     " e = space::second; f = (long)space::paint", {"a": 11, "b": 24, "c": 12, "e": 22, "f": 8}),
    ("hit", "static long a, b, c; a = space::point::made; b = space::counted - space::version::counted; space::point *p = &d->corners[2];"
     " c = p->y + space::point::few + point::few", {"a": 14, "b": 0, "c": 38}),
    ("hit", "static long a, b, c, e, f, g; static double w; a = d->id; b = d->shared; w = d->weight; c = d->low; e = d->high;"
     " f = d->part[3]; d->high = e; g = d->whole", {"a": None, "b": 42, "w": 2.5, "c": 5, "e": 300, "f": 1, "g": 0x01020304}),
    ("hit", "static long a, b, c, e, f, g, h, i; if (n == 1) { a = (*d->chosen)(21); b = `overloaded(int)`(4); c = (long)`overloaded(double)`(4.5);"
     " e = space::mixed(3, &d->corners[1]); f = `grown<int>`(1); g = `long grown<long>(long)`(2); h = space::marked(d->corners);"
     " i = `space::marked(space::point const*)`(&d->corners[1]); }",
     {"a": 42, "b": 5, "c": 9, "e": 13, "f": 4, "g": 5, "h": 20, "i": 21}),
    ("hit", "static long a, b, c, e, f; a = d->parts[1].mass; b = d->parts[0].next == &d->parts[1]; c = sizeof(d->parts);"
     " e = d->parts[0].next->how; f = d->parts[1].how < 0", {"a": 8, "b": 1, "c": 48, "e": -5, "f": 1}),
    ("derived::method", "static long a, b, c; a = id; b = this->shared + shared; c = corners[1].y; if (by == 2) whole += 1",
     {"a": None, "b": 84, "c": 10}),
    ("space::box<long>::get", "static long a; a = held + count * 10000 + add", {"a": 51001}),
    ("`derived::method(int)`", "static long a, b, c, n; n++; a = `space::box<long>::boxes`; void *p = &space::cells;"
     " b = ((`space::row<space::box<unsigned short>, 2ul>` *)p)->cells[1].held; c = sizeof(`box<short unsigned int>`)",
     {"a": 16, "b": 3, "c": 8, "n": 2}),
    ("chooses", "static long a, b, c, e; a = none == 0; b = member; c = of.ptr != 0 && of.adj == 0; e = last", {"a": 1, "b": 2, "c": 1, "e": 5}),
    ("unpassed", "static long a, b; a = 7 + (gone != 0); b = 8 + narrow", {"a": 7, "b": 9}),
)
WRONG = (("hit", "overloaded(1)", b"several of that name"), ("hit", "space::nothing = 1", b"not known"),
         ("hit", "text = 1", b"struct"), ("hit", "unneeded++", b"left out when"), ("hit", "space::point::nothing", b"not known"))
BUILDS = {f"{cc}-{o[1:]}-dwarf{v}": [cc, o, f"-gdwarf-{v}"] for cc in ("g++", "clang++") for o in ("-O0", "-O2") for v in (4, 5)}
BUILDS |= {"g++-no-pie": ["g++", "-O1", "-g", "-no-pie"], "g++-static": ["g++", "-O1", "-g", "-static"]}
# Types in units of their own, named by signatures.
BUILDS |= {f"{cc}-types-dwarf{v}": [cc, "-O1", "-fdebug-types-section", f"-gdwarf-{v}"] for cc in ("g++", "clang++") for v in (4, 5)}
# Debug information in .dwo files, or in a package of them beside the program, made by that command. (dwp of binutils 2.40
# crashes where it is DWARF 5.)
SPLIT = {f"{cc}-split-dwarf{v}{'-' + with_ if with_ else ''}": ([cc, "-O1", "-gsplit-dwarf", f"-gdwarf-{v}"], with_)
         for cc in ("g++", "clang++") for v in (4, 5) for with_ in ("", "dwp", "llvm-dwp") if (v, with_) != (5, "dwp")}
BUILDS |= {name: command for name, (command, _) in SPLIT.items()}
# gcc gives each such type a section of its own in the .dwo file, of which libdw reads one.
BUILDS |= {f"clang++-split-types-dwarf{v}": ["clang++", "-O1", "-gsplit-dwarf", "-fdebug-types-section", f"-gdwarf-{v}"]
           for v in (4, 5)}
QUICK = "g++-O2-dwarf5,g++-types-dwarf4,clang++-types-dwarf5,clang++-split-types-dwarf5,g++-split-dwarf5-llvm-dwp,clang++-split-dwarf4-dwp"


def values(report):
    with open(report, encoding="utf-8") as f:
        return {v["name"]: v["value"] for v in json.load(f)["variables"]}


def engines(inlay, folder, program, point, code, report):
    """Commands that run it with the code."""
    tool = ["snippet", f"--at={point}", f"--code={code}", "--format=json"]
    for engine in ("jit", "live"):
        yield engine, [inlay, "run", f"--engine={engine}", *tool, "-o", report, "--", program]
    made = driver.run([inlay, "rewrite", *tool, "--result", report, program, "-o", f"{folder}/written"], LIMIT)
    if made.status:
        raise Failed("not rewritten", *driver.as_lines(made.stderr)[-4:])
    yield "rewrite", [f"{folder}/written"]


def row(inlay, folder, program, native, point, code, expected):
    report = f"{folder}/report"
    for engine, command in engines(inlay, folder, program, point, code, report):
        done = driver.run(command, LIMIT, env=driver.ENVIRONMENT)
        if (done.status, done.stdout) != (0, native) and "own += 1" not in code and "whole" not in code:
            raise Failed(f"{engine}: {done.status}, {done.stdout}", *driver.as_lines(done.stderr)[-4:])
        got = values(report)
        for name, value in expected.items():
            if value is not None and (name not in got or float(got[name]) != value):
                raise Failed(f"{engine}, {point}: {name} is {got.get(name)}, should be {value}", *driver.as_lines(done.stderr)[-4:])


def build(folder, name, *options):
    program = f"{folder}/{name}"
    leaves_out = ["-fdata-sections", "-Wl,--gc-sections"]
    done = driver.run([*BUILDS[name], "-pthread", "-w", *leaves_out, *options, f"{HERE}/names.cc", "-o", program], LIMIT, cwd=folder)
    if done.status:
        raise Failed("not compiled", *driver.as_lines(done.stderr)[-4:])
    if SPLIT.get(name, (None, ""))[1]:
        pack(folder, program, SPLIT[name][1])
    return program


def pack(folder, program, command):
    """Its .dwo files become one package."""
    done = driver.run([command, "-e", program, "-o", f"{program}.dwp"], LIMIT, cwd=folder)
    files = [f for f in os.listdir(folder) if f.endswith(".dwo")]
    if done.status or not files:
        raise Failed("not packed", *driver.as_lines(done.stderr)[-4:])
    for f in files:
        os.unlink(f"{folder}/{f}")


def names(inlay, folder, name):
    program = build(folder, name)
    native = subprocess.run([program], capture_output=True, check=True).stdout
    for point, code, expected in ROWS:
        row(inlay, folder, program, native, point, code, expected)
    for point, code, says in WRONG:
        done = driver.run([inlay, "snippet", point, code, "--", program], LIMIT, env=driver.ENVIRONMENT)
        if says not in done.stderr:
            raise Failed(f"'{code}' is answered by", *driver.as_lines(done.stderr)[-4:])


def main():
    options = driver.parser(__doc__, only=QUICK).parse_args()
    with driver.Results("names", options) as results:
        for name in BUILDS:
            tools = [BUILDS[name][0]] + [t for t in SPLIT.get(name, (None, ""))[1:] if t]
            if driver.chosen(name, options) and all(shutil.which(t) for t in tools):
                results.check(name, lambda n=name: names(f"{options.build}/inlay", results.folder, n))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
