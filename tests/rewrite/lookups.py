#!/usr/bin/python3
"""Programs that look their return addresses up in tables of their own: rewritten, they find them.

  tests/rewrite/lookups.py [--build DIR] [--only CASE] [--keep] [--large]

  ocaml      frames are described in caml_frametable; dynamic, fixed, static, stripped: calls stay in place, those that end a
             procedure too
  records    the same by hand: addresses behind calls in data, one a record
  offsets    offsets of return addresses, in code that no unwind table describes: that shows by the table; where it is
             not in order, by a register of the run time's own (roots), by calls through pointers alone (apart)
  compiled   C code without unwind tables, linked with a C library that has them, is as good as any other, whoever calls whom
  stacks     the same in a program without unwind tables, whose code checks a stack of its own
  pieces     stacks that grow by pieces (-fsplit-stack), which are left on a way of their own
  saved      a run that was saved as a program (GCL's, old Emacs's) is refused: its heap must begin where new code would lie
  profiled   who calls whom is counted (-pg) by return addresses: the profile is that of the original, live too
  sections   code asks whether it was called from a section of its own (gperftools): it was, live too
  copied     the program copies code of its own and runs the copy, live too: what two addresses bound, in two pieces; a procedure
             in front of padding that is left for calls is none such
  sleds      the program writes calls into its procedures where a section says (clang's -fxray-instrument)
  node       (with --large) V8's built-ins, in a node that was stripped

Prints N passed, N failed at the end.
"""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
OCAML = """
type tree = Leaf | Node of tree * int * tree
exception Found of int
let rec insert t x = match t with
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) -> if x < y then Node (insert l x, y, r) else if x > y then Node (l, y, insert r x) else t
let rec sum = function Leaf -> 0 | Node (l, x, r) -> sum l + x + sum r
let rec find t x = match t with
  | Leaf -> raise Not_found
  | Node (l, y, r) -> if x = y then raise (Found (sum l)) else find (if x < y then l else r) x
let () =
  let t = ref Leaf in
  for i = 1 to 20000 do t := insert !t ((i * 7919) mod 10007); if i mod 5000 = 0 then Gc.compact () done;
  let words = Hashtbl.create 7 in
  for i = 1 to 3000 do Hashtbl.replace words (string_of_int (i mod 700)) (List.init (i mod 9) (fun k -> k * i)) done;
  Gc.full_major ();
  let found = ref 0 in
  for i = 1 to 12000 do try find !t i with Found n -> found := !found + n | Not_found -> decr found done;
  Printf.printf "%d %d %d\\n" (sum !t) !found (Hashtbl.fold (fun _ l a -> a + List.length l) words 0);
  print_endline (String.concat "," (List.map (Printf.sprintf "%x") (List.sort compare [5; 300; -1; 70])))
"""

# Procedures that end with a call that does not return, each longer than the one before by 7 bytes: behind some of the
# calls there is no padding. Whoever raised, and who called, stands in the same table as the collector's frames.
RAISES = "".join(f"let [@inline never] end{i} a = {'Array.unsafe_set a 0 1; ' * i}raise Exit\n" for i in range(18)) + """
let () =
  Printexc.record_backtrace true;
  let a = Array.make 1 0 in
  List.iter (fun f -> try ignore (f a : int) with Exit -> print_endline (Printexc.get_backtrace ()))
    [""" + "; ".join(f"end{i}" for i in range(18)) + "]\n"

# Asks, with its return address, whether it is known: printed is how many were.
WALK = """
#include <stdio.h>
#include <stdint.h>
struct record { uint64_t place; uint64_t size; };
extern struct record records[] __attribute__((weak));
extern const unsigned offsets[] __attribute__((weak));
extern char code[] __attribute__((weak));
extern const int count;
long limits[8];
int known, lost;
void walk(void) {
    uint64_t here = (uint64_t)__builtin_return_address(0);
    for (int i = 0; i < count; i++)
        if (records ? records[i].place == here : (uint64_t)code + offsets[i] == here) { known++; return; }
    lost++;
}
void all(void);
static int ordinary(int n) { return n < 2 ? n : ordinary(n - 1) + ordinary(n - 2); }
int plain(const char *s) { int n = 0; while (*s) n = n * 31 + *s++; return n + ordinary(n & 7); }
int main(int argc, char **argv) { all(); printf("%d known, %d lost, %d\\n", known, lost, plain("some text")); return 0; }
"""
COUNT = 120


def routines(kind=""):
    """Procedures that call walk and each other, and `all`, which calls them. They rely on r15 where it leads to the
    stack's limit (stacks; the first has its own r15 further on) or to something else (roots)."""
    text, places = ".text\n.p2align 6\n.globl all\ncode:\n.globl code\n", []
    for i in range(COUNT):
        limit = {"stacks": "  cmp 16(%r15), %rsp\n  jb 8f\n  incq 24(%r15)\n", "roots": "  incq 24(%r15)\n"}.get(kind, "")
        own, back = ("  incq 24(%r15)\n  push %r15\n  lea limits(%rip), %r15\n", "  pop %r15\n") if kind == "stacks" and i == 0 else ("", "")
        limit = own or limit
        walk = "*walk_at(%rip)" if kind == "apart" else "walk@PLT"
        inner = f"  call part{i + 1}\n.Lb{i}:\n" if i % 3 == 0 and i + 1 < COUNT else "  nop\n"
        gap = 4 * (i * i % 7 + i % 3 + 2)  # equal distances are in many tables
        text += (f".p2align 2, 0xcc\n.skip {gap}, 0xcc\npart{i}:\n  push %rbx\n{limit}  lea limits(%rip), %rbx\n  call {walk}\n.La{i}:\n"
                 f"{inner}  call {walk}\n.Lc{i}:\n{back}8: pop %rbx\n  ret\n")
        places += [f".La{i}", f".Lc{i}"]
    calls = "".join(f"  call part{i}\n" for i in range(COUNT))
    text += f".p2align 6, 0xcc\nall:\n  push %r15\n  lea limits(%rip), %r15\n{calls}  pop %r15\n  ret\n"
    return text + (".data\n.p2align 3\nwalk_at: .quad walk\n" if kind == "apart" else ""), places


def by_records():
    text, places = routines()
    data = "".join(f"  .quad {place}\n  .quad 16\n" for place in places)
    return described(text) + f".data\n.p2align 3\n.globl records\nrecords:\n{data}" + counted(places)


def by_offsets(kind="", ordered=True):
    text, places = routines(kind)
    data = "".join(f"  .long {place} - code\n" for place in (places if ordered else reversed(places)))
    return text + f".section .rodata\n.p2align 3\n.globl offsets\noffsets:\n{data}" + counted(places)


def counted(places):
    return (f".section .rodata\n.p2align 2\n.globl count\ncount: .long {len(places)}\n"
            f".section .note.GNU-stack,\"\",@progbits\n")


def described(text):
    begun = re.sub(r"^(part\d+|all):\n", r"\1:\n.cfi_startproc\n", text, flags=re.M)
    return begun.replace("  ret\n", "  ret\n.cfi_endproc\n")


# Without unwind tables; the rest has some.
COMPILED = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int total;
#define STEP(n, next) __attribute__((noinline)) static void step##n(char *s, int k) { \\
    char line[80]; \\
    if (k <= 0) return; \\
    snprintf(line, sizeof line, "%s %d %d", s, n, k); \\
    char *copy = strdup(line), *digit = strpbrk(copy, "0123456789"); \\
    if (digit) total += (int)strtol(digit, NULL, 10) * (int)strlen(copy); \\
    memmove(copy, copy + strlen(copy) / 2, strlen(copy) / 2 + 1); \\
    next(copy, k - 1); \\
    free(copy); }
static void last(char *s, int k) { total += (int)strlen(s) + k; }
@steps@
int main(int argc, char **argv) { for (int i = 0; i < 60; i++) step0("text", i + argc); printf("%d\\n", total); return 0; }
"""


# Procedures that call nobody else's, without unwind tables.
CALLED = """
#define STEP(n, next) int next(int, int); int step##n(int a, int k) { \\
    int s = a; \\
    for (int i = 1; i < k; i++) s = s % (i + n) * 31 + (s >> i) + i * n; \\
    return k < 0 ? s : s ^ next(s, k - 1) + next(a ^ s, k - 40); }
@steps@
int last(int a, int k) { return a + k; }
"""


def called():
    """The rest, which has tables, calls many of them: what it is in, and they."""
    callers = "".join(f"int step{i}(int, int);\n" for i in range(40))
    calls = "".join(f"    s += step{i}(argc, {i % 7 + 3});\n" for i in range(40))
    main = f"#include <stdio.h>\n{callers}int main(int argc, char **argv) {{\n    int s = 0;\n{calls}    printf(\"%d\\n\", s);\n}}\n"
    steps = [f"STEP({i}, {f'step{i + 1}' if i < 39 else 'last'})" for i in range(40)]
    return main, CALLED.replace("@steps@", "\n".join(steps))


def compiled():
    steps = [f"STEP({i}, {f'step{i + 1}' if i < 39 else 'last'})" for i in range(40)]
    return COMPILED.replace("@steps@", "\n".join(reversed(steps)))


# A sled at the entry of a procedure, its record, and a run time that writes a call into it.
SLEDS = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
struct record { int64_t place, procedure; uint8_t kind, always, version, none[13]; };
extern struct record begin[] __asm__("sleds_begin");
extern char enter[];
int entered, work(int n);
__asm__(".text\\n.globl work\\n.type work, @function\\nwork: .cfi_startproc\\n.Lsled: .byte 0xeb, 9, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0\\n"
        "  lea 3(%rdi, %rdi), %eax\\n  cmp $9, %edi\\n  ja 1f\\n  inc %eax\\n1: ret\\n  .cfi_endproc\\n.size work, . - work\\n"
        ".p2align 6\\n.globl enter\\n.type enter, @function\\nenter: .cfi_startproc\\n  add %r10d, entered(%rip)\\n  ret\\n  .cfi_endproc\\n.size enter, . - enter\\n"
        ".section xray_instr_map, \\"a\\"\\nsleds_begin:\\n1: .quad .Lsled - 1b\\n2: .quad work - 2b\\n.byte 0, 1, 2\\n.zero 13\\n.text\\n");
int main(void)
{
    char *place = (char *)&begin->place + begin->place, *page = (char *)((uintptr_t)place & ~4095ul);
    int sum = 0, distance = (int)(enter - (place + 11)), number = 5;
    for (int i = 0; i < 20; i++) sum += work(i);
    mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(place + 2, &number, 4);
    place[6] = (char)0xe8;
    memcpy(place + 7, &distance, 4);
    memcpy(place, "\\x41\\xba", 2);
    for (int i = 0; i < 20; i++) sum += work(i);
    printf("%d %d\\n", sum, entered);
    return 0;
}
"""

COPIED = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
typedef int way(int (*)(int), int);
extern char start[], end[];
int ordinary(int n);
__asm__(".text\\n.p2align 4\\n.globl start\\n.type start, @function\\nstart:\\n  push %rbx\\n  mov %rdi, %rcx\\n  mov %esi, %edi\\n  mov %esi, %eax\\n"
        "  test %esi, %esi\\n  js piece\\n  call *%rcx\\n  inc %eax\\n.globl piece\\n.type piece, @function\\npiece:\\n  pop %rbx\\n  ret\\n.globl end\\nend:\\n"
        ".p2align 4\\n.globl ordinary\\n.type ordinary, @function\\nordinary:\\n  lea 3(%rdi, %rdi, 2), %eax\\n  xor $0x12345678, %eax\\n"
        "  rol $3, %eax\\n  lea 5(%rax), %eax\\n  ret\\n.size ordinary, . - ordinary\\n1: .skip 8, 0x90\\n.globl patched\\n.type patched, @function\\npatched:\\n  mov %edi, %eax\\n  ret\\n"
        ".section __patchable_function_entries, \\"aw\\"\\n.p2align 3\\n.quad 1b\\n.text\\n");
int main(void)
{
    char *copy = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, start, (size_t)(end - start));
    int sum = 0;
    for (int i = -2; i < 9; i++) sum = sum * 3 + ((way *)copy)(ordinary, i);
    printf("%d\\n", sum);
    return 0;
}
"""

# A thread's stack and a loop's call, which need more pieces.
PIECES = """
#include <pthread.h>
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) static unsigned deep(unsigned n, unsigned s)
{
    volatile char room[3000];
    memset((char *)room, (int)n, sizeof room);
    if (n == 0) return s;
    unsigned below = deep(n - 1, s * 31 + n);
    return below ^ (unsigned char)room[n];
}
static void *run(void *from) { return (void *)(long)deep(1000, (unsigned)(long)from); }
int main(int argc, char **argv)
{
    pthread_t thread;
    void *result;
    for (int i = 0; i < 5; i++) printf("%u\\n", deep(200u * i, (unsigned)argc));
    pthread_create(&thread, 0, run, (void *)7);
    pthread_join(thread, &result);
    printf("%u\\n", (unsigned)(long)result);
    return 0;
}
"""

SAVED = """
#include <stdio.h>
__attribute__((section("heap"))) char saved[100] = "saved";
int main(void) { return puts(saved) < 0; }
"""


NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
class Box { constructor(x) { this.x = x } get twice() { return this.x * 2 } }
const boxes = new Map(); for (let i = 0; i < 1000; i++) boxes.set('k' + i, new Box(i));
let sum = 0; for (const [, box] of boxes) sum += box.twice;
try { null.x } catch (e) { console.log(e instanceof TypeError, e.stack.split('\\n').length > 1) }
(async () => {
    await new Promise(done => setTimeout(done, 10));
    const many = []; for (let i = 0; i < 1e6; i++) many.push({ i });
    console.log(fib(25), sum, many.length, JSON.stringify({ a: [1, { b: 2 }] }), 'abc'.replace(/b/g, 'X'));
})();
"""

PROFILED = """
#include <stdio.h>
#include <stdlib.h>
static int (*volatile way)(int);
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int twice(int n) { return way(n) + way(n + 1); }
__attribute__((noinline)) int last(int n) { return n & 1 ? twice(n) : way(n); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void)
{
    int x[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    way = fib;
    for (int i = 0; i < 8; i++) x[i] += last(i);
    qsort(x, 9, sizeof *x, compare);
    printf("%d %d %d\\n", x[0], x[4], x[8]);
}
"""

SECTIONS = """
#include <stdio.h>
extern char __start_inner[], __stop_inner[];
static int inside, outside;
__attribute__((noinline)) int look(int n)
{
    char *from = __builtin_return_address(0);
    if (from >= __start_inner && from < __stop_inner) inside++;
    else outside++;
    return n + 1;
}
__attribute__((noinline, section("inner"))) int hooked(int n) { return look(n) + look(n * 3); }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += hooked(i) + look(i);
    printf("%d: %d inside, %d outside\\n", sum, inside, outside);
}
"""


SHOWN = """#[inline(never)]
fn inner(n: usize) -> usize { if n > 3 { panic!("too much: {}", n) } n + 1 }
#[inline(never)]
fn outer(n: usize) -> usize { inner(n) * 2 }
fn main() { println!("{}", outer(std::env::args().count() + 3)); }
"""


class Test:
    def __init__(self, results):
        self.results, self.root = results, results.folder
        self.inlay = f"{results.options.build}/inlay"

    def write(self, name, text):
        with open(f"{self.root}/{name}", "w") as f:
            f.write(text)
        return name

    def run(self, *argv):
        done = driver.run(argv, LIMIT, cwd=self.root)
        if done.status != 0:
            raise Failed(f"{argv[0]}: status {done.status}", *driver.as_lines(done.stderr)[-8:])

    def same(self, name, tool, reason, arguments=()):
        """The rewritten program does the same, and its report tells why something was left."""
        program, out, report = (f"{self.root}/{name}{suffix}" for suffix in ("", f".{tool}", ".json"))
        driver.rewrite(self.inlay, [tool, program, "-o", out, f"--report={report}"])
        native = driver.run([program, *arguments], LIMIT)
        if native.status != 0:
            raise Failed(f"{name}: status {native.status}")
        here = driver.run([out, *arguments], LIMIT, env=os.environ | {"INLAY_OUT": f"{out}.result"})
        told = driver.differences(native, here)
        if told:
            raise Failed(*told)
        with open(report) as f:
            text = f.read()
        if reason not in text:
            raise Failed(f"the report does not say: {reason}")
        return json.loads(text)["images"][0]

    def stays(self, name, tool, least):
        """Procedures have moved whose calls are made where they were, at least so many; all such."""
        image = self.same(name, tool, "")
        told = [f"{p['name']}: {p['reason']}" for p in image["list"] if "data hold return" in p.get("reason", "")]
        if told or image["calls_in_place"] < least:
            raise Failed(f"calls of {image['calls_in_place']} procedures stay", *told[:4])

    def ocaml(self, name, flags, strip):
        source = self.write(f"{name}.ml", OCAML + RAISES)
        self.run("ocamlopt", "-g", *flags, source, "-o", name)
        if strip:
            self.run("strip", name)
        for tool in ("null", "bbcount"):
            self.stays(name, tool, 500)

    def by_hand(self, name, assembly, flags, reason):
        """`reason`: why they are left; None: they move, and their calls stay."""
        self.write("walk.c", WALK)
        self.write(f"{name}.s", assembly)
        self.run("gcc", "-O1", "-s", *flags, "walk.c", f"{name}.s", "-o", name)
        for tool in ("null", "inscount"):
            if reason:
                self.same(name, tool, reason)
            else:
                self.stays(name, tool, COUNT)
        said = driver.run([f"{self.root}/{name}"], LIMIT).stdout.decode()
        if " 0 lost" not in said:
            raise Failed(f"natively: {said}")

    def c_called(self, name, flags, bare):
        main, steps = called()
        self.run("gcc", "-O2", *flags, *bare, "-c", self.write("steps.c", steps), "-o", "steps.o")
        self.c_code(name, [*flags, "-static", f"{self.root}/steps.o"], main)

    def c_code(self, name, flags, source):
        """All of it moves."""
        self.run("gcc", "-O2", *flags, self.write(f"{name}.c", source), "-o", name)
        for tool in ("null", "inscount"):
            self.same(name, tool, "")
        with open(f"{self.root}/{name}.json") as f:
            left = [p for p in json.load(f)["images"][0]["list"] if p["status"] != "moved"]
        told = [f"{p['name']}: {p['reason']}" for p in left if p["name"].startswith("step") or "unwind" in p["reason"]]
        if told:
            raise Failed(f"{len(told)} procedures are left", *told[:4])

    def sleds(self):
        self.run("gcc", "-O1", self.write("sleds.c", SLEDS), "-o", "sleds")
        for tool in ("null", "bbcount"):
            self.same("sleds", tool, "the program may write calls into it")

    def copied(self, name, flags):
        self.run("gcc", "-O1", *flags, self.write(f"{name}.c", COPIED), "-o", name)
        for tool in ("null", "bbcount"):
            image = self.same(name, tool, "may copy it")
            left = [p["size"] for p in image["list"] if "may copy it" in p.get("reason", "")]
            if sum(left) != 18:  # without names they are one piece
                raise Failed("other pieces are left", repr(left))
            native, here = (driver.run([*how, f"{self.root}/{name}"], LIMIT) for how in (
                (), (self.inlay, "run", "--engine=live", tool, "-o", f"{self.root}/report", "--")))
            if (native.status, native.stdout) != (here.status, here.stdout):
                raise Failed(f"live, {tool}: {here.status} {here.stdout}")

    def pieces(self, name, flags):
        self.run("gcc", "-fsplit-stack", *flags, self.write(f"{name}.c", PIECES), "-o", name, "-lpthread")
        for tool in ("null", "bbcount"):
            self.same(name, tool, "its stack grows by pieces")

    def saved(self):
        self.run("gcc", "-no-pie", self.write("saved.c", SAVED), "-o", "run")
        self.run("objcopy", "--rename-section", "heap=.data", "run", "saved")
        self.same("run", "null", "")
        done = driver.run([self.inlay, "rewrite", "null", "saved", "-o", "out"], LIMIT, cwd=self.root)
        if done.status == 0 or b"saved as a program" not in done.stderr or os.path.exists(f"{self.root}/out"):
            raise Failed(f"rewritten: status {done.status}", *driver.as_lines(done.stderr))

    def profile(self, *argv):
        """Which calls there were, of each how many, and by whom."""
        self.run(*argv)
        told = driver.run(["gprof", "-b", "-q", "profiled", "gmon.out"], LIMIT, cwd=self.root).stdout.decode()
        os.unlink(f"{self.root}/gmon.out")
        return re.findall(r"(\d+(?:[/+]\d+)?) +(\w+) \[\d+\]", told)

    def profiled(self, compiler, flags):
        self.run(compiler, "-O1", "-pg", *flags, self.write("profiled.c", PROFILED), "-o", "profiled")
        native = self.profile("./profiled")
        if not any(name == "fib" and "+" in calls for calls, name in native):
            raise Failed("there is no profile", repr(native))
        for tool in ("null", "bbcount"):
            said = driver.rewrite(self.inlay, [tool, f"{self.root}/profiled", "-o", f"{self.root}/rewritten"])
            if "-static" not in flags and " 0 left alone" not in said:
                raise Failed(said)
            for argv in (["./rewritten"], [self.inlay, "run", "--engine=live", tool, "-o", "report", "--", "./profiled"]):
                here = self.profile(*argv)
                if here != native:
                    raise Failed(f"{argv[0]} {tool}: another profile", repr(native), repr(here))

    def sections(self, name, flags):
        self.run("gcc", "-O1", *flags, self.write(f"{name}.c", SECTIONS), "-o", name)
        for tool in ("null", "bbcount"):
            self.stays(name, tool, 1)
            argv = [self.inlay, "run", "--engine=live", tool, "-o", f"{self.root}/report", "--", f"{self.root}/{name}"]
            said = driver.run(argv, LIMIT).stdout
            if b"200 inside, 100 outside" not in said:
                raise Failed(f"live, {tool}: {said}")

    def shown(self):
        """Who shows its own stack with files, lines and columns shows it as ever (Rust's run time does)."""
        self.run("rustc", "-g", self.write("shown.rs", SHOWN), "-o", "shown")
        said = []
        for tool in (None, "null", "bbcount"):
            if tool:
                driver.rewrite(self.inlay, [tool, f"{self.root}/shown", "-o", f"{self.root}/shown.{tool}"])
            done = driver.run([f"{self.root}/shown{'.' + tool if tool else ''}"], LIMIT, cwd=self.root,
                              env=os.environ | {"RUST_BACKTRACE": "1", "INLAY_OUT": f"{self.root}/shown.result"})
            said.append((done.status, re.sub(r"' \(\d+\) panicked", "' panicked", done.stderr.decode())))
        if not re.search(r"shown::inner\n +at \S*shown\.rs:2:42\n", said[0][1]) or said[1:] != said[:1] * 2:
            raise Failed("another stack", *said[0][1].splitlines()[:8], *said[1][1].splitlines()[:8])

    def node(self):
        node = os.path.realpath(shutil.which("node"))
        self.run("strip", node, "-o", f"{self.root}/node")
        self.same("node", "null", "stacks of its own", [self.write("script.js", NODE) and f"{self.root}/script.js"])


def cases(test):
    if shutil.which("ocamlopt"):
        for name, flags, strip in (("ocaml", [], False), ("ocaml_stripped", [], True),
                                   ("ocaml_fixed_stripped", ["-ccopt", "-no-pie"], True),
                                   ("ocaml_static", ["-ccopt", "-static"], False)):
            yield name, lambda n=name, f=flags, s=strip: test.ocaml(n, f, s)
    else:
        test.results.skip("ocaml", "there is no ocamlopt")
    bare = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    for form, flags in (("", []), ("_fixed", ["-no-pie"])):
        yield f"records{form}", lambda f=flags, n=f"records{form}": test.by_hand(n, by_records(), f, None)
        yield f"offsets{form}", lambda f=flags, n=f"offsets{form}": test.by_hand(
            n, by_offsets(), [*f, "-static"], "no unwind table describes")
        for kind in ("roots", "apart"):
            yield f"{kind}{form}", lambda f=flags, n=f"{kind}{form}", k=kind: test.by_hand(
                n, by_offsets(k, ordered=False), [*f, "-static"], "no unwind table describes")
        yield f"compiled{form}", lambda f=flags, n=f"compiled{form}": test.c_code(n, [*f, *bare, "-static"], compiled())
        yield f"compiled-called{form}", lambda f=flags, n=f"compiled-called{form}": test.c_called(n, f, bare)
        yield f"stacks{form}", lambda f=flags, n=f"stacks{form}": test.by_hand(
            n, by_offsets("stacks"), [*f, *bare], "stacks of its own")
    named = ".data\n.globl mono_aot_file_info\n.type mono_aot_file_info, @object\nmono_aot_file_info: .quad 1\n"
    yield "mono", lambda: test.by_hand(
        "mono", by_offsets() + named, ["-Wl,--export-dynamic-symbol=mono_aot_file_info"], "Mono's runtime")
    for name, flags in (("copied", []), ("copied_fixed", ["-no-pie"]), ("copied_stripped", ["-s", "-fvisibility=hidden"])):
        yield name, lambda n=name, f=flags: test.copied(n, f)
    yield "pieces", lambda: test.pieces("pieces", ["-O2"])
    yield "pieces_stripped", lambda: test.pieces("pieces_stripped", ["-O1", "-s"])
    yield "pieces_gold", lambda: test.pieces("pieces_gold", ["-O1", "-fuse-ld=gold"])
    yield "saved", test.saved
    yield "sleds", test.sleds
    if shutil.which("rustc"):
        yield "shown", test.shown
    for form, flags in (("", ["-s"]), ("_static", ["-static"])):
        yield f"sections{form}", lambda f=flags, n=f"sections{form}": test.sections(n, f)
    for compiler, *flags in (("gcc",), ("gcc", "-static"), ("gcc", "-mfentry", "-fno-pie", "-no-pie"), ("gcc", "-mfentry"), ("clang",)):
        if shutil.which(compiler):
            yield "-".join(["profiled", compiler, *flags]), lambda c=compiler, f=flags: test.profiled(c, f)
    if test.results.options.large and shutil.which("node"):
        yield "node", test.node


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="large programs, too")
    options = parser.parse_args()
    with driver.Results("lookups", options) as results:
        for name, function in cases(Test(results)):
            results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
