#!/usr/bin/python3
"""Tools put into processes that run: what the process does afterwards is what it does natively, and what the tool counted
is what happened since. And what cannot be had is refused, with the process as it was.

  tests/live/run.py [--build DIR] [--only PATTERN] [--keep]

Each program answers lines of its standard input. It gets some, then the tool comes, then it gets the others: all its
answers and its status are compared with a run of its own.
"""

import array
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

LIMIT = 180
READS = 0, 19  # read, readv

TALK = ("work 9", "signal", "wake", "settings"), \
       ("settings", "work 300", "threads 8", "signal", "wake", "fork", "spawn", "fault", "sleep", "jump", "signal",
        "work 700", "wake", "settings")
# Name: command, lines before, lines after. Only what is always there, or needed elsewhere in the tests.
PROGRAMS = {
    "python": (["python3", "-u", "-c",
                "import sys, threading, subprocess\n"
                "for line in sys.stdin:\n"
                "    try: print(eval(line))\n"
                "    except Exception as e: print(type(e).__name__)\n"],
               ["1 + 1", "len('x' * 9)"],
               ["sum(i * i for i in range(2000))", "{}['missing']", "subprocess.run(['echo', 'child']).returncode",
                "[t.start() or t.join() for t in [threading.Thread(target=sum, args=(range(99),)) for _ in range(5)]]",
                "sorted(str(i) for i in range(300))[-1]"]),
    "bash": (["bash"], ["echo one $((2 + 3))", "trap 'echo trapped' USR1"],
             ["for i in 1 2 3; do echo $i; done", "kill -USR1 $$", "(exit 3); echo $?", "echo a b | tr a-z A-Z",
              "x=$(echo inner); echo $x", "exit 4"]),
    "sqlite": (["sqlite3"], ["create table t(a, b);", "select 1;"],
               ["with recursive c(x) as (select 1 union all select x + 1 from c where x < 500) insert into t "
                "select x, x * x from c;", "select sum(a), sum(b) from t;", "select max(b) from t group by a % 3;"]),
    "awk": (["gawk", "{ n += length($0); print NR, n, toupper($0); fflush() }"], ["first", "second"],
            ["third", "4 5 6", "the last"]),
    "perl": (["perl", "-ne", "$| = 1; $h{$_}++ for split //; print join('', sort keys %h), \"\\n\""],
             ["hello"], ["world", "and some more", "zzz"]),
    "bc": (["bc", "-q"], ["1+1"], ["2^300", "scale=30; 4*a(1)", "sqrt(2)"]),
}
# The first process of a container: a filter that allows everything is on all that it starts. It puts a tool into one.
CONTAINER = r"""
import ctypes, struct, subprocess, sys
c = ctypes.CDLL(None)
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code)))
assert c.prctl(38, 1, 0, 0, 0) == 0 and c.prctl(22, 2, program, 0, 0) == 0
p = subprocess.Popen([sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdin.write(b"work 9\nwake\n")
p.stdin.flush()
p.stdout.readline()
a = subprocess.run([sys.argv[1], "attach", "calls", "-o", sys.argv[3], str(p.pid)])
p.communicate(b"work 300\nthreads 8\nsignal\nfork\n")
print("\n%d %d" % (a.returncode, p.returncode))
"""
TOOLS = ("inscount", "calls", "bbcount", "branches", "opcodemix", "prof")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def call_of(pid, tid=None):
    """The call in which a thread sleeps, the first unless another is named: its number and what it was given. Nothing: it
    sleeps in none, or has ended."""
    try:
        with open(f"/proc/{pid}/task/{tid or pid}/syscall", encoding="ascii") as f:
            words = f.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (int(words[0]), *(int(word, 16) for word in words[1:])) if len(words) > 3 else None


class Conversation:
    """A process, and what it has answered."""

    def __init__(self, command, folder, out="out"):
        self.path = f"{folder}/{out}"
        self.file = open(self.path, "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.file, stderr=subprocess.STDOUT,
                                        cwd=folder, env=driver.ENVIRONMENT)

    def say(self, *lines):
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()

    def answers(self):
        with open(self.path, "rb") as f:
            return f.read()

    def has_answered(self, count):
        self.wait_until(lambda answers: answers.count(b"\n") >= count)

    def wait_until(self, there):
        """Until `there(answers)`. Each look is at one state of the answers, and one that has ended is looked at once more:
        what it writes between two looks must not be waited for."""
        end = time.monotonic() + LIMIT
        while True:
            over = time.monotonic() > end or self.process.poll() is not None
            if there(self.answers()):
                return
            if over:
                raise driver.Failed("it has not answered", self.answers().decode(errors="replace")[-300:])
            time.sleep(0.01)

    def rests(self):
        """Until it waits for more lines: it has taken all that it was told, and done what follows from that. What it
        writes last is there some time before it has come back from writing it. One that has ended does nothing more."""
        end = time.monotonic() + LIMIT
        while self.process.poll() is None and not self.reads():
            if time.monotonic() > end:
                raise driver.Failed("it does not come to read", self.answers().decode(errors="replace")[-300:])
            time.sleep(0.01)

    def reads(self):
        """It waits in a call that reads its standard input, in which nothing is left. (First the one, then the other: what is
        on its way back with the last line does not sleep any more.)"""
        if self.has_lines_left():
            return False
        number, *arguments = call_of(self.process.pid) or (None,)
        try:
            return number in READS and \
                os.stat(f"/proc/{self.process.pid}/fd/{arguments[0]}").st_ino == os.fstat(self.process.stdin.fileno()).st_ino
        except OSError:  # it ends just then
            return False

    def has_lines_left(self):
        left = array.array("i", [0])
        fcntl.ioctl(self.process.stdin, termios.FIONREAD, left)
        return left[0] > 0

    def has_state(self, state):
        end = time.monotonic() + LIMIT
        while True:
            found = state_of(self.process.pid)
            if found == state:
                return
            if found in "XZ" or time.monotonic() > end:
                raise driver.Failed(f"its state is {found}, not {state}")
            time.sleep(0.01)

    def end(self):
        if self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise driver.Failed("it does not end", self.answers().decode(errors="replace")[-500:]) from None
        self.file.close()
        return self.answers(), status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.file.close()


class Live:
    def __init__(self, options, folder):
        self.inlay, self.folder = f"{options.build}/inlay", folder

    def attach(self, tool, pid, *options, status=0):
        done = subprocess.run([self.inlay, "attach", tool, *options, str(pid)], capture_output=True, text=True,
                              timeout=LIMIT, env=driver.ENVIRONMENT)
        if done.returncode != status:
            raise driver.Failed(f"attach ended with {done.returncode}", done.stderr[-600:])
        return done.stderr

    def native(self, command, first, second, folder):
        with Conversation(command, folder, "native") as c:
            c.say(*first)
            c.rests()
            before = c.answers().count(b"\n")
            self.say_rest(c, second)
            return (before, *c.end())

    @staticmethod
    def say_rest(conversation, lines):
        try:
            conversation.say(*lines)
        except BrokenPipeError:
            pass  # it was told to end

    def same(self, name, tool, command, first, second, *options):
        """The tool's report."""
        folder = driver.fresh(f"{self.folder}/{name}")
        before, answers, status = self.native(command, first, second, folder)
        with Conversation(command, folder) as c:
            c.say(*first)
            c.has_answered(before)
            c.rests()
            said = self.attach(tool, c.process.pid, "-o", f"{folder}/report", *options)
            self.say_rest(c, second)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise driver.Failed(f"status {status}, with {tool} {ended}; natively and then:",
                                *answers.decode(errors="replace").splitlines()[-30:], "---",
                                *here.decode(errors="replace").splitlines()[-30:])
        with open(f"{folder}/report") as f:
            return f.read(), said

    # --- what is to hold

    def program(self, name, tool):
        report, _ = self.same(name, tool, *PROGRAMS[name])
        numbers = [int(n) for n in re.findall(r"\d+", report.replace(",", ""))]
        if not numbers or max(numbers) < 100:
            raise driver.Failed(f"{tool} reports nothing", report[:300])

    def talks(self, form, tool):
        program = f"{self.folder}/talks-{form}"
        why = None if os.path.exists(program) else driver.build(form, f"{HERE}/talks.c", program)
        if why:
            return
        report, said = self.same(f"talks-{form}-{tool}", tool, [program], *TALK)
        if form == "dynamic" and " 2 images, " not in said:
            raise driver.Failed("a piece of it that is mapped twice is not an image", said)
        if tool != "calls":
            return
        counted = re.search(r"^ *(\d+) +work\b", report, re.M)
        expected = 300 + 700 + 8 * 20  # the forked child's is its own
        if not counted or int(counted[1]) != expected:
            raise driver.Failed(f"work was called {expected} times", *report.splitlines()[:12])

    def throws(self):
        for form, flags, tools in ("", [], ("inscount", "branches")), ("-nameless", ["-static", "-s"], ("inscount",)):
            program = f"{self.folder}/throws{form}"
            done = subprocess.run(["g++", "-O2", *flags, f"{HERE}/throws.cc", "-o", program], capture_output=True, text=True)
            if done.returncode:
                raise driver.Failed("compile", done.stderr[-300:])
            for tool in tools:
                self.same(f"throws{form}-{tool}", tool, [program], ["a", "around"], ["b", "around", "c", "d"])

    def rings(self):
        """Threads that the kernel works in for the process are none of the program's; and one that has been there ends it: then
        the tool's report, in which `branches` writes fractions, is written by a thread that it has never been called in."""
        program = f"{self.folder}/rings"
        if driver.build("dynamic", f"{HERE}/rings.c", program):
            return
        for tool in ("calls", "branches"):
            report, _ = self.same(f"rings-{tool}", tool, [program], ["a"], ["b", "end"])
            if not re.search(r"\d", report):
                raise driver.Failed(f"{tool} reports nothing")

    def dispatched(self):
        """A jump that several loads of a table's entries lead to, whose targets have no room: all of it moves."""
        program, folder = f"{self.folder}/dispatches", driver.fresh(f"{self.folder}/in-dispatched")
        done = driver.run(["gcc", "-O1", "-no-pie", f"{HERE}/dispatched.c", "-o", program], LIMIT)
        if done.status:
            raise driver.Failed("compile", *driver.as_lines(done.stderr))
        only = ("--proc", "interpret")
        with open(f"{folder}/line", "w") as f:
            f.write("\n")
        jit = driver.run([self.inlay, "run", "--engine=jit", "inscount", *only, "--", program], LIMIT, stdin=f"{folder}/line")
        report, said = self.same("dispatched", "inscount", [program], [""], [""], *only)
        if report != jit.stderr.decode() or " 0 left alone" not in said:
            raise driver.Failed("another count", report, said, *driver.as_lines(jit.stderr))

    def shared(self):
        """Another process in the same memory would come upon jumps: no tool is put in, and both go on."""
        program, source, folder = f"{self.folder}/shared", f"{self.folder}/shared.c", driver.fresh(f"{self.folder}/in-shared")
        with open(source, "w") as f:
            f.write("#define _GNU_SOURCE\n#include <sched.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
                    "#include <sys/wait.h>\n#include <unistd.h>\nstatic volatile int ends;\n"
                    "__attribute__((noinline)) static int next(int n) { __asm__ volatile(\".fill 16, 1, 0x90\" : \"+r\"(n)); return n + 1; }\n"
                    "static int other(void *sum) {\n    int n = 0;\n    while (!ends) n = next(n);\n    _exit(n > 0 ? 7 : 8);\n}\n"
                    "int main(void) {\n    char line[99];\n    int status;\n"
                    "    pid_t p = clone(other, (char *)malloc(65536) + 65536, CLONE_VM | SIGCHLD, NULL);\n"
                    "    while (fgets(line, sizeof line, stdin)) printf(\"%d\\n\", next(3)), fflush(stdout);\n    ends = 1;\n"
                    "    return waitpid(p, &status, 0) == p && WIFEXITED(status) ? WEXITSTATUS(status) : 9;\n}\n")
        if driver.build("dynamic", source, program):
            return
        with Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            said = self.attach("calls", c.process.pid, status=1)
            c.say("two")
            answers, status = c.end()
        if answers != b"4\n4\n" or status != 7 or "shares its memory with process" not in said:
            raise driver.Failed(f"status {status}, answers", repr(answers), said)

    def make_tool(self, path, functions, main):
        with open(f"{path}.c", "w", encoding="utf-8") as f:
            f.write(f"#include <inlay.h>\n{functions}\nint main(int n, char **w) {{ inlay_init(&n, &w, \"a test\"); {main}\n"
                    "    return inlay_start(); }\n")
        made = driver.run([self.inlay, "cc", "-w", f"{path}.c", "-o", path], LIMIT)
        if made.status:
            raise driver.Failed("compile", *driver.as_lines(made.stderr)[-6:])

    def blamed(self):
        """A tool that crashes while the process is being looked at is told, with its line, and the process is as it was."""
        folder = driver.fresh(f"{self.folder}/blamed")
        self.make_tool(f"{folder}/tool", "static void each(inlay_block *b, void *a) { *(volatile int *)16 = 1; }",
                       "inlay_on_block(each, NULL);")
        with Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            before = self.state(c.process.pid)
            said = self.attach(f"{folder}/tool", c.process.pid, status=-signal.SIGSEGV)
            after = self.state(c.process.pid)
            c.say("two")
            answers, status = c.end()
        if not re.search(r"crashed in each \(\S*tool\.c:2\), a block callback: SIGSEGV", said) or \
           "nothing is put into the process" not in said:
            raise driver.Failed("is not blamed", said)
        if before != after or answers != b"one\ntwo\n" or status:
            raise driver.Failed(f"something stays behind; status {status}", repr((before, after, answers)))

    def wraps(self):
        """Tools' functions stand in for procedures, which are left by exceptions, jumps and the end of threads too."""
        tool, program = f"{self.folder}/wrap_tool", f"{os.path.dirname(self.inlay)}/tests/samples/wrapped"
        made = driver.run([self.inlay, "cc", "-O2", f"{HERE}/../cli/wrap_tool.c", "-o", tool], LIMIT)
        if made.status:
            raise driver.Failed("compile", *driver.as_lines(made.stderr)[-6:])
        options = "--no-changes", "--image=wrapped*"
        for name in (program, f"{program}_static"):
            report, _ = self.same("wraps", tool, [name, "waits"], [""], [""], *options)
            seen = {words[0]: words[1:] for words in map(str.split, report.splitlines())}
            known = {"jump": ["3000", "0"], "between": ["99", "66"], "ends": ["2", "1"], "many": ["1201", "1201"]}
            if any(seen[k] != known[k] for k in known):
                raise driver.Failed("calls and returns", *report.splitlines())

    def waits_within(self):
        """A report is had while the procedure waits that a routine stands in for: the routine holds nothing."""
        folder = driver.fresh(f"{self.folder}/within")
        with open(f"{folder}/tool.c", "w") as f:
            f.write("#include <inlay.h>\n#include <inlay/wrap.h>\n#include <stdio.h>\nstatic long *seen;\n"
                    "static long answer(long n) { seen[0]++; long r = inlay_call_original(answer, n); seen[1]++; return r; }\n"
                    "static void image(inlay_image *i, void *arg) { (void)arg; if (inlay_image_is_main(i))\n"
                    "    inlay_proc_wrap(inlay_image_proc_named(i, \"answer\"), (void (*)(void))answer, 0); }\n"
                    "static void report(int status, void *arg) { (void)status, (void)arg;\n"
                    "    fprintf(inlay_out(), \"%ld entered, %ld left\\n\", seen[0], seen[1]); }\n"
                    "int main(int argc, char **argv) { inlay_init(&argc, &argv, \"within\"); seen = inlay_alloc(2 * sizeof *seen);\n"
                    "    inlay_on_image_load(image, NULL); inlay_on_exit(report, NULL); return inlay_start(); }\n")
        with open(f"{folder}/program.c", "w") as f:
            f.write("#include <stdio.h>\n__attribute__((noinline)) long answer(long n) {\n    char line[99];\n"
                    "    return fgets(line, sizeof line, stdin) ? printf(\"%ld %s\", n, line), fflush(stdout), n + 1 : -1;\n}\n"
                    "int main(void) {\n    long n = 0;\n    while ((n = answer(n)) >= 0) {}\n    return 3;\n}\n")
        made = driver.run([self.inlay, "cc", f"{folder}/tool.c", "-o", f"{folder}/tool"], LIMIT)
        if made.status or driver.build("dynamic", f"{folder}/program.c", f"{folder}/program"):
            raise driver.Failed("compile", *driver.as_lines(made.stderr))
        with Conversation([f"{folder}/program"], folder) as c:
            c.say("one")
            c.has_answered(1)
            self.attach(f"{folder}/tool", c.process.pid, "-o", f"{folder}/report")
            c.say("two")
            c.has_answered(2)
            c.say("three")
            c.has_answered(3)
            c.rests()  # it answers in what is stood in for, and comes out a little later
            wanted = b"2 entered, 1 left\n"
            done = driver.run([self.inlay, "report", str(c.process.pid)], LIMIT)
            c.say("four")
            answers, status = c.end()
        if done.status or done.stdout != wanted:
            raise driver.Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))
        if answers != b"0 one\n1 two\n2 three\n3 four\n" or status != 3:
            raise driver.Failed(f"status {status}", repr(answers))

    def computing(self, name, work, means):
        """A program of one thread that works until it is told to stop, with the report of prof on its main. `work` is done in
        each turn and answers whether there were `means` of them once more: then there is a line."""
        program, source, folder = f"{self.folder}/{name}", f"{self.folder}/{name}.c", driver.fresh(f"{self.folder}/in-{name}")
        with open(source, "w") as f:
            f.write("#include <unistd.h>\nvolatile unsigned sum;\nint main(void) {\n    double x = 0;\n    unsigned i;\n"
                    "    write(1, \"x\\n\", 2);\n    for (i = 1;; i++) {\n        sum += i;\n        x += 0.5;\n"
                    f"        if ({work}) {{\n            write(1, \"x\\n\", 2);\n"
                    "            if (!access(\"stop\", 0)) break;\n        }\n    }\n    return x != i * 0.5;\n}\n")
        if driver.build("dynamic", source, program):
            return
        with Conversation([program], folder) as c:
            c.has_answered(1)
            self.attach("prof", c.process.pid, "-o", f"{folder}/report")
            c.has_answered(c.answers().count(b"\n") + 2)  # the first of these began before the tool came
            open(f"{folder}/stop", "w").close()
            if c.end()[1]:
                raise driver.Failed("what it computes is not what it was")
        with open(f"{folder}/report") as f:
            counted = re.search(r"^ *(\d+) .* main\b", f.read(), re.M)
        if not counted or int(counted[1]) < means:
            raise driver.Failed("the loop of main stays dark", counted and counted[0])

    def spilled(self):
        """The first thread waits in a call in front of which new code restores registers: a routine is called before."""
        folder = driver.fresh(f"{self.folder}/spilled")
        with Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            while not call_of(c.process.pid):
                time.sleep(0.01)
            self.attach("snippet", c.process.pid, "--at=read:instructions", "--code=print($pc)", "-o", f"{folder}/report")
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status or not os.path.getsize(f"{folder}/report"):
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def disguised(self):
        """Threads that have an address of new code in a register, disguised as setjmp does it or half so, when the tool
        leaves: it leads to old code then, as the same address on the stack does."""
        folder = driver.fresh(f"{self.folder}/disguised")
        with open(f"{folder}/program.c", "w") as f:
            f.write("#include <pthread.h>\n#include <stdio.h>\nvolatile int goes;\nint half(void), whole(void);\n"
                    "#define HOLD(name, hide, show) __asm__(\".globl \" name \"\\n.type \" name \", @function\\n\" name \": mov (%rsp), %rdx\\n\" \\\n"
                    "    \"xor %fs:0x30, %rdx\\n\" hide \"\\n1: pause\\ncmpl $0, goes(%rip)\\nje 1b\\n\" show \"\\nxor %fs:0x30, %rdx\\n\" \\\n"
                    "    \"xor %eax, %eax\\ncmp (%rsp), %rdx\\nsetne %al\\nret\\n.size \" name \", . - \" name)\n"
                    "HOLD(\"half\", \"\", \"\");\nHOLD(\"whole\", \"rol $17, %rdx\", \"ror $17, %rdx\");\n"
                    "static void *held(void *whole_too) { return (void *)(long)(whole_too ? whole() : half()); }\n"
                    "int main(void) {\n    char line[99];\n    pthread_t t[2];\n    void *wrong[2];\n    puts(\"begun\"), fflush(stdout);\n"
                    "    fgets(line, sizeof line, stdin);\n    for (long k = 0; k < 2; k++) pthread_create(&t[k], NULL, held, (void *)k);\n"
                    "    puts(\"held\"), fflush(stdout);\n    fgets(line, sizeof line, stdin);\n    goes = 1;\n"
                    "    for (int k = 0; k < 2; k++) pthread_join(t[k], &wrong[k]);\n"
                    "    printf(\"%d %d\\n\", (int)(long)wrong[0], (int)(long)wrong[1]);\n    return 0;\n}\n")
        if driver.build("dynamic", f"{folder}/program.c", f"{folder}/program"):
            raise driver.Failed("compile")
        with Conversation([f"{folder}/program"], folder) as c:
            c.has_answered(1)
            self.attach("inscount", c.process.pid, "--image", "program", "-o", f"{folder}/report")
            c.say("hold")
            c.has_answered(2)
            time.sleep(0.1)  # both spin: each has some processor time
            left = driver.run([self.inlay, "detach", str(c.process.pid)], LIMIT)
            c.say("go")
            answers, status = c.end()
        if left.status or status or answers != b"begun\nheld\n0 0\n":
            raise driver.Failed(f"status {status}, answers", repr(answers), *driver.as_lines(left.stderr))

    def crowded(self):
        """There is little room in reach of the code, so all new code shares it."""
        program, source, folder = f"{self.folder}/crowded", f"{self.folder}/crowded.c", driver.fresh(f"{self.folder}/in-crowded")
        with open(source, "w") as f:
            f.write("#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdint.h>\n#include <sys/mman.h>\n"
                    "enum { PIECE = 4 << 20, REACH = 512, FREE = 300 };\n"
                    "static void fill(uintptr_t near, int all) {\n"
                    "    for (long i = -REACH; i < REACH; i++)\n"
                    "        if (all || i < -FREE || i > 12 - FREE)\n"
                    "            mmap((void *)((near & -(uintptr_t)PIECE) + i * PIECE), PIECE, PROT_NONE,\n"
                    "                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);\n}\n"
                    "int main(int argc, char **argv) {\n    (void)argv;\n    char line[99];\n    fill((uintptr_t)main, 0);\n"
                    "    fill((uintptr_t)stdin, argc > 1);\n"
                    "    while (fgets(line, sizeof line, stdin)) fputs(line, stdout), fflush(stdout);\n    return 3;\n}\n")
        if driver.build("dynamic", source, program):
            return
        with Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            self.attach("inscount", c.process.pid, "-o", f"{folder}/report")
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status != 3 or not os.path.getsize(f"{folder}/report"):
            raise driver.Failed(f"status {status}, answers", repr(answers))
        # None about the libraries, which lie close below where addresses end: that is said, and the program has some.
        with Conversation(["setarch", "-R", program, "all"], folder) as c:
            c.say("one")
            c.has_answered(1)
            said = self.attach("inscount", c.process.pid, status=1)
            self.attach("inscount", c.process.pid, "--image", "crowded", "-o", f"{folder}/report")
            c.say("two")
            answers, status = c.end()
        if "free in its reach" not in said or answers != b"one\ntwo\n" or status != 3:
            raise driver.Failed(f"status {status}, answers", repr(answers), said)

    def reserved(self):
        """The lowest 4 GB are the program's, where a tool lies otherwise; it is reached all the same, and leaves."""
        program, source, folder = f"{self.folder}/reserved", f"{self.folder}/reserved.c", driver.fresh(f"{self.folder}/low")
        with open(source, "w") as f:
            f.write("#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdint.h>\n#include <sys/mman.h>\n"
                    "__attribute__((noinline)) static int doubled(int n) { __asm__ volatile(\".fill 16, 1, 0x90\" : \"+r\"(n)); return 2 * n; }\n"
                    "int main(void) {\n    char line[99];\n    void *low = (void *)(uintptr_t)0x10000;\n    int sum = 0;\n"
                    "    if (mmap(low, 0x100000000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,\n"
                    "             -1, 0) != low) return 9;\n"
                    "    while (fgets(line, sizeof line, stdin)) {\n        for (int i = 0; i < 1000; i++) sum += doubled(i);\n"
                    "        printf(\"%d\\n\", sum), fflush(stdout);\n    }\n    return 3;\n}\n")
        why = driver.build("dynamic", source, program)
        if why:
            return
        tools = (("calls", r"^ *1000 +doubled\b"), ("memtrace", r"^[0-9a-f]+ W "), ("branches", r"\d"))
        with Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            before = self.state(c.process.pid)
            for k, (tool, reports) in enumerate(tools):
                self.attach(tool, c.process.pid, "-o", f"{folder}/report")
                c.say("two")
                c.has_answered(k + 2)
                done = driver.run([self.inlay, "detach", str(c.process.pid)], LIMIT)
                if done.status:
                    raise driver.Failed("detach", *driver.as_lines(done.stderr))
                with open(f"{folder}/report") as f:
                    if not re.search(reports, f.read(), re.M):
                        raise driver.Failed(f"{tool} does not report {reports}")
            after = self.state(c.process.pid)
            answers, status = c.end()
        if answers.split() != [b"%d" % (999000 * n) for n in range(1, 5)] or status != 3:
            raise driver.Failed(f"status {status}, answers", repr(answers))
        if before[1:] != after[1:] or [m for m in after[0].splitlines() if m.startswith(("00010000", "7000", "65"))] != \
                [m for m in before[0].splitlines() if m.startswith(("00010000", "7000", "65"))]:
            raise driver.Failed("something stays behind", repr(after))

    def maps(self):
        """It maps memory, 400 MB in all, also between the moment when room is looked for and the one when it is taken."""
        program, source, folder = f"{self.folder}/maps", f"{self.folder}/maps.c", driver.fresh(f"{self.folder}/in-maps")
        with open(source, "w") as f:
            f.write("#include <sys/mman.h>\n#include <unistd.h>\n"
                    "int main(void) {\n    write(1, \"x\\n\", 2);\n    for (int n = 0; access(\"stop\", 0); n++) {\n"
                    "        char *p = n < 200 ? mmap(0, 2 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : (char[1]){0};\n"
                    "        if (p == MAP_FAILED || *p) return 1;\n        *p = 1;\n        usleep(5000);\n    }\n    return 3;\n}\n")
        if driver.build("dynamic", source, program):
            return
        with Conversation([program], folder) as c:
            c.has_answered(1)
            self.attach("inscount", c.process.pid, "-o", f"{folder}/report")
            open(f"{folder}/stop", "w").close()
            answers, status = c.end()
        if answers != b"x\n" or status != 3:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def loop(self):
        """A frame that was there before, below another, comes into new code with the next turn of its loop."""
        self.computing("sleeps", "usleep(500), i % 200 == 0", 200)

    def leader(self):
        """The thread that starts the tool stands in the middle of something, registers and vectors in use."""
        self.computing("computes", "!(i & 0xfffff)", 0x100000)

    # --- what is refused

    def state(self, pid):
        """Of a process: maps, descriptors, what the kernel says of its signals."""
        with open(f"/proc/{pid}/maps") as f:
            maps = f.read()
        with open(f"/proc/{pid}/status") as f:
            signals = [line for line in f if re.match("Sig(Pnd|Blk|Ign|Cgt)|ShdPnd", line)]
        return maps, sorted(os.listdir(f"/proc/{pid}/fd")), signals

    def refused(self, pid, says, *options, tool="inscount", status=1):
        said = self.attach(tool, pid, *options, status=status)
        if not re.search(says, said):
            raise driver.Failed(f"does not say '{says}'", said)

    def untouched(self):
        """A tool that cannot start leaves nothing behind."""
        folder = driver.fresh(f"{self.folder}/untouched")
        with Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            before = self.state(c.process.pid)
            self.refused(c.process.pid, "/no/folder/x: No such file", "-o", "/no/folder/x")
            self.refused(c.process.pid, "inserts nothing", tool="null")
            self.refused(c.process.pid, "no image that --image names", "--image", "nothing*")
            after = self.state(c.process.pid)
            if before != after:
                raise driver.Failed("something stays behind", *driver.as_lines(repr(after).encode()))
            self.attach("inscount", c.process.pid, "-o", f"{folder}/report")
            self.refused(c.process.pid, "has a tool inside already")
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def nothing_moves(self):
        """A program whose code all has to stay where it is: that is said, and it runs on untouched."""
        program, source, folder = f"{self.folder}/stays", f"{self.folder}/stays.c", driver.fresh(f"{self.folder}/in-stays")
        with open(source, "w") as f:
            f.write("#include <stdio.h>\n__asm__(\".section .gopclntab,\\\"a\\\"; .quad 1; .text\");\n"
                    "int main(void) { char s[99]; while (fgets(s, sizeof s, stdin)) fputs(s, stdout), fflush(stdout); }\n")
        if driver.build("static", source, program):
            return
        with Conversation([program], folder) as c:
            c.say("one")
            c.has_answered(1)
            before = self.state(c.process.pid)
            self.refused(c.process.pid, "looks return addresses up(.*\n)*.*nothing in process .* can be instrumented", tool="calls")
            if before != self.state(c.process.pid):
                raise driver.Failed("something stays behind")
            c.say("two")
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def cannot_start(self):
        """The tool begins and finds that it cannot: the process may not write where the report is to go."""
        folder = driver.fresh(f"{self.folder}/cannot")
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--clear-groups", "cat"]
        else:
            command = ["cat"]
        with Conversation(command, folder) as c:
            c.say("one")
            c.has_answered(1)
            before = self.state(c.process.pid)
            os.chmod(folder, 0o500 if os.geteuid() else 0o700)
            self.refused(c.process.pid, rf"did not start in process \d+: cannot write {folder}/report: Permission", "-o", f"{folder}/report")
            after = self.state(c.process.pid)
            os.chmod(folder, 0o700)
            if before != after:
                raise driver.Failed("something stays behind", *repr((before, after)).splitlines())
            c.say("two")
            answers, status = c.end()
        if not re.fullmatch(rb"one\n(inscount: cannot write .*\n)?two\n", answers) or status:
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def numbers(self):
        self.refused(4194305, "there is no process")
        self.refused("x", "not the number of a process", status=2)
        self.refused(2, "is of the kernel's|no process 2$")

    def traced(self):
        with Conversation(["strace", "-o", "/dev/null", "cat"], driver.fresh(f"{self.folder}/traced")) as c:
            c.say("x")
            c.has_answered(1)
            with open(f"/proc/{c.process.pid}/task/{c.process.pid}/children") as f:
                child = int(f.read().split()[0])
            self.refused(child, "is traced by process .* already")

    def under_jit(self):
        command = [self.inlay, "run", "inscount", "-o", "/dev/null", "--", "cat"]
        with Conversation(command, driver.fresh(f"{self.folder}/under")) as c:
            c.say("x")
            c.has_answered(1)
            self.refused(c.process.pid, "runs under a tool")

    def contained(self):
        """The first process of a container confines all that it starts."""
        if os.geteuid():
            return
        folder = driver.fresh(f"{self.folder}/contained")
        program = f"{self.folder}/talks-contained"
        if driver.build("dynamic", f"{HERE}/talks.c", program):
            return
        command = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
        if subprocess.run([*command, "true"], capture_output=True).returncode:
            return  # no right to do so
        done = driver.run([*command, "python3", "-c", CONTAINER, self.inlay, program, f"{folder}/report"], LIMIT)
        if done.status or not done.stdout.endswith(b"\n0 9\n"):
            raise driver.Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr)[-12:])
        with open(f"{folder}/report") as f:
            counted = re.search(r"^ *(\d+) +work\b", f.read(), re.M)
        if not counted or int(counted[1]) != 300 + 8 * 20:
            raise driver.Failed("work was called otherwise", counted and counted[0])

    def elsewhere(self):
        """From outside of its namespaces: its file is at no path that is known here, its threads have other numbers."""
        if os.geteuid():
            return
        folder = driver.fresh(f"{self.folder}/elsewhere")
        program = f"{self.folder}/talks-elsewhere"
        if driver.build("dynamic", f"{HERE}/talks.c", program):
            return
        command = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                   f"mkdir {folder}/hidden && mount -t tmpfs none /mnt && cp {program} /mnt/talks && "
                   f"mount -t tmpfs -o ro none {folder}/hidden && exec /mnt/talks"]
        with Conversation(command, folder) as c:
            c.say("work 9", "wake")
            try:
                c.has_answered(1)
            except driver.Failed:
                return  # no right to do so
            with open(f"/proc/{c.process.pid}/task/{c.process.pid}/children") as f:
                child = int(f.read().split()[0])
            self.refused(child, "cannot write .*/hidden/report .it is read-only there", "-o", f"{folder}/hidden/report")
            self.attach("calls", child, "-o", f"{folder}/report")
            c.say("work 300", "threads 8", "signal", "fork")
            answers, status = c.end()
        with open(f"{folder}/report") as f:
            counted = re.search(r"^ *(\d+) +work\b", f.read(), re.M)
        if status != 9 or not counted or int(counted[1]) != 300 + 8 * 20:
            raise driver.Failed(f"status {status}", counted and counted[0], *driver.as_lines(answers)[-12:])

    def stopped(self):
        """A process that job control has stopped stays stopped, and goes on with the tool in it."""
        folder = driver.fresh(f"{self.folder}/stopped")
        with Conversation(["cat"], folder) as c:
            c.say("one")
            c.has_answered(1)
            c.process.send_signal(signal.SIGSTOP)
            self.attach("calls", c.process.pid, "-o", f"{folder}/report")
            c.say("two")
            c.has_state("T")
            if c.answers() != b"one\n":
                raise driver.Failed("it was set going")
            c.process.send_signal(signal.SIGCONT)
            answers, status = c.end()
        if answers != b"one\ntwo\n" or status or not os.path.getsize(f"{folder}/report"):
            raise driver.Failed(f"status {status}, answers", repr(answers))

    def killed(self):
        """The one that attaches is killed, at any time: the process goes on."""
        folder = driver.fresh(f"{self.folder}/killed")
        for delay in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5):
            with Conversation(["cat"], folder) as c:
                c.say("one")
                c.has_answered(1)
                a = subprocess.Popen([self.inlay, "attach", "inscount", "-o", f"{folder}/report", str(c.process.pid)],
                                     stderr=subprocess.DEVNULL)
                time.sleep(delay)
                a.kill()
                a.wait()
                c.say("two")
                answers, status = c.end()
            if answers != b"one\ntwo\n" or status:
                raise driver.Failed(f"killed after {delay} s: status {status}, answers", repr(answers))


def tests(live):
    for n, name in enumerate(PROGRAMS):
        if shutil.which(PROGRAMS[name][0][0]):
            yield name, lambda name=name, n=n: live.program(name, TOOLS[n % len(TOOLS)])
    for form, tool in (("dynamic", "calls"), ("dynamic", "inscount"), ("no-pie", "bbcount"), ("static", "calls"),
                       ("static-pie", "branches"), ("musl", "calls"), ("dynamic", "memtrace")):
        yield f"talks-{form}-{tool}", lambda form=form, tool=tool: live.talks(form, tool)
    for name in ("throws", "rings", "dispatched", "shared", "wraps", "waits_within", "blamed", "spilled", "disguised", "crowded", "reserved", "maps", "loop", "leader", "untouched", "nothing_moves", "cannot_start", "numbers", "traced", "under_jit", "contained", "elsewhere",
                 "stopped", "killed"):
        yield name, getattr(live, name)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("live", options) as results:
        for name, function in tests(Live(options, results.folder)):
            results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
