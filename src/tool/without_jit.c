/* In place of under_jit.c, in a build without the JIT engine. */
#include "tool/state.h"

const char *tool_jit_missing(void)
{
    return "this build has no JIT engine for " INL_ARCH_TEXT(
        INL_ARCH) "; `inlay rewrite` writes a program that carries the tool";
}

inl_status tool_jit_set_up(const run_client *client, const run_start_state *start, inl_error *e)
{
    (void)client, (void)start;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "%s", tool_jit_missing());
}

void tool_jit_run(void) { tool_fail(TOOL_EXIT_FAILED, "%s", tool_jit_missing()); }

bool tool_jit_leave(const char **why)
{
    *why = tool_jit_missing();
    return false;
}

void join_process(const char *process, char **argv)
{
    (void)process, (void)argv;
    tool_fail(TOOL_EXIT_FAILED, "%s", tool_jit_missing());
}

void join_begin(void) {}
void join_end(void) { tool_fail(TOOL_EXIT_FAILED, "%s", tool_jit_missing()); }

void tool_jit_image_gone(const image *im) { (void)im; }

void tool_jit_forked(void) {}

int tool_jit_gdb_launch(void) { tool_fail(TOOL_EXIT_FAILED, "--gdb: %s", tool_jit_missing()); }
size_t tool_jit_gdb_state(char *out, size_t size)
{
    (void)out, (void)size;
    return 0;
}
const char *tool_jit_take_gdb(const char *state)
{
    (void)state;
    return tool_jit_missing();
}
void tool_jit_gdb_ended(run_thread *t, int status, int signo) { (void)t, (void)status, (void)signo; }
void tool_jit_gdb_execs(run_thread *t, bool follows) { (void)t, (void)follows; }

void tool_jit_ends(void) {}
