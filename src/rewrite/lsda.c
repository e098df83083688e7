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
#include "rewrite/unwind.h"

typedef struct table {
    image_lsda old;
    size_t type_count, list_size, action_size;
    inl_map seen; /* actions that have been followed */
} table;

static bool open_at(const image *im, uint64_t addr, rewrite_cursor *c)
{
    const uint8_t *bytes = NULL;
    size_t have = image_bytes(im, addr, &bytes);
    *c = (rewrite_cursor){bytes, bytes ? bytes + have : bytes, addr, have == 0};
    return have != 0;
}

/* A list of an exception specification: numbers of types, ended by 0. */
static bool follow_list(const image *im, table *t, int64_t filter)
{
    rewrite_cursor c;
    uint64_t at = t->old.ttype + (uint64_t)(-filter) - 1;
    if (filter < -(1 << 24) || !open_at(im, at, &c)) return false;
    for (uint64_t type; (type = rewrite_take_uleb(&c)) != 0;) {
        if (type > 1 << 24) return false;
        if (type > t->type_count) t->type_count = (size_t)type;
    }
    if (c.addr - t->old.ttype > t->list_size) t->list_size = (size_t)(c.addr - t->old.ttype);
    return !c.bad;
}

static bool follow_actions(const image *im, table *t, uint64_t action)
{
    uint64_t at = t->old.actions_at + action - 1, known;
    for (;;) {
        rewrite_cursor c;
        if (at < t->old.actions_at || at - t->old.actions_at > 1 << 28 || !open_at(im, at, &c)) return false;
        if (inl_map_get(&t->seen, at, &known)) return true;
        if (!inl_map_put(&t->seen, at, 0)) return false;
        int64_t filter = rewrite_take_sleb(&c);
        uint64_t next_at = c.addr;
        int64_t next = rewrite_take_sleb(&c);
        if (c.bad) return false;
        if (c.addr - t->old.actions_at > t->action_size) t->action_size = (size_t)(c.addr - t->old.actions_at);
        if (filter > 0 && filter > 1 << 24) return false;
        if (filter > 0 && (size_t)filter > t->type_count) t->type_count = (size_t)filter;
        if (filter < 0 && !follow_list(im, t, filter)) return false;
        if (next == 0) return true;
        at = next_at + (uint64_t)next;
    }
}

static bool read_table(image *im, const rewrite_fde *fde, table *t)
{
    uint64_t end = 0, action = 0;
    if (!image_lsda_read(im, fde->lsda, fde->addr, &t->old)) return false;
    if (t->old.lpstart_encoding != IMAGE_PE_OMIT && t->old.lpstart_encoding & IMAGE_PE_INDIRECT) return false;
    for (size_t i = 0; i < t->old.count; i++) {
        const image_call_site *s = &t->old.sites[i];
        if (s->start < end || s->start + s->length < s->start) return false;
        end = s->start + s->length;
        if (s->action && s->action != action && !follow_actions(im, t, s->action)) return false;
        action = s->action;
    }
    return t->old.ttype_encoding != IMAGE_PE_OMIT || (t->type_count == 0 && t->list_size == 0);
}

/* The number of the site that an original address is in, or one past the last. */
static size_t site_of(const table *t, uint64_t addr, size_t hint)
{
    size_t low = 0, high = t->old.count;
    const image_call_site *sites = t->old.sites;
    if (hint < high && addr - sites[hint].start < sites[hint].length) return hint;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sites[middle].start + sites[middle].length <= addr) low = middle + 1;
        else high = middle;
    }
    return low < t->old.count && addr >= sites[low].start ? low : t->old.count;
}

static uint64_t new_pad(const rewrite_plan *p, uint64_t pad)
{
    uint64_t moved = pad ? rewrite_new_address(p, pad + p->bias, false) : 0;
    return moved ? moved - p->bias : pad;
}

/* What new landing pads are relative to: the piece's start if it is below all of them. */
static uint64_t pads_from(const rewrite_plan *p, const table *t, uint64_t start)
{
    uint64_t low = start;
    for (size_t i = 0; i < t->old.count; i++) {
        uint64_t pad = new_pad(p, t->old.sites[i].landing_pad);
        if (pad && pad <= low) low = pad - 1;
    }
    return low;
}

static void put_site(rewrite_bytes *out, const rewrite_plan *p, const image_call_site *s, uint64_t from, uint64_t to,
                     uint64_t pads)
{
    rewrite_put_uleb(out, from);
    rewrite_put_uleb(out, to - from);
    rewrite_put_uleb(out, s->landing_pad ? new_pad(p, s->landing_pad) - pads : 0);
    rewrite_put_uleb(out, s->action);
}

static void put_sites(rewrite_bytes *out, const rewrite_writer *w, const table *t, const rewrite_piece *piece,
                      uint64_t pads)
{
    const rewrite_plan *p = w->plan;
    size_t current = t->old.count;
    uint64_t from = 0, base = piece->start - w->text_at;
    rewrite_map_walk insns = rewrite_map_from(p, piece->first);
    for (rewrite_map m; insns.next < piece->last && rewrite_map_next(&insns, &m);) {
        size_t s = site_of(t, m.old_addr - p->bias, current);
        if (s == current) continue;
        uint64_t at = m.new_off - base;
        if (current < t->old.count && at > from) put_site(out, p, &t->old.sites[current], from, at, pads);
        current = s;
        from = at;
    }
    uint64_t end = piece->end - piece->start;
    if (current < t->old.count && end > from) put_site(out, p, &t->old.sites[current], from, end, pads);
}

/* Types stand backwards: number n at n sizes before the end. */
static bool put_types(rewrite_writer *w, const table *t)
{
    size_t size = rewrite_format_size(t->old.ttype_encoding);
    if (t->type_count && size == 0) return false;
    for (size_t n = t->type_count; n > 0; n--) {
        rewrite_cursor c;
        if (!open_at(w->im, t->old.ttype - n * size, &c)) return false;
        uint64_t type = rewrite_take_pointer(&c, t->old.ttype_encoding);
        if (c.bad) return false;
        if (type) rewrite_put_relative(&w->ro, type);
        else rewrite_put_number(&w->ro, 0, 4);
    }
    return true;
}

static bool put_copy(rewrite_writer *w, uint64_t addr, size_t size)
{
    rewrite_cursor c;
    if (size == 0) return true;
    if (!open_at(w->im, addr, &c) || (size_t)(c.end - c.at) < size) return false;
    rewrite_put(&w->ro, c.at, size);
    return true;
}

/* Those of old code. */
static void put_old_sites(rewrite_bytes *out, const rewrite_plan *p, const table *t, uint64_t start)
{
    for (size_t i = 0; i < t->old.count; i++) {
        const image_call_site *s = &t->old.sites[i];
        put_site(out, p, s, s->start - start, s->start + s->length - start, start);
    }
}

static bool pads_moved(const rewrite_plan *p, const table *t)
{
    for (size_t i = 0; i < t->old.count; i++)
        if (new_pad(p, t->old.sites[i].landing_pad) != t->old.sites[i].landing_pad) return true;
    return false;
}

static bool put_table(rewrite_frames *f, const table *t, rewrite_piece *piece, rewrite_bytes *sites)
{
    rewrite_writer *w = f->w;
    rewrite_bytes *b = &w->ro;
    bool typed = t->type_count || t->list_size;
    uint64_t pads = pads_from(w->plan, t, piece->start);
    if (piece->is_old) {
        if (pads != piece->start || !pads_moved(w->plan, t)) return true;
        put_old_sites(sites, w->plan, t, piece->start);
    } else {
        put_sites(sites, w, t, piece, pads);
    }
    rewrite_align(b, 4);
    piece->lsda = rewrite_here(b);
    if (pads == piece->start) {
        rewrite_put_number(b, IMAGE_PE_OMIT, 1);
    } else {
        rewrite_put_number(b, IMAGE_PE_PCREL | IMAGE_PE_SDATA4, 1);
        rewrite_put_relative(b, pads);
    }
    rewrite_put_number(
        b, typed ? IMAGE_PE_PCREL | IMAGE_PE_SDATA4 | (t->old.ttype_encoding & IMAGE_PE_INDIRECT) : IMAGE_PE_OMIT, 1);
    size_t distance_at = typed ? rewrite_reserve(b, 4) : 0; /* a number of fixed length */
    rewrite_put_number(b, IMAGE_PE_ULEB128, 1);
    rewrite_put_uleb(b, sites->size);
    rewrite_put(b, sites->data, sites->size);
    if (!put_copy(w, t->old.actions_at, t->action_size)) return false;
    if (!typed) return true;
    rewrite_align(b, 4);
    if (!put_types(w, t)) return false;
    size_t distance = b->size - distance_at - 4;
    uint8_t uleb[4];
    for (int i = 0; i < 4; i++) uleb[i] = (uint8_t)((distance >> 7 * i & 127) | (i < 3 ? 128 : 0));
    if (distance >> 28) b->far = true;
    rewrite_set(b, distance_at, uleb, 4);
    return put_copy(w, t->old.ttype, t->list_size);
}

static bool has_types(const rewrite_writer *w, const table *t)
{
    size_t size = rewrite_format_size(t->old.ttype_encoding);
    if (t->type_count && size == 0) return false;
    for (size_t n = t->type_count; n > 0; n--) {
        rewrite_cursor c;
        if (!open_at(w->im, t->old.ttype - n * size, &c)) return false;
        rewrite_take_pointer(&c, t->old.ttype_encoding);
        if (c.bad) return false;
    }
    return true;
}

static bool has_bytes(const rewrite_writer *w, uint64_t addr, size_t size)
{
    const uint8_t *bytes;
    return size == 0 || image_bytes(w->im, addr, &bytes) >= size;
}

const char *rewrite_lsda_fault(const rewrite_frames *f, const rewrite_fde *fde)
{
    const rewrite_writer *w = f->w;
    table t = {0};
    const char *why = NULL;
    if (!read_table(w->im, fde, &t)) why = "its exception table is not understood";
    else if (t.type_count && (t.old.ttype_encoding & IMAGE_PE_RELATIVE) == IMAGE_PE_ABSPTR &&
             w->header.e_type == ET_DYN)
        why = "its exception table holds addresses to be relocated";
    else if (!has_bytes(w, t.old.actions_at, t.action_size) || !has_types(w, &t) ||
             !has_bytes(w, t.old.ttype, t.list_size))
        why = "its exception table reaches beyond the file";
    image_lsda_free(&t.old);
    inl_map_free(&t.seen);
    return why;
}

inl_status rewrite_put_lsda(rewrite_frames *f, rewrite_piece *piece, inl_error *e)
{
    rewrite_writer *w = f->w;
    const rewrite_fde *fde = &f->fdes.items[piece->fde];
    table t = {0};
    rewrite_bytes sites = {0};
    inl_status st = INL_OK;
    if (!read_table(w->im, fde, &t) || !put_table(f, &t, piece, &sites))
        st = inl_fail_at(e, INL_ERR_FORMAT, fde->lsda, "%s: the exception table of 0x%lx at 0x%lx is not understood",
                         image_path(w->im), fde->addr, fde->lsda);
    else if (sites.failed) st = rewrite_no_memory(w, e);
    else st = rewrite_check_bytes(w, &w->ro, e);
    rewrite_bytes_free(&sites);
    image_lsda_free(&t.old);
    inl_map_free(&t.seen);
    return st;
}
