/* Dynamic symbols for moved code, so that dladdr and backtrace_symbols name it: behind the original's, each
 * exported procedure that has moved and whose symbol stays with the old entry gets a second one of its name. One whose
 * symbol is the new code's gets one for the old entry, since handlers of signals see threads there.
 *
 * Nobody is to find one by its name. The dynamic linker sees only what .gnu.hash leads to: symbols of one bucket
 * stand in a row, and the last bucket's row is made longer by the new ones. Each has a hash there that its name
 * does not have, so a search passes over it; what looks for addresses goes through all rows and finds it. New
 * symbols are hidden, so that link editors leave them alone too.
 *
 *     .dynsym       old | new         .gnu.version   old | new        (copies, at a new place)
 *     .gnu.hash     header, bloom filter, buckets, chain of old | new
 *
 * A file whose tables are not as linkers make them stays as it is.
 */
#include "elf/private.h"

typedef struct renamer {
    elf_writer *w;
    image_symtab t;
    uint64_t hash_at, hash_size; /* of the original's .gnu.hash */
    const uint8_t *hash;
    uint32_t chain_at, first; /* of the chain in it; number of the first symbol in the chain */
    uint32_t *moved;          /* numbers of symbols that get a second one */
    uint32_t count;
} renamer;

static Elf64_Sym symbol(const renamer *r, uint32_t i)
{
    Elf64_Sym s;
    memcpy(&s, r->t.symbols + i * sizeof s, sizeof s);
    return s;
}

static uint32_t hash_word(const renamer *r, uint64_t at)
{
    uint32_t word;
    memcpy(&word, r->hash + at, sizeof word);
    return word;
}

/* The moved procedure that a symbol stands at, or NULL. */
static const move_proc *moved_by(const renamer *r, const Elf64_Sym *s)
{
    const move_plan *p = r->w->plan;
    if (s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE || ELF64_ST_TYPE(s->st_info) != STT_FUNC) return NULL;
    uint32_t block = cfg_block_at(p->cfg, s->st_value);
    uint32_t proc = block == CFG_NONE ? CFG_NONE : p->cfg->blocks[block].proc;
    if (proc == CFG_NONE || p->cfg->procs[proc].addr != s->st_value) return NULL;
    return p->procs[proc].new_addr ? &p->procs[proc] : NULL;
}

/* Is .gnu.hash all there, and does its last row end with the last symbol? */
static bool look_at_hash(renamer *r)
{
    elf_writer *w = r->w;
    uint64_t offset, at = image_dynamic_info(w->im)->gnu_hash;
    if (!at || !elf_file_offset(w, at, 16, &offset)) return false;
    r->hash = w->old + offset;
    r->first = hash_word(r, 4);
    uint64_t buckets = hash_word(r, 0), chain = 16 + 8 * (uint64_t)hash_word(r, 8) + 4 * buckets;
    if (r->first >= r->t.count || chain > UINT32_MAX) return false;
    r->hash_at = at;
    r->hash_size = chain + 4 * (r->t.count - r->first);
    if (!elf_file_offset(w, at, r->hash_size, &offset)) return false;
    r->chain_at = (uint32_t)chain;
    uint32_t last = 0;
    for (uint64_t b = chain - 4 * buckets; b < chain; b += 4)
        if (hash_word(r, b) > last) last = hash_word(r, b);
    if (last < r->first || last >= r->t.count) return false;
    for (uint64_t i = last; i < r->t.count; i++)
        if (hash_word(r, chain + 4 * (i - r->first)) & 1) return i + 1 == r->t.count;
    return false;
}

static bool find_moved(renamer *r)
{
    r->moved = inl_arena_alloc(&r->w->arena, r->t.count * sizeof *r->moved);
    if (!r->moved) return false;
    for (uint32_t i = r->first; i < r->t.count; i++) {
        Elf64_Sym s = symbol(r, i);
        if (moved_by(r, &s)) r->moved[r->count++] = i;
    }
    return true;
}

/* A table that goes to a new place, in front of the new entries. */
static uint64_t begin_copy(renamer *r, const uint8_t *bytes, uint64_t size)
{
    inl_bytes_align(&r->w->ro, 8);
    uint64_t at = inl_bytes_here(&r->w->ro);
    inl_bytes_put(&r->w->ro, bytes, size);
    return at;
}

static bool end_copy(renamer *r, const char *name, uint32_t type, uint64_t was, uint64_t at, uint64_t entry)
{
    return elf_add_area(r->w, (elf_area){.name = name,
                                         .type = type,
                                         .flags = SHF_ALLOC,
                                         .addr = at,
                                         .size = inl_bytes_here(&r->w->ro) - at,
                                         .align = entry == 2 ? 2 : 8,
                                         .entry_size = entry,
                                         .replaces = elf_section_at(r->w, was, type)});
}

static bool put_symbols(renamer *r, elf_dynamic_places *to)
{
    to->symtab = begin_copy(r, r->t.symbols, r->t.count * sizeof(Elf64_Sym));
    for (uint32_t k = 0; k < r->count; k++) {
        Elf64_Sym s = symbol(r, r->moved[k]);
        const move_proc *p = moved_by(r, &s);
        if (!p->renamed) {
            s.st_value = p->new_addr - r->w->plan->bias;
            s.st_size = p->new_size;
        }
        s.st_other = (unsigned char)((s.st_other & ~3) | STV_HIDDEN);
        inl_bytes_put(&r->w->ro, &s, sizeof s);
    }
    return end_copy(r, ".dynsym", SHT_DYNSYM, image_dynamic_info(r->w->im)->symtab, to->symtab, sizeof(Elf64_Sym));
}

static bool put_versions(renamer *r, elf_dynamic_places *to)
{
    enum { HIDDEN = 0x8000 };
    if (!r->t.versions) return true;
    to->versym = begin_copy(r, r->t.versions, 2 * r->t.count);
    for (uint32_t k = 0; k < r->count; k++) {
        uint16_t version;
        memcpy(&version, r->t.versions + 2 * r->moved[k], sizeof version);
        inl_bytes_number(&r->w->ro, version | HIDDEN, 2);
    }
    return end_copy(r, ".gnu.version", SHT_GNU_versym, image_dynamic_info(r->w->im)->versym, to->versym, 2);
}

static bool put_hash(renamer *r, elf_dynamic_places *to)
{
    enum { END = 1, ANOTHER = 2 };
    to->gnu_hash = begin_copy(r, r->hash, r->hash_size - 4);
    inl_bytes_number(&r->w->ro, hash_word(r, r->hash_size - 4) & ~(uint32_t)END, 4);
    for (uint32_t k = 0; k < r->count; k++) {
        uint32_t hash = hash_word(r, r->chain_at + 4 * (r->moved[k] - r->first));
        hash = ((hash ^ ANOTHER) & ~(uint32_t)END) | (k + 1 == r->count ? END : 0);
        inl_bytes_number(&r->w->ro, hash, 4);
    }
    return end_copy(r, ".gnu.hash", SHT_GNU_HASH, r->hash_at, to->gnu_hash, 0);
}

inl_status elf_dynamic_names(elf_writer *w, elf_dynamic_places *to, inl_error *e)
{
    renamer r = {.w = w};
    *to = (elf_dynamic_places){0};
    if (!image_find_dynsym(w->im, &r.t) || r.t.count > UINT32_MAX / 2 || !look_at_hash(&r)) return INL_OK;
    if (image_dynamic_info(w->im)->versym && !r.t.versions) return INL_OK;
    if (!find_moved(&r)) return elf_no_memory(w, e);
    if (!r.count) return INL_OK;
    return put_symbols(&r, to) && put_versions(&r, to) && put_hash(&r, to) ? INL_OK : elf_no_memory(w, e);
}
