#!/usr/bin/python3
"""inlay trace: what is recorded is what the program did, under each engine; and what is made of it holds together.

  tests/trace/run.py [--build DIR] [--only PATTERN] [--keep]

The program (sample.cc) calls procedures in ways that are known: tail calls, recursion, exceptions and longjmp through
frames, signals, threads of which one is cancelled, coroutines, fork, exec. Each way's tree of calls stands below, with how
often each is called. How often each procedure is entered is compared with a single-stepper, too."""

import collections
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402
import browse  # noqa: E402
import events  # noqa: E402
import exports  # noqa: E402
import languages  # noqa: E402
import routines  # noqa: E402
from exports import calls  # noqa: E402

LIMIT = 300
ENGINES = ("jit", "live", "rewrite")
NAMES = ("main leaf first second third down thrower catcher jumper lands after handler raiser worker endless threads "
         "yields body resumes coroutines spin inner outer").split()

AFTER = {"main/after": 1, "main/after/leaf": 1}


def chain(under, name, length):
    return {"/".join([under] + [name] * n): 1 for n in range(1, length + 1)}


TREES = {
    "tail": {"main/first": 2, "main/second": 2, "main/third": 2, "main/third/leaf": 2, "main/leaf": 1},
    "recursion": chain("main", "down", 51) | {"main/leaf": 1},
    "throw": {"main/catcher": 1, "main/catcher/leaf": 1} | chain("main/catcher", "thrower", 10) | AFTER,
    "longjmp": {"main/lands": 1, "main/lands/leaf": 1} | chain("main/lands", "jumper", 5) | AFTER,
    "signal": {"main/raiser": 1, "main/raiser/handler": 1, "main/raiser/handler/leaf": 1, "main/raiser/leaf": 1} | AFTER,
    "threads": {"main/threads": 1, "worker": 3, "worker/leaf": 600, "endless": 1, "endless/leaf": 1} | AFTER,
    "coroutines": {"main/coroutines": 1, "main/coroutines/resumes": 8, "main/coroutines/resumes/body": 2,
                   "main/coroutines/resumes/body/leaf": 6, "main/coroutines/resumes/body/yields": 6} | AFTER,
    "time": {"main/outer": 1, "main/outer/inner": 2, "main/outer/inner/spin": 2, "main/outer/spin": 1},
}
TREES["stack"] = TREES["signal"]


class Traced:
    def __init__(self, build, folder, source="sample.cc", flags=()):
        self.inlay, self.folder, self.build = f"{build}/inlay", folder, build
        self.program, self.rewritten = f"{folder}/{source.split('.')[0]}", {}
        if not os.path.exists(self.program):
            compiler = "g++" if source.endswith("cc") else "gcc"
            self.command([compiler, "-O2", "-pthread", *flags, f"{HERE}/{source}", "-o", self.program])

    def of(self, program):
        """Of a program that is there."""
        other = copy.copy(self)
        other.program, other.rewritten = program, {}
        return other

    def command(self, argv, status=0, **more):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, **{"cwd": self.folder} | more)
        if done.returncode != status:
            raise Failed(f"{' '.join(argv)}: status {done.returncode}", *done.stderr.splitlines()[-5:])
        return done

    def record(self, engine, mode, options=(), status=0, names=NAMES):
        """The recording's path."""
        out = f"{self.folder}/{engine}-{mode[0]}.trace"
        only = [word for name in names for word in ("-F", name)]
        if engine != "rewrite":
            self.command([self.inlay, "trace", "-o", out, f"--engine={engine}", *only, *options, "--", self.program, *mode],
                         status, env=os.environ | {"INLAY_OUT": "/not/for/runs"})
            return out
        key = (*options, *names)
        if key not in self.rewritten:
            path = self.rewritten[key] = f"{self.program}{len(self.rewritten)}"
            only = [word.replace("-F", "--proc") for word in only]
            options = [word.replace("-N", "--not-proc") for word in options]
            self.command([self.inlay, "rewrite", *only, "trace", *options, self.program, "-o", path])
        self.command([self.rewritten[key], *mode], status, env=os.environ | {"INLAY_OUT": out})
        return out

    def read(self, what, *argv):
        return self.command([self.inlay, "trace", what, *argv]).stdout

    def json(self, what, *argv):
        return json.loads(self.read(what, "--format=json", "--top=0", *argv))

    def report(self, path):
        return self.json("report", path)[-1]


def paths(nodes, under=()):
    found = collections.Counter()
    for node in nodes:
        way = (*under, node["name"])
        found["/".join(way)] += node["calls"]
        found.update(paths(node["callees"], way))
    return found


def same(found, wanted, what):
    if found != wanted:
        lines = [f"{key}: {found.get(key)}, not {wanted.get(key)}" for key in sorted({*found, *wanted})
                 if found.get(key) != wanted.get(key)]
        raise Failed(what, *lines[:12])


def need(good, what, *more):
    if not good:
        raise Failed(what, *map(str, more))


# --- what was called, by whom

def check_tree(t, engine, mode):
    path = t.record(engine, [mode])
    tree = paths(t.json("tree", path)[0]["tree"])
    wanted = {"main": 1} | TREES[mode]
    same(dict(tree), wanted, "the tree of calls")
    by_name = collections.Counter()
    for way, count in wanted.items():
        by_name[way.split("/")[-1]] += count
    report = t.report(path)
    same(calls(report), dict(by_name), "the report's calls")
    need(not report["unmatched"] and not report["lost"], "unmatched or lost records", report["unmatched"])
    need(report["ended"] and report["status"] == 0, "the end is not told")


def check_counts(t, engine):
    report = t.report(t.record(engine, ["threads"], ["--clock=none"]))
    same({k: v for k, v in calls(report).items() if v},
         {"main": 1, "threads": 1, "worker": 3, "endless": 1, "leaf": 602, "after": 1}, "counts alone")
    t.command([t.inlay, "trace", "tree", f"{t.folder}/{engine}-threads.trace"], 1)


def symbols(program):
    done = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    return {line.split()[2]: int(line.split()[0], 16) for line in done.stdout.splitlines() if len(line.split()) == 3}


def check_steps(t, engine):
    """Each procedure is called as often as a single-stepper comes to its first instruction. (Linked statically: of a
    dynamic program most steps are the dynamic linker's.)"""
    s = Traced(t.build, t.folder, "steps.c", ["-static"])
    out = f"{t.folder}/steps.txt"
    t.command([f"{t.build}/tests/support/stepper", "-o", out, "--", s.program])
    with open(out, encoding="utf-8") as f:
        counts = {int(word[1], 16): int(word[2]) for word in map(str.split, f) if word[0] == "pc"}
    wanted = {name: counts[at] for name, at in symbols(s.program).items() if name in NAMES and at in counts}
    need(len(wanted) >= 3, "few procedures", wanted)
    same(calls(s.report(s.record(engine, ["steps"]))), wanted, "calls as single-stepped")


# --- times

def check_times(t, engine):
    path = t.record(engine, ["time"])
    rows = {row["name"]: row for row in t.report(path)["procedures"]}
    for name, ms in (("spin", 20), ("inner", 10), ("outer", 20), ("main", 20)):
        need(rows[name]["total_ns"] >= ms * 0.8e6, f"{name} took less than it waits", rows[name]["total_ns"])
    need(rows["spin"]["self_ns"] >= 16e6, "the loop's own time is not its own", rows["spin"])
    # The sample waits by its own clock; what Inlay has taken meanwhile is taken off, and a busy machine lets it take long.
    need(rows["spin"]["min_ns"] >= 4e6 and rows["spin"]["max_ns"] >= 8e6, "least and most", rows["spin"])
    whole = sum(row["self_ns"] for row in rows.values())
    need(abs(whole - rows["main"]["total_ns"]) < 1000, "own times do not add up to the whole", whole, rows["main"])
    need(rows["outer"]["total_ns"] - rows["outer"]["self_ns"] >= 16e6, "the caller has its callees' time", rows["outer"])
    raw = {row["name"]: row for row in t.json("report", "--raw", path)[0]["procedures"]}
    need(raw["main"]["total_ns"] >= rows["main"]["total_ns"], "less with the records' cost than without")


def check_stubs(t, report):
    """`calls --time` and recordings alike: stubs are left when they jump, and what their caller does then is its own."""
    program = f"{t.folder}/stubs"
    t.command(["gcc", "-O1", "-Wl,-z,lazy", f"{HERE}/stubs.c", "-o", program])
    if report == "calls":
        t.command([t.inlay, "run", "calls", "--time", "--format=json", "--image", "stubs", "-o", f"{t.folder}/stubs.json",
                   "--", program])
        with open(f"{t.folder}/stubs.json", encoding="utf-8") as f:
            times = {row["name"]: row["cycles"] for row in json.load(f)["procedures"]}
    else:
        t.command([t.inlay, "trace", "-o", f"{t.folder}/stubs.trace", "--", program])
        times = {row["name"]: row["total_ns"] for row in t.report(f"{t.folder}/stubs.trace")["procedures"]}
    stubs = {name: time for name, time in times.items() if name.endswith("@plt") or name.startswith("sub_")}
    need("getenv@plt" in stubs and len(stubs) >= 2, "the stubs", times)
    need(max(stubs.values()) < times["outer"] / 2, "a stub has its caller's time", times)


# --- processes

def check_killed(t, engine):
    report = t.report(t.record(engine, ["killed"], status=-9))
    same(calls(report), {"main": 1, "leaf": 20000}, "calls before SIGKILL")
    need(not report["ended"] and report["status"] is None and report["signal"] is None, "its end is told")


def check_fork(t, engine):
    for name in os.listdir(t.folder):
        if name.startswith(f"{engine}-fork.trace"):
            os.unlink(f"{t.folder}/{name}")
    path = t.record(engine, ["fork"])
    same(calls(t.report(path)), {"main": 1, "leaf": 2}, "the parent's calls")
    others = [name for name in os.listdir(t.folder) if name.startswith(f"{engine}-fork.trace.")]
    need(len(others) == 1, "the child's file", others)
    child = t.report(f"{t.folder}/{others[0]}")
    same(calls(child), {"after": 1, "leaf": 1}, "the child's calls")
    need(child["status"] == 3 and child["signal"] is None, "the child's status", child["status"])


def check_exec(t, engine):
    """The new program is followed, and goes on in the same file. A rewritten program that runs itself again writes its file
    anew."""
    programs = [calls(one) for one in t.json("report", t.record(engine, ["exec", "tail"]))]
    first, second = {"main": 1, "leaf": 1}, {"main": 1, "first": 2, "second": 2, "third": 2, "leaf": 3}
    need(programs == {"jit": [first, second], "live": [first, second], "rewrite": [second]}[engine], "calls about exec", programs)
    path = f"{t.folder}/{engine}-exec.trace"
    for number, one in enumerate(programs, 1):
        need([calls(p) for p in t.json("report", f"--program={number}", path)] == [one], f"--program={number}")
    said = t.command([t.inlay, "trace", "export", "folded", f"--program={len(programs) + 1}", path], 1).stderr
    need(f"has {len(programs)} program" in said, "a program that is not there", said)


def check_attach(t):
    process = subprocess.Popen([t.program, "endless"], stdout=subprocess.PIPE, cwd=t.folder)
    try:
        process.stdout.readline()
        out = f"{t.folder}/attached.trace"
        t.command([t.inlay, "trace", "-p", str(process.pid), "-o", out, "-F", "leaf"])
        for _ in range(600):
            if calls(t.report(out)).get("leaf", 0) >= 20:
                break
            time.sleep(0.1)
        t.command([t.inlay, "detach", str(process.pid)])
        need(process.poll() is None, "the process has ended")
        report = t.report(out)
        need(calls(report).get("leaf", 0) >= 20, "calls in a process that runs", report)
        need(report["ended"], "taking the tool out is not told")
    finally:
        process.kill()
        process.wait()


# --- what is kept

def check_last(t, engine):
    path = t.record(engine, ["many"], ["--last=1"])
    report = t.report(path)
    need(report["overwritten"] > 0, "nothing was written over")
    need(20000 < calls(report)["leaf"] < 70000, "calls in 1 MB", calls(report))
    need(os.path.getsize(path) < 2 << 20, "the file's size", os.path.getsize(path))
    need(calls(report)["after"] == 1, "the last calls are not there")
    whole = t.report(t.record(engine, ["many"]))
    need(calls(whole)["leaf"] == 200001 and not whole["overwritten"], "without --last", calls(whole))


def check_packed(t):
    """The same calls from records that were packed and from those that were not."""
    found = []
    for more in ([], ["--no-compress"], ["--last=64"]):
        path = t.record("live", ["packs"], more, names=(*NAMES, "packs", "far*_away"))
        report = t.report(path)
        need(not report["unmatched"] and not report["overwritten"] and not report["lost"], "records", report)
        found.append((dict(paths(t.json("tree", path)[0]["tree"])), os.path.getsize(path)))
    same(found[0][0], found[1][0], "the tree of calls, compressed")
    same(found[0][0], found[2][0], "the tree of calls, packed")
    need(found[0][0]["main/packs/far_away/leaf"] == 2 * found[0][0]["main/packs/farther_away/leaf"] == 200 and found[0][0]["main/packs/leaf"] == 20000, "calls", found[0][0])
    need(found[0][1] <= found[1][1] and found[1][1] * 2 < found[2][1], "the files are not shorter", *[size for _, size in found])


def check_no_room(t):
    """Records that the file has no room for are counted, and the program is none the wiser."""
    def records(folder, limit, *options):
        out = f"{folder}/small.trace"
        done = t.command(["bash", "-c", f"ulimit -f {limit}; exec {t.inlay} trace {' '.join(options)} -F leaf -o {out} -- "
                                        f"{t.program} many"])
        said = re.search(r"(\d+) records found no room", done.stderr)
        need(said, "the loss is not said", done.stderr)
        need("make no sense" not in t.read("report", out), "the recording has pieces that make no sense")
        report = t.report(out)
        need(report["records"] and report["lost"] == int(said[1]) and report["records"] + report["lost"] <= 400010, "lost records", said[1], report)

    records(t.folder, 1024, "--no-compress", "--engine=live")
    records(t.folder, 150)
    disk = f"{t.folder}/disk"
    os.makedirs(disk, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", disk], capture_output=True, check=False).returncode == 0:
        try:
            records(disk, "unlimited")
        finally:
            subprocess.run(["umount", disk], check=True)


# --- selection

def check_selection(t, engine):
    report = t.report(t.record(engine, ["tail"], ["-N", "leaf"], names=("leaf", "third", "fir*")))
    same(calls(report), {"first": 2, "third": 2}, "-F and -N")
    report = t.report(t.record(engine, ["tail"], ["--min-size=40"], names=("leaf", "main")))
    same(calls(report), {"main": 1}, "--min-size")
    report = t.report(t.record(engine, ["tail"], names=("modes::{lambda()#1}::_FUN()",)))
    same(calls(report), {"modes::{lambda()#1}::_FUN()": 1}, "a C++ name")


def check_asked_for(t, engine):
    report = t.report(t.record(engine, ["tail"], names=("unclear", "leaf", "body")))
    state = {row["name"]: (row["instrumented"], row["how"]) for row in report["asked_for"]}
    need(set(state) == {"unclear", "leaf", "body"}, "who was asked for", state)
    need(state["leaf"][0], "leaf", state)
    if engine == "jit":
        need(state["body"] == (False, "its code was not run"), "what was not run", state)
        need(state["unclear"][0], "what runs under the JIT is instrumented", state)
    else:
        need(state["body"][0], "what could have run", state)
        need(not state["unclear"][0] and len(state["unclear"][1]) > 5, "why not", state)


def check_inside(t, engine):
    """Only what triggers call: also when exceptions and longjmp leave them, and on each stack."""
    inside = {way[5:]: count for way, count in TREES["throw"].items()}
    for mode, trigger, wanted in (("throw", "catcher", {way: n for way, n in inside.items() if way.startswith("catcher")}),
                                  ("throw", "thr*|after", {"/".join(["thrower"] * n): 1 for n in range(1, 11)} |
                                   {"after": 1, "after/leaf": 1}),
                                  ("longjmp", "jumper", {"/".join(["jumper"] * n): 1 for n in range(1, 6)}),
                                  ("stack", "handler", {"handler": 1, "handler/leaf": 1})):
        path = t.record(engine, [mode], [f"--inside={trigger}"])
        same(dict(paths(t.json("tree", path)[0]["tree"])), wanted, f"inside {trigger} of {mode}")
    records = [t.report(t.record(engine, ["many"], more))["records"] for more in ([], ["--inside=after"])]
    need(records[0] > 400000 and records[1] == 4, "what is not asked for is recorded", records)


def check_fewer(t, engine):
    rows = {row["name"]: row for row in t.report(t.record(engine, ["many"], ["--every=100"]))["procedures"]}
    need(rows["leaf"]["counted"] == 200001 and rows["leaf"]["calls"] == 2001, "one in 100", rows["leaf"])
    need(rows["main"]["calls"] == rows["main"]["counted"] == 1, "what is called once", rows["main"])
    path = t.record(engine, ["many"], ["--thin=1000"])
    rows = {row["name"]: row for row in t.report(path)["procedures"]}
    # 1,000 and, of what is behind, 1,000 of each ten and each hundred, and what there is of each thousand
    need(rows["leaf"]["counted"] == 200001 and 3080 <= rows["leaf"]["calls"] <= 3100, "fewer and fewer", rows["leaf"])
    need(re.search(r"200001 calls, 30\d\d recorded: leaf", t.read("report", path)), "it is not said")
    rows = {row["name"]: row for row in t.report(t.record(engine, ["recursion"], ["--thin=5"]))["procedures"]}
    need(rows["down"]["counted"] == 51 and rows["down"]["calls"] == 5, "recursion", rows["down"])
    need(rows["down"]["max_ns"] <= rows["main"]["total_ns"], "a call of main's is longer than main", rows)


def check_filters(t):
    path = t.record("jit", ["throw"])
    tree = lambda *more: dict(paths(t.json("tree", *more, path)[0]["tree"]))
    same(tree("--inside=after", "--inside=leaf"), {"after": 1, "after/leaf": 1, "leaf": 1}, "--inside")
    same(tree("--outside=catcher"), {"main": 1} | AFTER, "--outside")
    same(tree("--leading=leaf"), {"main": 1, "main/catcher": 1, "main/catcher/leaf": 1} | AFTER, "--leading")
    same(tree("--leading=after"), {"main": 1} | AFTER, "--leading")
    spans = json.loads(t.read("export", "chrome", "--leading=after", path))["traceEvents"]
    same(dict(collections.Counter(e["name"] for e in spans if e["ph"] == "X")), {"main": 1, "after": 1, "leaf": 1}, "exported")
    path = t.record("jit", ["tail"], ["--depth=1"])
    same(tree(), {"main": 1}, "the recording's own depth")
    same(tree("--depth=2"), {"main": 1, "main/first": 2, "main/second": 2, "main/third": 2, "main/leaf": 1}, "another one")
    asked = t.read("report", "--asked-for", path)
    need("  leaf (sample): entry and exits" in asked and "body (sample): its code was not run" in asked, "--asked-for", asked)
    t.command([t.inlay, "trace", "--every=2", "--thin=2", "--", t.program], 2)
    t.command([t.inlay, "trace", "--clock=none", "--inside=x", "--", t.program], 2)
    t.command([t.inlay, "trace", "--threshold=5", "--", t.program], 2)


def check_values(t, engine):
    """Arguments by their places and by their types, results; strings are cut, and never read where no memory is."""
    s = Traced(t.build, t.folder, "values.c", ["-g"])
    names = ("main", "add", "name", "reads", "down", "half", "third", "swaps", "sums", "mixes", "turns", "makes", "fills", "picked", "implementation")
    options = ["-A", "picked;implementation;mixes;turns;makes;fills;add;swaps;sums;reads@arg1/s;double third(double)", "-A", "name@arg1/x32;down@arg1/u8;half@fparg1/f32,arg1/d32,fparg2/f",
               "-R", "add;half;name/s;reads/d32", "-R", "down/c;swaps;makes;fills"]
    if engine == "rewrite":
        options = ["-A", ";".join(options[1:4:2]), "-R", ";".join(options[5:8:2])]
    recording = s.record(engine, ["values"], options, names=names)
    found = [(c["name"], c.get("arguments"), c.get("result")) for c in t.json("list", recording)[0]["calls"]]
    need("  picked (values): it chooses the procedure" in t.read("report", recording), "a resolver is left alone", t.read("report", recording))
    wanted = [("main", None, None), ("add", '-5, "short", 120, 2.5, 7000000000', "7000000122"),
              ("add", '6, "a string that is much longer than what is record"..., 1, 0, -1', "62"), ("add", "7, NULL, 2, 0, 0", "9"),
              ("add", '8, "", 3, 1, 1', "13"), ("name", "0x0", "NULL"), ("name", "0x1", '"a \\"name\\""'),
              ("reads", '"tab\\x09"', "116"), ("reads", "0x1 (no memory)", "-1"),
              ("down", "3", "'\\x06'"), ("down", "4", "'\\x0a'"), ("half", "2.5, 3, -1e+300", "-inf"),
              ("third", "1", "0.3333333333333333"), ("swaps", "1", "{a = 1, b = 1, c = 2}"), ("sums", "1, {a = 1, b = 2, c = 3}, 4", None),
              ("mixes", "{a = 1, b = 0.5}, -2, 1.25, {a = 4, b = 5, c = 6}, 0.1, 99", None),
              ("implementation", "41", None), ("turns", "{real = 3, imag = 0}, 4", None), ("makes", "8", "{a = 8, b = 0.5}"), ("fills", "3, 2.5", "{a = 3, b = 2, c = 2}")]
    need(sorted(map(str, found)) == sorted(map(str, wanted)), "values", *[one for one in found if one not in wanted])
    sampled = s.record(engine, ["values"], ["--every=4", "-R", "down/u"], names=names)
    results = [(c["name"], c.get("result")) for c in t.json("list", sampled)[0]["calls"]]
    need(("down", "6") in results and ("main", None) in results, "results of calls that are not recorded", results)
    if engine == "jit":
        done = t.command([t.inlay, "trace", "-o", f"{t.folder}/wrong.trace", "-A", "turns;int down(strange)", "-A", "nobody@arg1/d",
                          "-R", "noone/p", "--", s.program])
        vain = re.findall(r"(-[AR] '.*') matches no procedure that is recorded", done.stderr)
        need(vain == ["-A 'nobody@arg1/d'", "-R 'noone/p'"], "patterns in vain", done.stderr)
        need("-A 'int down(strange)': " in done.stderr, "a strange prototype", done.stderr)
        for wrong in ("add@arg0/u", "add@fparg1/d", "add@fparg9/f", "add@arg1/f", "add@fparg1/f16", "add@arg1/z", "add@arg1/u31", ";x", "add@arg1/u,", "turns;int add("):
            t.command([t.inlay, "trace", "-A", wrong, "--", s.program], 2)


TYPED = [
    ("colors", 'GREEN, all, true, \'q\', 200', "318"), ("colors", "3, none, false, '\\x0a', 1", "14"), ("pick", "0", "BLUE"), ("pick", "1", "GREEN"),
    ("truth", "1", "false"), ("truth", "3", "true"), ("bits", '{a = 3, b = 17, c = -2, d = true, name = "abc"}', "19"),
    ("inherits", ", ".join(f"{how}{{<base> = {{k = 7}}, x = 2.5, c = GREEN, f = {{1, 0.5}}}}" for how in ("", "&", "&")), "12"),
    ("texts", f'"short", "{"y" * 48}"..., "view of it"', "115"), ("made", "3", '"qqq"'), ("z", "{real = 3, imag = 4}, {real = 1, imag = -2}", "{real = 4, imag = 2}")]


def check_typed(t, engine):
    """Constants by their names, members, bit fields, complex numbers, what references lead to, strings of C++."""
    s = Traced(t.build, t.folder, "typed.cc", ["-g", "-std=gnu++17", "-w"])
    names = ("colors*", "pick*", "truth*", "bits*", "inherits*", "texts*", "made*", "ref*", "z(*")
    recording = s.record(engine, ["typed"], ["-A", ";".join(names), "-R", ";".join(names)], names=names)
    found = [(re.split(r"[(\[]", c["name"])[0], c.get("arguments"), c.get("result")) for c in t.json("list", recording)[0]["calls"]]
    ref = [one for one in found if one[0] == "ref"]
    need([one for one in found if one[0] != "ref"] == TYPED, "values by types", *[one for one in found if one[0] != "ref" and one not in TYPED])
    need(re.fullmatch(r"&42, 0x10 \(no memory\), 0x[0-9a-f]+", ref[0][1]) and ref[0][2] == "&42", "references", *ref)


def check_libs(t, engine):
    report = t.report(t.record(engine, ["tail"], ["--image", "libc.so*"], names=()))
    images = {row["image"] for row in report["procedures"]}
    need(images == {"libc.so.6"} or len(images) == 1 and "libc" in next(iter(images)), "--image", images)
    report = t.report(t.record(engine, ["tail"], ["--libs"], names=("leaf", "printf")))
    need(calls(report).get("leaf") == 3 and calls(report).get("printf", 0) >= 1, "--libs", calls(report))


# --- what is made of it

def check_forms(t):
    path = t.record("jit", ["coroutines"])
    report = t.report(path)
    total = sum(row["self_ns"] for row in report["procedures"])
    folded = t.read("export", "folded", path).splitlines()
    need(sum(int(line.rsplit(" ", 1)[1]) for line in folded) == total, "folded stacks' sum", total)
    need(any(line.startswith("main;coroutines;resumes;body ") for line in folded), "folded stacks", folded[:5])
    events = json.loads(t.read("export", "chrome", path))["traceEvents"]
    spans = collections.Counter(e["name"] for e in events if e["ph"] == "X")
    same(dict(spans), calls(report), "Chrome's events")
    graph = t.json("graph", "body", path)[0]
    same({row["name"]: row["calls"] for row in graph["callees"]}, {"leaf": 6, "yields": 6}, "callees")
    same({row["name"]: row["calls"] for row in graph["callers"]}, {"resumes": 2}, "callers")
    text = t.read("report", path)
    need(re.search(r"^ +6 .* leaf \(sample\)$|^ +7 .* leaf \(sample\)$", text, re.M), "the report as text", text)
    need("coroutines" in t.read("tree", path) and "body" in t.read("graph", "body", path), "text of tree and graph")
    deep = paths(t.json("tree", "--depth=2", path)[0]["tree"])
    same(dict(deep), {"main": 1, "main/coroutines": 1, "main/after": 1}, "--depth")


def check_threads(t):
    path = t.record("jit", ["threads"])
    threads = t.json("report", "--threads", path)[0]["threads"]
    leaves = sorted(calls(one).get("leaf", 0) for one in threads)
    need(leaves == [1, 1, 100, 200, 300], "each thread's calls", leaves)


def check_diff(t):
    before, after = t.record("jit", ["throw"]), t.record("jit", ["tail"])
    rows = {row["name"]: row["calls"] for row in t.json("diff", before, after)}
    need(rows["leaf"] == [2, 3] and rows["thrower"] == [10, 0] and rows["third"] == [0, 2], "what has changed", rows)
    need("third" in t.read("diff", before, after), "as text")


def check_threshold(t):
    path = t.record("rewrite", ["time"]) # nobody translates meanwhile, whose time would be no call's
    rows = calls({"procedures": t.json("report", "--threshold=4ms", path)[0]["procedures"]})
    same(rows, {"main": 1, "outer": 1, "inner": 2, "spin": 3}, "--threshold")
    rows = calls({"procedures": t.json("report", "--threshold=9ms", path)[0]["procedures"]})
    need(rows.get("main") == rows.get("outer") == 1, "--threshold", rows)
    rows = t.json("report", "--depth=3", path)[0]["procedures"] # what inner calls belongs to it
    least = next(row["max_ns"] for row in rows if row["name"] == "inner")
    rows = t.json("report", "--depth=3", f"--threshold={least}ns", path)[0]["procedures"]
    inner = next(row for row in rows if row["name"] == "inner")
    need(inner["calls"] == 1 and inner["self_ns"] == inner["total_ns"], "what a call that is left out has called", inner)


def check_callgrind(t):
    """A name that is no line of its own, too."""
    odd = f"{t.folder}/od\x1fd\nna me"
    shutil.copy(t.program, odd)
    t.of(odd).read("export", "callgrind", "-o", f"{t.folder}/callgrind.out.3", t.of(odd).record("jit", ["tail"]))
    done = t.command(["callgrind_annotate", "--threshold=100", f"{t.folder}/callgrind.out.3"])
    need("Profiled target:  od d na me (" in done.stdout and ":leaf [" in done.stdout, "an odd name", done.stdout[:900])
    path = t.record("jit", ["time"])
    out = f"{t.folder}/callgrind.out.1"
    t.read("export", "callgrind", "-o", out, path)
    done = t.command(["callgrind_annotate", "--inclusive=no", "--threshold=100", out])
    match = re.search(r"([\d,]+) .*PROGRAM TOTALS", done.stdout)
    total = sum(row["self_ns"] for row in t.report(path)["procedures"])
    need(match and int(match[1].replace(",", "")) == total, "its total", match and match[1], total)
    own = {row["name"]: row["self_ns"] for row in t.report(path)["procedures"]}
    for name in ("spin", "outer"):
        match = re.search(rf"^ *([\d,]+) .*:{name}\b", done.stdout, re.M)
        need(match and int(match[1].replace(",", "")) == own[name], f"{name}'s own time", own[name], done.stdout)


# --- what is no recording

def check_refusals(t):
    path = t.record("jit", ["tail"])
    whole = open(path, "rb").read()
    cases = {"empty": b"", "text": b"hello\n" * 2000, "short": whole[:100], "magic": b"IRT1" + bytes(9000),
             "version": whole[:64] + b"\x63" + whole[65:]}
    for name, content in cases.items():
        bad = f"{t.folder}/bad-{name}"
        with open(bad, "wb") as f:
            f.write(content)
        done = t.command([t.inlay, "trace", "report", bad], 1)
        need(f"bad-{name}" in done.stderr and len(done.stderr.splitlines()) == 1, f"{name}: the message", done.stderr)
    for argv, text in ((["report", "/none"], "cannot read"), (["graph", "nobody", path], "no procedure 'nobody'")):
        need(text in t.command([t.inlay, "trace", *argv], 1).stderr, text)
    for argv in (["report"], ["export", "wave", path], ["report", "--top=x", path], ["-F"], ["--", ], ["tail"], []):
        t.command([t.inlay, "trace", *argv], 2)


def tests(t):
    for engine in ENGINES:
        for mode in TREES:
            yield f"{mode} {engine}", lambda e=engine, m=mode: check_tree(t, e, m)
        for name, check in (("counts", check_counts), ("times", check_times), ("killed", check_killed),
                            ("fork", check_fork), ("exec", check_exec), ("last", check_last),
                            ("selection", check_selection), ("inside", check_inside), ("fewer", check_fewer), ("values", check_values), ("typed", check_typed),
                            ("asked-for", check_asked_for)):
            yield f"{name} {engine}", lambda e=engine, c=check: c(t, e)
        if engine != "rewrite":
            yield f"libs {engine}", lambda e=engine: check_libs(t, e)
        if engine != "live": # which does not take static programs that may throw
            yield f"steps {engine}", lambda e=engine: check_steps(t, e)
    for report in ("calls", "trace"):
        yield f"stubs {report}", lambda r=report: check_stubs(t, r)
    for name, check in (("attach", check_attach), ("no-room", check_no_room), ("packed", check_packed), ("forms", check_forms), ("threads", check_threads),
                        ("diff", check_diff), ("threshold", check_threshold), ("filters", check_filters), ("refusals", check_refusals)):
        yield name, lambda c=check: c(t)
    yield from languages.tests(t, ENGINES, need)
    yield from events.tests(t, need, same)
    yield from routines.tests(t, need, same)
    yield "browse", lambda: browse.check_browse(t, need, same)
    for name, check, program in exports.CHECKS:
        if shutil.which(program):
            yield name, lambda c=check: c(t, need, same)
    if shutil.which("callgrind_annotate"):
        yield "callgrind", lambda: check_callgrind(t)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("trace", options) as results:
        t = Traced(options.build, results.folder)
        for name, function in tests(t):
            results.check(name, function)
        for name, program in [("callgrind", "callgrind_annotate")] + [(name, program) for name, _, program in exports.CHECKS]:
            if not shutil.which(program):
                results.skip(name, f"{program} is not there")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
