/* Counters of the processor's and the kernel's, each thread's own (inlay/perf.h).
 *
 * A thread opens its counters when it first reads them, one descriptor each, hidden from the program; where a page of
 * theirs says that the processor's counter may be read, it is, and the kernel is not asked. Descriptors and pages of
 * all threads stand in one table, so that a child of fork, and the end, can close those of threads that are not there.
 *
 * A program that confines itself while it runs may forbid what a reading needs: then values stay what they were. */
#include "tool/perf.h"
#include "tool/perf_names.h"
#include "base/page.h"
#include "base/sys.h"

#include <inlay/local.h>
#include <inlay/tool.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

enum { FILES = 64, FREE = -1 }; /* as many as there are hidden numbers */

typedef struct perf_file {
    int fd; /* FREE: none */
    struct perf_event_mmap_page *page;
} perf_file;

typedef struct perf_counter { /* of a thread */
    inlay_perf_how how;
    int file, place; /* in the table; in what its group's first event reads */
    uint64_t last, base;
} perf_counter;

typedef struct perf_thread {
    bool open;
    perf_counter counters[INLAY_PERF_MOST];
} perf_thread;

struct inlay_perf {
    unsigned count;
    perf_asked asked[INLAY_PERF_MOST];
    inlay_local *threads;
    const char *why[INLAY_PERF_MOST]; /* it cannot be counted: of the last thread that could not */
    perf_file files[FILES];
    perf_thread early; /* of the thread that asked before threads had data, until that one has */
    long early_tid;
};

static void forget_files(inlay_perf *p)
{
    for (unsigned i = 0; i < FILES; i++) p->files[i] = (perf_file){FREE, NULL};
}

inlay_perf *inlay_perf_new(const char *list)
{
    inlay_perf *p = inlay_alloc(sizeof *p);
    char why[256];
    if (!p) return NULL;
    p->count = perf_names_read(list ? list : "", p->asked, why, sizeof why);
    if (!p->count) {
        inlay_warn("events: %s", why);
        return NULL;
    }
    forget_files(p);
    p->threads = inlay_local_new(sizeof(perf_thread));
    return p->threads ? p : NULL;
}

unsigned inlay_perf_count(const inlay_perf *p) { return p ? p->count : 0; }

const char *inlay_perf_name(const inlay_perf *p, unsigned event)
{
    return p && event < p->count ? p->asked[event].name : NULL;
}

/* --- without perf_event_open --- */

static bool has_usage(const perf_asked *a)
{
    static const uint64_t has[] = {PERF_COUNT_SW_CPU_CLOCK,       PERF_COUNT_SW_TASK_CLOCK,
                                   PERF_COUNT_SW_PAGE_FAULTS,     PERF_COUNT_SW_PAGE_FAULTS_MIN,
                                   PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_CONTEXT_SWITCHES};
    if (a->type != PERF_TYPE_SOFTWARE || a->no_user || a->no_kernel) return false;
    for (unsigned i = 0; i < sizeof has / sizeof *has; i++)
        if (has[i] == a->config) return true;
    return false;
}

static uint64_t thread_clock(void)
{
    struct timespec t = {0};
    sys_call2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t usage(uint64_t config)
{
    struct rusage r = {0};
    if (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK) return thread_clock();
    sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&r);
    if (config == PERF_COUNT_SW_PAGE_FAULTS_MIN) return (uint64_t)r.ru_minflt;
    if (config == PERF_COUNT_SW_PAGE_FAULTS_MAJ) return (uint64_t)r.ru_majflt;
    if (config == PERF_COUNT_SW_PAGE_FAULTS) return (uint64_t)(r.ru_minflt + r.ru_majflt);
    return (uint64_t)(r.ru_nvcsw + r.ru_nivcsw);
}

/* --- opening --- */

static long open_event(const perf_asked *a, int leader)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = a->type, .config = a->config};
    attr.config1 = a->config1;
    attr.config2 = a->config2;
    attr.exclude_user = a->no_user;
    attr.exclude_kernel = a->no_kernel;
    attr.exclude_hv = a->no_hypervisor;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return sys_call(SYS_perf_event_open, (long)&attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC, 0);
}

static const char *reason(const perf_asked *a, long error)
{
    bool hardware = a->type != PERF_TYPE_SOFTWARE;
    switch (-error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        return hardware ? "this machine has no such counter (virtual machines often have none); page-faults, "
                          "context-switches, task-clock work"
                        : "this kernel does not count it";
    case EACCES:
    case EPERM: return "it is forbidden: /proc/sys/kernel/perf_event_paranoid, or a filter of system calls (seccomp)";
    case ENOSYS: return "this kernel or container has no perf_event_open";
    case EMFILE:
    case ENFILE: return "there are no descriptors left for counters of so many threads";
    case EINVAL: return "the kernel does not take it so, perhaps not in this group";
    default: return "perf_event_open fails";
    }
}

/* The table's place, or -errno. */
static int keep_file(inlay_perf *p, int fd)
{
    int hidden = perf_fd_hide(fd);
    for (int i = 0; hidden >= 0 && i < FILES; i++) {
        int free = FREE;
        if (!__atomic_compare_exchange_n(&p->files[i].fd, &free, hidden, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        long page = sys_call(SYS_mmap, 0, INL_PAGE, PROT_READ, MAP_SHARED, hidden, 0);
        p->files[i].page = sys_failed(page) ? NULL : (void *)page;
        return i;
    }
    if (hidden >= 0) perf_fd_close(hidden);
    else sys_call1(SYS_close, fd);
    return hidden < 0 ? hidden : -EMFILE;
}

static void close_file(perf_file *f)
{
    if (f->fd == FREE) return;
    if (f->page) sys_call2(SYS_munmap, (long)f->page, INL_PAGE);
    perf_fd_close(f->fd);
    f->page = NULL;
    __atomic_store_n(&f->fd, FREE, __ATOMIC_RELEASE);
}

/* The thread's first event of the group that could be opened; -1: there is none. */
static int leader_of(const inlay_perf *p, const perf_thread *t, unsigned event)
{
    for (unsigned i = 0; i < event; i++)
        if (p->asked[i].group == p->asked[event].group && t->counters[i].file != FREE) return (int)i;
    return -1;
}

static unsigned members_before(const inlay_perf *p, const perf_thread *t, unsigned event)
{
    unsigned n = 0;
    for (unsigned i = 0; i < event; i++) n += p->asked[i].group == p->asked[event].group && t->counters[i].file != FREE;
    return n;
}

static void open_counter(inlay_perf *p, perf_thread *t, unsigned event)
{
    perf_asked *a = &p->asked[event];
    perf_counter *c = &t->counters[event];
    int leader = leader_of(p, t, event), group = leader < 0 ? -1 : p->files[t->counters[leader].file].fd;
    long fd = perf_may(SYS_perf_event_open) ? open_event(a, group) : -EPERM;
    if (fd == -EACCES && !a->no_kernel && !has_usage(a)) { /* paranoid: user code alone, which the name says then */
        a->no_kernel = a->no_hypervisor = true;
        fd = open_event(a, group);
        if (!sys_failed(fd) && strlen(a->name) + 3 < sizeof a->name) strcat(a->name, ":u");
    }
    int file = sys_failed(fd) ? (int)fd : keep_file(p, (int)fd);
    *c = (perf_counter){.file = file < 0 ? FREE : file, .place = (int)members_before(p, t, event)};
    if (file >= 0) {
        uint64_t unused;
        const struct perf_event_mmap_page *page = p->files[file].page;
        c->how = page && perf_page_read(page, perf_pmc_read, &unused) ? INLAY_PERF_USER : INLAY_PERF_CALL;
    } else if (has_usage(a)) {
        c->how = INLAY_PERF_USAGE;
        c->base = usage(a->config);
    } else {
        p->why[event] = reason(a, file);
    }
}

static perf_thread *early(inlay_perf *p)
{
    p->early_tid = sys_call0(SYS_gettid);
    return &p->early;
}

static perf_thread *thread_now(inlay_perf *p)
{
    perf_thread *t = inlay_local_now(p->threads);
    if (t && !t->open && p->early.open && sys_call0(SYS_gettid) == p->early_tid) {
        *t = p->early;
        p->early.open = false;
    }
    if (!t) t = early(p);
    if (t->open) return t;
    for (unsigned i = 0; i < p->count; i++) open_counter(p, t, i);
    t->open = true;
    return t;
}

/* --- reading --- */

typedef struct group_values { /* as read(2) gives them */
    uint64_t count, enabled, running;
    uint64_t values[INLAY_PERF_MOST];
} group_values;

/* Of the group that `event` is in. */
static bool ask(const inlay_perf *p, const perf_thread *t, unsigned event, group_values *g)
{
    int first = leader_of(p, t, event), of = first < 0 ? (int)event : first;
    int fd = p->files[t->counters[of].file].fd;
    if (!perf_may(SYS_read) || !perf_fd_is_there(fd)) return false;
    long n = sys_call3(SYS_read, fd, (long)g, sizeof *g);
    return n >= (long)sizeof(uint64_t) * 3 && g->count <= INLAY_PERF_MOST;
}

/* A group is asked once for all of its events. */
void inlay_perf_read(inlay_perf *p, uint64_t *values)
{
    if (!p || !values) return;
    perf_thread *t = thread_now(p);
    group_values g;
    uint32_t asked = UINT32_MAX;
    for (unsigned i = 0; i < p->count; i++) {
        perf_counter *c = &t->counters[i];
        if (c->how == INLAY_PERF_USER)
            if (!perf_page_read(p->files[c->file].page, perf_pmc_read, &c->last)) c->how = INLAY_PERF_CALL;
        if (c->how == INLAY_PERF_CALL) {
            bool known = asked == p->asked[i].group || ask(p, t, i, &g);
            asked = known ? p->asked[i].group : UINT32_MAX;
            if (known && (unsigned)c->place < g.count) c->last = g.values[c->place];
        } else if (c->how == INLAY_PERF_USAGE) {
            c->last = usage(p->asked[i].config) - c->base;
        }
        values[i] = c->last;
    }
}

inlay_perf_how inlay_perf_state(inlay_perf *p, unsigned event, const char **why)
{
    const char *unused;
    perf_thread *t = p && event < p->count ? thread_now(p) : NULL;
    if (!why) why = &unused;
    *why = t && t->counters[event].how == INLAY_PERF_NOT ? p->why[event] : NULL;
    return t ? t->counters[event].how : INLAY_PERF_NOT;
}

/* --- ends --- */

bool inlay_perf_end(inlay_perf *p, inlay_perf_total *totals)
{
    perf_thread *t = p ? inlay_local_now(p->threads) : NULL;
    uint64_t values[INLAY_PERF_MOST];
    if (!totals || !t || !t->open) return false;
    inlay_perf_read(p, values);
    for (unsigned i = 0; i < p->count; i++) {
        perf_counter *c = &t->counters[i];
        group_values g = {0};
        totals[i] = (inlay_perf_total){.value = values[i], .how = c->how};
        if (c->file == FREE || !ask(p, t, i, &g)) continue;
        totals[i].enabled = g.enabled;
        totals[i].running = g.running;
    }
    for (unsigned i = p->count; i-- > 0;)
        if (t->counters[i].file != FREE) close_file(&p->files[t->counters[i].file]);
    t->open = false;
    return true;
}

void inlay_perf_close(inlay_perf *p)
{
    for (unsigned i = 0; p && i < FILES; i++) close_file(&p->files[i]);
}

/* A child has its parent's descriptors, but not the pages. */
void inlay_perf_forked(inlay_perf *p)
{
    if (!p) return;
    perf_thread *t = inlay_local_now(p->threads);
    for (unsigned i = 0; i < FILES; i++)
        if (p->files[i].fd != FREE) perf_fd_close(p->files[i].fd);
    forget_files(p);
    if (t) t->open = false;
}
