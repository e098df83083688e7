#!/usr/bin/python3
"""Threads of a tool's own (include/inlay/worker.h), under each engine: they work beside the program, which neither sees nor
misses anything, and end before its end, and before the tool goes.

  tests/cli/worker.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: one that does not end, which is waited for.
"""

import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../live"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
ENGINES = ("jit", "live", "rewrite")
# What the program does, and the reports of its processes: threads by number and how often each was in a procedure.
WAYS = {"several": ["0:1 1:10 2:10"], "forks": ["0:1", "0:6"], "alone": ["0:1"], "traced": ["0:1", "0:1"], "blocked": ["0:1"], "last": ["0:1 1:7"],
        "execs": None}


class Worker(outside.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.tool, self.program, self.shows = f"{folder}/tool", f"{folder}/program", f"{folder}/shows"
        made = driver.run([self.inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O1", "-g", f"{HERE}/worker_tool.c", "-o", self.tool], LIMIT)
        if made.status or driver.build("dynamic", f"{HERE}/worker_program.c", self.program):
            raise Failed("compile", *driver.as_lines(made.stderr))
        self.rewritten = {}

    def environment(self, engine, **more):
        """The program asks for the worker; /proc/self/status is not what it is natively in moved code."""
        told = {"WORKER_TOLD": "1"} if engine in ("jit", None) else {}
        shows = {"WORKER_SHOWS": self.shows} if engine else {}
        return driver.ENVIRONMENT | told | shows | more

    def started(self, engine, way, *options):
        """What it did, and its reports."""
        folder = driver.fresh(f"{self.folder}/{engine}-{way}")
        report = f"{folder}/report"
        if engine == "rewrite":
            key = " ".join(options)
            if key not in self.rewritten:
                self.rewritten[key] = f"{self.program}.{len(self.rewritten)}"
                driver.rewrite(self.inlay, [self.tool, *options, self.program, "-o", self.rewritten[key]])
            done = driver.run([self.rewritten[key], way], LIMIT, env=self.environment(engine, INLAY_OUT=report))
        else:
            command = [self.inlay, "run", f"--engine={engine}", self.tool, *options, "-o", report, "--", self.program, way]
            done = driver.run(command, LIMIT, env=self.environment(engine))
        reports = []
        for name in sorted(os.listdir(folder), key=lambda name: (len(name), name)):
            with open(f"{folder}/{name}", encoding="utf-8") as f:
                reports += f.read().splitlines()
        return done, reports

    def same(self, engine, way, *options):
        native = driver.run([self.program, way], LIMIT, env=self.environment(None) if engine == "jit" else driver.ENVIRONMENT)
        done, reports = self.started(engine, way, *options)
        told = driver.differences(native, done, ["noerr"] if way == "traced" else [])  # that the tool leaves it is said
        if told:
            raise Failed(*told, *reports)
        return reports

    def way(self, engine, way):
        reports, wanted = self.same(engine, way), WAYS[way]
        forked = [int("in fork 1" in line) for line in reports]
        if wanted is None:  # an exec: of the first program, and of the second where it is followed
            wanted, reports = ["0:1 1:10 2:10"], reports[-1:]
        for line, threads in zip(sorted(reports, key=lambda line: "in fork 1" in line), wanted):
            if not re.fullmatch(rf"ended 1, in fork \d, backwards 0, wrong 0, sampled 1, threads {threads}", line):
                raise Failed(f"{line}", f"and not {threads}")
        if len(reports) != len(wanted) or sum(forked) != len(wanted) - 1:
            raise Failed(f"{len(reports)} reports, {sum(forked)} of forks", *reports)

    def late(self, engine):
        """It begins in an analysis routine."""
        reports = self.same(engine, "several", "--late")
        if reports != ["ended 1, in fork 0, backwards 0, wrong 0, sampled 1, threads 0:1 1:10 2:10"]:
            raise Failed(*reports)

    def blamed(self, engine):
        done, _ = self.started(engine, "several", "--crashes")
        if done.status != -signal.SIGSEGV or not re.search(rb"the tool has crashed in sample \(\S*worker_tool\.c:\d+\), a worker: SIGSEGV",
                                                          done.stderr):
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr))

    @staticmethod
    def is_alone(pid):
        """The kernel lists a thread that has ended for a moment longer."""
        end = time.monotonic() + LIMIT
        while os.listdir(f"/proc/{pid}/task") != [str(pid)]:
            if time.monotonic() > end:
                raise Failed("a thread stays behind", *os.listdir(f"/proc/{pid}/task"))
            time.sleep(0.01)

    def comes_and_goes(self, put):
        """It ends with the tool, before the last report."""
        folder = driver.fresh(f"{self.folder}/comes")
        with live.Conversation(["env", f"WORKER_SHOWS={self.shows}", self.program, "waits"], folder) as c:
            for turn in range(2):
                driver.fresh(folder + "/x")
                put(c, f"{folder}/report")
                c.say("a")
                c.has_answered(1 + turn)
                c.rests()
                self.inside("report", c.process.pid)
                self.inside("detach", c.process.pid)
                self.is_alone(c.process.pid)
                with open(f"{folder}/report", encoding="utf-8") as f:
                    if not re.fullmatch(r"ended 1, in fork 0, backwards 0, wrong 0, sampled 1, threads 0:\d+\n", f.read()):
                        raise Failed("its report", open(f"{folder}/report", encoding="utf-8").read())
                os.remove(f"{folder}/report")
            put(c, f"{folder}/report")
            answers, status = c.end()
        if (answers, status) != (b"a\na\nover\n", 5):
            raise Failed(f"status {status}", repr(answers))

    def example(self, engine):
        """A line each so many milliseconds, which add up to what is executed."""
        tool, out = f"{self.folder}/timeline", f"{self.folder}/series"
        made = driver.run([self.inlay, "cc", "-O2", "-Wall", "-Wextra", "-Werror", f"{HERE}/../../examples/timeline.c", "-o", tool], LIMIT)
        with open(f"{HERE}/../../examples/timeline.c", encoding="utf-8") as f:
            if made.status or f.read().count("\n") > 100:
                raise Failed("it is not compiled, or too long", *driver.as_lines(made.stderr))
        argv = [self.inlay, "run", f"--engine={engine}", tool, "--image=bash", "--every=1", "-o", out, "--", "/usr/bin/bash", "-c",
                "for ((i = 0; i < 30000; i++)); do :; done; echo over"]
        count = [word for word in argv if word != "--every=1"]
        count[3] = "inscount"
        sums = []
        for command in argv, count:
            done = driver.run(command, LIMIT, env=driver.ENVIRONMENT)
            if (done.status, done.stdout) != (0, b"over\n"):
                raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))
            with open(out, encoding="utf-8") as f:
                sums.append([[int(n) for n in re.findall(r"\d+", line)] for line in f])
        series = sums[0]
        times = [row[0] for row in series]
        if len(series) < 5 or times != sorted(times) or sum(row[1] for row in series) != sums[1][0][0]:
            raise Failed(f"{len(series)} lines, {sum(row[1] for row in series)} instructions; counted: {sums[1]}")

    def attached(self):
        self.comes_and_goes(lambda c, report: self.attach(self.tool, c.process.pid, "--image=program", "-o", report))

    def joined(self):
        def put(c, report):
            done = driver.run([self.inlay, "run", "--attach", str(c.process.pid), self.tool, "-o", report], LIMIT,
                              env=self.environment("jit"))
            if done.status:
                raise Failed("run --attach", *driver.as_lines(done.stderr))
        self.comes_and_goes(put)

    def stays(self, engine):
        """One that does not end does not hold the program up for long, and keeps the tool."""
        if engine != "rewrite":
            options = ("--stays", "-o", f"{self.folder}/stays/report")
            started = [self.inlay, "run", self.tool, *options, "--"] if engine == "jit" else []
            says = "the tool stays in process" if started else "a thread of the tool's own does not end.*the tool stays"
            with live.Conversation(["env", f"WORKER_SHOWS={self.shows}", *started, self.program, "waits"],
                                   driver.fresh(f"{self.folder}/stays")) as c:
                if not started:
                    self.attach(self.tool, c.process.pid, *options)
                c.rests()
                self.refused_inside("detach", c.process.pid, says)
                answers, status = c.end()
                if b"over\n" not in answers or status != 5:
                    raise Failed(f"it does not go on: status {status}", repr(answers))
        if engine == "live":
            return
        done, _ = self.started(engine, "several", "--stays")
        if done.status != 5 or b"does not end" not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stderr))


def tests(of):
    for engine in ENGINES:
        for way in WAYS:
            yield f"{way}-{engine}", lambda e=engine, w=way: of.way(e, w)
        yield f"late-{engine}", lambda e=engine: of.late(e)
        yield f"blamed-{engine}", lambda e=engine: of.blamed(e)
        if of.all:
            yield f"stays-{engine}", lambda e=engine: of.stays(e)
    for engine in ("jit", "live"):
        yield f"example-{engine}", lambda e=engine: of.example(e)
    yield "attached", of.attached
    yield "joined", of.joined


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("worker", options) as results:
        for name, function in tests(Worker(options, results.folder)):
            results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
