#!/usr/bin/python3
"""The AArch64 build in emulation: programs say under qemu-user what they say on Debian's arm64 kernel; unit tests pass
there; the single-stepper counts the same twice, and what QEMU's own log of executed instructions says; programs run as
the analysis of them says; static programs, rewritten, say what they said, and the tools' counts are the stepper's
(rewritten.py).

  tests/aarch64/run.py [--build DIR] [--only NAMES] [--all | --user] [--keep]

DIR is the cross build (`make aarch64`). Names are those of programs, `commands`, `units`, `stepper` and `rewritten`.
--all steps and rewrites more, and boots a second processor: max has all that QEMU emulates, cortex-a57 no atomic
instructions of its own, so that programs use exclusive loads and stores. --user boots none: rewritten programs, by
their names, say under qemu-user what they said.
"""

import bisect
import collections
import json
import os
import platform
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver   # noqa: E402
import machine  # noqa: E402
import rewritten  # noqa: E402

USER = "qemu-aarch64"
NEEDED = (machine.QEMU, USER, "aarch64-linux-gnu-nm", "cpio")
BOOT_LIMIT, LIMIT = 900, 120
# Of a job in the machine. The stepper makes some 10,000 steps a second there, and a tenth of it on a busy machine: what
# is stepped should have no more than 150,000.
JOB_LIMIT = 300

# Name: the program's file ({samples}, {debian}: its arm64 archive), its arguments as a shell has them.
PROGRAMS = {
    "branches": ("{samples}/branches", ""),
    "moves": ("{samples}/moves", ""),
    "plain": ("{samples}/plain_static", ""),
    "plain-pie": ("{samples}/plain_static_pie", "x"),
    "bursts": ("{samples}/bursts_static", ""),
    "threads": ("{samples}/threads_static", ""),
    "throw": ("{samples}/throw_static", ""),
    "throwout": ("{samples}/throwout_static", ""),
    "rawthreads": ("{samples}/rawthreads", ""),
    "manythreads": ("{samples}/manythreads_static", ""),
    "children": ("{samples}/children_static", ""),
    "inherited": ("{samples}/inherited_static", ""),
    "tempmasks": ("{samples}/tempmasks_static", ""),
    "gaps": ("{samples}/gaps_static", ""),
    "rust": ("{samples}/rusty_static", ""),
    "rust-panic": ("{samples}/rusty_static", "caught"),
    "rust-thread": ("{samples}/rusty_static", "thread"),
    "rust-work": ("{samples}/rusty_work_static", ""),
    "busybox-echo": ("{debian}/bin/busybox", "echo hello"),
    "busybox-sort": ("{debian}/bin/busybox", "sort -n -k2 /tmp/text"),
    "busybox-awk": ("{debian}/bin/busybox", "awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' /tmp/text"),
    "busybox-sed": ("{debian}/bin/busybox", "sed -E 's/o(.*) /\\1-/; 9q' /tmp/text"),
    "busybox-gzip": ("{debian}/bin/busybox", "gzip -9c /tmp/text"),
    "busybox-sh": ("{debian}/bin/busybox", "sh -c 'i=0; while [ $i -lt 99 ]; do i=$((i + 7)); done; echo $i; exit 3'"),
    "bash": ("{debian}/bin/bash-static", "-c 'for i in {1..300}; do a[i]=$((i * i)); done; echo ${a[299]}; (exit 4)'"),
}
# What qemu-user cannot do: vfork, masks while a call sleeps, unmapping what it lies in itself; thousands of threads.
KERNEL_ONLY = ("manythreads", "children", "inherited", "tempmasks", "gaps")
# Tests that need no compiler and no file of this machine; each with what it links with.
UNITS = ("base_memory", "base_maps_line", "base_rules", "base_runtime", "snippet_tree", "cfg_placement",
         "cfg_flow", "isa_emit_aarch64", "weave_a64_points", "weave_a64_random",
         "run_bpf", "run_fd", "run_sigframe_a64", "moved_step_a64")
# Of some, one tool is enough: what they do with threads and signals does not depend on what is counted.
ONCE = (*KERNEL_ONLY, "throwout", "rawthreads")

# twice      programs that are stepped, and twice
# logged     the object of whose procedures what is stepped is compared with QEMU's log: all of the program, where it
#            has no C library (what the library does at the start depends on the kernel)
# analysed   programs that must run as the analysis of them says
# rewritten  programs that are rewritten, and by what
# counted    those of them whose counts are compared
Scope = collections.namedtuple("Scope", "twice logged analysed rewritten counted")
QUICK = Scope(("branches",), {"branches": None}, ("busybox-echo",),
              {"plain": ("inscount",), "rust": ("null",), "busybox-echo": rewritten.TOOLS, "bash": ("bbcount",),
               "moves": ("null", "inscount", "bbcount"), "rawthreads": ("calls",), "inherited": ("inscount",)},
              ("busybox-echo", "moves"))
# (The one procedure of branches is not whole.)
ALL = Scope(("branches", "busybox-echo"), {"branches": None, "plain": "plain_static.p/plain.c.o"},
            ("busybox-echo", "plain", "rust-work"),
            {name: ("inscount",) if name in ONCE else rewritten.TOOLS for name in PROGRAMS if name != "branches"},
            ("busybox-echo", "moves", "plain", "rust-work", "busybox-sed"))
# What takes longest is stepped on one processor. On the other one programs use exclusive stores, which are repeated
# where the first one meets a page that nobody has written yet: that costs a repetition more or less when it is stepped.
ALL_ON_OTHERS = ALL._replace(logged={"branches": None}, analysed=("busybox-echo", "rust-work"),
                             counted=("busybox-echo", "moves", "busybox-sed"))


def text():
    return "".join(f"{'river stone cloud tree'.split()[i * 7 % 4]} {i * 7919 % 1009}\n" for i in range(400))


class Checks:
    def __init__(self, options, folder, model, scope, files):
        """`files`: what was rewritten on another processor, by (tool, file); it serves here too."""
        self.options, self.folder, self.model = options, driver.fresh(f"{folder}/{model}"), model
        self.scope, self.files = scope, files
        self.samples, self.arm64 = f"{options.build}/tests/samples", options.arm64
        self.machine = machine.Machine(f"{self.folder}/machine", self.arm64, model, JOB_LIMIT)
        self.answers, self.rewritten, self.only_on_kernel = {}, None, KERNEL_ONLY
        self.left_by = {}  # (program, turn): the job that steps it, and the file that it leaves
        self.units = [u for u in UNITS if os.path.exists(f"{options.build}/tests/unit/unit_{u}")]

    def file(self, name):
        return PROGRAMS[name][0].format(samples=self.samples, debian=f"{self.arm64}/programs")

    def emulator(self, *options):
        return [USER, "-cpu", machine.MODELS[self.model], *options]

    # --- what the machine is to do

    def fill(self):
        m = self.machine
        m.write("tmp/text", text())
        m.add(f"{self.options.build}/tests/support/stepper", "bin/stepper")
        for name, (_, arguments) in PROGRAMS.items():
            m.add(self.file(name), f"programs/{name}/{self.name_of(name)}")
            if driver.chosen(name, self.options) or driver.chosen("rewritten", self.options):
                m.job(f"run.{name}", f"exec {self.path(name)} {arguments}")
        if driver.chosen("units", self.options):
            self.add_units()
        if driver.chosen("rewritten", self.options):
            self.fill_rewritten()
        if driver.chosen("stepper", self.options):
            self.fill_stepped()

    def fill_stepped(self):
        m = self.machine
        truths = self.rewritten.truth_jobs() if self.rewritten else {}
        for name in dict.fromkeys((*self.scope.twice, *self.scope.logged, *self.scope.analysed)):
            if name in truths and name not in self.scope.twice:  # it is stepped already
                self.left_by[name, 1] = truths[name], "truth"
                continue
            for turn in (1, 2) if name in self.scope.twice else (1,):
                command = f"{self.path(name)} {PROGRAMS[name][1]}"
                m.job(f"step{turn}.{name}", f"exec env -i stepper -o $OUT/counts -- {command}")
                self.left_by[name, turn] = f"step{turn}.{name}", "counts"

    def fill_rewritten(self):
        self.rewritten = rewritten.Rewritten(self, self.scope.rewritten, self.scope.counted, self.files)
        self.rewritten.fill()

    def name_of(self, name):
        return os.path.basename(self.file(name))  # busybox asks what it is called

    def path(self, name):
        return f"/programs/{name}/{self.name_of(name)}"

    def add_units(self):
        for unit in self.units:
            program = f"{self.options.build}/tests/unit/unit_{unit}"
            self.machine.add(program, f"units/{unit}")
            for library in self.libraries(program):
                self.machine.add(library, f"lib/{os.path.basename(library)}")
            self.machine.job(f"unit.{unit}", f"exec /units/{unit}")

    def libraries(self, program, known=None):
        """The sysroot's files that the dynamic linker would load."""
        known = {} if known is None else known
        said = subprocess.run(["readelf", "-dl", program], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]|interpreter: /lib/(.*)\]", said):
            name = name[0] or name[1]
            if name not in known:
                known[name] = self.in_sysroot(name)
                self.libraries(known[name], known)
        return known.values()

    def in_sysroot(self, name):
        for place in ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib"):
            path = f"{self.arm64}/sysroot/{place}/{name}"
            if os.path.exists(path):
                return path
        raise driver.Failed(f"{name} is not in the sysroot")

    # --- what is to hold

    def arguments(self, name):
        return PROGRAMS[name][1]

    def here(self, file, called, name):
        """What the program says under qemu-user."""
        work = driver.fresh(f"{self.folder}/work")
        command = f"{' '.join(self.emulator('-0', called))} {file} {self.arguments(name)}"
        return driver.run(["sh", "-c", "exec " + command.replace("/tmp/text", f"{self.folder}/text")], LIMIT, cwd=work,
                          env={"PATH": driver.PATH, "LC_ALL": "C", "TZ": "UTC", "INLAY_OUT": "/dev/null"})

    def same_output(self, name):
        wrong = driver.differences(self.answers[f"run.{name}"], self.here(self.file(name), self.path(name), name))
        if wrong:
            raise driver.Failed("under qemu-user (here) it is not what it is on the kernel (native)", *wrong)

    def inlay(self, *words):
        return driver.run(self.emulator(f"{self.options.build}/inlay", *words), LIMIT, env={"PATH": driver.PATH})

    def refuses_run(self):
        done = self.inlay("run", "null", "--", "/bin/true")
        said = r"inlay: 'run' is not there for aarch64 yet: this build lacks the part 'jit'; what it can do:.* info( .*)?\n"
        if done.status != 1 or not re.fullmatch(said, done.stderr.decode()):
            raise driver.Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr)[:4])

    def refuses_to_rewrite(self, said, *words):
        out = f"{self.folder}/refused"
        done = driver.run(self.emulator(f"{self.options.build}/tools/bbcount", "--inlay-rewrite", *words, "-o", out), LIMIT,
                          env={"PATH": driver.PATH})
        lines = driver.as_lines(done.stderr)
        if not done.status or os.path.exists(out) or not lines or not lines[0].endswith(said):
            raise driver.Failed(f"status {done.status}", *lines[:4])

    def put_snippet(self, code, out):
        words = ["--inlay-rewrite", "--at=area", f"--code={code}", f"--result={out}.report", f"{self.samples}/figures_static"]
        return driver.run(self.emulator(f"{self.options.build}/tools/snippet", *words, "-o", out), LIMIT,
                          env={"PATH": driver.PATH})

    def snippets_with_reals(self):
        """Floating point passed to a snippet's routines and answered by them; calls of procedures are refused."""
        out = f"{self.folder}/figures.snippet"
        made = self.put_snippet("static double s, t; static float u; s += factor * 2; t += extra; u = factor / 3;"
                                " print_real(-extra * 8)", out)
        done = driver.run(self.emulator(out), LIMIT)
        if made.status or done.status:
            raise driver.Failed(f"status {made.status}, {done.status}", *driver.as_lines(made.stderr + done.stderr)[:4])
        with open(f"{out}.report", encoding="utf-8") as f:
            lines = [line.strip() for line in f]
        wanted = [f"{-n:.0f}" for n in range(10)] + ["area: s = 90", "area: t = 5.625", "area: u = 3"]
        if [lines[0].lstrip("-"), *lines[1:10], *lines[11:]] != wanted:
            raise driver.Failed("other values", *lines)
        refused = self.put_snippet("count(1, 2, 3, \"x\")", f"{out}.2").stderr
        if b"6: procedures of the program cannot be called on this processor yet" not in refused:
            raise driver.Failed("a call is not refused", *driver.as_lines(refused)[:4])

    def tells_of(self, file, isa):
        done = self.inlay("info", file)
        lines = driver.as_lines(done.stdout)
        if done.status or not lines or not lines[0].endswith(isa) or not re.search(r"\n  whole +[1-9]", "\n".join(lines)):
            raise driver.Failed(f"status {done.status}", *lines[:4], *driver.as_lines(done.stderr)[:4])

    def unit_passes(self, unit):
        done = self.answers[f"unit.{unit}"]
        if done.status or b"SKIPPED" in done.stderr:
            raise driver.Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr)[-12:])

    def expect(self, stepped, plain):
        done = self.answers[stepped]
        if done.status != self.answers.get(plain, done).status:
            raise driver.Failed(f"stepped, it ends with status {done.status}", *driver.as_lines(done.stderr)[-3:])

    def stepped(self, name, turn=1):
        """What the stepper told, in words."""
        job, file = self.left_by[name, turn]
        self.expect(job, f"run.{name}")
        with open(self.machine.left(job, file)) as f:
            return [line.split() for line in f]

    def counts(self, name, turn):
        """{address: count} of the stepper, whose total is theirs."""
        lines = self.stepped(name, turn)
        counts = {int(words[1], 16): int(words[2]) for words in lines if words[0] == "pc"}
        told = [int(words[1]) for words in lines if words[0] == "instructions"]
        if told != [sum(counts.values())]:
            raise driver.Failed(f"it counts {told} instructions, and {sum(counts.values())} by address")
        return counts

    def steps_alike(self, name):
        if self.counts(name, 1) != self.counts(name, 2):
            raise driver.Failed("the stepper counts something else the second time")

    def steps_as_logged(self, name):
        procedures = self.procedures(name, self.scope.logged[name])
        stepped = {pc: n for pc, n in self.counts(name, 1).items() if inside(pc, procedures)}
        logged = self.logged(name, procedures)
        wrong = [pc for pc in stepped.keys() | logged.keys() if stepped.get(pc) != logged.get(pc)]
        if wrong or len(stepped) < 40:
            raise driver.Failed(f"{len(wrong)} of {len(stepped)} addresses have another count in QEMU's log",
                                *(f"{pc:x}: stepped {stepped.get(pc)}, logged {logged.get(pc)}" for pc in sorted(wrong)[:6]))

    def procedures(self, name, of):
        """[(low, high)] of the procedures that an object defines; all addresses without one."""
        if not of:
            return [(0, 1 << 64)]
        def nm(file):
            said = subprocess.run(["aarch64-linux-gnu-nm", "-S", file], capture_output=True, text=True, check=True)
            return [line.split() for line in said.stdout.splitlines() if re.search(" [Tt] ", line)]
        own = {words[-1] for words in nm(f"{self.samples}/{of}")}
        return [(int(w[0], 16), int(w[0], 16) + int(w[1], 16)) for w in nm(self.file(name)) if w[-1] in own and len(w) == 4]

    def logged(self, name, procedures):
        log = f"{self.folder}/log"
        argv = self.emulator(driver.single_stepping(USER), "-d", "nochain,exec", "-D", log)
        if len(procedures) > 1:
            argv += ["-dfilter", ",".join(f"{low:#x}+{high - low:#x}" for low, high in procedures)]
        driver.run(["env", "-i", shutil.which(argv[0]), *argv[1:], self.file(name)], LIMIT)
        with open(log) as f:
            found = (re.match(r"Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/", line) for line in f)
            counts = collections.Counter(int(match[1], 16) for match in found if match)
        os.unlink(log)
        return dict(counts)

    def commands(self, results):
        """The command is another program of this build; one processor is enough."""
        results.count("run is refused", driver.problem(self.refuses_run))
        results.count("a dynamic program is refused", driver.problem(
            self.refuses_to_rewrite, "it is linked dynamically, and for this architecture only static programs can be "
            "rewritten yet", f"{self.samples}/plain"))
        results.count("a library is refused", driver.problem(
            self.refuses_to_rewrite, "only static programs can be rewritten yet", f"{self.samples}/libsample.so"))
        results.count("a program of this machine is refused", driver.problem(
            self.refuses_to_rewrite, "it is for another architecture", "/bin/true"))
        results.count("what no build has is refused", driver.problem(
            self.refuses_to_rewrite, "unknown option '--precise'", "--precise", self.file("plain")))
        results.count("snippets with floating point", driver.problem(self.snippets_with_reals))
        results.count("info of an AArch64 program", driver.problem(self.tells_of, self.file("bash"), "aarch64"))
        results.count("info of a program of this machine", driver.problem(self.tells_of, "/bin/true", platform.machine()))

    def runs_as_analysed(self, name):
        """In procedures that the analysis calls whole, only what is in its blocks has been executed, and control
        came only to where one begins."""
        done = self.inlay("info", self.file(name), "--blocks", "--format=json")
        if done.status:
            raise driver.Failed(f"inlay info: status {done.status}", *driver.as_lines(done.stderr)[:3])
        known = Known(json.loads(done.stdout)["matching"])
        wrong, seen = [], 0
        for kind, at, *_ in self.stepped(name):
            if kind not in ("pc", "block") or not known.procedures.holds(at := int(at, 16)):
                continue
            seen += 1
            if kind == "pc" and not known.blocks.holds(at):
                wrong.append(f"{at:x}: executed, and in no block")
            if kind == "block" and at not in known.begins:
                wrong.append(f"{at:x}: control came here, and no block begins")
        if wrong or seen < 1000:
            raise driver.Failed(f"{len(wrong)} of {seen} places are not as analysed", *wrong[:6])

    def run(self, results):
        with open(f"{self.folder}/text", "w") as f:
            f.write(text())
        if self.model == "max" and driver.chosen("commands", self.options):
            self.commands(results)
        self.fill()
        self.answers = self.machine.boot(BOOT_LIMIT)
        for name in PROGRAMS:
            if f"run.{name}" in self.answers and name not in KERNEL_ONLY:
                results.count(f"{self.model} {name}", driver.problem(self.same_output, name))
        for unit in self.units if driver.chosen("units", self.options) else ():
            results.count(f"{self.model} unit {unit}", driver.problem(self.unit_passes, unit))
        for name in self.scope.twice if driver.chosen("stepper", self.options) else ():
            results.count(f"{self.model} {name}, stepped twice", driver.problem(self.steps_alike, name))
        for name in self.scope.logged if driver.chosen("stepper", self.options) else ():
            results.count(f"{self.model} {name}, stepped and logged", driver.problem(self.steps_as_logged, name))
        for name in self.scope.analysed if driver.chosen("stepper", self.options) else ():
            results.count(f"{self.model} {name}, stepped and analysed", driver.problem(self.runs_as_analysed, name))
        if self.rewritten:
            self.rewritten.run(results)


def run_user(checks, results):
    """Without a machine."""
    with open(f"{checks.folder}/text", "w") as f:
        f.write(text())
    names = {name: tools for name, tools in checks.scope.rewritten.items()
             if name not in KERNEL_ONLY and driver.chosen(name, checks.options)}
    made = rewritten.Rewritten(checks, names, (), {})
    for tool, name in ((tool, name) for name, tools in names.items() for tool in tools):
        results.count(f"{tool} {name}, rewritten", driver.problem(made.same_for_user, tool, name))


def inside(pc, ranges):
    return any(low <= pc < high for low, high in ranges)


class Ranges:
    """Of addresses; they do not overlap."""

    def __init__(self, pairs):
        self.pairs = sorted(pairs)
        self.lows = [low for low, _ in self.pairs]

    def holds(self, at):
        i = bisect.bisect_right(self.lows, at) - 1
        return i >= 0 and at < self.pairs[i][0] + self.pairs[i][1]


class Known:
    """The whole procedures that `inlay info` tells of."""

    def __init__(self, procedures):
        whole = [p for p in procedures if p["status"] == "whole"]
        blocks = [(b["address"], b["size"]) for p in whole for b in p["blocks"]]
        self.procedures = Ranges((p["address"], p["size"]) for p in whole)
        self.blocks, self.begins = Ranges(blocks), {at for at, _ in blocks}


def main():
    parser = driver.parser(__doc__)
    parser.set_defaults(build=os.path.abspath("build-aarch64"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--user", action="store_true")
    options = parser.parse_args()
    with driver.Results("aarch64", options) as results:
        lacking = [p for p in NEEDED if not shutil.which(p)]
        if lacking:
            results.skip("all", f"there is no {', '.join(lacking)} (scripts/install-deps aarch64)")
            return 0
        options.arm64 = machine.arm64_folder()
        if options.user:
            run_user(Checks(options, results.folder, "max", ALL, {}), results)
            return results.status
        files = {}
        for model, scope in {"max": ALL, "cortex-a57": ALL_ON_OTHERS}.items() if options.all else [("max", QUICK)]:
            wrong = driver.problem(Checks(options, results.folder, model, scope, files).run, results)
            if wrong:
                results.count(f"{model}: the machine", wrong)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
