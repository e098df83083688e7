# Completion of the inlay command for bash: commands, tools, options, processes; elsewhere files and programs.

_inlay_pids() { ps -e -o pid= 2>/dev/null; }

# Of the process that stands behind -p, or of all.
_inlay_threads() {
    local i which=-e
    for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" = -p ] && which="-p ${COMP_WORDS[i + 1]}"
    done
    ps $which -L -o lwp= 2>/dev/null
}

_inlay_tools() { "${COMP_WORDS[0]}" tools 2>/dev/null | cut -d' ' -f1; }

# Options of a command, as its own help has them; inlay trace report and its like have others than inlay trace.
_inlay_options() {
    local part=
    case $1:$2 in
    trace:report | trace:list | trace:tree | trace:browse | trace:graph | trace:diff | trace:export) part=$2 ;;
    esac
    "${COMP_WORDS[0]}" "$1" $part --help 2>/dev/null | grep -oE -e '(^|[ [])--?[a-z][a-z-]*' | tr -d ' ['
}

_inlay_events='page-faults minor-faults major-faults context-switches cpu-migrations task-clock cpu-clock cycles
instructions branches branch-misses cache-references cache-misses ref-cycles L1-dcache-loads L1-dcache-load-misses
LLC-loads LLC-load-misses dTLB-load-misses iTLB-load-misses'

_inlay_commands() { "${COMP_WORDS[0]}" help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'; }

_inlay() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i words=
    for ((i = 2; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" = -- ] && return 1 # the program's own words
    done
    if [ "$COMP_CWORD" = 1 ]; then
        words=$(_inlay_commands)
    elif [ "$before" = -p ]; then
        words=$(_inlay_pids)
    elif [ "$before" = --format ]; then
        words='text json'
    elif [ "$before" = --thread ]; then
        words=$(_inlay_threads)
    elif [ "$command:$before" = break:--then ]; then
        words='continue stop detach'
    elif [ "$command:$before" = trace:--event ]; then
        words=$_inlay_events
    elif [ "$command:$before" = trace:export ]; then
        words='chrome folded callgrind perfetto pprof html uftrace'
    elif [[ $word == -* ]]; then
        words=$(_inlay_options "$command" "${COMP_WORDS[2]}")
    else
        case $command:$COMP_CWORD in
        detach:2 | report:2 | tee:2) words=$(_inlay_pids) ;;
        run:2 | rewrite:2 | attach:2) words=$(_inlay_tools) ;;
        attach:*) words=$(_inlay_pids) ;;
        trace:2) words='report list tree browse graph diff export encode' ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ ${#COMPREPLY[@]} -gt 0 ]
}

complete -o bashdefault -o default -F _inlay inlay
