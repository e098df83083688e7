/* Without ptrace: the program is loaded into the tool's own process, as the kernel's exec would have
 * done it. What differs from a real exec is what only the kernel can set: /proc/self/exe (answered by
 * load_proc_link where the program asks by readlink), /proc/self/cmdline, and that the stack begins
 * some way below its end, where the tool's first stack stays.
 *
 *     stack mapping:  | ... grows | program's stack | room for the tool's start | main's frames, argv |
 *                                                   ^ stack_low                             stack_high ^
 */
#include "tool/glibc.h"
#include "tool/state.h"
#include "base/first_stack.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    HEAD = 4096,
    MAX_SCRIPTS = 5,
    TOOL_STACK = 512 << 10,
    SELF_STACK = 64 << 20,
    MAX_AUXV = 52,
    TRIES = 16,
    LINE = 256
};

typedef struct loaded {
    uint64_t bias, entry, phdr, low, high;
    unsigned phnum;
    bool exec_stack;
    char interp[HEAD];
} loaded;

typedef struct elf_file {
    int fd;
    const char *path;
    Elf64_Ehdr h;
    Elf64_Phdr *ph;
} elf_file;

static inl_status open_elf(const char *path, elf_file *f, inl_error *e)
{
    *f = (elf_file){.fd = open(path, O_RDONLY | O_CLOEXEC), .path = path};
    if (f->fd < 0) return inl_fail(e, INL_ERR_ACCESS, "%s", strerror(errno));
    size_t size = 0;
    if (pread(f->fd, &f->h, sizeof f->h, 0) == sizeof f->h && f->h.e_phentsize == sizeof(Elf64_Phdr) && f->h.e_phnum) {
        size = f->h.e_phnum * sizeof(Elf64_Phdr);
        f->ph = malloc(size);
    }
    if (f->ph && pread(f->fd, f->ph, size, (off_t)f->h.e_phoff) == (ssize_t)size) return INL_OK;
    free(f->ph);
    close(f->fd);
    return inl_fail(e, INL_ERR_FORMAT, "%s is a malformed ELF file", path);
}

static void close_elf(elf_file *f)
{
    free(f->ph);
    close(f->fd);
}

static void extent(const elf_file *f, uint64_t *low, uint64_t *high)
{
    *low = ~0ull;
    *high = 0;
    for (unsigned i = 0; i < f->h.e_phnum; i++) {
        const Elf64_Phdr *p = &f->ph[i];
        if (p->p_type != PT_LOAD) continue;
        if (p->p_vaddr < *low) *low = inl_page_down(p->p_vaddr);
        if (p->p_vaddr + p->p_memsz > *high) *high = inl_page_up(p->p_vaddr + p->p_memsz);
    }
}

static inl_status no_place(uint64_t base, const char *what, long got, inl_error *e)
{
    if (got == -ENOMEM)
        return inl_fail(e, INL_ERR_NO_MEMORY, "there is no memory or address space for %s (see ulimit -v and -d)",
                        what);
    return inl_fail(e, INL_ERR_NO_MEMORY, "the address 0x%llx, where %s must lie, is taken", (unsigned long long)base,
                    what);
}

/* Address space for the whole file at a given place. */
static inl_status reserve_at(const elf_file *f, uint64_t base, uint64_t *bias, inl_error *e)
{
    uint64_t low, high;
    extent(f, &low, &high);
    if (high <= low) return inl_fail(e, INL_ERR_FORMAT, "%s has nothing to load", f->path);
    long got = sys_call(SYS_mmap, (long)base, (long)(high - low), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)base) return no_place(base, "the tool", got, e);
    *bias = base - low;
    return INL_OK;
}

/* Address space for the whole file: where it was linked for, or for a program that can lie anywhere
 * where the kernel would put it. */
static inl_status reserve(const elf_file *f, bool is_program, uint64_t *bias, inl_error *e)
{
    uint64_t low, high, random = 0;
    extent(f, &low, &high);
    if (high <= low) return inl_fail(e, INL_ERR_FORMAT, "%s has nothing to load", f->path);
    bool fixed = f->h.e_type == ET_EXEC;
    bool randomise = !(sys_call1(SYS_personality, 0xffffffff) & ADDR_NO_RANDOMIZE);
    for (int i = 0; i < TRIES; i++) {
        if (randomise) sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
        uint64_t at = fixed ? low : is_program ? tool_places.program + inl_page_down(random % (1ull << 39)) : 0;
        at += fixed ? 0 : (uint64_t)i << 30;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed || is_program ? MAP_FIXED_NOREPLACE : 0);
        long got = sys_call(SYS_mmap, (long)at, (long)(high - low), PROT_NONE, flags, -1, 0);
        if (!sys_failed(got)) {
            *bias = (uint64_t)got - low;
            return INL_OK;
        }
        if (fixed || got == -ENOMEM) break;
    }
    return inl_fail(e, INL_ERR_NO_MEMORY, "no room at the addresses that %s needs", f->path);
}

static bool map_segment(const elf_file *f, const Elf64_Phdr *p, uint64_t bias)
{
    int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
               (p->p_flags & PF_X ? PROT_EXEC : 0);
    uint64_t start = inl_page_down(p->p_vaddr) + bias, file_end = p->p_vaddr + p->p_filesz + bias;
    uint64_t file_pages = inl_page_up(file_end), stop = inl_page_up(p->p_vaddr + p->p_memsz + bias);
    if (p->p_filesz && sys_failed(sys_call(SYS_mmap, (long)start, (long)(file_pages - start), prot,
                                           MAP_PRIVATE | MAP_FIXED, f->fd, (long)inl_page_down(p->p_offset))))
        return false;
    if (!p->p_filesz) file_pages = start;
    else if ((p->p_flags & PF_W) && p->p_memsz > p->p_filesz) memset((void *)file_end, 0, file_pages - file_end);
    return stop <= file_pages || !sys_failed(sys_call(SYS_mmap, (long)file_pages, (long)(stop - file_pages), prot,
                                                      MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0));
}

/* `base`: where to, or 0. */
static inl_status map_elf(const char *path, bool is_program, uint64_t base, loaded *out, inl_error *e)
{
    elf_file f;
    inl_status s = open_elf(path, &f, e);
    if (s != INL_OK) return s;
    *out = (loaded){.phnum = f.h.e_phnum};
    s = base ? reserve_at(&f, base, &out->bias, e) : reserve(&f, is_program, &out->bias, e);
    for (unsigned i = 0; i < f.h.e_phnum && s == INL_OK; i++) {
        const Elf64_Phdr *p = &f.ph[i];
        if (p->p_type == PT_LOAD && !map_segment(&f, p, out->bias))
            s = inl_fail(e, INL_ERR_SYSTEM, "cannot map %s", path);
        if (p->p_type == PT_LOAD && f.h.e_phoff >= p->p_offset && f.h.e_phoff < p->p_offset + p->p_filesz)
            out->phdr = f.h.e_phoff - p->p_offset + p->p_vaddr + out->bias;
        if (p->p_type == PT_GNU_STACK) out->exec_stack = p->p_flags & PF_X;
        if (p->p_type == PT_INTERP && p->p_filesz < sizeof out->interp &&
            pread(f.fd, out->interp, p->p_filesz, (off_t)p->p_offset) < 0)
            s = inl_fail(e, INL_ERR_FORMAT, "%s: its interpreter's name cannot be read", path);
    }
    uint64_t low, high;
    extent(&f, &low, &high);
    out->low = low + out->bias;
    out->high = high + out->bias;
    out->entry = f.h.e_entry + out->bias;
    close_elf(&f);
    return s;
}

/* --- the stack --- */

/* What the kernel gave this process, in its order; without /proc, in the order of the numbers. */
static size_t own_auxv(Elf64_auxv_t *v)
{
    size_t n = 0;
    int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, v, MAX_AUXV * sizeof *v);
    if (fd >= 0) close(fd);
    for (; bytes > 0 && n < (size_t)bytes / sizeof *v; n++)
        if (v[n].a_type == AT_NULL) return n;
    n = 0;
    for (unsigned long type = 2; type < MAX_AUXV; type++) {
        errno = 0;
        unsigned long value = getauxval(type);
        if (!errno) v[n++] = (Elf64_auxv_t){type, {value}};
    }
    return n;
}

static size_t count(char **v)
{
    size_t n = 0;
    while (v[n]) n++;
    return n;
}

/* As the kernel lays it out. */
static uint64_t build_stack(uint64_t top, const char *path, char **argv, char **envp, const loaded *program,
                            const loaded *interp)
{
    Elf64_auxv_t auxv[MAX_AUXV + 1];
    auxv[own_auxv(auxv)] = (Elf64_auxv_t){AT_NULL, {0}};
    inl_first_stack s = {
        .top = top,
        .argv = (const char *const *)argv,
        .envp = (const char *const *)envp,
        .name = path,
        .platform = (const char *)getauxval(AT_PLATFORM),
        .auxv = auxv,
        .changes = {{AT_PHDR, {program->phdr}},
                    {AT_PHNUM, {program->phnum}},
                    {AT_ENTRY, {program->entry}},
                    {AT_BASE, {interp ? interp->bias : 0}}},
        .change_count = 4,
    };
    sys_call3(SYS_getrandom, (long)s.random, sizeof s.random, 0);
    uint64_t sp = inl_first_stack_sp(&s);
    inl_first_stack_build(&s, (void *)sp);
    return sp;
}

/* --- scripts --- */

/* #! lines: the interpreter becomes the program, with the script's path among its arguments. */
static inl_status follow_scripts(char path[HEAD], char ***argv, inl_error *e)
{
    for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
        char line[LINE + 1] = "";
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : pread(fd, line, LINE, 0);
        if (fd >= 0) close(fd);
        if (n < 0) return inl_fail(e, INL_ERR_ACCESS, "%s: %s", path, strerror(errno));
        if (n < 3 || line[0] != '#' || line[1] != '!') return INL_OK;
        line[strcspn(line, "\n")] = '\0';
        char *interp = line + 2 + strspn(line + 2, " \t"), *rest = interp + strcspn(interp, " \t");
        if (*rest) *rest++ = '\0';
        rest += strspn(rest, " \t");
        for (size_t k = strlen(rest); k && strchr(" \t", rest[k - 1]); k--) rest[k - 1] = '\0';
        size_t argc = count(*argv), m = 0;
        char **fresh = calloc(argc + 4, sizeof *fresh);
        if (!fresh) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
        fresh[m++] = strdup(interp);
        if (*rest) fresh[m++] = strdup(rest);
        fresh[m++] = strdup(path);
        for (size_t i = 1; i < argc; i++) fresh[m++] = (*argv)[i];
        *argv = fresh;
        strcpy(path, interp);
    }
    return inl_fail(e, INL_ERR_UNSUPPORTED, "scripts that start scripts go too deep");
}

/* --- the whole --- */

/* Behind the program's data, as far as the kernel puts it at most. */
static uint64_t place_break(const loaded *program)
{
    enum { AT_MOST = 32 << 20 };
    uint64_t random = 0;
    if (!(sys_call1(SYS_personality, 0xffffffff) & ADDR_NO_RANDOMIZE))
        sys_call3(SYS_getrandom, (long)&random, sizeof random, 0);
    return program->high + inl_page_down(random % AT_MOST);
}

static void fill_start(uint64_t pc, uint64_t sp, uint64_t stack_low)
{
    tool_handoff *h = &tool_handoff_data;
    const char *last = (const char *)getauxval(AT_EXECFN);
    load_start_context(&h->start.ctx, pc, sp);
    h->start.tool_low = (uint64_t)(uintptr_t)&__ehdr_start;
    h->start.tool_high = inl_page_up((uint64_t)(uintptr_t)end);
    h->start.stack_low = stack_low;
    h->start.stack_high = inl_page_up((uint64_t)(uintptr_t)last + strlen(last) + 1);
    h->role = TOOL_RESIDENT;
    h->resident = h->loaded = 1;
}

/* A thread can have one area of rseq, and it is the program's to register. */
static void unregister_sequences(void)
{
    enum { AREA = 32, UNREGISTER = 1, SIGNATURE = 0x53053053 };
    if (!&__rseq_size || !__rseq_size) return;
    sys_call4(SYS_rseq, (long)(tls_block_own() + __rseq_offset), AREA, UNREGISTER, SIGNATURE);
}

inl_status load_program(const char *path, char **argv, char **envp, inl_error *e)
{
    char file[HEAD];
    loaded program = {0}, interp = {0};
    snprintf(file, sizeof file, "%s", path);
    inl_status s = follow_scripts(file, &argv, e);
    if (s == INL_OK) s = map_elf(file, true, 0, &program, e);
    bool dynamic = program.interp[0];
    if (s == INL_OK && dynamic) s = map_elf(program.interp, false, 0, &interp, e);
    if (s != INL_OK) return s;

    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    uint64_t top = inl_page_down(here - TOOL_STACK);
    uint64_t sp = build_stack(top, path, argv, envp, &program, dynamic ? &interp : NULL);
    if (program.exec_stack)
        mprotect((void *)inl_page_down(sp), INL_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN);
    tool_now->real_path = realpath(file, NULL);
    if (!tool_now->real_path) tool_now->real_path = strdup(file);
    const char *slash = strrchr(path, '/');
    prctl(PR_SET_NAME, slash ? slash + 1 : path);
    unregister_sequences();
    fill_start(dynamic ? interp.entry : program.entry, sp, top);
    tool_handoff_data.start.brk_emulated = place_break(&program);
    return INL_OK;
}

/* --- the tool itself, at another address --- */

inl_status load_self(uint64_t base, uint64_t region_low, uint64_t region_high, tool_role role, char **argv, char **envp,
                     inl_error *e)
{
    loaded self;
    inl_status s = map_elf("/proc/self/exe", false, base, &self, e);
    if (s != INL_OK) return s;
    long got = sys_call(SYS_mmap, (long)region_low, SELF_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (long)region_low) return no_place(region_low, "the tool's stack", got, e);
    char **own = calloc(count(envp) + 2, sizeof *own);
    if (!own) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_environment_of_tool((const char *const *)envp, (const char **)own);
    uint64_t sp = build_stack(region_low + SELF_STACK, argv[0], argv, own, &self, NULL);
    free(own);

    /* The new copy's variables, before anything of it runs. */
    uint64_t shift = base - (uint64_t)(uintptr_t)&__ehdr_start;
    tool_handoff *h = (tool_handoff *)((uint64_t)(uintptr_t)&tool_handoff_data + shift);
    inl_region *r = (inl_region *)((uint64_t)(uintptr_t)&inl_region_now + shift);
    *h = tool_handoff_data;
    h->role = role;
    h->region_low = region_low + SELF_STACK + INL_PAGE;
    h->region_high = region_high;
    *r = (inl_region){h->region_low, h->region_high, h->region_low};
    load_enter(self.entry, sp);
}

/* run_client.proc_link */
size_t load_proc_link(void *arg, const char *path, char *out, size_t size)
{
    (void)arg;
    char own[64];
    snprintf(own, sizeof own, "/proc/%ld/exe", sys_call0(SYS_getpid));
    if (strcmp(path, "/proc/self/exe") && strcmp(path, "/proc/thread-self/exe") && strcmp(path, own)) return 0;
    const char *real_path = tool_now->real_path;
    size_t n = real_path ? strlen(real_path) : 0;
    if (n > size) n = size;
    memcpy(out, real_path, n);
    return n;
}
