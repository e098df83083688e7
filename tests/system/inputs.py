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
    "work.js": """'use strict';
const m = new Map();
for (let i = 0; i < 20000; i++) m.set('k' + (i * 7919 % 2003), (m.get('k' + (i * 7919 % 2003)) || 0) + i);
const f = n => n < 2 ? n : f(n - 1) + f(n - 2);
const text = JSON.stringify([...m].slice(0, 50));
console.log(m.size, f(22), text.length, text.replace(/k(\\d+)/g, (_, d) => d.length).slice(0, 40));
try { null.x; } catch (e) { console.log(e.message); }
const { createHash } = require('crypto');
console.log(createHash('sha256').update(text).digest('hex'));
const { Worker, isMainThread } = require('worker_threads');
setTimeout(() => console.log('later'), 5);
Promise.resolve(3).then(v => console.log('then', v));
(async () => { for await (const x of (async function* () { yield 1; yield 2; })()) console.log('x', x); })();
process.on('exit', () => { process.exitCode = 4; });
""",
    "work.go": """package main
import "fmt"
func main() {
for i := 0; i < 3; i++ { fmt.Println( i*i ) }
}
""",
    "work.ml": """let rec f n = if n < 2 then n else f (n - 1) + f (n - 2);;
let h = Hashtbl.create 10;;
for i = 0 to 999 do Hashtbl.replace h (i mod 37) (i * i) done;;
Printf.printf "%d %d %.3f\\n" (f 18) (Hashtbl.length h) (exp 1.0);;
try ignore (List.hd []) with Failure s -> print_endline s;;
exit 3;;
""",
    # A server and its worker, asked by the shell, reloaded and ended by signals.
    "nginx.sh": """d=$PWD/n; mkdir -p $d/html; echo hello from $$ >/dev/null; seq 1 2000 >$d/html/x.txt
cat >$d/c <<END
daemon on; master_process on; worker_processes 2; pid $d/pid; error_log $d/error;
user root; events { worker_connections 64; }
http { access_log off; server { listen unix:$d/s; location / { root $d/html; } } }
END
nginx -p $d -c $d/c -e $d/error || exit 9
ask() { /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b"GET %s HTTP/1.0\\r\\n\\r\\n" % sys.argv[2].encode())
r = b""
while True:
    b = s.recv(65536)
    if not b: break
    r += b
print(r.split(b"\\r\\n")[0].decode(), len(r.split(b"\\r\\n\\r\\n", 1)[1]))' $d/s $1; }
ask /x.txt; ask /none | cut -d' ' -f1-3
nginx -p $d -c $d/c -e $d/error -s reload; for i in 1 2 3 4 5; do ask /x.txt; done
nginx -p $d -c $d/c -e $d/error -s quit
for i in $(seq 200); do [ -e $d/pid ] || break; sleep 0.1; done
[ -e $d/pid ] && echo still there || echo ended
""",
    # A cluster made, asked and stopped by an ordinary user.
    "postgres.sh": """b=$(dirname "$(readlink -f "$(command -v postgres)")"); d=$PWD/p; mkdir $d; chown nobody $d; chmod 755 .
as() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=$d PATH="$b:$PATH" "$@"; }
cd $d; as $b/initdb -D $d/data -A trust -U u --no-sync >/dev/null || exit 9
as $b/pg_ctl -D $d/data -w -t 120 -o "-k $d -h '' -F" -l $d/log start >/dev/null || { cat $d/log; exit 8; }
as $b/psql -h $d -U u -d postgres -At -c "create table t(a int primary key, b text)" \\
  -c "insert into t select i, md5(i::text) from generate_series(1,3000) i" \\
  -c "select count(*), sum(a), max(b) from t" -c "select a, b from t where b like 'ab%' order by a limit 3" \\
  -c "select sum(x) from generate_series(1,1000) x" -c "select 1/0"
as $b/pg_ctl -D $d/data -w -m fast stop >/dev/null; echo stopped $?
""",
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
