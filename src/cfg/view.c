/* The blocks of one procedure, made from the marks: what the evaluation of indirect jumps walks over, and
 * what the final result is copied from. Arrays are reused from one procedure to the next. */
#include "cfg/work.h"
#include "base/search.h"

static void add_edge(cfg_view *v, uint64_t target, uint8_t kind)
{
    const cfg_draft *p = &v->work->procs.items[v->proc];
    target = cfg_behind_prefix(v->work, target);
    cfg_view_edge e = {.target = target, .from = (uint32_t)v->blocks.count - 1, .to = CFG_NONE};
    bool inside = cfg_inside(p, target);
    e.kind = !inside && kind != CFG_EDGE_FALL ? CFG_EDGE_TAIL : kind;
    cfg_keep(v->work, &v->edges, e);
}

static int by_target(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Everything inside the procedure whose address is taken; pointers are sorted by target. */
static size_t taken_inside(const cfg_view *v, uint64_t *out)
{
    const cfg_work *w = v->work;
    const cfg_draft *p = &w->procs.items[v->proc];
    size_t i = INL_FIRST(w->pointers.count, k, w->pointers.items[k].to >= p->addr), count = 0;
    for (; i < w->pointers.count && w->pointers.items[i].to < p->end; i++) {
        const cfg_pointer *q = &w->pointers.items[i];
        if (!q->used) continue;
        if (out) out[count] = q->to;
        count++;
    }
    return count;
}

/* Where a jump goes by a table (or NULL), and by addresses taken. */
static void add_indirect_edges(cfg_view *v, const cfg_table *t, bool taken)
{
    size_t count = taken ? taken_inside(v, NULL) : 0;
    uint64_t *targets = malloc((count + (t ? t->count : 0) + 1) * sizeof *targets);
    bool ok;
    if (!targets) {
        v->work->failed = true;
        return;
    }
    if (taken) taken_inside(v, targets);
    for (uint32_t i = 0; t && i < t->count; i++) {
        uint64_t target = cfg_read_target(v->work->image, t, i, &ok);
        if (ok) targets[count++] = target;
    }
    size_t ascends = 1; /* up to there, as all do without a table */
    while (ascends < count && targets[ascends - 1] <= targets[ascends]) ascends++;
    if (ascends < count) qsort(targets, count, sizeof *targets, by_target);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || targets[i] != targets[i - 1]) add_edge(v, targets[i], CFG_EDGE_TABLE);
    free(targets);
}

static void indirect_edges(cfg_view *v, cfg_view_block *b, const cfg_indirect *i)
{
    const cfg_work *w = v->work;
    uint8_t way = i ? i->way : WAY_NEW;
    b->indirect = true;
    if (way == WAY_TABLE || way == WAY_GOTO)
        add_indirect_edges(v, i->table == CFG_NONE ? NULL : &w->tables.items[i->table], way == WAY_GOTO);
    b = &v->blocks.items[v->blocks.count - 1];
    if (way == WAY_TAIL || (i && i->leaves)) b->flags |= CFG_BLOCK_TAIL_IND;
    if (way == WAY_UNKNOWN || way == WAY_NEW) b->flags |= CFG_BLOCK_UNRESOLVED;
}

static void end_edges(cfg_view *v, cfg_view_block *b, const isa_insn *in, uint8_t marks)
{
    switch (in->flow) {
    case ISA_FLOW_JUMP: add_edge(v, in->target, CFG_EDGE_JUMP); return;
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG:
    case ISA_FLOW_TX:
        add_edge(v, in->target, CFG_EDGE_TAKEN);
        add_edge(v, b->end, CFG_EDGE_NOT_TAKEN);
        return;
    case ISA_FLOW_CALL:
    case ISA_FLOW_CALL_IND:
        b->flags |= CFG_BLOCK_CALL;
        if (marks & MARK_NORET) b->flags |= CFG_BLOCK_NO_RETURN;
        else add_edge(v, b->end, CFG_EDGE_RETURNED);
        return;
    case ISA_FLOW_SYSCALL:
        b->flags |= CFG_BLOCK_SYSCALL;
        if (!(marks & MARK_NORET)) add_edge(v, b->end, CFG_EDGE_FALL);
        return;
    case ISA_FLOW_RETURN: b->flags |= CFG_BLOCK_RETURN; return;
    default: return;
    }
}

static void close_block(cfg_view *v, uint8_t marks)
{
    cfg_view_block *b = &v->blocks.items[v->blocks.count - 1];
    isa_insn in;
    b->first_edge = (uint32_t)v->edges.count;
    b->term = marks & MARK_TERM;
    if (!b->term) add_edge(v, b->end, CFG_EDGE_FALL);
    else if (cfg_decode(v->work, b->last, b->end, &in)) {
        const cfg_indirect *i = cfg_indirect_at(v->work, b->last);
        end_edges(v, b, &in, marks);
        if (i || in.flow == ISA_FLOW_JUMP_IND) indirect_edges(v, b, i);
    }
    b = &v->blocks.items[v->blocks.count - 1];
    b->edge_count = (uint32_t)v->edges.count - b->first_edge;
}

static void make_blocks(cfg_view *v)
{
    const cfg_work *w = v->work;
    const cfg_draft *p = &w->procs.items[v->proc];
    const cfg_region *r = cfg_region_at(w, p->addr);
    uint64_t end = p->end < r->end ? p->end : r->end;
    const uint8_t *marks = w->marks + r->base;
    bool open = false;
    uint8_t last = 0;
    for (uint64_t a = p->addr; a < end && !w->failed;) {
        uint8_t m = marks[a - r->addr];
        if (!(m & MARK_INSN)) {
            a++;
            continue;
        }
        cfg_view_block *b = v->blocks.count ? &v->blocks.items[v->blocks.count - 1] : NULL;
        if (open && (m & MARK_BLOCK || b->end != a)) {
            close_block(v, last);
            open = false;
        }
        if (!open) {
            cfg_keep(v->work, &v->blocks, (cfg_view_block){.addr = a});
            if (w->failed) return;
        }
        b = &v->blocks.items[v->blocks.count - 1];
        b->last = a++;
        b->insns++;
        while (a < end && (marks[a - r->addr] & (MARK_BODY | MARK_INSN)) == MARK_BODY) a++;
        b->end = a;
        last = m;
        open = !(m & MARK_TERM);
        if (!open) close_block(v, last);
    }
    if (open) close_block(v, last);
}

uint32_t cfg_view_find(const cfg_view *v, uint64_t addr)
{
    size_t behind = INL_FIRST(v->blocks.count, k, v->blocks.items[k].addr > addr);
    return behind && addr < v->blocks.items[behind - 1].end ? (uint32_t)behind - 1 : CFG_NONE;
}

/* Mostly the next one. */
static uint32_t target_of(const cfg_view *v, const cfg_view_edge *e)
{
    uint32_t next = e->from + 1;
    return next < v->blocks.count && v->blocks.items[next].addr == e->target ? next : cfg_view_find(v, e->target);
}

static void connect(cfg_view *v, bool with_preds)
{
    for (size_t i = 0; i < v->edges.count; i++) {
        cfg_view_edge *e = &v->edges.items[i];
        uint32_t b = target_of(v, e);
        e->to = b != CFG_NONE && v->blocks.items[b].addr == e->target ? b : CFG_NONE;
        if (e->to != CFG_NONE) v->blocks.items[e->to].pred_count++;
    }
    if (!with_preds) return;
    uint32_t at = 0;
    for (size_t i = 0; i < v->blocks.count; i++) {
        v->blocks.items[i].first_pred = at;
        at += v->blocks.items[i].pred_count;
        v->blocks.items[i].pred_count = 0;
    }
    if (!inl_vec_reserve(&v->preds, at)) {
        v->work->failed = true;
        return;
    }
    v->preds.count = at;
    for (uint32_t i = 0; i < v->edges.count; i++) {
        if (v->edges.items[i].to == CFG_NONE) continue;
        cfg_view_block *b = &v->blocks.items[v->edges.items[i].to];
        v->preds.items[b->first_pred + b->pred_count++] = i;
    }
}

void cfg_view_make(cfg_view *v, cfg_work *w, uint32_t proc, bool with_preds)
{
    v->work = w;
    v->proc = proc;
    v->blocks.count = v->edges.count = v->preds.count = v->stack.count = 0;
    v->epoch = 0;
    v->has_heights = false;
    for (int i = 0; i < CFG_VIEW_CACHE; i++) v->cache[i].block = CFG_NONE;
    make_blocks(v);
    if (!w->failed) connect(v, with_preds);
    v->budget = 1000000;
}

void cfg_view_free(cfg_view *v)
{
    inl_vec_free(&v->blocks);
    inl_vec_free(&v->edges);
    inl_vec_free(&v->preds);
    inl_vec_free(&v->stack);
    inl_vec_free(&v->places);
    inl_vec_free(&v->seen);
    inl_vec_free(&v->heights);
    for (int i = 0; i < CFG_VIEW_CACHE; i++) inl_vec_free(&v->cache[i].insns);
}

const isa_insn *cfg_view_insns(cfg_view *v, uint32_t block, uint32_t *count)
{
    cfg_view_cache *c = NULL;
    for (int i = 0; i < CFG_VIEW_CACHE && !c; i++)
        if (v->cache[i].block == block) c = &v->cache[i];
    if (!c) {
        const cfg_view_block *b = &v->blocks.items[block];
        c = &v->cache[v->next_cache++ % CFG_VIEW_CACHE];
        c->block = block;
        c->insns.count = 0;
        isa_insn in;
        for (uint64_t a = b->addr; a < b->end && cfg_decode(v->work, a, b->end, &in); a += in.len)
            cfg_keep(v->work, &c->insns, in);
    }
    *count = (uint32_t)c->insns.count;
    return c->insns.items;
}

uint64_t cfg_insn_writes(const cfg_work *w, const isa_insn *in)
{
    isa_effects fx;
    w->isa->effects(in, &fx);
    bool call = in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND;
    return fx.writes | (call ? w->machine->call_clobbers : 0);
}

uint64_t cfg_changes(const cfg_work *w, const isa_insn *in)
{
    isa_effects fx;
    w->isa->effects(in, &fx);
    bool call = in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND;
    return fx.writes | (call ? w->machine->results : 0);
}

uint64_t cfg_view_writes(cfg_view *v, uint32_t block)
{
    cfg_view_block *b = &v->blocks.items[block];
    if (!b->has_writes) {
        uint32_t count;
        const isa_insn *in = cfg_view_insns(v, block, &count);
        for (uint32_t i = 0; i < count; i++) b->writes |= cfg_changes(v->work, &in[i]);
        b->has_writes = true;
    }
    return b->writes;
}
