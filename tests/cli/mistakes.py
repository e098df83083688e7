#!/usr/bin/python3
"""A wrong expression is refused with what is wrong about it, and where; --dump shows what the filters let through.

  tests/cli/mistakes.py [--build DIR] [--only PATTERN] [--keep]
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
SAID = {
    "arguments": "13 arguments: at most 12",
    "size": "memory of 3 bytes is asked for, where 1, 2, 4 or 8 can be had",
    "register": "inlay_vector_register\\(16\\): they are numbered from 0 to 15",
    "fields": "the fields of a trace record have 6 bytes, the record 8",
    "field": "a record's field must have 1, 2, 4 or 8 bytes",
    "extended": "inlay_extend: a value is extended from 1, 2, 4 or 8 bytes, not from 257",
    "argument": r"inlay_argument\(1073741824\): they are numbered from 0 to 4095",
    "record": "the record of 0x5 has 8 bytes, as it was first asked for; 16 cannot be had",
    "operator": "inlay_binary: 99 is no operator of two values",
    "none": "argument 1 of a call's 1 is no expression",
}


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/abilities"
    with driver.Results("mistakes", options) as results:
        tool, new = f"{results.folder}/mistakes_tool", f"{results.folder}/new"
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-O2", f"{HERE}/mistakes_tool.c", "-o", tool], LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        native = driver.run([sample], LIMIT, env=driver.ENVIRONMENT)

        def says(how, *argv):
            done = driver.run([inlay, *argv], LIMIT, env=driver.ENVIRONMENT)
            said = done.stderr.decode()
            where = "" if how == "record" else r"cannot insert .*0x[0-9a-f]+.*: .*"
            if not re.search(where + SAID[how], said):
                raise Failed(f"does not say '{SAID[how]}'", *said.splitlines()[:4])
            return done

        def under_jit(how):
            done = says(how, "run", tool, "--image=abilities", f"--how={how}", "--", sample)
            if (done.status, done.stdout) != (native.status, native.stdout):
                raise Failed(f"status {done.status}")

        for how in SAID:
            results.check(f"jit {how}", lambda h=how: under_jit(h))
            results.check(f"rewrite {how}",
                          lambda h=how: says(h, "rewrite", tool, f"--how={h}", sample, "-o", new))

        def dump():
            """Of main alone there is much less than of all."""
            argv = [inlay, "run", "null", "--dump=decoded", "--image=abilities"]
            whole = driver.run([*argv, "--", sample], LIMIT).stderr.count(b"\n")
            part = driver.run([*argv, "--proc=main", "--", sample], LIMIT).stderr.count(b"\n")
            every = driver.run([*argv[:-1], "--", sample], LIMIT).stderr.count(b"\n")
            if not 0 < part < whole or not whole * 10 < every:
                raise Failed(f"lines of main {part}, of the program {whole}, of all {every}")

        results.check("dump", dump)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
