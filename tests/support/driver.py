"""What the tests in Python share: their command line, their scratch folder, how a program is started, how two
runs are compared, and how results are told.

    def main():
        options = driver.parser(__doc__, tools="null", jobs=True).parse_args()
        with driver.Results("system", options) as results:   # its folder; counts; prints failures
            for name, function in tests(options, results.folder):
                results.check(name, function)                # passes unless it raises Failed
        return results.status

Results ends with the line that tests/run reads: N passed, N failed; and N skipped, where something was.
"""

import argparse
import collections
import concurrent.futures
import difflib
import fnmatch
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "TERM": "dumb", "USER": "tester",
               "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "1"}
# INLAY_CACHE in the test's own environment: a folder for kept translations, so that a second run of a test finds them.
KEPT = {name: os.environ[name] for name in ("INLAY_CACHE",) if name in os.environ}
ENVIRONMENT |= KEPT


class Failed(Exception):
    """Its arguments: what is wrong, and lines that tell more."""


# --- command line and results

def parser(doc, tools=None, jobs=False, only="*"):
    """The options of every test; `doc` is the script's own text."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--build", default="build", type=os.path.abspath)
    made.add_argument("--only", default=only, metavar="PATTERN", help="names, with * and ?; several with commas")
    made.add_argument("--keep", action="store_true", help="leave the scratch folder")
    if tools is not None:
        made.add_argument("--tools", default=tools, help="default: %(default)s")
    if jobs:
        made.add_argument("--jobs", type=int, default=2)
    return made


def chosen(name, options):
    return any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))


def add_turns(parser):
    parser.add_argument("--in-turns", action="store_true", help="programs of the distribution are spared one tool each")


def tools_of(rows, options):
    """By a row's name. Where tools are in turns, what is no sample is spared one, the next row the next one."""
    found, turn = {}, 0
    for row in rows:
        found[row.name] = row.values.get("tools", options.tools).split(",")
        if options.in_turns and "tools" not in row.values and "{samples}" not in row.text:
            del found[row.name][turn % len(found[row.name])]
            turn += 1
    return found


def closing_line(passed, failed, skipped):
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


class Results:
    def __init__(self, test, options):
        self.test, self.options = test, options
        self.passed = self.failed = self.skipped = 0
        self.folder = None

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix=f"inlay-{self.test}-")
        return self

    def __exit__(self, kind, value, trace):
        if self.options.keep:
            print(f"kept {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        if kind is None:
            print(closing_line(self.passed, self.failed, self.skipped))

    @property
    def status(self):
        return 1 if self.failed else 0

    def skip(self, name, why):
        self.skipped += 1
        print(f"SKIP {self.test} {name}: {why}", flush=True)

    def count(self, name, wrong):
        """`wrong`: nothing, or lines that tell what is."""
        if not wrong:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAIL {self.test} {name}: {wrong[0]}", *wrong[1:], sep="\n     ", flush=True)

    def check(self, name, function):
        if chosen(name, self.options):
            self.count(name, problem(function))

    def check_rows(self, rows, run):
        """`run(row)` answers (why it is skipped, [(label, what is wrong)]); several at once. What is ready is told."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            begun = {pool.submit(run, row): row for row in rows}
            for done in concurrent.futures.as_completed(begun):
                row, (skipped, results) = begun[done], done.result()
                if skipped:
                    self.skip(row.name, skipped)
                for label, wrong in results:
                    self.count(label, wrong)


def problem(function, *arguments):
    """What is wrong, by calling it; None: nothing."""
    try:
        function(*arguments)
    except Failed as e:
        return e.args
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as e:
        return (repr(e),)
    return None


# --- tables

def flags_and_values(text, flags, values, where):
    """`a b=c` -> {a}, {b: c}; only names that are known."""
    try:
        words = shlex.split(text)
    except ValueError as e:
        sys.exit(f"{where}: {e}")
    given = {w for w in words if "=" not in w}, dict(w.split("=", 1) for w in words if "=" in w)
    unknown = (given[0] - set(flags)) | (given[1].keys() - set(values))
    if unknown:
        sys.exit(f"{where}: unknown option {unknown}")
    return given


class Row:
    """A line `name | options | command` of a table."""

    def __init__(self, line, where, flags, values):
        parts = [s.strip() for s in re.split(r"\s+\|(?=\s|$)", line, maxsplit=2)]
        if len(parts) != 3:
            sys.exit(f"{where}: not 'name | options | command'")
        self.name, options, self.text = parts
        self.flags, self.values = flags_and_values(options, flags, values, where)


def quote_is_open(text):
    try:
        shlex.split(text)
    except ValueError:
        return True
    return False


def read_table(path, flags, values):
    """Rows; a quoted newline is part of one."""
    rows, pending = [], ""
    with open(path) as f:
        for number, line in enumerate(f, 1):
            if not pending and (not line.strip() or line.startswith("#")):
                continue
            pending += line
            if quote_is_open(pending.replace("|", " ")):
                continue
            rows.append(Row(pending.rstrip("\n"), f"{path}:{number}", flags, values))
            pending = ""
    if pending:
        sys.exit(f"{path}: a quote is never closed")
    return distinct(rows, path)


def distinct(rows, path):
    twice = [n for n, k in collections.Counter(r.name for r in rows).items() if k > 1]
    if twice:
        sys.exit(f"{path}: {twice} stand twice")
    return rows


# --- programs

def single_stepping(emulator):
    """The option by which qemu's emulator makes a block of each instruction; newer ones have another."""
    said = subprocess.run([emulator, "-h"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True).stdout
    return "-one-insn-per-tb" if "-one-insn-per-tb" in said else "-singlestep"


def compilers_folder():
    """Where gcc keeps its parts, whatever its version."""
    return os.path.dirname(subprocess.run(["gcc", "-print-prog-name=cc1"], env=ENVIRONMENT, stdout=subprocess.PIPE,
                                          text=True).stdout.strip())


def fill(text, place):
    """What a table's row names: {samples}, {in}, and {gcc}, where cc1 and collect2 are."""
    if "{gcc}" in text:
        text = text.replace("{gcc}", compilers_folder())
    return text.replace("{samples}", place.samples).replace("{in}", place.inputs)


# The ways to build a program.
FORMS = {
    "dynamic": ["gcc", "-O1"],
    "no-pie": ["gcc", "-O2", "-no-pie"],
    "static": ["gcc", "-O2", "-static"],
    "static-pie": ["gcc", "-O1", "-static-pie"],
    "musl": ["musl-gcc", "-O1"],
    "musl-static": ["musl-gcc", "-O2", "-static"],
}


def build(form, source, program, *options):
    """Answers why it cannot be tried, or None. Fails when the source does not compile."""
    command = FORMS[form]
    if not shutil.which(command[0]):
        return f"there is no {command[0]}"
    done = run([*command, "-w", "-pthread", *options, source, "-o", program], 120, env=ENVIRONMENT)
    if done.status:
        raise Failed(f"{form}: compile", *as_lines(done.stderr)[-6:])
    return None


Outcome = collections.namedtuple("Outcome", "status stdout stderr")  # status: a number, or why there is none


def run(argv, limit, cwd=None, env=None, stdin=os.devnull, executable=None, before=None):
    """Runs a program in a session of its own and ends all of it afterwards. Output goes through files, so that
    what a daemon holds open is not waited for."""
    with open(stdin, "rb") as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, executable=executable, cwd=cwd, env=env, stdin=source, stdout=out, stderr=err,
                                   start_new_session=True, preexec_fn=before)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = f"none: still running after {limit:.0f} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()
        out.seek(0)
        err.seek(0)
        return Outcome(status, out.read(), err.read())


def rewrite(inlay, argv, limit=300, env=None):
    """`inlay rewrite` with these words, which must succeed; what it said."""
    done = run([inlay, "rewrite", *argv], limit, env=env)
    said = done.stderr.decode(errors="replace").strip()
    if done.status != 0:
        raise Failed(f"rewriting: status {done.status}, {said[-400:]}")
    return said


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


# --- comparing

def as_lines(data, mask=None):
    text = data.decode(errors="backslashreplace")
    return (re.sub(mask, "", text) if mask else text).splitlines()


def differences(native, here, flags=(), mask=None):
    """Lines that tell how two outcomes differ; none when they do not."""
    told = [] if native.status == here.status else [f"status: native {native.status}, here {here.status}"]
    for name, flag in (("stdout", "noout"), ("stderr", "noerr")):
        if flag in flags:
            continue
        a, b = as_lines(getattr(native, name), mask), as_lines(getattr(here, name), mask)
        if a != b:
            diff = list(difflib.unified_diff(a, b, f"native {name}", f"{name} here", "", "", 1, ""))
            told += diff[:16] + ([f"... {len(diff) - 16} lines more"] if len(diff) > 16 else [])
    if told and "noerr" in flags and here.stderr != native.stderr:
        told += ["its stderr:"] + as_lines(here.stderr)[-6:]
    return [line[:300] for line in told]
