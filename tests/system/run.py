#!/usr/bin/python3
"""The transparency test: each command of commands.table runs natively and under tools, and must leave
the same output, status and files.

  tests/system/run.py [--build DIR] [--tools null,inscount,memtrace] [--jobs 2] [--only PATTERN]
                      [--keep] [--check-native] [--table FILE] [--engine live] [--in-turns]

--in-turns: a program of the distribution is spared one of the tools, the next program the next one; samples get all.
--check-native runs each command natively twice: what differs then is the table's fault.
INLAY_STRESS in the environment (tiny-cache, flush, random-regs; several with commas; debug) becomes the
tools' option --stress; each result's name says so. Prints a line for each failure with the difference, and at the end N passed, N failed.
"""

import hashlib
import os
import re
import shlex
import shutil
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
import inputs  # noqa: E402

# What each tool is asked to do; {out} is a file of its own. The factor stretches the time limit.
TOOLS = {
    "null": ([], 2),
    "inscount": (["-o", "{out}"], 3),
    "bbcount": (["-o", "{out}"], 3),
    "branches": (["-o", "{out}"], 6),
    "memtrace": (["-o", "{out}", "--hash"], 6),
}
# What must stand in the file: the tool's own words, and a number that is no nonsense. No program is so short
# that it ends before its tenth instruction, or does so much in a minute.
REPORTS = {"inscount": r": (\d+) instructions\n", "memtrace": r"thread 0: (\d+) accesses, hash [0-9a-f]{16}\n"}
LEAST, MOST = 10, 10 ** 13


FLAGS, VALUES = ("root", "noerr", "noout", "nofiles", "long", "silent"), ("need", "timeout", "mask", "stdin")


class Command:
    def __init__(self, row):
        self.name, self.text, self.flags, self.values = row.name, row.text, row.flags, row.values

    def argv(self, place):
        return shlex.split(driver.fill(self.text, place))

    def missing(self, place):
        if "root" in self.flags and os.geteuid() != 0:
            return "needs root"
        path = place.environment["PATH"]
        need = self.values.get("need")
        if need and not shutil.which(need, path=path):
            return f"needs {need}"
        return None


class Place:
    """Folders and environment of one run of the test."""

    def __init__(self, build, root):
        self.build = os.path.abspath(build)
        self.samples = f"{self.build}/tests/samples"
        self.inlay = f"{self.build}/inlay"
        self.root = root
        self.inputs = f"{root}/in"
        self.environment = driver.ENVIRONMENT | {"HOME": root}
        inputs.make(self.inputs, os.path.dirname(HERE))


def files_of(folder):
    """Relative path -> kind, mode, content."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(base, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[key] = "link to " + os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    digest = hashlib.sha1(f.read()).hexdigest()
                found[key] = f"{os.stat(path).st_mode:o} {os.path.getsize(path)} bytes {digest}"
            else:
                found[key] = "other"
    return found


def run_once(command, place, prefix, limit):
    """Runs in a fresh folder that has the same name each time; answers the outcome and the files."""
    folder = driver.fresh(f"{place.root}/run/{command.name}")
    stdin = driver.fill(command.values.get("stdin", os.devnull), place)
    done = driver.run(prefix + command.argv(place), limit, cwd=folder, env=place.environment, stdin=stdin)
    return done, files_of(folder)


def differences(command, native, here):
    """Lines that tell how two results differ; empty when they do not."""
    told = driver.differences(native[0], here[0], command.flags, command.values.get("mask"))
    if "nofiles" not in command.flags and native[1] != here[1]:
        for name in sorted(native[1].keys() | here[1].keys()):
            a, b = native[1].get(name, "absent"), here[1].get(name, "absent")
            if a != b:
                told.append(f"file {name}: native {a}, here {b}"[:300])
    return told


def missing_report(tool, path):
    """Why the tool's own output is not as it must be, or nothing."""
    if tool not in REPORTS:
        return []
    try:
        with open(path) as f:
            text = f.read()
    except OSError as e:
        return [f"{tool} left no report: {e}"]
    found = re.search(REPORTS[tool], text)
    if not found or not LEAST <= int(found[1]) <= MOST:
        return [f"{tool} reports {text[:200]!r}"]
    return []


class Job:
    def __init__(self, command, place, options, tools):
        self.tools = tools
        self.command, self.name, self.place, self.options = command, command.name, place, options
        self.limit = float(command.values.get("timeout", 60))
        self.seconds = []  # and what took them

    def timed(self, what, prefix, limit):
        started = time.monotonic()
        outcome = run_once(self.command, self.place, prefix, limit)
        self.seconds.append((time.monotonic() - started, f"{self.name} [{what}]"))
        return outcome

    def run(self):
        """For Results.check_rows."""
        command, place = self.command, self.place
        missing = command.missing(place)
        if missing:
            return missing, []
        native = self.timed("native", [], self.limit)
        if self.options.check_native:
            return None, [(f"{command.name} [native]",
                           differences(command, native, run_once(command, place, [], self.limit)))]
        stress = os.environ.get("INLAY_STRESS")
        results = []
        for tool in self.tools:
            if "long" in command.flags and (stress or tool == "memtrace"):
                continue
            words, factor = TOOLS.get(tool, ([], 2))
            out = f"{place.root}/out/{command.name}.{os.path.basename(tool)}"
            prefix = [place.inlay, "run", tool] + [w.replace("{out}", out) for w in words]
            prefix += [f"--engine={self.options.engine}"] if self.options.engine else []
            prefix += [f"--stress={stress}"] if stress and stress != "debug" else ["--debug"] if stress else []
            prefix += ["--no-ptrace", "--"] if self.options.no_ptrace else ["--"]
            here = self.timed(tool, prefix, self.limit * factor * (2 if stress else 1))
            label = f"{command.name} [{os.path.basename(tool)}{' ' + stress if stress else ''}]"
            wrong = differences(command, native, here)
            if "silent" not in command.flags:
                wrong += missing_report(os.path.basename(tool), out)
            results.append((label, wrong))
        return None, results


def main():
    parser = driver.parser(__doc__, tools=os.environ.get("INLAY_TOOLS", "null,inscount,memtrace"), jobs=True,
                           only=os.environ.get("INLAY_ONLY", "*"))
    parser.add_argument("--check-native", action="store_true")
    parser.add_argument("--no-ptrace", action="store_true", help="the tools load the program themselves")
    parser.add_argument("--engine", help="another one of `inlay run`'s: live")
    parser.add_argument("--table", default=f"{HERE}/commands.table", help="another one of commands")
    driver.add_turns(parser)
    parser.add_argument("--times", type=int, default=0, help="show the N longest runs")
    options = parser.parse_args()
    with driver.Results("system", options) as results:
        os.chmod(results.folder, 0o755)
        os.mkdir(f"{results.folder}/out")
        os.chmod(f"{results.folder}/out", 0o1777)  # a program that gives up its user still reports
        place = Place(options.build, results.folder)
        rows = [row for row in driver.read_table(options.table, FLAGS, VALUES) if driver.chosen(row.name, options)]
        tools = driver.tools_of(rows, options)
        jobs = [Job(Command(row), place, options, tools[row.name]) for row in rows]
        jobs.sort(key=lambda job: -job.limit)  # the longest first, so that they do not come last
        results.check_rows(jobs, Job.run)
        for seconds, what in sorted((run for job in jobs for run in job.seconds), reverse=True)[:options.times]:
            print(f"{seconds:7.2f} s: {what}")
        print(f"system: {len(jobs) - results.skipped} commands, {results.skipped} skipped")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
