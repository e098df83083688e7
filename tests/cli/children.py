#!/usr/bin/python3
"""Which executed programs are followed, with which options, and the reports of many processes added up.

  tests/cli/children.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import glob
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
COMMANDS = "ls / >/dev/null; echo b | sort; cat /dev/null; exec head -c3 /etc/passwd"


class Children:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.engine = f"{build}/inlay", folder, "jit"
        self.tool = f"{folder}/children"
        made = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/children_tool.c", "-o", self.tool],
                          LIMIT)
        if made.status != 0:
            raise SystemExit(made.stderr.decode())
        self.native = driver.run(["bash", "-c", COMMANDS], LIMIT, cwd=folder, env=driver.ENVIRONMENT)

    def reports(self, tool, *words, commands=COMMANDS):
        """All that is written, by the program's name."""
        for old in glob.glob(f"{self.folder}/out*"):
            os.unlink(old)
        done = driver.run([self.inlay, "run", f"--engine={self.engine}", *words, tool, "--format=json", "-o", "out", "--", "bash", "-c", commands],
                          LIMIT, cwd=self.folder, env=driver.ENVIRONMENT)
        if commands == COMMANDS and (done.status, done.stdout, done.stderr) != (self.native.status, self.native.stdout, b""):
            raise Failed(f"status {done.status}", done.stdout.decode(), done.stderr.decode())
        found = {}
        for name in glob.glob(f"{self.folder}/out*"):
            with open(name, encoding="utf-8") as f:
                report = json.load(f)
            found.setdefault(report["program"], []).append(report)
        return found

    def expect(self, found, **programs):
        """How many reports there are of each program."""
        counts = {name: len(of) for name, of in found.items()}
        if counts != programs:
            raise Failed(f"reports: {counts} instead of {programs}")

    def follows_all(self):
        """bash forks for each but the last, which replaces it; `echo b |` is a fork too."""
        self.expect(self.reports("inscount"), ls=1, sort=1, cat=1, head=1, bash=1)

    def follows_none(self):
        """The first process's report is of bash, up to its exec; forked ones have theirs."""
        found = self.reports("inscount", "--no-follow")
        self.expect(found, bash=5)
        if not all(r["instructions"] > 1000 for r in found["bash"]):
            raise Failed("empty reports", str(found))

    def follows_some(self):
        self.expect(self.reports("inscount", "--follow=l*", "--follow", "*/sort"), ls=1, sort=1, bash=3)

    def follows_below(self):
        """What a native program executes is native too."""
        self.expect(self.reports("inscount", "--follow=ls", commands="sh -c 'ls /; :' >/dev/null; ls / >/dev/null; :"),
                    ls=1, bash=2)

    def the_tool_chooses(self):
        found = self.reports(self.tool)
        self.expect(found, ls=1, sort=1, head=1, bash=2)
        words = {name: of[0]["word"] for name, of in found.items()}
        if words != {"ls": "usual", "sort": "special", "head": "usual", "bash": "usual"}:
            raise Failed(f"options: {words}")

    def failed_exec(self):
        """It is found out before the tool is asked; and a script without a first line goes to bash itself."""
        found = self.reports("inscount", "--no-follow", commands="./none 2>/dev/null; exec ./none 2>/dev/null")
        self.expect(found, bash=2)

    def both_exclude_each_other(self):
        done = driver.run([self.inlay, "run", "null", "--follow=x", "--no-follow", "--", "true"], LIMIT, env=driver.ENVIRONMENT)
        if done.status != 2 or b"exclude" not in done.stderr:
            raise Failed("status", done.stderr.decode())

    def devices_and_pipes_are_everybodys(self):
        """Nothing is made beside them."""
        device, pipe = f"{self.folder}/null", f"{self.folder}/pipe"
        os.mkfifo(pipe)
        os.symlink("/dev/null", device)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        for file, *tool in ((device, "memtrace", "--binary"), (pipe, "inscount")):
            done = driver.run([self.inlay, "run", *tool, "-o", file, "--", "sh", "-c", "/bin/true; :"], LIMIT, env=driver.ENVIRONMENT)
            beside = glob.glob(f"{file}.*")
            if done.status != 0 or done.stderr or beside:
                raise Failed(f"status {done.status}", done.stderr.decode(), str(beside))
        told = os.read(reader, 1000)
        os.close(reader)
        if told.count(b"instructions") != 2:
            raise Failed("not told by both", str(told))

    def shared_descriptors(self):
        """A child of clone with CLONE_FILES opens its file beside its parent's."""
        self.expect(self.reports("inscount", commands="exec perl -e '$child = syscall(56, 0x411, 0, 0, 0, 0); wait if $child'"),
                    perl=2)

    # --- merge

    def merge(self, *words, status=0):
        done = driver.run([self.inlay, "merge", *words], LIMIT, cwd=self.folder, env=driver.ENVIRONMENT)
        if done.status != status:
            raise Failed(f"status {done.status}", done.stderr.decode())
        return json.loads(done.stdout) if status == 0 and "-o" not in words else done.stderr.decode()

    def files(self):
        return sorted(glob.glob(f"{self.folder}/out*"))

    def merged_sums(self):
        found = [r for of in self.reports("inscount").values() for r in of]
        sum_of = self.merge(*self.files())
        if sum_of["instructions"] != sum(r["instructions"] for r in found) or sum_of["processes"] != len(found):
            raise Failed(str(sum_of))
        if sorted(sum_of["program"].split(", ")) != sorted({r["program"] for r in found}) or "pid" in sum_of:
            raise Failed(str(sum_of))

    def merged_again(self):
        """In two steps as in one."""
        self.reports("inscount")
        files = self.files()
        self.merge("-o", "part", *files[:3])
        a, b = self.merge("part", *files[3:]), self.merge(*files)
        if a != b:
            raise Failed(str(a), str(b))

    def merged_procedures(self):
        found = [r for of in self.reports("prof").values() for r in of]
        listed = self.merge(*self.files())["procedures"]
        by_name = {}
        for r in found:
            for p in r["procedures"]:
                key = (p["name"], p["image"])
                by_name[key] = by_name.get(key, 0) + p["instructions"]
        unique = {}
        for p in listed:
            key = (p["name"], p["image"])
            unique[key] = unique.get(key, 0) + p["instructions"]
        if unique != by_name:
            raise Failed("sums by name differ")
        counts = [p["instructions"] for p in listed]
        if counts != sorted(counts, reverse=True):
            raise Failed("not the largest first")
        if len(listed) >= sum(len(r["procedures"]) for r in found) * 3 / 4:
            raise Failed(f"{len(listed)} rows: hardly any have been put together")

    def merged_places(self):
        """Branches of one procedure are told apart by their places."""
        found = [r for of in self.reports("branches").values() for r in of]
        listed = self.merge(*self.files())["branches"]

        def sums(reports):
            out = {}
            for r in reports:
                for b in r:
                    key = (b["image"], b["procedure"], b["kind"], b["address"] % 4096)
                    out[key] = out.get(key, 0) + b["executed"]
            return out
        if sums([listed]) != sums(r["branches"] for r in found):
            raise Failed("sums by place differ")

    def wrong_files(self):
        with open(f"{self.folder}/text", "w", encoding="utf-8") as f:
            f.write("true: 12 instructions\n")
        for words, said in (([f"{self.folder}/text"], "--format=json"), (["none"], "cannot read"), (["one", "other"], "not of")):
            for name in ("one", "other"):
                with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
                    f.write('{"tool": "%s", "n": 1}' % name)
            if said not in self.merge(*words, status=1):
                raise Failed(f"{words}")
        if self.merge("/", status=1) != "inlay: cannot read /: Is a directory\n":
            raise Failed("a folder")
        if "no report" not in self.merge(status=2):
            raise Failed("no files")

    def any_values(self):
        """Kinds that differ, nothing, nesting, escapes, numbers that name something."""
        texts = ('{"a\\"b": 1, "x": null, "r": 1.5, "o": {"n": 1, "address": 7}, "l": [1], "e": [], "t": false, "address": 5}',
                 '{"x": 4, "a\\"b": 2, "r": 1, "o": {"n": 2, "m": 3, "address": 9}, "l": [2], "e": [{"n": 1}], "t": true, "address": 6}')
        for name, text in zip(("one", "other"), texts):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        want = {'a"b': 3, "x": 4, "r": 2.5, "o": {"n": 3, "m": 3, "address": 7}, "l": [1, 2], "e": [{"n": 1}], "t": True,
                "address": 5, "processes": 2}
        if self.merge("one", "other") != want:
            raise Failed(str(self.merge("one", "other")))


TESTS = ("follows_all", "follows_none", "follows_some", "follows_below", "the_tool_chooses", "failed_exec",
         "both_exclude_each_other", "devices_and_pipes_are_everybodys", "shared_descriptors", "merged_sums",
         "merged_again", "merged_procedures", "merged_places", "wrong_files", "any_values")
UNDER_LIVE = ("follows_all", "follows_some", "the_tool_chooses", "failed_exec")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("children", options) as results:
        tests = Children(options.build, results.folder)
        for name in TESTS:
            results.check(name, getattr(tests, name))
        tests.engine = "live"
        for name in UNDER_LIVE:
            results.check(f"live-{name}", getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
