/* Procedures: what the symbols, the PLT, the unwind table and the entry points say, made into one
 * sorted list of ranges that do not overlap.
 *
 *   symbols --sort--> one procedure an address (the other names are aliases)
 *           --drop--> labels inside a symbol that has a size
 *           --size--> sizes for those without
 *           --trim--> no overlaps
 *           --fill--> entry points and unwind ranges where nothing begins or covers
 */
#include "image/file.h"
#include "base/search.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct draft { /* a procedure before its range is final */
    image_proc proc;
    bool label;
    bool sized;
} draft;

typedef INL_VEC(draft) draft_list;

static unsigned underscores(const char *name) { return (unsigned)strspn(name, "_"); }

/* By address; within one address the preferred name comes first. */
static int by_preference(const void *a, const void *b)
{
    const image_sym *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->global != y->global) return x->global ? -1 : 1;
    if (x->hidden != y->hidden) return x->hidden ? 1 : -1;
    bool x_version = strchr(x->name, '@'), y_version = strchr(y->name, '@');
    if (x_version != y_version) return x_version ? 1 : -1;
    unsigned x_under = underscores(x->name), y_under = underscores(y->name);
    if (x_under != y_under) return x_under < y_under ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : (int)x->source - (int)y->source;
}

/* Among the few names of one address a repeated one is found wherever it stands; in absurdly long
 * lists only beside its twin. */
static bool is_repeated(const char *const *names, size_t count, const char *name)
{
    size_t look = count > 32 ? 32 : count;
    for (size_t i = 0; i < look; i++)
        if (strcmp(names[count - 1 - i], name) == 0) return true;
    return false;
}

static const char *const *alias_list(image *im, const image_sym *group, size_t count)
{
    if (count == 1) return NULL;
    const char **names = inl_arena_alloc(&im->arena, (count + 1) * sizeof *names);
    if (!names) return NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (group[i].kind != IMAGE_SYMBOL_DATA && !is_repeated(names, kept, group[i].name))
            names[kept++] = group[i].name;
    names[kept] = NULL;
    return kept > 1 ? names + 1 : NULL; /* the first is the name itself */
}

static void draft_group(image *im, const image_sym *group, size_t count, draft_list *out)
{
    const image_sym *first = group; /* data sorts last, so it is first only in a group of data */
    if (first->kind == IMAGE_SYMBOL_DATA) return;
    draft d = {.label = first->kind == IMAGE_SYMBOL_LABEL};
    d.proc = (image_proc){.addr = first->addr, .name = first->name, .source = first->source};
    for (size_t i = 0; i < count; i++)
        if (group[i].kind == first->kind && group[i].size > d.proc.size) d.proc.size = group[i].size;
    d.sized = d.proc.size != 0;
    d.proc.aliases = alias_list(im, group, count);
    inl_vec_push(out, d);
}

static void draft_symbols(image *im, draft_list *out)
{
    image_syms *s = &im->symbols;
    if (s->count) qsort(s->items, s->count, sizeof *s->items, by_preference);
    for (size_t i = 0, next; i < s->count; i = next) {
        for (next = i + 1; next < s->count && s->items[next].addr == s->items[i].addr;) next++;
        draft_group(im, s->items + i, next - i, out);
    }
}

static void drop_inner_labels(draft_list *v)
{
    uint64_t covered = 0;
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        draft *d = &v->items[i];
        if (d->label && d->proc.addr < covered) continue;
        uint64_t end = d->proc.addr + d->proc.size;
        if (!d->label && end > covered && end > d->proc.addr) covered = end;
        v->items[kept++] = *d;
    }
    v->count = kept;
}

static uint64_t section_end_at(image *im, uint64_t addr)
{
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (s[i].flags & SHF_EXECINSTR && addr >= s[i].addr && addr - s[i].addr < s[i].size)
            return s[i].addr + s[i].size;
    return 0;
}

/* The end of a procedure that begins at `addr` and says nothing of its size. */
static uint64_t natural_end(image *im, uint64_t addr, uint64_t next)
{
    uint64_t end = 0;
    if (!image_executable(im, addr, &end)) return addr;
    uint64_t section = section_end_at(im, addr);
    if (section > addr && section < end) end = section;
    const image_unwind_range *r = image_unwind_at(im, addr);
    if (r && r->addr + r->size < end) end = r->addr + r->size;
    return next > addr && next < end ? next : end;
}

/* Gives every draft a size, cuts it at the next one's start, and drops what is left empty. A draft
 * inside a larger one takes that one's tail along. */
static void settle_ranges(image *im, draft_list *v)
{
    uint64_t covered = 0;
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        draft d = v->items[i];
        uint64_t start = d.proc.addr, segment_end;
        uint64_t next = i + 1 < v->count ? v->items[i + 1].proc.addr : ~0ull;
        if (!image_executable(im, start, &segment_end)) continue;
        uint64_t end = d.sized ? start + d.proc.size : natural_end(im, start, next);
        if (end < start || end > segment_end) end = segment_end;
        if (covered > end && covered <= segment_end) end = covered;
        if (d.sized && end > covered) covered = end;
        if (end > next) end = next;
        if (end <= start) continue;
        d.proc.size = end - start;
        d.proc.is_open = !d.sized && !im->has_all_symbols;
        v->items[kept++] = d;
    }
    v->count = kept;
}

/* The first draft that begins after `addr`; the one before it may cover addr. */
static size_t after(const draft_list *v, uint64_t addr) { return INL_FIRST(v->count, k, v->items[k].proc.addr > addr); }

static bool covers(const draft_list *v, size_t next, uint64_t addr)
{
    return next && addr - v->items[next - 1].proc.addr < v->items[next - 1].proc.size;
}

static const char *made_name(image *im, const char *known, uint64_t addr)
{
    char text[32];
    if (known) return known;
    snprintf(text, sizeof text, "sub_%llx", (unsigned long long)addr);
    return inl_arena_strdup(&im->arena, text);
}

static bool add_made(image *im, draft_list *v, const char *known, uint64_t addr, uint64_t size,
                     image_proc_source source)
{
    image_proc p = {.addr = addr, .size = size, .source = source};
    p.name = made_name(im, known, addr);
    if (!p.name || size == 0) return p.name != NULL;
    image_sym s = {.name = p.name, .addr = addr, .size = size, .kind = IMAGE_SYMBOL_MADE, .source = (uint8_t)source};
    return inl_vec_push(v, (draft){.proc = p, .sized = true}) && inl_vec_push(&im->symbols, s);
}

static int by_addr(const void *a, const void *b)
{
    const draft *x = a, *y = b;
    return x->proc.addr < y->proc.addr ? -1 : x->proc.addr > y->proc.addr;
}

static void add_entries(image *im, draft_list *v)
{
    const image_dynamic *d = image_dynamic_info(im);
    const struct {
        const char *name;
        uint64_t addr;
    } entries[] = {
        /* A library's entry, if it has one, is no _start. */
        {d->has_soname && !d->pie ? NULL : "_start", im->view.header.e_entry},
        {"_init", d->init},
        {"_fini", d->fini},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        uint64_t addr = entries[i].addr;
        if (addr == 0 || !image_executable(im, addr, NULL)) continue;
        size_t next = after(v, addr);
        if (covers(v, next, addr)) continue;
        uint64_t limit = next < v->count ? v->items[next].proc.addr : ~0ull;
        uint64_t end = natural_end(im, addr, limit);
        if (!add_made(im, v, entries[i].name, addr, end - addr, IMAGE_PROC_ENTRY)) return;
        qsort(v->items, v->count, sizeof *v->items, by_addr);
    }
    settle_ranges(im, v); /* one entry may begin inside another's reach */
}

/* Unwinders look one byte before a return address, so the entry of what handlers of signals return to begins there. */
static uint64_t code_of(const image *im, const image_unwind_range *r)
{
    const image_processor *m = image_processor_of(im);
    const uint8_t *bytes;
    size_t have = image_bytes(im, r->addr + 1, &bytes);
    return r->size > 1 && have && m && m->restores && m->restores(bytes, have) ? r->addr + 1 : r->addr;
}

static void add_unwind_ranges(image *im, draft_list *v)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r);
    draft_list made = {0};
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = code_of(im, &r[i]), end = r[i].addr + r[i].size;
        size_t next = after(v, begin);
        if (covers(v, next, begin)) continue;
        if (next < v->count && v->items[next].proc.addr < end) end = v->items[next].proc.addr;
        if (i + 1 < count && r[i + 1].addr < end) end = r[i + 1].addr;
        if (!add_made(im, &made, NULL, begin, end - begin, IMAGE_PROC_UNWIND)) break;
    }
    if (made.count && inl_vec_reserve(v, v->count + made.count)) {
        memcpy(v->items + v->count, made.items, made.count * sizeof *made.items);
        v->count += made.count;
        qsort(v->items, v->count, sizeof *v->items, by_addr);
    }
    inl_vec_free(&made);
}

static void build(image *im)
{
    draft_list drafts = {0};
    image_load_symbols(im);
    draft_symbols(im, &drafts);
    drop_inner_labels(&drafts);
    settle_ranges(im, &drafts);
    add_entries(im, &drafts);
    add_unwind_ranges(im, &drafts);
    if (inl_vec_reserve(&im->procs, drafts.count))
        for (size_t i = 0; i < drafts.count; i++) im->procs.items[im->procs.count++] = drafts.items[i].proc;
    inl_vec_free(&drafts);
}

size_t image_procs(image *im, const image_proc **out)
{
    if (!im->has_procs) {
        im->has_procs = true;
        build(im);
        image_index_symbols(im);
    }
    *out = im->procs.items;
    return im->procs.count;
}

const image_proc *image_proc_at(image *im, uint64_t addr)
{
    const image_proc *p;
    size_t count = image_procs(im, &p), behind = INL_FIRST(count, k, p[k].addr > addr);
    return behind && addr - p[behind - 1].addr < p[behind - 1].size ? &p[behind - 1] : NULL;
}
