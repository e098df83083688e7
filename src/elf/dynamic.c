/* The dynamic section: the boot code as the first initialiser, and where libraries are looked for.
 *
 * glibc's dynamic linker calls what DT_PREINIT_ARRAY names before any library's initialiser. The array is
 * a new one with the boot code in front of what the program had; in a position-independent program its
 * entries need relocations, so .rela.dyn becomes a longer copy with these in front (DT_RELACOUNT counts the
 * relative ones, which stand first). Other dynamic linkers know no such array, and a static program has no
 * dynamic linker: there the boot code is the ELF entry point.
 *
 * A search path becomes DT_RPATH, not DT_RUNPATH: libraries that the program's libraries need are looked
 * for along the first only. Libraries that stand beside the program must win over those that its own
 * DT_RUNPATH or DT_RPATH names, which go behind.
 *
 * New entries take the place of spare ones (GNU's linker leaves some), and of those that dynamic linkers do without.
 * Where there are too few, .dynamic moves, and who looks at it by its name (_DYNAMIC) sees what it was.
 */
#include "elf/private.h"

#include <stdio.h>

enum { new_entries = 12 }; /* at most so many are added */

static Elf64_Dyn *entry(elf_writer *w, int64_t tag)
{
    for (size_t i = 0; i < w->dynamic.count; i++)
        if (w->dynamic.entries[i].d_tag == tag) return &w->dynamic.entries[i];
    return NULL;
}

static uint64_t value_of(elf_writer *w, int64_t tag)
{
    const Elf64_Dyn *d = entry(w, tag);
    return d ? d->d_un.d_val : 0;
}

static void set_value(elf_writer *w, int64_t tag, uint64_t value)
{
    Elf64_Dyn *d = entry(w, tag);
    if (!d) {
        d = &w->dynamic.entries[w->dynamic.count++];
        d->d_tag = tag;
    }
    d->d_un.d_val = value;
}

static void drop(elf_writer *w, int64_t tag)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->dynamic.count; i++)
        if (w->dynamic.entries[i].d_tag != tag) w->dynamic.entries[kept++] = w->dynamic.entries[i];
    w->dynamic.count = kept;
}

static inl_status read_entries(elf_writer *w, inl_error *e)
{
    const Elf64_Phdr *p = elf_phdr(w, PT_DYNAMIC);
    uint64_t offset, size = p->p_filesz & ~(uint64_t)(sizeof(Elf64_Dyn) - 1);
    if (!elf_file_offset(w, p->p_vaddr, size, &offset))
        return inl_fail(e, INL_ERR_FORMAT, "%s: its dynamic section is not in the file", image_path(w->im));
    w->dynamic.room = size / sizeof(Elf64_Dyn);
    w->dynamic.entries = calloc(w->dynamic.room + new_entries + 1, sizeof(Elf64_Dyn)); /* and the end */
    if (!w->dynamic.entries) return elf_no_memory(w, e);
    memcpy(w->dynamic.entries, w->old + offset, size);
    while (w->dynamic.count < w->dynamic.room && w->dynamic.entries[w->dynamic.count].d_tag != DT_NULL)
        w->dynamic.count++;
    return INL_OK;
}

bool elf_starts_by_preinit(const image *im)
{
    const char *interp = image_interp(im);
    if (!interp) return false;
    const char *slash = strrchr(interp, '/');
    return strncmp(slash ? slash + 1 : interp, "ld-linux", 8) == 0;
}

/* --- the search path --- */

static inl_status set_run_path(elf_writer *w, inl_error *e)
{
    uint64_t strings = value_of(w, DT_STRTAB), size = value_of(w, DT_STRSZ), offset;
    if (!elf_file_offset(w, strings, size, &offset))
        return inl_fail(e, INL_ERR_FORMAT, "%s: its dynamic strings are not in the file", image_path(w->im));
    image_strings old = {(const char *)w->old + offset, size};
    const Elf64_Dyn *before = entry(w, DT_RUNPATH);
    if (!before) before = entry(w, DT_RPATH);
    const char *path = before ? image_string(&old, before->d_un.d_val) : NULL;
    uint64_t at = inl_bytes_here(&w->ro);
    inl_bytes_put(&w->ro, old.text, size);
    inl_bytes_put(&w->ro, w->options->run_path, strlen(w->options->run_path));
    if (path && *path) {
        inl_bytes_put(&w->ro, ":", 1);
        inl_bytes_put(&w->ro, path, strlen(path));
    }
    inl_bytes_put(&w->ro, "", 1);
    drop(w, DT_RUNPATH);
    set_value(w, DT_RPATH, size);
    set_value(w, DT_STRTAB, at);
    set_value(w, DT_STRSZ, inl_bytes_here(&w->ro) - at);
    w->dynamic.changed = true;
    elf_area area = {.name = ".dynstr",
                     .type = SHT_STRTAB,
                     .flags = SHF_ALLOC,
                     .addr = at,
                     .size = inl_bytes_here(&w->ro) - at,
                     .align = 1,
                     .replaces = elf_section_at(w, strings, SHT_STRTAB)};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

/* --- the initialiser --- */

/* What the original's relocations say of the array's word at `addr`, or NULL. */
static bool relocation_of(const uint8_t *relas, uint64_t size, uint64_t addr, Elf64_Rela *out)
{
    for (uint64_t at = 0; size - at >= sizeof *out; at += sizeof *out) {
        memcpy(out, relas + at, sizeof *out);
        if (out->r_offset == addr) return true;
    }
    return false;
}

typedef struct preinit {
    const uint8_t *relas; /* the original's */
    uint64_t rela_size;
    uint64_t array, count; /* the original's */
    const uint8_t *words;
    Elf64_Rela *extra; /* not relative; of the original's words */
    size_t extra_count;
} preinit;

/* Entry `slot` of the new array: its word, and its relocation, whose offset is from the array for now. */
static void put_word(elf_writer *w, uint64_t slot, uint64_t value)
{
    inl_bytes_number(&w->rw, value, 8);
    if (w->header.e_type != ET_DYN) return;
    Elf64_Rela rela = {slot * 8, ELF64_R_INFO(0, w->isa->relative_type), (int64_t)value};
    inl_bytes_put(&w->ro, &rela, sizeof rela);
    w->dynamic.own_relas++;
}

static void put_old_words(elf_writer *w, preinit *p)
{
    for (uint64_t i = 0; i < p->count; i++) {
        Elf64_Rela rela;
        uint64_t value;
        memcpy(&value, p->words + 8 * i, 8);
        if (!relocation_of(p->relas, p->rela_size, p->array + 8 * i, &rela)) {
            put_word(w, i + 1, value); /* relocated by DT_RELR, or not at all */
        } else if (ELF64_R_TYPE(rela.r_info) == w->isa->relative_type) {
            put_word(w, i + 1, (uint64_t)rela.r_addend);
        } else {
            inl_bytes_number(&w->rw, value, 8);
            rela.r_offset = 8 * (i + 1);
            p->extra[p->extra_count++] = rela;
        }
    }
}

/* Some linkers count the PLT's relocations into DT_RELASZ as well; handled twice they would do harm. */
static void copy_relas(elf_writer *w, const preinit *p)
{
    uint64_t from = value_of(w, DT_RELA), plt = value_of(w, DT_JMPREL), plt_size = value_of(w, DT_PLTRELSZ);
    for (uint64_t at = 0; p->rela_size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
        if (plt_size && from + at >= plt && from + at - plt < plt_size) continue;
        inl_bytes_put(&w->ro, p->relas + at, sizeof(Elf64_Rela));
    }
}

static inl_status add_initialiser(elf_writer *w, preinit *p, inl_error *e)
{
    uint64_t rela = value_of(w, DT_RELA), section = elf_section_at(w, rela, SHT_RELA);
    inl_bytes_align(&w->ro, 8);
    w->dynamic.rela_at = w->ro.size;
    put_word(w, 0, w->boot.addr + w->options->carry->init_at);
    put_old_words(w, p);
    w->dynamic.preinit = w->dynamic.changed = true;
    set_value(w, DT_PREINIT_ARRAYSZ, w->rw.size);
    if (w->dynamic.own_relas == 0 && p->extra_count == 0) return INL_OK;
    copy_relas(w, p);
    inl_bytes_put(&w->ro, p->extra, p->extra_count * sizeof *p->extra);
    w->dynamic.rela_size = w->ro.size - w->dynamic.rela_at;
    set_value(w, DT_RELA, w->ro.addr + w->dynamic.rela_at);
    set_value(w, DT_RELASZ, w->dynamic.rela_size);
    set_value(w, DT_RELAENT, sizeof(Elf64_Rela));
    if (entry(w, DT_RELACOUNT)) set_value(w, DT_RELACOUNT, value_of(w, DT_RELACOUNT) + w->dynamic.own_relas);
    w->dynamic.extra_relas = p->extra_count;
    elf_area area = {.name = ".rela.dyn",
                     .type = SHT_RELA,
                     .flags = SHF_ALLOC,
                     .addr = w->ro.addr + w->dynamic.rela_at,
                     .size = w->dynamic.rela_size,
                     .align = 8,
                     .entry_size = sizeof(Elf64_Rela),
                     .replaces = (uint32_t)section};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

static inl_status begin_preinit(elf_writer *w, inl_error *e)
{
    preinit p = {.rela_size = value_of(w, DT_RELASZ),
                 .array = value_of(w, DT_PREINIT_ARRAY),
                 .count = value_of(w, DT_PREINIT_ARRAYSZ) / 8};
    uint64_t offset = 0;
    if (p.rela_size && !elf_file_offset(w, value_of(w, DT_RELA), p.rela_size, &offset))
        return inl_fail(e, INL_ERR_FORMAT, "%s: its relocations are not in the file", image_path(w->im));
    p.relas = w->old + offset;
    offset = 0;
    if (p.count && !elf_file_offset(w, p.array, p.count * 8, &offset))
        return inl_fail(e, INL_ERR_FORMAT, "%s: its initialisers are not in the file", image_path(w->im));
    p.words = w->old + offset;
    if (p.count > 1000) /* each is looked for among the relocations */
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: too many initialisers", image_path(w->im));
    p.extra = calloc(p.count + 1, sizeof *p.extra);
    if (!p.extra) return elf_no_memory(w, e);
    inl_status st = add_initialiser(w, &p, e);
    free(p.extra);
    return st;
}

static inl_status add_names(elf_writer *w, inl_error *e)
{
    elf_dynamic_places to;
    inl_status st = elf_dynamic_names(w, &to, e);
    if (st || !to.symtab) return st;
    w->dynamic.symbols_at = to.symtab - w->ro.addr;
    set_value(w, DT_SYMTAB, to.symtab);
    set_value(w, DT_GNU_HASH, to.gnu_hash);
    if (to.versym) set_value(w, DT_VERSYM, to.versym);
    w->dynamic.changed = true;
    return INL_OK;
}

/* Tables that make room at the file's front, unless they have been replaced by now. */
static void move_tables(elf_writer *w)
{
    for (size_t i = 0; i < w->dynamic.count; i++) {
        Elf64_Dyn *d = &w->dynamic.entries[i];
        uint64_t to = elf_front_move_table(w, d->d_tag, d->d_un.d_ptr);
        if (to == d->d_un.d_ptr) continue;
        d->d_un.d_ptr = to;
        w->dynamic.changed = true;
        if (d->d_tag == DT_SYMTAB) w->dynamic.symbols_at = to - w->ro.addr;
    }
}

/* A library that asks to be initialised before all others (-z initfirst) would be before the tool, which its moved code
 * needs. It is initialised before those that need it, as any other is. */
static void come_in_turn(elf_writer *w)
{
    Elf64_Dyn *d = entry(w, DT_FLAGS_1);
    if (!d || !(d->d_un.d_val & DF_1_INITFIRST)) return;
    d->d_un.d_val &= ~(uint64_t)DF_1_INITFIRST;
    w->dynamic.changed = true;
}

inl_status elf_dynamic_begin(elf_writer *w, inl_error *e)
{
    bool starts = w->options->carry && elf_starts_by_preinit(w->im);
    if (!elf_phdr(w, PT_DYNAMIC)) return INL_OK;
    inl_status st = read_entries(w, e);
    if (!st) st = add_names(w, e);
    /* What relocates itself has no use for a path, and glibc's ends where it finds one then. */
    if (!st && w->options->run_path && !image_is_static(w->im)) st = set_run_path(w, e);
    if (!st && w->options->has_tool) come_in_turn(w);
    if (!st && starts) st = begin_preinit(w, e);
    if (!st) move_tables(w);
    return st;
}

static void aim_relocation(elf_writer *w, size_t at)
{
    Elf64_Rela rela;
    memcpy(&rela, w->ro.data + at, sizeof rela);
    rela.r_offset += w->rw.addr;
    inl_bytes_set(&w->ro, at, &rela, sizeof rela);
}

static inl_status end_preinit(elf_writer *w, inl_error *e)
{
    uint64_t old = value_of(w, DT_PREINIT_ARRAY);
    size_t from = w->dynamic.rela_at, to = from + w->dynamic.rela_size;
    for (size_t i = 0; i < w->dynamic.own_relas; i++) aim_relocation(w, from + i * sizeof(Elf64_Rela));
    for (size_t i = 0; i < w->dynamic.extra_relas; i++) aim_relocation(w, to - (i + 1) * sizeof(Elf64_Rela));
    set_value(w, DT_PREINIT_ARRAY, w->rw.addr);
    elf_area area = {.name = ".preinit_array",
                     .type = SHT_PREINIT_ARRAY,
                     .flags = SHF_ALLOC | SHF_WRITE,
                     .addr = w->rw.addr,
                     .size = w->rw.size,
                     .align = 8,
                     .entry_size = 8,
                     .replaces = old ? elf_section_at(w, old, SHT_PREINIT_ARRAY) : 0};
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}

/* --- room --- */

static bool is_spare(elf_writer *w, int64_t tag)
{
    const Elf64_Dyn *d = entry(w, tag);
    if (!d) return false;
    switch (tag) {
    case DT_RELACOUNT: return true; /* relative ones are recognised among all others too */
    case DT_FLAGS: return d->d_un.d_val == DF_BIND_NOW && value_of(w, DT_FLAGS_1) & DF_1_NOW;
    case DT_FLAGS_1: return d->d_un.d_val == DF_1_PIE; /* says what the program's interpreter says */
    case DT_VERNEEDNUM: return true;                   /* the list has an end; sections tell it as well */
    case DT_SYMENT: return true;                       /* there is one size only */
    default: return false;
    }
}

static void make_room(elf_writer *w)
{
    static const int64_t tags[] = {DT_RELACOUNT, DT_FLAGS, DT_FLAGS_1, DT_VERNEEDNUM, DT_SYMENT};
    enum { tag_count = sizeof tags / sizeof *tags };
    size_t spare = 0;
    for (size_t i = 0; i < tag_count; i++) spare += is_spare(w, tags[i]);
    if (w->dynamic.count >= w->dynamic.room + spare) return;
    for (size_t i = 0; i < tag_count && w->dynamic.count >= w->dynamic.room; i++)
        if (is_spare(w, tags[i])) drop(w, tags[i]);
}

inl_status elf_dynamic_end(elf_writer *w, inl_error *e)
{
    if (!w->dynamic.changed) return INL_OK;
    if (w->ro.failed || w->rw.failed) return elf_no_memory(w, e);
    inl_status st = w->dynamic.preinit ? end_preinit(w, e) : INL_OK;
    if (st) return st;
    const Elf64_Phdr *p = elf_phdr(w, PT_DYNAMIC);
    make_room(w);
    memset(w->dynamic.entries + w->dynamic.count, 0,
           (w->dynamic.room + new_entries - w->dynamic.count) * sizeof(Elf64_Dyn));
    if (w->dynamic.count < w->dynamic.room) {
        uint64_t offset;
        elf_file_offset(w, p->p_vaddr, 0, &offset);
        bool good = elf_add_edit(w, offset, w->dynamic.entries, w->dynamic.room * sizeof(Elf64_Dyn));
        return good ? INL_OK : elf_no_memory(w, e);
    }
    elf_area area = {.name = ".dynamic",
                     .type = SHT_DYNAMIC,
                     .flags = SHF_ALLOC | SHF_WRITE,
                     .addr = inl_bytes_here(&w->rw),
                     .size = (w->dynamic.count + 1) * sizeof(Elf64_Dyn),
                     .align = 8,
                     .entry_size = sizeof(Elf64_Dyn),
                     .replaces = elf_section_at(w, p->p_vaddr, SHT_DYNAMIC)};
    inl_bytes_put(&w->rw, w->dynamic.entries, area.size);
    return elf_add_area(w, area) ? INL_OK : elf_no_memory(w, e);
}
