#!/usr/bin/python3
"""Real work by rewritten programs: each script of work.table must do the same with them as with the originals.

  tests/rewrite/work.py [--build DIR] [--tools null,bbcount] [--jobs 2] [--only PATTERN] [--keep]

Output, status and the files left behind are compared; a counting tool must have reported. Prints a line for
each failure with the difference, and at the end N passed, N failed.
"""

import argparse
import concurrent.futures
import difflib
import fnmatch
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../system")
import inputs  # noqa: E402

LIMIT = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"
TOOLS = {"null": [], "bbcount": ["--format=json"], "inscount": ["--format=json"]}


class Difference(Exception):
    pass


class Row:
    def __init__(self, head):
        self.name, programs, options = (s.strip() for s in head.split("|", 2))
        self.programs, self.script = programs.split(), ""
        words = shlex.split(options)
        self.flags = {w for w in words if "=" not in w}
        self.mask = dict(w.split("=", 1) for w in words if "=" in w).get("mask")


def read_table(path):
    rows = []
    with open(path) as f:
        for line in f:
            if line[:1] in (" ", "\t"):
                rows[-1].script += line[4:]
            elif line.strip() and not line.startswith("#"):
                rows.append(Row(line))
    return rows


def contents(folder):
    """Relative path -> content, of what a script leaves; git's index has times in it."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if os.path.isfile(path) and not os.path.islink(path) and not path.endswith("/.git/index"):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
    return found


class Case:
    """The programs stand in a folder of the same name in all runs, originals or rewritten."""

    def __init__(self, row, place):
        self.row, self.place = row, place
        self.folder = f"{place.root}/{row.name}"
        self.bin, self.work = f"{self.folder}/bin", f"{self.folder}/work"
        self.files = {}
        for word in row.programs:
            word = place.fill(word)
            found = word if "/" in word and os.path.exists(word) else shutil.which(word, path=PATH)
            self.files[os.path.basename(word)] = found and os.path.realpath(found)

    def missing(self):
        absent = [name for name, path in self.files.items() if not path]
        return f"there is no {' '.join(absent)}" if absent else None

    def place_originals(self):
        shutil.rmtree(self.bin, ignore_errors=True)
        os.makedirs(self.bin)
        for name, path in self.files.items():
            shutil.copy(path, f"{self.bin}/{name}")

    def place_rewritten(self, tool):
        shutil.rmtree(self.bin, ignore_errors=True)
        os.makedirs(self.bin)
        for name, path in self.files.items():
            done = subprocess.run([self.place.inlay, "rewrite", tool, *TOOLS[tool], path, "-o", f"{self.bin}/{name}"],
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
            if done.returncode:
                raise Difference(f"rewriting {name}: {done.stderr.decode(errors='replace')[-300:].strip()}")

    def execute(self, result=None):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        environment = self.place.environment | {"PATH": f"{self.bin}:{PATH}", "BIN": self.bin, "HOME": self.work}
        if result:
            environment["INLAY_OUT"] = result
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(["sh", "-c", self.place.fill(self.row.script)], cwd=self.work, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            try:
                status = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                status = f"none: still running after {LIMIT} s"
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            out.seek(0)
            err.seek(0)
            return status, self.lines(out.read()), self.lines(err.read()), contents(self.work)

    def lines(self, data):
        text = data.decode(errors="backslashreplace")
        return (re.sub(self.row.mask, "*", text) if self.row.mask else text).splitlines()

    def compare(self, native, here):
        told = [] if native[0] == here[0] else [f"status {here[0]} instead of {native[0]}"]
        for name, flag, a, b in (("stdout", "noout", native[1], here[1]), ("stderr", "noerr", native[2], here[2])):
            if a != b and flag not in self.row.flags:
                told += list(difflib.unified_diff(a, b, f"native {name}", f"rewritten {name}", "", "", 0, ""))[:12]
        if "nofiles" not in self.row.flags:
            names = sorted(n for n in native[3].keys() | here[3].keys() if native[3].get(n) != here[3].get(n))
            told += [f"file {n} differs" for n in names[:6]]
        if told:
            raise Difference(*(t[:200] for t in told), *(f"stderr: {t[:200]}" for t in here[2][-4:]))

    def check(self, tool, native):
        self.place_rewritten(tool)
        result = f"{self.folder}/{tool}-result" if tool != "null" else None
        self.compare(native, self.execute(result))
        if not result:
            return
        total = 0
        for path in glob.glob(f"{result}*"):
            with open(path) as f:
                total += sum(int(n) for n in re.findall(r'"(?:blocks|instructions)": *(\d+)', f.read()))
        if not total:
            raise Difference("nothing was counted")


class Place:
    def __init__(self, build, root):
        self.inlay, self.samples = f"{os.path.abspath(build)}/inlay", f"{os.path.abspath(build)}/tests/samples"
        self.root, self.inputs = root, f"{root}/in"
        self.environment = {"LC_ALL": "C", "TZ": "UTC", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1",
                            "PYTHONHASHSEED": "1", "GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_PAGER": "cat",
                            "GIT_COMMITTER_DATE": "1000000000 +0000", "GIT_CONFIG_NOSYSTEM": "1"}
        inputs.make(self.inputs, os.path.dirname(HERE))

    def fill(self, text):
        return text.replace("{samples}", self.samples).replace("{in}", self.inputs)


def run_row(row, place, tools):
    """(why it was skipped, [(tool, what is wrong)])."""
    case = Case(row, place)
    if case.missing():
        return case.missing(), []
    case.place_originals()
    native, results = case.execute(), []
    for tool in tools:
        try:
            case.check(tool, native)
            results.append((tool, None))
        except Difference as d:
            results.append((tool, d.args))
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            results.append((tool, (repr(e),)))
    return None, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--tools", default="null,bbcount")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="inlay-work-")
    place = Place(arguments.build, root)
    tools = [] if arguments.tools == "none" else arguments.tools.split(",")
    rows = [r for r in read_table(f"{HERE}/work.table")
            if any(fnmatch.fnmatch(r.name, p) for p in arguments.only.split(","))]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for row, (skipped, results) in zip(rows, pool.map(lambda r: run_row(r, place, tools), rows)):
            if skipped:
                print(f"SKIP work {row.name}: {skipped}", flush=True)
            for tool, wrong in results:
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print(f"FAIL work {row.name} {tool}: {wrong[0]}", *wrong[1:], sep="\n     ", flush=True)
    if arguments.keep:
        print(f"kept {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
