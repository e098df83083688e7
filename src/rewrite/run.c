/* The beginning of a rewritten program's run time. */
#include "rewrite/run_private.h"
#include "base/log.h"

/* In the data segment: the boot code fills it in before the tool's _start. */
move_handoff rewrite_handoff_data __attribute__((section(".data")));
rewrite_hooks rewrite_run_hooks;

/* Where the boot code finds what it fills in; see boot.h. */
__asm__(".pushsection .note.inlay, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 16, 3\n"
        ".asciz \"Inlay\"\n"
        ".balign 4\n"
        ".quad rewrite_handoff_data - .\n"
        ".quad inl_region_now - .\n"
        ".popsection");

static const char *const program_calls[] = {rewrite_gate_direct, rewrite_gate_passed, rewrite_gate_called, NULL};

static const run_engine engine = {
    .is_native = true,
    .dispatch = rewrite_dispatch,
    .install = rewrite_install,
    .gate = rewrite_gate,
    .program_calls = program_calls,
};

inl_status rewrite_run_begin(const run_client *client, inl_error *e)
{
    const move_handoff *h = &rewrite_handoff_data;
    run_start_state start = {.tool_low = MOVE_TOOL_BASE,
                             .tool_high = h->tool_high,
                             .stack_low = h->stack_low,
                             .stack_high = h->stack_high,
                             .sigmask = h->sigmask};
    start.ctx.pc = h->pc;
    start.ctx.gpr[4] = h->sp;
    start.ctx.fs_base = h->fs_base;
    start.ctx.flags = 0x202;
    rewrite_watch_syscalls(client->wants_syscalls);
    rewrite_gate_init();
    rewrite_images_find();
    inl_status s = run_begin(&engine, client, &start, e);
    if (s == INL_OK) s = run_first_thread(e);
    if (s == INL_OK) rewrite_patch_sites();
    return s;
}
