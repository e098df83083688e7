/* Which procedure of a mapped image an address is in: by the unwind table's index, else by the dynamic
 * symbols; and where there is no such index (musl's C library) by analysing the file. */
#include "rewrite/run_private.h"
#include "cfg/program.h"

#include <elf.h>
#include <string.h>

/* --- from the unwind table --- */

typedef struct table_row { int32_t start, fde; } table_row;
typedef struct unwind_index {
    const char *base;
    const table_row *rows;
    uint32_t count;
} unwind_index;

static unwind_index find_index(const run_image *i)
{
    enum { PCREL_SDATA4 = 0x1b, UDATA4 = 3, DATAREL_SDATA4 = 0x3b };
    unwind_index x = {0};
    const Elf64_Phdr *ph = i->phdr;
    for (unsigned k = 0; k < i->phnum; k++) {
        if (ph[k].p_type != PT_GNU_EH_FRAME || ph[k].p_filesz < 12) continue;
        const uint8_t *h = (const uint8_t *)(i->bias + ph[k].p_vaddr);
        if (h[0] != 1 || h[1] != PCREL_SDATA4 || h[2] != UDATA4 || h[3] != DATAREL_SDATA4) continue;
        memcpy(&x.count, h + 8, sizeof x.count);
        if (x.count > (ph[k].p_filesz - 12) / sizeof(table_row)) x.count = 0;
        x.base = (const char *)h;
        x.rows = (const void *)(h + 12);
    }
    return x;
}

/* A handler's return: it begins a byte before its code, for the unwinders' sake. */
static bool is_signal_frame(const char *cie)
{
    char augmentation[8] = {0};
    return !jit_read(augmentation, (uint64_t)(uintptr_t)(cie + 9), sizeof augmentation - 1) ||
           strchr(augmentation, 'S');
}

/* The FDE's own range, when it is written the usual way. */
static bool fde_range(const unwind_index *x, const table_row *row, uint64_t *start, uint64_t *end)
{
    struct { uint32_t length, cie; int32_t pc; uint32_t size; } fde;
    const char *at = x->base + row->fde;
    if (!jit_read(&fde, (uint64_t)(uintptr_t)at, sizeof fde) || fde.length < 12) return false;
    *start = (uint64_t)(uintptr_t)(at + 8) + (uint64_t)(int64_t)fde.pc;
    *end = *start + fde.size;
    bool good = *start == (uint64_t)(uintptr_t)(x->base + row->start);
    if (is_signal_frame(at + 4 - fde.cie)) ++*start;
    return good && *start < *end;
}

/* The unwind tables say nothing of the end of procedures that make a thread, from the call itself on: what
 * follows is theirs up to the next procedure. (Of moved code, what runs before the tool makes no threads.) */
static uint64_t end_of_last(const unwind_index *x, size_t next, uint64_t end)
{
    enum { REST = 64 };
    uint64_t limit = end + REST;
    if (next == x->count) return end;
    uint64_t start = (uint64_t)(uintptr_t)(x->base + x->rows[next].start);
    return start < limit ? start : limit;
}

static bool by_unwind(const run_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    unwind_index x = find_index(i);
    size_t low = 0, high = x.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uint64_t)(uintptr_t)(x.base + x.rows[mid].start) <= at) low = mid + 1;
        else high = mid;
    }
    if (!low || !fde_range(&x, &x.rows[low - 1], start, end)) return false;
    bool moved = at - i->text < i->text_size; /* there, jump tables may follow */
    if (at >= *end && !moved) *end = end_of_last(&x, low, *end);
    return at < *end;
}

/* --- from the dynamic symbols --- */

typedef struct symbols {
    const Elf64_Sym *items;
    uint32_t count;
} symbols;

static uint64_t address_in(const run_image *i, uint64_t p) { return p < i->low ? p + i->bias : p; }

/* How many symbols there are, by the hash table: buckets lead to the chains, the last chain to the end. */
static uint32_t count_in_hash(const uint32_t *gnu)
{
    uint32_t buckets = gnu[0], first = gnu[1], bloom_words = gnu[2], last = 0;
    const uint32_t *bucket = gnu + 4 + 2 * (size_t)bloom_words, *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1)) last++;
    return last + 1;
}

static symbols find_symbols(const run_image *i)
{
    symbols s = {0};
    const Elf64_Phdr *ph = i->phdr;
    uint64_t strings = 0;
    const uint32_t *gnu = NULL, *old = NULL;
    for (unsigned k = 0; k < i->phnum; k++) {
        if (ph[k].p_type != PT_DYNAMIC) continue;
        for (const Elf64_Dyn *d = (const void *)(i->bias + ph[k].p_vaddr); d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_SYMTAB) s.items = (const void *)address_in(i, d->d_un.d_ptr);
            if (d->d_tag == DT_STRTAB) strings = address_in(i, d->d_un.d_ptr);
            if (d->d_tag == DT_GNU_HASH) gnu = (const void *)address_in(i, d->d_un.d_ptr);
            if (d->d_tag == DT_HASH) old = (const void *)address_in(i, d->d_un.d_ptr);
        }
    }
    if (!s.items) return s;
    if (old) s.count = old[1];
    else if (gnu) s.count = count_in_hash(gnu);
    else if (strings > (uint64_t)(uintptr_t)s.items) /* every linker puts the strings behind the symbols */
        s.count = (uint32_t)((strings - (uint64_t)(uintptr_t)s.items) / sizeof *s.items);
    return s;
}

static bool by_symbol(const run_image *i, uint64_t at, uint64_t *start, uint64_t *end)
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

/* --- by analysis --- */

static struct {
    const run_image *of;
    image *im;
    cfg_program *p;
} analysed;

void rewrite_procedures_done(void)
{
    if (analysed.p) cfg_program_free(analysed.p);
    if (analysed.im) image_close(analysed.im);
    memset(&analysed, 0, sizeof analysed);
}

static const cfg_program *analysis_of(const run_image *i)
{
    inl_error e = {0};
    if (analysed.of == i) return analysed.p;
    rewrite_procedures_done();
    analysed.of = i;
    if (image_open(i->name, &analysed.im, &e) != INL_OK) return NULL;
    if (cfg_program_analyse(analysed.im, NULL, &analysed.p, &e) != INL_OK) analysed.p = NULL;
    return analysed.p;
}

static bool by_analysis(const run_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    enum { HARDLY_ANY = 64 };
    if (!i->name[0] || find_index(i).count >= HARDLY_ANY) return false;
    const cfg_program *p = analysis_of(i);
    uint32_t k = p ? cfg_proc_covering(p, at - i->bias) : CFG_NONE;
    if (k == CFG_NONE) return false;
    *start = p->procs[k].addr + i->bias;
    *end = *start + p->procs[k].size;
    return at >= *start && at < *end;
}

bool rewrite_procedure_at(const run_image *i, uint64_t at, uint64_t *start, uint64_t *end)
{
    return by_unwind(i, at, start, end) || by_symbol(i, at, start, end) || by_analysis(i, at, start, end);
}
