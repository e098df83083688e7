#!/usr/bin/env python3
"""The analysis of whole programs of AArch64, by `inlay info`, on programs compiled here.

    programs.py INLAY [FILE ...]

Compared are: a switch's jump table with what its source says, as two compilers write it with all options; procedures
with symbols and unwind ranges; and, where qemu-user is there, each step of a run with blocks and edges (of FILEs too:
static programs, run without arguments). Without the cross compiler there is nothing to look at: status 77.
"""
import bisect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + '/support')
import driver  # noqa: E402

PREFIX = 'aarch64-linux-gnu-'
SWITCH = r'''
#include <stdio.h>
__attribute__((noinline)) int f(unsigned x, int y)
{
    switch (x) {
%s
    }
    return 0;
}
int main(int argc, char **argv)
{
    int sum = 0;
    for (unsigned i = 0; i < %d; i++) sum += f(i, argc);
    return printf("%%d %%s\n", sum, argv[0]) < 0;
}
'''
LIBRARY = r'''
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int by_text(const void *a, const void *b) { return strcmp(a, b); }
int main(void)
{
    char names[][8] = {"one", "two", "three", "four", "five", "six"}, *copy = strdup("a");
    regex_t r;
    qsort(names, 6, 8, by_text);
    regcomp(&r, "f(o|i)[a-z]+", REG_EXTENDED);
    for (int i = 0; i < 6; i++) printf("%s %d %5.2f %x\n", names[i], regexec(&r, names[i], 0, 0, 0), i / 7.0, i);
    free(copy);
    exit(0);
}
'''
TAIL = r'''
int h(int);
__attribute__((noipa)) int h(int x) { return x + 1; }
__attribute__((noipa)) int f(int (*p)(int), int x)
{
    volatile char room[16];
    room[x] = 1;
    h(room[x + 1]);
    return p(x);
}
int main(int argc, char **argv) { return f(argc > 9 ? (int (*)(int))main : h, argc) == (int)(long)argv; }
'''
failures = []


def check(good, text):
    if not good:
        failures.append(text)


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def analysed(inlay, path, *more):
    done = run(inlay, 'info', '--format=json', '--proc', '*', *more, path)
    check(done.returncode == 0, '%s: %s' % (path, done.stderr))
    return json.loads(done.stdout) if done.returncode == 0 else None


def switch_source(cases):
    bodies = ['return y * %d + 1;', 'return y ^ %d;', 'puts("%d"); return y;', 'return (y << 3) / (%d + 2);']
    # As much code for each that entries of one byte, or two, suffice, or not.
    return SWITCH % ('\n'.join('    case %d: %s' % (i, bodies[i % 4] % i) for i in range(cases)), cases)


def compilers():
    # Where it mends erratum 843419 the linker puts pages of padding into the text.
    gcc = [PREFIX + 'gcc', '-mno-fix-cortex-a53-843419']
    gcc.append('-fjump-tables') # newer ones have none at -O0 unless asked
    for option in ('-O0', '-O1', '-O2', '-O3', '-Os'):
        yield 'gcc ' + option, [*gcc, '-static', option]
        yield 'gcc ' + option + ' -fPIC', [*gcc, '-static', option, '-fPIC']
        if shutil.which('clang') and shutil.which('ld.lld'):
            yield 'clang ' + option, ['clang', '--target=aarch64-linux-gnu', '-fuse-ld=lld', '-static', option]
    yield 'gcc, static pie', [*gcc, '-static-pie', '-O2']
    yield 'gcc, protected', [*gcc, '-static', '-O2', '-mbranch-protection=standard']


def check_switches(inlay, folder):
    for cases in (16, 150):
        for name, command in compilers():
            path = os.path.join(folder, 'switch')
            done = run(*command, '-w', '-xc', '-', '-o', path, input=switch_source(cases))
            if done.returncode:
                check(not name.startswith('gcc'), '%s: %s' % (name, done.stderr))
                continue
            j = analysed(inlay, path)
            f = [p for p in j['matching'] if p['name'] == 'f'][0]
            entries = [t['entries'] for t in f['tables']]
            # At -O0 and -Os some make comparisons of a few cases. A table has an entry for each.
            check(f['status'] == 'whole', '%s, %d cases: f is not whole: %s' % (name, cases, f['reason']))
            check(entries == [cases] or (entries == [] and name.startswith('gcc -O0') and cases < 20),
                  '%s, %d cases: tables of %s entries' % (name, cases, entries))
            check(j['tables'] == j['exact_tables'], '%s: a table is not exact' % name)
            share = 100 * j['covered_bytes'] / j['text_bytes']
            check(share > 95, '%s: only %.1f %% of the text explained' % (name, share))


def check_tails(inlay, folder):
    """Without unwind tables it is the stack pointer that says that a jump leaves the procedure."""
    path = os.path.join(folder, 'tail')
    done = run(PREFIX + 'gcc', '-static', '-O2', '-w', '-fno-asynchronous-unwind-tables', '-fno-unwind-tables',
               '-xc', '-', '-o', path, input=TAIL)
    check(done.returncode == 0, done.stderr)
    f = [p for p in analysed(inlay, path, '--blocks')['matching'] if p['name'] == 'f'][0]
    tails = [b for b in f['blocks'] if 'indirect tail' in b['flags']]
    check(f['status'] == 'whole' and len(tails) == 1, 'f is %s (%s), with %d tail calls' % (f['status'], f['reason'], len(tails)))


def check_procedures(inlay, path):
    """A procedure begins where a symbol of a function or an unwind range does."""
    starts = {p['address'] for p in analysed(inlay, path)['matching']}
    symbols = re.findall(r'^([0-9a-f]+) [0-9a-f]+ [tTwWi] ', run(PREFIX + 'nm', '-S', path).stdout, re.M)
    ranges = re.findall(r' FDE .* pc=([0-9a-f]+)\.\.', run(PREFIX + 'readelf', '--debug-dump=frames', path).stdout)
    check(len(symbols) > 500 and len(ranges) > 500, 'no symbols or unwind ranges read')
    missing = sorted({int(s, 16) for s in symbols + ranges} - starts)
    check(not missing, '%s: no procedure begins at %s' % (path, ', '.join('%x' % m for m in missing[:10])))


class Blocks:
    def __init__(self, j):
        self.starts, self.blocks = [], []
        every = sorted((b for p in j['matching'] for b in p['blocks']), key=lambda b: b['address'])
        for b in every:
            self.starts.append(b['address'])
            self.blocks.append(b)

    def at(self, pc):
        i = bisect.bisect_right(self.starts, pc) - 1
        b = self.blocks[i] if i >= 0 else None
        return b if b and pc < b['address'] + b['size'] else None


FREE = {'return', 'unresolved', 'indirect tail'}


def allowed(block, pc, to):
    if pc + 4 < block['address'] + block['size']:
        return to == pc + 4
    flags = set(block['flags'])
    return bool(flags & FREE) or 'call' in flags or any(e['target'] == to for e in block['edges'])


def check_steps(inlay, path, folder):
    log = os.path.join(folder, 'log')
    done = run('qemu-aarch64', driver.single_stepping('qemu-aarch64'), '-d', 'nochain,exec', '-D', log, path, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return check(False, '%s does not run: %s' % (path, done.stderr))
    blocks, last, steps, wrong = Blocks(analysed(inlay, path, '--blocks')), None, 0, {}
    with open(log) as f:
        for line in f:
            m = re.search(r'\[[0-9a-f]+/([0-9a-f]+)/', line)
            if not m:
                continue
            pc = int(m[1], 16)
            block = blocks.at(pc)
            if block is None:
                wrong[pc] = 'what runs at %x is no known code' % pc
            elif last and last[0] and not allowed(last[0], last[1], pc):
                wrong[pc] = 'no edge from %x to %x' % (last[1], pc)
            elif last and last[1] + 4 != pc and block['address'] != pc:
                wrong[pc] = 'from %x to the middle of a block, %x' % (last[1], pc)
            last, steps = (block, pc), steps + 1
    os.unlink(log)
    for text in list(wrong.values())[:10]:
        check(False, '%s: %s' % (os.path.basename(path), text))
    check(steps > 10000, '%s: only %d steps seen' % (path, steps))
    print('%s: %d steps' % (os.path.basename(path), steps))


def main():
    inlay, files = sys.argv[1], sys.argv[2:]
    if not shutil.which(PREFIX + 'gcc'):
        print('programs: no %sgcc here' % PREFIX)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        check_switches(inlay, folder)
        check_tails(inlay, folder)
        path = os.path.join(folder, 'library')
        done = run(PREFIX + 'gcc', '-O2', '-w', '-static', '-xc', '-', '-o', path, input=LIBRARY)
        check(done.returncode == 0, done.stderr)
        check_procedures(inlay, path)
        if shutil.which('qemu-aarch64'):
            for program in [path] + files:
                check_steps(inlay, program, folder)
    for text in failures:
        print('FAIL ' + text)
    return 1 if failures else 0


sys.exit(main())
