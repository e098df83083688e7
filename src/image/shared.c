/* What dwz has moved out of the debug information of several files, into one that they share. .gnu_debugaltlink tells
 * its name (from the file's folder on, where it is no whole path) and its build-id. It is looked for there, by its
 * build-id below /usr/lib/debug, and among those that distributions keep in /usr/lib/debug/.dwz. */
#include "image/units.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct image_shared {
    void *map;
    size_t size;
    Elf *elf;
    Dwarf *dwarf;
};

typedef struct link_text {
    const char *name;
    const uint8_t *id;
    size_t id_size;
} link_text;

static bool read_link(const image_view *v, link_text *out)
{
    Elf64_Shdr s;
    const uint8_t *bytes;
    if (!image_view_find(v, SHT_NULL, ".gnu_debugaltlink", &s) || !image_view_section_bytes(v, &s, &bytes))
        return false;
    const uint8_t *end = memchr(bytes, 0, s.sh_size);
    if (!end || end == bytes) return false;
    *out = (link_text){(const char *)bytes, end + 1, s.sh_size - (size_t)(end + 1 - bytes)};
    return out->id_size > 1;
}

/* DWARF 5's own way to tell such a file. libdw as it is here would look for all in the same one. */
static bool has_supplement(const image_view *v)
{
    Elf64_Shdr s;
    return image_view_find(v, SHT_NULL, ".debug_sup", &s);
}

static bool is_meant(const image_view *v, const link_text *link)
{
    uint8_t id[64];
    return image_view_build_id(v, id) == link->id_size && !memcmp(id, link->id, link->id_size);
}

static bool try_file(const char *path, const link_text *link, image_shared *out)
{
    image_view v;
    out->map = image_map_file(path, &out->size);
    if (!out->map) return false;
    if (image_view_open(&v, out->map, out->size, path, NULL) == INL_OK && is_meant(&v, link) &&
        image_view_make_sections_writable(&v))
        return true;
    munmap(out->map, out->size);
    out->map = NULL;
    return false;
}

static bool beside(const char *file, const link_text *link, image_shared *out)
{
    char path[4096];
    char *whole = realpath(file, NULL), *end = whole ? strrchr(whole, '/') : NULL;
    int n = end ? snprintf(path, sizeof path, "%.*s/%s", (int)(end - whole), whole, link->name) : 0;
    bool found = n > 0 && n < (int)sizeof path && try_file(path, link, out);
    free(whole);
    return found;
}

static bool by_id(const link_text *link, image_shared *out)
{
    char path[256];
    size_t n = (size_t)snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%02x/", link->id[0]);
    if (link->id_size > 64) return false;
    for (size_t i = 1; i < link->id_size; i++) n += (size_t)snprintf(path + n, sizeof path - n, "%02x", link->id[i]);
    snprintf(path + n, sizeof path - n, ".debug");
    return try_file(path, link, out);
}

static bool among_those_kept(const link_text *link, image_shared *out)
{
    char path[4096];
    const char *slash = strrchr(link->name, '/');
    int n = snprintf(path, sizeof path, "/usr/lib/debug/.dwz/%s", slash ? slash + 1 : link->name);
    return n < (int)sizeof path && try_file(path, link, out);
}

static bool find(const char *file, const link_text *link, image_shared *out)
{
    bool there = link->name[0] == '/' ? try_file(link->name, link, out) : beside(file, link, out);
    return there || by_id(link, out) || among_those_kept(link, out);
}

image_shared *image_shared_open(const image_view *v, const char *file, Dwarf *of)
{
    link_text link;
    bool linked = read_link(v, &link);
    image_shared *s = linked || has_supplement(v) ? calloc(1, sizeof *s) : NULL;
    if (!s || !linked) return s;
    if (find(file, &link, s)) s->elf = elf_memory(s->map, s->size);
    if (s->elf) s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
    dwarf_setalt(of, s->dwarf);
    return s;
}

Dwarf *image_shared_dwarf(const image_shared *s) { return s->dwarf; }

void image_shared_free(image_shared *s)
{
    if (!s) return;
    if (s->dwarf) dwarf_end(s->dwarf);
    if (s->elf) elf_end(s->elf);
    if (s->map) munmap(s->map, s->size);
    free(s);
}
