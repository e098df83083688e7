#!/usr/bin/python3
"""What mutators can ask of a process besides inserting (mutators.py): single threads, modules, names by pattern.

  tests/live/points.py [--build DIR] [--only PATTERN] [--keep]
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
import out as outside  # noqa: E402
from commands import Command  # noqa: E402
from mutators import text_of  # noqa: E402
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
        if not os.path.exists(program) and driver.build("dynamic", f"{HERE}/many.c", program, "-pthread", "-g"):
            raise driver.Failed("many.c is not compiled")
        return program

    # --- modules, names

    def modules(self):
        """Source files of a program, of one without debug information and of C++; patterns, mangled and not. What is asked of
        nothing answers nothing."""
        bare, cpp = f"{self.folder}/bare", f"{self.folder}/throws"
        subprocess.run(["strip", "-g", "-o", bare, self.many()], check=True)
        if subprocess.run(["g++", "-O1", "-g", "-o", cpp, f"{HERE}/throws.cc"]).returncode:
            raise driver.Failed("throws.cc is not compiled")
        for program, name, patterns, expected in (
                (self.many(), "live/many.c", ("t*n", "/^ma.n$/", "/no such/", "/(/"),
                 (r"(^|\n)0 of nothing\n", "many: 2 modules, 1 rest, .*live/many.c", "of it: goes_round in .*many.c", "of it: turn in .*many.c",
                  "t[*]n turn in", "t[*]n: 1", r"/\^ma.n\$/ main in", "/no such/: 0", "/[(]/: -1", "of it: main in .*many.c")),
                (bare, "*", ("turn",), ("bare: 1 modules, 1 rest, bare", "turn turn in bare", "turn: 1",
                                        "of it: _start in bare")),
                (cpp, "throws.cc", ("main", "/^_Z/"), ("throws: 2 modules, 1 rest", "main: 1",
                                                       r"/\^_Z/ .*[(].* in .*throws.cc"))):
            with Conversation([program], driver.fresh(f"{self.folder}/modules")) as c:
                c.rests()
                m = self.start("looks", c.process.pid, os.path.basename(program), name, *patterns)
                out, status = self.ends(m)
                missing = [line for line in expected if not re.search(line, out)]
                if status or missing or "some are" in out:
                    raise driver.Failed(f"{program}: {status}", *missing, "---", *out.splitlines()[:20])

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

    # --- commands

    def commands(self):
        """count with children, and for one thread; the code of one thread, in the commands."""
        code = ("import os, sys, threading\nfor line in sys.stdin: print(eval(line), flush=True)\n")
        forks = "[os.getppid() and 1 for _ in range(3)] and [os.waitpid(os.fork() or " \
                "os._exit([os.getppid() for _ in range(5)] == 0), 0)[1] for _ in range(2)]"
        many = "[t.start() or t.join() for t in [threading.Thread(target=lambda: [os.getppid() for _ in range(50)])]] " \
               "and [os.getppid() and 1 for _ in range(7)]"
        for words, line, expected in (
                (["count", "getppid"], forks, r"^ *3  getppid"), (["count", "--children", "getppid"], forks, r"^ *13  getppid"),
                (["count", "getppid"], many, r"^ *57  getppid"),
                (["count", "--thread", "PID", "getppid"], many, r"^ *7  getppid"),
                (["snippet", "--thread", "PID", "getppid", "static long n; n++"], many, r"n = 7"),
                (["break", "--thread", "PID", "getppid"], many, r"^hit 7:(?!.*hit 8:)"),
                (["snippet", "open64", "static long n; n++"],  # open has two names
                 "[os.close(os.open('/dev/null', 0)) for _ in range(9)] and 1", r"n = 9"),
                (["snippet", "--children", "getppid", "static long n; n++"], forks, r"n = 13"),
                (["break", "--children", "getppid"], forks, r"^hit 13: thread (\d+) of process \1 in getppid"
                                                            r"(?=.*getppid.*_Py)(?!.*hit 14:)")):
            with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/commands")) as c:
                c.say("1")
                c.has_answered(1)
                pid = str(c.process.pid)
                words = [pid if w == "PID" else w for w in words]
                with Command(self.inlay, words[0], "-p", pid, *words[1:], ready="of process|in process") as command:
                    c.say(line)
                    c.has_answered(2)
                    out = command.end()
                if not re.search(expected, out, re.M | re.S):
                    raise driver.Failed(f"{words}: {expected}", *out.splitlines()[:20])

    def followed(self):
        """Programs that are executed, by children of fork and vfork and by the process itself, count from their first
        instruction, are teed, stop, run code; what cannot be executed, and what has a file's rights, is as it is natively."""
        script, result = f"{self.folder}/script", f"{self.folder}/result"
        with open(script, "w", encoding="utf-8") as f:
            f.write("echo none $(/usr/bin/env seq 3)\n")
        os.chmod(script, 0o755)
        words = ["bash", "-c", f"{script}; /no/such; sh -c '/usr/bin/seq 5; :'; (exec seq 6); exec seq 7"]
        native = driver.run(words, LIMIT)
        for command in (["count", "__libc_start_main"], ["break", "__libc_start_main"], ["tee"],
                        ["snippet", "__libc_start_main", "static long n; n++"]):
            at = [result] if command == ["tee"] else ["-o", result]
            done = driver.run([self.inlay, command[0], "--children", *at, *command[1:], "--", *words], LIMIT)
            with open(result, encoding="utf-8") as f:
                found = f.read()
            if (done.status, done.stdout) != (native.status, native.stdout) or not self.is_followed(command[0], found):
                raise driver.Failed(f"{command[0]}: status {done.status}, natively {native.status}", found,
                                    done.stdout.decode(), done.stderr.decode()[-600:])

    def lends(self):
        """A child of vfork waits to be followed or at a breakpoint, and its parent cannot be stopped meanwhile: neither waits
        for the other."""
        code = "import os\nprint(1, flush=True)\nwhile True: os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)"
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/lends")) as c:
            c.has_answered(1)
            for command, *words in (["count", "--for", "0.1", "waitpid", "execve"], ["break", "--hits", "2", "execve"]):
                done = driver.run([self.inlay, command, "--children", "-p", str(c.process.pid), *words], LIMIT)
                state = subprocess.run([self.inlay, "report", str(c.process.pid)], capture_output=True, text=True)
                if done.status or b"execve (libc" not in done.stdout or "no tool" not in state.stderr:
                    raise driver.Failed(f"{command}: status {done.status}", done.stdout.decode(), done.stderr.decode()[-600:],
                                        state.stderr)

    @staticmethod
    def is_followed(command, found):
        """bash, env, sh and four times seq; the script's interpreter is a fork of bash, and the first seq is executed by env."""
        if command == "count":
            return re.search(r"^ *7  __libc_start_main \(libc", found, re.M)
        if command == "break":
            return len(re.findall(r"^hit \d+: thread (\d+) of process \1 in __libc_start_main \(libc", found, re.M)) == 7
        if command == "tee":  # also what goes into the pipe of $(...)
            return found.split() == [*"123", "none", *"123", *"12345", *"123456", *"1234567"]
        return re.findall(r"^(\w+) \(process \d+\): code at 1", found, re.M) == ["bash", "env", "seq", "dash", "seq", "seq", "seq"]

    def past(self):
        """A fork of a program that has executed another, or has ended, is heard of, and freed, as well."""
        code = ("import os, sys, time\nif os.fork() == 0:\n  print('child', os.getpid(), flush=True)\n"
                "  while os.getppid() != 1: time.sleep(0.01)\n  [os.getpgid(0) for _ in range(50)]\n"
                "  os.execlp('seq', 'seq', '3') if sys.argv[1] == 'seq' else os.close(1) or os.close(2) or time.sleep(1000)\n"
                "os.execlp('sh', 'sh', '-c', 'sleep 3; echo $$') if sys.argv[2] == 'sh' else os._exit(0)\n")
        for last, first in (("seq", "sh"), ("sleep", "sh")):
            command = [self.inlay, "count", "--children", "-o", f"{self.folder}/past", "getpgid", "__libc_start_main", "--",
                       "sh", "-c", "python3 -c \"$0\" $1 $2 & wait; sleep 4", code, last, first]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
                out, said = p.communicate(timeout=LIMIT)
            child = int(re.search(r"child (\d+)", out)[1])
            with open(f"{self.folder}/past", encoding="utf-8") as f:
                found = f.read()
            wrong = outside.wrong_code(child) if last == "sleep" else None
            if last == "sleep":
                os.kill(child, 9)
            if not re.search(r"^ *50  getpgid", found, re.M) or wrong or (last == "seq" and "1\n2\n3\n" not in out):
                raise driver.Failed(f"{last}, {first}", found, out, said, wrong or "")

    def children(self):
        """What they write is teed; what is inserted has come out of one that runs on."""
        code = ("import os, sys\ndef child():\n  print('child', flush=True)\n  while not os.getppid() == 1: pass\n"
                "for line in sys.stdin: print(eval(line), flush=True)\n")
        path = f"{self.folder}/teed"
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/children")) as c:
            c.say("1")
            c.has_answered(1)
            with Command(self.inlay, "tee", "--children", c.process.pid, path, ready="of process") as command:
                c.say("os.fork() or child()")
                c.has_answered(3)
                command.end()
            child = max(int(line) for line in c.answers().split() if line.isdigit())
            state = subprocess.run([self.inlay, "report", str(child)], capture_output=True, text=True)
            wrong = outside.wrong_code(child)
            os.kill(child, 9)
        with open(path, encoding="utf-8") as f:
            teed = f.read()
        if sorted(teed.split()) != sorted(["child", str(child)]) or state.returncode != 1 or wrong:
            raise driver.Failed(f"teed {teed!r}", state.stderr, wrong or "")

    def given_up(self):
        """A server that has become an ordinary user's does not own its files in /proc; what is inserted comes out."""
        code = ("import os, sys\nos.setresuid(65534, 65534, 65534)\nfor line in sys.stdin: print(eval(line), flush=True)\n")
        with Conversation(["/usr/bin/python3", "-c", code], driver.fresh(f"{self.folder}/given")) as c:
            c.say("os.access('/proc/self/mem', os.W_OK)")
            c.has_answered(1)
            with Command(self.inlay, "count", "-p", c.process.pid, "getppid", ready="of process") as command:
                c.say("[os.getppid() and 1 for _ in range(5)]")
                c.has_answered(2)
                out = command.end()
            wrong, said = outside.wrong_code(c.process.pid), "\n".join(command.said)
            state = subprocess.run([self.inlay, "report", str(c.process.pid)], capture_output=True, text=True)
            c.say("os.access('/proc/self/mem', os.W_OK)")
            c.has_answered(3)
            if not re.search("^ *5  getppid", out, re.M) or wrong or "not all" in said or "no tool" not in state.stderr or \
                    c.answers() != b"False\n[1, 1, 1, 1, 1]\nFalse\n":
                raise driver.Failed(out, said, wrong or "", state.stderr, repr(c.answers()))

    # --- examples

    def example(self, name):
        program, source = f"{self.folder}/{name}", f"{HERE}/../../examples/live/{name}.c"
        done = subprocess.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror", source, "-o", program],
                              capture_output=True, text=True, env=driver.ENVIRONMENT)
        with open(source, encoding="utf-8") as f:
            lines = f.read().count("\n")
        if done.returncode or lines >= 150:
            raise driver.Failed(f"{name}.c has {lines} lines", done.stderr[-600:])
        return program

    def examples(self):
        """Coverage, arguments and accesses of bash, which goes on as it was."""
        with Conversation(["/usr/bin/bash"], driver.fresh(f"{self.folder}/examples")) as c:
            c.say("echo 1")
            c.has_answered(1)
            before, said = text_of(c.process.pid), 1
            for name, words, expected in (
                    ("coverage", ["3", "execute*"], (r"[1-9]\d*/ *\d+  execute_command", r"[1-9][.]\d % of .* blocks: bash")),
                    ("arguments", ["3", "write:dpd", "setenv:ss"], (r"write\(1, 0x\w+, 7\) from ",)),
                    ("accesses", ["execute_command", "5"], (r"writes  8 at +0x\w+", r"reads +\d at"))):
                process = subprocess.Popen([self.example(name), str(c.process.pid), *words], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT)
                process.stderr.readline()  # it is in
                while process.poll() is None and said < 500:
                    c.say("echo twelve")
                    said += 1
                    c.has_answered(said)
                    time.sleep(0.1)
                out, status = self.ends(process)
                missing = [one for one in expected if not re.search(one, out)]
                if status or missing:
                    raise driver.Failed(f"{name} ends with {status}", *missing, *out.splitlines()[-10:])
                if text_of(c.process.pid) != before:
                    raise driver.Failed(f"{name}: the code is not what it was")
            c.say("exit 3")
            if c.end()[1] != 3:
                raise driver.Failed("bash does not go on")

    def more_examples(self):
        """Leaks, by who allocates; and a procedure that becomes another one, of a library, for a while, and for good."""
        folder = driver.fresh(f"{self.folder}/patched")
        program, library = f"{folder}/patched", f"{folder}/better.so"
        for words in (["-g", "-O1", f"{HERE}/patched.c", "-o", program],
                      ["-g", "-O1", "-fPIC", "-shared", "-DLIBRARY", f"{HERE}/patched.c", "-o", library]):
            subprocess.run(["gcc", *words], check=True)
        with Conversation([program], folder) as c:
            pid, before = str(c.process.pid), None
            self.asks(c, "3", "21")
            before = text_of(c.process.pid)
            process = self.begin("leaks", pid)
            process.stderr.readline()
            self.asks(c, "4", "28")
            self.asks(c, "5", "35")
            out, status = self.ends(process, "x")
            if status or not re.search(r"^ +20 pieces +2090 bytes  keeps at .*patched\.c:\d+$", out, re.M):
                raise driver.Failed(f"leaks ends with {status}", out)
            process = self.begin("hotpatch", pid, "price", "better_price(item, count) + 1", library)
            process.stderr.readline()
            self.asks(c, "4", "57")
            out, status = self.ends(process, "x")
            self.asks(c, "4", "28")
            if status or {name: code for name, code in text_of(c.process.pid).items() if name in before} != before:
                raise driver.Failed(f"hotpatch ends with {status}, and the code is not what it was", out)
            process = self.begin("hotpatch", pid, "prize", "1")
            if process.wait(LIMIT) != 1 or "near it: 'price'" not in process.stderr.read():
                raise driver.Failed("what is not there is told")
            process = self.begin("hotpatch", pid, "price", "item")
            process.stderr.readline()
            out, status = self.ends(process)
            self.asks(c, "9", "9")
            if status or c.end()[1] != 3:
                raise driver.Failed(f"hotpatch ends with {status}", out)

    def begin(self, name, *words):
        return subprocess.Popen([self.example(name), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT)

    @staticmethod
    def asks(c, line, expected):
        count = c.answers().count(b"\n")
        c.say(line)
        c.has_answered(count + 1)
        if c.answers().decode().splitlines()[-1] != expected:
            raise driver.Failed(f"{line} is answered by", repr(c.answers()), f"and not by {expected}")

    @staticmethod
    def ends(process, says=None):
        try:
            out = process.communicate(says, timeout=2 * LIMIT)[0]
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


QUICK = "one-by-one,modules"


def tests(of):
    yield "one-by-one", of.one_by_one
    yield "modules", of.modules
    yield "examples", of.examples
    yield "more-examples", of.more_examples
    yield "commands", of.commands
    yield "children", of.children
    yield "followed", of.followed
    yield "lends", of.lends
    yield "past", of.past
    yield "given-up", of.given_up
    for how in ("dies", "exec", "killed"):
        yield f"held-{how}", lambda how=how: of.held_at(how)


def main():
    options = driver.parser(__doc__, only=QUICK).parse_args()
    with driver.Results("points", options) as results:
        of = Points(options, results.folder)
        for name, function in tests(of):
            if driver.chosen(name, options) and name == "given-up" and os.geteuid() != 0:
                results.skip(name, "needs root")
            elif driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
