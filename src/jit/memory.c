/* The program's address space, as far as code is concerned: what is executable, which pages hold code
 * that was translated, what happens to them; and which ranges are Inlay's own.
 *
 * Stale code must never run. Pages that could be written to are guarded before code from them is translated, or
 * their code is checked (guard.c); unmapping, mapping over and changing the protection drop translations as well.
 *
 * Regions are kept in an array sorted by address; pages of translated code in a map from page to the
 * list of fragments.
 */
#include "base/log.h"
#include "base/sys.h"
#include "base/vec.h"
#include "jit/core.h"
#include "jit/kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096, STACK_GROWTH = 8 << 20 };

typedef struct region {
    uint64_t low, high;
    int prot;
    bool shared; /* MAP_SHARED: the same memory may be mapped elsewhere too */
} region;
typedef INL_VEC(region) region_vec;

/* A fragment's place in a page's list. */
typedef struct page_use {
    jit_fragment *fragment;
    struct page_use *next;
} page_use;

static region_vec regions; /* sorted, disjoint */
static region_vec owned;   /* Inlay's, sorted */
static inl_lock owned_lock;
static inl_map pages;     /* page number -> page_use */
static uint64_t readable; /* the last page that was found to be */

/* --- arrays of regions --- */

/* The first region that ends behind `addr`. */
static size_t first_behind(const region_vec *v, uint64_t addr)
{
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (v->items[mid].high <= addr) low = mid + 1;
        else high = mid;
    }
    return low;
}

static bool insert_at(region_vec *v, size_t i, region r)
{
    if (!inl_vec_push(v, r)) return false;
    memmove(&v->items[i + 1], &v->items[i], (v->count - 1 - i) * sizeof r);
    v->items[i] = r;
    return true;
}

static void erase(region_vec *v, size_t from, size_t to)
{
    memmove(&v->items[from], &v->items[to], (v->count - to) * sizeof *v->items);
    v->count -= to - from;
}

/* Takes [low, high) out of all regions. */
static void cut_out(region_vec *v, uint64_t low, uint64_t high)
{
    size_t i = first_behind(v, low);
    if (i == v->count || v->items[i].low >= high) return;
    if (v->items[i].low < low) {
        region rest = v->items[i];
        v->items[i].high = low;
        rest.low = low;
        if (!insert_at(v, ++i, rest)) return;
    }
    size_t end = i;
    while (end < v->count && v->items[end].high <= high) end++;
    if (end < v->count && v->items[end].low < high) v->items[end].low = high;
    erase(v, i, end);
}

static void put(region_vec *v, region r)
{
    if (r.low >= r.high) return;
    cut_out(v, r.low, r.high);
    size_t i = first_behind(v, r.low);
    if (i && v->items[i - 1].high == r.low && v->items[i - 1].prot == r.prot && v->items[i - 1].shared == r.shared) {
        v->items[i - 1].high = r.high;
        return;
    }
    insert_at(v, i, r);
}

static const region *region_at(uint64_t addr)
{
    size_t i = first_behind(&regions, addr);
    return i < regions.count && regions.items[i].low <= addr ? &regions.items[i] : NULL;
}

/* --- Inlay's own ranges --- */

void jit_memory_own(uint64_t low, uint64_t high, bool add)
{
    inl_lock_take(&owned_lock);
    if (add) put(&owned, (region){low, high, 0, false});
    else cut_out(&owned, low, high);
    inl_lock_release(&owned_lock);
}

bool jit_memory_is_ours(uint64_t low, uint64_t high)
{
    inl_lock_take(&owned_lock);
    size_t i = first_behind(&owned, low);
    bool ours = i < owned.count && owned.items[i].low < high;
    inl_lock_release(&owned_lock);
    return ours;
}

/* --- reading the kernel's list --- */

/* What is known already stays: the kernel does not know of the protection of guarded pages. */
static void take_new(region r)
{
    for (uint64_t at = r.low; at < r.high;) {
        size_t i = first_behind(&regions, at);
        bool known = i < regions.count && regions.items[i].low <= at;
        uint64_t end = known ? regions.items[i].high : i < regions.count ? regions.items[i].low : r.high;
        if (end > r.high) end = r.high;
        if (!known) put(&regions, (region){at, end, r.prot, r.shared});
        at = end;
    }
}

static void take_line(const char *line)
{
    unsigned long long low, high;
    char p[5];
    if (sscanf(line, "%llx-%llx %4s", &low, &high, p) != 3 || jit_memory_is_ours(low, high)) return;
    int prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) | (p[2] == 'x' ? PROT_EXEC : 0);
    take_new((region){low, high, prot, p[3] == 's'});
}

/* Adds what the kernel says, at the start and for addresses that nobody told of. */
static void read_maps(void)
{
    char buffer[4096 + 1];
    size_t have = 0;
    long fd = jit_proc_open("self/maps");
    if (sys_failed(fd)) return;
    for (;;) {
        long n = sys_call3(SYS_read, fd, (long)(buffer + have), (long)(sizeof buffer - 1 - have));
        if (n <= 0) break;
        have += (size_t)n;
        buffer[have] = 0;
        char *line = buffer, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            take_line(line);
        }
        have = (size_t)(buffer + have - line);
        if (have == sizeof buffer - 1) have = 0; /* no line is that long */
        memmove(buffer, line, have);
    }
    sys_call1(SYS_close, fd);
}

void jit_memory_init(void) { read_maps(); }

/* --- code --- */

int jit_memory_prot(uint64_t addr)
{
    const region *r = region_at(addr);
    return r ? r->prot : PROT_READ | PROT_WRITE;
}

bool jit_memory_shared(uint64_t addr)
{
    const region *r = region_at(addr);
    return r && r->shared;
}

static const region *find_region(uint64_t addr)
{
    const region *r = region_at(addr);
    if (r) return r;
    read_maps();
    return region_at(addr);
}

static size_t code_at(uint64_t addr, bool *check)
{
    const region *r = find_region(addr);
    if (!r || !(r->prot & PROT_EXEC)) return 0;
    uint64_t page = addr & ~(uint64_t)(PAGE - 1);
    if (!(r->prot & PROT_READ)) sys_call3(SYS_mprotect, (long)page, PAGE, r->prot | PROT_READ);
    if (check && (r->prot & PROT_WRITE || r->shared) && !jit_guard(page, r->prot, r->shared)) *check = true;
    if (page != readable) {
        char byte;
        if (jit_safe_copy(&byte, (const void *)addr, 1)) return 0;
        readable = page;
    }
    return page + PAGE - addr;
}

size_t jit_memory_code(uint64_t addr, bool *check) { return code_at(addr, check); }

size_t jit_memory_peek(uint64_t addr, bool *check)
{
    (void)check;
    return code_at(addr, NULL);
}

uint64_t jit_memory_mapped_behind(uint64_t addr)
{
    enum { NUMBER = 1 << 16 }; /* below it an argument is a number */
    if (addr < NUMBER) return 0;
    size_t i = first_behind(&regions, addr);
    uint64_t end = addr;
    /* A stack grows downwards, unseen. */
    if (i < regions.count && regions.items[i].low <= addr + STACK_GROWTH) end = regions.items[i].high;
    while (++i < regions.count && regions.items[i].low == end) end = regions.items[i].high;
    return end - addr;
}

void jit_memory_fault(uint64_t app, int *signo, int *code)
{
    /* An instruction that begins in good memory fails at the first byte of what follows. */
    const region *r = region_at(app);
    if (r && (r->prot & PROT_EXEC) && r->high - app < ISA_MAX_INSN) r = region_at(r->high);
    *signo = SIGSEGV;
    *code = r ? SEGV_ACCERR : SEGV_MAPERR;
    if (!r || !(r->prot & PROT_EXEC)) return;
    *signo = SIGBUS;
    *code = BUS_ADRERR;
}

bool jit_memory_cover(jit_fragment *f, uint64_t low, uint64_t high)
{
    for (uint64_t n = low >> 12; n <= (high - 1) >> 12; n++) {
        uint64_t head = 0;
        page_use *use = jit_meta_alloc(sizeof *use);
        if (!use) return false;
        inl_map_get(&pages, n, &head);
        *use = (page_use){f, (page_use *)head};
        if (!inl_map_put(&pages, n, (uint64_t)use)) return false;
    }
    return true;
}

void jit_memory_clear(void) { inl_map_clear(&pages); }

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
    if (keep) inl_map_put(&pages, n, (uint64_t)keep);
    else inl_map_remove(&pages, n);
}

void jit_drop_range(uint64_t low, uint64_t high)
{
    uint64_t n, head;
    if (high <= low || !pages.count) return;
    if (((high - 1) >> 12) - (low >> 12) < pages.capacity) {
        for (n = low >> 12; n <= (high - 1) >> 12; n++)
            if (inl_map_get(&pages, n, &head)) drop_on_page(n, (page_use *)head, low, high);
        return;
    }
    /* Removing and putting present keys leaves the map's slots where they are. */
    for (size_t at = 0; inl_map_next(&pages, &at, &n, &head);)
        if (n >= low >> 12 && n <= (high - 1) >> 12) drop_on_page(n, (page_use *)head, low, high);
}

/* --- what the program did --- */

static uint64_t page_up(uint64_t size) { return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1); }

static void forget_range(uint64_t low, uint64_t high)
{
    readable = 0;
    jit_drop_range(low, high);
    jit_unguard_range(low, high);
}

static void track_module(uint64_t addr, uint64_t size, int prot, int fd, uint64_t offset)
{
    char path[4096];
    if (!jit_proc_fd_path(fd, path, sizeof path)) return;
    module *m = module_set_mapped(jit.modules, path, addr, size, offset, prot);
    if (m && jit.client.module_loaded) jit.client.module_loaded(jit.client.arg, m);
}

static void module_went(module *m, void *arg)
{
    (void)arg;
    if (jit.client.module_gone) jit.client.module_gone(jit.client.arg, m);
}

void jit_memory_mapped(uint64_t addr, uint64_t size, int prot, int flags, int fd, uint64_t offset)
{
    size = page_up(size);
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    jit_memory_unmapped(addr, size);
    put(&regions, (region){addr, addr + size, prot & (PROT_READ | PROT_WRITE | PROT_EXEC), shared});
    if (!(flags & MAP_ANONYMOUS) && fd >= 0) track_module(addr, size, prot, fd, offset);
}

void jit_memory_unmapped(uint64_t addr, uint64_t size)
{
    size = page_up(size);
    forget_range(addr, addr + size);
    cut_out(&regions, addr, addr + size);
    if (jit.modules) module_set_unmapped(jit.modules, addr, size, module_went, NULL);
}

void jit_memory_protected(uint64_t addr, uint64_t size, int prot)
{
    uint64_t end = addr + page_up(size);
    prot &= PROT_READ | PROT_WRITE | PROT_EXEC;
    /* Code that stays executable and cannot be written has not changed. */
    if ((prot & PROT_WRITE) || !(prot & PROT_EXEC)) jit_drop_range(addr, end);
    jit_unguard_range(addr, end);
    for (size_t i = first_behind(&regions, addr); i < regions.count && regions.items[i].low < end; i++) {
        region r = regions.items[i];
        if (r.prot == prot) continue;
        if (r.low < addr) r.low = addr;
        if (r.high > end) r.high = end;
        r.prot = prot;
        put(&regions, r);
        i = first_behind(&regions, r.low);
    }
}
