#!/usr/bin/python3
"""A mutator inserts and removes in servers under load, a thousand times in a row: counters at the entry and the exits of each
procedure of the program and of the C library (cycles.c). No request is lost or wrong, what is entered is left, what was
removed is what the file holds, and when the mutator has left, all is. A hot point is switched a million times. A cycle in
whose midst a back end ends, as they do when their client goes, is told apart, and made again in another one.

  tests/live/cycles.py [--build DIR] [--only PATTERN] [--cycles N] [--seconds S] [--toggles N] [--keep]

Servers and clients are those of servers.py, in which tools come and go instead.
"""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import servers  # noqa: E402
from driver import Failed  # noqa: E402

AT_ONE = 100  # cycles in one process, before the mutator leaves it


class Mutator:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = None  # whose handle it has

    def say(self, line):
        """Its answer; None: the process is not there any more."""
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().rstrip("\n")
        if answer == "gone" or (answer.startswith("no ") and not servers.lives(self.pid)):
            self.pid = None
            return None
        if answer.startswith("no ") or not answer:
            raise Failed(f"{line.split()[0]}, process {self.pid}: {answer or self.process.wait(60)}")
        return answer

    def end(self):
        self.process.stdin.close()
        if self.process.wait(60):
            raise Failed(f"the mutator ends with {self.process.returncode}")


@contextlib.contextmanager
def kept_busy(load):
    """Meanwhile the client begins anew whenever it has come to its end."""
    over, wrong = threading.Event(), []

    def keep():
        try:
            while not over.wait(0.02):
                load.look()
                if load.process is None:
                    load.begin()
        except Failed as e:
            wrong.append(e)

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if wrong:
        raise wrong[0]


class Cycles(servers.Servers):
    transactions = 30000, ["-R", "500"]  # back ends that stay for a while: three minutes

    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.toggles, self.program = options.toggles, f"{folder}/cycles"
        self.most_cycles, self.seconds = options.cycles, options.seconds
        made = subprocess.run([self.inlay, "cc", "-O2", f"{HERE}/cycles.c", "-o", self.program], capture_output=True, text=True)
        if made.returncode:
            raise Failed("compile", *made.stderr.splitlines())

    def under_load(self, load, pids, image, stays=None):
        m, early = Mutator(self.program), None
        self.counted_cycles = self.whole_cycles = 0
        began = time.monotonic()
        self.cycles = 0
        for k in itertools.count():
            if self.whole_cycles == self.most_cycles or time.monotonic() - began > self.seconds:
                break
            if load.process is None:
                load.begin()
            if not m.pid or not servers.lives(m.pid) or k % AT_ONE == 0:
                self.leave(m)
                m.pid = (pids(k) or [None])[0]
            if m.pid:
                self.one(m, image)
            load.look()
            self.cycles += 1
            if k % AT_ONE == AT_ONE - 1:
                print(self.so_far(load), flush=True)
            if k == min(servers.WARM, self.most_cycles // 2) and stays:
                early = servers.footprint(stays)
        print(f"{(time.monotonic() - began) / self.cycles:.2f} s a cycle", flush=True)
        late = stays and servers.footprint(stays)
        if self.toggles:
            self.toggle(m, load, pids, image)
        self.leave(m)
        m.end()
        if stays and early:
            self.has_not_grown(early, late)
        load.look(wait=True)
        print(f"{self.so_far(load)}; in {self.counted_cycles} something was counted")
        if 2 * self.whole_cycles < self.cycles or not self.counted_cycles:
            raise Failed("too few cycles could be made")

    def so_far(self, load):
        return (f"{self.whole_cycles} cycles, {self.cycles - self.whole_cycles} more were cut short by the process's end, "
                f"{load.rounds} rounds of the client")

    def one(self, m, image):
        pid = m.pid
        if m.say(f"in {pid} {image} libc.so") is None:
            return
        time.sleep(0.02)
        sums = m.say("sums")
        self.counted_cycles += sums is not None and int(sums.split()[0]) > 0
        if sums is None or m.say("off") is None:
            return
        try:
            wrong = outside.wrong_code(pid, only=f"/{image}")
        except OSError:
            return
        if wrong and servers.lives(pid):
            raise Failed(wrong)
        self.whole_cycles += 1

    def leave(self, m):
        pid, m.pid = m.pid, None
        if not pid:
            return
        m.pid = pid
        went = m.say("out")
        m.pid = None
        try:
            if went and servers.lives(pid):
                self.untouched(pid)
        except OSError:
            pass

    def back_end(self, server, helpers, k):
        """Not the postmaster: what it would start meanwhile has a copy of what is inserted, and no mutator."""
        return super().back_end(server, helpers, 10 * k)

    def toggle(self, m, load, pids, image):
        """In a process that is there all the time."""
        for k in range(50):
            with kept_busy(load):
                if not m.pid:
                    m.pid = (pids(k) or [None])[0]
                if not m.pid or m.say(f"in {m.pid} {image} libc.so") is None:
                    continue
                time.sleep(0.5)
                answer = m.say(f"toggle {self.toggles}")
                if answer is None or m.say("off") is None:
                    continue
            each, name, off, on = answer.split()
            print(f"{self.toggles} toggles of {name}, {each} ns each; entries while off {off}, while on {on}", flush=True)
            if int(off) or not int(on):
                raise Failed("a switch does not do what it says: " + answer)
            return
        raise Failed("no process stayed long enough to be toggled in")

    def at_rest(self, load, pid, image):
        m = Mutator(self.program)
        m.pid = pid
        m.say(f"in {pid} {image} libc.so")
        load.begin()
        load.look(wait=True)
        time.sleep(1)
        entries, exits, *unbalanced = m.say("sums").split()
        m.say("off")
        self.leave(m)
        m.end()
        print(f"at rest: {entries} entries, {exits} exits, {load.rounds} rounds of the client")
        wrong = [one for one in unbalanced if not servers.NEVER_LEFT.search(one)]
        if wrong or int(entries) < 1000:
            raise Failed(f"{len(wrong)} procedures are not balanced ({entries}, {exits})", *wrong[:20])


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--toggles", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=1e9, help="no more cycles of a server after so many")
    options = parser.parse_args()
    with driver.Results("live-cycles", options) as results:
        servers.check_all(Cycles(options, results.folder), options, results)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
