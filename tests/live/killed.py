#!/usr/bin/python3
"""Whoever puts in or takes out, and the process itself, are killed at each step of it (killer.c): each request of ptrace
and each write is one. Whoever is left is well: the process answers as it does natively, with the tool in or out, and
can be given it and freed of it again; a command says what has happened and ends with status 1.

  tests/live/killed.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: every step of every row; else some of some. A table says how many.
"""

import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
import out  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402

PARK = 0x64f000000000  # move/live.h
WORK = ("work 40", "wake", "signal", "settings")
ALL = WORK + ("threads 8", "fork", "jump", "fault")
SAMPLE, SAMPLED = 3, ("attach-self", "detach-all", "remove-self", "attach-target")  # steps and rows without --all
LAST = 20  # steps, at which the work is done already
ROWS = [(what, whom) for what in ("attach", "detach", "report", "insert", "remove")
        for whom in ("self", "all", "target")]


class Killed(out.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.program, self.killer = f"{folder}/talks", f"{folder}/killer"
        self.mutator = f"{folder}/mutator"
        self.table = []
        for source, program in ((f"{HERE}/talks.c", self.program), (f"{HERE}/killer.c", self.killer)):
            if driver.build("dynamic", source, program):
                raise driver.Failed(f"{source} cannot be built")
        done = subprocess.run([self.inlay, "cc", "-O1", f"{HERE}/mutator.c", "-o", self.mutator], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("the mutator cannot be built", done.stderr[-500:])

    # --- what is done to the process

    def prepare(self, what, pid):
        """(command, its input): what is done to the process under the killer."""
        tool = [self.inlay, "attach", "calls", "--image", "talks", "-o", f"{self.folder}/report", str(pid)]
        orders = f"attach {pid}\ninsert entry work static long n; n++\ncommit\n"
        if what in ("detach", "report"):
            subprocess.run(tool, check=True, capture_output=True, timeout=LIMIT)
        if what == "attach":
            return tool, ""
        if what in ("detach", "report"):
            return [self.inlay, what, str(pid)], ""
        return [self.mutator], orders + ("remove 0\ncommit\n" if what == "remove" else "")

    def kill(self, what, whom, step, pid):
        """(how many steps there were, status, what it has said)."""
        command, orders = self.prepare(what, pid)
        counted = f"{self.folder}/steps"
        done = subprocess.run([self.killer, str(step), whom, str(pid), counted, *command], input=orders,
                              capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
        with open(counted) as f:
            return int(f.read()), done.returncode, done.stdout + done.stderr

    # --- what is true afterwards

    @staticmethod
    def has_tool(pid):
        return any(low == out.OURS[1][0] for low, *_ in out.mappings(pid))

    def free(self, pid, mutated):
        """The tool comes out, where it is in; then nothing is left, and all code is as in the files."""
        if self.has_tool(pid) and not mutated:
            self.inside("detach", pid)
        if self.has_tool(pid):
            return  # of mutators
        wrong = out.wrong_code(pid, but=PARK)
        if wrong:
            raise driver.Failed(wrong)

    def says(self, what, whom, status, said):
        if whom == "all":
            good = status == 137
        elif what in ("insert", "remove"):
            good = re.search(r"^no .", said, re.M) or said.count("ok") >= 3
        else:
            good = status == 1 and re.search(r"^\w+: .", said, re.M)
        if not good:
            raise driver.Failed(f"status {status}", said[-600:])

    def settings(self, pid):
        return out.visible(pid)[1]

    # --- rows

    def survivor(self, what, whom, steps):
        """One process lives through them, up to the first that leaves a mutator's file in it. How many that are; how many
        were reached."""
        folder = driver.fresh(f"{self.folder}/{what}-{whom}")
        begun, tried, lines, mutated = 0, 0, [], what in ("insert", "remove")
        with Conversation([self.program, "patient"], folder) as c:
            pid = c.process.pid
            c.say(*WORK)
            c.has_answered(len(WORK))
            before = self.settings(pid)
            lines += WORK
            for step in steps:
                if mutated and self.has_tool(pid):  # it stays, for good
                    break
                begun += 1
                count, status, said = self.kill(what, whom, step, pid)
                if count < step:  # there were not so many
                    self.free(pid, mutated)
                    continue
                self.says(what, whom, status, said)
                tried += 1
                more = ALL if tried % 8 == 1 else WORK
                c.say(*more)
                lines += more
                c.has_answered(len(lines))
                self.free(pid, mutated)
                if not self.has_tool(pid) and before != self.settings(pid):
                    raise driver.Failed(f"step {step}: other signals", repr(before), repr(self.settings(pid)))
            answers, ended = c.end()
        with Conversation([self.program, "patient"], driver.fresh(f"{folder}-native")) as c:
            c.say(*lines)
            native = c.end()
        if (answers, ended) != native:
            raise driver.Failed(f"step {step}: status {ended}, natively {native[1]}; answers",
                                *native[0].decode().splitlines()[-12:], "---", *answers.decode().splitlines()[-12:])
        return begun, tried

    def row(self, what, whom):
        with Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/count")) as c:
            c.say("work 9")
            c.has_answered(1)
            count, status, said = self.kill(what, "self", 0, c.process.pid)
            if status or not count:
                raise driver.Failed(f"{what}: status {status}, {count} steps", said)
        every = list(range(1, count + 1)) if self.all else sorted({1 + k * (count - 1) // (SAMPLE - 1)
                                                                    for k in range(SAMPLE)})
        tried = 0
        while every:
            if whom == "target":
                self.dies(what, every[0], count)
                tried, every = tried + 1, every[1:]
                continue
            begun, done = self.survivor(what, whom, every)
            tried, every = tried + done, every[begun:]
        self.table.append((what, whom, count, tried))

    def dies(self, what, step, count):
        with Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/dies")) as c:
            c.say("work 9")
            c.has_answered(1)
            begun, status, said = self.kill(what, "target", step, c.process.pid)
            if begun < step:
                return
            if c.process.wait(LIMIT) != -9:
                raise driver.Failed(f"step {step} of {count}: the process has ended with {c.process.returncode}")
            if what in ("insert", "remove"):
                good = status == 0 and re.search("^no .", said, re.M)
            else:
                good = status == 1 and re.search(r"^\w+: .", said, re.M)
            good = good or (status == 0 and step > count - LAST)
            if not good:
                raise driver.Failed(f"step {step} of {count}: status {status}", said[-600:])


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("live-killed", options) as results:
        killed = Killed(options, results.folder)
        for what, whom in ROWS:
            if not options.all and options.only == "*" and f"{what}-{whom}" not in SAMPLED:
                continue
            results.check(f"{what}-{whom}", lambda what=what, whom=whom: killed.row(what, whom))
        print(f"{'killed in':10} {'who':8} {'steps':>6} {'tried':>6}")
        for row in killed.table:
            print("{:10} {:8} {:6} {:6}".format(*row))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
