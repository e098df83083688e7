/* What is mapped in another process: its images, its system call instruction, room for more. */
#include "live/live.h"
#include "base/maps_line.h"
#include "base/own.h"
#include "base/page.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 4608, LOWEST = 1 << 16, FILES_NEEDED = 8, HEAP_ROOM = 64 << 20 };

static bool overlaps(uint64_t low, uint64_t high, const live_mapping *m) { return low < m->high && high > m->low; }

static void forget(live_process *p)
{
    for (size_t i = 0; i < p->mappings.count; i++) free(p->mappings.items[i].name);
    p->mappings.count = 0;
}

inl_status live_no_right(pid_t pid, inl_error *e)
{
    const char state = remote_state(pid);
    if (state == 'Z' || state == 'X') return inl_fail(e, INL_ERR_SYSTEM, "process %d has ended", pid);
    return inl_fail(e, INL_ERR_ACCESS,
                    "no right to trace process %d: be its owner or root; /proc/sys/kernel/yama/ptrace_scope allows "
                    "only root, or only one's own children, where it is not 0; a program that has had more rights "
                    "than its owner belongs to root",
                    pid);
}

inl_status live_read_maps(live_process *p, inl_error *e)
{
    char path[64], line[LINE];
    snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
    FILE *f = fopen(path, "re");
    inl_maps_line m;
    bool full = false;
    if (!f && (errno == EACCES || errno == EPERM)) return live_no_right(p->pid, e);
    if (!f) return inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", p->pid);
    forget(p);
    while (!full && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!inl_maps_line_read(line, &m)) continue;
        inl_maps_name_unescape(m.name);
        live_mapping one = {m.low, m.high, m.offset, m.prot, strdup(m.name ? m.name : "")};
        full = !one.name || !inl_vec_push(&p->mappings, one);
    }
    fclose(f);
    if (full) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (p->mappings.count) return INL_OK;
    return inl_fail(e, INL_ERR_ACCESS,
                    "process %d shows nothing of its memory: it has ended, is of the kernel's, or is "
                    "somebody else's",
                    p->pid);
}

/* Where these bytes are in it, 0: nowhere. */
static uint64_t find_in(const live_process *p, const live_mapping *m, const uint8_t *what, size_t size)
{
    static uint8_t bytes[64 << 10];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t found = 0;
    for (uint64_t at = m->low; fd >= 0 && at < m->high && !found; at += sizeof bytes - size + 1) {
        ssize_t n = pread(fd, bytes, m->high - at < sizeof bytes ? m->high - at : sizeof bytes, (off_t)at);
        const uint8_t *is = n > 0 ? memmem(bytes, (size_t)n, what, size) : NULL;
        if (is) found = at + (uint64_t)(is - bytes);
    }
    if (fd >= 0) close(fd);
    return found;
}

/* Of the vdso, of anything else that is executed. */
bool live_find_syscall(live_process *p)
{
    p->syscall_at = 0;
    for (int any = 0; any < 2 && !p->syscall_at; any++)
        for (size_t i = 0; i < p->mappings.count && !p->syscall_at; i++) {
            const live_mapping *m = &p->mappings.items[i];
            if (m->prot & PROT_EXEC && strcmp(m->name, "[vsyscall]") && (any || !strcmp(m->name, "[vdso]")))
                p->syscall_at = find_in(p, m, remote_syscall_insn, remote_syscall_size);
        }
    return p->syscall_at != 0;
}

bool live_is_tools(const live_mapping *m)
{
    return overlaps(MOVE_TOOL_BASE, MOVE_TOOL_BASE + LIVE_TOOL_MOST, m) ||
           overlaps(MOVE_TOOL_HIGH, MOVE_TOOL_HIGH + LIVE_TOOL_MOST, m);
}

/* Not one of Inlay's own, which comes and goes. */
static bool may_hold_return(const live_mapping *m)
{
    return m->prot & PROT_EXEC && *m->name == '/' && !live_is_tools(m);
}

/* The last bytes of the vdso are nobody's, nor are those behind an image's text, where they are nothing. */
enum { LAST = 16 };
static uint64_t end_of(const live_mapping *m, bool is_vdso)
{
    bool fits = is_vdso ? !strcmp(m->name, "[vdso]") : may_hold_return(m);
    return fits ? m->high - LAST : 0;
}

int live_open_memory(const live_process *p, inl_error *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", p->pid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) return fd;
    const char *why = errno == EACCES
                          ? ": no right to trace it, or in a sandbox (Landlock) that lets no files be written to"
                          : "";
    (void)inl_fail(e, INL_ERR_ACCESS, "cannot write to the memory of process %d: %s%s", p->pid, strerror(errno), why);
    return fd;
}

static bool put_at(int fd, uint64_t at)
{
    static const uint8_t nothing[LAST];
    uint8_t there[LAST];
    const remote_pattern *what = remote_returns;
    return pread(fd, there, LAST, (off_t)at) == LAST &&
           (!memcmp(there, nothing, LAST) || !memcmp(there, what->bytes, what->size)) &&
           pwrite(fd, what->bytes, what->size, (off_t)at) == (ssize_t)what->size;
}

static uint64_t put_return(const live_process *p, bool in_vdso)
{
    uint64_t put = 0;
    int fd = remote_returns->size ? live_open_memory(p, NULL) : -1;
    for (size_t i = 0; fd >= 0 && i < p->mappings.count && !put; i++) {
        uint64_t at = end_of(&p->mappings.items[i], in_vdso);
        if (at && put_at(fd, at)) put = at;
    }
    if (fd >= 0) close(fd);
    return put;
}

bool live_put_return(live_process *p)
{
    p->returns_at = put_return(p, true);
    p->return_is_put = p->returns_at != 0;
    for (size_t i = 0; i < p->mappings.count && !p->returns_at; i++)
        for (const remote_pattern *k = remote_returns; k->size && !p->returns_at; k++)
            if (may_hold_return(&p->mappings.items[i]))
                p->returns_at = find_in(p, &p->mappings.items[i], k->bytes, k->size);
    if (p->returns_at) return true;
    p->returns_at = put_return(p, false);
    p->return_is_put = p->returns_at != 0;
    return p->returns_at != 0;
}

void live_take_return(live_process *p)
{
    static const uint8_t nothing[LAST];
    int fd = live_open_memory(p, NULL);
    if (fd >= 0 && p->returns_at && p->return_is_put) {
        ssize_t n = pwrite(fd, nothing, LAST, (off_t)p->returns_at);
        (void)n; /* it has ended */
    }
    if (fd >= 0) close(fd);
    p->returns_at = 0;
}

/* A word of /proc/PID/status. */
bool live_status_word(pid_t pid, const char *key, char out[32])
{
    char path[64], line[256];
    size_t n = strlen(key);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = !strncmp(line, key, n) && sscanf(line + n, " %31s", out) == 1;
    if (f) fclose(f);
    return found;
}

/* What can be known before anything is touched. */
static inl_status check(const live_process *p, inl_error *e)
{
    char word[32];
    if (!live_status_word(p->pid, "Tgid:", word)) return inl_fail(e, INL_ERR_SYSTEM, "there is no process %d", p->pid);
    if (atoi(word) != p->pid)
        return inl_fail(e, INL_ERR_USAGE, "%d is a thread of process %s; name that one", p->pid, word);
    if (live_status_word(p->pid, "State:", word) && (*word == 'Z' || *word == 'X')) {
        bool others = live_status_word(p->pid, "Threads:", word) && atoi(word) > 1;
        return inl_fail(e, INL_ERR_SYSTEM,
                        others ? "the first thread of process %d has ended, and a tool starts in that one; start the "
                                 "program under the tool instead (inlay run)"
                               : "process %d has ended",
                        p->pid);
    }
    if (live_status_word(p->pid, "TracerPid:", word) && strcmp(word, "0") && !live_ends_work(atoi(word)))
        return inl_fail(e, INL_ERR_ACCESS, "process %d is traced by process %s already; end that first", p->pid, word);
    return INL_OK;
}

uint64_t live_tool_place(pid_t pid)
{
    live_process p = {.pid = pid};
    inl_error ignored;
    uint64_t place = MOVE_TOOL_BASE;
    if (live_read_maps(&p, &ignored) == INL_OK)
        for (size_t i = 0; i < p.mappings.count; i++)
            if (overlaps(MOVE_TOOL_BASE, MOVE_TOOL_BASE + LIVE_TOOL_MOST, &p.mappings.items[i])) place = MOVE_TOOL_HIGH;
    live_close(&p);
    return place;
}

inl_status live_refuse_other(pid_t pid, inl_error *e)
{
    live_told t;
    inl_error ignored;
    char who[128];
    if (live_record_read(pid, &t, &ignored) != INL_OK) return INL_OK;
    live_holder_say(&t, who, sizeof who);
    bool held = live_holder(&t.record->holder) != 0;
    live_told_free(&t);
    return inl_fail(e, INL_ERR_UNSUPPORTED, "process %d has a tool inside already, %s; %sinlay detach %d takes it out",
                    pid, who, held ? "once that has ended, " : "", pid);
}

static inl_status refuse_full(const live_process *p, uint64_t at, inl_error *e)
{
    inl_status s = live_refuse_other(p->pid, e);
    if (s != INL_OK) return s;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "process %d has something at 0x%llx, where a tool would lie: it runs under Inlay, or was "
                    "rewritten; if neither, inlay detach %d takes out what is left of a tool",
                    p->pid, (unsigned long long)at, p->pid);
}

static size_t open_files(pid_t pid)
{
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) n += *entry->d_name != '.';
    if (d) closedir(d);
    return n;
}

/* The tool opens files there: one that could not would not start, or not be able to leave. */
static inl_status check_files(pid_t pid, inl_error *e)
{
    struct rlimit most;
    size_t n = open_files(pid);
    if (prlimit(pid, RLIMIT_NOFILE, NULL, &most) != 0 || most.rlim_cur >= n + FILES_NEEDED) return INL_OK;
    return inl_fail(
        e, INL_ERR_UNSUPPORTED,
        "process %d has %zu files open and may have %llu, and a tool needs %d; prlimit --pid %d --nofile=NUMBER "
        "allows more",
        pid, n, (unsigned long long)most.rlim_cur, FILES_NEEDED, pid);
}

/* Another process in the same memory (CLONE_VM without CLONE_THREAD) would come upon jumps to new code, and has no
 * block there. 0: there is none, or the kernel does not tell. */
static pid_t who_shares(pid_t pid)
{
    pid_t found = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *entry; d && !found && (entry = readdir(d));) {
        pid_t other = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;
        if (other && other != pid && syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0) found = other;
    }
    if (d) closedir(d);
    return found;
}

/* A child of vfork does so for a moment. */
inl_status live_check_alone(const live_process *p, inl_error *e)
{
    enum { LOOKS = 50 };
    const struct timespec nap = {.tv_nsec = 20000000};
    pid_t other = 0;
    for (int k = 0; k < LOOKS; k++) {
        if (k) nanosleep(&nap, NULL);
        other = who_shares(p->pid);
        if (!other) return INL_OK;
    }
    if (remote_state(p->pid) == 'D') return INL_OK; /* a child that stays: who stops it says so */
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "process %d shares its memory with process %d, which would come upon changed code; start it under "
                    "the tool instead (inlay run)",
                    p->pid, other);
}

/* Before a tool is put in. */
static inl_status check_empty(const live_process *p, inl_error *e)
{
    char word[32]; /* 1: strict, which is no filter */
    inl_status s = check_files(p->pid, e);
    if (s != INL_OK) return s;
    if (live_status_word(p->pid, "Seccomp:", word) && !strcmp(word, "1"))
        return inl_fail(
            e, INL_ERR_UNSUPPORTED,
            "process %d is confined (seccomp's strict mode), which would end it with the first call of a tool's; start "
            "it under the tool instead (inlay run, inlay rewrite)",
            p->pid);
    const uint64_t base = inl_own_base();
    const bool goes_there = base == MOVE_TOOL_BASE || base == MOVE_TOOL_HIGH; /* or lies anywhere, and so will not */
    for (size_t i = 0; i < p->mappings.count; i++)
        if ((goes_there && overlaps(base, base + INL_PAGE, &p->mappings.items[i])) ||
            overlaps(MOVE_LIVE_BASE, MOVE_REGION_HIGH, &p->mappings.items[i]))
            return refuse_full(p, p->mappings.items[i].low, e);
    return INL_OK;
}

/* Without a right to trace a process its memory cannot be opened either: that goes by the same rules. */
static inl_status check_right(pid_t pid, inl_error *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    if (mem < 0 && (errno == EACCES || errno == EPERM)) return live_no_right(pid, e);
    if (mem >= 0) close(mem);
    return INL_OK;
}

static inl_status open_once(pid_t pid, live_process *p, bool empty, inl_error *e)
{
    *p = (live_process){.pid = pid};
    inl_status s = remote_check(e);
    if (s == INL_OK) s = live_check_numbers(e);
    if (s == INL_OK) s = check(p, e);
    p->is_confined = s == INL_OK && live_is_confined(pid);
    p->is_empty = empty;
    if (s == INL_OK) s = live_read_program(p, e);
    if (s == INL_OK) s = check_right(pid, e);
    if (s == INL_OK && empty) s = check_empty(p, e);
    if (s == INL_OK && !live_find_syscall(p))
        s = inl_fail(e, INL_ERR_UNSUPPORTED, "process %d cannot be read, or holds no system call instruction", pid);
    return s;
}

static inl_status open_with(pid_t pid, live_process *p, bool empty, inl_error *e)
{
    unsigned tries = 0;
    inl_status s;
    while ((s = open_once(pid, p, empty, e)) != INL_OK) {
        bool anew = live_has_execed(p) && live_wait_for_program(++tries);
        live_close(p);
        if (!anew) break;
    }
    return s;
}

inl_status live_open(pid_t pid, live_process *p, inl_error *e) { return open_with(pid, p, true, e); }
inl_status live_open_inside(pid_t pid, live_process *p, inl_error *e) { return open_with(pid, p, false, e); }

void live_close(live_process *p)
{
    forget(p);
    free(p->executed);
    p->executed = NULL;
    inl_vec_free(&p->mappings);
    inl_vec_free(&p->threads);
    inl_vec_free(&p->seized);
    inl_vec_free(&p->taken);
    inl_vec_free(&p->kept);
    inl_vec_free(&p->listed);
    inl_vec_free(&p->early);
}

/* --- images --- */

static bool is_file(const char *path, const struct stat *which)
{
    struct stat here;
    return stat(path, &here) == 0 && (!which || (here.st_dev == which->st_dev && here.st_ino == which->st_ino));
}

/* Its own path, or by the process's root where that is another one, or by the mapping, if it has no
 * name any more. */
static bool openable(const live_process *p, const live_mapping *m, char out[LINE])
{
    struct stat there;
    char file[96];
    snprintf(file, sizeof file, "/proc/%d/map_files/%llx-%llx", p->pid, (unsigned long long)m->low,
             (unsigned long long)m->high);
    bool known = stat(file, &there) == 0;
    snprintf(out, LINE, "%s", m->name);
    if (is_file(out, known ? &there : NULL)) return true;
    snprintf(out, LINE, "/proc/%d/root%s", p->pid, m->name);
    if (is_file(out, known ? &there : NULL)) return true;
    snprintf(out, LINE, "%s", file);
    return known;
}

static bool is_of_file(const live_process *p, uint64_t at, const char *name)
{
    for (size_t i = 0; i < p->mappings.count; i++)
        if (overlaps(at, at + 1, &p->mappings.items[i])) return !strcmp(p->mappings.items[i].name, name);
    return false;
}

bool live_read(const live_process *p, uint64_t at, void *to, size_t size)
{
    struct iovec here = {to, size}, from = {(void *)(uintptr_t)at, size};
    return process_vm_readv(p->pid, &here, 1, &from, 1, 0) == (ssize_t)size;
}

bool live_has_image_now(pid_t pid, const module *m)
{
    live_process now = {.pid = pid};
    inl_error ignored;
    bool found = live_read_maps(&now, &ignored) == INL_OK && live_has_image(&now, m);
    live_close(&now);
    return found;
}

/* A file that has been moved since has another name, and the same bytes. */
static bool has_bytes(const live_process *p, const module *m, const image_segment *s)
{
    uint8_t there[256];
    const uint8_t *bytes;
    size_t n = image_bytes(m->image, s->addr, &bytes);
    if (n > sizeof there) n = sizeof there;
    return live_read(p, s->addr + m->bias, there, n) && !memcmp(there, bytes, n);
}

static bool is_part(const live_process *p, const live_mapping *one, const module *m, const image_segment *s)
{
    const char *path = image_path(m->image), *slash = strrchr(one->name, '/'), *last = strrchr(path, '/');
    uint64_t at = s->addr + m->bias;
    if (!slash || !last || !(one->prot & PROT_EXEC) || one->offset + (at - one->low) != s->file_offset) return false;
    size_t n = strlen(last);
    return (!strncmp(slash, last, n) && (!slash[n] || !strcmp(slash + n, " (deleted)"))) || has_bytes(p, m, s);
}

bool live_has_image(const live_process *p, const module *m)
{
    const image_segment *s;
    size_t n = image_segments(m->image, &s);
    for (size_t i = 0; i < n && !m->is_vdso; i++) {
        uint64_t at = s[i].addr + m->bias;
        bool is_there = !s[i].exec || !s[i].file_size;
        for (size_t k = 0; k < p->mappings.count && !is_there; k++)
            is_there = overlaps(at, at + 1, &p->mappings.items[k]) && is_part(p, &p->mappings.items[k], m, &s[i]);
        if (!is_there) return false;
    }
    return true;
}

/* Or a piece of it that the program has mapped once more for ends of its own, as V8 does with its built-in procedures.
 */
static bool is_whole(const live_process *p, const module *m, const char *name)
{
    const image_segment *s;
    size_t n = image_segments(m->image, &s);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = s[i].addr + m->bias;
        if (s[i].file_size &&
            (!is_of_file(p, at, name) || (s[i].exec && !is_of_file(p, at + s[i].file_size - 1, name))))
            return false;
    }
    return true;
}

static module *add_image(live_process *p, const live_mapping *m, module_set *set, char path[LINE])
{
    if (*m->name != '/' || !(m->prot & PROT_EXEC) || m->prot & PROT_WRITE || !openable(p, m, path)) return NULL;
    module *found = module_set_mapped(set, path, m->low, m->high - m->low, m->offset, m->prot);
    if (!found || is_whole(p, found, m->name)) return found;
    module_set_unmapped(set, m->low, m->high - m->low, NULL, NULL);
    return NULL;
}

inl_status live_find_image(live_process *p, uint64_t low, uint64_t high, module_set *set, inl_error *e)
{
    char path[LINE];
    for (size_t i = 0; i < p->mappings.count; i++)
        if (overlaps(low, high, &p->mappings.items[i]) && add_image(p, &p->mappings.items[i], set, path)) return INL_OK;
    return inl_fail(e, INL_ERR_NOT_FOUND, "its file cannot be read");
}

inl_status live_find_images(live_process *p, module_set *set, inl_error *e)
{
    char path[LINE], exe[64];
    struct stat main, one;
    module *executed = NULL;
    snprintf(exe, sizeof exe, "/proc/%d/exe", p->pid);
    if (stat(exe, &main) != 0) return inl_fail(e, INL_ERR_ACCESS, "cannot read %s: %s", exe, strerror(errno));
    for (size_t i = 0; i < p->mappings.count; i++) {
        module *found = add_image(p, &p->mappings.items[i], set, path);
        if (!found) continue;
        found->is_main = stat(path, &one) == 0 && one.st_dev == main.st_dev && one.st_ino == main.st_ino;
        if (found->is_main) executed = found;
    }
    if (executed) live_roles_find(p, set, executed);
    if (module_first(set)) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "process %d has no code of a file that can be read and that it cannot write to; start it under the "
                    "JIT engine (inlay run)",
                    p->pid);
}

/* --- room --- */

/* Where the tool will lie, which is not mapped yet. */
static live_mapping place_of_tool(void)
{
    const uint64_t tool = inl_own_base();
    return (live_mapping){.low = tool, .high = tool + LIVE_TOOL_MOST};
}

static uint64_t blocked_until(const live_process *p, uint64_t low, uint64_t high)
{
    const live_mapping tool = place_of_tool();
    uint64_t until = overlaps(low, high, &tool) ? tool.high : 0;
    for (size_t i = 0; i < p->mappings.count; i++)
        if (overlaps(low, high, &p->mappings.items[i]) && p->mappings.items[i].high > until)
            until = p->mappings.items[i].high;
    for (size_t i = 0; i < p->taken.count; i++)
        if (overlaps(low, high, &p->taken.items[i]) && p->taken.items[i].high > until) until = p->taken.items[i].high;
    return until;
}

static uint64_t blocked_from(const live_process *p, uint64_t low, uint64_t high)
{
    const live_mapping tool = place_of_tool();
    uint64_t from = overlaps(low, high, &tool) ? tool.low : 0;
    for (size_t i = p->mappings.count; i-- > 0;)
        if (overlaps(low, high, &p->mappings.items[i]) && (!from || p->mappings.items[i].low < from))
            from = p->mappings.items[i].low;
    for (size_t i = 0; i < p->taken.count; i++)
        if (overlaps(low, high, &p->taken.items[i]) && (!from || p->taken.items[i].low < from))
            from = p->taken.items[i].low;
    return from;
}

static bool is_promised(const live_process *p, uint64_t low)
{
    for (size_t i = 0; i < p->taken.count; i++)
        if (p->taken.items[i].low == low) return true;
    return false;
}

/* As low a place as is free together with [at, high), and not below `floor`: what is not needed of it later is given
 * back at its end, and so what is free stays in one piece. Not close above what may grow, the program's. */
static uint64_t lowest_of(const live_process *p, uint64_t at, uint64_t high, uint64_t floor)
{
    uint64_t low = floor;
    for (size_t i = 0; low < at && i < p->mappings.count; i++)
        if (p->mappings.items[i].low < high && p->mappings.items[i].high + HEAP_ROOM > low)
            low = p->mappings.items[i].high + HEAP_ROOM;
    for (size_t i = 0; i < p->taken.count; i++)
        if (p->taken.items[i].low < high && p->taken.items[i].high + INL_PAGE > low)
            low = p->taken.items[i].high + INL_PAGE;
    return low < at ? low : at;
}

/* 0: none. */
static uint64_t room_below(const live_process *p, uint64_t low, uint64_t high, uint64_t size, uint64_t reach,
                           uint64_t apart)
{
    uint64_t next, floor = high > UINT32_MAX ? inl_page_up(high - reach + 1) : UINT64_MAX;
    for (uint64_t end = inl_page_down(low) - apart; end > size + LOWEST && end < low && high - (end - size) < reach;
         end = next - (is_promised(p, next) ? INL_PAGE : apart)) {
        next = blocked_from(p, end - size, end);
        if (!next) return lowest_of(p, end - size, end, floor);
    }
    return 0;
}

/* Where the program's heap begins, or will (brk); 0: it is not known. */
static uint64_t heap_of(const live_process *p)
{
    enum { BEHIND_NAME = 44 }; /* fields between the name and this one */
    char path[64], line[2048] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", p->pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    const char *at = n ? strrchr(line, ')') : NULL;
    for (unsigned k = 0; at && k <= BEHIND_NAME; k++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* The highest; 0: none. */
static uint64_t room_down(const live_process *p, uint64_t from, uint64_t until, uint64_t size)
{
    while (from + size <= until) {
        uint64_t next = blocked_from(p, until - size, until);
        if (!next) return until - size;
        until = next;
    }
    return 0;
}

/* Of a program above which its heap grows: between the two, where the kernel has left much room, or as far away as can
 * be reached, or between the two all the same. As high as can be: the lower an address, the more numbers in data look
 * like it (moved/back.c). */
static uint64_t room_about_heap(const live_process *p, uint64_t low, uint64_t high, uint64_t size, uint64_t reach)
{
    enum { MUCH = 512 << 20 };
    uint64_t heap = heap_of(p), from = inl_page_up(high) + INL_PAGE, until = inl_page_down(low + reach);
    uint64_t tool = inl_own_base();
    if (heap < high || heap >= until) return 0;
    if (low < tool && until > tool) until = tool;
    uint64_t at = room_down(p, from + MUCH, inl_page_down(heap), size);
    if (!at) at = room_down(p, inl_page_up(heap), until, size);
    return at ? at : room_down(p, from, inl_page_down(heap), size);
}

/* Where what the process may map ends, as far as it is known: its stack is uppermost. */
static uint64_t highest(const live_process *p)
{
    uint64_t end = 0;
    for (size_t i = 0; i < p->mappings.count; i++)
        if (p->mappings.items[i].low <= INT64_MAX && p->mappings.items[i].high > end) end = p->mappings.items[i].high;
    return end;
}

/* Below first, unless these are small numbers: above a program its heap grows. And not close below others, where there
 * is a choice: the kernel puts what the program maps next there, and until the process stands still it runs on. */
uint64_t live_find_room(live_process *p, uint64_t low, uint64_t high, uint64_t size, uint64_t reach)
{
    static const uint64_t apart[] = {512 << 20, 64 << 20, INL_PAGE};
    uint64_t at = 0, next;
    size = inl_page_up(size);
    if (high <= UINT32_MAX) at = room_about_heap(p, low, high, size, reach);
    for (size_t i = 0; !at && i < sizeof apart / sizeof *apart; i++)
        at = room_below(p, low, high, size, reach, apart[i]);
    if (!at && high > UINT32_MAX) at = room_about_heap(p, low, high, size, reach);
    const uint64_t end = highest(p);
    for (uint64_t from = inl_page_up(high) + HEAP_ROOM; !at && from + size - low < reach && from + size <= end;
         from = next + HEAP_ROOM) {
        next = blocked_until(p, from, from + size);
        if (!next) at = from;
    }
    live_mapping one = {.low = at, .high = at + size};
    return at && inl_vec_push(&p->taken, one) ? at : 0;
}

void live_keep_room(live_process *p, uint64_t at, uint64_t size)
{
    for (size_t i = 0; i < p->taken.count; i++) {
        if (p->taken.items[i].low != at) continue;
        p->taken.items[i].high = at + inl_page_up(size);
        if (!size) p->taken.items[i] = p->taken.items[--p->taken.count];
        return;
    }
}
