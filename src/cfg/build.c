/* The result: procedures, blocks and edges in flat arrays, copied from the views of all procedures, and
 * then what can only be said when all are there: which blocks an edge leads to, flags, loops. */
#include "cfg/private.h"

typedef struct builder {
    cfg_work *work;
    cfg_program *out;
    cfg_private *priv;
    INL_VEC(cfg_proc) procs;
    INL_VEC(cfg_block) blocks;
    INL_VEC(cfg_edge) edges;
    INL_VEC(cfg_table) tables;
} builder;

static const char too_large[] = "a block is too large";

/* --- looking up --- */

bool cfg_private_open(cfg_private *p, size_t bytes)
{
    p->words = bytes / 64 + 1;
    p->bits = calloc(p->words, sizeof *p->bits);
    p->ranks = calloc(p->words, sizeof *p->ranks);
    return p->bits && p->ranks;
}

bool cfg_private_note(cfg_private *p, uint64_t addr)
{
    for (size_t i = 0; i < p->span_count; i++) {
        cfg_text_span *s = &p->spans[i];
        if (addr < s->addr || addr >= s->end) continue;
        size_t bit = s->base + (addr - s->addr);
        p->bits[bit / 64] |= 1ull << bit % 64;
        return true;
    }
    return false;
}

void cfg_private_rank(cfg_private *p)
{
    uint32_t count = 0;
    for (size_t i = 0; i < p->words; i++) {
        p->ranks[i] = count;
        count += (uint32_t)__builtin_popcountll(p->bits[i]);
    }
}

static bool open_spans(builder *b)
{
    const cfg_work *w = b->work;
    cfg_private *p = b->priv;
    p->spans = calloc(w->regions.count, sizeof *p->spans);
    if (!p->spans || !cfg_private_open(p, w->mark_count)) return false;
    p->span_count = w->regions.count;
    for (size_t i = 0; i < w->regions.count; i++) {
        const cfg_region *r = &w->regions.items[i];
        p->spans[i] = (cfg_text_span){r->addr, r->end, r->base};
    }
    return true;
}

/* --- procedures and their blocks --- */

static void add_block(builder *b, const cfg_view *v, const cfg_view_block *from, cfg_draft *p)
{
    cfg_block k = {.addr = from->addr,
                   .size = (uint32_t)(from->end - from->addr),
                   .proc = (uint32_t)b->procs.count,
                   .first_edge = (uint32_t)b->edges.count,
                   .flags = from->flags};
    uint32_t count = from->edge_count;
    if (from->insns > UINT16_MAX || count > UINT16_MAX) {
        p->reason = too_large;
        count = count > UINT16_MAX ? UINT16_MAX : count;
    }
    k.edge_count = (uint16_t)count;
    k.insn_count = from->insns > UINT16_MAX ? UINT16_MAX : (uint16_t)from->insns;
    if (k.flags & CFG_BLOCK_UNRESOLVED && !p->reason) p->reason = "an indirect jump whose targets are not known";
    for (uint32_t i = 0; i < count; i++) {
        const cfg_view_edge *e = &v->edges.items[from->first_edge + i];
        cfg_edge out = {.target = e->target, .from = (uint32_t)b->blocks.count, .to = CFG_NONE, .kind = e->kind};
        cfg_keep(b->work, &b->edges, out);
    }
    const cfg_indirect *j = from->indirect ? cfg_indirect_at(b->work, from->last) : NULL;
    if (j && j->table != CFG_NONE) {
        cfg_table t = b->work->tables.items[j->table];
        t.block = (uint32_t)b->blocks.count;
        cfg_keep(b->work, &b->tables, t);
    }
    cfg_private_note(b->priv, k.addr);
    cfg_keep(b->work, &b->blocks, k);
}

/* Is the instruction at `addr` one that only traps? Its size, 0: no. */
static uint64_t trap_at(const cfg_work *w, uint64_t addr, uint64_t end)
{
    isa_insn in;
    if (!cfg_decode(w, addr, end, &in)) return 0;
    return w->sems[in.op] == SEM_HALT ? in.len : 0;
}

/* Is there anything between two places that is neither padding nor a trap nor a table? */
static bool is_unexplained(const builder *b, uint64_t at, uint64_t end)
{
    const cfg_work *w = b->work;
    while ((at = cfg_skip_padding(w, at, end)) < end) {
        uint64_t skip = cfg_in_table(w, at) ? 1 : trap_at(w, at, end);
        if (skip == 0) return true;
        at += skip;
    }
    return false;
}

static bool has_unexplained(const builder *b, const cfg_view *v, uint64_t end)
{
    uint64_t at = b->work->procs.items[v->proc].addr;
    for (size_t i = 0; i < v->blocks.count; i++) {
        const cfg_view_block *k = &v->blocks.items[i];
        if (k->addr > at && is_unexplained(b, at, k->addr)) return true;
        at = k->end;
    }
    return at < end && is_unexplained(b, at, end);
}

/* A table whose length nothing proves has been read too short if there is code that nothing leads to. Of a piece that
 * code may be anywhere. */
static void judge_tables(builder *b, const cfg_view *v, cfg_draft *p, size_t first)
{
    bool open = false;
    for (size_t i = first; i < b->tables.count; i++) {
        open |= !b->tables.items[i].exact;
        if (b->tables.items[i].broken && !p->reason) p->reason = "a jump table leads into the middle of an instruction";
    }
    if (!open) return;
    if (has_unexplained(b, v, p->end)) {
        if (!p->reason) p->reason = "a jump table of unknown length, and bytes that nothing leads to";
        return;
    }
    if (cfg_has_unknown_origin(p)) return;
    for (size_t i = first; i < b->tables.count; i++) b->tables.items[i].exact |= b->tables.items[i].ends;
}

static void add_proc(builder *b, cfg_view *v, uint32_t number, uint64_t next)
{
    cfg_work *w = b->work;
    cfg_draft *p = &w->procs.items[number];
    size_t tables = b->tables.count;
    cfg_view_make(v, w, number, false);
    cfg_proc out = {.addr = p->addr,
                    .name = p->name,
                    .source = p->source,
                    .flags = p->flags,
                    .first_block = (uint32_t)b->blocks.count};
    for (size_t i = 0; i < v->blocks.count && !w->failed; i++) add_block(b, v, &v->blocks.items[i], p);
    out.block_count = (uint32_t)b->blocks.count - out.first_block;
    judge_tables(b, v, p, tables);
    bool begins = v->blocks.count && v->blocks.items[0].addr == p->addr;
    uint64_t end = v->blocks.count ? v->blocks.items[v->blocks.count - 1].end : p->end;
    out.size = end - p->addr;
    out.padding = (uint32_t)(cfg_skip_padding(w, end, next) - end);
    if (begins && out.block_count) b->blocks.items[out.first_block].flags |= CFG_BLOCK_ENTRY;
    else if (!p->reason) p->reason = "no code at its entry";
    if (p->flags & CFG_PROC_GUESSED && !p->reason) p->reason = "found by its first instructions only";
    out.reason = p->reason;
    out.status = p->reason ? CFG_PROC_PARTLY : CFG_PROC_WHOLE;
    if (!p->returns) out.flags |= CFG_PROC_NO_RETURN;
    cfg_keep(w, &b->procs, out);
}

/* --- flags that need the whole --- */

static void flag_block(cfg_program *p, uint64_t addr, uint32_t flags)
{
    uint32_t b = cfg_block_at(p, addr);
    if (b != CFG_NONE) p->blocks[b].flags |= flags;
}

static const char to_nowhere[] = "a branch to where no code is known";

static void spoil(cfg_program *p, uint32_t block)
{
    cfg_proc *of = &p->procs[p->blocks[block].proc];
    if (of->status != CFG_PROC_WHOLE) return;
    of->status = CFG_PROC_PARTLY;
    of->reason = to_nowhere;
}

static void connect(cfg_program *p)
{
    for (uint32_t i = 0; i < p->edge_count; i++) {
        cfg_edge *e = &p->edges[i];
        uint32_t next = e->from + 1; /* mostly */
        e->to = next < p->block_count && p->blocks[next].addr == e->target ? next : cfg_block_at(p, e->target);
        if (e->to == CFG_NONE) {
            if (e->kind != CFG_EDGE_TAIL) spoil(p, e->from);
            continue;
        }
        cfg_block *to = &p->blocks[e->to];
        if (e->kind == CFG_EDGE_TABLE) to->flags |= CFG_BLOCK_TABLE;
        if (to->proc != p->blocks[e->from].proc) to->flags |= CFG_BLOCK_OUTSIDE;
    }
}

/* A table's edge to another procedure counts as leaving this one, and is a table's all the same. */
static void flag_table_targets(const cfg_work *w, cfg_program *p)
{
    for (uint32_t i = 0; i < p->table_count; i++)
        for (uint32_t k = 0; k < p->tables[i].count; k++) {
            const cfg_table *t = &p->tables[i];
            uint64_t target = cfg_table_target(p, t, k);
            if (cfg_block_at(p, target) == CFG_NONE && t->block != CFG_NONE &&
                !cfg_is_hole(w, cfg_proc_near(w, t->jump), target))
                spoil(p, t->block);
            flag_block(p, target, CFG_BLOCK_TABLE);
        }
}

static void apply_notes(const cfg_work *w, cfg_program *p)
{
    for (size_t i = 0; i < w->notes.count; i++) flag_block(p, w->notes.items[i].addr, w->notes.items[i].flags);
    for (size_t i = 0; i < w->pointers.count; i++) {
        const cfg_pointer *q = &w->pointers.items[i];
        if (q->used && (q->in_code || !cfg_in_table(w, q->at))) flag_block(p, q->to, CFG_BLOCK_ADDRESS_TAKEN);
    }
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (p->procs[i].flags & CFG_PROC_ADDRESS_TAKEN && p->procs[i].block_count)
            p->blocks[p->procs[i].first_block].flags |= CFG_BLOCK_ADDRESS_TAKEN;
}

static int by_jump(const void *a, const void *b)
{
    const cfg_table *x = a, *y = b;
    return x->jump < y->jump ? -1 : x->jump > y->jump;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void hand_over(builder *b)
{
    cfg_work *w = b->work;
    if (w->skips.count) qsort(w->skips.items, w->skips.count, sizeof(uint64_t), by_address);
    b->priv->skips = w->skips.items;
    b->priv->skip_count = w->skips.count;
    w->skips.items = NULL;
    w->skips.count = w->skips.capacity = 0;
    cfg_program *p = b->out;
    p->procs = b->procs.items, p->proc_count = (uint32_t)b->procs.count;
    p->blocks = b->blocks.items, p->block_count = (uint32_t)b->blocks.count;
    p->edges = b->edges.items, p->edge_count = (uint32_t)b->edges.count;
    p->tables = b->tables.items, p->table_count = (uint32_t)b->tables.count;
    if (p->table_count) qsort(p->tables, p->table_count, sizeof *p->tables, by_jump);
}

inl_status cfg_build(cfg_work *w, cfg_program *out, inl_error *e)
{
    builder b = {.work = w, .out = out, .priv = out->priv};
    cfg_view v = {0};
    cfg_index_tables(w);
    bool ok = open_spans(&b);
    for (size_t i = 0; i < w->order.count && ok && !w->failed; i++) {
        const cfg_region *r = cfg_region_at(w, w->starts.items[i]);
        uint64_t next = i + 1 < w->order.count && w->starts.items[i + 1] < r->end ? w->starts.items[i + 1] : r->end;
        add_proc(&b, &v, w->order.items[i], next);
    }
    cfg_view_free(&v);
    hand_over(&b);
    if (!ok || w->failed) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(w->image));
    cfg_private_rank(b.priv);
    connect(out);
    flag_table_targets(w, out);
    apply_notes(w, out);
    cfg_mark_loops(out);
    for (size_t i = 0; i < w->regions.count; i++) out->text_bytes += w->regions.items[i].end - w->regions.items[i].addr;
    for (uint32_t i = 0; i < out->proc_count; i++)
        if (out->procs[i].status == CFG_PROC_WHOLE) out->covered_bytes += out->procs[i].size;
    return w->failed ? inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(w->image)) : INL_OK;
}
