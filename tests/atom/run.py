#!/usr/bin/python3
"""ATOM's tools: those of examples/atom and those of tests/atom/tools, on programs of which the right answer
is known, under both engines. Ends with 'N passed, N failed'.

  tests/atom/run.py [--build BUILD] [--only WORDS]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLES, TOOLS = f"{ROOT}/examples/atom", f"{HERE}/tools"
ENGINES = ("jit", "rewrite")
LIMIT = 120


class Failed(Exception):
    pass


def need(good, text):
    if not good:
        raise Failed(text)


class Place:
    def __init__(self, build, folder):
        self.inlay = f"{os.path.abspath(build)}/inlay"
        self.build, self.folder = os.path.abspath(build), folder
        self.programs = {name: f"{folder}/{name}" for name in ("known", "keeps", "sample", "sample_static",
                                                                 "waiting", "memory", "doubles", "facts",
                                                                 "resolved", "resolved_static")}
        self.programs["threads"] = f"{self.build}/tests/samples/threads"

    def call(self, *argv, status=0, **env):
        done = subprocess.run(["timeout", "-s", "KILL", str(LIMIT), *argv], cwd=self.folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": self.folder} | env)
        if status is not None and done.returncode != status:
            raise Failed(f"{' '.join(argv[:6])} ended with {done.returncode}\n{done.stderr[-600:]}")
        return done

    def compile(self):
        for name in ("known", "keeps", "facts"):
            self.call("gcc", "-nostdlib", "-static", "-no-pie", f"{HERE}/{name}.S", "-o", self.programs[name])
        for name, options in (("sample", []), ("sample_static", ["-static"])):
            self.call("gcc", "-O1", *options, f"{HERE}/sample.c", "-o", self.programs[name])
        for name, options in (("resolved", []), ("resolved_static", ["-static-pie"])):
            self.call("gcc", "-O1", "-g", "-fno-builtin", "-pthread", *options, f"{HERE}/resolved.c", "-o",
                      self.programs[name])
        for name in ("waiting", "memory", "doubles"):
            self.call("gcc", "-O1", "-pthread", f"{HERE}/{name}.c", "-o", self.programs[name])

    def read(self, name):
        with open(f"{self.folder}/{name}") as f:
            return f.read()

    def make(self, tool, program, engine, *more, out=None):
        at = EXAMPLES if os.path.exists(f"{EXAMPLES}/{tool}.inst.c") else TOOLS
        out = out or f"{self.folder}/{tool}.{program}.{engine}"
        self.call(self.inlay, "atom", self.programs[program], f"{at}/{tool}.inst.c", f"{at}/{tool}.anal.c",
                  "-o", out, f"--engine={engine}", *more)
        return out

    def result(self, tool, program, engine, **env):
        """What the tool writes to its file when the program runs with it."""
        out = self.make(tool, program, engine)
        result = f"{self.folder}/{tool}.out"
        if os.path.exists(result):
            os.unlink(result)
        self.call(out, self.folder, **env)
        return self.read(f"{tool}.out")


# --- the examples ---

def read(place, engine):
    for program in ("sample", "sample_static"):
        got = place.result("read", program, engine)
        need(got == "3 calls, 1010 bytes asked for\n", f"{program}: {got}")


def counts(text):
    """The lines of prof's report: procedure -> instructions."""
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\S+) +(\d+)$", text, re.M)}


def prof(place, engine):
    got = counts(place.result("prof", "known", engine))
    want = {"_start": 27, "walk": 32772, "leaf": 20, "total": 32819}
    need(got == want, f"known: {got}")
    got = counts(place.result("prof", "sample", engine))
    need(got["leaf"] == 2 * 4 and got["total"] == sum(n for p, n in got.items() if p != "total"),
         f"sample: {got}")
    if engine == "jit":
        return
    other = counts(place.result("prof", "sample", "jit"))
    differ = {p for p in got.keys() | other.keys() if got.get(p) != other.get(p) and not p.startswith("0x")}
    need(differ <= {"total"}, f"sample: the engines differ in {differ}")


def cache(place, engine):
    got = place.result("cache", "known", engine)
    m = re.fullmatch(r"(\d+) references, (\d+) misses, .*\n", got)
    # Besides the table, at most a line of the stack and of what follows the table, each time they come.
    need(m and m[1] == "8216" and 8192 <= int(m[2]) <= 8200, got)


def dyn(place, engine):
    got = place.result("dyn", "sample", engine)
    need(got == "607 bytes allocated in 4 pieces, 600 freed\n", got)
    got = place.result("dyn", "sample_static", engine)
    m = re.fullmatch(r"(\d+) bytes allocated in (\d+) pieces, (\d+) freed\n", got)
    # Besides the program's the C library's own, of which newer ones give some back.
    need(m and int(m[1]) >= 607 and int(m[2]) >= 4 and 600 <= int(m[3]) <= int(m[1]) - 7, got)


def memory(place, engine):
    """The program asks in all ways, and says itself for how much."""
    got = place.call(place.make("dyn", "memory", engine)).stdout
    need(got == place.read("dyn.out"), f"{got}dyn: {place.read('dyn.out')}")
    if engine == "jit":
        return
    folder = f"{place.folder}/memory.libs"
    place.make("dyn", "memory", engine, "--with-libs", folder, out="memory.all")
    own, all_of = ([int(n) for n in re.findall(r"\d+", text)]
                   for text in (place.call(f"{folder}/memory.all").stdout, place.read("dyn.out")))
    need(all(a >= b for a, b in zip(all_of, own)), f"{all_of} {own}")


def keeps(place, engine):
    """A procedure that is replaced changes no more registers than before; code that nothing is inserted in stays."""
    report = f"{place.folder}/keeps.json"
    place.call(place.make("keeps", "keeps", engine, *(["--report", report] if engine == "rewrite" else [])))
    if engine == "jit":
        return
    place.make("dyn", "sample_static", engine, "--report", report)
    procs = {p["name"]: p["status"] for p in json.loads(place.read("keeps.json"))["images"][0]["list"]}
    replaced = procs.get("malloc") or procs.get("__libc_malloc")
    need((procs["fib"], replaced) == ("not asked for", "moved"), f"{procs['fib']} {replaced}")


def audit(place, engine):
    got = place.result("audit", "known", engine).split("\n")
    want = [r" +address +executed +wasted", r"0x0*401029 +8192 +8192", r" +total +8197 +8192", ""]
    need(len(got) == len(want) and all(re.fullmatch(w, g) for w, g in zip(want, got)), "\n".join(got))


def io(place, engine):
    for program in ("sample", "sample_static"):
        got = place.result("io", program, engine)
        path = f"{place.folder}/data"
        need(got == f"3 {path} read: 3 calls, 750 bytes\n3 {path} written: 2 calls, 750 bytes\n", got)
    got = place.result("io", "sample", engine, IO_CYCLES="1")
    need(all(int(n) > 0 for n in re.findall(r", (\d+) cycles", got)) and "cycles" in got, got)


BEHIND = """
    .globl main
main: sub $8, %rsp
    xor %esi, %esi
    xor %edx, %edx
    cmp $9, %edi
    jne there
    mov $1, %edi
    call write@PLT
there: xor %eax, %eax
    add $8, %rsp
    ret
    .section .note.GNU-stack
"""


def behind(place, engine):
    """No end of a call is seen where another way leads behind it: that call is named, and nothing else is said; of many the
    first three are."""
    with open(f"{place.folder}/behind.S", "w") as f:
        f.write(BEHIND)
    program = place.programs["behind"] = f"{place.folder}/behind"
    place.call("gcc", "-no-pie", "-Wl,-z,lazy", "behind.S", "-o", program)
    symbols = place.call("nm", program).stdout
    called = int(re.search(r"(\w+) t there", symbols)[1], 16) - 5
    with open(f"{place.folder}/ends.c", "w") as f:
        f.write("#include <stdio.h>\n#include <instrument.h>\nInstrument(int c, char **v, Obj *o) { Proc *p;"
                "int n; AddCallProto(\"There()\"); for (p = GetFirstObjProc(o); p; p = GetNextProc(p))"
                "if (!ProcName(p) || strstr(ProcName(p), \"@plt\"))"
                "for (n = 0; n < TIMES; n++) AddCallProc(p, ProcAfter, \"There\"); }")
    with open(f"{place.folder}/there.c", "w") as f:
        f.write("void There() {}\n")
    line = f"nothing can be added behind the call at {called:#x}: other ways lead there too"
    for times, wanted in (("1", [line]), ("5", [line, line, f"{line} (more such places are not told)"])):
        argv = ("-include", "string.h", f"-DTIMES={times}", "ends.c", "there.c", "-o", "behind.out", f"--engine={engine}")
        said = place.call(place.inlay, "atom", program, *argv).stderr
        if engine == "jit":
            said = place.call("./behind.out").stderr
        need(re.findall("AddCallProc: (.*)", said) == wanted, said)


def gprof(place, engine):
    got = place.result("gprof", "sample", engine, GPROF_CALLS_ONLY="1")
    for line in ("fib +177 calls", "leaf +4 calls", "twice +2 calls", "main +1 calls"):
        need(re.search(f"^{line}$", got, re.M), got)
    for arc in ("main -> fib 1", "fib -> fib 176", "twice -> leaf 4", "main -> twice 2", "main -> files 1"):
        need(re.search(f"^{arc}$", got, re.M), f"no {arc} in\n{got}")
    got = place.result("gprof", "sample", engine)
    times = {m[1]: (int(m[2]), int(m[3])) for m in
             re.finditer(r"^(\S+) +\d+ calls +(\d+) cycles, +(\d+) of its own$", got, re.M)}
    need(times["main"][0] >= times["fib"][0] >= times["fib"][1] > 0, got)
    need(times["twice"][0] >= times["twice"][1] + times["leaf"][0] * 0.99, got)


def trace(place, engine):
    """The whole trace is known but for the stack's address."""
    got = place.result("trace", "known", engine)
    got = re.sub(r"7ff\w+", "stack", got).splitlines()
    table = 0x410000
    want = []
    for again in (1, 0):
        want.append("401007 store stack")
        for k in range(4096):
            want += [f"401029 load {table + 32 * k:x}", f"40103c branch {'taken' if k < 4095 else 'not taken'}"]
        want += ["40103e load stack", f"40100e branch {'taken' if again else 'not taken'}"]
    for again in (4, 3, 2, 1, 0):
        want += ["401015 store stack", f"401041 load {table + 131072:x}", f"401048 store {table + 131080:x}",
                 "40104f load stack", f"40101c branch {'taken' if again else 'not taken'}"]
    need(len(got) == len(want), f"{len(got)} lines, not {len(want)}")
    for g, w in zip(got, want):
        need(g == w, f"{g}, not {w}")


# --- the interface ---

def order(place, engine):
    out = place.make("order", "sample", engine, "--tool-arg", "an argument")
    got = place.call(out, place.folder).stdout
    leaf = "leaf enters\nleaf's block\nleaf leaves\n"
    want = ("program begins\nobject begins\n" + 4 * leaf + "object ends\nan argument\n"
            "1 -1 name 0\n0 2199023255552\n11 -2 name 1\n4 2199023255552\n21 -3 name 2\n8 2199023255552\n")
    need(got == want, got)
    need(place.call(place.make("order", "sample", engine), place.folder).stdout ==
         want.replace("an argument", "no argument"), "without arguments")


PLACES = [(2, 0), (2, 0), (5, 0), (17, 0), (17, 0), (27, 0), (7, 5), (2, 0), (7, 0), (5, 0), (10, 70), (5, 0),
          (5, 0)]


def places(place, engine):
    got = place.call(place.make("places", "known", engine)).stdout
    need(got == "".join(f"{k}: {n} {s}\n" for k, (n, s) in enumerate(PLACES)), got)


def query(place, engine):
    got = place.call(place.make("query", "known", engine)).stdout
    for line in ("objects 1", "procs 3", "blocks 11", "insts 22", "array 1", "_start 4198400", "leaf 1",
                 "no such 0", "last 1", "prev 1", "target 4198407", "data 131088", "types: Load Int Mem 0",
                 "types: Store Int Mem 2", "types: Load Jump Int Mem Ret 4", "types: Int CondBr 4",
                 "types: Store Jump Int Mem 6", "types: Int Add 7", "RC 1", "RC -1", "list of 11, shift 0, text 1"):
        need(f"\n{line}\n" in f"\n{got}", f"no '{line}' in\n{got}")


def doubles(place, engine):
    """Floating-point registers as arguments; the program's own stay as they are."""
    alone = place.call(place.programs["doubles"]).stdout
    got = place.call(place.make("doubles", "doubles", engine)).stdout
    a, c, mixed, csum = 0.0, 0.0, 0.0, 0.0
    total = 0.0
    for i in range(10):
        c = total / 2
        a, mixed, csum = a + i, mixed + 3 * c + 3 * 1.25, csum + c
        total = i * 1.25 + c * 3 + 1.25
    need(got == f"{alone}{a:g} 12.5 {mixed:g} {csum:g} {c:.1f} 3 3 1.2\n", got)


def threads(place, engine):
    need(place.result("threads", "threads", engine) == "equal many threads\n", place.read("threads.out"))


def names(place, engine):
    """Tru64's names, numbers and signatures; and C++ on both sides, with what is made before the start."""
    out = f"{place.folder}/names"
    place.call(place.inlay, "atom", place.programs["known"], f"{TOOLS}/names.inst.cc", f"{TOOLS}/names.anal.cc", "-o",
               out, f"--engine={engine}")
    got = place.call(out).stdout
    need(got == "18 sets right, 23 functions, 17 more\n", got)


OBJECT = ("text: 1", "text has: 1", "data: 8", "bss: 1", "bss at: 8", "hint: 1", "shared: 0", "symbolic: 0",
          "entries: 5", "objects: 11", "program: 1", "array: 1", "named: 1", "no such: 0", "threads: 0", "agreed: 0",
          "kinds: 1")
FRAME = ("frame", "saved", "saved at", "locals at", "base", "return in", "taken", "symbol", "leaves", "catches", "entries",
         "moves sp", "prologue", "floats", "gp", "old")
# Of each procedure: those answers; of each instruction its offset, class, opcode (or 40), and what else is not 0.
PROCS = {
    "_start": ([0, 0, 0, 0, 4, 26, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0],
               ["0 6 34 taken entry", "5 6 34", "10 6 34", "15 7 40", "20 6 1a", "22 7 40", "27 10 40", "29 17 40"]),
    "framed": ([56, 0x1028, -24, -24, 5, 26, 1, 2, 0, 0, 1, 1, 11, 0, 0, 56],
               ["0 2 40 taken entry", "1 7 40 sp", "4 2 40 sp fp", "5 2 40 sp fp", "7 7 40 sp fp", "11 2 40 sp fp",
                "16 7 40 sp fp", "20 0 40 sp fp", "22 0 40 sp fp", "23 0 40 sp fp", "24 4 1a sp fp"]),
    "kinds": ([0, 0, 0, 0, 4, 26, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0],
              ["0 7 40 entry", "5 8 40", "8 9 40", "12 10 40", "15 11 40", "18 12 40", "22 13 40", "25 7 40", "28 14 40",
               "32 3 40", "40 1 40", "48 15 40", "52 16 40", "56 14 40", "60 18 40", "68 0 40", "75 2 40", "82 7 40",
               "84 4 30", "86 4 1a"]),
    "leaves": ([0, 0, 0, 0, 4, 26, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0], ["0 13 40 entry", "2 4 30 ipbr"]),
    "away": ([0, 0, 0, 0, 4, 26, 0, 4, 0, 0, 1, 0, 0, 0, 0, 0], ["0 13 40 entry", "2 4 40", "4 11 40", "9 11 40", "15 4 1a"]),
}
# Registers read and written: general ones, vector ones from bit 32 on.
USES = {("kinds", 5): (2, 2), ("kinds", 18): (2, 4), ("kinds", 28): (0x200000002, 0x200000000),
        ("kinds", 32): (0x200000000, 0), ("kinds", 40): (0, 0x400000000), ("kinds", 56): (0xc00000000, 0x800000000)}
CALLED = {("_start", 0): "framed", ("_start", 5): "kinds", ("_start", 10): "leaves", ("leaves", 2): "away"}
INST = re.compile(r"(\d+): class (\d+), opcode (\w+), taken (\d), entry (\d), out (\d) (\d), valid (\d) (\d) (\d), "
                  r"reads (\w+), writes (\w+), 0 0: 1")


def facts(place, engine):
    """What Tru64's names ask of objects, procedures, entries and instructions."""
    got = place.call(place.make("facts", "facts", engine)).stdout.splitlines()
    need(tuple(got[:len(OBJECT)]) == OBJECT, "\n".join(got[:len(OBJECT)]))
    at = len(OBJECT)
    for proc, (frame, insts) in PROCS.items():
        want = [f"{proc}: 0"] + [f"{name}: {n}" for name, n in zip(FRAME, frame)]
        need(got[at:at + len(want)] == want, f"{proc}:\n{got[at:at + len(want)]}")
        at += len(want)
        for inst in insts:
            m = INST.fullmatch(got[at])
            need(m, got[at])
            more = [word for word, k in (("taken", 4), ("entry", 5), ("ipjmp", 6), ("ipbr", 7), ("sp", 8), ("fp", 9),
                                         ("ra", 10)) if m[k] == "1"]
            need(" ".join([m[1], m[2], m[3]] + more) == inst, f"{proc}: {got[at]}, not {inst}")
            want = USES.get((proc, int(m[1])))
            need(not want or (int(m[11], 16), int(m[12], 16)) == want, f"{proc}: {got[at]}")
            at += 1
            if (proc, int(m[1])) in CALLED:
                need(got[at] == f"{CALLED[proc, int(m[1])]}: 1", got[at])
                at += 1
    need(at == len(got), f"more than expected: {got[at:]}")


def resolved(place, engine):
    """A name is told for the object in hand: once, however many objects there are."""
    tool = [f"{TOOLS}/resolved.inst.c", f"{TOOLS}/resolved.anal.c"]
    out = f"{place.folder}/resolved.out"
    for way in ([], ["-DALL"]):
        for program, threads in (("resolved", 0), ("resolved_static", 3)):
            place.call(place.inlay, "atom", place.programs[program], *tool, *way, "-o", out, f"--engine={engine}")
            got = place.call(out).stdout
            need(got == f"one object, known in each, told 1 times, called 5 times, {threads} threads began, "
                 f"{threads} ended\n", f"{program} {way}: {got}")
        if engine == "rewrite":
            folder = f"{place.folder}/resolved.libs"
            place.call(place.inlay, "atom", place.programs["resolved"], *tool, *way, "-o", "resolved.all",
                       "--with-libs", folder)
            got = place.call(f"{folder}/resolved.all").stdout
            need(got.startswith("objects, known in each, told 1 times, called 5 times, "), f"libraries {way}: {got}")
            os.unlink(f"{folder}/resolved.all")
            place.call(place.inlay, "atom", place.programs["resolved"], *tool, *way, "--with-libs", folder)
            again = os.path.basename(place.programs["resolved"])  # named as it was
            need(place.call(f"{folder}/{again}").stdout == got, f"libraries without -o {way}")


def shared(place, engine):
    """How an object is linked; and an imported procedure's name is told without the stub's ending."""
    with open(f"{place.folder}/shared.inst.c", "w") as f:
        f.write('''#include <stdio.h>
                #include <cmplrs/atom.inst.h>
                Instrument(int argc, char **argv, Obj *o)
                {
                    ProcRes r; Proc *p = FindProc(o, "main"); Block *b; Inst *i;
                    AddCallProto("Answer(char *, long)");
                    AddCallProgram(ProgramAfter, "Answer", "shared", GetObjInfo(o, ObjShared));
                    AddCallProgram(ProgramAfter, "Answer", "symbol",
                                   GetProcInfo(GetNamedProc("pthread_join"), ProcSymRes));
                    AddCallProgram(ProgramAfter, "Answer", "lines", GetProcInfo(p, ProcLineHigh) -
                                   GetProcInfo(p, ProcLineLow));
                    for (b = GetFirstBlock(p); b; b = GetNextBlock(b))
                        for (i = GetFirstInst(b); i; i = GetNextInst(i)) {
                            ResolveTargetProc(i, &r);
                            if (r.name && r.obj == o && r.proc) AddCallInst(i, InstBefore, "Answer", r.name, 0L);
                        }
                }''')
    for program, linked, symbol in (("resolved", 1, (3,)), ("resolved_static", 0, (1, 2))):
        out = f"{place.folder}/shared"
        place.call(place.inlay, "atom", place.programs[program], "shared.inst.c", f"{TOOLS}/facts.anal.c", "-o", out,
                   f"--engine={engine}")
        got = place.call(out).stdout.splitlines()
        said = dict(line.split(": ") for line in got)
        need(got.count("labs: 0") + got.count("imaxabs: 0") == 5 and got.count("pthread_join: 0") == 3 and f"shared: {linked}" in got and
             int(said["symbol"]) in symbol and int(said["lines"]) > 5, f"{program}: {got}")


def tables(place, engine):
    """Tru64's tables, locks and statuses for threads; and an analysis side of several files, objects among them."""
    out = f"{place.folder}/tables"
    place.call("gcc", "-c", "-O1", "-fPIE", f"-I{ROOT}/include/compat", f"{TOOLS}/tables.more.c", "-o", "more.o")
    for second in (f"{TOOLS}/tables.more.c", "more.o"):
        place.call(place.inlay, "atom", place.programs["resolved_static"], f"{TOOLS}/tables.inst.c",
                   f"{TOOLS}/tables.anal.c", second, "-o", out, f"--engine={engine}")
        got = place.call(out).stdout
        need(got == "3 entered, sum 3030, status 0, thread 1, right\n", got)


def behaves(place, engine):
    """A program with a tool inside says and ends as it does alone."""
    place.programs["gzip"] = "/bin/gzip"
    out = place.make("prof", "gzip", engine)
    for argv in (["--version"], ["-c", "/nowhere/at/all"]):
        alone, got = (place.call("bash", "-c", 'exec -a gzip "$0" "$@"', p, *argv, status=None)
                      for p in ("/bin/gzip", out))
        need((alone.stdout, alone.returncode) == (got.stdout, got.returncode), got.stdout + got.stderr)


VIEW = """_start
401000 2 9: 0 401007
401007 1 62: 5 40100c
40100c 2 0: 1 401007 back 2 401010
401010 1 0: 0 401015
401015 1 62: 5 40101a
40101a 2 0: 1 401015 back 2 40101e
"""
EQUAL = "instructions: equal\nblocks: equal\ntaken: equal\n"


def code(place, engine):
    """The static view of the public headers, which the rest stands on."""
    tool, result = f"{place.folder}/code", f"{place.folder}/code.result"
    if not os.path.exists(tool):
        place.call(place.inlay, "cc", "-Wall", "-Wextra", "-Werror", f"{HERE}/code.c", "-o", tool)
        got = place.call(tool, "--describe", "--", place.programs["known"]).stderr
        need(got.startswith(VIEW) and got.endswith(EQUAL), got)
    for argv in (["/bin/gzip", "--version"], ["/usr/bin/gawk", "BEGIN { for (i = 0; i < 999; i++) print i }"],
                 [place.programs["threads"]], [place.programs["sample_static"], place.folder]):
        if engine == "jit":
            place.call(tool, "-o", result, "--", *argv)
        else:
            out = f"{place.folder}/code.out"
            place.call(place.inlay, "rewrite", tool, argv[0], "-o", out)
            place.call(out, *argv[1:], INLAY_OUT=result)
        got = place.read("code.result")
        need(got == EQUAL, f"{argv[0]}: {got}")


# --- additions that wait for the end ---

# Arguments of tools/sums.inst.c: what is added, and may it wait?
SUMS = ((["Plain"], True), (["Cells"], True), (["Table"], True), (["Shared"], True), (["Mixed"], True),
        (["Plain", "Table", "ends", "after"], True), (["Plain", "Mixed", "Cells", "Shared", "Value", "Maybe"], True),
        (["Seen", "Look"], False), (["Taken", "LookThrough"], False), (["Walking", "Walk"], False),
        (["Table", "LookThrough"], False), (["Value"], False), (["Maybe"], False), (["Asks"], False),
        (["Called"], False), (["Plain", "Library"], False))


def new_code(path):
    """The rewritten code in a file."""
    done = subprocess.run(["objcopy", "-O", "binary", "--only-section=.inlay.text", path, f"{path}.text"])
    need(done.returncode == 0, f"{path} has no section .inlay.text")
    with open(f"{path}.text", "rb") as f:
        return f.read()


def sums_of(place, program, engine, words, *more, run=(), status=0):
    """The lines that the tool leaves, and the file."""
    arguments = [w for word in words for w in ("--tool-arg", word)]
    out = place.make("sums", program, engine, *arguments, *more)
    result = f"{place.folder}/sums.out"
    if os.path.exists(result):
        os.unlink(result)
    place.call("setarch", "-R", out, *run, status=status)
    return place.read("sums.out").splitlines() if os.path.exists(result) else [], out


def sums(place, engine):
    """The same sums in whatever way they are made; and only those wait that may."""
    if engine == "jit":
        return
    for words, waits in SUMS:
        got, out = sums_of(place, "known", engine, words)
        code = new_code(out)
        at_once, out = sums_of(place, "known", engine, words, "--no-sums")
        jit, _ = sums_of(place, "known", "jit", words)
        need(len(got) == 1 and got == at_once == jit, f"{words}:\n{got}\n{at_once}\n{jit}")
        need((code != new_code(out)) == waits, f"{words}: {'none' if waits else 'some'} waited")
    for program in ("sample", "sample_static"):
        words = ["Plain", "Cells", "Table", "Shared", "ends", "after", "Maybe"]
        got, _ = sums_of(place, program, engine, words, run=[place.folder])
        at_once, _ = sums_of(place, program, engine, words, "--no-sums", run=[place.folder])
        need(got == at_once, f"{program}:\n{got}\n{at_once}")


WAYS = (("exit", [10]), ("fork", [17, 15, 13]), ("exec", [7]), ("noexec", [8]), ("signal", [4]), ("fault", [4]),
        ("threads", [160000]), ("vfork", [12]))


def waiting(place, engine):
    """However the program ends, the sums are there; and none is lost between threads."""
    words = ["step", "Plain", "Table", "Shared", "ends"]
    for way, want in WAYS:
        if engine == "jit" and way in ("exec", "threads"):
            continue  # no report before an exec, and losses between threads
        got, _ = sums_of(place, "waiting", engine, words, run=[way], status=None)
        entries = [int(line.split()[1]) // -6 for line in got]
        need(entries == want, f"{way}: {got}")


# --- the command ---

def description(place, engine):
    os.makedirs(f"{place.folder}/tools", exist_ok=True)
    with open(f"{place.folder}/d.desc", "w") as f:
        f.write(f"# a tool\nTITLE what it is\nINST_FILE = {TOOLS}/order.inst.c\nANAL_FILE= {TOOLS}/order.anal.c\n"
                "ANAL_LDFLAGS\t-lm\nATOM_DEF -w2 -A1 -heapbase progend\n"
                'ATOM_REQ = -pthread -fork -Xthreads \\\n  -Xprogcall -toolargs="described and more"\n')
    os.replace(f"{place.folder}/d.desc", f"{place.folder}/tools/named.here.desc")
    out = f"{place.folder}/described"
    for way, env in ((["tools/named.here.desc"], {}), (["-tool", "named", "-env", "here"],
                                                       {"ATOMTOOLPATH": f"/nowhere:{place.folder}/tools"})):
        place.call(place.inlay, "atom", place.programs["sample"], *way, "-o", out, f"--engine={engine}", **env)
        need("\ndescribed\n" in place.call(out, place.folder).stdout, "the argument is missing")
    place.call(place.inlay, "atom", place.programs["sample"], f"{TOOLS}/order.inst.c", f"{TOOLS}/order.anal.c",
               "-toolargs=said here", "-pthread", "-Xprogcall", "-o", out, f"--engine={engine}")
    need("\nsaid\n" in place.call(out, place.folder).stdout, "the argument is missing")
    for line, says in (("ATOM_REQ -Xunheard", "ATOM_REQ: '-Xunheard' is not known"),
                       ("ATOM_REQ -all", "the tool wants all libraries"), ("ANAL_FILE", "INST_FILE and ANAL_FILE are needed")):
        with open(f"{place.folder}/d.desc", "w") as f:
            f.write(f"INST_FILE {TOOLS}/order.inst.c\n{line}\n")
            if not line.startswith("ANAL"):
                f.write(f"ANAL_FILE {TOOLS}/order.anal.c\n")
        got = place.call(place.inlay, "atom", place.programs["sample"], "d.desc", "-o", "refused", f"--engine={engine}",
                         status=2).stderr
        need(says in got and not os.path.exists(f"{place.folder}/refused"), f"{line}: {got}")
    got = place.call(place.inlay, "atom", place.programs["sample"], "-tool", "absent", "-o", "refused", status=2).stderr
    need("there is no absent.desc" in got, got)


def compilers(place, engine):
    """clang, and C++."""
    out = f"{place.folder}/compiled"
    for tool in ("prof", "dyn"):
        place.call(place.inlay, "atom", place.programs["known"], f"{EXAMPLES}/{tool}.inst.c",
                   f"{EXAMPLES}/{tool}.anal.c", "-o", out, f"--engine={engine}", CC="clang")
        place.call(out)
    need(counts(place.read("prof.out"))["total"] == 32819, place.read("prof.out"))
    place.call(place.inlay, "atom", place.programs["known"], f"{TOOLS}/cxx.inst.cc", f"{TOOLS}/cxx.anal.cc",
               "-o", out, f"--engine={engine}")
    got = place.call(out).stdout
    need(got == "names 3\n", got)


def at_once(place, engine):
    if engine == "rewrite":
        return
    got = place.call(place.inlay, "atom", os.path.basename(place.programs["sample"]), f"{TOOLS}/order.inst.c",
                     f"{TOOLS}/order.anal.c", "--engine=jit", "--", place.folder)
    need(got.stdout.startswith("program begins\nobject begins\n"), got.stdout)
    left = [n for n in os.listdir(place.folder) if n.startswith("inlay-atom-")]
    need(not left, f"left behind: {left}")


WRONG = (
    ("no such routine", 1, "Instrument() { AddCallProto(\"Missing()\"); }", "defines no routine named Missing"),
    ("no prototype", 1, "Instrument() { AddCallProgram(ProgramAfter, \"There\"); }", "never declared"),
    ("type", 1, "Instrument() { AddCallProto(\"There(struct x)\"); }", "'struct x' is not known"),
    ("value", 1, "Instrument() { AddCallProto(\"There(VALUE)\"); AddCallProgram(ProgramAfter, \"There\", "
     "EffAddrValue); }", "has no value there"),
    ("place", 1, "Instrument() { AddCallProto(\"There()\"); AddCallProgram(InstAfter, \"There\"); }",
     "no such place"),
    ("no branch", 1, "Instrument(int c, char **v, Obj *o) { AddCallProto(\"There(VALUE)\"); "
     "AddCallInst(GetFirstInst(GetFirstBlock(GetFirstObjProc(o))), InstBefore, \"There\", BrCondValue); }",
     ": BrCondValue is of a branch"),
    ("no register", 1, "Instrument(int c, char **v, Obj *o) { AddCallProto(\"There(REGV)\"); "
     "AddCallProc(FindProc(o, \"main\"), ProcBefore, \"There\", 99); }", "there is no register of this number"),
    ("no procedure", 1, "Instrument() { AddCallProto(\"There()\"); AddCallProc(NULL, ProcBefore, \"There\"); }",
     "AddCallProc: called with NULL"),
    ("at a thread's end", 1, "Instrument(int c, char **v, Obj *o) { ThreadExitCall(o, THREAD_PTHREAD, \"There\"); }",
     "ThreadExitCall(There): not available; add the call to ThreadTerminationProc()"),
    ("ends early", 1, "#include <stdlib.h>\nInstrument() { exit(0); }", "the tool has ended in Instrument"),
    ("ends with 3", 3, "#include <stdlib.h>\nInstrument() { exit(3); }", "the tool has ended in Instrument"),
    ("InstrumentAll fails", 1, "unsigned InstrumentAll(int c, char **v) { return 1; }", "InstrumentAll failed"),
    ("no Instrument", 1, "int other() { return 0; }", "neither Instrument nor InstrumentAll"),
    ("does not compile", 1, "Instrument() {", "does not compile"),
)


def mistakes(place, engine):
    with open(f"{place.folder}/there.c", "w") as f:
        f.write("void There() {}\n")
    for name, status, text, says in WRONG:
        with open(f"{place.folder}/wrong.c", "w") as f:
            f.write(f"#include <stdio.h>\n#include <instrument.h>\n{text}\n")
        argv = [place.inlay, "atom", place.programs["sample"], "wrong.c", "there.c", f"--engine={engine}"]
        out = f"{place.folder}/wrong"
        if engine == "rewrite":
            argv += ["-o", out]
        got = place.call(*argv, status=None)
        need(got.returncode == status and says in got.stderr, f"{name}: {got.returncode} {got.stderr}")
        need(not os.path.exists(out), f"{name}: an output is there")
        need("atom_fail" not in got.stderr and "main.c" not in got.stderr, f"{name}: of its own code {got.stderr}")
    for argv in ([], ["sample"], ["sample", "a.c", "b.c"], ["sample", "a.c", "b.c", "--engine=x"]):
        need(place.call(place.inlay, "atom", *argv, status=None).returncode == 2, f"usage: {argv}")


TESTS = (read, prof, cache, dyn, memory, keeps, audit, io, behind, gprof, trace, order, places, query, doubles, threads,
         names, facts, resolved, shared, tables, sums, waiting, code, behaves, description, compilers, at_once, mistakes)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--build", default=f"{ROOT}/build")
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    wanted = [w for w in options.only.split(",") if w]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Place(options.build, folder)
        place.compile()
        for test in TESTS:
            if wanted and test.__name__ not in wanted:
                continue
            for engine in ENGINES:
                try:
                    test(place, engine)
                    passed += 1
                except (Failed, OSError, KeyError) as e:
                    failed += 1
                    print(f"FAIL atom {test.__name__} {engine}: {e}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
