#!/usr/bin/python3
"""Entries and exits in their order: what is recorded of each thread is what a single-stepper saw.

  tests/trace/sequence.py [--build DIR] [--only PATTERN] [--all] [--keep]

follower.c steps through a program natively and knows nothing but symbols, calls, returns and the stack pointer. A
recording of the same program (all its procedures) has to tell the same, entry by entry and exit by exit, of each thread
of each process: of samples (sample.cc, ways.cc) and, with --all, of more of them and of programs of the distribution,
under each engine and in instrumented objects."""

import collections
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support", f"{HERE}/../exact"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402
from elf import Elf  # noqa: E402
import json  # noqa: E402

LIMIT = 600
STUB = 16  # a stub for an import may push its number, and its image's, before it jumps
ENGINES = ("jit", "live", "rewrite", "object")
WAYS = "jumps recursion exceptions longjmp signals on-stack threads contexts hands fork vfork exec callbacks".split()
# Without children: when a SIGCHLD comes is chance; and none that reads its own list of mappings in pieces of a page, as
# grep does: of moved code it has more lines.
PROGRAMS = {
    "true": ["/usr/bin/true"],
    "ls": ["/usr/bin/ls", "-l", "/etc/passwd"],
    "sort": ["/usr/bin/sort", "--parallel=1", "-S", "1M", "/etc/passwd"],
    "dash": ["/usr/bin/dash", "-c", "f() { echo $1; }; f 1; for i in 3 4; do f $i; done; trap 'f 6' USR1; kill -USR1 $$"],
    "bash": ["/usr/bin/bash", "--norc", "-c", "f() { echo $(($1 * 2)); }; f 3; x=12; echo ${x/1/one}; trap 'f 6' USR1; kill -USR1 $$; true"],
    "perl": ["/usr/bin/perl", "-e", "eval { die 1 }; my @a = sort { $a <=> $b } (3, 1, 2); print \"@a\\n\" =~ s/1/one/r;"],
    "gawk": ["/usr/bin/gawk", "-F:", "{ n[$NF]++; s = s substr($1, 1, 2) } END { for (k in n) c += n[k]; print c, length(s) }", "/etc/passwd"],
    "dc": ["/usr/bin/dc", "-e", "20 [d1-d1<F*]dsFxp"],
    "sed": ["/usr/bin/sed", "-n", "s/^\\([a-z]*\\):.*/\\1/p", "/etc/passwd"],
    "cut": ["/usr/bin/cut", "-d:", "-f1,7", "/etc/passwd"],
}
THUNK = 17  # bytes of one that gcc makes, whose symbols have no size
THUNKED = ["-O2", "-fcf-protection=none", "-Wl,-z,now"]
THUNKS = {"thunk": "-mindirect-branch=thunk -mfunction-return=thunk", "inline": "-mindirect-branch=thunk-inline",
          "extern": "-mindirect-branch=thunk-extern -mfunction-return=thunk-extern",
          "register": "-mindirect-branch=thunk-extern -mindirect-branch-register -fno-pie -no-pie", "none": "-fno-pie -no-pie"}
SIGNS = {"enter": "+", "leave": "-", "left": "x", "open": "x"}
SOME = {"jit": ("on-stack",), "live": ("contexts",), "rewrite": ("jumps",), "object": ("longjmp",)}
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/", "USER": "tester", "PERL_HASH_SEED": "0",
               "PERL_PERTURB_KEYS": "0"} | driver.KEPT


def symbols(path):
    """{address: (size, name)}: the longest of those that begin at one place."""
    found = {}
    for (address, size), names in Elf(path).functions().items():
        name = sorted(names)[0]
        if size > found.get(address, (0, ""))[0]:
            found[address] = (size, name)
    return found


def stacks(path):
    return [place for place, names in Elf(path).objects().items() if any("stack_" in name for name in names)]


class Program:
    """A program, with where its procedures are: {address: (size, name, what a stub leaves on the stack)}."""

    def __init__(self, path, procs, beside=(), thunks=()):
        self.path, self.procs, self.beside, self.thunks = path, procs, beside, thunks
        self.known = {name for _, name, _ in procs.values()}

    def ranges(self, at, parts):
        with open(at, "w", encoding="utf-8") as f:
            print(f"b {min(vaddr - vaddr % 4096 for _, vaddr, _ in Elf(self.path).loads):x}", file=f)
            for address, (size, name, stub) in self.procs.items():
                whole = name.split(".cold")[0]
                is_part = parts and whole != name and whole in self.known
                print(f"{'c' if is_part else 'p'} {address:x} {size:x} {stub:x} {whole if is_part else name}", file=f)
            for address, size in self.beside:
                print(f"s {address:x} {size:x}", file=f)
            for address, size in self.thunks:
                print(f"t {address:x} {size:x}", file=f)


def run(argv, cwd, **more):
    done = subprocess.run(["setarch", "-R", *argv], capture_output=True, timeout=LIMIT, cwd=cwd, env=ENVIRONMENT | more, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Sequences:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.truths, self.rewritten = f"{build}/inlay", folder, {}, {}
        self.build, self.objects = build, {}
        self.follower = self.compiled("follower.c", "gcc", "-O2", "-Wall", "-Wextra", "-Werror")

    def compiled(self, source, compiler, *flags, out=None):
        path = f"{self.folder}/{out or source.split('.')[0]}"
        status, _, text = run([compiler, *flags, f"{HERE}/{source}", "-o", path], self.folder)
        if status:
            raise Failed(f"{source} is not compiled", text)
        return path

    def sample(self, name):
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            self.compiled(f"{name}.cc", "g++", "-O2", "-pthread", "-Wl,-z,now")
        return Program(path, {at: (size, symbol, 0) for at, (size, symbol) in symbols(path).items()}, stacks(path))

    def thunked(self, name, flags):
        """thunked.c, whose jumps and returns go as the flags say."""
        sources = [f"{HERE}/thunked.c", *([f"{HERE}/thunks.S"] if "extern" in flags else [])]
        path = f"{self.folder}/thunked-{name}"
        for command, out in (["gcc"], path), ([self.inlay, "wrap", "gcc"], f"{path}.objects"):
            status, _, text = run([*command, *THUNKED, *flags.split(), *sources, "-o", out], self.folder)
            if status:
                raise Failed("it is not built", text[-400:])
        self.objects[path] = f"{path}.objects"
        procs = {at: (size, symbol, 0) for at, (size, symbol) in symbols(path).items() if not symbol.startswith("__x86_")}
        names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        return Program(path, procs, thunks=[(int(at, 16), THUNK) for at in re.findall(r"^(\w+) \w __x86_", names, re.M)])

    def truth(self, program, argv, label, parts=False):
        """(what it answered and wrote, {(process, thread): [sign and name]}). `parts`: NAME.cold belongs to NAME."""
        key = (program.path, parts, *argv)
        if key not in self.truths:
            ranges, out = f"{self.folder}/ranges", f"{self.folder}/{label}.truth"
            program.ranges(ranges, parts)
            status, text, wrong = run([self.follower, "-r", ranges, "-o", out, "--", program.path, *argv], self.folder)
            found = collections.defaultdict(list)
            with open(out, encoding="utf-8") as f:
                for line in f:
                    pid, tid, rest = line.rstrip("\n").split(" ", 2)
                    found[pid, tid].append(rest)
            if not found:
                raise Failed("nothing was seen", wrong[-400:])
            self.truths[key] = ((status, text), dict(found))
        return self.truths[key]

    # --- recordings

    def start(self, engine, program, argv, out):
        more = {}
        if engine in ("jit", "live"):
            command = [self.inlay, "trace", f"--engine={engine}", "-N", "__x86_*", "-o", out, "--", program.path, *argv]
        elif engine == "object":
            command, more = [self.built_of_objects(program), *argv], {"INLAY_OUT": out}
        else:
            if program.path not in self.rewritten:
                path = self.rewritten[program.path] = f"{self.folder}/{os.path.basename(program.path)}.rewritten"
                status, _, wrong = run([self.inlay, "rewrite", f"--result={path}.trace", "trace", "--not-proc", "__x86_*", program.path, "-o", path], self.folder)
                if status:
                    raise Failed("it is not rewritten", wrong[-400:])
            command = [self.rewritten[program.path], *argv]  # without INLAY_OUT: the environment is a shell's input
            done = run(command, self.folder)
            for path in files(f"{command[0]}.trace"):
                os.rename(path, out + path[len(f"{command[0]}.trace"):])
            return done
        return run(command, self.folder, **more)

    def built_of_objects(self, program):
        if program.path not in self.objects:
            name = os.path.basename(program.path)
            path = self.objects[program.path] = f"{self.folder}/{name}.objects"
            status, _, wrong = run([self.inlay, "wrap", "g++", "-O2", "-pthread", f"{HERE}/{name}.cc", "-o", path], self.folder)
            if status:
                raise Failed("it is not built", wrong[-400:])
        return self.objects[program.path]

    def read(self, what, path):
        status, text, wrong = run([self.inlay, "trace", *what, "--format=json", "--top=0", path], self.folder)
        if status:
            raise Failed("the recording cannot be read", wrong)
        return json.loads(text)

    def name(self, engine, program, entry):
        """A procedure's name as the truth has it; None: it knows nothing of it."""
        if engine == "object":  # another program's addresses
            return entry["symbol"] if entry["symbol"] in program.known else None
        return program.procs.get(entry["file_address"], (0, None))[1]

    def left_alone(self, engine, program, sessions):
        """Names of procedures that are not instrumented."""
        if engine == "object":
            ways = subprocess.run(["nm", self.objects[program.path]], capture_output=True, text=True, check=True).stdout
            done = {line.split()[-1][:-len(".inlay")] for line in ways.splitlines() if line.endswith(".inlay")}
            return {name for name in program.known if name.split(".cold")[0] not in done}
        gone = {p["file_address"] for one in sessions for p in one["asked_for"]
                if not p["instrumented"] and p["how"] != "its code was not run"}
        return {name for at, (_, name, _) in program.procs.items() if at in gone}

    def program_of(self, argv, path):
        """A program that has no symbols: its procedures are those that the recording was asked for."""
        sessions = self.read(["report", "--asked-for"], path)
        asked = [p for p in sessions[0]["asked_for"] if p["image"] == os.path.basename(os.path.realpath(argv[0])) and p["size"]]
        plt = [(low, high) for name, low, high in sections(argv[0]) if name.startswith(".plt")]
        is_stub = lambda at: any(low <= at < high for low, high in plt)
        procs = {p["file_address"]: (p["size"], f"{p['name']}@{p['file_address']:x}", STUB if is_stub(p["file_address"]) else 0)
                 for p in asked if p["instrumented"] or p["how"] == "its code was not run"}
        return Program(argv[0], procs)

    def recorded(self, engine, program, argv, label):
        base = f"{self.folder}/{label}.{engine}"
        for old in files(base):
            os.unlink(old)
        result = self.start(engine, program, argv, base)
        found, gone = {}, set()
        for path in files(base):
            sessions = self.read(["report", "--asked-for"], path)
            wanted = os.path.basename(program.path)
            for one in self.read(["list", "--entries"], path):
                if engine in ("jit", "live") and os.path.basename(one["program"]) != wanted:
                    continue
                entries = [(SIGNS[e["event"]], self.name(engine, program, e)) for e in one["entries"]]
                found[len(found)] = [f"{sign} {name}" for sign, name in entries if name]
            gone |= self.left_alone(engine, program, sessions)
        return result, found, gone


def sections(path):
    done = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True)
    rows = re.findall(r"\] (\S+) +\S+ +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) ", done.stdout)
    return [(name, int(at, 16), int(at, 16) + int(size, 16)) for name, at, size in rows]


def files(base):
    folder, name = os.path.split(base)
    return sorted(f"{folder}/{one}" for one in os.listdir(folder) if one == name or re.fullmatch(rf"{re.escape(name)}\.\d+", one))


def first_difference(found, wanted):
    at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
    show = lambda what, list_: f"{what}: ...{' | '.join(list_[max(at - 4, 0):at])} >>> {' | '.join(list_[at:at + 5])}"
    return [f"{len(found)} entries and exits, not {len(wanted)}; the first that differs is {at}",
            show("recorded", found), show("stepped ", wanted)]


def compare(found, wanted):
    """Threads that are in one only; each list once."""
    left, right = collections.Counter(map(tuple, found)), collections.Counter(map(tuple, wanted))
    only, missing = list((left - right).elements()), list((right - left).elements())
    wrong = []
    for one in missing:
        near = max(only, key=lambda o: (sum(a == b for a, b in zip(o, one)), -abs(len(o) - len(one))), default=())
        if near in only:
            only.remove(near)
        wrong += first_difference(list(near), list(one))
    wrong += [f"a thread that was not there: {' | '.join(one[:8])}" for one in only]
    return wrong


def check(s, engine, program, argv, label):
    result, threads = s.truth(program, argv, label, engine == "object")
    done, found, gone = s.recorded(engine, program, argv, label)
    if result != done[:2]:
        raise Failed(f"status {done[0]} instead of {result[0]}, or other output", done[2][-300:])
    keep = lambda list_: [e for e in list_ if e[2:] not in gone]
    if engine == "rewrite" and argv == ["exec"]:  # which writes its file anew when it executes itself
        threads = {k: v for k, v in threads.items() if "+ tails" in v}
    if engine == "object":  # running on into what lies behind is seen when that one is entered
        threads = {k: ["x falls" if e == "- falls" else e for e in v] for k, v in threads.items()}
    if program.path.endswith("-inline"):  # the jump is a return with a word on the stack, which may be seen when the next is entered
        threads, found = ({k: [e.replace("x ", "- ") for e in v] for k, v in one.items()} for one in (threads, found))
    wrong = compare([v for v in map(keep, found.values()) if v], [v for v in map(keep, threads.values()) if v])
    if wrong:
        raise Failed(wrong[0], *wrong[1:12])


def check_results(s, engine):
    """A jump to a piece that only returns is a return, where a result is there to be had."""
    program, out = s.thunked("extern", THUNKS["extern"]), f"{s.folder}/results.{engine}"
    status, _, wrong = run([s.inlay, "trace", f"--engine={engine}", "-F", "other", "-R", "other/d", "-o", out, "--", program.path], s.folder)
    if status:
        raise Failed(f"status {status}", wrong[-300:])
    found = [call.get("result") for one in s.read(["list"], out) for call in one["calls"]]
    if len(found) < 40 or None in found or found[:2] != ["9", "30"]:
        raise Failed(f"{len(found)} calls, {found.count(None)} without a result", *found[:4])


# --- a tool that comes while a program runs, and goes

def a_round(s, program):
    """What each round of cycle.cc is, as a single-stepper saw it."""
    _, threads = s.truth(program, ["1", "2"], "cycle")
    steps = next(iter(threads.values()))
    begin = steps.index("+ turn")
    return steps[begin:steps.index("- turn") + 1]


def piece_of(found, whole):
    """None, or what is wrong: the rest of a round, whole ones, the beginning of one, in which some calls are open."""
    while found and found[-1][0] == "x": # open when the tool went, or left: what went before tells
        found = found[:-1]
    begin = found.index("+ turn") if "+ turn" in found else len(found)
    rest = iter(whole)
    if not all(step in rest for step in found[:begin]):
        return ["before the first whole round", " | ".join(found[:begin][:20])]
    wanted = (whole * (len(found) // len(whole) + 1))[:len(found) - begin]
    return first_difference(found[begin:], wanted) if found[begin:] != wanted else None


def await_turns(s, out):
    """Until each thread has begun a round while it was recorded."""
    end = time.monotonic() + LIMIT
    while True:
        threads = s.read(["list", "--entries"], out)
        if len(threads) == 3 and all(any(e["symbol"] == "turn" for e in one["entries"]) for one in threads):
            return
        if time.monotonic() > end:
            raise Failed(f"records of {len(threads)} threads")
        time.sleep(0.05)


def check_attached(s, cycles):
    program = s.sample("cycle")
    whole = a_round(s, program)
    running = subprocess.Popen([program.path, "3"], stdout=subprocess.PIPE, cwd=s.folder)
    try:
        running.stdout.readline()
        for k in range(cycles):
            out = f"{s.folder}/cycle.{k}"
            for command in (["trace", "-p", str(running.pid), "-o", out], ["detach", str(running.pid)]):
                status, _, wrong = run([s.inlay, *command], s.folder)
                if status or running.poll() is not None:
                    raise Failed(f"{command[0]}: status {status}, the process's {running.poll()}", wrong[-300:])
                if k % 3 and command[0] == "trace":
                    await_turns(s, out)
            threads = s.read(["list", "--entries"], out)
            gone = s.left_alone("live", program, s.read(["report", "--asked-for"], out))
            for one in threads:
                found = [f"{SIGNS[e['event']]} {s.name('live', program, e)}" for e in one["entries"] if s.name("live", program, e)]
                ends = [e["event"] for e in one["entries"]]
                if "open" in ends[:len(ends) - ends.count("open")] or "left" in ends[len(ends) - ends.count("open"):]:
                    raise Failed(f"cycle {k}, thread {one['thread']}: what is open is told in between", *ends[-20:])
                wrong = piece_of([e for e in found if e[2:] not in gone], [e for e in whole if e[2:] not in gone])
                if wrong:
                    raise Failed(f"cycle {k}, thread {one['thread']}: {wrong[0]}", *wrong[1:])
            if k % 3 and len(threads) != 3:
                raise Failed(f"cycle {k}: records of {len(threads)} threads")
        out = f"{s.folder}/cycle.killed"
        run([s.inlay, "trace", "-p", str(running.pid), "-o", out], s.folder)
        await_turns(s, out)
        running.kill()
        running.wait()
        open_at_end = [e["symbol"] for one in s.read(["list", "--entries"], out) for e in one["entries"] if e["event"] == "open"]
        if "turn" not in open_at_end:
            raise Failed("calls of a process that was killed are not told as open", *open_at_end)
    finally:
        running.kill()
        running.wait()


def check_program(s, engine, argv, label):
    """One of the distribution's: it is recorded to learn of its procedures, stepped through, and recorded."""
    path = f"{s.folder}/{label}.first.{engine}"
    if engine == "rewrite":
        s.rewritten.pop(argv[0], None)
    done = s.start(engine, Program(argv[0], {}), argv[1:], path)
    if done[0]:
        raise Failed(f"status {done[0]}", done[2][-300:])
    s.truths.clear()
    check(s, engine, s.program_of(argv, path), argv[1:], label)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true", help="all ways, and programs of the distribution")
    options = parser.parse_args()
    with driver.Results("sequence", options) as results:
        s = Sequences(options.build, results.folder)
        for engine in ENGINES:
            for way in WAYS if options.all else SOME[engine]:
                results.check(f"{way} {engine}", lambda e=engine, w=way: check(s, e, s.sample("ways"), [w], w))
        for name, flags in THUNKS.items():
            for engine in ENGINES if options.all else ("jit", "object"):
                results.check(f"thunks {name} {engine}",
                              lambda e=engine, n=name, f=flags: check(s, e, s.thunked(n, f), [], f"thunked-{n}"))
        for engine in ENGINES[:2]:
            results.check(f"results {engine}", lambda e=engine: check_results(s, e))
        results.check("attached", lambda: check_attached(s, 20 if options.all else 3))
        for name, argv in PROGRAMS.items() if options.all else ():
            for engine in ENGINES[:2] if name == "bash" else ENGINES[:3]:  # bash looks at its own path
                results.check(f"{name} {engine}", lambda e=engine, n=name, a=argv: check_program(s, e, a, n))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
