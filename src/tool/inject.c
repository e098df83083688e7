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
#include "tool/injection.h"
#include "tool/state.h"
#include "tool/tool.h"
#include "base/first_stack.h"
#include "base/page.h"
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

enum { STACK_ROOM = 256 << 10, TRIES = 16 };

static uint64_t here(void) { return (uint64_t)(uintptr_t)&__ehdr_start; }

static const Elf64_Phdr *program_headers(void) { return (const Elf64_Phdr *)(here() + __ehdr_start.e_phoff); }

static uint64_t image_size(void)
{
    const Elf64_Phdr *ph = program_headers();
    uint64_t end = 0;
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end) end = ph[i].p_vaddr + ph[i].p_memsz;
    return inl_page_up(end);
}

void inject_choose_region(uint64_t *low, uint64_t *high)
{
    uint64_t random = 0;
    long persona = sys_call1(SYS_personality, 0xffffffff);
    if (!(persona & ADDR_NO_RANDOMIZE)) {
        sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
        random = inl_page_down(random % tool_places.zone_random);
    }
    if (tool_now->options.stress & TOOL_STRESS_ASTRIDE) random = (1ull << 32) - inl_page_down(image_size() / 4);
    *low = tool_places.zone_low + random;
    *high = *low + tool_places.zone_size;
}

static inl_status map(injection *in, uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset,
                      long *answer, inl_error *e)
{
    long args[6] = {(long)at, (long)size, prot, flags, fd, (long)offset};
    return remote_call(&in->r, answer, SYS_mmap, args, e);
}

inl_status inject_map_or_fail(injection *in, uint64_t at, uint64_t size, int prot, int flags, int fd, uint64_t offset,
                              inl_error *e)
{
    long answer;
    inl_status s = map(in, at, size, prot, flags, fd, offset, &answer, e);
    if (s != INL_OK) return s;
    if (answer == (long)at) return INL_OK;
    return inl_fail_at(e, INL_ERR_SYSTEM, at, "cannot map the tool into the program: %s",
                       strerror(sys_failed(answer) ? (int)-answer : EINVAL));
}

/* What is kept of a region from the beginning: stack, guards, image. */
static uint64_t first_part(uint64_t stack_size) { return INL_PAGE + stack_size + INL_PAGE + image_size(); }

/* *answer: where it lies, or -errno. */
static inl_status reserve(injection *in, uint64_t low, uint64_t stack_size, long *answer, inl_error *e)
{
    inl_status s = map(in, low, first_part(stack_size), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0, answer, e);
    in->stack_low = low + INL_PAGE;
    in->stack_high = in->stack_low + stack_size;
    in->image = in->stack_high + INL_PAGE;
    return s;
}

static inl_status no_room(inl_error *e)
{
    return inl_fail(e, INL_ERR_NO_MEMORY,
                    "out of address space: no room for the tool beside the program (see ulimit -v)");
}

inl_status inject_reserve(injection *in, uint64_t stack_size, inl_error *e)
{
    long answer = 0;
    for (int i = 0; i < TRIES && answer != -ENOMEM; i++) {
        inject_choose_region(&in->low, &in->high);
        in->low += (uint64_t)i * (image_size() + (16 << 20));
        inl_status s = reserve(in, in->low, stack_size, &answer, e);
        if (s != INL_OK || answer == (long)in->low) return s;
    }
    return no_room(e);
}

inl_status inject_reserve_at(injection *in, uint64_t low, uint64_t high, uint64_t stack_size, inl_error *e)
{
    long answer = 0;
    inl_status s = reserve(in, low, stack_size, &answer, e);
    if (s != INL_OK) return s;
    if (answer != (long)low) return no_room(e);
    in->low = low;
    in->high = high;
    return INL_OK;
}

static inl_status map_segment(injection *in, const Elf64_Phdr *p, inl_error *e)
{
    int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
               (p->p_flags & PF_X ? PROT_EXEC : 0);
    uint64_t start = in->image + inl_page_down(p->p_vaddr);
    uint64_t file_end = in->image + p->p_vaddr + p->p_filesz;
    uint64_t end = inl_page_up(in->image + p->p_vaddr + p->p_memsz);
    inl_status s = inject_map_or_fail(in, start, inl_page_up(file_end) - start, prot, MAP_PRIVATE | MAP_FIXED,
                                      in->job->tool_fd, inl_page_down(p->p_offset), e);
    if (s != INL_OK || !(p->p_flags & PF_W)) return s;
    static const uint8_t zeros[INL_PAGE];
    if (inl_page_up(file_end) != file_end)
        s = remote_write(&in->r, file_end, zeros, inl_page_up(file_end) - file_end, e);
    if (s == INL_OK && end > inl_page_up(file_end))
        s = inject_map_or_fail(in, inl_page_up(file_end), end - inl_page_up(file_end), prot,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0, e);
    return s;
}

inl_status inject_map_image(injection *in, inl_error *e)
{
    const Elf64_Phdr *ph = program_headers();
    inl_status s = INL_OK;
    for (unsigned i = 0; i < __ehdr_start.e_phnum && s == INL_OK; i++)
        if (ph[i].p_type == PT_LOAD) s = map_segment(in, &ph[i], e);
    return s;
}

/* Words of the program's memory, one behind the other, read page by page. */
typedef struct words {
    uint64_t at;
    unsigned next, have;
    uint64_t items[INL_PAGE / sizeof(uint64_t)];
} words;

static inl_status next_word(injection *in, words *w, uint64_t *word, inl_error *e)
{
    inl_status s = INL_OK;
    if (w->next == w->have) {
        uint64_t bytes = inl_page_down(w->at + INL_PAGE) - w->at;
        s = remote_read(&in->r, w->at, w->items, bytes, e);
        w->at += bytes;
        w->next = 0;
        w->have = (unsigned)(bytes / sizeof *w->items);
    }
    *word = s == INL_OK ? w->items[w->next++] : 0;
    return s;
}

/* The program's stack at its exec: argc, argv, 0, envp, 0, auxv. */
static inl_status read_auxv(injection *in, inl_error *e)
{
    words w = {.at = remote_registers_sp(&in->r.regs)};
    uint64_t word;
    inl_status s = next_word(in, &w, &word, e);
    w = (words){.at = remote_registers_sp(&in->r.regs) + 8 * (word + 2)};
    do {
        if (s == INL_OK) s = next_word(in, &w, &word, e);
    } while (s == INL_OK && word);
    while (s == INL_OK && in->auxv_count < INJECT_AUXV) {
        Elf64_auxv_t *a = &in->auxv[in->auxv_count++];
        s = next_word(in, &w, &a->a_type, e);
        if (s == INL_OK) s = next_word(in, &w, &a->a_un.a_val, e);
        if (a->a_type == AT_NULL) return s;
    }
    return s != INL_OK ? s : inl_fail(e, INL_ERR_FORMAT, "the program has no auxiliary vector");
}

static size_t count(char **v)
{
    size_t n = 0;
    while (v[n]) n++;
    return n;
}

static size_t strings_size(const inject_job *job)
{
    size_t n = strlen(inl_environment_tunables) + 1 + INL_STACK_RANDOM + 64;
    for (char **p = job->argv; *p; p++) n += strlen(*p) + 1;
    for (char **p = job->envp; *p; p++) n += strlen(*p) + 1;
    return n + 8 * (count(job->argv) + count(job->envp) + 8) + sizeof(Elf64_auxv_t) * INJECT_AUXV;
}

/* *sp is set. */
inl_status inject_build_stack(injection *in, uint64_t *sp, inl_error *e)
{
    const char **envp = calloc(count(in->job->envp) + 2, sizeof *envp);
    if (!envp) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_environment_of_tool((const char *const *)in->job->envp, envp);
    inl_first_stack s = {
        .top = in->stack_high,
        .argv = (const char *const *)in->job->argv,
        .envp = envp,
        .name = in->job->argv[0],
        .auxv = in->auxv,
    };
    inl_first_stack_image(&s, &__ehdr_start, in->image);
    sys_call3(SYS_getrandom, (long)s.random, sizeof s.random, 0);
    *sp = inl_first_stack_sp(&s);
    void *bytes = malloc(s.top - *sp);
    if (bytes) inl_first_stack_build(&s, bytes);
    inl_status st = bytes ? remote_write(&in->r, *sp, bytes, s.top - *sp, e)
                          : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    free(bytes);
    free(envp);
    return st;
}

uint64_t inject_entry(void) { return __ehdr_start.e_entry; }

uint64_t inject_there(const injection *in, const void *variable)
{
    return (uint64_t)(uintptr_t)variable - here() + in->image;
}

inl_status inject_hand_over(injection *in, const tool_handoff *more, inl_error *e)
{
    tool_handoff h = *more;
    h.role = TOOL_RESIDENT;
    h.resident = 1;
    remote_context(&in->r, &h.start.ctx);
    h.start.sigmask = in->r.sigmask;
    h.start.tool_low = in->low;
    h.start.tool_high = in->high;
    h.start.stack_low = in->stack_low;
    h.start.stack_high = in->stack_high;
    h.region_low = in->image + image_size() + INL_PAGE;
    h.region_high = in->high;
    inl_region region = {h.region_low, h.region_high, h.region_low};
    inl_status s = remote_write(&in->r, inject_there(in, &inl_region_now), &region, sizeof region, e);
    if (s == INL_OK) s = remote_write(&in->r, inject_there(in, &tool_handoff_data), &h, sizeof h, e);
    return s;
}

uint64_t inject_stack_size(const inject_job *job) { return STACK_ROOM + inl_page_up(2 * strings_size(job)); }

inl_status inject_map_stack(injection *in, uint64_t size, inl_error *e)
{
    return inject_map_or_fail(in, in->stack_low, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0, e);
}

inl_status inject_tool(const inject_job *job, inl_error *e)
{
    injection in = {.job = job};
    uint64_t stack_size = inject_stack_size(job), sp = 0;
    inl_status s = remote_begin(&in.r, job->pid, e);
    if (s == INL_OK) s = read_auxv(&in, e);
    if (s == INL_OK) s = inject_reserve(&in, stack_size, e);
    if (s == INL_OK) s = inject_map_stack(&in, stack_size, e);
    if (s == INL_OK) s = inject_map_image(&in, e);
    if (s == INL_OK) s = inject_build_stack(&in, &sp, e);
    tool_handoff h = tool_handoff_data;
    h.helper = (int32_t)sys_call0(SYS_getpid);
    if (s == INL_OK) s = inject_hand_over(&in, &h, e);
    if (s == INL_OK) s = remote_go(&in.r, in.image + __ehdr_start.e_entry, sp, e);
    if (s != INL_OK) remote_end(&in.r, TOOL_EXIT_FAILED);
    return s;
}
