/* Which procedure of a mapped image an address is in: by the unwind table's index, else by the dynamic
 * symbols; and where there is no such index (musl's C library) by analysing the file. Tables may be damaged: nothing is
 * read outside the image (mapped.c). */
#include "moved/private.h"
#include "image/entries.h"

#include <elf.h>
#include <string.h>

/* --- from the unwind table --- */

static image_search find_index(const moved_image *i)
{
    const Elf64_Phdr *ph = i->phdr;
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t at = i->bias + ph[k].p_vaddr;
        const uint8_t *bytes = (const uint8_t *)at;
        image_search x;
        if (ph[k].p_type != PT_GNU_EH_FRAME || !moved_is_mapped(i, at, ph[k].p_filesz)) continue;
        if (image_search_at((image_cursor){bytes, bytes + ph[k].p_filesz, at}, &x)) return x;
    }
    return (image_search){0};
}

/* A record's begin, which holds what is asked for. */
typedef struct record_bytes {
    uint8_t at[128];
} record_bytes;

static image_cursor record_from(const moved_image *i, uint64_t at, record_bytes *b)
{
    uint64_t have = moved_mapped_from(i, at);
    if (have > sizeof b->at) have = sizeof b->at;
    if (!run_read(b->at, at, have)) have = 0;
    return (image_cursor){b->at, b->at + have, at};
}

/* What a record says, whose range must begin where the index says. */
static bool entry_at(const moved_image *i, const image_search *x, uint64_t at, uint64_t begin, image_range_entry *entry,
                     bool *signal)
{
    record_bytes own, common;
    image_record record;
    image_cie cie;
    if (!image_record_at(record_from(i, at, &own), &record) || record.is_common) return false;
    if (!image_cie_at(record_from(i, record.common, &common), &cie)) return false;
    *signal = cie.signal;
    return image_entry_read(&record, &cie, x->header, entry) && entry->addr == begin;
}

static bool range_of(const moved_image *i, const image_search *x, uint64_t at, uint64_t begin, uint64_t *start,
                     uint64_t *end)
{
    image_range_entry entry;
    bool signal;
    if (!entry_at(i, x, at, begin, &entry, &signal)) return false;
    /* A handler's return: it begins a byte before its code, for the unwinders' sake. */
    *start = entry.addr + signal;
    *end = entry.addr + entry.size;
    return *start < *end;
}

bool moved_unwind_entry(const moved_image *i, uint64_t at, uint64_t *begin, uint64_t *lsda)
{
    image_search x = find_index(i);
    image_range_entry entry;
    uint64_t record, next;
    bool signal;
    if (!image_search_find(&x, at, &record, begin, &next)) return false;
    if (!entry_at(i, &x, record, *begin, &entry, &signal) || at - entry.addr >= entry.size) return false;
    *lsda = entry.lsda;
    return !entry.odd;
}

/* The unwind tables say nothing of the end of procedures that make a thread, from the call itself on: what
 * follows is theirs up to the next procedure. (Of moved code, what runs before the tool makes no threads.) */
static uint64_t end_of_last(uint64_t next, uint64_t end)
{
    enum { REST = 64 };
    if (!next) return end;
    return next < end + REST ? next : end + REST;
}

static bool by_unwind(const moved_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    image_search x = find_index(i);
    uint64_t record, begin, next;
    if (!image_search_find(&x, at, &record, &begin, &next)) return false;
    if (!range_of(i, &x, record, begin, start, end)) return false;
    bool moved = at - i->text < i->text_size; /* there, jump tables may follow */
    if (at >= *end && !moved) *end = end_of_last(next, *end);
    return at < *end;
}

/* --- from the dynamic symbols --- */

typedef struct symbols {
    const Elf64_Sym *items;
    uint32_t count;
} symbols;

static uint32_t word(uint64_t at)
{
    uint32_t out;
    memcpy(&out, (const void *)at, sizeof out);
    return out;
}

/* How many symbols there are, by the hash table: buckets lead to the chains, the last chain to the end. 0: the table
 * is damaged. */
static uint32_t count_in_hash(const moved_image *i, uint64_t at)
{
    uint64_t room = moved_mapped_from(i, at);
    if (room < 16) return 0;
    uint64_t buckets = word(at), first = word(at + 4), chain = 16 + 8 * (uint64_t)word(at + 8) + 4 * buckets, last = 0;
    if (chain > room) return 0;
    for (uint64_t b = chain - 4 * buckets; b < chain; b += 4)
        if (word(at + b) > last) last = word(at + b);
    if (last < first) return (uint32_t)first;
    for (;; last++) {
        uint64_t end = chain + 4 * (last - first);
        if (end + 4 > room) return 0;
        if (word(at + end) & 1) return (uint32_t)last + 1;
    }
}

static uint64_t count_symbols(const moved_image *i, uint64_t symbols)
{
    uint64_t hash = moved_dynamic_address(i, DT_HASH), gnu = moved_dynamic_address(i, DT_GNU_HASH);
    uint64_t strings = moved_dynamic_address(i, DT_STRTAB);
    if (hash) return moved_is_mapped(i, hash, 8) ? word(hash + 4) : 0;
    if (gnu) return count_in_hash(i, gnu);
    /* every linker puts the strings behind the symbols */
    return strings > symbols ? (strings - symbols) / sizeof(Elf64_Sym) : 0;
}

static symbols find_symbols(const moved_image *i)
{
    uint64_t at = moved_dynamic_address(i, DT_SYMTAB), room = at ? moved_mapped_from(i, at) : 0;
    uint64_t count = room ? count_symbols(i, at) : 0;
    if (count > room / sizeof(Elf64_Sym)) count = room / sizeof(Elf64_Sym);
    return (symbols){(const void *)at, (uint32_t)count};
}

static bool by_symbol(const moved_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    symbols s = find_symbols(i);
    for (uint32_t k = 0; k < s.count; k++) {
        const Elf64_Sym *y = &s.items[k];
        uint64_t low = i->bias + y->st_value;
        if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || !y->st_shndx || at - low >= y->st_size) continue;
        *start = low;
        *end = low + y->st_size;
        return true;
    }
    return false;
}

uint64_t moved_symbol(const moved_image *i, const char *name)
{
    symbols s = find_symbols(i);
    uint64_t strings = moved_dynamic_address(i, DT_STRTAB);
    for (uint32_t k = 0; k < s.count; k++) {
        const char *own = s.items[k].st_shndx ? moved_mapped_string(i, strings + s.items[k].st_name) : NULL;
        if (own && !strcmp(own, name)) return i->bias + s.items[k].st_value;
    }
    return 0;
}

/* --- by analysis --- */

void moved_procedures_done(void)
{
    if (moved_now.analysed.program) cfg_program_free(moved_now.analysed.program);
    if (moved_now.analysed.im) image_close(moved_now.analysed.im);
    memset(&moved_now.analysed, 0, sizeof moved_now.analysed);
}

/* In a process that ran already the program's old code is asked about, too. */
static const char *path_of(const moved_image *i)
{
    if (i->name[0]) return i->name;
    return moved_is_live() ? "/proc/self/exe" : NULL;
}

static const cfg_program *analysis_of(const moved_image *i)
{
    inl_error e = {0};
    cfg_program *p = NULL;
    if (moved_now.analysed.of == i) return moved_now.analysed.program;
    moved_procedures_done();
    moved_now.analysed.of = i;
    if (image_open(path_of(i), &moved_now.analysed.im, &e) != INL_OK) return NULL;
    if (cfg_program_analyse(moved_now.analysed.im, NULL, &p, &e) == INL_OK) moved_now.analysed.program = p;
    return moved_now.analysed.program;
}

static bool by_analysis(const moved_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    enum { HARDLY_ANY = 64 };
    if (!path_of(i) || find_index(i).count >= HARDLY_ANY) return false;
    const cfg_program *p = analysis_of(i);
    uint32_t k = p ? cfg_proc_covering(p, at - i->bias) : CFG_NONE;
    if (k == CFG_NONE) return false;
    *start = p->procs[k].addr + i->bias;
    *end = *start + p->procs[k].size;
    return at >= *start && at < *end;
}

bool moved_procedure_at(const moved_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    if (!by_unwind(i, at, start, end) && !by_symbol(i, at, start, end) && !by_analysis(i, at, start, end)) return false;
    return *start < *end && moved_is_mapped(i, *start, *end - *start);
}
