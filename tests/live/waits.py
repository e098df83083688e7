#!/usr/bin/python3
"""Calls that wait are not ended early by a tool that comes or goes, nor by code that is inserted, and those which the
kernel continues after a stop do not begin anew.

  tests/live/waits.py [--build DIR] [--only PATTERN] [--all] [--keep]

Each test is a way to wait (waits.c) that the process's first thread is in, which does the work; all ways are waited in by
other threads. --all: every way; else three.
"""

import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

# The first of each group: what the kernel has in hand after a stop, what it would end, what has no end by itself.
GOES_ON = ["poll", "nanosleep", "clock_nanosleep", "ppoll", "select", "pselect", "futex", "futex_until", "condition"]
BEGINS_ANEW = ["epoll_wait", "epoll_pwait", "sigtimedwait", "recv", "accept", "semtimedop"]
IS_ENDED = ["semop", "msgrcv", "read"]
SECONDS = 4
FOREVER = 90  # with stops all the time; what begins anew at each would never end


class Waits(outside.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.program = f"{folder}/waits"
        if driver.build("dynamic", f"{HERE}/waits.c", self.program):
            raise Failed("waits.c cannot be compiled")

    def cycle(self, pid, folder, k):
        """A tool comes and goes, or a command inserts and removes."""
        if k % 3 == 2:
            done = subprocess.run([self.inlay, "count", "--for", "0.2", "-p", str(pid), "now"], capture_output=True, text=True,
                                  timeout=live.LIMIT, env=driver.ENVIRONMENT)
            if done.returncode:
                raise Failed(f"count ended with {done.returncode}", done.stderr[-600:])
            return
        self.attach("calls", pid, "-o", f"{folder}/report")
        self.inside("detach", pid)

    def way(self, name):
        folder = driver.fresh(f"{self.folder}/{name}")
        with live.Conversation([self.program, name, str(SECONDS)], folder) as c:
            c.has_answered(1)
            end, cycles = time.monotonic() + FOREVER, 0
            while b"over\n" not in c.answers() and c.process.poll() is None:
                if time.monotonic() > end:
                    raise Failed(f"calls do not end while tools come and go ({cycles} times)")
                self.cycle(c.process.pid, folder, cycles)
                cycles += 1
            said, status = c.end()
        lines = said.decode().splitlines()
        wrong = [line for line in lines if not self.is_right(line)]
        if status or wrong or len(lines) != 3 + len(GOES_ON + BEGINS_ANEW + IS_ENDED):
            raise Failed(f"status {status} after {cycles} times", *(wrong or lines))
        if not cycles:
            raise Failed("no tool came")

    @staticmethod
    def is_right(line):
        if line in ("begins", "over"):
            return True
        name, answer, error, when = line.removeprefix("the first thread: ").split(" ", 3)
        if when != "in time":
            return False
        if name in IS_ENDED:
            return error == "-"
        return (answer == "0" and error == "-") or error in ("EAGAIN", "ETIMEDOUT")


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("live-waits", options) as results:
        tests = Waits(options, results.folder)
        for group in (GOES_ON, BEGINS_ANEW, IS_ENDED):
            for name in group if options.all else group[:1]:
                if driver.chosen(name, options):
                    results.check(name, lambda name=name: tests.way(name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
