"""An AArch64 machine in QEMU, with Debian's arm64 kernel and busybox: takes files and jobs, boots, answers what each
job did.

    machine = Machine(folder, arm64)             # a scratch folder; what scripts/fetch-arm64 told
    machine.add("build-aarch64/tests/samples/plain_static", "bin/plain")
    machine.job("plain", "plain | sort")         # for busybox's sh, in an empty folder; $OUT is kept
    answers = machine.boot(limit=300)            # {"plain": Outcome(status, stdout, stderr)}
    machine.left("plain", "report")              # the path of what it left in $OUT

Raises driver.Failed where the machine does not come to its end, with the last lines of its console.
"""

import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{HERE}/../support"]
import driver  # noqa: E402

QEMU = "qemu-system-aarch64"
DISK = 512 << 20
# Authenticating pointers as the architecture says takes most of the time; their own way is as good here.
MODELS = {"max": "max,pauth-impdef=on", "cortex-a57": "cortex-a57"}


def arm64_folder():
    """Where Debian's arm64 files are; fetched when they are not there."""
    done = subprocess.run([f"{ROOT}/scripts/fetch-arm64"], capture_output=True, text=True)
    if done.returncode:
        raise driver.Failed("scripts/fetch-arm64", *done.stderr.splitlines()[-4:])
    return done.stdout.strip()


class Machine:
    def __init__(self, folder, arm64, model="max", job_limit=120):
        self.folder, self.arm64, self.model = driver.fresh(folder), arm64, model
        self.root = f"{folder}/root"
        self.added = {}  # source: where it is; the same file under several names is packed and unpacked once
        for name in ("bin", "jobs"):
            os.makedirs(f"{self.root}/{name}")
        self.add(f"{arm64}/programs/bin/busybox", "bin/busybox")
        self.add(f"{HERE}/guest.sh", "init")
        self.write("limit", f"{job_limit}\n")

    def add(self, source, target):
        path = f"{self.root}/{target}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        first = self.added.setdefault(source, path)
        if not os.path.exists(first):
            shutil.copy(source, first)
            os.chmod(first, 0o755)
        elif not os.path.exists(path):
            os.link(first, path)

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.root}/{name}"), exist_ok=True)
        with open(f"{self.root}/{name}", "w") as f:
            f.write(text)

    def job(self, name, script):
        self.write(f"jobs/{name}", script + "\n")

    def pack(self, out):
        names = subprocess.run(["find", "."], cwd=self.root, capture_output=True, check=True).stdout
        with open(out, "wb") as f:
            subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=self.root, input=names, stdout=f, check=True)

    def boot(self, limit):
        disk, initial = f"{self.folder}/disk", f"{self.folder}/initial"
        self.pack(initial)
        with open(disk, "wb") as f:
            f.truncate(DISK)
        kernel = glob.glob(f"{self.arm64}/kernel/boot/vmlinuz-*")[0]
        room = 1024 + 3 * os.path.getsize(initial) // (1 << 20)  # packed, unpacked, and some
        argv = [QEMU, "-M", "virt", "-cpu", MODELS[self.model], "-m", f"{room}", "-nic", "none", "-display", "none",
                "-monitor", "none", "-serial", "stdio", "-no-reboot", "-kernel", kernel, "-initrd", initial,
                "-append", "console=ttyAMA0 quiet panic=-1 mitigations=off rdinit=/init",
                "-drive", f"file={disk},if=none,id=disk,format=raw", "-device", "nvme,drive=disk,serial=1"]
        done = driver.run(argv, limit)
        if b"@DONE" not in done.stdout:
            last = driver.as_lines(done.stdout)[-6:] + driver.as_lines(done.stderr)[-3:]
            raise driver.Failed(f"the machine did not come to its end ({done.status})", *last)
        out = driver.fresh(f"{self.folder}/out")
        subprocess.run(["tar", "-C", out, "-xf", disk], check=True)
        return {name: self.outcome(name) for name in os.listdir(f"{self.root}/jobs")}

    def outcome(self, name):
        def read(what):
            with open(self.left(name, what), "rb") as f:
                return f.read()
        return driver.Outcome(int(read("status")), read("stdout"), read("stderr"))

    def left(self, name, what):
        return f"{self.folder}/out/{name}/{what}"
