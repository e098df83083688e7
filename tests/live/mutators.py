#!/usr/bin/python3
"""Mutators (include/inlay/process.h): what they insert in processes that run counts what happens, what they remove is
gone, and the processes answer as they do natively.

  tests/live/mutators.py [--build DIR] [--only PATTERN] [--keep]

The mutator (mutator.c) obeys lines; the processes are conversations as in run.py. --only '*' are all.
"""

import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", HERE]
import driver  # noqa: E402
from run import LIMIT, PROGRAMS, TALK, Conversation, call_of, state_of  # noqa: E402

QUICK = "talks-dynamic,talks-static,python,events-threads,events-exec,events-libraries,opened,gone,breakpoint,lost,once-dynamic,once-static,once-python,create,create-killed," \
        "create-wrong,create-dynamic,create-static,removed,order,stopped,left,several,example,wrong"
# Procedures that are at work between two lines.
BUSY = {"python": ("PyObject_Malloc", "PyList_Append", "malloc"), "bash": ("xmalloc", "fork", "malloc"),
        "awk": ("malloc", "memchr", "fflush"), "sqlite": ("sqlite3_step", "malloc", "sqlite3_prepare_v2"),
        "perl": ("Perl_runops_standard", "malloc", "Perl_sv_setsv_flags"), "bc": ("malloc", "read", "write")}


class Mutator:
    """One that waits for orders."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=driver.ENVIRONMENT, bufsize=1)

    def asks(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().rstrip("\n")
        if not answer:
            raise driver.Failed(f"the mutator has ended at '{line}' with {self.process.wait(LIMIT)}")
        return answer

    def does(self, *lines):
        """The last answer."""
        for line in lines:
            answer = self.asks(line)
            if not answer.startswith("ok"):
                raise driver.Failed(f"'{line}' is refused", answer)
        return answer[3:]

    def number(self, name):
        return int(self.does(f"read {name}"))

    def number_of(self, line, answer="ok"):
        """What it is answered."""
        words = self.asks(line).split()
        if words[0] != answer:
            raise driver.Failed(f"'{line}' is answered by", " ".join(words))
        return int(words[1])

    def inserts(self, point, proc, code):
        """The handles; or why not."""
        answer = self.asks(f"insert {point} {proc} {code}")
        return range(*map(int, answer.split()[1:])) if answer.startswith("ok") else answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def text_of(pid):
    """The code of files in a process, by mapping."""
    found = {}
    with open(f"/proc/{pid}/maps") as f, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ [1-9]\d* +(/.*)", line)
            if not m:
                continue
            mem.seek(int(m[1], 16))
            found[m[0]] = mem.read(int(m[2], 16) - int(m[1], 16))
    return found


def mappings_of(pid):
    with open(f"/proc/{pid}/maps") as f:
        return sum(1 for _ in f)


class Mutators:
    def __init__(self, options, folder):
        self.folder, self.program, self.inlay = folder, f"{folder}/mutator", f"{options.build}/inlay"
        done = subprocess.run([f"{options.build}/inlay", "cc", "-O2", "-Wall", "-Wextra", "-Werror",
                               f"{HERE}/mutator.c", "-o", self.program], capture_output=True, text=True,
                              env=driver.ENVIRONMENT)
        if done.returncode:
            raise driver.Failed("the mutator is not compiled", done.stderr[-600:])

    def native(self, command, lines, folder):
        with Conversation(command, folder, "native") as c:
            c.say(*lines)
            return c.end()

    def same(self, name, command, first, second, between, after=lambda m, c: None):
        """`between` happens between the lines, `after` when all have been answered, before the end."""
        folder = driver.fresh(f"{self.folder}/{name}")
        expected = self.native(command, first + second, folder)
        lines = self.native(command, first, folder)[0]
        lines = lines.count(b"\n") - lines.count(b"end 0\n")
        with Conversation(command, folder) as c, Mutator(self.program) as m:
            c.say(*first)
            c.has_answered(lines)
            m.does(f"attach {c.process.pid}")
            between(m, c)
            c.say(*second)
            if second[-1] != "exit 4":
                c.has_answered(expected[0].count(b"\n") - expected[0].count(b"end 0\n"))  # which comes at the end
                after(m, c)
            here = c.end()
        if here != expected:
            raise driver.Failed(f"status {expected[1]}, with a mutator {here[1]}; natively and then:",
                                *expected[0].decode(errors="replace").splitlines()[-20:], "---",
                                *here[0].decode(errors="replace").splitlines()[-20:])

    # --- what is to hold

    def build(self, form):
        program = f"{self.folder}/talks-{form}"
        return program if os.path.exists(program) or not driver.build(form, f"{HERE}/talks.c", program) else None

    def talks(self, form):
        """Calls are counted at entries and exits, in the loop of a frame that was there, by one thread of many."""
        program = self.build(form)
        if not program:
            return

        def between(m, _):
            m.inserts("entry", "work", "static long in; if ($thread == 0) in++")
            m.inserts("exit", "work", "static long out; if ($thread == 0) out++")
            m.inserts("block", "work", "static long blocks; if ($thread == 0) blocks++")
            m.does("commit")

        def after(m, _):
            seen = [m.number(name) for name in ("in", "out", "blocks")]
            if seen[:2] != [1000, 1000] or seen[2] < 50000:
                raise driver.Failed("work was called 1000 times", repr(seen))

        self.same(f"talking-{form}", [program], TALK[0], TALK[1], between, after)

    def program_is(self, name):
        """Several procedures, at entries and exits; then removed, while it goes on."""
        command, first, second = PROGRAMS[name]

        def between(m, _):
            for k, proc in enumerate(BUSY[name]):
                m.inserts("entry", proc, f"static long in{k}; in{k}++")
                m.inserts("exit", proc, f"static long out{k}; out{k}++")
            m.does("commit")

        def after(m, c):
            seen = [m.asks(f"read {way}{k}") for k in range(len(BUSY[name])) for way in ("in", "out")]
            if not any(re.match("ok [1-9]", answer) for answer in seen):
                raise driver.Failed("nothing was counted", *seen)

        self.same(f"program-{name}", command, first, second, between, after)

    def removed(self):
        """Insertions come and go while it works: at the end its code is what it was when the tool had come, and mappings
        have not become more."""
        program = self.build("dynamic")
        if not program:
            return

        def between(m, c):
            pid = c.process.pid
            for i in m.inserts("entry", "work", "static long n; n++"):
                m.does("commit", f"remove {i}", "commit")
            before, many = text_of(pid), mappings_of(pid)
            for turn in range(24):
                here = [*m.inserts("entry", "work", "static long n; n++"),
                        *m.inserts("block", "on_signal", "static long s; s++"),
                        *m.inserts("insn", "malloc" if turn % 2 else "write", "static long w; w++")]
                m.does("commit")
                if turn == 20 and text_of(pid) == before:
                    raise driver.Failed("nothing was inserted")
                m.does(*(f"remove {i}" for i in here), "commit")
            if text_of(pid) != before:
                raise driver.Failed("the code is not what it was")
            if mappings_of(pid) > many + 50:
                raise driver.Failed(f"{many} mappings have become {mappings_of(pid)}")

        self.same("removed", [program], TALK[0], TALK[1], between)

    def order(self):
        """Snippets of one point run in the order of their insertion, also when the first comes last."""
        def between(m, _):
            one, = m.inserts("entry", "work", "static long a; a = a * 2 + 1")
            m.does("commit")
            m.inserts("entry", "work", "static long b; b++")
            m.does("commit", f"remove {one}", "commit")

        def after(m, _):
            if m.number("a") or m.number("b") != 100:
                raise driver.Failed("a is 0 and b 100", str(m.number("a")), str(m.number("b")))

        program = self.build("dynamic")
        if program:
            self.same("order", [program], ("settings",), ("work 100",), between, after)

    def order_many(self):
        """Several at one point, in one stop and in several: behind those there, or in front of them (first); those that
        stay keep their order when one goes."""
        variable = "*(unsigned long *)&seen"

        def digit(n):
            return f"{variable} = {variable} * 10 + {n}"

        def seen(m, c, wanted):
            count = c.answers().count(b"\n")
            m.does(f"value 0 {variable} = 0")
            c.say("work 1")
            c.has_answered(count + 1)
            found = m.asks(f"value 0 {variable}")
            if found.split("|")[2] != wanted:
                raise driver.Failed(f"seen is {wanted}", found)

        def between(m, c):
            for point, n in ("entry", 1), ("entry", 2), ("entry", 3):
                m.inserts(point, "work", digit(n))
            m.does("commit")
            seen(m, c, "123")
            m.inserts("first", "work", digit(4))
            m.does("commit")
            seen(m, c, "4123")
            five, = m.inserts("entry", "work", digit(5))
            m.does("commit")
            m.inserts("first", "work", digit(6))
            m.inserts("first", "work", digit(7))
            m.inserts("entry", "work", digit(8))
            m.does("commit")
            seen(m, c, "76412358")
            m.does(f"remove {five}", "commit")
            seen(m, c, "7641238")

        program = self.build("dynamic")
        if program:
            with Conversation([program], driver.fresh(f"{self.folder}/order_many")) as c, Mutator(self.program) as m:
                c.say("work 1")
                c.has_answered(1)
                m.does(f"attach {c.process.pid}")
                between(m, c)

    def stopped(self):
        """A change of a process that stands still; it goes on when it is told to."""
        program = self.build("dynamic")

        def between(m, c):
            m.does("stop")
            if state_of(c.process.pid) != "t":
                raise driver.Failed("it does not stand still")
            m.inserts("entry", "work", "static long n; n++")
            m.does("commit", "continue")

        def after(m, _):
            if m.number("n") != 60:
                raise driver.Failed("work was called 60 times", str(m.number("n")))

        if program:
            self.same("stopped", [program], ("work 3", "settings"), ("work 60",), between, after)

    def left(self):
        """The mutator is killed: the process goes on, and what was inserted goes on counting (as its own memory shows)."""
        program, folder = self.build("dynamic"), driver.fresh(f"{self.folder}/left")
        if not program:
            return
        expected = self.native([program], TALK[0] + TALK[1], folder)
        with Conversation([program], folder) as c, Mutator(self.program) as m:
            c.say(*TALK[0])
            c.has_answered(self.native([program], TALK[0], folder)[0].count(b"\n") - 1)
            m.does(f"attach {c.process.pid}")
            m.inserts("insn", "work", "static long n; n++")
            m.does("commit")
            m.process.kill()
            c.say(*TALK[1])
            here = c.end()
        if here != expected:
            raise driver.Failed("it does not go on as it was", *here[0].decode(errors="replace").splitlines()[-10:])

    def several(self):
        """Two processes of one mutator, and the same procedure in both."""
        program, folder = self.build("dynamic"), driver.fresh(f"{self.folder}/several")
        if not program:
            return
        with Conversation([program], folder, "a") as a, Conversation([program], folder, "b") as b, \
                Mutator(self.program) as m:
            for c in (a, b):
                c.say("settings")
                c.has_answered(1)
                m.does(f"attach {c.process.pid}")
                m.inserts("entry", "work", "static long n; n++")
                m.does("commit")
            a.say("work 10")
            b.say("work 20")
            for c in (a, b):
                c.has_answered(2)
            m.does("use 1")
            second = m.number("n")
            a.end()
            m.does("use 0")
            end = time.monotonic() + LIMIT
            while not m.does("status").startswith("ended") and time.monotonic() < end:
                time.sleep(0.05)
            if second != 20:
                raise driver.Failed("b has worked 20 times", str(second))
            if b.end()[1] != 9:
                raise driver.Failed("b has failed")

    def example(self):
        """examples/live/count.c, on a program of the distribution."""
        count, folder = f"{self.folder}/count", driver.fresh(f"{self.folder}/example")
        done = subprocess.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror",
                               f"{HERE}/../../examples/live/count.c", "-o", count], capture_output=True, text=True,
                              env=driver.ENVIRONMENT)
        if done.returncode:
            raise driver.Failed("it is not compiled", done.stderr[-600:])
        code = "while True:\n    print(len([str(i) for i in range(50)]), flush=True)\n    input()\n"
        with Conversation(["/usr/bin/python3", "-c", code], folder) as c:
            c.has_answered(1)
            counting = subprocess.Popen([count, str(c.process.pid), "4", "read", "no_such"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=driver.ENVIRONMENT)
            while counting.poll() is None:
                c.say("x")
                time.sleep(0.05)
            out, err = counting.communicate()
            if counting.returncode or "no procedure no_such" not in err or not re.search(r"[1-9]\d* +read", out):
                raise driver.Failed(f"it ends with {counting.returncode}", out, err)
            before = c.answers().count(b"\n")
            c.say("x")
            c.has_answered(before + 1)

    # --- once

    def once(self, form):
        """Values by name and type, read and written; snippets and calls, in threads that wait and one that computes."""
        program = f"{self.folder}/once-{form}"
        if driver.build(form, f"{HERE}/once.c", program, "-g"):
            return
        with Conversation([program], driver.fresh(f"{self.folder}/once")) as c, Mutator(self.program) as m:
            c.has_answered(1)
            self.waits_in_calls(c.process.pid)
            m.does(f"attach {c.process.pid}")
            for text, expected in (
                    ("config.limit", "int|i|42|"), ("*config.name", "char|i|104|"), ("config.ratio", "float|f|0.5|"),
                    ("config.in[1].a", "short|i|-4|"), ("config.in[1].d", "double|f|6.25|"),
                    ("config.in", "struct inner *|p|"), ("config.bits", "int|i|17|"), ("config.neg", "int|i|-3|"),
                    ("color", "enum color|u|5|"), ("@config", "struct config|s|-|"), ("@array", "int [10]|s|-|"),
                    ("@counter", "long|i|1000|"), ("counter = 77", "long|i|77|"), ("counter", "long|i|77|"),
                    ("config.in[1].d = 2.5", "double|f|2.5|"), ("config.limit += 8", "int|i|50|"),
                    ("config.bits = 3", "void|0|"), ("config.bits", "int|i|3|"), ("config.neg", "int|i|-3|"),
                    ("{ long s = 0; for (long i = 0; i < 8; i++) s += array[i]; counter = s; }", "void|0|"),
                    ("counter", "long|i|31|"), ("mix(2, 3.5, 0.25, 100, 1.5)", "double|f|30.5|"),
                    ("half(5)", "float|f|2.5|"), ("*(greet(\"you\") + 3)", "char|i|121|"),
                    ("six(1, 2, 3, 4, 5, 6)", "long|i|654321|"),
                    ("eight(1, 2, 3, 4, 5, 6, 7, 8)", "long|i|654265|"), ("eight(0, 0, 0, 0, 0, 0, six(1,0,0,0,0,0), -9)", "long|i|9|"),
                    ("swapped(pair).a", "long|i|4|"), ("of_mixed(mixed, 3)", "double|f|25.5|"),
                    ("of_mixed(halved(mixed), swapped(swapped(pair)).a)", "double|f|8|"),
                    ("moved(large, 10).v[4]", "long|i|15|"), ("moved(moved(large, 10), 100).v[0]", "long|i|111|"),
                    ("pair = swapped(pair)", "void|0|"), ("pair.a", "long|i|4|"), ("(long)doubled(huge)", "long|i|10|"),
                    ("huge = -3", "void|0|"), ("(int)huge", "int|i|-3|"),
                    ("twelve(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5)", "double|f|656|"), ("min(counter, 9) ? 5 : six(1, 1, 1, 1, 1, 1)", "long|i|5|")):
                self.answers(m, f"value 0 {text}", "ok " + expected)
            for text, expected in (
                    ("pair", f"struct pair|s|4 {'0 ' * 7}3 {'0 ' * 7}"),
                    ("swapped(pair)", f"struct pair|s|3 {'0 ' * 7}4 {'0 ' * 7}"),
                    ("moved(large, 1)", "struct large|s|" + "".join(f"{k} {'0 ' * 7}" for k in (2, 3, 4, 5, 6))),
                    ("huge", f"__int128|s|fd {'ff ' * 15}"), ("config.ratio", "float|f|0 0 0 3f ")):
                self.answers(m, f"bytes 0 {text}", "ok " + expected)
            for line, says in (("value 0 $arg0", "point"), ("value 0 nothing", "not known"), ("value 77 1", "no thread"),
                               ("value 0 *(long *)8", "nothing to read"), ("value 0 *(long *)&half = 1", "cannot write"),
                               ("value 0 { while (1) ; }", "does not come to its end")):
                answer = m.asks(line)
                if not (answer.startswith("no ") and says in answer):
                    raise driver.Failed(f"'{line}' is answered by", answer)
            self.routines(m, c.process.pid)
            static = form.startswith("static")  # where the C library is not told from the program: threads that wait
            if static:
                self.answers(m, "value 2 half(3)", "no thread")
            for thread in range(2 if static else 3):
                self.answers(m, f"value {thread} half(3)", "ok float|f|1.5|")
                self.answers(m, f"call {thread} half f f:7", "ok |f|3.5|")
            for thread, within in ((0, "main"), (1, "waits"), (3, "asked"), (3, "interrupted"), (4, "polls makes")):
                self.stands_in(m, thread, within)
            if "no thread" not in m.asks("stack 77"):
                raise driver.Failed("the stack of no thread", m.asks("stack 77"))
            self.answers(m, "call 0 mix d i:2 d:3.5 f:0.25 i:100 d:1.5", "ok |f|30.5|")
            self.answers(m, "call 1 six i i:1 i:2 i:3 i:4 i:5 i:6", "ok |i|654321|")
            self.loads(m, form)
            m.inserts("entry", "six", "static long n; n++")
            for k in range(200):  # what the failing one has put into the process stays there
                m.inserts("entry", "half", f"static long more{k}; more{k}++")
            self.answers(m, "value 0 own_fault(8)", "no the procedure that was called has failed at")
            m.inserts("entry", "eight", "static long deep; deep = " + "".join(f"$arg0 != {k} ? (" for k in range(18)) + "$arg0" + ") : 0" * 18)
            m.inserts("entry", "step", "static long steps; steps++")
            m.does("commit")
            for _ in range(20):
                self.stands_in(m, 2, "works")
            if "too deep" not in m.asks("why eight") or "too deep" in m.asks("why six"):
                raise driver.Failed("what cannot be woven is told", m.asks("why eight"), m.asks("why six"))
            for turn in (0, 1, 0 if static else 2):
                self.answers(m, f"call {turn} six i i:1 i:2 i:3 i:4 i:5 i:6", "ok |i|654321|")
            if m.number("n") != 3 or ":2 " not in m.does("threads"):
                raise driver.Failed("six was called three times", m.asks("read n"), m.asks("threads"))
            c.say("x")
            if c.end() != (b"ready\n31 50 2.500 0\n", 8):
                raise driver.Failed("it does not go on with what was written", *map(repr, c.end()))

    @staticmethod
    def waits_in_calls(pid):
        """The threads of once.c have come to where they wait: in read, in a handler's nanosleep, in poll."""
        calls, end = {1: (0,), 3: (35, 230), 4: (7,)}, time.monotonic() + LIMIT
        while True:
            tids = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
            here = [call_of(pid, tid) for tid in tids]
            if len(tids) == 5 and all(here[k] and here[k][0] in numbers for k, numbers in calls.items()):
                return
            if time.monotonic() > end:
                raise driver.Failed("its threads do not come there", repr(here))
            time.sleep(0.01)

    @staticmethod
    def stands_in(m, thread, within):
        """Its stack. A thread that computes may be in what was inserted just then."""
        for _ in range(200):
            answer = m.asks(f"stack {thread}")
            if answer.startswith("ok") or "inserted" not in answer:
                break
        if f" {within} " not in answer:
            raise driver.Failed(f"the stack of thread {thread}", answer)

    def routines(self, m, pid):
        """The mutator's own, which run in the process once: on its copies, in the thread that was asked for."""
        tids = [line.split(":")[0] for line in m.does("threads").split()]
        for text, expected in (
                ("own_sum(1, 2, 3, 4, 5, 6, 7, 8)", "long|i|87654321|"), ("own_mix(2, 3.5, 0.25, 100, 1.5)", "double|f|30.5|"),
                ("own_half(5)", "float|f|2.5|"), ("own_calls()", "long|i|101|"), ("own_calls()", "long|i|202|"),
                ("own_length(\"seven..\")", "long|i|7|"), ("own_process()", f"long|i|{pid}|"),
                ("counter = own_sum(six(1, 0, 0, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0) + 30", "long|i|31|"),
                ("own_half(half(counter + 1))", "float|f|8|")):
            self.answers(m, f"value 0 {text}", "ok " + expected)
        for line, says in (("value 0 own_fault(8)", "has failed at 0x.*Segmentation"), ("value 0 own_wait()", "come back|10 s|does not"),
                           ("value 0 own_fault($arg0)", "point")):
            answer = m.asks(line)
            if not re.match("no .*(" + says + ")", answer):
                raise driver.Failed(f"'{line}' is answered by", answer)
        m.does("out")  # no thread is taken to be in the mutator's code
        m.does(f"attach {pid}")
        self.answers(m, "value 0 own_calls()", "ok long|i|101|")
        self.answers(m, "value 1 own_thread()", f"ok int|i|{tids[1]}|")
        self.answers(m, "value 1 own_calls()", "ok long|i|201|")  # another thread's own variable
        for order, value in (("wrap", 655321), ("restore", 654321)):
            m.does(f"{order} six")
            m.does("commit")
            for thread in (0, 1, 3, 4):  # these two sleep, which the call does not end
                self.answers(m, f"call {thread} six i i:1 i:2 i:3 i:4 i:5 i:6", f"ok |i|{value}|")
        self.answers(m, "value 0 own_calls()", "ok long|i|702|")  # what stood in was called four times
        m.does("wrap step")  # which another thread calls all the time
        m.does("commit")
        for _ in range(20):
            self.answers(m, "call 0 step i i:1", "ok |i|1002|")
        m.does("watch break")
        at = m.does("break step")  # at the entry of the original, which a routine has called
        m.does("commit")
        self.events(m, "break")
        if not m.asks("stack event").endswith(" works step "):
            raise driver.Failed("the stack of an original", m.asks("stack event"))
        m.does(f"remove {at}", "watch exit", "resume")
        m.does("restore step")
        m.does("commit")

    @staticmethod
    def answers(m, line, expected):
        answer = m.asks(line)
        if not answer.startswith(expected):
            raise driver.Failed(f"'{line}' is '{expected}', not", answer)

    def loads(self, m, form):
        """A library comes at once, or there is a reason why not."""
        if form.startswith("static"):
            self.answers(m, "load 0 libbz2.so.1.0", "no ")
            if "static" not in m.asks("load 0 libbz2.so.1.0"):
                raise driver.Failed("of a static program it is refused", m.asks("load 0 libbz2.so.1.0"))
            return
        m.does("load 0 libbz2.so.1.0")
        self.answers(m, "value 0 extern char *BZ2_bzlibVersion(); *BZ2_bzlibVersion()", "ok char|i|49|")
        if "no such" not in m.asks("load 0 /no/such.so").lower():
            raise driver.Failed("there is none", m.asks("load 0 /no/such.so"))

    def once_python(self):
        """Calls in a program of the distribution; it goes on."""
        command, first, second = PROGRAMS["python"]

        def between(m, c):
            self.answers(m, "call 0 getpid i", f"ok |i|{c.process.pid}|")
            self.answers(m, "value 0 extern long PyLong_AsLong(void *); extern void *PyLong_FromLong(long); "
                            "PyLong_AsLong(PyLong_FromLong(123))", "ok long|i|123|")
            m.does("load 0 libbz2.so.1.0")
            for _ in range(20):
                self.answers(m, "value 0 extern void *malloc(unsigned long); malloc(100) != 0", "ok int|i|1|")

        self.same("once-python", command, first, second, between)

    # --- programs that the mutator starts

    @staticmethod
    def ended(m):
        """Its status as from waitpid."""
        end = time.monotonic() + LIMIT
        while m.asks("status").startswith("ok runs"):
            if time.monotonic() > end:
                raise driver.Failed("it does not end")
            time.sleep(0.02)
        return int(m.asks("status").split()[2])

    def create(self):
        """Programs from their first instruction on: arguments, environment, descriptors, status."""
        out = f"{self.folder}/create.out"
        for command, status, says in ((["sh", "-c", "echo${IFS}$STARTED;exit${IFS}7"], 7, "yes\n"),
                                      (["/bin/echo", "a", "b"], 0, "a b\n"), (["seq", "3"], 0, "1\n2\n3\n"),
                                      (["sort", "/etc/hostname", "/no/such"], 2, None)):
            with Mutator(self.program) as m:
                m.does(f"start {out} {' '.join(command)}")
                m.inserts("entry", "write", "static long n; n++")
                m.does("commit")
                if m.asks("status") != "ok runs -1" or os.path.getsize(out):
                    raise driver.Failed(f"{command} does not stand still")
                m.does("continue")
                got = self.ended(m)
                with open(out, encoding="utf-8") as f:
                    text = f.read()
                if got != status << 8 or (says is not None and text != says):
                    raise driver.Failed(f"{command} ends with {got}", text)

    def create_counts(self, form):
        """main is counted, which has run once, and is alone; what it answers is what it answers natively."""
        program, folder = self.build(form), driver.fresh(f"{self.folder}/create-{form}")
        if not program:
            return
        expected, _ = self.native([program], TALK[0] + TALK[1], folder)
        os.mkfifo(f"{folder}/out.in")
        with open(f"{folder}/out.in", "rb+", buffering=0) as line, Mutator(self.program) as m:
            m.does(f"start {folder}/out {program}")
            m.inserts("entry", "main", "static long mains; mains++")
            m.inserts("entry", "work", "static long works; if ($thread == 0) works++")
            m.does("commit", "continue")
            line.write("".join(f"{x}\n" for x in TALK[0] + TALK[1]).encode())
            end = time.monotonic() + LIMIT
            while open(f"{folder}/out", "rb").read().count(b"\n") < expected.count(b"\n") - 1:
                if time.monotonic() > end:
                    raise driver.Failed("it does not answer")
                time.sleep(0.02)
            seen = m.number("mains"), m.number("works")
            m.does("terminate")
            with open(f"{folder}/out", "rb") as f:
                if f.read() != expected[:expected.rindex(b"end ")] or seen != (1, 1009):
                    raise driver.Failed("mains and works are 1 and 1009", repr(seen))

    def create_killed(self):
        """The mutator is killed: before the program was let run both end, afterwards it goes on."""
        out = f"{self.folder}/killed.out"
        with Mutator(self.program) as m:
            m.does(f"start {out} sleep 1000")
            pid = int(m.does("pid").split()[0])
            m.process.kill()
            m.process.wait()
            end = time.monotonic() + LIMIT
            while os.path.exists(f"/proc/{pid}") and state_of(pid) != "Z":
                if time.monotonic() > end:
                    raise driver.Failed("it has not ended with the mutator")
                time.sleep(0.02)
        with Mutator(self.program) as m:
            m.does(f"start {out} sleep 1000")
            pid = int(m.does("pid").split()[0])
            m.inserts("entry", "clock_nanosleep", "static long n; n++")
            m.does("commit", "continue")
            m.process.kill()
            m.process.wait()
            time.sleep(0.2)
            state = state_of(pid)
            os.kill(pid, signal.SIGKILL)
            if state not in "SR":
                raise driver.Failed(f"it does not go on: {state}")

    def create_wrong(self):
        with Mutator(self.program) as m:
            for line, says in ((f"start {self.folder}/x /no/such", "no such|No such"),
                               (f"start {self.folder}/x /etc/passwd", "denied|cannot"),
                               (f"start {self.folder}/x no-such-command", "no-such-command")):
                answer = m.asks(line)
                if not re.match(f"no .*({says})", answer):
                    raise driver.Failed(f"'{line}' is answered by", answer)

    # --- events

    @staticmethod
    def events(m, until, limit=LIMIT):
        """[kind, process, tid, number, lost, name or text] each, up to one of kind `until`."""
        seen = []
        while not seen or seen[-1][0] != until:
            answer = m.asks(f"next {limit * 1000}")
            if not answer.startswith("ok"):
                raise driver.Failed(f"{until} does not come", *map(repr, seen[-20:]))
            kind, *numbers, name = answer[3:].split(" ", 5)
            seen.append([kind, *map(int, numbers), name])
        return seen

    def events_of_threads(self):
        """What a program does that everybody sees: signals, forks, threads, messages, its end; by descriptor and callback."""
        program, folder = self.build("dynamic"), driver.fresh(f"{self.folder}/events")
        if not program:
            return
        with Conversation([program], folder) as c, Mutator(self.program) as m:
            c.say("work 9")
            c.has_answered(1)
            m.does(f"attach {c.process.pid}", "watch all", "message work", "share work", "commit")
            if m.asks("poll 0").startswith("ok"):
                raise driver.Failed("something is there before anything happens", m.asks("next 0"))
            c.say("signal", "work 50", "fork", "spawn", "threads 2", "settings")
            c.has_answered(6)
            if not m.asks("poll 60000").startswith("ok"):
                raise driver.Failed("the descriptor is not readable")
            c.say("exit 3")
            seen = self.events(m, "exit")
            of = {kind: [e for e in seen if e[0] == kind] for kind in {e[0] for e in seen}}
            counts = {kind: len(of[kind]) for kind in of}
            expected = {"signal": 1, "message": 90, "fork": 2, "thread-begin": 2, "thread-end": 3, "exit": 1}
            main = c.process.pid
            c.end()
            if counts != expected or any(e[4] for e in seen):
                raise driver.Failed(f"events are {expected}", repr(counts))
            if of["signal"][0][2:4] != [main, signal.SIGUSR1] or {e[5] for e in of["message"]} != {"entered"}:
                raise driver.Failed("the signal or the messages are wrong", repr(of["signal"]))
            if of["exit"][0][3] != 3 << 8 or {e[2] for e in of["thread-begin"]} - {e[2] for e in of["thread-end"]}:
                raise driver.Failed("threads or the end are wrong", repr(seen[-4:]))
            if m.number_of("shared") != 90:  # the child of fork counts for itself
                raise driver.Failed("work was entered 90 times", m.asks("shared"))
            if m.number_of("poll 0", "no") != len(seen):
                raise driver.Failed(f"{len(seen)} were called", m.asks("poll 0"))

    def events_of_exec(self):
        """Another program in the process, one that ends by a signal: what nobody's code in it can tell."""
        for command, says in ((["bash", "-c", "echo; read x; exec sleep 1000"], "exec"),
                              (["bash", "-c", "echo; read x; kill -KILL $$"], "exit"),
                              (["bash", "-c", "echo; read x; exec /no/such; read x"], "none")):
            with Conversation(command, driver.fresh(f"{self.folder}/exec")) as c, Mutator(self.program) as m:
                c.has_answered(1)
                m.does(f"attach {c.process.pid}", "watch exec exit")
                c.say("x")
                if says == "none":
                    c.process.wait(LIMIT)
                last = self.events(m, "exit" if says == "none" else says)[-1]
                if says == "exec":
                    if not last[5].endswith("sleep"):
                        raise driver.Failed("exec of sleep", repr(last))
                    answer = m.asks("commit")
                    if "another program" not in answer:
                        raise driver.Failed("a commit is answered by", answer)
                    m.does("terminate")
                elif says == "exit" and last[3] != signal.SIGKILL:
                    raise driver.Failed("it was killed", repr(last))
                c.process.kill()
        self.events_of_exec_after_all()

    def events_of_exec_after_all(self):
        """Nobody looks before the other program has ended, too; or before the end of one that could not execute any."""
        bad = f"{self.folder}/bad"
        with open(bad, "w", encoding="utf-8") as f:
            f.write("#!/no/such\n")
        os.chmod(bad, 0o755)
        fails = f"import os\ntry: os.execv('{bad}', ['bad'])\nexcept OSError: print(flush=True)\n"
        for command, kinds, status in (
                (["bash", "-c", "echo; read x; exec sh -c 'exit 7'"], ["exec", "exit"], 7 << 8),
                ([sys.executable, "-c", f"print(flush=True)\ninput()\n{fails}\nos._exit(5)"], ["exit"], 5 << 8),
                ([sys.executable, "-c", f"print(flush=True)\ninput()\n{fails}\nos.kill(os.getpid(), 9)"], ["exit"], 9)):
            with Conversation(command, driver.fresh(f"{self.folder}/exec")) as c, Mutator(self.program) as m:
                c.has_answered(1)
                m.does(f"attach {c.process.pid}", "watch exec exit")
                c.say("x")
                os.waitid(os.P_PID, c.process.pid, os.WEXITED | os.WNOWAIT)
                seen = self.events(m, "exit")
                if [e[0] for e in seen] != kinds or seen[-1][3] != status:
                    raise driver.Failed(f"it should be {kinds}, with status {status}", repr(seen))

    def events_of_libraries(self):
        """A library that comes and goes; what is inserted in it counts."""
        code = ("import ctypes, _ctypes, sys\nprint(flush=True)\n"
                "for line in sys.stdin:\n"
                "    if line == 'load\\n': h = ctypes.CDLL('libbz2.so.1.0')\n"
                "    elif line == 'call\\n': h.BZ2_bzlibVersion.restype = ctypes.c_char_p; h.BZ2_bzlibVersion()\n"
                "    else: _ctypes.dlclose(h._handle)\n"
                "    print(line.strip(), flush=True)\n")
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/library")) as c, \
                Mutator(self.program) as m:
            c.has_answered(1)
            m.does(f"attach {c.process.pid}")
            c.say("load")  # of what comes before it is watched nobody tells, and it is known from then on
            c.has_answered(2)
            m.does("watch loaded unloaded exit")
            m.does("share BZ2_bzlibVersion")
            m.does("commit")
            c.say("call", "call")
            c.has_answered(4)
            if m.number_of("shared") != 2:
                raise driver.Failed("BZ2_bzlibVersion was called twice", m.asks("shared"))
            c.say("unload")
            if "libbz2" not in self.events(m, "unloaded")[-1][5]:
                raise driver.Failed("libbz2 is unloaded")
            c.end()
            self.events(m, "exit")

    def opened(self):
        """A thread that has loaded a library waits: its constructor is counted. Not one that a call of the mutator's has
        load it, nor one whose mutator is killed. The library's code cannot be executed while its many system calls are
        looked at, by when it has been told of."""
        library = f"{self.folder}/plugin.so"
        driver.run(["gcc", "-O2", "-shared", "-fPIC", "-DCALLS=13000", f"{HERE}/plugin.c", "-o", library], LIMIT)
        code = (f"import ctypes, _ctypes, sys\nprint(flush=True)\n"
                "for line in sys.stdin:\n"
                f"    if line == 'load\\n': h = ctypes.CDLL('{library}')\n"
                "    else: _ctypes.dlclose(h._handle)\n"
                "    print(line.strip(), flush=True)\n")
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/opened")) as c, \
                Mutator(self.program) as m:
            c.has_answered(1)
            m.does(f"attach {c.process.pid}", "watch all", "loads-wait 1")
            for turn in range(2):
                c.say("load")
                hit = self.events(m, "opened")
                if [e[0] for e in hit] != ["loaded", "opened"] or m.asks("next 100") != "no nothing":
                    raise driver.Failed("what has been loaded, and nothing else", repr(hit))
                if not turn:
                    m.does("insert entry plugin_begins static long begun; begun++")
                m.does("commit", "resume")
                c.has_answered(2 + 2 * turn)
                c.say("unload")
                self.events(m, "unloaded")
                c.has_answered(3 + 2 * turn)
            if m.number("begun") != 2:
                raise driver.Failed("its constructor has run twice", m.asks("read begun"))
            m.does("load 0 libbz2.so.1.0")
            self.events(m, "loaded")
            c.say("load")
            self.events(m, "opened")
            m.process.kill()
            c.has_answered(6)
            c.end()

    def gone(self):
        """What is inserted in a library that goes is in nobody's way, can be removed, and is there again when the library
        is at the same place again."""
        code = ("import ctypes, _ctypes, sys\nprint(flush=True)\n"
                "for line in sys.stdin:\n"
                "    if line == 'load\\n': h = ctypes.CDLL('libbz2.so.1.0'); h.BZ2_bzlibVersion.restype = ctypes.c_char_p\n"
                "    elif line == 'call\\n': h.BZ2_bzlibVersion()\n"
                "    else: _ctypes.dlclose(h._handle)\n"
                "    print(line.strip(), flush=True)\n")
        said = 1
        with Conversation(["python3", "-c", code], driver.fresh(f"{self.folder}/gone")) as c, Mutator(self.program) as m:
            def tells(word):
                nonlocal said
                said += 1
                c.say(word)
                c.has_answered(said)

            c.has_answered(1)
            m.does(f"attach {c.process.pid}", "watch loaded unloaded exit")
            tells("load")
            loaded = self.events(m, "loaded")[-1]
            if "libbz2" not in loaded[5]:
                raise driver.Failed("libbz2 is loaded", repr(loaded))
            place = loaded[3]
            within = m.inserts("entry", "BZ2_bzlibVersion", "static long of_library; of_library++")[0]
            m.does("commit")
            tells("call")
            tells("unload")
            other = m.inserts("entry", "PyFile_WriteObject", "static long of_program; of_program++")[0]
            m.does("commit")
            if "not mapped" not in m.asks("why BZ2_bzlibVersion"):
                raise driver.Failed("why it is not instrumented", m.asks("why BZ2_bzlibVersion"))
            tells("load")
            if self.events(m, "loaded")[-1][3] == place:
                m.does("commit")
                tells("call")
                if m.number("of_library") != 2:
                    raise driver.Failed("BZ2_bzlibVersion was called twice", m.asks("read of_library"))
                tells("unload")  # and nobody looks before it is back
                tells("load")
                m.does("commit")
                tells("call")
                if m.number("of_library") != 3:
                    raise driver.Failed("BZ2_bzlibVersion was called three times", m.asks("read of_library"))
            tells("unload")
            again = m.inserts("exit", "BZ2_bzlibVersion", "static long more; more++")[0]
            m.does("commit", f"remove {again}", f"remove {within}", "commit")
            was = m.number("of_program")
            tells("load")
            if m.number("of_program") <= was:
                raise driver.Failed("what is inserted elsewhere counts no more")
            m.does(f"remove {other}", "commit", "out")
            tells("call")
            if c.end()[1] != 0:
                raise driver.Failed("it does not end as it was", repr(c.end()))

    def breakpoint(self):
        """A thread waits, is told of, and goes on; other threads run meanwhile. When the mutator is killed it goes on by
        itself."""
        program, folder = self.build("dynamic"), driver.fresh(f"{self.folder}/break")
        if not program:
            return
        expected = self.native([program], ("work 3", "settings"), folder)
        with Conversation([program], folder) as c, Mutator(self.program) as m:
            m.does(f"attach {c.process.pid}", "watch break", "break work", "commit")
            c.say("work 3", "settings")
            for turn in range(2):
                hit = self.events(m, "break")[-1]
                if hit[2:4] != [c.process.pid, 7]:
                    raise driver.Failed("thread and number", repr(hit))
                if m.asks("next 100") != "no nothing" or c.answers():
                    raise driver.Failed("it does not wait")
                if turn:
                    m.does("stop", "continue")
                m.does("resume")
            self.events(m, "break")
            m.process.kill()
            if c.end() != expected:
                raise driver.Failed("it does not go on as it was")

    def lost(self):
        """More messages than there is room for are counted: none is lost in silence."""
        program, folder = self.build("dynamic"), driver.fresh(f"{self.folder}/lost")
        if not program:
            return
        with Conversation([program], folder) as c, Mutator(self.program) as m:
            m.does(f"attach {c.process.pid}", "watch message", "message work", "commit")
            c.say("work 200000")
            c.has_answered(1)
            got = lost = 0
            asked = 0
            while got + lost < 200000 and asked < 300000:
                asked += 1
                answer = m.asks("next 0")
                if not answer.startswith("ok"):
                    c.say("work 1")
                    answer = m.asks(f"next {LIMIT * 1000}")
                    got -= 1
                got, lost = got + 1, lost + int(answer.split()[5])
            if got + lost != 200000 or not lost:
                raise driver.Failed(f"{got} messages and {lost} lost are not 200000")

    def wrong(self):
        """And two that come to a process at the same moment: the later one is told of the other."""
        with Mutator(self.program) as m, Mutator(self.program) as late, \
                Conversation(["cat"], driver.fresh(f"{self.folder}/wrong")) as c:
            c.say("x")
            c.has_answered(1)
            late.does(f"attach {c.process.pid}")
            for line, says in (("attach 4194305", "there is no process"),
                               (f"attach {m.process.pid}", "is this one itself"), (f"attach {c.process.pid}", None), ("insert entry nothing 1", "no procedure"),
                               ("insert entry write nothing++", "nothing"), ("insert entry write static long n; n++", None),
                               ("commit", None)):
                answer = m.asks(line)
                if not (answer.startswith("ok") if says is None else re.search(says, answer)):
                    raise driver.Failed(f"'{line}' is answered by", answer)
            for code in ("static long n; n++", "1"):
                answer = late.asks(f"insert entry write {code}")
                if answer.startswith("ok"):
                    answer = late.asks("commit")
                if "has a tool inside already, mutator (process " not in answer:
                    raise driver.Failed("the later one is told", answer)


def tests(of):
    for form in ("dynamic", "no-pie", "static", "static-pie"):
        yield f"talks-{form}", lambda form=form: of.talks(form)
    for name in PROGRAMS:
        yield name, lambda name=name: of.program_is(name)
    for name in ("threads", "exec", "libraries"):
        yield f"events-{name}", getattr(of, f"events_of_{name}")
    for form in ("dynamic", "no-pie", "static", "static-pie"):
        yield f"once-{form}", lambda form=form: of.once(form)
    yield "once-python", of.once_python
    yield "opened", of.opened
    yield "gone", of.gone
    yield "breakpoint", of.breakpoint
    yield "lost", of.lost
    yield "create", of.create
    yield "create-killed", of.create_killed
    yield "create-wrong", of.create_wrong
    for form in ("dynamic", "no-pie", "static", "static-pie"):
        yield f"create-{form}", lambda form=form: of.create_counts(form)
    for name in ("removed", "order", "order_many", "stopped", "left", "several", "example", "wrong"):
        yield name, getattr(of, name)


def main():
    options = driver.parser(__doc__, only=QUICK).parse_args()
    with driver.Results("mutators", options) as results:
        of = Mutators(options, results.folder)
        for name, function in tests(of):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
