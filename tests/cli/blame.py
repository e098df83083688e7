#!/usr/bin/python3
"""A tool that goes wrong: where, in which way, under which engine; who is blamed, with which line, and how the process
ends. And that a program's own faults stay the program's.

  tests/cli/blame.py [--build DIR] [--only PATTERN] [--all] [--keep] [--jobs N]

Without --all each place in one way, and each way in a few places.
"""

import collections
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

TOOL, SOURCE = f"{HERE}/blame_tool.c", f"{HERE}/blame_ways.h"
# Where the tool's code runs, and what that is called. In main the program has not begun.
MAIN = {"constructor": "before inlay_init", "before": "before inlay_init",
        "after": "between inlay_init and inlay_start"}
SHOWN = {"image": "an image callback", "proc": "a procedure callback", "block": "a block callback",
         "insn": "an instruction callback"}
RUNS = {"start": "a start callback", "routine": "an analysis routine", "thread": "a thread start callback",
        "threadend": "a thread end callback", "syscall": "a system call callback", "buffer": "a buffer's function",
        "fork": "a fork callback", "exit": "an exit callback"}
ATOM = {"instrument": "the instrumentation file", "analysis": "an analysis routine"}
PLACES = MAIN | SHOWN | RUNS
# What is said to have been done, the rest of the line, the status.
WAYS = {
    "null": ("has crashed", "SIGSEGV, address 0x10", -signal.SIGSEGV),
    "abort": ("has called abort", None, -signal.SIGABRT),
    "assert": ("has called abort", None, -signal.SIGABRT),
    "exit": ("has ended", "exit with status 3", 3),
    "zero": ("has ended", "exit with status 0", 1),
    "overflow": ("has used up its stack", r"SIGSEGV, address 0x[0-9a-f]+", -signal.SIGSEGV),
    "divide": ("has crashed", "SIGFPE", -signal.SIGFPE),
    "library": ("has crashed", "SIGSEGV, address 0", -signal.SIGSEGV),
    "nowhere": ("has crashed", "SIGSEGV, address 0", -signal.SIGSEGV),
    "loop": ("hangs", None, -signal.SIGTERM),
}
Case = collections.namedtuple("Case", "name engine place way")


def marks():
    """The lines of the tool's sources by their marks."""
    found = {}
    for name in (TOOL, SOURCE):
        with open(name, encoding="utf-8") as f:
            found |= {m[1]: n for n, text in enumerate(f, 1) for m in [re.search(r"/\* mark: (\w+) \*/", text)] if m}
    return found


def cases(everything):
    few = ("after", "block", "routine", "exit")
    for engine in ("jit", "rewriting", "rewritten"):
        for place in PLACES:
            if engine == "rewriting" and place in RUNS or engine == "rewritten" and place in SHOWN:
                continue
            for way in WAYS:
                slow = way == "loop" and place not in MAIN
                if engine != "rewriting" and place in ("threadend", "syscall", "buffer") and way == "loop":
                    continue  # who waits for the thread gets the signal, or all are blocked
                if everything or way == "null" or (place in few and not slow) or (way == "loop" and place == "routine"):
                    yield Case(f"{engine}-{place}-{way}", engine, place, way)


def atom_cases(everything):
    """ATOM's files: one instruments, under the JIT at the program's beginning; the other runs."""
    for place, engines in (("instrument", ("rewriting", "jit")), ("analysis", ("rewritten", "jit"))):
        for engine in engines:
            for way in WAYS:
                if everything or way in ("null", "exit", "assert"):
                    yield Case(f"atom-{engine}-{place}-{way}", engine, place, way)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(word) for word in f.read().split()]


def seconds_run(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            times = f.read().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return 0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def looping(process, in_child):
    """The processes that have come to the loop: they have used more time than all before it takes."""
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        pids = children_of(process.pid) if in_child else [process.pid]
        if pids and all(seconds_run(pid) > 2 for pid in pids):
            return pids
        time.sleep(0.1)
    return []


def below(case):
    """The tool is in a child of the command."""
    return case.place == "fork" or (case.place == "instrument" and case.engine == "rewriting")


class Blame:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.lines = f"{build}/inlay", folder, marks()
        self.tool, self.program = f"{folder}/bt", f"{folder}/program"
        self.compile(self.tool, TOOL, "-O1", "-g")
        driver_flags = ["-O1", "-pthread", f"{HERE}/blame_program.c", "-o", self.program]
        subprocess.run(["cc", *driver_flags], check=True)
        self.written = {}
        for place in [*PLACES, "inlined", "expression", "handlers"]:
            out = self.written[place] = f"{folder}/program.{place}"
            driver.rewrite(self.inlay, [self.tool, f"--insert={place}", self.program, "-o", out], env=driver.ENVIRONMENT)

    def compile(self, out, *words):
        done = subprocess.run([self.inlay, "cc", *words, "-o", out], capture_output=True, text=True)
        if done.returncode:
            raise Failed("the tool is not compiled", done.stderr)

    def make_atom(self):
        """ATOM's tools, where they are there before they go wrong."""
        for engine in ("jit", "rewritten"):
            made = driver.run(self.atom_command(engine, f"{self.folder}/program.{engine}"), 120, env=driver.ENVIRONMENT)
            if made.status:
                raise Failed("ATOM's tool is not made", *driver.as_lines(made.stderr))

    def atom_command(self, engine, out):
        return [self.inlay, "atom", self.program, f"{HERE}/blame_ways.inst.c", f"{HERE}/blame_ways.anal.c", "-O1",
                f"-I{HERE}", "-o", out, f"--engine={'jit' if engine == 'jit' else 'rewrite'}"]

    def atom(self, case):
        if case.engine == "rewriting":
            return self.atom_command(case.engine, f"{self.folder}/{case.name}")
        return [f"{self.folder}/program.{case.engine}"]

    def command(self, case, tool=None):
        if case.place in ATOM:
            return self.atom(case)
        more = ["fork"] if case.place == "fork" else []
        if case.engine == "rewritten":
            return [self.written[case.place], *more]
        insert, tool = f"--insert={case.place}", tool or self.tool
        if case.engine == "jit":
            return [self.inlay, "run", tool, insert, "--", self.program, *more]
        return [self.inlay, "rewrite", tool, insert, self.program, "-o", f"{self.folder}/{case.name}"]

    def run(self, case, argv, blame):
        """A loop is ended by SIGTERM, when it has run for a while."""
        env = driver.ENVIRONMENT | ({"BLAME": blame} if blame else {})
        with open(f"{self.folder}/{case.name}.err", "w+") as err:
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                                       cwd=self.folder, start_new_session=True)
            if case.way == "loop":
                for pid in looping(process, below(case)):
                    os.kill(pid, signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            err.seek(0)
            return process.returncode, err.read()

    def ending(self, case):
        name = "|".join(("SIG[A-Z]+", r"status \d+"))
        if case.engine == "rewriting" and case.place != "before" and case.place != "constructor":
            return "nothing is written"
        if case.place in MAIN:
            return "the program has not run"
        if case.place == "exit":
            return f"program was about to end; it ends by this with ({name}), and the report is not whole"
        return rf"program\S* ends by it with ({name}), without a report"

    def headline(self, case):
        did, what, _ = WAYS[case.way]
        if case.way == "loop":
            what = "SIGTERM has come" if case.place in MAIN or case.engine == "rewriting" else \
                r"SIGTERM has waited for \d+ seconds"
        proc = "deeper" if case.way == "overflow" else "go_wrong"
        called = r"[\w.]+, called by " if case.way == "library" and case.engine != "rewritten" else ""
        line = self.lines[case.way]
        lines = f"({line - 1}|{line})" if case.way == "overflow" else line
        place = rf"{called}{proc} \(\S*blame_ways\.h:{lines}\)"
        return rf"\S+: the tool {did} in {place}, {(PLACES | ATOM)[case.place]}" + (f": {what}" if what else "")

    def goes_wrong(self, case):
        status, said = self.run(case, self.command(case), f"{case.place}:{case.way}")
        lines = said.splitlines()
        wanted = [self.headline(case), rf"\S+: {self.ending(case)}"]
        found = [[i for i, text in enumerate(lines) if re.fullmatch(w, text)] for w in wanted]
        if [len(f) for f in found] != [1, 1] or found[0] > found[1]:
            raise Failed(f"not once each, in order: {wanted}", *lines)
        wanted = WAYS[case.way][2]
        if below(case) and wanted < 0:
            wanted = 128 - wanted  # as the parent says it
        if status != wanted:
            raise Failed(f"status {status} instead of {wanted}", *lines)
        if case.engine == "rewriting" and os.path.exists(f"{self.folder}/{case.name}"):
            raise Failed("a file is there all the same")

    def early(self, engine):
        """Who ends a child that it has just made ends it as without the tool."""
        case = Case(f"{engine}-early", engine, "after", "early")
        status, said = self.run(case, self.command(case), "after:early")
        if status != -signal.SIGTERM or said:
            raise Failed(f"status {status}", *said.splitlines())

    def inserted(self, engine, place, wanted):
        """What is inserted goes wrong by itself."""
        case = Case(f"{engine}-{place}", engine, place, "null")
        status, said = self.run(case, self.command(case), None)
        if status != -signal.SIGSEGV or not re.search(wanted, said):
            raise Failed(f"status {status}, and no line like {wanted}", *said.splitlines())

    def inlined_routine(self, engine):
        self.inserted(engine, "inlined", rf"bt\S*: the tool has crashed in inlined \(\S*blame_tool\.c:{self.lines['inlined']}\), "
                                         r"a routine written into the program's code at 0x[0-9a-f]+: SIGSEGV, address 0x10\n")

    def expression(self, engine):
        self.inserted(engine, "expression", r"bt\S*: the tool has crashed, an expression inserted into the program's code at "
                                            r"0x[0-9a-f]+: SIGSEGV, address 0x10\n")

    def without_lines(self):
        """A tool without debug information: procedures are named by their symbols."""
        self.compile(f"{self.folder}/bare", TOOL, "-O1", "-g0")
        case = Case("without-lines", "jit", "block", "null")
        status, said = self.run(case, self.command(case, f"{self.folder}/bare"), "block:null")
        if "bare: the tool has crashed in go_wrong, a block callback: SIGSEGV, address 0x10\n" not in said:
            raise Failed(f"status {status}", *said.splitlines())

    def handlers(self, engine):
        """A tool that would handle signals is told that it cannot, and the program dies as it does by itself."""
        case = Case(f"{engine}-handlers", engine, "handlers", "null")
        status, said = self.run(case, [*self.command(case), "twice"], None)
        if status != -signal.SIGABRT or "bt: the tool cannot change the action for signal 11: " not in said or \
           "double free" not in said or "bt: the tool forks: its child cannot go on as the program" not in said:
            raise Failed(f"status {status}", *said.splitlines())

    def internal(self, engine):
        """What is the fault of neither the tool nor the program."""
        tool = f"{self.folder}/spoils"
        self.compile(tool, f"{HERE}/blame_inlay.c", "-O1", f"-I{ROOT}/src", f"-DINL_ARCH={os.uname().machine}")
        argv = [self.inlay, "run", tool, "--", self.program]
        if engine == "rewritten":
            driver.rewrite(self.inlay, [tool, self.program, "-o", f"{tool}.new"], env=driver.ENVIRONMENT)
            argv = [f"{tool}.new"]
        status, said = self.run(Case(f"{engine}-internal", engine, "start", "null"), [*argv, "handled"], None)
        where, then = r"its code at offset 0x[0-9a-f]+", ""
        if engine == "jit":
            where, then = r"\S+ \(\S*src/\S+:\d+\)", r"spoils:   called by run_sys_sigaction \(\S*src/run/signal\.c:\d+\)\n"
        wanted = rf"spoils: internal error of Inlay: its code has crashed in {where}: SIGSEGV, address 0x[0-9a-f]+\n{then}"
        if status != -signal.SIGSEGV or not re.search(wanted, said) or "ends by it with SIGSEGV" not in said:
            raise Failed(f"status {status}, and no line like {wanted}", *said.splitlines())

    def programs_fault(self, engine, argument):
        """With routines, inlined ones and callbacks all around it."""
        for place in ("routine", "syscall", "buffer"):
            case = Case(f"{engine}-own-{place}", engine, place, "null")
            status, said = self.run(case, [*self.command(case), argument], None)
            if said or status != {"fault": -signal.SIGSEGV, "handled": 6}[argument]:
                raise Failed(f"status {status}", *said.splitlines())


# How a tool is linked wrongly, and what is said of it: by the command, and by itself.
LINKS = {
    "dynamic": (["-fPIE", "-pie"], "linked dynamically"),
    "dynamic-fixed": (["-fno-pie", "-no-pie"], "linked dynamically"),
    "static-fixed": (["-fno-pie", "-no-pie", "-static"], "static, but cannot lie anywhere"),
}


class Wrong:
    """Files that are no tools, or none that can be used: said before anything runs."""

    def __init__(self, tests, build):
        self.tests, self.inlay, self.folder, self.build = tests, tests.inlay, tests.folder, build

    def refused(self, file, said, by_itself=False):
        for argv in ([self.inlay, "run", file, "--", "/bin/true"], [self.inlay, "rewrite", file, "/bin/true", "-o", "out"],
                     [file, "--", "/bin/true"])[:3 if by_itself else 2]:
            done = driver.run(argv, 60, cwd=self.folder, env=driver.ENVIRONMENT)
            text = done.stderr.decode()
            if done.status != 1 or said not in text or text.count("\n") != 1:
                raise Failed(f"{' '.join(argv)}: status {done.status}", *text.splitlines())

    def linked(self, name):
        flags, said = LINKS[name]
        out = f"{self.folder}/linked-{name}"
        include = f"{os.path.dirname(os.path.dirname(HERE))}/include"
        with open(f"{self.build}/inlay.pc") as f:
            libraries = re.search(r"Libs\.private: (.*)", f.read()).group(1).split()
        done = subprocess.run(["cc", f"-I{include}", "-fno-stack-protector", *flags, TOOL, "-o", out, f"-L{self.build}",
                               "-linlay", *libraries], capture_output=True, text=True)
        if done.returncode:
            raise Failed("not linked", done.stderr)
        self.refused(out, said, True)

    def changed(self, name, said, change):
        with open(self.tests.tool, "rb") as f:
            data = bytearray(f.read())
        change(data)
        with open(f"{self.folder}/{name}", "wb") as f:
            f.write(data)
        os.chmod(f"{self.folder}/{name}", 0o755)
        self.refused(f"{self.folder}/{name}", said)

    def other_version(self):
        def change(data):
            at = data.index(b"\6\0\0\0\4\0\0\0\1\0\0\0Inlay\0")
            data[at + 20] += 1
        self.changed("version", "built with another version of Inlay", change)

    def other_processor(self):
        def change(data):
            data[18] ^= 0x80
        self.changed("processor", "for another processor", change)

    def no_tool(self):
        self.refused("/bin/true", "not an Inlay tool")

    def no_program(self):
        self.changed("text", "nor any ELF file", lambda data: data.__setitem__(0, 0x23))

    def empty(self):
        self.changed("empty", "it is empty", lambda data: data.clear())


def main():
    parser = driver.parser(__doc__, jobs=True)
    parser.add_argument("--all", action="store_true", help="the whole table")
    options = parser.parse_args()
    with driver.Results("blame", options) as results:
        tests = Blame(options.build, results.folder)
        rows = [c for c in (*cases(options.all), *atom_cases(options.all)) if driver.chosen(c.name, options)]
        if any(c.place in ATOM for c in rows):
            results.count("atom", driver.problem(tests.make_atom))
        results.check_rows(rows, lambda c: (None, [(c.name, driver.problem(tests.goes_wrong, c))]))
        for engine in ("jit", "rewritten"):
            results.check(f"{engine}-inlined", lambda: tests.inlined_routine(engine))
            results.check(f"{engine}-expression", lambda: tests.expression(engine))
            results.check(f"{engine}-handlers", lambda: tests.handlers(engine))
            results.check(f"{engine}-early", lambda: tests.early(engine))
            results.check(f"{engine}-internal", lambda: tests.internal(engine))
            for argument in ("fault", "handled"):
                results.check(f"{engine}-programs-{argument}", lambda: tests.programs_fault(engine, argument))
        results.check("without-lines", tests.without_lines)
        wrong = Wrong(tests, options.build)
        for name in LINKS:
            results.check(f"linked-{name}", lambda: wrong.linked(name))
        for name in ("other_version", "other_processor", "no_tool", "no_program", "empty"):
            results.check(name, getattr(wrong, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
