#!/usr/bin/python3
"""Snippets as text, on programs: the same values under every engine.

  tests/snippets/run.py [--build build] [--only PATTERN] [--jobs 2]

Each row of ROWS is code at a procedure of tests/samples/figures.c (built optimised, not, fixed, static), or of a
program of the distribution, and what its variables are when the program ends. It runs under the JIT (inlay snippet) and
rewritten (inlay rewrite snippet); what the program itself writes must be what it writes natively.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import struct
import subprocess
import sys
import tempfile

FIGURES = ["figures", "figures_plain", "figures_fixed", "figures_static"]

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samples", "figures.c"), encoding="utf-8") as f:
    LINE = next(n for n, text in enumerate(f, 1) if "    seen++;" in text)

# name, point, code, variables at the end
ROWS = [
    ("parameters", "count", "static long n, sum; static unsigned w; n++; sum += tag; w += width; sum += deep",
     {"n": "10", "sum": str(-45 + 1023), "w": str(sum((65530 + i) % 65536 for i in range(10)))}),
    ("condition", "count", "static int n; if (deep >= 64 && *text == 't' || width == 65533) n++", {"n": "3"}),
    ("floats", "area", "static double f, e; static float last; f += factor; e += extra; last = factor / 3",
     {"f": "45", "e": "5.625", "last": "3"}),
    ("members", "area", "static long kinds, levels; static float scales; static double c; static int bytes;"
     " kinds += f->kind; levels += f->level; scales += f->scale; c += f->corners[corner & 3]; bytes += f->bytes[1];",
     {"kinds": "15", "levels": "485", "scales": "12.5", "c": "43", "bytes": str(5 * 255 + 5 * 3)}),
    ("followed", "area", "static long n; struct figure *g = (struct figure *)f; while (g) { n++; g = g->next; }",
     {"n": "15"}),
    ("strings", "area", "static int n; const char *s = f->name; int i = 0; for (;;) { if (s[i] == 0) break; i++; }"
     " n += i; if (f->name[0] == \"square\"[0]) n += 100;", {"n": str(60 + 500)}),
    ("globals", "count", "static long s; static double t; s += seen; t = max(t, total); s += first.kind + first.level",
     {"s": str(45 - 20), "t": None}),
    ("results", "count:exit", "static long sum; sum += $ret", {"sum": None}),
    ("result_real", "area:exit", "static double last; last = $ret", {"last": None}),
    ("arguments", "count", "static long a, b; a += (short)$arg1; b += *(char *)$arg3 == 'x'",
     {"a": str(-15), "b": "4"}),
    ("divisions", "count", "static int q, r, z, y; static long l; int m = -1, none = seen - seen; long w = -1;"
     " q = (-2147483647 - 1 + none) / m; r = (-2147483647 - 1 + none) % m; z = tag / none; y = 7 % none;"
     " l = (-9223372036854775807 - 1 + none) / w", {"q": str(-2**31), "r": "0", "z": "0", "y": "0", "l": str(-2**63)}),
    ("enumerators", "count", "static int n; static long m; if (paint == BLUE) n++; m = RED * 10 + GREEN", {"n": "10", "m": "-21"}),
    ("sizes", "count", "static long s; s = sizeof(struct figure) + sizeof first.corners + sizeof *text", {"s": "97"}),
    ("copies", "area", "static struct figure copy; static long k; copy = *f; copy.kind = 5; k += copy.kind + f->kind + copy.level;",
     {"k": "550"}),
    ("registers", "count", "static long d; d += (unsigned char)$rdi == (unsigned char)tag", {"d": "10"}),
    ("line", f"figures.c:{LINE}", "static long n, s; n++; s += seen", {"n": "10", "s": "45"}),
    ("calls", "main:calls", "static long n, a; n++; if ($target == (unsigned long)&count) a += (short)$arg1 ", {"n": None, "a": str(-15)}),
    ("blocks", "count:blocks", "static long n; n++", {"n": None}),
    ("loops", "main:loops", "static long n; n++", {"n": None}),
    ("loads", "area:loads", "static long n, b; n++; b += $bytes; static double c; if ($ea == (unsigned long)&total) c += total",
     {"n": None, "c": None}),
    ("stores", "coun?:stores", "static long n, v; n++; if ($ea == (unsigned long)&seen) v += (int)$value", {"v": "45"}),
    ("instructions", "area:instructions", "static unsigned long x, n; n++; x = x * 3 + $pc - (unsigned long)&area", {"n": None, "x": None}),
    ("returns_to", "count", "static long n; n += *(unsigned char *)($retaddr - 5) == 0xe8", {"n": "10"}),
    ("next", "area:instructions", "static unsigned long x, e; x = $next - $pc; if (e && e != $pc - (unsigned long)&area) x += 1000; e = $next - (unsigned long)&area", {"x": None}),
    ("branches", "main:branches", "static long n, t; n++; t += $taken", {"n": None, "t": None}),
    ("laid", "laid", "static long s; static double w; s = first_there + there.far + behind + f; w = width",
     {"s": str(ord("x") + 3006), "w": "0.5"}),
    ("choices", "count", "static long a, b; a += width > 65533 ? 1 : -1; b = min(b, tag) ; b = max(b, -5)",
     {"a": None, "b": "-5"}),
]

# Assignments change what the program does, the same way under both engines.
CHANGES = [
    ("global_set", "count", "if (deep == 512) { seen += 1000; first.corners[0] = 0.25; }"),
    ("stores_moved", "coun?:stores", "static long there; if ($ea == (unsigned long)&seen) $ea = (unsigned long)&there;"),
    ("member_set", "area", "((struct figure *)f)->corners[corner & 3] *= 2"),
]

# Calls of the program's procedures: point, code, variables, arguments of the sample. The last ends by std::terminate.
CALLS = [
    ("called_back", "area", "static long n; n += count(1, 2, 3, \"four\")", {"n": "100"}, "figures"),
    ("called_real", "count", "static double a; a = area(&first, 2.0f, 1, 0.25)", {"a": "234.625"}, "figures"),
    ("called_by_itself", "count", "static long n; n++; if (deep < 4) count(tag, width, deep, text)", {"n": "26"}, "figures"),
    ("called_in_loop", "area:exit", "static long n; for (int i = 0; i < 3; i++) n += count(i, 0, 0, \"\")", {"n": "30"}, "figures"),
    ("called_declared", "poked", "static long n; extern long work(long, double); n += work($arg0 % 7, 2)",
     {"n": str(sum(i % 7 * (i % 7 - 1) for i in range(3000)))}, "callees leaps"),
    ("called_signals", "poked", "static long n; n += work(500, 0.5)", {"n": str(2000 * int(499 * 500 / 4))}, "callees signals"),
    ("called_often", "poked", "if (work(2, 2) != 2) { static long bad; bad++; }", {"bad": "0"}, "callees often"),
    ("called_threads", "poked", "long n = work(20, 2); if (n != 380) { static long bad; bad++; }", {"bad": "0"}, "callees threads"),
    ("called_leaps", "poked", "static long n, m; m++; n += leap($arg0)", {"m": "3000", "n": str(sum(i for i in range(3000) if i % 3))},
     "callees leaps"),
    ("interrupted", "poked", "static double d; if ($arg0 == 7) for (long i = 0; i < 40000 && ticks < 5; i++) d += i * 0.5; d = 0",
     {"d": "0"}, "callees signals"),
    ("called_throws", "poked", "thrower($arg0)", {}, "callees throws"),
]

DEBIAN = [
    ("write", "write", "static long calls, bytes; if ($arg0 == 1) { calls++; bytes += $arg2; }", ["ls", "/"]),
    ("malloc", "malloc", "static unsigned long n, most; n++; most = max(most, (unsigned long)$arg0)", ["sort", "/etc/passwd"]),
]


class Failure(Exception):
    pass


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, **more)


def reported(done, file):
    if not os.path.exists(file):
        raise Failure(f"no report: status {done.returncode}, {done.stderr.decode(errors='replace')[-600:]}")
    with open(file, encoding="utf-8") as f:
        text = f.read()
    os.unlink(file)
    if not text:
        raise Failure(f"an empty report: status {done.returncode}, {done.stderr.decode(errors='replace')[-600:]}")
    return json.loads(text)


def both(args, scratch, point, code, command):
    """What the program writes and the report's variables, under each engine."""
    out = os.path.join(scratch, "report")
    inlay = os.path.join(args.build, "inlay")
    done = run([inlay, "snippet", "-o", out, "--format=json", point, code, "--"] + command)
    yield "jit", done, reported(done, out)
    program = run(["sh", "-c", f"command -v {command[0]}"]).stdout.decode().strip()
    written = os.path.join(scratch, "written")
    more = [] if os.path.dirname(command[0]) else ["--with-libs", os.path.join(scratch, "libs")]
    made = run([inlay, "rewrite", "snippet", f"--at={point}", f"--code={code}", "--format=json", "--result", out, program]
               + (more or ["-o", written]))
    if made.returncode:
        raise Failure(f"not rewritten: {made.stderr.decode(errors='replace')[-600:]}")
    if more:
        written = os.path.join(scratch, "libs", os.path.basename(program))
    done = run([written] + command[1:])
    yield "rewrite", done, reported(done, out)


def values(report):
    found = {}
    for v in report["variables"]:
        if v["name"] in found and found[v["name"]] != v["value"]:
            found[v["name"]] += "," + v["value"]
        else:
            found[v["name"]] = v["value"]
    return found


def check(args, name, point, code, expected, command):
    native = run(command)
    with tempfile.TemporaryDirectory(prefix="inlay-snippets-") as scratch:
        first = None
        for engine, done, report in both(args, scratch, point, code, command):
            got = values(report)
            got.pop("copy", None)  # holds pointers
            if report["places"] < 1:
                raise Failure(f"{engine}: no place: {done.stderr.decode(errors='replace')[-400:]}")
            same = done.stdout == native.stdout and done.returncode == native.returncode
            if name not in [c[0] for c in CHANGES + CALLS] and not same:
                raise Failure(f"{engine}: the program does something else: {done.returncode}, {done.stdout[-200:]}")
            for key, value in (expected or {}).items():
                if key not in got or (value is not None and got[key] != value):
                    raise Failure(f"{engine}: {key} is {got.get(key)}, should be {value}")
            if first is None:
                first = got, done.stdout
            elif first != (got, done.stdout):
                raise Failure(f"{engine}: {got} {done.stdout}, under the JIT {first}")
        if name in [c[0] for c in CHANGES] and first[1] == native.stdout:
            raise Failure("the assignment changed nothing")


PRINTS = ("print(factor / 3); print(corner); show(f->name); print_real(-extra); print(f->name); "
          "print((unsigned long)-1 - corner); print((void *)16); print(-(char)corner)")


def check_prints(args):
    """What routines of the tool are given, floating point among it, is the same under both engines."""
    sample = os.path.join(args.build, "tests", "samples", "figures")
    wanted = []
    for i in range(10):
        third = struct.unpack("f", struct.pack("f", i / 3))[0]
        wanted += [f"{third:.17g}", str(i), ["square", "circle"][i & 1], f"{-(i / 8):.17g}",
                   ["square", "circle"][i & 1], str(2 ** 64 - 1 - i), "0x10", str(-i)]
    with tempfile.TemporaryDirectory(prefix="inlay-snippets-") as scratch:
        out, inlay = os.path.join(scratch, "out"), os.path.join(args.build, "inlay")
        run([inlay, "snippet", "-o", out, "area", PRINTS, "--", sample])
        made = run([inlay, "rewrite", "snippet", "--at=area", f"--code={PRINTS}", "--result", out + "2", sample,
                    "-o", os.path.join(scratch, "written")])
        if made.returncode:
            raise Failure(made.stderr.decode(errors="replace")[-600:])
        run([os.path.join(scratch, "written")])
        for file in (out, out + "2"):
            with open(file, encoding="utf-8") as f:
                lines = f.read().splitlines()
            if lines[:len(wanted)] != wanted:
                raise Failure(f"{lines} are written, not {wanted}")


OBJECTS = """
    #include <string>
    struct two { int a; double b; };
    struct ints { long x; short y; unsigned z : 5, w : 11; };
    enum colour { red, green = 7 };
    union either { int i; unsigned char c[4]; };
    struct all { std::string name; two t[3]; char s[8]; bool ok; colour c; either e; };
    static int many[20];
    __attribute__((noinline)) double given(two t, ints i, all *d) { many[t.a]++; return t.a + t.b + i.x + i.z + d->e.i; }
    int main() {
        static all d = {"said \\"so\\"", {{1, 2.5}}, "abc", true, green, {3}};
        double s = 0;
        for (int i = 0; i < 3; i++) s += given({i, 0.5}, {-7, 9, 3, 1000}, &d);
        return s != 1.5; }
    """
OBJECTS_CODE = ("print(t); print(i); print(d->t); print(d->name); print(d->s); print(d->e); print(many); print(*(struct two *)8); "
                "print(t.a); static two kept; kept = t;")


def check_objects(args):
    """Structures, arrays and strings are told as people read them, from memory and from registers, under each engine."""
    wanted = []
    for i in range(3):
        many = ["1"] * i + ["0"] * (16 - i)
        wanted += [f"{{a = {i}, b = 0.5}}", "{x = -7, y = 9, z = 3, w = 1000}",
                   "{{a = 1, b = 2.5}, {a = 0, b = 0}, {a = 0, b = 0}}", r'"said \"so\""', "abc", "{i = 3, c = {3, 0, 0, 0}}",
                   "{" + ", ".join(many) + ", ...}", "(unreadable)", str(i)]
    inlay = os.path.join(args.build, "inlay")
    with tempfile.TemporaryDirectory(prefix="inlay-snippets-") as scratch:
        source, program, out, written = (os.path.join(scratch, name) for name in ("objects.cc", "objects", "out", "written"))
        with open(source, "w", encoding="ascii") as f:
            f.write(OBJECTS)
        steps = [["g++", "-g", "-O1", "-fno-ipa-sra", source, "-o", program],
                 [inlay, "snippet", "-o", out, "given", OBJECTS_CODE, "--", program],
                 [inlay, "run", "--engine=live", "-o", out + "2", "snippet", "--at=given", f"--code={OBJECTS_CODE}", "--", program],
                 [inlay, "rewrite", "snippet", "--at=given", f"--code={OBJECTS_CODE}", "--result", out + "3", program, "-o", written],
                 [written]]
        for step in steps:
            done = run(step)
            if done.returncode:
                raise Failure(f"{step}: {done.stderr.decode(errors='replace')[-600:]}")
        for file in (out, out + "2", out + "3"):
            with open(file, encoding="utf-8") as f:
                lines = f.read().splitlines()
            if lines[:len(wanted)] != wanted or not lines[-1].endswith(": kept = {a = 2, b = 0.5}"):
                raise Failure(f"{lines} are written, not {wanted}")


def check_forms(args):
    """The functions of typed.h make what texts do."""
    here = os.path.dirname(os.path.abspath(__file__))
    inlay, sample = os.path.join(args.build, "inlay"), os.path.join(args.build, "tests", "samples", "figures")
    with tempfile.TemporaryDirectory(prefix="inlay-snippets-") as scratch:
        tool, out, written = (os.path.join(scratch, name) for name in ("forms", "out", "written"))
        steps = [[inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O1", os.path.join(here, "forms_tool.c"), "-o", tool],
                 [inlay, "run", "-o", out, tool, "--", sample],
                 [inlay, "rewrite", tool, "--result", out + "2", sample, "-o", written], [written]]
        for step in steps:
            done = run(step)
            if done.returncode:
                raise Failure(f"{step}: {done.stderr.decode(errors='replace')[-600:]}")
        for file in (out, out + "2"):
            with open(file, encoding="utf-8") as f:
                lines = f.read().splitlines()
            if len(lines) != 1 or not lines[0] or len(set(lines[0].split(" of "))) != 1:
                raise Failure(f"{lines}")


def check_blame(args):
    """A snippet that follows a wrong pointer ends the program, and is said to be what did it."""
    inlay, sample = os.path.join(args.build, "inlay"), os.path.join(args.build, "tests", "samples", "figures")
    code = "static int x; x = ((struct figure *)0)->kind"
    with tempfile.TemporaryDirectory(prefix="inlay-snippets-") as scratch:
        written = os.path.join(scratch, "written")
        run([inlay, "rewrite", "snippet", "--at=count", f"--code={code}", sample, "-o", written])
        for engine, command in (("jit", [inlay, "snippet", "count", code, "--", sample]), ("rewrite", [written])):
            done = run(command)
            if done.returncode != -11 or b"an expression inserted into the program's code" not in done.stderr:
                raise Failure(f"{engine}: {done.returncode}, {done.stderr[-300:]}")


def cases(args):
    samples = os.path.join(args.build, "tests", "samples")
    for sample in FIGURES:
        command = [os.path.join(samples, sample)]
        for name, point, code, expected in ROWS:
            yield f"{name}-{sample}", name, point, code, expected, command
        for name, point, code in CHANGES:
            yield f"{name}-{sample}", name, point, code, {}, command
    for name, point, code, expected, command in CALLS:
        yield name, name, point, code, expected, [os.path.join(samples, command.split()[0])] + command.split()[1:]
    for name, point, code, command in DEBIAN:
        yield f"{name}-{command[0]}", name, point, code, {}, command


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    failed = passed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        todo = {}
        for title, function in (("prints", check_prints), ("objects", check_objects), ("forms", check_forms), ("blame", check_blame)):
            if any(fnmatch.fnmatch(title, p) for p in args.only.split(",")):
                todo[pool.submit(function, args)] = title
        for title, *rest in cases(args):
            if any(fnmatch.fnmatch(title, p) for p in args.only.split(",")):
                todo[pool.submit(check, args, *rest)] = title
        for done in concurrent.futures.as_completed(todo):
            try:
                done.result()
                passed += 1
            except (Failure, subprocess.TimeoutExpired, ValueError) as e:
                failed += 1
                print(f"FAIL {todo[done]}: {e}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
