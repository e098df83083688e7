#!/usr/bin/python3
"""What docs/howto-tool.md promises a person who writes a first tool: points, results of routines, buffers and data of
threads (guide_tool.c in guide_program.c, both engines); examples where tails, jumps out and nth calls matter; and what
is said where beginners go wrong.

  tests/cli/guide.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
FOUND = ["jumps 100 100 0 last 100 100 10000 100 leaps 0", "results 100 100 stack 78 order 0 rep 2 1000", "records all, 0 late"]

# A tool with one mistake: its callback of blocks, what stands behind inlay_init, what the compiler says (None: nothing),
# what is said when it runs and is rewritten.
TOOL = """#include <inlay.h>
static inlay_counter c;
static uint64_t number;
static void nothing(uint64_t a) { number = a; }
static uint64_t something(uint64_t a) { return a; }
static void block(inlay_block *b, void *arg) { (void)arg, (void)nothing, (void)something; inlay_point *p = inlay_block_entry(b); BLOCK; (void)p; }
static void report(int status, void *arg) { (void)status, (void)arg; fprintf(inlay_out(), "%lu\\n", inlay_counter_sum(&c) + number); }
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "a mistake");
    inlay_on_block(block, NULL);
    inlay_on_exit(report, NULL);
    MAIN
}
"""
START = "return inlay_start();"
REFUSED = r"cannot insert before \w+ at 0x[0-9a-f]+ in \S+ \(\S+\): "
MISTAKES = {
    "too few arguments": ("inlay_insert(p, inlay_call(something))", START, "too few arguments|another number", None),
    "too many arguments": ("inlay_insert(p, inlay_call(something, inlay_pc(), inlay_pc()))", START,
                           "too many arguments|another number", None),
    "no value": ("inlay_insert(p, inlay_count_by(&c, inlay_call(nothing, inlay_pc())))", START, None,
                 REFUSED + "the value of a routine that returns nothing"),
    "no condition": ("inlay_insert(p, inlay_if(NULL, inlay_count(&c, 1), NULL))", START, None,
                     REFUSED + "inlay_if: its condition is NULL"),
    "no second": ("inlay_insert(p, inlay_sequence(inlay_count(&c, 1), NULL))", START, None,
                  REFUSED + "inlay_sequence: its second part is NULL"),
    "no counter": ("inlay_insert(p, inlay_count(NULL, 1))", START, None, REFUSED + "a counter that is NULL"),
    "no procedure": ("inlay_insert(inlay_proc_entry(inlay_image_proc_named(inlay_image_at(1), \"gone\")), inlay_count(&c, 1))", START,
                     None, "a point of a procedure that is NULL: what was looked up is not there"),
    "no instruction": ("inlay_insert(inlay_after(NULL), inlay_count(&c, 1))", START, None, "a point of an instruction that is NULL"),
    "no edge": ("inlay_insert(inlay_edge_point(NULL, 0), inlay_count(&c, 1))", START, None, "a point of a block that is NULL"),
    "no replacement": ("inlay_proc_replace(NULL, inlay_const(1))", START, None, "cannot replace a procedure that is NULL"),
    "old mistake": ("(void)inlay_count(NULL, 1); inlay_insert(p, inlay_count(&c, 1)); inlay_insert(p, NULL)", START, None,
                    REFUSED + "an empty snippet"),
    "vector": ("inlay_insert(p, inlay_count_by(&c, inlay_register(INLAY_XMM0)))", START, None,
               r"register xmm0 .*inlay_vector_register[^\n]*\n[^\n]*" + REFUSED + "register xmm0 cannot be read"),
    "bad string at the end": ("fputs((const char *)(uintptr_t)inlay_block_insn_count(b), stderr)", START, None,
                              r"has crashed in \w+, called by block \(\S+mistake\S*:6\), a block callback: SIGSEGV"),
    "no start": ("", "return 0;", None, r"has ended, between inlay_init and inlay_start.*return inlay_start\(\)"),
    "late option": ("", 'inlay_option_uint(&number, "number", 0, "late"); ' + START, None,
                    "--number is declared too late.*before it calls inlay_init"),
}


ENDS = """#include <signal.h>
static int n;
static void handler(int signo) { n += signo == SIGUSR1; }
int main(void) { signal(SIGUSR1, handler); for (int i = 0; i < 3; i++) raise(SIGUSR1); return n; }
"""
ENDS_TOOL = """#include <inlay.h>
static unsigned *seen;
static void begins(inlay_thread *t, inlay_syscall *s, void *arg) { (void)t, (void)arg, seen[0] += s->number == 15; }
static void ends(inlay_thread *t, inlay_syscall *s, void *arg) { (void)t, (void)arg, seen[1] += s->number == 15; }
static void report(int status, void *arg) { (void)status, (void)arg; fprintf(inlay_out(), "%u begun, %u ended\\n", seen[0], seen[1]); }
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "ends of handlers");
    seen = inlay_alloc(2 * sizeof *seen);
    inlay_on_syscall_entry(begins, NULL);
    inlay_on_syscall_exit(ends, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""


class Guide:
    def __init__(self, build, folder):
        self.build, self.inlay, self.folder = build, f"{build}/inlay", folder
        self.program, self.tool = f"{folder}/program", f"{folder}/guide"
        self.native = None

    def compile(self):
        for argv in (["cc", "-O2", "-g", "-pthread", f"{HERE}/guide_program.c", "-o", self.program],
                     [self.inlay, "cc", "-Wextra", "-Werror", "-O2", f"{HERE}/guide_tool.c", "-o", self.tool]):
            made = driver.run(argv, LIMIT)
            if made.status:
                raise Failed(*driver.as_lines(made.stderr)[-6:])
        self.native = driver.run([self.program], LIMIT, env=driver.ENVIRONMENT)

    def result(self, argv, env=driver.ENVIRONMENT, status=0, same=True):
        done = driver.run(argv, LIMIT, env=env)
        if done.status != status or (same and done.stdout != self.native.stdout):
            raise Failed(f"status {done.status}", done.stdout.decode()[:200], *driver.as_lines(done.stderr)[-6:])
        return driver.as_lines(done.stderr)

    def under_jit(self, tool, *options, images=("--image=program",), **how):
        return self.result([self.inlay, "run", tool, *images, *options, "--", self.program], **how)

    def rewritten(self, tool, *options, libs=False, **how):
        new = driver.fresh(f"{self.folder}/new")
        os.makedirs(new, exist_ok=True)
        to = ["--with-libs", new] if libs else ["-o", f"{new}/program"]
        driver.rewrite(self.inlay, [tool, *options, self.program, *to], LIMIT)
        return self.result([f"{new}/program"], **how)

    def promises(self, engine):
        found = engine(self.tool)
        if found != FOUND:
            raise Failed(*found)

    def example(self, name):
        out = f"{self.folder}/{name}"
        made = driver.run([self.inlay, "cc", "-O2", f"{ROOT}/examples/{name}.c", "-o", out], LIMIT)
        if made.status:
            raise Failed(*driver.as_lines(made.stderr)[-6:])
        return out

    def tails(self):
        """realloc jumps to malloc where it gets no block: it is one call, with what malloc returns."""
        tool = self.example("malloctrace")
        for found in (self.under_jit(tool, images=()), self.rewritten(tool, libs=True)):
            text = " ".join(found)
            m = re.search(r"realloc\(0, 100\) = (\d+) realloc\((\d+), 5000\) = (\d+) free\((\d+)\)", text)
            if not m or m[1] == "0" or (m[2], m[4]) != (m[1], m[3]):
                raise Failed(*found[:8])

    def jumps_out(self):
        """The region ends where longjmp leaves it: it is a few instructions each time."""
        tool = self.example("region")
        for found in (self.under_jit(tool, "--from=leaps"), self.rewritten(tool, "--from=leaps")):
            inside, every, times = map(int, re.findall(r"\d+", found[-1]))
            if times != 100 or not 300 <= inside <= 3000 or every < 10 * inside:
                raise Failed(*found)

    def nth_call(self):
        """The second realloc answers NULL, which the program says."""
        tool, options = self.example("faults"), ("--procedure=realloc", "--from=2", "--times=1")
        said = b"out of memory\n" + self.native.stdout
        for argv in ([self.inlay, "run", tool, *options, "--", self.program], [f"{self.folder}/new/program"]):
            if argv[0] != self.inlay:
                driver.rewrite(self.inlay, [tool, *options, self.program, "--with-libs", driver.fresh(f"{self.folder}/new")],
                               LIMIT)
            done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT)
            found = done.stderr.decode()
            if done.stdout != said or "realloc: 1 of 2 failed" not in found:
                raise Failed(done.stdout.decode(), found)

    def mistake(self, name, suffix):
        block, main, compiler, says = MISTAKES[name]
        source, tool = f"{self.folder}/mistake{suffix}", f"{self.folder}/mistake"
        with open(source, "w", encoding="utf-8") as f:
            f.write(TOOL.replace("BLOCK", block).replace("MAIN", main))
        made = driver.run([self.inlay, "cc", "-O2", source, "-o", tool], LIMIT)
        if (made.status != 0) != bool(compiler) or not re.search(compiler or "^$", made.stderr.decode()):
            raise Failed(f"the compiler's status is {made.status}", *driver.as_lines(made.stderr)[:6])
        for argv in ([], ["run", tool, "--", self.program], ["rewrite", tool, self.program, "-o", f"{self.folder}/out"]):
            said = driver.run([self.inlay, *argv], LIMIT, env=driver.ENVIRONMENT).stderr.decode() if argv and says else ""
            if argv and says and not re.search(says, said):
                raise Failed(f"does not say '{says}'", *said.splitlines()[:4])
            if said.count("cannot insert") > 3:
                raise Failed("says it for each point", *said.splitlines()[:4])

    def says(self, argv, status, text):
        done = driver.run([self.inlay, *argv], LIMIT, env=driver.ENVIRONMENT)
        if done.status != status or not re.search(text, done.stderr.decode()):
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[:4])

    def no_exit(self):
        """What does not come back has no exit: a handler's end is a system call of that kind."""
        tool, program, source = f"{self.folder}/ends-tool", f"{self.folder}/ends", f"{self.folder}/ends.c"
        for text, argv in ((ENDS_TOOL, [self.inlay, "cc", source, "-o", tool]), (ENDS, ["cc", "-O1", source, "-o", program])):
            with open(source, "w", encoding="utf-8") as f:
                f.write(text)
            if driver.run(argv, LIMIT).status:
                raise Failed("not compiled")
        driver.rewrite(self.inlay, [tool, "--with-libs", driver.fresh(f"{self.folder}/ends-new"), program], LIMIT)
        for argv in ([self.inlay, "run", tool, "--", program], [self.inlay, "run", "--engine=live", tool, "--", program],
                     [f"{self.folder}/ends-new/ends"]):
            if self.result(argv, status=3, same=False) != ["3 begun, 0 ended"]:
                raise Failed("ends of handlers", *self.result(argv, status=3, same=False))

    def nested(self, suffix):
        """A call's value is another one's argument. In C++ a routine may be a lambda."""
        source, tool = f"{self.folder}/nested{suffix}", f"{self.folder}/nested"
        call = "inlay_call(take, inlay_call(add, inlay_call(twice, inlay_const(3)), inlay_call(five)))"
        if suffix == ".cc":
            call = call.replace("twice,", "[](uint64_t a) { return 2 * a; },")
        with open(source, "w", encoding="utf-8") as f:
            f.write(TOOL.replace("BLOCK", f"inlay_insert(p, {call})").replace("MAIN", START).replace("number;\n", "number;\n"
                    "uint64_t twice(uint64_t);\nuint64_t twice(uint64_t a) { return 2 * a; }\nstatic uint64_t add(uint64_t a, uint64_t b) { return a + b; }\n"
                    "static uint64_t five(void) { return 5; }\nstatic void take(uint64_t a) { number += a == 11; number += 1000000 * (a != 11); }\n", 1))
        made = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", source, "-o", tool], LIMIT)
        if made.status:
            raise Failed("the compiler", *driver.as_lines(made.stderr)[:6])
        for blocks in self.under_jit(tool), self.rewritten(tool):
            if not 100 < int(blocks[0]) < 1000000:  # another value would count a million
                raise Failed("calls", *blocks)

    def wrong_names(self):
        script = f"{self.folder}/script"
        with open(script, "w", encoding="utf-8") as f:
            f.write("#! /bin/sh\necho\n")
        os.chmod(script, 0o755)
        out = f"{self.folder}/out"
        self.says(["run", f"{ROOT}/examples/drcov.c", "--", "true"], 1, "a tool's source: build it first .inlay cc")
        self.says(["rewrite", "bbcount", script, "-o", out], 1, "a script: the program is its interpreter, /bin/sh$")
        self.says(["run", "bbcount", "--format=xml", "--", "true"], 2, "'xml' is not one of text, json")
        self.says(["rewrite", self.example("malloctrace"), self.program, "-o", out], 0, "nothing was inserted.*--with-libs")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("guide", options) as results:
        guide = Guide(options.build, results.folder)
        wrong = driver.problem(guide.compile)
        results.count("compile", wrong)
        checks = {"jit": lambda: guide.promises(guide.under_jit), "rewritten": lambda: guide.promises(guide.rewritten),
                  "tails": guide.tails, "jumps out": guide.jumps_out, "nth call": guide.nth_call,
                  "wrong names": guide.wrong_names, "no exit": guide.no_exit,
                  "nested.c": lambda: guide.nested(".c"), "nested.cc": lambda: guide.nested(".cc")}
        for name in MISTAKES:
            for suffix in (".c", ".cc") if MISTAKES[name][2] else (".c",):
                checks[f"{name}{suffix}"] = lambda n=name, s=suffix: guide.mistake(n, s)
        for name, check in checks.items() if not wrong else ():
            if driver.chosen(name, options):
                results.check(name, check)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
