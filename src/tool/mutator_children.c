/* Children of fork, and theirs, of a process that shares its ring with them: who they are, and what is inserted comes
 * out of them in the end. They are known by what has been told of them, in numbers of their own namespace. */
#include "tool/mutator.h"
#include "live/live.h"

#include <inlay/process.h>

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- numbers --- */

/* Its namespace of processes; 0: it is not there, or not for us to see. */
static uint64_t space_of(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static bool is_number(const char *name) { return isdigit((unsigned char)*name); }

pid_t mutator_pid_here(const mutatee *m, int inner)
{
    pid_t found = 0;
    if (space_of(inner) == m->pid_space && live_inner_tid(inner) == inner) return inner;
    if (m->pid_space == space_of(getpid())) return 0;
    DIR *all = opendir("/proc"); /* in its namespace it has another number */
    for (const struct dirent *d; all && !found && (d = readdir(all));) {
        pid_t pid = is_number(d->d_name) ? atoi(d->d_name) : 0;
        if (pid && space_of(pid) == m->pid_space && live_inner_tid(pid) == inner) found = pid;
    }
    if (all) closedir(all);
    return found;
}

/* --- the list --- */

/* A server makes children for years. */
static void forget_ended(mutatee *m)
{
    size_t n = 0;
    for (size_t k = 0; k < m->children.count; k++)
        if (mutator_pid_here(m, m->children.items[k])) m->children.items[n++] = m->children.items[k];
    m->children.count = n;
}

void mutator_share_begins(mutatee *m) { m->pid_space = space_of(m->live.pid); }

/* One that finds no place is not looked for in the end. */
void mutator_note_child(mutatee *m, int inner)
{
    enum { MANY = 64 };
    if (m->children.count == m->children.capacity && m->children.count >= MANY) forget_ended(m);
    if (!inl_vec_push(&m->children, inner)) return;
}

/* A program that it has executed since has a handle of its own. */
static bool has_handle(const mutatee *but, pid_t pid)
{
    const mutatee *m = tool_now->mutating.first;
    while (m && (m == but || m->live.pid != pid)) m = m->next;
    return m != NULL;
}

unsigned inlay_process_children(inlay_process *p, int *pids, unsigned most)
{
    mutatee *m = mutatee_of(p);
    unsigned n = 0;
    if (!m || !m->children.count) return 0;
    forget_ended(m);
    for (size_t k = 0; k < m->children.count; k++) {
        pid_t pid = mutator_pid_here(m, m->children.items[k]);
        if (!pid || has_handle(m, pid) || !live_is_held_by(pid, &tool_now->mutating.self)) continue;
        if (n < most) pids[n] = pid;
        n++;
    }
    return n;
}

/* --- the end --- */

static inl_status child_out(pid_t pid, inl_error *e)
{
    const move_told_holder *self = &tool_now->mutating.self;
    if (!pid || !live_is_held_by(pid, self)) return INL_OK;
    inl_status s = live_apart(pid, mutator_leave, &pid, NULL, 0, e);
    return s == INL_OK || !live_is_held_by(pid, self) ? INL_OK : s;
}

/* All are tried, whatever becomes of one. */
inl_status mutator_children_out(mutatee *m, inl_error *e)
{
    inl_status s = INL_OK;
    for (size_t k = 0; k < m->children.count; k++) {
        inl_error one = {0};
        inl_status its = child_out(mutator_pid_here(m, m->children.items[k]), &one);
        if (its != INL_OK && s == INL_OK) *e = one, s = its;
    }
    return s;
}

/* --- what an event is of --- */

static bool is_own(const mutatee *m, const inlay_event *v) { return v->pid == live_inner_tid(m->live.pid); }

int inlay_event_pid(const inlay_event *v)
{
    const mutatee *m = v ? mutatee_of(v->process) : NULL;
    if (!m || !m->shares || v->kind == INLAY_EVENT_EXIT || v->kind == INLAY_EVENT_EXEC) return m ? m->live.pid : 0;
    return is_own(m, v) ? m->live.pid : mutator_pid_here(m, v->pid);
}

/* From now on the memory of who tells it is meant by reading the process. */
static mutatee *mean_teller(const inlay_event *v)
{
    mutatee *m = v ? mutatee_of(v->process) : NULL;
    if (m) m->reads = inlay_event_pid(v);
    return m;
}

size_t inlay_event_read(const inlay_event *v, void *to, uint64_t from, size_t bytes)
{
    mutatee *m = mean_teller(v);
    size_t n = m && m->reads ? inlay_process_read(v->process, to, from, bytes) : 0;
    if (m) m->reads = 0;
    return n;
}

unsigned inlay_event_stack(const inlay_event *v, inlay_stack_frame *out, unsigned most)
{
    mutatee *m = mean_teller(v);
    unsigned n = m && m->reads && v->context ? inlay_process_stack(v->process, v->context, out, most) : 0;
    if (m) m->reads = 0;
    return n;
}
