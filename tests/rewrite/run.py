#!/usr/bin/python3
"""The rewriting test: each program of programs.table is rewritten by tools, and must leave the same
output and status as the original.

  tests/rewrite/run.py [--build DIR] [--tools null,bbcount] [--jobs 2] [--only PATTERN] [--keep]

Prints a line for each failure with the difference, and at the end N passed, N failed.
"""

import argparse
import concurrent.futures
import difflib
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../system")
import inputs

REWRITE_LIMIT = 300
# What each tool is asked to do; it must leave a result where one is named.
TOOLS = {"null": ([], False), "inscount": (["--format=json"], True), "bbcount": (["--format=json"], True),
         "prof": ([], True), "branches": ([], True), "calls": ([], True), "opcodemix": ([], True),
         "memtrace": (["--hash"], True)}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"


class Row:
    def __init__(self, line, where):
        try:
            self.name, options, self.text = (s.strip() for s in re.split(r"\s+\|(?=\s|$)", line, maxsplit=2))
            words = shlex.split(options)
        except ValueError:
            sys.exit(f"{where}: not 'name | options | program arguments'")
        self.flags = {w for w in words if "=" not in w}
        self.values = dict(w.split("=", 1) for w in words if "=" in w)
        unknown = (self.flags - {"noerr", "noout", "libs"}) | (
            self.values.keys() - {"timeout", "mask", "stdin", "need", "file"})
        if unknown:
            sys.exit(f"{where}: unknown option {unknown}")


class Place:
    def __init__(self, build, root):
        self.build, self.root = os.path.abspath(build), root
        self.samples, self.inputs = f"{self.build}/tests/samples", f"{root}/in"
        self.environment = {"PATH": PATH, "HOME": root, "LC_ALL": "C", "TZ": "UTC", "TERM": "dumb",
                            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"}
        inputs.make(self.inputs, os.path.dirname(HERE))

    def fill(self, text):
        return text.replace("{samples}", self.samples).replace("{in}", self.inputs)


def read_table(path):
    with open(path) as f:
        return [Row(line.rstrip("\n"), f"{path}:{n}") for n, line in enumerate(f, 1)
                if line.strip() and not line.startswith("#")]


class Difference(Exception):
    pass


class Case:
    def __init__(self, row, place):
        self.row, self.place = row, place
        self.argv = shlex.split(place.fill(row.text))
        self.file = row.values.get("file") or shutil.which(self.argv[0], path=PATH)
        self.folder = f"{place.root}/{row.name}"

    def missing(self):
        need = self.row.values.get("need")
        if need and not shutil.which(self.place.fill(need), path=PATH):
            return f"needs {need}"
        if not self.file or not os.path.exists(self.file):
            return f"there is no {self.argv[0]}"
        with open(self.file, "rb") as f:
            return None if f.read(4) == b"\x7fELF" else f"{self.file} is no ELF program"

    def execute(self, program, what, result=None):
        """Always in a folder of the same name, which the output may show."""
        work = f"{self.folder}/work"
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        stdin = self.row.values.get("stdin")
        environment = self.place.environment | ({"INLAY_OUT": result} if result else {})
        argv0 = self.file if self.row.values.get("file") else self.argv[0]
        with open(self.place.fill(stdin) if stdin else os.devnull, "rb") as source:
            try:
                return subprocess.run([argv0, *self.argv[1:]], executable=program, stdin=source,
                                      capture_output=True, cwd=work, env=environment,
                                      timeout=float(self.row.values.get("timeout", 60)))
            except subprocess.TimeoutExpired:
                raise Difference(f"{what}: still running")

    def rewrite(self, tool):
        where = f"{self.folder}/{tool}"
        os.makedirs(where)
        out = f"{where}/{os.path.basename(self.file)}"
        output = ["--with-libs", where] if "libs" in self.row.flags else ["-o", out]
        argv = [f"{self.place.build}/inlay", "rewrite", tool, *TOOLS[tool][0], os.path.realpath(self.file), *output]
        if "libs" in self.row.flags:
            argv += ["-o", os.path.basename(out)]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=REWRITE_LIMIT,
                                  env=self.place.environment)
        except subprocess.TimeoutExpired:
            raise Difference("rewriting takes too long")
        if done.returncode:
            raise Difference(f"rewriting: status {done.returncode}, {done.stderr.decode()[-400:].strip()}")
        return out

    def lines(self, data):
        mask = self.row.values.get("mask")
        text = data.decode(errors="backslashreplace")
        return (re.sub(mask, "*", text) if mask else text).splitlines()

    def compare(self, native, other):
        if native.returncode != other.returncode:
            raise Difference(f"status {other.returncode} instead of {native.returncode}; "
                             f"{other.stderr.decode(errors='replace')[-300:].strip()}")
        for name, flag in (("stdout", "noout"), ("stderr", "noerr")):
            a, b = self.lines(getattr(native, name)), self.lines(getattr(other, name))
            if a != b and flag not in self.row.flags:
                text = list(difflib.unified_diff(a, b, "native", "rewritten", lineterm="", n=0))[:8]
                raise Difference(f"{name} differs", *text)

    def check(self, tool):
        native = self.execute(self.file, "native")
        out = self.rewrite(tool)
        wants = TOOLS[tool][1]
        result = f"{self.folder}/{tool}/result" if wants else None
        self.compare(native, self.execute(out, "rewritten", result))
        if not wants:
            return
        if not os.path.exists(result) or not os.path.getsize(result):
            raise Difference("the tool wrote no result")
        if tool in ("bbcount", "inscount"):
            with open(result) as f:
                if not json.load(f)["blocks" if tool == "bbcount" else "instructions"]:
                    raise Difference("nothing was counted")


def run_case(case, tool):
    try:
        case.check(tool)
        return None
    except Difference as d:
        return d.args
    except (OSError, ValueError, KeyError) as e:
        return (repr(e),)
    finally:
        shutil.rmtree(f"{case.folder}/{tool}", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--tools", default="null,bbcount")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="inlay-rewrite-")
    place = Place(arguments.build, root)
    passed = failed = 0

    def one(row):
        case = Case(row, place)
        why = case.missing()
        if why:
            return row, why, []
        return row, None, [(tool, run_case(case, tool)) for tool in arguments.tools.split(",")]

    rows = [r for r in read_table(f"{HERE}/programs.table")
            if any(fnmatch.fnmatch(r.name, p) for p in arguments.only.split(","))]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for row, why, results in pool.map(one, rows):
            if why:
                print(f"SKIP rewrite {row.name}: {why}", flush=True)
            for tool, wrong in results:
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"FAIL rewrite {row.name} {tool}: {wrong[0]}", *wrong[1:], sep="\n     ", flush=True)
    if arguments.keep:
        print(f"kept {root}")
    else:
        shutil.rmtree(root)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
