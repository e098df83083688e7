#!/usr/bin/python3
"""Tools leave programs that they run under the JIT engine, and come to programs that run already: what the program does is
what it does natively, and nothing of Inlay's is left in it.

  tests/live/under_jit.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: every program, and many times.
"""

import ctypes
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
import out  # noqa: E402
import run as live  # noqa: E402

ZONE = 0x7e8000000000, 0x7ee000010000  # tool/x86_64/places.c, move/live.h
PARKED = 0x550000000000  # move/x86_64/park.h: where threads stood, until somebody comes again
LEAVES = """

static void enters(inlay_thread *t, inlay_syscall *s, void *a)
{
    if (s->number == 1 && __atomic_add_fetch((long *)a, 1, __ATOMIC_SEQ_CST) == 3) inlay_detach();
}
static void last(int status, void *a) { fprintf(inlay_out(), "%ld writes, status %d\\n", *(long *)a, status); }
"""
SLOW = """
#include <time.h>

static void enters(inlay_thread *t, inlay_syscall *s, void *a)
{
    for (time_t end = time(NULL) + 15; s->number == 1 && time(NULL) < end;) {}
}
static void last(int status, void *a) { fprintf(inlay_out(), "in the midst\\n"); }
"""
# As long as there is no file `go`.
BUSY = """
#include <unistd.h>

static void enters(inlay_thread *t, inlay_syscall *s, void *a)
{
    while (s->number == 1 && access("go", F_OK)) {}
}
static void last(int status, void *a) { fprintf(inlay_out(), "in the midst\\n"); }
"""
NUDGE, TAKEN, REPORT = -0x1ea7e, -2, 1  # run/kernel.h, jit/jit.h
RT_TGSIGQUEUEINFO = 297


class Info(ctypes.Structure):
    """siginfo_t of what is sent with a value."""
    _fields_ = [("number", ctypes.c_int), ("error", ctypes.c_int), ("code", ctypes.c_int), ("sender", ctypes.c_int * 3),
                ("value", ctypes.c_uint64), ("rest", ctypes.c_char * 96)]


# A thread with descriptors of its own, which ends when standard input does, and with it, when asked to, the program.
OWN_FILES = """#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int ends[2], all, forks;
static void *waits(void *arg)
{
    char c;
    int here = unshare(CLONE_FILES) ? -1 : dup(ends[0]);
    puts("begin");
    fflush(stdout);
    if (read(here, &c, 1) != 1) return NULL;
    if (forks && fork() == 0) exit(0);
    if (forks && wait(NULL) < 0) exit(8);
    if (all) exit(7);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    void *result;
    char c;
    all = argc > 1;
    forks = argc > 2;
    if (pipe(ends)) return 1;
    pthread_create(&thread, NULL, waits, ends);
    while (read(0, &c, 1) > 0) {}
    write(ends[1], "", 1);
    pthread_join(thread, &result);
    return result != ends;
}
"""


class UnderJit(out.Out):
    def started(self, command, folder, tool="bbcount"):
        return live.Conversation([self.inlay, "run", tool, "-o", f"{folder}/report", "--", *command], folder)

    @staticmethod
    def clean(pid, before, but=None):
        """`before`: descriptors and signals of a process that never had a tool; None: not known."""
        for low, high, _, _, name in out.mappings(pid):
            if low < ZONE[1] and high > ZONE[0]:
                raise driver.Failed(f"still mapped: {low:#x}-{high:#x} {name}")
        wrong = out.wrong_code(pid, but)
        if wrong:
            raise driver.Failed(wrong)
        if before:
            out.is_as_before(pid, before)

    def leaves(self, name):
        command, first, second = live.PROGRAMS[name]
        folder = driver.fresh(f"{self.folder}/{name}")
        before, answers, status = self.native(command, first, second + first, folder)
        with live.Conversation(command, folder, "other") as c:
            c.say(*first)
            c.rests()
            state = out.visible(c.process.pid)
        with self.started(command, folder) as c:
            c.say(*first)
            c.has_answered(before)
            self.inside("detach", c.process.pid)
            self.clean(c.process.pid, state)
            self.reported(folder)
            self.say_rest(c, second + first)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise driver.Failed(f"status {status}, here {ended}", *here.decode(errors="replace").splitlines()[-30:])

    @staticmethod
    def reported(folder):
        with open(f"{folder}/report", encoding="utf-8") as f:
            report = f.read()
        if not re.search(r"[1-9]\d* blocks executed", report):
            raise driver.Failed("there is no report", report)
        os.remove(f"{folder}/report")

    def talks(self):
        """Handlers, a stack of their own for them, threads that wait and such that compute, places to jump to."""
        program, folder = f"{self.folder}/talks", driver.fresh(f"{self.folder}/in-talks")
        if driver.build("dynamic", f"{HERE}/talks.c", program):
            return
        first, second = live.TALK
        before, answers, status = self.native([program], first, second, folder)
        with self.started([program], folder) as c:
            c.say(*first)
            c.has_answered(before)
            self.inside("detach", c.process.pid)
            self.clean(c.process.pid, None)
            self.reported(folder)
            self.say_rest(c, second)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise driver.Failed(f"status {status}, here {ended}", *here.decode(errors="replace").splitlines()[-30:])

    def join(self, tool, pid, *options, status=0, by=()):
        done = subprocess.run([*by, self.inlay, "run", *options, "--attach", str(pid), tool], capture_output=True, text=True,
                              timeout=live.LIMIT, env=driver.ENVIRONMENT)
        if done.returncode != status:
            raise driver.Failed(f"run --attach ended with {done.returncode}", done.stderr[-600:])
        return done.stderr

    def comes_and_goes(self, name, command, first, second):
        """Lines before the tool comes, while it is there, and when it has gone."""
        folder = driver.fresh(f"{self.folder}/joined-{name}")
        before, answers, status = self.native(command, first, second + first, folder)
        with live.Conversation(command, folder) as c:
            c.say(*first)
            c.has_answered(before)
            c.rests()
            state, threads = out.visible(c.process.pid), os.listdir(f"/proc/{c.process.pid}/task")
            self.join("bbcount", c.process.pid, "-o", f"{folder}/report")
            half = len(second) // 2
            c.say(*second[:half])
            c.rests()
            self.inside("detach", c.process.pid)
            self.clean(c.process.pid, state if len(threads) == 1 else None)
            self.reported(folder)
            self.say_rest(c, second[half:] + first)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise driver.Failed(f"status {status}, here {ended}", *here.decode(errors="replace").splitlines()[-30:])

    def talks_joined(self):
        program = f"{self.folder}/talks"
        if not driver.build("dynamic", f"{HERE}/talks.c", program):
            self.comes_and_goes("talks", [program], list(live.TALK[0]), list(live.TALK[1]))

    def sleeps(self):
        """A call that sleeps for a time sleeps no longer for a tool that comes, and is no shorter for one that reports or
        goes. On a busy machine it has to sleep for longer, that the tool comes in time."""
        folder, program = driver.fresh(f"{self.folder}/sleeps"), f"{self.folder}/sleeper"
        with open(f"{program}.c", "w", encoding="utf-8") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\nint main(int n, char **seconds) { struct timespec t = {atoi(seconds[1]), 0}, a, b;\n"
                    "puts(\"begin\"); fflush(stdout); clock_gettime(CLOCK_MONOTONIC, &a);\n"
                    "int r = nanosleep(&t, 0); clock_gettime(CLOCK_MONOTONIC, &b);\n"
                    "printf(\"%d %d\\n\", r, b.tv_sec * 10 + b.tv_nsec / 100000000 - a.tv_sec * 10 - "
                    "a.tv_nsec / 100000000 >= t.tv_sec * 10 - 1); return 0; }\n")
        done = subprocess.run(["gcc", "-O2", f"{program}.c", "-o", program], capture_output=True, text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        for what in ("report", "detach"):
            for seconds in (3, 30, 150):
                if self.sleeps_for(seconds, program, folder, what):
                    break
            else:
                raise driver.Failed("the tool does not come in time")
        answers, status = self.reported_until_over([program, "3"], folder, b"\n0")
        if (answers, status) != (b"begin\n0 1\n", 0):
            raise driver.Failed(f"it does not sleep as long as it is to, status {status}", answers.decode())
        ways = f"{self.folder}/waits"
        if not driver.build("dynamic", f"{HERE}/waits.c", ways):
            answers, status = self.reported_until_over([ways, "poll", "2"], folder, b"\nover\n")
            if status or b"EINTR" in answers or b"poll 0 -" not in answers:
                raise driver.Failed(f"status {status}", answers.decode())

    def sleeps_for(self, seconds, program, folder, what):
        """False: it was over too early."""
        with live.Conversation([program, str(seconds)], folder) as c:
            c.has_answered(1)
            try:
                self.join("null", c.process.pid)
                self.inside(what, c.process.pid)
            except driver.Failed:
                if c.answers().count(b"\n") > 1:
                    return False
                raise
            in_time = c.answers().count(b"\n") == 1
            answers, status = c.end()
        if (answers, status) != (b"begin\n0 1\n", 0):
            raise driver.Failed(f"status {status}", answers.decode())
        return in_time

    def reported_until_over(self, command, folder, over):
        """What begins anew at each report never ends."""
        with self.started(command, folder) as c:
            c.has_answered(1)
            end = time.monotonic() + live.LIMIT
            while over not in c.answers() and c.process.poll() is None:
                if time.monotonic() > end:
                    raise driver.Failed("it waits for as long as there are reports", c.answers().decode())
                subprocess.run([self.inlay, "report", str(c.process.pid)], capture_output=True, env=driver.ENVIRONMENT)
            return c.end()

    def cycles(self, times):
        """Tools come and go under a program that is never at rest and checks itself."""
        program, folder = f"{self.folder}/busy", driver.fresh(f"{self.folder}/in-cycles")
        done = subprocess.run(["gcc", "-O2", "-pthread", f"{HERE}/busy.c", "-o", program], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        with live.Conversation([program], folder) as c:
            c.say("begin")
            c.has_answered(1)
            for k in range(times):
                self.join(("bbcount", "null", "inscount")[k % 3], c.process.pid, "-o", f"{folder}/report")
                self.inside("detach", c.process.pid)
                self.clean(c.process.pid, None)
            c.say("end")
            answers, status = c.end()
        if status or not answers.endswith(b"all is well\n"):
            raise driver.Failed(f"status {status}", *driver.as_lines(answers)[-5:])

    def own_files(self):
        """Threads need not have the same descriptors."""
        folder, program = driver.fresh(f"{self.folder}/own-files"), f"{self.folder}/owns"
        with open(f"{program}.c", "w", encoding="utf-8") as f:
            f.write(OWN_FILES)
        done = subprocess.run(["gcc", "-O1", "-pthread", f"{program}.c", "-o", program], capture_output=True, text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        for joins in (True, False):
            with live.Conversation([program], folder) if joins else self.started([program], folder) as c:
                c.has_answered(1)
                pid = c.process.pid
                if joins:
                    self.join("bbcount", pid, "-o", f"{folder}/report")
                self.inside("detach", pid)
                self.clean(pid, None)
                left = [n for tid in os.listdir(f"/proc/{pid}/task") for n in os.listdir(f"/proc/{pid}/task/{tid}/fd")
                        if int(n) >= 1000]
                answers, status = c.end()
            if left or (answers, status) != (b"begin\n", 0):
                raise driver.Failed(f"status {status}, {left} are open", answers.decode(errors="replace"))
        for put, children in ((self.join, []), (self.join, ["one"]), (self.attach, []), (self.attach, ["one"])):
            driver.fresh(folder)
            with live.Conversation([program, "all", *children], folder) as c:
                c.has_answered(1)
                put("bbcount", c.process.pid, "-o", f"{folder}/report")
                if c.end() != (b"begin\n", 7):
                    raise driver.Failed("it does not go on", c.answers().decode(errors="replace"))
            reports = [name for name in os.listdir(folder) if name.startswith("report")]
            if len(reports) != 1 + len(children):
                raise driver.Failed("the process reports, and its child", *reports)
            for name in reports:
                with open(f"{folder}/{name}", encoding="utf-8") as f:
                    self.blocks_of(f.read())

    def fails(self):
        """A tool that ends or crashes before it begins, or whose output cannot be had: the process is as it was."""
        folder = driver.fresh(f"{self.folder}/fails")
        self.make_tool(f"{folder}/ends", "", "if (*inlay_program()) return 3;")
        self.make_tool(f"{folder}/crashes", "", "*(volatile int *)16 = 1;")
        with live.Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            state = out.visible(c.process.pid)
            for tool, options, says in ((f"{folder}/ends", (), "did not start"), (f"{folder}/crashes", (), "has crashed"),
                                        ("null", ("-o", "/nowhere/at/all"), "cannot write /nowhere/at/all")):
                said = self.join(tool, c.process.pid, *options, status=1)
                if says not in said:
                    raise driver.Failed(f"does not say '{says}'", said)
                self.clean(c.process.pid, state)
            self.join("null", c.process.pid)
            said = self.join("null", c.process.pid, status=1)
            if "under a tool" not in said:
                raise driver.Failed("twice", said)
            c.say("two")
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")

    def killed(self):
        """Whoever brings the tool is killed while its main runs: the process goes on, under the tool, which can be asked
        to leave."""
        folder = driver.fresh(f"{self.folder}/killed")
        here, go = f"{folder}/here", f"{folder}/go"
        self.make_tool(f"{folder}/slow", "#include <unistd.h>\n",
                       f"fclose(fopen(\"{here}\", \"w\")); while (access(\"{go}\", F_OK)) usleep(1000);")
        program = f"{self.folder}/busy"
        done = subprocess.run(["gcc", "-O2", "-pthread", f"{HERE}/busy.c", "-o", program], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        with live.Conversation([program], folder) as c:
            c.say("begin")
            c.has_answered(1)
            bringer = subprocess.Popen([self.inlay, "run", "--attach", str(c.process.pid), f"{folder}/slow"],
                                       start_new_session=True, stderr=subprocess.DEVNULL, env=driver.ENVIRONMENT)
            end = time.monotonic() + live.LIMIT
            while not os.path.exists(here):
                if time.monotonic() > end or bringer.poll() is not None:
                    raise driver.Failed("the tool does not come")
                time.sleep(0.01)
            with open(f"/proc/{c.process.pid}/status", encoding="utf-8") as f:
                tracer = int(re.search(r"TracerPid:\t(\d+)", f.read()).group(1))
            if not tracer:
                raise driver.Failed("nobody brings it")
            os.kill(tracer, signal.SIGKILL)
            bringer.wait()
            open(go, "w", encoding="ascii").close()
            c.say("more")
            c.has_answered(2)
            self.inside("detach", c.process.pid)
            self.clean(c.process.pid, None, PARKED)
            c.say("end")
            answers, status = c.end()
        if status or not answers.endswith(b"all is well\n"):
            raise driver.Failed(f"status {status}", *driver.as_lines(answers)[-5:])

    def busy_leaves(self, times):
        program, folder = f"{self.folder}/busy", driver.fresh(f"{self.folder}/in-busy")
        done = subprocess.run(["gcc", "-O2", "-pthread", f"{HERE}/busy.c", "-o", program], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        for k in range(times):
            with self.started([program], folder, ("bbcount", "null", "memtrace")[k % 3]) as c:
                c.say("begin")
                c.has_answered(1)
                time.sleep(0.02 * (k % 5))
                self.inside("detach", c.process.pid)
                self.clean(c.process.pid, None)
                c.say("more")
                c.has_answered(2)
                c.say("end")
                answers, status = c.end()
            if status or not answers.endswith(b"all is well\n"):
                raise driver.Failed(f"time {k}: status {status}", *driver.as_lines(answers)[-5:])

    def by_itself(self):
        """inlay_detach, from a callback."""
        folder = driver.fresh(f"{self.folder}/by-itself")
        self.make_tool(f"{folder}/tool", LEAVES,
                       "long *k = inlay_alloc(8); inlay_on_syscall_entry(enters, k); inlay_on_exit(last, k);")
        with self.started(["cat"], folder, f"{folder}/tool") as c:
            for n in range(1, 6):
                c.say(f"line {n}")
                c.has_answered(n)
                if n < 3:
                    continue
                end = time.monotonic() + live.LIMIT
                while any(low < ZONE[1] and high > ZONE[0] for low, high, *_ in out.mappings(c.process.pid)):
                    if time.monotonic() > end:
                        raise driver.Failed("the tool is still there")
                    time.sleep(0.01)
            self.clean(c.process.pid, None)
            answers, status = c.end()
        with open(f"{folder}/report", encoding="utf-8") as f:
            report = f.read()
        if (answers.count(b"\n"), status, report) != (5, 0, "3 writes, status 0\n"):
            raise driver.Failed(f"status {status}, report {report}", answers.decode())

    @staticmethod
    def blocks_of(report):
        found = re.fullmatch(r"\w+: (\d+) blocks executed, \d+ instrumented\n", report)
        if not found:
            raise driver.Failed("there is no report", report)
        return int(found[1])

    def reports(self):
        """Reports in the midst, also of several who ask at once: they count on, nothing of them stays open, and the
        program, which checks itself, notices nothing."""
        program, folder = f"{self.folder}/busy", driver.fresh(f"{self.folder}/in-reports")
        done = subprocess.run(["gcc", "-O2", "-pthread", f"{HERE}/busy.c", "-o", program], capture_output=True,
                              text=True)
        if done.returncode:
            raise driver.Failed("compile", done.stderr[-300:])
        with self.started([program], folder) as c:
            c.say("begin")
            c.has_answered(1)
            before = 0
            for _ in range(8 if self.all else 2):
                asking = [subprocess.Popen([self.inlay, "report", str(c.process.pid)], text=True, env=driver.ENVIRONMENT,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
                said = [p.communicate(timeout=live.LIMIT) for p in asking]
                if any(p.returncode for p in asking):
                    raise driver.Failed("nothing is reported", *(text for pair in said for text in pair))
                counts = [self.blocks_of(text) for text, _ in said]
                if min(counts) <= before:
                    raise driver.Failed(f"it reported {before} before, and now {counts}")
                before = max(counts)
            self.closed(c.process.pid)
            c.say("end")
            answers, status = c.end()
        with open(f"{folder}/report", encoding="utf-8") as f:
            last = self.blocks_of(f.read())
        if status or not answers.endswith(b"all is well\n") or last <= before:
            raise driver.Failed(f"status {status}, {before} blocks and then {last}", *driver.as_lines(answers)[-5:])

    @staticmethod
    def closed(pid):
        end = time.monotonic() + live.LIMIT
        while any("inlay report" in path for path in out.files_of(pid).values()):
            if time.monotonic() > end:
                raise driver.Failed("the file of a report stays open")
            time.sleep(0.01)

    def reports_late(self):
        """A thread that stays in the tool's code has perhaps what the report needs: there is none, and soon there is."""
        folder = driver.fresh(f"{self.folder}/late")
        self.make_tool(f"{folder}/tool", SLOW, "inlay_on_syscall_entry(enters, NULL); inlay_on_exit(last, NULL);")
        with self.started(["cat"], folder, f"{folder}/tool") as c:
            c.say("one")
            time.sleep(0.5)
            self.refused_inside("report", c.process.pid, "makes no report|does not come out of the tool's code")
            c.has_answered(1)
            if self.inside("report", c.process.pid) != "in the midst\n":
                raise driver.Failed("there is no report")
            if c.end() != (b"one\n", 0):
                raise driver.Failed("it does not go on")

    @staticmethod
    def await_nudge(pid, waits=True):
        """Until one waits in the kernel, or none does any more."""
        end, nudged = time.monotonic() + live.LIMIT, 1 << signal.SIGSYS - 1
        while True:
            with open(f"/proc/{pid}/task/{pid}/status") as f:
                if bool(int(re.search(r"SigPnd:\s*(\w+)", f.read()).group(1), 16) & nudged) == waits:
                    return
            if time.monotonic() > end:
                raise driver.Failed("nothing has been asked")
            time.sleep(0.01)

    @staticmethod
    def await_tracer(pid):
        """Until somebody holds it, who has been told by then that it has not come to an earlier request, or is soon."""
        end = time.monotonic() + live.LIMIT
        while True:
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                if not re.search(r"TracerPid:\t0$", f.read(), re.M):
                    return
            if time.monotonic() > end:
                raise driver.Failed("nothing is asked")

    def asked_again(self):
        """Who has waited long asks once more, and has got what he asked for at first when the process comes to that: it makes
        nothing that nobody takes."""
        folder, who = driver.fresh(f"{self.folder}/again"), 1
        self.make_tool(f"{folder}/tool", BUSY, "inlay_on_syscall_entry(enters, NULL); inlay_on_exit(last, NULL);")
        with self.started(["cat"], folder, f"{folder}/tool") as c:
            c.rests()
            c.say("one")
            out.has_run(c.process.pid, 0.1)
            for what in (REPORT, TAKEN):
                info = Info(signal.SIGSYS, 0, NUDGE, value=who << 32 | what & 0xffffffff)
                if ctypes.CDLL(None).syscall(RT_TGSIGQUEUEINFO, c.process.pid, c.process.pid, signal.SIGSYS, ctypes.byref(info)):
                    raise driver.Failed("it cannot be asked")
                self.await_nudge(c.process.pid, False)
            open(f"{folder}/go", "w", encoding="ascii").close()
            c.has_answered(1)
            c.rests()
            self.closed(c.process.pid)
            if self.inside("report", c.process.pid) != "in the midst\n":
                raise driver.Failed("there is no report")
            if c.end() != (b"one\n", 0):
                raise driver.Failed("it does not go on")

    def asked_twice(self):
        """What is asked of a process that has not come to an earlier request is asked again."""
        def ask(command):
            return subprocess.Popen([self.inlay, command, str(c.process.pid)], text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, env=driver.ENVIRONMENT)
        with self.started(["cat"], driver.fresh(f"{self.folder}/twice")) as c:
            c.say("one")
            c.has_answered(1)
            os.kill(c.process.pid, signal.SIGSTOP)
            with ask("report") as first:
                self.await_nudge(c.process.pid)
                first.kill()
            second = ask("detach")
            self.await_tracer(c.process.pid)
            os.kill(c.process.pid, signal.SIGCONT)
            said = second.communicate(timeout=live.LIMIT)[0]
            if second.returncode:
                raise driver.Failed("it stays", said)
            c.say("two")
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")

    def crowded(self):
        """A process that has reserved what tools lie in: one lies elsewhere, can be found there, and takes nothing along.
        Nothing is at chance addresses: whoever brings the tool lies where the process has something as well."""
        exact = ("setarch", "-R")
        folder, program = driver.fresh(f"{self.folder}/crowded"), f"{self.folder}/reserves"
        driver.build("dynamic", f"{HERE}/../samples/reserves.c", program, "-D_GNU_SOURCE")
        with live.Conversation([*exact, program, "eight"], folder) as c:
            c.has_answered(1)
            for _ in range(2):
                self.join("bbcount", c.process.pid, "-o", f"{folder}/report", by=exact)
                self.join("null", c.process.pid, status=1, by=exact)
                self.inside("detach", c.process.pid)
                self.reported(folder)
            c.say("and?")
            if c.end() != (b"ready\nkept\n", 0):
                raise driver.Failed("memory of the process's is gone", *c.answers().decode().splitlines())

    def refusals(self):
        folder = driver.fresh(f"{self.folder}/refusals")
        with self.started(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            said = self.inside("detach", c.process.pid, "-o", f"{folder}/elsewhere", status=1)
            if "under the JIT engine" not in said:
                raise driver.Failed("detach -o says", said)
            said = self.attach("calls", c.process.pid, status=1)
            if "under a tool" not in said:
                raise driver.Failed("attach says", said)
            listed = subprocess.run([self.inlay, "ps"], capture_output=True, text=True).stdout
            if not re.search(rf"^ *{c.process.pid} .* cat +bbcount -o .*report", listed, re.M):
                raise driver.Failed("inlay ps does not list it", listed)
            self.inside("detach", c.process.pid)
            self.refused_inside("detach", c.process.pid, "has no tool inside")
            c.say("two")
            if c.end() != (b"one\ntwo\n", 0):
                raise driver.Failed("it does not go on")


def tests(t):
    for name in live.PROGRAMS:
        if shutil.which(live.PROGRAMS[name][0][0]) and (t.all or name in ("python", "bash")):
            yield name, lambda name=name: t.leaves(name)
            yield f"{name}-joined", lambda name=name: t.comes_and_goes(name, *live.PROGRAMS[name])
    for name in ("talks", "talks_joined", "sleeps", "own_files", "fails", "by_itself", "crowded", "refusals", "reports", "asked_twice",
                 "asked_again", "killed"):
        yield name, getattr(t, name)
    if t.all:
        yield "reports_late", t.reports_late
    yield "busy", lambda: t.busy_leaves(1000 if t.all else 6)
    yield "cycles", lambda: t.cycles(1000 if t.all else 4)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("live-under-jit", options) as results:
        for name, function in tests(UnderJit(options, results.folder)):
            results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
