"""How a measured program is started: natively, under a command (the JIT engine, a peer), or rewritten.

A wrapper has a name and two verbs: prepare(program, scratch), before the clock runs, and
start(program), which answers what is executed and its arguments. A rewritten program is made together
with the libraries that it loads, in a folder of its own, and runs under its original's name.
"""

import glob
import json
import os
import shutil
import subprocess

import measure

HERE = os.path.dirname(os.path.realpath(__file__))
REWRITE_LIMIT = 600


class CannotPrepare(Exception):
    pass


class Tool:
    """What the tool of a wrapper found: `key` of the JSON object that it writes to `result`. Without, nothing is
    checked. `noisy`: it may say something on the program's standard output."""

    result = key = None
    noisy = False

    def found(self):
        """The number, and forgets it; None where there is no such result."""
        try:
            with open(self.result, encoding="utf-8") as f:
                value = json.load(f).get(self.key)
            os.unlink(self.result)
            return value
        except (OSError, ValueError):
            return None


class Native(Tool):
    name = "native"

    def prepare(self, program, scratch):
        pass

    def start(self, program):
        return program.command[0], program.command


class Under(Tool):
    """A command in front of the program's."""

    def __init__(self, name, words, result=None, key=None, noisy=False):
        self.name, self.words = name, words
        self.result, self.key, self.noisy = result, key, noisy

    def prepare(self, program, scratch):
        pass

    def start(self, program):
        return self.words[0], [*self.words, *program.command]


class Rewritten(Tool):
    """Written once for each program; `words` make it: `inlay rewrite TOOL ...`."""

    def __init__(self, name, words, result=None, key=None):
        self.name, self.words = name, words
        self.result, self.key = result, key
        self.costs = {}  # by the program's name: seconds and peak memory of the rewriting
        self.made = {}   # by the original's path

    def arguments(self, file, folder):
        return [*self.words, file, "--with-libs", folder]

    def prepare(self, program, scratch):
        file = os.path.realpath(program.command[0])
        if file in self.made:
            return
        folder = f"{scratch}/rewritten/{self.name}/{program.name}"
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        command = self.arguments(file, folder)
        result = measure.run(command, scratch, REWRITE_LIMIT)
        if result.failed():
            raise CannotPrepare(f"rewriting: {result.error}")
        self.costs[program.name] = (result.seconds, result.peak_kb)
        self.made[file] = f"{folder}/{os.path.basename(file)}"

    def start(self, program):
        return self.made[os.path.realpath(program.command[0])], program.command

    def clean(self, scratch):
        shutil.rmtree(f"{scratch}/rewritten/{self.name}", ignore_errors=True)
        self.made.clear()


class Atom(Rewritten):
    """One of ATOM's tools in examples/atom, of two files."""

    def __init__(self, inlay, tool):
        files = [f"{HERE}/../examples/atom/{tool}.{part}.c" for part in ("inst", "anal")]
        super().__init__(f"atom-{tool}", [inlay, "atom", *files])

    def arguments(self, file, folder):
        return [*self.words[:2], file, *self.words[2:], "--with-libs", folder, "-o", os.path.basename(file)]


def rewriting_cost(inlay, files, scratch):
    """{name: (seconds, peak kB, problem)} of rewriting single files without a tool's code."""
    found = {}
    out = f"{scratch}/rewritten-once-{os.getpid()}"
    for file in files:
        result = measure.run([inlay, "rewrite", "null", file, "-o", out], scratch, REWRITE_LIMIT)
        problem = result.error if result.failed() else None
        found[os.path.basename(file)] = (result.seconds, result.peak_kb, problem)
        if os.path.exists(out):
            os.unlink(out)
    return found


def costly_files():
    """What the cost of rewriting is measured on, where it is installed."""
    names = ("/usr/bin/python3", *glob.glob("/usr/lib/*/libLLVM-*.so.1"), *glob.glob("/usr/lib/*/libLLVM.so.*.1"))
    return [os.path.realpath(n) for n in names if os.path.exists(n)]
