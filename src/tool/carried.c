/* The tool inside a rewritten program. The boot code has put it there before the program's own
 * initialisers (src/elf/boot); main runs as it did in the instrumentor, asks for the same memory and
 * finds in it what instrumentation has left; inlay_start makes the calling thread the program's first and goes
 * back to the boot code.
 *
 * An exec ends the tool too, before it is certain that the exec succeeds: there is nobody left afterwards.
 * If it fails after all, what the report has added to the output is taken back, and the final one follows. */
#include "tool/state.h"
#include "base/log.h"
#include "base/own.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "move/boot.h"
#include "moved/moved.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void carried_begin(void)
{
    tool_handoff *h = &tool_handoff_data;
    const move_handoff *r = &moved_handoff_data;
    h->role = TOOL_CARRIED;
    h->resident = 1;
    h->start.tool_low = inl_own_base();
    h->start.tool_high = r->tool_high;
    h->region_low = MOVE_REGION_LOW;
    h->region_high = MOVE_REGION_HIGH;
    h->fds.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    resident_begin();
    if (r->data->heap_size) tool_heap_attach();
}

/* Those that a program has which another one has started, under the tool as well. */
static void take_inherited(tool_fds *f, const tool_fds *from)
{
    f->tool = resident_hide(from->tool);
    f->out = resident_hide(from->out);
    f->out_dir = resident_hide(from->out_dir);
    f->shared = resident_hide(from->shared);
    if (from->err < 0) return;
    dup3(from->err, f->err, O_CLOEXEC);
    close(from->err);
}

/* Programs that this one starts are followed where it has itself been started for the tool. */
static void open_own(tool_fds *f)
{
    const tool_fds *from = &tool_now->options.fds;
    if (from->tool >= 0) take_inherited(f, from);
    else f->tool = resident_hide(open(moved_live_tool(), O_RDONLY | O_CLOEXEC));
}

static void open_output(void)
{
    tool_fds *f = &tool_handoff_data.fds;
    if (!tool_now->options.output || f->out_dir >= 0) return;
    launch_open_output(f, tool_now->options.output, false);
    f->out = resident_hide(f->out);
    f->out_dir = resident_hide(f->out_dir);
    f->shared = resident_hide(f->shared);
}

/* --- exec --- */

/* NULL where the program's pointer leads nowhere. */
static char *const *readable(char *const *argv)
{
    const char *last = NULL;
    char byte;
    for (size_t i = 0; run_read(&last, (uint64_t)(uintptr_t)&argv[i], sizeof last); i++) {
        if (!last) return argv;
        if (!run_read(&byte, (uint64_t)(uintptr_t)last, 1)) break;
    }
    return NULL;
}

static void before_exec(run_thread *t, const char *path, char *const *argv)
{
    if (tool_now->callbacks[ON_EXEC]) argv = readable(argv);
    TOOL_DOING(ON_EXEC)
    for (callback *c = tool_now->callbacks[ON_EXEC]; c; c = c->next)
        ((bool (*)(const char *, char *const[], void *))c->f)(path, argv, c->arg);
    tool_exec_report(t);
}

/* --- the beginning --- */

/* What the tool's C library has told the kernel about the thread is the program's to say. */
static void restore_registrations(const move_handoff *r)
{
    sys_call1(SYS_set_tid_address, (long)r->clear_tid);
    sys_call2(SYS_set_robust_list, (long)r->robust, r->robust_size ? (long)r->robust_size : 3 * (long)sizeof(long));
}

void carried_run(void)
{
    run_client client;
    inl_error e = {0};
    tool_client_fill(&client);
    client.module_loaded = client.module_gone = NULL;
    bool mutated = tool_now->options.mutating, follows = moved_began_here() && !mutated;
    if (!follows) client.exec = NULL;
    client.counters = tool_counters_count();
    client.fork_parent = mutated ? mutator_forked : NULL;
    moved_hook((moved_hooks){.exec = follows ? NULL : before_exec,
                             .exec_failed = follows   ? NULL
                                            : mutated ? mutator_exec_failed
                                                      : tool_exec_failed,
                             .flow_ends = tool_derive_flow_ends,
                             .report = tool_report_on_request,
                             .leaves = mutated ? NULL : tool_leaves,
                             .opened = tool_later_opened,
                             .closed = tool_later_closed,
                             .listed = mutated ? mutator_listed : NULL,
                             .all_listed = mutated ? mutator_all_listed : NULL});
    moved_alone_begin(); /* ends in moved_begin, or where the tool gives up */
    if (follows) open_own(&tool_handoff_data.fds);
    open_output();
    blame_unwatch();
    if (moved_begin(&client, &e) != INL_OK) tool_cannot_start(&e);
    restore_registrations(&moved_handoff_data);
    tool_heap_begin();
    if (!tool_derive_begin() || !tool_locals_begin()) {
        (void)inl_fail(&e, INL_ERR_NO_MEMORY, "out of memory");
        tool_cannot_start(&e);
    }
    tool_counters_begin();
    tool_now->blame.phase = BLAME_STARTED;
    run_thread *t = run_self();
    run_hung_let_in(t->sigmask);
    TOOL_CALL_BARE(ON_START);
    if (client.thread_start) client.thread_start(client.arg, t);
    run_hung_let_out(t);
    if (!mutated) tool_workers_begin();
    run_go();
}
