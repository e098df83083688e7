#!/bin/busybox sh
# What a user may do with whose processes, where Yama says so (guest.sh, as root and as somebody else): rights.sh SCOPE
# (ptrace_scope: 0 one's own, 1 one's children, 2 root all, 3 nobody any). Prints LABEL|PROBLEM for each row, no problem
# where it is as it has to be.
scope=$1
user=$(id -un)
folder=/tmp/rights.$user
mkdir -p $folder
cd $folder || exit 1
starts=no attaches=no
if [ $scope -lt 2 ] || { [ $scope = 2 ] && [ $user = root ]; }; then starts=yes; fi
if [ $scope = 0 ] || { [ $scope -lt 3 ] && [ $user = root ]; }; then attaches=yes; fi

row() { echo "$user, scope $scope: $1|$2"; }

# As natively, or refused with these words.
expect() { # LABEL WORKS WORDS COMMAND...
    label=$1 works=$2 words=$3
    shift 3
    timeout 300 "$@" >out 2>err </dev/null
    status=$?
    said="status $status: $(tail -n 1 out | cut -c 1-200) $(head -n 2 err | tr '\n|' '; ' | cut -c 1-300)"
    if [ $works = yes ]; then
        if [ $status = 0 ]; then row "$label" ""; else row "$label" "$said"; fi
    elif [ $status = 1 ] && grep -q -e "$words" err; then
        row "$label" ""
    else
        row "$label: refused" "$said"
    fi
}

/bin/plain >native
for engine in jit live; do
    works=yes
    [ $engine = jit ] || works=$starts
    expect "run --engine=$engine" $works 'ptrace is not possible here' inlay run --engine=$engine inscount -o report -- /bin/plain
    [ $works = no ] || cmp -s native out || row "run --engine=$engine" "its output differs"
done
expect "count -- PROGRAM" $starts 'trace' inlay count -o counts main -- /bin/plain

sleep 10000 &
process=$!
sleep 1
yama='yama/ptrace_scope'
expect "attach" $attaches "$yama" inlay attach bbcount -o report $process
expect "detach" $attaches "$yama" inlay detach $process
expect "run --attach" $attaches "$yama" inlay run --attach $process bbcount -o report
expect "detach behind it" $attaches "$yama" inlay detach $process
expect "count -p" $attaches "$yama" inlay count -p $process --for 1 'sub_40*'
kill $process
wait $process 2>/dev/null
ended=$?
problem=""
[ $ended = 143 ] || problem="it has ended with $ended"
row "the process goes on" "$problem"
