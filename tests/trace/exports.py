"""Recordings in other programs' forms, read by these programs: each tells the calls and times that the report tells."""
import ast
import collections
import gzip
import html
import json
import os
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))


def calls(report):
    return {row["name"]: row["calls"] for row in report["procedures"]}


def packets(text):
    """Of protoc's text form: each packet's fields, by their ways, in order."""
    found, way = [], []
    for line in text.splitlines():
        word = line.split()
        if line == "packet {":
            found.append([])
        elif word[-1] == "{":
            way.append(word[0])
        elif word[0] == "}":
            way[-1:] = []
        else:
            key, value = line.strip().split(": ", 1)
            found[-1].append((".".join([*way, key]), ast.literal_eval(value) if value[0] == '"' else value))
    return found


def check_perfetto(t, need, same):
    """Tracks, names told before they are used, beginnings and ends in pairs, times in order."""
    path, out = t.record("jit", ["coroutines"]), f"{t.folder}/out.perfetto"
    t.read("export", "perfetto", "-o", out, path)
    with open(out, "rb") as f:
        text = t.command(["protoc", f"--proto_path={HERE}", "--decode=Trace", f"{HERE}/perfetto.proto"], stdin=f).stdout
    need(not re.search(r"^ *\d+[: ]", text, re.M), "fields that Perfetto does not have", text[:400])
    names, tracks, open_on, spans = {}, {}, collections.defaultdict(list), collections.Counter()
    last = collections.defaultdict(int)
    for one in packets(text):
        fields = dict(one)
        if "interned_data.event_names.iid" in fields:
            names[fields["interned_data.event_names.iid"]] = fields["interned_data.event_names.name"]
        if "track_descriptor.uuid" in fields:
            tracks[fields["track_descriptor.uuid"]] = fields
        kind, track = fields.get("track_event.type"), fields.get("track_event.track_uuid")
        if not kind:
            continue
        need(track in tracks, "a track that was not told", one)
        need(int(fields["timestamp"]) >= last[track], "times run backwards", one)
        last[track] = int(fields["timestamp"])
        if kind == "TYPE_SLICE_BEGIN":
            open_on[track].append(names[fields["track_event.name_iid"]])
        else:
            spans[open_on[track].pop()] += 1
    need(not any(open_on.values()), "calls without an end", open_on)
    same(dict(spans), calls(t.report(path)), "Perfetto's slices")
    need(sum("track_descriptor.thread.tid" in track for track in tracks.values()) == 1, "threads", tracks)


def check_pprof(t, need, same):
    path, out = t.record("jit", ["throw"]), f"{t.folder}/out.pprof"
    t.read("export", "pprof", "-o", out, path)
    with gzip.open(out) as f:
        need(len(f.read()) > 500, "what is in the envelope")
    text = t.command(["go", "tool", "pprof", "-raw", out], env=os.environ | {"HOME": t.folder}).stdout
    report = t.report(path)
    values = [tuple(map(int, m)) for m in re.findall(r"^ +(\d+) +(\d+): ", text, re.M)]
    need(sum(n for n, _ in values) == sum(calls(report).values()), "calls", values)
    need(sum(ns for _, ns in values) == sum(row["self_ns"] for row in report["procedures"]), "own times", values)
    top = t.command(["go", "tool", "pprof", "-top", "-sample_index=calls", "-nodecount=100", "-nodefraction=0", out],
                    env=os.environ | {"HOME": t.folder}).stdout
    found = {line.split()[5]: int(line.split()[0]) for line in top.splitlines() if re.match(r" +\d+ .*%", line)}
    same(found, calls(report), "pprof's calls")


def check_uftrace(t, need, same):
    path, out = t.record("jit", ["threads"]), f"{t.folder}/uftrace.data"
    shutil.rmtree(out, ignore_errors=True)
    t.read("export", "uftrace", "-o", out, path)
    report = t.report(path)
    rows = t.command(["uftrace", "report", "-d", out, "--format=normal", "-f", "total,self,call"]).stdout.splitlines()
    same({line.split()[-1]: int(line.split()[-2]) for line in rows[2:]}, calls(report), "uftrace report")
    replay = t.command(["uftrace", "replay", "-d", out, "--no-pager"]).stdout
    begun = re.findall(r"\bleaf\(\)(?:;| \{)", replay)  # the second where another thread ran meanwhile
    need(len(begun) == calls(report)["leaf"], "uftrace replay", replay[:300])
    graph = t.command(["uftrace", "graph", "-d", out, "main", "--no-pager"]).stdout
    need(re.search(r"\(1\) threads\b", graph), "uftrace graph", graph[:600])
    other = t.of(f"{t.folder}/na me \"s\"/sam ple")  # words divide what uftrace reads
    os.makedirs(os.path.dirname(other.program), exist_ok=True)
    shutil.copy(t.program, other.program)
    shutil.rmtree(out)
    path = other.record("jit", ["threads"])
    t.read("export", "uftrace", "-o", out, path)
    rows = t.command(["uftrace", "report", "-d", out, "-f", "call"]).stdout.splitlines()
    same({line.split()[-1]: int(line.split()[-2]) for line in rows[2:]}, calls(t.report(path)), "a name of words")
    done = t.command([t.inlay, "trace", "export", "uftrace", path], 2)
    need("-o DIRECTORY" in done.stderr, "without a directory", done.stderr)


def page(t, at, more=""):
    done = t.command(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900",
                      f"--user-data-dir={t.folder}/chromium", "--virtual-time-budget=20000", "--dump-dom", f"file://{at}{more}"])
    return done.stdout


def flames(text):
    """Each box's procedure, with its width."""
    boxes = re.findall(r'<div [^>]*data-node[^>]*>', text)
    read = lambda box, pattern: re.search(pattern, box)[1]
    return [(html.unescape(read(box, r'title="(.*?): ')), float(read(box, r"width: ?([\d.]+)px"))) for box in boxes]


def check_html(t, need, same):
    """The page in a browser: its totals are the report's; it zooms, and finds procedures."""
    path, out = t.record("jit", ["throw"]), f"{t.folder}/out.html"
    t.read("export", "html", "-o", out, path)
    with open(out, encoding="utf-8") as f:
        source = f.read()
    need(not re.search(r"(src|href) *=|https?:|import ", source), "something from the network")
    whole, report = page(t, out), t.report(path)
    need('data-ready="yes"' in whole, "the page's script has not come to its end", whole[-600:])
    rows = re.findall(r'<tr data-self="(\d+)" data-total="(\d+)" data-calls="(\d+)">.*?<td>([^<]*)</td></tr>', whole)
    same({html.unescape(name): tuple(map(int, one)) for *one, name in rows},
         {row["name"]: (row["self_ns"], row["total_ns"], row["calls"]) for row in report["procedures"]}, "the table")
    boxes = flames(whole)
    need(boxes[0][0] == "all" and boxes[0][1] > 1000, "the widest", boxes[:3])
    need(sum(name == "thrower" for name, _ in boxes) >= 5, "a tower of calls", boxes)
    nodes = json.loads(re.search(r'id="data">(.*?)</script>', source, re.S)[1])[0]
    catcher = next(i for i, n in enumerate(nodes["nodes"]) if n[0] >= 0 and nodes["names"][n[0]] == "catcher")
    looked = page(t, out, f"#search=/%5Ethrower$/&zoom={catcher}&from=0&to=1000")
    zoomed = dict(flames(looked))
    need(zoomed["catcher"] == boxes[0][1] and "after" not in zoomed, "zoomed to a call", zoomed)
    need(looked.count('class="match"') >= 5, "boxes of what is searched for")
    total = next(row["total_ns"] for row in report["procedures"] if row["name"] == "thrower")
    need(re.search(r"1 procedure match", looked) and (f"{total / 1e3:.3f} us" in looked or f"{total / 1e6:.3f} ms" in looked), "what matches", total)
    need("0 ns to 1.000 us" in looked, "the timeline's part")


# --- arguments and results in them

LONG = "a string that is much longer than what is record..."
VALUED = ("-A", "add;reads@arg1/s;name@arg1/x32;down@arg1/u8;half@fparg1/f32,arg1/d32", "-R", "add;half;name/s;down/c")


def recorded(t):
    path, program = f"{t.folder}/valued.trace", f"{t.folder}/valued"
    if not os.path.exists(path):
        t.command(["gcc", "-O2", "-g", f"{HERE}/values.c", "-o", program])
        t.command([t.inlay, "trace", "-o", path, *VALUED, "-F", "*[a-z]", "--", program])
    return path


def typed(t):
    path, program = f"{t.folder}/typed-values.trace", f"{t.folder}/typed-values"
    if not os.path.exists(path):
        t.command(["g++", "-O2", "-g", "-std=gnu++17", "-w", f"{HERE}/typed.cc", "-o", program])
        t.command([t.inlay, "trace", "-o", path, "-A", "pick*;bits*;truth*", "-R", "pick*;truth*", "--", program])
    return path


def annotations(text):
    """Of each slice what its packets say of values, in order."""
    found, open_calls, names = [], [], {}
    for one in packets(text):
        fields = dict(one)
        if "interned_data.event_names.iid" in fields:
            names[fields["interned_data.event_names.iid"]] = fields["interned_data.event_names.name"]
        values = [(key.split(".")[-1], value) for key, value in one if key.startswith("track_event.debug_annotations.")]
        if fields.get("track_event.type") == "TYPE_SLICE_BEGIN":
            open_calls.append([names[fields["track_event.name_iid"]], values])
        elif fields.get("track_event.type") == "TYPE_SLICE_END":
            name, begun = open_calls.pop()
            if begun or values:
                pairs = [*zip(begun[::2], begun[1::2]), *zip(values[::2], values[1::2])]
                found.append((name, [sorted([a, b], key=lambda x: x[0] != "name") for a, b in pairs]))
    return {(name, *((a[1], b[0].split("_")[0], b[1]) for a, b in values)) for name, values in found}


def check_perfetto_values(t, need, same):
    out = f"{t.folder}/valued.perfetto"
    t.read("export", "perfetto", "-o", out, recorded(t))
    with open(out, "rb") as f:
        text = t.command(["protoc", f"--proto_path={HERE}", "--decode=Trace", f"{HERE}/perfetto.proto"], stdin=f).stdout
    need(not re.search(r"^ *\d+[: ]", text, re.M), "fields that Perfetto does not have", text[:400])
    found = annotations(text)
    for one in (("add", ("arg1", "int", "-5"), ("arg2", "string", '"short"'), ("arg3", "uint", "120"), ("arg4", "double", "2.5"),
                 ("arg5", "int", "7000000000"), ("result", "int", "7000000122")),
                ("down", ("arg1", "uint", "3"), ("result", "string", "'\\x06'")), ("name", ("arg1", "pointer", "0"), ("result", "string", "NULL")),
                ("half", ("arg1", "double", "2.5"), ("arg1", "int", "3"), ("result", "double", "-inf"))):
        need(one in found, f"{one} as Perfetto's annotations", *found)
    t.read("export", "perfetto", "-o", out, typed(t))
    with open(out, "rb") as f:
        found = annotations(t.command(["protoc", f"--proto_path={HERE}", "--decode=Trace", f"{HERE}/perfetto.proto"], stdin=f).stdout)
    need(("pick(int)", ("arg1", "int", "0"), ("result", "string", "BLUE")) in found, "a constant's name as an annotation", *found)


def check_uftrace_values(t, need, same):
    out = f"{t.folder}/valued.data"
    shutil.rmtree(out, ignore_errors=True)
    t.read("export", "uftrace", "-o", out, recorded(t))
    replay = t.command(["uftrace", "replay", "-d", out, "--no-pager"]).stdout
    for line in ('add(-5, "short", 120, 2.500000, 0x1a13b8600)', '} = 0x1a13b867a; /* add */', f'add(6, "{LONG}", 1, 0.000000, -1)',
                 'add(7, NULL, 2, 0.000000, 0) = 9;', 'name(0) = NULL;', 'down(3) = ', 'down(4) = ', 'half(2.500000, 3) = -inf;', 'reads("no memory")'):
        need(line in replay, f"uftrace replay: {line}", replay)
    shutil.rmtree(out)
    t.read("export", "uftrace", "-o", out, typed(t))
    replay = t.command(["uftrace", "replay", "-d", out, "--no-pager"]).stdout
    for line in ('pick(int)(0) = "BLUE";', 'bits(flags)("{a = 3, b = 17, c = -2, d = true, name =', 'truth(int)(3) = "true";'):
        need(line in replay, f"uftrace replay: {line}", replay)
    shutil.rmtree(out)
    t.read("export", "uftrace", "-o", out, recorded(t))
    same({line.split()[-1]: int(line.split()[-2]) for line in t.command(["uftrace", "report", "-d", out, "-f", "call"]).stdout.splitlines()[2:]},
         calls(t.report(recorded(t))), "uftrace report")


def check_html_values(t, need, same):
    """They are in the page's data; what is searched for is found in them, and listed with its call."""
    out = f"{t.folder}/valued.html"
    t.read("export", "html", "-o", out, recorded(t))
    shown = page(t, out, "#search=hort%22")
    values = re.search(r'<div id="values">(.*?)</div>\s*<h2>', shown, re.S)[1]
    lines = [html.unescape(line) for line in re.findall(r"<div>(.*?)</div>", values)]
    need(len(lines) == 1 and lines[0].startswith('add(-5, "short", 120, 2.5, 7000000000) = 7000000122: '), "calls whose values match", *lines)
    need("Calls with such a value: 1<" in shown, "how many there are")
    chrome = json.loads(t.read("export", "chrome", recorded(t)))["traceEvents"]
    need(any(e.get("args", {}).get("arguments") == '7, NULL, 2, 0, 0' and e["args"]["result"] == "9" for e in chrome), "Chrome's arguments")


CHECKS = (("perfetto", check_perfetto, "protoc"), ("pprof", check_pprof, "go"), ("uftrace", check_uftrace, "uftrace"),
          ("html", check_html, "chromium"), ("perfetto values", check_perfetto_values, "protoc"), ("uftrace values", check_uftrace_values, "uftrace"),
          ("html values", check_html_values, "chromium"))
