#!/usr/bin/python3
"""What the live engine costs: putting a tool into a process, how long that stands still, and what a counter costs there.

  bench/live.py [--build DIR] [--runs N] [--json FILE]

The best of the runs counts, in processor time and elapsed (on a machine that does other work, only the former says
something):

  attach python3     `inlay attach calls`: every procedure of python3 and its libraries
  stopped            of that, how long all threads stand still
  entry              a counter at the entry of an empty procedure, called in a loop: nanoseconds a call more than natively
  entry and exit     the same with the cycle counter read at the procedure's entry and at its exit, and the calls counted
                     (clocked.c)
  breakpoint         `inlay break` at that procedure with a condition that is false (it compares an argument): nanoseconds a
                     call more than natively; and the same of gdb's
  toggle             inserted code is switched off or on while it is executed: nanoseconds
  points             a mutator (points.c) inserts 10,000 additions at entries of python3 and its libraries, from the attach to the
                     commit's end; and the longest time meanwhile that python3, which looks at the clock all the time, did not
  start ls           `inlay run --engine=live calls -- ls` in an empty folder, and the same by the JIT
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))

CALLS = 200_000_000
POINTS = 10_000
TARGETS = {"attach python3, s": 1.5, "stopped, ms": 10, "entry, ns": 2, "entry and exit, cycles, ns": 30, "points, elapsed s": 0.5, "points, longest gap, ms": 10,
           "false breakpoint, ns": 15, "toggle, ns": 2000}
CLOCK = """import select, sys, time
print(1, flush=True)
last, worst = time.perf_counter(), 0
while not select.select([0], [], [], 0)[0]:
    now = time.perf_counter()
    worst, last = max(worst, now - last), now
print(worst)
"""
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noipa)) void empty(long i) { __asm__ volatile("nop; nop; nop; nop" : : "r"(i)); }
static double now(int elapsed)
{
    struct timespec t;
    clock_gettime(elapsed ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int argc, char **argv)
{
    double best = 1e9;
    long calls = argc > 1 ? atol(argv[1]) : %d;
    for (int turn = 0; turn < 5; turn++) {
        double began = now(argc > 1);
        for (long i = 0; i < calls; i++) empty(i);
        if (now(argc > 1) - began < best) best = now(argc > 1) - began;
    }
    printf("%%.9f\\n", best);
}
""" % (CALLS // 5)


def children_cpu():
    t = os.times()
    return t.children_user + t.children_system


def attach(inlay, folder):
    """(processor seconds, elapsed seconds, milliseconds that it stood still)"""
    target = subprocess.Popen(["/usr/bin/python3", "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd=folder)
    target.stdout.readline()
    cpu, began = children_cpu(), time.monotonic()
    done = subprocess.run([inlay, "attach", "calls", "-o", f"{folder}/report", str(target.pid)], capture_output=True, text=True)
    elapsed, cpu = time.monotonic() - began, children_cpu() - cpu
    target.communicate(b"\n")
    stopped = re.search(r"stopped for (\d+) ms", done.stderr)
    if done.returncode or not stopped or target.returncode:
        sys.exit(f"bench/live: attach: {done.stderr.strip()}")
    return cpu, elapsed, float(stopped[1])


def entry(inlay, folder):
    """Nanoseconds a call: natively, counted where only the procedure is instrumented, and where all is."""
    source, program = f"{folder}/empty.c", f"{folder}/empty"
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    subprocess.run(["gcc", "-O2", source, "-o", program], check=True)
    run = [inlay, "run", "--engine=live", "calls", "-o", "/dev/null", "--image", "empty"]
    ways = [[program], [*run, "--proc", "empty", "--", program], [*run, "--", program]]
    for way in ways[1:]:
        way[way.index("/dev/null")] = f"{folder}/calls"
    times = [float(subprocess.run(way, check=True, capture_output=True).stdout) / (CALLS // 5) * 1e9 for way in ways]
    with open(f"{folder}/calls", encoding="utf-8") as f:
        if not re.search(rf"^ *{CALLS} +empty\b", f.read(), re.M):
            sys.exit("bench/live: it was not counted")
    return times


def clocked(inlay, folder):
    """Nanoseconds a call more. After `entry`."""
    program, tool, told = f"{folder}/empty", f"{folder}/clocked", f"{folder}/cycles"
    subprocess.run([inlay, "cc", "-O2", f"{HERE}/clocked.c", "-o", tool], check=True)
    run = [inlay, "run", "--engine=live", tool, "-o", told, "--image", "empty", "--proc", "empty", "--", program]
    native, with_clock = (float(subprocess.run(way, check=True, capture_output=True).stdout) / (CALLS // 5) * 1e9
                          for way in ([program], run))
    with open(told, encoding="utf-8") as f:
        found = re.fullmatch(rf"empty {CALLS} (\d+)\n", f.read())
    if not found or not CALLS < int(found[1]) < CALLS * 1000:
        sys.exit("bench/live: calls and cycles were not counted")
    return with_clock - native


def breakpoint_costs(inlay, folder):
    """Nanoseconds a call more, by `inlay break` and by gdb (None: it is not there). After `entry`."""
    program, calls = f"{folder}/empty", 4000
    native = float(subprocess.run([program], check=True, capture_output=True).stdout) / (CALLS // 5) * 1e9
    found = subprocess.run([inlay, "break", "empty if $arg0 == 77777777777", "--", program], check=True, capture_output=True)
    mine = float(found.stdout) / (CALLS // 5) * 1e9 - native
    if not shutil.which("gdb"):
        return mine, None
    found = subprocess.run(["gdb", "-nx", "-batch", "-ex", "break empty if $rdi == 77777777777", "-ex", f"run {calls}", program],
                           check=True, capture_output=True, text=True)
    seconds = float(re.search(r"^(\d+\.\d+)$", found.stdout, re.M)[1])
    return mine, seconds / calls * 1e9 - native


def toggle(inlay, folder):
    """Nanoseconds of the mutator's processor time, while the code is executed all the time."""
    live, talks, switches = f"{HERE}/../tests/live", f"{folder}/talks", f"{folder}/switches"
    if not os.path.exists(talks):
        subprocess.run(["gcc", "-O2", "-pthread", "-w", f"{live}/talks.c", "-o", talks], check=True)
        subprocess.run([inlay, "cc", "-O2", f"{live}/switches.c", "-o", switches], check=True)
    def as_others():  # or it would leave no processor to the mutator
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    with subprocess.Popen([talks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                          preexec_fn=as_others) as target:
        target.stdin.write("work 3\n")
        target.stdout.readline()
        lines = "entry on\nblocks on\ntoggle 1000000\n"
        with subprocess.Popen([switches, str(target.pid), "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as m:
            m.stdout.readline()
            target.stdin.write("work 100000000\n")
            out, _ = m.communicate(lines)
        target.kill()
    return float(out.split()[-1])


def points(inlay, folder):
    """(elapsed seconds, milliseconds of the longest gap)"""
    mutator, here = f"{folder}/points", os.path.dirname(os.path.abspath(__file__))
    subprocess.run([inlay, "cc", "-O2", f"{here}/points.c", "-o", mutator], check=True)
    target = subprocess.Popen(["/usr/bin/python3", "-S", "-c", CLOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    count, elapsed = subprocess.run([mutator, str(target.pid), str(POINTS)], check=True, capture_output=True, text=True).stdout.split()
    if int(count) != POINTS:
        sys.exit(f"bench/live: {count} points instead of {POINTS}")
    return float(elapsed), 1e3 * float(target.communicate("\n")[0])


def start(inlay, engine, folder):
    empty = f"{folder}/empty-folder"
    os.makedirs(empty, exist_ok=True)
    began = time.monotonic()
    subprocess.run([inlay, "run", f"--engine={engine}", "calls", "-o", "/dev/null", "--", "/usr/bin/ls"], check=True, cwd=empty)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    inlay, folder = f"{options.build}/inlay", tempfile.mkdtemp(prefix="inlay-live-")
    try:
        attached = [attach(inlay, folder) for _ in range(options.runs)]
        entries = [entry(inlay, folder) for _ in range(options.runs)]
        found = {"attach python3, s": min(a[0] for a in attached),
                 "attach python3, elapsed s": min(a[1] for a in attached),
                 "stopped, ms": min(a[2] for a in attached),
                 "entry, ns": min(e[1] for e in entries) - min(e[0] for e in entries),
                 "entry where all is instrumented, ns": min(e[2] for e in entries) - min(e[0] for e in entries)}
        found["entry and exit, cycles, ns"] = min(clocked(inlay, folder) for _ in range(options.runs))
        costs = [breakpoint_costs(inlay, folder) for _ in range(options.runs)]
        found["false breakpoint, ns"] = min(mine for mine, _ in costs)
        if costs[0][1]:
            found["false breakpoint, gdb, ns"] = min(gdb for _, gdb in costs)
        found["toggle, ns"] = min(toggle(inlay, folder) for _ in range(options.runs))
        inserted = [points(inlay, folder) for _ in range(options.runs)]
        found["points, elapsed s"], found["points, longest gap, ms"] = (min(p[k] for p in inserted) for k in (0, 1))
        for engine in ("live", "jit"):
            found[f"start ls, {engine}, elapsed s"] = min(start(inlay, engine, folder) for _ in range(options.runs))
    finally:
        shutil.rmtree(folder)
    for name, value in found.items():
        target = TARGETS.get(name)
        print(f"{name:38} {value:10.3f}" + (f"   (at most {target:g}: {'met' if value <= target else 'missed'})" if target else ""))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)


if __name__ == "__main__":
    main()
