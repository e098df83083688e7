/* Puts the carried tool into the program that it travels in, before the program's first initialiser.
 *
 * Runs on the program's stack, with nothing but system calls: no C library, no thread-local storage, no
 * relocation, no variable of its own. The tool's file and the heap are mapped from the program's file where
 * /proc/self/exe is that file and the data is page-aligned in it; else copied from memory. The tool then
 * finds a stack as the kernel would have made it, its own handoff filled in, and all signals blocked.
 *
 *     tool_base          the tool's segments (MOVE_TOOL_BASE)
 *     MOVE_HEAP_BASE     the carried heap
 *     MOVE_REGION_LOW    guard, first stack, guard; later mappings of the tool
 *
 * What goes wrong goes wrong before the program has done anything: one line, exit status 1.
 */
#include "base/arch.h"
#include "base/first_stack.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"
#include "move/boot.h"
#include INL_ARCH_HEADER(elf, boot)

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    STACK_ROOM = 512 << 10,
    MAX_AUXV = 64,
    EXIT_FAILED = 1,
    GET_TID_ADDRESS = 40, /* prctl */
    SET_MASK = 2,
};

typedef struct boot_answer {
    uint64_t entry, sp;
} boot_answer;

typedef struct boot {
    const move_boot_links *links;
    const uint8_t *data;
    const move_carry_head *head;
    uint64_t bias;
    const Elf64_Ehdr *tool; /* in the data */
    uint64_t tool_end;
    int fd;               /* the program's file, or -1 */
    uint64_t data_offset; /* of the data in it */
    int64_t argc;
    char **argv, **envp;
    const Elf64_auxv_t *auxv;
    uint64_t stack_low, stack_high;
} boot;

static size_t length(const char *s)
{
    size_t n = 0;
    while (s[n]) n++;
    return n;
}

/* A compiler may clear or copy a structure by calls of these even where there is no library. */
__attribute__((used)) void *memset(void *to, int c, size_t n)
{
    for (volatile uint8_t *p = to; n; n--) *p++ = (uint8_t)c;
    return to;
}

__attribute__((used)) void *memcpy(void *to, const void *from, size_t n)
{
    boot_copy(to, from, n);
    return to;
}

static bool same(const void *a, const void *b, size_t n)
{
    const char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i]) return false;
    return true;
}

static void put(const char *text) { sys_call3(SYS_write, 2, (long)text, (long)length(text)); }

/* Where somebody is putting the tool in it is told to him, by the call that is not made (live/remote.c). */
__attribute__((noreturn)) static void fail(const boot *b, const char *why, const char *more)
{
    for (; b->head->live;) sys_call4(SYS_exit_group, EXIT_FAILED, (long)MOVE_BOOT_FAILED, (long)why, (long)more);
    put("inlay: the tool inside this program cannot start: ");
    put(why);
    put(more);
    put("\n");
    for (;;) sys_call1(SYS_exit_group, EXIT_FAILED);
}

/* --- mapping --- */

static const char no_room[] = "out of memory or address space", limits[] = " (see ulimit -v and -d)";

/* Address space that nobody has; anonymous. */
static void take(const boot *b, uint64_t at, uint64_t size, int prot, const char *what)
{
    long p = sys_call(SYS_mmap, (long)at, (long)size, prot,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == (long)at) return;
    if (p == -ENOMEM) fail(b, no_room, limits);
    fail(b, "its place in memory is taken: ", what);
}

static bool map_file(const boot *b, uint64_t at, uint64_t size, int prot, uint64_t offset)
{
    if (b->fd < 0) return false;
    return sys_call(SYS_mmap, (long)at, (long)size, prot, MAP_PRIVATE | MAP_FIXED, b->fd,
                    (long)(b->data_offset + offset)) == (long)at;
}

static void protect(const boot *b, uint64_t at, uint64_t size, int prot)
{
    if (sys_call3(SYS_mprotect, (long)at, (long)size, prot)) fail(b, no_room, limits);
}

/* Pages of the data that are this process's own and are wanted nowhere else, as the tool's headers are: they go there
 * themselves. */
static bool move_pages(const boot *b, uint64_t at, uint64_t offset, uint64_t size)
{
    uint64_t from = (uint64_t)b->data + offset;
    if (!b->head->live || !size || offset == b->head->tool || inl_page_down(from) != from) return false;
    return sys_call(SYS_mremap, (long)from, (long)size, (long)size, MREMAP_MAYMOVE | MREMAP_FIXED, (long)at, 0) ==
           (long)at;
}

/* Where memory that was written to may not become code: memory that is code, written to through /proc, takes its place.
 */
static bool become_code(uint64_t at, uint64_t pages)
{
    long p = sys_call(SYS_mmap, 0, (long)pages, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(p)) return false;
    long fd = sys_call4(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
    bool good = fd >= 0 && sys_call4(SYS_pwrite64, fd, (long)at, (long)pages, p) == (long)pages;
    if (fd >= 0) sys_call1(SYS_close, fd);
    return good &&
           sys_call(SYS_mremap, p, (long)pages, (long)pages, MREMAP_MAYMOVE | MREMAP_FIXED, (long)at, 0) == (long)at;
}

/* `size` bytes of the data go to `at`, which has been taken; the rest of the last page is zero. */
static void fill(const boot *b, uint64_t at, uint64_t offset, uint64_t size, int prot)
{
    uint64_t pages = inl_page_up(size);
    bool mapped = map_file(b, at, pages, prot, offset);
    if (!mapped) {
        uint64_t whole = inl_page_down(size); /* the rest may be the begin of the next segment as well */
        uint64_t done = move_pages(b, at, offset, whole) ? whole : 0;
        protect(b, at, pages, PROT_READ | PROT_WRITE);
        boot_copy((void *)(at + done), b->data + offset + done, size - done);
        if (prot & PROT_EXEC && sys_call3(SYS_mprotect, (long)at, (long)pages, prot) && become_code(at, pages)) return;
        protect(b, at, pages, prot);
        return;
    }
    if (!(prot & PROT_WRITE)) return;
    for (uint8_t *p = (uint8_t *)(at + size); p < (uint8_t *)(at + pages); p++) *(volatile uint8_t *)p = 0;
}

static void map_segment(const boot *b, const Elf64_Phdr *p)
{
    int prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
               (p->p_flags & PF_X ? PROT_EXEC : 0);
    uint64_t start = b->head->tool_base + inl_page_down(p->p_vaddr), slack = p->p_vaddr & (INL_PAGE - 1);
    uint64_t file_pages = inl_page_up(slack + p->p_filesz), pages = inl_page_up(slack + p->p_memsz);
    fill(b, start, b->head->tool + p->p_offset - slack, slack + p->p_filesz, prot);
    if (pages > file_pages) protect(b, start + file_pages, pages - file_pages, prot);
}

static void map_tool(boot *b)
{
    const Elf64_Phdr *ph = (const Elf64_Phdr *)((const uint8_t *)b->tool + b->tool->e_phoff);
    uint64_t end = 0;
    for (unsigned i = 0; i < b->tool->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end) end = ph[i].p_vaddr + ph[i].p_memsz;
    b->tool_end = b->head->tool_base + inl_page_up(end);
    take(b, b->head->tool_base, inl_page_up(end), PROT_NONE, "the tool's own");
    for (unsigned i = 0; i < b->tool->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD) map_segment(b, &ph[i]);
    if (!b->head->heap_size) return;
    take(b, MOVE_HEAP_BASE, inl_page_up(b->head->heap_size), PROT_READ | PROT_WRITE, "the tool's memory");
    fill(b, MOVE_HEAP_BASE, b->head->heap, b->head->heap_size, PROT_READ | PROT_WRITE);
}

/* --- the program's file --- */

static uint64_t aux(const boot *b, uint64_t type)
{
    for (const Elf64_auxv_t *a = b->auxv; a->a_type; a++)
        if (a->a_type == type) return a->a_un.a_val;
    return 0;
}

/* Where the data lies in the file, by the segment that it is in; -1: unknown, or not on a page. */
static int64_t offset_in_file(const boot *b)
{
    const Elf64_Phdr *ph = (const Elf64_Phdr *)aux(b, AT_PHDR);
    uint64_t at = b->links->data;
    for (uint64_t i = 0; ph && i < aux(b, AT_PHNUM); i++) {
        if (ph[i].p_type != PT_LOAD || at < ph[i].p_vaddr || at + b->links->data_size > ph[i].p_vaddr + ph[i].p_filesz)
            continue;
        uint64_t offset = at - ph[i].p_vaddr + ph[i].p_offset;
        return offset & (INL_PAGE - 1) ? -1 : (int64_t)offset;
    }
    return -1;
}

/* Opens it, and looks whether it is the file that the data in memory comes from. */
static void open_file(boot *b)
{
    move_carry_head head;
    int64_t offset = offset_in_file(b);
    b->fd = -1;
    if (offset < 0) return;
    int fd = (int)sys_call4(SYS_openat, AT_FDCWD, (long)"/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    if (sys_call4(SYS_pread64, fd, (long)&head, sizeof head, (long)offset) == sizeof head &&
        same(&head, b->head, sizeof head)) {
        b->fd = fd;
        b->data_offset = (uint64_t)offset;
        return;
    }
    sys_call1(SYS_close, fd);
}

/* --- the tool's stack --- */

static uint64_t count_env(const boot *b)
{
    uint64_t n = 0;
    while (b->envp[n]) n++;
    return n;
}

static const char *carried_argument(const boot *b, uint64_t i)
{
    return (const char *)b->data + ((const uint64_t *)(b->data + b->head->argv))[i];
}

/* Bytes of all strings that are copied: the tool may write to them, and the program to its own (to change its
 * title in the list of processes). */
static uint64_t strings_size(const boot *b)
{
    uint64_t n = 128; /* what the tool is told besides */
    for (uint64_t i = 0; i < b->head->argc; i++) n += length(carried_argument(b, i)) + 1;
    for (int64_t i = 0; i < b->argc; i++) n += length(b->argv[i]) + 1;
    for (char **e = b->envp; *e; e++) n += length(*e) + 1;
    return n;
}

static void take_stack(boot *b, uint64_t bytes)
{
    uint64_t size = STACK_ROOM + inl_page_up(bytes);
    take(b, MOVE_REGION_LOW, INL_PAGE + size + INL_PAGE, PROT_NONE, "the tool's stack");
    b->stack_low = MOVE_REGION_LOW + INL_PAGE;
    b->stack_high = b->stack_low + size;
    protect(b, b->stack_low, size, PROT_READ | PROT_WRITE);
}

/* The strings of both command lines and of the environment: pointers to them, at the low end of the stack, where
 * nothing else is yet. */
/* Member by member: clearing the whole would be a call of memset, which this code has not. */
static void list_strings(const boot *b, inl_first_stack *s)
{
    const char **argv = (const char **)b->stack_low, **at = argv, **envp;
    for (uint64_t i = 0; i < b->head->argc; i++) *at++ = carried_argument(b, i);
    for (int64_t i = 0; i < b->argc; i++) *at++ = b->argv[i];
    *at++ = NULL;
    envp = at;
    inl_environment_of_tool((const char *const *)b->envp, envp);
    s->top = b->stack_high;
    s->argv = argv;
    s->envp = envp;
    s->name = *argv;
    s->platform = NULL;
    s->auxv = b->auxv;
    s->change_count = 0;
}

/* argc, the tool's argv and then the program's, environment, auxiliary vector. */
static uint64_t build_stack(boot *b)
{
    uint64_t words = b->head->argc + (uint64_t)b->argc + count_env(b) + 8 + 2 * MAX_AUXV;
    take_stack(b, 2 * words * 8 + 2 * strings_size(b) + INL_STACK_RANDOM + 64);
    inl_first_stack s;
    list_strings(b, &s);
    inl_first_stack_image(&s, b->tool, b->head->tool_base);
    sys_call3(SYS_getrandom, (long)s.random, sizeof s.random, 0);
    uint64_t sp = inl_first_stack_sp(&s);
    inl_first_stack_build(&s, (void *)sp);
    return sp;
}

/* --- the whole --- */

static void hand_over(const boot *b, uint64_t sp, uint64_t pc, uint64_t mask)
{
    move_handoff *h = (move_handoff *)(b->head->tool_base + b->head->handoff);
    inl_region *r = (inl_region *)(b->head->tool_base + b->head->region);
    h->links = b->links;
    h->data = b->head;
    h->bias = b->bias;
    h->tool_high = b->tool_end;
    h->stack_low = b->stack_low;
    h->stack_high = b->stack_high;
    h->argc = b->argc;
    h->argv = b->argv;
    h->envp = b->envp;
    h->auxv = b->auxv;
    h->sp = sp;
    h->pc = pc;
    h->sigmask = mask;
    h->return_to = boot_return_at();
    h->tls_base = boot_thread_pointer();
    sys_call2(SYS_prctl, GET_TID_ADDRESS, (long)&h->clear_tid);
    sys_call3(SYS_get_robust_list, 0, (long)&h->robust, (long)&h->robust_size);
    h->carried = 1;
    r->low = r->next = b->stack_high + INL_PAGE;
    r->high = MOVE_REGION_HIGH;
}

static const Elf64_auxv_t *find_auxv(char **envp)
{
    while (*envp) envp++;
    while (!*envp) envp++; /* more than one: the dynamic linker has taken variables out */
    return (const Elf64_auxv_t *)envp;
}

/* The program is told its own entry point, not the boot code's. */
static void restore_entry(const boot *b)
{
    for (Elf64_auxv_t *a = (Elf64_auxv_t *)b->auxv; a->a_type; a++)
        if (a->a_type == AT_ENTRY) a->a_un.a_val = b->bias + b->links->entry;
}

static const move_carry_head damaged; /* of which nothing is to be believed */

__attribute__((used)) boot_answer boot_prepare(const move_boot_links *links, int64_t argc, char **argv, char **envp,
                                               uint64_t sp, uint64_t pc)
{
    uint64_t all = ~0ull, mask = 0;
    sys_call4(SYS_rt_sigprocmask, SET_MASK, (long)&all, (long)&mask, sizeof all);
    boot b = {.links = links, .argc = (int)argc, .argv = argv, .envp = envp};
    b.bias = (uint64_t)links - links->self;
    b.data = (const uint8_t *)(b.bias + links->data);
    b.head = (const move_carry_head *)b.data;
    b.auxv = find_auxv(envp);
    if (links->data_size < sizeof *b.head || b.head->magic != MOVE_CARRY_MAGIC || b.head->size > links->data_size) {
        b.head = &damaged;
        fail(&b, "its data in the file is damaged", "");
    }
    const char *lacks = boot_lacks(aux(&b, AT_HWCAP2));
    if (lacks) fail(&b, lacks, "");
    b.tool = (const Elf64_Ehdr *)(b.data + b.head->tool);
    open_file(&b);
    map_tool(&b);
    if (b.fd >= 0) sys_call1(SYS_close, b.fd);
    uint64_t tool_sp = build_stack(&b);
    hand_over(&b, sp, pc, mask);
    if (!links->dynamic) restore_entry(&b);
    return (boot_answer){b.head->tool_base + b.tool->e_entry, tool_sp};
}
