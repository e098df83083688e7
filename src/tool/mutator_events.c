/* The mutator's file in a process that it changes: what happens there is told to the mutator.
 *
 * All of it runs on the process's threads, some of it in signal handlers: no lock, no C library, and nothing that could
 * hurt the process when the mutator is gone: the socket by which the mutator is woken makes no signal. */
#include "tool/mutator.h"
#include "base/page.h"
#include "base/sys.h"

#include <inlay/tool.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

/* --- telling --- */

/* What children tell, which share all or are followed alone: the rest would be taken for the process's own. */
static bool child_tells(const mutator_ring *r, inlay_event_kind kind)
{
    unsigned shared = INLAY_EVENTS(MESSAGE) | INLAY_EVENTS(BREAK) | INLAY_EVENTS(FORK);
    return kind == RING_FOLLOW || (r->children && shared >> kind & 1);
}

static mutator_ring *ring_for(inlay_event_kind kind)
{
    mutator_ring *r = tool_now->mutating.ring;
    if (r && tool_now->mutating.is_child && !child_tells(r, kind)) return NULL;
    return r && __atomic_load_n(&r->kinds, __ATOMIC_RELAXED) >> kind & 1 ? r : NULL;
}

static void wake(mutator_ring *r)
{
    if (__atomic_exchange_n(&r->told, 1, __ATOMIC_ACQ_REL)) return;
    sys_call(SYS_sendto, tool_now->mutating.socket, (long)"", 1, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

static bool tell(ring_record what, const void *data)
{
    mutator_ring *r = ring_for((inlay_event_kind)what.kind);
    if (!r) return false;
    what.pid = (int32_t)sys_call0(SYS_getpid);
    bool told = ring_put(r, &what, data);
    wake(r);
    return told;
}

static int32_t tid_now(void) { return (int32_t)sys_call0(SYS_gettid); }

static uint32_t length(const char *name)
{
    enum { MOST = 4096 };
    uint32_t n = 0;
    while (name && n < MOST - 1 && name[n]) n++;
    return n;
}

static void tell_named(inlay_event_kind kind, uint64_t number, const char *name)
{
    tell((ring_record){.kind = (uint16_t)kind, .tid = tid_now(), .number = number, .bytes = length(name)}, name);
}

bool inlay_message(uint64_t number, const void *data, size_t size)
{
    ring_record m = {.kind = INLAY_EVENT_MESSAGE, .tid = tid_now(), .number = number, .bytes = (uint32_t)size};
    mutator_ring *r = ring_for(INLAY_EVENT_MESSAGE);
    if (r && size > INLAY_MESSAGE_MOST) __atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
    return size <= INLAY_MESSAGE_MOST && tell(m, data);
}

/* --- breakpoints --- */

/* The other end of the socket is closed when the mutator has ended. */
static bool is_mutator_there(void)
{
    char byte;
    long got = sys_call(SYS_recvfrom, tool_now->mutating.socket, (long)&byte, 1, MSG_DONTWAIT | MSG_PEEK, 0, 0);
    return got == -EAGAIN || got == -EINTR || got > 0;
}

static uint32_t *take_place(mutator_ring *r, uint32_t tid, uint16_t *place)
{
    for (*place = 0; *place < RING_WAITERS; ++*place) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&r->waits[*place], &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &r->waits[*place];
    }
    return NULL;
}

/* The thread that waits for a child of vfork cannot be stopped: the child goes on, if nobody follows it already. */
static bool gives_way(mutator_ring *r, uint32_t *word, uint32_t tid)
{
    if (!run_self()->is_vfork_child || !__atomic_load_n(&r->stops, __ATOMIC_ACQUIRE)) return false;
    return __atomic_compare_exchange_n(word, &tid, RING_WOKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Until the mutator answers, or wants no more of the kind. */
static void tell_and_wait(ring_record b, const void *data)
{
    const struct timespec look = {.tv_nsec = 200000000};
    inlay_event_kind kind = (inlay_event_kind)b.kind;
    mutator_ring *r = ring_for(kind);
    uint32_t tid = (uint32_t)b.tid, *word = r ? take_place(r, tid, &b.place) : NULL;
    if (!word) return;
    uint32_t now = tell(b, data) ? tid : 0;
    while ((now & ~RING_CLAIMED) == tid && is_mutator_there() && ring_for(kind) && !gives_way(r, word, tid)) {
        sys_call(SYS_futex, (long)word, FUTEX_WAIT, now, (long)&look, 0, 0);
        now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

void inlay_break_here(uint64_t number, const inlay_context *c)
{
    ring_record b = {.kind = INLAY_EVENT_BREAK, .tid = tid_now(), .number = number, .bytes = c ? sizeof *c : 0};
    tell_and_wait(b, c);
}

/* --- what happens --- */

static void thread_begins(inlay_thread *t, void *arg)
{
    (void)arg;
    tell((ring_record){.kind = INLAY_EVENT_THREAD_BEGIN, .tid = inlay_thread_tid(t), .number = inlay_thread_number(t)},
         NULL);
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    tell((ring_record){.kind = INLAY_EVENT_THREAD_END, .tid = inlay_thread_tid(t), .number = inlay_thread_number(t)},
         NULL);
}

static void signal_comes(inlay_thread *t, int signo, const siginfo_t *info, const inlay_context *c, void *arg)
{
    (void)c, (void)arg;
    tell((ring_record){.kind = INLAY_EVENT_SIGNAL,
                       .tid = inlay_thread_tid(t),
                       .number = (uint64_t)signo,
                       .bytes = info ? sizeof *info : 0},
         info);
}

/* What is not there needs no company: shells try all of PATH. */
static void wait_to_be_followed(const char *path)
{
    enum { X = 1 };
    ring_record b = {.kind = RING_FOLLOW, .tid = tid_now(), .bytes = length(path)};
    if (ring_for(RING_FOLLOW) && sys_call(SYS_faccessat, AT_FDCWD, (long)path, X, 0, 0, 0) == 0) tell_and_wait(b, path);
}

/* Of a child of vfork the memory is this process's, and it is none of its programs. */
static bool executes(const char *path, char *const argv[], void *arg)
{
    (void)argv, (void)arg;
    if (!run_self()->is_vfork_child) {
        tool_now->mutating.executes = true;
        tell_named(INLAY_EVENT_EXEC, 0, path);
    }
    wait_to_be_followed(path);
    return true;
}

void mutator_exec_failed(run_thread *t)
{
    if (t->is_vfork_child) return;
    tool_now->mutating.executes = false;
    tell_named(INLAY_EVENT_EXEC, 1, NULL); /* it has not */
}

/* What the mutator and the process share is the child's own from now on: it counts for itself, if nobody has asked for
 * its counts as well. */
static void own_shared(mutator_ring *r)
{
    uint64_t at = inl_page_up((uint64_t)(uintptr_t)r + sizeof *r), size = inl_page_up(r->shared);
    long flags = MAP_PRIVATE | MAP_ANONYMOUS, to = MREMAP_MAYMOVE | MREMAP_FIXED;
    if (!size) return;
    long copy = sys_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (sys_failed(copy)) return;
    memcpy((void *)copy, (const void *)at, size);
    sys_call(SYS_mremap, copy, (long)size, (long)size, to, (long)at, 0);
}

/* Its memory has the ring, too, and its descriptors the socket. */
static void child_begins(void *arg)
{
    (void)arg;
    tool_mutating *m = &tool_now->mutating;
    if (!m->ring) return;
    m->is_child = true;
    if (__atomic_load_n(&m->ring->children, __ATOMIC_RELAXED)) return;
    own_shared(m->ring);
    if (ring_for(RING_FOLLOW)) return;
    run_fd_close(m->socket);
    m->ring = NULL;
}

/* In front of an exec it may be the end, and what comes then has no word here. */
static void ends(int status, void *arg)
{
    (void)arg;
    mutator_ring *r = tool_now->mutating.ring;
    if (!r || tool_now->mutating.is_child || tool_now->mutating.executes) return;
    r->status = (uint32_t)status;
    __atomic_store_n(&r->ended, 1, __ATOMIC_RELEASE);
}

void mutator_forked(void *arg, run_thread *t, int child)
{
    (void)arg, (void)t;
    if (child > 0) tell((ring_record){.kind = INLAY_EVENT_FORK, .tid = tid_now(), .number = (uint64_t)child}, NULL);
}

void mutator_listed(const char *name, uint64_t bias, bool gone)
{
    tell_named(gone ? INLAY_EVENT_LIBRARY_UNLOADED : INLAY_EVENT_LIBRARY_LOADED, bias, name);
    tool_now->mutating.has_loaded |= !gone && ring_for(INLAY_EVENT_OPENED);
}

void mutator_all_listed(void)
{
    bool waits = tool_now->mutating.has_loaded;
    tool_now->mutating.has_loaded = false;
    if (waits) tell_and_wait((ring_record){.kind = INLAY_EVENT_OPENED, .tid = tid_now()}, NULL);
}

/* --- the beginning --- */

/* A descriptor of a call becomes a hidden one; *error is the first that there was. */
static int32_t hide(long fd, int32_t *error)
{
    long hidden = sys_failed(fd) ? fd : run_fd_hide((int)fd);
    if (hidden < 0 && fd >= 0) sys_call1(SYS_close, fd);
    if (hidden < 0 && !*error) *error = (int32_t)-hidden;
    return (int32_t)hidden;
}

/* Both by live_call_tool, which comes to its end whoever is killed: nothing of what is open is in the program's way,
 * and all of it is closed when the mutator's file leaves. */
void mutator_offer(void)
{
    mutator_joint *j = (mutator_joint *)MUTATOR_ASKED_AT;
    int pair[2] = {-1, -1};
    long type = SOCK_STREAM | SOCK_CLOEXEC;
    j->error = 0;
    j->memory = hide(sys_call2(SYS_memfd_create, (long)"inlay", MFD_CLOEXEC), &j->error);
    long made = sys_call4(SYS_socketpair, AF_UNIX, type, 0, (long)pair);
    for (int i = 0; i < 2; i++) j->pair[i] = hide(made ? made : pair[i], &j->error);
    for (int i = 0; i < 2 && j->error; i++)
        if (j->pair[i] >= 0) run_fd_close(j->pair[i]);
    if (j->error && j->memory >= 0) run_fd_close(j->memory);
}

void mutator_connect(void)
{
    mutator_joint *j = (mutator_joint *)MUTATOR_ASKED_AT;
    long flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, size = (long)MUTATOR_CHANNEL_SIZE;
    long at = sys_call(SYS_mmap, (long)j->at, size, PROT_READ | PROT_WRITE, flags, j->memory, 0);
    run_fd_close(j->memory);
    run_fd_close(j->pair[0]);
    j->error = sys_failed(at) ? (int32_t)-at : 0;
    if (j->error) {
        run_fd_close(j->pair[1]);
        return;
    }
    tool_now->mutating.socket = j->pair[1];
    tool_now->mutating.ring = (mutator_ring *)j->at;
}

void mutator_resident(void)
{
    tool_now->options.mutating = true;
    inlay_on_thread_start(thread_begins, NULL);
    inlay_on_thread_end(thread_ends, NULL);
    inlay_on_signal(signal_comes, NULL);
    inlay_on_exec(executes, NULL);
    inlay_on_fork_child(child_begins, NULL);
    inlay_on_exit(ends, NULL);
    inlay_start();
    __builtin_unreachable();
}
