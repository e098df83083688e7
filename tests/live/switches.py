#!/usr/bin/python3
"""Code that is switched off and on while a process runs (include/inlay/switch.h): off it does nothing, on it counts
exactly, and a million toggles of a hot place leave the program's answers as they are.

  tests/live/switches.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from run import Conversation  # noqa: E402

TOGGLES = 1_000_000
TURNS = 50  # of the loop in `work`


class Switches:
    def __init__(self, options, folder):
        self.inlay, self.folder, self.switches, self.program = f"{options.build}/inlay", folder, f"{folder}/switches", f"{folder}/talks"
        done = subprocess.run([f"{options.build}/inlay", "cc", "-O2", "-Wall", "-Wextra", "-Werror",
                               f"{HERE}/switches.c", "-o", self.switches], capture_output=True, text=True,
                              env=driver.ENVIRONMENT)
        why = done.stderr[-600:] if done.returncode else driver.build("dynamic", f"{HERE}/talks.c", self.program)
        if why:
            raise driver.Failed("it is not compiled", why)

    def told(self, mutator, line):
        mutator.stdin.write(f"{line} -\n" if " " not in line else f"{line}\n")
        mutator.stdin.flush()
        answer = mutator.stdout.readline().strip()
        if not answer or answer.startswith("no"):
            raise driver.Failed(f"'{line}' is answered by '{answer}'")
        return answer

    def counted(self, mutator):
        return [int(n) for n in self.told(mutator, "read").split()]

    def with_both(self, name, between):
        """`between` gets the mutator and a function that lets the program work so many times."""
        with Conversation([self.program], driver.fresh(f"{self.folder}/{name}")) as c:
            def work(times, waits=True):
                before = c.answers().count(b"\n")
                c.say(f"work {times}")
                if waits:
                    c.has_answered(before + 1)
            c.say("work 3")
            c.has_answered(1)
            with subprocess.Popen([self.switches, str(c.process.pid), "work"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env=driver.ENVIRONMENT) as m:
                try:
                    if m.stdout.readline() != "ready\n":
                        raise driver.Failed("the mutator does not begin")
                    between(m, work)
                finally:
                    m.kill()
            work(10)
            return c.end()

    def exact(self):
        def between(m, work):
            expected = [0, 0]
            for switch, state in (("", ""), ("entry", "on"), ("blocks", "on"), ("entry", "off"), ("blocks", "off"),
                                  ("blocks", "on"), ("again", ""), ("blocks", "off"), ("again", ""), ("entry", "on"),
                                  ("blocks", "on")):
                if switch:
                    self.told(m, f"{switch} {state}".strip())
                is_on.update({switch: state == "on"} if state else {})
                work(10)
                expected = [expected[0] + 10 * is_on["entry"], expected[1] + 10 * TURNS * is_on["blocks"]]
                if self.counted(m) != expected:
                    raise driver.Failed(f"after '{switch} {state}' {expected} is expected", repr(self.counted(m)))

        is_on = {"entry": False, "blocks": False}
        self.with_both("exact", between)

    def replaced(self):
        """A procedure, and calls of it in one other, are something else; then they are themselves."""
        program, mutator = f"{self.folder}/breaks", f"{self.folder}/replaces"
        subprocess.run(["gcc", "-g", "-O1", "-DSUMS", f"{HERE}/breaks.c", "-o", program], check=True)
        subprocess.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror", f"{HERE}/replaces.c", "-o", mutator],
                       check=True, capture_output=True, env=driver.ENVIRONMENT)
        with Conversation([program], driver.fresh(f"{self.folder}/replaced")) as c, \
                subprocess.Popen([mutator, str(c.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=driver.ENVIRONMENT) as m:
            try:
                for order, sum_of_ten in ((None, 160), ("proc poke 1000 + n", 10045), ("restore poke", 160),
                                          ("calls outer poke 7", 70), ("back outer poke", 160),
                                          ("proc poke extern int abs(int); abs(-n)", 45), ("restore poke", 160),
                                          ("calls outer poke -", None), ("back outer poke", 160)):
                    if order:
                        m.stdin.write(order + "\n")
                        m.stdin.flush()
                        answer = m.stdout.readline()
                        if answer != "ok\n":
                            raise driver.Failed(f"'{order}' is answered by '{answer}'")
                    before = c.answers().count(b"\n")
                    c.say("poke 10")
                    c.has_answered(before + 1)
                    found = int(c.answers().split()[-1])
                    if found == sum_of_ten or (sum_of_ten is None and found != 160):
                        continue
                    raise driver.Failed(f"after '{order}' the sum is {found}, not {sum_of_ten}")
            finally:
                m.kill()

    def hot(self):
        """Toggled while it is executed all the time, and exact again afterwards."""
        turns = 8_000_000
        with Conversation([self.program], driver.fresh(f"{self.folder}/native")) as c:
            c.say("work 3", f"work {turns}", "work 5", "work 10")
            expected = c.end()

        def between(m, work):
            work(turns, waits=False)
            self.told(m, f"toggle {TOGGLES}")
            _, passed = self.counted(m)
            self.told(m, "blocks off")
            if not passed:
                raise driver.Failed("nothing was counted meanwhile")
            self.told(m, "entry on")
            before = self.counted(m)
            work(5)
            if self.counted(m)[1] != before[1]:
                raise driver.Failed("it is off", repr(before), repr(self.counted(m)))

        here = self.with_both("hot", between)
        if here != expected:
            raise driver.Failed("the program's answers differ", here[0].decode(), expected[0].decode())


def tests(of):
    yield "exact", of.exact
    yield "replaced", of.replaced
    yield "hot", of.hot


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("switches", options) as results:
        of = Switches(options, results.folder)
        for name, function in tests(of):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
