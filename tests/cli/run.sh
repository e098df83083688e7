#!/bin/sh
# The inlay command: what it says and how it ends when things are wrong, installation, and a tool that
# is built outside the tree.
#
#   tests/cli/run.sh [BUILD]
#
# Ends with "N passed, N failed".
build=$(cd "${1:-build}" && pwd)
inlay=$build/inlay
tests=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

fail() {
    failed=$((failed + 1))
    echo "FAIL cli $1"
    sed 's/^/     /' "$scratch/out" | head -12
}

# check NAME STATUS PATTERN COMMAND...: ends with STATUS, and the output has a line that matches. An
# error (status 1 or 2 of Inlay itself) must be told in one line; a hint of usage may follow.
check() {
    name=$1 status=$2 pattern=$3
    shift 3
    timeout 60 "$@" >"$scratch/out" 2>&1 </dev/null
    got=$?
    if [ $got -ne "$status" ]; then
        echo "status $got instead of $status" >>"$scratch/out"
        fail "$name"
    elif ! grep -q -e "$pattern" "$scratch/out"; then
        echo "no line matches: $pattern" >>"$scratch/out"
        fail "$name"
    else
        passed=$((passed + 1))
    fi
}

# Like check, and nothing but one line is said (two for wrong usage).
error() {
    check "$@"
    lines=$(wc -l <"$scratch/out")
    if [ "$lines" -gt "$2" ]; then
        passed=$((passed - 1))
        fail "$1: more than $2 lines"
    fi
}

check 'help'                   0 'usage: inlay'              "$inlay" help
check 'no command'             2 'usage: inlay'              "$inlay"
check 'version'                0 '^inlay [0-9]'              "$inlay" --version
check 'tools lists inscount'   0 '^inscount .*instructions'  "$inlay" tools
check 'help of tools'          0 'usage: inlay tools'        "$inlay" tools --help
check 'help of run: tools'     0 '^inscount .*instructions'  "$inlay" run --help
check 'help of run'            0 'usage: inlay run'          "$inlay" run --help
check 'help of rewrite'        0 'usage: inlay rewrite'      "$inlay" rewrite --help
check 'help of attach'         0 'usage: inlay attach'       "$inlay" attach --help
check 'help of cc'             0 'usage: inlay cc'           "$inlay" cc --help
check 'detach of none'         2 'detach: no process is named' "$inlay" detach
check 'detach of two'          2 'detach: 2 is too much'     "$inlay" detach 1 2
check 'report: no option'      2 'report: -1 is no option'   "$inlay" report -1
check 'trace: a full disk'     1 'cannot write /dev/full: No space' sh -c '"$0" trace -o "$1" -- true && "$0" trace export html -o /dev/full "$1"' "$inlay" "$scratch/full.trace"
error 'tools with an argument' 2 'takes no arguments'       "$inlay" tools all
check 'help of info'           0 'usage: inlay info'         "$inlay" info --help
check 'help of merge'          0 'usage: inlay merge'        "$inlay" merge --help
check 'help of a tool'         0 'REP'                       "$inlay" run inscount --help
check 'common options in help' 0 '--proc'                    "$inlay" run null --help

error 'unknown command'        2 "unknown command 'rum'"     "$inlay" rum
error 'no tool'                2 'no tool named'             "$inlay" run
error 'no program'             2 'no program'                "$inlay" run null
error 'unknown option before'  2 'bogus'                     "$inlay" run --bogus null -- true
error 'unknown option of tool' 2 'bogus'                     "$inlay" run null --bogus -- true
error 'bad format'             2 'format'                    "$inlay" run null --format=xml -- true
error 'tool missing'           1 "no tool named 'nonesuch'"  "$inlay" run nonesuch -- true
head -c 3000000 "$build/tools/null" >"$scratch/cut"
chmod +x "$scratch/cut"
error 'tool is cut short'      1 'cut short'                 "$inlay" run "$scratch/cut" -- true
error 'tool is no tool'        1 'not an Inlay tool'         "$inlay" run /bin/ls -- true
error 'tool is a folder'       1 'not an executable'         "$inlay" run /tmp -- true

check 'info'                   0 'in whole procedures'       "$inlay" info /bin/ls
check 'info as JSON'           0 '"exact_tables"'            "$inlay" info --format=json /bin/ls
check 'info with blocks'       0 'entry'                     "$inlay" info /bin/ls --proc '_start' --blocks
check 'info to a file'         0 'whole'               sh -c '"$0" info /bin/ls -o "$1" && cat "$1"' "$inlay" "$scratch/info"
error 'info of nothing'        2 'no program named'          "$inlay" info
error 'info of two'            2 'takes one program'         "$inlay" info /bin/ls /bin/cat
error 'info: bad option'       2 'bogus'                     "$inlay" info --bogus /bin/ls
error 'info: bad format'       2 'format'                    "$inlay" info --format=xml /bin/ls
error 'info of no program'     1 'not an ELF file'           "$inlay" info /etc/passwd
error 'info: missing file'     1 'nonesuch'                  "$inlay" info "$scratch/nonesuch"
error 'info: full disk'        1 'No space left'             "$inlay" info /bin/ls -o /dev/full
for word in tools ps help; do
    error "$word: full disk"   1 'standard output: No space' sh -c '"$0" "$1" >/dev/full' "$inlay" $word
    error "$word: closed"      1 'standard output: Bad file' sh -c '"$0" "$1" >&-' "$inlay" $word
done
echo '{"tool": "inscount", "program": "p", "pid": 1, "instructions": 3}' >"$scratch/sum"
check 'merge: options behind'  0 '"instructions": 6'         sh -c '"$0" merge "$1" "$1" -o "$2" && cat "$2"' \
    "$inlay" "$scratch/sum" "$scratch/sums"
printf '%s' '{"tool": "t", "a": 18446744073709551615, "b": 123456789012345678901234567890, "c": 1e999, "d": 1.5, "e": -2}' >"$scratch/huge"
check 'merge: huge numbers'    0 '^3.6893488147419103e+19 2.4691357802469136e+29 1.7976931348623157e+308 3 -4$' sh -c '"$0" merge "$1" "$1" -o "$2" &&
    /usr/bin/python3 -c "import json, sys; print(*[json.load(open(sys.argv[1]), parse_constant=int)[n] for n in \"abcde\"])" "$2"' "$inlay" "$scratch/huge" "$scratch/sums"
for number in 01 1. .5 1e +1 1-2 -; do
    printf '{"tool": "t", "a": %s}' "$number" >"$scratch/nonumber"
    error "merge: $number"        1 'is no JSON report'       "$inlay" merge "$scratch/nonumber"
done
error 'merge: bad option'      2 'bogus'                     "$inlay" merge "$scratch/sum" --bogus
line="$scratch/a
line"
cp /bin/true "$line"
for engine in jit live; do
    check "a program with a line's end in its name: $engine" 0 '"image": "a\\nline"' \
        "$inlay" run --engine=$engine calls --format=json -- "$line"
done

mkdir "$scratch/folder"
echo data >"$scratch/data"
echo '#!/nonexistent/interpreter' >"$scratch/bad-script"
printf '#!/bin/sh\r\n' >"$scratch/dos-script"
printf '\177ELF\2\1\1' >"$scratch/truncated"
chmod +x "$scratch/bad-script" "$scratch/dos-script" "$scratch/truncated"
# A 32-bit and a foreign header: only the identification matters.
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' >"$scratch/elf32"
printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\267\0\1\0\0\0' >"$scratch/elf-arm"
for f in elf32 elf-arm; do
    head -c 4096 /dev/zero >>"$scratch/$f"
    chmod +x "$scratch/$f"
done
error 'program not found'      1 'nonesuch'                  "$inlay" run null -- nonesuch
error 'path not found'         1 'nonesuch'                  "$inlay" run null -- ./nonesuch
error 'program is a folder'    1 'folder'                    "$inlay" run null -- "$scratch/folder"
error 'not executable'         1 'data'                      "$inlay" run null -- "$scratch/data"
error 'not ELF'                1 'bad-script\|interpreter'   "$inlay" run null -- "$scratch/bad-script"
error 'DOS line ends'          1 'ends with a carriage return' "$inlay" run null -- "$scratch/dos-script"
error 'truncated'              1 'truncated'                 "$inlay" run null -- "$scratch/truncated"
error '32-bit'                 1 '32-bit'                    "$inlay" run null -- "$scratch/elf32"
error 'foreign architecture'   1 'elf-arm'                   "$inlay" run null -- "$scratch/elf-arm"
error 'output not writable'    1 '/nonexistent'              "$inlay" run inscount -o /nonexistent/x -- true

check 'status is the program'"'"'s' 7 ''                      "$inlay" run null -- sh -c 'echo; exit 7'
check 'dies by the same signal' 143 ''                       sh -c "'$inlay' run null -- sh -c 'kill -TERM \$\$'; s=\$?; echo; exit \$s"
check 'output to a file'       0 'instructions'              sh -c "'$inlay' run inscount -o '$scratch/o' -- true && cat '$scratch/o'"
check 'output as JSON'         0 '"instructions"'            "$inlay" run inscount --format=json -- true
check 'options before the name' 0 '"instructions"'           "$inlay" run --format json inscount -- true
check 'no ptrace'              0 'hello'                     "$inlay" run null --no-ptrace -- echo hello
check 'no ptrace, status'      5 ''                          "$inlay" run --no-ptrace null -- sh -c 'echo; exit 5'
check 'no ptrace, count'       0 'instructions'              "$inlay" run inscount --no-ptrace -- true
check 'code as text'           0 'write: calls = [1-9]'      "$inlay" snippet write 'static long calls; if ($arg0 == 1) calls++' -- ls /
check 'code that is wrong'     0 "10: 'nothing' is not known" "$inlay" snippet write 'if (1) { nothing++ }' -- ls /
check 'code without a program' 2 'usage: inlay snippet'      "$inlay" snippet write 'x'
check 'image filter'           0 ' 0 instructions'           "$inlay" run inscount --image 'nothing*' -- true
check 'time of calls'          0 '"name": "main".*"cycles": [1-9]' "$inlay" run calls --time --format=json --image plain -- "$build/tests/samples/plain"

# What each tool is linked with must not look at registers: nothing would be dead at exits (src/tool/reads.c).
check 'tools look at no registers' 1 '^0$' sh -c "cd '$build/tools'; for t in bbcount inscount calls memtrace prof branches opcodemix; do nm \$t; done | grep -c tool_reads_registers"

# Translations shown stage by stage, filtered by address; messages.
loop=$build/tests/samples/asm_loop
start=$(nm "$loop" | sed -n 's/ T _start$//p')
dump() {
    name=$1 pattern=$2
    shift 2
    check "dump: $name" 49 "$pattern" "$inlay" run "$@" -- "$loop"
}
dump 'decoded'                 'decoded: 3 instructions'     --dump=decoded "--dump-at=$start" bbcount
dump 'snippets'                'anywhere: (count 1 0x1)'     --dump=snippets "--dump-at=$start" bbcount
dump 'lowered'                 '  inc qword ptr gs:'         --dump=lowered "--dump-at=$start" bbcount
dump 'exits'                   '  jmp .* -> 0x4'             --dump=lowered "--dump-at=$start" bbcount
dump 'bytes'                   '  65 48 ff '                 bbcount --dump=bytes "--dump-at=$start"
dump 'all stages of a place'   ' bytes$'                     null "--dump-at=$start-$start""0"
dump 'other places are not'    'loop'                        null --dump-at=1-2
check 'dump: nothing else'     1 ''                          sh -c "echo; '$inlay' run null --dump-at=1-2 -- '$loop' 2>&1 | grep decoded"
error 'dump: unknown stage'    2 'must be of decoded'        "$inlay" run null --dump=cooked -- true
error 'dump: bad address'      2 'address'                   "$inlay" run null --dump-at=20-10 -- true
for domain in inject image translate cache syscall signal thread; do
    check "log: $domain" 0 "^inlay [0-9]* $domain: " "$inlay" run null --log=$domain -- sh -c '/bin/true; exit 0'
done
check 'log: places'            0 'tool at \[0x'              "$inlay" run null --log=inject -- true
check 'refused: a far jump'    132 'leaves 64-bit mode'      "$inlay" run null -- "$build/tests/samples/oldways" x
if "$build/tests/samples/oldways" table; then # elsewhere such calls are faults, as natively
    check 'refused: a call'    132 'call 13 of the 32-bit table' "$inlay" run null -- "$build/tests/samples/oldways" x
    check 'refused: said once' 0 '^1$'                       sh -c "'$inlay' run null -- '$build/tests/samples/oldways' x 2>&1 | grep -c 32-bit"
fi

# A tool of one's own, by the command and through pkg-config, uninstalled and installed.
cat >"$scratch/mytool.c" <<'C'
#include <inlay.h>
#include <inttypes.h>
static inlay_counter blocks;
static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_insert(inlay_block_entry(block), inlay_count(&blocks, 1));
}
static void report(int status, void *arg)
{
    (void)status, (void)arg;
    fprintf(inlay_out(), "%" PRIu64 " blocks\n", inlay_counter_sum(&blocks));
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "counts blocks");
    inlay_on_block(each_block, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
C
cd "$scratch" || exit 1
# Rewriting: what is wrong is said in one line, nothing is left behind, the input is never touched.
cp /bin/true "$scratch/program"
error 'rewrite: no tool'       2 'no tool named'             "$inlay" rewrite
error 'rewrite: no program'    2 'no program'                "$inlay" rewrite null
error 'rewrite: no output'     2 'no output named'           "$inlay" rewrite null "$scratch/program"
error 'rewrite: two programs'  2 'one program'               "$inlay" rewrite null "$scratch/program" /bin/ls -o "$scratch/x"
error 'rewrite: bad option'    2 'bogus'                     "$inlay" rewrite null --bogus "$scratch/program" -o "$scratch/x"
error 'rewrite: tool missing'  1 "no tool named 'nonesuch'"  "$inlay" rewrite nonesuch "$scratch/program" -o "$scratch/x"
error 'rewrite: input missing' 1 'nonesuch'                  "$inlay" rewrite null ./nonesuch -o "$scratch/x"
error 'rewrite: a folder'      1 'folder'                    "$inlay" rewrite null "$scratch/folder" -o "$scratch/x"
error 'rewrite: data file'     1 'not an ELF file'           "$inlay" rewrite null "$scratch/data" -o "$scratch/x"
error 'rewrite: truncated'     1 'truncated'                 "$inlay" rewrite null "$scratch/truncated" -o "$scratch/x"
error 'rewrite: 32-bit'        1 'elf32'                     "$inlay" rewrite null "$scratch/elf32" -o "$scratch/x"
error 'rewrite: foreign'       1 'elf-arm'                   "$inlay" rewrite null "$scratch/elf-arm" -o "$scratch/x"
error 'rewrite: onto itself'   1 'this is the input'         "$inlay" rewrite null "$scratch/program" -o "$scratch/program"
error 'rewrite: no folder'     1 'cannot write'              "$inlay" rewrite null "$scratch/program" -o "$scratch/none/x"
mkfifo "$scratch/pipe.o"
check 'object: a pipe'          1 'not a regular file'        timeout 20 "$inlay" object --all "$scratch/pipe.o" -o "$scratch/objects"
error 'rewrite: no result'     2 '--result: lacks its value' "$inlay" rewrite null "$scratch/program" -o "$scratch/x" --result ''
error 'trace: a pipe'          1 'no recording\|not a recording' timeout 20 "$inlay" trace report "$scratch/pipe.o"
error 'trace: no value'        2 "'--event=' is not known .*or lacks its value" "$inlay" trace --event= -o "$scratch/wrong" -- true
error 'trace: program for value' 2 "'--event' is not known .*or lacks its value" "$inlay" trace --event -- true
check 'rewrite: interrupted'   0 'no folder\|had ended'       sh -c 'timeout -s INT 0.3 "$0" rewrite bbcount "$1" --with-libs "$2"
    if [ $? -ne 124 ]; then echo had ended; elif [ ! -e "$2" ]; then echo no folder; fi' "$inlay" "$inlay" "$scratch/interrupted"
error 'rewrite: full disk'     1 'not a regular file'        "$inlay" rewrite null "$scratch/program" -o /dev/full
error 'rewrite: a library'     1 'cannot carry a tool'       "$inlay" rewrite bbcount /usr/lib/x86_64-linux-gnu/libz.so.1 -o "$scratch/x"
error 'attach: no process'     2 'no process named'         "$inlay" attach inscount
error 'attach: not a number'   2 'not the number'           "$inlay" attach inscount cat
error 'attach: two processes'  2 'one process'              "$inlay" attach inscount 1 2
error 'attach: for rewriting'  2 'are for rewriting'        "$inlay" attach inscount --with-libs "$scratch/r" 1
check 'live'                   0 'instructions'             "$inlay" run --engine=live inscount -- echo hello
check 'live, status'           5 'ends'                     "$inlay" run --engine=live null -- sh -c 'echo ends; exit 5'
error 'live: no such engine'   2 'must be jit or live$'     "$inlay" run --engine=x inscount -- true
error 'live: a file'           2 'is another file'          "$inlay" run --engine=rewrite inscount -- true
check 'engines in help'        0 '--engine=jit|live '       "$inlay" run null --help
error 'live: no ptrace'        2 'by ptrace'                "$inlay" run --engine=live --no-ptrace inscount -- true
error 'live: for rewriting'    2 'are for rewriting'        "$inlay" run --engine=live --with-libs "$scratch/r" inscount -- true
error 'live: attach'           2 'is for running'           "$inlay" attach inscount --engine=live 1
error 'attach: no such'        1 'there is no process'      "$inlay" attach inscount 4194305
check 'rewrite: nothing left'  0 'clean'                     sh -c "cmp /bin/true '$scratch/program' && ls '$scratch' | grep -q '^x' || echo clean"
check 'rewrite: report, map'   0 'procedures moved'          "$inlay" rewrite bbcount "$scratch/program" -o "$scratch/out1" --report "$scratch/r" --map "$scratch/m"
error 'rewrite: two outputs'   1 'named for two outputs'     "$inlay" rewrite null "$scratch/program" -o "$scratch/x" --report "$scratch/./x"
error 'rewrite: once more'     1 'rewritten before'          "$inlay" rewrite null "$scratch/out1" -o "$scratch/x"
check 'rewrite: it runs'       0 'blocks executed'           "$scratch/out1"
check 'rewrite: result file'   0 '"tool": "bbcount"'         sh -c "'$inlay' rewrite bbcount --format=json --result '$scratch/res' '$scratch/program' -o '$scratch/out2' && '$scratch/out2' && cat '$scratch/res'"
check 'rewrite: INLAY_OUT'     0 '"tool": "bbcount"'         sh -c "INLAY_OUT='$scratch/res2' '$scratch/out2' && cat '$scratch/res2'"
# Several processes, one name.
check 'rank of Open MPI'       0 '^ranks.2$'                 sh -c "cd '$scratch' && OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=2 '$inlay' run inscount -o ranks -- true && ls ranks*"
check 'rank of MPICH'          0 '^ranks.0$'                 sh -c "cd '$scratch' && PMI_RANK=0 PMI_SIZE=2 '$inlay' run inscount -o ranks -- true && ls ranks*"
check 'rank of Slurm'          0 '^ranks.7$'                 sh -c "cd '$scratch' && SLURM_PROCID=7 SLURM_STEP_NUM_TASKS=9 '$inlay' run inscount -o ranks -- true && ls ranks*"
check 'alone in its world'     0 '^alone$'                   sh -c "cd '$scratch' && OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0 '$inlay' run inscount -o alone -- true && ls alone*"
check 'rank, a child'          0 '^child.1.[0-9]*$'          sh -c "cd '$scratch' && PMIX_RANK=1 '$inlay' run inscount -o child -- sh -c '/bin/true; :' && ls child*"
check 'rank, rewritten'        0 '^carried.4$'               sh -c "cd '$scratch' && PMIX_RANK=4 INLAY_OUT=carried '$scratch/out2' && ls carried*"
# meets N: tells that it is there, and ends when N are.
cat >"$scratch/meets.py" <<'PY'
import os, sys, time
open(f"here.{os.getpid()}", "w").close()
end = time.monotonic() + 100
while sum(name.startswith("here.") for name in os.listdir(".")) < int(sys.argv[1]) and time.monotonic() < end: time.sleep(0.02)
PY
check 'at once: three files'   0 '^3$'                       sh -c "cd '$scratch' && for i in 1 2 3; do '$inlay' run inscount -o once -- /usr/bin/python3 -S meets.py 3 & done; wait; grep -l '^python3[.0-9]*: [0-9]' once* | wc -l"
check 'at once: said'          0 'once is being written by another process; this one writes once.[0-9]' sh -c "cd '$scratch' && rm -f here.* once*; '$inlay' run inscount -o once -- /usr/bin/python3 -S meets.py 2 & cd '$scratch'; while ! ls here.* >/dev/null 2>&1; do sleep 0.02; done; '$inlay' run inscount -o once -- true; touch here.2; wait"
check 'again: the same file'   0 '^again$'                   sh -c "cd '$scratch' && '$inlay' run inscount -o again -- true && '$inlay' run inscount -o again -- true && ls again* && test \$(wc -l <again) = 1"
if unshare -pf true 2>/dev/null; then
    check 'process numbers twice' 0 '^2$'                    sh -c "cd '$scratch' && '$inlay' run inscount -o twice -- sh -c 'for i in 1 2; do unshare -pf sh -c \"/bin/true; :\"; done' && ls twice.1 twice.1.2 | wc -l"
fi
# Patterns that match nothing, points that do not exist.
cat >"$scratch/refused.c" <<'C'
#include <inlay.h>
static void each(inlay_block *b, void *arg)
{
    (void)arg;
    inlay_insn *last = inlay_block_last(b);
    if (inlay_insn_is_branch(last)) inlay_insert(inlay_after(last), inlay_const(0));
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "asks for what there is not");
    inlay_on_block(each, NULL);
    return inlay_start();
}
C
check 'a tool that is refused' 0 ''                          sh -c "'$inlay' cc '$scratch/refused.c' -o '$scratch/refused' && echo"
check 'refused: said'          0 'cannot insert: there is no point after' "$inlay" run "$scratch/refused" -- true
check 'refused: --strict'      1 'ended (--strict)'          "$inlay" run "$scratch/refused" --strict -- true
nested='$arg0'
for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do nested="(\$arg0 == $n ? \$arg1 + $n : $nested)"; done
check 'refused when woven'     0 'cannot insert in setlocale (.*: a snippet needs more registers' "$inlay" snippet setlocale "static long n; n += $nested" -- ls "$scratch"
check 'rewrite: refused'       0 '[1-9][0-9]* points refused' "$inlay" rewrite "$scratch/refused" "$scratch/program" -o "$scratch/out4"
check 'live: refused'          0 '[1-9][0-9]* points refused' "$inlay" run --engine=live "$scratch/refused" -- "$scratch/program"
check 'live: --strict'         1 'refused (--strict)'        "$inlay" run --engine=live "$scratch/refused" --strict -- "$scratch/program"
check 'rewrite: --strict'      1 'not written.*--strict'     "$inlay" rewrite "$scratch/refused" --strict "$scratch/program" -o "$scratch/out5"
check 'rewrite: none written'  0 'clean'                     sh -c "test ! -e '$scratch/out5' && echo clean"
check 'strict, all inserted'   0 'procedures moved'          "$inlay" rewrite bbcount --strict "$scratch/program" -o "$scratch/out6"
check 'strict before the tool' 0 'instructions'              "$inlay" run --strict inscount -- true
check 'cache: help'            0 'usage: inlay cache'        sh -c "'$inlay' cache --help 2>/dev/null"
check 'no such image'          0 "warning: --image 'no\*such' matches no image" "$inlay" run inscount --image 'no*such' -- true
check 'snippet: nearly a name'    0 "no point 'maloc' has been met; near it are 'malloc'" "$inlay" snippet maloc 1 -- true
cat >"$scratch/shop.cc" <<'end'
namespace shop {
struct basket { __attribute__((noinline, noclone)) int total(int n) const { __asm__ volatile("" : "+r"(n)); return n; } };
template <typename t> __attribute__((noinline, noclone)) t area(t a) { __asm__ volatile("" : "+r"(a)); return a; }
}
int main() { return shop::basket().total(1) - shop::area<long>(1); }
end
c++ -g -O1 "$scratch/shop.cc" -o "$scratch/shop"
for near in 'basket::totl shop::basket::total' 'area shop::area<long>' 'shop::aera shop::area<long>'; do
    check "snippet: near ${near% *}" 0 "'${near% *}' has been met; near it are '${near#* }'" "$inlay" snippet "${near% *}" 1 -- "$scratch/shop"
done
check 'snippet: behind the last line' 0 "'shop.cc:99' has been met; the file has no code there, nor behind it" "$inlay" snippet shop.cc:99 1 -- "$scratch/shop"
check 'snippet: no such file'      0 "'shep.cc:5' has been met; no debug information tells of a file" "$inlay" snippet shep.cc:5 1 -- "$scratch/shop"
cat >"$scratch/clone.c" <<'end'
void odd(int *) __asm__("_Z3oddPi.constprop.0");
__attribute__((noinline, noclone)) void odd(int *p) { ++*p; }
int main(void) { int n = 0; odd(&n); return n - 1; }
end
cc -O1 "$scratch/clone.c" -o "$scratch/clone"
check 'snippet: a clone is another' 0 "no point 'odd' .*there is 'odd(int\*) \[clone .constprop.0\]' (clone)" \
    "$inlay" snippet odd 1 -- "$scratch/clone"
check "snippet: a clone's name" 0 'n = 1' \
    "$inlay" snippet 'odd(int*) [clone .constprop.0]' 'static long n; n++' -- "$scratch/clone"
check 'snippet: not executed'  0 "no point 'pwrite:exit' has been met: 'pwrite' (libc.so.6) is there, but has not been executed" "$inlay" snippet pwrite:exit 1 -- true
check 'snippet: not looked at' 0 "no point 'write' has been met: 'write' (libc.so.6) is left out" "$inlay" snippet --image=echo write 1 -- echo
check 'snippet: not so one'    0 "no point 'write:loops' has been met: 'write' (libc.so.6) has none of that kind" "$inlay" snippet write:loops 1 -- echo
check 'snippet: left alone'    0 'main (kernel): no code can be put in: it holds a restart' "$inlay" rewrite snippet --at=main --code=1 "$build/tests/samples/kernel" -o "$scratch/left"
check 'snippet: runs too early' 0 'strlen (libc.*: no code can be put in: runs before the tool' "$inlay" rewrite snippet --at=strlen --code=1 --with-libs "$scratch/early" /bin/true
check 'live: not so one'       0 "no point 'write:loops' has been met: 'write' (libc.so.6) has none of that kind" "$inlay" snippet --engine=live write:loops 1 -- echo
check 'snippet: JSON, a line'  0 '^{"tool": "snippet".*"value": "1"}]}$' "$inlay" snippet --format=json write 'static long n; n++' -- echo
check 'null: JSON'             0 '^null true [1-9]' sh -c "'$inlay' run --format=json -o '$scratch/null' null -- true && /usr/bin/python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r[\"tool\"], r[\"program\"], r[\"pid\"])' '$scratch/null'"
check 'null: text'             0 '^0$'                       sh -c "'$inlay' run null -- true 2>&1 | wc -l"
check 'exec without a name'    0 '^null: what is executed through descriptor [0-9]* runs without the tool: its file has no name' "$inlay" run null -- /usr/bin/python3 -S -c 'import os; f = os.memfd_create("true"); os.write(f, open("/bin/true", "rb").read()); os.execve(f, ["true"], {})'
check 'exec alone: a report'   0 '^python3[.0-9]*: [1-9][0-9]* blocks executed' "$inlay" run bbcount -- /usr/bin/python3 -S -c 'import os; f = os.memfd_create("true"); os.write(f, open("/bin/true", "rb").read()); os.execve(f, ["true"], {})'
check 'no such procedure'      0 "warning: --proc 'nosuch' matches no procedure" "$inlay" run inscount --proc malloc --proc nosuch -- true
check 'no such, by letter'     0 "warning: -F 'nosuch' matches no procedure" "$inlay" trace -o "$scratch/F.trace" -F nosuch -- true
check 'no such, joined'        0 "warning: -N 'nosuch' matches no procedure" "$inlay" run -Nnosuch inscount -- true
check 'such a procedure'       0 '^1$'                       sh -c "'$inlay' run inscount --image 'libc*' --proc malloc --proc pthread_create -- true 2>&1 | wc -l"
check 'rewrite: no such image' 0 "warning: --image 'no\*such' matches no image" "$inlay" rewrite inscount --image 'no*such' "$scratch/program" -o "$scratch/out7"
check 'rewrite: no such proc'  0 "warning: --proc 'nosuch' matches no procedure" "$inlay" rewrite inscount --proc nosuch "$scratch/program" -o "$scratch/out7"
# A jump to a number that only the run knows: its procedure stays where it is. In a larger program a loop of some
# kilobytes is named from a hundredth of the code on.
cat >"$scratch/leaps.c" <<'C'
#define TEXT(x) #x
#define REPEATED(times) ".rept " TEXT(times) "\n\tincl %0\n\t.endr"
int volatile way;
__attribute__((noinline)) int leaps(long n)
{
    int r = 1;
    __asm__ volatile("lea 1f(%%rip), %%rcx\n\tadd %1, %%rcx\n\tjmp *%%rcx\n1:\t" REPEATED(TIMES)
                     : "+r"(r) : "r"(n) : "rcx");
    return r;
}
int others(void)
{
    int r;
    __asm__ volatile("xor %0, %0\n\t" REPEATED(OTHERS) : "=r"(r));
    return r;
}
int main(void) { return leaps(way) == TIMES + 1 && others() == OTHERS ? 0 : 1; }
C
check 'jumps that are not known' 0 ''                        sh -c "gcc -O2 -s -DTIMES=3 -DOTHERS=0 '$scratch/leaps.c' -o '$scratch/leaps' && echo"
check 'rewrite: what is left'  0 "not instrumented, however often it runs: .*the largest: sub_[0-9a-f]* ([0-9]* bytes: " "$inlay" rewrite inscount "$scratch/leaps" -o "$scratch/out8"
check 'jumps in a larger program' 0 ''                       sh -c "gcc -O2 -DTIMES=3000 -DOTHERS=30000 '$scratch/leaps.c' -o '$scratch/larger' && echo"
check 'live: what is left'     0 "larger: not instrumented, however often it runs: [1-9].* %.*the largest: leaps ([0-9]* bytes: " "$inlay" run --engine=live inscount -- "$scratch/larger"
check 'rewrite: --rewrite=OUT' 0 'blocks executed'           sh -c "'$build/tools/bbcount' --rewrite='$scratch/out3' -- '$scratch/program' && '$scratch/out3'"

check 'inlay cc'               0 ''                          sh -c "'$inlay' cc -Wall mytool.c -o mytool && echo"
printf '#include <inlay.h>\nint main(int n, char **v) { inlay_init(&n, &v, "strict"); return inlay_start(); }\n' >"$scratch/strict.c"
for dialect in c99 c11 c17; do
    check "strict $dialect"        0 made                        sh -c "'$inlay' cc -std=$dialect -Wall -Wextra -Werror '$scratch/strict.c' -o '$scratch/strict' && '$scratch/strict' -- true && echo made"
done
check 'main in a library'      0 made                        sh -c "gcc -fPIE -I'$tests/../include' -c '$scratch/strict.c' -o '$scratch/strict.o' && ar rc '$scratch/libstrict.a' '$scratch/strict.o' && '$inlay' cc '$scratch/libstrict.a' -o '$scratch/strict' && '$scratch/strict' -- true && echo made"
(cd "$tests/../include" && ls inlay.h inlay/*.h) | sed 's/.*/#include <&>/' >"$scratch/headers.cc"
for compiler in 'gcc -x c -std=c11' 'g++ -std=c++11' 'clang++ -std=c++17'; do
    check "headers: $compiler" 0 made                       sh -c "$compiler -Wall -Wextra -Werror -fsyntax-only -I'$tests/../include' '$scratch/headers.cc' && echo made"
done
check 'a compiler of two words' 0 ''                         sh -c "CC='env gcc' '$inlay' cc -Wall mytool.c -o mytool && ./mytool --help | grep -q . && echo"
# What the tool itself finds wrong with its options.
for engine in jit live; do
    for wrong in -Afib@arg1/q -Rfib/y --every=0 --threshold=5; do
        error "trace: $wrong, $engine" 2 "trace: ${wrong%%[f=]*}.*: \|is no time" "$inlay" trace "--engine=$engine" -o "$scratch/wrong" "$wrong" -- true
    done
    error "trace: half a prototype, $engine" 2 "'double pow(': the prototype ends without" "$inlay" trace "--engine=$engine" -o "$scratch/wrong" -A 'double pow(' -- true
    check "trace: refused, $engine" 0 '^held$' sh -c "echo held >'$scratch/held'; '$inlay' trace --engine=$engine -o '$scratch/held' --every=0 -- true; cat '$scratch/held'"
    error "trace: --clock=none, $engine" 2 'counts all calls'    "$inlay" run "--engine=$engine" trace --clock=none --thin=5 -- true
done
check 'trace: --every=1'       0 '-'                         sh -c "'$inlay' trace --every=1 --clock=none -o '$scratch/once' -- true; echo -"
check 'trace: a pattern'       0 "'f(\*' matches no"         "$inlay" trace -A 'f(*' -o "$scratch/once" -- true
error 'trace: no such event'   2 "'foo' is"                  "$inlay" trace --event=foo -o "$scratch/wrong" -- true
check 'run trace: no such'     2 "'foo' is no event"         "$inlay" run -o "$scratch/wrong" trace --event=foo -- true
error 'trace encode: no such'  2 "'foo' is"                  "$inlay" trace encode foo
check 'help of trace encode'   0 'usage: inlay trace encode' "$inlay" trace encode --help
error 'rewrite: wrong option'  2 'at least 1'                "$inlay" rewrite trace --every=0 "$scratch/program" -o "$scratch/wrong"
error 'options that exclude'   2 'goes with neither'         "$inlay" run memtrace --compact --hash -- true
check 'own tool runs'          0 '[0-9] blocks'              "$inlay" run ./mytool -- true
check 'own tool by itself'     0 '[0-9] blocks'              ./mytool -- true
# A routine that hangs as soon as there is a file armed, or, with --slow, takes a while: the process can be ended
# all the same.
cat >"$scratch/hangs.c" <<'C'
#include <inlay.h>
#include <unistd.h>
static bool only_slow;
static int calls;
static void routine(void)
{
    static volatile int forever = 1;
    if (++calls % 1000 || access("armed", F_OK) != 0 || access("hanging", F_OK) == 0) return;
    fclose(fopen("hanging", "w"));
    while (forever && !(only_slow && access("go-on", F_OK) == 0)) {}
}
static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    inlay_insert(inlay_block_entry(block), inlay_call(routine));
}
int main(int argc, char **argv)
{
    inlay_option_flag(&only_slow, "slow", 0, "hangs until there is a file go-on");
    inlay_init(&argc, &argv, "hangs");
    inlay_on_block(each_block, NULL);
    return inlay_start();
}
C
# hang SIGNALS COMMAND...: runs it, and sends it the signals once its routine hangs: each when the one before has been taken
# from the kernel. `wait` is some time.
cat >"$scratch/hang" <<'C'
#!/bin/sh
signals=$1
shift
rm -f armed hanging go-on
"$@" & hung=$!
while [ ! -e hanging ]; do sleep 0.1; done
for signal in $signals; do
    case $signal in
    go) touch go-on ;;
    wait) sleep 3 ;;
    *) kill -$signal $hung ;;
    esac
    while grep -q '^S[hi][dg]Pnd:.*[1-9a-f]' /proc/$hung/status; do sleep 0.02; done 2>/dev/null
done
wait $hung
C
chmod +x "$scratch/hang"
loop='>armed; for ((i = 0; i < 100000 && ! stop; i++)); do :; done; sleep 0.1; echo ended'
handles="stop=0; trap 'echo term; stop=1' TERM; trap 'echo hup' HUP; $loop"
plain="stop=0; $loop"
(cd "$scratch" && "$inlay" cc hangs.c -o hangs && "$inlay" rewrite ./hangs /bin/bash -o hanging-bash &&
    "$inlay" rewrite ./hangs --slow /bin/bash -o slow-bash) >"$scratch/log" 2>&1 || cat "$scratch/log"
check 'hangs: one signal'      143 'the tool hangs in'           ./hang TERM "$inlay" run ./hangs -- bash -c "$plain"
check 'hangs: rewritten'       143 'the tool hangs in'           ./hang TERM ./hanging-bash -c "$plain"
check 'hangs: signals again'   143 'the tool hangs in'           ./hang 'HUP wait TERM' "$inlay" run ./hangs -- bash -c "$handles"
check 'slow: all arrive'       0 '^hup$'                     ./hang 'HUP TERM HUP go' "$inlay" run ./hangs --slow -- bash -c "$handles"
check 'slow: in the end'       0 '^ended$'                   ./hang 'HUP TERM HUP go' "$inlay" run ./hangs --slow -- bash -c "$handles"
check 'slow: rewritten'        0 '^ended$'                   ./hang 'HUP TERM HUP go' ./slow-bash -c "$handles"
# What is ended while a compiler works ends that, and leaves no folder behind.
cat >"$scratch/slow-cc" <<'C'
#!/bin/sh
case "$*" in *print*) exec gcc "$@" ;; esac
touch compiling
exec sleep 60
C
cat >"$scratch/ended" <<'C'
#!/bin/sh
rm -rf compiling left
mkdir left
TMPDIR=$PWD/left CC=./slow-cc "$@" & ended=$!
while [ ! -e compiling ]; do sleep 0.02; done
kill -TERM $ended
wait $ended
echo ended $? $(ls left)
C
# Nor what has something to say that nobody reads any more.
cat >"$scratch/unread" <<'C'
#!/bin/sh
rm -rf left
mkdir left
{ sleep 0.1; TMPDIR=$PWD/left "$@"; } 2>&1 | true
echo unread $(ls left)
C
chmod +x "$scratch/slow-cc" "$scratch/ended" "$scratch/unread"
check 'atom: ended meanwhile'  0 '^ended 143$'               ./ended "$inlay" atom "$scratch/program" mytool.c mytool.c -o atomed
check 'atom: unread'           0 '^unread$'                  ./unread "$inlay" atom "$scratch/program" not-c not-c -o atomed
check 'wrap: ended meanwhile'  0 '^ended 143$'               ./ended "$inlay" wrap ./slow-cc "$scratch/leaps.c" -o wrapped
check 'install'                0 ''                          sh -c "DESTDIR='$scratch/root' meson install -C '$build' --no-rebuild --quiet && echo"
check 'install: a blank'       0 "^meson configure .* '-Dprefix=/a b'$" make -n -C "$tests/.." BUILD="$build" install PREFIX='/a b'
prefix=$(find "$scratch/root" -name inlay.pc | sed 's,/lib/pkgconfig/inlay.pc,,')
check 'installed command'      0 '^null '                    "$prefix/bin/inlay" tools
check 'installed tool runs'    0 'instructions'              "$prefix/bin/inlay" run inscount -- true
check 'installed cc'           0 ''                          sh -c "'$prefix/bin/inlay' cc mytool.c -o mytool2 && echo"
check 'pkg-config'             0 ''                          sh -c "export PKG_CONFIG_PATH='$prefix/lib/pkgconfig'; cc mytool.c -o mytool3 \$(pkg-config --cflags --libs --static inlay) && echo"
check 'pkg-config tool runs'   0 '[0-9] blocks'              "$prefix/bin/inlay" run ./mytool3 -- true
# Names of C++ and Rust.
if [ -x "$build/tests/samples/throw" ]; then
    throw=$build/tests/samples/throw
    cat >"$scratch/names.c" <<'C'
#include <inlay.h>
static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    fprintf(inlay_out(), "%s\n", inlay_proc_display_name(proc));
}
int main(int argc, char **argv)
{
    inlay_init(&argc, &argv, "names procedures");
    inlay_on_proc(each_proc, NULL);
    return inlay_start();
}
C
    cat >"$scratch/rust.c" <<'C'
int cmp(int) __asm__("_ZN29_$LT$a..B$u20$as$u20$c..D$GT$3cmp17h0123456789abcdefE");
int cmp(int n) { return n - 1; }
int go(int) __asm__("_RNvYINtCs1234_1m1SAhj3_ENtB5_2Tr2go");
int go(int n) { return cmp(n); }
int main(int argc, char **argv)
{
    (void)argv;
    return go(argc);
}
C
    cc -O0 "$scratch/rust.c" -o "$scratch/rust"
    check 'names are demangled'    0 ' deep(int)'             "$inlay" run prof --image throw -- "$throw"
    check 'names in JSON'          0 '"name": "_ZL4deepi.*"demangled": "deep(int)' "$inlay" run calls --format=json --image throw -- "$throw"
    check 'Rust names'             0 ' <a::B as c::D>::cmp'   "$inlay" run prof --image rust -- "$scratch/rust"
    check 'newer Rust names'       0 ' <m::S<\[u8; 3\]> as m::Tr>::go'   "$inlay" run prof --image rust -- "$scratch/rust"
    check 'own tool demangles'     0 '^deep(int)'             sh -c "'$inlay' cc names.c -o names && ./names --image throw -- '$throw'"
    check 'pkg-config: demangles'  0 '^deep(int)'             sh -c "export PKG_CONFIG_PATH='$prefix/lib/pkgconfig'; cc names.c -o names2 \$(pkg-config --cflags --libs --static inlay) && ./names2 --image throw -- '$throw'"
fi
cat >"$scratch/completes" <<SH
#!/bin/bash
. "$prefix/share/bash-completion/completions/inlay"
COMP_WORDS=("$prefix/bin/inlay" "\$@")
COMP_CWORD=\$#
_inlay
echo "\${COMPREPLY[@]}"
SH
chmod +x "$scratch/completes"
check 'completion: commands'   0 '^count$'                   "$scratch/completes" cou
check 'completion: tools'      0 '^inscount$'                "$scratch/completes" run insc
check 'completion: options'    0 '^--format$'                "$scratch/completes" count --form
check 'completion: trace'      0 '^report$'                  "$scratch/completes" trace rep
check 'completion: events'     0 '^page-faults$'             "$scratch/completes" trace --event page
check 'completion: reports'    0 '^--asked-for$'             "$scratch/completes" trace report --ask
check 'completion: forms'      0 '^perfetto$'                "$scratch/completes" trace export perf
check 'completion: processes'  0 "\\(^\\| \\)$$\\( \\|\$\\)"              "$scratch/completes" count -p ''
check 'help of count'          0 'usage: inlay count'        "$inlay" count --help
check 'installed count'        2 'no process is named'       "$prefix/bin/inlay" count malloc
check 'man page'               0 'INLAY'                     sh -c "man -l '$tests/../docs/inlay.1' 2>/dev/null || cat '$tests/../docs/inlay.1'"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
