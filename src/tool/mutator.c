#include "tool/mutator.h"
#include "tool/injection.h"

#include <inlay/process.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- roles --- */

/* To be told in processes. */
static const char *join(int argc, char **argv)
{
    char text[1024] = "";
    size_t n = 0;
    for (int i = 1; i < argc && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 1 ? " " : "", argv[i]);
    return tool_handle_string(text);
}

/* No other file is to get the number of a standard descriptor that is closed: whatever is written to that would go into
 * it, a process's memory even. */
static void take_standard_numbers(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_PATH | O_CLOEXEC); /* neither read nor written */
}

void inlay_mutator(int *argc, char ***argv)
{
    tool_handoff *h = &tool_handoff_data;
    inl_error e = {0};
    if (h->role == TOOL_CARRIED) mutator_resident();
    if (h->role == TOOL_LAUNCHER) {
        fflush(NULL);
        blame_unwatch(); /* the copy watches for itself */
        load_self(MOVE_TOOL_HIGH, MOVE_REGION_LOW, MOVE_REGION_HIGH, TOOL_INSTRUMENTOR, *argv, environ, &e);
        tool_fail(TOOL_EXIT_FAILED, "cannot start: %s", e.text);
    }
    blame_unwatch();
    take_standard_numbers();
    tool_now->options.mutating = true;
    tool_now->blame.phase = BLAME_STARTED;
    tool_heap_begin();
    tool_heap()->program = tool_handle_string(tool_name());
    live_holder_self(&tool_now->mutating.self);
    tool_now->mutating.arguments = join(*argc, *argv);
}

/* --- errors --- */

bool mutator_fail(const inl_error *e)
{
    tool_now->mutating.error = *e;
    return false;
}

bool mutator_refuse(inl_status code, const char *fmt, ...)
{
    inl_error *e = &tool_now->mutating.error;
    va_list args;
    va_start(args, fmt);
    *e = (inl_error){.code = code};
    vsnprintf(e->text, sizeof e->text, fmt, args);
    va_end(args);
    return false;
}

const char *inlay_process_error(void) { return tool_now->mutating.error.text; }

/* --- which one is meant --- */

mutatee *mutatee_of(const inlay_process *p)
{
    mutatee *m = p ? tool_now->mutating.first : NULL;
    while (m && &m->process != p) m = m->next;
    return m;
}

bool tool_process_mean(inlay_process *p)
{
    if (p == tool_now->process) return true;
    mutatee *m = mutatee_of(p);
    if (!m && p != &tool_now->own) return false;
    tool_now->process = p;
    run_here.modules = m ? m->modules : NULL;
    return true;
}

/* --- the beginning --- */

mutatee *mutator_new(void)
{
    if (!tool_now->options.mutating) {
        mutator_refuse(INL_ERR_USAGE, "main does not begin with inlay_mutator");
        return NULL;
    }
    mutatee *m = calloc(1, sizeof *m);
    if (m) m->modules = module_set_new();
    if (!m || !m->modules) {
        free(m);
        mutator_refuse(INL_ERR_NO_MEMORY, "out of memory");
        return NULL;
    }
    m->process.is_other = true;
    m->status = -1;
    m->pidfd = m->mem = m->socket = -1;
    m->next = tool_now->mutating.first;
    tool_now->mutating.first = m;
    return m;
}

static void forget_pieces(mutator_piece *list)
{
    for (mutator_piece *next; list; list = next) {
        next = list->next;
        mutator_piece_free(list);
    }
}

static void free_saved(mutatee *m)
{
    uint64_t key, value;
    for (size_t at = 0; inl_map_next(&m->saved, &at, &key, &value);) free((void *)(uintptr_t)value);
    inl_map_free(&m->saved);
    mutator_bytes_free(m);
}

void mutator_forget(mutatee *m)
{
    mutatee **at = (mutatee **)&tool_now->mutating.first;
    tool_process_mean(&m->process);
    forget_pieces(m->pieces);
    forget_pieces(m->dead);
    for (mutated_image *i = m->images, *next; i; i = next) {
        next = i->next;
        free(i->wanted);
        free(i->now);
        free(i->in);
        free(i->why);
        if (i->fixed) move_plan_free((move_plan *)i->fixed);
        free(i);
    }
    for (module *x = module_first(m->modules); x; x = x->next)
        if (x->user && !mutator_keep_image(x)) tool_image_forget(x->user);
    module_set_free(m->modules);
    free_saved(m);
    live_change_end(&m->change);
    mutator_watch_end(m);
    live_close(&m->live);
    if (m->pidfd >= 0) close(m->pidfd);
    if (m->mem >= 0) close(m->mem);
    tool_now->mutating.changes++;
    tool_process_mean(&tool_now->own);
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    free(m);
}

inl_status mutator_open(mutatee *m, pid_t pid, inl_error *e)
{
    tool_process_mean(&m->process);
    m->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (m->pidfd < 0) return inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", pid);
    inl_status s = live_find_images(&m->live, m->modules, e);
    if (s == INL_OK) mutator_take_images(m);
    return s;
}

inlay_process *inlay_process_attach(int pid)
{
    inl_error e = {0};
    mutatee *m = mutator_new();
    if (!m) return NULL;
    inl_status s = pid == getpid() ? inl_fail(&e, INL_ERR_USAGE, "process %d is this one itself", pid) : INL_OK;
    if (s == INL_OK) s = live_open(pid, &m->live, &e);
    if (s == INL_OK) s = live_check_alone(&m->live, &e);
    if (s == INL_OK) s = inject_check_jit(&m->live, &e);
    if (s == INL_OK) s = mutator_open(m, pid, &e);
    if (s == INL_OK) return &m->process;
    mutator_forget(m);
    mutator_fail(&e);
    return NULL;
}

int mutator_pid(const inlay_process *p)
{
    const mutatee *m = mutatee_of(p);
    return m ? m->live.pid : 0;
}

const char *mutator_program(const inlay_process *p)
{
    const mutatee *m = mutatee_of(p);
    for (module *x = m ? module_first(m->modules) : NULL; x; x = x->next)
        if (x->is_main) return image_name(x->image);
    return m ? "" : NULL;
}

/* --- the end --- */

bool inlay_process_terminate(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (syscall(SYS_pidfd_send_signal, m->pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
        return mutator_refuse(INL_ERR_ACCESS, "cannot end process %d: %s", m->live.pid, strerror(errno));
    int status;
    if (!m->has_ended) m->has_ended = live_reap_killed(&m->live, m->is_stopped, &status);
    if (m->is_child && !m->has_ended && waitpid(m->live.pid, &status, 0) == m->live.pid) m->status = status;
    mutator_forget(m);
    return true;
}

bool inlay_process_let_go(inlay_process *p)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (m->has_tool && !m->has_ended) live_holder_leaves(m->live.pid, &tool_now->mutating.self);
    live_keep_none(&m->live);
    inl_status s = m->is_stopped && !m->has_ended ? live_release(&m->live, &e) : INL_OK;
    mutator_forget(m);
    return s == INL_OK || mutator_fail(&e);
}
