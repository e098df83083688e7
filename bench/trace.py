#!/usr/bin/python3
"""What recording calls costs, beside others who record them.

  bench/trace.py [--build DIR] [--runs 3] [--calls 20000000] [--only NAME,NAME]

A loop of calls of a procedure that adds to a variable: native, recorded by Inlay's engines and by others (uftrace,
XRay, -finstrument-functions with a recorder of the same record as Inlay's in memory alone), in ns of processor time a call beyond
the native loop. And programs of the distribution: processor time beside native, calls recorded, ns a call. All of one row
take turns; least of --runs. The spread is that of the runs of each."""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
LOOP = """
#include <stdlib.h>
volatile long sink;
__attribute__((noinline)) void leaf(void) { sink++; }
int main(int argc, char **argv) { for (long i = 0, n = atol(argv[argc - 1]); i < n; i++) leaf(); return 0; }
"""
HOOKS = """
#include <stdint.h>
#include <x86intrin.h>
#define NO __attribute__((no_instrument_function))
static struct { uint64_t when, what; } records[1 << 16];
static unsigned at;
static NO void record(uint64_t what) { records[at & 65535].when = __rdtsc(); records[at++ & 65535].what = what; }
NO void __cyg_profile_func_enter(void *f, void *from) { (void)from; record((uint64_t)f); }
NO void __cyg_profile_func_exit(void *f, void *from) { (void)from; record((uint64_t)f | 1); }
"""
CLOCK = """
#include <x86intrin.h>
#include <stdlib.h>
int main(int argc, char **argv) { unsigned long s = 0; for (long i = 0, n = atol(argv[argc - 1]); i < n; i++) s += __rdtsc(); return s == 1; }
"""


def seconds(argv, **more):
    """Processor time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: status {done.returncode}: {done.stderr[-300:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(ways, runs):
    """Least and most, by name; the ways take turns."""
    times = {name: [] for name in ways}
    for _ in range(runs):
        for name, run in ways.items():
            times[name].append(run())
    return {name: (min(found), max(found)) for name, found in times.items()}


class Bench:
    def __init__(self, build, folder):
        self.inlay, self.folder = f"{os.path.abspath(build)}/inlay", folder

    def compiled(self, name, source, *flags):
        path = f"{self.folder}/{name}"
        with open(f"{path}.c", "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", *flags, f"{path}.c", "-o", path], check=True)
        return path

    def rewritten(self, program, name, *options):
        out = f"{self.folder}/{name}"
        result = f"{out}.trace"
        subprocess.run([self.inlay, "rewrite", "--result", result, "trace", *options, program, "-o", out], check=True,
                       stderr=subprocess.DEVNULL)
        return out, result

    def fresh(self, path, argv, **more):
        if os.path.exists(path):
            os.remove(path)
        return seconds(argv, **more)

    def recorded(self, engine, options, argv):
        out = f"{self.folder}/one.trace"
        return lambda: self.fresh(out, [self.inlay, "trace", f"--engine={engine}", *options, "-o", out, "--", *argv])

    def in_objects(self, n):
        """Instrumented objects, by what INLAY_TRACE says; and LLVM's XRay, where clang is."""
        ways, out = {}, f"{self.folder}/objects.trace"
        for name, options in (("whole", []), ("made", ["--clock=none"])):
            subprocess.run([self.inlay, "wrap", "-fn", "leaf", *options, "gcc", "-O2", f"{self.folder}/loop.c", "-o",
                            f"{self.folder}/{name}"], check=True)
        for name, program, settings in (("objects", "whole", ""), ("objects, counts", "whole", "counts"),
                                        ("objects, thin=1000", "whole", "thin=1000"), ("objects, made to count", "made", "")):
            ways[f"inlay, {name}"] = lambda p=program, s=settings: self.fresh(
                out, [f"{self.folder}/{p}", n], env=os.environ | {"INLAY_OUT": out, "INLAY_TRACE": s})
        if shutil.which("clang"):
            program, few = f"{self.folder}/xray", str(int(n) // 20)
            subprocess.run(["clang", "-O2", "-fxray-instrument", "-fxray-instruction-threshold=1", f"{self.folder}/loop.c", "-o", program],
                           check=True)
            for mode in ("basic", "fdr"):
                more = " xray_naive_log=false func_duration_threshold_us=0" if mode == "basic" else ""
                said = {"XRAY_OPTIONS": f"patch_premain=true xray_mode=xray-{mode} xray_logfile_base={program}-{mode}. verbosity=0",
                        "XRAY_BASIC_OPTIONS": more.strip(), "XRAY_FDR_OPTIONS": "func_duration_threshold_us=0:no_file_flush=true"}
                ways[f"XRay, {mode}"] = lambda e=said: 20 * self.forget(seconds([program, few], env=os.environ | e))
        return ways

    def loop(self, calls, runs):
        n, program, clock = str(calls), self.compiled("loop", LOOP), self.compiled("clock", CLOCK)
        hooked = self.compiled("hooked", HOOKS + LOOP, "-finstrument-functions")
        traced, result = self.rewritten(program, "loop-traced")
        ways = {"native": lambda: seconds([program, n]), "the clock alone": lambda: seconds([clock, n]),
                "-finstrument-functions, memory": lambda: seconds([hooked, n]),
                "inlay, rewritten": lambda: self.fresh(result, [traced, n])}
        for engine in ("live", "jit"):
            ways[f"inlay, {engine}"] = self.recorded(engine, ["-F", "leaf"], [program, n])
        ways["inlay, live, last 8 MB"] = self.recorded("live", ["-F", "leaf", "--last=8"], [program, n])
        ways["inlay, live, counts alone"] = self.recorded("live", ["-F", "leaf", "--clock=none"], [program, n])
        ways |= self.in_objects(n)
        ways["inlay, live, --thin=1000"] = self.recorded("live", ["-F", "leaf", "--thin=1000"], [program, n])
        if shutil.which("uftrace"):
            gcc = self.compiled("profiled", LOOP, "-pg")
            short = str(calls // 20)
            ways["uftrace"] = lambda: 20 * self.forget(seconds(["uftrace", "record", "-d", f"{self.folder}/uf", gcc, short]))
        times = measured(ways, runs)
        base, tick = times["native"][0], times["the clock alone"][0] / calls * 1e9
        print(f"{calls} calls; the clock takes {tick:.1f} ns, a recorded call reads it twice\n")
        print(f"{'':32}{'ns a call':>12}{'spread':>10}{'beyond the clock':>19}")
        for name, (least, most) in times.items():
            ns = (least - base) / calls * 1e9
            twice = name not in ("native", "the clock alone") and not re.search("count|thin", name)
            print(f"{name:32}{ns:12.1f}{(most - least) / least:10.1%}{f'{ns - 2 * tick:19.1f}' if twice else ''}")

    def forget(self, value):
        shutil.rmtree(f"{self.folder}/uf", ignore_errors=True)
        for name in os.listdir(self.folder):
            if name.startswith("xray-"):
                os.remove(f"{self.folder}/{name}")
        return value

    def program(self, name, argv, runs):
        path = shutil.which(argv[0])
        traced, result = self.rewritten(path, f"{name}-traced")
        counted, sums = self.rewritten(path, f"{name}-counted", "--clock=none")
        large, few = self.rewritten(path, f"{name}-large", "--min-size=100")
        times = measured({"native": lambda: seconds(argv), "all": lambda: self.fresh(result, [traced, *argv[1:]]),
                          "large": lambda: self.fresh(few, [large, *argv[1:]]),
                          "counts": lambda: self.fresh(sums, [counted, *argv[1:]])}, runs)
        report = json.loads(subprocess.run([self.inlay, "trace", "report", "--format=json", result], check=True,
                                           capture_output=True, text=True).stdout)[0]
        calls = sum(row["calls"] for row in report["procedures"])
        base = times["native"][0]
        ratio = {way: times[way][0] / base for way in times}
        print(f"{name:12}{base:9.2f} s{ratio['all']:9.3f}{ratio['large']:9.3f}{ratio['counts']:9.3f}{calls:14}"
              f"{(times['all'][0] - base) / max(calls, 1) * 1e9:11.1f}{(times['native'][1] - base) / base:9.1%}")


def inputs(folder):
    text = f"{folder}/text"
    with open(text, "w", encoding="utf-8") as f:
        for i in range(400000):
            f.write(f"{i * 7919 % 10007} the quick brown fox {i} jumps over {i * i % 977}\n")
    lua = f"{folder}/work.lua"
    with open(lua, "w", encoding="utf-8") as f:
        f.write("local t = {} for i = 1, 200000 do t[#t + 1] = tostring(i * 7919 % 10007) end table.sort(t) "
                "local s = 0 for i = 1, #t do s = s + #t[i]:gsub('1', 'one') end print(s)\n")
    return {"bzip2": ["bzip2", "-kc", text], "gzip": ["gzip", "-kc", text],
            "gawk": ["gawk", "{n[$1]++; s += length($0)} END {for (k in n) c++; print c, s}", text],
            "lua": ["lua5.4", lua],
            "perl": ["perl", "-ne", "$n{$1}++ if /^(\\d+) the (\\w+)/; END { print scalar keys %n }", text],
            "sqlite3": ["sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 "
                        "from c where x < 200000) insert into t select x, x * 7919 % 10007 from c; create index i on t(b); "
                        "select count(*), sum(a) from t where b < 500;"],
            "stockfish": ["stockfish", "bench", "16", "1", "8"]}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", default=f"{HERE}/../build")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--calls", type=int, default=20000000)
    p.add_argument("--only", default="loop,bzip2,gzip,gawk,lua,perl,sqlite3,stockfish")
    o = p.parse_args()
    os.environ["PATH"] += ":/usr/games"
    with tempfile.TemporaryDirectory() as folder:
        bench, wanted = Bench(o.build, folder), o.only.split(",")
        if "loop" in wanted:
            bench.loop(o.calls, o.runs)
        print(f"\nrewritten, beside native{'':16}all  >100 B   counts         calls  ns a call   spread")
        for name, argv in inputs(folder).items():
            if name not in wanted:
                continue
            if shutil.which(argv[0]):
                bench.program(name, argv, o.runs)
            else:
                print(f"{name:12} is not there")


if __name__ == "__main__":
    main()
