#!/usr/bin/env python3
"""Writes a header with a sum of all source that an analysis of a program follows from, and the list of these files for
ninja: what was kept by another Inlay (kept.c) is not taken for what this one would find.

  sources.py HEADER DEPENDENCIES SOURCE-FOLDER
"""

import hashlib
import os
import sys

PARTS = ("base", "isa", "image", "cfg")


def main():
    header, dependencies, folder = sys.argv[1:]
    files = sorted(os.path.join(at, name) for part in PARTS for at, _, names in os.walk(f"{folder}/{part}") for name in names)
    files = [name for name in files if "__pycache__" not in name]
    total = hashlib.sha256()
    for name in files:
        with open(name, "rb") as f:
            total.update(f"{os.path.relpath(name, folder)}\n".encode() + hashlib.sha256(f.read()).digest())
    with open(header, "w", encoding="utf-8") as f:
        f.write(f'#define CFG_SOURCES "{total.hexdigest()[:32]}"\n')
    with open(dependencies, "w", encoding="utf-8") as f:
        f.write(f"{header}: {' '.join(name.replace(' ', chr(92) + ' ') for name in files)}\n")


main()
