#!/usr/bin/python3
"""Variables and parameters by name at every instruction of procedures: what gdb says that they are there, and what snippets
read, must be the same wherever both say something; how often a snippet is refused is told, with the reasons.

  tests/snippets/told.py [--build DIR] [--only PATTERN] [--engines jit,live,rewrite] [--verbose] [--keep]
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 300
COMPILERS = {"c": ("gcc", "clang"), "cc": ("g++", "clang++")}
C = {f"{cc}-{o[1:]}": (f"told.{suffix}", [cc, o, "-g"]) for suffix in ("c", "cc") for cc in COMPILERS[suffix] for o in ("-O0", "-O1", "-O2")}
BUILDS = C | {
    "gcc-O2-dwarf4": ("told.c", ["gcc", "-O2", "-gdwarf-4"]),
    "gcc-O2-split": ("told.c", ["gcc", "-O2", "-gdwarf-5", "-gsplit-dwarf"]),
    "clang-O1-split": ("told.c", ["clang", "-O1", "-gdwarf-4", "-gsplit-dwarf"]),
    "gcc-O3": ("told.c", ["gcc", "-O3", "-g"]),
    "clang-Os": ("told.c", ["clang", "-Os", "-g"]),
    "gcc-Og-frame": ("told.c", ["gcc", "-Og", "-g", "-fno-omit-frame-pointer"]),
}
OTHERS = {f"rust-O{o}": ("told.rs", ["rustc", "-g", "-C", f"opt-level={o}"]) for o in (0, 1, 2)}
OTHERS |= {f"fortran-O{o}": ("told.f90", ["gfortran", "-g", f"-O{o}"]) for o in (0, 1, 2)}
OTHERS |= {f"ada-O{o}": ("told.adb", ["gnatmake", "-q", "-g", f"-O{o}"]) for o in (0, 1, 2)}
OTHERS |= {"go-O0": ("told.go", ["go", "build", "-gcflags=-N -l"]), "go-O2": ("told.go", ["go", "build"])}
BUILDS |= OTHERS
OWN = {"rs": "4told", "adb": r"^(_ada_)?told", "go": r"^main\."}  # in names of procedures of the source's own, where other code is in the file
# Where the compiler is wrong, which gdb believes: what a caller passes is said to be in a register that has changed by then.
KNOWN = {("clang-O1", "wide_frame", "n"), ("clang-O1-split", "wide_frame", "n")}
# Nothing has been put there yet.
UNSET = (r"^clang\+\+-O0 _ZL6thrownil what$", r"^fortran-O. \S+ (k|product|below|total|weight|i|turn|by_value|folded|answer|sum)$",
         r"^ada-O. _ada_told ")
# What is read somewhere, for what could be refused everywhere: of type Natural; in a common block, constants.
READ = {"ada-O0": {"n"}, "fortran-O1": {"rate", "units", "limit"}}
# Members that records have in some of their forms alone, or from what they extend: a procedure, code, what its variables are
# at the end, and how the procedure's arguments are recorded. (A record whose size is known at run time alone is told by its address.)
MEMBERS = {"ada-O0": ("told__shaped*", "static long a, b, c; a = s->height; b = s->weight; c = l->size * 100 + l->more", {"a": 23, "b": 21, "c": 2425},
                      r"told__shaped\S*\(0x[0-9a-f]+, &\{_parent = \{_tag = 0x[0-9a-f]+, size = 24\}, more = 25\}, 26\)")}
QUICK = "gcc-O2,clang-O0,g++-O1,ada-O0,fortran-O1,go-O0,rust-O1"

# In gdb: breakpoints at all addresses of a file; at the first hit of each, the variables that it sees.
GDB = r"""
import gdb
PLACES, OUT = "%s", "%s"
gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set print inferior-events off")
gdb.execute("set breakpoint pending off")
places = [int(line, 16) for line in open(PLACES)]
gdb.execute("starti", to_string=True)
bias = 0
for line in gdb.execute("info proc mappings", to_string=True).split("\n"):
    if "%s" in line:
        bias = int(line.split()[0], 16)
        break
if not %d:
    bias = 0
for at in places:
    gdb.execute("tbreak *%%#x" %% (at + bias), to_string=True)
INTEGERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_RANGE)
with open(OUT, "w") as out:
    while True:
        gdb.execute("continue", to_string=True)
        try:
            frame = gdb.selected_frame()
        except gdb.error:
            break
        pc, names, line = frame.pc(), set(), frame.find_sal().line
        try:
            block = frame.block()
        except RuntimeError:
            continue
        while block and not block.is_static:
            for symbol in block:
                known = symbol.is_variable or symbol.is_argument or symbol.is_constant
                if not known or symbol.name in names or "." in symbol.name or symbol.name.startswith("__"):
                    continue
                names.add(symbol.name)
                kind = symbol.type.strip_typedefs()
                real = kind.code == gdb.TYPE_CODE_FLT
                if (kind.code not in INTEGERS and not real) or kind.sizeof > 8:
                    continue
                if not symbol.is_argument and line <= symbol.line:
                    continue
                try:
                    value = frame.read_var(symbol, block)
                    told = "?" if value.is_optimized_out else "%%.17g" %% float(value) if real else str(int(value))
                except (gdb.error, gdb.MemoryError):
                    told = "?"
                out.write("%%x %%s %%s %%s\n" %% (pc - bias, symbol.name, "f" if real else "i", told))
            if block.function and not block.function.symtab.filename.startswith("<"):
                break
            block = block.superblock
gdb.execute("quit")
"""


def instructions(program, own):
    """Addresses of the instructions of the program's own procedures, from the symbols that its source makes."""
    text = subprocess.run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", program], capture_output=True, check=True, text=True).stdout
    skipped = {"_start", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie", "__libc_csu_init"}
    found, name, grows = [], None, None
    for line in text.split("\n"):
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            name, grows = head.group(1), None
        at = re.match(r"^\s*([0-9a-f]+):\t(\S+)", line)
        # Where a stack of Go's is made larger nothing is at its place.
        jumps = re.match(r"^\s*[0-9a-f]+:\tjbe\s+([0-9a-f]+)", line)
        if jumps and grows is None and name and name.startswith("main."):
            grows = int(jumps.group(1), 16)
        if at and grows and int(at.group(1), 16) >= grows:
            continue
        if at and name not in skipped and re.search(own, name) and not at.group(2).startswith("nop") and "data16" not in at.group(2):
            found.append((int(at.group(1), 16), name))
    return found


def asked_of_gdb(folder, program, at, is_pie):
    places, out, script = f"{folder}/addresses", f"{folder}/gdb-says", f"{folder}/script.py"
    with open(places, "w", encoding="utf-8") as f:
        f.write("".join(f"{a:x}\n" for a, _ in at))
    with open(script, "w", encoding="utf-8") as f:
        f.write(GDB % (places, out, program, is_pie))
    done = driver.run(["gdb", "-q", "-nx", "-batch", "-x", script, program], LIMIT, env=driver.ENVIRONMENT)
    if not os.path.exists(out) or not os.path.getsize(out):
        raise Failed("gdb says nothing", *driver.as_lines(done.stderr)[-4:])
    with open(out, encoding="utf-8") as f:
        return {(int(a, 16), name): (kind, told) for a, name, kind, told in (line.split() for line in f)}


def asked_of_inlay(inlay, folder, program, tool, engine, truth):
    places, report = f"{folder}/places", f"{folder}/inlay-says-{engine}"
    with open(places, "w", encoding="utf-8") as f:
        f.write("".join(f"{a:x} {name} {kind}\n" for (a, name), (kind, _) in truth.items()))
    if engine == "rewrite":
        done = driver.run([inlay, "rewrite", tool, f"--places={places}", "--result", report, program, "-o", f"{folder}/written"], LIMIT)
        if done.status:
            raise Failed("not rewritten", *driver.as_lines(done.stderr)[-4:])
        done = driver.run([f"{folder}/written"], LIMIT, env=driver.ENVIRONMENT)
    else:
        done = driver.run([inlay, "run", f"--engine={engine}", tool, f"--places={places}", "-o", report, "--", program], LIMIT, env=driver.ENVIRONMENT)
    if done.status or not os.path.exists(report):
        raise Failed(f"{engine}: status {done.status}", *driver.as_lines(done.stderr)[-4:])
    said = {}
    with open(report, encoding="utf-8") as f:
        for line in f:
            a, name, how, rest = line.rstrip("\n").split(" ", 3)
            said[int(a, 16), name] = (how, rest)
    return said


def same(kind, a, b):
    return float(a) == float(b) if kind == "f" else int(a) & (1 << 64) - 1 == int(b) & (1 << 64) - 1


def compared(truth, said, begins, optimised, engine, verbose, is_known):
    """What is wrong; what was counted."""
    wrong, counts, reasons = [], collections.Counter(), collections.Counter()
    for (a, name), (kind, told) in truth.items():
        how, here = said.get((a, name), ("!", "nothing is said"))
        if how == "!":
            counts["refused" if told != "?" else "neither"] += 1
            if told != "?":
                reasons[re.sub(r"^[0-9:]* *|'[^']*'", "", here)] += 1
            if verbose and told != "?":
                print(f"  {engine} {a:x} {name}: gdb {told}, refused: {here}")
        elif told == "?":
            counts["more than gdb"] += 1
        elif same(kind, told, here):
            counts["same"] += 1
        elif a in begins and not optimised:
            counts["at entries"] += 1  # gdb reads them where they are put a little later
        elif is_known(a, name):
            counts["known"] += 1
        else:
            wrong.append(f"{a:x} {name}: gdb says {told}, {engine} {here}")
    return wrong, counts, reasons


def members(inlay, folder, program, point, code, expected, call):
    report, recording = f"{folder}/members", f"{folder}/members.trace"
    done = driver.run([inlay, "run", "snippet", f"--at={point}", f"--code={code}", "--format=json", "-o", report, "--", program], LIMIT)
    if done.status:
        raise Failed("members", *driver.as_lines(done.stderr)[-4:])
    with open(report, encoding="utf-8") as f:
        got = {v["name"]: int(v["value"]) for v in json.load(f)["variables"]}
    driver.run([inlay, "trace", "-F", point, "-A", point, "-o", recording, "--", program], LIMIT)
    listed = driver.run([inlay, "trace", "list", recording], LIMIT).stdout.decode()
    if got != expected or not re.search(call, listed):
        raise Failed(f"members are {got}", *listed.splitlines()[-2:])


def told(options, folder, name, tool):
    source, command = BUILDS[name]
    program, inlay = f"{folder}/{name}", f"{options.build}/inlay"
    suffix = source.rsplit(".", 1)[1]
    if suffix == "adb":  # its parts go where it is compiled
        shutil.copy(f"{HERE}/{source}", folder)
    warns = ["-w"] if suffix in ("c", "cc", "f90") else []
    place = ["-o", program, f"{HERE}/{source}"] if suffix != "adb" else [source, "-o", program]
    done = driver.run([*command, *warns, *place], LIMIT, cwd=folder, env=dict(os.environ))
    if done.status:
        raise Failed("not compiled", *driver.as_lines(done.stderr)[-4:])
    with open(program, "rb") as f:
        is_pie = f.read(18)[16] == 3
    if name in MEMBERS:
        members(inlay, folder, program, *MEMBERS[name])
    at = instructions(program, OWN.get(suffix, ""))
    begins = {min(a for a, n in at if n == p) for p in {n for _, n in at}}
    procedure = dict(at)
    truth = asked_of_gdb(folder, program, at, is_pie)
    for engine in options.engines.split(","):
        said = asked_of_inlay(inlay, folder, program, tool, engine, truth)
        wrong, counts, reasons = compared(truth, said, begins, not re.search("-O0", name), engine, options.verbose,
                                          lambda a, variable: (name, procedure[a], variable) in KNOWN or
                                          any(re.search(s, f"{name} {procedure[a]} {variable}") for s in UNSET))
        if options.verbose:
            print(name, engine, dict(counts), *(f"\n    {n} {why}" for why, n in reasons.most_common(12)))
        missing = READ.get(name, set()) - {variable for (_, variable), (how, _) in said.items() if how != "!"}
        if missing:
            raise Failed(f"{engine}: never read:", *missing)
        if wrong or counts["same"] < 100:
            raise Failed(f"{engine}: {len(wrong)} are wrong, {dict(counts)}", *wrong[:400 if options.verbose else 6])


def main():
    made = driver.parser(__doc__, only=QUICK)
    made.add_argument("--engines", default="jit")
    made.add_argument("--verbose", action="store_true")
    options = made.parse_args()
    with driver.Results("told", options) as results:
        tool = f"{results.folder}/told_tool"
        done = driver.run([f"{options.build}/inlay", "cc", "-Wall", "-Wextra", "-Werror", "-O1", f"{HERE}/told_tool.c", "-o", tool], LIMIT)
        if done.status:
            raise Failed("the tool is not compiled", *driver.as_lines(done.stderr)[-4:])
        for name in BUILDS:
            if driver.chosen(name, options) and shutil.which(BUILDS[name][1][0]):
                results.check(name, lambda n=name: told(options, results.folder, n, tool))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
