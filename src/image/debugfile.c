/* The separate debug file of a stripped program: by build-id below /usr/lib/debug, or by the name
 * and checksum in .gnu_debuglink. Nothing is ever fetched from a network.
 *
 * A candidate is accepted when its build-id is the image's, or, for an image without a build-id,
 * when the checksum of .gnu_debuglink is right. */
#include "image/file.h"

#include <stdio.h>
#include <sys/mman.h>
#include <zlib.h>

static const char debug_root[] = "/usr/lib/debug";

static bool belongs(const image *im, const image_view *v, const uint32_t *checksum)
{
    uint8_t id[64];
    if (v->header.e_machine != im->view.header.e_machine) return false;
    if (im->build_id_size)
        return image_view_build_id(v, id) == im->build_id_size &&
               memcmp(id, im->build_id_bytes, im->build_id_size) == 0;
    return checksum && crc32_z(0, v->data, v->size) == *checksum;
}

static bool try_file(image *im, const char *path, const uint32_t *checksum)
{
    size_t size = 0;
    image_view v;
    void *map = image_map_file(path, &size);
    if (!map) return false;
    if (image_view_open(&v, map, size, path, NULL) == INL_OK && belongs(im, &v, checksum)) {
        im->debug_map = map;
        im->debug = v;
        im->debug_path = inl_arena_strdup(&im->arena, path);
        return true;
    }
    munmap(map, size);
    return false;
}

static bool try_link(image *im)
{
    Elf64_Shdr s;
    const uint8_t *bytes;
    char path[4096];
    uint32_t checksum;
    if (!image_view_find(&im->view, SHT_NULL, ".gnu_debuglink", &s) || !image_view_section_bytes(&im->view, &s, &bytes))
        return false;
    image_strings text = {(const char *)bytes, s.sh_size};
    const uint8_t *end = memchr(bytes, 0, s.sh_size);
    if (!end || end == bytes || strchr(text.text, '/')) return false;
    size_t at = ((size_t)(end - bytes) + 4) & ~(size_t)3;
    if (at > s.sh_size || s.sh_size - at < 4) return false;
    memcpy(&checksum, bytes + at, 4);
    int folder = (int)(im->name - im->path);
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {debug_root, ""}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, sizeof path, "%s%.*s%s%s", places[i][0], folder, im->path, places[i][1], text.text);
        if (n < (int)sizeof path && try_file(im, path, &checksum)) return true;
    }
    return false;
}

const image_view *image_debug_view(image *im)
{
    char path[256];
    if (!im->has_debug) {
        im->has_debug = true;
        bool found = false;
        if (im->build_id) {
            snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", debug_root, im->build_id, im->build_id + 2);
            found = try_file(im, path, NULL);
        }
        if (!found && !im->in_memory) try_link(im);
    }
    return im->debug.data ? &im->debug : NULL;
}
