#!/usr/bin/python3
"""--cache: runs that begin with an empty folder of kept translations, with a full one and with none agree, whatever
happens to the folder, and nothing is taken that was kept under another key.

  tests/cli/cache.py [--build DIR] [--only PATTERN] [--keep]

Prints a line for each failure and at the end N passed, N failed.
"""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 120
TAKEN = "superblocks taken from disk"
PROGRAM = """#include <stdio.h>
int main(void) { int x = NUMBER; for (int i = 0; i < 1000; i++) x = x * 5 + NUMBER; printf("%d\\n", x); return 0; }
"""
TOOL = """#include <inlay.h>
static inlay_counter c;
static bool twice;
static void each(inlay_block *b, void *arg) { (void)arg; inlay_insert(inlay_block_anywhere(b), inlay_count(&c, twice ? 2 : 1)); }
static void report(int s, void *arg) { (void)s, (void)arg; fprintf(inlay_out(), "%lu\\n", (unsigned long)inlay_counter_sum(&c)); }
int main(int argc, char **argv)
{
    inlay_option_flag(&twice, "twice", 0, "counts each block twice");
    inlay_init(&argc, &argv, "counts");
    inlay_counter_reserve(&c);
    inlay_on_block(each, NULL);
    PROMISE
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""

# Where `middle` leads by its taken edge the flags of `first` are overwritten; or read, once the program has changed that.
BEHIND = """#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int first(int x);
extern char last[];
__asm__(".text\\n.p2align 12\\n"
        "first: cmp $5, %edi\\n mov $0, %ecx\\n jrcxz middle\\n xor %eax, %eax\\n ret\\n"
        "middle: nop\\n jrcxz last\\n xor %eax, %eax\\n ret\\n"
        ".fill 64, 1, 0xcc\\n"
        "last: xor %eax, %eax\\n mov $7, %al\\n ret\\n .fill 64, 1, 0xcc\\n .p2align 12\\n");
int main(int argc, char **argv)
{
    static const char asks[] = "\\x0f\\x94\\xc0\\x0f\\xb6\\xc0\\xc3"; /* sete %al; movzx %al, %eax; ret */
    char *page = (char *)((unsigned long)last & -4096ul);
    int sum = argc + (argv[0] == NULL);
    if (argc > 1) {
        if (mprotect(page, 4096, PROT_READ | PROT_WRITE)) return 1;
        memcpy(last, asks, sizeof asks - 1);
        if (mprotect(page, 4096, PROT_READ | PROT_EXEC)) return 1;
    }
    for (int i = 0; i < 10; i++) sum = sum * 3 + first(i);
    printf("%d\\n", sum);
    return 0;
}
"""

# Calls what lies far from all other code, when there is no room for any more memory.
FAR = """#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
int main(void)
{
    const struct rlimit none = {4096, 4096};
    void *p = mmap((void *)0x100000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) return 1;
    memcpy(p, "\\xb8\\x07\\x00\\x00\\x00\\xc3", 6); /* mov $7, %eax; ret */
    return setrlimit(RLIMIT_AS, &none) ? 2 : ((int (*)(void))p)();
}
"""


class Cache:
    def __init__(self, build, folder):
        self.inlay, self.folder, self.samples = f"{build}/inlay", folder, f"{build}/tests/samples"
        self.out = f"{folder}/out"

    def empty(self, name="kept"):
        self.kept = driver.fresh(f"{self.folder}/{name}")
        os.chmod(self.kept, 0o700)

    def run(self, *words, tool="inscount", program=("plain", "1"), before=None, prefix=("setarch", "-R"), env=None):
        """The outcome, what the tool wrote, how many translations came from the folder."""
        path = program[0] if "/" in program[0] else f"{self.samples}/{program[0]}"
        if os.path.exists(self.out):
            os.unlink(self.out)
        env = driver.ENVIRONMENT | {"INLAY_CACHE": self.kept} if env is None else env
        done = driver.run([*prefix, self.inlay, "run", tool, "--stats", "-o", self.out, *words, "--", path, *program[1:]],
                          LIMIT, cwd=self.folder, env=env, before=before)
        found = re.search(rf"^  {TAKEN} +(\d+)$", done.stderr.decode(errors="replace"), re.M)
        with open(self.out, encoding="utf-8") as f:
            return done, f.read(), int(found[1]) if found else None

    def same(self, a, b, what):
        if (a[0].status, a[0].stdout) != (b[0].status, b[0].stdout):
            raise Failed(f"{what}: {a[0].status} {a[0].stdout[-200:]!r}, {b[0].status} {b[0].stdout[-200:]!r}")
        if a[1] != b[1]:
            raise Failed(f"{what}: {a[1]!r}, {b[1]!r}")

    def files(self):
        return sorted(f"{self.kept}/{name}" for name in os.listdir(self.kept))

    def warm(self, **how):
        """A folder that is full; what a run without any says."""
        self.empty()
        off = self.run("--no-cache", **how)
        cold = self.run(**how)
        if off[2] or cold[2] or not self.files():
            raise Failed(f"taken: off {off[2]}, cold {cold[2]}; {len(self.files())} files")
        self.same(off, cold, "off, cold")
        return off

    # --- the same answers

    def off_cold_warm(self):
        for tool in "inscount", "bbcount", "null":
            for program in ("plain", "1"), ("plain_nopie", "1"), ("throw",):
                off = self.warm(tool=tool, program=program)
                if tool == "bbcount":  # how many are different includes some that are not executed
                    off = off[0], off[1].split(",")[0], off[2]
                for i in range(2):
                    warm = self.run(tool=tool, program=program)
                    if tool == "bbcount":
                        warm = warm[0], warm[1].split(",")[0], warm[2]
                    self.same(off, warm, f"{tool} {program[0]}: off, warm")
                    if warm[2] < 200:
                        raise Failed(f"{tool} {program[0]}: {warm[2]} taken")

    def nearly_all(self):
        """Of a run's superblocks, few have to be made anew: those outside of modules, and a handful beside."""
        self.warm(tool="null")
        done, _, taken = self.run(tool="null")
        made = int(re.search(rb"  superblocks +([0-9]+)", done.stderr)[1])
        if taken < 0.9 * made:
            raise Failed(f"{taken} of {made} taken")

    def restartable_sequences(self):
        """A program that has some, and does the same whether their neighbours come from disk or not."""
        native = driver.run([f"{self.samples}/restartable"], LIMIT, env=driver.ENVIRONMENT)
        self.empty()
        for i in range(2):
            done = self.run(program=("restartable",), tool="null", prefix=())[0]
            taken = max(int(n) for n in re.findall(rf"  {TAKEN} +([0-9]+)", done.stderr.decode()))
            if (done.status, done.stdout) != (native.status, native.stdout):
                raise Failed(f"run {i}: {done.status}", done.stdout.decode()[-400:])
        if not taken:
            raise Failed("none taken")

    def elsewhere_each_time(self):
        """With its modules at other addresses in each run."""
        native = driver.run([f"{self.samples}/plain", "1"], LIMIT, env=driver.ENVIRONMENT)
        self.warm()
        for i in range(6):
            done, text, taken = self.run(prefix=())
            if done.stdout != native.stdout or done.status != native.status or taken < 500:
                raise Failed(f"{taken} taken", done.stdout.decode()[-200:], done.stderr.decode()[-400:])

    def behind_exits(self):
        """What a translation leaves out, since it is dead where its exits lead, depends on what is there in this run."""
        program = f"{self.folder}/behind"
        with open(f"{program}.c", "w", encoding="utf-8") as f:
            f.write(BEHIND)
        subprocess.run(["gcc", "-O1", "-o", program, f"{program}.c"], check=True)
        for tool in "inscount", "bbcount":
            self.warm(tool=tool, program=(program,))
            for words in (), ("changed",), (), ("changed",):
                native = driver.run([program, *words], LIMIT, env=driver.ENVIRONMENT)
                done, _, taken = self.run(tool=tool, program=(program, *words))
                if done.stdout != native.stdout or done.status != native.status or taken < 200:
                    raise Failed(f"{tool} {words}: {done.status} {done.stdout!r}, natively {native.stdout!r}; {taken} taken")

    def paired(self):
        """Calls and returns in pairs hold return addresses: taken at others, they lead there. Without pairs what was made
        with them is not taken, nor the reverse."""
        for program in ("plain", "1"), ("throw",), ("threads",), ("children",):
            path = f"{self.samples}/{program[0]}"
            native = driver.run([path, *program[1:]], LIMIT, cwd=self.folder, env=driver.ENVIRONMENT)
            self.empty()
            for i in range(5):
                done = self.run("--stress=paired", tool="bbcount", program=program, prefix=())[0]
                taken = max(int(n) for n in re.findall(rf"  {TAKEN} +([0-9]+)", done.stderr.decode()))
                if (done.status, done.stdout) != (native.status, native.stdout) or (i and taken < 200):
                    raise Failed(f"{program[0]}, run {i}: {done.status}, {taken} taken", done.stdout.decode()[-200:])

    def threads_and_forks(self):
        for name in "threads", "children", "selfmod", "codeviews":
            native = driver.run([f"{self.samples}/{name}"], LIMIT, cwd=self.folder, env=driver.ENVIRONMENT)
            self.empty()
            for i in range(2):
                done = self.run(program=(name,), tool="null", prefix=())[0]
                if (done.status, done.stdout) != (native.status, native.stdout):
                    raise Failed(f"{name}, run {i}: {done.status}", done.stdout.decode()[-200:])

    # --- keys

    def build(self, name, number, *flags):
        path = f"{self.folder}/{name}"
        with open(f"{path}.c", "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        subprocess.run(["cc", "-O1", f"-DNUMBER={number}", *flags, "-o", path, f"{path}.c"], check=True)
        return path

    def another_build(self):
        """Two programs of one name and one build-id: the code itself is compared."""
        first = self.build("changing", 3, "-Wl,--build-id=0x11223344")
        off = self.warm(program=(first,))
        mine = self.run(program=(first,))
        second = self.build("changing", 7, "-Wl,--build-id=0x11223344")
        plain = self.run("--no-cache", program=(second,))
        self.same(plain, self.run(program=(second,)), "another build under the same id")
        if plain[0].stdout == off[0].stdout or not mine[2]:
            raise Failed("the two do not differ")

    def without_build_id(self):
        path = self.build("nameless", 3, "-Wl,--build-id=none")
        self.warm(program=(path,))
        first = self.run(program=(path,))
        path = self.build("nameless", 9, "-Wl,--build-id=none")
        self.same(self.run("--no-cache", program=(path,)), self.run(program=(path,)), "written anew")
        if first[2] < 100:
            raise Failed(f"{first[2]} taken")

    def make_tool(self, name, promise="inlay_on_kept_block(NULL, NULL);"):
        path = f"{self.folder}/{name}"
        with open(f"{path}.c", "w", encoding="utf-8") as f:
            f.write(TOOL.replace("PROMISE", promise))
        subprocess.run([self.inlay, "cc", f"{path}.c", "-o", path], check=True)
        return path

    def options_and_tools(self):
        """Another option or another file of the tool is another key; a tool that promises nothing keeps nothing."""
        tool = self.make_tool("tool")
        one = self.warm(tool=tool)
        two = self.run("--twice", tool=tool)
        if two[2] or int(two[1]) != 2 * int(one[1]):
            raise Failed(f"--twice: {two[2]} taken, {two[1]} and {one[1]}")
        again = self.run("--twice", tool=tool)
        self.same(two, again, "--twice again")
        if not again[2] or not self.run(tool=tool)[2]:
            raise Failed("its own are not found")
        shutil.copy(tool, f"{tool}2")
        if self.run(tool=f"{tool}2")[2]:
            raise Failed("another file of the tool takes them")
        silent = self.make_tool("silent", "")
        self.empty()
        self.run(tool=silent)
        if self.files() or self.run(tool="memtrace")[2] or self.files():
            raise Failed("kept for a tool that has not promised anything", *self.files())

    def switches(self):
        """What changes the engine's own work is in the key; what is to see all code takes nothing."""
        self.warm()
        for words in ("--stress=one-block",), ("--stress=random-regs",):
            if self.run(*words)[2]:
                raise Failed(f"{words} takes what was kept without")
            if not self.run(*words)[2]:
                raise Failed(f"{words} does not take its own")
        for words in ("--image=plain",), ("--proc=main",), ("--no-cache",), ("--debug-info=" + self.folder,):
            if self.run(*words)[2]:
                raise Failed(f"{words} takes something")

    # --- analyses

    def analysed(self, *command, env=None):
        """What was counted, how many analyses came from the folder, how many were put there."""
        env = driver.ENVIRONMENT | {"INLAY_CACHE": self.kept} if env is None else env
        if os.path.exists(self.out):
            os.unlink(self.out)
        done = driver.run([self.inlay, *command], LIMIT, cwd=self.folder, env=env)
        said = done.stderr.decode(errors="replace")
        if done.status:
            raise Failed(f"{command}: status {done.status}", said[-400:])
        return re.findall(r"^\d+", open(self.out, encoding="utf-8").read() if os.path.exists(self.out) else said, re.M)[:1], \
            said.count("is taken from the file"), said.count("is kept in the file")

    def live(self, program="plain", *words, **how):
        path = program if "/" in program else f"{self.samples}/{program}"
        return self.analysed("run", "inscount", "--engine=live", "--log=cache", "-o", self.out, *words, "--", path, "1", **how)

    def analyses(self):
        """Programs at whose start a tool comes, and files: another tool's analyses are as good, another program's not."""
        self.empty()
        off = self.live("plain", "--no-cache")
        if off[1:] != (0, 0) or self.files():
            raise Failed(f"off: {off}")
        cold, warm = self.live(), self.live()
        if cold[0] != off[0] or cold[1] or cold[2] < 2 or warm != (off[0], cold[2], 0):
            raise Failed(f"off {off}, cold {cold}, warm {warm}")
        for tool in "bbcount", "calls":
            again = self.analysed("rewrite", "--log=cache", tool, f"{self.samples}/plain", "-o", f"{self.folder}/plain.{tool}")
            if again[1:] != (1, 0):
                raise Failed(f"rewrite {tool}: {again}")
        first = self.build("analysed", 3, "-Wl,--build-id=0x11223344")
        self.live(first)
        second = self.build("analysed", 7, "-Wl,--build-id=0x11223344")
        if self.live(second)[2] != 1:
            raise Failed("another build of one build-id takes the first one's")
        listed = driver.run([self.inlay, "cache", "--list"], LIMIT, env=driver.ENVIRONMENT | {"INLAY_CACHE": self.kept})
        lines = listed.stdout.decode().splitlines()
        if sum(" analysis " in line for line in lines) != len(self.files()) or f" {len(self.files())} analyses in " not in lines[-1]:
            raise Failed("inlay cache --list", *lines)
        driver.run([self.inlay, "cache", "--clear"], LIMIT, env=driver.ENVIRONMENT | {"INLAY_CACHE": self.kept})
        if self.files():
            raise Failed("inlay cache --clear leaves", *self.files())

    def analyses_damaged(self):
        self.empty()
        cold = self.live()
        draw = random.Random(6)
        for i in range(3):
            for path in self.files():
                data = bytearray(open(path, "rb").read())
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
                if i == 1:
                    del data[draw.randrange(len(data)):]
                with open(path, "wb") as f:
                    f.write(data)
            if i == 2:
                os.chmod(self.kept, 0o755)
            again = self.live()
            if again != (cold[0], 0, 0 if i == 2 else cold[2]):
                raise Failed(f"damage {i}: {again}, before it {cold}")
        os.chmod(self.kept, 0o700)

    # --- the folder

    def damaged(self):
        off = self.warm()
        draw = random.Random(5)
        whole = {path: open(path, "rb").read() for path in self.files()}
        for i in range(10):
            for path, data in whole.items():
                bytes_ = bytearray(data)
                for _ in range(draw.choice((1, 40, len(data) // 500))):
                    at = draw.randrange(len(data))
                    bytes_[at] ^= 1 << draw.randrange(8)
                if i % 4 == 0:
                    del bytes_[draw.randrange(len(data)):]
                with open(path, "wb") as f:
                    f.write(bytes_)
            self.same(off, self.run(), f"damage {i}")

    def cut_while_in_use(self):
        """The file is emptied while a program that has it mapped goes on."""
        script = f"{self.folder}/waits.py"
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"import os, time\nprint('begun', flush=True)\n"
                    f"while not os.path.exists('{self.folder}/go'): time.sleep(0.02)\n"
                    "import json, decimal, argparse\nprint(json.dumps(str(decimal.Decimal(2).sqrt())))\n")
        self.empty()
        command = ["setarch", "-R", self.inlay, "run", "inscount", "-o", self.out, "--", "/usr/bin/python3", "-S", script]
        env = driver.ENVIRONMENT | {"INLAY_CACHE": self.kept}
        for i in range(2):
            if os.path.exists(f"{self.folder}/go"):
                os.unlink(f"{self.folder}/go")
            with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as child:
                begun = child.stdout.readline()
                for path in self.files():
                    os.truncate(path, 0)
                open(f"{self.folder}/go", "w", encoding="utf-8").close()
                rest = child.stdout.read()
            if child.returncode or b"1.414" not in rest or begun != b"begun\n":
                raise Failed(f"run {i}: status {child.returncode}, {rest!r}")
            if not i and not self.files():
                raise Failed("nothing was kept")

    def refused(self, what, env=None):
        off = self.run("--no-cache", env=env)
        for i in range(2):
            done = self.run("--cache", env=env)
            self.same(off, done, what)
            if done[2]:
                raise Failed(f"{what}: {done[2]} taken")

    def whose_folder_it_is(self):
        self.warm()
        os.chmod(self.kept, 0o750)
        self.refused("a folder that others may enter")
        os.chmod(self.kept, 0o700)
        real = self.kept
        self.kept = f"{self.folder}/link"
        os.symlink(real, self.kept)
        self.refused("a link to a folder")
        self.kept = real
        for path in self.files():
            os.chmod(path, 0o644)
        done = self.run()
        if done[2]:
            raise Failed("files that others may read are taken")
        for path in self.files():
            os.rename(path, f"{self.folder}/{os.path.basename(path)}")
            os.symlink(f"{self.folder}/{os.path.basename(path)}", path)
            os.chmod(path, 0o600)
        if self.run()[2]:
            raise Failed("links to files are taken")
        if os.geteuid() == 0:
            self.warm()
            os.chown(self.kept, 1, 1)
            self.refused("another user's folder")

    def no_place(self):
        self.empty()
        base = driver.ENVIRONMENT
        self.refused("no HOME", {k: v for k, v in base.items() if k not in ("HOME", "INLAY_CACHE")} | {"INLAY_CACHE": ""})
        self.refused("a HOME that is not there", base | {"HOME": f"{self.folder}/absent/here", "INLAY_CACHE": ""})
        self.refused("a relative path", base | {"INLAY_CACHE": "kept"})
        home = driver.fresh(f"{self.folder}/home")
        env = base | {"HOME": home, "INLAY_CACHE": ""}
        self.run("--cache", env=env)
        taken = self.run("--cache", env=env)[2]
        if not taken or oct(os.stat(f"{home}/.cache/inlay").st_mode)[-3:] != "700":
            raise Failed(f"~/.cache/inlay: {taken} taken")
        os.chmod(f"{home}/.cache/inlay", 0o500)
        if not self.run("--cache", env=env)[2]:
            raise Failed("a folder that cannot be written to is not read")
        os.chmod(f"{home}/.cache/inlay", 0o700)

    def no_room(self):
        """A limit of file size, whose signal would end the program; and, as root, a folder on a full file system."""
        off = self.run_off()
        self.empty()
        small = self.run(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        self.same(off, small, "a limit of 20,000 bytes")
        if any(os.path.getsize(path) > 20000 for path in self.files()):
            raise Failed("larger than the limit")
        self.empty()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", self.kept],
                                               stderr=subprocess.DEVNULL, check=False).returncode:
            return
        try:
            for i in range(3):
                self.same(off, self.run(), "a full file system")
            if any("." in os.path.basename(path) for path in self.files()):
                raise Failed("something is left over", *self.files())
        finally:
            subprocess.run(["umount", self.kept], check=True)

    def given_up(self):
        """Code that cannot be translated ends the program at once, with a report: the end keeps translations, or tries."""
        program = f"{self.folder}/far"
        with open(f"{program}.c", "w", encoding="utf-8") as f:
            f.write(FAR)
        subprocess.run(["gcc", "-O1", "-o", program, f"{program}.c"], check=True)
        self.empty()
        if driver.run([program], LIMIT, env=driver.ENVIRONMENT).status != 7:
            raise Failed("natively")
        for words in ("--no-cache",), ():
            done, text, _ = self.run(*words, program=(program,))
            said = done.stderr.decode()
            if done.status != -signal.SIGKILL or "cannot translate the code at 0x100000000000" not in said or "hangs" in said:
                raise Failed(f"{words}: {done.status}", said[-400:])
            if not re.search("^far: [1-9][0-9]+ instructions$", text, re.M):
                raise Failed(f"{words}: report {text!r}")

    def run_off(self):
        self.empty()
        return self.run("--no-cache")

    def at_the_same_time(self):
        """Eight begin with an empty folder, and eight more."""
        off = self.run_off()
        env = driver.ENVIRONMENT | {"INLAY_CACHE": self.kept}
        for turn in range(3):
            children = []
            for i in range(8):
                command = ["setarch", "-R", self.inlay, "run", "inscount", "--stats", "-o", f"{self.folder}/{i}",
                           "--", f"{self.samples}/plain", "1"]
                children.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                                 cwd=self.folder))
            for i, child in enumerate(children):
                said = child.communicate()[0]
                with open(f"{self.folder}/{i}", encoding="utf-8") as f:
                    text = f.read()
                if child.returncode != off[0].status or said != off[0].stdout or text != off[1]:
                    raise Failed(f"{child.returncode}, {text!r}, expected {off[1]!r}")
        if any("." in os.path.basename(path) for path in self.files()):
            raise Failed("something is left over", *self.files())
        if not self.run()[2]:
            raise Failed("nothing is taken then")

    def command(self):
        self.warm()
        env = driver.ENVIRONMENT | {"INLAY_CACHE": self.kept}
        count = len(self.files())

        def cache(*words):
            return driver.run([self.inlay, "cache", *words], LIMIT, env=env)
        listed = cache("--list")
        if listed.status or b"/plain" not in listed.stdout or f"in {count} files".encode() not in listed.stdout:
            raise Failed("--list", listed.stdout.decode())
        open(f"{self.kept}/notes.txt", "w", encoding="utf-8").close()
        cleared = cache("--clear")
        if cleared.status or [os.path.basename(p) for p in self.files()] != ["notes.txt"]:
            raise Failed("--clear", cleared.stdout.decode(), *self.files())
        if cache().status != 2 or cache("--wipe").status != 2:
            raise Failed("wrong usage")
        os.chmod(self.kept, 0o755)
        if cache("--list").status != 1 or cache("--clear").status != 1:
            raise Failed("a folder that others may enter")
        shutil.rmtree(self.kept)
        if cache("--list").status or cache("--clear").status:
            raise Failed("no folder")


TESTS = ("off_cold_warm", "nearly_all", "restartable_sequences", "elsewhere_each_time", "behind_exits", "paired", "threads_and_forks", "another_build", "without_build_id", "analyses", "analyses_damaged",
         "options_and_tools", "switches", "damaged", "cut_while_in_use", "whose_folder_it_is", "no_place", "no_room",
         "given_up", "at_the_same_time", "command")


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("cache", options) as results:
        tests = Cache(options.build, results.folder)
        for name in TESTS:
            began = time.monotonic()
            results.check(name, getattr(tests, name))
            if os.environ.get("VERBOSE"):
                print(f"{name} {time.monotonic() - began:.1f} s", flush=True)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
