#!/usr/bin/python3
"""Programs of many kinds: compilers, languages, linkers and their options. Each is built here, and must do rewritten, and
with the tool put in at its start (`--engine=live`), what it does natively. Where that is the same every time, each procedure
that has moved must have executed what it does under the JIT.

  tests/rewrite/kinds.py [--build DIR] [--all] [--engines rewrite,live] [--jobs 2] [--only PATTERN] [--keep]

kinds.table has the programs, kinds/ their sources. Without --all only those that are marked `short`.
"""

import json
import os
import re
import shlex
import shutil
import sys
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import compare  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT, BUILD_LIMIT, LIVE_LIMIT = 60, 300, 180
FLAGS, VALUES = ("short", "uncounted", "unmoved", "whole", "noerr"), ("need", "args", "refused", "engines", "mask", "own", "moves")
COUNTING = threading.Lock()  # compare.py has one environment


class Kind:
    def __init__(self, row, options, root):
        self.row, self.build = row, options.build
        self.inlay, self.folder = f"{options.build}/inlay", f"{root}/{row.name}"
        self.arguments = shlex.split(row.values.get("args", ""))
        self.engines = row.values.get("engines", options.engines).split(",")
        self.environment = driver.ENVIRONMENT | {"HOME": os.environ.get("HOME", root), "PATH": os.environ["PATH"]}
        self.environment |= {k: os.environ[k] for k in ("RUSTUP_HOME", "CARGO_HOME") if k in os.environ}

    def missing(self):
        for name in filter(None, self.row.values.get("need", "").split(",")):
            if not (os.path.exists(name) if "/" in name else shutil.which(name)):
                return f"needs {name}"
        return None

    def make(self):
        driver.fresh(self.folder)
        text = self.row.text.replace("{src}", f"{HERE}/kinds")
        done = driver.run(["sh", "-ec", text], BUILD_LIMIT, cwd=self.folder, env=self.environment)
        if done.status:
            raise Failed(f"it is not built: {done.status}", *driver.as_lines(done.stderr)[-8:])
        os.rename(f"{self.folder}/program", f"{self.folder}/kept")

    def put(self, name):
        """The program always has the same name, and so the same first argument."""
        if os.path.exists(f"{self.folder}/program"):
            os.unlink(f"{self.folder}/program")
        shutil.copy(f"{self.folder}/{name}", f"{self.folder}/program")

    def execute(self, words, limit, result=None):
        environment = self.environment | ({"INLAY_OUT": result} if result else {})
        return driver.run([*words, "./program", *self.arguments], limit, cwd=self.folder, env=environment)

    def rewritten(self, result):
        words = [self.inlay, "rewrite", "inscount", "--format=json", "kept", "-o", "made"]
        done = driver.run(words, BUILD_LIMIT, cwd=self.folder, env=self.environment)
        reason = self.row.values.get("refused")
        if reason:
            if not done.status or reason not in done.stderr.decode():
                raise Failed(f"not refused for '{reason}': {done.status}", *driver.as_lines(done.stderr)[-4:])
            return None
        if done.status:
            raise Failed(f"not rewritten: {done.status}", *driver.as_lines(done.stderr)[-4:])
        self.put("made")
        return self.execute([], LIMIT, result)

    def live(self, result):
        self.put("kept")
        done = self.execute([self.inlay, "run", "--engine=live", "inscount", "--format=json", "--no-follow", "-o", result,
                             "--"], LIVE_LIMIT)
        told = re.compile(rb"^\w+: [^\n]*: not instrumented, however often it runs:[^\n]*\n", re.M)  # before it begins
        return done._replace(stderr=told.sub(b"", done.stderr))

    def same(self, engine):
        result = f"{self.folder}/result"
        self.put("kept")
        native = self.execute([], LIMIT)
        if isinstance(native.status, str):
            raise Failed(f"natively {native.status}", *driver.as_lines(native.stderr)[-4:])
        here = self.live(result) if engine == "live" else self.rewritten(result)
        if here is None:
            return
        told = driver.differences(native, here, self.row.flags, self.row.values.get("mask"))
        if told:
            raise Failed(*told)
        with open(result) as f:
            if not json.load(f)["instructions"] and ("unmoved" not in self.row.flags or engine == "live"):
                raise Failed("nothing was counted")
        os.unlink(result)

    def counts(self, engine):
        place = driver.fresh(f"{self.folder}/counts-{engine}")
        shutil.copy(f"{self.folder}/kept", f"{driver.fresh(f'{self.folder}/named')}/program")
        with COUNTING:
            c = compare.Comparison(self.build, place, "program", [f"{self.folder}/named/program", *self.arguments], engine)
            own = filter(None, self.row.values.get("own", "").split(","))
            c.filters += [word for name in own for word in ("--proc", name)]
            compare.check_prof(c)
        moves = set(self.row.values.get("moves", "").split(","))
        if "whole" in self.row.flags or "moves" in self.row.values:
            with open(c.report) as f:
                procedures = json.load(f)["images"][0]["list"]
            left = [f"{p['name']}: {p['reason']}" for p in procedures
                    if p["status"] != "moved" and ("whole" in self.row.flags or p["name"] in moves)]
            if left:
                raise Failed(f"{len(left)} procedures have not moved", *left[:8])

    def run(self):
        """For Results.check_rows."""
        why = self.missing()
        if why:
            return why, []
        wrong = driver.problem(self.make)
        if wrong:
            return None, [(self.row.name, wrong)]
        results = []
        for engine in self.engines:
            results.append((f"{self.row.name} {engine}", driver.problem(self.same, engine)))
            if not self.row.flags & {"uncounted", "unmoved"} and "refused" not in self.row.values:
                results.append((f"{self.row.name} {engine} counts", driver.problem(self.counts, engine)))
        return None, results


def main():
    parser = driver.parser(__doc__, jobs=True)
    parser.add_argument("--engines", default="rewrite,live")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    rows = [r for r in driver.read_table(f"{HERE}/kinds.table", FLAGS, VALUES)
            if driver.chosen(r.name, options) and (options.all or "short" in r.flags)]
    with driver.Results("kinds", options) as results:
        results.check_rows(rows, lambda row: Kind(row, options, results.folder).run())
    return results.status


if __name__ == "__main__":
    sys.exit(main())
