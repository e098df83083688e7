#!/usr/bin/python3
"""The transparency test: each command of commands.table runs natively and under tools, and must leave
the same output, status and files.

  tests/system/run.py [--build DIR] [--tools null,inscount,memtrace] [--jobs 2] [--only PATTERN]
                      [--keep] [--check-native]

--check-native runs each command natively twice: what differs then is the table's fault.
INLAY_STRESS in the environment (tiny-cache, flush, random-regs; several with commas) becomes the
tools' option --stress; each result's name says so. Prints a line for each failure with the difference, and at the end N passed, N failed.
"""

import argparse
import concurrent.futures
import difflib
import fnmatch
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import inputs

HERE = os.path.dirname(os.path.abspath(__file__))

# What each tool is asked to do; {out} is a file of its own. The factor stretches the time limit.
TOOLS = {
    "null": ([], 2),
    "inscount": (["-o", "{out}"], 3),
    "memtrace": (["-o", "{out}", "--hash"], 6),
}


class Command:
    def __init__(self, line, where):
        try:
            self.name, options, self.text = (
                s.strip() for s in re.split(r"\s+\|(?=\s|$)", line, maxsplit=2))
            words = shlex.split(options)
        except ValueError:
            sys.exit(f"{where}: not 'name | options | command'")
        self.flags = {w for w in words if "=" not in w}
        self.values = dict(w.split("=", 1) for w in words if "=" in w)
        unknown = (self.flags - {"root", "noerr", "noout", "nofiles", "long"}) | (
            self.values.keys() - {"need", "timeout", "mask", "stdin"})
        if unknown:
            sys.exit(f"{where}: unknown option {unknown}")

    def argv(self, place):
        return shlex.split(self.text.replace("{samples}", place.samples).replace("{in}", place.inputs))

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
        self.environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games",
            "HOME": root, "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1", "USER": "tester",
        }
        inputs.make(self.inputs, os.path.dirname(HERE))


def read_table(path):
    commands, pending = [], ""
    for number, line in enumerate(open(path), 1):
        if not pending and (not line.strip() or line.startswith("#")):
            continue
        pending += line
        if pending.count("'") % 2:  # a quoted newline goes on
            continue
        commands.append(Command(pending.rstrip("\n"), f"{path}:{number}"))
        pending = ""
    names = [c.name for c in commands]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: a name stands twice")
    return commands


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


def run_once(command, place, prefix, environment, limit):
    """Runs in a fresh folder that has the same name each time; answers what can be compared."""
    folder = f"{place.root}/run/{command.name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    stdin = command.values.get("stdin", "/dev/null").replace("{in}", place.inputs)
    with open(stdin, "rb") as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(prefix + command.argv(place), cwd=folder, env=environment,
                                   stdin=source, stdout=out, stderr=err, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = f"none: still running after {limit:.0f} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        err.seek(0)
        result = {"status": str(status), "stdout": out.read(), "stderr": err.read()}
    result["files"] = files_of(folder)
    return result


def as_lines(data, mask):
    text = data.decode("utf-8", "backslashreplace")
    if mask:
        text = re.sub(mask, "", text)
    return text.splitlines()


def differences(command, native, other):
    """Lines that tell how two results differ; empty when they do not."""
    told = []
    if native["status"] != other["status"]:
        told.append(f"status: native {native['status']}, here {other['status']}")
    mask = command.values.get("mask")
    for stream, flag in (("stdout", "noout"), ("stderr", "noerr")):
        if flag in command.flags:
            continue
        a, b = as_lines(native[stream], mask), as_lines(other[stream], mask)
        if a != b:
            diff = list(difflib.unified_diff(a, b, f"native {stream}", f"this {stream}", "", "", 1, ""))
            told += diff[:16] + ([f"... {len(diff) - 16} lines more"] if len(diff) > 16 else [])
    if "nofiles" not in command.flags and native["files"] != other["files"]:
        for name in sorted(native["files"].keys() | other["files"].keys()):
            a, b = native["files"].get(name, "absent"), other["files"].get(name, "absent")
            if a != b:
                told.append(f"file {name}: native {a}, here {b}")
    if told and "noerr" in command.flags and other["stderr"] != native["stderr"]:
        told += ["its stderr:"] + as_lines(other["stderr"], None)[-6:]
    return [line[:300] for line in told]


class Job:
    def __init__(self, command, tools, place, arguments):
        self.command, self.tools, self.place, self.arguments = command, tools, place, arguments
        self.limit = float(command.values.get("timeout", 60))

    def __call__(self):
        """Answers a list of (label, differences or None for passed)."""
        command, place = self.command, self.place
        started = time.monotonic()
        native = run_once(command, place, [], place.environment, self.limit)
        self.seconds = time.monotonic() - started
        if self.arguments.check_native:
            again = run_once(command, place, [], place.environment, self.limit)
            return [(f"{command.name} [native]", differences(command, native, again))]
        stress = os.environ.get("INLAY_STRESS")
        stress_option = [f"--stress={stress}"] if stress else []
        results = []
        for tool in self.tools:
            if "long" in command.flags and (stress or tool == "memtrace"):
                continue
            options, factor = TOOLS.get(tool, ([], 2))
            out = f"{place.root}/out/{command.name}.{os.path.basename(tool)}"
            prefix = [place.inlay, "run", tool] + [o.replace("{out}", out) for o in options]
            prefix += stress_option + ["--"]
            limit = self.limit * factor * (2 if stress else 1)
            here = run_once(command, place, prefix, place.environment, limit)
            label = f"{command.name} [{os.path.basename(tool)}{' ' + stress if stress else ''}]"
            results.append((label, differences(command, native, here)))
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--tools", default=os.environ.get("INLAY_TOOLS", "null,inscount,memtrace"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default=os.environ.get("INLAY_ONLY", "*"),
                        help="names, with * and ?; several with commas")
    parser.add_argument("--keep", action="store_true", help="leave the working folders")
    parser.add_argument("--check-native", action="store_true")
    parser.add_argument("--times", type=int, default=0, help="show the N longest native runs")
    arguments = parser.parse_args()

    root = tempfile.mkdtemp(prefix="inlay-system-")
    os.chmod(root, 0o755)
    os.mkdir(f"{root}/out")
    os.chmod(f"{root}/out", 0o1777)  # a program that gives up its user still reports
    place = Place(arguments.build, root)
    patterns = arguments.only.split(",")
    passed = failed = skipped = 0
    jobs = []
    for command in read_table(f"{HERE}/commands.table"):
        if not any(fnmatch.fnmatch(command.name, p) for p in patterns):
            continue
        missing = command.missing(place)
        if missing:
            skipped += 1
            print(f"SKIP {command.name}: {missing}")
            continue
        jobs.append(Job(command, arguments.tools.split(","), place, arguments))

    jobs.sort(key=lambda job: -job.limit)  # the longest first, so that they do not come last
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for results in pool.map(lambda job: job(), jobs):
            for label, told in results:
                if told:
                    failed += 1
                    print(f"FAIL {label}", *told, sep="\n     ", flush=True)
                else:
                    passed += 1
    if arguments.times:
        for job in sorted(jobs, key=lambda job: -job.seconds)[:arguments.times]:
            print(f"{job.seconds:7.2f} s native: {job.command.name}")
    if arguments.keep:
        print(f"kept {root}")
    else:
        shutil.rmtree(root, ignore_errors=True)
    print(f"system: {skipped} skipped" if skipped else "system:", f"{len(jobs)} commands")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
