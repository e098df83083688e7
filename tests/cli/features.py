#!/usr/bin/python3
"""What the public headers promise of the program's memory, data of threads, atomic addition, values of counters and
names, kept by both engines alike: features_tool.c says what it finds in tests/samples/abilities.c.

  tests/cli/features.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
CALLS = 500
MEMORY = {"good": CALLS * 13}
LOCAL = {"good": CALLS * 5 + 2 * 5 + 1, "sum": CALLS * 5}
ATOMIC = {"good": 3, "sum": CALLS * 5}
# What the tool must find under the JIT and in the rewritten program.
EXPECTED = {
    "memory": (MEMORY, MEMORY),
    "local": (LOCAL, LOCAL),
    "atomic": (ATOMIC, ATOMIC),
    "value": ({"good": 1, "sum": None}, {"good": 1, "sum": None}),
    "names": ({"good": 20, "library": 1}, {"good": 20, "library": 2}),
}
NOTHING = {"wrong": 0, "good": 0, "sum": 0, "library": 0}


def check(argv, how, expected, native, report, env):
    done = driver.run(argv, LIMIT, env=env)
    output = native.stdout.replace(b"data 7", b"data 9") if how == "memory" else native.stdout
    told = [] if (done.status, done.stdout) == (native.status, output) else [f"the program says {done.stdout}"]
    with open(report, encoding="utf-8") as f:
        found = json.load(f)
    for name, value in (NOTHING | expected).items():
        if value is not None and found[name] != value:
            told.append(f"{name}: {found[name]} instead of {value}")
    if how == "names" and not (found["image"].startswith("libc") and "strlen" in found["procedure"]):
        told.append(f"the call leads to {found['procedure']} of {found['image']}")
    said = driver.as_lines(done.stderr)
    if told or (said and how != "local"):
        raise Failed(*told, *said[:6])
    return found


def cycles_of(argv, report, native, env):
    done = driver.run(argv, LIMIT, env=env)
    if (done.status, done.stdout) != (native.status, native.stdout):
        raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[:4])
    with open(report, encoding="utf-8") as f:
        return {p["name"]: p["cycles"] for p in json.load(f)["procedures"] if p["image"] == "imports"}


def check_locks(argv):
    """Whatever lock of the tool's another thread holds at a fork, the child is not kept waiting for it."""
    done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT)
    if (done.status, done.stdout) != (0, b"150 children\n"):
        raise Failed(f"status {done.status}, {done.stdout}", *driver.as_lines(done.stderr)[:4])


def check_writes(inlay, folder):
    """Callbacks that are shown images and code write to the program: what they write is what is used and executed, from
    the first time on, in memory that is guarded and in memory that is checked."""
    tool, program = f"{folder}/writes_tool", f"{folder}/writes_program"
    made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/writes_tool.c", "-o", tool], LIMIT)
    if made.status:
        raise Failed(*driver.as_lines(made.stderr)[-6:])
    driver.build("dynamic", f"{HERE}/writes_program.c", program)
    for stress in ("", "check", "tiny-cache", "flush"):
        env = driver.ENVIRONMENT | ({"INLAY_STRESS": stress} if stress else {})
        done = driver.run([inlay, "run", tool, "--", program], LIMIT, env=env)
        if (done.status, done.stdout) != (0, b"9 2000 2000\n") or done.stderr:
            raise Failed(f"{stress}: status {done.status}, {done.stdout}", *driver.as_lines(done.stderr)[:4])


def each_way(inlay, folder, name, *options):
    """The program NAME_program under NAME_tool: what it said and did by itself, and each way."""
    tool, program, new = (f"{folder}/{name}_{n}" for n in ("tool", "program", "new"))
    made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", f"{HERE}/{name}_tool.c", "-o", tool], LIMIT)
    if made.status:
        raise Failed(*driver.as_lines(made.stderr)[-6:])
    driver.build("dynamic", f"{HERE}/{name}_program.c", program)
    yield "native", driver.run([program], LIMIT)
    for engine in ("jit", "live"):
        yield engine, driver.run([inlay, "run", f"--engine={engine}", tool, *options, "--", program], LIMIT)
    driver.rewrite(inlay, [tool, *options, program, "-o", new], LIMIT)
    yield "rewritten", driver.run([new], LIMIT)


def check_files(inlay, folder):
    """A tool's own files have no numbers that the program could meet, are written at the end though nobody closes them,
    each line once, and can be written in a child of fork whichever thread was writing."""
    own = f"{folder}/files_own"
    for how, done in each_way(inlay, folder, "files", "--own", own):
        if how == "native":
            native = done
            continue
        with open(own, encoding="utf-8") as f:
            lines = sorted(f.read().split("\n"))
        os.remove(own)
        if done != native or lines != ["", "before", "child", "end 3", "end 3", "parent"]:
            raise Failed(f"{how}: status {done.status}, {done.stdout}", f"{lines}", *driver.as_lines(done.stderr)[:4])


def check_drops(inlay, folder):
    """Signals that a callback keeps from the program: handlers do not run, it does not end, and counts are right."""
    counts = set()
    for how, done in each_way(inlay, folder, "drops"):
        said = driver.as_lines(done.stderr)
        if how == "native":
            continue
        if (done.status, done.stdout) != (3, b"6 1, 30, 7096, 159\n") or len(said) != 1 or not said[0].startswith("10 2 1 5, "):
            raise Failed(f"{how}: status {done.status}, {done.stdout}", *said[:4])
        counts.add(said[0])
    if len(counts) != 1:
        raise Failed("counts differ", *counts)


def check_times(argv, report, native, env=driver.ENVIRONMENT):
    """A stub has not the time of who called it (all of that is in what was charged wrongly; a few turns of other
    processes may be in what is right, but not each time), and threads have data however many there have been."""
    runs = [cycles_of(argv, report, native, env) for _ in range(3)]
    stubs = [n for n in runs[0] if n.endswith("@plt") and not n.startswith("pthread")]
    told = [f"{n} has {[r[n] for r in runs]} cycles, who called it {[r['rounds'] for r in runs]}" for n in stubs
            if all(r[n] > r["rounds"] for r in runs)]
    told += [] if max(r["late"] for r in runs) > 50000 else ["the last thread has no time"]
    if told or len(stubs) < 2:
        raise Failed(*told, f"stubs: {stubs}")


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/abilities"
    with driver.Results("features", options) as results:
        tool, report, new = (f"{results.folder}/{name}" for name in ("features_tool", "report", "rewritten"))
        made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", f"{HERE}/features_tool.c", "-o", tool],
                          LIMIT)
        if made.status:
            results.count("compile", driver.as_lines(made.stderr)[-6:])
            return results.status
        native = driver.run([sample], LIMIT, env=driver.ENVIRONMENT)
        sums = {}

        def under_jit(how, expected):
            images = [] if how == "names" else ["--image=abilities"]
            argv = [inlay, "run", tool, *images, f"--how={how}", "-o", report, "--", sample]
            sums[how] = check(argv, how, expected, native, report, driver.ENVIRONMENT)["sum"]

        def rewritten(how, expected):
            driver.rewrite(inlay, [tool, f"--how={how}", sample, "-o", new], LIMIT)
            found = check([new], how, expected, native, report, driver.ENVIRONMENT | {"INLAY_OUT": report})
            if sums.get(how, found["sum"]) != found["sum"]:
                raise Failed(f"sum {found['sum']}, under the JIT {sums[how]}")

        def too_late():
            done = driver.run([inlay, "rewrite", tool, "--how=late", sample, "-o", f"{new}.late"], LIMIT)
            if done.status != 1 or b"inlay_counter_value" not in done.stderr or os.path.exists(f"{new}.late"):
                raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[-2:])

        forking = f"{options.build}/tests/samples/forking"

        def locks_under_jit():
            check_locks([inlay, "run", tool, "--image=forking", "--how=locks", "-o", report, "--", forking])

        def locks_rewritten():
            driver.rewrite(inlay, [tool, "--how=locks", forking, "-o", new], LIMIT)
            check_locks([new])

        imports = f"{options.build}/tests/samples/imports"
        calls = [f"{options.build}/tools/calls", "--time", "--format=json"]

        def times_under_jit():
            check_times([inlay, "run", *calls, "--image=imports", "-o", report, "--", imports], report,
                        driver.run([imports], LIMIT))

        def times_rewritten():
            driver.rewrite(inlay, [*calls, imports, "-o", new], LIMIT)
            check_times([new], report, driver.run([imports], LIMIT), driver.ENVIRONMENT | {"INLAY_OUT": report})

        for how, (jit, rewrite) in EXPECTED.items():
            for name, function, expected in (("jit", under_jit, jit), ("rewritten", rewritten, rewrite)):
                if driver.chosen(f"{name} {how}", options):
                    results.check(f"{name} {how}", lambda f=function, h=how, e=expected: f(h, e))
        for name, function in (("rewritten late", too_late), ("jit locks", locks_under_jit),
                               ("jit writes", lambda: check_writes(inlay, results.folder)),
                               ("files", lambda: check_files(inlay, results.folder)),
                               ("drops", lambda: check_drops(inlay, results.folder)),
                               ("rewritten locks", locks_rewritten), ("jit times", times_under_jit),
                               ("rewritten times", times_rewritten)):
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
