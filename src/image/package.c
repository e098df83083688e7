/* Packages of split debug information (DWARF 5, 7.3.5; version 2 of GNU's for DWARF 4).
 *
 *     .debug_cu_index   a hash table from units' identities to rows; a row has, for each kind of section, where in the
 *                       package's section the unit's own part is
 *     .debug_*.dwo      the parts, one behind the other; .debug_str.dwo is of all units
 *
 * libdw as it is here knows .dwo files and not packages, and finds these by their names alone. So a unit's parts are
 * put together as the .dwo file that they were, in memory (with the strings that it has and no others), and for as long
 * as libdw looks for it the unit says that this is its file: the name's offset is that of a string behind all others,
 * the path of the memory's descriptor. For that the sections in question are copies from the beginning. */
#include "image/package.h"
#include "base/bytes.h"

#include <dwarf.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* clang-format off */
enum { INFO, ABBREV, LINE, LOC, LOCLISTS, RNGLISTS, OFFSETS, STRINGS, PARTS, INDEX = PARTS, SECTIONS };
/* clang-format on */
enum { OF_INFO, OF_STRINGS, OF_OFFSETS, COPIES }; /* sections of the program's that are copies */
enum { SLOT = 32, COLUMNS = 8, NO_PART = 255 };

static const char *const names[SECTIONS] = {".debug_info.dwo",        ".debug_abbrev.dwo",   ".debug_line.dwo",
                                            ".debug_loc.dwo",         ".debug_loclists.dwo", ".debug_rnglists.dwo",
                                            ".debug_str_offsets.dwo", ".debug_str.dwo",      ".debug_cu_index"};
static const char *const copied[COPIES] = {".debug_info", ".debug_str", ".debug_str_offsets"};

typedef struct bytes {
    const uint8_t *at;
    size_t size;
} bytes;

struct image_package {
    void *map;
    size_t mapped;
    Elf *elf;
    bytes sections[SECTIONS];
    uint16_t machine;
    uint32_t version, columns, units, slots;
    uint8_t *copies[COPIES];
    size_t sizes[COPIES]; /* the strings' without the slot */
};

/* --- sections --- */

static Elf_Scn *section(Elf *elf, const char *name)
{
    size_t strings;
    GElf_Shdr head;
    if (elf_getshdrstrndx(elf, &strings)) return NULL;
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
        const char *its = gelf_getshdr(s, &head) ? elf_strptr(elf, strings, head.sh_name) : NULL;
        if (!its || strcmp(its, name) || head.sh_type == SHT_NOBITS) continue;
        if (head.sh_flags & SHF_COMPRESSED && elf_compress(s, 0, 0) < 0) return NULL;
        return s;
    }
    return NULL;
}

static Elf_Data *section_data(Elf *elf, const char *name) { return elf_getdata(section(elf, name), NULL); }

static uint32_t word(const uint8_t *at)
{
    uint32_t w;
    memcpy(&w, at, sizeof w);
    return w;
}

/* Header, table of slots, their rows, the columns' kinds, where parts are, how large. */
static bool read_index(image_package *p)
{
    enum { HEADER = 16 };
    const bytes *i = &p->sections[INDEX];
    if (i->size < HEADER) return false;
    p->version = word(i->at) & 0xffff; /* DWARF 5 has two bytes of it, and padding */
    p->columns = word(i->at + 4), p->units = word(i->at + 8), p->slots = word(i->at + 12);
    bool known = (p->version == 2 || p->version == 5) && p->columns && p->columns <= COLUMNS && p->slots;
    if (!known || p->slots & (p->slots - 1) || p->units > p->slots || p->slots > i->size) return false;
    uint64_t rows = 1 + 2 * (uint64_t)p->units;
    return HEADER + 12ull * p->slots + 4 * p->columns * rows <= i->size;
}

/* The row of a unit, from 1 on; 0: none. */
static uint32_t row_of(const image_package *p, uint64_t id)
{
    const uint8_t *table = p->sections[INDEX].at + 16, *rows = table + 8ull * p->slots;
    uint32_t mask = p->slots - 1, slot = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;
    for (uint32_t tries = 0; tries < p->slots; tries++, slot = (slot + step) & mask) {
        uint64_t there;
        uint32_t row = word(rows + 4ull * slot);
        memcpy(&there, table + 8ull * slot, sizeof there);
        if (!row) return 0;
        if (there == id) return row <= p->units ? row : 0;
    }
    return 0;
}

static unsigned part_of(const image_package *p, uint32_t kind)
{
    static const uint8_t parts[2][COLUMNS + 1] = {
        {NO_PART, INFO, NO_PART, ABBREV, LINE, LOC, OFFSETS, NO_PART, NO_PART},
        {NO_PART, INFO, NO_PART, ABBREV, LINE, LOCLISTS, OFFSETS, NO_PART, RNGLISTS}};
    return kind <= COLUMNS ? parts[p->version == 5][kind] : NO_PART;
}

static bool parts_of(const image_package *p, uint32_t row, bytes out[PARTS])
{
    const uint8_t *kinds = p->sections[INDEX].at + 16 + 12ull * p->slots;
    const uint8_t *offsets = kinds + 4ull * p->columns * row, *sizes = offsets + 4ull * p->columns * p->units;
    memset(out, 0, PARTS * sizeof *out);
    for (uint32_t c = 0; c < p->columns; c++) {
        unsigned k = part_of(p, word(kinds + 4 * c));
        uint32_t at = word(offsets + 4 * c), size = word(sizes + 4 * c);
        if (k == NO_PART || !size) continue;
        if (at > p->sections[k].size || size > p->sections[k].size - at) return false;
        out[k] = (bytes){p->sections[k].at + at, size};
    }
    return out[INFO].size && out[ABBREV].size;
}

/* --- the file that it was --- */

/* The unit's strings; its offsets become those of them. */
static bool put_strings(const image_package *p, uint8_t *offsets, size_t size, inl_bytes *out)
{
    const bytes *all = &p->sections[STRINGS];
    for (size_t i = p->version == 5 ? 8 : 0; i + 4 <= size; i += 4) {
        uint32_t at = word(offsets + i), to = (uint32_t)out->size;
        size_t length = at < all->size ? strnlen((const char *)all->at + at, all->size - at) : 0;
        if (at >= all->size || at + length == all->size) return false;
        memcpy(offsets + i, &to, sizeof to);
        inl_bytes_put(out, all->at + at, length + 1);
    }
    return !out->failed;
}

static bool put_file(const image_package *p, const bytes parts[PARTS], inl_bytes *out)
{
    Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_REL,
                       .e_machine = p->machine,
                       .e_version = EV_CURRENT,
                       .e_ehsize = sizeof head,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = PARTS + 2,
                       .e_shstrndx = PARTS + 1};
    Elf64_Shdr s[PARTS + 2] = {0};
    inl_bytes text = {0};
    inl_bytes_put(out, &head, sizeof head);
    inl_bytes_put(&text, "", 1);
    for (unsigned k = 0; k < PARTS; k++) {
        s[k + 1] = (Elf64_Shdr){.sh_name = (uint32_t)text.size,
                                .sh_type = SHT_PROGBITS,
                                .sh_flags = SHF_EXCLUDE,
                                .sh_offset = out->size,
                                .sh_size = parts[k].size,
                                .sh_addralign = 1};
        inl_bytes_put(&text, names[k], strlen(names[k]) + 1);
        inl_bytes_put(out, parts[k].at, parts[k].size);
    }
    s[PARTS + 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = out->size, .sh_size = text.size, .sh_addralign = 1};
    inl_bytes_put(out, text.data, text.size);
    inl_bytes_align(out, 8);
    head.e_shoff = out->size;
    inl_bytes_put(out, s, sizeof s);
    if (!out->failed) inl_bytes_set(out, 0, &head, sizeof head);
    bool good = !out->failed && !text.failed;
    inl_bytes_free(&text);
    return good;
}

/* A descriptor of the file; -1: there can be none. */
static int file_of(const image_package *p, uint32_t row)
{
    bytes parts[PARTS];
    inl_bytes strings = {0}, file = {0};
    int fd = -1;
    uint8_t *offsets = parts_of(p, row, parts) ? malloc(parts[OFFSETS].size + 1) : NULL;
    if (offsets && parts[OFFSETS].size) memcpy(offsets, parts[OFFSETS].at, parts[OFFSETS].size);
    bool good = offsets && put_strings(p, offsets, parts[OFFSETS].size, &strings);
    if (good) {
        parts[OFFSETS].at = offsets;
        parts[STRINGS] = (bytes){strings.data, strings.size};
        good = put_file(p, parts, &file);
    }
    if (good) fd = memfd_create("inlay-dwo", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, file.data, file.size) != (ssize_t)file.size) {
        close(fd);
        fd = -1;
    }
    free(offsets);
    inl_bytes_free(&strings);
    inl_bytes_free(&file);
    return fd;
}

/* --- as libdw finds it --- */

/* Where it is written which string the unit's name for its file is. NULL: nowhere where it can be changed. */
static uint8_t *name_of(image_package *p, Dwarf_Die *die)
{
    Dwarf_Attribute name, base;
    Dwarf_Word from = 8, k = 0;
    if (!dwarf_attr(die, DW_AT_dwo_name, &name) && !dwarf_attr(die, DW_AT_GNU_dwo_name, &name)) return NULL;
    unsigned form = dwarf_whatform(&name);
    uint8_t *at = name.valp;
    if (form == DW_FORM_strp)
        return p->copies[OF_INFO] && at >= p->copies[OF_INFO] && at < p->copies[OF_INFO] + p->sizes[OF_INFO] ? at
                                                                                                             : NULL;
    if (form == DW_FORM_strx1) k = *at;
    else if (form == DW_FORM_strx2) k = at[0] | (Dwarf_Word)at[1] << 8;
    else return NULL;
    if (dwarf_attr(die, DW_AT_str_offsets_base, &base)) dwarf_formudata(&base, &from);
    bool there = p->copies[OF_OFFSETS] && from + 4 * k + 4 <= p->sizes[OF_OFFSETS];
    return there ? p->copies[OF_OFFSETS] + from + 4 * k : NULL;
}

void image_package_unit(image_package *p, Dwarf_Die *skeleton, uint64_t id, Dwarf_Die *out)
{
    uint32_t row = row_of(p, id), slot = (uint32_t)p->sizes[OF_STRINGS], before;
    uint8_t *name = row ? name_of(p, skeleton) : NULL;
    int fd = name ? file_of(p, row) : -1;
    if (fd < 0) return;
    memcpy(&before, name, sizeof before);
    memcpy(name, &slot, sizeof slot);
    snprintf((char *)p->copies[OF_STRINGS] + slot, SLOT, "/proc/self/fd/%d", fd);
    dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, out, NULL, NULL, NULL);
    memcpy(name, &before, sizeof before);
    close(fd);
}

/* Which of the two libdw takes depends on its release. */
static bool copy_sections(image_package *p, Elf *of)
{
    for (unsigned k = 0; k < COPIES; k++) {
        Elf_Scn *s = section(of, copied[k]);
        Elf_Data *both[] = {elf_getdata(s, NULL), elf_rawdata(s, NULL)};
        if (!both[0] || !both[1] || !both[0]->d_buf) continue;
        p->sizes[k] = both[0]->d_size;
        if (!(p->copies[k] = calloc(1, p->sizes[k] + SLOT))) return false;
        memcpy(p->copies[k], both[0]->d_buf, p->sizes[k]);
        for (unsigned d = 0; d < 2; d++) {
            both[d]->d_buf = p->copies[k];
            both[d]->d_size = p->sizes[k] + (k == OF_STRINGS ? SLOT : 0);
        }
    }
    return p->copies[OF_STRINGS] && p->sizes[OF_STRINGS] < UINT32_MAX;
}

static bool read_package(image_package *p)
{
    p->elf = elf_memory(p->map, p->mapped);
    for (unsigned k = 0; p->elf && k < SECTIONS; k++) {
        const Elf_Data *d = section_data(p->elf, names[k]);
        if (d && d->d_buf) p->sections[k] = (bytes){d->d_buf, d->d_size};
    }
    return p->elf && read_index(p);
}

image_package *image_package_open(const image *im, Elf *of)
{
    char path[4096];
    size_t size = 0;
    int n = snprintf(path, sizeof path, "%s.dwp", im->path);
    void *map = !im->in_memory && n < (int)sizeof path ? image_map_file(path, &size) : NULL;
    image_package *p = map ? calloc(1, sizeof *p) : NULL;
    if (!p) {
        if (map) munmap(map, size);
        return NULL;
    }
    *p = (image_package){.map = map, .mapped = size, .machine = im->view.header.e_machine};
    /* To decompress a section, libelf changes its header. */
    if (mprotect(map, size, PROT_READ | PROT_WRITE) == 0 && read_package(p) && copy_sections(p, of)) return p;
    image_package_free(p);
    return NULL;
}

void image_package_free(image_package *p)
{
    if (!p) return;
    if (p->elf) elf_end(p->elf);
    for (unsigned k = 0; k < COPIES; k++) free(p->copies[k]);
    munmap(p->map, p->mapped);
    free(p);
}
