#!/usr/bin/python3
"""inlay object and inlay wrap: what is recorded is what the program did, and objects stay good for whoever reads them.

  tests/object/run.py [--build DIR] [--only PATTERN] [--keep]

The sample of tests/trace, whose trees of calls are known, is built by `inlay wrap` in several ways; a library of the
distribution is instrumented whole, and its counts compared with those of the JIT; debuggers, linkers, archivers read the
objects; what cannot be done is refused."""

import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TRACE = f"{HERE}/../trace"
sys.path[:0] = [TRACE, f"{HERE}/../support"]
import driver  # noqa: E402
import kinds  # noqa: E402
import odd  # noqa: E402
import run as traced  # noqa: E402
import settings  # noqa: E402
from driver import Failed  # noqa: E402
from exports import calls  # noqa: E402
from run import AFTER, NAMES, TREES, need, paths, same  # noqa: E402

ONLY = [word for name in NAMES for word in ("-F", name)]
TAILS = "-foptimize-sibling-calls"
WAYS = {"O0": ["-O0"], "O2": ["-O2", "-g"], "Os": ["-Os"], "static": ["-O1", TAILS, "-static"],
        "sections": ["-O1", TAILS, "-ffunction-sections", "-Wl,--gc-sections"],
        "no-pie": ["-O2", "-fno-pie", "-no-pie", "-mcmodel=small"]}


class Objects(traced.Traced):
    """Programs made of instrumented objects, in place of an engine."""

    def __init__(self, build, folder):
        self.inlay, self.folder, self.build = f"{build}/inlay", folder, build
        self.program = self.rewritten = None

    def make(self, name, flags, compiler="g++", only=ONLY):
        program = f"{self.folder}/sample-{name}"
        self.command([self.inlay, "wrap", *only, compiler, "-pthread", "-w", *flags, f"{TRACE}/sample.cc", "-o", program])
        return program

    def record(self, engine, mode, options=(), status=0, names=()):
        out = f"{self.folder}/{engine}-{mode[0]}.trace"
        for name in os.listdir(self.folder):
            if name.startswith(os.path.basename(out)):
                os.unlink(f"{self.folder}/{name}")
        settings = ",".join(option.lstrip("-") for option in options)
        self.command([self.program, *mode], status, env=os.environ | {"INLAY_OUT": out, "INLAY_TRACE": settings})
        return out

    def object(self, *argv, status=0):
        return self.command([self.inlay, "object", *argv], status)

    def compile(self, text, name, *flags, compiler="gcc"):
        source = f"{self.folder}/{name}.{'cc' if compiler.endswith('++') else 'c'}"
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        self.command([compiler, "-c", *flags, source, "-o", f"{self.folder}/{name}.o"])
        return f"{self.folder}/{name}.o"

    def link(self, program, *inputs, compiler="gcc"):
        self.command([compiler, *inputs, f"-L{self.build}", "-linlay-trace", "-o", f"{self.folder}/{program}"])
        return f"{self.folder}/{program}"


def check_trees(t, way, compiler):
    t.program = t.make(f"{compiler}-{way}", WAYS[way], compiler)
    for mode in TREES:
        if mode != "time" and (mode, way) != ("tail", "O0"): # without optimization there are no tail calls
            traced.check_tree(t, f"{compiler}-{way}", mode)


def check_processes(t):
    t.program = t.make("processes", ["-O2"])
    traced.check_killed(t, "object")
    path = t.record("object", ["fork"])
    same(calls(t.report(path)), {"main": 1, "leaf": 2}, "the parent's calls")
    others = [name for name in os.listdir(t.folder) if name.startswith("object-fork.trace.")]
    need(len(others) == 1, "the child's file", others)
    same(calls(t.report(f"{t.folder}/{others[0]}")), {"after": 1, "leaf": 1}, "the child's calls")
    programs = [calls(one) for one in t.json("report", t.record("object", ["exec", "tail"]))]
    same(programs[-1], {"main": 1, "first": 2, "second": 2, "third": 2, "leaf": 3}, "calls behind exec")
    traced.check_times(t, "object")


# --- a library nobody here wrote

SQUEEZE = r"""
#include <stdio.h>
#include <string.h>
#include <zlib.h>
static unsigned char from[200000], to[220000], back[200000];
int main(void)
{
    unsigned long size, whole;
    for (unsigned i = 0, x = 1; i < sizeof from; i++) from[i] = (x = x * 1103515245 + 12345) >> 16 & (i & 1024 ? 15 : 255);
    for (int level = 0; level < 10; level += 3) {
        size = sizeof to;
        compress2(to, &size, from, sizeof from, level);
        whole = sizeof back;
        int r = uncompress(back, &whole, to, size);
        printf("%d %lu %d %d %lx\n", level, size, r, memcmp(from, back, whole), crc32(0, to, size));
    }
    return 0;
}
"""


def check_library(t):
    """All of zlib: the output is what it is natively, the calls are those that the JIT counts."""
    library = t.command(["gcc", "-print-file-name=libz.a"]).stdout.strip()
    need(os.path.exists(library), "no libz.a")
    main = t.compile(SQUEEZE, "squeeze", "-O1")
    report = t.object("--all", main, library, "-o", f"{t.folder}/made", "--format=json", "--report=-").stdout
    need('"instrumented": true' in report and re.search(r'"refused": 0\b', report), "not all of it", report[-300:])
    t.command(["gcc", main, library, "-o", f"{t.folder}/plain"])
    program = t.link("squeezed", f"{t.folder}/made/squeeze.o", f"{t.folder}/made/libz.a")
    native = t.command([f"{t.folder}/plain"]).stdout
    out = f"{t.folder}/squeezed.trace"
    same(t.command([program], env=os.environ | {"INLAY_OUT": out}).stdout.splitlines(), native.splitlines(), "the output")
    held = os.stat(out)
    need(held.st_size > 1 << 20 and held.st_blocks * 512 < held.st_size + (64 << 10), "disk beyond the file's end", held.st_size, held.st_blocks)
    t.command([t.inlay, "trace", "--clock=none", "-o", f"{t.folder}/jit.trace", "--", f"{t.folder}/plain"])
    ours, jits = calls(t.report(out)), calls(t.report(f"{t.folder}/jit.trace"))
    jits = {name: count for name, count in jits.items() if count and name in ours}
    same(ours, jits, "calls, beside the JIT's")
    need(len(ours) > 25, "few procedures", len(ours))


# --- who reads objects

THROWS = r"""
#include <stdio.h>
#include <string>
struct guard { int n; guard(int n) : n(n) {} ~guard() { printf("~%d ", n); } };
__attribute__((noinline)) int deep(int n) { guard g(n); if (!n) throw std::string("deep"); return deep(n - 1) + n; }
__attribute__((noinline)) int both(int n) { return deep(n) + n; } /* too little room behind the call, unless padded */
template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }
__attribute__((noinline)) int choose(int n)
{
    switch (n) { case 0: return 3; case 1: puts("one"); return 5; case 2: return twice(n); case 3: return twice(7) + 1;
                 case 4: return 9; case 5: return 2; default: return n; }
}
static __thread int mine;
__thread int ours;
__attribute__((noinline)) int *where() { return &mine; }
__attribute__((noinline)) int *here() { return &ours; }
int main()
{
    int sum = twice(1.5) > 2;
    for (int i = 0; i < 9; i++) sum += choose(i) + ++*where() + ++*here();
    try { both(6); } catch (const std::string &s) { printf("%s\n", s.c_str()); }
    printf("%d\n", sum);
}
"""


def check_readers(t, flags, compiler):
    """Exceptions, destructors, tables of jumps, COMDAT groups, threads' data: as natively. Tools of the trade read it."""
    name = "throws" + re.sub(r"\W", "", "".join([compiler, *flags]))
    made = t.compile(THROWS, name, "-g", *flags, compiler=compiler)
    t.object("--all", made, "-o", f"{t.folder}/made")
    shared = ["-shared"] if "-fPIC" in flags else []
    more = [flag for flag in flags if flag == "-pg" or flag.startswith("-fsanitize")]
    t.command([compiler, *more, made, "-o", f"{t.folder}/native"])
    native = t.command([f"{t.folder}/native"], cwd=t.folder).stdout
    program = t.link(name, *more, f"{t.folder}/made/{name}.o", compiler=compiler)
    same(t.command([program], env=os.environ | {"INLAY_OUT": f"{program}.trace"}, cwd=t.folder).stdout, native, "the output")
    found = calls(t.report(f"{program}.trace"))
    need(found.get("deep(int)") == 7 and found.get("choose(int)") == 9 and found.get("main") == 1, "calls", found)
    for argv in (["readelf", "-aW"], ["objdump", "-dr"], ["objdump", "--dwarf=decodedline"], ["objdump", "--dwarf=frames"]):
        done = t.command([*argv, f"{t.folder}/made/{name}.o"])
        need(not re.search(r"(?i)warning|error|corrupt", done.stderr), f"{argv}", done.stderr)
    if shared:
        t.command([compiler, "-shared", f"{t.folder}/made/{name}.o", f"-L{t.build}", "-linlay-trace", "-o",
                   f"{t.folder}/lib{name}.so"])


LEAVES = r"""
int sink;
__attribute__((noinline)) int more(int n) { sink += n; return n * 3; }
__attribute__((noinline)) int other(int n) { sink -= n; return n + 1; }
__attribute__((noinline)) int tail(int n) { if (n > 3) return more(n); return other(n); }
__attribute__((noinline)) int maybe(int n) { if (n > 3) return more(n); sink = n; return 4; }
__attribute__((noinline)) int through(int (*f)(int), int n) { sink++; return f(n); }
int main(void) { for (int i = 0; i < 8; i++) tail(i), maybe(i), through(more, i); return 0; }
"""


def check_exits(t, compiler):
    """Each call is left by a record of its own: returns, jumps to other procedures, conditional ones and through pointers."""
    made = t.compile(LEAVES, f"leaves-{compiler}", "-Os" if compiler == "clang" else "-O2", compiler=compiler) # conditional jumps
    t.object("--all", made, "-o", f"{t.folder}/made")
    program = t.link(f"leaves-{compiler}", f"{t.folder}/made/leaves-{compiler}.o", compiler=compiler)
    t.command([program], env=os.environ | {"INLAY_OUT": f"{program}.trace"})
    report = t.report(f"{program}.trace")
    same(calls(report), {"main": 1, "tail": 8, "maybe": 8, "through": 8, "more": 16, "other": 4}, "calls")
    need(report["records"] == 2 * 45 and not report["left"] and not report["unmatched"], "exits", report["records"])


def check_debugger(t):
    """Breakpoints on every line of the program hit without harm."""
    made = t.compile(THROWS, "bugs", "-g", "-O1", compiler="g++")
    t.object("--all", made, "-o", f"{t.folder}/made")
    program = t.link("bugs", f"{t.folder}/made/bugs.o", compiler="g++")
    native = t.command([program], env=os.environ | {"INLAY_OUT": "/dev/null"}).stdout
    lines = [n for n, line in enumerate(THROWS.splitlines(), 1) if "return" in line or "for (" in line or "try" in line]
    with open(f"{t.folder}/script", "w", encoding="utf-8") as f:
        f.write("set breakpoint pending off\n" + "".join(f"break bugs.cc:{n}\n" for n in lines) +
                "run\nbt\nwhile $_isvoid($_exitcode)\ncontinue\nend\n")
    done = t.command(["gdb", "-nx", "-batch", "-x", f"{t.folder}/script", program],
                     env=os.environ | {"INLAY_OUT": f"{t.folder}/bugs.trace"})
    need("exited normally" in done.stdout, "the program's end", done.stdout[-600:])
    need(done.stdout.count("Breakpoint") > 20, "few stops", done.stdout[-600:])
    for line in native.splitlines():
        need(line in done.stdout, "the output", line)


STEPS = r"""
#include <stdio.h>
__attribute__((noinline)) int leaf(int x)
{
    return x * 3 + 1;
}
__attribute__((noinline)) int middle(int a, int b)
{
    int s = leaf(a);
    s += leaf(b);
    return s;
}
int main(void) { return middle(1, 2) - 11; }
"""


def check_steps(t, *flags):
    """A debugger steps through displaced code and over the recorder; stacks are whole in both."""
    made = t.compile(STEPS, "steps", "-g", "-O1", *flags)
    t.object("--all", made, "-o", f"{t.folder}/made")
    program = t.link("steps", f"{t.folder}/made/steps.o")
    with open(f"{t.folder}/script", "w", encoding="utf-8") as f:
        f.write("set style enabled off\ntbreak record_slow\ntbreak middle\nrun\nbt\ncontinue\n" + "step\nbt\n" * 12)
    shown = t.command(["gdb", "-nx", "-batch", "-x", f"{t.folder}/script", program],
                      env=os.environ | {"INLAY_OUT": f"{t.folder}/steps.trace"}).stdout
    need(re.search(r"#0 .*record_slow \(\)\n#1 .*slow \(\)\n#2 .*main\.inlay \(\) at .*steps\.c:13\n", shown),
         "the stack in the recorder", shown)
    need(re.search(r"middle\.inlay \(\) at .*steps\.c:9\n9\t", shown), "a step into displaced code", shown)
    need(re.search(r"#0  leaf \(x=.*steps\.c:5\n#1 .*middle(\.inlay)? \(.*steps\.c:9\n#2 .* main ", shown), "from there to a call", shown)
    need(re.search(r"^10\t", shown, re.M) and re.search(r"^11\t|^12\t", shown, re.M), "the lines behind", shown)


def check_rows(t):
    """No row of the line table lies within a jump; all others are there."""
    made = t.compile(THROWS, "rows", "-g", "-O2", compiler="g++")
    t.object("--all", made, "-o", f"{t.folder}/made")
    t.command(["g++", made, "-o", f"{t.folder}/rows-native"])
    program = t.link("rows", f"{t.folder}/made/rows.o", compiler="g++")
    code = t.command(["objdump", "-d", "-j", ".text", program]).stdout
    jumps = {int(a, 16) for a in re.findall(r"^ +([0-9a-f]+):\te9 .*jmp .*\.inlay", code, re.M)}
    need(len(jumps) > 8, "few jumps", code[:300])
    rows = []
    for path in (f"{t.folder}/rows-native", program):
        text = t.command(["objdump", "--dwarf=decodedline", path]).stdout
        rows.append({int(a, 16) for a in re.findall(r"^rows\.cc +\d+ +(0x[0-9a-f]+)\b", text, re.M)})
    need(len(rows[1]) > 0.9 * len(rows[0]), "rows are lost", len(rows[0]), len(rows[1]))
    need(not {row for row in rows[1] for jump in jumps if jump < row < jump + 5}, "rows in jumps")


def check_archive(t):
    one = t.compile("int one(int x) { return x * 3 + 1; }", "a-member-with-a-long-name", "-O1")
    two = t.compile("int two(int x) { return x * 5 + 1; }", "two", "-O1")
    old, new = f"{t.folder}/libold.a", f"{t.folder}/made/libold.a"
    t.command(["ar", "rcs", old, one, two])
    before = open(old, "rb").read()
    t.object("-fn", "one,two", old, "-o", f"{t.folder}/made")
    need(open(old, "rb").read() == before, "the archive has changed")
    same(t.command(["ar", "t", new]).stdout, t.command(["ar", "t", old]).stdout, "members")
    main = t.compile("int one(int); int two(int); int main(void) { return one(2) + two(one(1)) - 28; }", "uses", "-O0")
    program = t.link("archived", main, new)
    t.command([program], env=os.environ | {"INLAY_OUT": f"{t.folder}/archived.trace"})
    same(calls(t.report(f"{t.folder}/archived.trace")), {"one": 2, "two": 1}, "calls")


# --- what else is in a process

DESCRIPTORS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(volatile int x) { return x + 1; }
__attribute__((noinline)) int many(void) { int sum = 0; for (int i = 0; i < 20000; i++) sum += leaf(i); return sum; }
int main(int argc, char **argv)
{
    struct stat st;
    leaf(0);
    if (argc > 2 && vfork() == 0) {
        close_range(3, ~0u, 0);
        _exit(0);
    }
    close_range(3, ~0u, 0);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    for (int at = 100; at < 1060; at++) dup2(fd, at);
    many();
    if (fstat(fd, &st) != 0 || st.st_size != 0) return 1;
    for (int at = 100; at < 1060; at++)
        if (fstat(at, &st) != 0 || st.st_size != 0) return 2;
    return 0;
}
"""

PLUG_IN = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int own(volatile int x) { return x; }
static const char *file;
static void *load(void *arg)
{
    void *library = dlopen(file, RTLD_NOW);
    if (!library || ((int (*)(int))dlsym(library, "plug"))(3) != 10) abort();
    dlclose(library);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t t;
    int status = argc;
    file = argv[1];
    load(0);
    if (pthread_create(&t, 0, load, 0) != 0 || pthread_join(t, 0) != 0) return 1;
    if (fork() == 0) _exit(own(0));
    wait(&status);
    return own(status);
}
"""


def check_descriptors(t):
    """A program that closes all descriptors, and has files of its own under their numbers, finds nothing in these."""
    made = t.compile(DESCRIPTORS, "descriptors", "-O1")
    t.object("--all", made, "-o", f"{t.folder}/made")
    program, own = t.link("descriptors", f"{t.folder}/made/descriptors.o"), f"{t.folder}/own"
    t.command([program, own], env=os.environ | {"INLAY_OUT": f"{program}.trace"})
    same(calls(t.report(f"{program}.trace")), {"main": 1, "leaf": 20001, "many": 1}, "calls")
    t.command([program, own, "vfork"], env=os.environ | {"INLAY_OUT": f"{program}.trace"})
    need(os.path.getsize(own) == 0, "the program's file")


def check_plug_in(t):
    """A plug-in that records by itself, or by its program, comes and goes."""
    made = t.compile("int plug(int x) { return x * 3 + 1; }", "plug", "-O1", "-fPIC")
    host = t.compile(PLUG_IN, "host", "-O1")
    t.object("--all", made, host, "-o", f"{t.folder}/made")
    plug = f"{t.folder}/plug.so"
    t.command(["gcc", "-shared", f"{t.folder}/made/plug.o", f"-L{t.build}", "-linlay-trace", "-o", plug])
    t.command(["gcc", host, "-pthread", "-o", f"{t.folder}/host"])
    t.link("own-host", f"{t.folder}/made/host.o", "-pthread")
    t.link("open-host", f"{t.folder}/made/host.o", "-pthread", "-rdynamic")
    for name in ("host", "own-host", "open-host"):
        t.command([f"{t.folder}/{name}", plug], env=os.environ | {"INLAY_OUT": f"{t.folder}/{name}.trace"})
    text = t.command([t.inlay, "trace", "report", f"{t.folder}/host.trace"]).stdout
    need("; status 0\n" in text, "what a library is told of the end", text[:200])
    t.command([t.inlay, "wrap", "gcc", "-shared", made, "-o", plug])
    need("NODELETE" in t.command(["readelf", "-dW", plug]).stdout, "inlay wrap: a library that stays")


SUCCESSION = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) int own(volatile int x) { return x; }
static int mappings(void) { char line[256]; int n = 0; FILE *f = fopen("/proc/self/maps", "r"); while (fgets(line, 256, f)) n++; fclose(f); return n; }
int main(int argc, char **argv)
{
    int sum = own(0), before = 0;
    for (int i = 1; i <= 150 * (argc - 1); i++) {
        void *library = dlopen(argv[(i - 1) % (argc - 1) + 1], RTLD_NOW);
        int (*plug)(int) = library ? (int (*)(int))dlsym(library, "plug") : 0;
        if (!plug) return printf("%s\\n", dlerror()), 1;
        sum += plug(i);
        dlclose(library);
        if (i == 10) before = mappings();
    }
    return sum == 0 || mappings() > before + 5;
}
"""


def check_succession(t):
    """Plug-ins in one another's place are told apart; one that records by itself stays loaded, and nothing grows."""
    host = t.compile(SUCCESSION, "succession", "-O1")
    plugs = [t.compile("int plug(int x) { return x * 3 + 1; }", f"plug{k}", "-O1", "-fPIC") for k in (1, 2)]
    t.object("--all", host, *plugs, "-o", f"{t.folder}/made")
    own, guests = f"{t.folder}/own-plug.so", [f"{t.folder}/guest{k}.so" for k in (1, 2)]
    for k in (0, 1):
        t.command(["gcc", "-shared", f"{t.folder}/made/plug{k + 1}.o", "-o", guests[k]])
    t.command(["gcc", "-shared", f"{t.folder}/made/plug1.o", f"-L{t.build}", "-linlay-trace", "-o", own])
    t.command(["gcc", host, "-o", f"{t.folder}/plain-host"])
    out = f"{t.folder}/succession.trace"
    t.command([f"{t.folder}/plain-host", own], env=os.environ | {"INLAY_OUT": out})
    same(calls(t.report(out)), {"plug": 150}, "calls of a plug-in that records by itself")
    program = t.link("open-succession", f"{t.folder}/made/succession.o", "-rdynamic")
    t.command([program, *guests], env=os.environ | {"INLAY_OUT": out})
    rows = [row for row in t.report(out)["procedures"] if row["name"] == "plug"]
    found = {os.path.basename(row["image"]): 0 for row in rows}
    for row in rows:
        found[os.path.basename(row["image"])] += row["calls"]
    same(found, {"guest1.so": 150, "guest2.so": 150}, "calls by plug-in")


def check_output(t):
    """A file that is no recording stays as it is; a recording of an earlier process of the same number does not go on."""
    made = t.compile("int main(int argc, char **argv) { return argc > 9; }", "writes", "-O1")
    t.object("--all", made, "-o", f"{t.folder}/made")
    program, out = t.link("writes", f"{t.folder}/made/writes.o"), f"{t.folder}/writes.out"
    with open(out, "w", encoding="utf-8") as f:
        f.write("somebody's notes\n")
    done = t.command([program], env=os.environ | {"INLAY_OUT": out})
    others = [name for name in os.listdir(t.folder) if name.startswith("writes.out.")]
    need(open(out, encoding="utf-8").read() == "somebody's notes\n", "the file has changed")
    need(len(others) == 1 and "is no recording" in done.stderr and others[0] in done.stderr, "the other file", others, done.stderr)
    same(calls(t.report(f"{t.folder}/{others[0]}")), {"main": 1}, "calls")
    os.unlink(out)
    t.command([program], env=os.environ | {"INLAY_OUT": out})
    before = t.report(out)["pid"]
    time.sleep(0.05) # a process's beginning is known to a hundredth of a second
    same_number = ("import os, struct, sys; f = open(sys.argv[1], 'r+b'); text = f.read(512); "
                   f"at = text.index(struct.pack('<I', {before})); f.seek(at); f.write(struct.pack('<I', os.getpid())); "
                   "f.close(); os.execv(sys.argv[2], sys.argv[2:])")
    t.command([sys.executable, "-c", same_number, out, program], env=os.environ | {"INLAY_OUT": out})
    need(len(t.json("report", out)) == 1, "two processes of one number in one file")


PLACES = r"""
#include <stdio.h>
extern const int __start_places[], __stop_places[];
__attribute__((noinline)) int f(int x)
{
    __asm__ volatile("lea 1(%%rdi),%%eax\n1: nop\n.pushsection places,\"aw\"\n.long 1b - .\n.popsection" ::: "eax");
    return x * 3 + 1;
}
int main(void)
{
    f(2);
    for (const int *p = __start_places; p < __stop_places; p++) printf("%02x\n", ((const unsigned char *)p)[*p]);
    return 0;
}
"""

FAULTS = r"""
#include <signal.h>
static void caught(int) { sigset_t s; sigfillset(&s); sigprocmask(SIG_UNBLOCK, &s, 0); throw 1; }
__attribute__((noinline)) int get(int *p) { try { return *p; } catch (int) { return -1; } }
int main() { int x = 1; signal(SIGSEGV, caught); return get(&x) + get(nullptr); }
"""


def check_places(t):
    """Instructions that tables name stay in their places, as do those whose faults an exception table catches."""
    t.object("--all", t.compile(PLACES, "places", "-O1"), "-o", f"{t.folder}/made", "--report=/dev/null")
    program = t.link("places", f"{t.folder}/made/places.o")
    there = t.command([program], env=os.environ | {"INLAY_OUT": f"{program}.trace"}).stdout
    need(there == "90\n", "the instruction that a table names", there)
    t.object("--all", t.compile(FAULTS, "faults", "-O2", "-fnon-call-exceptions", compiler="g++"), "-o", f"{t.folder}/made",
             "--report=/dev/null")
    program = t.link("faults", f"{t.folder}/made/faults.o", compiler="g++")
    t.command([program], env=os.environ | {"INLAY_OUT": f"{program}.trace"})


# --- a build

def check_wrap(t):
    """Libraries, shared, whose version scripts hide what they do not name, and a program that uses them: one recording.
    Statuses and outputs are the compiler's."""
    folder = f"{t.folder}/build"
    os.makedirs(folder)
    texts = {"part.c": "int part(int x) { return x * 3 + 1; }\nint again(int x) { return part(x) + part(x + 1); }\n",
             "more.c": "int more(int x) { return x + 1; }\n",
             "main.c": "int again(int), more(int);\nint helper(int x) { return more(again(x)); }\nint main(void) { return helper(1) - 12; }\n",
             "part.map": "PART_1 { global: again; local: *; };\n",
             "more.map": "/* { */ { global: more; local: *; }; # for libtool\n",
             "bad.c": "int f( { }\n",
             "Makefile": "app: main.o libpart.so libmore.so\n\t$(CC) main.o -L. -lpart -lmore -Wl,-rpath,$(CURDIR) -o $@\n"
                         "libpart.so: part.c\n\t$(CC) -O2 -fPIC -shared part.c -Wl,--version-script=part.map -o $@\n"
                         "libmore.so: more.o\n\t$(CC) -shared more.o -Wl,-version-script -Wl,more.map -o $@\n"
                         "more.o: more.c\n\t$(CC) -O2 -fPIC -c more.c\n"
                         "main.o: main.c\n\t$(CC) -O2 -fno-inline -c main.c\n"}
    for name, text in texts.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    report = f"{folder}/report"
    t.command(["make", "-C", folder, f"CC={t.inlay} wrap --report={report} gcc"])
    done = subprocess.run([f"{folder}/app"], env=os.environ | {"INLAY_OUT": f"{folder}/app.trace"}, check=False)
    need(done.returncode == 0, "the program's status", done.returncode)
    same(calls(t.report(f"{folder}/app.trace")), {"main": 1, "helper": 1, "again": 1, "part": 2, "more": 1}, "calls")
    need(sorted(name for name in os.listdir(folder) if "trace" in name) == ["app.trace"], "files", os.listdir(folder))
    need(t.command([t.inlay, "wrap", "gcc", "-c", f"{folder}/bad.c"], 1).stderr.count("bad.c") >= 1, "the compiler's words")
    for script in ("PART { global: again; local: *;", "{ global: again; local: * };"):
        with open(f"{folder}/bad.map", "w", encoding="utf-8") as f:
            f.write(script)
        said = t.command([t.inlay, "wrap", "gcc", "-shared", f"{folder}/more.o", f"-Wl,--version-script={folder}/bad.map"], 1).stderr
        need(f"{folder}/bad.map" in said, "the linker's words name the script", said)
    need("gcc" in t.command([t.inlay, "wrap", "gcc", "--version"]).stdout.lower(), "--version")
    with open(f"{folder}/words", "w", encoding="utf-8") as f:
        f.write(f"-O1 '-c' \"{folder}/part.c\"\n--output={folder}/named\\.o")
    t.command([t.inlay, "wrap", "gcc", f"@{folder}/words"])
    need("inlay" in t.command(["nm", f"{folder}/named.o"]).stdout, "words in a file")
    with open(f"{folder}/first.h", "w", encoding="utf-8") as f:
        f.write("int part(int);\n")
    t.command([t.inlay, "wrap", "gcc", f"{folder}/first.h"])  # nothing is linked
    t.command([t.inlay, "wrap", "g++", "-x", "c++-header", f"{folder}/first.h", "-o", f"{folder}/named.gch"])
    need(os.path.exists(f"{folder}/first.h.gch") and os.path.exists(f"{folder}/named.gch"), "precompiled headers")
    for linker in ("bfd", "gold", "lld"):
        t.command(["gcc", "-shared", f"{folder}/named.o", "-o", f"{folder}/bare.so"])
        said = t.command(["gcc" if linker != "lld" else "clang", f"-fuse-ld={linker}", f"{folder}/main.c", f"{folder}/more.c", f"{folder}/bare.so", "-o", f"{folder}/bare"], 1).stderr
        need("needs_libinlay_trace" in said, f"{linker} says what is missing", said)
    t.command(["gcc", f"{folder}/main.c", f"{folder}/more.c", f"{folder}/bare.so", f"-L{t.build}", "-linlay-trace", "-o", f"{folder}/bare"])


def check_one_step(t, compiler, *flags):
    """Compiled and linked in one step: all sources are instrumented, what is linked besides is not, and each file that the
    compiler writes is where it writes it alone."""
    folder, files = f"{t.folder}/one-step", []
    for name in ("native", "ours"):
        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        os.makedirs(f"{folder}/{name}/sub")
        for path, text in (("main.c", "int part(int); int other(int);\nint main(void) { return part(1) + other(2) - 7; }\n"),
                           ("sub/part.c", "int part(int x) { return x * 3 + 1; }\n"),
                           ("other.c", "int other(int x) { return x + 1; }\n")):
            with open(f"{folder}/{name}/{path}", "w", encoding="utf-8") as f:
                f.write(text)
        t.command([compiler, "-c", "other.c"], cwd=f"{folder}/{name}")
        front = [] if name == "native" else [t.inlay, "wrap"]
        t.command([*front, compiler, "main.c", "sub/part.c", "other.o", *flags, "-o", "app"], cwd=f"{folder}/{name}")
        files.append(sorted(os.path.relpath(f"{at}/{one}", f"{folder}/{name}") for at, _, some in os.walk(f"{folder}/{name}")
                            for one in some))
    same(files[1], files[0], "files")
    t.command([f"{folder}/ours/app"], env=os.environ | {"INLAY_OUT": f"{folder}/app.trace"})
    found = calls(t.report(f"{folder}/app.trace"))
    same({name: found.get(name) for name in ("main", "part", "other")}, {"main": 1, "part": 1, "other": None}, "calls")
    need("inlay" not in t.command(["nm", f"{folder}/ours/other.o"]).stdout, "an object that was there")


def check_numbers(t):
    """More sections than 16 bits number, of which the last ones hold code."""
    empty = "".join(f'asm(".section .data.d{i}, \\"aw\\"; .byte 1; .previous");\n' for i in range(65400))
    text = empty + ("int printf(const char *, ...);\n__attribute__((section(\".text.z\"), noinline)) int last(int x) "
                    "{ return x > 3 ? printf(\"%d\\n\", x) : x * 3; }\nint main(void) { return last(1) + last(10); }\n")
    made = t.compile(text, "numbers", "-O1", "-ffunction-sections")
    t.object("--all", made, "-o", f"{t.folder}/many.o", "--report=/dev/null")
    head = t.command(["readelf", "-hW", f"{t.folder}/many.o"])
    need(re.search(r"section headers:\s+0 \(65\d{3}\)", head.stdout), "numbers beyond 16 bits", head.stdout)
    done = subprocess.run([t.link("many", f"{t.folder}/many.o")], capture_output=True, text=True, check=False,
                          env=os.environ | {"INLAY_OUT": f"{t.folder}/many.trace"})
    same((done.returncode, done.stdout), (6, "10\n"), "status and output")
    same(calls(t.report(f"{t.folder}/many.trace")), {"main": 1, "last": 2}, "calls")
    need(" last" in t.command(["nm", f"{t.folder}/many.o"]).stdout, "symbols")


def check_compressed(t):
    """Debug information that is compressed in the older way has its relocations' offsets beyond its end."""
    text = "__attribute__((noinline)) int f(int x) { return x * 3 + 1; }\nint main(void) { return f(2) + 1; }\n"
    made = t.compile(text, "older", "-O1", "-g")
    t.command(["objcopy", "--compress-debug-sections=zlib-gnu", made])
    need(".zdebug" in t.command(["readelf", "-SW", made]).stdout, "no .zdebug section")
    t.object("--all", made, "-o", f"{t.folder}/packed.o", "--report=/dev/null")
    t.command([t.link("packed", f"{t.folder}/packed.o")], 8, env=os.environ | {"INLAY_OUT": f"{t.folder}/packed.trace"})
    same(calls(t.report(f"{t.folder}/packed.trace")), {"main": 1, "f": 1}, "calls")


# --- what is not done

def check_refusals(t):
    made = t.compile("int f(int x) { return x + 1; }\n", "plain", "-O1")
    whole = open(made, "rb").read()
    slim = t.compile("int f(int x) { return x + 1; }\n", "slim", "-O1", "-flto")
    fat = t.compile("int f(int x) { return x + 1; }\n", "fat", "-O1", "-flto", "-ffat-lto-objects")
    shutil.copy(made, f"{t.folder}/stripped.o")
    t.command(["strip", "-s", f"{t.folder}/stripped.o"])
    cases = {"empty": b"", "text": b"hello\n", "short": whole[:100], "arm": whole[:18] + b"\xb7\x00" + whole[20:],
             "cut": whole[:len(whole) // 2]}
    for name, content in cases.items():
        with open(f"{t.folder}/{name}.o", "wb") as f:
            f.write(content)
    out = f"{t.folder}/refused"
    wanted = {"empty": "empty", "text": "not an ELF", "short": "cut short|no sections|outside", "arm": "processor", "cut": "",
              "slim": "-flto", "fat": "-flto", "stripped": "stripped"}
    for name, text in wanted.items():
        done = t.object("--all", f"{t.folder}/{name}.o", "-o", out, "--report=/dev/null", status=1)
        need(re.search(text, done.stderr) and f"{name}.o" in done.stderr, f"{name}: the message", done.stderr)
        need(not os.path.exists(f"{out}/{name}.o"), f"{name}: something was written", os.listdir(out))
    with open(f"{t.folder}/gopher.o", "wb") as f:
        text = b"go object linux amd64 go1.19  X\n"
        f.write(b"!<arch>\n" + b"__.PKGDEF       0           0     0     644     %-10d`\n" % len(text) + text)
    need("Go" in t.object("--all", f"{t.folder}/gopher.o", "-o", out, status=1).stderr, "Go's objects")
    need("not a relocatable" in t.object("--all", "/bin/true", "-o", out, status=1).stderr, "a program")
    need("nobody" in t.object("-fn", "nobody", made, "-o", out, status=1).stderr, "a name that is not there")
    need(open(made, "rb").read() == whole, "the object has changed")
    for argv in ([], ["--all"], [made, "-o", out], ["--all", made], ["--all", "--wave", made, "-o", out],
                 ["--all", "--min-size=x", made, "-o", out]):
        t.object(*argv, status=2)
    t.command([t.inlay, "wrap"], 2)
    need("-flto" in t.command([t.inlay, "wrap", "gcc", "-flto", "-c", f"{t.folder}/plain.c", "-o", f"{t.folder}/l.o"], 1).stderr,
         "wrap: -flto")
    need(not os.path.exists(f"{t.folder}/l.o"), "an object that is not instrumented stays")
    split = t.compile("int f(int x) { return x + 1; }\n", "split", "-O1", "-fsplit-stack")
    need("-fsplit-stack" in t.object("--all", split, "-o", out, status=1).stderr, "split stacks")
    t.object("--all", made, "-o", f"{t.folder}/twice.o")
    need("already" in t.object("--all", f"{t.folder}/twice.o", "-o", out, status=1).stderr, "an instrumented object")
    tiny = t.compile("void f(void) { }\nvoid g(void) { }\n", "tiny", "-Os", "-fcf-protection=none")
    report = t.object("--all", tiny, "-o", out, "--report=-").stdout
    need(re.search(r"tiny\.o: f: not instrumented: there is no room", report), "a procedure without room", report)


KEYS = """
#include <pthread.h>
#include <stdio.h>
#pragma weak pthread_key_create
#pragma weak pthread_rwlock_trywrlock
int main(void) { printf("%d %d\\n", pthread_key_create != 0, pthread_rwlock_trywrlock != 0); return 0; }
"""


def check_static(t):
    """What a static program is without it is without when it records: libgcc's gthr asks for a part to know of the whole."""
    made = t.compile(KEYS, "keys", "-O1")
    t.command(["gcc", "-static", made, "-o", f"{t.folder}/keys"])
    t.object("--all", made, "-o", f"{t.folder}/keys.traced.o")
    t.command(["gcc", "-static", f"{t.folder}/keys.traced.o", f"-L{t.build}", "-linlay-trace", "-o", f"{t.folder}/keys.traced"])
    same(t.command([f"{t.folder}/keys.traced"], cwd=t.folder).stdout, t.command([f"{t.folder}/keys"]).stdout, "what it is linked with")
    same(calls(t.report(f"{t.folder}/keys.traced.trace")), {"main": 1}, "calls")


def tests(t, results):
    for way in WAYS:
        yield f"trees {way}", lambda w=way: check_trees(t, w, "g++")
    yield "trees clang", lambda: check_trees(t, "O2", "clang++")
    yield "processes", lambda: check_processes(t)
    yield "library", lambda: check_library(t)
    for flags in (["-O0"], ["-O2"], ["-O1", "-fPIC"], ["-O2", "-fcf-protection", "-gz"], ["-Os"], ["-Os", "-ffunction-sections"],
                  ["-O2", "-fpatchable-function-entry=8,4"], ["-O2", "-pg"], ["-O2", "-pg", "-mfentry"], ["-O2", "-fsanitize=address,undefined"],
                  ["-O1", "-mindirect-branch=thunk", "-mfunction-return=thunk", "-fcf-protection=none"]):
        yield f"readers {' '.join(flags)}", lambda f=flags: check_readers(t, f, "g++")
    yield "readers clang", lambda: check_readers(t, ["-O2"], "clang++")
    for compiler in ("gcc", "clang"):
        yield f"exits {compiler}", lambda c=compiler: check_exits(t, c)
    yield "debugger", lambda: check_debugger(t)
    for flags in (["-gdwarf-5"], ["-gdwarf-4", "-ffunction-sections"]):
        yield f"steps {' '.join(flags)}", lambda f=flags: check_steps(t, *f)
    yield "rows", lambda: check_rows(t)
    yield "archive", lambda: check_archive(t)
    yield "descriptors", lambda: check_descriptors(t)
    yield "plug-in", lambda: check_plug_in(t)
    yield "succession", lambda: check_succession(t)
    yield "output", lambda: check_output(t)
    yield "places", lambda: check_places(t)
    yield "numbers", lambda: check_numbers(t)
    yield "compressed", lambda: check_compressed(t)
    yield "wrap", lambda: check_wrap(t)
    yield "static", lambda: check_static(t)
    for compiler, flags in (("gcc", ["-MD", "--coverage", "-g", "-gsplit-dwarf"]), ("gcc", ["-save-temps", "-fuse-ld=gold"]),
                            ("clang", ["-MMD", "-save-temps=obj"]), ("clang", ["--ld-path=/usr/bin/ld"])):
        yield f"one step {compiler} {' '.join(flags)}", lambda c=compiler, f=flags: check_one_step(t, c, *f)
    yield "refusals", lambda: check_refusals(t)
    yield from settings.tests(t)
    yield from odd.tests(t)
    yield from kinds.tests(t, need, results)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("object", options) as results:
        t = Objects(options.build, results.folder)
        for name, function in tests(t, results):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
