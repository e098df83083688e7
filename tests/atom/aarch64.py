#!/usr/bin/python3
"""ATOM's tools on AArch64 programs, under qemu-aarch64: what is asked of code, and what routines are told. Their parts
are put together by hand, as `inlay atom` does it: that would have to start AArch64 programs itself.

  tests/atom/aarch64.py [--build BUILD-AARCH64] [--only PATTERN]
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support", f"{HERE}/../aarch64"]
import driver  # noqa: E402
import machine  # noqa: E402

CC, USER = "aarch64-linux-gnu-gcc", "qemu-aarch64"
TOOLS = f"{HERE}/tools"
COMPAT = f"{ROOT}/include/compat"
FLAGS = ["-O2", "-fPIE", "-fno-stack-protector", "-fno-common", "-fno-tree-vectorize", "-w", "-std=gnu89",
         f"-I{COMPAT}", f"-I{COMPAT}/aarch64", f"-I{ROOT}/include"]
# Of each instruction: offset, class, opcode (or 40).
INSTS = {
    "_start": ["0 6 34", "4 6 34", "8 7 40", "12 6 1a", "16 7 40", "20 7 40", "24 17 40"],
    "framed": ["0 2 40", "4 7 40", "8 2 40", "12 7 40", "16 2 40", "20 7 40", "24 0 40", "28 0 40", "32 4 1a"],
    "kinds": ["0 8 40", "4 9 40", "8 10 40", "12 11 40", "16 12 40", "20 13 40", "24 7 40", "28 14 40", "32 15 40",
              "36 16 40", "40 14 40", "44 7 40", "48 0 40", "52 1 40", "56 3 40", "60 2 40", "64 13 40", "68 17 40",
              "72 4 30", "76 4 1a"],
}
FRAMED = {"frame": 80, "saved": 3 << 19 | 3 << 29, "saved at": -48, "base": 29, "return in": 30, "symbol": 2, "moves sp": 4,
          "prologue": 16}


class Place:
    def __init__(self, options, folder):
        self.build, self.folder = options.build, folder
        self.sysroot = f"{machine.arm64_folder()}/sysroot"

    def call(self, *argv, status=0):
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, env=os.environ | {"CC": CC})
        if done.returncode != status:
            raise driver.Failed(f"{' '.join(argv[:6])} ended with {done.returncode}", *done.stderr.splitlines()[-8:])
        return done.stdout

    def tool(self, folder, name, routines):
        """The tool of two C files; `routines` are those of the analysis file."""
        for side in ("inst", "anal"):
            self.call(CC, *FLAGS, "-c", f"{folder}/{name}.{side}.c", "-o", f"{side}.o")
        entries = re.findall(r" T (Instrument\w*)$", self.call("nm", "inst.o"), re.M)
        called = {e: e if e in entries else "0" for e in ("InstrumentInit", "Instrument", "InstrumentFini")}
        with open(f"{self.folder}/main.c", "w") as f:
            f.write("struct atom_obj;\n#include <inlay_atom.h>\n")
            f.writelines(f"extern void {r}();\n" for r in routines)
            f.writelines(f"extern {'int' if e == 'Instrument' else 'void'} {e}();\n" for e in entries)
            f.write("static const atom_routine all[] = {"
                    + "".join(f'{{"{r}", (void (*)(void)){r}}}, ' for r in routines) + "{0, 0}};\n"
                    "static const char *const args[] = {0};\nint main(int argc, char **argv)\n{\n"
                    f'static const atom_tool t = {{"{name}", "anal", 0, args, 0, {called["InstrumentInit"]}, '
                    f'{called["Instrument"]}, {called["InstrumentFini"]}, all}};\nreturn atom_main(argc, argv, &t);\n}}\n')
        self.call(CC, *FLAGS, "-c", "main.c", "-o", "main.o")
        self.call(USER, "-L", self.sysroot, f"{self.build}/inlay", "cc", "main.o", "inst.o", "anal.o",
                  f"--sysroot={self.sysroot}", "-o", name)
        return f"{self.folder}/{name}"

    def said(self, tool, program, *run, status=0):
        """What the program says and leaves, with the tool in it."""
        self.call(USER, tool, "--inlay-rewrite", program, "-o", "rewritten")
        return self.call(USER, "rewritten", *run, status=status)


def facts(place):
    place.call(CC, "-nostdlib", "-static", f"{HERE}/facts_aarch64.S", "-o", "program")
    got = place.said(place.tool(TOOLS, "facts", ["Answer"]), "program").splitlines()
    proc, seen, frame = None, {p: [] for p in INSTS}, {}
    for line in got[got.index("agreed: 0") + 2:]:
        m = re.match(r"(\d+): class (\d+), opcode (\w+),", line)
        name = line.split(":")[0]
        if m:
            seen[proc].append(" ".join(m.groups()))
        elif line in (f"{p}: 0" for p in INSTS):
            proc = name
        elif proc == "framed":
            frame[name] = int(line.split()[-1])
    if seen != INSTS:
        raise driver.Failed("instructions", *(f"{p}: {seen[p]}" for p in INSTS if seen[p] != INSTS[p]))
    wrong = [f"{k} {frame.get(k)}, not {v}" for k, v in FRAMED.items() if frame.get(k) != v]
    if wrong:
        raise driver.Failed("framed", *wrong)


def resolved(place):
    """Names, threads, calls of a procedure: the numbers that x86-64 has too."""
    place.call(CC, "-O1", "-fno-builtin", "-pthread", "-static", f"{HERE}/resolved.c", "-o", "program")
    got = place.said(place.tool(TOOLS, "resolved", ["Called", "Begins", "Ends", "Report"]), "program")
    if got != "one object, known in each, told 1 times, called 5 times, 3 threads began, 3 ended\n":
        raise driver.Failed("resolved", got)


def arguments(place):
    """An example: arguments of a procedure that is called, in a program of which they are known."""
    place.call(CC, "-O1", "-static", f"{HERE}/sample.c", "-o", "program")
    tool = place.tool(f"{ROOT}/examples/atom", "read", ["Asked", "Report"])
    place.said(tool, "program", place.folder)
    with open(f"{place.folder}/read.out") as f:
        got = f.read()
    if got != "3 calls, 1010 bytes asked for\n":
        raise driver.Failed("read", got)


def main():
    parser = driver.parser(__doc__)
    parser.set_defaults(build=os.path.abspath("build-aarch64"))
    options = parser.parse_args()
    with driver.Results("atom-aarch64", options) as results:
        lacking = [p for p in (CC, USER) if not shutil.which(p)]
        if lacking:
            results.skip("all", f"there is no {', '.join(lacking)} (scripts/install-deps aarch64)")
            return 0
        place = Place(options, results.folder)
        for test in (facts, resolved, arguments):
            if driver.chosen(test.__name__, options):
                results.check(test.__name__, lambda: test(place))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
