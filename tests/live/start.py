#!/usr/bin/python3
"""Programs that the live engine starts: `inlay run --engine=live`. They begin as they would natively, nothing of them or of
their libraries runs unseen, and they end as they would.

  tests/live/start.py [--build DIR] [--only PATTERN] [--keep]

That they count what the JIT counts, and do what they do natively, is the subject of tests/rewrite/compare.py --engines live
and tests/rewrite/run.py --live.
"""

import json
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 180
FORMS = ("dynamic", "no-pie", "static", "static-pie")

LARGE = """#include <inlay.h>
static char *m;
static const size_t size = 2200ull << 20;
static void image_loaded(inlay_image *i, void *arg)
{
    (void)i, (void)arg;
    m[0] = 1;
    m[size - 1] = 2;
}
static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%d %d\\n", m[0], m[size - 1]);
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "has much memory");
    m = inlay_alloc(size);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""
WAITS = """#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int status = 0, none = waitpid(-1, &status, __WALL);
    printf("%d %s\\n", none, errno == ECHILD ? "no child" : "?");
    int child = fork();
    if (!child) _exit(3);
    printf("%d %d\\n", waitpid(-1, &status, __WALL) == child, WEXITSTATUS(status));
    printf("%d\\n", waitpid(-1, &status, __WALL));
    return 7;
}
"""
# The tool handles faults in any case, which /proc tells; the program is told of its own action.
IGNORES = """#include <signal.h>
#include <stdio.h>
int main(void)
{
    struct sigaction a;
    sigset_t blocked;
    sigaction(SIGSEGV, NULL, &a);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    printf("%d %d\\n", a.sa_handler == SIG_IGN, sigismember(&blocked, SIGSEGV));
    return 0;
}
"""
# What its children have used up, or how the one has ended that it had before its exec.
CHILDREN = """#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    struct rusage used;
    int status = 0;
    if (wait(&status) > 0) return printf("a child: %d\\n", WEXITSTATUS(status)), 0;
    getrusage(RUSAGE_CHILDREN, &used);
    printf("%ld s, %ld us, %ld KB\\n", used.ru_utime.tv_sec + used.ru_stime.tv_sec, used.ru_utime.tv_usec + used.ru_stime.tv_usec,
           used.ru_maxrss);
    int child = fork();
    if (!child) _exit(5);
    int ended = waitpid(child, &status, 0) == child;
    printf("%d, %d\\n", ended, WEXITSTATUS(status));
    return 0;
}
"""
# All that may come before main: a resolver of each image, initialisers of each, before the program's own the library's.
CATCHES = """int main(int argc, char **argv) { try { throw argc; } catch (int n) { return n + 3; } }
"""

# As an unwinder does that is part of the program: whose unwind table is the one for a place that is returned to?
UNWINDER = """#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
static int each(struct dl_phdr_info *info, size_t size, void *arg)
{
    uintptr_t at = *(uintptr_t *)arg;
    const ElfW(Phdr) *table = NULL;
    int inside = 0;
    for (const ElfW(Phdr) *h = info->dlpi_phdr; h < info->dlpi_phdr + info->dlpi_phnum; h++) {
        if (h->p_type == PT_LOAD) inside |= at - info->dlpi_addr - h->p_vaddr < h->p_memsz;
        if (h->p_type == PT_GNU_EH_FRAME) table = h;
    }
    return inside && table ? (int)table->p_memsz : 0;
}
__attribute__((noinline, noipa)) static int find(void)
{
    uintptr_t at = (uintptr_t)__builtin_return_address(0);
    return dl_iterate_phdr(each, &at);
}
int main(void)
{
    int size = find();
    puts(!size ? "not found" : size < 8 ? "too short" : "found, of 8 bytes at least");
    return !size;
}
"""

FEW = """#include <inlay.h>
#include <stdio.h>
static inlay_counter calls;
static void image(inlay_image *i, void *arg)
{
    (void)arg;
    if (inlay_image_is_main(i)) inlay_insert(inlay_proc_entry(inlay_image_proc_named(i, "main")), inlay_count(&calls, 1));
}
static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%d call of main\\n", (int)inlay_counter_sum(&calls));
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "few");
    inlay_on_image_load(image, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""

LIBRARY = """static int one(void) { return 1; }
static int (*choose_library(void))(void) { return one; }
int from_library(void) __attribute__((ifunc("choose_library")));
__attribute__((constructor)) void library_begins(void) { from_library(); }
"""
THREADS = """#include <pthread.h>
#include <stdio.h>
static void *run(void *a) { return a; }
int main(void) {
    pthread_t threads[8];
    long sum = 0;
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (long i = 0; i < 8; i++) { void *r; pthread_join(threads[i], &r); sum += (long)r; }
    printf("%ld\\n", sum);
    return 0;
}
"""
PROGRAM = """int from_library(void);
static int two(void) { return 2; }
static int (*choose_program(void))(void) { return two; }
int from_program(void) __attribute__((ifunc("choose_program")));
static void before_all(void) { from_program(); }
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = before_all;
__attribute__((constructor)) static void program_begins(void) { from_library(); }
int main(void) { return from_library() + from_program(); }
"""


# Code among data that the linker relocates, in a segment that may be written to, and is.
CHANGES = """#include <stdio.h>
#include <string.h>
__attribute__((section(".changed,\\"awx\\",@progbits#"), noinline)) int changed(int a)
{
    __asm__ volatile("" ::: "memory");
    return a + 0x11223344;
}
int main(void)
{
    unsigned char *p = (unsigned char *)changed;
    printf("%x\\n", changed(1));
    while (memcmp(p, "\\x44\\x33\\x22\\x11", 4)) p++;
    memcpy(p, "\\1\\0\\0\\0", 4);
    __asm__ volatile("cpuid" : : "a"(0) : "rbx", "rcx", "rdx", "memory");
    printf("%x\\n", changed(1));
    return 0;
}
"""


class Started:
    def __init__(self, options, folder):
        self.inlay, self.folder, self.samples = f"{options.build}/inlay", folder, f"{options.build}/tests/samples"

    def run(self, argv, tool="calls", report=None, before=None, options=()):
        return driver.run([self.inlay, "run", "--engine=live", tool, "--format=json", "-o", report or "/dev/null", *options,
                           "--", *argv], LIMIT, before=before)

    def source(self, name, text):
        path = f"{self.folder}/{name}"
        with open(path, "w") as f:
            f.write(text)
        return path

    def same(self, argv, before=None, tool="calls"):
        native = driver.run(argv, LIMIT, before=before)
        here = self.run(argv, tool, before=before)
        told = driver.differences(native, here)
        if told:
            raise Failed(*told)
        return native

    # --- what is to hold

    def waits(self):
        """Whoever put the tool in is nobody's child that the program knows of."""
        source = self.source("waits.c", WAITS)
        for form in FORMS:
            program = f"{self.folder}/waits-{form}"
            if driver.build(form, source, program):
                continue
            if self.same([program]).status != 7:
                raise Failed(f"{form}: it has ended otherwise")

    def steps(self):
        """A program that steps itself is trapped at its instructions alone, also around its calls, whose code makes room."""
        self.same([f"{self.samples}/stepping"], tool="null")
        self.same([f"{self.samples}/stepping", "places"], tool="memtrace")

    def state(self):
        """Signals that are ignored or blocked, a tracer, descriptors: as whoever started it has left them."""
        def ignore():
            signal.signal(signal.SIGSEGV, signal.SIG_IGN)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGSEGV, signal.SIGUSR1])
        program = f"{self.folder}/ignores"
        driver.build("dynamic", self.source("ignores.c", IGNORES), program)
        for before in (None, ignore):
            self.same([program], before)
            native = self.same(["grep", "-E", "^(Sig(Ign|Blk|Pnd)|ShdPnd|TracerPid|Threads)", "/proc/self/status"], before)
        if b"TracerPid:\t0" not in native.stdout:
            raise Failed("nothing was shown")
        self.same(["ls", "/proc/self/fd"])

    def children(self):
        """Whoever puts the tool in is a child, and leaves nothing behind; one that the program has had before stays."""
        program = f"{self.folder}/children"
        driver.build("dynamic", self.source("children.c", CHILDREN), program)
        if self.same([program]).stdout != b"0 s, 0 us, 0 KB\n1, 5\n":
            raise Failed("natively there is something")
        self.same(["sh", "-c", f"(sleep 0.1; exit 7) & exec {program}"])
        self.same(["sh", "-c", f"(exit 7) & exec {program}"])

    def nameless(self):
        """A static program without names: its unwinder is led on, if it can be told what that asks; else it is refused."""
        program = f"{self.folder}/nameless"
        driver.build("static", self.source("nameless.c", WAITS), program, "-s")
        self.same([program])
        samples = f"{HERE}/../samples"
        for form, source in ("-static-pie", f"{samples}/throw.cc"), ("-static", f"{samples}/throwout.cc"), \
                ("-static", self.source("catches.cc", CATCHES)):
            if driver.run(["g++", form, "-s", "-O2", "-pthread", "-fnon-call-exceptions", source, "-o", program], LIMIT).status:
                raise Failed("compile")
            self.same([program])
        self.few()
        with open(program, "rb") as f:  # another encoding than the unwinder knows: it searches its table otherwise then
            bytes_, asks = re.subn(rb"(\x80[\x78-\x7f]\x03)\x3b", b"\\1\x3c", f.read())
        with open(program, "wb") as f:
            f.write(bytes_)
        if not asks or driver.run([program], LIMIT).status != 4:
            raise Failed(f"{asks} places that look at an encoding")
        done = self.run([program])
        if done.status != 1 or b"neither _dl_find_object nor dl_iterate_phdr" not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def lists(self):
        """An unwinder that goes by the list of images as LLVM's does finds the tables of new code, names or no names."""
        for names in ([], ["-s"]):
            program = f"{self.folder}/asks"
            flags = ["-O1", "-static-pie", "-nostdlib", "-fno-stack-protector", *names]
            if driver.run(["gcc", *flags, f"{HERE}/asks.c", "-o", program], LIMIT).status:
                raise Failed("compile")
            if self.same([program]).status:
                raise Failed("it does not find itself")
        program = f"{self.folder}/unwinder"
        driver.build("dynamic", self.source("unwinder.c", UNWINDER), program, "-O1", "-s")
        if self.same([program]).stdout != b"found, of 8 bytes at least\n":
            raise Failed("a dynamic one does not find itself")

    def few(self):
        """A tool that inserts into one procedure, and asks for no others: what unwinds is hooked all the same."""
        program, tool = f"{self.folder}/few", f"{self.folder}/few-tool"
        made = driver.run(["g++", "-static", "-O2", self.source("catches.cc", CATCHES), "-o", program], LIMIT)
        if not made.status:
            made = driver.run([self.inlay, "cc", "-Wextra", "-Werror", self.source("few.c", FEW), "-o", tool], LIMIT)
        if made.status:
            raise Failed("compile", *driver.as_lines(made.stderr))
        done = driver.run([self.inlay, "run", "--engine=live", tool, "--", program], LIMIT, env=driver.ENVIRONMENT)
        if done.status != 4 or done.stderr != b"1 call of main\n":
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def ends(self):
        for script in ("exit 9", "kill -TERM $$", "kill -SEGV $$", "echo a; echo b >&2; (exit 3); echo $?"):
            self.same(["sh", "-c", script])
        self.same(["cat", f"{HERE}/start.py"])

    def linker_fails(self):
        """What the dynamic linker says before the first instruction is said, and its status is the status."""
        library, program = f"{self.folder}/libgone.so", f"{self.folder}/needs"
        source = self.source("gone.c", "int gone(void) { return 0; }\n")
        main = self.source("needs.c", "int gone(void);\nint main(void) { return gone(); }\n")
        for argv in (["gcc", "-shared", "-fPIC", source, "-o", library], ["gcc", main, library, "-o", program]):
            driver.run(argv, LIMIT)
        os.remove(library)
        done = self.run([program])
        if done.status != 127 or b"libgone.so" not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr))

    def before_main(self):
        """Resolvers and initialisers are the first instructions of all, and each is counted."""
        library, program, report = f"{self.folder}/libfirst.so", f"{self.folder}/first", f"{self.folder}/first.json"
        for argv in (["gcc", "-O1", "-shared", "-fPIC", self.source("l.c", LIBRARY), "-o", library],
                     ["gcc", "-O1", self.source("p.c", PROGRAM), library, "-o", program]):
            if driver.run(argv, LIMIT).status:
                raise Failed("compile")
        done = self.run([program], report=report, options=["--image", "first", "--image", "libfirst*"])
        with open(report) as f:
            calls = {p["name"]: p["calls"] for p in json.load(f)["procedures"]}
        expected = {"one": 3, "two": 2, "library_begins": 1, "program_begins": 1, "before_all": 1, "main": 1}
        wrong = {name: calls.get(name) for name, n in expected.items() if calls.get(name) != n}
        resolvers = ("from_library (resolver)", "from_program (resolver)")
        if done.status != 3 or wrong or not all(calls.get(name) for name in resolvers):
            raise Failed(f"status {done.status}", f"otherwise than {expected}: {wrong}", repr(calls))

    def threads_unnamed(self):
        """What begins threads in a static program without names has no unwind entry either: no procedure is known there."""
        program = f"{self.folder}/threads"
        if driver.run(["gcc", "-O1", "-static", "-s", self.source("t.c", THREADS), "-o", program], LIMIT).status:
            raise Failed("compile")
        for tool in ("null", "inscount"):
            done = self.run([program], tool=tool)
            if done.status or done.stdout != b"28\n":
                raise Failed(f"{tool}: status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def fails(self):
        """A tool that cannot start ends the program before it has begun."""
        done = self.run(["echo", "it runs"], options=["-o", "/no/folder/x"])
        if done.status != 1 or done.stdout or b"cannot write" not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def placed(self):
        """A program linked to low addresses: new code lies close to the tool then. One linked to the tool's: that lies elsewhere."""
        for place in (0x60000000, 0x70000000):
            program = f"{self.folder}/placed"
            driver.build("no-pie", self.source("placed.c", WAITS), program, f"-Wl,-Ttext-segment={place:#x}")
            done = self.run([program], options=["--image", "placed"])
            if done.status != 7 or done.stderr:
                raise Failed(f"{place:#x}: status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def seen(self):
        """Who looks unwind tables up is seen where it is, not in what stands in for the search, nor in its new code."""
        program = f"{self.folder}/seen"
        driver.build("dynamic", f"{HERE}/seen.c", program, "-O1")
        for images in ([], ["--image", "seen"]):
            done = self.run([program], options=images)
            if done.stdout != b"0 elsewhere\n" or done.status:
                raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def entered(self):
        """A handler's return leads to what stands in for a search, as a call does."""
        program = f"{self.folder}/entered"
        driver.build("dynamic", f"{HERE}/entered.c", program, "-O1")
        done = self.run([program])
        if done.stdout != b"found\n" or done.status:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def changes(self):
        """What the program can write to stays as it is, and so does what it is in memory; the rest is counted."""
        program, report = f"{self.folder}/changes", f"{self.folder}/changes.json"
        if driver.run(["gcc", "-O1", "-w", self.source("changes.c", CHANGES), "-o", program], LIMIT).status:
            raise Failed("compile")
        done = self.run([program], report=report, options=["--image", "changes"])
        with open(report) as f:
            calls = {p["name"]: p["calls"] for p in json.load(f)["procedures"]}
        if done.status or done.stdout != b"11223345\n2\n" or not calls.get("main") or "changed" in calls:
            raise Failed(f"status {done.status}, {calls}", *driver.as_lines(done.stdout + done.stderr))

    def pads(self):
        """Where exceptions land there is no room for jumps: all that is done is counted."""
        program, report, left = f"{self.folder}/pads", f"{self.folder}/pads.json", f"{self.folder}/pads.left"
        if driver.run(["g++", "-O1", "-fnon-call-exceptions", f"{HERE}/pads.cc", "-o", program], LIMIT).status:
            raise Failed("compile")
        for fault in ([], ["fault"]):
            told = driver.differences(driver.run([program, *fault], LIMIT), self.run([program, *fault], "prof"))
            if told:
                raise Failed(*told)
        self.run([program], "prof", report, options=["--image", "pads", f"--report={left}"])
        driver.run([self.inlay, "run", "prof", "--format=json", "-o", f"{report}.jit", "--image", "pads", "--", program], LIMIT)
        with open(report) as here, open(f"{report}.jit") as jit, open(left) as images:
            here, jit = ({p["name"]: p["instructions"] for p in json.load(f)["procedures"]} for f in (here, jit))
            stayed = [p for i in json.load(images)["images"] for p in i["list"] if p["status"] == "left alone"]
        if [p["name"] for p in stayed] != ["tiny"] or here != jit:
            raise Failed(f"left alone: {stayed}", f"{here}", f"{jit}")

    def follows(self):
        """A program that is executed is instrumented in its place, not translated: its code runs near where it lies. One
        that cannot be had runs without the tool."""
        look = "cat /proc/self/maps | grep -cE '^55[0-4][0-9a-f]{9}-'; exec sed -n '/^55[0-4][0-9a-f]*-/p' /proc/self/maps"
        done = self.run(["bash", "-c", look])
        if done.status or not int(done.stdout.split()[0]) or b"r-xp" not in done.stdout:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def ended_early(self):
        """Whoever ends a program that is about to begin under the tool hears nothing of that."""
        kill = "p = subprocess.Popen(['sleep', '9']); time.sleep(n / 40); p.kill(); print(p.wait())"
        done = self.run(["/usr/bin/python3", "-c", f"import subprocess, time\nfor n in range(12): {kill}"], tool="bbcount")
        if done.status or done.stdout != b"-9\n" * 12 or done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def terminal(self):
        """A terminal that the program has made is not the user's: no progress is shown there."""
        done = self.run(["script", "-qec", "/usr/bin/python3 -c 'print(1)'", "/dev/null"])
        if done.status or done.stdout != b"1\r\n":
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def many_arguments(self):
        """More than the tool's own stack has room for, to a program that begins and to one that runs."""
        many = [f"x{n}" for n in range(100000)]
        self.same(["echo", *many])
        program = subprocess.Popen(["/usr/bin/python3", "-c", "import sys; print('runs', flush=True); print(len(input()) + len(sys.argv))", *many],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if program.stdout.readline() != "runs\n":
            raise Failed("python3 does not run")
        done = driver.run([self.inlay, "attach", "calls", "-o", "/dev/null", str(program.pid)], LIMIT)
        out, _ = program.communicate("four\n", LIMIT)
        if done.status or program.returncode or out != "100005\n":
            raise Failed(f"status {done.status}, {program.returncode}: {out!r}", *driver.as_lines(done.stderr)[-3:])

    def unknown_image(self):
        """It might be opened later; when none was, that is said at the end, of the program and not of those it starts."""
        done = self.run(["sh", "-c", "/bin/echo it runs; :"], options=["--image", "nothing*", "--image", "dash"])
        if done.status or done.stdout != b"it runs\n" or done.stderr.count(b"matches no image") != 1:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def grown(self):
        """A small program becomes two hundred times as large where much is inserted: there is room about it."""
        code = "static long n; " + "n += $rax ^ $rdi; " * 250
        done = driver.run([self.inlay, "run", "--engine=live", "snippet", "--at=main:instructions", f"--code={code}", "--image", "plain", "--",
                           f"{self.samples}/plain"], LIMIT)
        found = re.search(r"code at (\d+) places, refused at 0\n", done.stderr.decode())
        if done.status or not found or int(found[1]) < 100:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[-3:])

    def large(self):
        """What a tool has put into its memory goes with it, also where that is more than the kernel writes at a time."""
        tool = f"{self.folder}/large"
        made = driver.run([self.inlay, "cc", "-Wextra", "-Werror", self.source("large.c", LARGE), "-o", tool], LIMIT)
        if made.status:
            raise Failed(*driver.as_lines(made.stderr)[-6:])
        done = self.run(["echo", "one"], tool=tool, report="/dev/stderr")
        if done.status or done.stdout != b"one\n" or done.stderr != b"1 2\n":
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true", help="with a tool that has over 2 GB of memory")
    options = parser.parse_args()
    with driver.Results("start", options) as results:
        started = Started(options, results.folder)
        for name in ("waits", "steps", "state", "children", "nameless", "lists", "ends", "linker_fails", "before_main",
                     "threads_unnamed", "fails", "placed", "seen", "entered", "changes", "pads", "follows", "ended_early", "terminal", "many_arguments",
                     "unknown_image", "grown", *["large"] * options.all):
            if driver.chosen(name, options):
                results.check(name, getattr(started, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
