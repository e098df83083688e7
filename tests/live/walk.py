#!/usr/bin/python3
"""All that snippets, processes and commands are said to do, item by item: a table. Each row is a short text of code with
what it must give, the same under every engine; or a test of another script, which must be there.

  tests/live/walk.py [--build DIR] [--only PATTERN] [--keep]

What is known to be missing stands in the table too, as MISSING with the reason, and is counted as skipped. With --only
'*' the other scripts' tests are run.
"""

import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402

# Engines: how a snippet gets into the program.
ENGINES = {"jit": ["run", "TOOL", "--"], "live": ["run", "--engine=live", "TOOL", "--"], "rewrite": ["rewrite", "TOOL"]}

# point -> rows: what is said | code, which sets `it` | its value after work(1), work(2), work(3)
# (a: n is 1, 2, 3; text "abcdef"; real 2.5; t is &thing)
SNIPPETS = {
    "work": (
        ("assign", "it = 5", "5"),
        ("plus", "it += n", "6"),
        ("minus", "it = 10 - n", "7"),
        ("times", "it = n * 7", "21"),
        ("divide", "it = -20 / n", "-6"),
        ("mod", "it = -20 % 3", "-2"),
        ("ref: an element", "it = array[n]", "40"),
        ("seq", "it = 1; it = it + 1", "2"),
        ("min", "it = min(n, 2)", "2"),
        ("max", "it = max(n, 2)", "3"),
        ("negate", "it = -n", "-3"),
        ("dereference", "it = *text", "97"),
        ("address of", "it = *&array[1]", "20"),
        ("lt", "it = n < 3", "0"),
        ("eq", "it = n == 3", "1"),
        ("gt", "it = n > 2", "1"),
        ("le", "it = n <= 3", "1"),
        ("ne", "it = n != 3", "0"),
        ("ge", "it = n >= 4", "0"),
        ("and", "it = n > 1 && n < 3", "0"),
        ("or", "it = n == 9 || n == 3", "1"),
        ("not", "it = !n", "0"),
        ("if and else", "if (n == 3) it = 1; else it = 2", "1"),
        ("while", "long k = 0; while (k < n) k++; it = k", "3"),
        ("break", "long k = 0; while (1) { k++; if (k == 8) break; } it = k", "8"),
        ("a call of a procedure", "it = helper(n, 4.5)", "10"),
        ("a call by pointer", "it = by_pointer(n, 1.0)", "7"),
        ("a call of a library's procedure", "extern int abs(int); it = abs(-n)", "3"),
        ("parameters by number", "it = $arg0", "3"),
        ("parameters by name", "it = n + t->number", "-4"),
        ("return address", "it = $retaddr > 4096", "1"),
        ("thread id", "it = $thread", "0"),
        ("original address", "it = $pc == (unsigned long)&work", "1"),
        ("integers: unsigned char", "it = byte", "200"),
        ("integers: long long", "it = wide", "-1"),
        ("integers: short", "it = t->in[1].s", "-2"),
        ("integers: conversion", "it = (signed char)byte", "-56"),
        ("float", "it = t->in[1].f * 4", "10"),
        ("double", "it = real * 2 + n", "8"),
        ("strings", "it = \"xyz\"[1]", "121"),
        ("pointers", "it = *(text + 2)", "99"),
        ("arrays", "it = array[0] + array[3]", "50"),
        ("structures", "it = thing.in[0].s", "1"),
        ("structures: assigned whole", "static struct inner x; x = t->in[1]; it = x.s", "-2"),
        ("bit fields", "it = thing.bits", "9"),
        ("enumerations", "it = colour == BLUE", "1"),
        ("a global by name", "it = thing.number", "-7"),
        ("a thread's variable", "it = mine", "77"),
        ("a new variable", "static long more; more += 2; it = more", "6"),
        ("types by name", "it = sizeof(struct inner)", "8"),
        ("bit fields: signs", "it = packed.high", "-9"),
        ("bit fields: far ones", "it = packed.far >> 35", "1"),
        ("bit fields: assigned", "static struct packed p; p = packed; p.high = 17; p.low = 2; it = p.high * 10 + p.low", "172"),
        ("bit fields: others stay", "static struct packed p; p = packed; p.high = 0; it = (p.far >> 35) + p.low", "6"),
        ("a structure passed in registers", "it = of_pair(pair, 1)", "35"),
        ("a structure passed in both kinds of registers", "it = of_mixed(1.0, mixed) * 2", "47"),
        ("a structure passed on the stack", "it = of_large(large, 7, &large)", "508"),
        ("a structure passed, of three bytes", "it = of_small(small)", "97098"),
        ("a structure that finds no register", "it = no_registers(1, 2, 3, 4, 5, pair, 6)", "64315"),
        ("a structure returned in registers", "it = swapped(pair).a * 10 + swapped(pair).b", "43"),
        ("a structure returned in both kinds", "it = halved(mixed).d * 100 + halved(mixed).i", "129"),
        ("a structure returned by a hidden pointer", "it = moved(large, n).v[4]", "8"),
        ("a structure returned, its array", "it = smaller().c[2]", "9"),
        ("structures through calls", "it = of_pair(swapped(swapped(swapped(pair))), 2)", "45"),
        ("structures of two calls at once", "it = of_large(moved(large, 1), moved(large, 2).v[0], &large)", "604"),
        ("structures returned and kept", "static struct large kept; kept = moved(large, 10); it = kept.v[0] + kept.v[4]", "26"),
        ("structures: a nested array", "it = large.v[n] + large.name[1]", "101"),
        ("structures: pointers to them", "struct large *p = &large; it = p->v[3] + (&pair)->b", "8"),
        ("a number of 16 bytes", "it = (long)huge", "5"),
        ("a number of 16 bytes: copied", "static __int128 h; h = huge; it = h ? (long)h : 0", "5"),
        ("a number of 16 bytes: passed and returned", "static __int128 h; h = doubled(huge); it = ((long *)&h)[1]", "14"),
        ("a number of 16 bytes: from another", "it = (long)doubled(-n)", "-6"),
        ("a long double", "it = longer * 4", "25"),
        ("a long double: assigned", "static long double twice; twice = 1.5; it = twice * 2", "3"),
        ("a long double: passed", "it = of_longer(longer) + of_longer(0.25)", "26"),
    ),
    "work:return": (
        ("return value", "it = $ret > 0", "1"),
        ("registers", "it = $rax == $ret", "1"),
    ),
    "work:loads": (
        ("effective address", "if ($ea == (unsigned long)&array[1]) it = 1", "1"),
        ("bytes accessed", "if ($ea == (unsigned long)&array[1]) it = $bytes", "8"),
        ("the value there", "if ($ea == (unsigned long)&array[1]) it = $value", "20"),
    ),
    "takes": (
        ("parameters: a structure in registers", "it = p.a * 10 + p.b", "34"),
        ("parameters: in both kinds", "it = m.d * 2 + m.i", "14"),
        ("parameters: on the stack", "it = l.v[4] + l.name[0]", "113"),
        ("parameters: of three bytes", "it = s.c[1]", "98"),
        ("parameters: of 16 bytes", "it = (long)w", "5"),
        ("parameters: behind these", "it = last", "11"),
        ("parameters: passed on", "it = of_pair(p, last)", "45"),
        ("parameters: copied", "static struct mixed k; k = m; it = k.i", "9"),
    ),
    "gives:return": (("return value: a structure in registers", "it = $ret.d * 10 + $ret.i", "96"),),
    "gives_large:return": (("return value: a structure elsewhere", "it = $ret.v[2] + $ret.v[4]", "13"),),
    "work:calls": (("dynamic branch target", "it = $target == (unsigned long)&helper", "1"),),
}
# What a wrong snippet is answered.
WRONG = (
    ("a type error", "it = thing.number.x", "4: |column|member|structure"),
    ("an unknown name", "it = no_such", "no_such"),
    ("16 bytes", "it = huge + 1", "16: |is not computed with"),
    ("another structure", "it = of_pair(mixed, 1)", "cannot pass a 'struct mixed' as 'struct pair'|is not a value"),
    ("nearly a name", "it = hepler(n, 4.5)", "'hepler' is not known: near it are 'helper'"),
    ("nearly a parameter", "it = txet[0]", "'txet' is not known: near it are 'text'"),
    ("a wrong field", "it = t->no_such", "no member 'no_such'"),
)
# what is said -> script and test
ELSEWHERE = (
    ("create", "mutators", "create"), ("attach", "mutators", "talks-dynamic"), ("stop, continue", "mutators", "stopped"),
    ("detach, leaving it in", "mutators", "left"), ("many processes", "mutators", "several"),
    ("modules", "points", "modules"), ("threads: one", "points", "one-by-one"),
    ("a thread stands still at the end", "points", "held-killed"),
    ("remove", "mutators", "removed"), ("before or after those there", "mutators", "order"),
    ("one-shot snippets, calls, libraries", "mutators", "once-dynamic"), ("routines of the mutator's, once", "mutators", "once-dynamic"),
    ("events", "mutators", "events-threads"),
    ("exec", "mutators", "events-exec"), ("libraries come and go", "mutators", "events-libraries"),
    ("a thread that loads libraries waits", "mutators", "opened"),
    ("breakpoint hit", "mutators", "breakpoint"), ("messages", "mutators", "lost"),
    ("programs that are executed, in commands", "points", "followed"),
    ("examples", "points", "examples"), ("children, one thread in commands", "points", "commands"),
    ("attach, detach, report, ps", "out", ""), ("toggling", "switches", ""),
    ("count, tee, break, snippet", "commands", ""), ("replaced procedures and calls", "commands", ""),
)
MISSING = (
    ("a thread's variable of a library that is opened under --engine=live", "refused: the C library is not seen from there"),
    ("arithmetic of __int128", "refused, and long double is computed with as a double"),
    ("debug information in object files (clang's -gsplit-dwarf=single)", "not read; .dwo files and .dwp packages are"),
    ("a parameter behind the entry that is told by its value there alone", "refused, with that reason"),
)


def code_of(rows):
    """One text for a point: each row in a block of its own, with a variable of its own."""
    parts = []
    for k, (_, text, _) in enumerate(rows):
        parts.append("{ " + re.sub(r"\bit\b", f"row{k}", f"static long it; {text};") + " }")
    return " ".join(parts)


class Walk:
    def __init__(self, options, folder):
        self.folder, self.inlay = folder, f"{options.build}/inlay"
        self.program = f"{folder}/walk"
        if driver.build("dynamic", f"{HERE}/walk.c", self.program, "-g", "-O1"):
            raise driver.Failed("walk.c is not compiled")

    def run(self, engine, point, code):
        words, out = [], f"{self.folder}/walk-{engine}"
        for word in ENGINES[engine]:
            words += ["snippet", f"--at={point}", f"--code={code}"] if word == "TOOL" else [word]
        words += [self.program] + (["-o", out] if engine == "rewrite" else [])
        done = subprocess.run([self.inlay, *words], capture_output=True, text=True, env=driver.ENVIRONMENT)
        if engine == "rewrite" and not done.returncode:
            done = subprocess.run([out], capture_output=True, text=True, env=driver.ENVIRONMENT)
        return done

    def at(self, engine, point, rows):
        if engine == "rewrite":  # without its libraries it knows no names of theirs
            rows = [row for row in rows if "library" not in row[0]]
        done = self.run(engine, point, code_of(rows))
        said = done.stdout + done.stderr
        wrong = []
        for k, (item, text, value) in enumerate(rows):
            found = re.search(rf"\brow{k} = (\S+)", said)
            if not found or found[1] != value:
                wrong.append(f"{item}: {text}: {value}, not {found[1] if found else 'there'}")
        if wrong or done.returncode:
            raise driver.Failed(f"status {done.returncode}", *wrong, *said.splitlines()[-8:])

    def split(self):
        """Debug information in a .dwo file; and when that has gone."""
        whole, self.program = self.program, f"{self.folder}/walk-split"
        try:
            words = ["gcc", "-g", "-gsplit-dwarf", "-O1", f"{HERE}/walk.c", "-o", self.program]
            if subprocess.run(words, cwd=self.folder, check=False).returncode:
                raise driver.Failed("walk.c is not compiled")
            self.at("jit", "takes", SNIPPETS["takes"])
            for name in os.listdir(self.folder):
                if name.endswith(".dwo"):
                    os.unlink(f"{self.folder}/{name}")
            said = self.run("jit", "takes", "print(p.a)").stderr
            if ".dwo file (-gsplit-dwarf) that is not there" not in said:
                raise driver.Failed("that the .dwo file has gone is not said", said[-400:])
        finally:
            self.program = whole

    def unread(self):
        """Sections that are compressed in a way that is not known here."""
        packed, zstd, compressed = f"{self.folder}/walk-packed", 2, 0x800
        subprocess.run(["objcopy", "--compress-debug-sections=zlib", self.program, packed], check=True)
        with open(packed, "r+b") as f:
            file = f.read()
            table, size, count = *struct.unpack_from("<Q", file, 40), *struct.unpack_from("<HH", file, 58)
            for k in range(count):
                flags, _, at = struct.unpack_from("<QQQ", file, table + k * size + 8)
                if flags & compressed:
                    f.seek(at)
                    f.write(struct.pack("<I", zstd))
        whole, self.program = self.program, packed
        self.refuses("that debug information cannot be read", "it = n", "cannot be read.* --decompress-debug-sections")
        self.program = whole

    def tls_programs(self, dialect, opened=True):
        library, program = f"{self.folder}/walk-tls{dialect}.so", f"{self.folder}/walk-tls-{opened}"
        flags = [] if opened else ["-DLINKED", "-Wl,--no-as-needed", library]
        for words in (["-O2", "-g", "-fPIC", "-shared", "-DLIBRARY", *([dialect] if dialect else []), f"{HERE}/tls.c", "-o", library],
                      ["-O2", "-g", f"{HERE}/tls.c", "-o", program, "-pthread", "-ldl", *flags]):
            if subprocess.run(["gcc", *words], check=False).returncode:
                raise driver.Failed("tls.c is not compiled")
        return library, program

    def threads(self, engine, opened):
        """Variables of threads by the general-dynamic model: of a thread that has none yet, too, and assigned there."""
        library, program = self.tls_programs("", opened)
        code = "print(counted); print(((pair *)&both)->b); counted += 100; print(given)"
        done = subprocess.run([self.inlay, "run", f"--engine={engine}", "snippet", "--at=one_step", f"--code={code}", "--", program, library],
                              capture_output=True, text=True, env=driver.ENVIRONMENT)
        seen = sorted((done.stdout + done.stderr).split("\n")[:-1])
        numbers = [line for line in seen if line.isdigit()]
        given = "3 3 3" if opened else "7 7 7"
        if numbers != sorted(f"40 2 40 2 141 142 4 242 {given}".split()) or done.returncode:
            raise driver.Failed(f"status {done.returncode}", *seen)

    def threads_attached(self, how, when):
        """The same in a process that runs, before or after it has opened the library: a tool, and a mutator's snippet."""
        library, program = self.tls_programs("")
        code = "print(counted); print(both.b); counted += 100"
        with subprocess.Popen([program, library, when], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=driver.ENVIRONMENT) as target:
            target.stdout.readline()
            pid = str(target.pid)
            if how == "tool":
                words = ["attach", "snippet", "--at=one_step", f"--code={code}", "-o", f"{self.folder}/walk-tls-out", pid]
                done = subprocess.run([self.inlay, *words], capture_output=True, text=True, env=driver.ENVIRONMENT)
                said = done.stderr if done.returncode else ""
                answers, _ = target.communicate("\n", 60)
                with open(f"{self.folder}/walk-tls-out", encoding="utf-8") as f:
                    said += f.read()
            else:
                with subprocess.Popen([self.inlay, "snippet", "-p", pid, "one_step", code], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT) as m:
                    said = m.stderr.readline()  # that it is in
                    answers, _ = target.communicate("\n", 60)
                    said += "".join(m.communicate(timeout=60))
        numbers = [line for line in (answers + said).split("\n") if line.isdigit()]
        if sorted(numbers) != sorted("40 2 40 2 141 142 4 242".split()) or target.returncode:
            raise driver.Failed(f"status {target.returncode}", answers, said)

    def threads_by_descriptor(self):
        """Refused, and the program runs as natively."""
        library, program = self.tls_programs("-mtls-dialect=gnu2")
        done = subprocess.run([self.inlay, "run", "--engine=live", "snippet", "--at=one_step", "--code=counted += 100", "--", program, library],
                              capture_output=True, text=True, env=driver.ENVIRONMENT)
        if "does not keep where its thread-local variables are" not in done.stderr or done.stdout != "41\n42\n" or done.returncode:
            raise driver.Failed(f"status {done.returncode}", done.stdout, done.stderr)

    def refuses(self, item, text, says):
        done = self.run("jit", "work", f"static long it; {text}")
        if not re.search(says, done.stderr):
            raise driver.Failed(f"{item} is not said", done.stderr[-400:])

    def is_tested(self, script, name, runs):
        path = f"{HERE}/{script}.py"
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if name and f'"{name}"' not in text and f'f"{name.split("-")[0]}-{{' not in text:
            raise driver.Failed(f"{script}.py has no test {name}")
        if runs:
            done = subprocess.run([path, "--build", os.path.dirname(self.inlay), *(["--only", name] if name else [])],
                                  capture_output=True, text=True, env=driver.ENVIRONMENT)
            if done.returncode or " 0 passed" in f" {done.stdout}":
                raise driver.Failed(f"{script}.py {name}", *done.stdout.splitlines()[-8:])


def tests(of, runs):
    for engine in ENGINES:
        for point, rows in SNIPPETS.items():
            yield f"{engine}-{point}", lambda e=engine, p=point, r=rows: of.at(e, p, r)
    yield "jit-split", of.split
    yield "jit-unread", of.unread
    for engine, opened in (("jit", True), ("jit", False), ("live", True), ("live", False)):
        yield f"{engine}-threads{'-opened' if opened else ''}", lambda e=engine, o=opened: of.threads(e, o)
    for how, when in (("tool", "before"), ("tool", "after"), ("mutator", "after")):
        yield f"live-threads-attached-{how}-{when}", lambda h=how, w=when: of.threads_attached(h, w)
    yield "live-threads-descriptor", of.threads_by_descriptor
    for row in WRONG:
        yield f"wrong-{row[0].replace(' ', '-')}", lambda row=row: of.refuses(*row)
    for item, script, name in ELSEWHERE:
        yield f"tested-{item.replace(' ', '-')}", lambda s=script, n=name: of.is_tested(s, n, runs)


def main():
    options = driver.parser(__doc__, only="jit-*,live-*,rewrite-*,wrong-*,tested-*").parse_args()
    with driver.Results("walk", options) as results:
        of = Walk(options, results.folder)
        for name, function in tests(of, options.only == "*"):
            if driver.chosen(name, options):
                results.check(name, function)
        for item, why in MISSING:
            if driver.chosen(f"missing-{item}", options):
                results.skip(item, why)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
