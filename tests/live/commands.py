#!/usr/bin/python3
"""Commands on processes that run (tools/live): what they print is what happened, what they insert is gone afterwards,
and the processes answer as they do natively.

  tests/live/commands.py [--build DIR] [--only PATTERN] [--keep]
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from mutators import text_of  # noqa: E402
from run import LIMIT, Conversation  # noqa: E402

PYTHON = ["python3", "-u", "-c", "import os, sys\nfor line in sys.stdin: print(eval(line))\n"]


class Command:
    """A command at work; `ready`: what it says when it is."""

    def __init__(self, inlay, *words, ready=None):
        self.process = subprocess.Popen([inlay, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=driver.ENVIRONMENT)
        self.said = []
        self.is_ready = threading.Event()
        self.pattern = ready
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        if ready and (not self.is_ready.wait(LIMIT) or not any(re.search(ready, line) for line in self.said)):
            self.process.kill()
            raise driver.Failed("the command does not begin", *self.said)

    def read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            if self.pattern and re.search(self.pattern, line):
                self.is_ready.set()
        self.is_ready.set()

    def end(self, signo=signal.SIGINT, status=0):
        if signo:
            self.process.send_signal(signo)
        out, _ = self.process.communicate(timeout=LIMIT)
        self.reader.join()
        if self.process.returncode != status:
            raise driver.Failed(f"the command ends with {self.process.returncode}", out, *self.said)
        return out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Commands:
    def __init__(self, options, folder):
        self.folder, self.inlay = folder, f"{options.build}/inlay"

    def talk(self, name, before=("1 + 1",)):
        c = Conversation(PYTHON, driver.fresh(f"{self.folder}/{name}"))
        c.say(*before)
        c.has_answered(len(before))
        return c

    @staticmethod
    def asks(conversation, line):
        """Its answer."""
        count = conversation.answers().count(b"\n")
        conversation.say(line)
        conversation.has_answered(count + 1)
        return conversation.answers().decode().splitlines()[-1]

    def same_text(self, conversation, before):
        """Old code is as it was, but for procedures that unwinders ask, if the mutator's file has stayed."""
        after = text_of(conversation.process.pid)
        changed = [name for name in before if before[name] != after.get(name)]
        if [name for name in changed if not re.search("ld-linux|libc|libgcc", name)]:
            raise driver.Failed("the code is not what it was", *changed)

    # --- what is to hold

    def count(self):
        """Exact, with patterns, from several threads, and gone afterwards."""
        with self.talk("count") as c:
            before = text_of(c.process.pid)
            with Command(self.inlay, "count", "-p", c.process.pid, "libc.so.6:getppid", "getpgi?", "no_such",
                         ready="are counted") as command:
                self.asks(c, "[os.getppid() for _ in range(777)][0] > 0")
                self.asks(c, "[os.getpgid(0) for _ in range(55)][0] > 0")
                self.asks(c, "[t.start() or t.join() for t in [__import__('threading').Thread(target=lambda: "
                             "[os.getppid() for _ in range(1000)]) for _ in range(4)]]")
                out = command.end()
            if not re.search(r"^ *4777  getppid \(libc", out, re.M) or not re.search(r"^ *55  getpgid \(libc", out, re.M):
                raise driver.Failed("getppid was called 4777 times, getpgid 55 times", out)
            if not any("no procedure no_such" in line for line in command.said):
                raise driver.Failed("what is not there is told", *command.said)
            self.asks(c, "[os.getppid() for _ in range(9)][0] > 0")
            self.same_text(c, before)

    def count_for(self):
        """For some time; as JSON, to a file."""
        with self.talk("count-for") as c:
            path = f"{self.folder}/count.json"
            with Command(self.inlay, "count", "-p", c.process.pid, "--for", "1.5", "--format=json", "-o", path, "getppid",
                         ready="are counted") as command:
                self.asks(c, "[os.getppid() for _ in range(40)][0] > 0")
                command.end(signo=None)
            with open(path, encoding="utf-8") as f:
                found = json.load(f)
            row = [p for p in found["procedures"] if p["name"] == "getppid"]
            if not row or row[0]["calls"] > 40 or found["pid"] != c.process.pid:
                raise driver.Failed("getppid is called 40 times", repr(found))

    def snippet(self):
        with self.talk("snippet") as c:
            before = text_of(c.process.pid)
            code = "static long calls; static double sum; if ($ret == getenv_is) calls++; sum = sum + 0.5"
            with Command(self.inlay, "snippet", "-p", c.process.pid, "libc:write:return", code, ready=None) as command:
                command.end(signo=None, status=1)
            code = "static long calls, bytes; if ($ret > 0) { calls++; bytes += $ret; }"
            with Command(self.inlay, "snippet", "-p", c.process.pid, "write:return", code, ready="code at 1 places") as command:
                self.asks(c, "[os.write(2, b'seven.\\n') for _ in range(30)][0]")
                out = command.end()
            found = dict(re.findall(r"write: (\w+) = (\d+)", out))
            if found.get("calls") != "32" or int(found.get("bytes", 0)) != 30 * 7 + 2:
                raise driver.Failed("32 writes, 212 bytes", out, c.answers().decode()[-300:])
            self.same_text(c, before)
            self.asks(c, "2 + 2")

    def wrong(self):
        """Messages and status; the process is as it was."""
        with self.talk("wrong") as c:
            pid = c.process.pid
            for words, status, says in (
                    (["count", "-p", pid], 2, "something is missing"), (["count", "malloc"], 2, "no process is named"),
                    (["count", "-p", "x1", "malloc"], 2, "x1 is not the number"),
                    (["count", "-p", pid, "--for", "soon", "malloc"], 2, "soon is not a number"),
                    (["count", "-p", pid, "--from", "malloc"], 2, "option --from is not known"),
                    (["count", "-p", 4194305, "malloc"], 1, "no process 4194305"),
                    (["count", "-p", pid, "no_such"], 1, "no procedure no_such"),
                    (["snippet", "-p", pid, "write", "lon x"], 1, "'lon'|lon"),
                    (["snippet", "-p", pid, "wrote", "1"], 1, "no point 'wrote'")):
                done = subprocess.run([self.inlay, *map(str, words)], capture_output=True, text=True, timeout=LIMIT,
                                      env=driver.ENVIRONMENT)
                if done.returncode != status or not re.search(says, done.stderr):
                    raise driver.Failed(f"{words} ends with {done.returncode}", done.stderr)
            self.asks(c, "3 + 3")


def tests(of):
    for name in ("count", "count_for", "snippet", "wrong"):
        yield name.replace("_", "-"), getattr(of, name)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("commands", options) as results:
        of = Commands(options, results.folder)
        for name, function in tests(of):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
