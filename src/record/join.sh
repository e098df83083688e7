#!/bin/sh
# join.sh COMPILER OUT.a FOLDER OBJECT...: one archive of one object, of whose symbols two are everybody's. Without lines, so
# that debuggers step over what it does.
set -e
cc=$1 out=$2 folder=$3
shift 3
mkdir -p "$folder"
"$cc" -r -nostdlib -o "$folder/inlay-trace.o" "$@"
objcopy --strip-debug --keep-global-symbol=__inlay_trace_entry --keep-global-symbol=__inlay_trace_exit "$folder/inlay-trace.o"
rm -f "$out"
ar rcsD "$out" "$folder/inlay-trace.o"
