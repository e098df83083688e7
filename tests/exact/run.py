#!/usr/bin/python3
"""The exactness test: what the tools count must be what a single-stepper counts.

  tests/exact/run.py [--build DIR] [--only PATTERN] [--keep]

For each deterministic program: instructions (inscount, opcodemix, prof), instructions of each
procedure (prof), executions of each branch (branches), and the whole sequence of memory accesses
(memtrace) equal what tests/support/stepper.c saw. With eight threads, the work of each is counted
exactly. Prints a line for each failure and at the end N passed, N failed.
"""

import bisect
import collections
import itertools
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402
from elf import Elf  # noqa: E402

LIMIT = 300
SAMPLES = {
    "asm": ["asm_loop"],
    "static": ["plain_static"],
    "static-pie": ["plain_static_pie"],
    "no-pie": ["plain_nopie"],
    "dynamic": ["plain"],
    "musl": ["plain_musl", "1"],  # its heap asks how far apart addresses are
    "jumps": ["jumps_static"],
    "masked": ["masked"],
    "vectors": ["vectors_static"],
    "changing": ["trampolines", "1"],
    "changing, checked": ["trampolines", "1"],
    "own segments": ["ownsegments"],
}
# A block that changes its own page is left in its middle, the first time, and the rest of it is a block of its own:
# what counts blocks counts both. Checked code is never left.
BY_INSTRUCTION = {"changing"}
OPTIONS = {"changing, checked": ["--stress=check"]}
IN_ORDER = {"masked"}  # accesses of one instruction too are compared in their order
# Inlay refuses restartable sequences, as older kernels do; the C library then takes another path.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "GLIBC_TUNABLES": "glibc.pthread.rseq=0"}


def execute(argv, what, limit=LIMIT, cwd=None):
    """Everything runs without address randomisation, in the same environment."""
    done = driver.run(["setarch", "-R", *argv], limit, cwd=cwd, env=ENVIRONMENT)
    if isinstance(done.status, str):
        raise Failed(f"{what}: {done.status}")
    return done


class Truth:
    """What the single-stepper saw."""

    def __init__(self, stepper, program, scratch):
        self.accesses = f"{scratch}/truth.accesses"
        out = f"{scratch}/truth"
        self.result = execute([stepper, "-o", out, "--accesses", self.accesses, "--", *program], "stepper")
        self.counts, self.maps = {}, []
        self.begun, self.taken, self.edges = {}, {}, {}
        self.mnemonics = collections.Counter()
        with open(out) as f:
            for line in f:
                words = line.split()
                if words[0] == "instructions":
                    self.instructions = int(words[1])
                elif words[0] == "pc":
                    self.counts[int(words[1], 16)] = int(words[2])
                elif words[0] == "blocks":
                    self.blocks = int(words[1])
                elif words[0] in ("block", "taken"):
                    (self.begun if words[0] == "block" else self.taken)[int(words[1], 16)] = int(words[2])
                elif words[0] == "edge":
                    self.edges.setdefault(int(words[1], 16), {})[int(words[2], 16)] = int(words[3])
                elif words[0] == "mnemonic":
                    self.mnemonics[words[1]] += int(words[2])
                elif words[0] == "map" and len(words) > 4 and words[4].startswith("/"):
                    self.maps.append((int(words[1], 16), int(words[2], 16), int(words[3], 16), words[4]))
        self.pcs = sorted(self.counts)

    def between(self, start, end):
        i, j = bisect.bisect_left(self.pcs, start), bisect.bisect_left(self.pcs, end)
        return sum(self.counts[pc] for pc in self.pcs[i:j])

    def procedures(self):
        """(image, name) -> instructions, for sized symbols; every alias has an entry."""
        table = {}
        for image, base, elf in self.images():
            for (value, size), names in elf.functions().items():
                count = self.between(base + value, base + value + size)
                for name in names:
                    key = (os.path.basename(image), name)
                    table[key] = table.get(key, 0) + count
        return table

    def images(self):
        for start, _, offset, path in self.maps:
            elf = Elf(path)
            vaddr = elf.vaddr_of_offset(offset)
            if vaddr is not None:
                yield path, start - (vaddr - vaddr % 4096), elf


class Checker:
    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.inlay = f"{self.build}/inlay"
        self.stepper = f"{self.build}/tests/support/stepper"
        self.options = []  # of the tools, for the sample at hand

    def sample(self, words):
        return [f"{self.build}/tests/samples/{words[0]}"] + words[1:]

    def tool(self, name, program, *options, expect=None):
        """Runs a tool, checks the program's own result, answers the output file."""
        out = f"{self.scratch}/{name}"
        if os.path.exists(out):
            os.unlink(out)
        result = execute([self.inlay, "run", name, "-o", out, *self.options, *options, "--", *program], name)
        if expect and result[:2] != expect[:2]:
            raise Failed(f"{name}: status {result.status} instead of {expect.status}, or other "
                         f"output; {result.stderr.decode()[-300:].strip()}")
        if not os.path.exists(out):
            raise Failed(f"{name}: wrote no result; {result.stderr.decode()[-300:].strip()}")
        return out

    def json(self, name, program, *options, expect=None):
        with open(self.tool(name, program, "--format=json", *options, expect=expect)) as f:
            return json.load(f)


def check_total(checker, truth, program, tool):
    found = checker.json(tool, program, expect=truth.result)["instructions"]
    if found != truth.instructions:
        raise Failed(f"{found} instructions instead of {truth.instructions} "
                     f"({found - truth.instructions:+})")


def check_procedures(checker, truth, program):
    report = checker.json("prof", program, expect=truth.result)
    total = sum(row["instructions"] for row in report["procedures"])
    if total != truth.instructions:
        raise Failed(f"the procedures' sum is {total} instead of {truth.instructions}")
    rows = {}
    for row in report["procedures"]:
        key = (row["image"], row["name"])
        rows[key] = rows.get(key, 0) + row["instructions"]
    known = truth.procedures()
    wrong = [f"{name} ({image}): {count} instead of {known[image, name]}"
             for (image, name), count in rows.items()
             if (image, name) in known and known[image, name] != count]
    compared = sum((image, name) in known for image, name in rows)
    if wrong:
        raise Failed(f"{len(wrong)} of {compared} procedures differ", *wrong[:12])
    if known and not compared:
        raise Failed("no procedure of the report is a known symbol")


def shifts(truth, rows):
    """{image: how far it lies from where the stepper had it}. Images may be mapped elsewhere; each row
    of a known procedure allows a few distances of whole pages, and the most frequent one is it."""
    known = {}
    for path, base, elf in truth.images():
        ranges = known.setdefault(os.path.basename(path), {})
        for (value, size), names in elf.functions().items():
            for name in names:
                ranges[name] = (base + value, size) if name not in ranges else None
    votes = {}
    for row in rows:
        place = known.get(row["image"], {}).get(row["procedure"])
        if not place:
            continue
        low = row["address"] - place[0] - place[1] + 1
        for shift in range(low + -low % 4096, row["address"] - place[0] + 1, 4096):
            votes.setdefault(row["image"], collections.Counter())[shift] += 1
    return {image: count.most_common(1)[0][0] for image, count in votes.items()}


def check_branches(checker, truth, program):
    report = checker.json("branches", program, expect=truth.result)
    if not report["branches"]:
        raise Failed("no branches")
    moved = shifts(truth, report["branches"])
    wrong = []
    for b in report["branches"]:
        count = truth.counts.get(b["address"] - moved.get(b["image"], 0), 0)
        if count != b["executed"]:
            wrong.append(f"{b['address']:x} ({b['procedure']}): {b['executed']} instead of {count}")
    if wrong:
        raise Failed(f"{len(wrong)} of {len(report['branches'])} branches differ", *wrong[:12])


def accesses(path):
    """Yields (pc, accesses) for each execution of an instruction."""
    pc, group = None, []
    with open(path) as f:
        for line in f:
            if line.startswith("#"):
                continue
            here, rest = line.rstrip("\n").split(" ", 1)
            if here != pc and group:
                yield pc, group
                group = []
            pc = here
            group.append(tuple(rest.split(" ")))
    if group:
        yield pc, group


class Places:
    """Two runs may have mapped pages elsewhere: addresses correspond when their pages always do."""

    def __init__(self):
        self.pages = {}

    def same(self, a, b):
        a, b = int(a, 16), int(b, 16)
        return a == b or (a % 4096 == b % 4096 and self.pages.setdefault(a >> 12, b >> 12) == b >> 12)


def compare_traces(ours, theirs, places, arrange, names):
    """Execution by execution; `names` are whose traces they are. Answers how many there were."""
    ours, theirs = accesses(ours), accesses(theirs)
    for number in itertools.count(1):
        a, b = next(ours, None), next(theirs, None)
        if a is None and b is None:
            return number - 1
        told = [f"{name}: {x}" for name, x in zip(names, (a, b))]
        if a is None or b is None:
            raise Failed(f"the trace {'ends early' if a is None else 'goes on'} at access {number}", *told)
        same = places.same(a[0], b[0]) and len(a[1]) == len(b[1]) and all(
            (x[0], x[2:]) == (y[0], y[2:]) and places.same(x[1], y[1])
            for x, y in zip(arrange(a[1]), arrange(b[1])))
        if not same:
            raise Failed(f"access {number} differs", *told)


def check_accesses(checker, truth, program, arrange):
    """`arrange` is `sorted` where order within one instruction does not count."""
    found = checker.tool("memtrace", program, expect=truth.result)
    compare_traces(found, truth.accesses, Places(), arrange, ("memtrace", "stepper"))


def work_of_one(checker, turns):
    program = checker.sample(["threads_static", str(turns), "alone"])
    return Truth(checker.stepper, program, checker.scratch).procedures()["threads_static", "work"]


def check_threads(checker):
    """What one thread's work() executes grows by the same for each turn, so two short single-stepped
    runs give the exact number for the long one."""
    short, longer = work_of_one(checker, 1000), work_of_one(checker, 2000)
    expected = 8 * (longer + (longer - short) // 1000 * 198000)
    program = checker.sample(["threads_static"])
    report = checker.json("prof", program)
    found = sum(r["instructions"] for r in report["procedures"] if r["name"] == "work")
    if found != expected:
        raise Failed(f"{found} instructions in work() instead of {expected}")


def tests(checker, results):
    """Yields (name, function)."""
    for name, words in SAMPLES.items():
        program = checker.sample(words)
        if not os.path.exists(program[0]):
            results.skip(name, f"{program[0]} was not built")
            continue
        cache = []
        checker.options = OPTIONS.get(name, [])

        def truth(program=program, cache=cache):
            if not cache:
                cache.append(Truth(checker.stepper, program, checker.scratch))
            return cache[0]

        yield f"{name} inscount", lambda t=truth, p=program: check_total(checker, t(), p, "inscount")
        if name not in BY_INSTRUCTION:
            yield f"{name} opcodemix", lambda t=truth, p=program: check_total(checker, t(), p, "opcodemix")
            yield f"{name} prof", lambda t=truth, p=program: check_procedures(checker, t(), p)
            yield f"{name} branches", lambda t=truth, p=program: check_branches(checker, t(), p)
        arrange = list if name in IN_ORDER else sorted
        yield f"{name} memtrace", lambda t=truth, p=program, a=arrange: check_accesses(checker, t(), p, a)
    checker.options = []
    yield "eight threads", lambda: check_threads(checker)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("exact", options) as results:
        for name, check in tests(Checker(options.build, results.folder), results):
            results.check(name, check)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
