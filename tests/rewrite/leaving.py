#!/usr/bin/python3
"""Counts of procedures that are left in their middle.

  tests/rewrite/leaving.py [--build DIR] [--only PATTERN] [--keep]

Handlers of the sample `leaving` jump out of procedures at faults, or go on at another instruction. What inscount says
of each procedure, under the JIT and rewritten, must equal what a single-stepper saw. Prints a line for each failure and
at the end N passed, N failed.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../exact"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402
from elf import Elf  # noqa: E402

LIMIT = 120


def run(argv, **environment):
    done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT | environment)
    if done.status != 0:
        raise Failed(f"{argv[0]}: status {done.status}, {done.stderr[-300:]!r}")
    return done


def truth(options, program, scratch):
    """By procedure."""
    run([f"{options.build}/tests/support/stepper", "-o", f"{scratch}/truth", "--", program])
    with open(f"{scratch}/truth") as f:
        counts = [(int(w[1], 16), int(w[2])) for w in map(str.split, f) if w[0] == "pc"]
    table = {}
    for (start, size), names in Elf(program).functions().items():
        for name in names:
            table[name] = sum(n for pc, n in counts if start <= pc < start + size)
    return table


def count(path):
    with open(path) as f:
        return int(re.search(r"(\d+) instructions", f.read())[1])


def check(options, scratch, program, name, wanted, jit):
    out, made = f"{scratch}/{name}.{jit}", f"{scratch}/{name}.made"
    if jit:
        run([f"{options.build}/inlay", "run", "inscount", "--proc", name, "-o", out, "--", program])
    else:
        run([f"{options.build}/inlay", "rewrite", "inscount", "--proc", name, program, "-o", made])
        run([made], INLAY_OUT=out)
    if count(out) != wanted:
        raise Failed(f"{count(out)} instructions instead of {wanted}")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("leaving", options) as results:
        program = f"{options.build}/tests/samples/leaving"
        wanted = truth(options, program, results.folder)
        for name in ("walks", "writes", "steps"):
            for jit in (True, False):
                results.check(f"{name} {'jit' if jit else 'rewritten'}",
                              lambda: check(options, results.folder, program, name, wanted[name], jit))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
