#!/usr/bin/python3
"""Libraries that are opened when the tool is there already: they are instrumented when they are mapped, count what they
count under the JIT, and are as in their files when the tool has gone.

  tests/live/later.py [--build DIR] [--only PATTERN] [--keep]
"""

import glob
import json
import os
import platform
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

# {a} and {b} are libraries; b lies where a lay when that has been closed.
FIRST = ["open 0 1 {a}", "work 0 100", "thread 0 9", "throw 0 5", "throw 0 6"]
SECOND = ["thread 0 40", "fork 0 30", "close 0 0", "open 1 0 {b}", "work 1 70", "throw 1 10", "close 1 0", "open 0 0 {a}",
          "work 0 20", "fork 1 12 {b}", "reads 0 0", "5", "close 0 0"]
DROPPED = ["drop 0 0", "open 1 0 {b}", "work 1 70"]  # it has become another user
SYSTEM = {  # what is opened: by which programs, with which arguments
    "python": (["/usr/bin/python3", "-S", "-E", "-c", "import _ssl, zlib; print(zlib.crc32(b'abc'))"],
               ["_ssl*", "libssl*", "libcrypto*"]),
    "perl": (["/usr/bin/perl", "-MPOSIX", "-MSocket", "-e", "print POSIX::floor(3.7), length(inet_aton('127.0.0.1'))"],
             ["POSIX.so", "Socket.so", "Fcntl.so"]),
    "gawk": (["/usr/bin/gawk", "-l", "filefuncs", "BEGIN { print stat(\"/\", d) }"], ["filefuncs*"]),
    "iconv": (["/usr/bin/iconv", "-f", "UTF-8", "-t", "UTF-16", "SELF"], ["UTF-16*"]),
}


# glibc tells of a library when it has resolved what that imports, from 2.41 on: what its resolvers execute is over then.
RELEASE = platform.libc_ver()[1].split(".")
WITHOUT_RESOLVER = ["-DNO_RESOLVER"] if [int(n) for n in RELEASE] >= [2, 41] else []


class Later(outside.Out):
    def __init__(self, options, folder):
        options.all = False
        super().__init__(options, folder)
        self.opener = f"{folder}/opener"
        self.libraries = {"a": f"{folder}/liba.so", "b": f"{folder}/libb.so"}
        source = f"{HERE}/later.cc"
        library = ["g++", "-O2", "-shared", "-fPIC", *WITHOUT_RESOLVER, source]
        for argv in (["g++", "-O1", f"{HERE}/opener.cc", "-o", self.opener],
                     [*library, "-DQ=3", "-o", self.libraries["a"]], [*library, "-DQ=5", "-o", self.libraries["b"]]):
            done = driver.run(argv, live.LIMIT)
            if done.status:
                raise Failed("compile", *driver.as_lines(done.stderr))

    def lines(self, which):
        return [line.format(**self.libraries) for line in which]

    def started(self, engine, tool, images, argv, lines=()):
        report = f"{self.folder}/report"
        filters = [word for image in images for word in ("--image", image)]
        done = driver.run([self.inlay, "run", f"--engine={engine}", tool, "--format=json", "-o", report, *filters, "--", *argv],
                          live.LIMIT, stdin=self.typed(lines))
        text = ""
        for path in [report, *glob.glob(f"{report}.*")]:  # forked children have written their own
            with open(path) as f:
                text += f.read()
            os.remove(path)
        return done, text

    def typed(self, lines):
        path = f"{self.folder}/typed"
        with open(path, "w") as f:
            f.writelines(f"{line}\n" for line in lines)
        return path

    def same_counts(self, images, argv, lines=()):
        argv = [__file__ if word == "SELF" else word for word in argv]
        native = driver.run(argv, live.LIMIT, stdin=self.typed(lines))
        for tool, read in (("inscount", total), ("calls", calls_of), ("branches", branches_of)):
            told = {}
            for engine in ("jit", "live"):
                done, text = self.started(engine, tool, images, argv, lines)
                if driver.differences(native, done):
                    raise Failed(f"{tool}, {engine}", *driver.differences(native, done))
                told[engine] = read(text)
            if told["jit"] != told["live"] or not told["live"]:
                keys = [k for k in told["jit"].keys() | told["live"].keys() if told["jit"].get(k) != told["live"].get(k)]
                raise Failed(f"{tool} counts otherwise than under the JIT", *(
                    f"{k}: {told['live'].get(k)} instead of {told['jit'].get(k)}" for k in sorted(keys, key=repr)[:20]))

    # --- what is to hold

    def opened(self):
        """Each procedure, also in forked children, behind the closing of another library at the same place, and for
        another user than the process began as."""
        os.chmod(self.folder, 0o711)
        self.same_counts(["liba*", "libb*"], [self.opener], self.lines(FIRST + SECOND + DROPPED))

    def system(self, name):
        argv, images = SYSTEM[name]
        if not os.path.exists(argv[0]):
            return "not installed"
        return self.same_counts(images, argv)

    def crowded(self):
        """Other threads map memory meanwhile, where its new code is to lie."""
        tool = f"{self.folder}/crowd_tool"
        done = driver.run([self.inlay, "cc", "-O2", f"{HERE}/crowd_tool.c", "-o", tool], live.LIMIT)
        if done.status:
            raise Failed("compile", *driver.as_lines(done.stderr))
        for which in "ab":
            lines = self.lines([f"open 0 1 {{{which}}}", "work 0 9"])
            done, text = self.started("live", tool, [f"lib{which}.so"], [self.opener], lines)
            if done.status != 6 or done.stderr or text != "1 crowd, 9 calls\n":
                raise Failed(f"{which}: status {done.status}, {text!r}", *driver.as_lines(done.stderr))

    def attached(self):
        """The tool comes, libraries are opened; it goes while a frame of one is on the stack."""
        folder = driver.fresh(f"{self.folder}/attached")
        first, second = self.lines(FIRST), self.lines(SECOND)
        cut = second.index("reads 0 0") + 1
        _, answers, status = self.native([self.opener], first, first[1:] + second, folder)
        with live.Conversation([self.opener], folder) as c:
            c.say(*first)
            c.has_answered(len(first))
            state = outside.visible(c.process.pid)
            self.attach("calls", c.process.pid, "--format=json", "-o", f"{folder}/report")
            c.say(*first[1:], *second[:cut])
            c.has_answered(2 * len(first) + cut - 2)
            counts = calls_of(self.inside("report", c.process.pid))
            self.inside("detach", c.process.pid)
            outside.clean(c.process.pid, state)
            c.say(*second[cut:])
            here, ended = c.end()
        if (answers, status) != (here, ended):
            raise Failed(f"status {ended} instead of {status}; natively and then:", *driver.as_lines(answers)[-30:], "---",
                         *driver.as_lines(here)[-30:])
        # a was open before, b was not; work calls kind_of as often as it is told
        if counts.get("kind_of") != 100 + 9 + 40 + 70 + 20 or counts.get("library_begins") != 2:
            raise Failed("counted otherwise", repr(counts))


def total(text):
    return {"instructions": sum(part["instructions"] for part in parts(text))}


def calls_of(text):
    sums = {}
    for part in parts(text):
        for p in part["procedures"]:
            sums[p["name"]] = sums.get(p["name"], 0) + p["calls"]
    return sums


def branches_of(text):
    """By procedure and kind: libraries lie elsewhere each time."""
    sums = {}
    for part in parts(text):
        for b in part["branches"]:
            key = b.get("procedure"), b["kind"]
            was = sums.get(key, (0, 0))
            sums[key] = was[0] + b["executed"], was[1] + b["taken"]
    return sums


def parts(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        part, at = decoder.raw_decode(text, at)
        while at < len(text) and text[at].isspace():
            at += 1
        yield part


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("later", options) as results:
        later = Later(options, results.folder)
        tests = {"opened": later.opened, "crowded": later.crowded, "attached": later.attached}
        tests.update({name: lambda name=name: later.system(name) for name in SYSTEM})
        for name, function in tests.items():
            if driver.chosen(name, options):
                results.check(name, function)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
