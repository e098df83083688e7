#!/usr/bin/python3
"""Callbacks: a tool that writes all of them down (events_tool.c) sees the same of a program (events.c) under the JIT
and in the rewritten program, thread by thread and process by process. And a program that ends, starts threads
and takes signals in every way (ends.c) behaves as natively while all its system calls are watched.

  tests/rewrite/events.py [--build DIR] [--only FORM] [--keep]
"""

import glob
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
import ends  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 60
FORMS = ("dynamic", "no-pie", "static", "static-pie", "musl-static", "with-libs")


def must(argv, folder):
    done = driver.run(argv, LIMIT, cwd=folder)
    if done.status:
        raise Failed(f"{' '.join(argv[:3])}: {done.status}", *driver.as_lines(done.stderr)[-6:])


def events(path):
    """Thread by thread, of the process that the file is of."""
    with open(path) as f:
        return sorted(f, key=lambda line: int(line.split()[0]))


class Form:
    def __init__(self, build, tool, folder, name):
        self.inlay, self.tool, self.folder, self.name = f"{build}/inlay", tool, driver.fresh(f"{folder}/{name}"), name
        self.program = f"{self.folder}/events"
        self.missing = driver.build("dynamic" if name == "with-libs" else name, f"{HERE}/events.c", self.program)

    def rewritten(self):
        out = f"{self.folder}/out"
        where = ["--with-libs", out] if self.name == "with-libs" else ["-o", out]
        driver.rewrite(self.inlay, [self.tool, self.program, *where], LIMIT)
        return f"{out}/events" if self.name == "with-libs" else out

    def logs(self, argv, result, **more):
        """What the program prints, its own events, those of its child."""
        done = driver.run(argv, LIMIT, cwd=self.folder, env=driver.ENVIRONMENT | more)
        children = glob.glob(f"{result}.*")
        if len(children) != 1:
            raise Failed(f"{len(children)} children have reported", *driver.as_lines(done.stderr)[-6:])
        return done, events(result), events(children[0])

    def check(self, *arguments):
        """An exec of a program that is not followed ends the tool under both."""
        jit, rewritten = (f"{driver.fresh(f'{self.folder}/{n}')}/log" for n in ("jit", "rewritten"))
        a = self.logs([self.inlay, "run", self.tool, "-o", jit, "--", self.program, *arguments], jit)
        b = self.logs([self.rewritten(), *arguments], rewritten, INLAY_OUT=rewritten)
        for line in (b"to 77\nkept 1\nother 1000\n", b"read again 1\n"):
            if line not in a[0].stdout:
                raise Failed(f"not printed: {line}", *driver.as_lines(a[0].stdout))
        if not any("read of 76 answers 1" in line for line in a[1]):
            raise Failed("no read of 76 bytes", *a[1])
        told = driver.differences(a[0], b[0])
        for mine, theirs in zip(b[1:], a[1:]):
            if mine != theirs or len(mine) < 6:
                at = next((k for k, (x, y) in enumerate(zip(mine, theirs)) if x != y), min(len(mine), len(theirs)))
                told += [f"event {at}: jit {theirs[at:at + 3]}, rewritten {mine[at:at + 3]}"]
        if told:
            raise Failed(*told)


def check_ways(build, tool, folder, form):
    """All that differ, at once: the ways are many."""
    options, program = f"{driver.fresh(f'{folder}/ways-{form}')}/out", f"{folder}/ways-{form}/ends"
    driver.build("dynamic" if form == "with-libs" else form, f"{HERE}/ends.c", program)
    where = ["--with-libs", options] if form == "with-libs" else ["-o", options]
    driver.rewrite(f"{build}/inlay", [tool, program, *where], LIMIT)
    out = f"{options}/ends" if form == "with-libs" else options
    wrong = []
    for way in ends.WAYS:
        if form == "static" and way in ends.GLIBC_DYNAMIC:
            continue
        a = driver.run([program, way], LIMIT)
        b = driver.run([program, way], LIMIT, executable=out, env=os.environ | {"INLAY_OUT": f"{out}.result"})
        wrong += [f"{way}: {line}" for line in driver.differences(a, b, ("noerr",))]
    if wrong:
        raise Failed(*wrong)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("events", options) as results:
        tool = f"{results.folder}/tool"
        must([f"{options.build}/inlay", "cc", "-Wall", "-Wextra", "-Werror", f"{HERE}/events_tool.c", "-o", tool],
             results.folder)
        for name in FORMS:
            form = Form(options.build, tool, results.folder, name)
            if form.missing:
                results.skip(name, form.missing)
                continue
            results.check(name, form.check)
            results.check(f"{name} exec", lambda f=form: f.check("exec"))
        for form in ("dynamic", "static", "with-libs"):
            results.check(f"ways {form}", lambda f=form: check_ways(options.build, tool, results.folder, f))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
