#!/usr/bin/python3
"""What gdb, attached afterwards, sees of processes that a tool or a mutator has put code into: the stacks that it sees
natively, from moved code, through it, out of the tool's own code and through signals' frames; and nothing of Inlay when
that has gone.

  tests/live/view.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: with each tool, in all places before and after, and in programs of other makers.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from commands import Command  # noqa: E402
from driver import Failed  # noqa: E402
from run import LIMIT, Conversation, call_of  # noqa: E402

WAKE = signal.SIGUSR2
CHAIN = ["deep::chain::leaf", "deep::chain::middle", "outer", "main"]
# What is said: frames that are seen, the innermost first; how it goes on.
PLACES = {
    "read": (["read", "read_on", *CHAIN], None),
    "ask": (["syscall", "ask", *CHAIN], None),
    "spin": (["spin", *CHAIN], WAKE),
    "suspend": (["sigsuspend", "suspend", *CHAIN], WAKE),
    "wait": (["wait4", "wait_for_child", *CHAIN], "child"),
    "handler": (["spin", "in_handler", "handle", "<signal handler called>", "kill", *CHAIN], WAKE),
    "throw": (["spin", "outer", "main"], WAKE),
    "thread": (["spin", *CHAIN[:3], "work"], WAKE),
}
# Of other makers: command, a line, how it goes on. Their stacks are compared with native ones.
PROGRAMS = {
    "cat": (["cat"], None, []),
    "bash": (["bash"], "sleep 1000; echo over", ["sleep"]),
    "perl": (["perl", "-e", "sub f { my $l = <STDIN>; } f(); sub g { select(undef, undef, undef, 1000) } g();"], "x", []),
    "sqlite": (["sqlite3"], "select 1;", []),
}
TOOLS = ("calls", "inscount")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def linker_word(pid):
    """What the dynamic linker has for debuggers, and what is chained behind it (48 bytes in all); None: other linkers."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        lines = [line.split() for line in f if "/ld-linux" in line]
    named = subprocess.run(["readelf", "--dyn-syms", "-W", lines[0][5]], capture_output=True, text=True, check=False).stdout \
        if lines else ""
    at = re.search(r"([0-9a-f]+) .* _r_debug@", named)
    if not at:
        return None
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        f.seek(int(lines[0][0].split("-")[0], 16) + int(at[1], 16))
        return f.read(48)


class Gdb:
    """What gdb says of a process: its threads' stacks, the names of procedures alone."""

    def __init__(self, pid, *commands):
        words = [word for command in ("thread apply all -q backtrace 60", *commands) for word in ("-ex", command)]
        done = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set width 0",
                               "-iex", "set auto-load off", "-p", str(pid), *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False,
                              env=driver.ENVIRONMENT)
        self.said = done.stdout + done.stderr
        self.stacks = [[]]
        for line in done.stdout.splitlines():
            m = re.match(r"#(\d+) +(?:0x[0-9a-f]+ in )?(<signal handler called>|[^ (]+)", line)
            if not m:
                continue
            if m[1] == "0":
                self.stacks.append([])
            self.stacks[-1].append(m[2].split("@")[0])
        self.stacks.remove([])

    def lines(self):
        return self.said.splitlines()[-60:]


def plain(name):
    """The C library's procedures have several names; which one is shown depends on its debug information."""
    return re.sub(r"^(__GI_)?_*(libc_|IO_)?(new_)?", "", name)


def rows(seen):
    """The lines at which callers stand."""
    return re.findall(r"^#[1-9]\d* .* at .*viewed\.cc:(\d+)", seen.said, re.M)


def is_like(seen, wanted):
    """Are the wanted frames there, with nothing between them?"""
    same, wanted = [plain(name) for name in seen], [plain(name) for name in wanted]
    return any(same[k:k + len(wanted)] == wanted for k in range(len(same)))


class View:
    def __init__(self, options, folder):
        self.all = options.all
        self.folder, self.build, self.inlay = folder, options.build, f"{options.build}/inlay"
        self.sample = f"{folder}/viewed"
        self.must(["g++", "-g", "-O1", f"{HERE}/viewed.cc", "-o", self.sample, "-pthread"])
        self.must(["strip", "-o", f"{folder}/stripped", self.sample])

    def must(self, argv):
        done = driver.run(argv, LIMIT, cwd=self.folder)
        if done.status:
            raise Failed(f"{' '.join(map(str, argv[:4]))}: {done.status}", *driver.as_lines(done.stderr)[-5:])
        return done

    # --- a process that stands somewhere

    def stands(self, pid, wanted, what):
        """It may be on its way there."""
        end = time.monotonic() + LIMIT
        for times in range(LIMIT):
            seen = Gdb(pid)
            if any(is_like(stack, wanted) for stack in seen.stacks):
                return seen
            if times > 20 and time.monotonic() > end:
                break
            time.sleep(0.1 * times)
        raise Failed(f"{what}: gdb does not see {' '.join(wanted)}", *seen.lines())

    @staticmethod
    def go_on(c, how):
        if how is None:
            c.say("x")
        elif how == "child":
            for child in children(c.process.pid):
                os.kill(child, signal.SIGKILL)
        else:
            c.process.send_signal(how)

    def visit(self, c, what):
        """One place, looked at natively or not."""
        wanted, how = PLACES[what]
        count = c.answers().count(b"\n")
        c.say(what)
        seen = self.stands(c.process.pid, wanted, what)
        self.go_on(c, how)
        c.has_answered(count + 1)
        return seen

    def places(self, c, which, native):
        for what in PLACES if self.all else which:
            seen = self.visit(c, what)
            if what == "spin" and (len(native) < 3 or rows(seen) != native):
                raise Failed(f"other lines than {native}", *seen.lines())

    def gone(self, pid):
        seen = Gdb(pid, "info sharedlibrary", "maint info jit")
        if f"{self.build}/tools" in seen.said or "0x" in seen.said.split("jit_code_entry")[-1][:40]:
            raise Failed("gdb still sees the tool", *seen.lines())

    # --- what is to hold

    def tool(self, tool):
        """In all places, with lines; up and finish; and nothing of it afterwards."""
        with Conversation([self.sample], driver.fresh(f"{self.folder}/{tool}")) as c:
            self.visit(c, "read")
            native = rows(self.visit(c, "spin"))
            before = linker_word(c.process.pid)
            self.must([self.inlay, "attach", tool, "-o", f"{self.folder}/report", str(c.process.pid)])
            self.places(c, PLACES, native)
            self.finishes(c)
            self.must([self.inlay, "detach", str(c.process.pid)])
            if linker_word(c.process.pid) != before:
                raise Failed("the dynamic linker's word for debuggers is not as it was", repr(before))
            self.gone(c.process.pid)
            self.places(c, ["handler"], native)

    def finishes(self, c):
        """Out of a moved procedure into its caller, and out of that one's."""
        count = c.answers().count(b"\n")
        c.say("spin")
        self.stands(c.process.pid, PLACES["spin"][0], "spin")
        seen = Gdb(c.process.pid, "set var goes_on = 1", "finish", "backtrace 1", "up", "finish", "backtrace 1")
        if [stack[0] for stack in seen.stacks[-2:]] != ["deep::chain::leaf", "outer"]:
            raise Failed("finish does not come to the callers", *seen.lines())
        c.has_answered(count + 1)

    def stripped(self):
        """Without names: as many frames, through the same procedures of libraries."""
        with Conversation([f"{self.folder}/stripped"], driver.fresh(f"{self.folder}/stripped-run")) as c:
            c.say("spin")
            self.leaves_main(c)
            before = self.settled(c)
            self.must([self.inlay, "attach", "inscount", "-o", f"{self.folder}/report", str(c.process.pid)])
            self.go_on(c, WAKE)
            c.has_answered(1)
            c.say("spin")
            self.leaves_main(c)
            after = self.settled(c)
            self.compare(before, after)

    @staticmethod
    def leaves_main(c):
        """It has taken the line and computes; it waits in no call."""
        end = time.monotonic() + LIMIT
        while c.has_lines_left() or call_of(c.process.pid):
            if time.monotonic() > end:
                raise Failed("it does not begin")
            time.sleep(0.01)

    def settled(self, c):
        """The same twice."""
        last = None
        for _ in range(60):
            seen = Gdb(c.process.pid)
            if last and last.stacks == seen.stacks:
                return seen
            last = seen
            time.sleep(0.2)
        raise Failed("it does not come to rest", *last.lines())

    @staticmethod
    def compare(before, after):
        """The same but for frames of the tool's, calls that became jumps, and names where there was none."""
        for old, new in zip(before.stacks, after.stacks):
            rest = iter(["??" if name.startswith("sub_") else plain(name) for name in old])
            for name in new:
                if name.startswith(("moved_", "run_", "sys_")):
                    continue
                wanted = "??" if name.startswith("sub_") else plain(name)
                if wanted not in rest:
                    raise Failed("another stack", " ".join(old), " ".join(new), *after.lines())
            if len(list(rest)) > 0:
                raise Failed("the stack ends early", " ".join(old), " ".join(new), *after.lines())

    def program(self, name):
        """Of other makers, without debug information."""
        command, line, kill = PROGRAMS[name]
        with Conversation(command, driver.fresh(f"{self.folder}/{name}")) as c:
            time.sleep(0.3)
            first = self.settled(c)
            self.must([self.inlay, "attach", "calls", "-o", f"{self.folder}/report", str(c.process.pid)])
            self.compare(first, self.settled(c))
            if line:
                c.say(line)
                attached = self.settled(c)
                self.must([self.inlay, "detach", str(c.process.pid)])
                self.compare(self.settled(c), attached)
            for child in children(c.process.pid) if kill else []:
                os.kill(child, signal.SIGKILL)

    def count(self):
        """A mutator's pieces; they are gone with it."""
        with Conversation([self.sample], driver.fresh(f"{self.folder}/count")) as c:
            self.visit(c, "read")
            native = rows(self.visit(c, "spin"))
            with Command(self.inlay, "count", "-p", c.process.pid, "*chain*", "spin", "outer", "main", "read*", "handle",
                         "in_handler", "work", ready="are counted") as command:
                self.places(c, ["read", "handler", "throw", "spin"], native)
                command.end()
            self.gone(c.process.pid)
            self.places(c, ["spin"], native)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("view", options) as results:
        if not shutil.which("gdb"):
            results.skip("all", "there is no gdb")
            return results.status
        view = View(options, results.folder)
        tests = {f"tool {tool}": (view.tool, tool) for tool in TOOLS[:None if options.all else 1]} | {
            "stripped": (view.stripped,), "count": (view.count,)} | {
            f"program {name}": (view.program, name) for name in PROGRAMS if options.all}
        for name, (test, *arguments) in tests.items():
            if driver.chosen(name, options):
                results.count(name, driver.problem(test, *arguments))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
