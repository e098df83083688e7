#!/usr/bin/python3
"""How far recorded times are from what procedures take natively.

  bench/errors.py [--build DIR] [--runs 5]

Eight procedures that take from a few to some ten thousand cycles, each a chain of multiplications, are timed by the
program itself, a thousand calls at once, natively. Then each way records single calls of them: what its report says is the
average, less the native time, and the deviation of single calls. Medians of --runs, in ns; other work on the machine
spoils deviations first."""

import argparse
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
STEPS = (1, 8, 32, 64, 128, 512, 2048, 8192)
PROGRAM = """
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
""" + "".join(f"""
__attribute__((noinline)) unsigned long work{n}(unsigned long x)
{{
    for (int i = 0; i < {n}; i++) __asm__ volatile("imul %0, %0" : "+r"(x));
    return x;
}}
""" for n in STEPS) + """
#define TIME(n) do { double least = 1e18; for (int k = 0; k < 100; k++) { double from = now(); \\
    for (int i = 0; i < 100; i++) x = work##n(x); double took = now() - from; if (took < least) least = took; } \\
    printf("%d %.3f\\n", n, least / 100); } while (0)
int main(int argc, char **argv)
{
    unsigned long x = (unsigned long)argc | 1;
    """ + " ".join(f"TIME({n});" for n in STEPS) + """
    return argv[0] == (char *)x;
}
"""


class Bench:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.out = f"{os.path.abspath(build)}/inlay", folder, f"{folder}/errors.trace"
        with open(f"{folder}/errors.c", "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-O2", f"{folder}/errors.c", "-o", f"{folder}/errors"], check=True)
        subprocess.run([self.inlay, "wrap", "-F", "work*", "gcc", "-O2", f"{folder}/errors.c", "-o", f"{folder}/objects"], check=True)
        subprocess.run([self.inlay, "rewrite", "--proc", "work*", "trace", f"{folder}/errors", "-o", f"{folder}/rewritten"], check=True,
                       stderr=subprocess.DEVNULL)

    def native(self):
        text = subprocess.run([f"{self.folder}/errors"], check=True, capture_output=True, text=True).stdout
        return {int(line.split()[0]): float(line.split()[1]) for line in text.splitlines()}

    def ways(self):
        program = f"{self.folder}/errors"
        yield "objects", [f"{self.folder}/objects"]
        yield "rewritten", [f"{self.folder}/rewritten"]
        for engine in ("live", "jit"):
            yield engine, [self.inlay, "trace", f"--engine={engine}", "-F", "work*", "-o", self.out, "--", program]

    def recorded(self, argv):
        if os.path.exists(self.out):
            os.remove(self.out)
        subprocess.run(argv, check=True, capture_output=True, env=os.environ | {"INLAY_OUT": self.out})
        read = lambda *argv: json.loads(subprocess.run([self.inlay, "trace", *argv, self.out], check=True, capture_output=True,
                                                       text=True).stdout)
        cost = read("report", "--format=json")[-1]["record_ns"]
        calls = {}
        for event in read("export", "chrome")["traceEvents"]:
            if event["ph"] == "X":
                calls.setdefault(event["name"], []).append(event["dur"] * 1000 - cost)
        return {n: sorted(calls[f"work{n}"]) for n in STEPS}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", default=f"{HERE}/../build")
    p.add_argument("--runs", type=int, default=5)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench, natives, found = Bench(o.build, folder), [], {}
        for _ in range(o.runs):
            natives.append(bench.native())
            for name, argv in bench.ways():
                found.setdefault(name, []).append(bench.recorded(argv))
    base = {n: min(one[n] for one in natives) for n in STEPS}
    print(f"{'':12}" + "".join(f"{base[n]:>18.1f}" for n in STEPS) + "   native, ns")
    for name, runs in found.items():
        calls = {n: sorted(call - base[n] for run in runs for call in run[n]) for n in STEPS}
        tenths = {n: [calls[n][len(calls[n]) * k // 10] for k in (5, 1, 9)] for n in STEPS}
        print(f"{name:12}" + "".join(f"{f'{m:+.0f} ({low:+.0f} {high:+.0f})':>18}" for m, low, high in tenths.values()))
    print("the median call less native (one in ten is below, above)")


if __name__ == "__main__":
    main()
