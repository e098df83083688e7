/* Opening an image: its header, its program headers and what they lead to directly.
 *
 * A file is mapped read-only and its descriptor closed at once, so that an open image costs address
 * space and no descriptor. The file is expected not to be cut short while it is mapped (the kernel
 * refuses writing to a program that runs; package managers replace files rather than write them).
 *
 * An image in memory is laid out by address: the byte of link-time address A stands at A - low. In
 * the vdso offsets and addresses agree, so its section headers work as well.
 */
#include "image/file.h"
#include "base/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { max_segments = 256 }; /* real files have up to a dozen */

size_t image_bytes(const image *im, uint64_t addr, const uint8_t **out)
{
    for (size_t i = 0; i < im->segments.count; i++) {
        const image_segment *s = &im->segments.items[i];
        if (addr < s->addr || addr - s->addr >= s->mem_size) continue;
        uint64_t delta = addr - s->addr, have, start;
        if (im->in_memory) {
            start = addr - im->low;
            have = s->mem_size - delta;
        } else {
            if (delta >= s->file_size) continue;
            start = s->file_offset + delta;
            have = s->file_size - delta;
        }
        if (start >= im->view.size) continue;
        if (have > im->view.size - start) have = im->view.size - start;
        *out = im->view.data + start;
        return have;
    }
    return 0;
}

bool image_read(const image *im, uint64_t addr, void *out, size_t size)
{
    const uint8_t *bytes;
    if (image_bytes(im, addr, &bytes) < size) return false;
    memcpy(out, bytes, size);
    return true;
}

bool image_executable(const image *im, uint64_t addr, uint64_t *end)
{
    for (size_t i = 0; i < im->segments.count; i++) {
        const image_segment *s = &im->segments.items[i];
        if (!s->exec || addr < s->addr || addr - s->addr >= s->mem_size) continue;
        if (end) *end = s->addr + s->mem_size;
        return true;
    }
    return false;
}

static inl_status add_segment(image *im, const Elf64_Phdr *p, inl_error *e)
{
    image_segment s = {.addr = p->p_vaddr,
                       .mem_size = p->p_memsz,
                       .file_offset = p->p_offset,
                       .file_size = p->p_filesz,
                       .alignment = p->p_align,
                       .read = p->p_flags & PF_R,
                       .write = p->p_flags & PF_W,
                       .exec = p->p_flags & PF_X};
    if (s.file_size > s.mem_size) s.file_size = s.mem_size;
    if (s.addr + s.mem_size < s.addr || s.file_offset + s.file_size < s.file_offset)
        return inl_fail_at(e, INL_ERR_FORMAT, s.addr, "%s: a segment wraps around", im->path);
    if (s.mem_size == 0) return INL_OK;
    if (im->segments.count == max_segments)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: more than %d segments", im->path, max_segments);
    if (!inl_vec_push(&im->segments, s)) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", im->path);
    return INL_OK;
}

static int by_addr(const void *a, const void *b)
{
    const image_segment *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static inl_status read_segments(image *im, const uint8_t *table, inl_error *e)
{
    const Elf64_Ehdr *h = &im->view.header;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, table + i * sizeof p, sizeof p);
        if (p.p_type == PT_DYNAMIC) im->dynamic_header = p;
        if (p.p_type == PT_TLS) im->tls_header = p;
        if (p.p_type == PT_GNU_EH_FRAME) im->unwind_header = p;
        if (p.p_type != PT_LOAD) continue;
        inl_status st = add_segment(im, &p, e);
        if (st) return st;
    }
    if (im->segments.count == 0) return inl_fail(e, INL_ERR_FORMAT, "%s: nothing to load in it", im->path);
    qsort(im->segments.items, im->segments.count, sizeof(image_segment), by_addr);
    im->low = inl_page_down(im->segments.items[0].addr);
    return INL_OK;
}

/* The bytes a program header stands for. */
static const uint8_t *header_bytes(const image *im, const Elf64_Phdr *p)
{
    const uint8_t *bytes = NULL;
    if (!im->in_memory) return image_view_bytes(&im->view, p->p_offset, p->p_filesz);
    return image_bytes(im, p->p_vaddr, &bytes) >= p->p_filesz ? bytes : NULL;
}

static const char *hex_text(inl_arena *a, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *out = inl_arena_alloc(a, 2 * size + 1);
    if (!out) return NULL;
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    return out;
}

static void read_extras(image *im, const uint8_t *table)
{
    const Elf64_Ehdr *h = &im->view.header;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, table + i * sizeof p, sizeof p);
        const uint8_t *bytes;
        if (p.p_type == PT_PHDR) im->phdr_addr = p.p_vaddr;
        if (p.p_type == PT_INTERP && !im->interp && p.p_filesz > 0 && p.p_filesz <= 4096 &&
            (bytes = header_bytes(im, &p)) && bytes[p.p_filesz - 1] == 0)
            im->interp = inl_arena_strdup(&im->arena, (const char *)bytes);
        if (p.p_type == PT_NOTE && !im->build_id && (bytes = header_bytes(im, &p)))
            im->build_id_size = image_find_build_id(bytes, p.p_filesz, im->build_id_bytes);
        if (im->build_id_size && !im->build_id)
            im->build_id = hex_text(&im->arena, im->build_id_bytes, im->build_id_size);
    }
    for (size_t i = 0; i < im->segments.count && im->phdr_addr == 0; i++) {
        const image_segment *s = &im->segments.items[i];
        if (h->e_phoff >= s->file_offset && h->e_phoff - s->file_offset < s->file_size)
            im->phdr_addr = s->addr + (h->e_phoff - s->file_offset);
    }
}

static inl_status read_headers(image *im, const void *data, size_t size, inl_error *e)
{
    inl_status st = image_view_open(&im->view, data, size, im->path, e);
    if (st) return st;
    const Elf64_Ehdr *h = &im->view.header;
    if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: %s, not a program or shared library", im->path,
                        h->e_type == ET_REL    ? "an object file"
                        : h->e_type == ET_CORE ? "a core dump"
                                               : "an unknown kind of ELF file");
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum == PN_XNUM)
        return inl_fail(e, INL_ERR_FORMAT, "%s: no usable program headers", im->path);
    const uint8_t *table = image_view_bytes(&im->view, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr));
    if (!table) return inl_fail(e, INL_ERR_FORMAT, "%s: program headers cut short", im->path);
    st = read_segments(im, table, e);
    if (st) return st;
    read_extras(im, table);
    return INL_OK;
}

static image *new_image(const char *path)
{
    image *im = calloc(1, sizeof *im);
    if (!im) return NULL;
    im->path = strdup(path);
    if (!im->path) {
        free(im);
        return NULL;
    }
    const char *slash = strrchr(im->path, '/');
    im->name = slash ? slash + 1 : im->path;
    return im;
}

static inl_status cannot_open(const char *path, int cause, inl_error *e)
{
    inl_status code = cause == ENOENT || cause == ENOTDIR   ? INL_ERR_NOT_FOUND
                      : cause == EACCES || cause == EPERM   ? INL_ERR_ACCESS
                      : cause == ENOEXEC || cause == EISDIR ? INL_ERR_FORMAT
                      : cause == ENOMEM                     ? INL_ERR_NO_MEMORY
                                                            : INL_ERR_SYSTEM;
    if (cause == ENOEXEC) return inl_fail(e, code, "%s: an empty file", path);
    if (cause == EINVAL) return inl_fail(e, INL_ERR_FORMAT, "%s: not a regular file", path);
    const char *why = strerrordesc_np(cause); /* unlike strerror it needs no locale */
    return inl_fail(e, code, "%s: %s", path, why ? why : "cannot be opened");
}

inl_status image_open(const char *path, image **out, inl_error *e)
{
    size_t size = 0;
    *out = NULL;
    void *map = image_map_file(path, &size);
    if (!map) return cannot_open(path, errno, e);
    image *im = new_image(path);
    if (!im) {
        munmap(map, size);
        return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", path);
    }
    im->map = map;
    inl_status st = read_headers(im, map, size, e);
    if (st) {
        im->view.data = map, im->view.size = size;
        image_close(im);
        return st;
    }
    *out = im;
    return INL_OK;
}

inl_status image_open_memory(const void *base, size_t size, const char *name, image **out, inl_error *e)
{
    *out = NULL;
    image *im = new_image(name);
    if (!im) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", name);
    inl_status st;
    im->in_memory = true;
    im->mapped_at = (uint64_t)(uintptr_t)base;
    im->copy = malloc(size ? size : 1);
    if (!im->copy) {
        st = inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", name);
    } else {
        memcpy(im->copy, base, size);
        st = read_headers(im, im->copy, size, e);
    }
    if (st) {
        image_close(im);
        return st;
    }
    *out = im;
    return INL_OK;
}

void image_close(image *im)
{
    if (!im) return;
    image_lines_free(im->lines);
    if (im->debug_map) munmap(im->debug_map, im->debug.size);
    if (im->map) munmap(im->map, im->view.size);
    free(im->copy);
    free(im->index);
    inl_vec_free(&im->segments);
    inl_vec_free(&im->sections);
    inl_vec_free(&im->symbols);
    inl_vec_free(&im->unwind);
    inl_vec_free(&im->unread);
    inl_vec_free(&im->procs);
    inl_vec_free(&im->relocs);
    inl_vec_free(&im->code_symbols);
    inl_arena_free(&im->arena);
    free(im->path);
    free(im);
}

const char *image_path(const image *im) { return im->path; }
const char *image_name(const image *im) { return im->name; }
uint16_t image_machine(const image *im) { return im->view.header.e_machine; }
uint16_t image_type(const image *im) { return im->view.header.e_type; }
uint64_t image_entry(const image *im) { return im->view.header.e_entry; }
const char *image_interp(const image *im) { return im->interp; }
const char *image_build_id(const image *im) { return im->build_id; }
uint64_t image_phdr_addr(const image *im) { return im->phdr_addr; }

size_t image_segments(const image *im, const image_segment **out)
{
    *out = im->segments.items;
    return im->segments.count;
}

size_t image_sections(image *im, const image_section **out)
{
    if (!im->has_sections) {
        im->has_sections = true;
        for (uint32_t i = 1; i < im->view.section_count; i++) {
            Elf64_Shdr s;
            image_view_section(&im->view, i, &s);
            image_section section = {
                image_view_section_name(&im->view, &s), s.sh_addr, s.sh_size, s.sh_offset, s.sh_type, s.sh_flags};
            if (!inl_vec_push(&im->sections, section)) break;
        }
    }
    *out = im->sections.items;
    return im->sections.count;
}
