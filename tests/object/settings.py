"""What instrumented programs record: INLAY_TRACE when they run, and what their objects have of inlay wrap's options."""
import os
import re
import sys

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../trace")
import events  # noqa: E402
import run as traced  # noqa: E402
from exports import calls  # noqa: E402
from run import need, same  # noqa: E402

# main, 7 threads of two generations, a coroutine, a handler and a child of fork call the same procedures.
COUNTED = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static ucontext_t here, there;
static volatile int sink;
__attribute__((noinline)) void leaf(int x) { sink = x; }
__attribute__((noinline)) void nest(int n) { if (n) nest(n - 1); leaf(n); sink = n; }
static void handler(int n) { leaf(n); }
static void *worker(void *arg) { for (int i = 0; i < 20000; i++) leaf(i); nest(9); return arg; }
static void body(void) { for (int i = 0; i < 1000; i++) leaf(i); }
int main(int argc, char **argv)
{
    pthread_t t[7];
    int status = argc;
    signal(SIGALRM, handler);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 7; i++) if (pthread_create(&t[i], 0, worker, 0)) return 1;
        for (int i = 0; i < 30000; i++) leaf(i);
        for (int i = 0; i < 7; i++) pthread_join(t[i], 0);
    }
    for (int i = 0; i < 500; i++) raise(SIGALRM);
    getcontext(&there);
    there.uc_stack.ss_sp = malloc(65536);
    there.uc_stack.ss_size = 65536;
    there.uc_link = &here;
    makecontext(&there, body, 0);
    swapcontext(&here, &there);
    if (fork() == 0) {
        for (int i = 0; i < 77; i++) leaf(i);
        nest(2);
        exit(0);
    }
    wait(&status);
    printf("%s\n", argv[0] ? "done" : "");
    return 0;
}
"""
LEAVES = 2 * 7 * 20010 + 2 * 30000 + 500 + 1000
OURS = {"main": 1, "leaf": LEAVES, "nest": 2 * 7 * 10, "handler": 500, "worker": 14, "body": 1}
CHILDS = {"leaf": 80, "nest": 3}


def run(t, program, settings, out, status=0, **more):
    for name in os.listdir(t.folder):
        if name.startswith(os.path.basename(out)):
            os.unlink(f"{t.folder}/{name}")
    return t.command([program], status, env=os.environ | {"INLAY_OUT": out} | ({} if settings is None else {"INLAY_TRACE": settings}),
                     **more)


def counted(t, path):
    fewer = re.findall(r"^  (\d+) calls, \d+ recorded: (\S+)", t.read("report", path), re.M) # also those of which none was
    return ({row["name"]: row["counted"] for row in t.report(path)["procedures"] if row["counted"]} |
            {name: int(count) for count, name in fewer})


def child_of(t, out):
    names = [name for name in os.listdir(t.folder) if name.startswith(os.path.basename(out) + ".")]
    need(len(names) == 1, "the child's file", names)
    return f"{t.folder}/{names[0]}"


def make(t, name, *options, text=COUNTED, flags=("-O2",)):
    source, program = f"{t.folder}/{name}.c", f"{t.folder}/{name}"
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    t.command([t.inlay, "wrap", *options, "gcc", *flags, "-pthread", source, "-o", program])
    return program


def check_counts(t, program):
    """Exact, whichever threads, stacks, handlers and children call, and nothing but counts."""
    out = f"{t.folder}/counts.trace"
    for settings in ("counts", "clock=none") if "made" not in program else (None, "depth=3"):
        same(run(t, program, settings, out).stdout, "done\n", "the output")
        report = t.report(out)
        same(calls(report), OURS, f"{settings}: calls")
        need(report["records"] == 0 and report["clock"] == "none", "records", report["records"], report["clock"])
        found = calls(t.report(child_of(t, out)))
        same({name: n for name, n in found.items() if n}, CHILDS, f"{settings}: the child's calls")


def check_fewer(t):
    """Calls are recorded whole or not at all, and all are counted."""
    program, out = make(t, "fewer"), f"{t.folder}/fewer.trace"
    for settings, few in (("every=100", LEAVES / 100), ("thin=50", 14 * 165 + 314), ("every=3", LEAVES / 3)):
        run(t, program, settings, out)
        report, found = t.report(out), counted(t, out)
        same({name: found[name] for name in OURS if name in found}, OURS, f"{settings}: all calls")
        leaf = calls(report)["leaf"]
        need(few * 0.5 < leaf < few * 1.5, f"{settings}: recorded calls", leaf, few)
        need(report["unmatched"] == 0 and report["left"] == 0, f"{settings}: exits", report["unmatched"], report["left"])
        same(counted(t, child_of(t, out)), CHILDS, f"{settings}: the child's calls")


def check_rest(t):
    """The file's name, what reports begin with, nothing at all; what is wrong is said, and the program runs."""
    program, out = make(t, "rest"), f"{t.folder}/rest.trace"
    named = f"{t.folder}/named.trace"
    run(t, program, f"file={named},threshold=1h", out)
    need(not os.path.exists(named) and not os.path.exists(out), "a wrong setting records")
    run(t, program, f"file={named},threshold=1s", out)
    need(os.path.exists(named) and not os.path.exists(out), "the file's name")
    same(calls(t.report(named)), {}, "calls of a second")
    run(t, program, "depth=1", out)
    same(calls(t.json("report", out)[-1]).get("main"), 1, "depth=1: main")
    need("leaf" not in {row["name"] for row in t.report(out)["procedures"] if row["total_ns"] > t.report(out)["procedures"][0]["total_ns"]},
         "depth")
    run(t, program, "off", out)
    need(not os.path.exists(out), "off: a file")
    for settings, text in (("cots", "'cots' is none of"), ("every=0", "'every=0' is no number"), ("clock=sun", "clock=cycles"),
                           ("counts,every=2", "need another clock"), ("event=nonsense", "'nonsense' is no event"),
                           ("threshold=1x", "is no time")):
        done = run(t, program, settings, out)
        need(text in done.stderr and done.stdout == "done\n" and not os.path.exists(out), settings, done.stderr)
    report = run(t, program, "clock=monotonic", out) and t.report(out)
    need(report["clock"] == "monotonic" and calls(report)["leaf"] == LEAVES, "clock=monotonic", report["clock"])


def check_made(t):
    """Options of inlay wrap and inlay object are what INLAY_TRACE may change."""
    out = f"{t.folder}/made.trace"
    check_counts(t, make(t, "made-counts", "--clock=none"))
    done = run(t, f"{t.folder}/made-counts", "clock=cycles", out)
    need("--clock=none" in done.stderr and not os.path.exists(out), "times of what only counts", done.stderr)
    program = make(t, "made-every", "--every=10", "--threshold=1ns")
    run(t, program, None, out)
    need(calls(t.report(out))["leaf"] < LEAVES / 5, "--every=10", calls(t.report(out)))
    same(counted(t, out), OURS, "--every=10: all calls")
    run(t, program, "counts", out)
    same(calls(t.report(out)), OURS, "counts where objects say --every")
    made = t.compile(COUNTED, "settled", "-O2")
    for options, text in ((["--every=x"], "'every=x' is no number"), (["--clock=none", "--thin=3"], "another clock"),
                          (["--event=nonsense"], "nonsense")):
        need(text in t.object("--all", *options, made, "-o", f"{t.folder}/made.o", status=2).stderr, str(options))
    t.object("--all", "--clock=none", f"--file={out}", made, "-o", f"{t.folder}/made.o")
    os.unlink(out)
    need("__inlay_trace_exit_needs_libinlay_trace" not in t.command(["nm", f"{t.folder}/made.o"]).stdout, "exits of what only counts")
    program = t.link("settled", f"{t.folder}/made.o", "-pthread")
    t.command([program], env={name: value for name, value in os.environ.items() if not name.startswith("INLAY_")})
    same(calls(t.report(out)), OURS, "--file")


PLUG = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 60; i++) {
        void *library = dlopen(argv[1 + i % (argc - 1)], RTLD_NOW);
        int (*plug)(int) = library ? (int (*)(int))dlsym(library, "plug") : 0;
        if (!plug) return printf("%s\n", dlerror()), 1;
        for (int k = 0; k < 10; k++) sum += plug(k);
        dlclose(library);
    }
    return sum != 60 * 10;
}
"""


def check_unloaded(t):
    """A plug-in's calls are counted, too, when it has gone."""
    folder, out = f"{t.folder}/unloaded", f"{t.folder}/unloaded.trace"
    plugs = [t.compile("int plug(int x) { return x >= 0; }", f"gone{k}", "-O1", "-fPIC") for k in (1, 2)]
    t.object("--all", t.compile(PLUG, "gone", "-O1"), *plugs, "-o", folder)
    for k in (1, 2):
        t.command(["gcc", "-shared", f"{folder}/gone{k}.o", "-o", f"{folder}/gone{k}.so"])
    program = t.link("gone-host", f"{folder}/gone.o", "-rdynamic")
    for settings, recorded in (("counts", 0), ("every=2", 300)):
        t.command([program, f"{folder}/gone1.so", f"{folder}/gone2.so"], env=os.environ | {"INLAY_OUT": out, "INLAY_TRACE": settings})
        rows = [row for row in t.report(out)["procedures"] if row["name"] == "plug"]
        same(sum(row["counted"] if recorded else row["calls"] for row in rows), 600, f"{settings}: calls")
        need({os.path.basename(row["image"]) for row in rows} == {"gone1.so", "gone2.so"}, "images", rows)


def check_events(t):
    """Counters beside the clock; where there is none it is said."""
    program = f"{t.folder}/counted"
    t.command([t.inlay, "wrap", *[word for name in events.NAMES for word in ("-F", name)], "gcc", "-O2", "-fno-optimize-sibling-calls",
               "-pthread", f"{os.path.dirname(events.__file__)}/counted.c", "-o", program])
    events.check_events(t, "object", need, same)
    events.check_forbidden(t, "object", need, same)
    out, done = events.record(t, "object", ("--event=nothing=99/7", "--event={page-faults,context-switches}"))
    need(re.search(r"event nothing is not counted: this machine has no such counter", done.stderr), "what is not there", done.stderr)
    need({event["name"] for event in t.report(out)["events"]} == {"nothing", "page-faults", "context-switches"}, "names")


SIGNALLED = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <emmintrin.h>
static volatile long leaves, handlers;
__attribute__((noinline)) long leaf(long x) { __atomic_fetch_add(&leaves, 1, __ATOMIC_RELAXED); return x + 1; }
__attribute__((noinline)) double real(double a, double b, double c, double d, double e, double f, double g, double h)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
static void handler(int n) { handlers++; leaf(n); leaf(n); }
int main(void)
{
    struct itimerval often = {{0, 300}, {0, 300}};
    double sum = 0;
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    for (long i = 0; i < 20000 || handlers < 20; i++) if (leaf(i) != i + 1 || real(i, 1, 2, 3, 4, 5, 6, 7) != i + 168) abort();
    often.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &often, 0);
    printf("%ld %ld\n", leaves, handlers);
    return sum;
}
"""


def check_signals(t):
    """Handlers that come between are recorded, too, and registers stay, where each record takes the recorder's long way."""
    program, out = make(t, "signalled", text=SIGNALLED), f"{t.folder}/signalled.trace"
    for settings in ("clock=monotonic", "event=page-faults", "clock=monotonic,event=page-faults,event=context-switches,every=1"):
        leaves, handlers = map(int, run(t, program, settings, out).stdout.split())
        report = t.report(out)
        same({name: count for name, count in calls(report).items() if name != "real"}, {"main": 1, "leaf": leaves, "handler": handlers}, settings)
        need(report["unmatched"] == 0 and report["left"] == 0, f"{settings}: exits", report["unmatched"], report["left"])


STEPPED = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
enum { WINDOW = 4080, LARGE = 16368, TRAP = 0x100 };
static volatile long leaves, steps, at;
static int child, status;
static char does;
__attribute__((noinline)) long leaf(long x) { __atomic_fetch_add(&leaves, 1, __ATOMIC_RELAXED); return x + 1; }
static void call(long count) { while (count-- > 0) leaf(count); }
static void on_step(int n, siginfo_t *si, void *context)
{
    (void)n, (void)si;
    if (++steps < at) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP; /* which may be restored once */
    if (steps > at) return;
    if (does == 'f' && !(child = fork())) return;
    if (does == 'f') waitpid(child, &status, 0);
    call(does == 'x' ? 10 : LARGE / 2 - 1);
    if (does == 'x') exit(printf("%ld 1\n", leaves) < 0);
}
/* w: windows are filled; l: likewise, and there is no room for what is stepped, with --last; f: fork; x: exit */
int main(int argc, char **argv)
{
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    long reached = 0, first = argc > 2 ? atol(argv[2]) : 1, end = argc > 2 ? first + 1 : 300;
    does = *argv[1];
    if (does == 'l') end = 24;
    leaf(0);
    sigaction(SIGTRAP, &step, 0);
    for (at = first; at < end; at += at < 60 ? 1 : 5) {
        steps = 0;
        while (does == 'l' && 2 * leaves % WINDOW) leaf(0);
        __asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq" ::: "cc", "memory");
        leaf(at);
        __asm__ volatile("pushfq\n andl $~0x100, (%%rsp)\n popfq" ::: "cc", "memory");
        if (does == 'f' && !child) _exit(0);
        if (status) return printf("the child's status is %d at %ld\n", status, at);
        reached += steps >= at;
    }
    printf("%ld %ld\n", leaves, reached);
    return 0;
}
"""


def check_gaps(t):
    """A handler comes in between any two instructions of a record, and fills windows, forks, or ends the program: what it
    records is there, and what it has interrupted."""
    program, out = make(t, "stepped", "-F", "leaf", text=STEPPED), f"{t.folder}/stepped.trace"

    def step(settings, *argv):
        done = t.command([program, *argv], env=os.environ | {"INLAY_OUT": out, "INLAY_TRACE": settings})
        return *map(int, done.stdout.split()), t.report(out)

    for settings, does, least in (("", "w", 40), ("clock=monotonic", "w", 80), ("last=64", "l", 22), ("", "f", 40)):
        leaves, reached, report = step(settings, does)
        need(reached > least, f"{settings}: instructions", reached)
        same(calls(report), {"leaf": leaves}, f"{settings} {does}: calls")
        need(report["unmatched"] == 0 and report["left"] == 0, f"{settings}: exits", report["unmatched"], report["left"])
    for at in range(8, 44):
        leaves, _, report = step("", "x", str(at))
        need(leaves - 1 <= calls(report)["leaf"] <= leaves + 1, f"ended after {at} steps: calls", leaves, calls(report))


WAYS = r"""
static volatile int sink;
#define FOUR sink++; sink += 2; sink ^= 4; sink -= 8;
__attribute__((noinline)) int early(int x) { if (x) return x; FOUR FOUR FOUR FOUR FOUR FOUR FOUR return 0; }
__attribute__((noinline)) int straight(int x) { FOUR if (x & 1) sink++; FOUR if (x & 2) sink++; FOUR return x; }
__attribute__((noinline)) int loops(int n) { while (n--) sink++; return sink; }
int main(void) { for (int i = 0; i < 10; i++) early(1), straight(i), loops(50); return 0; }
"""


def check_ways(t):
    """--min-path asks for the shortest way through: what is large and returns at once, or is small and goes round, is none."""
    program, out = make(t, "ways", "--min-path=30", text=WAYS), f"{t.folder}/ways.trace"
    run(t, program, None, out)
    same(calls(t.report(out)), {"straight": 10}, "in objects")
    run(t, make(t, "ways-size", "--min-size=100", text=WAYS), None, out)
    need(calls(t.report(out)).get("early") == 10, "large", calls(t.report(out)))
    program, names = f"{t.folder}/ways-native", ("early", "straight", "loops")
    t.command(["gcc", "-O2", f"{t.folder}/ways.c", "-o", program])
    for engine in ("jit", "live"):
        only = [word for name in names for word in ("-F", name)]
        t.command([t.inlay, "trace", "-o", out, f"--engine={engine}", *only, "--min-path=30", "--", program])
        same(calls(t.report(out)), {"straight": 10}, engine)
    only = [word for name in names for word in ("--proc", name)]
    t.command([t.inlay, "rewrite", *only, "trace", "--min-path=30", program, "-o", f"{program}.rewritten"])
    t.command([f"{program}.rewritten"], env=os.environ | {"INLAY_OUT": out})
    same(calls(t.report(out)), {"straight": 10}, "rewritten")


def check_tool(t):
    """As the tool does it (tests/trace)."""
    t.program = t.make("settings", ["-O2"])
    traced.check_fewer(t, "object")
    traced.check_last(t, "object")


def tests(t):
    yield "settings counts", lambda: check_counts(t, make(t, "counts"))
    for name, check in (("fewer", check_fewer), ("rest", check_rest), ("made", check_made), ("unloaded", check_unloaded), ("ways", check_ways),
                        ("events", check_events), ("signals", check_signals), ("gaps", check_gaps), ("tool", check_tool)):
        yield f"settings {name}", lambda c=check: c(t)
