/* An object file, read: sections with their bytes, symbols, relocations by the section that they are for. */
#include "object/file.h"
#include "record/tells.h"

#include <stdlib.h>

enum { MOST_SECTIONS = 1 << 24 };

inl_status object_no_memory(const object_file *o, inl_error *e)
{
    return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", o->path);
}

static inl_status check_header(object_file *o, inl_error *e)
{
    const Elf64_Ehdr *h = &o->view.header;
    if (h->e_type != ET_REL)
        return inl_fail(e, INL_ERR_FORMAT,
                        "%s: not a relocatable object file (a program is instrumented by `inlay "
                        "trace`, or `inlay rewrite trace`)",
                        o->path);
    o->isa = object_isa_for(h->e_machine);
    if (!o->isa)
        return inl_fail(e, INL_ERR_UNSUPPORTED,
                        "%s: an object for a processor (ELF machine %u) that objects cannot be "
                        "instrumented for",
                        o->path, h->e_machine);
    if (o->view.section_count == 0) return inl_fail(e, INL_ERR_FORMAT, "%s: no sections", o->path);
    if (o->view.section_count > MOST_SECTIONS)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: %u sections are more than are handled", o->path,
                        o->view.section_count);
    return INL_OK;
}

static inl_status refuse_lto(const object_file *o, inl_error *e)
{
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "%s: made for link-time optimization: its code is made when the program is "
                    "linked; compile without -flto",
                    o->path);
}

static inl_status refuse_split(const object_file *o, inl_error *e)
{
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "%s: its stacks are split: __morestack reads the code behind its call; compile without "
                    "-fsplit-stack",
                    o->path);
}

static inl_status read_sections(object_file *o, inl_error *e)
{
    for (uint32_t i = 0; i < o->view.section_count; i++) {
        object_section s = {0};
        const uint8_t *bytes;
        image_view_section(&o->view, i, &s.h);
        s.name = image_view_section_name(&o->view, &s.h);
        if (strncmp(s.name, ".gnu.lto_", 9) == 0 || strcmp(s.name, ".llvm.lto") == 0) return refuse_lto(o, e);
        if (strcmp(s.name, ".note.GNU-split-stack") == 0) return refuse_split(o, e);
        if (s.h.sh_addralign & (s.h.sh_addralign - 1) || s.h.sh_addralign > 1 << 24)
            return inl_fail(e, INL_ERR_FORMAT, "%s: section %u (%s) has an alignment of %lu", o->path, i, s.name,
                            s.h.sh_addralign);
        bool has = i && s.h.sh_type != SHT_NOBITS && s.h.sh_type != SHT_NULL;
        if (has) {
            bytes = image_view_bytes(&o->view, s.h.sh_offset, s.h.sh_size);
            if (!bytes)
                return inl_fail(e, INL_ERR_FORMAT, "%s: section %u (%s) lies outside the file", o->path, i, s.name);
            inl_bytes_put(&s.data, bytes, s.h.sh_size);
        }
        if (s.data.failed || !inl_vec_push(&o->sections, s)) return object_no_memory(o, e);
        if (s.h.sh_type == SHT_SYMTAB) o->symtab = i;
        if (s.h.sh_type == SHT_SYMTAB_SHNDX) o->numbers = i;
    }
    return INL_OK;
}

/* Of whose members which is; a group is a word of flags and the members' numbers. */
static inl_status read_groups(object_file *o, inl_error *e)
{
    for (uint32_t i = 1; i < o->sections.count; i++) {
        object_section *s = &o->sections.items[i];
        if (s->h.sh_type != SHT_GROUP) continue;
        for (size_t at = 4; at + 4 <= s->data.size; at += 4) {
            uint32_t member;
            memcpy(&member, s->data.data + at, 4);
            if (member == 0 || member >= o->sections.count)
                return inl_fail(e, INL_ERR_FORMAT, "%s: group %u has a member that is no section", o->path, i);
            o->sections.items[member].group = i;
        }
        if (s->h.sh_info >= o->symbols.count)
            return inl_fail(e, INL_ERR_FORMAT, "%s: group %u is named by no symbol", o->path, i);
    }
    return INL_OK;
}

/* Where a symbol lies; false: its table says nothing that makes sense. */
static bool find_section(const object_file *o, size_t number, object_symbol *s)
{
    const inl_bytes *more = &o->sections.items[o->numbers].data;
    uint16_t in = s->s.st_shndx;
    if (in < SHN_LORESERVE) s->section = in;
    else if (in == SHN_XINDEX && o->numbers && (number + 1) * sizeof s->section <= more->size)
        memcpy(&s->section, more->data + number * sizeof s->section, sizeof s->section);
    return s->section < o->sections.count && (in != SHN_XINDEX || s->section);
}

static inl_status read_symbols(object_file *o, inl_error *e)
{
    if (!o->symtab) return inl_fail(e, INL_ERR_FORMAT, "%s: no symbol table (stripped)", o->path);
    const object_section *t = &o->sections.items[o->symtab];
    uint32_t link = t->h.sh_link;
    if (link == 0 || link >= o->sections.count || o->sections.items[link].h.sh_type != SHT_STRTAB)
        return inl_fail(e, INL_ERR_FORMAT, "%s: the symbol table has no names", o->path);
    const object_section *names = &o->sections.items[link];
    if (names->data.size == 0 || names->data.data[names->data.size - 1] != 0)
        return inl_fail(e, INL_ERR_FORMAT, "%s: the symbols' names have no end", o->path);
    inl_bytes_put(&o->strings, names->data.data, names->data.size);
    for (size_t i = 0; (i + 1) * sizeof(Elf64_Sym) <= t->data.size; i++) {
        object_symbol s = {0};
        memcpy(&s.s, t->data.data + i * sizeof s.s, sizeof s.s);
        if (s.s.st_name >= names->data.size || !find_section(o, i, &s))
            return inl_fail(e, INL_ERR_FORMAT, "%s: symbol %zu makes no sense", o->path, i);
        if (!inl_vec_push(&o->symbols, s)) return object_no_memory(o, e);
        if (ELF64_ST_TYPE(s.s.st_info) == STT_SECTION && s.section) o->sections.items[s.section].symbol = (uint32_t)i;
        const char *name = (char *)o->strings.data + s.s.st_name;
        if (strcmp(name, "__gnu_lto_slim") == 0) return refuse_lto(o, e);
        if (strcmp(name, RECORD_ENTER) == 0 || strcmp(name, RECORD_ENTER_KEEPING) == 0)
            return inl_fail(e, INL_ERR_USAGE, "%s: it is instrumented already", o->path);
    }
    if (o->symbols.count == 0 || t->h.sh_info > o->symbols.count)
        return inl_fail(e, INL_ERR_FORMAT, "%s: the symbol table makes no sense", o->path);
    o->old_symbols = (uint32_t)o->symbols.count;
    return o->strings.failed ? object_no_memory(o, e) : INL_OK;
}

static int by_offset(const void *a, const void *b)
{
    const Elf64_Rela *x = a, *y = b;
    return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

/* Its relocations are for what it holds when it is whole again: in SHF_COMPRESSED, and in .zdebug_NAME, the older way.
 */
static bool is_packed(const object_section *s)
{
    return s->h.sh_flags & SHF_COMPRESSED || strncmp(s->name, ".zdebug", 7) == 0;
}

static inl_status read_relas_of(object_file *o, uint32_t number, inl_error *e)
{
    const object_section *r = &o->sections.items[number];
    if (r->h.sh_info == 0 || r->h.sh_info >= o->sections.count || r->h.sh_link != o->symtab)
        return inl_fail(e, INL_ERR_FORMAT, "%s: the relocations in section %u are for nothing", o->path, number);
    object_section *s = &o->sections.items[r->h.sh_info];
    if (s->rela) return inl_fail(e, INL_ERR_FORMAT, "%s: %s has relocations twice", o->path, s->name);
    s->rela = number;
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= r->data.size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela one;
        memcpy(&one, r->data.data + at, sizeof one);
        if (ELF64_R_SYM(one.r_info) >= o->symbols.count || (one.r_offset > s->h.sh_size && !is_packed(s)))
            return inl_fail(e, INL_ERR_FORMAT, "%s: a relocation of %s makes no sense", o->path, s->name);
        if (!inl_vec_push(&s->relas, one)) return object_no_memory(o, e);
    }
    s->sorted = s->relas.count;
    if (s->sorted) qsort(s->relas.items, s->sorted, sizeof(Elf64_Rela), by_offset);
    return INL_OK;
}

static inl_status read_relas(object_file *o, inl_error *e)
{
    inl_status st = INL_OK;
    for (uint32_t i = 1; i < o->sections.count && !st; i++) {
        if (o->sections.items[i].h.sh_type == SHT_RELA) st = read_relas_of(o, i, e);
        if (o->sections.items[i].h.sh_type == SHT_REL)
            return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: relocations without addends are not handled", o->path);
    }
    return st;
}

static bool has_code(const object_file *o)
{
    for (size_t i = 1; i < o->sections.count; i++)
        if (o->sections.items[i].h.sh_flags & SHF_EXECINSTR && o->sections.items[i].data.size) return true;
    return false;
}

inl_status object_read(object_file *o, const void *bytes, size_t size, const char *path, inl_error *e)
{
    *o = (object_file){.path = path};
    if (size >= 4 && (memcmp(bytes, "BC\xc0\xde", 4) == 0 || memcmp(bytes, "\xde\xc0\x17\x0b", 4) == 0))
        return refuse_lto(o, e);
    inl_status st = image_view_open(&o->view, bytes, size, path, e);
    if (!st) st = check_header(o, e);
    if (!st) st = read_sections(o, e);
    if (st || (!o->symtab && !has_code(o))) return st;
    st = read_symbols(o, e);
    if (!st) st = read_groups(o, e);
    return st ? st : read_relas(o, e);
}

void object_free(object_file *o)
{
    for (size_t i = 0; i < o->sections.count; i++) {
        inl_bytes_free(&o->sections.items[i].data);
        inl_vec_free(&o->sections.items[i].relas);
    }
    inl_vec_free(&o->sections);
    inl_vec_free(&o->symbols);
    inl_bytes_free(&o->strings);
    inl_bytes_free(&o->linked);
    inl_vec_free(&o->laid_out);
    cfg_program_free(o->cfg);
    image_close(o->im);
    inl_arena_free(&o->arena);
}
