#!/usr/bin/python3
"""What mutators can ask of a process besides inserting (mutators.py): single threads.

  tests/live/points.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402


class Points:
    def __init__(self, options, folder):
        self.folder, self.inlay = folder, f"{options.build}/inlay"

    def mutator(self, name):
        program = f"{self.folder}/{name}"
        if not os.path.exists(program):
            done = subprocess.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror", f"{HERE}/{name}.c", "-o",
                                   program], capture_output=True, text=True, env=driver.ENVIRONMENT)
            if done.returncode:
                raise driver.Failed(f"{name}.c is not compiled", done.stderr[-600:])
        return program

    def start(self, mutator, *arguments):
        return subprocess.Popen([self.mutator(mutator), *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=driver.ENVIRONMENT)

    def many(self):
        program = f"{self.folder}/many"
        if not os.path.exists(program) and driver.build("dynamic", f"{HERE}/many.c", program, "-pthread"):
            raise driver.Failed("many.c is not compiled")
        return program

    # --- single threads

    def one_by_one(self):
        """Code for one thread; one stands still, and another, while the process is changed, stopped, let go."""
        with Conversation([self.many()], driver.fresh(f"{self.folder}/one")) as c:
            c.has_answered(1)
            out, status = self.ends(self.start("single", c.process.pid, "one-by-one"))
            c.say("still there")
            answers, its = c.end()
            if status or "not:" in out or answers != b"ready\nstill there\n" or its != 5:
                raise driver.Failed(f"the mutator ends with {status}, the program with {its}",
                                    *out.splitlines()[-4:], repr(answers))

    @staticmethod
    def ends(process):
        try:
            out = process.communicate(timeout=2 * LIMIT)[0]
        finally:
            process.kill()
        return out, process.returncode

    def held_at(self, how):
        """The process is killed, or executes a program, or the mutator dies, while one thread stands still."""
        with Conversation([self.many(), "/bin/cat"], driver.fresh(f"{self.folder}/held")) as c:
            c.has_answered(1)
            m = self.start("single", c.process.pid, how)
            seen = []
            for line in m.stdout:
                seen.append(line)
                if line == "now\n":
                    c.say("exec")
            status = m.wait(LIMIT)
            if status != (-9 if how == "dies" else 0) or any("not:" in line for line in seen):
                raise driver.Failed(f"the mutator ends with {status}", *seen[-4:])
            if how == "dies":
                c.say("still there")
            its = c.end()[1]
            if its != {"dies": 5, "exec": 0, "killed": -9}[how]:
                raise driver.Failed(f"the program ends with {its}")


QUICK = "one-by-one"


def tests(of):
    yield "one-by-one", of.one_by_one
    for how in ("dies", "exec", "killed"):
        yield f"held-{how}", lambda how=how: of.held_at(how)


def main():
    options = driver.parser(__doc__, only=QUICK).parse_args()
    with driver.Results("points", options) as results:
        of = Points(options, results.folder)
        for name, function in tests(of):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
