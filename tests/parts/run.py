#!/usr/bin/python3
"""The rules of the tree (docs/design.md, section 2), checked on the source text.

  tests/parts/run.py

  includes   a part includes only itself and earlier parts
  public     public headers include public headers and the C library only
  tools      shipped tools and examples include public headers, the C library and what is beside them
  arch       no architecture is asked for, included from or named outside the architectures' own folders
  private    private headers (private.h, *_private.h, core.h) are included by their own part only
  layers     no two headers include each other, on whatever way; an architecture's folder includes no other's
  prototypes what a part has is declared in a header: no source file repeats a prototype
  bodies     no .c file is included
  size       no source file has 700 lines or more
  functions  none has 60 lines or more
  width      no line of the source has more than 120 columns
  ways       what the design's ways through the source name is there
  scripts    what tests/run starts is there and can be executed
  planted    every planted fault can still be put in (tests/planted)
  format     the source is as clang-format lays it out (scripts/format)

Prints a line for each violation and at the end N passed, N failed.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Earliest first; what shares a line does not know each other.
ORDER = [["base"], ["isa"], ["image"], ["cfg"], ["snippet"], ["weave"], ["run"], ["jit", "move"], ["moved", "elf"],
         ["live"],
         ["tool"], ["atom", "pin", "dyninst", "trace", "record"], ["object"], ["cli"]]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}
ARCHITECTURES = ("x86_64", "aarch64")

# The limits that CONTRIBUTING.md tells.
MOST_LINES, MOST_FUNCTION, MOST_COLUMNS = 700, 60, 120

# The places that know all architectures: where a part chooses between its folders.
ARCH_SWITCHES = {"include/inlay/arch.h", "src/base/sys.h", "src/isa/isa.h", "src/isa/isa.c",
                 "src/cfg/work.h", "src/cfg/isas.c", "src/image/file.h", "src/image/isas.c",
                 "src/object/file.h", "src/object/isas.c"}
ARCH_NAME = re.compile(r"\b(?:x86_(?!64\b)\w+|X86_\w+|a64_\w+|A64_\w+|\w+_x86_64|\w+_aarch64)\b|\b(?:x86_64|aarch64)/")
PRIVATE = re.compile(r"(?:^|/)(?:core|private|\w+_private)\.h$")
PROTOTYPE = re.compile(r"^(?!static|typedef|return|_Static_assert)[A-Za-z_][\w \*]*[ \*](?!__attribute__)(\w+)\([^;{]*\)[^;{=]*;", re.M)

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
ARCH_MACRO = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*(?:__x86_64__|__i386__|__aarch64__|__arm__|"
                        r"__amd64__|__riscv)", re.M)
BEGINS = re.compile(r"[A-Za-z_].*\)\s*\{?\s*$")
DECLARES = re.compile(r"[A-Za-z_/].*;")


def sources(*folders):
    for folder in folders:
        for base, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".S", ".cc", ".hpp")):
                    path = os.path.join(base, name)
                    with open(path, encoding="utf-8") as f:
                        yield os.path.relpath(path, ROOT), f.read()


def includes(text):
    """(quoted, angled) of each include; one of the two is empty."""
    return INCLUDE.findall(text)


def part_of(path):
    """src/weave/x86_64/a.c -> weave"""
    return path.split("/")[1]


def check_includes():
    for path, text in sources("src"):
        part = part_of(path)
        if part not in RANK:
            yield f"{path}: {part} is not a part"
            continue
        for quoted, _ in includes(text):
            other = quoted.split("/")[0]
            if other not in RANK:
                continue  # beside the file, or generated
            if other != part and RANK[other] >= RANK[part]:
                yield f"{path}: {part} must not know {other} ({quoted})"


def check_public():
    for path, text in sources("include"):
        for quoted, angled in includes(text):
            if quoted:
                yield f'{path}: "{quoted}": public headers are included in angle brackets'
            elif not angled.startswith("inlay") and angled.split("/")[0] in RANK:
                yield f"{path}: <{angled}> is not public"


def check_tools():
    for path, text in sources("tools", "examples"):
        for quoted, angled in includes(text):
            name = quoted or angled
            shared = quoted and os.path.exists(os.path.join(ROOT, os.path.dirname(path), quoted))
            if (quoted and not shared) or name.split("/")[0] in RANK:
                yield f"{path}: {name} is not public"


def own_folder(path):
    return next((a for a in ARCHITECTURES if f"/{a}/" in path), None)


def code_only(text):
    """Without comments and strings, but for what is included; lines stay where they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    return re.sub(r'^(?!\s*#\s*include)([^\n"]*)("[^"\n]*")', lambda m: m.group(1) + blank(m), text, flags=re.M)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_arch():
    for path, text in sources("src", "include"):
        if path in ARCH_SWITCHES or own_folder(path):
            continue
        for match in ARCH_MACRO.finditer(text):
            yield f"{path}:{line_of(text, match.start() + 1)}: {match.group().strip()}"
        code = code_only(text) if path.startswith("src/") else ""
        for match in ARCH_NAME.finditer(code):
            yield f"{path}:{line_of(code, match.start())}: {match.group()}"


def check_private():
    for path, text in sources("src"):
        for quoted, _ in includes(text):
            part = quoted.split("/")[0]
            if part in RANK and part != part_of(path) and PRIVATE.search(quoted):
                yield f"{path}: {quoted} is {part}'s own"


def headers():
    """Each header of src with those that it includes, as far as they are in src too."""
    return {path.removeprefix("src/"): [q for q, _ in includes(text) if q.split("/")[0] in RANK]
            for path, text in sources("src") if path.endswith(".h")}


def circles(graph):
    done, on_way = set(), []

    def visit(name):
        if name in on_way:
            yield " -> ".join(on_way[on_way.index(name):] + [name])
        elif name not in done:
            on_way.append(name)
            for other in graph.get(name, ()):
                yield from visit(other)
            on_way.pop()
            done.add(name)
    for name in sorted(graph):
        yield from visit(name)


def check_layers():
    yield from circles(headers())
    for path, text in sources("src"):
        for quoted, _ in includes(text):
            if own_folder(path) and own_folder(f"/{quoted}") not in (None, own_folder(path)):
                yield f"{path}: {quoted}"


def check_prototypes():
    own = re.compile(rf"^(?:{'|'.join(RANK)}|inl|inlay|weave|jit|run)_")
    seen = {}
    for path, text in sources("src"):
        if not path.endswith(".c"):
            continue
        code = code_only(text)
        for match in PROTOTYPE.finditer(code):
            name, where = match.group(1), f"{path}:{line_of(code, match.start())}"
            if own.match(name) and name.split("_")[0] != "inlay":
                yield f"{where}: {name} belongs in a header"
            elif name in seen and seen[name].split(":")[0] != path:
                yield f"{where}: {name} is declared in {seen[name]} too"
            seen[name] = where


def check_bodies():
    for path, text in sources("src", "include", "tools", "tests"):
        for quoted, angled in includes(text):
            if (quoted or angled).endswith(".c"):
                yield f"{path}: includes {quoted or angled}"


def check_size():
    for path, text in sources("src", "include", "tools", "tests", "bench"):
        lines = text.count("\n")
        if lines >= MOST_LINES:
            yield f"{path}: {lines} lines"


def functions(text):
    """(first line, lines) of each: from a line that begins one to the next bracket in the first column."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if start is None:
            start = number if BEGINS.match(line) else None
        elif line.startswith("}"):
            yield start, number - start + 1
            start = None
        elif line.startswith("#") or DECLARES.match(line):
            start = None


def check_functions():
    for path, text in sources("src", "tools", "tests", "bench"):
        for start, lines in functions(text) if path.endswith(".c") else ():
            if lines >= MOST_FUNCTION:
                yield f"{path}:{start}: {lines} lines"


def check_width():
    for path, text in sources("src", "include/inlay", "tools", "tests", "bench"):
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MOST_COLUMNS and path.endswith((".c", ".h")) and not path.startswith("tests/atom/"):
                yield f"{path}:{number}: {len(line)} columns"


def check_format():
    result = subprocess.run([f"{ROOT}/scripts/format", "--check"], capture_output=True, text=True)
    if result.returncode:
        yield from result.stdout.splitlines() + result.stderr.splitlines()


def check_ways():
    """Lines of docs/design.md of the form `name   src/part/file  ...`: the function is defined in that file. A file
    without a folder is in that of the part named last."""
    with open(f"{ROOT}/docs/design.md", encoding="utf-8") as f:
        lines = f.read().split("\n")
    found, folder = 0, ""
    for number, line in enumerate(lines, 1):
        match = re.match(r" {4,}(\w+)(?:\s{2,})(src/[\w./]+\.[chS]|\w+\.[chS])\b", line)
        if not match:
            continue
        found += 1
        name, path = match.groups()
        folder = "/".join(path.split("/")[:2]) if "/" in path else folder
        path = path if "/" in path else f"{folder}/{path}"
        if not os.path.exists(f"{ROOT}/{path}"):
            yield f"docs/design.md:{number}: {path} is not there"
            continue
        with open(f"{ROOT}/{path}", encoding="utf-8") as f:
            text = f.read()
        if not re.search(rf"^(?:[A-Za-z_].*\b{name}\(|{name}:)", text, re.M):
            yield f"docs/design.md:{number}: {path} has no {name}"
    if not found:
        yield "docs/design.md names no function with its file"


def check_scripts():
    with open(f"{ROOT}/tests/run", encoding="utf-8") as f:
        named = set(re.findall(r"tests/[\w/-]+\.(?:py|sh)", f.read()))
    for path in sorted(named):
        if not os.access(f"{ROOT}/{path}", os.X_OK):
            yield f"{path}: cannot be executed"
    if len(named) < 20:
        yield "tests/run names few scripts"


def check_planted():
    result = subprocess.run([f"{ROOT}/tests/planted/run.py", "--check"], capture_output=True, text=True)
    if result.returncode:
        yield from result.stdout.splitlines() + result.stderr.splitlines()


def main():
    checks = [check_includes, check_public, check_tools, check_arch, check_private, check_layers, check_prototypes,
              check_bodies, check_size, check_functions,
              check_width, check_ways, check_scripts, check_planted, check_format]
    failed = 0
    for check in checks:
        told = list(check())
        if told:
            failed += 1
            print(f"FAIL parts {check.__name__.removeprefix('check_')}", *told, sep="\n     ")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
