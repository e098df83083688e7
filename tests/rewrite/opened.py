#!/usr/bin/python3
"""Libraries that a rewritten program opens later: rewritten with it (--lib), and not.

  tests/rewrite/opened.py [--build DIR] [--only CASE] [--keep]

  counts     of rewritten plugins: what the JIT counts, also when they are closed and opened again
  faults     a handler sees the original address in a plugin's moved code
  ends       a plugin that is not rewritten ends the process by a system call of its own: there is a report
  unchanged  a library into which nothing was put is known by its one name, and the tool is told where it lies
  filtered   what an image callback inserts counts in images that --image leaves out, too, and in procedures that --proc does,
             alike under all engines
  alone      a library by itself: with `null`, for any program; with a tool, refused with what to do instead
  named      patterns that name files, libraries of the system, nothing; without --with-libs
  python     extension modules
  perl       likewise
"""

import glob
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402
from driver import Failed  # noqa: E402

LIMIT = 200
PLUGIN = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
static volatile int sum;
__attribute__((noinline)) int plugin_works(int n) { for (int i = 0; i < n; i++) sum += i ^ n; return sum + ADDS; }
__attribute__((noinline)) int plugin_faults(volatile int *p) { return *p + 1; }
__attribute__((noinline)) void plugin_ends(int status)
{
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "0"((long)SYS_exit_group), "D"((long)status) : "rcx", "r11", "memory");
}
__attribute__((constructor)) static void begin(void) { sum = ADDS; }
"""
# program WHAT FILE...: opens each file, twice.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static sigjmp_buf back;
static void fault(int signo, siginfo_t *info, void *context)
{
    Dl_info where = {0};
    ucontext_t *c = context;
    dladdr((void *)c->uc_mcontext.gregs[REG_RIP], &where);
    printf("fault at %p in %s\n", info->si_addr, where.dli_sname ? where.dli_sname : "nothing");
    siglongjmp(back, 1);
}
static void use(const char *what, void *lib)
{
    int (*works)(int) = (int (*)(int))dlsym(lib, "plugin_works");
    int (*faults)(volatile int *) = (int (*)(volatile int *))dlsym(lib, "plugin_faults");
    void (*ends)(int) = (void (*)(int))dlsym(lib, "plugin_ends");
    printf("%d\n", works(1000));
    if (!strcmp(what, "faults") && !sigsetjmp(back, 1)) faults((volatile int *)8);
    fflush(stdout);
    if (!strcmp(what, "ends")) ends(3);
}
int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 2; i < argc + argc - 2; i++) {
        void *lib = dlopen(argv[i < argc ? i : i - argc + 2], RTLD_NOW);
        if (!lib) {
            puts(dlerror());
            return 1;
        }
        use(argv[1], lib);
        if (i & 1) dlclose(lib);
    }
    return 0;
}
"""
# Which images have the C library's fork, and whether it lies there.
FINDS = r"""
#include <inlay.h>
static void report(int status, void *arg)
{
    uint8_t byte;
    for (inlay_image *i = inlay_image_first(); i; i = inlay_image_next(i)) {
        uint64_t at = inlay_image_is_main(i) ? 0 : inlay_proc_address(inlay_image_proc_named(i, "fork"));
        if (at) fprintf(inlay_out(), "%s %zu\n", inlay_image_name(i), inlay_memory_read(&byte, inlay_address_real(at), 1));
    }
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "finds fork");
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""
# How often main, the plugins' procedure and the C library's are called, by what is inserted when images are shown.
ENTRIES = r"""
#include <inlay.h>
#include <string.h>
static struct found { inlay_counter main, works, opens; } *found;
static void image_loaded(inlay_image *i, void *arg)
{
    inlay_proc *main = inlay_image_is_main(i) ? inlay_image_proc_named(i, "main") : NULL;
    inlay_proc *works = inlay_image_proc_named(i, "plugin_works");
    inlay_proc *opens = strncmp(inlay_image_name(i), "libc.so", 7) ? NULL : inlay_image_proc_named(i, "dlopen");
    if (main) inlay_insert(inlay_before(inlay_block_first(inlay_proc_block_first(main))), inlay_count(&found->main, 1));
    if (opens) inlay_insert(inlay_proc_entry(opens), inlay_count(&found->opens, 1));
    if (works) inlay_insert(inlay_proc_entry(works), inlay_count(&found->works, 1));
}
static void report(int status, void *arg)
{
    fprintf(inlay_out(), "%d %d %d\n", (int)inlay_counter_sum(&found->main), (int)inlay_counter_sum(&found->works),
            (int)inlay_counter_sum(&found->opens));
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "counts entries");
    found = inlay_alloc(sizeof *found);
    inlay_on_image_load(image_loaded, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
"""
PYTHON = """import _json, json, _heapq, _bisect, heapq
print(len(json.loads(json.dumps({"a": [1, 2.5, "x"] * 500}))["a"]), heapq.nsmallest(3, range(100, 0, -7)))
print("rewritten" if "libs" in _json.__file__ else "not")
"""
PERL = "use List::Util qw(sum first); use POSIX qw(floor); print sum(1..99), ' ', first { $_ > 7 } (1..9), floor(2.5)"


class Test:
    def __init__(self, options, results):
        self.inlay, self.root = f"{options.build}/inlay", results.folder
        self.program = f"{self.root}/program"
        self.write("plugin.c", PLUGIN)
        self.write("program.c", PROGRAM)
        self.plugins = [f"{self.root}/{folder}/plugin.so" for folder in ("one", "two")]
        for number, path in enumerate(self.plugins):
            os.makedirs(os.path.dirname(path))
            self.must(["gcc", "-O1", "-shared", "-fPIC", f"-DADDS={number + 5}", "plugin.c", "-o", path])
        self.must(["gcc", "-O1", "-w", "program.c", "-o", "program", "-ldl"])

    def write(self, name, text):
        with open(f"{self.root}/{name}", "w") as f:
            f.write(text)

    def run(self, argv, **environment):
        return driver.run(argv, LIMIT, cwd=self.root, env=driver.ENVIRONMENT | environment)

    def must(self, argv):
        done = self.run(argv)
        if done.status:
            raise Failed(f"{' '.join(argv[:4])}: {done.status}", *driver.as_lines(done.stderr)[-5:])
        return done

    def rewrite(self, tool, program, *patterns, options=()):
        """The folder of what is written."""
        libs = driver.fresh(f"{self.root}/libs")
        named = [word for pattern in patterns for word in ("--lib", pattern)]
        driver.rewrite(self.inlay, [*options, tool, program, "--with-libs", libs, *named], LIMIT)
        return libs

    def report(self):
        with open(f"{self.root}/result") as f:
            text = f.read()
        os.unlink(f"{self.root}/result")
        return text

    def compare(self, native, here):
        told = driver.differences(native, here)
        if told:
            raise Failed(*told)

    def moved(self, libs):
        return [f"{libs}/plugin.so", f"{libs}/2-plugin.so"]

    def counts(self):
        native = self.run([self.program, "works", *self.plugins])
        only = ["--image", "*plugin.so", "--proc", "plugin_*"]
        for tool in ("inscount", "prof"):
            self.must([self.inlay, "run", *only, tool, "-o", "result", "--", self.program, "works", *self.plugins])
            jit = self.report()
            libs = self.rewrite(tool, self.program, *self.plugins, options=only)
            self.compare(native, self.run([f"{libs}/program", "works", *self.moved(libs)], INLAY_OUT="result"))
            here = self.report().replace("2-plugin.so", "plugin.so")
            if tool == "inscount" and re.findall(r"\d+", here) != re.findall(r"\d+", jit):
                raise Failed(f"{tool}: {here!r}, under the JIT {jit!r}")
            if tool == "prof" and "plugin_works" not in here:
                raise Failed(f"{tool}: {here!r}")

    def faults(self):
        native = self.run([self.program, "faults", *self.plugins])
        if b"plugin_faults" not in native.stdout:
            raise Failed(f"natively {native}")
        libs = self.rewrite("inscount", self.program, f"{self.root}/*/plugin.so")
        self.compare(native, self.run([f"{libs}/program", "faults", *self.moved(libs)], INLAY_OUT="result"))
        self.report()

    def ends(self):
        native = self.run([self.program, "ends", *self.plugins])
        libs = self.rewrite("inscount", self.program)
        self.compare(native, self.run([f"{libs}/program", "ends", *self.plugins], INLAY_OUT="result"))
        self.report()

    def unchanged(self):
        self.write("finds.c", FINDS)
        self.must([self.inlay, "cc", "-w", "finds.c", "-o", "finds"])
        libs = self.rewrite(f"{self.root}/finds", self.program, options=["--image", "program"])
        done = self.run([f"{libs}/program", "works"], INLAY_OUT="result")
        found = self.report()
        if done.status or found != "libc.so.6 1\n":
            raise Failed(f"found {found!r}: {done}")

    def filtered(self):
        self.write("entries.c", ENTRIES)
        self.must([self.inlay, "cc", "-w", "entries.c", "-o", "entries"])
        tool, told = f"{self.root}/entries", {}
        for only in (["--image", "nothing*"], ["--proc", "nothing_so_named"]):
            for engine in ("jit", "live"):
                self.must([self.inlay, "run", f"--engine={engine}", *only, tool, "-o", "result", "--", self.program, "works",
                           *self.plugins])
                told[engine, *only] = self.report()
            libs = self.rewrite(tool, self.program, *self.plugins, options=only)
            self.run([f"{libs}/program", "works", *self.moved(libs)], INLAY_OUT="result")
            told["rewritten", *only] = self.report()
        if set(told.values()) != {"1 4 4\n"}:
            raise Failed(*(f"{k}: {v!r}" for k, v in told.items()))

    def alone(self):
        out = f"{self.root}/alone.so"
        driver.rewrite(self.inlay, ["null", self.plugins[0], "-o", out], LIMIT)
        self.compare(self.run([self.program, "works", self.plugins[0]]), self.run([self.program, "works", out]))
        done = self.run([self.inlay, "rewrite", "inscount", self.plugins[0], "-o", f"{self.root}/no.so"])
        if done.status != 1 or b"--lib" not in done.stderr or os.path.exists(f"{self.root}/no.so"):
            raise Failed(f"with a tool: {done}")
        libs = self.rewrite("inscount", self.program, self.plugins[0])
        other = driver.fresh(f"{self.root}/other")
        driver.rewrite(self.inlay, ["inscount", self.program, "--with-libs", other], LIMIT)
        done = self.run([f"{other}/program", "works", f"{libs}/plugin.so"], INLAY_OUT="result")
        if b"rewritten with another program" not in done.stderr:
            raise Failed(f"of another program: {done}")

    def named(self):
        libs = self.rewrite("null", self.program, "libz.so*", "libgcc_s.so.1")
        if not {"libgcc_s.so.1", "libz.so.1", "program"} <= set(os.listdir(libs)):
            raise Failed(f"written: {os.listdir(libs)}")
        for status, *words in ((1, "--with-libs", "none", "--lib", "libnowhere*.so"),
                               (2, "-o", "none", "--lib", "libc.so.6"),
                               (1, "--with-libs", "none", "--lib", f"{self.root}/program.c")):
            done = self.run([self.inlay, "rewrite", "null", self.program, *words])
            if done.status != status or b"--lib" not in done.stderr or os.path.exists(f"{self.root}/none"):
                raise Failed(f"{words}: {done}")

    def python(self):
        program = os.path.realpath("/usr/bin/python3")
        self.write("modules.py", PYTHON)
        native = self.run([program, "modules.py"])
        folders = glob.glob("/usr/lib/python3*/lib-dynload")
        if native.status or not folders or not glob.glob(f"{folders[0]}/_json*.so"):
            return
        libs = self.rewrite("inscount", program, f"{folders[0]}/_json*.so", f"{folders[0]}/_ssl*.so")
        done = self.run([f"{libs}/{os.path.basename(program)}", "modules.py"], PYTHONPATH=libs, INLAY_OUT="result")
        self.compare(native._replace(stdout=native.stdout.replace(b"not", b"rewritten")), done)
        self.report()

    def perl(self):
        """Perl looks for a module's library beside its text: links to all that is there, and the library."""
        found = [f for f in glob.glob("/usr/lib/*/perl-base/auto/List/Util/Util.so") if os.path.exists(f)]
        if not found or not shutil.which("perl"):
            return
        base = found[0].split("/auto/")[0]
        modules = f"{self.root}/modules"
        shutil.copytree(base, modules, copy_function=os.symlink)
        libs = self.rewrite("inscount", os.path.realpath(shutil.which("perl")), found[0])
        os.unlink(f"{modules}/auto/List/Util/Util.so")
        os.symlink(f"{libs}/Util.so", f"{modules}/auto/List/Util/Util.so")
        native = self.run(["perl", "-e", PERL])
        opened = PERL + "; open F, '/proc/self/maps'; print((join '', <F>) =~ m{libs/Util.so} ? ' rewritten' : ' not')"
        done = self.run([f"{libs}/perl", "-e", opened], PERL5LIB=modules, INLAY_OUT="result")
        self.compare(native._replace(stdout=native.stdout + b" rewritten"), done)
        self.report()


def main():
    options = driver.parser(__doc__).parse_args()
    with driver.Results("opened", options) as results:
        if not shutil.which("gcc"):
            results.skip("all", "there is no gcc")
            return 0
        test = Test(options, results)
        for name in ("counts", "faults", "ends", "unchanged", "filtered", "alone", "named", "python", "perl"):
            results.check(name, getattr(test, name))
    return results.status


if __name__ == "__main__":
    sys.exit(main())
