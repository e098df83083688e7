#!/usr/bin/python3
"""Programs that have GS for themselves, which leads inserted code to the thread's block: they do what they do natively. A
tool that is in a process leaves it then, one that is to be put into such a process is refused, and a rewritten program
goes on with a GS base that only moved code sees, or ends with a message before it reads what is not its own.

  tests/live/owners.py [--build DIR] [--only PATTERN] [--all] [--keep]

--all: wine as well, where it is installed.
"""

import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/../support"]
import driver  # noqa: E402
import out as outside  # noqa: E402
import run as live  # noqa: E402
from driver import Failed  # noqa: E402

LEAVES = b"the program sets GS for itself: the tool leaves it"
WINE = "/usr/lib/wine/wine64"


class Owners(outside.Out):
    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.samples = f"{options.build}/tests/samples"

    def native(self, program):
        done = driver.run([f"{self.samples}/{program}"], live.LIMIT)
        if done.status or b" 0 wrong" not in done.stdout or b"handled 10" not in done.stdout:
            raise Failed(f"natively: status {done.status}", *driver.as_lines(done.stdout))
        return done.stdout

    def started(self):
        """Started under the tool, which counts up to there."""
        for program in ("gsowner", "gsowner_static"):
            report = f"{self.folder}/{program}.report"
            done = driver.run([self.inlay, "run", "--engine=live", "inscount", "-o", report, "--", f"{self.samples}/{program}"],
                              live.LIMIT)
            if done.status or done.stdout != self.native(program) or done.stderr.count(LEAVES) != 1:
                raise Failed(f"{program}: status {done.status}", *driver.as_lines(done.stdout + done.stderr))
            with open(report) as f:
                count = int(re.search(r"(\d+) instructions", f.read())[1])
            if not count:
                raise Failed("nothing was counted")

    def lines(self):
        """Where the kernel does not announce the instructions that set GS, two fewer."""
        return self.native("gsowner").count(b"\n")

    def state_natively(self, folder):
        with live.Conversation([f"{self.samples}/gsowner", "wait"], folder) as c:
            c.say("")
            c.has_answered(self.lines() + 1)
            return outside.visible(c.process.pid)

    def attached(self):
        """The tool came before: nothing of it is left behind. And none comes later."""
        folder = driver.fresh(f"{self.folder}/attached")
        state = self.state_natively(folder)
        with live.Conversation([f"{self.samples}/gsowner", "wait"], folder) as c:
            c.has_answered(1)
            pid = c.process.pid
            self.attach("inscount", pid, "-o", f"{folder}/report")
            c.say("")
            c.has_answered(self.lines() + 2)
            outside.clean(pid, state)
            told = self.attach("inscount", pid, status=1)
            if "uses GS for itself" not in told:
                raise Failed("it is refused otherwise", told)
            outside.clean(pid, state)
            c.say("")
            answers, status = c.end()
        rest = b"".join(line for line in answers.splitlines(True) if line != b"ready\n" and LEAVES not in line)
        if status or LEAVES not in answers or rest != self.native("gsowner"):
            raise Failed(f"status {status}", *driver.as_lines(answers))

    def rewritten(self):
        """All that uses GS has moved: it is counted to the end."""
        for program in ("gsowner", "gsowner_static"):
            path, report = f"{self.folder}/{program}.inlaid", f"{self.folder}/{program}.count"
            driver.rewrite(self.inlay, ["inscount", f"{self.samples}/{program}", "-o", path])
            done = driver.run([path], live.LIMIT, env=dict(os.environ, INLAY_OUT=report))
            if done.status or done.stdout != self.native(program) or done.stderr:
                raise Failed(f"{program}: status {done.status}", *driver.as_lines(done.stdout + done.stderr))
            with open(report) as f:
                count = int(re.search(r"(\d+) instructions", f.read())[1])
            if count < 10000 * done.stdout.count(b"counted"):
                raise Failed(f"{program}: {count} instructions were counted")

    def rewritten_in_part(self):
        """Code that uses GS was left as it is: that is said, before any of it runs."""
        path = f"{self.folder}/part.inlaid"
        driver.rewrite(self.inlay, ["calls", "--proc", "handler", f"{self.samples}/gsowner", "-o", path])
        done = driver.run([path], live.LIMIT)
        if done.status != 1 or done.stdout or b"cannot be moved and uses it" not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))

    def wine(self):
        """Its own code is mapped by itself, and uses GS all the time."""
        env = dict(os.environ, WINEPREFIX=f"{self.folder}/prefix", WINEDEBUG="-all")
        argv = [WINE, "cmd", "/c", "echo of wine"]
        native = driver.run(argv, live.LIMIT, env=env)
        if native.status:
            raise Failed(f"natively: status {native.status}", *driver.as_lines(native.stderr))
        done = driver.run([self.inlay, "run", "--engine=live", "inscount", "-o", "/dev/null", "--", *argv], live.LIMIT, env=env)
        if done.status or done.stdout != native.stdout or LEAVES not in done.stderr:
            raise Failed(f"status {done.status}", *driver.as_lines(done.stdout + done.stderr))


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with driver.Results("owners", options) as results:
        owners = Owners(options, results.folder)
        names = ["started", "attached", "rewritten", "rewritten_in_part"]
        if options.all and shutil.which(WINE):
            names.append("wine")
        for name in names:
            if driver.chosen(name, options):
                results.check(name, getattr(owners, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
