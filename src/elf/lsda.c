/* Exception tables (.gcc_except_table) for moved code.
 *
 *     LPStart encoding, [LPStart]     what landing pads are relative to; left out: the entry's start
 *     type encoding, [to types end]
 *     call-site encoding, size        call sites: start, length, landing pad, action
 *     actions                         chains of (filter, distance to the next)
 *     types, backwards from their end
 *     lists of types behind it        for exception specifications
 *
 * Call sites are ranges of code, ascending, and what lies in none of them must not throw. A moved
 * instruction belongs to the site that its original belonged to, so the new table is made by walking the
 * piece's instructions in their new order. Landing pads may lie in another piece or have stayed in place:
 * when one is not behind the piece's start, LPStart is given, since distances are unsigned and 0 means that
 * there is none. Actions and lists are copied, types resolved and written as relative ones.
 *
 * Old code gets a table too where its landing pads have moved: an exception that is thrown out of a signal's
 * handler passes a frame that shows the original address (<isa>/frames.c).
 */
#include "elf/unwind.h"
#include "base/search.h"

/* The number of the site that an original address is in, or one past the last. */
static size_t site_of(const image_except *t, uint64_t addr, size_t hint)
{
    const image_call_site *sites = t->lsda.sites;
    if (hint < t->lsda.count && addr - sites[hint].start < sites[hint].length) return hint;
    size_t behind = INL_FIRST(t->lsda.count, k, sites[k].start + sites[k].length > addr);
    return behind < t->lsda.count && addr >= sites[behind].start ? behind : t->lsda.count;
}

static uint64_t new_pad(const move_plan *p, uint64_t pad)
{
    assumed_addr none = {0}, now = pad ? move_new_address(p, move_assume(p, (link_addr){pad}), false) : none;
    return now.at ? move_linked(p, now).at : pad;
}

/* What new landing pads are relative to: the piece's start if it is below all of them. */
static uint64_t pads_from(const move_plan *p, const image_except *t, uint64_t start)
{
    uint64_t low = start;
    for (size_t i = 0; i < t->lsda.count; i++) {
        uint64_t pad = new_pad(p, t->lsda.sites[i].landing_pad);
        if (pad && pad <= low) low = pad - 1;
    }
    return low;
}

static void put_site(inl_bytes *out, const move_plan *p, const image_call_site *s, uint64_t from, uint64_t to,
                     uint64_t pads)
{
    inl_bytes_uleb(out, from);
    inl_bytes_uleb(out, to - from);
    inl_bytes_uleb(out, s->landing_pad ? new_pad(p, s->landing_pad) - pads : 0);
    inl_bytes_uleb(out, s->action);
}

static void put_sites(inl_bytes *out, const elf_writer *w, const image_except *t, const elf_piece *piece, uint64_t pads)
{
    const move_plan *p = w->plan;
    size_t current = t->lsda.count;
    uint64_t from = 0, base = piece->start - w->text_at;
    move_map_walk insns = move_map_from(p, piece->first);
    for (move_map m; insns.next < piece->last && move_map_next(&insns, &m);) {
        size_t s = site_of(t, m.old_addr - p->bias, current);
        if (s == current) continue;
        uint64_t at = m.new_off - base;
        if (current < t->lsda.count && at > from) put_site(out, p, &t->lsda.sites[current], from, at, pads);
        current = s;
        from = at;
    }
    uint64_t end = piece->end - piece->start;
    if (current < t->lsda.count && end > from) put_site(out, p, &t->lsda.sites[current], from, end, pads);
}

static bool put_types(elf_writer *w, const image_except *t)
{
    for (size_t n = t->type_count; n > 0; n--) { /* backwards */
        uint64_t type;
        if (!image_except_type(w->im, t, n, &type)) return false;
        if (type) inl_bytes_relative(&w->ro, type);
        else inl_bytes_number(&w->ro, 0, 4);
    }
    return true;
}

static bool put_copy(elf_writer *w, uint64_t addr, size_t size)
{
    const uint8_t *bytes;
    if (size == 0) return true;
    if (image_bytes(w->im, addr, &bytes) < size) return false;
    inl_bytes_put(&w->ro, bytes, size);
    return true;
}

/* Those of old code. */
static void put_old_sites(inl_bytes *out, const move_plan *p, const image_except *t, uint64_t start)
{
    for (size_t i = 0; i < t->lsda.count; i++) {
        const image_call_site *s = &t->lsda.sites[i];
        put_site(out, p, s, s->start - start, s->start + s->length - start, start);
    }
}

static bool pads_moved(const move_plan *p, const image_except *t)
{
    for (size_t i = 0; i < t->lsda.count; i++)
        if (new_pad(p, t->lsda.sites[i].landing_pad) != t->lsda.sites[i].landing_pad) return true;
    return false;
}

static bool put_table(elf_frames *f, const image_except *t, elf_piece *piece, inl_bytes *sites)
{
    elf_writer *w = f->w;
    inl_bytes *b = &w->ro;
    bool typed = t->type_count || t->list_size;
    uint64_t pads = pads_from(w->plan, t, piece->start);
    if (piece->is_old) {
        if (pads != piece->start || !pads_moved(w->plan, t)) return true;
        put_old_sites(sites, w->plan, t, piece->start);
    } else {
        put_sites(sites, w, t, piece, pads);
    }
    inl_bytes_align(b, 4);
    piece->lsda = inl_bytes_here(b);
    if (pads == piece->start) {
        inl_bytes_number(b, IMAGE_PE_OMIT, 1);
    } else {
        inl_bytes_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 1);
        inl_bytes_relative(b, pads);
    }
    inl_bytes_number(
        b, typed ? IMAGE_PE_PCREL | IMAGE_PE_SDATA4 | (t->lsda.ttype_encoding & IMAGE_PE_INDIRECT) : IMAGE_PE_OMIT, 1);
    size_t distance_at = typed ? inl_bytes_reserve(b, 4) : 0; /* a number of fixed length */
    inl_bytes_number(b, IMAGE_PE_ULEB128, 1);
    inl_bytes_uleb(b, sites->size);
    inl_bytes_put(b, sites->data, sites->size);
    if (!put_copy(w, t->lsda.actions_at, t->action_size)) return false;
    if (!typed) return true;
    inl_bytes_align(b, 4);
    if (!put_types(w, t)) return false;
    size_t distance = b->size - distance_at - 4;
    uint8_t uleb[4];
    for (int i = 0; i < 4; i++) uleb[i] = (uint8_t)((distance >> 7 * i & 127) | (i < 3 ? 128 : 0));
    if (distance >> 28) b->far = true;
    inl_bytes_set(b, distance_at, uleb, 4);
    return put_copy(w, t->lsda.ttype, t->list_size);
}

inl_status elf_put_lsda(elf_frames *f, elf_piece *piece, inl_error *e)
{
    elf_writer *w = f->w;
    const image_fde *fde = &f->old.fdes.items[piece->fde];
    image_except t = {0};
    inl_bytes sites = {0};
    inl_status st = INL_OK;
    if (!image_except_read(w->im, fde, &t) || !put_table(f, &t, piece, &sites))
        st = inl_fail_at(e, INL_ERR_FORMAT, fde->lsda, "%s: the exception table of 0x%lx at 0x%lx is not understood",
                         image_path(w->im), fde->addr, fde->lsda);
    else if (sites.failed) st = elf_no_memory(w, e);
    else st = elf_check_bytes(w, &w->ro, e);
    inl_bytes_free(&sites);
    image_except_free(&t);
    return st;
}
