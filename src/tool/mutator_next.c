/* Events as the mutator gets them: from the rings of its processes, from their sockets' ends (another program is
 * executed) and from the kernel (the end).
 *
 * The descriptor stays readable until a ring has been found empty behind the taking of what had made it so: whoever
 * polls it sees every event. */
#include "tool/mutator.h"
#include "live/live.h"

#include <inlay/process.h>

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK = 100 }; /* milliseconds */

/* --- a record --- */

/* What the event points to is kept here until the next one. */
static bool keep(mutator_watching *w, const void *data, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy) return false;
    if (size) memcpy(copy, data, size);
    copy[size] = 0;
    free(w->kept);
    w->kept = copy;
    return true;
}

static const char *name_at(const mutatee *m, uint64_t bias)
{
    for (module *x = module_first(m->modules); x; x = x->next)
        if (x->bias == bias && !x->is_main) return image_path(x->image);
    return NULL;
}

static void fill(inlay_event *v, mutatee *m, const ring_record *r, mutator_watching *w)
{
    bool good = keep(w, r + 1, r->bytes);
    *v = (inlay_event){.kind = (inlay_event_kind)r->kind,
                       .process = &m->process,
                       .pid = r->pid,
                       .tid = r->tid,
                       .number = r->number,
                       .place = r->place};
    if (!good) return;
    v->data = w->kept;
    v->size = r->bytes;
    bool is_named = v->kind == INLAY_EVENT_LIBRARY_LOADED || v->kind == INLAY_EVENT_EXEC;
    if (is_named && r->bytes) v->name = w->kept;
    if (v->kind == INLAY_EVENT_LIBRARY_UNLOADED) v->name = name_at(m, r->number);
    if (v->kind == INLAY_EVENT_BREAK && r->bytes == sizeof(inlay_context)) v->context = w->kept;
}

static bool is_image(const mutatee *m, uint64_t bias)
{
    for (const module *x = module_first(m->modules); x; x = x->next)
        if (x->bias == bias) return true;
    return false;
}

static bool is_mapped(const mutatee *m, uint64_t at)
{
    char byte;
    return live_read(&m->live, at, &byte, sizeof byte);
}

/* What is loaded is among the images from now on. The process runs on meanwhile: its code is made writable while its
 * system calls are looked at, the linker changes the rights of what it has just mapped, and the kernel's list of
 * mappings, which is not of one moment, may lack what is being changed. On a busy machine that takes its time, as long
 * as it is there; but what is gone again does not come. */
static void note_library(mutatee *m, uint64_t bias)
{
    enum { TRIES = 50, MOST = 1000 };
    const struct timespec nap = {.tv_nsec = 1000000};
    for (int k = 0; k < (is_mapped(m, bias) ? MOST : TRIES) && !is_image(m, bias); k++) {
        inl_error ignored;
        if (k) nanosleep(&nap, NULL);
        if (live_read_maps(&m->live, &ignored) != INL_OK) return;
        live_find_images(&m->live, m->modules, &ignored);
    }
}

static uint64_t lost_since(mutatee *m)
{
    uint64_t lost = m->ring ? __atomic_load_n(&m->ring->lost, __ATOMIC_RELAXED) : 0, since = lost - m->lost_seen;
    m->lost_seen = lost;
    return since;
}

/* A program is about to be executed. */
static bool take_begin(mutatee *m, const ring_record *r, const mutator_watching *w, inlay_event *v)
{
    *v = (inlay_event){.kind = INLAY_EVENT_BEGIN, .pid = r->pid, .tid = r->pid, .name = w->kept};
    bool told = mutator_follow(m, r, w->kept, &v->process);
    tool_process_mean(&m->process);
    return told;
}

/* False: it was none for the caller. */
static bool take_record(mutatee *m, const ring_record *r, mutator_watching *w, inlay_event *v)
{
    fill(v, m, r, w);
    ring_record record = *r;
    ring_drop(m->ring);
    if (record.kind == RING_FOLLOW) return take_begin(m, &record, w, v);
    if (v->kind == INLAY_EVENT_LIBRARY_LOADED) note_library(m, record.number);
    if (v->kind == INLAY_EVENT_FORK && m->shares) mutator_note_child(m, (int)v->number);
    if (v->kind == INLAY_EVENT_EXEC) { /* perhaps: the socket's end tells */
        free(m->exec_path);
        m->exec_path = v->name && !record.number ? strdup(v->name) : NULL; /* 1: the kernel did not */
        return false;
    }
    if (v->kind == INLAY_EVENT_OPENED) return m->loads_wait;
    return v->kind < INLAY_EVENT_KINDS && m->kinds >> v->kind & 1;
}

static bool from_ring(mutatee *m, mutator_watching *w, inlay_event *v)
{
    const ring_record *r;
    while (m->ring && (r = ring_first(m->ring)))
        if (take_record(m, r, w, v)) return true;
    return false;
}

/* --- the socket --- */

/* False: its other end is closed. */
static bool drain(const mutatee *m)
{
    char bytes[64];
    for (;;) {
        ssize_t n = recv(m->socket, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 && errno == EAGAIN;
    }
}

/* A process that ends loses its memory in front of its descriptors. */
static bool has_memory(const mutatee *m)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)1, 1};
    return process_vm_readv(m->live.pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

static void close_socket(mutatee *m)
{
    mutator_unwatch(m->socket);
    close(m->socket);
    m->socket = -1;
}

/* It has told that it would be, and children hold the socket's other end open. */
static bool is_another(const mutatee *m)
{
    return (m->shares || m->follows) && m->exec_path && !m->has_execed && has_memory(m) &&
           (m->is_former || !live_is_held_by(m->live.pid, &tool_now->mutating.self));
}

/* The program is executed, and its end has come before anybody has looked. A process that ends by itself says so;
 * SIGKILL may have come in front of the exec. */
static bool has_been_another(const mutatee *m)
{
    return m->exec_path && m->ring && !m->follows && !__atomic_load_n(&m->ring->ended, __ATOMIC_ACQUIRE) &&
           !(WIFSIGNALED(m->status) && WTERMSIG(m->status) == SIGKILL);
}

static bool find_exec(mutatee *m, mutator_watching *w, inlay_event *v)
{
    if (m->has_execed || !(m->has_ended ? has_been_another(m) : has_memory(m))) return false;
    m->has_execed = true;
    *v = (inlay_event){.kind = INLAY_EVENT_EXEC, .process = &m->process, .pid = m->live.pid, .tid = m->live.pid};
    if (m->exec_path && keep(w, m->exec_path, strlen(m->exec_path))) v->name = w->kept;
    return m->kinds & INLAY_EVENTS(EXEC);
}

/* --- one process --- */

static bool find_end(mutatee *m, inlay_event *v)
{
    if (!m->end_watched || m->end_told || !mutator_has_ended(m)) return false;
    mutator_unwatch(m->pidfd);
    m->end_told = true;
    *v = (inlay_event){.kind = INLAY_EVENT_EXIT,
                       .process = &m->process,
                       .pid = m->live.pid,
                       .tid = m->live.pid,
                       .number = m->status == -1 ? ~0ull : (uint64_t)(uint32_t)m->status};
    return m->kinds & INLAY_EVENTS(EXIT);
}

/* What it told last has been told before it is known to have ended. */
static bool next_of(mutatee *m, mutator_watching *w, inlay_event *v)
{
    bool ended = m->end_watched && !m->end_told && mutator_has_ended(m);
    if (from_ring(m, w, v)) return true;
    if (ended && find_exec(m, w, v)) return true;
    if (m->socket >= 0) {
        bool is_open = drain(m);
        if (m->ring) __atomic_store_n(&m->ring->told, 0, __ATOMIC_SEQ_CST);
        if (from_ring(m, w, v)) return true;
        if (!is_open) close_socket(m);
        if ((!is_open || is_another(m)) && find_exec(m, w, v)) return true;
    }
    return ended && find_end(m, v);
}

/* --- all of them --- */

static bool any_left(void)
{
    for (const mutatee *m = tool_now->mutating.first; m; m = m->next)
        if (m->end_watched && !m->end_told) return true;
    return false;
}

/* Threads that are kept end without a sign that could be waited for, and so does a program where children hold the
 * socket's other end. */
static bool any_silent(void)
{
    const mutatee *m = tool_now->mutating.first;
    while (m && !m->live.kept.count && !m->shares && !m->follows) m = m->next;
    return m != NULL;
}

/* Each gets its turn. */
static bool next_of_any(mutator_watching *w, inlay_event *v)
{
    mutatee **first = &tool_now->mutating.first;
    for (mutatee *m = *first; m; m = m->next) {
        if (!next_of(m, w, v)) continue;
        v->lost = lost_since(m);
        if (v->kind == INLAY_EVENT_BEGIN) return true; /* the list has changed */
        mutatee **end = first;
        while (*end != m) end = &(*end)->next;
        *end = m->next;
        while (*end) end = &(*end)->next;
        *end = m;
        m->next = NULL;
        return true;
    }
    return false;
}

static void call_listeners(const mutator_watching *w, const inlay_event *v)
{
    for (const mutator_listener *l = w->listeners, *next; l; l = next) {
        next = l->next;
        if (l->kinds >> v->kind & 1) l->f(v, l->arg);
    }
}

static int64_t milliseconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool inlay_event_next(inlay_event *v, int milliseconds)
{
    mutator_watching *w = v ? mutator_watching_now() : NULL;
    int64_t end = milliseconds_now() + milliseconds;
    while (w) {
        if (next_of_any(w, v)) {
            call_listeners(w, v);
            return true;
        }
        int64_t left = milliseconds < 0 ? -1 : end - milliseconds_now();
        if (milliseconds >= 0 && left <= 0) return false;
        if (milliseconds < 0 && !any_left()) return false;
        if (any_silent() && (left < 0 || left > LOOK)) left = LOOK;
        struct pollfd of = {.fd = w->descriptor, .events = POLLIN};
        if (poll(&of, 1, (int)left) < 0 && errno != EINTR) return false;
    }
    return false;
}

void inlay_on_event(unsigned kinds, void (*f)(const inlay_event *, void *arg), void *arg)
{
    mutator_watching *w = mutator_watching_now();
    mutator_listener *l = w && f ? malloc(sizeof *l) : NULL;
    if (!l) return;
    *l = (mutator_listener){.kinds = kinds, .f = f, .arg = arg};
    mutator_listener **at = &w->listeners;
    while (*at) at = &(*at)->next;
    *at = l;
}

bool inlay_event_resume(const inlay_event *v)
{
    mutatee *m = v ? mutatee_of(v->process) : NULL;
    bool waits = v && (v->kind == INLAY_EVENT_BREAK || v->kind == INLAY_EVENT_OPENED);
    if (!m || !m->ring || !waits || v->place >= RING_WAITERS)
        return mutator_refuse(INL_ERR_USAGE, "this event is of no thread that waits");
    uint32_t *word = &m->ring->waits[v->place], tid = (uint32_t)v->tid;
    if (!__atomic_compare_exchange_n(word, &tid, RING_WOKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return mutator_refuse(INL_ERR_USAGE, "thread %d does not wait any more", v->tid);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    return true;
}
