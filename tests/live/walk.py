#!/usr/bin/python3
"""All that snippets, processes and commands are said to do, item by item: a table. Each row is a short text of code with
what it must give, the same under every engine; or a test of another script, which must be there.

  tests/live/walk.py [--build DIR] [--only PATTERN] [--keep]

What is known to be missing stands in the table too, as MISSING with the reason, and is counted as skipped. With --only
'*' the other scripts' tests are run.
"""

import os
import re
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
    "work:calls": (("dynamic branch target", "it = $target == (unsigned long)&helper", "1"),),
}
# What a wrong snippet is answered.
WRONG = (
    ("a type error", "it = thing.number.x", "4: |column|member|structure"),
    ("an unknown name", "it = no_such", "no_such"),
    ("a wrong field", "it = t->no_such", "no member 'no_such'"),
)
# what is said -> script and test
ELSEWHERE = (
    ("create", "mutators", "create"), ("attach", "mutators", "talks-dynamic"), ("stop, continue", "mutators", "stopped"),
    ("detach, leaving it in", "mutators", "left"), ("many processes", "mutators", "several"),
    ("modules", "points", "modules"), ("threads: one", "points", "one-by-one"),
    ("a thread stands still at the end", "points", "held-killed"),
    ("remove", "mutators", "removed"), ("before or after those there", "mutators", "order"),
    ("one-shot snippets, calls, libraries", "mutators", "once-dynamic"), ("events", "mutators", "events-threads"),
    ("exec", "mutators", "events-exec"), ("libraries come and go", "mutators", "events-libraries"),
    ("breakpoint hit", "mutators", "breakpoint"), ("messages", "mutators", "lost"),
    ("examples", "points", "examples"), ("children, one thread in commands", "points", "commands"),
    ("attach, detach, report, ps", "out", ""), ("toggling", "switches", ""),
    ("count, tee, break, snippet", "commands", ""), ("replaced procedures and calls", "commands", ""),
)
MISSING = (
    ("a structure by value to a called procedure", "refused: structures are neither passed nor returned"),
    ("a thread's variable of a library by the general-dynamic model", "refused unless the library has a slot for it"),
    ("__int128 and long double", "no type of snippets"),
    ("debug information in .dwo files", "refused, with that reason"),
    ("break, tee, snippet in forked children", "a copy of the code runs there unheard"),
    ("a mutator's routine executed once", "refused: insert it"),
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
