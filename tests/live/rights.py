#!/usr/bin/python3
"""Processes that cannot be had, or hardly: by somebody who has no right to, confined ones, such as have no descriptor or no
memory left, such as are no processes any more. What is in the way is said in one line that names the process, and it goes on
as it was; or it works. The kernel of the machine that tests may have no Yama: its refusal is the same error as another
user's.

  tests/live/rights.py [--build DIR] [--only PATTERN] [--all] [--keep]
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from out import clean, visible  # noqa: E402
from run import LIMIT, READS, Conversation, call_of, state_of  # noqa: E402

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
DOES_NOT_STOP = "does not stop: it waits for a device or a child of vfork, or its cgroup is frozen"
FILTER = """import ctypes, os, struct, sys
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *i) for i in (
    (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000))))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 4, ctypes.addressof(code)))
c = ctypes.CDLL(None)
if c.prctl(38, 1, 0, 0, 0) or c.prctl(22, 2, program, 0, 0): sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])"""


def without(call):
    """Whoever it executes is denied this call."""
    return [sys.executable, "-c", FILTER, str(call)]


# As by Yama (ptrace_scope 1 for what is no child of his, 2, 3) or a container.
DENIED = without(101)
PROCESS_VM = (310, 311)
# Whoever it executes may open no file to write to it, by Landlock.
SANDBOX = [sys.executable, "-c", """import ctypes, os, struct, sys
c, rules = ctypes.CDLL(None), ctypes.create_string_buffer(struct.pack("<Q", 2))
n = c.syscall(444, rules, 8, 0)
if n < 0 or c.prctl(38, 1, 0, 0, 0) or c.syscall(446, n, 0): sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])"""]
EXECUTES = """import os, sys, time
n = int(sys.argv[1])
print(n, flush=True)
time.sleep(float(sys.argv[2]))
if n: os.execv(sys.executable, [sys.executable, "-S", "-c", sys.argv[3], str(n - 1), *sys.argv[2:]])
"""
NO_RIGHT = r"no right to trace process \d+: be its owner or root"


class Rights:
    def __init__(self, options, folder):
        self.inlay, self.folder, self.program = os.path.abspath(f"{options.build}/inlay"), folder, f"{folder}/rights"
        os.chmod(folder, 0o755)
        if driver.build("dynamic", f"{HERE}/rights.c", self.program, "-pthread"):
            raise driver.Failed("the program cannot be built")

    def command(self, pid, *words, says="", status=1, by=()):
        done = subprocess.run([*by, self.inlay, *words], capture_output=True, text=True, timeout=LIMIT,
                              env=driver.ENVIRONMENT)
        said = done.stderr
        if done.returncode != status or not re.search(says, said) or (status and (said.count("\n") != 1 or str(pid) not in said)):
            raise driver.Failed(f"{words}: status {done.returncode}, does not say '{says}' in a line", said)
        return done.stdout

    def both(self, pid, says, **more):
        self.command(pid, "attach", "inscount", str(pid), says=says, **more)
        self.command(pid, "count", "-p", str(pid), "read", says=says, **more)

    def refused(self, what, says, before=(), program=None, **more):
        """It goes on as it was."""
        with Conversation([*before, *([self.program] if program is None else program), what], driver.fresh(f"{self.folder}/in-{what or 'plain'}")) as c:
            c.say("one")
            c.has_answered(1)
            if c.answers() == b"cannot\n":
                return
            pid = c.process.pid
            state = None if what == "first" or before else visible(pid)
            self.both(pid, says, **more)
            if state:
                clean(pid, state)
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status != 5:
            raise driver.Failed(f"{what}: status {status}, answers", repr(answers))

    def confined(self):
        self.refused("strict", "is confined")

    def no_files(self):
        self.refused("files", r"has 3 files open and may have 4, and a tool needs .*prlimit --pid")

    def no_memory(self):
        self.refused("memory", r"has no room at 0x\w+: .*limits")

    def no_data(self):
        """What the tool lacks is told to who puts it in, not to the program's standard error."""
        for what in ("data", "some-data"):
            self.refused(what, r"process \d+ has no room at 0x\w+|did not start in process \d+: [^:]*memory.*ulimit -v and -d|cannot be had")

    def starts_small(self):
        """A program that may have little memory does not begin; one that another starts begins without the tool."""
        few = "ulimit -d 9000; exec /usr/bin/printf good"
        run = [self.inlay, "run", "--engine=live", "inscount", "-o", f"{self.folder}/started", "--"]
        softly = few.replace("ulimit -d 9000", "ulimit -S -d 4000")  # what analyses may have more then, the program itself not
        for command, status, says in (([*run, "/bin/sh", "-c", softly], 0, "cannot follow the program: .*memory.*ulimit"),
                                      (["/bin/sh", "-c", " ".join((few.split("exec")[0], "exec", *run, "/usr/bin/printf", "good"))], 1,
                                       "cannot start the (instrumentor|program): .*memory.*ulimit"),
                                      ([*run, "/bin/sh", "-c", few], 0, "(printf runs without the tool|cannot follow the program): .*memory")):
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
            if done.returncode != status or done.stdout != ("" if status else "good") or not re.search(says, done.stderr):
                raise driver.Failed(f"{command}: status {done.returncode}, output {done.stdout}", done.stderr)
            if done.stderr.count("\n") != 1:
                raise driver.Failed("more is said", done.stderr)

    def starts_in_sandbox(self):
        """A program that gets no right to write to files runs without the tool, and is not told to have ended."""
        run, printf = [self.inlay, "run", "--engine=live", "inscount", "--image=printf", "--"], ["/usr/bin/printf", "good"]
        if subprocess.run([*SANDBOX, "/bin/true"]).returncode:
            return  # a kernel without Landlock
        for command, status in (([*run, *SANDBOX, *printf], 0), ([*SANDBOX, *run, *printf], 1)):
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
            says = r"cannot (follow|start) the program: cannot write to the memory of process \d+: .*Landlock"
            if done.returncode != status or done.stdout != ("" if status else "good") or not re.search(says, done.stderr):
                raise driver.Failed(f"{command}: status {done.returncode}, output {done.stdout}", done.stderr)

    def starts_late(self):
        """Analysing takes more than what a program has of the processor's time, and a process, which it may not have; and
        /proc may be another namespace's: nothing is done to the process that has the number there."""
        run = [self.inlay, "run", "--engine=live", "inscount", "-o", "/dev/null", "--"]
        other = ["unshare", "--pid", "--fork", "--kill-child"]
        for before, status, says in ((["sh", "-c", 'ulimit -S -t 3; exec "$@"', ""], 0, ""),
                                     ([*NOBODY, "bash", "-c", 'ulimit -u 0; exec "$@"', ""], 1, "no process can be made .*ulimit -u.*--engine=jit"),
                                     (other, 1, "/proc has other numbers .*--mount-proc"), ([*other, "--mount-proc"], 0, "")):
            if subprocess.run([*before, "true"], capture_output=True).returncode and before[0] != NOBODY[0]:
                continue  # no right to namespaces
            if os.geteuid() and before[0] == NOBODY[0]:
                continue
            done = subprocess.run([*before, *run, "/usr/bin/python3", "-c", "print('good')"], capture_output=True, text=True,
                                  timeout=LIMIT, env=driver.ENVIRONMENT)
            if done.returncode != status or done.stdout != ("" if status else "good\n") or not re.search(says, done.stderr):
                raise driver.Failed(f"{before}: status {done.returncode}, output {done.stdout}", done.stderr)

    def no_code(self):
        """Nothing becomes executable in it; what is mapped as code from its beginning, and written to as a debugger
        does, is."""
        self.keeps_code("code", "inscount")

    def sealed(self):
        """Of a mutator's no image moves as a whole: system calls are found in old code."""
        self.keeps_code("sealed", "inscount")
        with Conversation([self.program, "sealed"], driver.fresh(f"{self.folder}/in-sealed")) as c:
            c.say("one")
            c.has_answered(1)
            if c.answers() != b"cannot\n":
                self.command(c.process.pid, "snippet", "-p", str(c.process.pid), "--for", "0.3", "read", "static long calls; calls++",
                             status=0)
                c.say("one")
                c.has_answered(2)
            answers, status = c.end()
        if answers not in (2 * b"one\n", b"cannot\n") or status != 5:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def keeps_code(self, what, tool):
        folder = driver.fresh(f"{self.folder}/in-{what}")
        with Conversation([self.program, what], folder) as c:
            c.say("one")
            c.has_answered(1)
            if c.answers() == b"cannot\n":
                return
            pid, report, counted = c.process.pid, f"{folder}/report", []
            state = visible(pid)
            for k in range(3):
                self.command(pid, "attach", tool, "-o", report, str(pid), status=0)
                c.say("one")
                c.has_answered(k + 2)
                self.command(pid, "detach", str(pid), status=0)
                clean(pid, state)
                with open(report) as f:
                    counted += re.findall(r"([1-9]\d*) instructions", f.read())
            answers, status = c.end()
        if answers != 4 * b"one\n" or status != 5 or len(counted) != 3:
            raise driver.Failed(f"status {status}, answers", repr(answers), f"counted {counted}")

    def no_first_thread(self):
        self.refused("first", "the first thread of process .* has ended")

    @staticmethod
    def is_in_fault(c):
        """Within a call that reads something else than its lines."""
        call = call_of(c.process.pid)
        return call is not None and call[0] in READS and call[1] != 0

    @staticmethod
    def comes_there(c, is_there):
        """False: the kernel knows no such thing."""
        c.has_answered(1)
        end = time.monotonic() + LIMIT
        while not is_there(c):
            if b"cannot" in c.answers():
                return False
            if c.process.poll() is not None or time.monotonic() > end:
                raise driver.Failed("it does not come there", repr(c.answers()))
            time.sleep(0.01)
        return True

    def held(self, what, is_there, refuses):
        """The kernel has its first thread, and nobody can stop that: this is said soon, and the process goes on."""
        with Conversation([self.program, what], driver.fresh(f"{self.folder}/held-{what}")) as c:
            if self.comes_there(c, is_there):
                refuses(c.process.pid)
            c.say("one")
            answers, status = c.end()
        if not re.fullmatch(b"in\n(cannot\n|one\n)", answers) or status != 5:
            raise driver.Failed(f"{what}: status {status}, answers", repr(answers))

    def in_vfork(self):
        self.held("vfork", lambda c: state_of(c.process.pid) == "D", lambda pid: self.both(pid, DOES_NOT_STOP))

    def in_fault(self):
        """Whoever waits for it burns a processor's time meanwhile, a minute long: with --all."""
        self.held("fault", self.is_in_fault, lambda pid: self.command(pid, "attach", "inscount", str(pid), says=DOES_NOT_STOP))

    def in_faults(self):
        """It comes on by and by, and is waited for."""
        with Conversation([self.program, "faults"], driver.fresh(f"{self.folder}/faults")) as c:
            if self.comes_there(c, self.is_in_fault):
                began = time.monotonic()
                done = driver.run([self.inlay, "attach", "inscount", "-o", "/dev/null", str(c.process.pid)], LIMIT)
                if done.status:
                    raise driver.Failed("attach", *driver.as_lines(done.stderr))
                if time.monotonic() - began < 6:
                    raise driver.Failed("it was not in the midst of what takes so long")
            c.say("one")
            answers, status = c.end()
        if not re.fullmatch(b"in\n(cannot\n|one\n)", answers) or status != 5:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def traced(self):
        """By another program, which goes on tracing it."""
        if not os.path.exists("/usr/bin/strace"):
            return
        with Conversation(["/usr/bin/strace", "-qq", "-o", "/dev/null", self.program], driver.fresh(f"{self.folder}/traced")) as c:
            c.say("one")
            c.has_answered(1)
            with open(f"/proc/{c.process.pid}/task/{c.process.pid}/children", encoding="utf-8") as f:
                pid = f.read().split()[0]
            self.both(pid, f"is traced by process {c.process.pid} already; end that first")
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status != 5:
            raise driver.Failed(f"traced: status {status}, answers", repr(answers))

    def gets_rights(self):
        """A program that gets rights from its file: whom it was started by has none to trace it, root has; and whoever
        starts it himself has it without these rights."""
        if os.geteuid():
            return
        program = f"{self.folder}/setuid"
        shutil.copy(self.program, program)
        os.chmod(program, 0o4755)
        self.refused("", NO_RIGHT, before=[*NOBODY, "env", "--", program], by=NOBODY, program=())
        with Conversation([*NOBODY, program], driver.fresh(f"{self.folder}/rooted")) as c:
            self.comes_and_goes(c)

    def stopped(self):
        """By job control: what commands insert comes and goes, and it stays stopped until it is let go on."""
        with Conversation([self.program], driver.fresh(f"{self.folder}/stopped")) as c:
            c.say("one")
            c.has_answered(1)
            os.kill(c.process.pid, signal.SIGSTOP)
            self.command(c.process.pid, "count", "--for", "0.2", "-p", str(c.process.pid), "read", status=0)
            c.has_state("T")
            os.kill(c.process.pid, signal.SIGCONT)
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status != 5:
            raise driver.Failed(f"stopped: status {status}, answers", repr(answers))

    def under_jit(self):
        self.refused("", "runs under a tool .* already",
                     before=[self.inlay, "run", "inscount", "-o", "/dev/null", "--"])

    def others(self):
        """As an ordinary user; and his own, one that hides and one that does not."""
        if os.geteuid():
            return
        self.refused("", NO_RIGHT, by=NOBODY)
        self.refused("hidden", NO_RIGHT, before=NOBODY, by=NOBODY)
        with Conversation([*NOBODY, self.program], driver.fresh(f"{self.folder}/own")) as c:
            self.comes_and_goes(c, by=NOBODY)
        program = shutil.copy(self.program, f"{self.folder}/unread")
        os.chmod(program, 0o711)
        done = subprocess.run([*NOBODY, self.inlay, "count", "read", "--", program], capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, env=driver.ENVIRONMENT)
        if done.returncode != 1 or not re.search("may be executed but not read", done.stderr):
            raise driver.Failed(f"a program that may not be read: status {done.returncode}", done.stderr)

    def rootless(self):
        """One that has no /proc at its root: what is put in is taken out all the same, by a command and by inlay detach."""
        if os.geteuid():
            return
        with Conversation([self.program, "root"], driver.fresh(f"{self.folder}/rootless")) as c:
            c.say("one")
            c.has_answered(1)
            state = visible(c.process.pid)
            self.command(c.process.pid, "count", "--for", "0.2", "-p", str(c.process.pid), "read", status=0)
            clean(c.process.pid, state)
            self.comes_and_goes(c)

    def comes_and_goes(self, c, by=()):
        pid = str(c.process.pid)
        c.say("one")
        c.has_answered(1)
        self.command(pid, "attach", "inscount", pid, status=0, by=by)
        self.command(pid, "report", pid, status=0, by=by)
        c.say("two")
        c.has_answered(2)
        self.command(pid, "detach", pid, status=0, by=by)
        c.say("three")
        answers, status = c.end()
        if not re.fullmatch(rb"(?s)one\n.*two\n.*three\n", answers) or status != 5:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def denied(self):
        """Its owner, but the kernel's rules for tracing are against it; so are those for a program that he starts."""
        self.refused("", r"no right to trace process \d+: .*yama/ptrace_scope", by=DENIED)
        run = [*DENIED, self.inlay, "run", "--engine=live", "inscount", "-o", "/dev/null", "--", "/bin/echo", "one"]
        done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
        if done.returncode != 1 or done.stdout or not re.fullmatch("inscount: ptrace is not possible here .*\n", done.stderr):
            raise driver.Failed(f"status {done.returncode}, {done.stdout}", done.stderr)
        for call in PROCESS_VM:
            for engine, status, text in (("jit", 0, "one\n"), ("live", 1, "")):
                run = [*without(call), self.inlay, "run", f"--engine={engine}", "null", "--", "/bin/echo", "one"]
                done = subprocess.run(run, capture_output=True, text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
                told = re.fullmatch(r"null: the memory of other processes cannot .*\n", done.stderr)
                if done.returncode != status or done.stdout != text or not told:
                    raise driver.Failed(f"{engine} without {call}: {done.returncode}, {done.stdout}", done.stderr)

    def frozen(self):
        """By its cgroup: no thread of it can be stopped, and nothing has been changed when it is let go on."""
        if os.geteuid():
            return
        mount, made = driver.fresh(f"{self.folder}/freezer"), None
        one = subprocess.run(["mount", "-t", "cgroup", "-o", "freezer", "none", mount], capture_output=True)
        two = one.returncode and subprocess.run(["mount", "-t", "cgroup2", "none", mount], capture_output=True).returncode
        if two:
            return  # the kernel has no such thing, or it is not for us
        state, frozen, thawed = ("freezer.state", "FROZEN", "THAWED") if not one.returncode else ("cgroup.freeze", "1", "0")
        try:
            made = f"{mount}/inlay-{os.getpid()}"
            os.mkdir(made)
            if not os.path.exists(f"{made}/{state}"):
                return
            other = [self.inlay, "run", "inscount", "-o", f"{self.folder}/told", "--", self.program]
            with (Conversation([self.program], driver.fresh(f"{self.folder}/frozen")) as c,
                  Conversation(other, driver.fresh(f"{self.folder}/frozen-too")) as under):
                for one in c, under:
                    one.say("one")
                    one.has_answered(1)
                before = visible(c.process.pid)
                for file, text in (("cgroup.procs", str(c.process.pid)), ("cgroup.procs", str(under.process.pid)), (state, frozen)):
                    with open(f"{made}/{file}", "w", encoding="utf-8") as f:
                        f.write(text)
                self.is_frozen(made)
                asks = subprocess.Popen([self.inlay, "report", str(under.process.pid)], stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT)
                try:
                    self.both(c.process.pid, DOES_NOT_STOP)
                    said = asks.communicate(timeout=LIMIT)[1]
                    if asks.returncode != 1 or not re.search(DOES_NOT_STOP, said):
                        raise driver.Failed(f"report: status {asks.returncode}", said)
                finally:
                    asks.kill()
                    with open(f"{made}/{state}", "w", encoding="utf-8") as f:
                        f.write(thawed)
                clean(c.process.pid, before)
                self.command(under.process.pid, "report", str(under.process.pid), status=0)
                for one in c, under:
                    one.say("two")
                    answers, status = one.end()
                    if answers != b"one\ntwo\n" or status != 5:
                        raise driver.Failed(f"status {status}, answers", repr(answers))
        finally:
            if made and os.path.isdir(made):
                os.rmdir(made)
            subprocess.run(["umount", mount], check=False)

    @staticmethod
    def is_frozen(cgroup):
        """Until it is."""
        end, text = time.monotonic() + LIMIT, ""
        while not re.search("^(FROZEN|frozen 1)$", text, re.M):
            if time.monotonic() > end:
                raise driver.Failed("it does not freeze", text)
            time.sleep(0.01)
            for name in ("freezer.state", "cgroup.events"):
                if os.path.exists(f"{cgroup}/{name}"):
                    with open(f"{cgroup}/{name}", encoding="utf-8") as f:
                        text = f.read()

    def executes(self):
        """Another program in the midst of it, again and again: it is said in a line, or has been done."""
        for seconds in (0.1, 0.35, 0.6):
            argv = [sys.executable, "-S", "-c", EXECUTES, "5", str(seconds), EXECUTES]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as c:
                time.sleep(0.05)
                done = subprocess.run([self.inlay, "attach", "inscount", "-o", "/dev/null", str(c.pid)], capture_output=True,
                                      text=True, timeout=LIMIT, env=driver.ENVIRONMENT)
                answers = c.communicate(timeout=LIMIT)[0]
            if answers != "5\n4\n3\n2\n1\n0\n" or c.returncode:
                raise driver.Failed(f"each {seconds} s: status {c.returncode}", answers, done.stderr)
            if done.returncode not in (0, 1) or done.stderr.count("\n") != 1:
                raise driver.Failed(f"each {seconds} s: attach: status {done.returncode}", done.stderr)

    def no_large_files(self):
        """A report that is larger than what the process may write does not end it, and is printed all the same."""
        process = subprocess.Popen([self.program, "size"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        pid = str(process.pid)
        try:
            for words in ((), ("attach", "inscount", pid), ("report", pid), ("detach", pid)):
                report = self.command(pid, *words, status=0) if words else ""
                if words and (words[0] != "attach") != bool(re.fullmatch(r"rights: \d+ instructions\n", report)):
                    raise driver.Failed(f"{words}: not what was to be printed", report)
                process.stdin.write(b"x\n")
                process.stdin.flush()
                while process.stdout.readline() != b"x\n":
                    if process.poll() is not None:
                        raise driver.Failed(f"{words}: status {process.returncode}")
            process.stdin.close()
            if process.wait(LIMIT) != 5:
                raise driver.Failed(f"status {process.returncode}")
        finally:
            process.kill()
            process.wait()

    def ended(self):
        """A zombie, and one that is a thread of another."""
        ended = subprocess.Popen(["true"])
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        self.both(ended.pid, "has ended")
        if os.geteuid() == 0:
            for word in "detach", "report":
                self.command(ended.pid, word, str(ended.pid), says="has ended", by=NOBODY)
        ended.wait()
        with Conversation([self.program, "first"], driver.fresh(f"{self.folder}/thread")) as c:
            c.say("one")
            c.has_answered(1)
            other = max(int(t) for t in os.listdir(f"/proc/{c.process.pid}/task"))
            self.both(other, f"{other} is a thread of process {c.process.pid}")


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("rights", options) as results:
        of = Rights(options, results.folder)
        for name in ("in_fault",) * options.all + ("confined", "no_files", "no_memory", "no_data", "starts_small", "starts_late", "starts_in_sandbox", "no_code", "sealed", "no_first_thread", "under_jit", "others", "no_large_files", "ended",
                     "in_vfork", "in_faults", "traced", "gets_rights", "stopped", "denied", "frozen", "executes", "rootless"):
            if driver.chosen(name, options):
                results.check(name, getattr(of, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
