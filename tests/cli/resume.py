#!/usr/bin/python3
"""Analysis routines that send the program on with registers of their making (inlay_resume), under both engines: flags, a
vector register, the program counter, a procedure that a routine answers for; with signals all the time too, and under the
stress switches. What is counted meanwhile is counted once, and alike. And those that end it (inlay_end), under all three.

  tests/cli/resume.py [--build DIR] [--only PATTERN] [--keep]
"""

import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
ROUNDS = range(2000)
TIMES = "2000 4000 4000 1000,"


def changed():
    """What the sample prints when the tool does what it says."""
    branches = sum(i % 10 if i % 10 == 7 else 1000 for i in ROUNDS)
    given = sum(i * (3 if i % 2 else 5) + i + 28 for i in ROUNDS)
    return f"{branches} {sum(ROUNDS):.1f} {sum(i + 1 for i in ROUNDS)} {given}\n"


def refused(most):
    """The same where the example lets `answered` see arguments up to `most` only."""
    branches = sum(1000 if i % 10 == 7 else i % 10 for i in ROUNDS)
    called = sum(i + 1000001 for i in ROUNDS)
    given = sum(3 * i for i in ROUNDS if i <= most) + sum(i + 31 for i in ROUNDS)
    return f"{branches} {sum(ROUNDS) / 2:.1f} {called} {given}\n"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check(argv, expected, env=None):
    done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT | (env or {}))
    if (done.status, done.stdout.decode()) != (0, expected):
        raise Failed(f"status {done.status}: {done.stdout.decode()} instead of {expected}",
                     *driver.as_lines(done.stderr)[:4])


def main():
    options = driver.parser(__doc__).parse_args()
    inlay, sample = f"{options.build}/inlay", f"{options.build}/tests/samples/resumed"
    with driver.Results("resume", options) as results:
        tool, example, report, new = (f"{results.folder}/{n}" for n in ("resume_tool", "replace", "report", "new"))
        ender = f"{results.folder}/end_tool"
        for source, to in ((f"{HERE}/resume_tool.c", tool), (f"{HERE}/end_tool.c", ender), (f"{ROOT}/examples/replace.c", example),
                           (f"{HERE}/context_tool.c", f"{results.folder}/context_tool")):
            made = driver.run([inlay, "cc", "-Wall", "-Wextra", "-Werror", "-O2", source, "-o", to], LIMIT)
            results.count(f"compile {os.path.basename(to)}", driver.as_lines(made.stderr)[-6:] if made.status else [])
        run = [inlay, "run", tool, "--image=resumed", "-o", report, "--", sample]
        counts = {}

        def found(name):
            times, count = re.fullmatch(r"(.*,) (\d+) instructions\n", read(report)).groups()
            if times != TIMES:
                raise Failed(f"{times} instead of {TIMES}")
            counts[name] = int(count)
            if counts.get("jit", counts[name]) != counts[name]:
                raise Failed(f"{count} instructions, under the JIT {counts['jit']}")

        def plain():
            check(run, changed())
            found("jit")

        def stressed(switch):
            check(run, changed(), {"INLAY_STRESS": switch})
            found(switch)

        def rewritten():
            driver.rewrite(inlay, [tool, sample, "-o", new], LIMIT)
            check([new], changed(), {"INLAY_OUT": report})
            found("rewritten")

        def signals_rewritten():
            driver.rewrite(inlay, [tool, sample, "-o", new], LIMIT)
            for _ in range(5):
                check([new, "signals"], changed(), {"INLAY_OUT": report})

        def replaced():
            words = ["--name=answered", "--most=1000", "--round=1"]
            expected = "answered: 2000 calls, 999 refused, 0 rounded up, 1 failed\n"
            check([inlay, "run", example, *words, "-o", report, "--", sample], refused(1000))
            jit = read(report)
            driver.rewrite(inlay, [example, *words, sample, "-o", new], LIMIT)
            check([new], refused(1000), {"INLAY_OUT": report})
            if jit != expected or read(report) != expected:
                raise Failed(jit, read(report))

        def ended(engine, threads):
            """By inlay_end, at an instruction of which nothing is executed; other threads may be anywhere."""
            if threads:
                argv = ["xz", "-T4", "--block-size=64KiB", "-c", "/usr/bin/python3"]
            else:
                argv = ["sort", "-n", "/etc/services"]
            limit, env, path = 30000, {}, os.path.realpath(f"/usr/bin/{argv[0]}")
            words = [f"--report={limit}", *([f"--image={n}" for n in ("xz", "liblzma*")] if threads else [f"--image={argv[0]}"])]
            if engine == "rewrite":
                libs = driver.fresh(f"{results.folder}/libs")
                driver.rewrite(inlay, [ender, *words, path, *(["--with-libs", libs] if threads else ["-o", f"{libs}/sort"])], LIMIT)
                argv, env = [f"{libs}/{argv[0]}", *argv[1:]], {"INLAY_OUT": report}
            else:
                argv = [inlay, "run", f"--engine={engine}", ender, *words, "-o", report, "--", *argv]
            done = driver.run(argv, LIMIT, env=driver.ENVIRONMENT | env)
            status, met, executed = read(report).split()
            if (done.status, status) != (9, "0x900") or int(met) < limit or (not threads and (met, executed) != ("30000", "29999")):
                raise Failed(f"status {done.status}", read(report), *driver.as_lines(done.stderr)[:4])

        def ended_anywhere():
            """At each of the first instructions; and of a procedure that is one block, whose counts follow from how often it is
            entered."""
            source, program = f"{results.folder}/leaf.c", f"{results.folder}/leaf"
            with open(source, "w", encoding="ascii") as f:
                f.write("__attribute__((noinline)) int leaf(int a, int b) { return a * b + 3; }\n"
                        "int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += leaf(i, s); return s & 1; }\n")
            if driver.build("dynamic", source, program, "-O1"):
                raise Failed("leaf.c")
            for limit in (*range(1, 60, 2), *range(60, 90)):
                driver.rewrite(inlay, [ender, f"--report={limit}", program, "-o", new], LIMIT)
                done = driver.run([new], LIMIT, env=driver.ENVIRONMENT | {"INLAY_OUT": report})
                status, met, executed = read(report).split()
                if (done.status, status, int(met), int(executed)) != (9, "0x900", limit, limit - 1):
                    raise Failed(f"limit {limit}: status {done.status}", read(report), *driver.as_lines(done.stderr)[:4])

        def registers(way):
            """By their names, got from contexts and set in copies."""
            source, program, looker = (f"{results.folder}/{n}" for n in ("context_program.c", "context_program", "context_tool"))
            with open(f"{HERE}/context_program.c", encoding="ascii") as f, open(source, "w", encoding="ascii") as to:
                to.write(f.read())
            if driver.build("dynamic", source, program, "-O1"):
                raise Failed("context_program.c")
            native = driver.run([program], LIMIT).stdout.decode().splitlines()
            with open("/proc/cpuinfo", encoding="ascii") as f:
                avx = " avx2 " in f.read()
            wanted = [f"{n}: {'other' if (change := n % 3 == 1 or (n % 3 == 2 and avx)) else 'same'} {16 * n + 1 + change}, "
                      f"{'other' if n % 3 == 2 and avx else 'same'}" for n in range(16)]
            wanted += ["2.500 3.142 0x37f 0x1f80", *(["0x1234 49 99 97 98"] if len(native) == 18 else [])]
            if way == "rewrite":
                driver.rewrite(inlay, [looker, program, "-o", new], LIMIT)
                check([new], "".join(f"{x}\n" for x in wanted), {"INLAY_OUT": report})
            else:
                check([inlay, "run", f"--engine={way}", looker, "--image=context_program", "-o", report, "--", program],
                      "".join(f"{x}\n" for x in wanted))
            if read(report) != "2 times, 0 wrong, status 0, many right\n":
                raise Failed(read(report))

        def misused():
            done = driver.run([inlay, "run", tool, "--wrong", "--", sample], LIMIT)
            if done.status != 1 or b"analysis routines" not in done.stderr or done.stdout:
                raise Failed(f"status {done.status}", *driver.as_lines(done.stderr)[:4])

        results.check("jit", plain)
        for switch in ("tiny-cache", "flush", "random-regs", "one-block", "no-link", "check"):
            results.check(f"jit {switch}", lambda s=switch: stressed(s))
        results.check("jit signals", lambda: check([*run, "signals"], changed()))
        results.check("rewritten", rewritten)
        results.check("rewritten signals", signals_rewritten)
        results.check("replaced", replaced)
        for engine in ("jit", "rewrite", "live"):
            results.check(f"ended {engine}", lambda e=engine: ended(e, False))
            results.check(f"ended {engine} threads", lambda e=engine: ended(e, True))
        results.check("ended anywhere", ended_anywhere)
        for engine in ("jit", "rewrite", "live"):
            results.check(f"registers {engine}", lambda e=engine: registers(e))
        results.check("misused", misused)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
