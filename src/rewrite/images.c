/* What is mapped into a rewritten program when it starts: the program itself, from the auxiliary vector,
 * and what the dynamic linker has loaded, from its list. A rewritten image is known by its note (see
 * elf_notes.c); its assumed bias is in the list that the tool carries, under the program's own entry or the
 * library's name. Libraries that are opened later are not in the list, nor are they rewritten. */
#include "rewrite/run_private.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_LINKS = 1, PAGE = 4096 };

run_images rewrite_images;
static run_image images[REWRITE_MAX_IMAGES];

/* --- lookup --- */

const run_image *rewrite_image_at(uint64_t pc)
{
    for (size_t i = 0; i < rewrite_images.count; i++)
        if (pc - images[i].low < images[i].high - images[i].low) return &images[i];
    return NULL;
}

const run_image *rewrite_moved_at(uint64_t pc)
{
    for (size_t i = 0; i < rewrite_images.count; i++)
        if (pc - images[i].text < images[i].text_size) return &images[i];
    return NULL;
}

/* The block at or before `off` in moved code; NULL: none. */
static const uint32_t *block_at(const rewrite_carried_map *map, uint64_t off)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (map->entries[mid].new_off <= off) low = mid + 1;
        else high = mid;
    }
    return low ? &map->entries[low - 1].new_off : NULL;
}

uint32_t rewrite_block_of(const run_image *i, uint32_t off)
{
    const uint32_t *block = i->map ? block_at(i->map, off) : NULL;
    return block ? (uint32_t)((block - &i->map->entries[0].new_off) / 2) : UINT32_MAX;
}

bool rewrite_is_block_start(const run_image *i, uint64_t pc)
{
    const uint32_t *block = i->map ? block_at(i->map, pc - i->text) : NULL;
    return block && block[0] == pc - i->text;
}

uint64_t rewrite_original(uint64_t a)
{
    const run_image *i = rewrite_moved_at(a);
    if (i) {
        const uint32_t *block = i->map ? block_at(i->map, a - i->text) : NULL;
        return block ? i->map_base + block[1] + i->to_assumed : a;
    }
    i = rewrite_image_at(a);
    return i ? a + i->to_assumed : a;
}

uint64_t rewrite_shift(uint64_t assumed_low)
{
    for (size_t k = 0; k < rewrite_images.count; k++) {
        const run_image *i = &images[k];
        if (i->text_size && i->low + i->to_assumed == assumed_low) return -i->to_assumed;
    }
    return 0;
}

/* --- finding --- */

static const rewrite_boot_links *links_in_notes(const char *at, size_t size)
{
    const char *end = at + size;
    while (at + sizeof(Elf64_Nhdr) <= end) {
        const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
        const char *name = at + sizeof *n, *content = name + ((n->n_namesz + 3u) & ~3u);
        at = content + ((n->n_descsz + 3u) & ~3u);
        if (at > end) break;
        if (n->n_type == NOTE_LINKS && n->n_namesz == sizeof "Inlay" && !memcmp(name, "Inlay", 6) &&
            n->n_descsz == sizeof(rewrite_boot_links))
            return (const rewrite_boot_links *)content;
    }
    return NULL;
}

static const rewrite_carry_image *carried_image(const char *soname)
{
    const rewrite_carry_head *head = rewrite_handoff_data.data;
    const char *data = (const char *)head;
    const rewrite_carry_image *all = (const void *)(data + head->images);
    for (uint64_t i = 0; i < head->image_count; i++) {
        if (!soname ? i == 0 : all[i].soname && !strcmp(data + all[i].soname, soname)) return &all[i];
    }
    return NULL;
}

/* NULL: it is not all there. */
static const rewrite_carried_map *map_at(const run_image *i, uint64_t at)
{
    const rewrite_carried_map *map = (const void *)at;
    uint64_t room = rewrite_mapped_from(i, at);
    if (room < sizeof *map || map->count > (room - sizeof *map) / sizeof *map->entries) return NULL;
    return map->states <= room ? map : NULL;
}

/* Fills in what a rewritten image's links say; they may not be aligned. */
static void adopt_links(run_image *i, const void *at, const char *soname)
{
    rewrite_boot_links links;
    memcpy(&links, at, sizeof links);
    const rewrite_carry_image *carried = carried_image(soname);
    uint64_t lowest = carried ? carried->link_low : i->low - i->bias;
    i->text = i->bias + links.text;
    i->text_size = links.text_size;
    i->map = links.map ? map_at(i, i->bias + links.map) : NULL;
    i->map_base = i->bias + lowest;
    if (carried) i->to_assumed = carried->bias - i->bias;
}

static const char *soname_of(const run_image *i)
{
    uint64_t name, strings = rewrite_dynamic_address(i, DT_STRTAB);
    if (!strings || !rewrite_dynamic_value(i, DT_SONAME, &name)) return NULL;
    return rewrite_mapped_string(i, strings + name);
}

static void add(const void *phdr, unsigned phnum, uint64_t bias, const char *name, bool main)
{
    if (rewrite_images.count == REWRITE_MAX_IMAGES) return;
    run_image *i = &images[rewrite_images.count];
    *i = (run_image){.low = ~0ull, .bias = bias, .phdr = phdr, .phnum = phnum, .name = name};
    const Elf64_Phdr *ph = phdr;
    const rewrite_boot_links *links = NULL;
    for (unsigned k = 0; k < phnum; k++) {
        uint64_t at = bias + ph[k].p_vaddr;
        if (ph[k].p_type == PT_NOTE && !links && rewrite_is_mapped(i, at, ph[k].p_filesz))
            links = links_in_notes((const char *)at, ph[k].p_filesz);
        if (ph[k].p_type != PT_LOAD) continue;
        if (at < i->low) i->low = at & ~(uint64_t)(PAGE - 1);
        if (at + ph[k].p_memsz > i->high) i->high = at + ph[k].p_memsz;
    }
    if (i->low >= i->high) return;
    if (main) adopt_links(i, rewrite_handoff_data.links, NULL);
    else if (links) adopt_links(i, links, soname_of(i));
    rewrite_images.count++;
}

static uint64_t aux(uint64_t type)
{
    for (const Elf64_auxv_t *a = rewrite_handoff_data.auxv; a->a_type; a++)
        if (a->a_type == type) return a->a_un.a_val;
    return 0;
}

static const struct link_map *linker_list(const run_image *i)
{
    struct r_debug debug;
    uint64_t at;
    /* 0: a static program, which has none yet */
    if (!rewrite_dynamic_value(i, DT_DEBUG, &at) || !at || !jit_read(&debug, at, sizeof debug)) return NULL;
    return debug.r_map;
}

/* Its program headers are at the same distance as in the file, behind everything perhaps. */
static void add_library(const struct link_map *m)
{
    Elf64_Ehdr h;
    Elf64_Phdr last;
    if (!m->l_addr || !jit_read(&h, m->l_addr, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
        h.e_phentsize != sizeof last || !h.e_phnum)
        return;
    uint64_t at = m->l_addr + h.e_phoff;
    if (jit_read(&last, at + (h.e_phnum - 1) * sizeof last, sizeof last))
        add((const void *)at, h.e_phnum, m->l_addr, m->l_name, false);
}

void rewrite_images_find(void)
{
    const rewrite_handoff *h = &rewrite_handoff_data;
    rewrite_images.items = images;
    add((const void *)aux(AT_PHDR), (unsigned)aux(AT_PHNUM), h->bias, "", true);
    const struct link_map *first = rewrite_images.count ? linker_list(&images[0]) : NULL;
    for (const struct link_map *m = first; m; m = m->l_next)
        if (m != first && m->l_addr != aux(AT_SYSINFO_EHDR)) add_library(m); /* the first is the program */
}
