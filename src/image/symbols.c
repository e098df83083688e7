/* Symbols of all tables in one list, and the index by name.
 *
 * The list is what procs.c makes procedures of. Names are not copied: they stand in the mapped file
 * or the mapped debug file, which stay until the image is closed.
 */
#include "base/hash.h"
#include "image/file.h"

#include <stdlib.h>

static uint64_t section_end(const image_view *v, uint32_t index, uint64_t flags)
{
    Elf64_Shdr s;
    if (!v || !image_view_section(v, index, &s) || (s.sh_flags & flags) != flags) return 0;
    return s.sh_addr + s.sh_size < s.sh_addr ? 0 : s.sh_addr + s.sh_size;
}

/* What a symbol stands for; false when it is nothing with an address in this image. */
static bool classify(const image *im, const image_symtab *t, const Elf64_Sym *s, image_sym *out)
{
    unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
    if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_COMMON) return false;
    *out = (image_sym){.addr = s->st_value, .size = s->st_size, .source = t->source};
    out->global = bind != STB_LOCAL; /* global, weak, unique */
    switch (type) {
    case STT_FUNC:
    case STT_GNU_IFUNC: out->kind = IMAGE_SYMBOL_FUNC; return image_executable(im, s->st_value, NULL);
    case STT_OBJECT: out->kind = IMAGE_SYMBOL_DATA; return true;
    case STT_NOTYPE:
        /* Hand-written assembly often leaves the type out. A label at the very end of a section
         * (etext) is no code. Local ones are jump targets and mapping symbols. */
        out->kind = IMAGE_SYMBOL_DATA;
        if (out->global && s->st_value < section_end(t->view, s->st_shndx, SHF_EXECINSTR) &&
            image_executable(im, s->st_value, NULL))
            out->kind = IMAGE_SYMBOL_LABEL;
        return out->global;
    default: return false; /* thread-local: no address; sections and files: no names */
    }
}

static void add_table(image *im, const image_symtab *t)
{
    if (!inl_vec_reserve(&im->symbols, im->symbols.count + t->count)) return;
    for (size_t i = 0; i < t->count; i++) {
        Elf64_Sym s;
        image_sym sym;
        memcpy(&s, t->symbols + i * sizeof s, sizeof s);
        if (!classify(im, t, &s, &sym)) continue;
        const char *name = image_string(&t->strings, s.st_name);
        if (!name || !*name) continue;
        sym.name = name;
        if (t->versions) {
            uint16_t version;
            memcpy(&version, t->versions + i * 2, 2);
            sym.hidden = version & 0x8000;
        }
        inl_vec_push(&im->symbols, sym); /* cannot fail: reserved above */
    }
}

bool image_find_symtab(const image_view *v, image_symtab *out)
{
    Elf64_Shdr s, text;
    const uint8_t *strings;
    *out = (image_symtab){.view = v, .source = IMAGE_PROC_SYMTAB};
    if (!image_view_find(v, SHT_SYMTAB, NULL, &s) || !image_view_section(v, s.sh_link, &text) ||
        !image_view_section_bytes(v, &s, &out->symbols) || !image_view_section_bytes(v, &text, &strings))
        return false;
    out->count = s.sh_size / sizeof(Elf64_Sym);
    out->strings = (image_strings){(const char *)strings, text.sh_size};
    return out->count > 1;
}

void image_load_symbols(image *im)
{
    image_symtab t;
    if (im->has_symbols) return;
    im->has_symbols = true;
    const image_view *debug;
    im->has_all_symbols = image_find_symtab(&im->view, &t) ||
                          ((debug = image_debug_view(im)) && image_find_symtab(debug, &t));
    if (im->has_all_symbols) add_table(im, &t);
    else image_add_go(im);
    if (image_find_dynsym(im, &t)) {
        if (im->view.section_count) t.view = &im->view;
        add_table(im, &t);
    }
    image_add_plt(im);
}

const char *image_symtab_name(const image_symtab *t, uint32_t number)
{
    Elf64_Sym s;
    if (number >= t->count) return NULL;
    memcpy(&s, t->symbols + number * sizeof s, sizeof s);
    return image_string(&t->strings, s.st_name);
}

/* The index holds, for each name, the best symbol that is code and the best that is the file's own;
 * often they are the same. Two slots may carry one name; a lookup walks on until it fits. */
static uint64_t hash_name(const char *name)
{
    uint64_t h = inl_hash_text(INL_HASH_BEGIN, name);
    return h ^ h >> 29;
}

static bool is_code(const image_sym *s) { return s->kind != IMAGE_SYMBOL_DATA; }
static bool is_own(const image_sym *s) { return s->kind != IMAGE_SYMBOL_PLT && s->kind != IMAGE_SYMBOL_MADE; }

static unsigned merit(const image_sym *s)
{
    return (s->global ? 8 : 0) + (s->hidden ? 0 : 4) + (s->kind == IMAGE_SYMBOL_FUNC ? 2 : 0) + (is_own(s) ? 1 : 0);
}

static void index_add(image *im, uint32_t number)
{
    const image_sym *s = &im->symbols.items[number];
    size_t mask = im->index_size - 1;
    for (size_t i = hash_name(s->name) & mask;; i = (i + 1) & mask) {
        if (im->index[i] == 0) {
            im->index[i] = number + 1;
            return;
        }
        const image_sym *other = &im->symbols.items[im->index[i] - 1];
        if (strcmp(other->name, s->name) != 0 || is_code(other) != is_code(s)) continue;
        if (merit(s) > merit(other)) im->index[i] = number + 1;
        return;
    }
}

/* The names were checked when they were taken, so hashing them reads inside the file. */
void image_index_symbols(image *im)
{
    size_t size = 16;
    if (im->index || im->symbols.count >= UINT32_MAX / 4) return;
    while (size < im->symbols.count * 2) size *= 2;
    im->index = calloc(size, sizeof *im->index);
    if (!im->index) return;
    im->index_size = size;
    for (size_t i = 0; i < im->symbols.count; i++) index_add(im, (uint32_t)i);
}

static const image_sym *look_up(image *im, const char *name, bool code)
{
    const image_proc *procs;
    image_procs(im, &procs); /* completes the list and indexes it */
    if (!im->index) return NULL;
    size_t mask = im->index_size - 1;
    for (size_t i = hash_name(name) & mask; im->index[i]; i = (i + 1) & mask) {
        const image_sym *s = &im->symbols.items[im->index[i] - 1];
        if (is_code(s) == code && strcmp(s->name, name) == 0) return s;
    }
    return NULL;
}

const image_proc *image_proc_named(image *im, const char *name)
{
    const image_sym *s = look_up(im, name, true);
    const image_proc *p = s ? image_proc_at(im, s->addr) : NULL;
    return p && p->addr == s->addr ? p : NULL; /* a label inside another is no procedure */
}

bool image_symbol(image *im, const char *name, uint64_t *addr, uint64_t *size)
{
    const image_sym *code = look_up(im, name, true), *data = look_up(im, name, false);
    if (code && !is_own(code)) code = NULL;
    const image_sym *best = !code ? data : !data ? code : merit(data) > merit(code) ? data : code;
    if (!best) return false;
    if (addr) *addr = best->addr;
    if (size) *size = best->size;
    return true;
}

static int by_address(const void *a, const void *b)
{
    const image_named *x = a, *y = b;
    if (x->addr != y->addr) return x->addr < y->addr ? -1 : 1;
    return strcmp(x->name, y->name);
}

size_t image_symbol_list(image *im, image_named **out)
{
    image_load_symbols(im);
    size_t n = 0, kept = 0;
    image_named *list = *out = calloc(im->symbols.count + 1, sizeof *list);
    for (size_t i = 0; list && i < im->symbols.count; i++) {
        const image_sym *s = &im->symbols.items[i];
        if (is_own(s)) list[n++] = (image_named){s->name, s->addr, s->size, is_code(s), s->global};
    }
    if (n) qsort(list, n, sizeof *list, by_address);
    for (size_t i = 0; i < n; i++)
        if (!kept || by_address(&list[kept - 1], &list[i])) list[kept++] = list[i];
    return kept;
}

bool image_has_dynamic(image *im, const char *name, bool defined)
{
    image_symtab t;
    if (!image_find_dynsym(im, &t)) return false;
    for (size_t i = 1; i < t.count; i++) {
        Elf64_Sym s;
        memcpy(&s, t.symbols + i * sizeof s, sizeof s);
        const char *its = (s.st_shndx != SHN_UNDEF) == defined ? image_string(&t.strings, s.st_name) : NULL;
        if (its && !strcmp(its, name)) return true;
    }
    return false;
}

bool image_variable_at(image *im, uint64_t addr, uint64_t *start, uint64_t *size)
{
    image_load_symbols(im);
    for (size_t i = 0; i < im->symbols.count; i++) {
        const image_sym *s = &im->symbols.items[i];
        if (s->kind != IMAGE_SYMBOL_DATA || addr < s->addr || addr - s->addr >= s->size) continue;
        *start = s->addr;
        *size = s->size;
        return true;
    }
    return false;
}
