#!/usr/bin/python3
"""Programs that open libraries in other ways than dlopen from a dynamic program: namespaces of their own (dlmopen, auditors),
static programs, programs that are an argument of the dynamic linker's, the linker itself. They are instrumented when they are
mapped, count what they count under the JIT, and are as in their files when the tool has gone.

  tests/live/libraries.py [--build DIR] [--only PATTERN] [--all] [--keep]
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import later  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

LINKER = "/lib64/ld-linux-x86-64.so.2"
# {a} and {b} are libraries; b lies where a lay when that has been closed.
OPENS = ["open 0 1 {a}", "work 0 100", "thread 0 9", "open 1 0 {b}", "work 1 20", "close 0 0", "work 1 30", "close 1 0",
         "open 0 0 {b}", "work 0 7", "signal 0 3"]
SPACES = ["space 0 1 {a}", "work 0 100", "thread 0 9", "space 1 0 {b}", "work 1 20", "signal 1 2", "close 0 0", "work 1 30",
          "open 0 1 {a}", "work 0 8", "close 1 0", "space 1 1 {a}", "thread 1 5", "work 0 2"]
STATIC = [line for line in OPENS if not line.startswith("thread")]  # a C library that has come with a plug-in has no threads
SERVICES = ["names 0 2", "iconv 0 3", "names 0 1"]
WAYS = {  # the form of the program, what is in front of it, its lines, which images
    "linker": ("dynamic", [LINKER], OPENS, ["libraries-dynamic", "lib[ab].so"]),
    "spaces": ("dynamic", [], SPACES, ["lib[ab].so"]),
    "static": ("static", [], STATIC, ["lib[ab].so"]),
    "services": ("dynamic", [], SERVICES, ["libnss*", "UTF-16*", "SJIS*", "EUC-JP*", "libJIS*"]),
}
QUICK = ("attached-linker", "attached-spaces", "attached-static")


class Libraries(later.Later):
    def __init__(self, options, folder):
        outside.Out.__init__(self, options, folder)
        self.programs = {}
        for form in ("dynamic", "static"):
            self.programs[form] = f"{folder}/libraries-{form}"
            self.compile(["gcc", "-O1", *(["-static"] if form == "static" else []), f"{HERE}/libraries.c", "-o",
                          self.programs[form]])
        self.auditors = f"{folder}/libaudit.so"
        self.compile(["gcc", "-O1", "-shared", "-fPIC", f"{HERE}/auditor.c", "-o", self.auditors])
        self.libraries = {}
        for name, q in (("a", 3), ("b", 5)):
            self.libraries[name] = f"{folder}/lib{name}.so"
            self.compile(["gcc", "-O2", "-shared", "-fPIC", f"-DQ={q}", f"{HERE}/plugin.c", "-o", self.libraries[name]])

    def compile(self, argv):
        done = driver.run(argv, live.LIMIT)
        if done.status:
            raise Failed("compile", *driver.as_lines(done.stderr))

    def way(self, name):
        form, front, lines, images = WAYS[name]
        return [*front, self.programs[form]], self.lines(lines), images

    def calls(self, engine, images, argv, lines, before=()):
        done, text = self.started(engine, "calls", images, [*before, *argv], lines)
        if done.status != 6:
            raise Failed(f"{engine}: status {done.status}", *driver.as_lines(done.stderr))
        return done.stdout, later.calls_of(text)

    # --- what is to hold

    def auditor(self):
        """An auditor (LD_AUDIT) runs before the program's libraries are loaded; it and they are instrumented all the same."""
        argv, lines, _ = self.way("spaces")
        before = ["/usr/bin/env", f"LD_AUDIT={self.auditors}"]
        answers, counts = {}, {}
        for engine in ("jit", "live"):
            answers[engine], counts[engine] = self.calls(engine, ["lib[ab].so", "libaudit.so"], argv, lines, before)
        told, all_told = counts["live"].get("audit_note", 0), counts["jit"].get("audit_note", 0)
        for engine, all_counts in counts.items():
            counts[engine] = {name: n for name, n in all_counts.items() if name.startswith("plugin_")}
        same = counts["jit"] == counts["live"] != {}
        if answers["jit"] != answers["live"] or not same or not 0 < told < all_told:
            raise Failed("counted otherwise", repr(counts["jit"]), repr(counts["live"]), f"auditor: {told} of {all_told}")

    def itself(self):
        """The dynamic linker is an image like others where --image names it, from when the tool comes."""
        argv, lines, _ = self.way("spaces")
        answers, counts = {}, {}
        for engine in ("jit", "live"):
            answers[engine], counts[engine] = self.calls(engine, ["ld-linux*"], argv, lines)
        opened = ("_dl_open", "_dl_close", "_dl_runtime_resolve_xsavec", "_dl_fixup", "_dl_fini", "dl_open_worker")
        known = [name for name in opened if name in counts["jit"]]
        wrong = [name for name in known if counts["live"].get(name) != counts["jit"][name]]
        if answers["jit"] != answers["live"] or not counts["live"] or wrong:
            raise Failed("counted otherwise", repr(wrong), repr(counts["jit"]), repr(counts["live"]))
        if len(counts["live"]) < 20:
            raise Failed("few procedures", repr(counts["live"]))

    def started_so(self, name):
        argv, lines, images = self.way(name)
        self.same_counts(images, argv, lines)

    def attached_so(self, name):
        """The tool comes when some libraries are open, others come and go, it goes in the midst of a library's frame."""
        argv, lines, _ = self.way(name)
        folder = driver.fresh(f"{self.folder}/attached-{name}")
        half = len(lines) // 2
        reads = ["reads 0 4", "5"] if "names" not in lines[0] else []
        first, second, third = lines[:half], [*lines[half:], *reads[:1]], [*reads[1:], *(lines if not reads else [])]
        _, answers, status = self.native(argv, first, [*second, *third, *lines], folder)
        with live.Conversation(argv, folder) as c:
            c.say(*first)
            c.has_answered(len(first))
            state = outside.visible(c.process.pid)
            self.attach("calls", c.process.pid, "--format=json", "-o", f"{folder}/report")
            c.say(*second)
            c.has_answered(len(first) + len(second) - (1 if reads else 0))
            counts = later.calls_of(self.inside("report", c.process.pid))
            self.inside("detach", c.process.pid)
            outside.clean(c.process.pid, state)
            c.say(*third, *lines)
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise Failed(f"status {ended} instead of {status}; natively and then:", *driver.as_lines(answers)[-30:], "---",
                         *driver.as_lines(here)[-30:])
        worked = sum(int(line.split()[2]) if line.split()[0] in ("work", "thread") else line.startswith("signal")
                     for line in second)
        if reads and counts.get("plugin_kind") != worked:
            raise Failed(f"plugin_kind was called {worked} times, and counted: {counts.get('plugin_kind')}")


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("libraries", options) as results:
        libraries = Libraries(options, results.folder)
        for name in WAYS:
            for how, function in (("started", libraries.started_so), ("attached", libraries.attached_so)):
                case = f"{how}-{name}"
                if (options.all or options.only != "*" or case in QUICK) and driver.chosen(case, options):
                    results.check(case, lambda f=function, n=name: f(n))
        for name in ("auditor", "itself"):
            if (options.all or options.only != "*" or name == "auditor") and driver.chosen(name, options):
                results.check(name, getattr(libraries, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
