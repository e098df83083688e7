"""inlay trace --event: what counters have counted belongs to the procedures that did it, under each engine (counted.c)."""
import ctypes
import glob
import json
import os
import re
import shutil
import subprocess

NAMES = ("main", "outer", "inner", "touches", "sleeps", "spins", "worker")
EVENTS = ("--event=page-faults,context-switches", "--event", "task-clock")


def program(t):
    path = f"{t.folder}/counted"
    if not os.path.exists(path):
        t.command(["gcc", "-O2", "-fno-optimize-sibling-calls", "-pthread", f"{os.path.dirname(__file__)}/counted.c", "-o", path])
    return path


def record(t, engine, events=EVENTS, mode=(), names=NAMES, status=0, **more):
    out, path = f"{t.folder}/{engine}-counted.trace", program(t)
    for old in glob.glob(f"{out}*"):
        os.unlink(old)
    only = [word for name in names for word in ("-F", name)]
    if engine == "object": # the program is there, made so
        words = [word.split("=", 1)[1] if word.startswith("--event=") else word for word in events if word != "--event"]
        text = ",".join(f"event={word}" for one in words for word in ([one] if "{" in one else one.split(",")))
        return out, t.command([path, *mode], status, env=os.environ | {"INLAY_OUT": out, "INLAY_TRACE": text}, **more)
    if engine != "rewrite":
        return out, t.command([t.inlay, "trace", "-o", out, f"--engine={engine}", *only, *events, "--", path, *mode], status, **more)
    joined = ",".join(word.split("=", 1)[-1] for word in events if word != "--event")
    t.command([t.inlay, "rewrite", *[word.replace("-F", "--proc") for word in only], "trace", f"--event={joined}", path,
               "-o", f"{path}.rewritten"])
    return out, t.command([f"{path}.rewritten", *mode], status, env=os.environ | {"INLAY_OUT": out})


def by_name(report):
    return {row["name"]: {event: value for event, value in row["events"].items()} for row in report["procedures"]}


def check_events(t, engine, need, same):
    """The JIT touches pages of its own while it translates; what it is not to blame for stays exact."""
    out, _ = record(t, engine)
    report = t.json("report", out)[-1]
    rows, spare = by_name(report), 400 if engine == "jit" else 40
    faults = {name: row["page-faults"] for name, row in rows.items()}
    need(1000 <= faults["touches"]["self"] <= 1000 + spare, "pages touched", faults)
    need(100 <= faults["outer"]["total"] <= 100 + spare and faults["outer"]["self"] <= spare, "with callees", faults)
    need(900 <= faults["worker"]["total"] <= 900 + spare and faults["worker"]["self"] <= spare, "threads", faults)
    need(faults["sleeps"]["total"] <= spare, "who touches nothing", faults)
    need(rows["sleeps"]["context-switches"]["self"] >= 7, "sleeps", rows["sleeps"])
    clock = rows["spins"]["task-clock"]["self"] # 5 ms by the thread's clock; what a change of threads takes is not in it
    need(2.5e6 <= clock <= 60e6, "time of the thread", clock)
    need(rows["main"]["task-clock"]["total"] >= clock + rows["main"]["task-clock"]["self"], "time with callees", rows["main"])
    events = {event["name"]: event for event in report["events"]}
    need(all(event["read"] in ("call", "user") for event in events.values()), "how they are read", events)
    need(all(event["running_ns"] == event["enabled_ns"] > 0 for event in events.values()), "time counted", events)
    child = by_name(t.json("report", glob.glob(f"{out}.*")[0])[-1])
    need(200 <= child["inner"]["page-faults"]["total"] <= 200 + spare, "the child of fork", child)
    exits, _ = record(t, engine, mode=["exits"])
    rows = by_name(t.json("report", exits)[-1])
    need(500 <= rows["main"]["page-faults"]["total"] <= 500 + spare, "what is open when the process ends", rows)


def check_text(t, need, same):
    """Columns, and what is not there is said once, with what works; Chrome, Perfetto, callgrind and pprof have them too."""
    out, done = record(t, "live", ("--event={instructions,cycles:u},page-faults,nothing=99/7",))
    text = t.read("report", out)
    need("with callees" in text and "page-faults: read by a system call" in text, "columns", text)
    need(re.search(r"^nothing was not counted: this machine has no such counter(?!.*--clock)", text, re.M), "what is not counted", text)
    need(len(re.findall(r"event nothing is not counted: .*page-faults.* work", done.stderr)) == 1, "said once", done.stderr)
    events = json.loads(t.read("export", "chrome", out))["traceEvents"]
    values = [e["args"]["value"] for e in events if e["ph"] == "C" and e["name"] == "page-faults"]
    need(values and max(values) >= 600 and values[0] == 0, "Chrome's counters", values[:9])
    t.read("export", "callgrind", "-o", f"{t.folder}/callgrind.out.2", out)
    with open(f"{t.folder}/callgrind.out.2", encoding="utf-8") as f:
        lines = f.read().splitlines()
    need("events: ns instructions cycles_u page_faults nothing" in lines, "callgrind's events", lines[:9])
    total = sum(row["events"]["page-faults"]["self"] for row in t.json("report", out)[-1]["procedures"])
    summary = next(line.split() for line in lines if line.startswith("totals:"))
    need(int(summary[4]) == total >= 1000, "callgrind's total", summary, total)
    if shutil.which("callgrind_annotate"):
        done = t.command(["callgrind_annotate", "--threshold=100", "--show=page_faults", f"{t.folder}/callgrind.out.2"])
        need(re.search(rf"{total:,}.*PROGRAM TOTALS", done.stdout), "callgrind_annotate", done.stdout[:900])
    if shutil.which("protoc"):
        t.read("export", "perfetto", "-o", f"{t.folder}/counted.perfetto", out)
        with open(f"{t.folder}/counted.perfetto", "rb") as f:
            text = t.command(["protoc", f"--proto_path={os.path.dirname(__file__)}", "--decode=Trace",
                              f"{os.path.dirname(__file__)}/perfetto.proto"], stdin=f).stdout
        need(not re.search(r"^ *\d+[: ]", text, re.M), "fields that Perfetto does not have", text[:400])
        need('name: "page-faults"' in text and max(map(int, re.findall(r"counter_value: (\d+)", text))) >= 600, "Perfetto's counters")


def forbid_perf():
    """perf_event_open answers EPERM from now on (seccomp)."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    words = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = b"".join(c.to_bytes(2, "little") + bytes((a, b)) + k.to_bytes(4, "little") for c, a, b, k in words)
    buffer = ctypes.create_string_buffer(code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(buffer))), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def check_forbidden(t, engine, need, same):
    """What the kernel tells otherwise goes on; the rest is said."""
    events = ("--event=page-faults,context-switches,task-clock,cpu-migrations",)
    out, done = record(t, engine, events, preexec_fn=forbid_perf)
    need("event cpu-migrations is not counted: it is forbidden" in done.stderr, "the reason", done.stderr)
    rows, report = by_name(t.json("report", out)[-1]), t.json("report", out)[-1]
    need([event["read"] for event in report["events"]] == ["usage"] * 3 + ["not"], "how", report["events"])
    need(1000 <= rows["touches"]["page-faults"]["self"] <= 1400, "pages touched", rows)
    need(rows["spins"]["task-clock"]["self"] >= 2.5e6 and rows["sleeps"]["context-switches"]["self"] >= 7, "others", rows)


def check_wrong(t, need, same):
    for events, text in (("nonsense", "event 'nonsense' is not known: "), ("page-faults,", "'' is no event"),
                         ("{page-faults", "braces"), ("page-faults:x", "event 'page-faults:x' is not known"), ("a=1", "event 'a=1' is not known"), ("none/event=1/", "there is no such device"),
                         (",".join(["faults"] * 17), "more than 16 events")):
        _, done = record(t, "jit", (f"--event={events}",), status=2)
        need(text in done.stderr, f"--event={events}", done.stderr)
    _, done = record(t, "jit", ("--event=faults", "--clock=none"), status=2)
    need("--clock=none" in done.stderr, "without records", done.stderr)


def check_names(t, need, same):
    """Events of the kernel's devices, of PAPI and of libpfm4 are told to the tool by number."""
    encode = lambda text, status=0, **more: t.command([t.inlay, "trace", "encode", text], status, **more)
    need(encode("PAPI_TOT_INS:u,{cycles,page-faults:u}").stdout == "PAPI_TOT_INS=0/1:u,{cycles,page-faults:u}\n", "what is known without libraries")
    devices = "/sys/bus/event_source/devices"
    if os.path.exists(f"{devices}/msr/events/tsc"):
        with open(f"{devices}/msr/type", encoding="utf-8") as f:
            need(encode("msr/tsc/").stdout.startswith(f"msr/tsc/={f.read().strip()}/0/"), "a device's event")
    try:
        ctypes.CDLL("libpfm.so.4")
    except OSError:
        need("libpfm4" in encode("SOME_EVENT:MASK", 2).stderr, "without libpfm4")
        return
    done = encode("LONGEST_LAT_CACHE:MISS,INST_RETIRED:ANY_P:u", env=os.environ | {"LIBPFM_FORCE_PMU": "skl"})
    need(done.stdout == "LONGEST_LAT_CACHE:MISS=4/16686/0/0,INST_RETIRED:ANY_P:u=4/192/0/0:u\n", "libpfm4's", done.stdout)
    out, _ = record(t, "live", ("--event=perf::PAGE-FAULTS:u",))
    rows = by_name(t.json("report", out)[-1])
    need(1000 <= rows["touches"]["perf::PAGE-FAULTS:u"]["self"] <= 1040, "counted by libpfm4's name", rows["touches"])


def check_attached(t, need, same):
    process = subprocess.Popen([t.program, "endless"], stdout=subprocess.PIPE, cwd=t.folder)
    try:
        process.stdout.readline()
        out = f"{t.folder}/attached-counted.trace"
        before = len(os.listdir(f"/proc/{process.pid}/fd"))
        t.command([t.inlay, "trace", "-p", str(process.pid), "-o", out, "-F", "leaf", "--event=task-clock"])
        for _ in range(600):
            if sum(row["calls"] for row in t.report(out)["procedures"]) >= 20:
                break
            subprocess.run(["sleep", "0.1"], check=True)
        t.command([t.inlay, "detach", str(process.pid)])
        need(process.poll() is None, "the process has ended")
        need(len(os.listdir(f"/proc/{process.pid}/fd")) == before, "descriptors stay open")
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as f:
            need("perf_event" not in f.read(), "pages of counters stay")
        row = t.report(out)["procedures"][0]
        need(row["calls"] >= 20 and row["events"]["task-clock"]["self"] > 0, "counted in a process that runs", row)
    finally:
        process.kill()
        process.wait()


def tests(t, need, same):
    for engine in ("jit", "live", "rewrite"):
        yield f"events {engine}", lambda e=engine: check_events(t, e, need, same)
    for name, check in (("text", check_text), ("wrong", check_wrong), ("names", check_names), ("attached", check_attached)):
        yield f"events {name}", lambda c=check: c(t, need, same)
    for engine in ("jit", "live"):
        yield f"events forbidden {engine}", lambda e=engine: check_forbidden(t, e, need, same)
