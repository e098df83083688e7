#!/usr/bin/python3
"""Tools that crash while they are put in. A program that is started under --engine=live ends as it does under the JIT, with
the same words; a process that ran already goes on as it was, without the tool.

  tests/live/crashes.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from out import clean, visible  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402

WORK = ("work 40", "wake", "signal", "settings", "threads 8", "fork", "jump", "fault")


class Crashes:
    def __init__(self, options, folder):
        self.inlay, self.folder = f"{options.build}/inlay", folder
        self.tool, self.program = f"{folder}/crash_tool", f"{folder}/talks"
        done = subprocess.run([self.inlay, "cc", "-O1", "-g", f"{HERE}/crash_tool.c", "-o", self.tool], capture_output=True,
                              text=True)
        if done.returncode or driver.build("dynamic", f"{HERE}/talks.c", self.program):
            raise driver.Failed("the tool or the program cannot be built", done.stderr[-500:])

    def started(self, where, engine):
        """(status, where it has happened)"""
        done = subprocess.run([self.inlay, "run", f"--engine={engine}", self.tool, "--", "echo", "hi"], capture_output=True,
                              text=True, timeout=LIMIT, env=dict(driver.ENVIRONMENT, CRASH=where))
        first = re.search(r"crash_tool: (the tool has .*)", done.stderr)
        if not first:
            raise driver.Failed(f"{engine} does not say where", done.stderr)
        return done.returncode, done.stdout, first[1]

    def fresh(self):
        for where in ("main", "main-exit", "main-abort", "image", "thread", "thread-exit", "exit"):
            jit, live = self.started(where, "jit"), self.started(where, "live")
            if jit != live:
                raise driver.Failed(f"{where}: under the JIT, and live", repr(jit), repr(live))

    def ran(self):
        """`both`: in the instrumentor, else only in the process."""
        for where, both, status in (("main", True, -11), ("image", True, -11), ("main-exit", True, 3), ("main-abort", True, -6),
                                    ("main", False, 1), ("main-exit", False, 1), ("main-abort", False, 1),
                                    ("thread", False, 1), ("thread-exit", False, 1), ("thread-abort", False, 1)):
            environment = dict(driver.ENVIRONMENT, CRASH=where)
            with Conversation(["env", f"CRASH={where}", self.program, "patient"],
                              driver.fresh(f"{self.folder}/{where}")) as c:
                c.say(*WORK)
                c.has_answered(len(WORK))
                pid, state = c.process.pid, visible(c.process.pid)
                done = subprocess.run([self.inlay, "attach", self.tool, str(pid)], capture_output=True, text=True,
                                      timeout=LIMIT, env=environment if both else driver.ENVIRONMENT)
                says = "nothing is put into the process" if both else "did not start in process|nothing is put into"
                if done.returncode != status or not re.search(says, done.stderr):
                    raise driver.Failed(f"{where}: status {done.returncode}", done.stderr)
                clean(pid, state)
                c.say(*WORK)
                here = c.end()
            with Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/{where}-native")) as c:
                c.say(*WORK, *WORK)
                native = c.end()
            said = b"".join(line for line in here[0].splitlines(True) if not line.startswith(b"crash_tool: "))
            if (said, here[1]) != native:
                raise driver.Failed(f"{where}: status {here[1]}, natively {native[1]}", *map(repr, here[0].splitlines()[-9:]))


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("crashes", options) as results:
        of = Crashes(options, results.folder)
        for name in ("fresh", "ran"):
            if driver.chosen(name, options):
                results.check(name, getattr(of, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
