#include "tool/ahead.h"
#include "base/log.h"
#include "base/sys.h"
#include "cfg/kept.h"
#include "tool/rewriter.h"
#include "tool/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child tells: where the bytes of an analysis are. */
typedef struct made {
    uint64_t index, at, size; /* size 0: there is none */
} made;

typedef struct asked {
    image *of;
    bool told;
    made made;
} asked;

typedef struct tool_ahead {
    pid_t child;
    int file, told; /* the bytes; the end of a pipe, for each that is done */
    size_t count;
    asked images[];
} tool_ahead;

/* It is not kept anywhere: that another image's are not taken for it is all. */
static void key_of(const tool_ahead *a, size_t k, char key[CFG_KEPT_KEY])
{
    snprintf(key, CFG_KEPT_KEY, "%zu %.400s\n", k, image_path(a->images[k].of));
}

/* --- the child --- */

static bool put(int file, const uint8_t *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(file, bytes + done, size - done, (off_t)(at + done));
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static bool make(const tool_ahead *a, size_t k, uint64_t *at, int tell)
{
    inl_error e = {0};
    inl_bytes bytes = {0};
    cfg_program *p;
    char key[CFG_KEPT_KEY];
    key_of(a, k, key);
    bool good = cfg_program_analyse(a->images[k].of, NULL, &p, &e) == INL_OK && cfg_kept_write(p, key, &bytes) &&
                put(a->file, bytes.data, bytes.size, *at);
    const made m = {k, *at, good ? bytes.size : 0};
    *at += m.size;
    inl_bytes_free(&bytes);
    return write(tell, &m, sizeof m) == sizeof m;
}

static void work(const tool_ahead *a, int tell, pid_t parent) __attribute__((noreturn));
static void work(const tool_ahead *a, int tell, pid_t parent)
{
    uint64_t at = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        for (size_t k = 0; k < a->count && make(a, k, &at, tell); k++) {}
    for (;;) sys_call1(SYS_exit_group, 0); /* handlers at the end are the parent's */
}

/* --- the parent --- */

static bool has_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
}

/* Another thread may hold a lock of the allocator's, which nobody would ever give back in a child. */
static bool is_only_thread(void)
{
    enum { OF_NO_THREAD = 2 }; /* links */
    struct stat s;
    return stat("/proc/self/task", &s) == 0 && s.st_nlink == OF_NO_THREAD + 1;
}

/* A child without an exit signal, which ordinary waits do not find, and to which no signal comes that is meant for its
 * parent: neither the user's handlers nor the tool's are to run there. */
static pid_t fork_quietly(const tool_ahead *a, int tell)
{
    sigset_t all, before;
    pid_t self = getpid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t child = (pid_t)sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (child == 0) work(a, tell, self);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

static bool start(tool_ahead *a)
{
    int ends[2];
    a->file = memfd_create("inlay", MFD_CLOEXEC);
    if (a->file < 0) return false;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        a->child = fork_quietly(a, ends[1]);
        a->told = ends[0];
        close(ends[1]);
        if (a->child > 0) return true;
        close(ends[0]);
    }
    close(a->file);
    return false;
}

void tool_ahead_begin(image *const *images, size_t count)
{
    tool_ahead_end();
    if (!count || tool_handoff_data.role != TOOL_INSTRUMENTOR || tool_keeps() || !has_processors() || !is_only_thread())
        return;
    tool_ahead *a = calloc(1, sizeof *a + count * sizeof *a->images);
    if (!a) return;
    a->count = count;
    for (size_t k = 0; k < count; k++) a->images[k].of = images[k];
    if (start(a)) tool_now->ahead = a;
    else free(a);
}

static bool hear(tool_ahead *a)
{
    made m;
    ssize_t n;
    do n = read(a->told, &m, sizeof m);
    while (n < 0 && errno == EINTR);
    if (n != sizeof m || m.index >= a->count) return false;
    a->images[m.index].told = true;
    a->images[m.index].made = m;
    return true;
}

static cfg_program *take(const tool_ahead *a, size_t k)
{
    const made *m = &a->images[k].made;
    char key[CFG_KEPT_KEY];
    uint8_t *bytes = m->size ? malloc(m->size) : NULL;
    key_of(a, k, key);
    bool good = bytes && pread(a->file, bytes, m->size, (off_t)m->at) == (ssize_t)m->size;
    cfg_program *p = good ? cfg_kept_read(a->images[k].of, key, bytes, m->size) : NULL;
    if (p) inl_log(INL_LOG_CACHE, "%s was analysed meanwhile", image_path(a->images[k].of));
    free(bytes);
    return p;
}

cfg_program *tool_ahead_take(image *im)
{
    tool_ahead *a = tool_now->ahead;
    for (size_t k = 0; a && k < a->count; k++) {
        if (a->images[k].of != im) continue;
        while (!a->images[k].told && hear(a)) {}
        return a->images[k].told ? take(a, k) : NULL;
    }
    return NULL;
}

void tool_ahead_end(void)
{
    tool_ahead *a = tool_now->ahead;
    if (!a) return;
    tool_now->ahead = NULL;
    kill(a->child, SIGKILL);
    while (waitpid(a->child, NULL, __WALL) < 0 && errno == EINTR) {}
    close(a->told);
    close(a->file);
    free(a);
}
