#!/usr/bin/python3
"""Real work by rewritten programs: each script of work.table must do the same with them as with the originals.

  tests/rewrite/work.py [--build DIR] [--tools null,bbcount] [--jobs 2] [--only PATTERN] [--keep]

Output, status and the files left behind are compared; a counting tool must have reported. Prints a line for
each failure with the difference, and at the end N passed, N failed.
"""

import glob
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../system"]
import driver  # noqa: E402
import inputs  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
TOOLS = {"null": [], "bbcount": ["--format=json"], "inscount": ["--format=json"]}


class Row:
    def __init__(self, head, where):
        self.name, programs, options = (s.strip() for s in head.split("|", 2))
        self.programs, self.script = programs.split(), ""
        self.flags, values = driver.flags_and_values(options, ("noerr", "noout", "nofiles"), ("mask",), where)
        self.mask = values.get("mask")


def read_table(path):
    rows = []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            if line[:1] in (" ", "\t"):
                rows[-1].script += line[4:]
            elif line.strip() and not line.startswith("#"):
                rows.append(Row(line, f"{path}:{number}"))
    return driver.distinct(rows, path)


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
            word = driver.fill(word, place)
            found = word if "/" in word and os.path.exists(word) else shutil.which(word, path=driver.PATH)
            self.files[os.path.basename(word)] = found and os.path.realpath(found)

    def missing(self):
        absent = [name for name, path in self.files.items() if not path]
        return f"there is no {' '.join(absent)}" if absent else None

    def place_originals(self):
        driver.fresh(self.bin)
        for name, path in self.files.items():
            shutil.copy(path, f"{self.bin}/{name}")

    def place_rewritten(self, tool):
        driver.fresh(self.bin)
        for name, path in self.files.items():
            driver.rewrite(self.place.inlay, [tool, *TOOLS[tool], path, "-o", f"{self.bin}/{name}"], LIMIT)

    def execute(self, result=None):
        """(outcome, the files left)."""
        environment = self.place.environment | {"PATH": f"{self.bin}:{driver.PATH}", "BIN": self.bin,
                                                "HOME": self.work} | ({"INLAY_OUT": result} if result else {})
        done = driver.run(["sh", "-c", driver.fill(self.row.script, self.place)], LIMIT, cwd=driver.fresh(self.work),
                          env=environment)
        return done, contents(self.work)

    def compare(self, native, here):
        told = driver.differences(native[0], here[0], self.row.flags, self.row.mask)
        if "nofiles" not in self.row.flags:
            names = sorted(n for n in native[1].keys() | here[1].keys() if native[1].get(n) != here[1].get(n))
            told += [f"file {n} differs" for n in names[:6]]
        if told:
            raise Failed(*told)

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
            raise Failed("nothing was counted")


class Place:
    def __init__(self, build, root):
        self.inlay, self.samples = f"{os.path.abspath(build)}/inlay", f"{os.path.abspath(build)}/tests/samples"
        self.root, self.inputs = root, f"{root}/in"
        self.environment = driver.ENVIRONMENT | {
            "GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0000", "GIT_PAGER": "cat",
            "GIT_CONFIG_NOSYSTEM": "1"}
        inputs.make(self.inputs, os.path.dirname(HERE))


def run_row(row, place, tools):
    """For Results.check_rows."""
    case = Case(row, place)
    if case.missing():
        return case.missing(), []
    case.place_originals()
    native = case.execute()
    return None, [(f"{row.name} {tool}", driver.problem(case.check, tool, native)) for tool in tools]


def main():
    options = driver.parser(__doc__, tools="null,bbcount", jobs=True).parse_args()
    tools = [] if options.tools == "none" else options.tools.split(",")
    rows = [r for r in read_table(f"{HERE}/work.table") if driver.chosen(r.name, options)]
    with driver.Results("work", options) as results:
        place = Place(options.build, results.folder)
        results.check_rows(rows, lambda row: run_row(row, place, tools))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
