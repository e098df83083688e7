/* PT_DYNAMIC and the dynamic symbol table, found the way a dynamic linker finds them: without
 * section headers. The number of symbols is not stored anywhere; DT_HASH implies it, and in
 * DT_GNU_HASH the end of the last chain does, unless nothing is exported. */
#include "image/file.h"

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR   36
#endif

static bool read_u32(const image *im, uint64_t addr, uint32_t *out) { return image_read(im, addr, out, sizeof *out); }

/* In memory the dynamic linker may have written run-time addresses over the link-time ones. */
static uint64_t link_time(const image *im, uint64_t addr)
{
    const uint8_t *bytes;
    if (!im->in_memory || image_bytes(im, addr, &bytes)) return addr;
    return addr - (im->mapped_at - im->low);
}

static void note_entry(const image *im, image_dynamic *d, const Elf64_Dyn *entry)
{
    uint64_t v = entry->d_un.d_val;
    switch (entry->d_tag) {
    case DT_SYMTAB: d->symtab = link_time(im, v); break;
    case DT_STRTAB: d->strtab = link_time(im, v); break;
    case DT_STRSZ: d->strtab_size = v; break;
    case DT_HASH: d->hash = link_time(im, v); break;
    case DT_GNU_HASH: d->gnu_hash = link_time(im, v); break;
    case DT_VERSYM: d->versym = link_time(im, v); break;
    case DT_RELA: d->rela = link_time(im, v); break;
    case DT_RELASZ: d->rela_size = v; break;
    case DT_JMPREL: d->jmprel = link_time(im, v); break;
    case DT_PLTRELSZ: d->jmprel_size = v; break;
    case DT_RELR: d->relr = link_time(im, v); break;
    case DT_RELRSZ: d->relr_size = v; break;
    case DT_INIT_ARRAY: d->init_array = link_time(im, v); break;
    case DT_INIT_ARRAYSZ: d->init_array_size = v; break;
    case DT_FINI_ARRAY: d->fini_array = link_time(im, v); break;
    case DT_FINI_ARRAYSZ: d->fini_array_size = v; break;
    case DT_PREINIT_ARRAY: d->preinit_array = link_time(im, v); break;
    case DT_PREINIT_ARRAYSZ: d->preinit_array_size = v; break;
    case DT_INIT: d->init = link_time(im, v); break;
    case DT_FINI: d->fini = link_time(im, v); break;
    case DT_PLTGOT: d->got = link_time(im, v); break;
    case DT_SONAME: d->has_soname = true; break;
    case DT_FLAGS_1: d->pie = v & DF_1_PIE; break;
    default: break;
    }
}

const image_dynamic *image_dynamic_info(image *im)
{
    if (im->has_dynamic) return &im->dynamic;
    im->has_dynamic = true;
    const uint8_t *bytes;
    size_t have = image_bytes(im, im->dynamic_header.p_vaddr, &bytes);
    if (have > im->dynamic_header.p_memsz) have = im->dynamic_header.p_memsz;
    for (size_t at = 0; have - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        memcpy(&entry, bytes + at, sizeof entry);
        if (entry.d_tag == DT_NULL) break;
        im->dynamic.present = true;
        note_entry(im, &im->dynamic, &entry);
    }
    return &im->dynamic;
}

uint64_t image_got(image *im) { return image_dynamic_info(im)->got; }

static uint64_t count_by_gnu_hash(const image *im, uint64_t table)
{
    uint32_t buckets, first, bloom, last = 0;
    if (!read_u32(im, table, &buckets) || !read_u32(im, table + 4, &first) || !read_u32(im, table + 8, &bloom))
        return 0;
    uint64_t bucket = table + 16 + (uint64_t)bloom * 8;
    const uint8_t *bytes;
    size_t have = image_bytes(im, bucket, &bytes);
    if (have / 4 < buckets) return 0;
    for (uint32_t i = 0; i < buckets; i++) {
        uint32_t start;
        memcpy(&start, bytes + (size_t)i * 4, 4);
        if (start > last) last = start;
    }
    if (last < first) return 0; /* nothing is defined, and `first` may be anything */
    uint64_t chain = (uint64_t)buckets * 4;
    for (uint64_t i = last;; i++) {
        uint64_t at = chain + (i - first) * 4;
        uint32_t hash;
        if (at + 4 > have) return 0;
        memcpy(&hash, bytes + at, 4);
        if (hash & 1) return i + 1;
    }
}

static uint64_t count_symbols(image *im, const image_dynamic *d)
{
    uint32_t chains;
    uint64_t count = 0;
    if (d->hash && read_u32(im, d->hash + 4, &chains)) count = chains;
    if (count == 0 && d->gnu_hash) count = count_by_gnu_hash(im, d->gnu_hash);
    if (count) return count;
    Elf64_Shdr s;
    if (image_view_find(&im->view, SHT_DYNSYM, NULL, &s) && s.sh_addr == d->symtab)
        return s.sh_size / sizeof(Elf64_Sym);
    /* Linkers place the strings behind the symbols. */
    return d->strtab > d->symtab ? (d->strtab - d->symtab) / sizeof(Elf64_Sym) : 0;
}

bool image_find_dynsym(image *im, image_symtab *out)
{
    const image_dynamic *d = image_dynamic_info(im);
    const uint8_t *text;
    *out = (image_symtab){.source = IMAGE_PROC_DYNSYM};
    if (!d->symtab || !d->strtab) return false;
    size_t have = image_bytes(im, d->symtab, &out->symbols) / sizeof(Elf64_Sym);
    uint64_t count = count_symbols(im, d);
    out->count = count < have ? (size_t)count : have;
    size_t text_size = image_bytes(im, d->strtab, &text);
    if (text_size > d->strtab_size) text_size = d->strtab_size;
    out->strings = (image_strings){(const char *)text, text_size};
    if (d->versym && image_bytes(im, d->versym, &out->versions) / 2 < out->count) out->versions = NULL;
    return out->count > 0 && text_size > 0;
}

/* A library may name an interpreter (libc.so.6 does), but then it has a name of its own, too. What can be entered and
 * has no dynamic section is none: nothing could link with it (packed programs that may lie anywhere are such). */
bool image_is_program(image *im)
{
    const image_dynamic *d = image_dynamic_info(im);
    if (im->view.header.e_type == ET_EXEC || d->pie) return true;
    if (!d->present && im->view.header.e_entry) return true;
    return im->interp && !d->has_soname;
}

bool image_is_static(image *im) { return image_is_program(im) && !im->interp; }
