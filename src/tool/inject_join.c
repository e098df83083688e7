/* Puts the tool into a process that runs, whose threads are parked (live/park.c), to run it under the JIT engine.
 *
 *     the first thread      maps the tool, opens its descriptors, starts it on a stack as the kernel makes one; ends in
 *                           join_wait (join.c), when the engine has a block for each thread
 *     each thread           goes on at run_leave_code with its registers and its block, and the engine's signal stack
 *
 * What cannot be had is undone: the process is as it was then. */
#include "base/page.h"
#include "base/sys.h"
#include "live/live.h"
#include "run/kernel.h"
#include "tool/injection.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

typedef struct joining {
    injection in;
    inject_job job;
    live_process *p;
    remote *leader;
    uint64_t table, scratch; /* the threads'; a page for what calls want */
    tool_joined *threads;
    INL_VEC(int) fds; /* that it had */
    tool_handoff handoff;
} joining;

static inl_status call(joining *j, remote *r, long *answer, long nr, const long args[6], inl_error *e)
{
    inl_status s = remote_call(r, answer, nr, args, e);
    j->leader->gone |= r->gone;
    return s;
}

/* --- descriptors --- */

static void list_fds(joining *j, void (*f)(joining *, int))
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", j->p->pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (isdigit((unsigned char)*entry->d_name)) f(j, atoi(entry->d_name));
    if (d) closedir(d);
}

static void note_fd(joining *j, int fd)
{
    if (!inl_vec_push(&j->fds, fd)) return;
}

static void close_new(joining *j, int fd)
{
    long answer;
    for (size_t i = 0; i < j->fds.count; i++)
        if (j->fds.items[i] == fd) return;
    call(j, j->leader, &answer, SYS_close, (long[6]){fd}, &(inl_error){0});
}

/* -errno: it cannot be. */
static inl_status open_there(joining *j, const char *path, int flags, long *fd, inl_error *e)
{
    inl_status s = remote_write(j->leader, j->scratch, path, strlen(path) + 1, e);
    if (s != INL_OK) return s;
    const long args[6] = {AT_FDCWD, (long)j->scratch, flags | O_CLOEXEC, 0666};
    return call(j, j->leader, fd, SYS_openat, args, e);
}

static bool same_file(const joining *j, long fd, const struct stat *mine)
{
    char path[64];
    struct stat there;
    snprintf(path, sizeof path, "/proc/%d/fd/%ld", j->p->pid, fd);
    return stat(path, &there) == 0 && there.st_dev == mine->st_dev && there.st_ino == mine->st_ino;
}

/* A copy in memory: the process has another root, or no right to the file. */
static inl_status copy_tool(joining *j, long *fd, inl_error *e)
{
    char path[64], bytes[64 << 10];
    inl_status s = remote_write(j->leader, j->scratch, "inlay tool", sizeof "inlay tool", e);
    const long args[6] = {(long)j->scratch, 1 /* MFD_CLOEXEC */};
    if (s == INL_OK) s = call(j, j->leader, fd, SYS_memfd_create, args, e);
    if (s == INL_OK && *fd < 0) s = inl_fail(e, INL_ERR_SYSTEM, "memfd_create: %s", strerror((int)-*fd));
    if (s != INL_OK) return s;
    snprintf(path, sizeof path, "/proc/%d/fd/%ld", j->p->pid, *fd);
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = from >= 0 && to >= 0 ? 1 : -1;
    while (n > 0 && (n = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)n) != n) n = -1;
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    return n == 0 ? INL_OK : inl_fail(e, INL_ERR_SYSTEM, "the tool cannot be copied into process %d", j->p->pid);
}

static inl_status open_tool(joining *j, inl_error *e)
{
    char path[4096] = "";
    struct stat mine;
    long fd = -1;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    inl_status s = INL_OK;
    bool known = n > 0 && stat("/proc/self/exe", &mine) == 0;
    if (known) s = open_there(j, path, O_RDONLY, &fd, e);
    if (s == INL_OK && fd >= 0 && !same_file(j, fd, &mine)) {
        long ignored;
        s = call(j, j->leader, &ignored, SYS_close, (long[6]){fd}, e);
        fd = -1;
    }
    if (s == INL_OK && fd < 0) s = copy_tool(j, &fd, e);
    j->job.tool_fd = j->handoff.fds.tool = (int)fd;
    return s;
}

/* For -o, and messages. */
static inl_status open_others(joining *j, const char *output, inl_error *e)
{
    tool_fds *f = &j->handoff.fds;
    long fd = -1;
    inl_status s = call(j, j->leader, &fd, SYS_fcntl, (const long[6]){STDERR_FILENO, F_DUPFD_CLOEXEC, 3}, e);
    f->err = fd < 0 ? -1 : (int)fd;
    if (s != INL_OK || !output) return s;
    s = open_there(j, output, O_WRONLY | O_CREAT, &fd, e);
    if (s == INL_OK && fd < 0)
        s = inl_fail(e, INL_ERR_ACCESS, "process %d cannot write %s: %s", j->p->pid, output, strerror((int)-fd));
    f->out = (int)fd;
    j->handoff.empties = 1;
    if (s == INL_OK) s = call(j, j->leader, &fd, SYS_fcntl, (const long[6]){f->out, F_DUPFD_CLOEXEC, 3}, e);
    f->shared = fd < 0 ? -1 : (int)fd;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", output);
    *(strrchr(folder, '/') + 1) = 0;
    if (s == INL_OK) s = open_there(j, folder, O_PATH | O_DIRECTORY, &fd, e);
    f->out_dir = fd < 0 ? -1 : (int)fd;
    return s;
}

/* --- threads --- */

static void look_at_sequences(const remote *r, tool_joined *t)
{
    remote_rseq known;
    if (!remote_sequences(r, &known)) return;
    t->rseq = known.area;
    t->rseq_signature = known.signature;
}

static inl_status ask_thread(joining *j, remote *r, tool_joined *t, inl_error *e)
{
    enum { GET_TID_ADDRESS = 40 };
    uint64_t words[6] = {0}; /* a stack_t, and three more */
    long answer, at = (long)j->scratch;
    inl_status s = remote_write(r, j->scratch, words, sizeof words, e);
    if (s == INL_OK) s = call(j, r, &answer, SYS_sigaltstack, (long[6]){0, at}, e);
    if (s == INL_OK) s = call(j, r, &answer, SYS_prctl, (long[6]){GET_TID_ADDRESS, at + 24}, e);
    if (s == INL_OK) s = call(j, r, &answer, SYS_get_robust_list, (long[6]){0, at + 32, at + 40}, e);
    if (s == INL_OK) s = remote_read(r, j->scratch, words, sizeof words, e);
    t->stack = words[0];
    t->stack_flags = words[1] & 0xffffffffu;
    t->stack_size = words[2];
    t->clear_tid = words[3];
    t->robust = words[4];
    t->robust_size = words[5];
    return s;
}

static inl_status tell_threads(joining *j, inl_error *e)
{
    size_t n = j->p->threads.count;
    inl_status s = INL_OK;
    for (size_t i = 0; i < n && s == INL_OK; i++) {
        remote *r = &j->p->threads.items[i];
        tool_joined *t = &j->threads[i];
        t->tid = (uint64_t)live_inner_tid(r->pid);
        t->sigmask = r->sigmask;
        t->slot = r->slot;
        look_at_sequences(r, t);
        remote_context(r, &t->ctx);
        if (remote_registers_wanted(&r->regs) == SYS_restart_syscall) t->restarts = r->restarts;
        s = ask_thread(j, r, t, e);
    }
    if (s == INL_OK) s = remote_write(j->leader, j->table, j->threads, n * sizeof *j->threads, e);
    return s;
}

/* As the engine says: with its registers, at the way into the runtime. */
static inl_status settle(joining *j, remote *r, const tool_joined *t, uint64_t at, inl_error *e)
{
    uint64_t words[3] = {t->stack, t->stack_flags, t->stack_size};
    weave_context c;
    long answer;
    inl_status s = remote_write(r, j->scratch, words, sizeof words, e);
    if (s == INL_OK) s = call(j, r, &answer, SYS_sigaltstack, (long[6]){(long)j->scratch}, e);
    remote_context(r, &c);
    c.pc = at;
    remote_set_context(r, &c);
    remote_registers_set_block(&r->regs, t->block);
    r->sigmask &= ~RUN_FAULTS;
    return s;
}

static inl_status settle_all(joining *j, inl_error *e)
{
    size_t n = j->p->threads.count;
    inl_status s = remote_read(j->leader, j->table, j->threads, n * sizeof *j->threads, e);
    uint64_t at = inject_there(&j->in, (const void *)run_leave_code);
    for (size_t i = 0; i < n && s == INL_OK; i++) s = settle(j, &j->p->threads.items[i], &j->threads[i], at, e);
    return s == INL_OK ? live_frames_tell(j->p, e) : s;
}

/* --- the tool --- */

/* To the call that ends at `until`, which is not made. A tool that ends, or crashes, has not started. */
static inl_status run_to(remote *r, uint64_t until, inl_error *e)
{
    int signo = 0;
    remote_stop stop;
    for (;;) {
        inl_status s = remote_next(r, signo, &stop, e);
        if (s != INL_OK) return s;
        signo = 0;
        if (stop.kind == REMOTE_SIGNAL && stop.fault)
            return inl_fail(e, INL_ERR_SYSTEM, "the tool has crashed before it began: %s", strsignal(stop.signo));
        if (stop.kind == REMOTE_SIGNAL) signo = stop.signo;
        if (stop.kind != REMOTE_CALL_BEGINS) continue;
        bool there = remote_registers_pc(&r->regs) == until, ends = stop.nr == SYS_exit_group || stop.nr == SYS_exit;
        if (!there && !ends) continue;
        remote_skip_call(r);
        s = remote_next(r, 0, &stop, e);
        if (s != INL_OK || there) return s;
        return inl_fail(e, INL_ERR_SYSTEM, "the tool did not start in process %d; it has said why", r->pid);
    }
}

static inl_status start_tool(joining *j, uint64_t sp, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    remote *r = j->leader, was = *r;
    inl_status s = remote_vectors(r, &vectors, &size, e);
    if (s == INL_OK) s = live_works(j->p, true, e);
    if (s == INL_OK) {
        remote_registers_start(&r->regs, j->in.image + inject_entry(), sp);
        s = remote_set_registers(r, e);
        if (s == INL_OK) s = run_to(r, inject_there(&j->in, join_until), e);
        was.gone = r->gone;
        was.stop_signal = r->stop_signal;
        *r = was;
        inl_status back = r->gone ? s : remote_set_vectors(r, vectors, size, e);
        if (s == INL_OK) s = back;
    }
    free(vectors);
    return s;
}

static const live_mapping *mapped_in(const live_process *p, uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < p->mappings.count; i++)
        if (p->mappings.items[i].low < high && p->mappings.items[i].high > low) return &p->mappings.items[i];
    return NULL;
}

/* All of a tool's region goes with it: nothing of the process's may lie there. Where it has reserved terabytes, the
 * region is below them, with some room between for what the process maps later. */
static inl_status reserve(joining *j, uint64_t stack, inl_error *e)
{
    uint64_t low, high;
    const live_mapping *m;
    inl_status s = live_read_maps(j->p, e);
    if (s != INL_OK) return s;
    inject_choose_region(&low, &high);
    while ((m = mapped_in(j->p, low, high)) && m->low > tool_places.zone_least) {
        high = m->low - tool_places.zone_size / 4;
        low = high - tool_places.zone_size;
    }
    if (!m && low >= tool_places.zone_least) return inject_reserve_at(&j->in, low, high, stack, e);
    return inl_fail(
        e, INL_ERR_NO_MEMORY,
        "process %d has memory of its own wherever a tool could lie; start it under the tool instead (inlay run)",
        j->p->pid);
}

static inl_status prepare(joining *j, uint64_t *sp, inl_error *e)
{
    size_t table = inl_page_up(j->p->threads.count * sizeof *j->threads), auxv_size = 0;
    uint64_t stack = inject_stack_size(&j->job) + table + INL_PAGE;
    void *auxv = live_auxv(j->p, &auxv_size, e);
    if (!auxv) return INL_ERR_ACCESS;
    j->in.auxv_count = (unsigned)(auxv_size / sizeof *j->in.auxv);
    if (j->in.auxv_count > INJECT_AUXV) j->in.auxv_count = INJECT_AUXV;
    memcpy(j->in.auxv, auxv, j->in.auxv_count * sizeof *j->in.auxv);
    free(auxv);
    inl_status s = reserve(j, stack, e);
    if (s == INL_OK) s = live_goes(j->p, j->in.low, j->in.high, e);
    if (s == INL_OK) s = inject_map_stack(&j->in, stack, e);
    j->scratch = j->in.stack_low;
    j->table = j->scratch + INL_PAGE;
    if (s == INL_OK) s = open_tool(j, e);
    if (s == INL_OK) s = open_others(j, j->job.output, e);
    if (s == INL_OK) s = tell_threads(j, e);
    if (s == INL_OK) s = inject_map_image(&j->in, e);
    return s == INL_OK ? inject_build_stack(&j->in, sp, e) : s;
}

/* What the kernel knows of the first thread is the tool's C library's now. */
static void take_back(joining *j)
{
    const tool_joined *t = &j->threads[0];
    inl_error ignored;
    long answer;
    if (j->leader->gone) return;
    call(j, j->leader, &answer, SYS_set_tid_address, (long[6]){(long)t->clear_tid}, &ignored);
    call(j, j->leader, &answer, SYS_set_robust_list, (long[6]){(long)t->robust, (long)t->robust_size}, &ignored);
    list_fds(j, close_new);
    if (j->in.high)
        call(j, j->leader, &answer, SYS_munmap, (long[6]){(long)j->in.low, (long)(j->in.high - j->in.low)}, &ignored);
}

inl_status inject_join(live_process *p, const inject_job *job, inl_error *e)
{
    joining j = {.job = *job, .p = p, .leader = &p->threads.items[0], .handoff = tool_handoff_data};
    uint64_t sp = 0;
    j.in.r = *j.leader;
    j.in.job = &j.job;
    j.threads = calloc(p->threads.count, sizeof *j.threads);
    if (!j.threads) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    list_fds(&j, note_fd);
    inl_status s = prepare(&j, &sp, e);
    j.handoff.joined = j.table;
    j.handoff.joined_count = p->threads.count;
    j.handoff.start.ran_before = true;
    if (s == INL_OK) s = inject_hand_over(&j.in, &j.handoff, e);
    if (s == INL_OK) s = start_tool(&j, sp, e);
    if (s != INL_OK) take_back(&j);
    else s = settle_all(&j, e);
    if (!j.leader->gone) live_works(p, false, &(inl_error){0});
    inl_vec_free(&j.fds);
    free(j.threads);
    return s;
}
