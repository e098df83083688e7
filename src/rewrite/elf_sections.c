/* The section table of the new file: the original's sections, which keep their numbers and places, and the
 * new ones behind them. A section that was replaced keeps its number and name, and its header leads to the
 * new place: what refers to it by number finds the new one. The old .eh_frame alone gets another name and
 * stays, since code may refer to it. A file without sections gets the new ones, as debuggers find nothing
 * without.
 */
#include "rewrite/elf.h"

typedef struct section_writer {
    rewrite_writer *w;
    Elf64_Shdr *headers;
    uint32_t count;
    rewrite_bytes names;
} section_writer;

static uint32_t add_name(section_writer *s, const char *name) {
    size_t at = s->names.size;
    rewrite_put(&s->names, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void read_old(section_writer *s) {
    const image_view *v = &s->w->im->view;
    Elf64_Shdr names;
    const uint8_t *text;
    s->count = 1;
    for (uint32_t i = 0; i < v->section_count; i++) {
        image_view_section(v, i, &s->headers[i]);
        s->count = i + 1;
    }
    if (v->section_names && image_view_section(v, v->section_names, &names) &&
        image_view_section_bytes(v, &names, &text))
        rewrite_put(&s->names, text, names.sh_size);
    rewrite_put(&s->names, "", 1);
}

/* The number of the new or replaced header. */
static uint32_t put_header(section_writer *s, uint32_t replaces, const char *name, Elf64_Shdr h) {
    uint32_t at = replaces ? replaces : s->count++;
    if (replaces) {
        h.sh_name = s->headers[at].sh_name;
        if (!h.sh_link) h.sh_link = s->headers[at].sh_link;
        if (!h.sh_info) h.sh_info = s->headers[at].sh_info;
    } else {
        h.sh_name = add_name(s, name);
    }
    s->headers[at] = h;
    return at;
}

static void put_areas(section_writer *s, uint32_t *text_section) {
    const rewrite_writer *w = s->w;
    for (size_t i = 0; i < w->areas.count; i++) {
        const rewrite_area *a = &w->areas.items[i];
        uint32_t at = put_header(s, a->replaces, a->name, (Elf64_Shdr){
            .sh_type = a->type, .sh_flags = a->flags, .sh_addr = a->addr, .sh_offset = a->addr - w->shift,
            .sh_size = a->size, .sh_addralign = a->align, .sh_entsize = a->entry_size});
        if (strcmp(a->name, ".inlay.text") == 0) *text_section = at;
    }
}

/* The original's number of a section by type and, when it is not NULL, name; 0: none. */
static uint32_t old_section(const rewrite_writer *w, uint32_t type, const char *name) {
    const image_view *v = &w->im->view;
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr h;
        image_view_section(v, i, &h);
        if ((type == SHT_NULL || h.sh_type == type) &&
            (!name || strcmp(image_view_section_name(v, &h), name) == 0))
            return i;
    }
    return 0;
}

static inl_status put_symbols(section_writer *s, uint32_t text_section, inl_error *e) {
    rewrite_writer *w = s->w;
    rewrite_symtab t;
    inl_status st = rewrite_symbols(w, text_section, &t, e);
    if (st) return st;
    uint32_t symtab = old_section(w, SHT_SYMTAB, NULL), strtab = 0;
    if (symtab) strtab = s->headers[symtab].sh_link;
    /* Not if it holds the sections' names or dynamic strings too: then the symbols get one of their own. */
    if (strtab >= w->im->view.section_count || strtab == w->im->view.section_names ||
        (strtab && s->headers[strtab].sh_flags & SHF_ALLOC))
        strtab = 0;
    strtab = put_header(s, strtab, ".strtab", (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = t.strings, .sh_size = t.strings_size, .sh_addralign = 1});
    put_header(s, symtab, ".symtab", (Elf64_Shdr){
        .sh_type = SHT_SYMTAB, .sh_offset = t.symbols, .sh_size = t.symbols_size, .sh_link = strtab,
        .sh_info = t.locals, .sh_addralign = 8, .sh_entsize = sizeof(Elf64_Sym)});
    return INL_OK;
}

static void put_table(section_writer *s) {
    rewrite_writer *w = s->w;
    uint32_t names = put_header(s, 0, ".inlay.shstrtab", (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1});
    s->headers[names].sh_offset = rewrite_here(&w->tail);
    s->headers[names].sh_size = s->names.size;
    rewrite_put(&w->tail, s->names.data, s->names.size);
    rewrite_align(&w->tail, 8);
    w->header.e_shoff = rewrite_here(&w->tail);
    w->header.e_shentsize = sizeof(Elf64_Shdr);
    bool large = s->count >= SHN_LORESERVE, far_names = names >= SHN_LORESERVE;
    memset(&s->headers[0], 0, sizeof s->headers[0]);
    s->headers[0].sh_size = large ? s->count : 0;
    s->headers[0].sh_link = far_names ? names : 0;
    w->header.e_shnum = large ? 0 : (uint16_t)s->count;
    w->header.e_shstrndx = far_names ? SHN_XINDEX : (uint16_t)names;
    rewrite_put(&w->tail, s->headers, s->count * sizeof *s->headers);
}

inl_status rewrite_sections(rewrite_writer *w, inl_error *e) {
    section_writer s = {.w = w};
    uint32_t old = w->im->view.section_count, text_section = SHN_ABS;
    s.headers = calloc(old + w->areas.count + 8, sizeof *s.headers);
    if (!s.headers) return rewrite_no_memory(w, e);
    read_old(&s);
    uint32_t frames = w->hdr_size ? old_section(w, SHT_NULL, ".eh_frame") : 0;
    if (frames) s.headers[frames].sh_name = add_name(&s, ".inlay.eh_frame_old");
    put_areas(&s, &text_section);
    inl_status st = put_symbols(&s, text_section, e);
    if (!st) st = rewrite_dynamic_symbols(w, text_section, e);
    if (!st) put_table(&s);
    if (!st && (s.names.failed || w->tail.failed)) st = rewrite_no_memory(w, e);
    rewrite_bytes_free(&s.names);
    free(s.headers);
    return st;
}
