#!/usr/bin/python3
"""Whoever puts in or takes out, and the process itself, are killed at each step of it (killer.c): each request of ptrace
and each write is one. Whoever is left is well: the process answers as it does natively, with the tool in or out, and
can be given it and freed of it again; a command says what has happened and ends with status 1.

  tests/live/killed.py [--build DIR] [--only PATTERN] [--all] [--stride N] [--seconds S] [--seed N] [--jobs N] [--keep]

--all: every step of every row; --stride N: one of N; --seconds S: as many of a row as there is time for, in an order by
chance; else some of some rows. A table says how many steps there are, and how many were tried.
"""

import os
import queue
import random
import re
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
import out  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402

PARK = 0x550000000000  # move/live.h
STARTED = 0x550800000000 + 184  # move_told.started: 1, and 2 once nothing leads there any more
WORK = ("work 40", "wake", "signal", "settings")
ALL = WORK + ("threads 8", "fork", "jump", "fault")
SAMPLE = 3  # steps, without --all; of these rows:
SAMPLED = "attach-self", "detach-all", "remove-self", "attach-target", "watch-all", "once-self", "out-self"
LIVES = 24  # steps that one process lives through; and where there is not time for all
LIVES_SHORT = 4
MUTATORS = {"insert": ("insert entry work static long n; n++", "commit"),
            "remove": ("insert entry work static long n; n++", "commit", "remove 0", "commit"),
            "watch": ("watch all", "share work", "commit"),
            "once": ("value 0 *(int *)&wakes + 1", "call 0 getppid i", "call 0 abs i i:-5"),
            "out": ("insert entry work static long n; n++", "commit", "remove 0", "commit", "out")}
ROWS = [(what, whom) for what in ("attach", "detach", "report", *MUTATORS) for whom in ("self", "all", "target")]


class Killed(out.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.program, self.killer = f"{folder}/talks", f"{folder}/killer"
        self.mutator = f"{folder}/mutator"
        self.options, self.table = options, []
        self.first, self.seen = {}, {}  # by process: a word that tells of what is done (killer.c), before and at the kill
        for source, program in ((f"{HERE}/talks.c", self.program), (f"{HERE}/killer.c", self.killer)):
            if driver.build("dynamic", source, program):
                raise driver.Failed(f"{source} cannot be built")
        symbols = subprocess.run(["nm", self.program], capture_output=True, text=True, check=True).stdout
        self.work = int(re.search(r"^(\w+) [Tt] work$", symbols, re.M)[1], 16)
        done = subprocess.run([self.inlay, "cc", "-O1", f"{HERE}/mutator.c", "-o", self.mutator], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("the mutator cannot be built", done.stderr[-500:])

    # --- what is done to the process

    def prepare(self, what, pid, folder):
        """(command, its input): what is done to the process under the killer."""
        tool = [self.inlay, "attach", "calls", "--image", "talks", "-o", f"{folder}/report", str(pid)]
        if what in ("detach", "report") and not self.has_tool(pid):
            subprocess.run(tool, check=True, capture_output=True, timeout=LIMIT)
        if what == "attach":
            return tool, ""
        if what in ("detach", "report"):
            return [self.inlay, what, str(pid)], ""
        return [self.mutator], "\n".join((f"attach {pid}", *MUTATORS[what], ""))

    def kill(self, what, whom, step, pid, folder):
        """(how many steps there were, status, what it has said)."""
        command, orders = self.prepare(what, pid, folder)
        counted = f"{folder}/steps"
        at = self.work_at(pid) if what == "insert" else STARTED
        self.first[pid] = self.word_at(pid, at)
        done = subprocess.run([self.killer, str(step), whom, str(pid), counted, hex(at), *command], input=orders,
                              capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
        with open(counted) as f:
            count, self.seen[pid] = map(int, f.read().split())
            return count, done.returncode, done.stdout + done.stderr

    def work_at(self, pid):
        """Where the procedure begins that `insert` changes."""
        return min(low for low, _, _, _, name in out.mappings(pid) if name == self.program) + self.work

    @staticmethod
    def word_at(pid, at):
        try:
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                memory.seek(at)
                return int.from_bytes(memory.read(8), "little")
        except OSError:
            return -1

    def was_done(self, what, pid, said):
        """What the command says to have done: had it been done when the process was killed? What only the process could
        answer, a report, values, proves itself."""
        if what == "report":
            return re.search(r"calls of \d+ procedures", said)
        if what == "once":
            return said.count("|i|") == 3 and "ok |i|5|0" in said
        if what == "out":  # nothing is left in a process that has ended, but it had to be put in before
            return self.seen[pid] in (1, 2, -1)
        if what == "detach":
            return self.seen[pid] in (2, -1)
        return self.seen[pid] != self.first[pid] if what == "insert" else self.seen[pid] == 1

    # --- what is true afterwards

    @staticmethod
    def has_tool(pid):
        return any(low == out.OURS[1][0] for low, *_ in out.mappings(pid))

    @staticmethod
    def ours(pid):
        """What is mapped of Inlay's but the parking area."""
        return [(low, high) for low, high, *_ in out.mappings(pid)
                if low not in (PARK, PARK + 0x1000) and any(low < b and high > a for a, b in out.OURS)]

    def free(self, pid):
        """What is in comes out; then nothing is left, and all code is as in the files."""
        if self.ours(pid):
            self.inside("detach", pid)
        if self.ours(pid):
            raise driver.Failed("still mapped: " + ", ".join(f"{low:#x}-{high:#x}" for low, high in self.ours(pid)))
        wrong = out.wrong_code(pid, but=PARK)
        if wrong:
            raise driver.Failed(wrong)

    def says(self, what, whom, status, said):
        if whom == "all":
            good = status == 137
        elif what in MUTATORS:
            good = re.search(r"^no .", said, re.M) or said.count("ok") >= len(MUTATORS[what])
        else:
            good = status == 1 and re.search(r"^\w+: .", said, re.M)
        if not good:
            raise driver.Failed(f"status {status}", said[-600:])

    # --- rows

    def survivor(self, what, whom, steps, folder):
        """One process lives through them. How many were reached."""
        driver.fresh(folder)
        tried, lines, step = 0, list(WORK), 0
        with Conversation([self.program, "patient"], folder) as c:
            pid = c.process.pid
            c.say(*WORK)
            c.has_answered(len(WORK))
            before = out.visible(pid)
            try:
                for step in steps:
                    count, status, said = self.kill(what, whom, step, pid, folder)
                    if count >= step:  # there were as many
                        self.says(what, whom, status, said)
                        tried += 1
                    more = ALL if tried % 8 == 1 else WORK
                    c.say(*more)
                    lines += more
                    c.has_answered(len(lines))
                    if what != "report" or step == steps[-1] or tried % 8 == 0:
                        self.free(pid)
                        out.is_as_before(pid, before)
            except (driver.Failed, subprocess.SubprocessError) as e:
                raise driver.Failed(f"step {step}: {e}; the process: {c.process.poll()}") from None
            answers, ended = c.end()
        with Conversation([self.program, "patient"], driver.fresh(f"{folder}-native")) as c:
            c.say(*lines)
            native = c.end()
        if (answers, ended) != native:
            other = [f"{k}: {a} natively, {b}" for k, (a, b) in enumerate(zip(native[0].decode().splitlines(),
                                                                              answers.decode().splitlines())) if a != b]
            raise driver.Failed(f"steps {steps}: status {ended}, natively {native[1]}; {len(answers)} bytes answered, "
                                f"natively {len(native[0])}", *other[:12])
        return tried

    def row(self, what, whom):
        with Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/count")) as c:
            c.say("work 9")
            c.has_answered(1)
            count, status, said = self.kill(what, "self", 0, c.process.pid, f"{self.folder}/count")
            if status or not count or re.search("^no ", said, re.M):
                raise driver.Failed(f"{what}: status {status}, {count} steps", said)
        tried = self.try_all(what, whom, count, self.chosen(count))
        self.table.append((what, whom, count, tried))

    def chosen(self, count):
        every = list(range(1, count + 1))
        if self.options.seconds:
            random.Random(self.options.seed).shuffle(every)
            return every
        if self.options.stride:
            return every[self.options.seed % self.options.stride::self.options.stride]
        if self.all:
            return every
        return sorted({1 + k * (count - 1) // (SAMPLE - 1) for k in range(SAMPLE)})

    def try_all(self, what, whom, count, steps):
        """By several at a time. How many were tried."""
        size = 1 if whom == "target" else LIVES_SHORT if self.options.seconds else LIVES
        work, wrong, tried = queue.SimpleQueue(), [], []
        for k in range(0, len(steps), size):
            work.put(steps[k:k + size])
        end = time.monotonic() + (self.options.seconds or 1e9)

        def one(number):
            folder = f"{self.folder}/{what}-{whom}-{number}"
            while time.monotonic() < end and not wrong:
                try:
                    some = work.get_nowait()
                except queue.Empty:
                    return
                try:
                    tried.append(self.dies(what, some[0], count, folder) if whom == "target" else
                                 self.survivor(what, whom, some, folder))
                except Exception as e:  # pylint: disable=broad-except
                    wrong.append(e)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(self.options.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if wrong:
            raise wrong[0]
        return sum(tried)

    def dies(self, what, step, count, folder):
        """1: the step was reached."""
        with Conversation([self.program, "patient"], driver.fresh(folder)) as c:
            c.say("work 9")
            c.has_answered(1)
            begun, status, said = self.kill(what, "target", step, c.process.pid, folder)
            if begun < step:
                return 0
            if c.process.wait(LIMIT) != -9:
                raise driver.Failed(f"step {step} of {count}: the process has ended with {c.process.returncode}")
            if what in MUTATORS:
                good = status == 0 and re.search("^no .", said, re.M)
            else:
                good = status == 1 and re.search(r"^\w+: .", said, re.M)
            good = good or (status == 0 and self.was_done(what, c.process.pid, said))
            if not good:
                raise driver.Failed(f"step {step} of {count}: status {status}", said[-600:])
            return 1


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--stride", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with driver.Results("live-killed", options) as results:
        killed = Killed(options, results.folder)
        for what, whom in ROWS:
            some = not (options.all or options.stride or options.seconds)
            if some and options.only == "*" and f"{what}-{whom}" not in SAMPLED:
                continue
            results.check(f"{what}-{whom}", lambda what=what, whom=whom: killed.row(what, whom))
        print(f"{'killed in':10} {'who':8} {'steps':>6} {'tried':>6}")
        for row in killed.table:
            print("{:10} {:8} {:6} {:6}".format(*row))
        print(f"{'in all':19} {sum(r[2] for r in killed.table):6} {sum(r[3] for r in killed.table):6}")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
