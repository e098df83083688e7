/* The header and call sites of an exception table, as gcc and clang write them for C++ (and Rust, Go,
 * D): .gcc_except_table.
 *
 *     encoding of LPStart, LPStart           where landing pads count from; omitted: the range's start
 *     encoding of types, offset of their end
 *     encoding of call sites, their size     then the sites, the actions, the types (backwards)
 */
#include "image/file.h"

#include <stdlib.h>

static bool read_header(image_cursor *c, uint64_t start, image_lsda *out, uint64_t *sites_size)
{
    uint64_t offset;
    out->lpstart = start;
    if (!image_take(c, &out->lpstart_encoding, 1)) return false;
    if (out->lpstart_encoding != IMAGE_PE_OMIT && !image_take_pointer(c, out->lpstart_encoding, 0, &out->lpstart))
        return false;
    if (!image_take(c, &out->ttype_encoding, 1)) return false;
    if (out->ttype_encoding != IMAGE_PE_OMIT) {
        if (!image_take_leb(c, false, &offset) || offset > (uint64_t)(c->end - c->at)) return false;
        out->ttype = c->addr + offset;
    }
    if (!image_take(c, &out->site_encoding, 1) || !image_take_leb(c, false, sites_size) ||
        *sites_size > (uint64_t)(c->end - c->at))
        return false;
    out->sites_at = c->addr;
    out->actions_at = c->addr + *sites_size;
    return true;
}

static bool add_site(image_lsda *out, image_call_site site)
{
    if (out->count == out->capacity &&
        !inl_vec_reserve_((void **)&out->sites, &out->capacity, out->count + 1, sizeof site))
        return false;
    out->sites[out->count++] = site;
    return true;
}

bool image_lsda_read(image *im, uint64_t addr, uint64_t start, image_lsda *out)
{
    const uint8_t *bytes;
    uint64_t size;
    image_call_site *sites = out->sites;
    size_t capacity = out->capacity, have = image_bytes(im, addr, &bytes);
    *out = (image_lsda){.sites = sites, .capacity = capacity};
    if (have == 0) return false;
    image_cursor c = {bytes, bytes + have, addr};
    if (!read_header(&c, start, out, &size)) return false;
    c.end = c.at + size;
    while (c.at < c.end) {
        image_call_site s;
        uint64_t from, pad;
        if (!image_take_format(&c, out->site_encoding, &from) ||
            !image_take_format(&c, out->site_encoding, &s.length) || !image_take_format(&c, out->site_encoding, &pad) ||
            !image_take_leb(&c, false, &s.action))
            return false;
        s.start = start + from;
        s.landing_pad = pad ? out->lpstart + pad : 0;
        if (!add_site(out, s)) return false;
    }
    return true;
}

void image_lsda_free(image_lsda *l)
{
    free(l->sites);
    *l = (image_lsda){0};
}
