#!/usr/bin/python3
"""Programs that take their address space into their own hands: the vdso is unmapped, moved, or mapped over, all is unmapped
that is not known, memory is mapped where a tool lies, a heap grows far, code is read that something else is to translate.

  tests/live/places.py [--build DIR] [--only PATTERN] [--all] [--keep]

They do what they do natively under a tool that reads clocks, under the JIT and the live engine, and a tool comes to such a
process and goes. --all: each form of program, and tools that come and go; else a static program from its first instruction on.
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

FORMS = {"pie": ["-pie", "-fPIE"], "fixed": ["-no-pie"], "static": ["-static"]}
WAYS = ("vdso", "move", "over", "unknown")
QUICK = ("started-static",)


class Places(outside.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        for form, flags in FORMS.items():
            done = driver.run(["gcc", "-O1", *flags, f"{HERE}/places.c", "-o", f"{folder}/{form}"], live.LIMIT)
            if done.status:
                raise Failed("places.c cannot be compiled", *driver.as_lines(done.stderr))

    def ask(self, before, form, lines):
        """What it says, and what else is said."""
        with open(f"{self.folder}/lines", "w", encoding="ascii") as file:
            file.write("".join(f"{line}\n" for line in lines))
        command = " ".join([*before, f"{self.folder}/{form}"])
        done = driver.run(["/bin/sh", "-c", f"exec {command} < {self.folder}/lines"], live.LIMIT)
        if done.status:
            raise Failed(f"{command}: status {done.status} after {lines}", *driver.as_lines(done.stderr))
        return done.stdout, done.stderr

    def started(self, form):
        for way in WAYS:
            lines = ["work", way, "work", "sum", "work"]
            native, _ = self.ask([], form, lines)
            for engine in ("jit", "live"):
                here, _ = self.ask([self.inlay, "trace", f"--engine={engine}", "-o", f"{self.folder}/trace", "--"], form, lines)
                if here != native:
                    raise Failed(f"{way}: another answer ({engine})", *driver.as_lines(native), "---", *driver.as_lines(here))
        self.room(form)

    def room(self, form):
        """The heap has room; what would lie over the tool is refused, and that is said."""
        fails = driver.run(["setarch", "-R", "true"], live.LIMIT).status
        still = [] if fails else ["setarch", "-R"]  # the heap begins right behind the program
        before = [*still, self.inlay, "run", "--engine=live", "bbcount", "-o", "/dev/null", "--"]
        answers, said = self.ask(before, form, ["work", "grow", "low", "work"])
        lines = answers.decode().splitlines()
        if lines[1:3] != ["the heap has grown by 512 MB", "refused"] or lines[0] != lines[3]:
            raise Failed("no room for the heap, or it lies over the tool", *lines)
        if b"where Inlay has its own" not in said:
            raise Failed("it is not said", *driver.as_lines(said))

    def attached(self, form):
        for way in WAYS:
            folder = driver.fresh(f"{self.folder}/{form}-{way}")
            with live.Conversation([f"{self.folder}/{form}"], folder) as c:
                c.say("work", way, "sum")
                c.has_answered(3)
                state = outside.visible(c.process.pid)
                self.attach("prof", c.process.pid, "-o", f"{folder}/report")
                c.say("work", "sum")
                c.has_answered(5)
                self.inside("detach", c.process.pid)
                outside.clean(c.process.pid, state)
                c.say("sum", "work")
                said, status = c.end()
            lines = said.decode().splitlines()
            if status or len(lines) != 7 or len({lines[k] for k in (0, 3, 6)} | {lines[k] for k in (2, 4, 5)}) != 2:
                raise Failed(f"{way}: status {status}", *lines)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("places", options) as results:
        places = Places(options, results.folder)
        for form in FORMS:
            for case, function in ((f"started-{form}", places.started), (f"attached-{form}", places.attached)):
                if (options.all or options.only != "*" or case in QUICK) and driver.chosen(case, options):
                    results.check(case, lambda f=function, n=form: f(n))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
