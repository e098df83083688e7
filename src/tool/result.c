/* Files for results, of which no two processes write the same one.
 *
 *     FILE             the first process's; with FILE taken, FILE.<pid>
 *     FILE.<pid>       another's; with that taken, FILE.<pid>.2 and so on
 *     FILE.<rank>...   instead of FILE, for one of several that an MPI launcher has started together
 *
 * A file is taken while somebody holds its lock, which is kept as long as a process lives that may write there; or
 * when it has been written since this run began: process numbers are used again, and each namespace has
 * its own. What earlier runs left is overwritten. */
#include "tool/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NAMES = 1000 };

void result_run_began(void)
{
    if (!tool_now->began.tv_sec) clock_gettime(CLOCK_REALTIME_COARSE, &tool_now->began);
}

const char *result_take_beginning(const char *text)
{
    char *end;
    tool_now->began.tv_sec = strtoll(text, &end, 10);
    if (*end == '.') tool_now->began.tv_nsec = strtol(end + 1, &end, 10);
    return *end || !tool_now->began.tv_sec ? "must be a time" : NULL;
}

void result_tell_beginning(char *out, size_t size)
{
    snprintf(out, size, "%lld.%ld", (long long)tool_now->began.tv_sec, tool_now->began.tv_nsec);
}

/* --- ranks --- */

static bool is_number(const char *text) { return text && *text && !text[strspn(text, "0123456789")]; }

/* The variables of Open MPI, PMIx, MPICH and Intel MPI, MVAPICH, Slurm. Alone in its world a process keeps FILE. */
const char *result_name(const char *file)
{
    static const char *const worlds[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"PMIX_RANK", NULL},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const char *rank = getenv(worlds[i][0]), *size = worlds[i][1] ? getenv(worlds[i][1]) : NULL;
        if (!is_number(rank)) continue;
        if (worlds[i][1] && (!is_number(size) || atoll(size) < 2)) break;
        char *named = malloc(strlen(file) + strlen(rank) + 2);
        if (named) sprintf(named, "%s.%s", file, rank);
        return named ? named : file;
    }
    return file;
}

/* --- opening --- */

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

/* To read as well where it is a file: a tool may map it. (A pipe that were opened so would have a reader.) */
static int open_existing(int folder, const char *path, int flags)
{
    struct stat st;
    int fd = -1;
    if (fstatat(folder, path, &st, 0) == 0 && S_ISREG(st.st_mode)) fd = openat(folder, path, flags | O_RDWR, 0666);
    return fd >= 0 ? fd : openat(folder, path, flags | O_WRONLY, 0666);
}

/* -1 with errno EWOULDBLOCK: it is taken. What is not a file, or cannot be locked, is nobody's. keeps: with old
 * content. */
static int open_free(int folder, const char *path, int more, bool of_this_run, bool keeps)
{
    struct stat st;
    bool fresh = true;
    int flags = O_CREAT | O_CLOEXEC | O_NOCTTY | more;
    int fd = openat(folder, path, flags | O_RDWR | O_EXCL, 0666);
    if (fd < 0 && errno == EEXIST) {
        fresh = false;
        fd = open_existing(folder, path, flags);
    }
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return fd;
    bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!fresh && of_this_run) taken |= st.st_size && is_newer(&st.st_mtim, &tool_now->began);
    if (!taken) {
        if (!fresh && !keeps && ftruncate(fd, 0) != 0) tool_say("%s: old content stays: %s", path, strerror(errno));
        return fd;
    }
    close(fd);
    errno = EWOULDBLOCK;
    return -1;
}

static char *with_number(const char *name, int number)
{
    char *made = malloc(strlen(name) + 16);
    if (made) sprintf(made, "%s.%d", name, number);
    return made;
}

int result_open_other(int folder, const char *name)
{
    char *base = with_number(name, inlay_pid());
    if (!base) return -1;
    int fd = open_free(folder, base, 0, true, false);
    for (int n = 2; fd < 0 && errno == EWOULDBLOCK && n < MOST_NAMES; n++) {
        char *next = with_number(base, n);
        fd = next ? open_free(folder, next, 0, true, false) : -1;
        free(next);
    }
    free(base);
    return fd;
}

int result_open_first(const char *path, bool keeps)
{
    int fd = open_free(AT_FDCWD, path, O_APPEND, false, keeps);
    if (fd >= 0 || errno != EWOULDBLOCK) return fd;
    if (tool_handoff_data.role != TOOL_CARRIED)
        tool_say("%s is being written by another process; this one writes %s.%d", path, path, inlay_pid());
    return result_open_other(AT_FDCWD, path);
}
