#!/usr/bin/python3
"""The public headers' promises of insertions that are removed, code that is shown again, processes and registers, kept by
both engines: interface_tool.c says what it finds in tests/samples/repeats.c, which calls one procedure 1000 times.

  tests/cli/interface.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
NOTHING = {"entered": 0, "blocks": 0, "exits": 0, "again": 0, "shown": 0, "removed": 0, "refused": 0, "checked": 0,
           "parts": 0, "names": 0, "threads": 1, "wrong": 0}
ALL = {"entered": 1000, "blocks": 1000, "exits": 1000}
# What the tool must find, under the JIT and in the rewritten program, where nothing can be removed any more.
EXPECTED = {
    "stays": (ALL, ALL),
    "later": ({"entered": 10, "blocks": 10, "exits": 10, "removed": 3, "refused": 3}, ALL | {"refused": 6}),
    "early": ({"removed": 3, "refused": 3}, {"removed": 3, "refused": 3}),
    "again": ({"entered": 1000, "again": 10, "shown": 2}, {"entered": 1000, "again": 1000, "shown": 1, "refused": 1}),
    "registers": ({"entered": 1000, "checked": None, "parts": None, "names": 246},
                  {"entered": 1000, "checked": None, "parts": None, "names": 246}),
}


def check(argv, native, report, expected, env):
    done = driver.run(argv, LIMIT, env=env)
    told = [] if (done.status, done.stdout) == (native.status, native.stdout) else ["the program does another thing"]
    with open(report, encoding="utf-8") as f:
        found = json.load(f)
    for name, value in (NOTHING | expected).items():
        if value is None:  # at each instruction of the procedure, at least
            told += [] if found[name] > 3000 else [f"{name}: only {found[name]}"]
        elif found[name] != value:
            told.append(f"{name}: {found[name]} instead of {value}")
    if told:
        raise Failed(*told, done.stderr.decode()[:400])
    return done.stderr.decode()


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/repeats"
    with driver.Results("interface", options) as results:
        tool, report, new = (f"{results.folder}/{name}" for name in ("interface_tool", "report", "rewritten"))
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/interface_tool.c", "-o", tool],
                          LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        native = driver.run([sample], LIMIT, env=driver.ENVIRONMENT)

        def under_jit(how, expected):
            said = check([inlay, "run", tool, f"--how={how}", "-o", report, "--", sample], native, report, expected,
                         driver.ENVIRONMENT)
            if how == "registers" and not ("inlay_vector_register" in said and "no such register" in said):
                raise Failed("what cannot be read is not refused with the way to get at it", said)

        def rewritten(how, expected):
            driver.rewrite(inlay, [tool, f"--how={how}", sample, "-o", new], LIMIT)
            said = check([new], native, report, expected, driver.ENVIRONMENT | {"INLAY_OUT": report})
            if expected.get("refused") in (1, 6) and "has been written" not in said:
                raise Failed("no word of why nothing is removed", said)

        for how, (jit, rewrite) in EXPECTED.items():
            for name, function, expected in (("jit", under_jit, jit), ("rewritten", rewritten, rewrite)):
                if driver.chosen(f"{name} {how}", options):
                    results.check(f"{name} {how}", lambda f=function, h=how, e=expected: f(h, e))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
