#!/usr/bin/python3
"""What a program sets for itself (checks of alignment, the direction of strings, the floating-point environment,
time stamps that fault: tests/samples/settings.c) is kept for it and does not reach analysis routines
(settings_tool.c), under the JIT and in the rewritten program. What is written runs on other processors: no
instruction of some processors only is in it that was not in the program.

  tests/rewrite/settings.py [--build DIR] [--only NAME] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
EXPECTED = "status 0, called often, flags 0, mxcsr 0, control 0, words 0, times 0\n"


def check(argv, native, report, env):
    here = driver.run(argv, LIMIT, env=env)
    told = driver.differences(native, here)
    with open(report) as f:
        found = f.read()
    if found != EXPECTED:
        told.append(f"the tool found: {found.strip()}")
    if told:
        raise Failed(*told)


def for_some_processors(program):
    done = driver.run(["objdump", "-d", program], LIMIT)
    if done.status or len(done.stdout) < 1000:
        raise Failed("objdump fails")
    return set(re.findall(rb"\t(\S+) .*%[yz]mm|\t(xsave\w*|xrstor\w*)\b", done.stdout))


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/settings"
    with driver.Results("settings", options) as results:
        tool, report = f"{results.folder}/settings_tool", f"{results.folder}/report"
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/settings_tool.c", "-o", tool],
                          LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        native = driver.run([sample], LIMIT, env=driver.ENVIRONMENT)

        def rewritten():
            driver.rewrite(inlay, [tool, sample, "-o", f"{results.folder}/rewritten"], LIMIT)
            check([f"{results.folder}/rewritten"], native, report, driver.ENVIRONMENT | {"INLAY_OUT": report})
            found = for_some_processors(f"{results.folder}/rewritten") - for_some_processors(sample)
            if found:
                raise Failed(f"it was written for this processor: {found}")

        results.check("jit", lambda: check([inlay, "run", tool, "-o", report, "--", sample], native, report,
                                           driver.ENVIRONMENT))
        results.check("rewritten", rewritten)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
