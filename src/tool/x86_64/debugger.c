/* What gdb is told of the border between program and runtime: it has no unwind tables, and the program's registers lie
 * in the thread's block, which GS base leads to. */
#include "tool/debug_info.h"
#include "jit/x86_64/layout.h"
#include "run/kernel.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char unwinder[] =
    "python\n"
    "import gdb, gdb.unwinder\n"
    "class InlayFrame:\n"
    "    def __init__(self, sp, pc):\n"
    "        self.sp, self.pc = sp, pc\n"
    "class Inlay(gdb.unwinder.Unwinder):\n"
    "    names = ['rax', 'rcx', 'rdx', 'rbx', 'rsp', 'rbp', 'rsi', 'rdi',\n"
    "             'r8', 'r9', 'r10', 'r11', 'r12', 'r13', 'r14', 'r15', 'rip']\n"
    "    def __call__(self, frame):\n"
    "        pc = int(frame.read_register('rip'))\n"
    "        in_gate = gate[0] <= pc < gate[1]\n"
    "        if not in_gate and not any(low <= pc < high for low, high in border): return None\n"
    "        block = int(frame.read_register('gs_base')) & (1 << 64) - 1\n"
    "        memory = gdb.selected_inferior()\n"
    "        word = lambda at: int.from_bytes(memory.read_memory(block + at, 8).tobytes(), 'little')\n"
    "        if word(where):\n"
    "            values = {name: word(context + 8 * i) for i, name in enumerate(self.names)}\n"
    "        elif in_gate:\n"
    "            values = {'rip': word(resume), 'rsp': int(frame.read_register('rsp'))}\n"
    "        else:\n"
    "            return None\n"
    "        kind = gdb.lookup_type('unsigned long')\n"
    "        values = {name: gdb.Value(value).cast(kind) for name, value in values.items()}\n"
    "        made = frame.create_unwind_info(InlayFrame(values['rsp'], values['rip']))\n"
    "        for name, value in values.items():\n"
    "            made.add_saved_register(name, value)\n"
    "        return made\n"
    "gdb.unwinder.register_unwinder(None, Inlay('inlay'), True)\n"
    "end\n";
/* clang-format on */

_Static_assert(CTX_PC == OFF_CTX + 16 * 8, "the counter follows the registers");

void debug_border_script(inl_bytes *out)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "python\n"
                     "where, context, resume = %#x, %#x, %#x\n"
                     "gate = (%#lx, %#lx)\n"
                     "border = [(%#lx, %#lx), (%#lx, %#lx)]\n"
                     "end\n",
                     OFF_WHERE, OFF_CTX, OFF_SYSCALL_RESUME, (unsigned long)jit_syscall_gate,
                     (unsigned long)jit_gate_after + 1, (unsigned long)run_leave_code, (unsigned long)run_enter_end,
                     (unsigned long)run_blocking_check, (unsigned long)run_blocking_interrupted);
    inl_bytes_put(out, text, (size_t)n);
    inl_bytes_put(out, unwinder, strlen(unwinder));
}
