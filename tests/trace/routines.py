"""Routines of the user's at entries and exits (inlay/trace.h): the same ones in a tool, under each engine, and in a program
with instrumented objects; the example in examples/trace."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = "16440 9525 7\n"
LEFT = ["left down of {}, number good, thread {}, 5 times, 106 and %d" % n for n in (101, 102, 103, 104, 105)]


def tool(t, source):
    out = f"{t.folder}/{os.path.basename(source)[:-2]}-tool"
    if not os.path.exists(out):
        t.command([t.inlay, "cc", "--trace", "-O2", "-Wextra", "-Werror", source, "-o", out])
    return out


def program(t):
    out = f"{t.folder}/routined"
    if not os.path.exists(out):
        t.command(["gcc", "-O1", f"{HERE}/routined.c", "-o", out])
    return out


def record(t, engine, options=()):
    """The recording, and what the program and the routines have said."""
    names, out = [word for name in ("main", "down", "six") for word in ("-F", name)], f"{t.folder}/routines-{engine}.trace"
    run = {"env": os.environ | {"INLAY_OUT": out}}
    if engine == "object":
        t.command(["gcc", "-O2", f"-I{ROOT}/include", "-c", f"{HERE}/routine.c", "-o", f"{t.folder}/routine.o"])
        t.command([t.inlay, "wrap", "gcc", "-O1", f"{HERE}/routined.c", f"{t.folder}/routine.o", "-o", f"{t.folder}/routinedo"])
        return out, t.command([f"{t.folder}/routinedo"], **run)
    if engine == "rewrite":
        names = [word.replace("-F", "--proc") for word in names]
        t.command([t.inlay, "rewrite", *names, tool(t, f"{HERE}/routine.c"), *options, program(t), "-o", f"{t.folder}/routinedr"])
        return out, t.command([f"{t.folder}/routinedr"], **run)
    return out, t.command([t.inlay, "trace", f"--engine={engine}", "--tool", tool(t, f"{HERE}/routine.c"), "-o", out, *names, *options,
                           "--", program(t)])


def check_routines(t, need, same, engine):
    path, done = record(t, engine)
    need(done.stdout == OUT, "what the program says", done.stdout)
    said, image = done.stderr.splitlines(), {"object": "routinedo", "rewrite": "routinedr"}.get(engine, "routined")
    left = [line for line in said if line.startswith("left")]
    thread = re.search(r"thread (\d+)", done.stderr)[1]
    need([re.sub(r"of \S+,", "of IMAGE,", line) for line in left] == [line.format("IMAGE", thread) for line in LEFT], "calls of routines", *left)
    need(engine == "rewrite" or f"of {image}," in left[0], "the image", left[0])
    report = t.report(path)
    same({row["name"]: row["calls"] for row in report["procedures"]}, {"main": 1, "six": 100, "down": 5}, "calls")
    counted = {row["name"]: {name: (one["self"], one["total"]) for name, one in row["events"].items()} for row in report["procedures"]}
    same(counted, {"main": {"entries": (101, 105), "sum": (100 * 91000 + 4, 100 * 91000 + 10)}, "six": {"entries": (0, 0), "sum": (0, 0)},
                   "down": {"entries": (4, 4), "sum": (6, 6)}}, "what routines have stored")
    need([one["read"] for one in report["events"]] == ["routine"] * 2, "how they were read", report["events"])
    need("sum: stored by the tool's own routine" in t.read("report", path), "the report's text")


def check_beside(t, need, same):
    """With events of the kernel's, whose numbers follow; only for calls that are recorded; with counts alone."""
    path, done = record(t, "jit", ["--event", "page-faults,task-clock"])
    events = [one["name"] for one in t.report(path)["events"]]
    need(events == ["entries", "sum", "page-faults", "task-clock"], "events", events)
    rows = {row["name"]: row["events"] for row in t.report(path)["procedures"]}
    need(rows["main"]["sum"]["total"] == 9100010 and rows["main"]["task-clock"]["total"] > rows["down"]["task-clock"]["total"] > 0, "values", rows)
    path, done = record(t, "live", ["--every=10"])
    main = {row["name"]: row["events"] for row in t.report(path)["procedures"]}["main"]
    need(main["sum"]["total"] == 10 * 91000 + 4, "what was not recorded was seen by the routine", main)
    path, done = record(t, "jit", ["--clock=none"])
    need("106 and 105" in done.stderr, "routines with counts alone", done.stderr)
    bad = f"{t.folder}/names.c"
    with open(bad, "w", encoding="utf-8") as f:
        f.write('#include <inlay/trace.h>\nconst char *const inlay_trace_names[] = {"one", NULL};\n')
    done = t.command([t.inlay, "trace", "--tool", tool(t, bad), "-o", f"{t.folder}/bad.trace", "--", program(t)], 1)
    need("neither inlay_trace_enter nor inlay_trace_exit" in done.stderr, "names without routines", done.stderr)


def check_example(t, need, same):
    source = f"{ROOT}/examples/trace/waits.c"
    with open(source, encoding="utf-8") as f:
        need(len(f.readlines()) < 40, "the example is not short")
    out = f"{t.folder}/waits.trace"
    t.command([t.inlay, "trace", "--tool", tool(t, source), "-o", out, "-F", "spin", "-F", "main", "--", t.program, "time"])
    spin = next(row for row in t.report(out)["procedures"] if row["name"] == "spin")
    counted = {name: one["self"] for name, one in spin["events"].items()}
    need(set(counted) == {"ran-ns", "waited-ns"}, "names", counted)
    if os.path.exists("/proc/self/schedstat"):
        need(sum(counted.values()) > spin["self_ns"] / 4, "a loop neither runs nor waits", counted, spin["self_ns"])


def tests(t, need, same):
    for engine in ("jit", "live", "rewrite", "object"):
        yield f"routines {engine}", lambda e=engine: check_routines(t, need, same, e)
    yield "routines beside", lambda: check_beside(t, need, same)
    yield "routines example", lambda: check_example(t, need, same)
