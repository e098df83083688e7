#!/usr/bin/python3
"""What recording calls costs in programs that are built from source: rewritten, in objects, by -finstrument-functions and uftrace.

  bench/objects.py --sources DIR [--build DIR] [--runs 3] [--only NAME,NAME] [--ways 'WAY;WAY'] [--work DIR] [--instructions] [--lines N]

DIR holds folders of sources as `apt-get source` unpacks them (bzip2-*, gzip-*, gawk-*, lua5.4-*, perl-*, sqlite3-*,
stockfish-*); a program whose folder is not there is left out, and said. Each is built natively, by `inlay wrap` with all
procedures, with those of at least 120 bytes (large: some 30 instructions), with those whose shortest way through is 30
instructions (long), and for counts alone, with -finstrument-functions, whose hooks put the same record into a ring in
memory, and write no file, and with -pg for uftrace, where that is there. *clock* is what none of them goes below: objects of
the same points (all, long) whose entries and exits read the time-stamp counter, and do nothing with it.
Objects count also by INLAY_TRACE=counts (all procedures, exits looked at), and those of `long` run with
INLAY_TRACE=thin=1000 (all calls are counted, of a procedure's later ones fewer and fewer recorded). The native one is rewritten: all, large,
counts alone. Processor time beside native, least of --runs, all ways in turns, and what the runs of the native one differ
by; calls, ns a call in objects; with --instructions those executed, as inscount has it, on an input a twentieth as long. The
last row is the geometric mean."""

import argparse
import glob
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
from trace import HOOKS, measured, seconds  # noqa: E402

CLOCK = """
        .text
        .globl  __inlay_trace_entry_needs_libinlay_trace, __inlay_trace_exit_needs_libinlay_trace
__inlay_trace_entry_needs_libinlay_trace:
__inlay_trace_exit_needs_libinlay_trace:
        push    %rax
        push    %rdx
        rdtsc
        pop     %rdx
        pop     %rax
        ret
        .section .note.GNU-stack,"",@progbits
"""
LARGE, LONG = "--min-size=120", "--min-path=30"
# What a source has ready made is not made again, though patches are younger.
READY = "; ".join(f"find . -name '{name}' -exec touch {{}} +; sleep 1" for name in ("aclocal.m4", "configure", "*.h.in", "*.hin", "Makefile.in"))
# Once, natively; then with each compiler in a copy; the program.
RECIPES = {
    "bzip2": ("bzip2-*", "true", "make bzip2.o libbz2.a CC=\"$CC\" CFLAGS='-O2 -g' && $CC bzip2.o libbz2.a -o bzip2", "bzip2"),
    "gzip": ("gzip-*", f"{READY}; ./configure CFLAGS='-O2 -g'", "make SUBDIRS='lib .' CC=\"$CC\" MAKEINFO=true", "gzip"),
    "gawk": ("gawk-*", f"{READY}; ./configure --disable-nls --disable-extensions CFLAGS='-O2 -g'", "make -C support CC=\"$CC\" && make gawk CC=\"$CC\"", "gawk"),
    "lua": ("lua5.4-*", "rm src/luac.c && echo '#define DEB_HOST_MULTIARCH \"x\"' > src/lua5.4-deb-multiarch.h",
            "cd src && for f in *.c; do $CC -std=gnu99 -O2 -g -DLUA_USE_POSIX "
            "-DLUA_USE_DLOPEN -c $f || exit 1; done; $CC *.o -lm -ldl -o lua", "src/lua"),
    "perl": ("perl-*", "./Configure -des -Doptimize='-O2 -g' && make miniperlmain.o && rm miniperlmain.o",
             "sed -i \"s#^cc=.*#cc='$CC'#\" config.sh && make miniperl CC=\"$CC\"", "miniperl"),
    "sqlite3": ("sqlite3-*", "./configure --disable-tcl --disable-readline && make sqlite3.c shell.c",
                "$CC -O2 -g shell.c sqlite3.c -lpthread -ldl -lm -o sqlite3", "sqlite3"),
    "stockfish": ("stockfish-*", "true", "cd src && for f in $(find * -name '*.cpp'); do $(echo $CC | sed s/gcc/g++/) -std=c++17 -O2 -g "
                  "-DNDEBUG -DIS_64BIT -DUSE_SSE2 -DNNUE_EMBEDDING_OFF -c $f -o $(echo $f | tr / _).o || exit 1; done; "
                  "$(echo $CC | sed s/gcc/g++/) *.o -lpthread -o stockfish", "src/stockfish"),
}
BUILDS = {"native": "gcc", "objects": "{inlay} wrap gcc", "objects-large": "{inlay} wrap {large} gcc",
          "objects-long": "{inlay} wrap {long} gcc",
          "clock": "{inlay} wrap gcc {clock}", "clock-long": "{inlay} wrap {long} gcc {clock}",
          "objects-counted": "{inlay} wrap --clock=none gcc", "-finstrument": "gcc -finstrument-functions {hooks}", "-pg": "gcc -pg"}
REWRITES = {"rewritten": [], "rewritten, large": [LARGE], "rewritten, long": [LONG], "rewritten, counts": ["--clock=none"]}
# How a way's program is made, what INLAY_TRACE says, what stands in front.
WAYS = {"objects": ("objects", "", []), "objects, large": ("objects-large", "", []), "objects, long": ("objects-long", "", []),
        "clock": ("clock", "", []), "clock, long": ("clock-long", "", []), "objects, counts": ("objects-counted", "", []),
        "at run time": ("objects", "counts", []), "long, thinned": ("objects-long", "thin=1000", []), "-finstrument": ("-finstrument", "", []),
        "uftrace": ("-pg", "", ["uftrace", "record", "--no-pager", "--no-libcall", "-d", "{result}.uftrace"])}


def inputs(folder, count):
    text, lua, perl = f"{folder}/text-{count}", f"{folder}/work-{count}.lua", f"{folder}/work-{count}.pl"
    with open(text, "w", encoding="utf-8") as f:
        for i in range(count):
            f.write(f"{i * 7919 % 10007} the quick brown fox {i} jumps over {i * i % 977}\n")
    with open(lua, "w", encoding="utf-8") as f:
        f.write(f"local t = {{}} for i = 1, {count} do t[#t + 1] = tostring(i * 7919 % 10007) end table.sort(t) "
                "local s = 0 for i = 1, #t do s = s + #t[i]:gsub('1', 'one') end print(s)\n")
    with open(perl, "w", encoding="utf-8") as f:
        f.write("my (%n, $s); while (<>) { chomp; my @w = split / /; $n{$w[0]}++; $s += length; s/fox (\\d+)/$1 fox/; $s ^= ord } "
                "print join(' ', scalar(keys %n), $s, (sort { $n{$a} <=> $n{$b} || $a <=> $b } keys %n)[0]), \"\\n\"\n")
    return {"bzip2": ["-kc", text], "perl": [perl, text], "stockfish": ["bench", "16", "1", str(max(count // 25000, 4))], "gzip": ["-kc", text], "lua": [lua],
            "gawk": ["{n[$1]++; s += length($0)} END {for (k in n) c++; print c, s}", text],
            "sqlite3": [":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < "
                        f"{count}) insert into t select x, x * 7919 % 10007 from c; create index i on t(b); "
                        "select count(*), sum(a) from t where b < 500;"]}


def shell(command, folder, **more):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder}: {command}: {(done.stdout + done.stderr)[-600:]}")


class Bench:
    def __init__(self, options, folder):
        self.inlay, self.o, self.folder = f"{os.path.abspath(options.build)}/inlay", options, folder
        self.hooks = f"{folder}/hooks.o"
        with open(f"{folder}/hooks.c", "w", encoding="utf-8") as f:
            f.write(HOOKS)
        shell("gcc -O2 -c hooks.c -o hooks.o", folder)
        self.clock = f"{folder}/clock.o"
        with open(f"{folder}/clock.S", "w", encoding="utf-8") as f:
            f.write(CLOCK)
        shell("gcc -c clock.S -o clock.o", folder)
        self.result = f"{folder}/one.trace"
        asked = options.ways.split(";") if options.ways else [*WAYS, *REWRITES]
        self.ways = {way: made for way, made in WAYS.items() if way in asked and (way != "uftrace" or shutil.which("uftrace"))}
        self.rewrites = {way: more for way, more in REWRITES.items() if way in asked}
        used = {"native", *(made for made, _, _ in self.ways.values())}
        self.builds = {way: text.format(inlay=self.inlay, large=LARGE, long=LONG, hooks=self.hooks, clock=self.clock) for way, text in BUILDS.items() if way in used}

    def built(self, name, source):
        """Paths of the program, by how it was built; kept from one run of this script to the next in --work."""
        _, prepare, build, program = RECIPES[name]
        ready, out = f"{self.folder}/{name}", {}
        if not os.path.exists(ready):
            shell(f"cp -a '{source}' '{ready}.part'", self.folder)
            shell(prepare, f"{ready}.part")
            os.rename(f"{ready}.part", ready)
        for way, compiler in self.builds.items():
            path = f"{ready}-{way}"
            if not os.path.exists(path):
                shell(f"cp -a '{ready}' '{path}.part'", self.folder)
                shell(build, f"{path}.part", CC=compiler, INLAY_OUT=self.result)
                os.rename(f"{path}.part", path)
            out[way] = f"{path}/{program}"
        for way, options in self.rewrites.items():
            out[way] = f"{out['native']}-{way.replace(', ', '-')}" # what it reads may lie beside it
            subprocess.run([self.inlay, "rewrite", "--result", self.result, "trace", *options, out["native"], "-o", out[way]],
                           check=True, stderr=subprocess.DEVNULL)
        return out

    def command(self, programs, way, argv):
        made, settings, front = WAYS.get(way, (way, "", []))
        return [word.format(result=self.result) for word in front] + [programs[made], *argv], settings

    def fresh(self, argv, settings=""):
        if os.path.exists(self.result):
            os.remove(self.result)
        shutil.rmtree(f"{self.result}.uftrace", ignore_errors=True)
        return seconds(argv, env=os.environ | {"INLAY_OUT": self.result, "INLAY_TRACE": settings})

    def calls(self):
        text = subprocess.run([self.inlay, "trace", "report", "--format=json", self.result], check=True, capture_output=True,
                              text=True).stdout
        return sum(row["calls"] for row in json.loads(text)[0]["procedures"])

    def instructions(self, argv, settings):
        done = subprocess.run([self.inlay, "run", "--follow=", "inscount", "--", *argv], check=True, capture_output=True, text=True,
                              env=os.environ | {"INLAY_OUT": self.result, "INLAY_TRACE": settings}, errors="replace")
        return max(int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", done.stderr))

    def program(self, name, source, table):
        programs, argv = self.built(name, source), inputs(self.folder, self.o.lines)[name]
        ways = ["native", *self.ways, *self.rewrites]
        times = measured({way: lambda w=way: self.fresh(*self.command(programs, w, argv)) for way in ways}, self.o.runs)
        base, most = times["native"]
        counted = next((way for way in ("objects", "objects, long") if way in self.ways), None)
        calls = 0
        if counted:
            self.fresh(*self.command(programs, counted, argv))
            calls = self.calls()
        row = {way: times[way][0] / base for way in ways[1:]}
        table.append(row)
        ns = (times[counted][0] - base) / max(calls, 1) * 1e9 if counted else 0
        print(f"{name:10}{base:7.2f}{(most - base) / base:8.1%}" + "".join(f"{row[way]:19.3f}" for way in row) +
              f"{calls:12}{ns:8.1f}", flush=True)
        if self.o.instructions:
            argv = inputs(self.folder, self.o.lines // 20)[name]
            count = {}
            for way in ("native", *self.ways):
                if way != "uftrace":
                    command, settings = self.command(programs, way, argv)
                    count[way] = self.instructions(command, settings)
            print("          instructions beside native: " +
                  ", ".join(f"{way} {n / count['native']:.2f}" for way, n in count.items() if way != "native"), flush=True)

    def all(self):
        table, heads = [], [*self.ways, *self.rewrites]
        print(f"{'':10}{'native':>7}{'spread':>8}" + "".join(f"{head:>19}" for head in heads) + f"{'calls':>12}{'ns each':>8}")
        for name in self.o.only.split(","):
            found = [path for path in sorted(glob.glob(f"{self.o.sources}/{RECIPES[name][0]}")) if os.path.isdir(path)]
            if found:
                self.program(name, found[-1], table)
            else:
                print(f"{name:10} no {self.o.sources}/{RECIPES[name][0]}")
        if table:
            print(f"{'mean':25}" + "".join(
                f"{math.exp(sum(math.log(row[head]) for row in table) / len(table)):19.3f}" for head in heads))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--sources", required=True)
    p.add_argument("--build", default=f"{HERE}/../build")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--only", default=",".join(RECIPES))
    p.add_argument("--ways", help="these columns alone, with ; between them")
    p.add_argument("--work", help="where what was built is kept, and found again")
    p.add_argument("--instructions", action="store_true")
    p.add_argument("--lines", type=int, default=200000, help="how long inputs are")
    o = p.parse_args()
    folder = os.path.abspath(o.work) if o.work else tempfile.mkdtemp(prefix="inlay-objects-")
    os.makedirs(folder, exist_ok=True)
    try:
        Bench(o, folder).all()
    finally:
        if not o.work:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
