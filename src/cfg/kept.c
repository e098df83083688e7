#include "cfg/kept.h"
#include "base/leb.h"
#include "base/sum.h"
#include "cfg/cfg_sources.h"
#include "cfg/private.h"

#include <stdio.h>
#include <string.h>

bool cfg_kept_key(image *im, char key[CFG_KEPT_KEY])
{
    const isa *set = isa_for_machine(image_machine(im));
    const char *id = image_build_id(im);
    uint64_t sum;
    if (!set || !image_sum(im, &sum)) return false;
    int n = snprintf(key, CFG_KEPT_KEY, "analysis for %s by %s\nimage build-id %s sum %016llx\nmodule %.200s\n",
                     set->name, CFG_SOURCES, id ? id : "none", (unsigned long long)sum, image_name(im));
    return n > 0 && n < CFG_KEPT_KEY;
}

/* --- texts: reasons are literals, so those that are read must stay for as long as they do --- */

static const char *lasting(const char *text)
{
    enum { MOST = 256 };
    static const char *texts[MOST]; /* the same few in all images */
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(texts[i], text)) return texts[i];
    char *copy = count < MOST ? strdup(text) : NULL;
    return copy ? texts[count++] = copy : NULL;
}

typedef INL_VEC(const char *) reasons;

/* The number of a procedure's reason, from 1 on; 0: it has none. */
static size_t reason_of(reasons *r, const char *reason)
{
    size_t k = 0;
    if (!reason) return 0;
    while (k < r->count && strcmp(r->items[k], reason) != 0) k++;
    if (k == r->count && !inl_vec_push(r, reason)) return 0;
    return k + 1;
}

/* --- writing --- */

/* How an edge tells where it leads to. */
enum { TO_NOTHING, TO_BLOCK, FORM_BITS = 2, KIND_BITS = 3, EDGE_BITS = FORM_BITS + KIND_BITS + 1 };

static void put(inl_bytes *b, uint64_t number) { inl_bytes_uleb(b, number); }
static void put_signed(inl_bytes *b, uint64_t number) { inl_bytes_uleb(b, inl_zigzag((int64_t)number)); }

static void put_procs(const cfg_program *p, inl_bytes *b)
{
    reasons known = {0};
    uint64_t last = 0;
    for (uint32_t i = 0; i < p->proc_count; i++) reason_of(&known, p->procs[i].reason);
    put(b, known.count);
    for (size_t i = 0; i < known.count; i++) {
        put(b, strlen(known.items[i]));
        inl_bytes_put(b, known.items[i], strlen(known.items[i]));
    }
    for (uint32_t i = 0; i < p->proc_count; i++) {
        const cfg_proc *q = &p->procs[i];
        put(b, q->addr - last);
        put(b, q->size);
        put(b, q->block_count);
        put(b, q->padding);
        put(b, (uint64_t)q->flags << 8 | q->source);
        put(b, reason_of(&known, q->reason) << 2 | (uint64_t)q->status << 1 | (q->name != NULL));
        last = q->addr;
    }
    inl_vec_free(&known);
}

static void put_blocks(const cfg_program *p, inl_bytes *b)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < p->block_count; i++) {
        const cfg_block *k = &p->blocks[i];
        put_signed(b, k->addr - end);
        put(b, k->size);
        put(b, k->insn_count);
        put(b, k->edge_count);
        put(b, k->flags);
        end = k->addr + k->size;
    }
}

static void put_edges(const cfg_program *p, inl_bytes *b)
{
    for (uint32_t i = 0; i < p->edge_count; i++) {
        const cfg_edge *e = &p->edges[i];
        const bool known = e->to != CFG_NONE;
        const uint64_t form = known ? TO_BLOCK : TO_NOTHING;
        const uint64_t way = known ? (uint64_t)e->to - e->from : e->target - p->blocks[e->from].addr;
        put(b, inl_zigzag((int64_t)way) << EDGE_BITS | (uint64_t)e->back << (FORM_BITS + KIND_BITS) |
                   (uint64_t)e->kind << FORM_BITS | form);
    }
}

/* With 0 in the sum's own place. */
static uint64_t sum_without(const cfg_kept_head *h, const uint8_t *bytes, size_t size)
{
    cfg_kept_head open = *h;
    open.sum = 0;
    const uint64_t head = inl_sum(&open, sizeof open, 7);
    return inl_sum(bytes + sizeof open, size - sizeof open, head);
}

bool cfg_kept_write(const cfg_program *p, const char *key, inl_bytes *b)
{
    const cfg_private *v = p->priv;
    cfg_kept_head h = {.key_size = (uint32_t)strlen(key), .procs = p->proc_count};
    const uint64_t numbers[] = {p->block_count, p->edge_count, p->table_count,  v->span_count,
                                v->skip_count,  p->text_bytes, p->covered_bytes};
    inl_bytes_put(b, &h, sizeof h);
    inl_bytes_put(b, key, h.key_size);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) put(b, numbers[i]);
    for (size_t i = 0; i < v->span_count; i++) {
        put(b, v->spans[i].addr);
        put(b, v->spans[i].end - v->spans[i].addr);
        put(b, v->spans[i].base);
    }
    for (size_t i = 0; i < v->skip_count; i++) put(b, v->skips[i]);
    put_procs(p, b);
    put_blocks(p, b);
    put_edges(p, b);
    inl_bytes_put(b, p->tables, p->table_count * sizeof *p->tables);
    if (b->failed) return false;
    memcpy(h.magic, CFG_KEPT_MAGIC, sizeof h.magic);
    h.size = b->size;
    h.sum = sum_without(&h, b->data, b->size);
    memcpy(b->data, &h, sizeof h);
    return true;
}

/* --- reading --- */

typedef struct reading {
    const uint8_t *at, *end;
    cfg_program *out;
    cfg_private *priv;
    reasons reasons;
    bool bad;
} reading;

static uint64_t take(reading *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        uint8_t b = *r->at++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
    r->bad = true;
    return 0;
}

static uint64_t take_signed(reading *r) { return (uint64_t)inl_unzigzag(take(r)); }

/* A number of things, each of which is one byte at least; room for them. */
static void *take_room(reading *r, uint64_t count, size_t size)
{
    void *room = count <= (uint64_t)(r->end - r->at) ? calloc(count + 1, size) : NULL;
    if (!room) r->bad = true;
    return room;
}

static void take_counts(reading *r)
{
    cfg_program *p = r->out;
    cfg_private *v = r->priv;
    const uint64_t blocks = take(r), edges = take(r), tables = take(r), spans = take(r), skips = take(r);
    p->text_bytes = take(r);
    p->covered_bytes = take(r);
    p->procs = take_room(r, p->proc_count, sizeof *p->procs);
    p->blocks = take_room(r, blocks, sizeof *p->blocks);
    p->edges = take_room(r, edges, sizeof *p->edges);
    p->tables = take_room(r, tables, sizeof *p->tables);
    v->spans = take_room(r, spans, sizeof *v->spans);
    v->skips = take_room(r, skips, sizeof *v->skips);
    if (r->bad || blocks >= CFG_NONE || edges >= CFG_NONE) {
        r->bad = true;
        return;
    }
    p->block_count = (uint32_t)blocks, p->edge_count = (uint32_t)edges, p->table_count = (uint32_t)tables;
    v->span_count = spans, v->skip_count = skips;
}

static void take_spans(reading *r)
{
    cfg_private *v = r->priv;
    uint64_t bytes = 0;
    for (size_t i = 0; i < v->span_count && !r->bad; i++) {
        const uint64_t addr = take(r), size = take(r), base = take(r);
        v->spans[i] = (cfg_text_span){addr, addr + size, base};
        r->bad |= addr + size < addr || base != bytes || size > (1ull << 40);
        bytes += size;
    }
    for (size_t i = 0; i < v->skip_count; i++) v->skips[i] = take(r);
    r->bad |= bytes < r->out->block_count;
    if (!r->bad) r->bad = !cfg_private_open(v, bytes);
}

static void take_reasons(reading *r)
{
    for (uint64_t left = take(r); left && !r->bad; left--) {
        char text[256];
        const uint64_t n = take(r);
        if (n >= sizeof text || n > (uint64_t)(r->end - r->at)) r->bad = true;
        if (r->bad) return;
        memcpy(text, r->at, n);
        text[n] = 0;
        r->at += n;
        const char *reason = lasting(text);
        if (!reason || !inl_vec_push(&r->reasons, reason)) r->bad = true;
    }
}

static void take_procs(reading *r)
{
    cfg_program *p = r->out;
    const image_proc *named;
    size_t count = image_procs(p->image, &named), next = 0;
    uint64_t addr = 0, blocks = 0;
    for (uint32_t i = 0; i < p->proc_count && !r->bad; i++) {
        cfg_proc *q = &p->procs[i];
        addr += take(r);
        *q = (cfg_proc){.addr = addr, .size = take(r), .first_block = (uint32_t)blocks};
        const uint64_t own = take(r), padding = take(r), flags = take(r), last = take(r), reason = last >> 2;
        q->block_count = (uint32_t)own, q->padding = (uint32_t)padding;
        q->flags = (uint16_t)(flags >> 8), q->source = (uint8_t)flags;
        q->status = last >> 1 & 1 ? CFG_PROC_PARTLY : CFG_PROC_WHOLE;
        blocks += own;
        r->bad |= own > p->block_count || blocks > p->block_count || padding > UINT32_MAX || reason > r->reasons.count;
        if (!r->bad && reason) q->reason = r->reasons.items[reason - 1];
        while (next < count && named[next].addr < addr) next++;
        if (!(last & 1)) continue;
        if (next < count && named[next].addr == addr) q->name = named[next].name;
        else r->bad = true;
    }
    r->bad |= blocks != p->block_count;
}

static void take_blocks(reading *r)
{
    cfg_program *p = r->out;
    uint64_t end = 0, edges = 0;
    uint32_t proc = 0;
    for (uint32_t i = 0; i < p->block_count && !r->bad; i++) {
        cfg_block *k = &p->blocks[i];
        k->addr = end + take_signed(r);
        const uint64_t size = take(r), insns = take(r), own = take(r), flags = take(r);
        while (i - p->procs[proc].first_block >= p->procs[proc].block_count) proc++; /* all are some procedure's */
        k->proc = proc;
        k->size = (uint32_t)size, k->insn_count = (uint16_t)insns, k->flags = (uint32_t)flags;
        k->first_edge = (uint32_t)edges, k->edge_count = (uint16_t)own;
        edges += own;
        end = k->addr + size;
        r->bad |= own > UINT16_MAX || insns > UINT16_MAX || size > UINT32_MAX || edges > p->edge_count ||
                  (i && k->addr <= p->blocks[i - 1].addr) || !cfg_private_note(r->priv, k->addr);
    }
    r->bad |= edges != p->edge_count;
    if (!r->bad) cfg_private_rank(r->priv);
}

static void take_edges(reading *r)
{
    cfg_program *p = r->out;
    for (uint32_t from = 0, i = 0; i < p->edge_count && !r->bad; i++) {
        cfg_edge *e = &p->edges[i];
        const uint64_t word = take(r), way = (uint64_t)inl_unzigzag(word >> EDGE_BITS);
        while (i - p->blocks[from].first_edge >= p->blocks[from].edge_count) from++;
        const unsigned form = word & ((1 << FORM_BITS) - 1), kind = word >> FORM_BITS & ((1 << KIND_BITS) - 1);
        const uint64_t to = form == TO_NOTHING ? CFG_NONE : from + way;
        if (kind > CFG_EDGE_TAIL || form > TO_BLOCK || (form != TO_NOTHING && to >= p->block_count)) {
            r->bad = true;
            return;
        }
        const uint64_t target = form == TO_NOTHING ? p->blocks[from].addr + way : p->blocks[to].addr;
        *e = (cfg_edge){.target = target & ((1ull << 56) - 1),
                        .kind = kind & 0x7f,
                        .back = word >> (FORM_BITS + KIND_BITS) & 1,
                        .from = from,
                        .to = (uint32_t)to};
    }
}

static void take_tables(reading *r)
{
    cfg_program *p = r->out;
    const size_t size = p->table_count * sizeof *p->tables;
    if (r->bad || (size_t)(r->end - r->at) != size) {
        r->bad = true;
        return;
    }
    memcpy(p->tables, r->at, size);
    for (uint32_t i = 0; i < p->table_count; i++)
        r->bad |= p->tables[i].block >= p->block_count || p->tables[i].kind > CFG_TABLE_CODE;
}

/* Is it what was written with the key? Where the body begins, or NULL. */
static const uint8_t *body_of(const uint8_t *bytes, size_t size, const char *key, cfg_kept_head *h)
{
    const size_t n = strlen(key);
    if (size < sizeof *h) return NULL;
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, CFG_KEPT_MAGIC, sizeof h->magic) != 0 || h->size != size || h->key_size != n) return NULL;
    return size - sizeof *h >= n && memcmp(bytes + sizeof *h, key, n) == 0 ? bytes + sizeof *h + n : NULL;
}

cfg_program *cfg_kept_read(image *im, const char *key, const uint8_t *bytes, size_t size)
{
    cfg_kept_head h;
    const uint8_t *body = body_of(bytes, size, key, &h);
    if (!body || h.sum != sum_without(&h, bytes, size)) return NULL;
    cfg_program *p = calloc(1, sizeof *p);
    if (!p || !(p->priv = calloc(1, sizeof(cfg_private)))) {
        free(p);
        return NULL;
    }
    reading r = {.at = body, .end = bytes + size, .out = p, .priv = p->priv};
    p->image = im;
    p->isa = isa_for_machine(image_machine(im));
    p->proc_count = h.procs;
    take_counts(&r);
    if (!r.bad) take_spans(&r);
    if (!r.bad) take_reasons(&r);
    if (!r.bad) take_procs(&r);
    if (!r.bad) take_blocks(&r);
    if (!r.bad) take_edges(&r);
    take_tables(&r);
    inl_vec_free(&r.reasons);
    if (!r.bad) return p;
    cfg_program_free(p);
    return NULL;
}
