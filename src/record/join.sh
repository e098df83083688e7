#!/bin/sh
# join.sh COMPILER OUT.a FOLDER OBJECT...: one archive of one object, of whose symbols four are everybody's. Without lines, so
# that debuggers step over what it does.
set -e
cc=$1 out=$2 folder=$3
shift 3
mkdir -p "$folder"
"$cc" -r -nostdlib -o "$folder/inlay-trace.o" "$@"
objcopy --strip-debug "$folder/inlay-trace.o" --keep-global-symbol=__inlay_trace_entry_needs_libinlay_trace \
  --keep-global-symbol=__inlay_trace_exit_needs_libinlay_trace \
  --keep-global-symbol=__inlay_trace_keeping_entry_needs_libinlay_trace \
  --keep-global-symbol=__inlay_trace_keeping_exit_needs_libinlay_trace
rm -f "$out"
ar rcsD "$out" "$folder/inlay-trace.o"
