#!/usr/bin/python3
"""What rewriting costs: the size of what is written, and the memory that it takes. Time is not looked at.

  tests/rewrite/size.py [--build DIR] [--only CASE] [--keep] [--large]

  null-*     a program rewritten without a tool is at most twice its size, and nothing in it is there for a tool;
             memory grows with the code, not faster
  carried    a program rewritten with its libraries carries, besides the tool, a third of the text at most
  memory     what a tool has of memory and does not use takes no room on the disk
  records    records of a byte, one for each block, take little more than their keys

and with --large, which takes minutes:

  chromium          the largest program that distributions ship: its bounds, and it renders a page as it does natively
  chromium-libs     the same with all its libraries
  chromium-carried  the same with a tool that counts its instructions: memory, the page, and that it reports

Prints a line for each failure and at the end N passed, N failed.
"""

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

MB = 1 << 20
PROGRAMS = ("/usr/bin/python3", "/usr/bin/git", "/usr/bin/gdb")
WITH_LIBRARIES = "/usr/bin/openssl"
BASE_MEMORY = 48 * MB     # whatever is rewritten
MEMORY = 10               # bytes for each byte of code and of file together
CHROMIUM = "/usr/lib/chromium"
LARGE_MEMORY = 2_500_000_000
PAGE = """<!doctype html><meta charset=utf-8><title>page</title><body><h1>A page</h1><p id=p>not run</p>
<canvas id=c width=120 height=60></canvas><script>
const say = [];
let kept = []; /* the collector walks stacks */
for (let r = 0; r < 30; r++) { const g = []; for (let i = 0; i < 20000; i++) g.push({i, s: 'x' + i}); kept = [g[7], kept.length]; }
say.push('kept ' + kept[0].s);
let caught = 0;
for (let i = 0; i < 500; i++) try { if (i % 3 == 0) throw new Error(i); JSON.parse(i % 5 ? '[1]' : '{'); } catch (e) { caught++; }
say.push('caught ' + caught, 'words ' + 'the quick fox'.replace(/(\\w+) (\\w+)/g, '$2 $1'));
const x = document.getElementById('c').getContext('2d');
x.fillStyle = '#369'; x.fillRect(5, 5, 60, 40);
(async () => { const r = await Promise.all([1, 2, 3].map(async v => { await null; return v * v; }));
  document.getElementById('p').textContent = say.concat('squares ' + r).join(', '); })();
</script></body>
"""
OPTIONS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
           "--disable-component-update --disable-sync --window-size=400,300 --virtual-time-budget=2000").split()


class Sections:
    """Their sizes by name, and how much of them is original code."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            head = f.read(64)
            f.seek(struct.unpack_from("<Q", head, 40)[0])
            count, names = struct.unpack_from("<HH", head, 60)
            rows = [struct.unpack("<IIQQQQ24x", f.read(64)) for _ in range(count)]
            f.seek(rows[names][4])
            text = f.read(rows[names][5])
        named = {text[r[0]:text.index(b"\0", r[0])].decode(): r for r in rows}
        self.size = {name: r[5] for name, r in named.items()}
        self.offset = {name: r[4] for name, r in named.items()}
        self.code = sum(r[5] for name, r in named.items() if r[2] & 4 and not name.startswith(".inlay"))

    def begin(self, name, size):
        with open(self.path, "rb") as f:
            f.seek(self.offset[name])
            return f.read(size)


def loaded(path):
    """What of a program is in its segments."""
    with open(path, "rb") as f:
        data = f.read(4096)
    at, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    rows = [struct.unpack_from("<IIQQQQQQ", data, at + size * i) for i in range(count)]
    return max(r[2] + r[5] for r in rows if r[0] == 1)


def rewrite(options, tool, program, *more):
    """Its peak memory in bytes."""
    argv = [f"{options.build}/inlay", "rewrite", f"{options.build}/tools/{tool}", program, *more]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
        message = p.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise Failed(f"rewriting {program} ended with {p.returncode}", *message.splitlines()[-3:])
    return usage.ru_maxrss * 1024


def at_most(what, value, bound):
    if value > bound:
        raise Failed(f"{what}: {value} bytes, at most {int(bound)} were expected")


def check_null(options, folder, program):
    out = f"{folder}/null-{os.path.basename(program)}"
    memory = rewrite(options, "null", program, "-o", out)
    old, new = Sections(program), Sections(out)
    at_most("the file", os.path.getsize(out), 2 * os.path.getsize(program) + MB)
    for name in (".inlay.map", ".inlay.data", ".inlay.boot"):
        if name in new.size:
            raise Failed(f"it has a section {name}, which only a tool reads")
    at_most("memory", memory, BASE_MEMORY + MEMORY * (old.code + os.path.getsize(program)))
    os.unlink(out)


def check_carried(options, folder, tool):
    libs = f"{folder}/libs-{tool}"
    rewrite(options, tool, WITH_LIBRARIES, "--with-libs", libs)
    launcher = f"{libs}/{os.path.basename(WITH_LIBRARIES)}"
    code = sum(Sections(f"{libs}/{f}").code for f in os.listdir(libs))
    data = Sections(launcher).size[".inlay.data"] - loaded(f"{options.build}/tools/{tool}")
    at_most("what it carries besides the tool", data, code / 3)
    said = driver.run([launcher, "version"], 60)
    native = driver.run([WITH_LIBRARIES, "version"], 60)
    if said.stdout != native.stdout:
        raise Failed("it says something else than the original")


TOOL = """#include <inlay.h>
static char *m;
static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%d %d %d\\n", m[0], m[(96 << 20) / 2], m[(96 << 20) - 1]);
}
static void image_loaded(inlay_image *i, void *arg)
{
    (void)i, (void)arg;
    m[0] = 1, m[(96 << 20) / 2] = 2, m[(96 << 20) - 1] = 3;
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "has memory");
    m = inlay_alloc(96 << 20);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""


def check_memory(options, folder):
    tool, out = f"{folder}/memory", f"{folder}/true"
    with open(f"{tool}.c", "w") as f:
        f.write(TOOL)
    made = driver.run([f"{options.build}/inlay", "cc", "-Wextra", "-Werror", f"{tool}.c", "-o", tool], 60)
    if made.status:
        raise Failed(*driver.as_lines(made.stderr)[-6:])
    driver.rewrite(f"{options.build}/inlay", [tool, "/bin/true", "-o", out], 60)
    at_most("on the disk", os.stat(out).st_blocks * 512, 16 * MB)
    done = driver.run([out], 60)
    if done.status or done.stderr != b"1 2 3\n":
        raise Failed(f"status {done.status}", *driver.as_lines(done.stderr))
    os.unlink(out)


def check_records(options, folder):
    out = f"{folder}/records"
    rewrite(options, "bbcount", PROGRAMS[0], "-o", out)
    sections = Sections(out)
    blocks = struct.unpack("<Q", sections.begin(".inlay.map", 8))[0]
    data = sections.size[".inlay.data"] - loaded(f"{options.build}/tools/bbcount")
    at_most("what it carries besides the tool", data, sections.code / 3 + 24 * blocks)


# --- the largest

def rendered(folder, exe, page, name):
    """The page as the browser has made it: its text, and how it looks."""
    shot = f"{folder}/{name}.png"
    results = []
    for number, what in enumerate(("--dump-dom", f"--screenshot={shot}")):
        user = f"{folder}/user-{name}-{number}"
        r = driver.run([exe, *OPTIONS, f"--user-data-dir={user}", what, f"file://{page}"], 300,
                       env=driver.ENVIRONMENT | {"HOME": folder})
        if r.status:
            raise Failed(f"{name}: {what} ended with {r.status}", *r.stderr.decode(errors='replace').splitlines()[-4:])
        results.append(r.stdout)
    with open(shot, "rb") as f:
        return results[0], f.read()


def beside_its_parts(folder, exe):
    """A browser looks for its parts beside itself."""
    for name in os.listdir(CHROMIUM):
        if name != "chromium":
            os.symlink(f"{CHROMIUM}/{name}", f"{folder}/{name}")
    return exe


def check_page(folder, exe, name):
    page = f"{folder}/page.html"
    with open(page, "w") as f:
        f.write(PAGE)
    native, here = (rendered(folder, *which) for which in ((f"{CHROMIUM}/chromium", page, f"{name}-native"),
                                                           (exe, page, name)))
    if b"squares 1,4,9" not in native[0]:
        raise Failed("the browser does not render the page natively")
    if native != here:
        raise Failed("the page " + ("looks" if native[0] == here[0] else "reads") + " otherwise than natively",
                     *here[0].decode(errors="replace").splitlines()[:6])


def check_chromium(options, folder, name, tool, *more):
    home = f"{folder}/{name}"
    where = more or ("-o", f"{home}/chromium")
    os.mkdir(home)
    memory = rewrite(options, tool, f"{CHROMIUM}/chromium", *[w.format(home=home) for w in where])
    at_most("memory", memory, LARGE_MEMORY)
    if tool == "null":
        at_most("the file", os.path.getsize(f"{home}/chromium"), 2 * os.path.getsize(f"{CHROMIUM}/chromium"))
    exe, report = beside_its_parts(home, f"{home}/chromium"), f"{home}/report"
    driver.ENVIRONMENT["INLAY_OUT"] = report
    check_page(folder, exe, name)
    if tool != "null":
        with open(report) as f:
            said = f.read()
        if not re.search(r"chromium: \d{8,} instructions", said):
            raise Failed("the browser's own process reports no count", said[:200])
    shutil.rmtree(home)


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="the largest instead of the others")
    options = parser.parse_args()
    with driver.Results("size", options) as results:
        folder = results.folder
        if options.large:
            for case in (("chromium", "null"), ("chromium-libs", "null", "--with-libs", "{home}"),
                         ("chromium-carried", "inscount")):
                results.check(case[0], lambda c=case: check_chromium(options, folder, *c))
            return results.status
        for program in PROGRAMS:
            results.check(f"null-{os.path.basename(program)}", lambda p=program: check_null(options, folder, p))
        results.check("carried", lambda: check_carried(options, folder, "inscount"))
        results.check("memory", lambda: check_memory(options, folder))
        results.check("records", lambda: check_records(options, folder))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
