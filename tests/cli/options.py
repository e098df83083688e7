#!/usr/bin/python3
"""The options of tools: letters and names, values in every form, --no-NAME, what is no number; filters; and programs
that would gain privileges.

  tests/cli/options.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
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

NOBODY = 65534


class Options:
    def __init__(self, build, folder):
        self.build, self.inlay, self.folder = build, f"{build}/inlay", folder
        self.samples = f"{build}/tests/samples"

    def run(self, *words, status=0, before=None, by=None):
        done = driver.run([*(by or [self.inlay, "run"]), *words], 60, cwd=self.folder, env=driver.ENVIRONMENT, before=before)
        if done.status != status:
            raise Failed(f"{' '.join(words)}: status {done.status} instead of {status}", done.stderr.decode()[:300])
        return done.stderr.decode()

    def report(self, *words):
        """What the tool writes to its file."""
        out = f"{self.folder}/report"
        if os.path.exists(out):
            os.unlink(out)
        self.run(*words, "-o", out, "--", f"{self.samples}/plain_static", "1")
        with open(out) as f:
            return f.read()

    # --- the forms of an option

    def output_forms(self):
        texts = []
        for words in (["-o", "out"], ["-oout"], ["--output", "out"], ["--output=out"]):
            self.run("inscount", *words, "--", "true")
            with open(f"{self.folder}/out") as f:
                texts.append(f.read())
            os.unlink(f"{self.folder}/out")
        if not all(re.fullmatch(r"true: [1-9]\d* instructions\n", t) for t in texts):
            raise Failed("not one report each", *texts)

    def before_the_name(self):
        """What each tool's help lists for all of them is also known before the tool's name, likewise to inlay snippet."""
        def listed(tool):
            done = driver.run([self.inlay, "run", tool, "--help"], 60, cwd=self.folder, env=driver.ENVIRONMENT)
            return set(re.findall(r"^ +(?:-(\w), )?--([\w-]+)(\[=|=)?", done.stdout.decode(), re.M))
        common = listed("null") & listed("inscount") - {("", "help", ""), ("", "version", "")}
        if len(common) < 20:
            raise Failed("few options are listed", repr(common))
        for letter, name, value in sorted(common):
            for form in ([f"--{name}"], [f"-{letter}"] if letter else None):
                words = form and [*form, *(["x"] if value == "=" else [])]
                for command in (["run", *words], ["snippet", *words]) if words else ():
                    done = driver.run([self.inlay, *command], 60, cwd=self.folder, env=driver.ENVIRONMENT)
                    said = done.stderr.decode()
                    if done.status != 2 or "is not known" in said:
                        raise Failed(" ".join(command), said[:300])

    def number_forms(self):
        rows = [len(re.findall(r"^ +\d+ +\d+\.\d", self.report("prof", *words), re.M))
                for words in (["-n", "3"], ["-n3"], ["--top", "3"], ["--top=3"], ["--top=0x3"], ["--top=03"])]
        if rows != [3] * 6:
            raise Failed(f"rows: {rows}")

    def flags_are_taken_back(self):
        def columns(*words):
            return "cycles" in self.report("calls", *words)
        seen = [columns(), columns("--time"), columns("-t"), columns("--time", "--no-time"), columns("--no-time", "-t")]
        if seen != [False, True, True, False, True]:
            raise Failed(f"{seen}")

    def default_flags_are_turned_off(self):
        hashed, lines = self.report("memtrace", "--hash"), self.report("memtrace", "--hash", "--no-hash")
        if "hash" not in hashed or "hash" in lines or len(lines) < 1000:
            raise Failed("--no-hash does not take --hash back")

    def only_flags_have_a_no(self):
        for option in ("--no-top", "--no-output", "--no-", "--no-nonesuch"):
            if "unknown option" not in self.run("prof", option, "--", "true", status=2):
                raise Failed(option)

    def flags_take_no_value(self):
        self.run("calls", "--time=yes", "--", "true", status=2)

    def no_numbers(self):
        for value in ("3x", "x", "", "-1", "1.5", "99999999999999999999", "0x", "1 2"):
            if "not a number" not in self.run("prof", f"--top={value}", "--", "true", status=2):
                raise Failed(repr(value))

    def no_addresses(self):
        for value in ("10x", "20-10", "10-", "-10", "10-20-30", "10-10"):
            if "address" not in self.run("null", f"--dump-at={value}", "--", "true", status=2):
                raise Failed(repr(value))

    def no_words(self):
        for option in ("--stress=flush,nonesuch", "--stress=flushx", "--log=nonesuch", "--format=jso", "--format="):
            self.run("null", option, "--", "true", status=2)

    def missing_values(self):
        for option in ("--top", "-n", "--output"):
            self.run("prof", option, status=2)

    def ended_by_dashes(self):
        self.run("null", "--", "sh", "-c", "exit 3", "--help", status=3)

    def debug_forms(self):
        for words, value in (("--debug",), None), (("--no-debug",), "1"), ((), "1"), ((), "0"), ((), ""):
            done = driver.run([self.inlay, "run", "null", *words, "--", "sh", "-c", "exit 3"], 60, cwd=self.folder,
                              env={**driver.ENVIRONMENT, **({} if value is None else {"INLAY_DEBUG": value})})
            if done.status != 3 or done.stderr:
                raise Failed(f"{words} INLAY_DEBUG={value}: status {done.status}", done.stderr.decode()[:300])
        if "takes no value" not in self.run("null", "--debug=1", "--", "true", status=2):
            raise Failed("--debug=1")

    def manual_names_all(self):
        """What --help shows, and what the environment can say."""
        done = driver.run([self.inlay, "run", "null", "--help"], 60, cwd=self.folder, env=driver.ENVIRONMENT)
        options = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", done.stdout.decode(), re.M)
        for command in ("count", "break", "tee", "attach", "detach", "report"):
            done = driver.run([self.inlay, command, "--help"], 60, cwd=self.folder, env=driver.ENVIRONMENT)
            options += re.findall(r"(?<![\w-])--([a-z][a-z-]*)", done.stdout.decode())
        with open(f"{HERE}/../../docs/inlay.1", encoding="utf-8") as f:
            manual = f.read().replace("\\", "")
        with open(f"{HERE}/../../src/tool/options.c", encoding="utf-8") as f:
            variables = re.findall(r'"(INLAY_\w+)"', f.read())
        missing = [f"--{o}" for o in options if f"--{o}" not in manual] + [v for v in variables if v not in manual]
        if missing or len(options) < 15 or len(variables) < 3:
            raise Failed(f"{len(options)} options, {len(variables)} variables; not in docs/inlay.1: {missing}")

    # --- filters

    def counts(self, *words):
        return json.loads(self.report("inscount", "--format=json", *words))["instructions"]

    def filters(self):
        everything, main, both = self.counts(), self.counts("--proc", "main"), self.counts("--proc", "main", "--proc", "m*")
        alone, none = self.counts("--image", "plain_static"), self.counts("--image", "plain")
        path = self.counts("--image", "*/plain_static")
        if not 0 < main <= both < everything or none != 0 or max(
                abs(everything - alone), abs(everything - path)) > everything // 100:
            raise Failed(f"all {everything}, main {main}, m* {both}, by name {alone}, by path {path}, another {none}")

    def filters_by_address(self):
        """The same by where a procedure lies in its file, of a program without names and of a library."""
        program, bare, new = f"{self.samples}/figures", f"{self.folder}/bare", f"{self.folder}/bare.new"
        nm = driver.run(["nm", program], 60).stdout.decode()
        low, after = (int(re.search(rf"^([0-9a-f]+) T {n}$", nm, re.M)[1], 16) for n in ("area", "count"))
        libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
        malloc = int(re.search(r"^([0-9a-f]+) . malloc@@", driver.run(["nm", "-D", libc], 60).stdout.decode(), re.M)[1], 16)
        driver.run(["strip", program, "-o", bare], 60)

        def executed(path, *words, engine="jit"):
            out = f"{self.folder}/report"
            if engine == "rewrite":
                driver.rewrite(self.inlay, ["inscount", "--format=json", *words, path, "-o", new], 60)
                driver.run([new], 60, env=driver.ENVIRONMENT | {"INLAY_OUT": out})
            else:
                self.run(f"--engine={engine}", "inscount", "--format=json", *words, "-o", out, "--", path)
            with open(out, encoding="utf-8") as f:
                return json.load(f)["instructions"]

        area = executed(program, "-F", "area")
        both = executed(program, "-F", "area", "-F", "count")
        rest = executed(bare, "-N", "nosuch", "--image=bare") - area
        for path, engine, words, wanted in (
                (program, "jit", ["-F", hex(low)], area), (bare, "jit", ["-F", hex(low + 3)], area),
                (bare, "jit", ["-F", f"{hex(low)}-{hex(after)}"], both), (bare, "live", ["-F", f"bare:{hex(low)}"], area),
                (bare, "rewrite", ["-F", hex(low)], area), (bare, "jit", ["-N", hex(low), "--image=bare"], rest),
                (bare, "jit", ["-F", f"nosuch.so:{hex(low)}"], 0),
                (program, "jit", ["-F", f"libc.so*:{hex(malloc)}"], executed(program, "-F", "malloc", "--image=libc.so*"))):
            found = executed(path, *words, engine=engine)
            if found != wanted or (not wanted and "nosuch" not in words[1]):
                raise Failed(f"{engine} {words}: {found} instead of {wanted}")

    # --- privileges

    def set_uid_copy(self):
        """Of id, in a folder that an ordinary user may enter."""
        copy = f"{self.folder}/sid"
        shutil.copy(shutil.which("id", path=driver.PATH), copy)
        os.chmod(copy, 0o4755)
        return copy

    def as_nobody(self, *words, status=0):
        """Inscount by itself, from where anybody can run it."""
        os.chmod(self.folder, 0o777)
        shutil.copy(f"{self.build}/tools/inscount", self.folder)
        out = f"{self.folder}/nobody"
        with open(out, "wb"):
            os.chmod(out, 0o666)

        def become():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return self.run(*words, status=status, before=become, by=[f"{self.folder}/inscount"])

    def set_uid_program_is_refused(self):
        if "privileges" not in self.as_nobody("--", self.set_uid_copy(), "-u", status=1):
            raise Failed("no word of privileges")

    def set_uid_child_keeps_its_privileges(self):
        self.set_uid_copy()
        self.as_nobody("-o", "nobody", "--", "sh", "-c", "./sid -u >uid; ./sid -ru >>uid; exit 4", status=4)
        with open(f"{self.folder}/uid") as f:
            if f.read() != f"0\n{NOBODY}\n":
                raise Failed("the child has not run as natively")
        with open(f"{self.folder}/nobody") as f:
            if "instructions" not in f.read():
                raise Failed("the shell has left no report")

    def own_set_uid_program_is_run(self):
        """Nothing is gained by a program of one's own."""
        copy = self.set_uid_copy()
        os.chown(copy, NOBODY, NOBODY)
        os.chmod(copy, 0o4755)
        self.as_nobody("-o", "nobody", "--", copy, "-u")


ROOT_ONLY = ("set_uid_program_is_refused", "set_uid_child_keeps_its_privileges", "own_set_uid_program_is_run")
TESTS = ("output_forms", "before_the_name", "number_forms", "flags_are_taken_back", "default_flags_are_turned_off", "only_flags_have_a_no",
         "flags_take_no_value", "no_numbers", "no_addresses", "no_words", "missing_values", "ended_by_dashes",
         "debug_forms", "manual_names_all", "filters", "filters_by_address") + ROOT_ONLY


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("options", options) as results:
        tests = Options(options.build, results.folder)
        for name in TESTS:
            if name in ROOT_ONLY and os.geteuid() != 0:
                results.skip(name, "needs root")
                continue
            results.check(name, getattr(tests, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
