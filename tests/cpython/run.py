#!/usr/bin/python3
"""CPython's own test suite: what passes natively passes under a tool.

  tests/cpython/run.py [--build DIR] [--tools null,inscount] [--only PATTERN] [--tenth] [--jobs 2] [--keep]

Each of its files of tests is run natively and under each tool, as the suite's own driver runs it, and its results are
compared test by test. What fails natively is left out. What fails here alone is run once more on both sides, since some
of the tests go by the clock; it counts when it fails again, and passes natively again. A file that hangs has failed,
even natively, where nothing can be compared then; each process may have 8 GiB of addresses. Files are named as `python3
-m test --list-tests` names them. Distributions have the suite in a package of its own (Debian: libpython3.11-testsuite or the like);
without it all is skipped, aloud. --tenth takes every tenth file, always the same. Prints N passed, N failed at the end.
"""

import collections
import os
import re
import resource
import signal
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

PYTHON = "/usr/bin/python3"
Row = collections.namedtuple("Row", "name")
LIMIT, FACTOR = 900, 4  # seconds natively, and how much longer it may take here
MEMORY = 8 << 30  # addresses that each of a file's processes may have
# Tests that look at what is not the program's own doing: the time that something takes, or who traces whom.
LEFT_OUT = {
    "test_gdb": "gdb's view is tested by itself",
    "test_regrtest": "the driver itself, which runs everything once more",
}
LONG = ("test_subprocess", "test_socket", "test_logging", "test_multiprocessing", "test_asyncio", "test_concurrent_futures")
# Some of their tests: in a virtual machine they wait for one that its host does not have.
LEFT_OUT_TESTS = ("ThreadedVSOCKSocketStreamTest",)


def suite():
    done = driver.run([PYTHON, "-m", "test", "--list-tests"], LIMIT)
    return [] if done.status else [n for n in done.stdout.decode().split() if n.split(".")[-1] not in LEFT_OUT]


def a_tenth(names):
    """Of them: not the slowest, and of every kind."""
    return names[2::10]


def longest_first(names):
    """So that none of those that wait for a minute is begun last, while nothing else is left to do."""
    return sorted(names, key=lambda name: not name.startswith(LONG))


def limited():
    """In the child: with an ignored ^C, as in a shell's background, some of asyncio's tests wait for one for ever, and
    take memory meanwhile."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def said(done):
    return [line for line in driver.as_lines(done.stdout + done.stderr) if not re.match(r"\d+:\d\d:\d\d ", line)]


class File:
    """One file of tests."""

    def __init__(self, options, folder, name):
        self.inlay, self.name = f"{options.build}/inlay", name
        self.folder = driver.fresh(f"{folder}/{name}")
        self.native = None  # results, once it has run

    def results(self, before, names=()):
        """{test: whether it passed} of one run behind the words `before`; only these tests, if any are given."""
        out = f"{self.folder}/results.xml"
        if os.path.exists(out):
            os.remove(out)
        only = [word for n in names for word in ("-m", n)] + [word for n in LEFT_OUT_TESTS for word in ("-i", n)]
        done = driver.run([*before, PYTHON, "-m", "test", "--junit-xml", out, *only, self.name],
                          LIMIT * (FACTOR if before else 1), cwd=self.folder,
                          env=driver.ENVIRONMENT | {"HOME": self.folder}, before=limited)
        if isinstance(done.status, str):
            raise Failed(f"{self.name} hangs {' '.join(before[1:3]) or 'natively'} ({done.status})", *said(done)[-6:])
        if not os.path.exists(out):
            return {}, done
        cases = ElementTree.parse(out).getroot().iter("testcase")
        return {c.get("name"): c.find("failure") is None and c.find("error") is None for c in cases}, done

    def lost(self, native, tool, names=()):
        here, done = self.results([self.inlay, "run", tool, "-o", "/dev/null", "--"] if tool != "null" else
                                  [self.inlay, "run", tool, "--"], names)
        if native and not here:
            return sorted(native), done
        return sorted(n for n, passed in native.items() if passed and not here.get(n)), done

    def check(self, tool):
        if self.native is None:
            self.native, _ = self.results([])
        lost, done = self.lost(self.native, tool)
        if not lost:
            return
        again, _ = self.results([], lost)
        lost, done = self.lost({n: again.get(n, False) for n in lost}, tool, lost)
        if lost:
            raise Failed(f"{len(lost)} tests fail here alone (status {done.status})", *lost[:8], *said(done)[-12:])


def main():
    parser = driver.parser(__doc__, tools="null,inscount", jobs=True)
    parser.add_argument("--tenth", action="store_true")
    options = parser.parse_args()
    with driver.Results("cpython", options) as results:
        names = longest_first(a_tenth(suite()) if options.tenth else suite())
        if not names:
            results.skip("all of it", f"there is no suite of {PYTHON}'s")

        def run(row):
            files = File(options, results.folder, row.name)
            return None, [(f"{row.name} {tool}", driver.problem(files.check, tool)) for tool in options.tools.split(",")]

        results.check_rows([Row(name) for name in names if driver.chosen(name, options)], run)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
