#!/usr/bin/python3
"""Every x86-64 program of this machine, rewritten, says the same as before.

  tests/rewrite/all.py [--build DIR] [--sample | --some N] [--tool null] [--jobs 2] [--only PATTERN]

Each program of /usr/bin, /usr/games and /usr/sbin runs with --version or --help, whichever natively ends
within ten seconds and prints something; then the rewritten one does, and must print the same and end with
the same status. --sample takes the fixed forty of `make test`, --some N every so many of all, so that N are
left. With a tool that reports (bbcount), its report must be there and must have counted.

Programs run without network, in a process namespace of their own, with / read-only, from an empty folder
that is their home; the rewritten file is mounted over the original, so that path, name and neighbours are
what they were. Without the right to do so they run under the original's name from another place, and names
of files are masked; what a program may do to the machine is then only held back by the list SKIPPED.

Answers, for each program: equal; *differs*, a failure; *refused*, where the rewriter says why it
would not write a file; *unfit*, where no native run can be compared. Prints a table of all that is not
equal, and at the end N passed, N failed. That 99 % of what was fit are equal is one of the tests.
"""

import collections
import concurrent.futures
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [f"{os.path.dirname(os.path.abspath(__file__))}/../support"]
import driver  # noqa: E402

FOLDERS = ("/usr/bin", "/usr/games", "/usr/sbin")
RUN_LIMIT = 10
REWRITE_LIMIT = 600
EQUAL_AT_LEAST = 0.99
INSIDE = "INLAY_TEST_INSIDE"

# Never run, not even in a namespace.
SKIPPED = {
    **dict.fromkeys(("shutdown", "reboot", "poweroff", "halt", "init", "telinit", "systemd", "ctrlaltdel",
                     "rtcwake"), "stops the machine"),
    **dict.fromkeys(("killall5",), "kills all processes"),
    **dict.fromkeys(("mkfs", "mke2fs", "mkfs.bfs", "mkfs.cramfs", "mkfs.minix", "mkswap", "wipefs", "blkdiscard",
                     "fsfreeze", "fstrim", "resize2fs", "badblocks"), "writes to disks"),
    **dict.fromkeys(("swapon", "swapoff", "pivot_root", "switch_root", "hwclock", "zramctl", "sysctl"),
                    "changes the system's state"),
    **dict.fromkeys(("pwconv", "pwunconv", "grpconv", "grpunconv", "update-passwd", "unix_update", "cppw", "newusers",
                     "chpasswd", "chgpasswd"), "rewrites the accounts"),
    **dict.fromkeys(("agetty", "sulogin", "login"), "takes the terminal"),
}

# Several processes print, in any order: lines are compared without it.
UNORDERED = {"groff"}

# Of packages that every Debian has, or that scripts/install-deps installs.
SAMPLE = """apt-get b2sum bash bzip2recover chattr choom cmp dash df diff dpkg dpkg-deb du findmnt getconf gpgv
iconv infocmp ldconfig lsblk luac5.4 make mawk nsenter perl ps python3 sdiff sha512sum stty tic top useradd xargs
x86_64-linux-gnu-as x86_64-linux-gnu-g++ x86_64-linux-gnu-objcopy x86_64-linux-gnu-readelf zic zstd""".split()

CLONE_NEWNS, MS_BIND = 0x20000, 4096
LIBC = ctypes.CDLL(None, use_errno=True)


class Program:
    def __init__(self, name, path, file):
        self.name, self.path, self.file = name, path, file


def is_program(path):
    """64 bits, x86-64, and a program (or what passes for one: it may be executed)."""
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return False
    return head[:6] == b"\x7fELF\2\1" and head[18:20] == b"\x3e\0" and os.access(path, os.X_OK)


def find_programs():
    """Name -> program, each file once, under its own name where it has one there."""
    found = {}
    for folder in FOLDERS:
        for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            path = f"{folder}/{entry}"
            file = os.path.realpath(path)
            if not is_program(file):
                continue
            key = (os.stat(file).st_dev, os.stat(file).st_ino)
            known = found.get(key)
            if not known or entry == os.path.basename(file) and known.name != os.path.basename(known.file):
                found[key] = Program(entry, path, file)
    return sorted(found.values(), key=lambda p: p.name)


def chosen(programs, arguments):
    if arguments.only != "*":
        return [p for p in programs if driver.chosen(p.name, arguments)]
    if arguments.sample or arguments.some:
        programs = [p for p in programs if p.name not in SKIPPED]
    if arguments.sample:
        files = {name: os.path.realpath(shutil.which(name, path=driver.PATH) or "") for name in SAMPLE}
        for name in sorted(name for name in SAMPLE if files[name] not in {p.file for p in programs}):
            print(f"SKIP all {name}: not installed")
        return [p for p in programs if p.file in files.values()]
    if arguments.some and arguments.some < len(programs):
        step = len(programs) / arguments.some
        return [programs[int(i * step)] for i in range(arguments.some)]
    return programs


# --- the place where programs run

def enter_namespaces():
    """Starts this test again in namespaces of its own, where that is allowed."""
    if INSIDE in os.environ:
        return os.environ[INSIDE] == "yes"
    command = ["unshare", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    able = shutil.which("unshare") and os.geteuid() == 0 and subprocess.run(
        [*command, "true"], capture_output=True).returncode == 0
    if not able:
        os.environ[INSIDE] = "no"
        return False
    sys.stdout.flush()
    environment = os.environ | {INSIDE: "yes"}
    os.execvpe(command[0], [*command, sys.executable, os.path.abspath(__file__), *sys.argv[1:]], environment)


def close_root(scratch):
    """/ becomes read-only, but for the scratch folder. A test that cannot do so goes on without."""
    for words in (["--bind", scratch, scratch], ["-o", "remount,bind,ro", "/"]):
        if subprocess.run(["mount", *words], capture_output=True).returncode:
            print(f"all: mount {' '.join(words)} failed; / stays writable")
            return


class Place:
    def __init__(self, arguments, scratch, mounted):
        self.inlay = f"{arguments.build}/inlay"
        self.tool, self.scratch, self.mounted = arguments.tool, scratch, mounted

    def environment(self, home):
        return driver.ENVIRONMENT | {"HOME": home, "PAGER": "cat"}


class Outcome:
    """What a run left: its status, and what it printed, both streams."""

    def __init__(self, done, unlike):
        self.status = done.status
        self.streams = [text[:1 << 22].decode(errors="backslashreplace") for text in (done.stdout, done.stderr)]
        self.unlike = unlike

    def printed(self):
        return any(s.strip() for s in self.streams)

    def masked(self, numbers, unordered=False):
        """Addresses, and where native runs differ in them all numbers, are taken out."""
        texts = self.streams
        for a, b in self.unlike:
            texts = [t.replace(a, b) for t in texts]
        texts = [re.sub(r"0x[0-9a-f]{6,}|\b7f[0-9a-f]{10}\b|\$0000[0-9A-F]{12}\b", "ADDRESS", t) for t in texts]
        if numbers:
            texts = [re.sub(r"\d+", "N", t) for t in texts]
        if unordered:
            texts = ["\n".join(sorted(t.splitlines())) for t in texts]
        return self.status, texts


def run(program, place, option, replacement=None, result=None):
    """One run; `replacement` is executed instead, under the original's name and, where it can be mounted,
    in its place. None when the time is over."""
    home = driver.fresh(f"{place.scratch}{program.path}/home")
    environment = place.environment(home) | ({"INLAY_OUT": result} if result else {})
    executable, unlike = program.path, []
    if replacement and not place.mounted:
        executable = replacement
        unlike = [(os.path.dirname(replacement), os.path.dirname(program.path))]

    def mount():
        if LIBC.unshare(CLONE_NEWNS) or LIBC.mount(replacement.encode(), program.file.encode(), None, MS_BIND, None):
            os._exit(126)

    done = driver.run([program.path, option], RUN_LIMIT * (3 if replacement else 1), executable=executable, cwd=home,
                      env=environment, before=mount if replacement and place.mounted else None)
    return None if isinstance(done.status, str) else Outcome(done, unlike)


# --- one program

class Verdict:
    def __init__(self, program, kind, detail="", moved=None):
        self.program, self.kind, self.detail, self.moved = program, kind, detail, moved


def reference(program, place):
    """(option, outcome, mask numbers?) of a native run that can be compared, or why there is none."""
    why, free = "natively prints nothing within 10 s", program.name in UNORDERED
    for option in ("--version", "--help"):
        first = run(program, place, option)
        if not first or not first.printed() or first.status in (126, 127):
            continue
        second = run(program, place, option)
        for numbers in (False, True):
            if second and first.masked(numbers, free) == second.masked(numbers, free):
                return (option, first, numbers), None
        why = "no two native runs are equal"
    return None, why


def first_difference(native, here):
    if native[0] != here[0]:
        return f"status {here[0]} instead of {native[0]}"
    for a, b in zip(native[1], here[1]):
        for x, y in zip(a.splitlines() + ["(end)"], b.splitlines() + ["(end)"]):
            if x != y:
                return f"printed {y[:100]!r} instead of {x[:100]!r}"
    return "line ends differ"


def rewrite(program, place, out):
    """(what the rewriter said, None) or (None, why it refused)."""
    options = ["--format=json"] if place.tool in ("bbcount", "inscount") else []
    try:
        done = subprocess.run([place.inlay, "rewrite", place.tool, *options, program.file, "-o", out],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=REWRITE_LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"DIFFERS rewriting takes over {REWRITE_LIMIT} s"
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0:
        return said, None
    if done.returncode != 1 or not said or os.path.exists(out):
        return None, f"DIFFERS rewriting: status {done.returncode}, {said[-200:] or 'without a word'}"
    return None, said.splitlines()[-1]


def counted(result):
    """Why a tool's report is not what it should be, or None."""
    try:
        with open(result) as f:
            report = json.load(f)
    except (OSError, ValueError) as e:
        return f"the tool's report: {e}"
    return None if report.get("blocks") or report.get("instructions") else "nothing was counted"


def examine(program, place):
    if program.name in SKIPPED:
        return Verdict(program, "skipped", SKIPPED[program.name])
    folder = place.scratch + program.path  # two may have one name
    os.makedirs(folder)
    try:
        found, why = reference(program, place)
        if not found:
            return Verdict(program, "unfit", why)
        option, native, numbers = found
        out = f"{folder}/{os.path.basename(program.file)}"
        said, refused = rewrite(program, place, out)
        if refused:
            kind, _, rest = refused.partition(" ")
            return Verdict(program, "differs", rest) if kind == "DIFFERS" else Verdict(program, "refused", refused)
        result = f"{folder}/result" if place.tool in ("bbcount", "inscount") else None
        share = re.search(r"([\d.]+) % of", said)
        moved = float(share[1]) if share else None
        here = run(program, place, option, out, result)
        if not here:
            return Verdict(program, "differs", f"{option}: still running after {3 * RUN_LIMIT} s", moved)
        a, b = (o.masked(numbers, program.name in UNORDERED) for o in (native, here))
        wrong = f"{option}: {first_difference(a, b)}" if a != b else None
        if not wrong and result and moved:
            wrong = counted(result)
        return Verdict(program, "differs" if wrong else "equal", wrong or option, moved)
    except OSError as e:
        return Verdict(program, "differs", repr(e))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(verdicts):
    """The table of what is not equal, and how much was moved."""
    kinds = collections.defaultdict(list)
    for v in verdicts:
        kinds[v.kind].append(v)
    for kind in ("differs", "refused", "unfit", "skipped"):
        for v in kinds[kind]:
            print(f"{'FAIL all ' if kind == 'differs' else ''}{kind:8} {v.program.name:28} {v.detail[:300]}")
    shares = sorted((v.moved, v.program.name) for v in verdicts if v.moved is not None)
    if shares:
        low = [f"{name} {share:.0f}" for share, name in shares if share < 50]
        print(f"all: share of the code that moved: median {shares[len(shares) // 2][0]:.1f} %"
              + (f"; under half: {', '.join(low)}" if low else ""))
    return kinds


def main():
    parser = driver.parser(__doc__, jobs=True)
    parser.add_argument("--tool", default="null")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--some", type=int, default=0, metavar="N")
    parser.add_argument("--progress", action="store_true", help="a line for each program as it is done")
    arguments = parser.parse_args()
    mounted = enter_namespaces()
    if not mounted:
        print("all: no namespaces here: programs run as they are")
    scratch = tempfile.mkdtemp(prefix="inlay-all-")
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    if mounted:
        close_root(scratch)
    place = Place(arguments, scratch, mounted)
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for verdict in pool.map(lambda p: examine(p, place), chosen(find_programs(), arguments)):
            verdicts.append(verdict)
            if arguments.progress:
                print(f"{verdict.kind:8} {verdict.program.name}: {verdict.detail[:300]}", file=sys.stderr, flush=True)
    if not arguments.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    kinds = report(verdicts)
    equal, differ, refused = (len(kinds[k]) for k in ("equal", "differs", "refused"))
    fit = equal + differ + refused
    enough = fit > 0 and equal >= EQUAL_AT_LEAST * fit
    print(f"all: {fit} programs, {equal} equal, {differ} differ, {refused} refused; {len(kinds['unfit'])} unfit, "
          f"{len(kinds['skipped'])} skipped")
    if not enough:
        print(f"FAIL all: less than {EQUAL_AT_LEAST:.0%} are equal")
    print(f"{equal + enough} passed, {differ + (not enough)} failed")
    return 1 if differ or not enough else 0


if __name__ == "__main__":
    sys.exit(main())
