#!/usr/bin/python3
"""What a tool writes in vain, to a pipe that nobody reads or to a file that may not grow, is no signal for the program:
it sees none, and of its own as many as natively (tests/samples/unheard.c).

  tests/cli/unheard.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120


def closed_pipe():
    ends = os.pipe()
    os.dup2(ends[1], 2)
    os.close(ends[0])


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/unheard"
    with driver.Results("unheard", options) as results:
        tool, new, out = (f"{results.folder}/{name}" for name in ("tool", "new", "out"))
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", f"{HERE}/unheard_tool.c", "-o", tool], LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        native = driver.run([sample], LIMIT)

        def check(argv, env=None):
            done = driver.run(argv, LIMIT, env=env, before=closed_pipe)
            if (done.status, done.stdout) != (native.status, native.stdout) or os.path.getsize(out) != 4096:
                raise Failed(f"status {done.status}", *done.stdout.decode().splitlines())

        def rewritten():
            driver.rewrite(inlay, [tool, sample, "-o", new], LIMIT)
            check([new], driver.ENVIRONMENT | {"INLAY_OUT": out})

        for engine in ("jit", "live"):
            results.check(engine, lambda e=engine: check([inlay, "run", f"--engine={e}", tool, "-o", out, "--", sample]))
        results.check("rewritten", rewritten)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
