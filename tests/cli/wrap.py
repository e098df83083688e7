#!/usr/bin/python3
"""A tool's routines stand in for procedures and call them (inlay_proc_wrap), under every engine: the results are the
routines', each is called and comes back as often as it should, what is counted in the program is counted as without them,
and the program is left by jumps, exceptions and the end of threads as it is natively; with signals all the time too, and
under the stress switches. What cannot be is refused, and a crash is the routine's.

  tests/cli/wrap.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
NATIVE = """types: 2.75 2.5 21 10 14 285 110
calls: 3628800 14850 2475 1200 1575
leaves: 3000 43 3333 99
processes: 12 120 8 1 1859400 1
"""
CHANGED = NATIVE.replace("2.75 2.5 21 10 14", "102.75 3 22 10 15")
# Calls, and returns; where they are the same, one number. What the kernel or the C library decides is not known.
COUNTS = {"mix": 1, "pair": 1, "wide": 1, "many": 1201, "sum": 1, "factorial": 10, "jump": (3000, 0), "thrower": (99, 66),
          "between": (99, 66), "on_signal": 2, "raises": 2, "forks": 1, "ends": (2, 1), "traced": 1, "modest": 100, "within": 40,
          "deep": 0, "last": 30, "passed": 30, "passes": 30, "_setjmp": 0, "above": (90, 0)}


def check(argv, status, out, err=None, env=None):
    done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT | (env or {}))
    said = done.stderr.decode(errors="replace")
    if done.status != status or done.stdout.decode() != out or (err and not re.search(err, said)):
        raise Failed(f"status {done.status}: {done.stdout.decode()} instead of {out}", *said.splitlines()[:4])


class Wraps:
    def __init__(self, options, folder):
        self.inlay, self.samples = f"{options.build}/inlay", f"{options.build}/tests/samples"
        self.tool, self.report, self.new = (f"{folder}/{n}" for n in ("wrap_tool", "report", "new"))
        self.instructions = {}

    def compile(self):
        made = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/wrap_tool.c", "-o", self.tool],
                          LIMIT)
        if made.status:
            raise Failed(*driver.as_lines(made.stderr)[-6:])

    def argv(self, engine, sample, options):
        """The command that runs the sample with the tool."""
        program = f"{self.samples}/{sample}"
        if engine != "rewritten":
            return [self.inlay, "run", f"--engine={engine}", self.tool, "--image=wrapped*", *options, "-o", self.report, "--", program]
        driver.rewrite(self.inlay, [self.tool, "--image=wrapped*", *options, program, "-o", self.new], LIMIT)
        return [self.new]

    def found(self):
        with open(self.report, encoding="utf-8") as f:
            words = [line.split() for line in f]
        return {w[0]: tuple(map(int, w[1:])) for w in words[:-1]}, int(words[-1][0])

    def right(self, engine, sample, words=(), options=(), stress=None):
        env = {"INLAY_OUT": self.report} | ({"INLAY_STRESS": stress} if stress else {})
        check([*self.argv(engine, sample, options), *words], 0, CHANGED, env=env)
        counts, _ = self.found()
        known = {k: v if isinstance(v, tuple) else (v, v) for k, v in COUNTS.items()}
        known["stubs"] = (counts["stubs"][0],) * 2
        if engine == "jit" and sample == "wrapped" and not counts["stubs"][0]:
            raise Failed("no import stub has been called")
        if words:
            del known["factorial"], known["above"]
        wrong = {k: counts[k] for k in known if counts[k] != known[k]}
        if sample == "wrapped" and not (counts["qsort"] == (2, 0) and counts["compare"][0] > counts["compare"][1]):
            wrong |= {k: counts[k] for k in ("qsort", "compare")}
        if wrong:
            raise Failed(f"{wrong}: calls and returns")

    def counted(self, engine):
        """Instructions are those of the program, whoever stands in for a procedure."""
        found = []
        for options, out in (((), CHANGED), (("--no-changes",), NATIVE), (("--no-wraps",), NATIVE)):
            check(self.argv(engine, "wrapped", options), 0, out, env={"INLAY_OUT": self.report})
            found.append(self.found()[1])
        self.instructions[engine] = found[0]
        if len(set(found) | set(self.instructions.values())) > 1:
            raise Failed(f"{found} instructions; {self.instructions}")

    def deep(self, engine):
        """Thousands may wait, more than fit on one stack, and again and again; what is too deep is told."""
        argv = self.argv(engine, "wrapped", ("--no-changes",))
        check([*argv, "deep", "20000"], 0, f"deep: 20000\n{NATIVE}", env={"INLAY_OUT": self.report})
        if self.found()[0]["deep"] != (20001, 20001):
            raise Failed(f"{self.found()[0]['deep']}: calls and returns")
        check([*argv, "depths", "3000"], 0, f"deep: 3000\n{NATIVE}", env={"INLAY_OUT": self.report})
        if self.found()[0]["deep"] != (16 * 3001, 2 * 3001):
            raise Failed(f"{self.found()[0]['deep']}: calls and returns of what is left from within")
        check([*argv, "deep", "100000"], 1, "", "deep cannot be stood in for: too many")

    def refused(self):
        run = [self.inlay, "run", self.tool]
        sample = ["--", f"{self.samples}/wrapped"]
        check([*run, "--outside", *sample], 1, "", "inlay_original: no routine runs")
        check([*run, "--words", "--no-changes", *sample], 0, NATIVE, "cannot stand in for mix: at most 16 words")
        check([*run, "--nothing", *sample], 0, CHANGED, "cannot stand in for a procedure: there is no such procedure")

    def early(self):
        """What a library executes before the tool is there stays as it is, which is said; not what only a failure there
        would call."""
        libs = f"{self.new}-libs"
        check([self.inlay, "rewrite", "--strict", self.tool, "--early", "--with-libs", libs, "/bin/true"], 1, "",
              "(?s)cannot stand in for strlen in libc.so.6: runs before the tool\n.*not written, since points were refused")
        driver.rewrite(self.inlay, ["snippet", "--at=_exit", "--code=static long n; n++", "--with-libs", libs, "/bin/true"], LIMIT)
        check([f"{libs}/true"], 0, "", "_[Ee]xit: n = 1$")

    def crashes(self, engine):
        argv = self.argv(engine, "wrapped", ("--crashes",))
        said = r"the tool has crashed in crash \(\S*wrap_tool.c:\d+\), an analysis routine: SIGSEGV, address 0"
        check(argv, -11, "", said)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("wrap", options) as results:
        w = Wraps(options, results.folder)
        results.count("compile", driver.problem(w.compile))
        for engine in ("jit", "rewritten", "live"):
            for sample in ("wrapped", "wrapped_static"):
                results.check(f"{engine} {sample}", lambda e=engine, s=sample: w.right(e, s))
            results.check(f"{engine} signals", lambda e=engine: w.right(e, "wrapped", ("signals",)))
            results.check(f"{engine} counts", lambda e=engine: w.counted(e))
            results.check(f"{engine} deep", lambda e=engine: w.deep(e))
            results.check(f"{engine} crashes", lambda e=engine: w.crashes(e))
        for switch in ("tiny-cache", "flush", "random-regs", "one-block", "no-link", "check"):
            results.check(f"jit {switch}", lambda s=switch: w.right("jit", "wrapped", stress=s))
        # A second return finds another frame on the stack, or, where return addresses are the program's, its caller.
        results.check("jit twice", lambda: check(w.argv("jit", "wrapped", ("--twice", "--no-changes")), 0, NATIVE))
        results.check("rewritten twice", lambda: check(w.argv("rewritten", "wrapped", ("--twice",)), 1,
                                                       "", "has returned a second time"))
        results.check("refused", w.refused)
        results.check("early", w.early)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
