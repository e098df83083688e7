#!/usr/bin/python3
"""Every way in which a rewritten program ends, starts threads and processes, or takes signals.

  tests/rewrite/ends.py [--build DIR] [--only PATTERN] [--keep]

ends.c is built in five forms and rewritten with several tools. Output and status must equal those of the
original, and each process must leave exactly one report. What the eight threads of one way count is
compared with the JIT, exactly. Prints a line for each failure and at the end N passed, N failed.
"""

import glob
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

LIMIT = 60
# How many processes are the program's own, and report.
WAYS = {
    "return": 1, "exit": 1, "_exit": 1, "quick_exit": 1, "abort": 1, "fault": 1, "overflow": 1,
    "term": 1, "from-outside": 2, "exec": 1, "exec-nothing": 1, "exec-rubbish": 1, "close-all": 1,
    "dup-over": 1, "daemon": 3, "thread-exit": 1, "threads": 1, "main-first": 1, "cancel": 1,
    "fork": 2, "vfork": 1, "spawn": 1, "load": 1, "jump-out": 1, "catch": 1, "catch-load": 1,
    "actions": 2,
    "dlopen": 1, "itself": 1,
    "locked-in": 2, "nobody": 2, "no-descriptors": 2, "no-file-size": 0, "listing": 1, "title": 2, "strict": 2,
}
# The child's report is added to its parent's: it may make no file of its own.
TOGETHER = {"nobody", "no-descriptors"} if os.geteuid() == 0 else {"no-descriptors"}
TOOLS = {"inscount": list(driver.FORMS), "memtrace": ["dynamic", "static"], "branches": ["dynamic", "musl-static"]}
# Of other forms than glibc's dynamic one these are not to be had.
GLIBC_DYNAMIC = {"dlopen"}


class Test:
    def __init__(self, results):
        self.results, self.options, self.scratch = results, results.options, results.folder

    def count(self, name, good, detail=""):
        self.results.count(name, None if good else (detail,))

    def build(self, form):
        program = f"{driver.fresh(f'{self.scratch}/{form}')}/ends"
        why = driver.build(form, f"{HERE}/ends.c", program)
        if why:
            self.results.skip(form, why)
        return None if why else program

    def rewrite(self, tool, program, *more):
        out = f"{program}.{tool}{len(more) or ''}"
        done = subprocess.run([f"{self.options.build}/inlay", "rewrite", tool, *more, program, "-o", out],
                              capture_output=True, text=True, timeout=LIMIT)
        self.count(f"{tool}: rewrite {program}", done.returncode == 0, done.stderr[-500:])
        return out if done.returncode == 0 else None

    def rewrite_with_libraries(self, program):
        folder = f"{os.path.dirname(program)}/libs"
        done = subprocess.run([f"{self.options.build}/inlay", "rewrite", "inscount", "--with-libs", folder, program],
                              capture_output=True, text=True, timeout=LIMIT)
        self.count("rewrite with libraries", done.returncode == 0, done.stderr[-500:])
        return f"{folder}/ends" if done.returncode == 0 else None

    def run(self, argv, **env):
        try:
            done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT,
                                  env=os.environ | env)
        except subprocess.TimeoutExpired:
            return "hangs", b"", b""
        return done.returncode, done.stdout, done.stderr

    def reports(self, pattern, wanted):
        """All that are written by processes that may live a little longer than the first."""
        end = time.monotonic() + LIMIT
        while True:
            texts = []
            for name in glob.glob(pattern):
                with open(name, "rb") as f:
                    texts.append(f.read())
            if (len(texts) >= wanted and all(texts)) or time.monotonic() > end:
                return texts
            time.sleep(0.05)

    def way(self, form, tool, program, rewritten, way):
        name = f"{form} {tool} {way}"
        if not driver.chosen(name, self.options):
            return
        result = f"{self.scratch}/{form}.{tool}.{way}.result"
        status, text, _ = self.run([program, way])
        status2, text2, err = self.run([rewritten, way], INLAY_OUT=result)
        good = (status, text) == (status2, text2)
        self.count(name, good, f"native {status} {text[:200]!r}, rewritten {status2} {text2[:200]!r} {err[-300:]!r}")
        if not WAYS[way]:
            return self.count(f"{name}: says why", b"cannot write the output" in err, repr(err)[-300:])
        files = 1 if way in TOGETHER else WAYS[way]
        texts = self.reports(result + "*", files)
        self.count(f"{name}: reports", len(texts) == files and all(texts),
                   f"{len(texts)} instead of {files}: {[t[:60] for t in texts]}")
        if tool == "inscount":
            each = sorted(t.count(b"instructions") for t in texts) == [WAYS[way] // files] * files
            self.count(f"{name}: one report a process", each, repr(texts)[:300])

    def exact(self, program):
        """All that eight threads, three times, do in one procedure."""
        out = self.rewrite("inscount", program, "--proc", "work")
        if not out:
            return
        counts = []
        for argv in ([f"{self.options.build}/inlay", "run", "inscount", "--proc", "work",
                      "-o", f"{self.scratch}/jit", "--", program, "threads"], [out, "threads"]):
            self.run(argv, INLAY_OUT=f"{self.scratch}/rewritten")
        for name in ("jit", "rewritten"):
            with open(f"{self.scratch}/{name}") as f:
                counts.append(re.search(r"(\d+) instructions", f.read())[1])
        self.count("threads: exact", counts[0] == counts[1] != "0", f"JIT {counts[0]}, rewritten {counts[1]}")

    def all(self):
        for form in driver.FORMS:
            program = self.build(form)
            for tool, forms in TOOLS.items():
                if not program or form not in forms:
                    continue
                rewritten = self.rewrite(tool, program)
                for way in WAYS:
                    if rewritten and (form == "dynamic" or way not in GLIBC_DYNAMIC):
                        self.way(form, tool, program, rewritten, way)
            if program and form == "dynamic":
                rewritten = self.rewrite_with_libraries(program)
                for way in WAYS:
                    if rewritten:
                        self.way("with-libs", "inscount", program, rewritten, way)
                self.exact(program)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("ends", options) as results:
        Test(results).all()
    return results.status


if __name__ == "__main__":
    sys.exit(main())
