#!/usr/bin/python3
"""Planted faults: do the tests notice what one does wrong?

  tests/planted/run.py [--only PATTERN] [--jobs 2] [--list] [--check] [--keep]

Each *.planted file here holds the faults of one part, one a paragraph:

    name                                     what is wrong, in a few words
    file  src/run/x86_64/sigframe.c
    test  system red-zone                    the stage that must notice, and what of it is run
    - sp -= RED_ZONE;                        this text, which stands exactly once in the file (several
    + sp -= 0;                               lines: each with its indentation), becomes this
    reason ...                               instead of `test`: why no test can notice it

The tracked files are copied to a folder, built there, and every test that is named runs once as things stand: it must
pass. Then one fault after the other is put in, what the test needs is built, and the test must fail (or hang). A
fault that does not apply, does not compile or is not noticed is a failure. At most one in twenty may have a reason.

What can be named after `test`:

    unit NAME...            unit tests, and fuzzers that a plain build runs, by meson's names
    system PATTERN [TOOLS]  tests/system/run.py; stress SWITCH PATTERN: the same under a stress switch
    exact PATTERN           tests/exact/run.py
    atom [WORDS]            tests/atom/run.py
    rewrite SCRIPT PATTERN  a script of tests/rewrite
    cli                     tests/cli/run.sh
    python SCRIPT [ARGS]    another script that takes --build
    aarch64 unit NAME...    unit tests of the AArch64 build, under qemu-aarch64
    aarch64 user PATTERN    tests/aarch64/run.py --user: programs rewritten by it
"""

import concurrent.futures
import fnmatch
import glob
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

LIMIT = 100             # seconds for one test; it hangs then, which is noticed
MOST_WITH_REASON = 0.05
TOOLS = ["inlay", "tools/null", "tools/inscount", "tools/bbcount", "tools/memtrace", "tools/prof", "tools/calls",
         "tools/branches", "tools/opcodemix", "tools/snippet", "tools/trace", "libinlay-trace.a", "libinlay-tracetool.a", "inlay-events",
         "tools/live/count", "tools/live/break", "tools/live/snippet", "tools/live/tee", "tests/support/stepper",
         "tests/unit/snippet_generate"]


class Fault:
    def __init__(self, part, lines, where):
        fields = {"-": [], "+": []}
        self.part, self.name, self.where = part, lines[0], where
        for line in lines[1:]:
            key, _, text = line.partition(" ")
            if key in "-+":
                fields[key].append(text)
            elif key in ("file", "test", "reason") and key not in fields:
                fields[key] = text.strip()
            else:
                sys.exit(f"{where}: unknown line {line!r}")
        self.file, self.test, self.reason = (fields.get(k) for k in ("file", "test", "reason"))
        self.before, self.after = "\n".join(fields["-"]), "\n".join(fields["+"])
        if not self.file or not fields["-"] or bool(self.test) == bool(self.reason):
            sys.exit(f"{where}: a fault has a file, lines before, and a test or a reason")

    @property
    def label(self):
        return f"{self.part}: {self.name}"


def read(path):
    part, faults, lines, start = os.path.basename(path).split(".")[0], [], [], 0
    with open(path) as f:
        for number, line in enumerate([*f, ""], 1):
            line = line.rstrip("\n")
            if line.startswith("#"):
                continue
            if line:
                start = start if lines else number
                lines.append(line)
            elif lines:
                faults.append(Fault(part, lines, f"{path}:{start}"))
                lines = []
    return faults


def unit_targets(names):
    return [f"tests/{kind}/{prefix}{name}" for name in names for kind, prefix in (("unit", "unit_"), ("fuzz", ""))]


def unit_tests(build, names):
    return ["meson", "test", "-C", build, "--no-rebuild", "--quiet", *names]


def command(test, folder):
    """What to build, in which build folder, and what to run for a test, in a copy of the tree."""
    stage, *words = shlex.split(test)
    build, cross = f"{folder}/build", f"{folder}/build-aarch64"
    scripts = f"{folder}/tests"
    if stage == "unit":
        return "build", unit_targets(words), unit_tests(build, words)
    if stage == "aarch64" and words[0] == "unit":
        return "build-aarch64", unit_targets(words[1:]), unit_tests(cross, words[1:])
    if stage == "aarch64" and words[0] == "user":
        return "build-aarch64", TOOLS, [f"{scripts}/aarch64/run.py", "--build", cross, "--user", "--only", words[1]]
    if stage == "system":
        return "build", TOOLS, [f"{scripts}/system/run.py", "--build", build, "--only", words[0], "--tools",
                                words[1] if len(words) > 1 else "null,inscount"]
    if stage == "stress":
        return "build", TOOLS, ["env", f"INLAY_STRESS={words[0]}", f"{scripts}/system/run.py", "--build", build,
                                "--only", words[1], "--tools", "inscount"]
    if stage == "rewrite":
        return "build", TOOLS, [f"{scripts}/rewrite/{words[0]}", "--build", build, "--only", *words[1:]]
    if stage in ("exact", "atom"):
        return "build", TOOLS, [f"{scripts}/{stage}/run.py", "--build", build, "--only", *(words or [""])]
    if stage == "cli":
        return "build", TOOLS, [f"{scripts}/cli/run.sh", build]
    if stage == "python":
        return "build", TOOLS, [f"{scripts}/{words[0]}", "--build", build, *words[1:]]
    sys.exit(f"no stage {stage} ({test})")


def children_of(pid):
    """All descendants."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.split("/")[2]))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found[1:]


def run(argv, cwd, limit):
    """The status, or None when it took too long; and what it said."""
    with subprocess.Popen(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, errors="replace", start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=limit)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            for pid in children_of(process.pid) + [process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.communicate()
            return None, ""


class Copy:
    """The tree, in a folder of its own, built."""

    def __init__(self, folder):
        self.folder = folder
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, tracked.split("\0")):
            os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
            if os.path.lexists(f"{ROOT}/{name}"):
                shutil.copy2(f"{ROOT}/{name}", f"{folder}/{name}", follow_symlinks=False)
        os.environ["CCACHE_NOHASHDIR"] = "1"
        self.targets = {}  # by build folder
        self.configure("build")

    def configure(self, build):
        """Builds all of it once; what there is to be built."""
        ways = {"build": ["make"], "build-aarch64": ["make", "aarch64"]}
        if build not in self.targets:
            status, said = run(ways[build], self.folder, 1800)
            if status != 0:
                sys.exit(f"planted: the tree does not build: {said[-3000:]}")
            known = subprocess.run(["ninja", "-C", f"{self.folder}/{build}", "-t", "targets", "all"], check=True,
                                   capture_output=True, text=True).stdout
            self.targets[build] = {line.split(":")[0] for line in known.splitlines()}
        return self.targets[build]

    def build(self, build, targets):
        chosen = [t for t in targets if t in self.configure(build)]
        return run(["ninja", "-C", build, *chosen], self.folder, 900)

    def passes(self, test):
        """(Has it passed, what it said.) A run of nothing has not passed."""
        build, _, argv = command(test, self.folder)
        self.configure(build)
        status, said = run(argv, self.folder, LIMIT)
        nothing = re.search(r"^0 passed, 0 failed", said, re.M) or "No suitable tests" in said
        return status == 0 and not nothing, said

    def put(self, file, text):
        with open(f"{self.folder}/{file}", "w") as f:
            f.write(text)

    def plant(self, fault):
        """What is wrong, or None: it was noticed."""
        with open(f"{self.folder}/{fault.file}") as f:
            text = f.read()
        if text.count(fault.before) != 1:
            return f"its lines stand {text.count(fault.before)} times in {fault.file}"
        self.put(fault.file, text.replace(fault.before, fault.after))
        try:
            build, targets = command(fault.test, self.folder)[:2] if fault.test else ("build", ["inlay"])
            status, said = self.build(build, targets)
            if status != 0:
                return f"does not compile: {said[-800:]}"
            if fault.test and self.passes(fault.test)[0]:
                return f"not noticed by `{fault.test}`"
            return None
        finally:
            self.put(fault.file, text)


def check_baseline(copies, tests, results):
    """The tests must pass before anything is planted; answers those that do not."""
    bad = set()

    def one(test):
        copy = copies.get()
        try:
            return test, copy.passes(test)
        finally:
            copies.put(copy)
    with concurrent.futures.ThreadPoolExecutor(copies.qsize()) as pool:
        for test, (good, said) in pool.map(one, tests):
            results.count(f"as things stand: {test}", None if good else ["fails", *said.splitlines()[-8:]])
            if not good:
                bad.add(test)
    return bad


def plant_all(copies, faults, bad, results, verbose):
    def one(fault):
        if fault.test in bad:
            return fault, "its test fails by itself", 0
        copy, started = copies.get(), time.monotonic()
        try:
            return fault, copy.plant(fault), time.monotonic() - started
        finally:
            copies.put(copy)
    with concurrent.futures.ThreadPoolExecutor(copies.qsize()) as pool:
        for fault, wrong, seconds in pool.map(one, faults):
            if fault.reason and not wrong:
                print(f"not noticed, {fault.label}: {fault.reason}", flush=True)
            elif verbose and not wrong:
                print(f"noticed in {seconds:.0f} s: {fault.label}", flush=True)
            results.count(fault.label, [wrong] if wrong else None)


def check_places(faults):
    """Only whether each can be put in, and its test is one. The status."""
    wrong = 0
    for fault in faults:
        path = f"{ROOT}/{fault.file}"
        count = 0
        if os.path.exists(path):
            with open(path) as f:
                count = f.read().count(fault.before)
        if fault.test:
            command(fault.test, ROOT)  # which ends all, where there is no such stage
        if count != 1:
            wrong += 1
            print(f"FAIL planted {fault.label} ({fault.where}): its text stands {count} times in {fault.file}")
    print(f"{len(faults) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


def main():
    parser = driver.parser(__doc__, jobs=True)
    parser.add_argument("--list", action="store_true", help="only list the faults")
    parser.add_argument("--check", action="store_true", help="only look whether the faults can still be put in")
    parser.add_argument("--verbose", action="store_true", help="a line for each fault")
    options = parser.parse_args()
    faults = [f for path in sorted(glob.glob(f"{HERE}/*.planted")) for f in read(path)]
    driver.distinct(faults, HERE)
    with_reason = sum(1 for f in faults if f.reason)
    chosen = [f for f in faults if any(fnmatch.fnmatch(f"{f.part}/{f.name}", p) or fnmatch.fnmatch(f.part, p)
                                       or fnmatch.fnmatch(f.name, p) for p in options.only.split(","))]
    if options.list:
        print(*(f"{f.label} [{f.test or 'not noticed'}]" for f in chosen), sep="\n")
        return 0
    if not chosen:
        sys.exit(f"planted: no fault fits {options.only} (PART, PART/NAME or NAME; --list)")
    if options.check:
        return check_places(chosen)
    with driver.Results("planted", options) as results:
        copies = queue.Queue()
        for n in range(min(options.jobs, len(chosen))):
            copies.put(Copy(f"{results.folder}/{n}"))
        bad = check_baseline(copies, sorted({f.test for f in chosen if f.test}), results)
        plant_all(copies, chosen, bad, results, options.verbose)
        share = with_reason / len(faults)
        results.count("share of those not noticed", None if share <= MOST_WITH_REASON else [f"{share:.0%}"])
        noticed = len(faults) - with_reason
        print(f"planted: {len(faults)} faults, {len(chosen)} put in here; {noticed} have a test, {with_reason} a reason")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
