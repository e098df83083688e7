/* The new .symtab: the original's symbols, and one of the same name for each moved procedure, so that
 * debuggers name it. Procedures without a name are called by their original address, sub_<hex>. A file
 * without .symtab gets one that holds the moved procedures.
 *
 * Local symbols come first. Where relocations of the link were kept (--emit-relocs) the numbers of global
 * symbols must not change: then the new ones are hidden global ones at the end.
 *
 * Dynamic symbols of procedures that are renamed (names.c) are the new code's: who calls by name gets there
 * at once. Numbers, names and versions stay, so hash tables do too.
 */
#include "elf/private.h"

#include <stdio.h>

typedef struct symbol_writer {
    elf_writer *w;
    const uint8_t *old; /* symbols */
    size_t old_count, old_locals;
    image_strings names; /* the original's */
    inl_bytes strings;   /* that come behind them */
    const elf_symtab *t;
    bool at_end;
} symbol_writer;

static bool has_link_relocations(const elf_writer *w, uint32_t symtab)
{
    const image_view *v = &w->im->view;
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr s;
        image_view_section(v, i, &s);
        if (s.sh_link == symtab &&
            (s.sh_type == SHT_RELA || s.sh_type == SHT_REL || s.sh_type == SHT_SYMTAB_SHNDX || s.sh_type == SHT_GROUP))
            return true;
    }
    return false;
}

static void find_old(symbol_writer *s)
{
    const image_view *v = &s->w->im->view;
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr h, names;
        const uint8_t *text;
        image_view_section(v, i, &h);
        if (h.sh_type != SHT_SYMTAB || h.sh_entsize != sizeof(Elf64_Sym)) continue;
        if (!image_view_section(v, h.sh_link, &names) || !image_view_section_bytes(v, &names, &text) ||
            !image_view_section_bytes(v, &h, &s->old))
            continue;
        s->names = (image_strings){(const char *)text, names.sh_size};
        s->old_count = h.sh_size / sizeof(Elf64_Sym);
        s->old_locals = h.sh_info < s->old_count ? h.sh_info : s->old_count;
        s->at_end = has_link_relocations(s->w, i);
        return;
    }
}

static uint32_t name_of(symbol_writer *s, const cfg_proc *proc)
{
    char made[32];
    const char *name = proc->name, *first = s->names.text;
    if (name && first && name >= first && name < first + s->names.size) return (uint32_t)(name - first);
    if (!name) {
        snprintf(made, sizeof made, "sub_%llx", (unsigned long long)proc->addr);
        name = made;
    }
    size_t at = s->names.size + s->strings.size;
    inl_bytes_put(&s->strings, name, strlen(name) + 1);
    return (uint32_t)at;
}

static void renumber(const elf_symtab *t, Elf64_Sym *s)
{
    if (s->st_shndx < t->number_count) s->st_shndx = (uint16_t)t->numbers[s->st_shndx];
}

/* Some of the original's symbols, with sections' new numbers. */
static void put_old(symbol_writer *s, size_t first, size_t count)
{
    inl_bytes *b = &s->w->tail;
    size_t at = b->size;
    inl_bytes_put(b, s->old + first * sizeof(Elf64_Sym), count * sizeof(Elf64_Sym));
    for (size_t i = 0; i < count && !b->failed; i++) {
        Elf64_Sym sym;
        memcpy(&sym, b->data + at + i * sizeof sym, sizeof sym);
        renumber(s->t, &sym);
        inl_bytes_set(b, at + i * sizeof sym, &sym, sizeof sym);
    }
}

static uint32_t put_moved(symbol_writer *s)
{
    const move_plan *p = s->w->plan;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->cfg->proc_count; i++) {
        if (p->procs[i].new_addr == 0) continue;
        Elf64_Sym sym = {
            .st_name = name_of(s, &p->cfg->procs[i]),
            .st_info = ELF64_ST_INFO(s->at_end ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
            .st_other = s->at_end ? STV_HIDDEN : STV_DEFAULT,
            .st_shndx = s->t->text_section < SHN_LORESERVE ? (uint16_t)s->t->text_section : SHN_ABS,
            .st_value = p->procs[i].new_addr - p->bias,
            .st_size = p->procs[i].new_size,
        };
        inl_bytes_put(&s->w->tail, &sym, sizeof sym);
        count++;
    }
    return count;
}

/* The procedure that begins at a link-time address, if it is renamed. */
static const move_proc *renamed_at(const move_plan *p, uint64_t addr)
{
    uint32_t block = cfg_block_at(p->cfg, addr);
    uint32_t proc = block == CFG_NONE ? CFG_NONE : p->cfg->blocks[block].proc;
    bool begins = proc != CFG_NONE && p->cfg->procs[proc].addr == addr;
    return begins && p->procs[proc].renamed ? &p->procs[proc] : NULL;
}

/* A renamed procedure's symbol becomes the new code's. */
static void rename_symbol(const elf_writer *w, const elf_symtab *t, Elf64_Sym *s)
{
    const move_proc *to = s->st_shndx == SHN_UNDEF ? NULL : renamed_at(w->plan, s->st_value);
    renumber(t, s);
    if (!to || ELF64_ST_TYPE(s->st_info) != STT_FUNC) return;
    s->st_value = to->new_addr - w->plan->bias;
    s->st_size = to->new_size;
    if (t->text_section < SHN_LORESERVE) s->st_shndx = (uint16_t)t->text_section;
}

/* In place, or in the table's copy (elf_names.c), where new ones stand behind the original's. */
inl_status elf_dynamic_symbols(elf_writer *w, const elf_symtab *to, inl_error *e)
{
    image_symtab t;
    uint64_t at, size;
    if (!image_find_dynsym(w->im, &t) || t.count == 0) return INL_OK;
    size = t.count * sizeof(Elf64_Sym);
    if (!elf_file_offset(w, image_dynamic_info(w->im)->symtab, size, &at))
        return inl_fail(e, INL_ERR_FORMAT, "%s: its dynamic symbols are not in the file", image_path(w->im));
    Elf64_Sym *symbols = inl_arena_alloc(&w->arena, size);
    if (!symbols) return elf_no_memory(w, e);
    memcpy(symbols, w->old + at, size);
    for (size_t i = 1; i < t.count; i++) rename_symbol(w, to, &symbols[i]);
    if (w->dynamic.symbols_at) inl_bytes_set(&w->ro, w->dynamic.symbols_at, symbols, size);
    else if (!elf_add_edit(w, at, symbols, size)) return elf_no_memory(w, e);
    return INL_OK;
}

inl_status elf_symbols(elf_writer *w, elf_symtab *out, inl_error *e)
{
    symbol_writer s = {.w = w, .t = out};
    inl_bytes *b = &w->tail;
    find_old(&s);
    if (s.names.size == 0) inl_bytes_put(&s.strings, "", 1);
    inl_bytes_align(b, 8);
    out->symbols = inl_bytes_here(b);
    size_t first = s.at_end ? s.old_count : s.old_locals;
    if (s.old_count) put_old(&s, 0, first);
    else inl_bytes_reserve(b, sizeof(Elf64_Sym));
    uint32_t added = put_moved(&s);
    if (s.old_count) put_old(&s, first, s.old_count - first);
    out->symbols_size = inl_bytes_here(b) - out->symbols;
    out->locals = (uint32_t)(s.at_end ? s.old_locals : (s.old_count ? s.old_locals : 1) + added);
    out->strings = inl_bytes_here(b);
    inl_bytes_put(b, s.names.text, s.names.size);
    inl_bytes_put(b, s.strings.data, s.strings.size);
    out->strings_size = inl_bytes_here(b) - out->strings;
    bool failed = b->failed || s.strings.failed;
    inl_bytes_free(&s.strings);
    return failed ? elf_no_memory(w, e) : INL_OK;
}
