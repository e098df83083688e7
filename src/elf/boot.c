/* Packs the tool and what it needs into the data that a rewritten program carries; see boot.h. */
#include "move/boot.h"
#include "base/page.h"
#include "elf/elf.h"
#include "boot_blob.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(move_boot_links) == 88 && offsetof(move_boot_links, self) == 0 &&
                   offsetof(move_boot_links, entry) == 24,
               "known to boot/start.S (see meson.build)");

typedef struct tool_file {
    const char *path;
    const uint8_t *bytes;
    size_t mapped, size; /* size: what of it is loaded */
    uint64_t handoff, region;
} tool_file;

static inl_status map_tool(tool_file *t, inl_error *e)
{
    int fd = open(t->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        inl_status s = inl_fail(e, INL_ERR_ACCESS, "cannot read the tool %s: %s", t->path, strerror(errno));
        if (fd >= 0) close(fd);
        return s;
    }
    t->mapped = (size_t)st.st_size;
    void *p = t->mapped ? mmap(NULL, t->mapped, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED) return inl_fail(e, INL_ERR_NO_MEMORY, "cannot map the tool %s: %s", t->path, strerror(errno));
    t->bytes = p;
    return INL_OK;
}

/* The address that a word of a note stands for: its own and its value. */
static uint64_t referred(const tool_file *t, const Elf64_Phdr *p, size_t at)
{
    int64_t distance;
    memcpy(&distance, t->bytes + at, sizeof distance);
    return p->p_vaddr + (at - p->p_offset) + (uint64_t)distance;
}

static bool read_notes(tool_file *t, const Elf64_Phdr *p)
{
    size_t at = p->p_offset, end = at + p->p_filesz;
    while (at + sizeof(Elf64_Nhdr) <= end) {
        const Elf64_Nhdr *n = (const Elf64_Nhdr *)(t->bytes + at);
        size_t name = at + sizeof *n, content = name + ((n->n_namesz + 3u) & ~3u);
        if (content + n->n_descsz > end) return false;
        if (n->n_type == MOVE_NOTE_TOOL && n->n_namesz == sizeof "Inlay" &&
            !memcmp(t->bytes + name, "Inlay", sizeof "Inlay") && n->n_descsz == 16) {
            t->handoff = referred(t, p, content);
            t->region = referred(t, p, content + 8);
            return true;
        }
        at = content + ((n->n_descsz + 3u) & ~3u);
    }
    return false;
}

static inl_status look_at_tool(tool_file *t, inl_error *e)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)t->bytes;
    if (t->mapped < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_type != ET_DYN ||
        h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff > t->mapped ||
        h->e_phnum > (t->mapped - h->e_phoff) / sizeof(Elf64_Phdr))
        return inl_fail(e, INL_ERR_FORMAT, "%s is not a static position-independent program", t->path);
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(t->bytes + h->e_phoff);
    bool known = false;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        if (ph[i].p_offset > t->mapped || ph[i].p_filesz > t->mapped - ph[i].p_offset)
            return inl_fail(e, INL_ERR_FORMAT, "%s is cut short", t->path);
        if (ph[i].p_type == PT_NOTE && !known) known = read_notes(t, &ph[i]);
        if (ph[i].p_type == PT_LOAD && ph[i].p_offset + ph[i].p_filesz > t->size)
            t->size = ph[i].p_offset + ph[i].p_filesz;
    }
    if (known) return INL_OK;
    return inl_fail(e, INL_ERR_FORMAT, "%s is not an Inlay tool that can be carried", t->path);
}

/* --- the block --- */

typedef struct packer {
    uint8_t *data; /* NULL while only sizes are added up */
    size_t at;
} packer;

static uint64_t add(packer *p, const void *bytes, size_t n)
{
    size_t at = p->at;
    if (p->data && bytes) memcpy(p->data + at, bytes, n);
    p->at += (n + 7) & ~(size_t)7;
    return at;
}

static uint64_t add_text(packer *p, const char *text) { return text ? add(p, text, strlen(text) + 1) : 0; }

static void add_argv(packer *p, const elf_pack *in, move_carry_head *h)
{
    h->argc = (uint64_t)in->argc;
    h->argv = add(p, NULL, (size_t)in->argc * 8);
    for (int i = 0; i < in->argc; i++) {
        uint64_t text = add_text(p, in->argv[i]);
        if (p->data) memcpy(p->data + h->argv + 8 * (size_t)i, &text, sizeof text);
    }
}

static void add_images(packer *p, const elf_pack *in, move_carry_head *h)
{
    h->image_count = in->image_count;
    h->images = add(p, NULL, in->image_count * sizeof(move_carry_image));
    for (size_t i = 0; i < in->image_count; i++) {
        const elf_pack_image *from = &in->images[i];
        move_carry_image to = {.path = add_text(p, from->path),
                               .soname = add_text(p, from->soname),
                               .bias = from->bias,
                               .link_low = from->link_low,
                               .link_high = from->link_high};
        if (p->data) memcpy(p->data + h->images + i * sizeof to, &to, sizeof to);
    }
}

static void lay_out(packer *p, const elf_pack *in, const tool_file *t, move_carry_head *h)
{
    add(p, NULL, sizeof *h);
    add_argv(p, in, h);
    add_images(p, in, h);
    p->at = inl_page_up(p->at);
    h->heap_size = in->heap ? in->heap_size : 0;
    h->heap = add(p, in->heap, h->heap_size);
    p->at = inl_page_up(p->at);
    h->tool_size = t->size;
    h->tool_base = in->tool_base;
    h->tool = add(p, t->bytes, t->size);
    p->at = inl_page_up(p->at);
    h->size = p->at;
    h->magic = MOVE_CARRY_MAGIC;
    h->handoff = t->handoff;
    h->region = t->region;
}

static uint64_t hash(const uint8_t *bytes, size_t n)
{
    uint64_t h = 0xcbf29ce484222325ull, word;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        memcpy(&word, bytes + i, sizeof word);
        h = (h ^ word) * 0x100000001b3ull;
        h ^= h >> 29;
    }
    return h;
}

inl_status elf_carry_pack(const elf_pack *in, elf_carry *out, inl_error *e)
{
    tool_file t = {.path = in->tool_path};
    move_carry_head head = {0};
    packer p = {0};
    *out = (elf_carry){.boot = boot_code,
                       .boot_size = sizeof boot_code,
                       .init_at = BOOT_INIT_AT,
                       .entry_at = BOOT_ENTRY_AT,
                       .return_at = BOOT_RETURN_AT,
                       .return_size = BOOT_RETURN_SIZE};
    if (in->argc < 1) return inl_fail(e, INL_ERR_FORMAT, "the carried tool has no name");
    inl_status s = map_tool(&t, e);
    if (s == INL_OK) s = look_at_tool(&t, e);
    if (s == INL_OK) {
        lay_out(&p, in, &t, &head);
        p = (packer){.data = aligned_alloc(INL_PAGE, p.at)};
        if (!p.data) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    }
    if (s == INL_OK) {
        memset(p.data, 0, head.size);
        lay_out(&p, in, &t, &head);
        head.id = hash(p.data, p.at);
        memcpy(p.data, &head, sizeof head);
        out->data = p.data;
        out->data_size = p.at;
    }
    if (t.bytes) munmap((void *)t.bytes, t.mapped);
    return s;
}

void elf_carry_free(elf_carry *c)
{
    free((void *)c->data);
    c->data = NULL;
}
