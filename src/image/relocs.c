/* Relocations, the function symbols they and others name, and what they put into the arrays that are
 * run at start and end.
 *
 * A dynamic image's are found through PT_DYNAMIC. A static program that is not position independent
 * has none but IRELATIVE, between symbols that only its own start code knows: there the section tells.
 */
#include "image/file.h"
#include "base/search.h"

#include <stdlib.h>

/* The address of a symbol that this image defines itself; else 0. */
static uint64_t symbol_value(const image_symtab *t, uint32_t number)
{
    Elf64_Sym s;
    if (number == 0 || number >= t->count) return 0;
    memcpy(&s, t->symbols + (size_t)number * sizeof s, sizeof s);
    return s.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s.st_info) == STT_TLS ? 0 : s.st_value;
}

static uint64_t value_of(const image_symtab *t, const image_reloc *r)
{
    if (r->kind == IMAGE_RELOC_RELATIVE || r->kind == IMAGE_RELOC_RESOLVER) return r->addend;
    if (r->kind == IMAGE_RELOC_OTHER) return 0;
    uint64_t value = symbol_value(t, r->symbol);
    return value == 0 ? 0 : r->kind == IMAGE_RELOC_ABSOLUTE ? value + r->addend : value;
}

static void add_rela(image *im, const image_processor *m, const image_symtab *t, const uint8_t *bytes, size_t size)
{
    if (!inl_vec_reserve(&im->relocs, im->relocs.count + size / sizeof(Elf64_Rela))) return;
    for (size_t at = 0; size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
        Elf64_Rela e;
        memcpy(&e, bytes + at, sizeof e);
        image_reloc r = {.offset = e.r_offset,
                         .addend = (uint64_t)e.r_addend,
                         .type = ELF64_R_TYPE(e.r_info),
                         .symbol = ELF64_R_SYM(e.r_info)};
        r.kind = image_kind_of(m, r.type);
        r.value = value_of(t, &r);
        inl_vec_push(&im->relocs, r); /* cannot fail: reserved above */
    }
}

static void add_word(image *im, const image_processor *m, uint64_t addr)
{
    image_reloc r = {.offset = addr, .type = m->relative, .kind = IMAGE_RELOC_RELATIVE};
    if (!image_read(im, addr, &r.addend, 8)) return;
    r.value = r.addend;
    inl_vec_push(&im->relocs, r);
}

/* RELR: an even word is the address of a relocation, an odd one a bit map of the 63 words behind. */
static void add_relr(image *im, const image_processor *m, const uint8_t *bytes, size_t size)
{
    uint64_t next = 0;
    for (size_t at = 0; size - at >= 8; at += 8) {
        uint64_t entry;
        memcpy(&entry, bytes + at, 8);
        if (!(entry & 1)) {
            add_word(im, m, entry);
            next = entry + 8;
            continue;
        }
        for (unsigned i = 0; (entry >>= 1) != 0; i++)
            if (entry & 1) add_word(im, m, next + i * 8);
        next += 63 * 8;
    }
}

static size_t table_bytes(const image *im, uint64_t addr, uint64_t size, const uint8_t **out)
{
    size_t have = addr ? image_bytes(im, addr, out) : 0;
    return have > size ? (size_t)size : have;
}

static int by_offset(const void *a, const void *b)
{
    const image_reloc *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->type < y->type ? -1 : x->type > y->type;
}

static void load_relocs(image *im)
{
    const image_dynamic *d = image_dynamic_info(im);
    const image_processor *m = image_processor_of(im);
    const uint8_t *bytes;
    image_symtab t;
    size_t size;
    if (!m) return;
    if (!image_find_dynsym(im, &t)) t.count = 0;
    if ((size = table_bytes(im, d->rela, d->rela_size, &bytes))) add_rela(im, m, &t, bytes, size);
    bool apart = d->jmprel < d->rela || d->jmprel - d->rela >= d->rela_size;
    if (apart && (size = table_bytes(im, d->jmprel, d->jmprel_size, &bytes))) add_rela(im, m, &t, bytes, size);
    if ((size = table_bytes(im, d->relr, d->relr_size, &bytes))) add_relr(im, m, bytes, size);
    for (uint32_t i = 1; !d->present && i < im->view.section_count; i++) {
        Elf64_Shdr s;
        image_view_section(&im->view, i, &s);
        if (s.sh_type == SHT_RELA && s.sh_flags & SHF_ALLOC && image_view_section_bytes(&im->view, &s, &bytes))
            add_rela(im, m, &t, bytes, s.sh_size);
    }
    if (im->relocs.count) qsort(im->relocs.items, im->relocs.count, sizeof *im->relocs.items, by_offset);
}

size_t image_relocs(image *im, const image_reloc **out)
{
    if (!im->has_relocs) {
        im->has_relocs = true;
        load_relocs(im);
    }
    *out = im->relocs.items;
    return im->relocs.count;
}

bool image_copied(image *program, image *library, uint64_t addr, uint64_t *copy)
{
    const image_processor *m = image_processor_of(program);
    const image_reloc *r;
    image_symtab t;
    size_t n = image_relocs(program, &r);
    if (!m || !image_find_dynsym(program, &t)) return false;
    for (; n; n--, r++) {
        uint64_t at, size;
        const char *name = r->type == m->copied ? image_symtab_name(&t, r->symbol) : NULL;
        bool exported = name && image_has_dynamic(library, name, true) && image_symbol(library, name, &at, &size);
        if (!exported || addr - at >= size) continue;
        *copy = r->offset + (addr - at);
        return true;
    }
    return false;
}

static void add_code_symbols(image *im, const image_symtab *t)
{
    for (size_t i = 0; i < t->count; i++) {
        Elf64_Sym s;
        memcpy(&s, t->symbols + i * sizeof s, sizeof s);
        unsigned type = ELF64_ST_TYPE(s.st_info);
        const char *name = image_string(&t->strings, s.st_name);
        if (s.st_shndx == SHN_UNDEF || !image_executable(im, s.st_value, NULL) || !name) continue;
        bool label = type == STT_NOTYPE && ELF64_ST_BIND(s.st_info) != STB_LOCAL;
        if (type != STT_FUNC && type != STT_GNU_IFUNC && !label) continue;
        image_code_symbol c = {s.st_value,           s.st_size, name, t->source == IMAGE_PROC_DYNSYM, type == STT_FUNC,
                               type == STT_GNU_IFUNC};
        if (!inl_vec_push(&im->code_symbols, c)) return;
    }
}

static int by_address(const void *a, const void *b)
{
    const image_code_symbol *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return (int)y->dynamic - (int)x->dynamic;
}

size_t image_code_symbols(image *im, const image_code_symbol **out)
{
    if (!im->has_code_symbols) {
        im->has_code_symbols = true;
        image_symtab t;
        const image_view *debug;
        if (image_find_symtab(&im->view, &t) || ((debug = image_debug_view(im)) && image_find_symtab(debug, &t)))
            add_code_symbols(im, &t);
        if (image_find_dynsym(im, &t)) add_code_symbols(im, &t);
        if (im->code_symbols.count)
            qsort(im->code_symbols.items, im->code_symbols.count, sizeof *im->code_symbols.items, by_address);
    }
    *out = im->code_symbols.items;
    return im->code_symbols.count;
}

const image_reloc *image_reloc_at(image *im, uint64_t addr)
{
    const image_reloc *r;
    size_t count = image_relocs(im, &r), first = INL_FIRST(count, k, r[k].offset >= addr);
    return first < count && r[first].offset == addr ? &r[first] : NULL;
}

uint64_t image_word_at(image *im, uint64_t addr)
{
    const image_reloc *r = image_reloc_at(im, addr);
    uint64_t word = 0;
    if (r) return r->value;
    image_read(im, addr, &word, 8);
    return word;
}

size_t image_startup(image *im, uint64_t *out, size_t room)
{
    const image_dynamic *d = image_dynamic_info(im);
    uint64_t array[3] = {d->preinit_array, d->init_array, d->fini_array};
    uint64_t size[3] = {d->preinit_array_size, d->init_array_size, d->fini_array_size};
    static const uint32_t types[] = {SHT_PREINIT_ARRAY, SHT_INIT_ARRAY, SHT_FINI_ARRAY};
    size_t count = 0;
    const uint64_t single[] = {d->init, d->fini};
    for (int i = 0; i < 3 && !d->present; i++) {
        Elf64_Shdr s;
        if (!image_view_find(&im->view, types[i], NULL, &s)) continue;
        array[i] = s.sh_addr;
        size[i] = s.sh_size;
    }
    for (int i = 0; i < 2; i++)
        if (single[i] && count++ < room) out[count - 1] = single[i];
    for (int i = 0; i < 3; i++) {
        const uint8_t *bytes;
        uint64_t have = table_bytes(im, array[i], size[i], &bytes);
        for (uint64_t at = 0; have - at >= 8; at += 8) {
            uint64_t word = image_word_at(im, array[i] + at);
            if (word && image_executable(im, word, NULL) && count++ < room) out[count - 1] = word;
        }
    }
    return count;
}
