#!/usr/bin/python3
"""What the rewriter writes, as a file.

  tests/rewrite/files.py [--build DIR] [--only CASE] [--keep]   (cases use what the forms have built)

  forms      a C++ program with every kind of exception (unwinding.cc), compiled and linked in many ways,
             stripped, without section headers, with data behind its end: null and bbcount leave its output
  names      gdb's backtrace through moved code names the original procedures
  set-ID     bits and capabilities that are not taken over are told of
  layout     segments, program headers, notes and data of the new file are what loaders expect
  symbols    dynamic symbols name new code where all that takes the address does, else the old
  libraries  a program and its library, rewritten together, throw across each other
  refusals   bad input and output paths: an error, no output, the input untouched

Prints a line for each failure and at the end N passed, N failed.
"""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
SOURCE = f"{HERE}/unwinding.cc"
# name, compiler, flags; a compiler or linker that is missing is skipped aloud.
FORMS = [
    ("pie", "g++", "-O2"),
    ("unoptimised", "g++", "-O0"),
    ("small", "g++", "-Os"),
    ("no-pie", "g++", "-O2 -no-pie -fno-pie"),
    ("static", "g++", "-O2 -static"),
    ("static-pie", "g++", "-O2 -static-pie"),
    ("now", "g++", "-O2 -Wl,-z,now -Wl,-z,relro"),
    ("large-model", "g++", "-O2 -mcmodel=large"),
    ("endbr", "g++", "-O2 -fcf-protection=full -Wl,-z,ibt -Wl,-z,shstk"),
    ("no-spare-tags", "g++", "-O2 -Wl,--spare-dynamic-tags=0"),
    ("link-relocations", "g++", "-O2 -Wl,--emit-relocs"),
    ("clang", "clang++", "-O2"),
    ("lld", "clang++", "-O2 -fuse-ld=lld"),
    ("gold", "g++", "-O2 -fuse-ld=gold"),
]
LIBRARY = """
#include <stdexcept>
struct guard { int *p; ~guard() { ++*p; } };
extern "C" __attribute__((noinline)) int lib_throw(int k, int *p)
{ guard g{p}; if (k & 1) throw std::runtime_error("lib"); return k; }
extern "C" int lib_call(int k, int (*f)(int), int *p)
{ guard g{p}; try { return f(k) + lib_throw(k, p); } catch (const std::runtime_error &) { return -1; } }
"""
USER = """
#include <cstdio>
#include <stdexcept>
extern "C" int lib_throw(int, int *), lib_call(int, int (*)(int), int *);
static int calls(int k) { if (k > 2) throw k; return 10 * k; }
int main()
{
    int n = 0;
    for (int k = 0; k < 6; k++) {
        int a, b;
        try { a = lib_throw(k, &n); } catch (const std::exception &) { a = -2; }
        try { b = lib_call(k, calls, &n); } catch (int i) { b = -i; }
        std::printf("%d %d %d %d\\n", k, a, b, n);
    }
}
"""
RUST = """
use std::panic;
struct D(i32);
impl Drop for D { fn drop(&mut self) { println!("drop {}", self.0); } }
#[inline(never)] fn f(k: i32) -> i32 { let _d = D(k); if k > 2 { panic!("boom"); } k * 2 }
fn main() {
    panic::set_hook(Box::new(|_| {}));
    for k in 0..5 { println!("{} {:?}", k, panic::catch_unwind(|| f(k)).is_ok()); }
}
"""


def run(argv, **keywords):
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT, text=True, errors="replace", **keywords)
    except subprocess.TimeoutExpired:
        raise Failed(f"{argv[0]}: still running")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, content, mode=0o755):
    with open(path, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
    os.chmod(path, mode)


class Elf:
    def __init__(self, path):
        self.data = read(path)
        (self.type, _, _, self.entry, self.phoff, self.shoff, _, _, _, phnum, _, shnum, _) = \
            struct.unpack_from("<HHIQQQIHHHHHH", self.data, 16)
        self.phdrs = [struct.unpack_from("<IIQQQQQQ", self.data, self.phoff + 56 * i) for i in range(phnum)]
        self.sections = shnum

    def of_type(self, kind):  # type, flags, offset, address, -, file size, memory size, align
        return [p for p in self.phdrs if p[0] == kind]

    def notes(self):
        found = {}
        for p in self.of_type(4):
            at, end = p[2], p[2] + p[5]
            while at + 12 <= end:
                names, descs, kind = struct.unpack_from("<III", self.data, at)
                name = self.data[at + 12:at + 12 + names].rstrip(b"\0").decode()
                start = at + 12 + (names + 3 & ~3)
                found[name, kind] = self.data[start:start + descs]
                at = start + (descs + p[7] - 1 & ~(p[7] - 1))
        return found


def without_sections(path, out):
    """What sstrip leaves: nothing behind the last segment's bytes."""
    elf = Elf(path)
    data = bytearray(elf.data[:max(p[2] + p[5] for p in elf.of_type(1))])
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    write(out, bytes(data))


class Test:
    def __init__(self, results):
        self.results, self.inlay, self.root = results, f"{results.options.build}/inlay", results.folder

    def case(self, name, function, *arguments):
        """`function` may answer why it cannot be tried."""
        if not driver.chosen(name, self.results.options):
            return
        skipped = []
        wrong = driver.problem(lambda: skipped.append(function(*arguments)))
        if skipped and skipped[0]:
            self.results.skip(name, skipped[0])
        else:
            self.results.count(name, wrong)

    def rewrite(self, tool, program, out, *options):
        done = run([self.inlay, "rewrite", tool, program, "-o", out, *options])
        if done.returncode:
            raise Failed(f"rewrite {tool}: status {done.returncode}, {done.stderr[-300:].strip()}")
        return out

    def same(self, program, out, *arguments):
        environment = os.environ | {"INLAY_OUT": f"{self.root}/result"}
        a, b = run([program, *arguments]), run([out, *arguments], env=environment)
        if a.returncode != b.returncode or a.stdout != b.stdout:
            raise Failed(f"{os.path.basename(out)}: status {b.returncode} instead of {a.returncode}, output "
                        f"{'equal' if a.stdout == b.stdout else 'differs'} {b.stderr[-200:].strip()}")

    def both(self, program):
        for tool in ("null", "bbcount"):
            self.same(program, self.rewrite(tool, program, f"{program}.{tool}"))

    def compile(self, name, compiler, flags):
        out = f"{self.root}/{name}"
        if not shutil.which(compiler):
            return None
        done = run([compiler, "-std=c++14", "-w", *flags.split(), SOURCE, "-o", out, "-pthread"])
        return None if done.returncode else out

    def form(self, name, compiler, flags):
        program = self.compile(name, compiler, flags)
        if not program:
            return f"{compiler} {flags} does not work here"
        self.both(program)

    def shapes(self):
        program, data = f"{self.root}/pie", b"behind the end " * 500
        stripped = f"{self.root}/stripped"
        run(["strip", "-o", stripped, program])
        without_sections(program, f"{self.root}/bare")
        write(f"{self.root}/overlay", read(program) + data)
        for name in ("stripped", "bare", "overlay"):
            self.both(f"{self.root}/{name}")
        size = os.path.getsize(program)
        if read(f"{self.root}/overlay.null")[size:size + len(data)] != data:
            raise Failed("data behind the end have moved")

    def set_id(self):
        """Set-ID bits and capabilities are left out, and that is said; it is not said of other files."""
        program, out = f"{self.root}/set-id", f"{self.root}/set-id.null"
        shutil.copy(f"{self.root}/pie", program)
        for mode, expected in ((0o4755, True), (0o2755, True), (0o755, False)):
            os.chmod(program, mode)
            done = run([self.inlay, "rewrite", "null", program, "-o", out])
            if done.returncode or ("set-user-ID" in done.stderr) != expected or os.stat(out).st_mode & 0o7777 != 0o755:
                raise Failed(f"mode {mode:o}: status {done.returncode}, {os.stat(out).st_mode:o}, said {done.stderr}")
        if "getcap" in done.stderr:
            raise Failed(f"of a file without capabilities: {done.stderr}")
        try:  # cap_net_raw, revision 2
            os.setxattr(program, "security.capability", bytes.fromhex("0100000200200000") + bytes(12))
        except OSError as e:
            return f"files cannot be given capabilities here: {e}"
        done = run([self.inlay, "rewrite", "null", program, "-o", out])
        if done.returncode or "getcap" not in done.stderr or "security.capability" in os.listxattr(out):
            raise Failed(f"capabilities: status {done.returncode}, {os.listxattr(out)}, said {done.stderr}")
        return None

    def rust(self):
        source, program = f"{self.root}/panics.rs", f"{self.root}/panics"
        write(source, RUST, 0o644)
        if not shutil.which("rustc") or run(["rustc", "-O", source, "-o", program]).returncode:
            return "there is no rustc"
        self.both(program)

    def names(self, program, expected):
        if not shutil.which("gdb"):
            return "there is no gdb"
        self.rewrite("null", program, f"{program}.null")
        done = run(["gdb", "-batch", "-nx", "-ex", "run abort", "-ex", "bt", f"{program}.null"],
                   env=os.environ | {"DEBUGINFOD_URLS": ""})
        frames = [line.split(" in ", 1)[1].split()[0] for line in done.stdout.splitlines()
                  if line.startswith("#") and " in " in line]
        for name in expected:
            at = next((i for i, f in enumerate(frames) if f.startswith(name)), None)
            if at is None:
                raise Failed(f"no {name} in {frames}")
            frames = frames[at + 1:]

    def layout(self, name):
        old, new = Elf(f"{self.root}/{name}"), Elf(f"{self.root}/{name}.bbcount")
        loads = new.of_type(1)
        if [p[3] for p in loads] != sorted(p[3] for p in loads):
            raise Failed("segments out of order")
        for a, b in zip(loads, loads[1:]):
            if a[3] + a[6] > b[3]:
                raise Failed("segments overlap")
        if any((p[3] - p[2]) % min(p[7], 4096) for p in loads):
            raise Failed("addresses and offsets disagree")
        if any(p[1] & 3 == 3 for p in loads):
            raise Failed("a segment is writable and executable")
        if loads[:len(old.of_type(1))] != old.of_type(1):
            raise Failed("the original's segments have changed")
        for kind in (0x6474e551, 0x6474e552, 7):  # GNU_STACK, GNU_RELRO, TLS
            if old.of_type(kind) != new.of_type(kind):
                raise Failed(f"program header {kind:#x} has changed")
        home = [p for p in loads if p[2] <= new.phoff < p[2] + p[5]]
        if not home or home[0][3] - home[0][2] != loads[0][3] - loads[0][2]:
            raise Failed("the program headers are not where older kernels look")
        for p in new.of_type(6):
            if p[2] != new.phoff or p[3] != home[0][3] + new.phoff - home[0][2]:
                raise Failed("PT_PHDR leads elsewhere")
        notes = new.notes()
        if notes.get(("GNU", 3)) != old.notes().get(("GNU", 3)):
            raise Failed("the build-id has changed")
        if ("Inlay", 1) not in notes or len(notes.get(("Inlay", 2), b"")) != 20:
            raise Failed("Inlay's notes are missing")
        for p in old.of_type(1):
            if not p[1] & 2 and not p[1] & 1 and old.data[4096:] and p[2] >= 4096 and \
                    old.data[p[2]:p[2] + p[5]] != new.data[p[2]:p[2] + p[5]]:
                raise Failed("constant data have changed")

    def tables(self, name):
        if not shutil.which("readelf"):
            return "there is no readelf"
        for option in ("-Wwf", "-WlSdrsnV"):
            done = run(["readelf", option, f"{self.root}/{name}.bbcount"])
            if done.returncode or done.stderr.strip():
                raise Failed(f"readelf {option}: {done.stderr.strip()[:300]}")

    def properties(self):
        """x86 features: a file whose endbr64 were overwritten is not fit for IBT; shadow stacks still are."""
        def features(path):
            properties = Elf(path).notes().get(("GNU", 5), b"")
            at = properties.find(struct.pack("<II", 0xc0000002, 4))
            return struct.unpack_from("<I", properties, at + 8)[0] if at >= 0 else 0
        old, new = features(f"{self.root}/endbr"), features(f"{self.root}/endbr.null")
        if (old, new) != (3, 2):
            raise Failed(f"features {old} became {new}")

    def libraries(self):
        folder, out = f"{self.root}/apart", f"{self.root}/together"
        os.makedirs(folder)
        write(f"{folder}/lib.cc", LIBRARY)
        write(f"{folder}/user.cc", USER)
        steps = (["-shared", "-fPIC", f"{folder}/lib.cc", "-o", f"{folder}/libapart.so"],
                 [f"{folder}/user.cc", "-o", f"{folder}/user", f"-L{folder}", "-lapart", f"-Wl,-rpath,{folder}"])
        for step in steps:
            if run(["g++", "-O2", *step]).returncode:
                return "there is no g++"
        for tool in ("null", "bbcount"):
            done = run([self.inlay, "rewrite", tool, f"{folder}/user", "--with-libs", f"{out}-{tool}"])
            if done.returncode:
                raise Failed(f"{tool} --with-libs: {done.stderr[-300:].strip()}")
            self.same(f"{folder}/user", f"{out}-{tool}/user")
            loaded = run([f"{out}-{tool}/user"], env=os.environ | {"LD_DEBUG": "files", "INLAY_OUT": "/dev/null"})
            if f"{folder}/libapart.so" in loaded.stderr:
                raise Failed("the original library is loaded")

    # --- refusals

    def refused(self, what, program, out, tool="null", **keywords):
        folder = f"{self.root}/refused"
        before = {p: hashlib.sha256(read(p)).digest() for p in {program, f"{self.root}/pie"} if os.path.isfile(p)}
        listing = sorted(os.listdir(folder))
        done = run([self.inlay, "rewrite", tool, program, "-o", out], **keywords)
        if done.returncode <= 0 or done.returncode > 125:
            raise Failed(f"{what}: status {done.returncode}")
        lines = done.stderr.strip().splitlines()
        if len(lines) != 1 or len(lines[0]) < 20:
            raise Failed(f"{what}: said {lines}")
        if sorted(os.listdir(folder)) != listing:
            raise Failed(f"{what}: left {set(os.listdir(folder)) - set(listing)}")
        if any(hashlib.sha256(read(p)).digest() != digest for p, digest in before.items()):
            raise Failed(f"{what}: the input has changed")

    def outputs(self):
        program, folder = f"{self.root}/pie", f"{self.root}/refused"
        os.makedirs(folder)
        os.symlink(program, f"{folder}/link")
        os.link(program, f"{folder}/hard")
        self.refused("the input", program, program)
        self.refused("a link to the input", program, f"{folder}/link")
        self.refused("another name of the input", program, f"{folder}/hard")
        self.refused("a folder", program, folder)
        self.refused("a device", program, "/dev/null")
        self.refused("no such folder", program, f"{folder}/none/out")
        self.refused("no such input", f"{folder}/none", f"{folder}/out")
        small = lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (8192, 8192))
        self.refused("a limit of file size", program, f"{folder}/out", preexec_fn=small)
        full = f"{self.root}/full"
        os.makedirs(full)
        if run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", full]).returncode == 0:
            try:
                self.refused("a full disk", program, f"{full}/out")
                if os.listdir(full):
                    raise Failed("a full disk: a partial file is left")
            finally:
                run(["umount", full])

    def damaged(self):
        good, folder = read(f"{self.root}/pie"), f"{self.root}/refused"
        elf = Elf(f"{self.root}/pie")
        loads = [i for i, p in enumerate(elf.phdrs) if p[0] == 1]
        bad = {f"cut to {n}": good[:n] for n in (0, 3, 20, 63, 64, 100, elf.phoff + 60, 4096, 9000)}

        def patched(offset, fmt, value):
            data = bytearray(good)
            struct.pack_into(fmt, data, offset, value)
            return bytes(data)
        header = elf.phoff + 56 * loads[1]
        bad["overlapping segments"] = patched(header + 16, "<Q", elf.phdrs[loads[0]][3])
        bad["a huge segment"] = patched(header + 40, "<Q", 1 << 46)
        bad["a segment beyond the file"] = patched(header + 32, "<Q", 1 << 30)
        bad["an address of its own"] = patched(header + 16, "<Q", elf.phdrs[loads[1]][3] + 8)
        bad["no program headers"] = patched(56, "<H", 0)
        bad["program headers outside"] = patched(32, "<Q", 1 << 40)
        bad["32 bits"] = patched(4, "<B", 1)
        bad["text"] = b"#!/bin/sh\necho not an ELF file\n"
        for name, data in bad.items():
            path = f"{folder}/bad"
            write(path, data)
            self.refused(name, path, f"{folder}/out")
        for name, offset in (("section headers outside", 40), ("section headers within", 40)):
            write(f"{folder}/odd", patched(offset, "<Q", (1 << 40) if "outside" in name else 24))
            self.same(f"{folder}/odd", self.rewrite("null", f"{folder}/odd", f"{folder}/odd.null"))
            os.unlink(f"{folder}/odd.null")

    def exceptions(self):
        """Many throws across moved frames, with counters in them; what they cost is the benchmark's affair."""
        for moved in ("pie.null", "pie.bbcount"):
            self.same(f"{self.root}/pie", f"{self.root}/{moved}", "100000")

    def low(self):
        """A program that is linked to where the tool inside would lie."""
        program = self.compile("low", "g++", "-no-pie -Wl,-Ttext-segment=0x70000000")
        if not program:
            return "the linker cannot place a program there"
        self.same(program, self.rewrite("null", program, f"{program}.null"))
        self.refused("the tool's place", program, f"{self.root}/refused/low", tool="bbcount")

    def bytes(self):
        """The report accounts for every byte of text, and for those that were left by their reasons."""
        for program in ("/bin/ls", "/bin/bzip2", "/usr/bin/gawk", "/lib/x86_64-linux-gnu/libc.so.6",
                        f"{self.results.options.build}/tests/samples/plain"):
            report = f"{self.root}/report"
            done = run([self.inlay, "rewrite", "null", program, "-o", f"{self.root}/accounted", "--report", report])
            if done.returncode:
                raise Failed(f"{program}: {done.stderr[-300:]}")
            with open(report) as f:
                image = json.load(f)["images"][0]
            parts = image["bytes"]
            if sum(parts.values()) != image["text_bytes"] or parts["moved"] != image["moved_bytes"]:
                raise Failed(f"{program}: {parts} of {image['text_bytes']} bytes, {image['moved_bytes']} moved")
            left = [p for p in image["list"] if p["status"] == "left alone"]
            reasons = image["left_because"]
            if sum(r["bytes"] for r in reasons) != parts["left_alone"] or sum(r["procedures"] for r in reasons) != len(left):
                raise Failed(f"{program}: {reasons} for {parts['left_alone']} bytes in {len(left)} procedures")

    def symbols(self):
        """Of the library beside samples/identity."""
        folder = f"{self.root}/symbols"
        os.makedirs(folder)
        self.rewrite("null", f"{self.results.options.build}/tests/samples/libidentity.so", f"{folder}/libidentity.so")
        lines = run(["readelf", "-WS", "--dyn-syms", f"{folder}/libidentity.so"]).stdout.splitlines()
        low, size = (int(re.search(r" \.inlay\.text +PROGBITS +(\w+) \w+ (\w+)", "\n".join(lines))[k], 16) for k in (1, 2))
        where, second = {}, {}  # by name: in new code? What has moved has a second one, hidden, where the first is not
        for words in (line.split() for line in lines):
            if len(words) == 8 and words[0][:-1].isdigit():
                (second if words[5] == "HIDDEN" else where)[words[7]] = low <= int(words[1], 16) < low + size
        expected = {"called": True, "picked": True, "kept": False, "table": False, "pick": False,
                    "behind_data": False, "only_jumps": False}
        for name, new in expected.items():
            if where.get(f"library_{name}") != new:
                raise Failed(f"library_{name}: {where.get(f'library_{name}')}, expected {new}")
            if second.get(f"library_{name}", not new) == new:
                raise Failed(f"library_{name}: both symbols are in the same code")
        if "library_called" not in second or "library_kept" not in second:
            raise Failed(f"second symbols: {second}")


def all_cases(test):
    for name, compiler, flags in FORMS:
        test.case(name, test.form, name, compiler, flags)
    test.case("stripped, bare, overlay", test.shapes)
    test.case("set-ID bits", test.set_id)
    test.case("every byte of text", test.bytes)
    test.case("rust", test.rust)
    test.case("names", test.names, f"{test.root}/pie", ["leaf", "middle", "top", "main"])
    test.case("names of a stripped program", test.names, f"{test.root}/stripped", ["sub_", "sub_", "sub_"])
    test.case("names of a static program", test.names, f"{test.root}/static", ["leaf", "middle", "top", "main"])
    for name in ("pie", "no-pie", "static", "static-pie", "no-spare-tags", "clang"):
        if os.path.exists(f"{test.root}/{name}.bbcount"):
            test.case(f"layout of {name}", test.layout, name)
            test.case(f"tables of {name}", test.tables, name)
    test.case("properties", test.properties)
    test.case("libraries", test.libraries)
    test.case("symbols", test.symbols)
    test.case("outputs that are refused", test.outputs)
    test.case("damaged input", test.damaged)
    test.case("many exceptions", test.exceptions)
    test.case("the tool's place is taken", test.low)


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("files", options) as results:
        if shutil.which("g++"):
            all_cases(Test(results))
        else:
            results.skip("all", "there is no g++")
    return results.status


if __name__ == "__main__":
    sys.exit(main())
