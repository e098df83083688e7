/* Instructions of AArch64 that a code cache cannot hold: what leaves for another exception level by other ways than
 * svc, which no program does that wants to live. The program gets its SIGILL, and it is said once. There are no system
 * calls that this architecture alone has. */
#include "isa/aarch64/a64.h"
#include "run/kernel.h"

void run_special(run_thread *t)
{
    static uint8_t said;
    uint8_t bytes[ISA_MAX_INSN];
    isa_insn in = {0};
    char text[96] = "?";
    size_t left = run_safe_copy(bytes, (const void *)t->ctx.pc, sizeof bytes);
    isa_aarch64.decode(bytes, sizeof bytes - left, t->ctx.pc, &in);
    isa_aarch64.format(&in, text, sizeof text);
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        run_say("at %#lx: '%s' cannot be followed; the program gets SIGILL", (long)t->ctx.pc, text);
    run_signal_raise(t, SIGILL, ILL_ILLOPC, t->ctx.pc);
}

void run_segments_look(run_thread *t) { (void)t; }

const run_syscall_row run_isa_syscalls[] = {{0, NULL, NULL}};
