/* Names for the entries of procedure linkage tables.
 *
 * Each entry jumps through a slot of the global offset table, and a relocation says whose address
 * that slot receives. So the tables are read backwards: relocations give slots with names, and an
 * entry that loads a named slot takes its name. This needs no knowledge of how a linker lays its
 * tables out: classic .plt, .plt.sec (whose twin .plt entries hold no load and stay nameless),
 * .plt.got, and what other linkers make. Without section headers, the tables are found by their
 * unwind ranges.
 */
#include "image/file.h"
#include "base/search.h"

#include <stdlib.h>

typedef struct slot {
    uint64_t addr;
    const char *name;
} slot;

typedef INL_VEC(slot) slot_list;

static int by_slot(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_symbol(const void *a, const void *b)
{
    const image_sym *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    if (x->global != y->global) return x->global ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* A slot filled by an IFUNC resolver has no symbol; the resolver's own symbol names it. */
static const char *resolver_name(const image *im, uint64_t addr)
{
    size_t first = INL_FIRST(im->symbols.count, k, im->symbols.items[k].addr >= addr);
    bool found = first < im->symbols.count && im->symbols.items[first].addr == addr;
    return found && im->symbols.items[first].kind == IMAGE_SYMBOL_FUNC ? im->symbols.items[first].name : NULL;
}

static void add_slots(const image *im, const image_processor *m, const image_symtab *t, const uint8_t *relocations,
                      size_t size, slot_list *out)
{
    for (size_t at = 0; size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        memcpy(&r, relocations + at, sizeof r);
        uint32_t type = ELF64_R_TYPE(r.r_info), number = ELF64_R_SYM(r.r_info);
        const char *name = NULL;
        image_reloc_kind kind = image_kind_of(m, type);
        if (kind == IMAGE_RELOC_RESOLVER) {
            name = resolver_name(im, (uint64_t)r.r_addend);
        } else if (kind == IMAGE_RELOC_SLOT || kind == IMAGE_RELOC_SYMBOL) {
            name = image_symtab_name(t, number);
        }
        if (name && *name && !inl_vec_push(out, (slot){r.r_offset, name})) return;
    }
}

static void collect_slots(image *im, const image_processor *m, slot_list *out)
{
    const image_dynamic *d = image_dynamic_info(im);
    const uint8_t *bytes;
    image_symtab t;
    if (!image_find_dynsym(im, &t)) t.count = 0;
    if (d->present) {
        uint64_t place[] = {d->rela, d->jmprel}, size[] = {d->rela_size, d->jmprel_size};
        for (int i = 0; i < 2; i++) {
            size_t have = place[i] ? image_bytes(im, place[i], &bytes) : 0;
            if (have > size[i]) have = size[i];
            if (have) add_slots(im, m, &t, bytes, have, out);
        }
    }
    for (uint32_t i = 1; !d->present && i < im->view.section_count; i++) { /* static, not PIE */
        Elf64_Shdr s;
        image_view_section(&im->view, i, &s);
        if (s.sh_type == SHT_RELA && s.sh_flags & SHF_ALLOC && image_view_section_bytes(&im->view, &s, &bytes))
            add_slots(im, m, &t, bytes, s.sh_size, out);
    }
    if (out->count) qsort(out->items, out->count, sizeof *out->items, by_slot);
}

static const char *entry_name(const image_processor *m, const slot_list *slots, const uint8_t *p, size_t have,
                              uint64_t addr)
{
    slot wanted = {0};
    if (!m->stub(p, have, addr, &wanted.addr)) return NULL;
    slot *s = bsearch(&wanted, slots->items, slots->count, sizeof wanted, by_slot);
    return s ? s->name : NULL;
}

static void add_entry(image *im, const char *name, uint64_t addr, uint64_t size)
{
    size_t n = strlen(name);
    char *text = inl_arena_alloc(&im->arena, n + sizeof "@plt");
    if (!text) return;
    memcpy(text, name, n);
    memcpy(text + n, "@plt", sizeof "@plt");
    inl_vec_push(&im->symbols, (image_sym){.name = text,
                                           .addr = addr,
                                           .size = size,
                                           .kind = IMAGE_SYMBOL_PLT,
                                           .source = IMAGE_PROC_PLT,
                                           .global = true});
}

static void scan(image *im, const image_processor *m, const slot_list *slots, uint64_t addr, uint64_t size)
{
    const uint8_t *p;
    uint64_t end;
    size_t have = image_bytes(im, addr, &p);
    if (have > size) have = (size_t)size;
    if (have == 0 || !image_executable(im, addr, &end)) return;
    const char *name = NULL;
    size_t start = 0; /* of the entry called `name`, which ends at the next one */
    for (size_t at = 0; at < have; at += m->stub_step) {
        const char *next = entry_name(m, slots, p + at, have - at, addr + at);
        if (name && (next || at - start >= m->stub_longest)) {
            add_entry(im, name, addr + start, at - start);
            name = NULL;
        }
        if (next) name = next, start = at;
    }
    if (name) add_entry(im, name, addr + start, have - start);
}

static void scan_unwind_ranges(image *im, const image_processor *m, const slot_list *slots)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r);
    uint64_t done = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p;
        if (r[i].addr < done) continue;
        size_t have = image_bytes(im, r[i].addr, &p);
        if (have > r[i].size) have = r[i].size;
        bool first = entry_name(m, slots, p, have, r[i].addr) != NULL;
        bool second = !first && have >= 48 && /* after the 16 or 32 bytes that call the linker */
                      (entry_name(m, slots, p + 16, have - 16, r[i].addr + 16) ||
                       entry_name(m, slots, p + 32, have - 32, r[i].addr + 32));
        if (have < 8 || (!first && !second)) continue;
        scan(im, m, slots, r[i].addr, have);
        done = r[i].addr + have;
    }
}

void image_add_plt(image *im)
{
    const image_processor *m = image_processor_of(im);
    slot_list slots = {0};
    if (!m) return;
    if (im->symbols.count) qsort(im->symbols.items, im->symbols.count, sizeof(image_sym), by_symbol);
    collect_slots(im, m, &slots);
    if (slots.count && im->view.section_count) {
        for (uint32_t i = 1; i < im->view.section_count; i++) {
            Elf64_Shdr s;
            image_view_section(&im->view, i, &s);
            const char *name = image_view_section_name(&im->view, &s);
            if (s.sh_flags & SHF_EXECINSTR && (strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0))
                scan(im, m, &slots, s.sh_addr, s.sh_size);
        }
    } else if (slots.count) {
        scan_unwind_ranges(im, m, &slots);
    }
    inl_vec_free(&slots);
}
