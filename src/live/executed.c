/* Which program does a process run, and is it still that one?
 *
 * What the kernel tells a program of itself (the auxiliary vector) has addresses at random in it, so that it differs
 * from one exec to the next, and is empty while one is under way: mappings that are read then are the old program's, or
 * half of the new one's. A shell's child, a script and a wrapper execute something right after they began, which is
 * when they are attached to. */
#include "live/live.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The process may have moved it since the kernel has told of it, or unmapped it. */
static void tell_vdso(const live_process *p, Elf64_auxv_t *v, size_t size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < p->mappings.count && !at; i++)
        if (!strcmp(p->mappings.items[i].name, "[vdso]")) at = p->mappings.items[i].low;
    for (size_t i = 0; p->mappings.count && (i + 1) * sizeof *v <= size && v[i].a_type; i++)
        if (v[i].a_type == AT_SYSINFO_EHDR) v[i].a_un.a_val = at;
}

/* As the kernel has it. */
static Elf64_auxv_t *read_vector(pid_t pid, size_t *size, inl_error *e)
{
    enum { ROOM = 4096 };
    char path[64];
    uint8_t *bytes = calloc(1, ROOM + sizeof(Elf64_auxv_t));
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 && bytes ? read(fd, bytes, ROOM) : -1;
    int cause = errno;
    if (fd >= 0) close(fd);
    *size = n > 0 ? (size_t)n : 0;
    if (n > 0) return (Elf64_auxv_t *)bytes;
    free(bytes);
    inl_fail(e, INL_ERR_ACCESS, "cannot read %s: %s", path, strerror(cause));
    return NULL;
}

void *live_auxv(const live_process *p, size_t *size, inl_error *e)
{
    Elf64_auxv_t *v = read_vector(p->pid, size, e);
    if (v) tell_vdso(p, v, *size);
    return v;
}

/* False: an exec is under way, or was since *v was read. What cannot be read (a kernel's thread, one that has ended) is
 * whoever's that looks further. */
static bool is_whole(const live_process *p)
{
    return !p->executed || (((const Elf64_auxv_t *)p->executed)->a_type && !live_has_execed(p));
}

bool live_has_execed(const live_process *p)
{
    inl_error ignored;
    size_t size;
    if (!p->executed) return false;
    Elf64_auxv_t *now = read_vector(p->pid, &size, &ignored);
    bool same = !now || (size == p->executed_size && !memcmp(now, p->executed, size));
    free(now);
    return !same;
}

inl_status live_read_program(live_process *p, inl_error *e)
{
    enum { LOOKS = 200 };
    const struct timespec nap = {.tv_nsec = 5000000};
    inl_error ignored;
    inl_status s = INL_OK;
    for (int k = 0; k < LOOKS; k++) {
        if (k) nanosleep(&nap, NULL);
        free(p->executed);
        p->executed = read_vector(p->pid, &p->executed_size, &ignored);
        s = live_read_maps(p, e);
        if (is_whole(p)) return s;
    }
    return inl_fail(e, INL_ERR_SYSTEM,
                    "process %d executes one program after another; attach to it when it has come to rest", p->pid);
}

inl_status live_check_program(const live_process *p, inl_error *e)
{
    if (!live_has_execed(p)) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "process %d has executed another program meanwhile; try again", p->pid);
}

/* Some of it: what may be done with parts of it has changed, perhaps. */
static bool was_mapped(const live_process *p, const live_mapping *m)
{
    for (size_t i = 0; i < p->mappings.count; i++) {
        const live_mapping *old = &p->mappings.items[i];
        if (old->low < m->high && old->high > m->low && !strcmp(old->name, m->name)) return true;
    }
    return false;
}

char *live_opened_since(const live_process *p)
{
    live_process now = {.pid = p->pid};
    inl_error ignored;
    char *name = NULL;
    if (live_read_maps(&now, &ignored) == INL_OK)
        for (size_t i = 0; i < now.mappings.count && !name; i++) {
            const live_mapping *m = &now.mappings.items[i];
            bool is_code = m->prot & PROT_EXEC && *m->name == '/' && !live_is_tools(m);
            if (is_code && !was_mapped(p, m)) name = strdup(m->name);
        }
    live_close(&now);
    return name;
}

bool live_wait_for_program(unsigned tries)
{
    enum { MOST = 8 };
    const struct timespec nap = {.tv_nsec = 4000000L << tries};
    return tries <= MOST && (nanosleep(&nap, NULL), true);
}
