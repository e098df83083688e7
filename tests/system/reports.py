#!/usr/bin/python3
"""Who reports what: a process counts what it did itself, from its own beginning.

  tests/system/reports.py [--build DIR] [--only PATTERN] [--keep]

A small program works (so many rounds of a loop), makes a child in one of several ways, and both work on. Under the JIT
and rewritten, the report of each must say what it did and no more. Prints a line for each failure and at the end
N passed, N failed.
"""

import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* Two instructions a round. */
__attribute__((noinline)) static void work(long rounds)
{
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds) : : "cc");
}
static int wait_for(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1;
}
static void *thread(void *rounds)
{
    work((long)rounds);
    return NULL;
}
static volatile char place[64];
/* What it stores shows in a trace of memory: so many writes to `place`. */
__attribute__((noinline)) static void touch(int times)
{
    for (int i = 0; i < times; i++) place[i & 63] = (char)i;
}
int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    char *exec[] = {argv[0], "done", NULL};
    extern char **environ;
    if (!strcmp(way, "done")) return work(7000000), 0;
    work(5000000);
    if (!strcmp(way, "fork")) {
        pthread_t t;
        pthread_create(&t, NULL, thread, (void *)3000000);
        pthread_join(t, NULL);
        pid_t pid = fork();
        if (!pid) work(1000000), _exit(3);
        return wait_for(pid);
    }
    if (!strcmp(way, "vfork")) {
        touch(1000);
        pid_t pid = vfork();
        if (!pid) touch(700), _exit(3);
        int status = wait_for(pid);
        touch(300);
        return status;
    }
    if (!strcmp(way, "exec")) execv("/proc/self/exe", exec);
    if (!strcmp(way, "spawn")) {
        pid_t pid;
        if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, exec, environ)) return 9;
        return wait_for(pid);
    }
    return 8;
}
"""

MILLION = 1000000


class Reports:
    def __init__(self, build, folder):
        self.inlay, self.folder = f"{build}/inlay", folder
        self.program = f"{folder}/works"
        with open(f"{folder}/works.c", "w") as f:
            f.write(SOURCE)
        driver.build("no-pie", f"{folder}/works.c", self.program)

    def run(self, tool, way, rewritten, *options, status=0):
        """The reports of all processes, the first one's first."""
        place = driver.fresh(f"{self.folder}/out")
        out = f"{place}/report"
        environment = dict(driver.ENVIRONMENT)
        if rewritten:
            program = f"{self.folder}/works.{tool}"
            driver.rewrite(self.inlay, [tool, *options, self.program, "-o", program])
            environment["INLAY_OUT"] = out
            argv = [program, way]
        else:
            argv = [self.inlay, "run", tool, *options, "-o", out, "--", self.program, way]
        done = driver.run(argv, 60, env=environment)
        if done.status != status:
            raise Failed(f"status {done.status} instead of {status}", done.stderr.decode()[:300])
        texts = []
        for path in sorted(glob.glob(f"{place}/report*"), key=lambda p: (len(p), p)):
            with open(path) as f:
                texts.append(f.read())
        return texts

    def millions(self, way, rewritten, status=0):
        """How many million rounds each did."""
        reports = self.run("inscount", way, rewritten, "--format=json", status=status)
        counts = [json.loads(r)["instructions"] for r in reports]
        return [round(c / 2 / MILLION) for c in counts], counts

    def expect(self, way, rewritten, wanted, status=0):
        found, counts = self.millions(way, rewritten, status)
        if found != wanted:
            raise Failed(f"million rounds: {found} instead of {wanted} ({counts} instructions)")

    def fork(self, rewritten):
        self.expect("fork", rewritten, [8, 1], 3)

    def exec(self, rewritten):
        found, counts = self.millions("exec", rewritten)
        if found not in ([7], [5, 7], [7, 5]):
            raise Failed(f"million rounds: {found} ({counts} instructions)")

    def spawn(self, rewritten):
        self.expect("spawn", rewritten, [5, 7])

    def vfork(self, rewritten):
        """What a vfork child does is its parent's, in order."""
        text = self.run("memtrace", "vfork", rewritten, status=3)[0]
        writes = {}
        for pc, address in re.findall(r"^([0-9a-f]+) W ([0-9a-f]+) 1$", text, re.M):
            writes.setdefault(pc, []).append(int(address, 16))
        most = max(writes.values(), key=len, default=[])
        steps = [b - a for a, b in zip(most, most[1:])]
        breaks = [i + 1 for i, s in enumerate(steps) if s not in (1, -63)]
        if len(most) != 2000 or breaks != [1000, 1700]:
            raise Failed(f"{len(most)} writes instead of 2000, which begin anew at {breaks} instead of 1000, 1700")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("reports", options) as results:
        reports = Reports(options.build, results.folder)
        for way in ("fork", "exec", "spawn", "vfork"):
            for rewritten in (False, True):
                results.check(f"{way} {'rewritten' if rewritten else 'jit'}", lambda: getattr(reports, way)(rewritten))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
