/* The section table of the new file: the original's sections and the new ones. Loaded ones come first, in the
 * order of their addresses, then the others: tools that rebuild a file from its sections (strip, objcopy) lay
 * segments out in the table's order, and drop sections without renumbering dynamic symbols. So numbers change,
 * and what refers to them is renumbered.
 *
 * A section that was replaced keeps its name, and its header leads to the new place. What it held stays as
 * `.inlay.old` (`.inlay.eh_frame_old`), since code may refer to it, unless the program headers are there now. A
 * file without sections gets the new ones, as debuggers find nothing without.
 */
#include "elf/private.h"

typedef struct section_row {
    Elf64_Shdr h;    /* links are numbers of rows until they are put into order */
    uint32_t number; /* in the new file */
} section_row;

typedef struct section_writer {
    elf_writer *w;
    section_row *rows; /* the original's by their numbers, then new ones */
    uint32_t count, old;
    inl_bytes names;
} section_writer;

static uint32_t add_name(section_writer *s, const char *name)
{
    size_t at = s->names.size;
    inl_bytes_put(&s->names, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void read_old(section_writer *s)
{
    const image_view *v = &s->w->im->view;
    Elf64_Shdr names;
    const uint8_t *text;
    s->count = 1;
    for (uint32_t i = 0; i < v->section_count; i++) {
        Elf64_Shdr *h = &s->rows[i].h;
        image_view_section(v, i, h);
        uint64_t to = h->sh_flags & SHF_ALLOC && h->sh_size ? elf_front_moved(s->w, h->sh_addr) : h->sh_addr;
        if (to != h->sh_addr) {
            h->sh_addr = to;
            h->sh_offset = to - s->w->shift;
        }
        s->count = i + 1;
    }
    s->old = s->count;
    if (v->section_names && image_view_section(v, v->section_names, &names) &&
        image_view_section_bytes(v, &names, &text))
        inl_bytes_put(&s->names, text, names.sh_size);
    inl_bytes_put(&s->names, "", 1);
}

/* What a replaced section held stays in the file under another name. */
static void keep_old(section_writer *s, uint32_t row)
{
    Elf64_Shdr h = s->rows[row].h;
    uint64_t front = s->w->header.e_phoff + s->w->phdr_count * sizeof(Elf64_Phdr);
    if (!(h.sh_flags & SHF_ALLOC) || h.sh_size == 0) return;
    if (s->w->front.fits && h.sh_offset < front) return;
    h.sh_name = add_name(s, ".inlay.old");
    h.sh_type = SHT_PROGBITS;
    h.sh_link = h.sh_info = 0;
    h.sh_entsize = 0;
    s->rows[s->count++].h = h;
}

/* The row of the new or replaced header. */
static uint32_t put_header(section_writer *s, uint32_t replaces, const char *name, Elf64_Shdr h)
{
    uint32_t at = replaces ? replaces : s->count++;
    if (replaces) {
        keep_old(s, at);
        h.sh_name = s->rows[at].h.sh_name;
        if (!h.sh_link) h.sh_link = s->rows[at].h.sh_link;
        if (!h.sh_info) h.sh_info = s->rows[at].h.sh_info;
    } else {
        h.sh_name = add_name(s, name);
    }
    s->rows[at].h = h;
    return at;
}

/* What is left of the room behind the program headers, for tools that take what no section holds for theirs. */
static void put_front(section_writer *s)
{
    const elf_writer *w = s->w;
    uint64_t from = w->header.e_phoff + w->phdr_count * sizeof(Elf64_Phdr), to = UINT64_MAX;
    if (!w->front.fits) return;
    for (uint32_t i = 1; i < s->count; i++) {
        const Elf64_Shdr *h = &s->rows[i].h;
        if (h->sh_flags & SHF_ALLOC && h->sh_size && h->sh_offset < to) to = h->sh_offset;
    }
    if (to == UINT64_MAX || to <= from || to - from > INL_PAGE) return;
    put_header(s, 0, ".inlay.front",
               (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                            .sh_flags = SHF_ALLOC,
                            .sh_addr = w->front.low + from,
                            .sh_offset = from,
                            .sh_size = to - from,
                            .sh_addralign = 1});
}

/* The row of the new code, 0: there is none. */
static uint32_t put_areas(section_writer *s)
{
    const elf_writer *w = s->w;
    uint32_t text = 0;
    for (size_t i = 0; i < w->areas.count; i++) {
        const elf_area *a = &w->areas.items[i];
        uint32_t at = put_header(s, a->replaces, a->name,
                                 (Elf64_Shdr){.sh_type = a->type,
                                              .sh_flags = a->flags,
                                              .sh_addr = a->addr,
                                              .sh_offset = a->addr - w->shift,
                                              .sh_size = a->size,
                                              .sh_addralign = a->align,
                                              .sh_entsize = a->entry_size});
        if (strcmp(a->name, ".inlay.text") == 0) text = at;
    }
    return text;
}

/* The original's number of a section by type and, when it is not NULL, name; 0: none. */
static uint32_t old_section(const elf_writer *w, uint32_t type, const char *name)
{
    const image_view *v = &w->im->view;
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr h;
        image_view_section(v, i, &h);
        if ((type == SHT_NULL || h.sh_type == type) && (!name || strcmp(image_view_section_name(v, &h), name) == 0))
            return i;
    }
    return 0;
}

/* Rows for tables that are written when all have their numbers. */
static void reserve_tables(section_writer *s, uint32_t *symtab, uint32_t *strtab, uint32_t *names)
{
    const elf_writer *w = s->w;
    uint32_t old_names = w->im->view.section_names;
    *symtab = old_section(w, SHT_SYMTAB, NULL);
    *strtab = *symtab ? s->rows[*symtab].h.sh_link : 0;
    /* Not if it holds the sections' names or dynamic strings too: then the symbols get one of their own. */
    if (*strtab >= s->old || *strtab == old_names || (*strtab && s->rows[*strtab].h.sh_flags & SHF_ALLOC)) *strtab = 0;
    if (old_names >= s->old || (old_names && s->rows[old_names].h.sh_flags & SHF_ALLOC)) old_names = 0;
    Elf64_Shdr strings = {.sh_type = SHT_STRTAB, .sh_addralign = 1};
    *strtab = put_header(s, *strtab, ".strtab", strings);
    *symtab = put_header(
        s, *symtab, ".symtab",
        (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = *strtab, .sh_addralign = 8, .sh_entsize = sizeof(Elf64_Sym)});
    *names = put_header(s, old_names, ".shstrtab", strings);
}

/* --- numbers --- */

static int row_order(const void *a, const void *b)
{
    const section_row *x = *(section_row *const *)a, *y = *(section_row *const *)b;
    bool loaded = x->h.sh_flags & SHF_ALLOC, other = y->h.sh_flags & SHF_ALLOC;
    if (loaded != other) return loaded ? -1 : 1;
    if (loaded && x->h.sh_addr != y->h.sh_addr) return x->h.sh_addr < y->h.sh_addr ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Sections that hold sections' numbers, or are so many that numbers are held elsewhere, keep theirs. */
static bool numbers_stay(const section_writer *s)
{
    for (uint32_t i = 1; i < s->count; i++)
        if (s->rows[i].h.sh_type == SHT_SYMTAB_SHNDX || s->rows[i].h.sh_type == SHT_GROUP) return true;
    return s->count >= SHN_LORESERVE;
}

static bool number(section_writer *s)
{
    section_row **order = calloc(s->count, sizeof *order);
    if (!order) return false;
    for (uint32_t i = 0; i < s->count; i++) order[i] = &s->rows[i];
    if (!numbers_stay(s)) qsort(order + 1, s->count - 1, sizeof(section_row *), row_order);
    for (uint32_t i = 0; i < s->count; i++) order[i]->number = i;
    free(order);
    for (uint32_t i = 1; i < s->count; i++) {
        Elf64_Shdr *h = &s->rows[i].h;
        if (h->sh_link < s->count) h->sh_link = s->rows[h->sh_link].number;
        if ((h->sh_flags & SHF_INFO_LINK || h->sh_type == SHT_REL || h->sh_type == SHT_RELA) && h->sh_info < s->count)
            h->sh_info = s->rows[h->sh_info].number;
    }
    return true;
}

static inl_status put_symbols(section_writer *s, uint32_t text, uint32_t symtab, uint32_t strtab, inl_error *e)
{
    elf_writer *w = s->w;
    elf_symtab t = {.text_section = text ? s->rows[text].number : SHN_ABS};
    uint32_t *numbers = inl_arena_alloc(&w->arena, s->old * sizeof *numbers);
    if (!numbers) return elf_no_memory(w, e);
    for (uint32_t i = 0; i < s->old; i++) numbers[i] = s->rows[i].number;
    t.numbers = numbers;
    t.number_count = s->old < SHN_LORESERVE ? s->old : SHN_LORESERVE;
    inl_status st = elf_symbols(w, &t, e);
    if (!st) st = elf_dynamic_symbols(w, &t, e);
    if (st) return st;
    s->rows[symtab].h.sh_offset = t.symbols;
    s->rows[symtab].h.sh_size = t.symbols_size;
    s->rows[symtab].h.sh_info = t.locals;
    s->rows[strtab].h.sh_offset = t.strings;
    s->rows[strtab].h.sh_size = t.strings_size;
    return INL_OK;
}

/* The original's debug information with that of moved code behind it. */
static void put_lines(section_writer *s)
{
    inl_bytes *b = &s->w->tail;
    elf_debug d;
    bool any = elf_debug_make(s->w, &d);
    for (unsigned k = 0; any && k < ELF_DEBUG_TABLES; k++) {
        if (!d.section[k]) continue;
        inl_bytes_align(b, 16);
        Elf64_Shdr *h = &s->rows[d.section[k]].h;
        h->sh_offset = inl_bytes_here(b);
        h->sh_size = d.old_size[k] + d.added[k].size;
        inl_bytes_put(b, d.old[k], d.old_size[k]);
        inl_bytes_put(b, d.added[k].data, d.added[k].size);
    }
    elf_debug_free(&d);
}

/* Where something is appended the table ends where its copy begins, at the same place in a page: some programs look for
 * it behind the table. */
static void align_table(section_writer *s)
{
    uint64_t from, size = s->count * sizeof(Elf64_Shdr);
    inl_bytes *b = &s->w->tail;
    inl_bytes_align(b, 8);
    if (elf_appended(s->w, &from) && from % 8 == 0)
        inl_bytes_reserve(b, (from - size - inl_bytes_here(b)) & (elf_isa_here.page - 1));
}

static bool put_table(section_writer *s, uint32_t names)
{
    elf_writer *w = s->w;
    uint32_t names_at = s->rows[names].number;
    s->rows[names].h.sh_offset = inl_bytes_here(&w->tail);
    s->rows[names].h.sh_size = s->names.size;
    inl_bytes_put(&w->tail, s->names.data, s->names.size);
    align_table(s);
    w->header.e_shoff = inl_bytes_here(&w->tail);
    w->header.e_shentsize = sizeof(Elf64_Shdr);
    bool large = s->count >= SHN_LORESERVE, far_names = names_at >= SHN_LORESERVE;
    s->rows[0].h = (Elf64_Shdr){.sh_size = large ? s->count : 0, .sh_link = far_names ? names_at : 0};
    w->header.e_shnum = large ? 0 : (uint16_t)s->count;
    w->header.e_shstrndx = far_names ? SHN_XINDEX : (uint16_t)names_at;
    size_t table = inl_bytes_reserve(&w->tail, s->count * sizeof(Elf64_Shdr));
    if (w->tail.failed) return false;
    for (uint32_t i = 0; i < s->count; i++)
        inl_bytes_set(&w->tail, table + s->rows[i].number * sizeof(Elf64_Shdr), &s->rows[i].h, sizeof(Elf64_Shdr));
    return true;
}

inl_status elf_sections(elf_writer *w, inl_error *e)
{
    section_writer s = {.w = w};
    uint32_t symtab, strtab, names;
    s.rows = calloc(w->im->view.section_count + 2 * w->areas.count + 8, sizeof *s.rows);
    if (!s.rows) return elf_no_memory(w, e);
    read_old(&s);
    uint32_t frames = w->hdr_size ? old_section(w, SHT_NULL, ".eh_frame") : 0;
    if (frames) s.rows[frames].h.sh_name = add_name(&s, ".inlay.eh_frame_old");
    uint32_t text = put_areas(&s);
    put_front(&s);
    reserve_tables(&s, &symtab, &strtab, &names);
    inl_status st = number(&s) ? put_symbols(&s, text, symtab, strtab, e) : elf_no_memory(w, e);
    if (!st) put_lines(&s);
    if (!st && (!put_table(&s, names) || s.names.failed || w->tail.failed)) st = elf_no_memory(w, e);
    inl_bytes_free(&s.names);
    free(s.rows);
    return st;
}
