#!/usr/bin/env python3
"""The kernel's names of system calls, as the compiler's headers have them: a table of C, by number.

  syscall_names.py OUTPUT COMPILER...
"""

import re
import subprocess
import sys


def main():
    text = subprocess.run([*sys.argv[2:], "-E", "-dM", "-x", "c", "-"], input="#include <asm/unistd.h>\n", text=True,
                          capture_output=True, check=True).stdout
    # Some headers number calls from others (__NR_x __NR_y): these are names once more.
    names = {int(n): name for name, n in re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.M) if name != "syscalls"}
    if len(names) < 200:
        sys.exit("no system calls in <asm/unistd.h>")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("".join(f'    [{n}] = "{name}",\n' for n, name in sorted(names.items())))


if __name__ == "__main__":
    main()
