#!/usr/bin/python3
"""Programs and libraries whose tables are damaged where nothing of their own looks: they run natively, so they run
with a tool inside too. What reads those tables there is the carried run time.

  tests/rewrite/damaged.py [--build DIR] [--only CASE] [--count 120] [--seed 1] [--keep]

  known     hash tables without an end, symbols and unwind tables that lead outside, notes that are none
  random    bytes of hash tables, symbols, unwind tables, notes and program headers, at random

Each in a program that is then rewritten, and in a library of a program that has been rewritten.
"""

import os
import random
import shutil
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60
# A system call whose number is not known, in code that no unwind table describes: its procedure is looked for.
CALLS = """
long %(name)s(long);
__asm__(".text\\n.globl %(name)s\\n.type %(name)s,@function\\n%(name)s: mov %%rdi, %%rax\\n xor %%edi, %%edi\\n"
        "xor %%esi, %%esi\\n syscall\\n ret\\n nop\\n nop\\n.size %(name)s,.-%(name)s\\n");
int %(name)s_is_right(void) { return %(name)s(39) > 0 && %(name)s(102) >= 0; }
"""
PROGRAM = """
#include <stdio.h>
int of_library_is_right(void);
int main(void) { printf("%d %d\\n", of_program_is_right(), of_library_is_right()); return 0; }
"""
PT_DYNAMIC, PT_NOTE, PT_GNU_EH_FRAME = 2, 4, 0x6474e550
DT_HASH, DT_SYMTAB, DT_GNU_HASH = 4, 6, 0x6ffffef5


class Tables:
    """Where they are in a file whose first segment's addresses are offsets."""

    def __init__(self, data):
        self.data = bytearray(data)
        phoff, = struct.unpack_from("<Q", data, 32)
        count, = struct.unpack_from("<H", data, 56)
        self.headers = {struct.unpack_from("<I", data, phoff + 56 * i)[0]: phoff + 56 * i for i in range(count)}
        at, size = self.place(PT_DYNAMIC)
        pairs = [struct.unpack_from("<QQ", data, at + 16 * i) for i in range(size // 16)]
        self.hash = dict(pairs)[DT_GNU_HASH]
        self.symbols = dict(pairs)[DT_SYMTAB]
        self.buckets, self.first, self.bloom = struct.unpack_from("<III", data, self.hash)
        self.bucket_at = self.hash + 16 + 8 * self.bloom

    def place(self, kind):
        return struct.unpack_from("<Q", self.data, self.headers[kind] + 8)[0], \
            struct.unpack_from("<Q", self.data, self.headers[kind] + 32)[0]

    def put(self, at, *words, form="<I"):
        for i, word in enumerate(words):
            struct.pack_into(form, self.data, at + i * struct.calcsize(form), word)

    def hide_hash(self):
        """The filter says of every name that it is not there."""
        self.put(self.hash + 16, *[0] * self.bloom, form="<Q")


def far_buckets(t):
    t.hide_hash()
    t.put(t.bucket_at, *[0xfffffff0] * t.buckets)


def endless_chain(t):
    t.hide_hash()
    at = t.bucket_at + 4 * t.buckets
    t.put(at, *[w & ~1 for w in struct.unpack_from("<16I", t.data, at)])


def many_buckets(t):
    t.hide_hash()
    t.put(t.hash, 0x20000000)


def late_first(t):
    t.hide_hash()
    t.put(t.hash + 4, 0x7fffffff)


def unwind_outside(t):
    at, _ = t.place(PT_GNU_EH_FRAME)
    count, = struct.unpack_from("<I", t.data, at + 8)
    for i in range(count):
        t.put(at + 16 + 8 * i, 0x40000000 + 64 * i)


def unwind_count(t):
    t.put(t.place(PT_GNU_EH_FRAME)[0] + 8, 0xfffffff0)


def unwind_elsewhere(t):
    t.put(t.headers[PT_GNU_EH_FRAME] + 16, 0x7ffff000, form="<Q")


def note_elsewhere(t):
    t.put(t.headers[PT_NOTE] + 16, 0x7ffff000, form="<Q")


def note_sizes(t):
    at, _ = t.place(PT_NOTE)
    t.put(at, 0xfffffff0, 0xfffffff0)


KNOWN = [far_buckets, endless_chain, many_buckets, late_first, unwind_outside, unwind_count, unwind_elsewhere,
         note_elsewhere, note_sizes]


def at_random(generator):
    def damage(t):
        notes, note_size = t.place(PT_NOTE)
        unwind, unwind_size = t.place(PT_GNU_EH_FRAME)
        parts = [(t.hash, 16), (t.bucket_at, 4 * t.buckets + 32), (t.symbols + 24, 24 * 12), (unwind, unwind_size),
                 (notes, note_size), (t.headers[PT_NOTE] + 8, 40), (t.headers[PT_GNU_EH_FRAME] + 8, 40)]
        if generator.random() < 0.8:
            t.hide_hash()
        for _ in range(generator.randint(1, 4)):
            at, size = generator.choice(parts)
            value = generator.choice([0, 1, 0xff, 0x7fffffff, 0xffffffff, generator.getrandbits(32)])
            t.put(at + generator.randrange(max(1, size - 3)) // 4 * 4, value)
    return damage


class Test:
    def __init__(self, options, results):
        self.inlay, self.root, self.results = f"{options.build}/inlay", results.folder, results
        self.ran = 0
        flags = ["gcc", "-O1", "-w", "-fPIC", "-Wl,--hash-style=gnu", f"-Wl,-rpath,{self.root}"]
        self.source("library.c", CALLS % {"name": "of_library"})
        self.source("program.c", CALLS % {"name": "of_program"} + PROGRAM)
        for step in (["-shared", "library.c", "-o", "library.so"],
                     ["-rdynamic", "program.c", "library.so", "-o", "program"]):
            done = driver.run([*flags, *step], LIMIT, cwd=self.root)
            if done.status:
                raise Failed("compile", *driver.as_lines(done.stderr)[:4])
        driver.rewrite(self.inlay, ["inscount", f"{self.root}/program", "-o", f"{self.root}/rewritten"])
        self.good = {name: self.read(name) for name in ("program", "library.so")}

    def source(self, name, text):
        with open(f"{self.root}/{name}", "w") as f:
            f.write(text)

    def read(self, name):
        with open(f"{self.root}/{name}", "rb") as f:
            return f.read()

    def place(self, name, data):
        path = f"{self.root}/{name}"
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
        return path

    def damaged(self, name, damage):
        tables = Tables(self.good[name])
        damage(tables)
        return self.place(name if name != "program" else "damaged", bytes(tables.data))

    def outcome(self, program):
        result = f"{self.root}/result"
        if os.path.exists(result):
            os.unlink(result)
        done = driver.run([program], LIMIT, env=driver.ENVIRONMENT | {"INLAY_OUT": result})
        return done, os.path.exists(result)

    def compare(self, native, program):
        done, reported = self.outcome(program)
        told = driver.differences(native, done)
        if told or not reported:
            raise Failed(*(told or ["no report"]))
        self.ran += 1

    def in_program(self, damage, must):
        program, out = self.damaged("program", damage), f"{self.root}/out"
        native, _ = self.outcome(program)
        if native.status != 0:
            if must:
                raise Failed(f"does not run natively: {native.status}")
            return
        done = driver.run([self.inlay, "rewrite", "inscount", program, "-o", out], LIMIT)
        if done.status == 1 and not must and done.stderr:
            return
        if done.status:
            raise Failed(f"rewriting: status {done.status}", *driver.as_lines(done.stderr)[:4])
        self.compare(native, out)

    def in_library(self, damage, must):
        self.damaged("library.so", damage)
        try:
            native, _ = self.outcome(f"{self.root}/program")
            if native.status == 0:
                self.compare(native, f"{self.root}/rewritten")
            elif must:
                raise Failed(f"does not run natively: {native.status}")
        finally:
            self.place("library.so", self.good["library.so"])

    def known(self, damage):
        for how in (self.in_program, self.in_library):
            where = how.__name__.replace("in_", "")
            # The dynamic linker itself looks for the library's names.
            hides = damage in (far_buckets, endless_chain, many_buckets, late_first) and how == self.in_library
            self.results.check(f"{damage.__name__} {where}", lambda: how(damage, not hides))

    def random(self, count, seed):
        self.ran = 0
        for i in range(count):
            for how in (self.in_program, self.in_library):
                try:
                    how(at_random(random.Random(seed * 100003 + i)), False)
                except Failed as e:
                    raise Failed(f"number {i} {how.__name__}: {e.args[0]}", *e.args[1:])
        if self.ran < count // 2:
            raise Failed(f"only {self.ran} of {2 * count} ran natively")


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with driver.Results("damaged", options) as results:
        if not shutil.which("gcc"):
            results.skip("all", "there is no gcc")
            return 0
        test = Test(options, results)
        for damage in KNOWN:
            test.known(damage)
        results.check("random", lambda: test.random(options.count, options.seed))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
