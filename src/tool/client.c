/* What the tool hangs into the engine. A hook that no callback needs stays NULL: a tool that asks for
 * nothing costs nothing. */
#include "tool/state.h"
#include "tool/clocks.h"
#include "tool/wrap.h"
#include "base/sys.h"
#include "moved/moved.h"
#include "run/kernel.h"

#include <stdio.h>
#include <sys/syscall.h>

int inlay_pid(void) { return (int)sys_call0(SYS_getpid); }

/* --- code --- */

static void announce(inlay_proc *p)
{
    p->announced = true;
    if (!p->wanted || !tool_now->callbacks[ON_PROC]) return;
    inl_arena *arena = tool_here.run_arena;
    tool_here.run_arena = NULL;
    TOOL_CALL(ON_PROC, void (*)(inlay_proc *, void *), p);
    tool_here.run_arena = arena;
}

static void look_at_procs(weave_run *run)
{
    inlay_proc *p = NULL;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        uint64_t at = run->insns[i].in.addr;
        if (!p || at < p->low || at >= p->high) p = tool_proc_at(at);
        if (!p) continue;
        if (!p->announced) announce(p);
        if (p->entry || p->exit) tool_points_apply(run, i, p);
    }
}

static void look_at_block(weave_run *run, weave_block *b)
{
    bool by_proc = tool_filter_procs();
    bool wanted = !(by_proc || tool_filter_images()) || tool_address_wanted(run->insns[b->first].in.addr);
    tool_now->block_shown = b;
    if (wanted) TOOL_CALL(ON_BLOCK, void (*)(inlay_block *, void *), (inlay_block *)b);
    tool_now->block_shown = NULL;
    if (!tool_now->callbacks[ON_INSN]) return;
    for (uint32_t i = b->first; i < b->first + b->count; i++) {
        if (by_proc) wanted = tool_address_wanted(run->insns[i].in.addr);
        if (wanted) TOOL_CALL(ON_INSN, void (*)(inlay_insn *, void *), (inlay_insn *)&run->insns[i]);
    }
}

static void instrument(void *arg, weave_run *run)
{
    (void)arg;
    bool held = tool_here.holds_lock;
    tool_here.holds_lock = true;
    tool_here.run_arena = run->arena;
    tool_here.sees_code = true;
    tool_insns_begin();
    tool_cut cut;
    const snippet *replacement = tool_now->process->code_inserted ? tool_code_cut(run, &cut) : NULL;
    if (tool_now->callbacks[ON_PROC] || tool_now->process->proc_points) look_at_procs(run);
    if (tool_now->process->code_inserted) tool_code_apply(run);
    if (tool_now->callbacks[ON_BLOCK] || tool_now->callbacks[ON_INSN])
        for (uint32_t i = 0; i < run->block_count; i++) look_at_block(run, &run->blocks[i]);
    if (tool_now->process->code_inserted) tool_code_replace_calls(run);
    if (tool_now->process->code_inserted) tool_code_apply_wraps(run);
    if (replacement) tool_code_replace(run, &cut, replacement);
    tool_check_sometimes();
    tool_here.run_arena = NULL;
    tool_here.sees_code = false;
    tool_here.holds_lock = held;
}

static void module_loaded(void *arg, module *m)
{
    (void)arg;
    bool held = tool_here.holds_lock;
    tool_here.holds_lock = true;
    inlay_image *i = tool_image_of(m);
    if (i) TOOL_CALL(ON_IMAGE_LOAD, void (*)(inlay_image *, void *), i);
    tool_here.holds_lock = held;
}

/* The same for the instrumentor. */
void tool_client_instrument(weave_run *run) { instrument(NULL, run); }

void tool_client_sees(void *arg, weave_run *run) { instrument(arg, run); }
void tool_client_image(module *m)
{
    if (tool_now->callbacks[ON_IMAGE_LOAD]) module_loaded(NULL, m);
}

void tool_client_refused(void *arg, const weave_insn *insn, const char *why)
{
    bool held = tool_here.holds_lock;
    (void)arg;
    tool_here.holds_lock = true;
    tool_point_refused(insn, why);
    tool_here.holds_lock = held;
}

bool tool_client_sees_code(void)
{
    callback **on = tool_now->callbacks;
    return on[ON_IMAGE_LOAD] || on[ON_PROC] || on[ON_BLOCK] || on[ON_INSN] || tool_now->process->proc_points;
}

static void module_gone(void *arg, module *m)
{
    (void)arg;
    inlay_image *i = m->user;
    tool_jit_image_gone(m->image);
    if (!i) return;
    tool_here.holds_lock = true;
    TOOL_CALL(ON_IMAGE_UNLOAD, void (*)(inlay_image *, void *), i);
    tool_image_forget(i);
    tool_here.holds_lock = false;
}

/* --- threads and system calls --- */

static void thread_start(void *arg, run_thread *t)
{
    (void)arg;
    if (t->tls) tls_enter(t->tls, t->tid);
    tool_locals_start(t);
    TOOL_CALL(ON_THREAD_START, void (*)(inlay_thread *, void *), (inlay_thread *)t);
}

static void thread_end(void *arg, run_thread *t)
{
    (void)arg;
    uint64_t before = run_kernel_mask_faults(); /* the tool's are to be told */
    tool_buffers_end(t);
    TOOL_CALL(ON_THREAD_END, void (*)(inlay_thread *, void *), (inlay_thread *)t);
    tool_thread_end(t);
    if (t->tls) tls_leave();
    run_kernel_mask_set(before);
}

static bool syscall_enter(void *arg, run_thread *t, weave_context *c, long nr)
{
    (void)arg;
    inlay_syscall s;
    tool_syscall_read(c, nr, &s);
    tool_here.asked = c;
    TOOL_CALL(ON_SYSCALL_ENTRY, void (*)(inlay_thread *, inlay_syscall *, void *), (inlay_thread *)t, &s);
    tool_here.asked = NULL;
    if (s.skip) tool_syscall_set_result(c, s.result);
    else tool_syscall_write(c, &s);
    return s.skip;
}

static void syscall_exit(void *arg, run_thread *t, weave_context *c, long nr)
{
    (void)arg;
    inlay_syscall s;
    tool_syscall_read(c, nr, &s);
    s.result = tool_syscall_result(c);
    tool_here.asked = c;
    TOOL_CALL(ON_SYSCALL_EXIT, void (*)(inlay_thread *, inlay_syscall *, void *), (inlay_thread *)t, &s);
    tool_here.asked = NULL;
    tool_syscall_set_result(c, s.result);
}

static bool on_signal(void *arg, run_thread *t, int signo, const siginfo_t *info, weave_context *c)
{
    (void)arg;
    tool_signal said = {.delivers = true};
    tool_here.signal = &said;
    TOOL_CALL(ON_SIGNAL, void (*)(inlay_thread *, int, const siginfo_t *, const inlay_context *, void *),
              (inlay_thread *)t, signo, info, (const inlay_context *)c);
    tool_here.signal = NULL;
    if (said.resumes) *c = said.next;
    return said.delivers;
}

bool inlay_signal_drop(void)
{
    tool_signal *s = tool_here.signal;
    if (s) s->delivers = s->resumes = false;
    else tool_say_limited("inlay_signal_drop is for callbacks of signals");
    return s != NULL;
}

bool inlay_signal_resume(const inlay_context *with)
{
    tool_signal *s = tool_here.signal;
    if (s && with) {
        *s = (tool_signal){.resumes = true, .next = *(const weave_context *)(const void *)with};
        s->next.pc = inlay_address_real(with->pc);
    } else {
        tool_say_limited(s ? "inlay_signal_resume: there is no context"
                           : "inlay_signal_resume is for callbacks of signals");
    }
    return s && with;
}

/* --- processes --- */

static void fork_lock(void *arg, int phase)
{
    (void)arg;
    if (phase != 0) tls_fork(phase);
    tool_locks_fork(phase);
    if (phase == 0) tls_fork(phase);
}

static void fork_child(void *arg, run_thread *t)
{
    (void)arg;
    tool_now->is_forked = true;
    tool_now->native = (tool_native){0};
    tls_fork_child(t->tls, t->tid);
    tool_threads_fork_child(t);
    tool_buffers_fork_child(t);
    tool_output_fork_child();
    tool_sums_fork_child();
    run_counters_reset();
    tool_derive_forked();
    tool_jit_forked();
    run_hung_let_in(t->sigmask);
    TOOL_CALL_BARE(ON_FORK_CHILD);
    run_hung_let_out(t);
}

/* The new program goes on with this process's output, behind what is there already. Without a plan to fill in it will
 * run natively in any case. */
static bool on_exec(void *arg, run_thread *t, const char *path, char *const *argv, char *const *envp,
                    run_exec_plan *plan)
{
    (void)arg;
    (void)envp;
    bool follow = tool_filter_follows(path), plan_made = false;
    free(tool_here.exec_options);
    tool_here.exec_options = NULL;
    TOOL_DOING(ON_EXEC)
    for (callback *c = tool_now->callbacks[ON_EXEC]; c; c = c->next)
        follow &= ((bool (*)(const char *, char *const[], void *))c->f)(path, argv, c->arg);
    tool_buffers_flush(t);
    if (!t->is_vfork_child) tool_buffers_flush_others(t);
    tool_output_flush();
    fflush(NULL);
    if (follow && plan) plan_made = tool_exec_plan(path, argv, t->is_vfork_child, plan);
    tool_jit_gdb_execs(t, plan_made);
    if (plan_made) return true;
    uint64_t before = run_kernel_mask_faults();
    tool_exec_report(t);
    run_kernel_mask_set(before);
    return false;
}

static void exec_failed(void *arg, run_thread *t)
{
    (void)arg;
    tool_exec_failed(t);
}

static void ends(void *arg, run_thread *t, int status, int signo)
{
    (void)arg;
    tool_told_end();
    tool_buffers_flush_all();
    tool_sums_add();
    int wait_status = signo ? signo & 0x7f : (status & 0xff) << 8;
    TOOL_CALL(ON_EXIT, void (*)(int, void *), wait_status);
    tool_jit_ends();
    bool first = !tool_now->options.followed && !tool_now->is_forked; /* what others have that it starts is no matter */
    if (first && tool_handoff_data.role == TOOL_RESIDENT) tool_filter_warn();
    if (first && moved_began_here()) tool_filter_warn_images();
    tool_output_close();
    fflush(NULL); /* what the tool has opened itself, too, which may count on exit to write it */
    tool_jit_gdb_ended(t, status, signo);
}

static void *new_tls(void *arg)
{
    (void)arg;
    return tls_new();
}
static void free_tls(void *arg, void *tls)
{
    (void)arg;
    tls_free(tls);
}
static uint64_t base_of_tls(void *arg, void *tls)
{
    (void)arg;
    return tls_base_of(tls);
}

static void say(void *arg, const char *text)
{
    (void)arg;
    tool_say("%s", text);
}

void tool_client_fill(run_client *c)
{
    callback **on = tool_now->callbacks;
    *c = (run_client){
        .vdso_goes = clocks_without_vdso,
        .module_loaded = on[ON_IMAGE_LOAD] ? module_loaded : NULL,
        .module_gone = module_gone,
        .thread_start = thread_start,
        .thread_end = thread_end,
        .syscall_enter = on[ON_SYSCALL_ENTRY] ? syscall_enter : NULL,
        .syscall_exit = on[ON_SYSCALL_EXIT] ? syscall_exit : NULL,
        .wants_syscalls = on[ON_SYSCALL_ENTRY] || on[ON_SYSCALL_EXIT],
        .signal = on[ON_SIGNAL] ? on_signal : NULL,
        .fork_lock = fork_lock,
        .fork_child = fork_child,
        .exec = on_exec,
        .exec_failed = exec_failed,
        .exit = ends,
        .tls_new = new_tls,
        .tls_free = free_tls,
        .tls_base_of = base_of_tls,
        .say = say,
        .returned = tool_wrap_returned,
        .crashed = blame_crash,
        .proc_link = tool_handoff_data.loaded ? load_proc_link : NULL,
    };
    clocks_vdso(&c->vdso_low, &c->vdso_high);
}
