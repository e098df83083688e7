#!/usr/bin/python3
"""One tool, three engines, the same answer.

  tests/rewrite/compare.py [--build DIR] [--engines rewrite,live] [--only PATTERN] [--keep]

Each deterministic program runs under the JIT, and as a rewritten program or with the tool put in at its start (`inlay run
--engine=live`), with --image of the program itself. What the others count must be what the JIT counted in the procedures
that have moved:
instructions of each procedure (prof), calls of each (calls), executions of each branch and where it went
(branches), the places where blocks begin and how often, however they are counted (blocks_tool.c), blocks in all
(bbcount), blocks' opcodes (opcodemix), and the sequence of memory accesses (memtrace). Samples are compared with
the single-stepper as well (inscount, and where blocks begin). With the live engine libraries are compared too (whole), and programs whose
rewritten form looks at itself. Prints a line for each failure and at the end N passed, N failed.
"""

import bisect
import importlib.util
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../exact"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

spec = importlib.util.spec_from_file_location("exact", f"{HERE}/../exact/run.py")
exact = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exact)

LIMIT = 60
# A static position-independent program is not among them: the kernel puts it where it puts libraries, and
# the JIT reports other addresses than the rewritten one.
SAMPLES = {
    "asm": ["asm_loop"],
    "dynamic": ["plain"],
    "no-pie": ["plain_nopie"],
    "static": ["plain_static"],
    "jumps": ["jumps_static"],
}
UNSTEPPED = {"throw"}  # a step costs some microseconds, and it makes millions. (Linked statically its unwinder is counted as well,
# which does something else with moved code.)
MORE_LIVE = {
    "static-pie": ["plain_static_pie"],
    "musl": ["plain_musl", "1"],
    "throw": ["throw"],
}
# {in} is a folder with the input files below. sort is told what it otherwise takes from the machine: memory, processors.
PROGRAMS = {
    "gzip": ["/usr/bin/gzip", "-9c", "{in}/text"],
    "sort": ["/usr/bin/sort", "--parallel=1", "-S1M", "-k2", "{in}/text"],
    "gawk": ["/usr/bin/gawk", "{ n[$1] += length($2) } END { for (k = 1; k < 40; k++) print k, n[k] }", "{in}/text"],
    "bzip2": ["/usr/bin/bzip2", "-9c", "{in}/text"],
}
# A static program's C library looks at the program's own headers when it starts, and a rewritten one has
# more of them.
NOT_STARTING = ["--proc", "[!_]*", "--proc", "_[!d_]*"]


def make_inputs(folder):
    os.makedirs(folder)
    with open(f"{folder}/text", "w") as f:
        for i in range(600):
            f.write(f"{i % 41} word{i * 7919 % 997} {'x' * (i % 17)} {i * i}\n")


class Ranges:
    """Addresses of the code that has moved."""

    def __init__(self, image):
        rows = [p for p in image["list"] if p["size"]]
        self.moved = sorted((p["address"], p["address"] + p["size"]) for p in rows if p["status"] == "moved")
        self.starts = [low for low, _ in self.moved]
        stubs = [p["address"] for p in rows if p["name"].endswith("@plt")]
        self.stubs = range(min(stubs), max(stubs) + 16) if stubs else range(0)
        self.others = sorted(p["address"] for p in rows if p["status"] != "moved")

    def __contains__(self, address):
        if address is None:
            return False
        i = bisect.bisect_right(self.starts, address) - 1
        return i >= 0 and address < self.moved[i][1]

    def whole(self, rows):
        """Those of the JIT's procedures that have moved with all that lies in them."""
        starts = sorted(r["address"] for r in rows if "address" in r)
        for r in rows:
            i = bisect.bisect_right(starts, r.get("address", 0))
            end = starts[i] if i < len(starts) else r.get("address", 0) + 1
            if r.get("address") in self and not self.any_other(r["address"], end):
                yield r

    def any_other(self, low, high):
        """Does a procedure that stayed begin in there?"""
        i = bisect.bisect_left(self.others, low)
        return i < len(self.others) and self.others[i] < high


class Comparison:
    """One program: copied to a folder of its own, and replaced there by the rewritten one, so that
    names, arguments and so the stack are the same for both."""

    def __init__(self, build, scratch, name, argv, engine="rewrite"):
        self.inlay = f"{build}/inlay"
        self.stepper = f"{build}/tests/support/stepper"
        self.folder = f"{scratch}/{name}"
        os.makedirs(self.folder)
        self.out, self.report = f"{self.folder}/result", f"{self.folder}/report"
        self.original, self.program = f"{self.folder}/kept", f"{self.folder}/{os.path.basename(argv[0])}"
        shutil.copy(argv[0], self.original)
        shutil.copy(argv[0], self.program)
        self.arguments = argv[1:]
        self.image = os.path.basename(argv[0])
        self.has_stubs = not any(word in self.image for word in ("static", "asm", "musl"))
        self.blocks_tool = exact.blocks_tool(build, scratch)
        exact.ENVIRONMENT["INLAY_OUT"] = self.out  # the stepper's programs see the same environment
        self.engine = engine
        is_longer = "static" in self.image and engine == "rewrite"
        self.filters = ["--image", self.image] + (NOT_STARTING if is_longer else [])

    def execute(self, argv, what):
        return exact.execute(argv, what, LIMIT, self.folder)

    def restore(self):
        shutil.copy(self.original, self.program)

    def native(self):
        self.restore()
        return self.execute([self.program, *self.arguments], "native")

    def result(self, done, expect, what):
        if done[:2] != expect[:2]:
            raise Failed(f"{what}: status {done.status} instead of {expect.status}, or other output; "
                         f"{done.stderr.decode()[-300:].strip()}")
        if not os.path.exists(self.out):
            raise Failed(f"{what}: wrote no result; {done.stderr.decode()[-300:].strip()}")
        kept = f"{self.out}.{what.replace(' ', '-')}"
        os.replace(self.out, kept)
        return kept

    def jit(self, tool, options, expect):
        self.restore()
        done = self.execute([self.inlay, "run", tool, "-o", self.out, *self.filters, *options, "--",
                             self.program, *self.arguments], f"{tool} jit")
        return self.result(done, expect, f"{os.path.basename(tool)} jit")

    def live(self, tool, options, expect):
        self.restore()
        done = self.execute([self.inlay, "run", "--engine=live", tool, "-o", self.out, *self.filters, *options,
                             "--report", self.report, "--", self.program, *self.arguments], f"{tool} live")
        path = self.result(done, expect, f"{os.path.basename(tool)} live")
        with open(self.report) as f:
            return path, Ranges(json.load(f)["images"][0])

    def rewritten(self, tool, options, expect):
        """The result's file, and what has moved."""
        if self.engine == "live":
            return self.live(tool, options, expect)
        made = f"{self.folder}/made"
        self.restore()
        done = self.execute([self.inlay, "rewrite", tool, *self.filters, *options, self.program, "-o", made,
                             "--report", self.report], f"{tool} rewrite")
        if done.status:
            raise Failed(f"rewriting: {done.stderr.decode()[-300:].strip()}")
        with open(self.report) as f:
            moved = Ranges(json.load(f)["images"][0])
        os.replace(made, self.program)
        done = self.execute([self.program, *self.arguments], f"{tool} rewritten")
        return self.result(done, expect, f"{os.path.basename(tool)} rewritten"), moved


def load(path):
    with open(path) as f:
        return json.load(f)


def few(wrong, of, what):
    if wrong:
        raise Failed(f"{len(wrong)} of {of} {what} differ", *wrong[:12])


def check_inscount(c):
    """Against the single-stepper: every instruction that has moved."""
    native = c.native()
    c.restore()
    truth = exact.Truth(c.stepper, [c.program, *c.arguments], c.folder)
    path, moved = c.rewritten("inscount", ["--format=json"], native)
    expected = sum(n for pc, n in truth.counts.items() if pc in moved)
    found = load(path)["instructions"]
    if found != expected or not found:
        raise Failed(f"{found} instructions instead of {expected} ({found - expected:+})")
    path, moved = c.rewritten(c.blocks_tool, ["--format=json"], native)
    same_heads(heads(path), truth.begun, moved)


def heads(path):
    return {h["address"]: h["begun"] for h in load(path)["heads"]}


def same_heads(ours, theirs, moved):
    wrong = [f"{at:x}: {ours.get(at, 0)} instead of {theirs.get(at, 0)}" for at in sorted({*ours, *theirs})
             if at in moved and ours.get(at, 0) != theirs.get(at, 0)]
    few(wrong, len(theirs), "places where blocks begin")
    if not any(at in moved for at in theirs):
        raise Failed("no block could be compared")


def check_blocks(c):
    """However they are counted; and in all, where all that ran has moved."""
    native = c.native()
    tool = c.blocks_tool
    theirs_path = c.jit(tool, ["--format=json"], native)
    theirs, total = heads(theirs_path), load(theirs_path)["instructions"]
    for how in ("entry", "anywhere", "call"):
        path, moved = c.rewritten(tool, ["--format=json", "--how", how], native)
        same_heads(heads(path), theirs, moved)
        found = load(path)["instructions"]
        if all(at in moved for at in theirs) and found != total:
            raise Failed(f"{how}: {found} instructions in blocks instead of {total}")


def check_bbcount(c):
    """The number of all blocks, where all that ran has moved; else at most those that have."""
    native = c.native()
    theirs = load(c.jit("bbcount", ["--format=json"], native))["blocks"]
    by_place = heads(c.jit(c.blocks_tool, ["--format=json"], native))
    path, moved = c.rewritten("bbcount", ["--format=json"], native)
    if c.has_stubs and any(at in moved.stubs and at not in moved for at in by_place):
        raise Failed("a part of an import stub has not moved")
    found, stayed = load(path)["blocks"], sum(n for at, n in by_place.items() if at not in moved)
    if sum(by_place.values()) != theirs:
        raise Failed(f"the JIT counts {theirs} blocks, and {sum(by_place.values())} by their places")
    if found != theirs - stayed or not found:
        raise Failed(f"{found} blocks instead of {theirs - stayed} ({stayed} have not moved)")


def check_calls(c):
    native = c.native()
    theirs = load(c.jit("calls", ["--format=json"], native))["procedures"]
    path, moved = c.rewritten("calls", ["--format=json"], native)
    ours = {p["address"]: p["calls"] for p in load(path)["procedures"]}
    theirs = [p for p in theirs if p["address"] in moved]
    few([f"{p['name']}: {ours.get(p['address'], 0)} calls instead of {p['calls']}" for p in theirs
         if ours.get(p["address"], 0) != p["calls"]], len(theirs), "procedures")
    if c.has_stubs and not any(p["name"].endswith("@plt") for p in theirs):
        raise Failed("no import stub could be compared")


def check_prof(c):
    native = c.native()
    theirs = load(c.jit("prof", ["--format=json"], native))["procedures"]
    path, moved = c.rewritten("prof", ["--format=json"], native)
    ours = {r["address"]: r["instructions"] for r in load(path)["procedures"]}
    names = {r["address"]: r["name"] for r in theirs}
    starts = sorted(set(names) | set(ours))
    wrong, compared = [], 0
    for r in theirs:
        at = r["address"]
        i = bisect.bisect_right(starts, at)
        end = starts[i] if i < len(starts) else at + 1
        if at not in moved or moved.any_other(at, end):
            continue
        compared += 1
        if ours.get(at, 0) != r["instructions"]:
            wrong.append(f"{r['name']}: {ours.get(at, 0)} instead of {r['instructions']}")
    few(wrong, compared, "procedures")
    if compared < 3 and len(theirs) > 6:
        raise Failed(f"only {compared} of {len(theirs)} procedures could be compared")


def check_branches(c):
    native = c.native()
    theirs = load(c.jit("branches", ["--format=json"], native))["branches"]
    path, moved = c.rewritten("branches", ["--format=json"], native)
    ours = {b["address"]: b for b in load(path)["branches"]}
    wrong, compared = [], 0

    def inner(b):
        """Targets within the image: others lie where they lie."""
        return sorted((t["address"], t["count"]) for t in b.get("targets", []) if t["address"] in moved)

    for b in theirs:
        if b["address"] not in moved:
            continue
        compared += 1
        mine = ours.get(b["address"], {"executed": 0, "taken": 0})
        if (mine["executed"], mine["taken"]) != (b["executed"], b["taken"]):
            wrong.append(f"{b['address']:x} ({b['kind']}, {b['procedure']}): {mine['executed']}/{mine['taken']} "
                         f"instead of {b['executed']}/{b['taken']}")
        elif inner(mine) != inner(b):
            wrong.append(f"{b['address']:x} ({b['kind']}, {b['procedure']}): targets {inner(mine)[:3]} instead of {inner(b)[:3]}")
    few(wrong, compared, "branches")
    if not compared:
        raise Failed("no branch could be compared")


class Words:
    """Like exact.Places, for programs whose heap begins right behind their data, wherever that ends. The sizes
    of what their C library allocates may depend on the number of segments, and so do the counts, two bytes each,
    that its allocator looks at."""

    def __init__(self):
        self.words = {}

    def same(self, a, b):
        a, b = int(a, 16), int(b, 16)
        return a == b or (a % 2 == b % 2 and self.words.setdefault(a >> 1, b >> 1) == b >> 1)


def only_moved(path, moved):
    with open(path) as f, open(f"{path}.moved", "w") as out:
        out.writelines(line for line in f if line[0] != "#" and int(line[:line.index(" ")], 16) in moved)
    return f"{path}.moved"


def check_memtrace(c):
    native = c.native()
    theirs_path = c.jit("memtrace", [], native)
    path, moved = c.rewritten("memtrace", [], native)
    places = exact.Places() if "static" not in c.image else Words()
    ours, theirs = (only_moved(name, moved) for name in (path, theirs_path))
    if not exact.compare_traces(ours, theirs, places, list, ("rewritten", "jit")):
        raise Failed("no access was traced")
    text = [record[:8] + record[16:] for record in exact.records(path)]
    compact, _ = c.rewritten("memtrace", ["--compact"], native)
    with open(compact, "rb") as f:
        mine = [record[:8] + record[16:] for record in exact.expanded(f.read())]
    if mine != text:
        raise Failed(f"the compact form has {len(mine)} records, or ones of other instructions, than the text")


def check_mix(c):
    """The sums by mnemonic: of each procedure that has moved as a whole, and all of them."""
    native = c.native()
    theirs = load(c.jit("opcodemix", ["--format=json"], native))
    path, moved = c.rewritten("opcodemix", ["--format=json"], native)
    ours = load(path)
    mine = {p.get("address"): p["mnemonics"] for p in ours["procedures"]}
    exact.check_sums(ours)
    exact.check_sums(theirs)
    compared = [p for p in moved.whole(theirs["procedures"])]
    few([p["name"] for p in compared if mine.get(p["address"]) != p["mnemonics"]], len(compared), "procedures")
    found, total = ours["instructions"], theirs["instructions"]
    least = sum(p["instructions"] for p in compared)
    if not compared or not least <= found <= total or (len(compared) == len(theirs["procedures"]) and found != total):
        raise Failed(f"{found} instructions instead of {total}, {least} of them in what has moved")


def check_whole(c):
    """Of the program and its libraries, by the live engine: what each image's procedures have executed. The dynamic
    linker is not instrumented, and its library for exceptions asks other procedures. Libraries lie elsewhere under the JIT."""
    native = c.native()
    c.filters = ["--image", c.image, "--image", "libc.so*", "--image", "libm.so*", "--image", "libstdc++*"]
    theirs = load(c.jit("prof", ["--format=json"], native))["procedures"]
    path, _ = c.live("prof", ["--format=json"], native)
    with open(c.report) as f:
        stayed = {(os.path.basename(i["path"]), p["name"]) for i in json.load(f)["images"] for p in i["list"]
                  if p["status"] != "moved"}
    by_name = []
    for rows in (load(path)["procedures"], theirs):
        sums = {}
        for r in rows:
            key = r.get("image"), r["name"]
            sums[key] = sums.get(key, 0) + r["instructions"]
        by_name.append(sums)
    ours, theirs = by_name
    few([f"{key[1]} ({key[0]}): {ours.get(key, 0)} instead of {theirs.get(key, 0)}" for key in {*ours, *theirs}
         if key not in stayed and ours.get(key, 0) != theirs.get(key, 0)], len(theirs), "procedures")
    if len({image for image, _ in theirs}) < 2:
        raise Failed("no library was compared")


CHECKS = {"prof": check_prof, "calls": check_calls, "branches": check_branches, "blocks": check_blocks,
          "bbcount": check_bbcount, "memtrace": check_memtrace, "opcodemix": check_mix}


def programs(build, folder, engine):
    """(name, its words, what is checked)"""
    for name, words in (SAMPLES | (MORE_LIVE if engine == "live" else {})).items():
        checks = CHECKS if name in UNSTEPPED else {"inscount": check_inscount, **CHECKS}
        yield name, [f"{build}/tests/samples/{words[0]}", *words[1:]], checks
    for name, words in PROGRAMS.items():
        # libsigsegv of gawk reads /proc/self/maps, which is longer
        checks = CHECKS | ({"whole": check_whole} if engine == "live" and name != "gawk" else {})
        yield name, [w.replace("{in}", folder) for w in words], checks


def tests(build, results, engines):
    scratch = results.folder
    folder = f"{scratch}/in"
    make_inputs(folder)
    for engine in engines:
        for name, argv, checks in programs(build, folder, engine):
            if not os.path.exists(argv[0]):
                results.skip(name, f"there is no {argv[0]}")
                continue
            suffix = "" if engine == "rewrite" else f" {engine}"
            for check, function in checks.items():
                place = f"{name}-{check}{suffix}".replace(" ", "-")
                yield f"{name} {check}{suffix}", lambda f=function, n=place, a=argv, e=engine: f(
                    Comparison(build, scratch, n, a, e))


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--engines", default="rewrite")
    options = parser.parse_args()
    with driver.Results("compare", options) as results:
        for name, check in tests(options.build, results, options.engines.split(",")):
            results.check(name, check)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
