#!/usr/bin/python3
"""--stats: the engine's numbers, held to what tools count and to what programs are known to do.

  tests/cli/stats.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
KINDS = {"returns": ("return",), "indirect calls": ("indirect call",), "indirect jumps": ("indirect jump",)}


class Stats:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.samples = f"{build}/inlay", folder, f"{build}/tests/samples"

    def run(self, tool, *words, program="plain_static", arguments=("1",)):
        """A table for each process that was told of."""
        done = driver.run([self.inlay, "run", tool, "--stats", *words, "--", f"{self.samples}/{program}", *arguments],
                          LIMIT, cwd=self.folder, env=driver.ENVIRONMENT)
        if done.status != 0:
            raise Failed(f"status {done.status}", done.stderr.decode()[-500:])
        tables = re.split(r"^.*: stats of .*$", done.stderr.decode(), flags=re.M)[1:]
        return [{m[1]: int(m[2]) for m in re.finditer(r"^  (\S.*?) +(\d+)$", t, re.M)} for t in tables]

    def one(self, *words, **how):
        tables = self.run(*words, **how)
        if len(tables) != 1:
            raise Failed(f"{len(tables)} tables")
        return tables[0]

    def expect(self, table, good, *names):
        if not good:
            raise Failed(*(f"{n}: {table[n]}" for n in names))

    def branches_by_kind(self):
        """As many as the tool counts."""
        out = f"{self.folder}/branches"
        t = self.one("branches", "--format=json", "-o", out)
        with open(out, encoding="utf-8") as f:
            rows = json.load(f)["branches"]
        seen = {}
        for b in rows:
            seen[b["kind"]] = seen.get(b["kind"], 0) + b["executed"]
        for name, kinds in KINDS.items():
            self.expect(t, t[name] == sum(seen.get(k, 0) for k in kinds), name)
        self.expect(t, t["returns"] > 100, "returns")

    def without_cost(self):
        """What is translated is as large as it is without, but for indirect branches."""
        t = self.one("null")
        self.expect(t, t["superblocks"] and t["instructions"] >= t["blocks"] >= t["superblocks"], "superblocks", "blocks")
        self.expect(t, 0 < t["cycles of them for translation"] <= t["cycles in the dispatcher"] <= t["cycles since the start"],
                    "cycles in the dispatcher")
        self.expect(t, not t["flushes"] and not t["superblocks dropped"], "flushes", "superblocks dropped")

    def links_and_exits(self):
        linked, not_linked = self.one("null"), self.one("null", "--stress=no-link")
        self.expect(linked, linked["links"] > 100, "links")
        self.expect(not_linked, not_linked["links"] == 0, "links")
        self.expect(not_linked, not_linked["dispatched: direct exits"] > 10 * linked["dispatched: direct exits"],
                    "dispatched: direct exits")

    def flushes(self):
        t = self.one("null", "--stress=flush")
        self.expect(t, t["flushes"] > 10, "flushes")

    def changed_code(self):
        t = self.one("null", program="selfmod", arguments=())
        self.expect(t, t["writes to translated pages"] > 0 and t["superblocks dropped"] > 0, "writes to translated pages",
                    "superblocks dropped")

    def checked_code(self):
        t = self.one("null", "--stress=check", program="selfmod", arguments=())
        self.expect(t, t["superblocks that are checked"] > 0 and t["dispatched: stale code"] > 0,
                    "superblocks that are checked", "dispatched: stale code")

    def threads(self):
        """A new thread's own table knows nothing yet; what the ended ones have counted is not lost."""
        t = self.one("null", program="threads", arguments=())
        self.expect(t, t["returns, found late"] > 0, "returns, found late")

    def signals(self):
        t = self.one("null", program="signals", arguments=())
        self.expect(t, t["signals that were sent"] > 0 and t["faults"] > 0, "signals that were sent", "faults")

    def children(self):
        """Each tells of itself: a forked child translates what it has not inherited."""
        tables = self.run("null", program="children", arguments=())
        if len(tables) < 2 or tables[0]["superblocks"] == tables[-1]["superblocks"]:
            raise Failed(f"{len(tables)} tables")

    def only_for_translation(self):
        done = driver.run([self.inlay, "rewrite", "null", "--stats", "/bin/true", "-o", "x"], LIMIT, cwd=self.folder,
                          env=driver.ENVIRONMENT)
        if done.status != 2 or b"inlay run" not in done.stderr:
            raise Failed("rewriting", done.stderr.decode())


TESTS = ("branches_by_kind", "without_cost", "links_and_exits", "flushes", "changed_code", "checked_code", "threads",
         "signals", "children", "only_for_translation")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("stats", options) as results:
        tests = Stats(options.build, results.folder)
        for name in TESTS:
            results.check(name, getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
