/* The set of modules: an array sorted by address for lookups, a list in order of appearance.
 *
 * A module lives as long as any byte of its executable segments is mapped; `live` holds those
 * ranges. A program that maps over a module without unmapping it first is expected to be told as an
 * unmapping and a mapping.
 */
#include "image/module.h"

#include "base/log.h"
#include "base/maps_line.h"
#include "base/page.h"
#include "base/search.h"
#include "base/vec.h"
#include "image/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct range {
    uint64_t low, high;
} range;

typedef struct entry {
    module m; /* first: a module is its entry */
    INL_VEC(range) live;
} entry;

struct module_set {
    INL_VEC(entry *) sorted; /* by m.low */
    module *first, *last;
    uint32_t last_id;
};

module_set *module_set_new(void) { return calloc(1, sizeof(module_set)); }

static void free_entry(entry *e)
{
    image_close(e->m.image);
    inl_vec_free(&e->live);
    free(e);
}

void module_set_free(module_set *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->sorted.count; i++) free_entry(s->sorted.items[i]);
    inl_vec_free(&s->sorted);
    free(s);
}

module *module_first(const module_set *s) { return s->first; }

module *module_at(const module_set *s, uint64_t addr)
{
    size_t behind = INL_FIRST(s->sorted.count, k, s->sorted.items[k]->m.low > addr);
    while (behind-- > 0) /* modules nest only when one was mapped into another's gap */
        if (addr < s->sorted.items[behind]->m.high) return &s->sorted.items[behind]->m;
    return NULL;
}

/* The bias at which [addr, ...) is the file from `offset` on as one of its executable segments. The
 * page at a border may belong to two segments: the one whose first page it is comes first. */
static bool find_bias(const image *im, uint64_t addr, uint64_t offset, uint64_t *bias)
{
    const image_segment *s;
    size_t count = image_segments(im, &s);
    for (int exact = 1; exact >= 0; exact--) {
        for (size_t i = 0; i < count; i++) {
            uint64_t first = inl_page_down(s[i].file_offset);
            uint64_t end = inl_page_up(s[i].file_offset + s[i].file_size);
            if (!s[i].exec || (exact ? offset != first : offset < first || offset >= end)) continue;
            *bias = addr - (s[i].addr + (offset - s[i].file_offset));
            if (*bias % INL_PAGE == 0) return true;
        }
    }
    return false;
}

static void set_extent(module *m)
{
    const image_segment *s;
    size_t count = image_segments(m->image, &s);
    m->low = ~0ull;
    for (size_t i = 0; i < count; i++) {
        uint64_t low = inl_page_down(s[i].addr) + m->bias;
        uint64_t high = inl_page_up(s[i].addr + s[i].mem_size) + m->bias;
        if (low < m->low) m->low = low;
        if (high > m->high) m->high = high;
    }
}

static bool insert(module_set *s, entry *e)
{
    size_t at = 0;
    if (!inl_vec_push(&s->sorted, e)) return false;
    while (s->sorted.items[at] != e && s->sorted.items[at]->m.low <= e->m.low) at++;
    memmove(&s->sorted.items[at + 1], &s->sorted.items[at], (s->sorted.count - 1 - at) * sizeof(entry *));
    s->sorted.items[at] = e;
    if (s->last) s->last->next = &e->m;
    else s->first = &e->m;
    s->last = &e->m;
    e->m.id = ++s->last_id;
    inl_log(INL_LOG_IMAGE, "module %u: %s at %#llx, bias %#llx", e->m.id, image_path(e->m.image),
            (unsigned long long)e->m.low, (unsigned long long)e->m.bias);
    return true;
}

/* Takes the image over, also on failure. */
static module *add_module(module_set *s, image *im, uint64_t bias, range live)
{
    entry *e = calloc(1, sizeof *e);
    if (!e) {
        image_close(im);
        return NULL;
    }
    e->m.image = im;
    e->m.bias = bias;
    set_extent(&e->m);
    if (inl_vec_push(&e->live, live) && insert(s, e)) return &e->m;
    free_entry(e);
    return NULL;
}

module *module_set_add(module_set *s, image *im, uint64_t bias, bool is_main)
{
    module *m = add_module(s, im, bias, (range){0, 0});
    if (m) m->is_main = is_main;
    return m;
}

/* A further mapping of a module that is known already (it came in pieces, or one was remapped). */
static bool extends_known(module_set *s, const char *path, range r, uint64_t offset)
{
    for (size_t i = 0; i < s->sorted.count; i++) {
        entry *e = s->sorted.items[i];
        uint64_t bias;
        if (r.low < e->m.low || r.low >= e->m.high || strcmp(image_path(e->m.image), path) != 0 ||
            !find_bias(e->m.image, r.low, offset, &bias) || bias != e->m.bias)
            continue;
        for (size_t k = 0; k < e->live.count; k++)
            if (e->live.items[k].low <= r.low && r.high <= e->live.items[k].high) return true;
        inl_vec_push(&e->live, r);
        return true;
    }
    return false;
}

module *module_set_mapped(module_set *s, const char *path, uint64_t addr, uint64_t size, uint64_t offset, int prot)
{
    image *im;
    uint64_t bias;
    range r = {addr, addr + size};
    if (!(prot & PROT_EXEC) || size == 0 || r.high < r.low || !path || path[0] != '/') return NULL;
    if (extends_known(s, path, r, offset)) return NULL;
    if (image_open(path, &im, NULL) != INL_OK) return NULL; /* not ELF, or gone: no module */
    if (find_bias(im, addr, offset, &bias)) return add_module(s, im, bias, r);
    image_close(im);
    return NULL;
}

static void subtract(entry *e, uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < e->live.count;) {
        range *r = &e->live.items[i], tail = {high, r->high};
        if (r->high <= low || r->low >= high) {
            i++;
        } else if (r->low < low) {
            r->high = low;
            if (tail.low < tail.high) inl_vec_push(&e->live, tail);
            i++;
        } else if (r->high > high) {
            r->low = high;
            i++;
        } else {
            *r = e->live.items[--e->live.count];
        }
    }
}

static void remove_at(module_set *s, size_t at)
{
    entry *e = s->sorted.items[at];
    memmove(&s->sorted.items[at], &s->sorted.items[at + 1], (--s->sorted.count - at) * sizeof(entry *));
    module *before = NULL;
    for (module *m = s->first; m != &e->m; m = m->next) before = m;
    if (before) before->next = e->m.next;
    else s->first = e->m.next;
    if (s->last == &e->m) s->last = before;
    free_entry(e);
}

void module_set_unmapped(module_set *s, uint64_t addr, uint64_t size, void (*gone)(module *, void *), void *arg)
{
    uint64_t high = addr + size < addr ? ~0ull : addr + size;
    for (size_t i = 0; i < s->sorted.count;) {
        entry *e = s->sorted.items[i];
        if (e->m.low < high && e->m.high > addr) subtract(e, addr, high);
        if (e->live.count) {
            i++;
            continue;
        }
        if (gone) gone(&e->m, arg);
        remove_at(s, i);
    }
}

/* ---- what is mapped already ---- */

/* /proc is read in one go before anything is opened, since opening maps more. */
static char *read_whole(const char *path, size_t *size)
{
    INL_VEC(char) text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    for (;;) {
        enum { FIRST = 16 << 10, LEAST = 4 << 10 }; /* the kernel gives a page at a time */
        ssize_t n = -1;
        bool full = text.capacity < text.count + LEAST;
        errno = ENOMEM;
        if (!full || inl_vec_reserve(&text, text.capacity ? text.capacity * 2 : FIRST))
            n = read(fd, text.items + text.count, text.capacity - text.count - 1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            inl_vec_free(&text);
            break;
        }
        if (n == 0) break;
        text.count += (size_t)n;
    }
    close(fd);
    if (text.items) text.items[text.count] = 0;
    *size = text.count;
    return text.items;
}

static void add_vdso(module_set *s, const inl_maps_line *l)
{
    image *im;
    const void *base = (const void *)(uintptr_t)l->low;
    const image_segment *seg;
    const module *known = module_at(s, l->low);
    if (known && known->is_vdso) return;
    if (image_open_memory(base, l->high - l->low, l->name, &im, NULL) != INL_OK) return;
    image_segments(im, &seg);
    module *m = add_module(s, im, l->low - inl_page_down(seg[0].addr), (range){l->low, l->high});
    if (m) m->is_vdso = true;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* The kernel's auxiliary vector tells the program's headers from the interpreter's base. */
static void mark_roles(module_set *s)
{
    size_t size = 0;
    module *program = NULL, *interp = NULL;
    char *aux = read_whole("/proc/self/auxv", &size);
    for (size_t at = 0; aux && size - at >= sizeof(Elf64_auxv_t); at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t a;
        memcpy(&a, aux + at, sizeof a);
        if (a.a_type == AT_PHDR) program = module_at(s, a.a_un.a_val);
        if (a.a_type == AT_BASE && a.a_un.a_val) interp = module_at(s, a.a_un.a_val);
    }
    free(aux);
    /* When another program was loaded into this process, the vector speaks of a stranger. */
    for (module *m = s->first; m && !program; m = m->next)
        if (!m->is_vdso && (image_interp(m->image) || image_type(m->image) == ET_EXEC)) program = m;
    if (!program) return;
    program->is_main = true;
    const char *wanted = image_interp(program->image);
    for (module *m = s->first; m && !interp && wanted; m = m->next)
        if (m != program && !m->is_vdso && same_file(image_path(m->image), wanted)) interp = m;
    if (interp && interp != program) interp->is_interp = true;
}

inl_status module_set_scan(module_set *s, bool (*skip)(uint64_t low, uint64_t high, void *arg), void *arg, inl_error *e)
{
    size_t size;
    char *text = read_whole("/proc/self/maps", &size);
    if (!text) return inl_fail(e, INL_ERR_SYSTEM, "/proc/self/maps cannot be read");
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        inl_maps_line l;
        *end = 0;
        if (!inl_maps_line_read(line, &l) || !(l.prot & PROT_EXEC)) continue;
        if (skip && skip(l.low, l.high, arg)) continue;
        inl_maps_name_unescape(l.name);
        if (strcmp(l.name, "[vdso]") == 0) add_vdso(s, &l);
        else module_set_mapped(s, l.name, l.low, l.high - l.low, l.offset, l.prot);
    }
    free(text);
    mark_roles(s);
    return INL_OK;
}
