#!/usr/bin/python3
"""Programs that walk over their own stacks see under the live engine what they see natively: C++ by the unwinder of its
run time (walks.cc), from its start on, while a tool comes and goes, and statically linked; C by one that is opened for it
(walks_late.c); Rust in the report of a panic.

  tests/live/walks.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

TOOLS = ("null", "calls", "bbcount")
COMES_AND_GOES = 3
PANIC = """
#[inline(never)]
fn inner(n: usize) -> usize { if n > 3 { panic!("no more than {}", n) } n + 1 }
#[inline(never)]
fn outer(n: usize) -> usize { inner(n) * 2 }
fn main() {
    let n = std::env::args().count();
    println!("{}", std::panic::catch_unwind(|| outer(n + 3)).is_err());
    std::thread::spawn(move || outer(n + 4)).join().unwrap_err();
    println!("{}", outer(n + 9));
}
"""


class Walks(outside.Out):
    def __init__(self, options, folder):
        options.all = False
        super().__init__(options, folder)
        self.walker, self.typed = f"{folder}/walker", f"{folder}/typed"
        with open(self.typed, "w") as f:
            f.write("\n" * 3)
        self.compile("g++", "-O2", f"{HERE}/walks.cc", "-o", self.walker)
        self.compile("gcc", "-O2", "-pthread", f"{HERE}/walks_late.c", "-o", f"{self.walker}-late")
        self.compile("g++", "-O2", "-static", f"{HERE}/walks.cc", "-o", f"{self.walker}-static")
        self.compile("objcopy", "--strip-symbol=_Unwind_ForcedUnwind", f"{self.walker}-static", f"{self.walker}-lacks")

    def compile(self, *argv):
        done = driver.run(list(argv), live.LIMIT, cwd=self.folder)
        if done.status:
            raise Failed("compile", *driver.as_lines(done.stderr))

    def same(self, program, mask=None, environment=None, options=(), tools=TOOLS):
        environment = driver.ENVIRONMENT | (environment or {})
        native = driver.run([program], live.LIMIT, stdin=self.typed, cwd=self.folder, env=environment)
        if len(native.stdout + native.stderr) < 1000:
            raise Failed("hardly anything is walked over natively", *driver.as_lines(native.stdout + native.stderr))
        for tool in tools:
            argv = [self.inlay, "run", "--engine=live", tool, *options, "-o", "/dev/null", "--", program]
            done = driver.run(argv, live.LIMIT, stdin=self.typed, cwd=self.folder, env=environment)
            told = driver.differences(native, done, (), mask)
            if told:
                raise Failed(tool, *told)

    def started(self):
        self.same(self.walker)

    def static(self):
        """The C library's first procedure, whose table nobody has registered there, is told of as in other programs."""
        self.same(f"{self.walker}-static", mask=r"  (ip|info) \?\+0 0\n")

    def lacks(self):
        """One that does not have all of an unwinder's procedures, as Rust's with musl."""
        self.same(f"{self.walker}-lacks", mask=r"  (ip|info) \?\+0 0\n", tools=TOOLS[:1])

    def rust(self):
        program = f"{self.folder}/panics"
        with open(f"{program}.rs", "w") as f:
            f.write(PANIC)
        for argv in (["-O"], ["-g"]):
            self.compile("rustc", *argv, f"{program}.rs", "-o", program)
            # A thread may be told by its number, and addresses are others each time.
            self.same(program, r" \([0-9]+\) panicked|0x[0-9a-f]{8,16}", {"RUST_BACKTRACE": "full"})

    def attached(self):
        """Before, with a tool inside, and when it has gone."""
        folder = driver.fresh(f"{self.folder}/attached")
        with live.Conversation([self.walker], folder) as c:
            rounds = self.walked(c, 0)
            first, counted = rounds, 1
            for tool in TOOLS[1:] * COMES_AND_GOES:
                state = outside.visible(c.process.pid)
                self.attach(tool, c.process.pid, "-o", "/dev/null")
                rounds = self.walked(c, counted)
                if rounds != first:
                    raise Failed(f"with {tool} inside", *different(first, rounds))
                self.inside("detach", c.process.pid)
                outside.clean(c.process.pid, state)
                rounds = self.walked(c, counted + 1)
                if rounds != first:
                    raise Failed(f"behind {tool}", *different(first, rounds))
                counted += 2
            c.end()

    def opened(self):
        self.same(f"{self.walker}-late")
        self.same(f"{self.walker}-late", options=("--image", "*-late"))

    def opened_with_a_tool(self):
        """Each tool is there when the unwinder is opened, and has gone when it is the next time."""
        late, kinds = f"{self.walker}-late", 3
        native = driver.run([late], live.LIMIT, stdin=self.typed, cwd=self.folder, env=driver.ENVIRONMENT)
        rounds = re.split(rb"walked \d+\n", native.stdout)[:kinds]
        with live.Conversation([late], driver.fresh(f"{self.folder}/opened")) as c:
            counted = 0
            for tool in (*TOOLS[1:], TOOLS[1]):
                self.attach(tool, c.process.pid, "-o", "/dev/null")
                for where in (f"with {tool} inside", f"behind {tool}"):
                    here = self.walked(c, counted)
                    if here != rounds[counted % kinds]:
                        raise Failed(where, *different(rounds[counted % kinds], here))
                    counted += 1
                    if counted % 2:
                        self.inside("detach", c.process.pid)
            c.end()

    def walked(self, c, before):
        """What it says of one more walk; natively the same each time."""
        start = len(c.answers())
        c.say("")
        mark = f"walked {before + 1}\n".encode()
        c.wait_until(lambda answers: answers.endswith(mark))
        return c.answers()[start:-len(mark)]


def different(wanted, here):
    pairs = zip(driver.as_lines(wanted), driver.as_lines(here))
    return [f"{there} | {now}" for there, now in pairs if there != now][:20]


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("walks", options) as results:
        walks = Walks(options, results.folder)
        for name in ("started", "static", "lacks", "rust", "attached", "opened", "opened_with_a_tool"):
            if driver.chosen(name, options):
                results.check(name, getattr(walks, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
