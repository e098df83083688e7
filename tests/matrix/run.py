#!/usr/bin/python3
"""The processor matrix: on machines with other processors (QEMU's models, booting Debian's kernel) unit tests pass,
programs behave under tools as they do natively, and programs that were rewritten on one processor run on the
others. A processor without FSGSBASE is refused with one line. And what Yama lets whom do (rights.sh).

  tests/matrix/run.py [--build DIR] [--only MODEL] [--kernel FILE] [--log FILE] [--keep]

The kernel is --kernel FILE, or the one of Debian's package, which is fetched with `apt-get download` once and kept
in the build folder. The models are emulated; `host` runs by KVM, where a trial boot ends within its time limit.
--log keeps what the last machine's console said. What this machine lacks for it (qemu, a kernel) is said aloud.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

QEMU = "qemu-system-x86_64"
PACKAGES = ("linux-image-cloud-amd64", "linux-image-amd64")
BOOT_LIMIT, TRIAL_LIMIT = 1500, 60
DISK = 256 << 20

# Name, what QEMU is told. In this order: what has been written on one is run by those behind it. FSGSBASE is added
# to models older than it, since it is what Inlay asks for.
MODELS = {
    "haswell": "Haswell",                        # AVX2
    "westmere": "Westmere,+fsgsbase",            # no AVX and no XSAVE
    "denverton": "Denverton,+fsgsbase",          # XSAVE, but no AVX
    "sandybridge": "SandyBridge,+fsgsbase",      # AVX, no AVX2
    "epyc": "EPYC",
    "skylake": "Skylake-Server",
    "max": "max",                                # all that is emulated: protection keys
    "old": "Westmere",                           # refused
    "yama": "max",                               # who may trace whom
}
WRITERS = ("haswell", "westmere")

UNITS = ("run_sigframe", "run_vectors", "emit_integer", "emit_address", "isa_semantics", "weave_points",
         "weave_elements", "weave_gs", "weave_live", "weave_chains", "base_runtime")
SAMPLES = ("plain", "plain_static", "settings", "vectors", "vectors_static", "masked", "keys", "signals", "threads",
           "throw", "jumps", "contexts", "selfmod")
TOOLS = {"null": "", "inscount": "-o /tmp/here/report", "memtrace": "--hash -o /tmp/here/report"}
PROGRAMS = {  # of the distribution
    "sort": "sort -n -k2 /matrix/text",
    "gzip": "gzip -9c /matrix/text",
    "sed": "sed -E 's/([a-z]+) ([0-9]+)/\\2-\\1/' /matrix/text",
    "gawk": "gawk '{ n[$1] += $2 } END { for (k in n) print k, n[k] | \"sort\" }' /matrix/text",
    "lua5.4": "lua5.4 -e 'local s = 0 for i = 1, 20000 do s = s + i * 0.5 % 7 end print(s, string.rep(\"ab\", 5))'",
}
# Emulation is slow: memtrace's is to show sizes and widths.
ONLY = {"inscount": ("plain", "settings", "vectors", "masked", "signals", "sort"),
        "memtrace": ("vectors", "masked", "sort")}
REWRITTEN = ("plain", "settings", "vectors", "vectors_static", "masked", "sort")


# --- the kernel

def debian_kernel(folder):
    """The package's own file, unpacked in `folder`; None: it cannot be had."""
    found = glob.glob(f"{folder}/boot/vmlinuz-*")
    if found:
        return found[0]
    os.makedirs(folder, exist_ok=True)
    for meta in PACKAGES:
        shown = subprocess.run(["apt-cache", "depends", meta], capture_output=True, text=True)
        named = re.search(r"Depends: (linux-image-\S+)", shown.stdout)
        if not named:
            continue
        done = subprocess.run(["apt-get", "download", named[1]], cwd=folder, capture_output=True)
        for package in glob.glob(f"{folder}/*.deb") if done.returncode == 0 else []:
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
            os.unlink(package)
            shutil.rmtree(f"{folder}/lib", ignore_errors=True)
            return glob.glob(f"{folder}/boot/vmlinuz-*")[0]
    return None


# --- what the machines hold

def libraries_of(path):
    """Paths of what the dynamic linker would load, itself among them."""
    done = subprocess.run(["ldd", path], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", done.stdout)


class Root:
    """A folder that becomes an initial file system."""

    def __init__(self, folder):
        self.folder = driver.fresh(folder)
        for name in ("bin", "lib64", "matrix", "inlay", "units", "written"):
            os.makedirs(f"{folder}/{name}")

    def add(self, source, target):
        shutil.copy(source, f"{self.folder}/{target}")
        for library in libraries_of(source):
            place = self.folder + library
            if not os.path.exists(place):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copy(library, place)

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as f:
            f.write(text)

    def pack(self, out):
        names = subprocess.run(["find", "."], cwd=self.folder, capture_output=True, check=True).stdout
        with open(out, "wb") as f:
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=self.folder, input=names, stdout=f, check=True)


def text():
    return "".join(f"{'river stone cloud tree'.split()[i * 7 % 4]} {i * 7919 % 1009}\n" for i in range(400))


def common_root(options, root, out):
    """What all machines have goes to `out`. The commands by name."""
    build, folder = options.build, root.folder
    root.add("/bin/busybox", "bin/busybox")
    shutil.copy(f"{HERE}/guest.sh", f"{folder}/init")
    os.chmod(f"{folder}/init", 0o755)
    root.add(f"{build}/inlay", "bin/inlay")
    commands = {name: f"/bin/{name}" for name in SAMPLES}
    programs = {n: c for n, c in PROGRAMS.items() if shutil.which(n, path=driver.PATH)}
    for name in SAMPLES:
        root.add(f"{build}/tests/samples/{name}", f"bin/{name}")
    os.makedirs(f"{folder}/usr/bin", exist_ok=True)
    for name in programs:
        root.add(os.path.realpath(shutil.which(name, path=driver.PATH)), f"usr/bin/{name}")
        commands[name] = "/usr/bin/" + programs[name]
    for name in TOOLS:
        root.add(f"{build}/tools/{name}", f"inlay/{name}")
    for name in UNITS:
        root.add(f"{build}/tests/unit/unit_{name}", f"units/{name}")
    root.write("matrix/units", "\n".join(UNITS) + "\n")
    root.write("matrix/tools", "".join(f"{n} {a}\n" for n, a in TOOLS.items()))
    root.write("matrix/commands", "".join(f"{n}|{c}\n" for n, c in commands.items()))
    root.write("matrix/rewrite", "".join(f"{n}\n" for n in REWRITTEN if n in commands))
    for tool, names in ONLY.items():
        root.write(f"matrix/only.{tool}", "".join(f"{n}\n" for n in names))
    root.write("matrix/text", text())
    root.pack(out)
    return commands


def write_here(options, commands, folder):
    """The same programs, rewritten on the processor of this machine."""
    os.makedirs(folder)
    for tool in TOOLS:
        for name in REWRITTEN:
            if name not in commands or name not in ONLY.get(tool, commands):
                continue
            program = f"{options.build}/tests/samples/{name}"
            if not os.path.exists(program):
                program = os.path.realpath(shutil.which(name, path=driver.PATH))
            driver.rewrite(f"{options.build}/inlay", [f"{options.build}/tools/{tool}", program, "-o",
                                                      f"{folder}/{tool}.{name}"])


# --- machines

class Machine:
    def __init__(self, options, base, folder, model, accelerator):
        self.kernel, self.log, self.base, self.folder = options.kernel, options.log, base, folder
        self.model, self.accelerator = model, accelerator

    def boot(self, extra, limit):
        """Lines of the console that are meant for us; `extra`: a Root with more files. And the disk's path."""
        os.makedirs(self.folder, exist_ok=True)
        image, disk = f"{self.folder}/initial", f"{self.folder}/disk"
        extra.pack(f"{self.folder}/extra")
        with open(image, "wb") as out:
            for part in (self.base, f"{self.folder}/extra"):
                with open(part, "rb") as f:
                    shutil.copyfileobj(f, out)
                out.write(b"\0" * (-out.tell() % 512))
        with open(disk, "wb") as f:
            f.truncate(DISK)
        argv = [QEMU, "-accel", self.accelerator, "-cpu", self.model, "-m", "1024", "-smp", "1", "-nic", "none",
                "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-kernel", self.kernel,
                "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 mitigations=off",
                "-drive", f"file={disk},if=none,id=disk,format=raw", "-device", "nvme,drive=disk,serial=1"]
        done = driver.run(argv, limit)
        if self.log:
            with open(self.log, "wb") as f:
                f.write(done.stdout + done.stderr)
        lines = done.stdout.decode(errors="replace").replace("\r", "").splitlines()
        return done, [re.sub(r".*?@(?=FAIL|DONE)", "", line) for line in lines if re.search("@(FAIL|DONE)", line)], disk


def told(results, name, done, lines):
    """Counts a machine's rows; False: it did not come to its end."""
    end = re.fullmatch(r"DONE (\d+) passed, (\d+) failed", lines[-1]) if lines else None
    for line in lines[:-1] if end else lines:
        print(f"FAIL matrix {name}: {line.removeprefix('FAIL ')}", flush=True)
    if not end:
        results.failed += 1
        last = driver.as_lines(done.stdout)[-4:] + driver.as_lines(done.stderr)[-2:]
        print(f"FAIL matrix {name}: the machine did not come to its end ({done.status})", *last, sep="\n     ", flush=True)
        return False
    results.passed += int(end[1])
    results.failed += int(end[2])
    print(f"matrix {name}: {end[1]} passed, {end[2]} failed", flush=True)
    return True


def add_rights(options, root):
    """Instead of the matrix: rights.sh, and an installation."""
    tools = f"{root.folder}/lib/inlay/tools"
    os.makedirs(f"{tools}/live")
    for name in ("inscount", "bbcount", "live/count"):
        shutil.copy(f"{options.build}/tools/{name}", f"{tools}/{name}")
    shutil.copy(f"{HERE}/rights.sh", f"{root.folder}/matrix/rights.sh")
    root.write("matrix/rights", "")


def run_models(options, results):
    folder = results.folder
    base = f"{folder}/base"
    commands = common_root(options, Root(f"{folder}/root"), base)
    written = f"{folder}/written"
    write_here(options, commands, f"{written}/this-machine")
    for name, model, accelerator in machines(options):
        machine = Machine(options, base, f"{folder}/{name}", model, accelerator)
        extra = Root(f"{folder}/{name}-root")
        if accelerator == "kvm":
            extra.write("matrix/commands", "")
            extra.write("matrix/units", "")
            if not machine.boot(extra, TRIAL_LIMIT)[1]:
                results.skip(name, f"its trial boot by KVM does not end within {TRIAL_LIMIT} s")
                continue
            extra = Root(f"{folder}/{name}-root")
        if name == "yama":
            add_rights(options, extra)
        else:
            shutil.copytree(written, f"{extra.folder}/written", dirs_exist_ok=True)
        if name in WRITERS:
            extra.write("matrix/writes", "")
        done, lines, disk = machine.boot(extra, BOOT_LIMIT)
        if told(results, name, done, lines) and name in WRITERS:
            os.makedirs(f"{written}/{name}")
            subprocess.run(["tar", "-C", f"{written}/{name}", "-xf", disk], check=True)
        shutil.rmtree(machine.folder)
        shutil.rmtree(extra.folder)


def machines(options):
    chosen = [(n, m, "tcg") for n, m in MODELS.items()]
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        chosen.append(("host", "host", "kvm"))
    return [c for c in chosen if driver.chosen(c[0], options)]


def missing(options):
    for program in (QEMU, "busybox", "cpio", "ldd"):
        if not shutil.which(program, path=driver.PATH):
            return f"there is no {program}"
    if b"statically" not in subprocess.run(["ldd", "/bin/busybox"], capture_output=True).stdout and \
            libraries_of("/bin/busybox"):
        return "busybox is not static (busybox-static)"
    if not options.kernel:
        options.kernel = debian_kernel(f"{options.build}/matrix-kernel")
    return None if options.kernel else f"no kernel can be had ({', '.join(PACKAGES)} from apt-get)"


def main():
    parser = driver.parser(__doc__)
    parser.add_argument("--kernel", metavar="FILE")
    parser.add_argument("--log", metavar="FILE")
    options = parser.parse_args()
    with driver.Results("matrix", options) as results:
        lacks = missing(options)
        if lacks:
            results.skip("all models", lacks)
        else:
            run_models(options, results)
    return results.status


if __name__ == "__main__":
    sys.exit(main())
