/* Memory that a process and its mutator have both, and a socket between them.
 *
 * The process makes both, by calls made for it while it stands still; the mutator gets descriptors of its own to them.
 * In the process one descriptor stays, a hidden one of the socket, which the kernel closes when another program is
 * executed or the process ends: that is how the mutator learns of it. Nothing is traced. Should the mutator end, what
 * the process writes into the ring stays there, and what it sends is lost without a signal.
 *
 * Who stops the process may be a child of the mutator's (live_apart): descriptors come from there by a message. */
#include "tool/mutator.h"
#include "base/sys.h"

#include <inlay/process.h>

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct joining {
    mutatee *m;
    uint64_t at;
    int pass[2]; /* descriptors come out of the first end */
} joining;

/* --- with the process held --- */

/* A descriptor of the process's, here as well. */
static inl_status fetch(const joining *j, long fd, int *here, inl_error *e)
{
    *here = (int)syscall(SYS_pidfd_getfd, j->m->pidfd, (int)fd, 0);
    if (*here >= 0) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "cannot get a descriptor of process %d (pidfd_getfd: %s)", j->m->live.pid,
                    strerror(errno));
}

static inl_status pass(const joining *j, const int fds[2], inl_error *e)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {"", 1};
    struct msghdr m = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.head), fds, 2 * sizeof(int));
    if (sendmsg(j->pass[1], &m, MSG_NOSIGNAL) == 1) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "passing descriptors: %s", strerror(errno));
}

/* What its part there has answered. */
static inl_status call(const joining *j, void (*routine)(void), mutator_joint *of, inl_error *e)
{
    live_process *p = &j->m->live;
    inl_status s = live_call_tool(p, (uint64_t)(uintptr_t)routine, MUTATOR_STACK_TOP, e);
    if (s == INL_OK) s = remote_read(&p->threads.items[0], MUTATOR_ASKED_AT, of, sizeof *of, e);
    if (s == INL_OK && of->error)
        s = inl_fail(e, INL_ERR_SYSTEM, "process %d cannot share memory and a socket with its mutator: %s", p->pid,
                     strerror(of->error));
    return s;
}

/* The size is set here: the process may have a limit. */
static inl_status give_size(const joining *j, int memory, inl_error *e)
{
    if (ftruncate(memory, (off_t)MUTATOR_CHANNEL_SIZE) == 0) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "memory for process %d: %s", j->m->live.pid, strerror(errno));
}

static inl_status join(mutatee *m, void *arg, void *answer, inl_error *e)
{
    const joining *j = arg;
    mutator_joint of = {.at = j->at};
    int here[2] = {-1, -1};
    (void)answer;
    inl_status s = remote_write(&m->live.threads.items[0], MUTATOR_ASKED_AT, &of, sizeof of, e);
    if (s == INL_OK) s = call(j, mutator_offer, &of, e);
    if (s != INL_OK) return s;
    s = fetch(j, of.memory, &here[0], e);
    if (s == INL_OK) s = fetch(j, of.pair[0], &here[1], e);
    if (s == INL_OK) s = give_size(j, here[0], e);
    if (s == INL_OK) s = call(j, mutator_connect, &of, e);
    if (s == INL_OK) s = pass(j, here, e);
    for (int i = 0; i < 2; i++)
        if (here[i] >= 0) close(here[i]);
    return s;
}

/* --- here --- */

static bool receive(const joining *j, int fds[2])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char byte;
    struct iovec room = {&byte, 1};
    struct msghdr m = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(j->pass[0], &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1 || !CMSG_FIRSTHDR(&m)) return false;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), 2 * sizeof(int));
    return true;
}

static inl_status take(mutatee *m, const joining *j, inl_error *e)
{
    int fds[2];
    if (!receive(j, fds)) return inl_fail(e, INL_ERR_SYSTEM, "descriptors of process %d have not come", m->live.pid);
    void *at = mmap((void *)j->at, MUTATOR_CHANNEL_SIZE, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fds[0], 0);
    close(fds[0]);
    m->socket = fds[1];
    if (at != (void *)j->at) return inl_fail(e, INL_ERR_NO_MEMORY, "no memory at 0x%llx", (unsigned long long)j->at);
    m->ring = at;
    m->share_next = inl_page_up(j->at + sizeof(mutator_ring));
    mutator_watching *w = mutator_watching_now();
    struct epoll_event of = {.events = EPOLLIN | EPOLLRDHUP};
    if (w && epoll_ctl(w->descriptor, EPOLL_CTL_ADD, m->socket, &of) == 0) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "no descriptor for events: %s", strerror(errno));
}

static inl_status give_number(mutatee *m, inl_error *e)
{
    bool used[MUTATOR_CHANNEL_COUNT] = {false};
    for (const mutatee *x = tool_now->mutating.first; x; x = x->next)
        if (x->ring) used[x->number] = true;
    for (m->number = 0; m->number < MUTATOR_CHANNEL_COUNT; m->number++)
        if (!used[m->number]) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "more than %d processes are watched", MUTATOR_CHANNEL_COUNT);
}

/* The tool is put in first. */
static inl_status open_channel(mutatee *m, inl_error *e)
{
    joining j = {.m = m};
    if (m->ring) return INL_OK;
    if (m->has_execed) return inl_fail(e, INL_ERR_USAGE, "process %d has executed another program", m->live.pid);
    inl_status s = give_number(m, e);
    j.at = MUTATOR_CHANNELS + m->number * MUTATOR_CHANNEL_SIZE;
    if (s == INL_OK && !m->has_tool) s = mutator_put(m, e);
    if (s == INL_OK && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, j.pass) != 0)
        return inl_fail(e, INL_ERR_SYSTEM, "no socket: %s", strerror(errno));
    if (s != INL_OK) return s;
    s = mutator_work(m, join, &j, NULL, 0, e);
    if (s == INL_OK) s = take(m, &j, e);
    close(j.pass[0]);
    close(j.pass[1]);
    return s;
}

/* --- what is watched --- */

mutator_watching *mutator_watching_now(void)
{
    mutator_watching *w = tool_now->mutating.watching;
    if (w) return w;
    w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (w->descriptor >= 0) return tool_now->mutating.watching = w;
    free(w);
    return NULL;
}

void mutator_unwatch(int fd)
{
    const mutator_watching *w = tool_now->mutating.watching;
    if (w && fd >= 0) epoll_ctl(w->descriptor, EPOLL_CTL_DEL, fd, NULL);
}

int inlay_events_descriptor(void)
{
    const mutator_watching *w = mutator_watching_now();
    return w ? w->descriptor : -1;
}

/* The end of a process is told of as long as it is watched for anything: nothing comes behind it. */
static inl_status watch_end(mutatee *m, inl_error *e)
{
    const mutator_watching *w = mutator_watching_now();
    struct epoll_event of = {.events = EPOLLIN};
    if (m->end_watched) return INL_OK;
    if (!w || epoll_ctl(w->descriptor, EPOLL_CTL_ADD, m->pidfd, &of) != 0)
        return inl_fail(e, INL_ERR_SYSTEM, "no descriptor for events: %s", strerror(errno));
    m->end_watched = true;
    return INL_OK;
}

/* Of some things the mutator itself has to hear. */
void mutator_tell_kinds(mutatee *m)
{
    unsigned asked = INLAY_EVENTS(OPENED), kinds = m->loads_wait ? m->kinds | asked : m->kinds & ~asked;
    kinds |= (m->shares ? INLAY_EVENTS(FORK) : 0u) | (m->follows ? 1u << RING_FOLLOW : 0u);
    if (m->ring) __atomic_store_n(&m->ring->kinds, kinds, __ATOMIC_RELEASE);
}

/* What has come since the process was attached to, when nobody told it. */
static void see_images(mutatee *m)
{
    inl_error ignored;
    if (live_read_maps(&m->live, &ignored) == INL_OK) live_find_images(&m->live, m->modules, &ignored);
}

bool inlay_process_watch(inlay_process *p, unsigned kinds)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    tool_process_mean(p);
    inl_status s = watch_end(m, &e);
    if (s == INL_OK && kinds & ~INLAY_EVENTS(EXIT)) s = open_channel(m, &e);
    if (s != INL_OK) return mutator_fail(&e);
    bool begins = kinds & ~m->kinds & INLAY_EVENTS(LIBRARY_LOADED);
    m->kinds = kinds;
    mutator_tell_kinds(m);
    if (begins) see_images(m);
    return true;
}

void *inlay_process_share(inlay_process *p, size_t bytes)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    bool there = m || mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!there) return NULL;
    tool_process_mean(p);
    if (open_channel(m, &e) != INL_OK) {
        mutator_fail(&e);
        return NULL;
    }
    uint64_t at = m->share_next,
             high = inl_page_up((uint64_t)(uintptr_t)m->ring + sizeof(mutator_ring)) + MUTATOR_SHARE;
    if (bytes > high - at) {
        mutator_refuse(INL_ERR_NO_MEMORY, "more than 64 MiB shared with process %d", m->live.pid);
        return NULL;
    }
    m->share_next += (bytes + 63) & ~(uint64_t)63;
    uint64_t low = inl_page_up((uint64_t)(uintptr_t)m->ring + sizeof(mutator_ring));
    __atomic_store_n(&m->ring->shared, m->share_next - low, __ATOMIC_RELEASE);
    return (void *)at;
}

bool inlay_process_share_with_children(inlay_process *p, bool yes)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    tool_process_mean(p);
    if (open_channel(m, &e) != INL_OK) return mutator_fail(&e);
    m->shares = yes;
    mutator_share_begins(m);
    __atomic_store_n(&m->ring->children, yes, __ATOMIC_RELEASE);
    mutator_tell_kinds(m);
    return true;
}

bool inlay_process_wait_at_load(inlay_process *p, bool yes)
{
    mutatee *m = mutatee_of(p);
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!inlay_process_watch(p, m->kinds | INLAY_EVENTS(LIBRARY_LOADED))) return false;
    m->loads_wait = yes;
    mutator_tell_kinds(m);
    return true;
}

bool mutator_shares(const void *p)
{
    uint64_t at = (uint64_t)(uintptr_t)p;
    return at - MUTATOR_CHANNELS < MUTATOR_CHANNEL_COUNT * MUTATOR_CHANNEL_SIZE;
}

/* They look whether they still are to wait. */
static void wake_all(mutatee *m)
{
    for (unsigned k = 0; k < RING_WAITERS; k++) {
        uint32_t *word = &m->ring->waits[k], tid = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (tid && tid != RING_WOKEN) syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

void mutator_quiet(mutatee *m)
{
    if (!m->ring) return;
    __atomic_store_n(&m->ring->kinds, 0, __ATOMIC_RELEASE);
    wake_all(m);
}

void mutator_tell_stops(mutatee *m, bool yes)
{
    if (!m->ring) return;
    __atomic_store_n(&m->ring->stops, yes, __ATOMIC_RELEASE);
    if (yes) wake_all(m);
}

void mutator_watch_end(mutatee *m)
{
    if (m->end_watched) mutator_unwatch(m->pidfd);
    if (m->socket >= 0) {
        mutator_unwatch(m->socket);
        close(m->socket);
    }
    free(m->exec_path);
    inl_vec_free(&m->children);
    if (!m->ring) return;
    mutator_quiet(m);
    munmap(m->ring, MUTATOR_CHANNEL_SIZE);
}
