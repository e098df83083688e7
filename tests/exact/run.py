#!/usr/bin/python3
"""The exactness test: what the tools count must be what a single-stepper counts.

  tests/exact/run.py [--build DIR] [--only PATTERN] [--keep]

For each deterministic program: instructions (inscount, opcodemix, prof), also by mnemonic (opcodemix),
instructions and calls of each procedure (prof, calls), executions of each branch, how often it was taken and
where it went (branches), blocks (bbcount) and where they begin (tests/rewrite/blocks_tool.c), and the whole
sequence of memory accesses (memtrace, whose forms say the same) equal what tests/support/stepper.c saw:
of samples, and of some programs of the distribution; --all takes more of those. With eight threads, the work of each is counted
exactly. Prints a line for each failure and at the end N passed, N failed.
"""

import argparse
import bisect
import collections
import itertools
import json
import os
import struct
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
    "jumps, paired": ["jumps_static"],
    "dynamic, paired": ["plain"],
    "masked": ["masked"],
    "vectors": ["vectors_static"],
    "changing": ["trampolines", "1"],
    "changing, checked": ["trampolines", "1"],
    "own segments": ["ownsegments"],
    "crowded": ["asm_crowded"],
}
ONLY = {"crowded": {"branches"}}
# A block that changes its own page is left in its middle, the first time, and the rest of it is a block of its own:
# what counts blocks counts both. Checked code is never left.
BY_INSTRUCTION = {"changing"}
OPTIONS = {"changing, checked": ["--stress=check"], "jumps, paired": ["--stress=paired"],
           "dynamic, paired": ["--stress=paired"]}
# A step costs some microseconds: what these do is little.
PROGRAMS = {
    "ls": ["/usr/bin/ls", "{in}"],
    "sort": ["/usr/bin/sort", "--parallel=1", "-S", "1M", "{in}/text"],  # the stepper takes one processor
}
MORE_PROGRAMS = {  # not lua, which hashes with the time of day
    "bc": ["/usr/bin/bc", "-q", "{in}/sum"],
    "sqlite3": ["/usr/bin/sqlite3", ":memory:", "select 6 * 7"],
}
IN_ORDER = {"masked"}  # accesses of one instruction too are compared in their order
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"} | driver.KEPT


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

    def forward(self, moved):
        """Where an address lies in a run whose images are moved by so much."""
        ranges = sorted((low, high, moved.get(os.path.basename(path), 0)) for low, high, _, path in self.maps)
        lows = [low for low, _, _ in ranges]

        def place(address):
            i = bisect.bisect_right(lows, address) - 1
            return address + (ranges[i][2] if i >= 0 and address < ranges[i][1] else 0)
        return place

    def images(self):
        for start, _, offset, path in self.maps:
            elf = Elf(path)
            vaddr = elf.vaddr_of_offset(offset)
            if vaddr is not None:
                yield path, start - (vaddr - vaddr % 4096), elf


def blocks_tool(build, folder):
    """A tool of the tests' own, built once."""
    tool = f"{folder}/blocks"
    if not os.path.exists(tool):
        source = f"{HERE}/../rewrite/blocks_tool.c"
        done = driver.run([f"{build}/inlay", "cc", "-Wall", "-Wextra", "-Werror", source, "-o", tool], LIMIT)
        if done.status:
            raise Failed(f"the tool does not build: {done.stderr.decode()[-500:]}")
    return tool


class Checker:
    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.inlay = f"{self.build}/inlay"
        self.stepper = f"{self.build}/tests/support/stepper"
        self.options = []  # of the tools, for the sample at hand

    def sample(self, words):
        return [f"{self.build}/tests/samples/{words[0]}"] + words[1:]

    def blocks_tool(self):
        return blocks_tool(self.build, self.scratch)

    def tool(self, name, program, *options, expect=None):
        """Runs a tool, checks the program's own result, answers the output file."""
        out = f"{self.scratch}/{os.path.basename(name)}.out"
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
    if report["instructions"] != total:
        raise Failed(f"{report['instructions']} instructions in all, {total} in the procedures")
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


def check_blocks(checker, truth, program):
    """How many there are, and where they begin."""
    found = checker.json("bbcount", program, expect=truth.result)["blocks"]
    if found != truth.blocks:
        raise Failed(f"{found} blocks instead of {truth.blocks}")
    report = checker.json(checker.blocks_tool(), program, expect=truth.result)
    begun = {h["address"]: h["begun"] for h in report["heads"]}
    if sum(begun.values()) != truth.blocks or report["instructions"] != truth.instructions:
        raise Failed(f"{sum(begun.values())} blocks of {report['instructions']} instructions instead of "
                     f"{truth.blocks} of {truth.instructions}")
    branches = checker.json("branches", program, expect=truth.result)["branches"]
    forward = truth.forward(shifts(truth, branches))
    wrong = [f"{at:x}: {begun.get(forward(at), 0)} instead of {n}" for at, n in truth.begun.items()
             if begun.get(forward(at), 0) != n]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(truth.begun)} places where blocks begin differ", *wrong[:12])


def check_calls(checker, truth, program):
    """Each time control reaches a procedure's first instruction."""
    rows = checker.json("calls", program, expect=truth.result)
    moved = shifts(truth, [r | {"procedure": r["name"]} for r in rows["procedures"]])
    wrong = []
    for r in rows["procedures"]:
        count = truth.counts.get(r["address"] - moved.get(r["image"], 0), 0)
        if count != r["calls"]:
            wrong.append(f"{r['name']} ({r['image']}): {r['calls']} instead of {count}")
    if wrong:
        raise Failed(f"{len(wrong)} of {len(rows['procedures'])} procedures differ", *wrong[:12])
    if not rows["procedures"] and truth.procedures():
        raise Failed("no procedure was called")
    if rows["calls"] != sum(r["calls"] for r in rows["procedures"]):
        raise Failed(f"the sum is {rows['calls']}")


def check_sums(report):
    """opcodemix: each of its tables is of all instructions."""
    tables = {"mnemonics": report["mnemonics"].values(), "classes": report["classes"].values(),
              "images": [i["instructions"] for i in report["images"]],
              "procedures": [p["instructions"] for p in report["procedures"]]}
    for name, counts in tables.items():
        if sum(counts) != report["instructions"]:
            raise Failed(f"{name}: {sum(counts)} instructions instead of {report['instructions']}")
    for row in report["images"] + report["procedures"]:
        if sum(row["mnemonics"].values()) != row["instructions"]:
            raise Failed(f"{row.get('name', row['image'])}: {row['instructions']} instructions, by mnemonic others")


def check_mix(checker, truth, program):
    report = checker.json("opcodemix", program, expect=truth.result)
    check_sums(report)
    wrong = [f"{name}: {report['mnemonics'].get(name, 0)} instead of {truth.mnemonics.get(name, 0)}"
             for name in sorted({*report["mnemonics"], *truth.mnemonics})
             if report["mnemonics"].get(name, 0) != truth.mnemonics.get(name, 0)]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(truth.mnemonics)} mnemonics differ", *wrong[:12])


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
    return by_pages(truth, rows) | {image: count.most_common(1)[0][0] for image, count in votes.items()}


def by_pages(truth, rows):
    """The same without names: by so many pages, at most, that most of what was executed there was executed."""
    near = sorted(range(-64 * 4096, 65 * 4096, 4096), key=abs)
    images = {}
    for row in rows:
        images.setdefault(row["image"], []).append(row["address"])
    return {image: max(near, key=lambda shift: sum(a - shift in truth.counts for a in addresses))
            for image, addresses in images.items()}


def check_branches(checker, truth, program):
    report = checker.json("branches", program, expect=truth.result)
    if not report["branches"]:
        raise Failed("no branches")
    moved = shifts(truth, report["branches"])
    forward, wrong = truth.forward(moved), []
    for b in report["branches"]:
        at = b["address"] - moved.get(b["image"], 0)
        count = truth.counts.get(at, 0)
        taken = truth.taken.get(at, count)
        went = {forward(to): n for to, n in truth.edges.get(at, {}).items()}
        if (count, taken) != (b["executed"], b["taken"]):
            wrong.append(f"{b['address']:x} ({b['procedure']}): executed {b['executed']}, taken {b['taken']} "
                         f"instead of {count}, {taken}")
        elif went != {t["address"]: t["count"] for t in b.get("targets", [])}:
            wrong.append(f"{b['address']:x} ({b['procedure']}): went to {b.get('targets')} instead of {went}")
    known = {b["address"] for b in report["branches"]}
    wrong += [f"{at:x} is missing" for at in {*truth.taken, *truth.edges} if forward(at) not in known]
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


def records(path):
    """Of a trace as text, in the binary form."""
    with open(path) as f:
        for line in f:
            if line.startswith("#"):
                continue
            pc, kind, address, size, *times = line.split()
            yield struct.pack("<QQHBBI", int(pc, 16), int(address, 16), int(size), 1 if kind == "R" else 2, 0,
                              int(times[0][1:]) if times else 1)


def hash_of(trace):
    h, mask = 0, (1 << 64) - 1
    for word, in struct.iter_unpack("<Q", trace):
        h = (h ^ word) * 0x9e3779b97f4a7c15 & mask
        h ^= h >> 29
    return h


def expanded(data):
    """The compact form (docs/memtrace.md) as the binary one."""
    at, sites, detail = 0, [None], {}
    while at < len(data):
        magic, thread, new, count = struct.unpack_from("<4sIII", data, at)
        if magic != b"mtr1":
            raise Failed(f"no chunk of the compact form begins at {at}")
        at += 16
        sites += [struct.unpack_from("<QHB", data, at + 16 * k) for k in range(new)]
        at += 16 * new
        for number, address in struct.iter_unpack("<IQ", data[at:at + 12 * count]):
            if number == 0:
                detail[thread] = address
                continue
            pc, size, kind = sites[number]
            varies = detail[thread] if size == 0 else size << 32 | 1
            yield struct.pack("<QQHBBI", pc, address, varies >> 32, kind, 0, varies & 0xffffffff)
        at += 12 * count


def check_forms(checker, truth, program):
    """The text, which equals the stepper's, the binary and the compact form and the hash."""
    text = b"".join(records(checker.tool("memtrace", program, expect=truth.result)))
    with open(checker.tool("memtrace", program, "--binary", expect=truth.result), "rb") as f:
        binary = f.read()
    if not text or text != binary:
        raise Failed(f"the binary form has {len(binary)} bytes, other ones than the {len(text)} of the text")
    with open(checker.tool("memtrace", program, "--compact", expect=truth.result), "rb") as f:
        compact = b"".join(expanded(f.read()))
    if compact != text:
        raise Failed(f"the compact form has {len(compact) // 24} records, other ones than the {len(text) // 24} of the text")
    found = checker.json("memtrace", program, "--hash", expect=truth.result)
    expected = {"thread": 0, "accesses": len(text) // 24, "hash": hash_of(text)}
    if found["threads"] != [expected] or found["accesses"] != expected["accesses"]:
        raise Failed(f"--hash: {found['accesses']}, {found['threads']} instead of {expected}")


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


def traced_marks(checker, name):
    """Where in the array `marks` a sample stores, in the order of the trace; and the array's size."""
    program = checker.sample([name])
    low, size = next(((value, size) for (value, size), names in Elf(program[0]).objects().items() if "marks" in names))
    found = []
    with open(checker.tool("memtrace", program)) as f:
        for line in f:
            words = line.split()
            if words[1:2] == ["W"] and low <= int(words[2], 16) < low + size:
                found.append(int(words[2], 16) - low)
    return found, size


def check_vfork(checker):
    """Trace records over vfork: the child's are the parent's until it execs or ends; none is lost, none is twice."""
    found, size = traced_marks(checker, "vforked")
    if found != list(range(size)):
        wrong = next((i for i, at in enumerate(found) if i != at), len(found))
        raise Failed(f"{len(found)} stores instead of {size}, the first difference at {wrong}")


def check_faults(checker):
    """Trace records where an instruction faults in the middle of a stretch: those before it are there, none behind it."""
    found, size = traced_marks(checker, "faultmarks")
    if found != list(range(size)):
        wrong = next((i for i, at in enumerate(found) if i != at), len(found))
        raise Failed(f"{len(found)} stores instead of {size}, the first difference at {wrong}")


def check_turns(checker):
    """Trace records and counts of threads that live at the same time, after one that has ended: each has memory of its
    own."""
    found, size = traced_marks(checker, "inturns")
    if sorted(found) != list(range(size)):
        raise Failed(f"{len(found)} stores to {len(set(found))} places instead of one to each of {size}")
    alone = checker.sample(["inturns", "alone"])
    once = Truth(checker.stepper, alone, checker.scratch).procedures()["inturns", "mark"]
    report = checker.json("prof", checker.sample(["inturns"]))
    marked = sum(r["instructions"] for r in report["procedures"] if r["name"] == "mark")
    if marked != 7 * once:
        raise Failed(f"{marked} instructions in mark() instead of {7 * once}")


def tests(checker, results, everything):
    """Yields (name, function)."""
    for name, words in SAMPLES.items():
        program = checker.sample(words)
        if not os.path.exists(program[0]):
            results.skip(name, f"{program[0]} was not built")
            continue
        checker.options = OPTIONS.get(name, [])
        yield from checks(checker, name, program)
        if name not in BY_INSTRUCTION and name not in ONLY:
            yield f"{name} forms", lambda p=program: check_forms(checker, native(p), p)
    checker.options = []
    yield "vfork", lambda: check_vfork(checker)
    yield "faults amid records", lambda: check_faults(checker)
    yield "threads in turns", lambda: check_turns(checker)
    yield "eight threads", lambda: check_threads(checker)
    folder = make_inputs(f"{checker.scratch}/in")
    for name, words in (PROGRAMS | (MORE_PROGRAMS if everything else {})).items():
        program = [w.replace("{in}", folder) for w in words]
        if os.path.exists(program[0]):
            yield from checks(checker, name, program)
        else:
            results.skip(name, f"there is no {program[0]}")


def native(program):
    """Its result, for checks that need nothing else of the truth."""
    return argparse.Namespace(result=execute(program, "native"))


def make_inputs(folder):
    os.makedirs(folder)
    with open(f"{folder}/text", "w") as f:
        f.writelines(f"{i * 7 % 12} line\n" for i in range(12))
    with open(f"{folder}/sum", "w") as f:
        f.write("scale = 5\n22 / 7\nquit\n")
    return folder


def checks(checker, name, program):
    """Yields (name, function) for one program, which is stepped when the first of them runs."""
    cache = []
    arrange = list if name in IN_ORDER else sorted

    def against(check, *more):
        def run():
            if not cache:
                cache.append(Truth(checker.stepper, program, checker.scratch))
            check(checker, cache[0], program, *more)
        return run

    of_all = {"inscount": (check_total, "inscount"), "memtrace": (check_accesses, arrange)}
    of_blocks = {"opcodemix": (check_mix,), "prof": (check_procedures,), "calls": (check_calls,),
                 "branches": (check_branches,), "blocks": (check_blocks,)}
    for check, what in (of_all if name in BY_INSTRUCTION else of_all | of_blocks).items():
        if check in ONLY.get(name, {check}):
            yield f"{name} {check}", against(*what)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true", help="also the programs that take long")
    options = parser.parse_args()
    with driver.Results("exact", options) as results:
        for name, check in tests(Checker(options.build, results.folder), results, options.all):
            results.check(name, check)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
