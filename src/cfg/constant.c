/* The constant that a register holds at a place: the table's address of an indirect jump, what an index is compared
 * with.
 *
 * It may be put there in several places: from a spill slot that it was put into, from either side of a loop, as the sum
 * of another one and a number. All that it may come from is searched once: a register or a slot, with what is added on
 * the way, is a source, and no block is looked at twice for one source, however the copies go in circles. All
 * constants must agree; what cannot be followed, and numbers that are no address where others are, are passed over, but
 * then no single instruction names the constant. Since no compiler lets two tables share one jump, a constant that
 * reaches a jump on one path is the one on all. */
#include "cfg/work.h"

enum { max_sources = 64, max_sums = 4 };

typedef struct source {
    unsigned reg;
    bool in_slot;
    isa_mem slot; /* when in_slot */
    uint64_t add; /* to what is found there */
    bool plain;   /* nothing was ever added: who names what is found names the constant */
} source;

typedef struct search {
    cfg_view *v;
    source sources[max_sources];
    unsigned count;
    cfg_constant found;
    bool got;
    bool unsure;   /* something could not be followed, or is passed over */
    bool open;     /* two of them, and neither is a table: one may come yet */
    bool conflict; /* two, and either may be */
} search;

/* --- which of two --- */

static bool is_address(const search *s, uint64_t value)
{
    const uint8_t *bytes;
    return image_bytes(s->v->work->image, value, &bytes) != 0;
}

/* Does a table of jumps seem to begin there: is its first entry, relative or absolute, code? */
static bool leads_to_code(const search *s, uint64_t value)
{
    const cfg_work *w = s->v->work;
    const uint8_t *bytes;
    int32_t distance;
    uint64_t to;
    size_t have = image_bytes(w->image, value, &bytes);
    if (have < sizeof to) return false;
    __builtin_memcpy(&distance, bytes, sizeof distance);
    __builtin_memcpy(&to, bytes, sizeof to);
    return cfg_mark(w, value + (uint64_t)(int64_t)distance) || cfg_mark(w, to);
}

/* Of two constants. -1: the first, 1: the second, which may be a table where the other is none, or an address where the
 * other is a number. */
static int likelier(const search *s, uint64_t first, uint64_t second)
{
    int is = is_address(s, second) - is_address(s, first);
    return is ? is : leads_to_code(s, second) - leads_to_code(s, first);
}

/* Who arrives from behind a call that in truth does not return may bring anything. */
static void take(search *s, cfg_constant one)
{
    if (s->got && one.value != s->found.value) {
        int better = likelier(s, s->found.value, one.value);
        s->conflict |= !better && leads_to_code(s, one.value);
        s->open = better ? s->open && better < 0 : true;
        s->unsure = true;
        if (better <= 0) return;
    }
    if (s->got && one.named_at != s->found.named_at) one.named_at = 0;
    s->found = one;
    s->got = true;
}

/* --- where it comes from --- */

static bool same_holder(const source *a, const source *b)
{
    if (a->in_slot != b->in_slot) return false;
    if (!a->in_slot) return a->reg == b->reg;
    return a->slot.base == b->slot.base && a->slot.disp == b->slot.disp && a->slot.size == b->slot.size;
}

static uint64_t *seen_of(const search *s, uint32_t number)
{
    return s->v->seen.items + number * ((s->v->blocks.count + 63) / 64);
}

/* No block has been looked at for the newest source. */
static bool begin_seen(search *s)
{
    cfg_view *v = s->v;
    size_t words = (v->blocks.count + 63) / 64;
    if (!inl_vec_reserve(&v->seen, s->count * words)) return false;
    for (size_t i = 0; i < words; i++) seen_of(s, s->count - 1)[i] = 0;
    return true;
}

/* The source is looked for before a place. What counts in a loop is met with one sum after the other. */
static void look_from(search *s, const source *from, cfg_point at)
{
    unsigned i, sums = 0;
    for (i = 0; i < s->count; i++) {
        const source *other = &s->sources[i];
        if (!same_holder(other, from)) continue;
        if (other->add == from->add && other->plain == from->plain) break;
        sums++;
    }
    if (i == max_sources || sums == max_sums) {
        s->unsure = true;
        return;
    }
    if (i == s->count) {
        s->sources[s->count++] = *from;
        if (!begin_seen(s)) s->v->work->failed = true;
    }
    cfg_keep(s->v->work, &s->v->places, ((cfg_place){i, at}));
}

/* Nothing leads there but a call that seems not to return: were the block ever executed, it would be from there. */
static bool is_behind_call(const cfg_view *v, uint32_t block)
{
    const cfg_view_block *b = &v->blocks.items[block];
    return block && b->pred_count == 0 && b[-1].end == b->addr && b[-1].flags & CFG_BLOCK_NO_RETURN;
}

static void look_above(search *s, const cfg_place *place)
{
    cfg_view *v = s->v;
    const cfg_view_block *b = &v->blocks.items[place->at.block];
    uint64_t *seen = seen_of(s, place->number);
    if (cfg_ends_at_entry(v, place->at.block)) s->unsure = true;
    for (uint32_t i = 0; i < b->pred_count + is_behind_call(v, place->at.block); i++) {
        uint32_t from = place->at.block - 1;
        if (i < b->pred_count) from = v->edges.items[v->preds.items[b->first_pred + i]].from;
        if (seen[from / 64] >> from % 64 & 1) continue;
        seen[from / 64] |= 1ull << from % 64;
        cfg_keep(v->work, &v->places, ((cfg_place){place->number, {from, CFG_NONE}}));
    }
}

/* A definition is followed: to another register or slot, with another sum, or it `ends`: the sum is the constant.
 * False: it cannot be. */
static bool follow_lea(const cfg_shape *c, source *on, bool *ends)
{
    if (!c->has_mem || c->mem.index != ISA_NO_REG) return false;
    *ends = c->mem.base == ISA_NO_REG || c->mem.bits & ISA_MEM_PCREL;
    bool plain = on->plain && (*ends || !c->mem.disp);
    *on = (source){.reg = c->mem.base, .add = on->add + (uint64_t)c->mem.disp, .plain = plain};
    return true;
}

static bool follow_copy(const cfg_work *w, const cfg_shape *c, source *on, bool *ends)
{
    *ends = c->src.kind == ISA_OPERAND_IMM;
    if (*ends) {
        uint64_t value = (uint64_t)c->src.imm;
        on->add += c->dst.size == 4 ? (uint32_t)value : value;
        return c->dst.size >= 4;
    }
    if (c->dst.size < 8) return false;
    *on = (source){.reg = c->src.reg, .add = on->add, .plain = on->plain};
    if (c->src.kind == ISA_OPERAND_REG) return true;
    on->in_slot = c->dst.kind == ISA_OPERAND_REG && c->has_mem && cfg_is_slot(w, &c->mem);
    on->slot = c->mem;
    return on->in_slot;
}

/* A number, or what a register certainly holds. */
static bool follow_sum(cfg_view *v, const cfg_shape *c, cfg_point at, source *on)
{
    uint64_t by = (uint64_t)c->src.imm;
    const bool registers = c->src.kind == ISA_OPERAND_REG && c->src.size == 8;
    if (c->dst.kind != ISA_OPERAND_REG || c->dst.size != 8) return false;
    *on = (source){.reg = c->dst.reg, .add = on->add};
    if (c->src.kind == ISA_OPERAND_IMM || (registers && cfg_exact_value(v, c->src.reg, at, &by))) {
        on->add += c->sem == SEM_ADD ? by : -by;
        return true;
    }
    if (!registers || c->sem != SEM_ADD || !cfg_exact_value(v, c->dst.reg, at, &by)) return false;
    *on = (source){.reg = c->src.reg, .add = on->add + by};
    return true;
}

static bool follow(cfg_view *v, const cfg_shape *c, cfg_point at, source *on, bool *ends)
{
    *ends = false;
    if (!c->has_dst || !c->has_src) return false;
    if (c->sem == SEM_LEA) return follow_lea(c, on, ends);
    if (c->sem == SEM_MOV) return follow_copy(v->work, c, on, ends);
    return (c->sem == SEM_ADD || c->sem == SEM_SUB) && follow_sum(v, c, at, on);
}

static void take_definition(search *s, source on, const cfg_def *d)
{
    cfg_shape c;
    bool ends;
    cfg_shape_of(s->v->work, &d->in, &c);
    if (!follow(s->v, &c, d->at, &on, &ends)) s->unsure = true;
    else if (ends) take(s, (cfg_constant){on.add, on.plain ? d->in.addr : 0});
    else look_from(s, &on, d->at);
}

/* What defines the source before a place of a block; or on in the blocks above. */
static void look(search *s, const cfg_place *place)
{
    const source *from = &s->sources[place->number];
    cfg_wanted what = {from->reg, from->in_slot ? &from->slot : NULL};
    cfg_def d;
    cfg_finding f = cfg_search_block(s->v, place->at.block, place->at.index, &what, &d);
    if (f == CFG_FOUND_NONE) look_above(s, place);
    else if (f == CFG_FOUND_DEF) take_definition(s, *from, &d);
    else s->unsure = true;
}

bool cfg_constant_of(cfg_view *v, unsigned reg, cfg_point at, cfg_constant *out)
{
    search s = {.v = v};
    v->places.count = 0;
    look_from(&s, &(source){.reg = reg, .plain = true}, at);
    while (v->places.count && !s.conflict && !v->work->failed) {
        cfg_place place = v->places.items[--v->places.count];
        if (v->budget == 0) {
            s.unsure = true;
            break;
        }
        v->budget--;
        look(&s, &place);
    }
    if (s.unsure) s.found.named_at = 0;
    *out = s.found;
    return s.got && !s.open && !s.conflict;
}
