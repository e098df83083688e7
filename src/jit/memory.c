/* The program's address space, as far as code is concerned: what is executable, which pages hold code
 * that was translated, what happens to them.
 *
 * Stale code must never run. Pages that could be written to are guarded before code from them is translated, or
 * their code is checked (guard.c); unmapping, mapping over and changing the protection drop translations as well.
 *
 * Pages of translated code in a map from page to the
 * list of fragments.
 */
#include "base/maps_line.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/page.h"
#include "base/ranges.h"
#include "jit/core.h"
#include "run/kernel.h"
#include INL_ARCH_HEADER(run, abi)

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { STACK_GROWTH = 8 << 20 };

/* Kinds of ranges: the protection, and with MAP_SHARED the same memory may be mapped elsewhere too; what grows
 * downwards has new pages below with the protection of its lowest one. */
enum { PROT = PROT_READ | PROT_WRITE | PROT_EXEC, SHARED = PROT + 1, GROWS = SHARED << 1 };

/* A fragment's place in a page's list. */
typedef struct page_use {
    jit_fragment *fragment;
    struct page_use *next;
} page_use;

static int prot_of(const inl_range *r) { return (int)(r->kind & PROT); }
static bool is_shared(const inl_range *r) { return r->kind & SHARED; }

static const inl_range *region_at(uint64_t addr)
{
    size_t i = inl_ranges_behind(&jit.memory.regions, addr);
    return i < jit.memory.regions.count && jit.memory.regions.items[i].low <= addr ? &jit.memory.regions.items[i]
                                                                                   : NULL;
}

/* --- reading the kernel's list --- */

/* What is known already stays: the kernel does not know of the protection of guarded jit.memory.pages. */
static void take_new(inl_range r)
{
    for (uint64_t at = r.low; at < r.high;) {
        size_t i = inl_ranges_behind(&jit.memory.regions, at);
        bool known = i < jit.memory.regions.count && jit.memory.regions.items[i].low <= at;
        uint64_t end = known                          ? jit.memory.regions.items[i].high
                       : i < jit.memory.regions.count ? jit.memory.regions.items[i].low
                                                      : r.high;
        if (end > r.high) end = r.high;
        if (!known) inl_ranges_put(&jit.memory.regions, (inl_range){at, end, r.kind});
        at = end;
    }
}

static void take_line(void *unused, const inl_maps_line *l)
{
    (void)unused;
    if (run_is_ours(l->low, l->high)) return;
    const inl_range *known = region_at(l->high - 1);
    bool grows = !strcmp(l->name, "[stack]") || (known && known->kind & GROWS);
    take_new((inl_range){l->low, l->high, (unsigned)l->prot | (l->shared ? SHARED : 0) | (grows ? GROWS : 0)});
}

/* `addr` becomes where the mapping that it is in begins. */
static void take_begin(void *addr, const inl_maps_line *l)
{
    uint64_t *at = addr;
    if (l->low <= *at && *at < l->high) *at = l->low;
}

static void each_mapping(void (*see)(void *arg, const inl_maps_line *), void *arg)
{
    inl_maps_line l;
    char buffer[4096 + 1];
    size_t have = 0;
    long fd = run_proc_open("self/maps");
    if (sys_failed(fd)) return;
    for (;;) {
        long n = sys_call3(SYS_read, fd, (long)(buffer + have), (long)(sizeof buffer - 1 - have));
        if (n <= 0) break;
        have += (size_t)n;
        buffer[have] = 0;
        char *line = buffer, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (inl_maps_line_read(line, &l)) see(arg, &l);
        }
        have = (size_t)(buffer + have - line);
        if (have == sizeof buffer - 1) have = 0; /* no line is that long */
        memmove(buffer, line, have);
    }
    sys_call1(SYS_close, fd);
}

/* Adds what the kernel says, at the start and for addresses that nobody told of. */
static void read_maps(void) { each_mapping(take_line, NULL); }

void jit_memory_init(void) { read_maps(); }

void jit_memory_end(void)
{
    jit_memory_clear();
    inl_vec_free(&jit.memory.regions);
    inl_map_free(&jit.memory.pages);
}

/* --- code --- */

int jit_memory_prot(uint64_t addr)
{
    const inl_range *r = region_at(addr);
    return r ? prot_of(r) : PROT_READ | PROT_WRITE;
}

bool jit_memory_is_known(uint64_t addr) { return region_at(addr) != NULL; }

bool jit_memory_shared(uint64_t addr)
{
    const inl_range *r = region_at(addr);
    return r && is_shared(r);
}

static const inl_range *find_region(uint64_t addr)
{
    const inl_range *r = region_at(addr);
    if (r) return r;
    read_maps();
    return region_at(addr);
}

void jit_memory_late(void)
{
    jit.memory.pages_late = true;
    jit_wanted_stop();
}

void jit_memory_await(uint64_t addr)
{
    enum { LONGEST = 15 }; /* bytes of an instruction */
    char byte;
    run_safe_copy(&byte, (const void *)addr, 1);
    if (inl_page_down(addr) != inl_page_down(addr + LONGEST)) run_safe_copy(&byte, (const void *)(addr + LONGEST), 1);
}

static bool is_there(uint64_t page)
{
    unsigned char there = 0;
    return !sys_failed(sys_call3(SYS_mincore, (long)page, INL_PAGE, (long)&there)) && there & 1;
}

/* A file may be shorter than its mapping, at any time; there may be a guard (MADV_GUARD_INSTALL). */
static bool can_read(uint64_t page)
{
    char byte;
    return (!jit.memory.pages_late || is_there(page)) && !run_safe_copy(&byte, (const void *)page, 1);
}

static size_t code_at(uint64_t addr, bool *check)
{
    const inl_range *r = find_region(addr);
    if (!r || !(prot_of(r) & PROT_EXEC)) return 0;
    uint64_t page = inl_page_down(addr);
    if (!(prot_of(r) & PROT_READ)) sys_call3(SYS_mprotect, (long)page, INL_PAGE, prot_of(r) | PROT_READ);
    if (check && (prot_of(r) & PROT_WRITE || is_shared(r)) && !jit_guard(page, prot_of(r), r->kind & (SHARED | GROWS)))
        *check = true;
    if (!can_read(page)) return 0;
    return page + INL_PAGE - addr;
}

size_t jit_memory_code(uint64_t addr, bool *check) { return code_at(addr, check); }

size_t jit_memory_peek(uint64_t addr, bool *check)
{
    (void)check;
    return code_at(addr, NULL);
}

bool jit_memory_is_fixed(uint64_t low, uint64_t high)
{
    const inl_range *r = find_region(low);
    if (!r || high > r->high || (r->kind & (PROT | SHARED)) != (PROT_READ | PROT_EXEC)) return false;
    for (uint64_t page = inl_page_down(low); page < high; page += INL_PAGE)
        if (!can_read(page)) return false;
    return true;
}

uint64_t jit_memory_mapped_behind(uint64_t addr)
{
    enum { NUMBER = 1 << 16 }; /* below it an argument is a number */
    if (addr < NUMBER) return 0;
    size_t i = inl_ranges_behind(&jit.memory.regions, addr);
    uint64_t end = addr;
    /* A stack grows downwards, unseen. */
    if (i < jit.memory.regions.count && jit.memory.regions.items[i].low <= addr + STACK_GROWTH)
        end = jit.memory.regions.items[i].high;
    while (++i < jit.memory.regions.count && jit.memory.regions.items[i].low == end)
        end = jit.memory.regions.items[i].high;
    return end - addr;
}

/* It can be executed, but nothing is there: the kernel says what that is. */
static jit_fault fault_of(uint64_t page)
{
    jit_own *own = jit_of(run_self());
    own->missing = (jit_fault){SIGBUS, BUS_ADRERR, 0};
    can_read(page);
    return own->missing;
}

void jit_memory_fault(uint64_t app, jit_fault *out)
{
    const inl_range *r = region_at(app);
    uint64_t at = app;
    /* An instruction that begins in good memory fails at the first byte of what follows. */
    if (r && (prot_of(r) & PROT_EXEC) && inl_page_up(app + 1) - app < ISA_MAX_INSN && can_read(inl_page_down(app))) {
        at = inl_page_up(app + 1);
        r = region_at(at);
    }
    *out = (jit_fault){SIGSEGV, r ? SEGV_ACCERR : SEGV_MAPERR, at};
    if (!run_address_possible(app)) out->code = SI_KERNEL;
    if (!r || !(prot_of(r) & PROT_EXEC)) return;
    *out = fault_of(inl_page_down(at));
    out->at = at;
}

bool jit_memory_cover(jit_fragment *f, uint64_t low, uint64_t high)
{
    for (uint64_t n = low >> 12; n <= (high - 1) >> 12; n++) {
        uint64_t head = 0;
        page_use *use = jit_meta_alloc(sizeof *use);
        if (!use) return false;
        inl_map_get(&jit.memory.pages, n, &head);
        *use = (page_use){f, (page_use *)head};
        if (!inl_map_put(&jit.memory.pages, n, (uint64_t)use)) return false;
    }
    return true;
}

void jit_memory_clear(void) { inl_map_clear(&jit.memory.pages); }

/* Drops the fragments of one page which touch [low, high). */
static void drop_on_page(uint64_t n, page_use *use, uint64_t low, uint64_t high)
{
    page_use *keep = NULL;
    while (use) {
        page_use *next = use->next;
        jit_fragment *f = use->fragment;
        if (!f->dropped && f->app_low < high && f->app_high > low) jit_drop_fragment(f);
        if (!f->dropped) {
            use->next = keep;
            keep = use;
        }
        use = next;
    }
    if (keep) inl_map_put(&jit.memory.pages, n, (uint64_t)keep);
    else inl_map_remove(&jit.memory.pages, n);
}

void jit_drop_range(uint64_t low, uint64_t high)
{
    if (high > low) jit_wanted_changed(low, high);
    jit_drop_shown(low, high);
}

void jit_drop_shown(uint64_t low, uint64_t high)
{
    uint64_t n, head;
    if (high <= low || !jit.memory.pages.count) return;
    if (((high - 1) >> 12) - (low >> 12) < jit.memory.pages.capacity) {
        for (n = low >> 12; n <= (high - 1) >> 12; n++)
            if (inl_map_get(&jit.memory.pages, n, &head)) drop_on_page(n, (page_use *)head, low, high);
        return;
    }
    /* Removing and putting present keys leaves the map's slots where they are. */
    for (size_t at = 0; inl_map_next(&jit.memory.pages, &at, &n, &head);)
        if (n >= low >> 12 && n <= (high - 1) >> 12) drop_on_page(n, (page_use *)head, low, high);
}

/* --- what the program did --- */

static void forget_range(uint64_t low, uint64_t high)
{
    jit_drop_range(low, high);
    jit_unguard_range(low, high);
}

/* Who writes to a file writes to private mappings of it too, where they have not been written to themselves. That is
 * expected of what is memory rather than a file, and of what was opened to be written. */
static bool may_be_written(int fd, const char *path)
{
    long how = sys_call2(SYS_fcntl, fd, F_GETFL);
    return !strncmp(path, "/memfd:", 7) || !strncmp(path, "/dev/shm/", 9) ||
           (!sys_failed(how) && (how & O_ACCMODE) == O_RDWR);
}

static void track_module(uint64_t addr, uint64_t size, int prot, int fd, uint64_t offset)
{
    char path[4096];
    if (!run_proc_fd_path(fd, path, sizeof path)) return;
    if (may_be_written(fd, path))
        inl_ranges_put(&jit.memory.regions, (inl_range){addr, addr + size, ((unsigned)prot & PROT) | SHARED});
    module *m = module_set_mapped(run_here.modules, path, addr, size, offset, prot);
    if (m && run_here.client.module_loaded) run_here.client.module_loaded(run_here.client.arg, m);
}

static void module_went(module *m, void *arg)
{
    (void)arg;
    jit_kept_module_gone(m);
    if (run_here.client.module_gone) run_here.client.module_gone(run_here.client.arg, m);
}

void jit_memory_mapped(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t offset)
{
    size = inl_page_up(size);
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    jit_memory_unmapped(addr, size);
    inl_ranges_put(&jit.memory.regions,
                   (inl_range){addr, addr + size,
                               ((unsigned)prot & PROT) | (shared ? SHARED : 0) | (flags & MAP_GROWSDOWN ? GROWS : 0)});
    if (!(flags & MAP_ANONYMOUS) && fd >= 0) track_module(addr, size, prot, fd, offset);
}

void jit_memory_unmapped(uint64_t addr, uint64_t size)
{
    size = inl_page_up(size);
    forget_range(addr, addr + size);
    inl_ranges_cut(&jit.memory.regions, addr, addr + size);
    if (jit.sections.all.count) jit_sections_unmapped(addr, addr + size);
    if (run_here.modules) module_set_unmapped(run_here.modules, addr, size, module_went, NULL);
}

void jit_memory_protected(uint64_t addr, uint64_t size, int prot)
{
    uint64_t end = addr + inl_page_up(size);
    if (prot & PROT_GROWSDOWN) each_mapping(take_begin, &addr); /* of a stack all that is below, too */
    prot &= PROT_READ | PROT_WRITE | PROT_EXEC;
    /* Code that stays executable and cannot be written has not changed. */
    if ((prot & PROT_WRITE) || !(prot & PROT_EXEC)) jit_drop_range(addr, end);
    jit_unguard_range(addr, end);
    for (size_t i = inl_ranges_behind(&jit.memory.regions, addr);
         i < jit.memory.regions.count && jit.memory.regions.items[i].low < end; i++) {
        inl_range r = jit.memory.regions.items[i];
        if (prot_of(&r) == prot) continue;
        if (r.low < addr) r.low = addr;
        if (r.high > end) r.high = end;
        r.kind = (r.kind & ~PROT) | (unsigned)prot;
        inl_ranges_put(&jit.memory.regions, r);
        i = inl_ranges_behind(&jit.memory.regions, r.low);
    }
}
