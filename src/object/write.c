/* What is added to an object file, and the file made anew: its sections in their order, those that were added behind
 * them. Local symbols stand in front of global ones, so the numbers of these change wherever they are named. */
#include "base/search.h"
#include "object/file.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef SHT_LLVM_ADDRSIG
#define SHT_LLVM_ADDRSIG 0x6fff4c03
#endif

/* --- adding --- */

uint32_t object_add_section(object_file *o, const char *name, uint32_t type, uint64_t flags, uint64_t align,
                            uint32_t group)
{
    object_section s = {.h = {.sh_type = type, .sh_flags = flags | (group ? SHF_GROUP : 0), .sh_addralign = align},
                        .group = group};
    uint32_t number = (uint32_t)o->sections.count;
    s.name = inl_arena_strdup(&o->arena, name);
    if (!s.name || number == UINT32_MAX || !inl_vec_push(&o->sections, s)) return 0;
    if (group) inl_bytes_number(&o->sections.items[group].data, number, 4);
    return group && o->sections.items[group].data.failed ? 0 : number;
}

uint32_t object_add_symbol(object_file *o, const char *name, Elf64_Sym s, uint32_t section)
{
    s.st_name = name ? (uint32_t)o->strings.size : 0;
    if (name) inl_bytes_put(&o->strings, name, strlen(name) + 1);
    if (o->strings.failed || !inl_vec_push(&o->symbols, (object_symbol){.s = s, .section = section})) return 0;
    return (uint32_t)o->symbols.count - 1;
}

uint32_t object_section_symbol(object_file *o, uint32_t section)
{
    object_section *s = &o->sections.items[section];
    const Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION)};
    if (!s->symbol) s->symbol = object_add_symbol(o, NULL, symbol, section);
    return s->symbol;
}

uint32_t object_section_named(const object_file *o, const char *name)
{
    for (uint32_t i = 1; i < o->sections.count; i++) {
        const object_section *s = &o->sections.items[i];
        if (strcmp(s->name, name) == 0 && s->h.sh_type != SHT_NOBITS && !(s->h.sh_flags & SHF_COMPRESSED)) return i;
    }
    return 0;
}

bool object_add_rela(object_file *o, uint32_t section, uint64_t offset, uint32_t type, uint32_t symbol, int64_t addend)
{
    Elf64_Rela r = {.r_offset = offset, .r_info = ELF64_R_INFO((uint64_t)symbol, type), .r_addend = addend};
    return symbol && inl_vec_push(&o->sections.items[section].relas, r);
}

Elf64_Rela *object_rela_in(object_section *s, uint64_t from, uint64_t end)
{
    size_t first = INL_FIRST(s->sorted, k, s->relas.items[k].r_offset >= from);
    bool there = first < s->sorted && s->relas.items[first].r_offset < end;
    return there ? &s->relas.items[first] : NULL;
}

/* --- the tables that are made anew --- */

static bool is_local(const object_symbol *s) { return ELF64_ST_BIND(s->s.st_info) == STB_LOCAL; }

/* Numbers of sections that symbols have no room for stand in a table beside theirs. */
static bool make_numbers(object_file *o)
{
    if (o->numbers || o->sections.count < SHN_LORESERVE) return true;
    o->numbers = object_add_section(o, ".symtab_shndx", SHT_SYMTAB_SHNDX, 0, sizeof(uint32_t), 0);
    if (!o->numbers) return false;
    o->sections.items[o->numbers].h.sh_link = o->symtab;
    o->sections.items[o->numbers].h.sh_entsize = sizeof(uint32_t);
    return true;
}

static void put_symbol(object_file *o, object_symbol *s)
{
    bool high = s->section >= SHN_LORESERVE;
    uint32_t more = high ? s->section : 0;
    if (s->section) s->s.st_shndx = high ? SHN_XINDEX : (uint16_t)s->section;
    inl_bytes_put(&o->sections.items[o->symtab].data, &s->s, sizeof s->s);
    if (o->numbers) inl_bytes_put(&o->sections.items[o->numbers].data, &more, sizeof more);
}

/* The first one stays the first: it stands for no symbol. */
static void put_symbols(object_file *o)
{
    if (o->numbers) o->sections.items[o->numbers].data.size = 0;
    object_section *t = &o->sections.items[o->symtab];
    t->data.size = 0;
    uint32_t number = 0;
    for (int global = 0; global < 2; global++) {
        if (global) t->h.sh_info = number;
        for (size_t i = 0; i < o->symbols.count; i++) {
            object_symbol *s = &o->symbols.items[i];
            if (is_local(s) == global) continue;
            s->number = number++;
            put_symbol(o, s);
        }
    }
    inl_bytes *names = &o->sections.items[t->h.sh_link].data;
    names->size = 0;
    inl_bytes_put(names, o->strings.data, o->strings.size);
}

static int by_offset(const void *a, const void *b)
{
    const Elf64_Rela *x = a, *y = b;
    return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

static bool put_relas(object_file *o)
{
    size_t count = o->sections.count; /* sections of relocations come behind */
    for (uint32_t i = 1; i < count; i++) {
        object_section *s = &o->sections.items[i];
        char name[512];
        if (!s->relas.count && !s->rela) continue;
        if (!s->rela) {
            snprintf(name, sizeof name, ".rela%s", s->name);
            uint32_t number = object_add_section(o, name, SHT_RELA, SHF_INFO_LINK, 8, s->group);
            if (!number) return false;
            o->sections.items[number].h.sh_entsize = sizeof(Elf64_Rela);
            o->sections.items[number].h.sh_link = o->symtab;
            o->sections.items[number].h.sh_info = i;
            s = &o->sections.items[i];
            s->rela = number;
        }
        inl_bytes *to = &o->sections.items[s->rela].data;
        to->size = 0;
        if (s->relas.count) qsort(s->relas.items, s->relas.count, sizeof(Elf64_Rela), by_offset);
        for (size_t k = 0; k < s->relas.count; k++) {
            Elf64_Rela r = s->relas.items[k];
            uint64_t symbol = o->symbols.items[ELF64_R_SYM(r.r_info)].number;
            r.r_info = ELF64_R_INFO(symbol, ELF64_R_TYPE(r.r_info));
            inl_bytes_put(to, &r, sizeof r);
        }
    }
    return true;
}

/* Groups name their symbol by number. A table of symbols whose addresses count is a hint to linkers, and numbers them
 * in a form of its own: where its link is 0 they take it for out of date. */
static void put_numbers(object_file *o)
{
    for (uint32_t i = 1; i < o->sections.count; i++) {
        object_section *s = &o->sections.items[i];
        if (s->h.sh_type == SHT_GROUP) s->h.sh_info = o->symbols.items[s->h.sh_info].number;
        if (s->h.sh_type == SHT_LLVM_ADDRSIG) s->h.sh_link = 0;
    }
}

static void put_names(object_file *o)
{
    object_section *names = &o->sections.items[o->view.section_names];
    bool shared = o->view.section_names == o->sections.items[o->symtab].h.sh_link;
    if (!shared) names->data.size = 0;
    for (uint32_t i = 0; i < o->sections.count; i++) {
        object_section *s = &o->sections.items[i];
        s->h.sh_name = (uint32_t)names->data.size;
        inl_bytes_put(&names->data, s->name, strlen(s->name) + 1);
    }
}

/* --- the file --- */

static void put_sections(object_file *o, inl_bytes *out)
{
    for (uint32_t i = 1; i < o->sections.count; i++) {
        object_section *s = &o->sections.items[i];
        uint64_t align = s->h.sh_addralign ? s->h.sh_addralign : 1;
        inl_bytes_align(out, align);
        s->h.sh_offset = out->size;
        if (s->h.sh_type == SHT_NOBITS || s->h.sh_type == SHT_NULL) continue;
        s->h.sh_size = s->data.size;
        inl_bytes_put(out, s->data.data, s->data.size);
        if (s->data.failed) out->failed = true;
    }
}

/* Numbers that the header has no room for stand in the first section's. */
static void put_counts(object_file *o, Elf64_Ehdr *h)
{
    Elf64_Shdr *zero = &o->sections.items[0].h;
    bool many = o->sections.count >= SHN_LORESERVE, high = o->view.section_names >= SHN_LORESERVE;
    h->e_shnum = many ? 0 : (uint16_t)o->sections.count;
    h->e_shstrndx = high ? SHN_XINDEX : (uint16_t)o->view.section_names;
    zero->sh_size = many ? o->sections.count : 0;
    zero->sh_link = high ? o->view.section_names : 0;
}

inl_status object_write(object_file *o, inl_bytes *out, inl_error *e)
{
    Elf64_Ehdr h = o->view.header;
    if (!make_numbers(o)) return object_no_memory(o, e);
    put_symbols(o);
    if (!o->view.section_names || o->view.section_names >= o->sections.count)
        return inl_fail(e, INL_ERR_FORMAT, "%s: sections have no names", o->path);
    if (!put_relas(o)) return object_no_memory(o, e);
    put_numbers(o);
    put_names(o);
    inl_bytes_reserve(out, sizeof h);
    put_sections(o, out);
    inl_bytes_align(out, 8);
    h.e_shoff = out->size;
    put_counts(o, &h);
    for (uint32_t i = 0; i < o->sections.count; i++) inl_bytes_put(out, &o->sections.items[i].h, sizeof(Elf64_Shdr));
    if (!out->failed) inl_bytes_set(out, 0, &h, sizeof h);
    return out->failed || o->strings.failed ? object_no_memory(o, e) : INL_OK;
}
