/* Who looks after what is in a process from outside: a mutator. It is named in the record (move_told.holder), and may
 * have been killed since. */
#include "live/live.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The namespace of processes that it is in; 0: not to be seen. */
static uint64_t names_of(const char *process)
{
    struct stat s;
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &s) == 0 ? s.st_ino : 0;
}

/* When it was started, as the kernel counts; 0: it is not there, or has ended. */
static uint64_t started(const char *process)
{
    enum { STATE = 3, START = 22 };
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    char *at = strrchr(text, ')'); /* a name may have anything in it */
    if (!at || !(at = strchr(at, ' ')) || at[1] == 'Z' || at[1] == 'X') return 0;
    for (int field = STATE; at && field < START; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

void live_holder_self(move_told_holder *h)
{
    *h = (move_told_holder){(uint64_t)getpid(), started("self"), names_of("self")};
}

/* Another user's namespace is not to be seen; its number and when it was started tell enough where that is this one. */
static bool is_it(const char *process, const move_told_holder *h)
{
    pid_t pid = (pid_t)strtol(process, NULL, 10);
    uint64_t names = names_of(process);
    return (names ? names : names_of("self")) == h->names && (uint64_t)live_inner_tid(pid) == h->pid &&
           started(process) == h->started;
}

pid_t live_holder(const move_told_holder *h)
{
    char process[24];
    pid_t found = 0;
    if (!h->pid) return 0;
    snprintf(process, sizeof process, "%llu", (unsigned long long)h->pid);
    if (is_it(process, h)) return (pid_t)h->pid;
    if (names_of("self") == h->names) return 0;
    DIR *d = opendir("/proc"); /* in another namespace it has another number */
    for (struct dirent *entry; d && !found && (entry = readdir(d));)
        if (isdigit((unsigned char)*entry->d_name) && is_it(entry->d_name, h))
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    if (d) closedir(d);
    return found;
}

void live_holder_say(const live_told *t, char *out, size_t size)
{
    const move_told_holder *h = &t->record->holder;
    const char *slash = strrchr(t->tool, '/'), *name = slash ? slash + 1 : t->tool;
    pid_t pid = live_holder(h);
    if (!h->pid) snprintf(out, size, "%s", name);
    else if (pid) snprintf(out, size, "%s (process %d)", name, pid);
    else snprintf(out, size, "%s (process %llu, which has ended)", name, (unsigned long long)h->pid);
}

bool live_is_held_by(pid_t pid, const move_told_holder *h)
{
    live_told t;
    inl_error ignored;
    if (live_record_read(pid, &t, &ignored) != INL_OK) return false;
    bool same = t.record->is_mutators && !memcmp(&t.record->holder, h, sizeof *h);
    live_told_free(&t);
    return same;
}

void live_holder_leaves(pid_t pid, const move_told_holder *h)
{
    const uint64_t nobody = 0;
    char path[32];
    if (!live_is_held_by(pid, h)) return;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_WRONLY | O_CLOEXEC);
    if (mem < 0) return;
    ssize_t n = pwrite(mem, &nobody, sizeof nobody, (off_t)(MOVE_TOLD_BASE + offsetof(move_told, holder.pid)));
    (void)n; /* it has ended */
    close(mem);
}
