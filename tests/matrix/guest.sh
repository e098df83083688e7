#!/bin/busybox sh
# The first process of a machine of the matrix (run.py): does everything that is to be shown on this processor,
# tells failures on the console in lines that begin with '@', and switches off. /matrix holds what there is to do:
#
#   units      unit tests, in /units
#   commands   NAME|COMMAND, to be run natively, under tools and rewritten
#   tools      TOOL ARGUMENTS
#   rewrite    names of commands whose program is rewritten as well
#   writes     present: what is rewritten here goes to the disk, for other machines
#   rights     present: who may trace whom is all that is shown here (rights.sh)
#
# and /written/WHERE/TOOL.NAME are programs that were rewritten on another processor.
/bin/busybox mkdir -p /proc /sys /tmp /dev /root
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/sbin LC_ALL=C HOME=/root TZ=UTC
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /tmp/native /tmp/here /tmp/rewritten
cd /tmp
passed=0
failed=0

# Status and output go to a file; what hangs is ended.
outcome() { # FILE COMMAND...
    to=$1
    shift
    rm -rf /tmp/work
    mkdir /tmp/work
    (cd /tmp/work && timeout 120 "$@" >"$to" 2>"$to.err" </dev/null)
    echo "status $?" >>"$to"
}

count() { # LABEL PROBLEM
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "@FAIL $1: $2"
    fi
}

same() { # LABEL NATIVE HERE
    if cmp -s "$2" "$3"; then
        count "$1" ""
    else
        count "$1" "$(diff "$2" "$3" | grep '^[-+]' | head -6 | tr '\n' ';') $(head -n 3 "$3.err" | tr '\n' ';')"
    fi
}

command_of() { sed -n "s/^$1|//p" /matrix/commands; }

# The command with another file for its program.
instead() { # FILE COMMAND
    file=$1
    shift
    eval "set -- $*"
    shift
    printf '%s' "$file"
    for word in "$@"; do printf " '%s'" "$word"; done
}

refused() {
    for tool in null inscount; do
        outcome /tmp/here/refused /inlay/$tool -- /bin/plain
        said=$(cat /tmp/here/refused.err)
        wrong=""
        [ "$(cat /tmp/here/refused)" = "status 1" ] || wrong="it says $(cat /tmp/here/refused)"
        case $said in
        *FSGSBASE*) [ "$(echo "$said" | wc -l)" = 1 ] || wrong="more than a line: $said" ;;
        *) wrong="no word of FSGSBASE: $said" ;;
        esac
        count "refused: $tool" "$wrong"
    done
    # (What carries no tool needs nothing.)
    for file in /written/*/inscount.plain; do
        outcome /tmp/here/refused "$file"
        wrong=""
        grep -q FSGSBASE /tmp/here/refused.err || wrong="no word of FSGSBASE: $(cat /tmp/here/refused.err)"
        grep -q 'status 1$' /tmp/here/refused || wrong="it says $(tail -n 1 /tmp/here/refused)"
        count "refused: $file" "$wrong"
    done
}

units() {
    for unit in $(cat /matrix/units); do
        outcome /tmp/here/unit /units/$unit
        case $(tail -n 1 /tmp/here/unit) in
        "status 0" | "status 77") count "$unit" "" ;;
        *) count "$unit" "$(grep -h -A 3 -E 'ERROR|status' /tmp/here/unit /tmp/here/unit.err | head -8 | tr '\n' ';')" ;;
        esac
    done
}

natively() {
    while IFS='|' read -r name command; do
        outcome /tmp/native/$name sh -c "exec $command"
    done </matrix/commands
}

# A tool's commands: all, or those that its list names.
takes() { # TOOL NAME
    [ ! -e /matrix/only.$1 ] || grep -q -x "$2" /matrix/only.$1
}

under_tools() {
    while read -r tool arguments; do
        while IFS='|' read -r name command; do
            takes $tool $name || continue
            outcome /tmp/here/$name sh -c "exec /inlay/$tool $arguments -- $command"
            same "$name [$tool]" /tmp/native/$name /tmp/here/$name
        done </matrix/commands
    done </matrix/tools
}

rewrites() {
    while read -r tool arguments; do
        for name in $(cat /matrix/rewrite); do
            takes $tool $name || continue
            eval "set -- $(command_of $name)"
            program=$(command -v "$1")
            if inlay rewrite /inlay/$tool "$program" -o /tmp/rewritten/$tool.$name 2>/tmp/here/rewrite; then
                run_written /tmp/rewritten/$tool.$name here $tool $name
            else
                count "$name [rewrite $tool]" "$(head -n 2 /tmp/here/rewrite)"
            fi
        done
    done </matrix/tools
}

run_written() { # FILE WHERE TOOL NAME
    export INLAY_OUT=/tmp/here/result
    outcome /tmp/here/$4 sh -c "exec $(instead "$1" "$(command_of $4)")"
    unset INLAY_OUT
    same "$4 [$3, rewritten: $2]" /tmp/native/$4 /tmp/here/$4
}

written_elsewhere() {
    # (What carries no tool needs nothing.)
    for file in /written/*/*; do
        [ -f "$file" ] || continue
        base=${file##*/}
        where=${file%/*}
        run_written "$file" "on ${where##*/}" ${base%%.*} ${base#*.}
    done
}

rights() {
    mkdir -p /etc
    printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n' >/etc/passwd
    chmod 1777 /tmp
    scopes=/proc/sys/kernel/yama/ptrace_scope
    [ -e $scopes ] || count "Yama" "this kernel has none"
    for scope in 0 1 2 3; do # the last one stays
        echo $scope >$scopes
        for user in nobody root; do
            su $user -c "PATH=$PATH sh /matrix/rights.sh $scope" >/tmp/rows
            while IFS='|' read -r label problem; do count "$label" "$problem"; done </tmp/rows
        done
    done
}

stage() { # FUNCTION
    echo "# $1 at $(cut -d' ' -f1 /proc/uptime) s"
    $1
}

if [ -e /matrix/rights ]; then
    stage rights
elif grep -q -w fsgsbase /proc/cpuinfo; then
    stage units
    stage natively
    stage under_tools
    stage written_elsewhere
    if [ -e /matrix/writes ]; then
        stage rewrites
        tar -C /tmp/rewritten -cf /dev/nvme0n1 .
    fi
else
    refused
fi
sync
echo "@DONE $passed passed, $failed failed"
poweroff -f
