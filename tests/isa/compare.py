#!/usr/bin/env python3
"""The decoder of AArch64 against binutils: operation and operands, as text.

    compare.py SHOW [--words N] [--seed N] [FILE ...]

SHOW is the program made of show.c. Compares N random words, and the text of a static C program that is compiled here
(and of FILEs, ELF of AArch64). Vector registers are compared by number, not by arrangement and element; names of
system registers, barriers and prefetches are not compared, nor how immediates of vector shifts are counted. SVE and
SME are not decoded. Without the cross tools there is nothing to compare with, which is said, with status 77.
"""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

PREFIX = 'aarch64-linux-gnu-'
PROGRAM = r'''
#include <complex.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    regex_t r;
    double complex z = cexp(argc * I);
    regcomp(&r, argv[0], REG_EXTENDED);
    qsort(argv, argc, sizeof *argv, (int (*)(const void *, const void *))strcmp);
    return printf("%f %Lf %s\n", creal(z) + sin(argc), sqrtl(argc), strstr(argv[0], "a"));
}
'''
# What newer disassemblers call some of them.
# Newer than the tables: leaves a transaction, or a world; returns; compares and branches. Code with them is left alone.
NEWER_BRANCH = re.compile(r'tcancel|tchange[bf]|reta[ab]sppc|cb[bh]?(gt|ge|hi|hs|eq|ne|lt|lo)\b')
NEWER = {'gcspopcx': 'sys', 'gcspopm': 'sysl', 'gcspopx': 'sys', 'gcspushm': 'sys', 'gcspushx': 'sys', 'gcsss1': 'sys',
         'gcsss2': 'sysl', 'rprfm': 'prfm', 'smstart': 'msr', 'smstop': 'msr'}
SYSTEM = ('mrs', 'msr', 'dmb', 'dsb', 'isb', 'clrex', 'prfm', 'prfum', 'sys', 'sysl', 'bti')
NUMBER = re.compile(r'#?-?\b0x[0-9a-fA-F]+|#-?\d+(?![\d.])|(?<=, )-?\d+\b')


def plain(text):
    """One form for both: numbers as 64-bit decimals, vector registers without arrangement."""
    text = re.sub(r'\s+', ' ', re.sub(r'<[^>]*>|//.*', '', text)).strip()
    text = re.sub(r'\bv(\d+)\.\w+(\[\d+\])?', r'v\1', text)
    text = re.sub(r'\{v(\d+)-v(\d+)\}', lambda m: '{%s}' % ', '.join(
        'v%d' % ((int(m[1]) + i) % 32) for i in range((int(m[2]) - int(m[1])) % 32 + 1)), text)
    text = re.sub(r'\}\[\d+\]', '}', text).replace('{', '').replace('}', '')
    text = re.sub(r'^(adds?|subs?)( .*)#(0x[0-9a-f]+), lsl #12',
                  lambda m: '%s%s#%#x' % (m[1], m[2], int(m[3], 16) << 12), text)
    text = re.sub(r', (sxtx|uxtx)\b(?! #)', '', text)
    text = re.sub(r', sxtx #', ', lsl #', re.sub(r', (lsl|uxtw|sxtw|sxtx) #0\b', r', \1', text))
    text = re.sub(r', (lsl|sxtx)\]', ']', text).replace(', #0]!', ']!')
    if 'sp' in text: # an extension that says nothing has two names
        text = re.sub(r', (uxtw|uxtx) #', ', lsl #', re.sub(r', uxtw$', '', text))
    return NUMBER.sub(lambda m: str(int(m[0].lstrip('#'), 0) & (1 << 64) - 1), text)


def registers(text):
    """By class and number, of what is a vector instruction: an element or a scalar is its register."""
    return re.sub(r'[bhsdqv](?=\d)', 'v', ' '.join(re.findall(r'\b(?:[wxbhsdqv]\d+|w?sp|[wx]zr)\b', text)))


def same(ours, theirs, word):
    a, b = plain(ours), plain(theirs)
    name, other = a.split()[0], b.split()[0]
    if NEWER.get(other) == name or a == 'chkfeat' and b == 'chkfeat x16':
        return True
    if other == 'hint' or other in SYSTEM and name == other:
        return other != 'hint' or word & 0xfffff01f == 0xd503201f
    if name == 'ret' or a == b:
        return name == other
    vector = word >> 25 & 7 == 7 or word >> 26 & 1 and word >> 25 & 5 == 4
    if name == 'dup' or name == 'ins': # x or w by the element
        a, b = a.replace('x', 'w'), b.replace('x', 'w')
    return name == other and vector and registers(a) == registers(b)


def objdump(data, folder):
    path = os.path.join(folder, 'words')
    with open(path, 'wb') as f:
        f.write(data)
    out = subprocess.run([PREFIX + 'objdump', '-D', '-z', '-bbinary', '-maarch64', '-Mno-aliases', path],
                         capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        m = re.match(r'\s*[0-9a-f]+:\t([0-9a-f]{8}) ?\t(.*)', line)
        if m:
            yield int(m[1], 16), m[2].replace('\t', ' ')


def compare(show, data, folder, what):
    ours = subprocess.run([show], input=data, capture_output=True, check=True).stdout.decode().splitlines()
    counts, wrong = collections.Counter(), []
    for line, (word, theirs) in zip(ours, objdump(data, folder), strict=True):
        text, facts = line.split(' | ')[:2]
        known = text != '?'
        refused = 'undefined' in theirs or theirs.startswith('.inst')
        if word >> 25 & 13 == 0: # SME, SVE
            continue
        counts['known' if known else 'unknown'] += 1
        if known and not refused and not same(text, theirs, word):
            wrong.append('%08x: %s, objdump: %s' % (word, text, theirs))
        # Newer than the tables, or system registers that are none: copied as they are, so no branch may be there.
        if not known and not refused and facts[0] != '1' and not NEWER_BRANCH.match(theirs):
            wrong.append('%08x: taken for no instruction, objdump: %s' % (word, theirs))
        if known and line.split(' | ')[2].split()[0] in ('refused', 'wrong'):
            wrong.append('%08x: %s: not encoded again' % (word, text))
    print('%s: %d words known, %d not, %d wrong' % (what, counts['known'], counts['unknown'], len(wrong)))
    for line in wrong[:20]:
        print('  ' + line)
    return wrong, counts


def text_of(path, folder):
    out = os.path.join(folder, 'text')
    subprocess.run([PREFIX + 'objcopy', '-O', 'binary', '-j', '.text', path, out], check=True)
    with open(out, 'rb') as f:
        data = f.read()
    return data[:len(data) // 4 * 4]


def compiled(folder):
    path = os.path.join(folder, 'program')
    done = subprocess.run([PREFIX + 'gcc', '-O2', '-w', '-static', '-xc', '-', '-o', path, '-lm'], input=PROGRAM, text=True)
    return [path] if done.returncode == 0 else []


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument('show')
    ap.add_argument('--words', type=int, default=300000)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('files', nargs='*')
    a = ap.parse_args()
    if not shutil.which(PREFIX + 'objdump'):
        print('compare: no %sobjdump here' % PREFIX)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        source = random.Random(a.seed)
        wrong, counts = compare(a.show, source.randbytes(4 * a.words), folder, 'random words, seed %d' % a.seed)
        failed = bool(wrong) or a.words > 1000 and counts['known'] < a.words // 5
        programs = a.files + (compiled(folder) if shutil.which(PREFIX + 'gcc') else [])
        for path in programs:
            wrong, counts = compare(a.show, text_of(path, folder), folder, os.path.basename(path))
            failed |= bool(wrong) or counts['unknown'] * 1000 > counts['known']
    return 1 if failed else 0


sys.exit(main())
