/* Code that is named by its address where the analysis of control flow does not look: by tables of an assembler's
 * (places that may fault, probes, alternatives) and by symbols. Whoever reads these wants the instruction there, so it
 * stays where it is, unless a jump comes to stand in its place.
 *
 * Exception tables, unwind entries and debug information, which name all code, are seen to elsewhere. Tables of jumps
 * are distances from their own beginnings; what they lead to is known. */
#include "base/search.h"
#include "object/file.h"

#include <stdlib.h>

static bool names_all(const object_section *s)
{
    static const char *const fronts[] = {".eh_frame", ".debug", ".gcc_except_table", ".sframe", ".stab",
                                         ".llvm_",    ".rodata"};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (strncmp(s->name, fronts[i], strlen(fronts[i])) == 0) return true;
    return s->h.sh_flags & SHF_EXECINSTR;
}

static const object_section *code_of(const object_file *o, const object_symbol *s)
{
    const object_section *in = s->section ? &o->sections.items[s->section] : NULL;
    return in && in->at && in->h.sh_flags & SHF_EXECINSTR ? in : NULL;
}

static bool add_symbols(object_plan *p)
{
    for (uint32_t i = 1; i < p->o->old_symbols; i++) {
        const object_symbol *s = &p->o->symbols.items[i];
        const object_section *code = code_of(p->o, s);
        if (code && ELF64_ST_TYPE(s->s.st_info) != STT_SECTION && !inl_vec_push(&p->named, code->at + s->s.st_value))
            return false;
    }
    return true;
}

static bool add_targets(object_plan *p, const object_section *table)
{
    for (size_t i = 0; i < table->relas.count; i++) {
        const Elf64_Rela *r = &table->relas.items[i];
        const object_symbol *s = &p->o->symbols.items[ELF64_R_SYM(r->r_info)];
        const object_section *code = code_of(p->o, s);
        unsigned size;
        object_value how = p->o->isa->reloc(ELF64_R_TYPE(r->r_info), &size);
        if (code && (how == OBJECT_ABSOLUTE || how == OBJECT_RELATIVE) &&
            !inl_vec_push(&p->named, code->at + s->s.st_value + (uint64_t)r->r_addend))
            return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool object_find_named(object_plan *p)
{
    if (!add_symbols(p)) return false;
    for (size_t i = 1; i < p->o->sections.count; i++)
        if (!names_all(&p->o->sections.items[i]) && !add_targets(p, &p->o->sections.items[i])) return false;
    if (p->named.count) qsort(p->named.items, p->named.count, sizeof *p->named.items, ascending);
    return true;
}

bool object_is_named(const object_plan *p, uint64_t from, uint64_t end)
{
    size_t k = INL_FIRST(p->named.count, i, p->named.items[i] >= from);
    return k < p->named.count && p->named.items[k] < end;
}
