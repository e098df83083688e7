#!/usr/bin/python3
"""Tools come out of processes that run: what the process does afterwards is what it does natively, its code is what its
files hold, and nothing of Inlay's is left in it.

  tests/live/out.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: every program with every tool, 1,000 cycles under load, the process killed at every step.
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
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import run as live  # noqa: E402

OURS = (0x70000000, 0x74000000), (0x550100000000, 0x555000000000)  # move/boot.h


def mappings(pid):
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            fields = line.split(None, 5)
            low, high = (int(x, 16) for x in fields[0].split("-"))
            yield low, high, fields[1], int(fields[2], 16), fields[5].strip() if len(fields) > 5 else ""


def wrong_code(pid, but=None, only=""):
    """What of its code is not as in the file, or of no file. `but`: an address where there may be such. `only`: what a
    file's name ends with."""
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for low, high, how, offset, name in mappings(pid):
            if "x" not in how or name.startswith("[") or low == but or not name.endswith(only):
                continue
            if not name.startswith("/"):
                return f"code at {low:#x} that is of no file"
            with open(name, "rb") as f:
                f.seek(offset)
                bytes_there = f.read(high - low)
            memory.seek(low)
            here = memory.read(len(bytes_there))
            if here != bytes_there:
                at = next(i for i in range(len(here)) if here[i] != bytes_there[i])
                return f"{name}: other code at {low + at:#x}"
    return None


def clean(pid, before):
    """`before`: its descriptors and signals when there was no tool."""
    for low, high, _, _, name in mappings(pid):
        if any(low < b and high > a for a, b in OURS):
            raise driver.Failed(f"still mapped: {low:#x}-{high:#x} {name}")
    wrong = wrong_code(pid)
    if wrong:
        raise driver.Failed(wrong)
    is_as_before(pid, before)


def is_as_before(pid, before):
    """What is to be seen of it, once it has come out of its own handlers, which have masks."""
    end, after = time.monotonic() + live.LIMIT, visible(pid)
    while before != after and time.monotonic() < end:
        time.sleep(0.01)
        after = visible(pid)
    if before != after:
        more = [f"{fd}: {path}" for fd, path in files_of(pid).items() if fd not in before[0]]
        raise driver.Failed("something stays behind", repr(before), repr(after), *more)


def files_of(pid):
    """By descriptor; one that is closed meanwhile is none."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return found


def visible(pid):
    with open(f"/proc/{pid}/status") as f:
        signals = [line for line in f if re.match("Sig(Pnd|Blk|Ign|Cgt)|ShdPnd", line)]
    return sorted(os.listdir(f"/proc/{pid}/fd")), signals


def has_run(pid, seconds):
    """Until it has had so much more of a processor's time."""
    def ran():
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9
    end, enough = time.monotonic() + live.LIMIT, ran() + seconds
    while ran() < enough:
        if time.monotonic() > end:
            raise driver.Failed("it does not run")
        time.sleep(0.01)


FINDER = """
gdb.execute("break _dl_find_object")
gdb.execute("continue")
gdb.execute("set scheduler-locking on")
here = lambda: gdb.solib_name(gdb.selected_frame().pc()) or ""
steps = 0
while "/ld-" not in here() and steps < 100:
    gdb.execute("stepi", to_string=True)
    steps += 1
gdb.execute("stepi", to_string=True)
print("stands in", here())
gdb.execute("shell kill -STOP %d" % gdb.selected_inferior().pid)
gdb.execute("delete")
gdb.execute("detach")
"""


def stand_in_finder(pid, folder):
    """gdb leaves the process, stopped, with a thread at the second instruction of the dynamic linker's search for tables."""
    script = f"{folder}/finder.py"
    with open(script, "w", encoding="utf-8") as f:
        f.write(FINDER)
    done = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-x", script], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=live.LIMIT)
    if not re.search("^stands in .*/ld-", done.stdout, re.M):
        raise driver.Failed("gdb does not get there", done.stdout[-300:], done.stderr[-300:])


class Out(live.Live):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.all = options.all

    def inside(self, command, pid, *options, status=0):
        done = subprocess.run([self.inlay, command, *options, str(pid)], capture_output=True, text=True,
                              timeout=live.LIMIT, env=driver.ENVIRONMENT)
        if done.returncode != status:
            raise driver.Failed(f"{command} ended with {done.returncode}", done.stderr[-600:])
        return done.stderr if status else done.stdout

    def program(self, name, tool):
        """Lines before the tool comes, while it is there, and when it has gone."""
        command, first, second = live.PROGRAMS[name]
        folder = driver.fresh(f"{self.folder}/{name}-{tool}")
        before, answers, status = self.native(command, first, second + first, folder)
        with live.Conversation(command, folder) as c:
            c.say(*first)
            c.has_answered(before)
            c.rests()
            state = visible(c.process.pid)
            self.attach(tool, c.process.pid, "-o", f"{folder}/report")
            half = len(second) // 2
            c.say(*second[:half])
            c.rests()
            early = self.inside("report", c.process.pid)
            self.inside("detach", c.process.pid)
            with open(f"{folder}/report") as f:
                report = f.read()
            clean(c.process.pid, state)
            self.say_rest(c, second[half:] + first)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise driver.Failed(f"status {status}, with {tool} {ended}; natively and then:",
                                *answers.decode(errors="replace").splitlines()[-30:], "---",
                                *here.decode(errors="replace").splitlines()[-30:])
        if not re.search(r"\d", early) or not re.search(r"\d", report):
            raise driver.Failed("there is no report", early[:300], report[:300])
        if any(float(share) > 100 for share in re.findall(r"([\d.]+)%", early + report)):
            raise driver.Failed("a share of more than all", early[:300], report[-600:])

    def counts(self):
        """What is called while the tool is there is counted; a report in its midst is one of then."""
        folder, program = driver.fresh(f"{self.folder}/counts"), f"{self.folder}/talks"
        if driver.build("dynamic", f"{HERE}/talks.c", program):
            return
        with live.Conversation([program], folder) as c:
            c.say("work 5")
            c.rests()
            state = visible(c.process.pid)
            for _ in range(2):  # another tool comes when one has gone
                self.attach("calls", c.process.pid, "-o", f"{folder}/report")
                for expected in (300, 700):
                    c.say("work 300" if expected == 300 else "work 400")
                    c.rests()
                    self.counted(self.inside("report", c.process.pid), expected)
                listed = subprocess.run([self.inlay, "ps"], capture_output=True, text=True).stdout
                if not re.search(rf"^ *{c.process.pid} .* talks +calls -o {folder}/report$", listed, re.M):
                    raise driver.Failed("inlay ps does not list it", listed)
                if self.inside("detach", c.process.pid):
                    raise driver.Failed("the report should have gone to the file")
                with open(f"{folder}/report") as f:
                    self.counted(f.read(), 700)
                clean(c.process.pid, state)
                c.say("work 50")
                c.rests()
                os.remove(f"{folder}/report")
            if c.end()[1] != 9:
                raise driver.Failed("its status is another")

    def only_exit(self):
        """A tool that inserts nothing is told of the end, and comes out again."""
        folder = driver.fresh(f"{self.folder}/only-exit")
        self.make_tool(f"{folder}/tool", "static void last(int s, void *a) { fprintf(inlay_out(), \"last\\n\"); }",
                       "inlay_on_exit(last, NULL);")
        for leaves in (True, False):
            with live.Conversation(["python3", "-u", "-c", "import sys\nfor line in sys.stdin: print(eval(line))"], folder) as c:
                c.say("1 + 1")
                c.has_answered(1)
                self.attach(f"{folder}/tool", c.process.pid, "-o", f"{folder}/report")
                c.say("len(sorted(str(i) for i in range(300)))")
                c.has_answered(2)
                if leaves:
                    self.inside("detach", c.process.pid)
                c.say("sum(range(2000))")
                answers, status = c.end()
            with open(f"{folder}/report", encoding="utf-8") as f:
                report = f.read()
            if (answers, status, report) != (b"2\n300\n1999000\n", 0, "last\n"):
                raise driver.Failed(f"status {status}, {answers}, report: {report}")
            os.remove(f"{folder}/report")

    def sequence(self):
        """A thread that is stopped in a restartable sequence goes on at its abort handler, as the kernel would have it."""
        folder, program = driver.fresh(f"{self.folder}/in-sequence"), f"{self.folder}/sequence"
        if driver.build("dynamic", f"{HERE}/sequence.c", program):
            return
        with live.Conversation([program], folder) as c:
            c.has_answered(1)
            if c.answers() != b"begun\n":
                return print("there are none")
            for _ in range(3):
                self.attach("inscount", c.process.pid, "-o", f"{folder}/report")
                self.inside("detach", c.process.pid)
                os.remove(f"{folder}/report")
            answers, status = c.end()
            if status:
                raise driver.Failed(f"status {status}", answers.decode())

    def hole(self):
        """Its code is in two pieces, a page between them that is not mapped, as node's is."""
        folder, program = driver.fresh(f"{self.folder}/in-hole"), f"{self.folder}/hole"
        with open(f"{program}.c", "w") as f:
            f.write("#include <stdio.h>\n__attribute__((noinline, section(\".far\"))) int far(int n) {\n"
                    "    __asm__ volatile(\"nop; nop; nop; nop; nop; nop\");\n    return n * 3 + 1;\n}\n"
                    "int main(void) {\n    char s[99];\n    int n = 0;\n    while (fgets(s, sizeof s, stdin)) "
                    "printf(\"%d\\n\", n = far(n)), fflush(stdout);\n    return 0;\n}\n")
        where = [f"-Wl,--section-start={at}" for at in (".far=0x403000", ".rodata=0x405000", ".eh_frame_hdr=0x406000")]
        done = subprocess.run(["gcc", "-O2", "-fno-pie", "-no-pie", *where, f"{program}.c", "-o", program],
                              capture_output=True, text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        with live.Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            if [at for at, *_ in mappings(c.process.pid) if 0x402000 <= at < 0x404000] != [0x403000]:
                raise driver.Failed("the linker has left no hole")
            state = visible(c.process.pid)
            self.attach("calls", c.process.pid, "-o", f"{folder}/report")
            c.say("two")
            c.has_answered(2)
            self.inside("detach", c.process.pid)
            clean(c.process.pid, state)
            c.say("three")
            if c.end() != (b"1\n4\n13\n", 0):
                raise driver.Failed("it does not go on")

    def numbers(self):
        """A program at a low address holds numbers that are new code's addresses by chance: all of them, here. They stay;
        and new code does not lie among the small ones."""
        folder, program = driver.fresh(f"{self.folder}/in-numbers"), f"{self.folder}/numbers"
        if driver.build("no-pie", f"{HERE}/numbers.c", program):
            raise driver.Failed("numbers.c is not compiled")
        with live.Conversation([program], folder) as c:
            first, where = 0, []
            for k in range(2):
                c.say(f"{first:x}")
                c.has_answered(2 * k + 1)
                self.attach("branches", c.process.pid, "-o", f"{folder}/report")
                where.append(min(low for low, high, how, _, name in mappings(c.process.pid)
                                 if "x" in how and not name and high < 1 << 32))
                c.say("look")
                c.has_answered(2 * k + 2)
                self.inside("detach", c.process.pid)
                os.remove(f"{folder}/report")
                first = where[0]
            c.say("look")
            answers, status = c.end()
        if where[0] != where[1] or where[0] < 512 << 20:
            raise driver.Failed(f"new code lies at {where[0]:#x}, and then at {where[1]:#x}")
        if (answers, status) != (b"0 others\n" * 5, 0):
            raise driver.Failed(f"status {status}", *driver.as_lines(answers))

    def guards(self):
        """Memory that cannot be read, and memory that has never been touched, are left alone."""
        folder, program = driver.fresh(f"{self.folder}/in-guards"), f"{self.folder}/guards"
        if driver.build("dynamic", f"{HERE}/guards.c", program):
            raise driver.Failed("guards.c is not compiled")
        with live.Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            state = visible(c.process.pid)
            for k in range(2):
                self.attach("calls", c.process.pid, "-o", f"{folder}/report")
                c.say("three")
                c.has_answered(2 * k + 2)
                self.inside("detach", c.process.pid)
                clean(c.process.pid, state)
                c.say("four")
                c.has_answered(2 * k + 3)
            answers, status = c.end()
        if (answers, status) != (b"3\n5\n4\n5\n4\ndepth 20\n", 0):
            raise driver.Failed(f"status {status}", *driver.as_lines(answers))

    def signalled(self):
        """A process that gets signals all the time, with a tool whose routines take nearly all of its time. It is held
        where its signals may be delivered: without that it takes thousands of steps until it is met outside the tool."""
        folder, program = driver.fresh(f"{self.folder}/in-signalled"), f"{self.folder}/signalled"
        killer, steps = f"{folder}/killer", []
        if driver.build("dynamic", f"{HERE}/signalled.c", program) or driver.build("dynamic", f"{HERE}/killer.c", killer):
            return
        with live.Conversation([program], folder) as c:
            c.has_answered(1)
            state = visible(c.process.pid)
            for _ in range(20 if self.all else 3):
                self.attach("memtrace", c.process.pid, "--image", "signalled", "-o", f"{folder}/report")
                has_run(c.process.pid, 0.05)
                steps.append(self.steps(killer, c.process.pid, f"{folder}/steps"))
                clean(c.process.pid, state)
                if not os.path.getsize(f"{folder}/report"):
                    raise driver.Failed("nothing was traced")
            c.process.send_signal(signal.SIGTERM)
            answers, status = c.end()
            if status or not answers.endswith(b"the same\n"):
                raise driver.Failed(f"status {status}", *driver.as_lines(answers))
        if sum(steps) > 2500 * len(steps):
            raise driver.Failed(f"taking the tool out takes {steps} steps")

    def steps(self, killer, pid, counted):
        """Takes the tool out; how often that changes the process."""
        done = subprocess.run([killer, "0", "all", str(pid), counted, "0", self.inlay, "detach", str(pid)],
                              capture_output=True, text=True, timeout=live.LIMIT, env=driver.ENVIRONMENT)
        if done.returncode:
            raise driver.Failed(f"detach ended with {done.returncode}", done.stderr[-600:])
        with open(counted, encoding="ascii") as f:
            return int(f.read().split()[0])

    def pending(self):
        """What is pending stays so that a program ignores, be it by default."""
        folder, program, source = driver.fresh(f"{self.folder}/in-pending"), f"{self.folder}/pending", f"{self.folder}/pending.c"
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <signal.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
                    "int main(void)\n{\n    sigset_t all;\n    siginfo_t how;\n    char line[99];\n    sigfillset(&all);\n"
                    "    signal(SIGUSR1, SIG_IGN);\n    sigprocmask(SIG_BLOCK, &all, NULL);\n    int child = fork();\n"
                    "    if (!child) _exit(3);\n    waitid(P_PID, child, &how, WEXITED | WNOWAIT);\n    kill(getpid(), SIGUSR1);\n"
                    "    while (fgets(line, sizeof line, stdin)) fputs(line, stdout), fflush(stdout);\n"
                    "    return sigwaitinfo(&all, &how) + sigwaitinfo(&all, &how);\n}\n")
        if driver.build("dynamic", source, program):
            return
        with live.Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            state = visible(c.process.pid)
            self.attach("inscount", c.process.pid, "-o", f"{folder}/report")
            self.inside("detach", c.process.pid)
            clean(c.process.pid, state)
            answers, status = c.end()
        if answers != b"one\n" or status != signal.SIGCHLD + signal.SIGUSR1:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    @staticmethod
    def counted(report, expected):
        found = re.search(r"^ *(\d+) +work\b", report, re.M)
        if not found or int(found[1]) != expected:
            raise driver.Failed(f"work was called {expected} times", *report.splitlines()[:12])

    def busy(self, cycles, tools):
        """Tools come and go under a program that is never at rest and checks itself."""
        program, folder = f"{self.folder}/busy", driver.fresh(f"{self.folder}/in-busy")
        done = subprocess.run(["gcc", "-O2", "-pthread", f"{HERE}/busy.c", "-o", program], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        with live.Conversation([program], folder) as c:
            c.say("begin")
            c.has_answered(1)
            pid, state = c.process.pid, None
            for k in range(cycles):
                if k == 1:  # the C library has what it keeps, the kernel its larger table of descriptors
                    state = self.size(pid)
                self.attach(tools[k % len(tools)], pid, "-o", f"{folder}/report")
                self.inside("detach", pid)
                wrong = wrong_code(pid)
                if wrong:
                    raise driver.Failed(f"after {k + 1} cycles: {wrong}")
            now = self.size(pid)
            c.say("end")
            answers, status = c.end()
        if status or not answers.endswith(b"all is well\n"):
            raise driver.Failed(f"status {status}", *driver.as_lines(answers)[-5:])
        if state and (now[0] > state[0] + 2 or now[1] != state[1] or now[2] > 2 * state[2] + 4096):
            raise driver.Failed(f"it grows: mappings, descriptors, kB: {state} {now}")

    @staticmethod
    def size(pid):
        with open(f"/proc/{pid}/status") as f:
            kilobytes = int(re.search(r"VmRSS:\s*(\d+)", f.read())[1])
        return len(list(mappings(pid))), len(os.listdir(f"/proc/{pid}/fd")), kilobytes

    def refused_inside(self, command, pid, says, status=1):
        said = self.inside(command, pid, status=status)
        if not re.search(says, said):
            raise driver.Failed(f"does not say '{says}'", said)

    def refusals(self):
        self.refused_inside("detach", 4194305, "there is no process")
        self.refused_inside("report", "x", "not the number of a process", status=2)
        with live.Conversation(["cat"], driver.fresh(f"{self.folder}/none")) as c:
            c.say("one")
            c.has_answered(1)
            self.refused_inside("detach", c.process.pid, "has no tool inside")
            self.attach("inscount", c.process.pid, "-o", f"{self.folder}/none/report")
            tracer = subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(c.process.pid)], stderr=subprocess.PIPE)
            tracer.stderr.readline()
            self.refused_inside("detach", c.process.pid, "is traced by process")
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
            self.inside("detach", c.process.pid)
            c.say("two")
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")

    def apart(self):
        """Who ends what one has begun that was killed is waited for: it is known by its name."""
        folder = driver.fresh(f"{self.folder}/apart")
        os.symlink(shutil.which("strace"), f"{folder}/inlay-apart")
        with live.Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            for command in (["attach", "inscount", "-o", f"{folder}/report"], ["detach"]):
                tracer = subprocess.Popen([f"{folder}/inlay-apart", "-o", "/dev/null", "-p", str(c.process.pid)],
                                          stderr=subprocess.PIPE)
                tracer.stderr.readline()
                with subprocess.Popen([self.inlay, *command, str(c.process.pid)], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT) as waiting:
                    time.sleep(0.7)
                    tracer.send_signal(signal.SIGINT)
                    tracer.wait()
                    said = waiting.communicate(timeout=live.LIMIT)[1]
                if waiting.returncode:
                    raise driver.Failed(f"{command[0]} does not wait for it", said)
            c.say("two")
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")

    def stopped(self):
        """A process that job control has stopped stays so."""
        with live.Conversation(["cat"], driver.fresh(f"{self.folder}/stopped")) as c:
            c.say("one")
            c.has_answered(1)
            self.attach("calls", c.process.pid)
            c.process.send_signal(signal.SIGSTOP)
            self.inside("detach", c.process.pid)
            c.say("two")
            c.has_state("T")
            if c.answers() != b"one\n":
                raise driver.Failed("it was set going")
            c.process.send_signal(signal.SIGCONT)
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")

    def dies(self, each):
        """The process is killed at one step after the other of its tool's leaving: whoever takes it out says so and ends.
        Steps are what the other process is changed by, as strace sees them."""
        folder = driver.fresh(f"{self.folder}/dies")
        steps, tried, step = None, 0, 1
        while steps is None or step <= steps:
            with live.Conversation(["cat"], folder) as c:
                c.say("one")
                c.has_answered(1)
                self.attach("calls", c.process.pid, "-o", f"{folder}/report")
                kill = [] if steps is None else ["-e", f"inject=ptrace,process_vm_writev:delay_enter=1:when={step}"]
                if os.path.exists(f"{folder}/trace"):
                    os.remove(f"{folder}/trace")  # no lines of the last one are waited for
                trace = subprocess.Popen(["strace", "-f", "-o", f"{folder}/trace", "-e",
                                          "trace=ptrace,process_vm_writev", *kill, self.inlay, "detach",
                                          str(c.process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         text=True)
                if steps is not None:
                    self.wait_for_lines(f"{folder}/trace", step, trace)
                    c.process.kill()
                said = trace.communicate(timeout=live.LIMIT)[1]
                if steps is None:
                    with open(f"{folder}/trace") as f:
                        steps = sum("ptrace(" in line or "process_vm_writev(" in line for line in f)
                    continue
                if trace.returncode not in (0, 1) or "inlay: " not in said:
                    raise driver.Failed(f"step {step} of {steps}: status {trace.returncode}", said[-300:])
            tried += 1
            step += each
        return f"{tried} of {steps} steps"

    @staticmethod
    def wait_for_lines(path, count, process):
        end = time.monotonic() + live.LIMIT
        while process.poll() is None and time.monotonic() < end:
            if os.path.exists(path):
                with open(path) as f:
                    if sum(1 for _ in f) >= count:
                        return
            time.sleep(0.0002)

    def comes_out(self, process, tries=5):
        """On a busy machine a thread may not be met outside of exceptions in time: then the tool stays, and that is said."""
        for _ in range(tries):
            done = subprocess.run([self.inlay, "detach", str(process.pid)], capture_output=True, text=True,
                                  env=driver.ENVIRONMENT)
            if done.returncode == 0:
                return
            if "does not come out" not in done.stderr:
                break
        raise driver.Failed(f"detach ended with {done.returncode}", done.stderr[-600:], f"its status: {process.poll()}")

    def unwinds(self, cycles, *flags, more=0, handler=0, tries=5):
        """Exceptions are on their way whenever the tool comes or goes, and arrive. In a static program `more` threads take
        turns at a lock of the unwinder's. `handler`: one takes so many microseconds, a quarter of the time;
        a short one comes whenever a thread is let run."""
        self.survives(cycles, ["g++", *flags], "unwinds.cc", str(more), str(handler), tries=tries)

    def finds(self):
        """A thread stands in what looks unwind tables up, of which nothing else has moved in its image: at the second
        instruction, under the jump to new code."""
        program = self.compiled(["gcc"], "finds.c")
        with live.Conversation([program], os.path.dirname(program)) as c:
            c.rests()
            stand_in_finder(c.process.pid, os.path.dirname(program))
            self.attach("calls", c.process.pid, "--image", "program", "-o", f"{program}.report")
            os.kill(c.process.pid, signal.SIGCONT)
            time.sleep(0.1)
            self.comes_out(c.process)
            self.is_caught(c)

    def faulting(self):
        """A thread is stopped in front of the signal of a fault, most of the time: that is the instruction's where it
        stands, and keeps nobody in the tool's code."""
        program = self.compiled(["gcc"], "faulting.c")
        with live.Conversation([program], os.path.dirname(program)) as c:
            c.rests()
            for way in (["attach", "calls"], ["run", "calls", "--attach"]) * (20 if self.all else 3):
                done = driver.run([self.inlay, *way, str(c.process.pid), "-o", f"{program}.report"], live.LIMIT)
                if done.status:
                    raise driver.Failed(*driver.as_lines(done.stderr))
                self.inside("report", c.process.pid)
                self.comes_out(c.process, tries=1)
            self.is_caught(c)

    def reopening(self):
        """A library has gone, or has come, when the tool is put in, and there is something else where it was: no jumps are
        written over that, and it is attached to once what is there is known."""
        library = self.compiled(["gcc", "-shared", "-fPIC"], "plugin.c")
        program = self.compiled(["gcc"], "reopens.c")
        with live.Conversation([program, library], os.path.dirname(program)) as c:
            c.rests()
            for _ in range(60 if self.all else 8):
                self.attach("calls", c.process.pid, "--image=program", "-o", f"{program}.report")
                self.comes_out(c.process)
            self.is_caught(c)
        with live.Conversation([program, library, "unmapped"], os.path.dirname(program)) as c:
            c.rests()
            self.attach("calls", c.process.pid, "--image=program", "-o", f"{program}.report")
            c.say("a")
            c.rests()
            self.comes_out(c.process)
            self.is_caught(c, b"unmapped\ncaught\n")

    def executing(self):
        """A process that executes one program after another: it is attached to once that is over."""
        program = self.compiled(["gcc"], "executes.c")
        for way in (["attach", "bbcount"], ["run", "bbcount", "--attach"]):
            with live.Conversation([program, "150"], os.path.dirname(program)) as c:
                done = driver.run([self.inlay, *way, str(c.process.pid), "-o", f"{program}.report"], live.LIMIT)
                if done.status:
                    raise driver.Failed(*driver.as_lines(done.stderr))
                self.is_caught(c, b"caught x\n")
                with open(f"{program}.report", encoding="utf-8") as f:
                    if not re.search(r"[1-9]\d* blocks", f.read()):
                        raise driver.Failed(f"{way[0]}: nothing was counted")

    @staticmethod
    def is_caught(c, answer=b"caught\n"):
        c.say("x")
        ended = c.end()
        if ended != (answer, 5):
            raise driver.Failed(f"it ended with {ended}")

    def compiled(self, compiler, source):
        program = f"{driver.fresh(f'{self.folder}/{source}')}/program"
        made = driver.run([*compiler, "-O2", "-pthread", f"{HERE}/{source}", "-o", program], live.LIMIT)
        if made.status:
            raise driver.Failed(f"{source} is not compiled", *driver.as_lines(made.stderr)[:4])
        return program

    def survives(self, cycles, compiler, source, *args, tries=5):
        """The program ends as it should, after the tool has been there so often."""
        program = self.compiled(compiler, source)
        with live.Conversation([program, *args], os.path.dirname(program)) as c:
            c.rests()
            for k in range(cycles):
                self.attach("calls", c.process.pid, "-o", f"{program}.report")
                time.sleep(0.1)
                self.comes_out(c.process, tries)
                time.sleep(0.1)
                if c.process.poll() is not None:
                    raise driver.Failed(f"it ended with {c.process.returncode} in cycle {k + 1}")
            self.is_caught(c)

    def server(self, cycles):
        """redis-server under redis-benchmark: no request is lost while tools come and go."""
        folder = driver.fresh(f"{self.folder}/redis")
        socket = f"{folder}/socket"
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
                                  stdout=subprocess.DEVNULL)
        try:
            while not os.path.exists(socket):
                time.sleep(0.05)
            load = subprocess.Popen(["redis-benchmark", "-s", socket, "-n", "100000000", "-t", "set,get,lpush", "-q"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(0.3)
            for k in range(cycles):
                self.attach(live.TOOLS[k % 2], server.pid, "-o", f"{folder}/report")
                self.inside("detach", server.pid)
                if load.poll() is not None:
                    raise driver.Failed(f"after {k + 1} cycles redis-benchmark ended", load.stderr.read()[-300:])
            load.kill()
            load.wait()
            wrong = wrong_code(server.pid)
            if wrong:
                raise driver.Failed(wrong)
            answer = subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True, text=True).stdout
            if answer != "PONG\n":
                raise driver.Failed("it does not answer", answer)
        finally:
            server.kill()
            server.wait()


def tests(out):
    for n, name in enumerate(live.PROGRAMS):
        if shutil.which(live.PROGRAMS[name][0][0]) and (out.all or name in ("bash", "awk", "perl")):
            for tool in live.TOOLS if out.all else live.TOOLS[n % len(live.TOOLS):][:1]:
                yield f"{name}-{tool}", lambda name=name, tool=tool: out.program(name, tool)
    for name in ("counts", "only_exit", "sequence", "hole", "refusals", "apart", "stopped", "signalled", "pending", "numbers", "guards",
                 "executing", "faulting", "reopening"):
        yield name, getattr(out, name)
    yield "busy", lambda: out.busy(1000 if out.all else 3, ("inscount", "calls", "branches"))
    yield "unwinds", lambda: out.unwinds(200 if out.all else 5)
    yield "unwinds-interrupted", lambda: out.unwinds(100 if out.all else 3, handler=1000)
    yield "unwinds-pressed", lambda: out.unwinds(100 if out.all else 3, more=1, handler=100, tries=1)
    yield "unwinds-static", lambda: out.unwinds(200 if out.all else 3, "-static")
    yield "queues", lambda: out.survives(100 if out.all else 2, ["gcc"], "queues.c", "4", tries=1)
    if shutil.which("gdb"):
        yield "finds", out.finds
    yield "unwinds-several", lambda: out.unwinds(200 if out.all else 2, "-static", more=3)
    if shutil.which("strace"):
        yield "dies", lambda: print("dies:", out.dies(1 if out.all else 37))
    if out.all and shutil.which("redis-server"):
        yield "redis", lambda: out.server(1000)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("live-out", options) as results:
        for name, function in tests(Out(options, results.folder)):
            results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
