"""AArch64 programs, rewritten: they say what they said, and the tools count what a single-stepper counts.

The truth that counts are held against is a rewritten file itself with its original code put back (`original_code`):
what a program can see of its file costs instructions, and is the same then. The C library walks over the program
headers; tools whose files have as many of them share a truth. Places are not random: how often memset writes 64 bytes
depends on where the stack is. What is compared are the procedures that the report says
have moved; the report's others are code that is not counted. An interrupt between an exclusive load and its store makes
the program repeat both (the C library uses them until it knows the processor), which the stepper counts once: a program
that is compared runs TURNS times, and the smallest count is that of the run that no interrupt disturbed.
"""

import bisect
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import driver

TOOLS = ("null", "bbcount", "inscount", "calls")
COUNTING = {"bbcount": "blocks", "inscount": "instructions", "calls": None}
TURNS = 3
# The same for all. Inlay refuses restartable sequences; the C library then takes another path.
ENVIRONMENT = "env -i INLAY_OUT={out} GLIBC_TUNABLES=glibc.pthread.rseq=0"
HEADER, SECTION = struct.Struct("<16s4x4xQQQI6H"), struct.Struct("<IIQQQQIIQQ")
ENTRY_AT, EXECUTED = 24, 4


def sections(data):
    """(address, offset, size) of those that hold code."""
    _, _, _, offset, _, _, _, _, size, count, _ = HEADER.unpack_from(data)
    for i in range(count):
        _, kind, flags, addr, at, length, *_ = SECTION.unpack_from(data, offset + i * size)
        if flags & EXECUTED and kind == 1:
            yield addr, at, length


def program_headers(path):
    with open(path, "rb") as f:
        return HEADER.unpack(f.read(HEADER.size))[7]


def original_code(original, rewritten, out):
    """The rewritten file, but what is executed is the original's code, from its entry on."""
    with open(original, "rb") as f:
        old = f.read()
    with open(rewritten, "rb") as f:
        new = bytearray(f.read())
    changed = 0
    for _, at, length in sections(old):
        changed += new[at:at + length] != old[at:at + length]
        new[at:at + length] = old[at:at + length]
    if not changed:
        raise driver.Failed(f"{rewritten}: nothing of its code was changed")
    new[ENTRY_AT:ENTRY_AT + 8] = old[ENTRY_AT:ENTRY_AT + 8]
    with open(out, "wb") as f:
        f.write(new)
    shutil.copymode(rewritten, out)


class Moved:
    """The procedures that a report says have moved."""

    def __init__(self, path):
        with open(path) as f:
            image = json.load(f)["images"][0]
        self.bias = image["bias"]
        moved = [p for p in image["list"] if p["status"] == "moved"]
        self.entries = {p["address"] - self.bias for p in moved}
        self.pairs = sorted((p["address"] - self.bias, p["address"] - self.bias + p["size"]) for p in moved)
        self.lows = [low for low, _ in self.pairs]
        if not moved:
            raise driver.Failed("nothing has moved")

    def holds(self, pc):
        i = bisect.bisect_right(self.lows, pc) - 1
        return i >= 0 and pc < self.pairs[i][1]


class Truth:
    """What the stepper saw of a program that is loaded where it says: {address: times} by kind of line."""

    def __init__(self, path):
        self.by_kind = collections.defaultdict(dict)
        with open(path) as f:
            for words in map(str.split, f):
                if words[0] in ("pc", "block"):
                    self.by_kind[words[0]][int(words[1], 16)] = int(words[2])

    def sum(self, kind, moved):
        return sum(n for at, n in self.by_kind[kind].items() if moved.holds(at))


class Rewritten:
    """`chosen`: {program: tools}; `stepped`: the programs whose counts are compared; `files`: what is rewritten already,
    on another processor. Of the others' outputs and files `checks` (run.py) knows."""

    def __init__(self, checks, chosen, stepped, files):
        self.checks, self.chosen, self.stepped = checks, chosen, stepped
        self.folder = driver.fresh(f"{checks.folder}/rewritten")
        self.made = {}  # (tool, program): the file, or why there is none
        self.truths = {}  # (program, number of program headers): the job
        # (tool, what is rewritten): the same; several programs are one file with other arguments
        self.files, self.before = files, dict(files)

    # --- on this machine

    def rewrite(self, tool, *words):
        argv = self.checks.emulator(f"{self.checks.options.build}/tools/{tool}", "--inlay-rewrite", *words)
        return driver.run(argv, 300, env={"PATH": driver.PATH, "LC_ALL": "C"})

    def make(self, tool, file):
        """The rewritten file, or why there is none."""
        out = f"{self.folder}/{tool}.{os.path.basename(file)}"
        options = ["--format=json"] if tool in COUNTING else []
        done = self.rewrite(tool, *options, f"--report={out}.json", file, "-o", out)
        if done.status or not os.path.exists(out):
            return f"rewriting: status {done.status}", *driver.as_lines(done.stderr)[:4]
        return out

    def same_file(self, tool, file):
        """What was rewritten on another processor is what is written on this one."""
        made = self.make(tool, file)
        if not isinstance(made, str):
            raise driver.Failed(*made)
        with open(made, "rb") as here, open(self.before[tool, file], "rb") as there:
            if here.read() != there.read():
                raise driver.Failed("the file is another one")

    def made_of(self, tool, file):
        if (tool, file) not in self.files:
            self.files[tool, file] = self.make(tool, file)
        return self.files[tool, file]

    def step(self, tool, name):
        """Has the program stepped, unless a file that it would not tell from this one is stepped already."""
        made, m = self.made[tool, name], self.checks.machine
        key = name, program_headers(made)
        if key not in self.truths:
            original_code(self.checks.file(name), made, f"{made}.truth")
            m.add(f"{made}.truth", self.place(tool, name, truth=True)[1:])
            m.job(f"truth.{tool}.{name}", f"cd $OUT; exec {ENVIRONMENT.format(out='counts1')} /bin/stepper -o truth -- "
                  f"{self.place(tool, name, truth=True)} {self.checks.arguments(name)}")
            self.truths[key] = f"truth.{tool}.{name}"

    def truth_jobs(self):
        """{program: a job that steps it}"""
        return {name: job for (name, _), job in self.truths.items()}

    # --- what the machine is to do

    def place(self, tool, name, truth=False):
        """As long as the original's path: the C library reads it."""
        folder = "truth" if truth else "moved"
        return f"/{folder}{TOOLS.index(tool):03}/{name}/{self.checks.name_of(name)}"

    def fill(self):
        m = self.checks.machine
        for tool, name in [(tool, name) for name in self.chosen for tool in self.chosen[name]]:
            self.made[tool, name] = self.made_of(tool, self.checks.file(name))
            if not isinstance(self.made[tool, name], str):
                continue
            arguments = self.checks.arguments(name)
            m.add(self.made[tool, name], self.place(tool, name)[1:])
            m.job(f"{tool}.{name}", self.script(tool, name, arguments))
            if name in self.stepped and tool in COUNTING:
                self.step(tool, name)

    def script(self, tool, name, arguments):
        """Runs the rewritten file; what the last turn says is what the job says."""
        program = f"{self.place(tool, name)} {arguments}"
        if name not in self.stepped:
            return f"cd $OUT; exec {ENVIRONMENT.format(out='counts')} {program}"
        before = "; ".join(f"{ENVIRONMENT.format(out=f'counts{turn}')} {program} >/dev/null 2>&1" for turn in range(1, TURNS))
        return ("echo 0 >/proc/sys/kernel/randomize_va_space; cd $OUT; "
                f"{before}; exec {ENVIRONMENT.format(out=f'counts{TURNS}')} {program}")

    # --- what is to hold

    def rewrites(self, tool, name):
        if not isinstance(self.made[tool, name], str):
            raise driver.Failed(*self.made[tool, name])

    def same_output(self, tool, name):
        checks, place = self.checks, self.place(tool, name)
        native = checks.answers[f"run.{name}"]
        wrong = driver.differences(native, checks.answers[f"{tool}.{name}"])
        if wrong:
            raise driver.Failed("on the kernel", *wrong)
        if name in checks.only_on_kernel:
            return
        wrong = driver.differences(native, checks.here(self.made[tool, name], place, name))
        if wrong:
            raise driver.Failed("under qemu-user", *wrong)

    def same_for_user(self, tool, name):
        """Under qemu-user alone."""
        checks, file, place = self.checks, self.checks.file(name), self.place(tool, name)
        self.made[tool, name] = self.made_of(tool, file)
        self.rewrites(tool, name)
        wrong = driver.differences(checks.here(file, place, name), checks.here(self.made[tool, name], place, name))
        if wrong:
            raise driver.Failed(*wrong)

    def counted(self, tool, name):
        """The reports of all turns."""
        try:
            paths = [self.checks.machine.left(f"{tool}.{name}", f"counts{turn}") for turn in range(1, TURNS + 1)]
            return [json.loads(pathlib.Path(path).read_text()) for path in paths]
        except (OSError, ValueError) as wrong:
            raise driver.Failed(f"no report: {wrong}") from None

    def same_counts(self, tool, name):
        job = self.truths[name, program_headers(self.made[tool, name])]
        self.checks.expect(job, f"run.{name}")
        truth = Truth(self.checks.machine.left(job, "truth"))
        moved = Moved(f"{self.made[tool, name]}.json")
        counted = self.counted(tool, name)
        if tool == "calls":
            self.same_calls(name, truth, moved, counted[0])
            return
        is_, should = min(report[COUNTING[tool]] for report in counted), truth.sum("block" if tool == "bbcount" else "pc", moved)
        if is_ != should or not should:
            raise driver.Failed(f"{is_} {COUNTING[tool]} instead of {should} ({is_ - should:+})")

    def known_to_tools(self, name):
        """Where procedures begin by the file's symbols and unwind entries; tools see no others."""
        def said(*argv):
            return subprocess.run([*argv, self.checks.file(name)], capture_output=True, text=True).stdout
        frames = re.findall(r" FDE .* pc=([0-9a-f]+)\.\.", said("readelf", "--debug-dump=frames"))
        symbols = re.findall(r"^([0-9a-f]+) [Ttw] ", said("aarch64-linux-gnu-nm"), re.M)
        return {int(at, 16) for at in frames + symbols}

    def code_of(self, name):
        with open(self.checks.file(name), "rb") as f:
            return list(sections(f.read()))

    def same_calls(self, name, truth, moved, counted):
        called = collections.Counter()
        for row in counted["procedures"]:
            called[row["address"] - moved.bias] += row["calls"]
        low, _, size = max(self.code_of(name), key=lambda section: section[2])  # of the others there may be no names
        known = self.known_to_tools(name)
        wrong = [at for at in moved.entries & known if at - low in range(size) and called[at] != truth.by_kind["pc"].get(at, 0)]
        if wrong or len(called) < 10:
            raise driver.Failed(f"{len(wrong)} of {len(called)} procedures have other calls",
                                *(f"{at:x}: {called[at]} instead of {truth.by_kind['pc'].get(at, 0)}" for at in wrong[:6]))

    def run(self, results):
        """When the machine has answered."""
        for tool, file in [key for key in self.before if key[0] == "bbcount"][:2]:
            results.count(f"{self.checks.model} {tool} {os.path.basename(file)}, rewritten as elsewhere",
                          driver.problem(self.same_file, tool, file))
        for tool, name in self.made:
            label = f"{self.checks.model} {tool} {name}"
            wrong = driver.problem(self.rewrites, tool, name) or driver.problem(self.same_output, tool, name)
            results.count(f"{label}, rewritten", wrong)
            if not wrong and tool in COUNTING and name in self.stepped:
                results.count(f"{label}, counts", driver.problem(self.same_counts, tool, name))
