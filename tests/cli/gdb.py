#!/usr/bin/python3
"""inlay run --gdb: what gdb says of a program under the JIT engine is what it says of it natively.

  tests/cli/gdb.py [--build DIR] [--only PATTERN] [--all] [--keep]

Each case is a list of gdb's commands, given to it twice; addresses and numbers of processes apart its answers must agree.
--all: Debian's programs too.
"""

import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../support")
import driver  # noqa: E402

LIMIT = 120
GDB = ["gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
       "-iex", "set sysroot /", "-iex", "set width 0",
       "-iex", "set confirm off", "-iex", "set breakpoint pending on"]
NOISE = re.compile(r"^(Reading symbols|\[(New|Switching|Thread|Detaching)|\[Attaching|Using host libthread_db|"
                   r"\(No debugging|0x\w+ in _start \(\) from|Program stopped|Remote target is exec|process \d+ is exec|$)")
SAME = ((r"0x[0-9a-f]{6,16}", "ADDRESS"), (r"\[Inferior 1 \([^)]*\)", "[Inferior 1"),
        (r"Thread (ADDRESS \(LWP )?[0-9.]+\)?", "Thread T"), (r'^Thread T "[^"]*" hit ', ""),
        (r'^Thread T "[^"]*" received', "Program received"), (r"futex-internal.*|clone3.*", ""))
PLAIN = ("break main", "continue", "bt", "info registers eflags cs", "next", "next", "break work if x == 7",
         "tbreak mix", "tbreak handler", "display hits", "continue", "bt", "finish", "print local", "set var local = 1000",
         "x/4i $pc", "stepi", "stepi", "info registers rip", "continue", "continue", "bt", "continue", "info args",
         "info registers mxcsr fctrl", "print $xmm0.v2_double", "print $xmm1.v4_int32", "set var $xmm0.v2_double[0] = 8.5",
         "finish", "print work(3)", "print hits", "step", "info source", "delete", "continue")
QUIET = "handle SIGUSR1 nostop noprint pass"
CASES = {  # name -> (arguments, commands)
    "plain": ((), PLAIN),
    "middle": ((), ("break gdb_program.c:19", "continue", "print x", "bt", "continue", "continue", "info breakpoints")),
    "signal": ((), ("handle SIGUSR1 stop print", "continue", "signal 0", "print got")),
    "passed": ((), ("handle SIGUSR1 stop print", "continue", "print got", "continue")),
    "fault": (("x",), (QUIET, "continue", "bt", "print $_siginfo.si_signo", "print $_siginfo._sifields._sigfault.si_addr",
                       "continue")),
    "threads": ((), ("break work if x >= 10", "continue", "continue", "print x", "continue", "continue", "next", "next",
                     "info breakpoints", "delete", "continue")),
    "later": ((), (QUIET, "break crc32", "continue", "info registers rdx", "finish", "continue")),
    "watch": ((), ("watch watched", "continue", "continue", "continue")),
    "exec": (("x", "y"), (QUIET, "break threads", "continue", "print argc", "up", "print argc", "continue", "up", "print argc",
                          "delete", "continue", "continue")),
}
DEBIAN = {  # name -> (command, procedure)
    "ls": (["ls", "/"], "readdir"),
    "bash": (["bash", "-c", "for i in 1 2 3; do echo $i; done; true | true"], "execute_command_internal"),
    "python": (["python3", "-I", "-S", "-c", "print(sum(range(9)))"], "PyList_Append"),
    "perl": (["perl", "-e", "print 1..9, qq(\\n)"], "Perl_pp_print"),
    "sort": (["sort", "/etc/passwd"], "close"),
    "awk": (["awk", "BEGIN {print 3}"], "setlocale"),
    "grep": (["grep", "root", "/etc/passwd"], "read"),
}


class Gdb:
    def __init__(self, options, folder):
        self.inlay = f"{options.build}/inlay"
        self.folder, self.all = folder, options.all
        self.count = 0
        self.vectors = None

    def program(self, name):
        out = f"{self.folder}/{name}"
        if not os.path.exists(out):
            done = subprocess.run(["gcc", "-g", "-O1", "-pthread", f"{HERE}/gdb_{name}.c", "-o", out, "-ldl"],
                                  capture_output=True, text=True)
            if done.returncode:
                raise driver.Failed("compile", done.stderr[-300:])
        return out

    def gdb(self, *commands):
        words = [w for c in commands for w in ("-ex", c)]
        return [*GDB, *words]

    def served(self, command, tool="bbcount", options=()):
        """The program, waiting, and where."""
        self.count += 1
        path = f"{self.folder}/s{self.count}"
        p = subprocess.Popen([self.inlay, "run", f"--gdb=unix:{path}", "-o", f"{self.folder}/report", *options, tool, "--",
                              *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=self.environment())
        end = time.monotonic() + LIMIT
        while not os.path.exists(path):
            if p.poll() is not None or time.monotonic() > end:
                raise driver.Failed("it does not listen", p.communicate()[0].decode())
            time.sleep(0.02)
        return p, path

    @staticmethod
    def environment():
        return {**driver.ENVIRONMENT, "PYTHONHASHSEED": "0"}

    def under(self, command, commands, **how):
        p, path = self.served(command, **how)
        done = subprocess.run(self.gdb(f"target remote {path}", *commands), capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL)
        output = p.communicate(timeout=LIMIT)[0].decode()
        return done.stdout, output, p.returncode

    def natively(self, command, commands):
        done = subprocess.run([*self.gdb("starti", *commands), "--args", *command],
                              capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                              env=self.environment())
        return done.stdout

    @staticmethod
    def lines(text, output=""):
        """Without what the program itself has written, and what differs by nature."""
        written = set(output.splitlines())
        lines = []
        for line in text.splitlines():
            line = line[10:] if line.startswith("Thread debu") else line
            if NOISE.match(line) or line in written:
                continue
            for pattern, instead in SAME:
                line = re.sub(pattern, instead, line)
            lines.append(line)
        return lines

    def writes_vectors(self):
        """Whether this gdb can write vector registers natively: not where the processor has more state than it knows."""
        if self.vectors is None:
            done = subprocess.run([*self.gdb("starti", "set var $xmm0.v2_double[0] = 8.5"), "true"], capture_output=True,
                                  text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
            self.vectors = "Couldn't write extended state" not in done.stderr
        return self.vectors

    def compare(self, command, commands):
        if not self.writes_vectors():  # nor can it call procedures, whose call it follows by putting all registers back
            commands = [c for c in commands if not c.startswith(("set var $xmm", "print work("))]
        here, output, status = self.under(command, commands)
        there = self.natively(command, commands)
        a, b = self.lines(there, output), self.lines(here)
        a = [line for line in a if "libthread_db" not in line and line.strip()]
        if a != b:
            raise driver.Failed("natively (-) and here (+)", *list(difflib.unified_diff(a, b, lineterm=""))[:60])
        return output, status

    def case(self, name):
        arguments, commands = CASES[name]
        self.compare([self.program("program"), *arguments], commands)

    def vectors_written(self):
        """What gdb writes into a vector register, and a call by it, whether or not it can do either natively."""
        here, _, _ = self.under([self.program("program")],
                                (QUIET, "tbreak mix", "continue", "set var $xmm0.v2_double[0] = 8.5", "finish", "print work(3)",
                                 "continue"))
        for wanted in ("Value returned is $1 = ", "$2 = 6"):
            if wanted not in here:
                raise driver.Failed(f"not said: {wanted}", here[-1500:])

    def debian(self, name):
        command, procedure = DEBIAN[name]
        if not shutil.which(command[0]):
            return
        self.compare([shutil.which(command[0]), *command[1:]],
                     (f"break {procedure}", "continue", "bt -frame-arguments none 1", "ignore 1 100000", "continue",
                      "info breakpoints"))

    def spin(self, *commands, arguments=("1", "on")):
        return self.under([self.program("spins"), *arguments], commands)

    def interrupt(self):
        """^C, steps of one thread while others run, all of them seen, and off."""
        # When it runs, and not before: gdb would stop reading its commands.
        later = ("python exec('''import threading, os\ndef runs(event):\n    gdb.events.cont.disconnect(runs)\n"
                 "    threading.Timer(1, lambda: os.kill(os.getpid(), 2)).start()\ngdb.events.cont.connect(runs)''')")
        said, output, status = self.spin("tbreak tick if spins[0] > 0", "continue", later, "continue", "info threads",
                                         "print spins[0] > 0", "break tick if n == 1", "continue", "next",
                                         "delete", later, "continue", "thread apply all bt 1", "print stop = 1", "continue")
        for wanted in ("received signal SIGINT", "$1 = 1", "hit Breakpoint 2, tick (n=", "$2 = 1"):
            if wanted not in said:
                raise driver.Failed(f"gdb does not say '{wanted}'", *said.splitlines()[-40:])
        # Each of the three, in the list and by its innermost frame: in its loop, or in what that calls.
        listed = re.findall(r"^[ *]+\d+ +Thread .*\b(?:thread|tick) \(", said, re.M)
        shown = re.findall(r"^#0 .*\b(?:thread|tick) \(", said, re.M)
        if (len(listed), len(shown)) != (3, 3) or "exited with code 07" not in said or "slept 0" not in output or status != 7:
            raise driver.Failed(f"status {status}, {output}", *said.splitlines()[-40:])

    def detach(self):
        said, output, status = self.spin("break tick", "continue", "detach", arguments=("1",))
        if "detached" not in said or output != "slept 0\n" or status != 7:
            raise driver.Failed(f"status {status}, {output}", said)

    def kill(self):
        said, _, status = self.spin("break tick", "continue", "kill")
        if status != -signal.SIGKILL:
            raise driver.Failed(f"status {status}", said)

    def dies(self):
        """By SIGKILL from elsewhere, while it runs."""
        p, path = self.served([self.program("spins"), "1", "on"])
        g = subprocess.Popen(self.gdb(f"target remote {path}", "continue"), stdout=subprocess.PIPE, text=True)
        self.wait_until_it_sleeps(p)
        p.kill()
        said = g.communicate(timeout=LIMIT)[0]
        p.communicate()
        if "terminated with signal SIGKILL" not in said:
            raise driver.Failed("gdb does not see it die", said)

    @staticmethod
    def wait_until_it_sleeps(process, threads=4):
        """Or has ended already."""
        end = time.monotonic() + LIMIT
        while process.poll() is None and len(os.listdir(f"/proc/{process.pid}/task")) < threads:
            if time.monotonic() > end:
                raise driver.Failed("it does not begin")
            time.sleep(0.02)

    def gdb_dies(self):
        """The program goes on without it: while it runs and while it stands still."""
        for commands in (("continue",), ("break tick", "continue", "shell sleep 1000")):
            p, path = self.served([self.program("spins"), "1"])
            g = subprocess.Popen(self.gdb(f"target remote {path}", *commands), stdout=subprocess.PIPE, text=True,
                                 start_new_session=True)
            self.wait_until_it_sleeps(p, 2)
            time.sleep(0.3)
            os.killpg(g.pid, signal.SIGKILL)
            g.communicate()
            output = p.communicate(timeout=LIMIT)[0].decode()
            if output != "slept 0\n" or p.returncode != 7:
                raise driver.Failed(f"status {p.returncode}", output)

    def counts(self):
        """A tool counts what it counts without gdb, whatever is stepped and stopped."""
        program = self.program("program")
        counts = []
        for commands in ((QUIET, "continue"), (QUIET, "break work", *["continue", "stepi 20", "finish"] * 8, "delete", "continue")):
            said, _, _ = self.under([program], commands, tool="inscount", options=("--proc", "main", "--proc", "work"))
            if "exited" not in said:
                raise driver.Failed("it does not end", said)
            with open(f"{self.folder}/report", encoding="utf-8") as f:
                counts.append(sorted(re.findall(r"\d+ instructions", f.read())))
        if not counts[0] or counts[0] != counts[1]:
            raise driver.Failed("instructions", *map(str, counts))

    def own_gdb(self):
        """--gdb alone: a gdb is started, which is told where."""
        if not os.path.exists(f"{self.folder}/bin"):
            os.mkdir(f"{self.folder}/bin")
        with open(f"{self.folder}/bin/gdb", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {shutil.which('gdb')} -nx -batch \"$@\" -ex 'break main' -ex continue -ex kill\n")
        os.chmod(f"{self.folder}/bin/gdb", 0o755)
        done = subprocess.run([self.inlay, "run", "--gdb", "null", "--", self.program("spins")], capture_output=True,
                              text=True, timeout=LIMIT, stdin=subprocess.DEVNULL,
                              env={**driver.ENVIRONMENT, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        if "Breakpoint 1, main" not in done.stdout:
            raise driver.Failed("gdb does not come to main", done.stdout, done.stderr)

    def refusals(self):
        for words, says in ((("--gdb", "--no-ptrace"), "--gdb is for"), (("--gdb", "--engine=live"), "--gdb is for"),
                            (("--gdb=nowhere",), "must be a port"), (("--gdb=unix:/nowhere/x",), "cannot listen")):
            done = subprocess.run([self.inlay, "run", *words, "null", "--", "true"], capture_output=True, text=True,
                                  timeout=LIMIT)
            if says not in done.stderr or not done.returncode:
                raise driver.Failed(" ".join(words), done.stderr)


def tests(t):
    for name in CASES:
        yield name, lambda name=name: t.case(name)
    for name in ("vectors_written", "interrupt", "detach", "kill", "dies", "gdb_dies", "counts", "own_gdb", "refusals"):
        yield name, getattr(t, name)
    for name in DEBIAN if t.all else ():
        yield name, lambda name=name: t.debian(name)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("cli-gdb", options) as results:
        t = Gdb(options, results.folder)
        for name, function in tests(t):
            if not shutil.which("gdb"):
                results.skip(name, "there is no gdb")
            else:
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
