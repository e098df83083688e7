#!/usr/bin/python3
"""Jump tables: what the analysis finds against what the compiler wrote.

  tests/rewrite/tables.py [--build DIR] [--only CASE] [--keep]

Programs full of switches (made here, with a fixed seed; and a Rust program) are compiled to assembly, where each
table can be seen with its length. Its label is renamed so that the linker keeps it, and the program is linked,
with symbols and stripped. Then for each table that `inlay info` found at such a place:

  - no entry is missing where it says that none is, nor in any procedure that is whole;
  - few are read further than they reach, and few are not exact.

Besides, the program rewritten prints what it printed. Prints N passed, N failed at the end.
"""

import json
import os
import random
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60
FORMS = [(f"{compiler} {flags}", compiler, flags.split())
         for compiler in ("gcc", "clang")
         for flags in ("-O1 -fPIE -pie", "-O2 -fPIE -pie", "-O3 -fPIC -pie", "-Os -fPIE -pie",
                       "-O2 -fno-pie -no-pie", "-O2 -fno-pie -no-pie -static", "-O2 -mcmodel=large -fPIE -pie")]
# (clang's tables have entries then that no index leads to: they are not read.)
FORMS.append(("gcc -O0 -fPIE -pie", "gcc", ["-O0", "-fPIE", "-pie"]))

# How the selector comes about: its parameters, the expression, whether values beyond the cases are ruled out, and
# the values that may then occur.
SELECTORS = [
    ("int x", "x", False), ("unsigned x", "x", False), ("long x", "x", False), ("unsigned char x", "x", False),
    ("signed char x", "x", False), ("short x", "x - 3", False), ("unsigned x", "x & 7", False),
    ("unsigned x", "x & 15", True), ("unsigned x", "x >> 28", False), ("unsigned x", "x >> 29", True),
    ("unsigned char x", "x", True), ("unsigned short x", "x", True), ("unsigned x", "x % 11", False),
    ("unsigned char x", "(unsigned char)(x - 0x80)", False), ("unsigned char x", "(unsigned char)(x + 3)", True),
    ("struct bits x", "x.kind", True), ("struct bits x", "x.rest", True), ("struct bits *x", "x->kind", True),
    ("unsigned char *x", "x[3]", False), ("unsigned char *x", "x[3]", True), ("int *x", "*x", False),
    ("long x", "(x > 2) + (x > 5) + (x > 9) + (x > 11)", False), ("unsigned x", "x ^ 5", False),
    ("unsigned long x", "x & 31", True), ("unsigned long x", "x", True),
]
# What no value reaches, by the end of the expression.
BEYOND = {"7": 8, "15": 16, "31": 32, "28": 16, "29": 8, "11": 11, "x.kind": 8, "x.rest": 16, "x->kind": 8}
PRELUDE = """
#include <stdio.h>
struct bits { unsigned kind : 3, rest : 4, other : 25; };
volatile int sink;
__attribute__((noinline)) static int use(int a, int b) { sink += a * 31 + b; return sink ^ a; }
"""


def body(rng, label):
    value = rng.randrange(1000)
    forms = (f"r += use({value}, r);", f"r = r * {value} + y;", f"r ^= {value};", f"r = use(r, y) + use(y, {value});",
             f"for (int i = 0; i < (y & 7); i++) r += use(i, {value});",
             f"if (r > y) r -= {value}; else r = use(y, r);")
    end = rng.choice(("break;", "break;", "break;", "return r + 1;", "/* fall through */"))
    return f"    {label} {rng.choice(forms)} {end}\n"


def routine(rng, number):
    """A procedure with a switch, and how main calls it."""
    parameter, selector, closed = SELECTORS[number % len(SELECTORS)]
    lowest = -2 if parameter in ("int x", "long x", "signed char x") else 0
    first = rng.choice((0, 0, 0, 1, lowest, 0 if closed else 7))
    if parameter == "unsigned long x":
        first = rng.choice((3, 4, 7))  # tables are read from before their start, the index being so large at least
    count = rng.randrange(5, 8) if re.search(r"7|kind|29|\(x >", selector) else rng.randrange(5, 30)
    beyond = BEYOND.get(selector.split()[-1], 1 << 16)
    labels = [v for v in range(first, min(first + count, beyond)) if rng.random() > 0.15]
    if number % 29 == 13:
        labels = list(range(256))
    cases = "".join(body(rng, f"case {v}:") for v in labels)
    default = rng.choice(("", "default: r = use(r, 77); break;"))
    if closed:
        default = "break;\n    default: __builtin_unreachable();"
    guard = f"    if ((unsigned long)({selector}) > {max(labels) + 2}) return use(1, y);\n"
    if rng.random() > 0.2:
        guard = ""
    loop = ("    for (int k = 0; k < 3; k++) {\n", "    y += use(k, r); }\n") if rng.random() < 0.4 else ("", "")
    name, pointer = f"f{number}", "*" in parameter
    text = (f"__attribute__((noinline)) int {name}({parameter}, int y) {{\n    int r = {number};\n{guard}{loop[0]}"
            f"    switch ({selector}) {{\n{cases}    {default}\n    }}\n{loop[1]}"
            f"    r += use(r, y);\n    return r;\n}}\n")
    kind = parameter.rsplit(" ", 1)[0] if not pointer else parameter.replace("*x", "").strip()
    argument = "t4" if kind == "unsigned char" and pointer else "&t" if pointer else "t"
    test = (f"for (long v = -150; v < 150; v++) {{ {value_of(kind)} {select_test(selector, labels, closed)} "
            f"sum = sum * 33 + {name}({argument}, (int)v); }}")
    return text, test


def value_of(kind):
    """Declares t (and t4, x) with the value of v."""
    if kind == "struct bits":
        return "struct bits t = {v & 7, v & 15, 0}; struct bits *p = &t;"
    if kind == "unsigned":
        return "unsigned t = (unsigned)v * 0x10000001u;"
    return f"{kind} t = ({kind})v; unsigned char t4[4] = {{0, 0, 0, (unsigned char)v}}; (void)t4;"


def select_test(selector, labels, closed):
    """Passes over values that the program says never to occur."""
    if not closed:
        return ""
    it = selector.replace("x->kind", "t.kind").replace("x[3]", "t4[3]")
    it = re.sub(r"\bx\b", "t", it)
    known = " && ".join(f"s != {v}" for v in labels)
    return f"unsigned long s = {it}; if ({known}) continue;"


def program(seed, count):
    rng = random.Random(seed)
    routines = [routine(rng, number) for number in range(count)]
    main = "".join(f"    {call}\n" for _, call in routines)
    return f"{PRELUDE}{''.join(text for text, _ in routines)}int main(void) {{\n    unsigned sum = 1;\n{main}" \
           f"    printf(\"%u %d\\n\", sum, sink);\n    return 0;\n}}\n"


RUST = """
#![no_std]
#![crate_type = "rlib"]
extern "C" { fn used(a: u32, b: u32) -> u32; }
pub enum Op { A(u32), B(u32, u8), C, D { x: i64 }, E(Option<u8>), F, G(char), H, I, J(u16) }
#[inline(never)]
fn one(o: &Op, y: u32) -> u32 {
    match o {
        Op::A(n) => n.wrapping_mul(y), Op::B(a, b) => a ^ (*b as u32), Op::C => unsafe { used(y, 3) },
        Op::D { x } => (*x as u32).wrapping_sub(y), Op::E(Some(v)) => *v as u32 + 9, Op::E(None) => y / 3,
        Op::F => unsafe { used(1, y).wrapping_mul(3) }, Op::G(c) => *c as u32, Op::H => y.swap_bytes(), Op::I => 17,
        Op::J(n) => (*n as u32) << 2,
    }
}
#[no_mangle]
pub extern "C" fn kinds(kind: u8, y: u32) -> u32 {
    unsafe { match kind & 7 { 0 => used(y, 1), 1 => used(2, y) + 3, 2 => used(y, y) ^ 0x55, 3 => y.swap_bytes(),
                              4 => used(4, 4), 5 => used(y, 5) >> 2, 6 => y.wrapping_mul(77), _ => used(0, 0) } }
}
#[no_mangle]
pub extern "C" fn ops(i: u32, y: u32) -> u32 {
    let all = [Op::A(3), Op::B(4, 5), Op::C, Op::D { x: -9 }, Op::E(Some(1)), Op::E(None), Op::F, Op::G('x'), Op::H,
               Op::I, Op::J(7)];
    match all.get(i as usize) { Some(o) => one(o, y), None => 0 }
}
"""
RUST_MAIN = """
#include <stdio.h>
unsigned kinds(unsigned char, unsigned), ops(unsigned, unsigned);
volatile unsigned sink;
unsigned used(unsigned a, unsigned b) { return sink = sink * 31 + a ^ b; }
int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 300; i++) sum = sum * 31 ^ ops(i % 11, sum) ^ kinds((unsigned char)i, sum);
    printf("%u %u\\n", sum, sink);
    return 0;
}
"""

TABLE = re.compile(r"^(\.L[\w$]+):\n((?:\s+\.(?:long|quad)\s+\.L[\w$]+(?:-\.L[\w$]+)?\n)+)", re.M)


def keep_labels(assembly):
    """The text with its tables' labels made ordinary ones, and {label: entries}."""
    lengths, names = {}, {}
    for found in TABLE.finditer(assembly):
        entries = found[2].splitlines()
        relative = [e for e in entries if e.endswith("-" + found[1])]
        if len(relative) != len(entries) and any(".long" in e or "-" in e for e in entries):
            continue
        names[found[1]] = f"kept_table_{len(names)}"
        lengths[names[found[1]]] = len(entries)
    return re.sub(r"\.L[\w$]+", lambda m: names.get(m[0], m[0]), assembly), lengths


def check(what, good, *more):
    if not good:
        raise Failed(what, *more)


class Test:
    def __init__(self, results):
        self.results, self.root = results, results.folder
        self.inlay = f"{results.options.build}/inlay"

    def run(self, *argv):
        done = driver.run(argv, LIMIT, cwd=self.root)
        check(f"{argv[0]}: status {done.status}", done.status == 0, *driver.as_lines(done.stderr)[-8:])
        return done.stdout.decode()

    def link(self, name, assembly, command):
        """A program and its tables: {address: entries}."""
        text, lengths = keep_labels(assembly)
        with open(f"{self.root}/{name}.s", "w") as f:
            f.write(text)
        self.run(*command, f"{name}.s", "-o", name)
        places = {}
        for line in self.run("nm", name).splitlines():
            words = line.split()
            if len(words) == 3 and words[2] in lengths:
                places[int(words[0], 16)] = lengths[words[2]]
        check("its tables are not there", len(places) == len(lengths) > 0)
        return places

    def found(self, name):
        """(table's address, entries, exact, whether its procedure is whole)."""
        self.run(self.inlay, "info", name, "--proc=*", "--format=json", "-o", f"{name}.json")
        with open(f"{self.root}/{name}.json") as f:
            procs = json.load(f)["matching"]
        return [(t["table"], t["entries"], t["exact"], p["status"] == "whole") for p in procs for t in p["tables"]]

    def judge(self, name, places):
        ours = [t for t in self.found(name) if t[0] in places]
        missing = places.keys() - {t[0] for t in ours}
        check(f"{len(missing)} of {len(places)} tables not found", len(missing) * 50 <= len(places),
              *[hex(a) for a in sorted(missing)][:8])
        short = [t for t in ours if t[1] < places[t[0]] and (t[2] or t[3])]
        check(f"{len(short)} of {len(places)} tables read too short",
              not short, *[f"{a:#x}: {n} of {places[a]} entries, exact {e}" for a, n, e, _ in short[:8]])
        long = [t for t in ours if t[1] > places[t[0]]]
        check(f"{len(long)} of {len(places)} tables read too far", len(long) * 50 <= len(places),
              *[f"{a:#x}: {n} for {places[a]} entries, exact {e}" for a, n, e, _ in long[:8]])
        open_ones = [t for t in ours if not t[2]]
        check(f"{len(open_ones)} of {len(places)} tables not exact", len(open_ones) * 20 <= len(places),
              *[f"{a:#x}: {n} of {places[a]}" for a, n, *_ in open_ones[:8]])

    def same(self, name):
        driver.rewrite(self.inlay, ["null", f"{self.root}/{name}", "-o", f"{self.root}/{name}.null"])
        native = driver.run([f"{self.root}/{name}"], LIMIT)
        check(f"{name}: status {native.status}", native.status == 0)
        told = driver.differences(native, driver.run([f"{self.root}/{name}.null"], LIMIT))
        check(f"{name}, rewritten", not told, *told)

    def case(self, name, assembly, command):
        places = self.link(name, assembly, command)
        self.run("strip", name, "-o", f"{name}.stripped")
        for file in (name, f"{name}.stripped"):
            self.judge(file, places)
            self.same(file)

    def switches(self, name, compiler, flags):
        with open(f"{self.root}/switches.c", "w") as f:
            f.write(program(20, 75))
        compile_flags = [f for f in flags if f not in ("-pie", "-no-pie", "-static")]
        self.run(compiler, "-w", "-fwrapv", *compile_flags, "-S", "switches.c", "-o", "switches.s")
        with open(f"{self.root}/switches.s") as f:
            text = f.read()
        self.case(re.sub(r"\W+", "_", name), text, [compiler, *flags])

    def rust(self):
        for file, text in (("rust.rs", RUST), ("rust_main.c", RUST_MAIN)):
            with open(f"{self.root}/{file}", "w") as f:
                f.write(text)
        self.run("rustc", "-O", "-C", "codegen-units=1", "-C", "panic=abort", "--emit=asm", "rust.rs", "-o", "made.s")
        with open(f"{self.root}/made.s") as f:
            self.case("rust", f.read(), ["gcc", "-w", "rust_main.c"])


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("tables", options) as results:
        test = Test(results)
        for name, compiler, flags in FORMS:
            if not shutil.which(compiler):
                results.skip(name, f"there is no {compiler}")
                continue
            results.check(name, lambda: test.switches(name, compiler, flags))
        if shutil.which("rustc"):
            results.check("rust", test.rust)
        else:
            results.skip("rust", "there is no rustc")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
