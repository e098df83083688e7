/* The beginning of a rewritten program's run time. */
#include "moved/private.h"
#include "base/log.h"
#include "base/own.h"
#include INL_ARCH_HEADER(run, abi)

/* In the data segment: the boot code fills it in before the tool's _start. */
move_handoff moved_handoff_data __attribute__((section(".data")));
moved_state moved_now;

void moved_hook(moved_hooks hooks) { moved_now.hooks = hooks; }

/* Where the boot code finds what it fills in; see boot.h. */
__asm__(".pushsection .note.inlay, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 16, 3\n"
        ".asciz \"Inlay\"\n"
        ".balign 4\n"
        ".quad moved_handoff_data - .\n"
        ".quad inl_region_now - .\n"
        ".popsection");

static const char *const program_calls[] = {moved_gate_direct, moved_gate_passed, moved_gate_called, NULL};

static const run_engine engine = {
    .is_native = true,
    .dispatch = moved_dispatch,
    .install = moved_install,
    .gate = moved_gate,
    .resume = moved_resume,
    .call = moved_call,
    .program_calls = program_calls,
};

inl_status moved_begin(const run_client *client, inl_error *e)
{
    const move_handoff *h = &moved_handoff_data;
    run_start_state start = {.tool_low = inl_own_base(),
                             .tool_high = h->tool_high,
                             .stack_low = h->stack_low,
                             .stack_high = h->stack_high,
                             .sigmask = h->sigmask,
                             .ran_before = moved_is_live()};
    start.ctx.pc = h->pc;
    run_set_sp(&start.ctx, h->sp);
    start.ctx.tls_base = h->tls_base;
    start.ctx.flags = MOVED_FIRST_FLAGS;
    moved_watch_syscalls(client->wants_syscalls);
    moved_gate_init();
    moved_images_find();
    inl_status s = run_begin(&engine, client, &start, e);
    if (s == INL_OK) run_own(MOVE_PARK_BASE, MOVE_REGION_HIGH - MOVE_PARK_BASE, true);
    if (s == INL_OK) s = run_first_thread(e);
    moved_alone_end();
    if (s == INL_OK && moved_is_live()) {
        moved_live_first(run_self());
        s = moved_live_others(client->thread_start, client->arg, e);
    }
    if (s != INL_OK) return s;
    moved_alone_begin();
    moved_patch_sites();
    if (moved_owner_refusal())
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s; run it under the JIT engine (inlay run)", moved_owner_refusal());
    if (moved_is_live()) moved_live_places();
    moved_alone_end();
    return INL_OK;
}
