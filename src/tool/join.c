/* inlay run --attach PID TOOL: a process that runs goes on under the JIT engine.
 *
 *     launcher                              the process
 *     inlay_init                              .
 *       options_parse                         .
 *       join_process                          .
 *         live_stop: all threads parked       .
 *         inject_join ------------------->  first thread: _start, main, inlay_init, inlay_start
 *                                             join_begin, the engine, join_end: a block for each thread
 *         each thread to run_leave_code       .
 *         live_release ------------------>  all go on in the dispatcher
 */
#include "base/sys.h"
#include "live/change.h"
#include "live/live.h"
#include "run/kernel.h"
#include "tool/injection.h"
#include "tool/state.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --- the launcher --- */

typedef struct job {
    live_process process;
    inject_job inject;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* *answer: how long the process has stood still. */
static inl_status put_in(void *arg, void *answer, inl_error *e)
{
    job *j = arg;
    double began = now();
    inl_status s = live_stop(&j->process, e);
    if (s != INL_OK) return s;
    s = inject_join(&j->process, &j->inject, e);
    inl_status out = live_release(&j->process, s == INL_OK ? e : &(inl_error){0});
    *(double *)answer = now() - began;
    return s == INL_OK ? out : s;
}

/* As inlay run would have been typed: what follows exec goes by it. */
static char **arguments(char **argv, const char *program)
{
    size_t n = 0, count = 0;
    while (argv[count]) count++;
    char **out = calloc(count + 3, sizeof *out);
    if (!out) tool_fail(TOOL_EXIT_FAILED, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(argv[i], "--")) continue;
        if (!strcmp(argv[i], "--attach")) i++;
        else if (strncmp(argv[i], "--attach=", 9) != 0) out[n++] = argv[i];
    }
    out[n++] = "--";
    out[n++] = (char *)program;
    return out;
}

static void refuse_others(const live_process *p)
{
    char path[64];
    Elf64_Ehdr head = {0};
    snprintf(path, sizeof path, "/proc/%d/exe", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool read_it = fd >= 0 && read(fd, &head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0) close(fd);
    if (!read_it || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != tool_isa()->elf_machine)
        tool_fail(TOOL_EXIT_FAILED,
                  "cannot attach: process %d runs a program of another architecture, or one that cannot be read",
                  p->pid);
    inl_error e = {0};
    if (p->is_confined)
        tool_fail(
            TOOL_EXIT_FAILED,
            "cannot attach: process %d is confined: its filter of system calls (seccomp) may forbid what the JIT "
            "engine needs, which would end it; inlay attach asks the filter, or start it under the tool (inlay run)",
            p->pid);
    if (inject_check_jit(p, &e) != INL_OK) tool_fail(TOOL_EXIT_FAILED, "cannot attach: %s", e.text);
}

/* Another folder is the process's: the file is named from the root. */
static const char *whole_output(void)
{
    const char *output = tool_now->options.output;
    char folder[PATH_MAX], *whole = NULL;
    if (!output || *output == '/') return output;
    if (getcwd(folder, sizeof folder) && (whole = malloc(strlen(folder) + strlen(output) + 2)))
        sprintf(whole, "%s/%s", folder, output);
    if (!whole) tool_fail(TOOL_EXIT_FAILED, "-o %s: cannot say where this is: %s", output, strerror(errno));
    return whole;
}

/* *stopped: for how long, in seconds. */
static inl_status join_once(job *j, pid_t pid, char **argv, double *stopped, inl_error *e)
{
    char link[64], *path = tool_handoff_data.program;
    inl_status s = live_open(pid, &j->process, e);
    if (s != INL_OK) return s;
    refuse_others(&j->process);
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof tool_handoff_data.program - 1);
    if (n > 0) path[n] = 0;
    j->inject = (inject_job){
        .pid = (int)pid, .tool_fd = -1, .argv = arguments(argv, path), .envp = environ, .output = whole_output()};
    return live_apart(pid, put_in, j, stopped, sizeof *stopped, e);
}

void join_process(const char *process, char **argv)
{
    inl_error e = {0};
    char *end;
    double stopped = 0;
    long pid = strtol(process, &end, 10);
    job j = {0};
    unsigned tries = 0;
    inl_status s;
    if (end == process || *end || pid <= 0 || pid > INT_MAX)
        tool_fail(TOOL_EXIT_USAGE, "--attach: %s is not the number of a process", process);
    blame_unwatch();
    do {
        live_close(&j.process);
        s = join_once(&j, (pid_t)pid, argv, &stopped, &e);
    } while (s != INL_OK && live_has_execed(&j.process) && live_wait_for_program(++tries));
    if (s != INL_OK) tool_fail(TOOL_EXIT_FAILED, "cannot attach: %s", e.text);
    tool_say("process %ld runs under the tool now (stopped for %.0f ms)", pid, 1e3 * stopped);
    tool_exit(0);
}

/* --- in the process --- */

static tool_joined *threads(void) { return (tool_joined *)tool_handoff_data.joined; }

/* The tool's C library has told the kernel of its own. */
void join_begin(void)
{
    sys_call1(SYS_set_tid_address, (long)threads()->clear_tid);
    sys_call2(SYS_set_robust_list, (long)threads()->robust, (long)threads()->robust_size);
}

static stack_t alternate_of(const tool_joined *t)
{
    stack_t s = {.ss_sp = (void *)t->stack, .ss_flags = (int)t->stack_flags & ~SS_ONSTACK, .ss_size = t->stack_size};
    return s.ss_flags & SS_DISABLE ? (stack_t){.ss_flags = s.ss_flags} : s;
}

static void join_thread(tool_joined *t, bool first)
{
    inl_error e = {0};
    const jit_joining j = {.tid = (int)t->tid,
                           .sigmask = t->sigmask,
                           .clear_tid = t->clear_tid,
                           .robust = t->robust,
                           .alternate = alternate_of(t),
                           .rseq = t->rseq,
                           .rseq_signature = (uint32_t)t->rseq_signature,
                           .restarts = t->restarts,
                           .ctx = &t->ctx};
    run_thread *r = tool_jit_join(&j, first, &e);
    if (!r) tool_fail(TOOL_EXIT_FAILED, "cannot attach: %s", e.text);
    t->block = (uint64_t)(uintptr_t)r;
    t->stack = (uint64_t)(uintptr_t)r->signal_stack;
    t->stack_size = r->signal_stack_size;
    t->stack_flags = 0;
}

void join_end(void)
{
    for (uint64_t i = 0; i < tool_handoff_data.joined_count; i++) join_thread(&threads()[i], i == 0);
    tool_jit_joined();
    join_settle(threads(), tool_handoff_data.joined_count);
    join_wait();
}
