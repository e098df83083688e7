#!/usr/bin/python3
"""A mutator that inserts and removes the same again and again (again.c) takes no more memory for it in the long run, finds
what it has found out when it attaches anew, and leaves the code of the process as it was.

  tests/live/again.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 240
EARLY, LATE = 15, 40  # cycles
MAY_GROW = 1500       # kilobytes in so many more; a byte for each of a cycle's insertions would be 1,200
LOOP = "n=0; while :; do n=$((n + 1)); case $n in *00000) x=$(echo $n);; esac; done"


class Again:
    def __init__(self, options, folder):
        self.program = f"{folder}/again"
        made = subprocess.run([f"{options.build}/inlay", "cc", "-O2", f"{HERE}/again.c", "-o", self.program],
                              capture_output=True, text=True)
        if made.returncode:
            raise Failed("compile", *made.stderr.splitlines())

    def cycles(self, pids, count, *more):
        """A line of numbers for each."""
        pids = ",".join(map(str, pids))
        done = subprocess.run([self.program, pids, str(count), *more], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            raise Failed(f"the mutator ends with {done.returncode}", *(done.stdout[-300:] + done.stderr).splitlines())
        return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]

    @staticmethod
    def has_not_grown(cycles):
        early, late = cycles[EARLY - 1][0], cycles[LATE - 1][0]
        print(f"{early} KB after {EARLY} cycles, {late} KB after {LATE}")
        if late > early + MAY_GROW:
            raise Failed(f"a mutator has {early} KB in memory after {EARLY} cycles, and {late} KB after {LATE}")

    def check(self, processes, *more):
        """Each with its images elsewhere."""
        targets = [subprocess.Popen(["/bin/sh", "-c", LOOP]) for _ in range(processes)]
        try:
            cycles = self.cycles([target.pid for target in targets], LATE, *more)
            self.has_not_grown(cycles)
            points = {line[4] for line in cycles}
            if len(points) != 1 or points.pop() < 1000:
                raise Failed("there are not as many points in each cycle", str({line[4] for line in cycles}))
            silent = [k for k, line in enumerate(cycles) if not all(line[1:4])]
            if silent:
                raise Failed(f"nothing was counted in {len(silent)} of {LATE} cycles", *map(str, [cycles[k] for k in silent[:5]]))
            for target in targets:
                wrong = outside.wrong_code(target.pid)
                if wrong or target.poll() is not None:
                    raise Failed(wrong or f"the process has ended with {target.returncode}")
        finally:
            for target in targets:
                target.kill()
                target.wait()


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("live-again", options) as results:
        tests = Again(options, results.folder)
        for name, how in {"cycles": [1], "anew": [1, "anew"], "several": [3, "anew"]}.items():
            if driver.chosen(name, options):
                results.check(name, lambda how=how: tests.check(*how))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
