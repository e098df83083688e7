#!/usr/bin/python3
"""What mutators leave that were killed: it goes on as it is, `inlay ps` says what it is and that nobody looks after it, and
`inlay detach` takes all of it out: code is what the files hold, and nothing else is left; the process answers as it does
natively.

  tests/live/left.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: killed a hundred times in the midst of their work.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from commands import PYTHON, Command  # noqa: E402
from mutators import Mutator  # noqa: E402
from out import OURS, clean, mappings, visible  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402

WORK = ("work 40", "wake", "signal", "settings", "threads 8", "fork", "jump", "fault", "work 300")
MIDST = 6


class Left:
    def __init__(self, options, folder):
        self.inlay, self.folder, self.all = f"{options.build}/inlay", folder, options.all
        self.mutator, self.program = f"{folder}/mutator", f"{folder}/talks"
        done = subprocess.run([self.inlay, "cc", "-O1", f"{HERE}/mutator.c", "-o", self.mutator], capture_output=True,
                              text=True)
        if done.returncode or driver.build("dynamic", f"{HERE}/talks.c", self.program):
            raise driver.Failed("the mutator or its program cannot be built", done.stderr[-500:])

    def runs(self, *words, status=0, says=""):
        done = subprocess.run([self.inlay, *map(str, words)], capture_output=True, text=True, timeout=LIMIT,
                              env=driver.ENVIRONMENT)
        if done.returncode != status or not re.search(says, done.stdout + done.stderr):
            raise driver.Failed(f"{words} ends with {done.returncode}, and does not say '{says}'", done.stdout, done.stderr)
        return done.stdout

    @staticmethod
    def kill(process):
        process.kill()
        process.wait()

    def detach(self, pid, who):
        """What is told of it; others are refused, it comes out."""
        self.runs("ps", says=rf"(?m)^ *{pid} .* {who}.* \(process \d+, which has ended\)$")
        for words in (("count", "-p", pid, "getppid"), ("attach", "calls", pid)):
            self.runs(*words, status=1, says=rf"{who} \(process \d+, which has ended\); inlay detach {pid} takes it out")
        self.runs("report", pid, status=1, says="which has no report")
        self.runs("detach", pid, says=f"{who} has left process {pid}")
        if re.search(rf"(?m)^ *{pid} ", self.runs("ps")):
            raise driver.Failed("inlay ps lists what has gone")

    # --- at rest

    def command(self, name, words, ready, lines):
        """One of tools/live is killed while it waits."""
        with Conversation(PYTHON, driver.fresh(f"{self.folder}/{name}")) as c:
            pid = c.process.pid
            c.say("[t.start() or t.join() for t in [__import__('threading').Thread(target=os.getppid)]]", *lines)
            c.has_answered(1 + len(lines))
            state = visible(pid)
            with Command(self.inlay, *(pid if w == "PID" else w for w in words), ready=ready) as command:
                c.say(*lines)
                if name != "break":  # there the thread waits
                    c.has_answered(1 + 2 * len(lines))
                time.sleep(0.1)
                self.kill(command.process)
            c.say(*lines)
            c.has_answered(1 + 3 * len(lines))
            self.detach(pid, name)
            c.say(*lines)
            c.has_answered(1 + 4 * len(lines))
            clean(pid, state)
            with Command(self.inlay, "count", "-p", pid, "getppid", ready="are counted") as command:  # another one comes
                c.say("[os.getppid() for _ in range(21)][0] > 0")
                c.has_answered(2 + 4 * len(lines))
                if not re.search("^ *21  getppid", command.end(), re.M):
                    raise driver.Failed("getppid is called 21 times")
            clean(pid, state)
            answers = c.end()[0].splitlines()
            if [a for a in answers[1:1 + len(lines)]] * 4 != answers[1:1 + 4 * len(lines)]:
                raise driver.Failed("its answers differ", *map(repr, answers))

    def commands(self):
        lines = "[os.getppid() for _ in range(300)][0] > 0", "os.write(1, b'') + os.getpgid(0) * 0", "len(sorted(range(99)))"
        for name, words, ready in (
                ("count", ["count", "-p", "PID", "getppid", "PyObject_Malloc", "malloc"], "are counted"),
                ("break", ["break", "-p", "PID", "getppid if 1", "--then=stop"], "breakpoints"),
                ("tee", ["tee", "PID", f"{self.folder}/teed"], "goes to"),
                ("snippet", ["snippet", "-p", "PID", "getppid:entry", "static long n; n++"], "code at")):
            if name == "break":
                words = words[:-1]
            self.command(name, words, ready, lines)

    # --- a mutator of somebody's

    def conversation(self, what):
        c = Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/{what}"))
        c.say(*WORK)
        c.has_answered(len(WORK))
        return c

    def is_as_native(self, what, conversation, turns):
        with Conversation([self.program, "patient"], driver.fresh(f"{self.folder}/{what}-native")) as native:
            native.say(*WORK * turns)
            expected, here = native.end(), conversation.end()
        if here != expected:
            raise driver.Failed("it does not answer as natively", *here[0].decode().splitlines()[-12:])

    def rest(self):
        """With procedures inserted, changed, removed and replaced, and with events and shared memory."""
        with self.conversation("rest") as c:
            pid, state = c.process.pid, visible(c.process.pid)
            with Mutator(self.mutator) as m:
                m.does(f"attach {pid}", "watch all", "share work")
                m.inserts("insn", "work", "static long n; n++")
                m.inserts("block", "main", "static long b; b++")
                m.does("commit", "remove 1", "commit")
                m.inserts("exit", "work", "static long x; x++")
                m.does("commit")
                c.say(*WORK)
                c.has_answered(2 * len(WORK))
                self.runs("detach", pid, status=1, says=rf"mutator \(process {m.process.pid}\) is at work on process {pid}")
                self.runs("count", "-p", pid, "work", status=1, says=rf"once that has ended, inlay detach {pid}")
                self.runs("ps", says=rf"(?m)^ *{pid} .* mutator \(process {m.process.pid}\)$")
                self.kill(m.process)
            c.say(*WORK)
            c.has_answered(3 * len(WORK))
            self.detach(pid, "mutator")
            c.say(*WORK)
            c.has_answered(4 * len(WORK))
            clean(pid, state)
            self.is_as_native("rest", c, 4)

    def alive(self):
        """A command of root's is at work on another user's process: that user is told so, and cannot take it out."""
        folder = driver.fresh(f"{self.folder}/alive")
        for path in (self.folder, folder):
            os.chmod(path, 0o755)
        inlay = shutil.copy(self.inlay, folder)
        user = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        with Conversation([*user, *PYTHON], folder) as c:
            pid = c.process.pid
            c.say("1")
            c.has_answered(1)
            with Command(self.inlay, "count", "-p", pid, "getppid", ready="are counted"):
                done = subprocess.run([*user, inlay, "detach", str(pid)], capture_output=True, text=True, timeout=LIMIT)
                if done.returncode != 1 or not re.search(r"count \(process \d+\) is at work", done.stderr):
                    raise driver.Failed(f"detach ends with {done.returncode}", done.stdout, done.stderr)

    def let_go(self):
        """What a mutator has left on purpose: it is nobody's, and comes out while the mutator is still there."""
        with self.conversation("let-go") as c:
            pid, state = c.process.pid, visible(c.process.pid)
            with Mutator(self.mutator) as m:
                m.does(f"attach {pid}")
                m.inserts("entry", "work", "static long n; n++")
                m.does("commit", "leave")
                c.say(*WORK)
                c.has_answered(2 * len(WORK))
                self.runs("detach", pid, says=f"mutator has left process {pid}")
                clean(pid, state)
                m.does(f"attach {pid}", "commit")
            self.is_as_native("let-go", c, 2)

    def taken(self):
        """A mutator in a namespace of processes of its own, of which nobody knows here whether it has ended: what it still
        does comes to nothing."""
        with self.conversation("taken") as c:
            pid, state = c.process.pid, visible(c.process.pid)
            with Mutator(self.mutator) as m:
                m.does(f"attach {pid}")
                m.inserts("entry", "work", "static long n; n++")
                m.does("commit")
                with open(f"/proc/{pid}/mem", "rb+", 0) as memory:  # as if it were
                    at = 0x550800000000
                    memory.seek(at)
                    record = memory.read(4096)
                    number = m.process.pid.to_bytes(8, "little")
                    place = next(i for i in range(0, 4096, 8) if record[i:i + 8] == number)
                    memory.seek(at + place + 8)
                    memory.write((1).to_bytes(8, "little"))
                self.runs("detach", pid, says=f"mutator has left process {pid}")
                clean(pid, state)
                m.inserts("entry", "work", "static long m; m++")
                answer = m.asks("commit")
                if not re.search("^no .*is not there any more", answer):
                    raise driver.Failed("the mutator is told", answer)
            c.say(*WORK)
            c.has_answered(2 * len(WORK))
            clean(pid, state)
            self.is_as_native("taken", c, 2)

    def begun(self):
        """The area in which threads wait, of whoever was killed before anything was in it; and what is somebody else's."""
        code = ("import ctypes, os, sys\nc = ctypes.CDLL(None)\nc.mmap.restype = ctypes.c_void_p\n"
                "at = c.mmap(ctypes.c_void_p(0x550000000000), ctypes.c_size_t(0x20000), 3, 0x22 | 0x100000, -1, ctypes.c_size_t(0))\n"
                "assert at == 0x550000000000\nfor line in sys.stdin: print(eval(line), flush=True)\n")
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/begun")) as c:
            pid = c.process.pid
            c.say("ctypes.memset(at, 7, 9) == at")
            c.has_answered(1)
            self.runs("count", "-p", pid, "getppid", "--for", "0.2", status=1, says="has something at 0x550000000000")
            c.say("ctypes.memset(at, 0, 9) == at")
            c.has_answered(2)
            state = visible(pid)
            self.runs("count", "-p", pid, "getppid", "--for", "0.2", says="0  getppid")
            clean(pid, state)
            if c.end() != (b"True\nTrue\n", 0):
                raise driver.Failed("it does not go on", repr(c.answers()))

    # --- in the midst of work

    def midst(self):
        """Killed at any moment of changes that follow each other, while the program works."""
        turns = 1
        with self.conversation("midst") as c:
            pid, state, seed = c.process.pid, visible(c.process.pid), random.randrange(1 << 30)
            chance = random.Random(seed)
            for _ in range(100 if self.all else MIDST):
                orders = [f"attach {pid}"] + ["watch all"] * chance.randrange(2)
                for k in range(40):
                    orders += [f"insert {chance.choice(('entry', 'insn', 'block', 'exit'))} {chance.choice(('work', 'main', 'malloc', 'write'))} "
                               "static long n; n++", "commit"] + [f"remove {k}"] * chance.randrange(2)
                m = subprocess.Popen([self.mutator], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                     env=driver.ENVIRONMENT)
                m.stdin.write("\n".join(orders) + "\n")
                m.stdin.flush()
                c.say(*WORK)
                time.sleep(chance.random() * 1.5)
                self.kill(m)
                m.stdin.close()
                turns += 1
                c.has_answered(turns * len(WORK))
                try:
                    self.come_out_clean(pid, state)
                except driver.Failed as e:
                    raise driver.Failed(f"seed {seed}, turn {turns}: {e}") from None
            self.is_as_native("midst", c, turns)

    def come_out_clean(self, pid, state):
        """The child may come only now, where it gets no processor before."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.come_out(pid)
                return clean(pid, state)
            except driver.Failed:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def come_out(self, pid):
        """Its last change may still be going on, by the child that makes it."""
        end = time.monotonic() + LIMIT
        while any(low < b and high > a for low, high, *_ in mappings(pid) for a, b in OURS):
            done = subprocess.run([self.inlay, "detach", str(pid)], capture_output=True, text=True, timeout=LIMIT,
                                  env=driver.ENVIRONMENT)
            if done.returncode and time.monotonic() > end:
                raise driver.Failed(f"detach ends with {done.returncode}", done.stderr)
            time.sleep(0.05)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("left", options) as results:
        of = Left(options, results.folder)
        for name in ("commands", "rest", "alive", "let_go", "taken", "begun", "midst"):
            if driver.chosen(name, options):
                results.check(name, getattr(of, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
