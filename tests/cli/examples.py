#!/usr/bin/python3
"""The tools of examples/, each on programs of the distribution and on a sample, under both engines: the program does what it
does by itself, and both engines find the same; on the sample, what is known to be right. Each is shorter than 100 lines
(taint: 160) and listed in the README.

  tests/cli/examples.py [--build DIR] [--only PATTERN] [--all] [--keep]

--only takes "TOOL PROGRAM". Without --all the larger programs are seen by every other tool. Prints a line for each failure
and at the end N passed, N failed.
"""

import collections
import difflib
import glob
import os
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
Work = collections.namedtuple("Work", "tool program name out known")  # name: of the program's image


# --- what each tool has found, in a form that does not depend on the engine ---

def lines(text):
    return sorted(text.decode().splitlines())


def vectors(text):
    """Numbers are given out as code is met."""
    return [sorted(int(n) for _, n in re.findall(r":(\d+):(\d+) ", line)) for line in text.decode().splitlines()]


def accesses(text):
    """Misses depend on where the program lies."""
    return sorted((place, int(n)) for n, place in re.findall(r"(\d+) accesses, \d+ misses: (.*)", text.decode()))


def coverage(text, name):
    """The blocks of one module, of a file as those that read drcov expect it."""
    head, _, rest = text.partition(b"BB Table: ")
    count, _, table = rest.partition(b" bbs\n")
    words = head.decode().splitlines()
    if words[:2] != ["DRCOV VERSION: 2", "DRCOV FLAVOR: drcov"] or words[3] != "Columns: id, base, end, entry, path":
        raise Failed("not a drcov file", *words[:5])
    modules = [re.fullmatch(r" *(\d+), 0x(\w{16}), 0x(\w{16}), 0x(\w{16}), (.*)", m).groups() for m in words[4:]]
    if words[2] != f"Module Table: version 2, count {len(modules)}" or len(table) != 8 * int(count):
        raise Failed(f"{len(modules)} modules, {len(table)} bytes of blocks", words[2], count.decode())
    number = [int(m[0]) for m in modules if os.path.basename(m[4]) == name]
    blocks = [b for b in struct.iter_unpack("<IHH", table) if [b[2]] == number]
    base, end = int(modules[number[0]][1], 16), int(modules[number[0]][2], 16)
    if any(start + size > end - base for start, size, _ in blocks):
        raise Failed("a block lies outside of its module")
    return sorted((start, size) for start, size, _ in blocks)


def branches(text):
    """Without addresses: tainted, executed, what and where."""
    return sorted(re.sub(r" at 0x\w+", "", line) for line in text.decode().splitlines())


def calls(text):
    """The columns that do not depend on addresses."""
    return sorted((r[0], r[-1]) for r in (re.split(r" {2,}|(?<=%) +", x.strip()) for x in text.decode().splitlines()))


def call_names(text):
    return [re.match(r"\w+", x)[0] for x in text.decode().splitlines() if x[0] not in "=" and not x.startswith("futex")]


# Programs that do something else each time: their tables are ordered by addresses and by the time.
LOOSE = ("lua", "python3")

Tool = collections.namedtuple("Tool", "options find with_libs all_images", defaults=((), lines, False, False))
TOOLS = {
    "bbvectors": Tool(("--interval=100000",), vectors),
    "cachesim": Tool((), accesses),
    "callgraph": Tool(),
    "calltrace": Tool((), call_names),
    "drcov": Tool((), coverage),
    "faults": Tool(("--call=write", "--error=28")),
    "forkserver": Tool(("--runs=1",)),
    "heapsites": Tool((), lines, True, True),
    "malloctrace": Tool((), lines, True, True),
    "replace": Tool(("--round=64",), lines, True, True),
    "region": Tool(("--from=main",)),
    "taint": Tool((), branches, True, True),
    "valueprof": Tool(("--top=0",), calls),
}


ELSEWHERE = {"sampling", "timeline"}  # what it does only the JIT can: tests/cli/versions.py; its lines go by the time: worker.py


# A block of 200 instructions behind some that are short, and a way into its middle: superblocks end everywhere.
LONG = r"""#include <stdio.h>
int main(void)
{
    unsigned sum = 1, times = 9;
    __asm__ volatile("1: add %1, %0; test $1, %0; jz 2f; add $3, %0; 2: test $2, %0; jz 3f; add $5, %0\n"
                     "3: .rept 60; add $7, %0; .endr\n4: .rept 137; rol $3, %0; .endr\n"
                     "dec %1; jz 6f; test $1, %1; jz 1b; test $2, %1; jz 4b; jmp 3b\n6:" : "+r"(sum), "+r"(times) : : "cc");
    printf("%u\n", sum);
    return 0;
}
"""


# Called 1000 times, it loads twice each time: a conditional move loads whether it moves or not.
SKIPS = r"""__asm__(".globl skips\n.type skips, @function\nskips: xor %eax, %eax\ncmovne (%rdi), %eax\nret\n.size skips, .-skips");
int skips(const int *);
int main(void)
{
    int sum = 7;
    for (int i = 0; i < 1000; i++) sum += skips(&sum);
    return sum - 7;
}
"""


def written(folder, name, text):
    path = f"{folder}/{name}"
    with open(f"{path}.c", "w", encoding="utf-8") as f:
        f.write(text)
    driver.build("dynamic", f"{path}.c", path)
    return [path]


def programs(folder, samples):
    text = f"{folder}/text"
    with open(text, "w", encoding="utf-8") as f:
        f.writelines(f"{i * 7919 % 1000} line {i}\n" for i in range(2000))
    with open(f"{folder}/work.lua", "w", encoding="utf-8") as f:
        f.write("local t = {} for i = 1, 3000 do t[#t + 1] = tostring(i):rep(2) end table.sort(t) print(#t, t[7])")
    sql = "create table t(n); insert into t values(3), (1), (2); select n from t order by n;"
    all_of_them = {
        "wc": ["wc"],
        "sample": [f"{samples}/repeats"],
        "ls": ["ls", "-l", "/usr/include"],
        "sort": ["sort", "--parallel=1", "-S1M", "-n", text],  # else it asks how much memory is free
        "gzip": ["gzip", "-9c", text],
        "sqlite3": ["sqlite3", ":memory:", sql],
        "python3": ["/usr/bin/python3", "-S", "-c", "print(sum(i * i for i in range(1000)))"],
        "lua": ["lua5.4", f"{folder}/work.lua"],
    }
    return {k: [p, *v[1:]] for k, v in all_of_them.items() if (p := shutil.which(v[0]))}


# --- what is right for the sample: `step` is called 1000 times by main ---

def known(tool, text, found, instructions):
    if tool == "bbvectors":
        return sum(map(sum, found)) == instructions
    if tool == "region":
        inside, whole, times = map(int, re.findall(r"\d+", text.decode()))
        return whole == instructions and 1000 < inside < whole and times == 1
    if tool == "faults":
        return text == b"write: 1 of 1 failed: No space left on device; the program ended with status 0\n"
    marks = {"taint": " +tainted +executed  branch", "callgraph": r'"main (\S+)" -> "step \1" \[label=1000\];', "cachesim": r"\d{4,} accesses, \d+ misses: .*",
             "calltrace": r'write\(1, .*\) = \d+', "valueprof": r" +1000 +0.0 % +0.0 %  step \(repeats\)",
             "replace": r"malloc: \d+ calls, 0 refused, \d+ rounded up, 0 failed", "malloctrace": r"malloc\(\d+\) = \d+", "drcov": "DRCOV VERSION: 2",
             "heapsites": r" +1 calls, +\d+ bytes: \S+ .* < main \(repeats.c:14\).*",
             "forkserver": r"run 1: status 0x0, \d\d edges"}
    return re.search(f"^{marks[tool]}$", text.decode(errors="replace"), re.M)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def run(argv, native, env, fails, executable=None, stdin=os.devnull):
    done = driver.run(argv, LIMIT, env=env, stdin=stdin, executable=executable)
    if fails == (done.stdout == native.stdout) or (not fails and done.status != native.status):
        raise Failed(f"status {done.status}", done.stdout.decode(errors="replace")[:200], *driver.as_lines(done.stderr)[-4:])
    return done


class Example:
    def __init__(self, options, folder, tool):
        self.inlay, self.folder, self.tool, self.how = f"{options.build}/inlay", folder, tool, TOOLS[tool]
        self.path, self.report = f"{folder}/{tool}", f"{folder}/{tool}.report"
        self.inscount, self.stdin = f"{options.build}/tools/inscount", f"{folder}/text"

    def compile(self):
        done = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{ROOT}/examples/{self.tool}.c", "-o",
                           self.path], LIMIT)
        if done.status:
            raise Failed(*driver.as_lines(done.stderr)[-6:])
        with open(f"{ROOT}/README.md", encoding="utf-8") as f:
            if f"| `{self.tool}` |" not in f.read():
                raise Failed("it is not in the README's table")
        with open(f"{ROOT}/examples/{self.tool}.c", encoding="utf-8") as f:
            if len(f.readlines()) >= (160 if self.tool == "taint" else 100):
                raise Failed("it is too long")

    def find(self, name):
        text = read(self.report)
        return text, self.how.find(text, name) if self.how.find is coverage else self.how.find(text)

    def under_jit(self, argv, native):
        name = os.path.basename(os.path.realpath(argv[0]))
        images = [] if self.how.all_images or self.tool == "calltrace" else [f"--image={name}"]
        run([self.inlay, "run", self.path, *self.how.options, *images, "-o", self.report, "--", *argv], native,
            driver.ENVIRONMENT, self.tool == "faults", stdin=self.stdin)
        return self.find(name)

    def rewritten(self, argv, native):
        name = os.path.basename(os.path.realpath(argv[0]))
        out = driver.fresh(f"{self.folder}/new")
        to = ["--with-libs", out] if self.how.with_libs else ["-o", f"{out}/{name}"]
        os.makedirs(out, exist_ok=True)
        driver.rewrite(self.inlay, [self.path, *self.how.options, os.path.realpath(argv[0]), *to], LIMIT)
        # By the same name: programs look at it.
        run(argv, native, driver.ENVIRONMENT | {"INLAY_OUT": self.report}, self.tool == "faults", f"{out}/{name}", self.stdin)
        return self.find(name)

    def instructions(self, argv):
        name = os.path.basename(argv[0])
        driver.run([self.inlay, "run", self.inscount, f"--image={name}", "-o", self.report, "--", *argv], LIMIT, stdin=self.stdin)
        return int(re.search(r"\d+", read(self.report).decode().split(":")[-1])[0])

    def check(self, program, argv):
        native = driver.run(argv, LIMIT, env=driver.ENVIRONMENT, stdin=self.stdin)
        text, here = self.under_jit(argv, native)
        if program == "sample" and not known(self.tool, text, here, self.instructions(argv)):
            raise Failed("not what is known of the sample", text.decode(errors="replace")[:300])
        if program == "skips" and ("skips", 2000) not in here:
            raise Failed("not 2000 accesses in skips", *map(str, here[:9]))
        text, there = self.rewritten(argv, native)
        if program == "sample" and not known(self.tool, text, there, self.instructions(argv)):
            raise Failed("not what is known of the sample (rewritten)", text.decode(errors="replace")[:300])
        # wc asks of each character that is no space whether it is a part of a word.
        size = len(b"".join(read(self.stdin).split()))
        if self.tool == "taint" and (program == "wc") != any(re.match(rf" +{size} +{size}  j", line) for line in here):
            raise Failed("not the branches that hang on each character", *here[:9])
        # Under the JIT the tool is there before the dynamic linker is.
        good = here[-len(there):] == there and len(there) > 3 if self.tool == "calltrace" else here == there
        loosely = mostly_within if self.tool == "calltrace" else are_alike
        if not (good or (program in LOOSE and loosely(here, there))):
            raise Failed("the engines differ", *[str(x)[:150] for x in first_difference(here, there)])


def are_alike(a, b):
    return abs(len(a) - len(b)) <= len(a) * 0.1


def mostly_within(a, b):
    """The second one in the first one, in order: what is before the tool is there, and in the vdso, is in one alone."""
    common = difflib.SequenceMatcher(None, a, b, False).get_matching_blocks()
    return len(b) > 3 and sum(m.size for m in common) >= len(b) * 0.9


def first_difference(a, b):
    only_a, only_b = [x for x in a if x not in b], [x for x in b if x not in a]
    return [f"{len(a)} and {len(b)}", only_a[:5], only_b[:5]]


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("examples", options) as results:
        common = programs(results.folder, f"{options.build}/tests/samples")
        names = sorted({os.path.basename(p)[:-2] for p in glob.glob(f"{ROOT}/examples/*.c")} - ELSEWHERE)
        results.count("all of them", [] if names == sorted(TOOLS) else [f"{set(names) ^ set(TOOLS)}"])
        for k, tool in enumerate(names):
            here = dict(common)
            work = [n for i, n in enumerate(here) if options.all or n == "sample" or (i + k) % 3 == 0]
            for of, name, text in (("drcov", "long", LONG), ("cachesim", "skips", SKIPS)):
                if tool == of:
                    here[name] = written(results.folder, name, text)
                    work.append(name)
            if not any(driver.chosen(f"{tool} {n}", options) for n in work):
                continue
            example = Example(options, results.folder, tool)
            wrong = driver.problem(example.compile)
            results.count(f"{tool} compiles", wrong)
            for name in work if not wrong else []:
                results.check(f"{tool} {name}", lambda e=example, n=name: e.check(n, here[n]))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
