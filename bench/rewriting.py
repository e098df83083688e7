#!/usr/bin/python3
"""What rewriting costs on programs of growing size: processor time for each megabyte of code, memory, and how large the
file becomes. Time that grew faster than the code would show as a last column that rises.

  bench/rewriting.py [--build DIR] [--tools null,inscount] [--runs N] [FILE...]
"""

import argparse
import glob
import os
import shutil
import struct
import sys
import tempfile

sys.dont_write_bytecode = True

import measure  # noqa: E402

LIMIT = 900  # seconds
FILES = ("/usr/bin/gzip", "/usr/bin/python3", *glob.glob("/usr/lib/llvm-*/lib/libclang-cpp.so.*[0-9]"), "/usr/bin/node",
         *glob.glob("/usr/lib/x86_64-linux-gnu/libLLVM*.so.*1"), "/usr/lib/chromium/chromium")


def code_bytes(path):
    """Of executable sections."""
    with open(path, "rb") as f:
        head = f.read(64)
        f.seek(struct.unpack_from("<Q", head, 40)[0])
        rows = [struct.unpack("<IIQQQQ24x", f.read(64)) for _ in range(struct.unpack_from("<H", head, 60)[0])]
    return sum(r[5] for r in rows if r[2] & 4 and r[1] != 8)


def best_of(options, tool, path, out):
    """The run with the least processor time."""
    command = [f"{options.build}/inlay", "rewrite", f"{options.build}/tools/{tool}", path, "-o", out]
    runs = [measure.run(command, os.path.dirname(out), LIMIT) for _ in range(options.runs)]
    return min(runs, key=lambda r: (r.failed(), r.cpu))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--tools", default="null", help="of those that ship (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="inlay-rewriting-")
    print(f"{'file':20} {'tool':9} {'MB of code':>10} {'s':>7} {'memory MB':>9} {'file MB':>8} {'written':>8} {'s/MB':>6}")
    try:
        for path in sorted(filter(os.path.exists, options.files or FILES), key=code_bytes):
            for tool in options.tools.split(","):
                real, out = os.path.realpath(path), f"{folder}/out"
                code, old = code_bytes(real) / 1e6, os.path.getsize(real) / 1e6
                run = best_of(options, tool, real, out)
                name = f"{os.path.basename(path):20.20} {tool:9}"
                if run.failed():
                    print(f"{name} {run.error}")
                    continue
                print(f"{name} {code:10.1f} {run.cpu:7.2f} {run.peak_kb * 1024 / 1e6:9.0f} {old:8.1f} "
                      f"{os.path.getsize(out) / 1e6:8.1f} {run.cpu / code:6.3f}", flush=True)
                os.unlink(out)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
