/* The bytes of an ELF file: header, section table, string tables and notes, every access checked. */
#include "image/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const uint8_t *image_view_bytes(const image_view *v, uint64_t offset, uint64_t size)
{
    return offset <= v->size && size <= v->size - offset ? v->data + offset : NULL;
}

/* Sections are a convenience: a table that does not fit the file counts as absent. */
static void find_sections(image_view *v)
{
    const Elf64_Ehdr *h = &v->header;
    if (h->e_shoff == 0 || h->e_shentsize != sizeof(Elf64_Shdr)) return;
    const uint8_t *first = image_view_bytes(v, h->e_shoff, sizeof(Elf64_Shdr));
    if (!first) return;
    Elf64_Shdr zero; /* holds the numbers that do not fit the header */
    memcpy(&zero, first, sizeof zero);
    const bool is_first = zero.sh_type == SHT_NULL && !zero.sh_flags && !zero.sh_addr && !zero.sh_offset;
    if (!is_first) return; /* something else lies there */
    uint64_t count = h->e_shnum ? h->e_shnum : zero.sh_size;
    if (count > (v->size - h->e_shoff) / sizeof(Elf64_Shdr)) return;
    v->section_count = (uint32_t)count;
    v->section_names = h->e_shstrndx == SHN_XINDEX ? zero.sh_link : h->e_shstrndx;
}

/* "#! /bin/sh -e" */
static inl_status refuse_script(const char *text, size_t size, const char *path, inl_error *e)
{
    size_t from = 2, n = 0;
    while (from < size && text[from] == ' ') from++;
    while (from + n < size && n < 200 && !strchr(" \t\n", text[from + n])) n++;
    return inl_fail(e, INL_ERR_FORMAT, "%s: not an ELF file but a script: the program is its interpreter, %.*s", path,
                    (int)n, text + from);
}

inl_status image_view_open(image_view *v, const void *data, size_t size, const char *path, inl_error *e)
{
    Elf64_Ehdr *h = &v->header;
    *v = (image_view){.data = data, .size = size};
    if (size > 2 && memcmp(data, "#!", 2) == 0) return refuse_script(data, size, path, e);
    if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG) != 0)
        return inl_fail(e, INL_ERR_FORMAT, "%s: not an ELF file", path);
    if (size < EI_NIDENT) return inl_fail(e, INL_ERR_FORMAT, "%s: cut short", path);
    const uint8_t *ident = data;
    if (ident[EI_CLASS] == ELFCLASS32)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: a 32-bit file, only 64-bit ones are supported", path);
    if (ident[EI_CLASS] != ELFCLASS64)
        return inl_fail(e, INL_ERR_FORMAT, "%s: unknown ELF class %u", path, ident[EI_CLASS]);
    if (ident[EI_DATA] == ELFDATA2MSB)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: big-endian files are not supported", path);
    if (ident[EI_DATA] != ELFDATA2LSB)
        return inl_fail(e, INL_ERR_FORMAT, "%s: unknown byte order %u", path, ident[EI_DATA]);
    if (size < sizeof *h) return inl_fail(e, INL_ERR_FORMAT, "%s: cut short", path);
    memcpy(h, data, sizeof *h);
    find_sections(v);
    return INL_OK;
}

bool image_view_section(const image_view *v, uint32_t i, Elf64_Shdr *out)
{
    if (i >= v->section_count) return false;
    memcpy(out, v->data + v->header.e_shoff + (uint64_t)i * sizeof *out, sizeof *out);
    return true;
}

bool image_view_section_bytes(const image_view *v, const Elf64_Shdr *s, const uint8_t **out)
{
    if (s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED) return false;
    *out = image_view_bytes(v, s->sh_offset, s->sh_size);
    return *out != NULL;
}

const char *image_string(const image_strings *s, uint64_t offset)
{
    if (offset >= s->size) return NULL;
    if (s->text[s->size - 1] != 0 && !memchr(s->text + offset, 0, s->size - offset)) return NULL;
    return s->text + offset;
}

const char *image_view_section_name(const image_view *v, const Elf64_Shdr *section)
{
    Elf64_Shdr names;
    const uint8_t *text;
    if (v->section_names == 0 || !image_view_section(v, v->section_names, &names) ||
        !image_view_section_bytes(v, &names, &text))
        return "";
    image_strings s = {(const char *)text, names.sh_size};
    const char *name = image_string(&s, section->sh_name);
    return name ? name : "";
}

bool image_view_find(const image_view *v, uint32_t type, const char *name, Elf64_Shdr *out)
{
    for (uint32_t i = 1; i < v->section_count; i++) {
        image_view_section(v, i, out);
        if (type != SHT_NULL && out->sh_type != type) continue;
        if (!name || strcmp(image_view_section_name(v, out), name) == 0) return true;
    }
    return false;
}

size_t image_find_build_id(const uint8_t *notes, size_t size, uint8_t id[64])
{
    size_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr n;
        memcpy(&n, notes + at, sizeof n);
        at += sizeof n;
        uint64_t name_size = ((uint64_t)n.n_namesz + 3) & ~3ull;
        uint64_t desc_size = ((uint64_t)n.n_descsz + 3) & ~3ull;
        if (name_size > size - at || n.n_descsz > size - at - name_size) return 0;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 && n.n_descsz > 0 &&
            n.n_descsz <= 64) {
            memcpy(id, notes + at + name_size, n.n_descsz);
            return n.n_descsz;
        }
        if (desc_size > size - at - name_size) return 0;
        at += name_size + desc_size;
    }
    return 0;
}

size_t image_view_build_id(const image_view *v, uint8_t id[64])
{
    for (uint32_t i = 1; i < v->section_count; i++) {
        Elf64_Shdr s;
        const uint8_t *bytes;
        image_view_section(v, i, &s);
        if (s.sh_type != SHT_NOTE || !image_view_section_bytes(v, &s, &bytes)) continue;
        size_t size = image_find_build_id(bytes, s.sh_size, id);
        if (size) return size;
    }
    return 0;
}

/* Only regular files: opening a device or a FIFO could block or have an effect. */
void *image_map_file(const char *path, size_t *size)
{
    struct stat st;
    void *map = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return NULL;
    int cause = 0;
    if (fstat(fd, &st) != 0) {
        cause = errno;
    } else if (!S_ISREG(st.st_mode)) {
        cause = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    } else if (st.st_size <= 0) {
        cause = ENOEXEC;
    } else {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) cause = errno, map = NULL;
        *size = (size_t)st.st_size;
    }
    close(fd);
    errno = cause;
    return map;
}

bool image_view_make_sections_writable(const image_view *v)
{
    if (v->section_count == 0) return false;
    uintptr_t mask = (uintptr_t)getpagesize() - 1;
    uintptr_t low = (uintptr_t)(v->data + v->header.e_shoff) & ~mask;
    uintptr_t high = (uintptr_t)(v->data + v->header.e_shoff) + (uintptr_t)v->section_count * sizeof(Elf64_Shdr);
    return mprotect((void *)low, high - low, PROT_READ | PROT_WRITE) == 0;
}
