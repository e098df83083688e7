/* gdb's JIT interface: ELF files in this process's memory that tell of code. Its two symbols, whose names are
 * prescribed, are the tool's: a list of files, and a function in which a debugger that is there has a breakpoint. */
#ifndef INL_RUN_DEBUGGER_H
#define INL_RUN_DEBUGGER_H

#include <stdbool.h>
#include <stdint.h>

/* As gdb has it: struct jit_code_entry. It stays where it is as long as it is told of; links are 0 before. */
typedef struct run_debug_file {
    struct run_debug_file *next, *before;
    uint64_t at, size;
} run_debug_file;

/* It is in the list from now on, or not any more. Nothing is allocated and nothing locked. */
void run_debugger_tell(run_debug_file *, bool is_there);

#endif
