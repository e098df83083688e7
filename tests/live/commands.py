#!/usr/bin/python3
"""Commands on processes that run (tools/live): what they print is what happened, what they insert is gone afterwards,
and the processes answer as they do natively.

  tests/live/commands.py [--build DIR] [--only PATTERN] [--keep]
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from mutators import text_of  # noqa: E402
from out import clean, visible  # noqa: E402
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
        out = self.process.stdout.read()
        self.process.wait(LIMIT)
        self.reader.join()
        if self.process.returncode != status:
            raise driver.Failed(f"the command ends with {self.process.returncode}", out[-600:], *self.said)
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
        conversation.rests()
        return conversation.answers().decode().splitlines()[-1]

    def same_text(self, conversation, before):
        """Old code is as it was."""
        after = text_of(conversation.process.pid)
        changed = [name for name in before if before[name] != after.get(name)]
        if changed:
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

    def again(self):
        """One command after the other; behind each nothing is left in the process."""
        threads = "[t.start() or t.join() for t in [__import__('threading').Thread(target=lambda: " \
                  "[os.getppid() for _ in range(1000)]) for _ in range(4)]]"
        with self.talk("again", [threads]) as c:
            before, state = text_of(c.process.pid), visible(c.process.pid)
            for words in (["count", "-p", c.process.pid, "getppid"],
                          ["snippet", "-p", c.process.pid, "getppid:entry", "static long n; n++"],
                          ["tee", c.process.pid, f"{self.folder}/again.out"], ["count", "-p", c.process.pid, "*printf*"]):
                with Command(self.inlay, *words, "--for", "0.3") as command:
                    self.asks(c, threads)
                    command.end(signo=None)
                if any("not all" in line for line in command.said):
                    raise driver.Failed(f"{words[0]} does not leave", *command.said)
                clean(c.process.pid, state)
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
            if not row or row[0]["calls"] > 40 or found["pid"] != c.process.pid or not found["program"].startswith("python3"):
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

    def lines(self):
        """What the code prints comes while the process runs: each line in its order, or they are counted; those of
        children as well with --children; to standard error where the result is JSON."""
        many = 30000
        code = 'static long n; n++; print(n); if (n <= 2) { print_real(n * 0.25); show("that"); }'
        with self.talk("lines") as c:
            before = text_of(c.process.pid)
            with Command(self.inlay, "snippet", "-p", c.process.pid, "getpgid", code, ready="code at 1 places") as command:
                self.asks(c, f"[os.getpgid(0) for _ in range({many})][0] > 0")
                out = command.end().splitlines()
            numbers = [int(line) for line in out if line.isdigit()]
            lost = sum(int(n) for line in command.said for n in re.findall(r"(\d+) lines .* are lost", line))
            if out[:5] != ["1", "0.25", "that", "2", "0.5"] or f"getpgid: n = {many}" not in out:
                raise driver.Failed("1, 0.25, that, 2, 0.5, ... and the variable", *out[:6], *out[-2:])
            if numbers != sorted(set(numbers)) or len(numbers) + lost != many or len(numbers) < 1000:
                raise driver.Failed(f"{len(numbers)} lines, {lost} lost of {many}")
            self.same_text(c, before)
            forks = "(lambda p: p or (os.getpgid(0), os._exit(0)))(os.fork()) and os.wait()[1]"
            for words, wanted in (("--children",), ["1", "2"]), ((), ["1"]):
                with Command(self.inlay, "snippet", *words, "-p", c.process.pid, "getpgid", "static long n; n++; print(n)",
                             ready="code at 1 places") as command:
                    self.asks(c, forks)
                    self.asks(c, "os.getpgid(0) > 0")
                    out = command.end().splitlines()
                if [line for line in out if line.isdigit()] != wanted:
                    raise driver.Failed(f"{words}: {wanted}", *out)
            with Command(self.inlay, "snippet", "--format=json", "-p", c.process.pid, "getpgid", 'show("that")',
                         ready="code at 1 places") as command:
                self.asks(c, "os.getpgid(0) > 0")
                found = json.loads(command.end())
            if found["places"] != 1 or "that" not in command.said:
                raise driver.Failed("the line is on standard error", *command.said)

    def unwritable(self):
        """A result that cannot be written is a failure; what was inserted goes also when nobody reads any more."""
        with self.talk("unwritable") as c:
            before = text_of(c.process.pid)
            with Command(self.inlay, "snippet", "-p", c.process.pid, "getppid", "print(1)", ready="code at 1 places") as command:
                command.process.stdout.close()
                self.asks(c, "[os.getppid() for _ in range(9)][0] > 0")
                if command.process.wait(LIMIT) != 1:
                    raise driver.Failed(f"status {command.process.returncode}", *command.said)
            self.same_text(c, before)
            for words in (["count", "-p", c.process.pid, "getppid"], ["snippet", "-p", c.process.pid, "getppid", "print(1)"]):
                with Command(self.inlay, *words, "-o", "/dev/full", "--for", "0.3") as command:
                    command.end(signo=None, status=1)
                if not any("cannot write the result: No space left" in line for line in command.said):
                    raise driver.Failed(words[0], *command.said)

    def started(self):
        """On programs that they start: from the first instruction to the end, with its status."""
        code = "import os; [os.getppid() for _ in range(123)]; os.write(1, b'this\\n'); os._exit(4)"
        with Command(self.inlay, "count", "-o", f"{self.folder}/started", "getppid", "--", "/usr/bin/python3", "-c", code) as command:
            if command.end(signo=None, status=4) != "this\n":
                raise driver.Failed("the program has written 'this'")
        with open(f"{self.folder}/started", encoding="utf-8") as f:
            found = f.read()
        if not re.search(r"^ *123  getppid", found, re.M):
            raise driver.Failed("getppid was called 123 times", found)
        with Command(self.inlay, "tee", f"{self.folder}/teed", "--", "/usr/bin/seq", "200000") as command:
            out = command.end(signo=None)
        with open(f"{self.folder}/teed", encoding="utf-8") as f:
            if f.read() != out or out.count("\n") != 200000:
                raise driver.Failed("the file is not what was written")

    def killed(self):
        """What was counted when the process was killed is told."""
        with self.talk("killed") as c:
            with Command(self.inlay, "count", "-p", c.process.pid, "getppid", ready="are counted") as command:
                self.asks(c, "[os.getppid() for _ in range(61)][0] > 0")
                c.process.kill()
                out = command.end(signo=None)
            if not re.search(r"^ *61  getppid", out, re.M):
                raise driver.Failed("getppid was called 61 times", out)

    @contextlib.contextmanager
    def hot(self, *arguments):
        program = f"{self.folder}/hot"
        if not os.path.exists(program):
            subprocess.run(["gcc", "-g", "-O0", "-pthread", f"{HERE}/hot.c", "-o", program], check=True)
        with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                yield process
            finally:
                process.kill()

    def counted(self, pid, expected, *procedures):
        """What `count` says; where the process got no processor meanwhile, it is given more time."""
        for seconds in ("0.1", "1", "10", "100"):
            with Command(self.inlay, "count", "-p", pid, "--for", seconds, *procedures) as command:
                out = command.end(signo=None)
            if re.search(expected, out, re.M):
                return out
        raise driver.Failed(f"{expected} is not counted", out)

    def busy_place(self):
        """Where a thread always waits at the breakpoint all ends when it is to, and nothing stays."""
        with self.hot() as process:
            with Command(self.inlay, "break", "-p", process.pid, "--hits", "3", "place") as command:
                if command.end(signo=None).count("\nhit ") != 2:
                    raise driver.Failed("three hits", *command.said)
            with Command(self.inlay, "break", "-p", process.pid, "-o", "/dev/null", "place", ready="breakpoints") as command:
                command.end()
            with Command(self.inlay, "break", "-p", process.pid, "--then=stop", "place", ready="is stopped") as command:
                time.sleep(0.1)
                if command.end().count("thread ") > 2:  # one each
                    raise driver.Failed("a stopped process comes nowhere", *command.said)
                process.send_signal(signal.SIGCONT)
            with Command(self.inlay, "break", "-p", process.pid, "place", ready="breakpoints") as command:
                command.process.stdout.close()
                if command.process.wait(LIMIT) != 1:
                    raise driver.Failed("nobody reads on", *command.said)
            if [line for line in command.said if "all could" in line] or "cannot write the result: Broken pipe" not in command.said[-1]:
                raise driver.Failed("it is said why", *command.said)
            out = self.counted(process.pid, r"^ *[1-9]\d*  place", "place", "narrow", "behind")
            if not re.search(r"^ *-  narrow \(hot\): .", out, re.M):
                raise driver.Failed("what is not counted has not been called 0 times", out)
            self.counted(process.pid, r"^ *[1-9]\d*  waits", "waits")  # there is room for a jump behind another procedure
            with Command(self.inlay, "break", "-p", process.pid, "narrow") as command:
                command.end(signo=None, status=1)
            if not any("nothing can be put into narrow (hot): " in line for line in command.said):
                raise driver.Failed("no breakpoint", *command.said)

    def dying(self):
        """A process on its way to its end has no memory any more: what was put into it has gone with it."""
        with self.hot("200") as process:
            with Command(self.inlay, "count", "-p", process.pid, "place", ready="are counted") as command:
                process.kill()
                command.end()

    def closed(self):
        """What a standard descriptor would name that is closed is nothing, here and in a program that is started."""
        code = "import os; os._exit(os.open('/dev/null', os.O_RDONLY))"
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", self.inlay, "count", "getppid", "--", "/usr/bin/python3", "-c", code],
                              capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
        if done.returncode != 1 or "cannot write the result: Bad file descriptor" not in done.stderr:
            raise driver.Failed(f"the command ends with {done.returncode}", done.stderr)

    def executed(self):
        """What was counted before the process executed another program is told, and that it did."""
        for words, says in ((["count", "-p", "xmalloc"], r"^ *[1-9]\d*  xmalloc"),
                            (["snippet", "-p", "xmalloc", "static long n; n++"], r"xmalloc: n = [1-9]")):
            with Conversation(["bash", "-c", "echo; read x; : $(echo a b c); exec sleep 1000"],
                              driver.fresh(f"{self.folder}/executed")) as c:
                c.has_answered(1)
                with Command(self.inlay, *words[:2], c.process.pid, *words[2:], ready="are counted|code at") as command:
                    c.say("x")
                    out = command.end(signo=None)
                if not re.search(says, out, re.M) or not any("has executed" in line for line in command.said):
                    raise driver.Failed(f"{words[0]} says", out, *command.said)
                c.process.kill()
        done = driver.run([self.inlay, "count", "xmalloc", "--", "bash", "-c", ": $(echo a); exec sh -c 'exit 5'"], LIMIT)
        if done.status != 5 or b"  xmalloc (bash)" not in done.stdout:
            raise driver.Failed(f"status {done.status}", done.stdout.decode(), *driver.as_lines(done.stderr))

    def break_at(self):
        """Registers, the stack and, with debug information, parameters; other threads and false conditions go on."""
        program = f"{self.folder}/breaks"
        subprocess.run(["gcc", "-g", "-O1", f"{HERE}/breaks.c", "-o", program], check=True)
        with Conversation([program], driver.fresh(f"{self.folder}/break")) as c:
            c.say("poke 1")
            c.has_answered(1)
            with Command(self.inlay, "break", "-p", c.process.pid, "poke if n == 7 && p->a > 1", ready="breakpoints") as command:
                self.asks(c, "poke 10")
                self.asks(c, "poke 10")
                out = command.end()
            self.asks(c, "poke 8")
        for line in (r"hit 2: thread \d+ in poke \(breaks\)", r"  n: int = 7$", r'  name: char \* = 0x\w+ "it is\\n"$',
                     r"  x: double = 3.5$", r"  f: float = 0.25$", r"  p: struct pair \* = 0x\w+$",
                     r'  whole: struct pair = \{a = 7, b = \{1, 2, 3, 4\}, text = 0x\w+ "te\\"xt", last = \{colour = GREEN, letter = 99 \'c\'\}\}$',
                     r"  small: struct small = \{low = 9, high = -3, real = 1.5\}$",
                     r"  rax [0-9a-f]{16}  rcx", r"  #0  \w+ poke", r"  #1  \w+ outer", r"  #2  \w+ main"):
            if len(re.findall(line, out, re.M)) != (1 if "hit" in line else 2):
                raise driver.Failed(f"twice there is '{line}'", out)
        if c.end()[0].decode() != "poke 1\npoke 10\npoke 10\npoke 8\n":
            raise driver.Failed("the program's answers differ")

    def break_then(self):
        """A program without debug information: --then=detach, =stop, --hits."""
        with self.talk("break-then") as c:
            with Command(self.inlay, "break", "-p", c.process.pid, "--then=detach", "--format=json", "getpgid if $arg0 == 3",
                         ready="breakpoints") as command:
                self.asks(c, "[os.getpgid(0) for _ in range(50)][0] > 0")
                self.asks(c, "print(__import__('ctypes').CDLL(None).getpgid(3) < 99999999) or 1")
                found = json.loads(command.end(signo=None))
            if (found["registers"]["rdi"] != 3 or not found["stack"][0]["place"].startswith("getpgid")):
                raise driver.Failed("getpgid(3) is met", repr(found))
            self.asks(c, "5 + 5")

    def json_lines(self):
        """Each object is a line: of programs, of hits, of programs that a command starts."""
        def objects(*words):
            with Command(self.inlay, *words) as command:
                return [json.loads(line) for line in command.end(signo=None).splitlines() if line[:1] == "{"]

        shell = ["--", "bash", "-c", "echo one; /bin/true; bash -c 'echo two; echo three'"]
        counts = objects("count", "--format=json", "write", *shell)
        if [(r["command"], r["program"], r["pid"] > 0, r["procedures"][0]["calls"]) for r in counts] != [("count", "bash", True, 1)]:
            raise driver.Failed("one program, which writes once", repr(counts))
        programs = objects("snippet", "--children", "--format=json", "write", "static long n; n++", *shell)
        found = sorted((r["program"], r["variables"][0]["value"]) for r in programs)
        if found != [("bash", "1"), ("bash", "2"), ("true", "0")]:
            raise driver.Failed("three programs", repr(programs))
        hits = objects("break", "--children", "--format=json", "write", *shell)
        if [hit["hit"] for hit in hits] != [1, 2, 3] or any(not hit["stack"] for hit in hits):
            raise driver.Failed("three hits", repr(hits))

    def break_stops(self):
        with self.talk("break-stops") as c:
            with Command(self.inlay, "break", "-p", c.process.pid, "--then=stop", "--hits", "2", "getpgid if $arg0 == 0",
                         ready="breakpoints") as command:
                c.say("[os.getpgid(0) for _ in range(2)][0] > 0")
                end = time.monotonic() + LIMIT
                while not any("is stopped" in line for line in command.said) and time.monotonic() < end:
                    time.sleep(0.02)
                c.has_state("T")
                os.kill(c.process.pid, signal.SIGCONT)
                out = command.end(signo=None)
                os.kill(c.process.pid, signal.SIGCONT)
            c.has_answered(2)
            if out.count("hit ") != 2:
                raise driver.Failed("two hits", out)

    def tee(self):
        """From now on, what goes to descriptor 1 alone, in its order; several ways to write."""
        with self.talk("tee") as c:
            path = f"{self.folder}/tee.out"
            with Command(self.inlay, "tee", c.process.pid, path, ready="goes to") as command:
                at = len(c.answers())
                self.asks(c, "os.write(1, b'one\\n')")
                self.asks(c, "os.writev(1, [b't', b'w', b'o\\n'])")
                self.asks(c, "os.write(2, b'') + os.write(1, b'x' * 100000)")
                # a write of nothing, and then calls whose third argument is 1
                self.asks(c, "os.write(1, b'') + [os.getpgid(0) for r, w in [os.pipe()] if os.write(w, b'z') and os.read(r, 1)][0] * 0")
                self.asks(c, "[t.start() or t.join() for t in [__import__('threading').Thread(target=lambda: "
                             "os.write(1, b'thread\\n')) for _ in range(4)]]")
                c.say("os.fork() or os._exit(0) or 1", "'the end'")
                c.wait_until(lambda answers: answers.endswith(b"the end\n"))
                c.rests()
                until = len(c.answers())
                command.end()
            self.asks(c, "'not any more'")
            with open(path, "rb") as f:
                found = f.read()
            if found != c.answers()[at:until]:
                raise driver.Failed("the file is not what was written", repr(found[-300:]), repr(c.answers()[at:until][-300:]))

    def example(self, name):
        program = f"{self.folder}/{name}"
        done = subprocess.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror",
                               f"{HERE}/../../examples/live/{name}.c", "-o", program], capture_output=True, text=True,
                              env=driver.ENVIRONMENT)
        with open(f"{HERE}/../../examples/live/{name}.c", encoding="utf-8") as f:
            lines = f.read().count("\n")
        if done.returncode or lines >= 150:
            raise driver.Failed(f"{name}.c has {lines} lines", done.stderr[-600:])
        return program

    def examples(self):
        """The paper's second and third application, on bash."""
        folder = driver.fresh(f"{self.folder}/examples")
        with Conversation(["/usr/bin/bash"], folder) as c:
            c.say("echo before")
            c.has_answered(1)
            with Command(self.example("retee"), c.process.pid, f"{folder}/teed", ready="is followed") as retee:
                c.say("echo one; echo error >&2; echo two")
                c.has_answered(4)
                c.rests()
                end, found = time.monotonic() + LIMIT, ""
                while not found.endswith("two\n") and time.monotonic() < end:
                    time.sleep(0.05)
                    with open(f"{folder}/teed", encoding="utf-8") as f:
                        found = f.read()
                retee.end()
            if not re.fullmatch("one\n(error\n)?two\n", found) or c.answers() != b"before\none\nerror\ntwo\n":
                raise driver.Failed("what bash wrote to descriptor 1", found, c.answers().decode())
        with Conversation(["/usr/bin/bash"], folder, "second") as c:
            c.say("echo before")
            c.has_answered(1)
            condition = "$arg0 == 1 && $arg2 == 7"
            with Command(self.example("condbreak"), c.process.pid, "write", condition, 2, ready="set") as command:
                c.say("echo short; echo 123456; echo again; echo abcdef")
                c.has_answered(5)
                out = command.end(signo=None)
            c.say("echo 123456")
            c.has_answered(6)
        if out.count("thread ") != 2 or len(re.findall("0x[0-9a-f]+  write$", out, re.M)) != 2 or \
                not re.search("0x[0-9a-f]+  execute_command", out):
            raise driver.Failed("two hits, with the stack", out)

    def all_the_time(self):
        """Of processes that execute programs all the time none is followed any more when the command is to end: it looks
        at its time more often than once in a thousand events."""
        loops = "for i in 1 2 3 4 5 6; do (while :; do /bin/true; done) & done; wait"
        words = [self.inlay, "snippet", "--children", "--for", "1", "--format=json", "brk", "static long n; n++", "--", "sh",
                 "-c", loops]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=driver.ENVIRONMENT, start_new_session=True)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise driver.Failed("it does not end") from None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            said = process.communicate()[0]
        programs = said.count('"program"')
        if process.returncode or not 1 < programs < 700:
            raise driver.Failed(f"it ends with {process.returncode}, {programs} programs", *said.splitlines()[-6:])

    def changing(self):
        """The linker is in the midst of opening something else: a library that runs has been looked at before it has done."""
        folder = driver.fresh(f"{self.folder}/changing")
        library, program = f"{folder}/library.so", f"{folder}/program"
        for made in (["-shared", "-fPIC", f"{HERE}/plugin.c", "-o", library], ["-pthread", f"{HERE}/reopens.c", "-o", program]):
            subprocess.run(["gcc", "-O2", *made], check=True)
        with Conversation([program, library, "changes"], folder) as c:
            c.rests()
            with Command(self.inlay, "count", "-p", c.process.pid, "libc.so.6:getppid", ready="are counted") as command:
                c.say("a")
                c.has_answered(1)
                command.end()
            c.say("b")
            ended = c.end()
        if ended != (b"changed\ncaught\n", 5):
            raise driver.Failed(f"it ended with {ended}")

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
                    (["break", "-p", pid, "--then=wait", "write"], 2, "not wait"),
                    (["break", "-p", pid, "--hits", "some", "write"], 2, "--hits some: not a number"),
                    (["tee", "--fd=-5", pid, f"{self.folder}/none"], 2, "--fd -5: not a number"),
                    (["count", "-p", pid, "/mal(/"], 2, r"/mal\(/: .*\("),
                    (["break", "-p", pid, "write if fdd == 1"], 1, "'fdd' is not known"),
                    (["tee", pid, f"{self.folder}/none/such"], 1, "cannot write"), (["tee", pid], 2, "something is missing"),
                    (["count", "getppid", "--", "/no/such"], 1, "cannot start"),
                    (["snippet", "-p", pid, "write", "lon x"], 1, "'lon'|lon"),
                    (["count", "-p", pid, "libc.so.6:getpppid"], 1, "no procedure libc.so.6:getpppid; near it are 'getp"),
                    (["snippet", "-p", pid, "wirte:exit", "1"], 1, "no point 'wirte:exit'; near it are 'write'"),
                    (["snippet", "-p", pid, "write:loops", "1"], 1, "no point 'write:loops': 'write' .libc.so.6. has none of that kind"),
                    (["break", "-p", pid, "write:loops"], 1, "no point 'write:loops': 'write' .libc.so.6. has none of that kind"),
                    (["snippet", "-p", pid, "write", "getpppid()"], 1, "'getpppid' is not known: near it are 'getp"),
                    (["snippet", "-p", pid, "wrote", "1"], 1, "no point 'wrote'")):
                done = subprocess.run([self.inlay, *map(str, words)], capture_output=True, text=True, timeout=LIMIT,
                                      env=driver.ENVIRONMENT)
                if done.returncode != status or not re.search(says, done.stderr):
                    raise driver.Failed(f"{words} ends with {done.returncode}", done.stderr)
            self.asks(c, "3 + 3")


def tests(of):
    for name in ("count", "again", "count_for", "snippet", "lines", "unwritable", "started", "killed", "busy_place", "dying", "closed", "executed", "break_at", "break_then", "json_lines", "break_stops", "tee", "examples", "changing", "all_the_time", "wrong"):
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
