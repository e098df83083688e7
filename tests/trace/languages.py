"""Arguments and results by types, where a language passes them in a way of its own: Rust and Go, as their compilers make them
without optimising and with it, under each engine. What is shown must be right; what optimising has taken away may be missing."""
import os
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
UNKNOWN = "{...}"
THREE = "{a = 1, b = 2, c = 3}"
# Name, arguments, result; in the order of the calls.
RUST = [("small", ["{1, 2}", "3"], "{2, 5}"), ("reals", ["{a = 1.5, b = 2.5}", "3"], "{a = 4.5, b = 2.5}"),
        ("mixed", ["7", "{x = 0.25, n = 300}", "0.5"], "{x = 0.75, n = 307}"), ("three", [THREE, "4"], "{a = 3, b = 6, c = 1}"),
        ("metres", ["{1.25}", "4"], "{5}"), ("maybe", ["Some(5)", "6"], "Some(11)"), ("maybe", ["None", "7"], "None"),
        ("real", ["Some(1.5)", "-2"], "Some(-3)"), ("real", ["None", "3"], "None"), ("worked", ["Some(5)", "6"], "Ok(11)"),
        ("worked", ["None", "7"], "Err(7)"), ("refers", ["None", "2"], "11"), ("hides", ["Some({true, 6})", "6"], "Some(true)"),
        ("hides", ["None", "9"], "None"), ("shape", ["Dot", "5"], "Circle(1.25)"),
        ("shape", ["Line {from = 1, to = 2}", "5"], "Line {from = 2, to = 6}"), ("shape", ["Circle(0.5)", "5"], "Dot"),
        ("owned", ['"a string of its own"', "7"], '"a string of its own7"'), ("texts", ['"one"', '"three"', "7"], "15"),
        ("bytes", ["{1, 2, 3}", "9"], "{3, 2, 9}"), ("words", ["{1, 2}", "7"], "{2, 8}"),
        ("wide", ["0x400000000000000000", "7"], "0x400000000000000007"), ("tuple", [UNKNOWN, "{1, -2, true}", "7"], "{5, true}"),
        ("pattern", ["{3, 4}", "5"], "12"), ("crowded", ["1", "2", "3", "4", "-5", '"some"', "-6", "{a = 7, b = 8, c = 9}"], "10"),
        ("as_c_does", ["{k = 3, n = 4}", "2"], "{k = 4, n = 6}")]
GO = [("add", ["3", "4"], "7"), ("greet", ['"bob"', "9"], '"bob-9"'),
      ("sum", [r"{array = P, len = 3, cap = 3}", "0.5"], "{total = 6, real = 3, err = {tab = 0x0, data = 0x0}}"),
      ("sum", ["{array = 0x0, len = 0, cap = 0}", "2"], "{total = 0, real = 0, err = {tab = P, data = P}}"), ("point.move", ["P", "{-1}"], None),
      ("point.norm", ["{x = 2, y = 4}", "2.5"], "50"),
      ("many", ["-1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12.5"], "{r0 = 76, r1 = true}"),
      ("late", ["1", "2", "3", "4", "5", "6", "7", "8", "{x = 9, y = 10}", "11"], "137"),
      ("strange", ["{a = 1, f = 0.75, s = {str = P, len = 4}, b = true}", "2"], "{a = 3, f = 1.5, s = {str = P, len = 5}, b = false}"),
      ("large", ["{1, 2, 3}", "4"], "{3, 2, 4}"), ("turns", ["{real = 1, imag = 2}", '"u"', "3"], "{real = 3, imag = 6}"),
      ("applied", ["{f = P, n = 3}", "P", "4"], "P")]
GO += [("deep", [str(n)], str(7 + n)) for n in range(5, -1, -1)]
# Compiler, its options, the procedures, is it optimised.
BUILDS = {"rust": ("rs", ["rustc", "-g"], "values", RUST, False), "rust-O2": ("rs", ["rustc", "-g", "-C", "opt-level=2"], "values", RUST, True),
          "go": ("go", ["go", "build"], "main", GO, False), "go-plain": ("go", ["go", "build", "-gcflags=-N -l"], "main", GO, False)}


def split(text):
    """Arguments, which may have commas inside."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{(") - (c in "})")
        if c == "," and not depth:
            parts.append(text[start:i])
            start = i + 2
    return [*parts, text[start:]] if text else []


def is_shown(said, wanted, may_miss):
    if may_miss and (said == UNKNOWN or said is None):
        return True
    if wanted is None or said is None:
        return said is wanted  # nothing is returned
    return re.fullmatch(re.escape(wanted).replace("P", "0x[0-9a-f]+"), said or "") is not None


def wrong(call, wanted, may_miss):
    name, arguments, result = wanted
    said = split(call.get("arguments") or "")
    count = len(said) == len(arguments) or (may_miss and len(said) < len(arguments))
    good = count and is_shown(call.get("result"), result, may_miss)
    if len(said) == len(arguments):
        good &= all(is_shown(a, b, may_miss) for a, b in zip(said, arguments))
    return None if good else f"{name}({', '.join(said)}) = {call.get('result')}, not ({', '.join(arguments)}) = {result}"


def check(t, engine, name, need):
    suffix, command, space, wanted, optimised = BUILDS[name]
    program = f"{t.folder}/values-{name}"
    if not os.path.exists(program):
        t.command([*command, "-o", program, f"{HERE}/values.{suffix}"])
    separator = "::" if suffix == "rs" else "."
    own = {one[0] for one in wanted}
    patterns = [f"*{n.replace('point.', 'point*')}" if n == "as_c_does" else f"{space}{separator}*{n.split('.')[-1]}" for n in own]
    s = t.of(program)
    listed = ";".join(patterns)
    recording = s.record(engine, [name], ["-A", listed, "-R", listed], status=3 if suffix == "go" else 0, names=patterns)
    found = []
    calls = (call for thread in t.json("list", recording) for call in thread["calls"])
    for c in sorted(calls, key=lambda call: call["start_ns"]):  # Go's threads take over from one another
        short = re.sub(r"^.*" + re.escape(space + separator), "", c["name"]).replace("(*point)", "point")
        short = re.sub(r"::h[0-9a-f]{16}$", "", short)
        again = found and suffix == "go" and (short, c.get("arguments")) == (found[-1][0], found[-1][1].get("arguments"))
        if again:  # Go enters a procedure anew when its stack has become larger, or it had to wait
            found.pop()
        if short in own:
            found.append((short, c))
    need([n for n, _ in found] == [w[0] for w in wanted], "calls", [n for n, _ in found])
    bad = [said for (_, c), w in zip(found, wanted) if (said := wrong(c, w, optimised))]
    need(not bad, f"{len(bad)} calls", *bad)
    shown = sum(a not in (UNKNOWN, None) for _, c in found for a in [*split(c.get("arguments") or ""), c.get("result")])
    need(shown >= (12 if optimised else len(wanted)), f"{shown} values alone are shown")


def tests(t, engines, need):
    for name in BUILDS:
        if shutil.which(BUILDS[name][1][0]):
            for engine in engines:
                yield f"{name} {engine}", lambda n=name, e=engine: check(t, e, n, need)
