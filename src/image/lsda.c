/* The header and call sites of an exception table, as gcc and clang write them for C++ (and Rust, Go,
 * D): .gcc_except_table.
 *
 *     encoding of LPStart, LPStart           where landing pads count from; omitted: the range's start
 *     encoding of types, offset of their end
 *     encoding of call sites, their size     then the sites, the actions, the types (backwards)
 *
 * Where clang puts a procedure in pieces (-fbasic-block-sections, -fsplit-machine-functions) each has a table, with
 * LPStart. They stand one behind the other in front of the actions, which they share, and the size of each reaches up
 * to these: who looks a call up stops when he has found it. So a table ends where such another one begins. */
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

static bool is_header_of_next(image_cursor c, size_t skip, const image_lsda *l)
{
    image_lsda next = {0};
    uint64_t size;
    if (skip >= (size_t)(c.end - c.at)) return false;
    c.at += skip;
    c.addr += skip;
    return read_header(&c, 0, &next, &size) && next.lpstart_encoding == l->lpstart_encoding &&
           next.lpstart == l->lpstart && next.ttype == l->ttype && next.actions_at == l->actions_at;
}

/* Does the next piece's table begin there, aligned or not? */
static bool is_behind_sites(image_cursor c, const image_lsda *l)
{
    enum { ALIGNED = 4 };
    if (l->lpstart_encoding == IMAGE_PE_OMIT) return false;
    return is_header_of_next(c, 0, l) || is_header_of_next(c, -c.addr & (ALIGNED - 1), l);
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
    while (c.at < c.end && !is_behind_sites((image_cursor){c.at, bytes + have, c.addr}, out)) {
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
