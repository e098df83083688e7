#!/usr/bin/python3
"""Processes that have confined themselves (seccomp) get tools, and work on as they do natively, where their filters let a
tool work; the others are refused, with what stands in the way, and go on as they were.

  tests/live/filters.py [--build DIR] [--only PATTERN] [--keep]
"""

import functools
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

# Executes the program behind a filter; what follows exec keeps it.
CONFINES = r"""
import ctypes, json, os, struct, sys
c = ctypes.CDLL(None)
code = b"".join(struct.pack("<HBBI", *i) for i in json.loads(sys.argv[1]))
text = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(text)))
assert c.prctl(38, 1, 0, 0, 0) == 0 and c.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
"""
LOAD, EQUAL, ANY_OF, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
NUMBER, PLACE, THIRD = 0, 8, 32  # in what a filter is given: the third argument's lower half
ALLOW, ERROR, TRAP, KILL = 0x7fff0000, 0x50001, 0x30000, 0x80000000
CALLS = {"write": 1, "lstat": 6, "mmap": 9, "mprotect": 10, "socket": 41, "fcntl": 72, "getppid": 110,
         "no_call": 0xffffffff}  # which is tried in a thread that is held
EXECUTABLE, WRITABLE = 4, 2


def answers(otherwise, **calls):
    """A filter: to calls by name."""
    code = [(LOAD, 0, 0, NUMBER)]
    for name, answer in calls.items():
        code += [(EQUAL, 0, 1, CALLS[name]), (RETURN, 0, 0, answer)]
    return [*code, (RETURN, 0, 0, otherwise)]


def no_new_code():
    """As services are confined whose memory may not become executable."""
    return [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 3, CALLS["mprotect"]), (LOAD, 0, 0, THIRD), (ANY_OF, 0, 6, EXECUTABLE),
            (RETURN, 0, 0, ERROR), (EQUAL, 0, 4, CALLS["mmap"]), (LOAD, 0, 0, THIRD), (AND, 0, 0, EXECUTABLE | WRITABLE),
            (EQUAL, 0, 1, EXECUTABLE | WRITABLE), (RETURN, 0, 0, ERROR), (RETURN, 0, 0, ALLOW)]


def by_place():
    return [(LOAD, 0, 0, PLACE), (EQUAL, 0, 1, 1), (RETURN, 0, 0, KILL), (RETURN, 0, 0, ALLOW)]


class Filters(outside.Out):
    def __init__(self, options, folder):
        options.all = False
        super().__init__(options, folder)
        self.talks = f"{folder}/talks"
        if driver.build("dynamic", f"{HERE}/talks.c", self.talks):
            raise Failed("the program cannot be built")

    def behind(self, code, *program):
        return ["/usr/bin/python3", "-S", "-c", CONFINES, json.dumps(code), *(program or [self.talks])]

    def works(self, code):
        """A tool comes, reports, goes, and another one comes and stays."""
        first, second = live.TALK
        folder, command = driver.fresh(f"{self.folder}/works"), self.behind(code)
        before, wanted, status = self.native(command, first, second, folder)
        with live.Conversation(command, folder) as c:
            pid = c.process.pid
            c.say(*first)
            c.has_answered(before)
            state = outside.visible(pid)
            self.attach("bbcount", pid, "-o", f"{folder}/blocks")
            self.inside("report", pid)
            self.inside("detach", pid)
            outside.clean(pid, state)
            self.attach("calls", pid, "-o", f"{folder}/calls")
            self.say_rest(c, second)
            here, ended = c.end()
        if (wanted, status) != (here, ended):
            raise Failed(f"status {status}, with tools {ended}", repr(wanted[-300:]), repr(here[-300:]))
        with open(f"{folder}/calls", encoding="utf-8") as f:
            report = f.read()
        if not re.search(r"^ *1160 +work\b", report, re.M):  # the forked child's is its own
            raise Failed("work was called 1160 times", *report.splitlines()[:12])

    def loads(self):
        """Images come later, where memory that was written to does not become executable any more."""
        with live.Conversation(self.behind(no_new_code(), *live.PROGRAMS["python"][0]), driver.fresh(f"{self.folder}/loads")) as c:
            c.say("1 + 1")
            c.has_answered(1)
            self.attach("calls", c.process.pid, "-o", f"{self.folder}/loads/report", "--image", "*bz2*", "--image", "*lzma*", "--image", "libz*", "--top=0")
            c.say("len(__import__('bz2').compress(b'x' * 9999)) > 9", "len(__import__('lzma').compress(b'x' * 9999)) > 9",
                  "__import__('mmap').mmap(-1, 4096, prot=7)")
            answers, status = c.end()
        if answers != b"2\nTrue\nTrue\nPermissionError\n" or status:
            raise Failed(f"status {status}", repr(answers))
        with open(f"{self.folder}/loads/report", encoding="utf-8") as f:
            report = f.read()
        for procedure in ("BZ2_bzCompress", "lzma_code"):
            if procedure not in report:
                raise Failed(f"{procedure} is not counted", *report.splitlines()[:12])

    def refused(self, code, says, by=()):
        with live.Conversation(self.behind(code), driver.fresh(f"{self.folder}/refused")) as c:
            c.say("work 9")
            c.has_answered(1)
            pid = c.process.pid
            state = outside.visible(pid)
            for words in (["attach", "inscount", str(pid)], ["count", "-p", str(pid), "work"]):
                done = subprocess.run([*by, self.inlay, *words], capture_output=True, text=True, timeout=live.LIMIT,
                                      env=driver.ENVIRONMENT)
                if done.returncode != 1 or not re.search(says, done.stderr) or done.stderr.count("\n") != 1:
                    raise Failed(f"{words}: status {done.returncode}, does not say '{says}' in a line", done.stderr)
            outside.clean(pid, state)
            c.say("work 9")
            answers, status = c.end()
        self.has_worked(answers, status)

    @staticmethod
    def has_worked(answers, status):
        if status != 9 or answers.count(b"\n") != 3 or not answers.endswith(b"end 0\n"):
            raise Failed(f"status {status}", repr(answers))

    def without_right(self):
        """The right to trace alone does not do. A filter that was put on by root is seen by nobody else."""
        by = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
        self.refused(answers(ALLOW, getppid=ERROR), "suspended .*CAP_SYS_ADMIN", by)

    def jit(self):
        with live.Conversation(self.behind(answers(ALLOW, getppid=ERROR)), driver.fresh(f"{self.folder}/jit")) as c:
            c.say("work 9")
            c.has_answered(1)
            done = subprocess.run([self.inlay, "run", "--attach", str(c.process.pid), "null"], capture_output=True, text=True,
                                  timeout=live.LIMIT, env=driver.ENVIRONMENT)
            if done.returncode != 1 or "is confined" not in done.stderr:
                raise Failed(f"status {done.returncode}", done.stderr)
            c.say("work 9")
            self.has_worked(*c.end())


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("live-filters", options) as results:
        f = Filters(options, results.folder)
        tests = [("some_fail", f.works, answers(ALLOW, getppid=ERROR, socket=TRAP, no_call=KILL)),
                 ("no_new_code", f.works, no_new_code()),
                 ("loads", f.loads),
                 ("kills", f.refused, answers(ALLOW, lstat=KILL), "would end it at a call that a tool may make: lstat"),
                 ("forbids", f.refused, answers(ALLOW, fcntl=ERROR), "forbids what no tool can do without: fcntl"),
                 ("place", f.refused, by_place(), "looks at where calls are made"),
                 ("without_right", f.without_right), ("jit", f.jit)]
        for name, test, *how in tests:
            if driver.chosen(name, options):
                results.check(name, functools.partial(test, *how))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
