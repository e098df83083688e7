/* Files of /proc that tell of Inlay: the program gets a file in memory with what they would say
 * without it. The text is that of the moment of opening, or of reading again (procagain.c).
 *
 *     maps, smaps   less Inlay's own ranges (maps.c)
 *     status    the signals that the program blocks, ignores and catches, not those Inlay does
 *     cmdline, environ, auxv   of a program that Inlay loaded without ptrace: the kernel tells the tool's
 *
 * The real file is opened first, so that every error is the kernel's own, and what has been opened is
 * told by the descriptor: by whatever way the program named it (relative to a folder of /proc, as
 * thread-self, below task/). Only that the name ends as the file's own does is asked before, since it
 * costs nothing: a symbolic link of another name to such a file is not seen through.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "base/libc_ready.h"
#include "base/page.h"
#include "base/sys.h"
#include "run/kernel.h"
#include "run/worker.h"
#include INL_ARCH_HEADER(run, abi)

static bool write_out(run_proc_file *out)
{
    for (size_t at = 0; at < out->used;) {
        long done = sys_call3(SYS_write, out->fd, (long)(out->text + at), (long)(out->used - at));
        if (done <= 0) return false;
        at += (size_t)done;
    }
    out->used = 0;
    return true;
}

bool run_proc_put(run_proc_file *out, const char *text, size_t n)
{
    while (n) {
        if (out->used == sizeof out->text && !write_out(out)) return false;
        size_t part = sizeof out->text - out->used;
        if (part > n) part = n;
        memcpy(out->text + out->used, text, part);
        out->used += part;
        text += part;
        n -= part;
    }
    return true;
}

static uint64_t caught_by(run_signals *s)
{
    uint64_t set = 0;
    inl_lock_take(&s->lock);
    for (int signo = 1; signo <= 64; signo++)
        if (s->action[signo].handler > 1) set |= RUN_BIT(signo);
    inl_lock_release(&s->lock);
    return set;
}

static uint64_t ignored_by(run_signals *s)
{
    uint64_t set = 0;
    inl_lock_take(&s->lock);
    for (int signo = 1; signo <= 64; signo++)
        if (s->action[signo].handler == 1) set |= RUN_BIT(signo);
    inl_lock_release(&s->lock);
    return set;
}

/* The thread that a status is of: its Pid line says so. */
static const run_thread *thread_of(const char *text)
{
    const char *line = strstr(text, "\nPid:\t");
    int tid = line ? atoi(line + 6) : 0;
    for (const run_thread *t = run_here.threads; t; t = t->next)
        if (t->tid == tid) return t;
    return run_self();
}

/* How many there are, without those of Inlay's own. */
static bool threads_put(run_proc_file *out, const char *text)
{
    char number[24];
    const char *line = strstr(text, "\nThreads:\t"), *end = line ? strchr(line + 1, '\n') : NULL;
    unsigned hidden = run_workers_count();
    if (!end || !hidden) return run_proc_put(out, text, strlen(text));
    const char *at = line + sizeof "\nThreads:\t" - 1;
    int n = snprintf(number, sizeof number, "%d", atoi(at) - (int)hidden);
    return run_proc_put(out, text, (size_t)(at - text)) && run_proc_put(out, number, (size_t)n) &&
           run_proc_put(out, end, strlen(end));
}

static bool status_put(run_proc_file *out, char *text)
{
    const run_thread *t = thread_of(text);
    const struct {
        const char *name;
        uint64_t set;
    } sets[] = {{"SigBlk:\t", t->sigmask}, {"SigIgn:\t", ignored_by(t->signals)}, {"SigCgt:\t", caught_by(t->signals)}};
    for (unsigned i = 0; i < 3; i++) {
        char digits[17], *at = strstr(text, sets[i].name);
        if (!at) continue;
        snprintf(digits, sizeof digits, "%016lx", (long)sets[i].set);
        memcpy(at + strlen(sets[i].name), digits, 16);
    }
    return threads_put(out, text);
}

/* What lies there, or only as much of it as goes before a 0, and that. */
static bool strings_put(run_proc_file *out, uint64_t from, uint64_t to, bool one)
{
    char text[INL_PAGE];
    for (const char *end = NULL; from < to && !end;) {
        uint64_t n = to - from < sizeof text ? to - from : sizeof text;
        if (!run_read(text, from, n)) return false;
        end = one ? memchr(text, 0, n) : NULL;
        if (end) n = (uint64_t)(end + 1 - text);
        if (!run_proc_put(out, text, n)) return false;
        from += n;
    }
    return true;
}

/* As the kernel does it: the bytes that held the arguments at the start, whatever they are now. Where the last of them
 * is no 0 the program has written one longer title over them, and over its environment. */
static bool cmdline_put(run_proc_file *out, char *text)
{
    const uint64_t *at = run_here.strings;
    char last = 0;
    (void)text;
    bool title = at[1] > at[0] && run_read(&last, at[1] - 1, 1) && last;
    return strings_put(out, at[0], at[title ? 2 : 1], title);
}

static bool environ_put(run_proc_file *out, char *text)
{
    (void)text;
    return strings_put(out, run_here.strings[1], run_here.strings[2], false);
}

/* On the first stack the strings follow each other, as the two vectors do. */
static void find_strings(void)
{
    uint64_t string, *found = run_here.strings, at = run_sp(&run_here.start.ctx) + sizeof at;
    for (unsigned end = 1; end < 3; end++, at += sizeof string)
        for (; run_read(&string, at, sizeof string) && string; at += sizeof string) {
            if (!found[0]) found[0] = found[1] = string;
            found[end] = found[2] = string + strlen((const char *)(uintptr_t)string) + 1;
        }
}

/* The auxiliary vector, behind the environment, with its end. */
static bool auxv_put(run_proc_file *out, char *text)
{
    uint64_t argc, at = run_sp(&run_here.start.ctx), word = 1;
    Elf64_auxv_t entry = {.a_type = !AT_NULL};
    (void)text;
    if (!run_read(&argc, at, sizeof argc)) return false;
    for (at += (argc + 2) * sizeof argc; word; at += sizeof word)
        if (!run_read(&word, at, sizeof word)) return false;
    for (; entry.a_type != AT_NULL; at += sizeof entry)
        if (!run_read(&entry, at, sizeof entry) || !run_proc_put(out, (char *)&entry, sizeof entry)) return false;
    return true;
}

static char *read_all(int fd)
{
    size_t size = 0, room = 64 << 10;
    char *text = malloc(room);
    for (;;) {
        long n = text ? sys_call3(SYS_read, fd, (long)(text + size), (long)(room - size - 1)) : -1;
        if (n < 0) {
            free(text);
            return NULL;
        }
        size += (size_t)n;
        if (n == 0) break;
        if (room - size < INL_PAGE) {
            char *more = realloc(text, room *= 2);
            if (!more) free(text);
            text = more;
        }
    }
    text[size] = 0;
    return text;
}

static const struct {
    const char *name;
    bool (*put)(run_proc_file *out, char *text);
    bool only_loaded;
} files[] = {
    {"maps", run_maps_put, false},  {"smaps", run_smaps_put, false}, {"status", status_put, false},
    {"cmdline", cmdline_put, true}, {"environ", environ_put, true},  {"auxv", auxv_put, true},
};

int run_proc_kind(const char *path)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    for (unsigned f = 0; f < sizeof files / sizeof *files; f++)
        if (!strcmp(last, files[f].name) && (run_here.client.proc_link || !files[f].only_loaded)) return (int)f;
    return -1;
}

/* --- /proc itself, kept open: the program may change its root --- */

void run_proc_init(void)
{
    long fd = sys_call4(SYS_openat, AT_FDCWD, (long)"/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    run_here.proc_root = sys_failed(fd) ? -1 : run_fd_hide((int)fd);
    if (run_here.client.proc_link) find_strings();
    if (run_here.proc_root < 0 && !sys_failed(fd)) sys_call1(SYS_close, fd);
}

void run_proc_end(void)
{
    if (run_here.proc_root >= 0) run_fd_close(run_here.proc_root);
    run_here.proc_root = -1;
}

static long open_below(const char *below, int flags)
{
    char path[64];
    if (run_here.proc_root > 0) return sys_call4(SYS_openat, run_here.proc_root, (long)below, flags | O_CLOEXEC, 0);
    inl_libc_ready();
    snprintf(path, sizeof path, "/proc/%s", below);
    return sys_call4(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0);
}

long run_proc_open(const char *below) { return open_below(below, O_RDONLY); }
long run_proc_open_memory(void) { return open_below("self/mem", O_RDWR); }

long run_proc_open_copy(int fd)
{
    char below[40];
    snprintf(below, sizeof below, "thread-self/fd/%d", fd); /* which may have descriptors of its own */
    return open_below(below, O_RDWR);
}

static bool link_at(int folder, const char *link, char *out, size_t size)
{
    long n = sys_call4(SYS_readlinkat, folder, (long)link, (long)out, (long)size - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

bool run_proc_fd_path(int fd, char *out, size_t size)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return link_at(run_here.proc_root, link + (run_here.proc_root >= 0 ? sizeof "/proc" : 0), out, size);
}

/* /proc/self says the process's number as that /proc counts, which may be another's namespace: that of the /proc at
 * the beginning, or of one that the program has mounted since. */
bool run_proc_own_path(int fd, char *out, size_t size)
{
    struct statfs fs;
    char target[96], pid[24], own[40];
    if (sys_call2(SYS_fstatfs, fd, (long)&fs) || fs.f_type != PROC_SUPER_MAGIC) return false;
    if (!run_proc_fd_path(fd, target, sizeof target)) return false;
    int n = link_at(-1, "/proc/self", pid, sizeof pid) ? snprintf(own, sizeof own, "/proc/%s/", pid) : 0;
    if (n && !strncmp(target, own, (size_t)n)) {
        snprintf(out, size, "%s", target + n);
        return true;
    }
    if (run_here.proc_root < 0 || !link_at(run_here.proc_root, "self", pid, sizeof pid)) return false;
    n = snprintf(own, sizeof own, "/proc/%s/", pid);
    if (strncmp(target, own, (size_t)n) != 0) return false;
    snprintf(out, size, "%s", target + n);
    return true;
}

/* The file itself, or the same of one thread: task/<tid>/<name>; its path. */
static bool is_own_file(int fd, const char *name, char path[64])
{
    const char *at = path;
    if (!run_proc_own_path(fd, path, 64)) return false;
    if (!strncmp(at, "task/", 5)) at += 5 + strspn(at + 5, "0123456789") + 1;
    return !strcmp(at, name);
}

/* `made` instead of `fd`: opened anew, so that what was opened for reading cannot be written to. */
static void put_in_place(int made, int fd, int flags)
{
    char below[40];
    snprintf(below, sizeof below, "thread-self/fd/%d", made); /* which may have descriptors of its own */
    long again = flags & O_ACCMODE ? -1 : run_proc_open(below);
    sys_call3(SYS_dup3, sys_failed(again) ? made : again, fd, flags & O_CLOEXEC);
    if (!sys_failed(again)) sys_call1(SYS_close, again);
}

bool run_proc_fill(int real, int made, int kind)
{
    char *text = read_all(real);
    run_proc_file *out = malloc(sizeof *out);
    bool good = text && out;
    if (good) {
        out->fd = made;
        out->used = 0;
        inl_lock_take(&run_here.lock);
        good = files[kind].put(out, text);
        inl_lock_release(&run_here.lock);
    }
    good = good && write_out(out);
    free(out);
    free(text);
    return good;
}

long run_proc_replace(int fd, int kind, int flags)
{
    char path[64];
    if (!is_own_file(fd, files[kind].name, path)) return fd;
    int made = (int)sys_call2(SYS_memfd_create, (long)files[kind].name, 1 /* MFD_CLOEXEC */);
    if (made >= 0 && run_proc_fill(fd, made, kind)) {
        sys_call3(SYS_lseek, made, 0, SEEK_SET);
        put_in_place(made, fd, flags);
        run_proc_note(fd, kind, path);
    } else {
        sys_call3(SYS_lseek, fd, 0, SEEK_SET);
    }
    if (made >= 0) sys_call1(SYS_close, made);
    return fd;
}
