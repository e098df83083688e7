/* The text of an image: executable sections (executable segments where there are no sections), their
 * bytes in the file, and one byte of marks for each. Hostile files may claim any sections: only bytes
 * that are there and executable count, and none twice. */
#include "cfg/work.h"
#include "base/search.h"

#include <elf.h>
#include <string.h>

static void add_region(cfg_work *w, uint64_t addr, uint64_t size, bool stubs)
{
    const image_segment *s;
    size_t count = image_segments(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        if (!s[i].exec || addr < s[i].addr || addr - s[i].addr >= s[i].mem_size) continue;
        uint64_t have = image_bytes(w->image, addr, &bytes), left = s[i].mem_size - (addr - s[i].addr);
        if (have > size) have = size;
        if (have > left) have = left;
        if (have == 0) return;
        cfg_region r = {.addr = addr, .end = addr + have, .bytes = bytes, .stubs = stubs};
        cfg_keep(w, &w->regions, r);
        return;
    }
}

static int by_addr(const void *a, const void *b)
{
    const cfg_region *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static void collect(cfg_work *w)
{
    const image_section *s;
    const image_segment *g;
    size_t count = image_sections(w->image, &s);
    for (size_t i = 0; i < count; i++) {
        bool stubs = strncmp(s[i].name, ".plt", 4) == 0 || strncmp(s[i].name, ".iplt", 5) == 0;
        if (s[i].flags & SHF_EXECINSTR && s[i].flags & SHF_ALLOC && s[i].type != SHT_NOBITS)
            add_region(w, s[i].addr, s[i].size, stubs);
    }
    if (w->regions.count) return;
    count = image_segments(w->image, &g);
    for (size_t i = 0; i < count; i++)
        if (g[i].exec) add_region(w, g[i].addr, g[i].mem_size, false);
}

static void take_apart(cfg_work *w) /* no overlaps; marks given out */
{
    cfg_region *r = w->regions.items;
    size_t kept = 0, base = 0;
    uint64_t covered = 0;
    if (w->regions.count) qsort(r, w->regions.count, sizeof *r, by_addr);
    for (size_t i = 0; i < w->regions.count; i++) {
        cfg_region now = r[i];
        if (now.addr < covered) {
            if (now.end <= covered) continue;
            now.bytes += covered - now.addr;
            now.addr = covered;
        }
        covered = now.end;
        now.base = base;
        base += now.end - now.addr;
        r[kept++] = now;
    }
    w->regions.count = kept;
    w->mark_count = base;
    w->low = kept ? r[0].addr : 0;
    w->high = covered;
}

enum { AROUND = 256 << 20 }; /* beyond an array's end, by a large constant index */

/* One bit for each byte that the file puts into memory. */
static void open_data(cfg_work *w)
{
    const image_segment *s;
    size_t count = image_segments(w->image, &s), base = 0;
    uint64_t covered = 0;
    w->least = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        uint64_t end = s[i].addr + s[i].mem_size;
        if (s[i].addr < w->least) w->least = s[i].addr;
        if (end > w->most) w->most = end;
        uint64_t have = image_bytes(w->image, s[i].addr, &bytes);
        if (s[i].addr < covered || have == 0) continue;
        cfg_data d = {s[i].addr, s[i].addr + have, base};
        base += have;
        covered = d.end;
        cfg_keep(w, &w->data, d);
    }
    w->least = w->least > AROUND ? w->least - AROUND : 0;
    w->most = w->most < UINT64_MAX - AROUND ? w->most + AROUND : UINT64_MAX;
    w->named = calloc(base / 64 + 1, 8);
    w->hinted = w->fixed ? calloc(base / 64 + 1, 8) : NULL;
    if (!w->named || (w->fixed && !w->hinted)) w->failed = true;
}

static const cfg_data *data_at(const cfg_work *w, uint64_t addr)
{
    for (size_t i = 0; i < w->data.count; i++)
        if (addr >= w->data.items[i].addr && addr < w->data.items[i].end) return &w->data.items[i];
    return NULL;
}

void cfg_name_data(cfg_work *w, uint64_t addr, bool surely)
{
    const cfg_data *d = data_at(w, addr);
    uint64_t *bits = surely ? w->named : w->hinted;
    if (!d || !bits) return;
    size_t bit = d->base + (addr - d->addr);
    bits[bit / 64] |= 1ull << bit % 64;
}

void cfg_name_operand(cfg_work *w, uint64_t addr)
{
    const uint8_t *m = cfg_mark(w, addr);
    if (m) w->operands[(m - w->marks) / 64] |= 1ull << (m - w->marks) % 64;
}

void cfg_add_site(cfg_work *w, uint64_t site, uint64_t number)
{
    const uint8_t *m = cfg_mark(w, site);
    if (m) w->sites[(m - w->marks) / 64] |= 1ull << (m - w->marks) % 64;
    if (!inl_map_put(&w->by_site, site, number)) w->failed = true;
}

cfg_indirect *cfg_indirect_at(const cfg_work *w, uint64_t site)
{
    const uint8_t *m = cfg_mark(w, site);
    uint64_t number;
    if (!m || !(w->sites[(m - w->marks) / 64] >> (m - w->marks) % 64 & 1)) return NULL;
    return inl_map_get(&w->by_site, site, &number) ? &w->indirects.items[number] : NULL;
}

bool cfg_holds_operand(const cfg_work *w, const cfg_region *r, uint64_t addr, unsigned size)
{
    size_t bit = r->base + (addr - r->addr);
    for (size_t end = bit + size; bit < end; bit++)
        if (w->operands[bit / 64] >> bit % 64 & 1) return true;
    return false;
}

bool cfg_has_name(const cfg_work *w, uint64_t addr, uint64_t until, bool surely)
{
    if (until <= addr) return false;
    const cfg_data *d = data_at(w, addr);
    if (!d || until >= d->end) return true;
    size_t bit = d->base + (addr - d->addr) + 1, last = d->base + (until - d->addr);
    while (bit <= last) {
        uint64_t both = w->named[bit / 64] | (!surely && w->hinted ? w->hinted[bit / 64] : 0);
        uint64_t word = both >> bit % 64;
        if (word) return bit + (size_t)__builtin_ctzll(word) <= last;
        bit = (bit / 64 + 1) * 64;
    }
    return false;
}

bool cfg_text_open(cfg_work *w, inl_error *e)
{
    collect(w);
    take_apart(w);
    open_data(w);
    if (w->regions.count == 0) {
        inl_fail(e, INL_ERR_FORMAT, "%s: no executable code in it", image_path(w->image));
        return false;
    }
    w->marks = calloc(w->mark_count, 1);
    w->operands = calloc(w->mark_count / 64 + 1, 8);
    w->sites = calloc(w->mark_count / 64 + 1, 8);
    if (!w->marks || !w->operands || !w->sites || w->failed) {
        inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(w->image));
        return false;
    }
    return true;
}

const cfg_region *cfg_region_at(const cfg_work *w, uint64_t addr)
{
    if (addr < w->low || addr >= w->high) return NULL;
    size_t behind = INL_FIRST(w->regions.count, k, w->regions.items[k].addr > addr);
    const cfg_region *r = &w->regions.items[behind - 1];
    return addr < r->end ? r : NULL;
}

uint8_t *cfg_mark(const cfg_work *w, uint64_t addr)
{
    const cfg_region *r = cfg_region_at(w, addr);
    return r ? &w->marks[r->base + (addr - r->addr)] : NULL;
}

uint64_t cfg_skip_padding(const cfg_work *w, uint64_t addr, uint64_t end)
{
    const cfg_region *r = cfg_region_at(w, addr);
    if (!r) return end;
    uint64_t stop = end < r->end ? end : r->end;
    while (addr < stop) {
        size_t n = w->machine->padding(w->isa, r->bytes + (addr - r->addr), stop - addr);
        if (n == 0 || n > stop - addr) return addr;
        addr += n;
    }
    return end;
}

bool cfg_is_padding(const cfg_work *w, uint64_t addr, uint64_t end)
{
    return addr >= end || cfg_skip_padding(w, addr, end) == end;
}

bool cfg_decode(const cfg_work *w, uint64_t addr, uint64_t end, isa_insn *out)
{
    const cfg_region *r = cfg_region_at(w, addr);
    if (!r) return false;
    if (end > r->end) end = r->end;
    if (addr >= end) return false;
    /* Where more can be read decoding is quicker; what is there is read for its length alone. */
    isa_result result = w->isa->decode(r->bytes + (addr - r->addr), r->end - addr, addr, out);
    return (result == ISA_OK || result == ISA_UNKNOWN) && out->len <= end - addr;
}
