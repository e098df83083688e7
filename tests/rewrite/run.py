#!/usr/bin/python3
"""The rewriting test: each program of programs.table is rewritten by tools, and must leave the same
output and status as the original.

  tests/rewrite/run.py [--build DIR] [--tools null,bbcount] [--live] [--in-turns] [--jobs 2] [--only PATTERN] [--keep]

--live: the program is not rewritten, but run by the live engine, with all its libraries.
--in-turns: a program of the distribution is spared one of the tools, the next program the next one; samples get all.

Prints a line for each failure with the difference, and at the end N passed, N failed.
"""

import json
import os
import re
import shlex
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../system"]
import driver  # noqa: E402
import inputs  # noqa: E402
from driver import Failed  # noqa: E402

# What each tool is asked to do; it must leave a result where one is named.
TOOLS = {"null": ([], False), "inscount": (["--format=json"], True), "bbcount": (["--format=json"], True),
         "prof": ([], True), "branches": ([], True), "calls": ([], True), "opcodemix": ([], True),
         "memtrace": (["--hash"], True)}
FLAGS, VALUES = ("noerr", "noout", "libs", "silent"), ("timeout", "mask", "stdin", "need", "file", "tools")


class Place:
    def __init__(self, build, root):
        self.build, self.root = os.path.abspath(build), root
        self.samples, self.inputs = f"{self.build}/tests/samples", f"{root}/in"
        self.environment = driver.ENVIRONMENT | {"HOME": root}
        inputs.make(self.inputs, os.path.dirname(HERE))


class Case:
    def __init__(self, row, place):
        self.row, self.place = row, place
        self.argv = shlex.split(driver.fill(row.text, place))
        self.file = driver.fill(row.values.get("file", ""), place) or shutil.which(self.argv[0], path=driver.PATH)
        self.folder = f"{place.root}/{row.name}"

    def missing(self):
        need = self.row.values.get("need")
        if need and not shutil.which(driver.fill(need, self.place), path=driver.PATH):
            return f"needs {need}"
        if not self.file or not os.path.exists(self.file):
            return f"there is no {self.argv[0]}"
        with open(self.file, "rb") as f:
            return None if f.read(4) == b"\x7fELF" else f"{self.file} is no ELF program"

    def execute(self, program, result=None):
        """Always in a folder of the same name, which the output may show."""
        stdin = driver.fill(self.row.values.get("stdin", os.devnull), self.place)
        environment = self.place.environment | ({"INLAY_OUT": result} if result else {})
        argv0 = self.file if self.row.values.get("file") else self.argv[0]
        return driver.run([argv0, *self.argv[1:]], float(self.row.values.get("timeout", 60)), executable=program,
                          cwd=driver.fresh(f"{self.folder}/work"), env=environment, stdin=stdin)

    def rewrite(self, tool):
        where = driver.fresh(f"{self.folder}/{tool}")
        out = f"{where}/{os.path.basename(self.file)}"
        output = ["--with-libs", where, "-o", os.path.basename(out)] if "libs" in self.row.flags else ["-o", out]
        driver.rewrite(f"{self.place.build}/inlay", [tool, *TOOLS[tool][0], os.path.realpath(self.file), *output],
                       env=self.place.environment)
        return out

    def execute_live(self, tool, result):
        driver.fresh(f"{self.folder}/{tool}")
        stdin = driver.fill(self.row.values.get("stdin", os.devnull), self.place)
        first = self.file if self.row.values.get("file") else self.argv[0]
        argv = [f"{self.place.build}/inlay", "run", "--engine=live", tool, *TOOLS[tool][0], "-o", result or "/dev/null",
                "--", first, *self.argv[1:]]
        done = driver.run(argv, 2 * float(self.row.values.get("timeout", 60)), cwd=driver.fresh(f"{self.folder}/work"),
                          env=self.place.environment, stdin=stdin)
        told = re.compile(rb"^\w+: [^\n]*: not instrumented, however often it runs:[^\n]*\n", re.M)  # before it begins
        return done._replace(stderr=told.sub(b"", done.stderr))

    def check(self, tool, live=False):
        native = self.execute(self.file)
        out = None if live else self.rewrite(tool)
        wants = TOOLS[tool][1] and "silent" not in self.row.flags
        result = f"{self.folder}/{tool}/result" if wants else None
        here = self.execute_live(tool, result) if live else self.execute(out, result)
        told = driver.differences(native, here, self.row.flags, self.row.values.get("mask"))
        if told:
            raise Failed(*told)
        if not wants:
            return
        if not os.path.exists(result) or not os.path.getsize(result):
            raise Failed("the tool wrote no result")
        if tool in ("bbcount", "inscount"):
            with open(result) as f:
                if not json.load(f)["blocks" if tool == "bbcount" else "instructions"]:
                    raise Failed("nothing was counted")

    def run(self, tools, live=False):
        """For Results.check_rows."""
        why = self.missing()
        if why:
            return why, []
        results = []
        for tool in tools:
            results.append((f"{self.row.name} {tool}{' live' if live else ''}", driver.problem(self.check, tool, live)))
            shutil.rmtree(f"{self.folder}/{tool}", ignore_errors=True)
        return None, results


def main():
    parser = driver.parser(__doc__, tools="null,bbcount", jobs=True)
    parser.add_argument("--live", action="store_true")
    driver.add_turns(parser)
    options = parser.parse_args()
    rows = [r for r in driver.read_table(f"{HERE}/programs.table", FLAGS, VALUES) if driver.chosen(r.name, options)]
    with driver.Results("rewrite", options) as results:
        place = Place(options.build, results.folder)
        tools = driver.tools_of(rows, options)
        results.check_rows(rows, lambda row: Case(row, place).run(tools[row.name], options.live))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
