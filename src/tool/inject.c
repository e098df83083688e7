/* Puts the tool into a process that stands at its exec.
 *
 * The tool's own file is mapped there by system calls made in the process, segment by segment, as
 * the kernel would have done it; the tool relocates itself when it starts (a static PIE). Layout of
 * its region, far from the program's heap below and from its libraries and stack above:
 *
 *     low   guard page
 *           first stack: room, then argc, argv, envp, auxv, strings
 *           guard page
 *           the tool's image
 *           ...              mappings that the tool makes later (libc.c)
 *     high
 *
 * The auxiliary vector is the program's own, read from its stack, with what describes the program
 * replaced by what describes the tool.
 */
#include "tool/glibc.h"
#include "tool/tool.h"
#include "tool/remote.h"
#include "base/region.h"
#include "base/sys.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>

enum { PAGE = 4096, STACK_ROOM = 256 << 10, MAX_AUXV = 64, TRIES = 16, RANDOM_BYTES = 16 };

/* Between the lowest address that the kernel maps libraries at (1 TB of randomness below the stack)
 * and what sanitizers take for themselves. */
static const uint64_t ZONE_LOW = 0x7e8000000000, ZONE_RANDOM = 1ull << 37, ZONE_SIZE = 1ull << 38;

static uint64_t page_down(uint64_t a) { return a & ~(uint64_t)(PAGE - 1); }
static uint64_t page_up(uint64_t a) { return page_down(a + PAGE - 1); }

static uint64_t here(void) { return (uint64_t)(uintptr_t)&__ehdr_start; }

static const Elf64_Phdr *program_headers(void) { return (const Elf64_Phdr *)(here() + __ehdr_start.e_phoff); }

static uint64_t image_size(void)
{
    const Elf64_Phdr *ph = program_headers();
    uint64_t end = 0;
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end) end = ph[i].p_vaddr + ph[i].p_memsz;
    return page_up(end);
}

void inject_choose_region(uint64_t *low, uint64_t *high)
{
    uint64_t random = 0;
    long persona = sys_call1(SYS_personality, 0xffffffff);
    if (!(persona & ADDR_NO_RANDOMIZE)) {
        sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
        random = page_down(random % ZONE_RANDOM);
    }
    *low = ZONE_LOW + random;
    *high = *low + ZONE_SIZE;
}

typedef struct injection {
    remote r;
    const inject_job *job;
    uint64_t low, high;
    uint64_t stack_low, stack_high, image;
    uint64_t strings; /* the next string's place */
    Elf64_auxv_t auxv[MAX_AUXV];
    unsigned auxv_count;
} injection;

static inl_status map(injection *in, uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset,
                      long *answer, inl_error *e)
{
    long args[6] = {(long)at, (long)size, prot, flags, fd, (long)offset};
    return remote_call(&in->r, answer, SYS_mmap, args, e);
}

static inl_status map_or_fail(injection *in, uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset,
                              inl_error *e)
{
    long answer;
    inl_status s = map(in, at, size, prot, flags, fd, offset, &answer, e);
    if (s != INL_OK) return s;
    if (answer == (long)at) return INL_OK;
    return inl_fail_at(e, INL_ERR_SYSTEM, at, "cannot map the tool into the program: %s",
                       strerror(sys_failed(answer) ? (int)-answer : EINVAL));
}

/* Reserves the first part of a region: stack, guards, image. */
static inl_status reserve(injection *in, uint64_t stack_size, inl_error *e)
{
    uint64_t size = PAGE + stack_size + PAGE + image_size();
    long answer = 0;
    for (int i = 0; i < TRIES; i++) {
        inject_choose_region(&in->low, &in->high);
        in->low += (uint64_t)i * (image_size() + (16 << 20));
        inl_status s = map(in, in->low, size, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0, &answer, e);
        if (s != INL_OK) return s;
        if (answer == (long)in->low) {
            in->stack_low = in->low + PAGE;
            in->stack_high = in->stack_low + stack_size;
            in->image = in->stack_high + PAGE;
            return INL_OK;
        }
        if (answer == -ENOMEM) break;
    }
    return inl_fail(e, INL_ERR_NO_MEMORY,
                    "out of address space: no room for the tool beside the program (see ulimit -v)");
}

static inl_status map_segment(injection *in, const Elf64_Phdr *p, inl_error *e)
{
    int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
               (p->p_flags & PF_X ? PROT_EXEC : 0);
    uint64_t start = in->image + page_down(p->p_vaddr);
    uint64_t file_end = in->image + p->p_vaddr + p->p_filesz;
    uint64_t end = page_up(in->image + p->p_vaddr + p->p_memsz);
    inl_status s = map_or_fail(in, start, page_up(file_end) - start, prot, MAP_PRIVATE | MAP_FIXED, in->job->tool_fd,
                               page_down(p->p_offset), e);
    if (s != INL_OK || !(p->p_flags & PF_W)) return s;
    static const uint8_t zeros[PAGE];
    if (page_up(file_end) != file_end) s = remote_write(&in->r, file_end, zeros, page_up(file_end) - file_end, e);
    if (s == INL_OK && end > page_up(file_end))
        s = map_or_fail(in, page_up(file_end), end - page_up(file_end), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                        -1, 0, e);
    return s;
}

static inl_status map_image(injection *in, inl_error *e)
{
    const Elf64_Phdr *ph = program_headers();
    inl_status s = INL_OK;
    for (unsigned i = 0; i < __ehdr_start.e_phnum && s == INL_OK; i++)
        if (ph[i].p_type == PT_LOAD) s = map_segment(in, &ph[i], e);
    return s;
}

/* The program's stack at its exec: argc, argv, 0, envp, 0, auxv. */
static inl_status read_auxv(injection *in, inl_error *e)
{
    uint64_t at = remote_registers_sp(&in->r.regs), word;
    inl_status s = remote_read(&in->r, at, &word, sizeof word, e);
    at += 8 * (word + 2);
    while (s == INL_OK) {
        s = remote_read(&in->r, at, &word, sizeof word, e);
        at += 8;
        if (word == 0) break;
    }
    while (s == INL_OK && in->auxv_count < MAX_AUXV) {
        Elf64_auxv_t *a = &in->auxv[in->auxv_count++];
        s = remote_read(&in->r, at, a, sizeof *a, e);
        if (a->a_type == AT_NULL) return s;
        at += sizeof *a;
    }
    return s != INL_OK ? s : inl_fail(e, INL_ERR_FORMAT, "the program has no auxiliary vector");
}

static inl_status put_string(injection *in, const char *text, uint64_t *at, inl_error *e)
{
    *at = in->strings;
    in->strings += strlen(text) + 1;
    return remote_write(&in->r, *at, text, strlen(text) + 1, e);
}

/* What the tool's C library must not read: settings meant for the program's. */
bool inject_is_private(const char *variable)
{
    static const char *const prefixes[] = {"GLIBC_TUNABLES=", "LD_", "MALLOC_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(variable, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

/* rseq stays the program's to register. One arena is enough: the runtime's work is serialised. */
const char inject_tunables[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0:glibc.malloc.arena_max=1";

static size_t count(char **v)
{
    size_t n = 0;
    while (v[n]) n++;
    return n;
}

static size_t strings_size(const inject_job *job)
{
    size_t n = sizeof inject_tunables + RANDOM_BYTES + 64;
    for (char **p = job->argv; *p; p++) n += strlen(*p) + 1;
    for (char **p = job->envp; *p; p++) n += strlen(*p) + 1;
    return n + 8 * (count(job->argv) + count(job->envp) + 8) + sizeof(Elf64_auxv_t) * MAX_AUXV;
}

static void rewrite_auxv(injection *in, uint64_t random, uint64_t name)
{
    for (unsigned i = 0; i < in->auxv_count; i++) {
        Elf64_auxv_t *a = &in->auxv[i];
        switch (a->a_type) {
        case AT_PHDR: a->a_un.a_val = in->image + __ehdr_start.e_phoff; break;
        case AT_PHNUM: a->a_un.a_val = __ehdr_start.e_phnum; break;
        case AT_PHENT: a->a_un.a_val = __ehdr_start.e_phentsize; break;
        case AT_ENTRY: a->a_un.a_val = in->image + __ehdr_start.e_entry; break;
        case AT_BASE: a->a_un.a_val = 0; break;
        case AT_RANDOM: a->a_un.a_val = random; break;
        case AT_EXECFN: a->a_un.a_val = name; break;
        case AT_SECURE: a->a_un.a_val = 0; break;
        }
    }
}

/* Strings at the top of the stack, the vectors below them; *sp is set. */
static inl_status build_stack(injection *in, uint64_t *sp, inl_error *e)
{
    size_t argc = count(in->job->argv), envc = count(in->job->envp), n = 0;
    uint64_t *v = calloc(argc + envc + 8 + 2 * MAX_AUXV, sizeof *v), random;
    if (!v) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    in->strings = in->stack_high - page_up(strings_size(in->job));
    uint64_t vectors_high = in->strings;
    uint8_t noise[RANDOM_BYTES];
    sys_call3(SYS_getrandom, (long)noise, sizeof noise, 0);
    random = in->strings;
    in->strings += sizeof noise;
    inl_status s = remote_write(&in->r, random, noise, sizeof noise, e);
    v[n++] = argc;
    for (size_t i = 0; i < argc && s == INL_OK; i++) s = put_string(in, in->job->argv[i], &v[n++], e);
    uint64_t name = v[1];
    v[n++] = 0;
    if (s == INL_OK) s = put_string(in, inject_tunables, &v[n++], e);
    for (size_t i = 0; i < envc && s == INL_OK; i++)
        if (!inject_is_private(in->job->envp[i])) s = put_string(in, in->job->envp[i], &v[n++], e);
    v[n++] = 0;
    rewrite_auxv(in, random, name);
    memcpy(&v[n], in->auxv, in->auxv_count * sizeof *in->auxv);
    n += in->auxv_count * 2;
    *sp = (vectors_high - n * sizeof *v) & ~(uint64_t)15;
    if (s == INL_OK) s = remote_write(&in->r, *sp, v, n * sizeof *v, e);
    free(v);
    return s;
}

/* Where a variable of ours is in the program. */
static uint64_t there(const injection *in, const void *variable)
{
    return (uint64_t)(uintptr_t)variable - here() + in->image;
}

static inl_status hand_over(injection *in, inl_error *e)
{
    tool_handoff h = tool_handoff_data;
    h.role = TOOL_RESIDENT;
    h.resident = 1;
    remote_context(&in->r, &h.start.ctx);
    h.start.sigmask = in->r.sigmask;
    h.start.tool_low = in->low;
    h.start.tool_high = in->high;
    h.start.stack_low = in->stack_low;
    h.start.stack_high = in->stack_high;
    h.region_low = in->image + image_size() + PAGE;
    h.region_high = in->high;
    h.helper = (int32_t)sys_call0(SYS_getpid);
    inl_region region = {h.region_low, h.region_high, h.region_low};
    inl_status s = remote_write(&in->r, there(in, &inl_region_now), &region, sizeof region, e);
    if (s == INL_OK) s = remote_write(&in->r, there(in, &tool_handoff_data), &h, sizeof h, e);
    return s;
}

inl_status inject_tool(const inject_job *job, inl_error *e)
{
    injection in = {.job = job};
    uint64_t stack_size = STACK_ROOM + page_up(2 * strings_size(job)), sp = 0;
    inl_status s = remote_begin(&in.r, job->pid, e);
    if (s == INL_OK) s = read_auxv(&in, e);
    if (s == INL_OK) s = reserve(&in, stack_size, e);
    if (s == INL_OK)
        s = map_or_fail(&in, in.stack_low, stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0, e);
    if (s == INL_OK) s = map_image(&in, e);
    if (s == INL_OK) s = build_stack(&in, &sp, e);
    if (s == INL_OK) s = hand_over(&in, e);
    if (s == INL_OK) s = remote_go(&in.r, in.image + __ehdr_start.e_entry, sp, e);
    if (s != INL_OK) remote_end(&in.r, TOOL_EXIT_FAILED);
    return s;
}
