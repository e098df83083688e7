"""The input files of the system test, made from nothing and the same each time."""

import os
import shutil

WORDS = ("abz bridge cedar delta ember fable grove haze island jungle karst lemon marsh night olive "
         "pearl quartz river stone tundra umber valley willow xenon yarrow zephyr").split()


class Random:
    """A small generator, so that the files do not depend on the Python version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


FILES = {
    "script.sh": """#!/bin/bash
echo "$0" | sed 's/.*\\///'
echo "args: $# $*"
while read -r a b; do echo "$b-$a"; done <<END
one 1
two 2
END
x=(a b c); x+=(d); echo "${x[@]:1:2} ${#x[@]} ${x[*]/b/B}"
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
printf '%05.2f %s\\n' 3.14159 "$(printf '%s' nested)"
exit 3
""",
    "hello.awk": """#!/usr/bin/gawk -f
BEGIN { print "an awk script", 6 * 7; exit 5 }
""",
    "bc": """scale=40
4*a(1)
e(1)
define f(n) { if (n < 2) return n; return f(n-1) + f(n-2); }
f(15)
2^500
sqrt(2)
""",
    "threads.py": """import queue, threading
q, out = queue.Queue(), []
lock = threading.Lock()
def worker():
    while (n := q.get()) is not None:
        s = sum(i * i for i in range(n))
        with lock:
            out.append((n, s))
ts = [threading.Thread(target=worker) for _ in range(6)]
for t in ts: t.start()
for n in range(200): q.put(n * 5)
for t in ts: q.put(None)
for t in ts: t.join()
print(len(out), sum(s for _, s in out))
timer = threading.Timer(0.05, lambda: print('timer'))
timer.start(); timer.join()
""",
    "processes.py": """import multiprocessing as mp, os, signal, subprocess, sys, concurrent.futures as cf
def square(n): return n * n
if __name__ == '__main__':
    print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout, end='')
    p = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print(p.communicate(b'through cat')[0])
    p = subprocess.Popen(['sleep', '30']); p.send_signal(signal.SIGTERM); print(p.wait())
    with mp.get_context('fork').Pool(2) as pool: print(sum(pool.map(square, range(100))))
    with mp.get_context('spawn').Pool(1) as pool: print(sum(pool.map(square, range(10))))
    with cf.ThreadPoolExecutor(4) as ex: print(sum(ex.map(square, range(100))))
    r, w = os.pipe(); pid = os.fork()
    if pid == 0: os.write(w, b'child'); os._exit(3)
    print(os.read(r, 10), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    sys.exit(6)
""",
    "work.lua": """local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end
print(fib(20))
local t = {} for i = 1, 5000 do t[i] = (i * 7919) % 5003 end
table.sort(t) print(t[1], t[2500], t[5000])
local s = {} for w in ('a bb ccc dddd'):rep(50, ' '):gmatch('%a+') do s[#s+1] = w:upper() end
print(#s, table.concat(s, ',', 1, 6))
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
print(co(), co(), co())
print(pcall(error, {code = 2}), select('#', pcall(string.rep)), 7 // 2, 2^0.5)
os.exit(4)
""",
    "Work.java": """import java.util.*;

public class Work {
    public static void main(String[] arguments) {
        Map<Long, Integer> found = new TreeMap<>();
        long x = 1;
        for (int i = 0; i < 20000; i++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            found.merge(x >>> 60, 1, Integer::sum);
        }
        System.out.println(found);
        try {
            ((Object) null).hashCode();
        } catch (NullPointerException e) {
            System.out.println("null");
        }
    }
}
""",
    "work.sql": """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i < 3000)
insert into t select i, 'row' || (i * 7919 % 1000), i / 7.0 from n;
create index tb on t(b);
select count(*), sum(a), round(avg(c), 6) from t;
select b, count(*) k, max(a) from t group by b order by k desc, b limit 5;
select a.a, b.a from t a join t b on a.b = b.b and a.a < b.a order by 1, 2 limit 5;
update t set c = c * 2 where b like '%7'; delete from t where a % 3 = 0;
select count(*), round(sum(c), 3) from t;
select missing from t;
""",
    "git.sh": """export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b
set -e
git init -q -b main r; cd r
for i in 1 2 3; do seq $i 40 > f$i; git add f$i; git commit -q -m "commit $i"; done
git checkout -q -b side HEAD~1; echo side >> f1; git commit -qam side; git checkout -q main
git merge -q -m merged side
git log --oneline --graph --stat | cat
git diff HEAD~1 | cat; git status --short; git gc -q; git fsck; git rev-parse HEAD
cd ..; git clone -q r c; git -C c log --format=%H | tail -1
rm -rf r/.git c/.git
""",
    "Makefile.test": """all: one two three
	@cat one two three; echo $(shell echo shelled) $(words a b c)
one: ; @echo 1 > $@
two: one ; @sleep 0.1; echo 2 > $@
three: ; @echo 3 > $@
""",
    "hello.c": """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    double x = argc > 1 ? atof(argv[1]) : 2;
    for (int i = 0; i < 5; i++) x = sqrt(x + i);
    printf("hello %.10f\\n", x);
    return argc;
}
""",
    "tiny.s": """.globl _start
_start: mov $60, %eax
 mov $42, %edi
 syscall
""",
    "go.gtp": """boardsize 9
genmove black
genmove white
genmove black
genmove white
showboard
quit
""",
}
EXECUTABLE = ("script.sh", "hello.awk")


def make(folder, tests):
    """Fills `folder`; `tests` is the tests' source folder."""
    os.makedirs(folder)
    r = Random(7)
    with open(f"{folder}/text", "w") as f:
        for _ in range(12000):
            f.write(" ".join([WORDS[r.below(26)], str(r.below(1000)),
                              "".join(chr(97 + r.below(26)) for _ in range(r.below(40))),
                              str(r.below(100000))]) + "\n")
    with open(f"{folder}/numbers", "w") as f:
        f.writelines(f"{r.below(10**6)}\n" for _ in range(2000))
    with open(f"{folder}/text2", "w") as f:
        f.writelines(f"{WORDS[i % 26]}{i} {r.below(1000)}\n" for i in range(60))
    with open(f"{folder}/binary", "wb") as f:
        f.write(bytes(r.below(256) for _ in range(300000)))
    for name, text in FILES.items():
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
    for name in EXECUTABLE:
        os.chmod(f"{folder}/{name}", 0o755)
    shutil.copy(f"{tests}/samples/throw.cc", folder)
    for name in os.listdir(folder):
        os.utime(f"{folder}/{name}", (1000000000, 1000000000))
