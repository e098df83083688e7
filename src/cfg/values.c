/* Where the value of a register or a stack slot comes from: the definitions that reach a place, found by
 * walking backwards over a procedure's blocks.
 *
 * The walk goes over the paths that are known so far. Indirect jumps are looked at again when a procedure
 * has grown, so that what is believed in the end has been checked against all paths. Stack slots are
 * taken for variables that are only written through their own name: true for what compilers spill. */
#include "cfg/work.h"

static bool ends_at_entry(const cfg_view *v, uint32_t block)
{
    const cfg_view_block *b = &v->blocks.items[block];
    const uint8_t *m = cfg_mark(v->work, b->addr);
    return b->pred_count == 0 || *m & (MARK_ENTRY | MARK_ROOT);
}

/* Starts a walk: nothing is visited. */
static void begin_walk(cfg_view *v)
{
    v->epoch++;
    v->stack.count = 0;
}

/* Puts the predecessors of a block on the stack, each once. */
static void push_preds(cfg_view *v, uint32_t block)
{
    const cfg_view_block *b = &v->blocks.items[block];
    for (uint32_t i = 0; i < b->pred_count; i++) {
        uint32_t from = v->edges.items[v->preds.items[b->first_pred + i]].from;
        if (v->blocks.items[from].seen == v->epoch) continue;
        v->blocks.items[from].seen = v->epoch;
        cfg_keep(v->work, &v->stack, from);
    }
}

static void add_def(cfg_defs *d, uint32_t block, uint32_t index, const isa_insn *in)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->def[i].in.addr == in->addr) return;
    if (d->count == CFG_MAX_DEFS) d->unknown = true;
    else d->def[d->count++] = (cfg_def){{block, index}, *in};
}

typedef enum finding { FOUND_NONE, FOUND_DEF, FOUND_UNKNOWN } finding;

/* One thing whose definition is looked for. */
typedef struct wanted {
    unsigned reg;
    const isa_mem *slot; /* NULL: the register */
} wanted;

static bool overlaps(const isa_mem *a, const isa_mem *b)
{
    return a->disp < b->disp + b->size && b->disp < a->disp + a->size;
}

static finding slot_written(const cfg_work *w, const isa_insn *in, const isa_mem *slot)
{
    isa_mem mem[ISA_MAX_MEM];
    if (slot->base == w->machine->frame && cfg_insn_writes(w, in) >> slot->base & 1) return FOUND_UNKNOWN;
    int count = in->bits & ISA_BIT_MEM ? w->isa->memory(in, mem) : 0;
    if (slot->base == w->machine->stack && in->flow == ISA_FLOW_NEXT && cfg_insn_writes(w, in) >> slot->base & 1)
        return FOUND_UNKNOWN;
    for (int i = 0; i < count; i++) {
        if (!(mem[i].access & ISA_WRITE) || mem[i].base != slot->base || mem[i].index != ISA_NO_REG ||
            mem[i].bits & ISA_MEM_IMPLICIT || mem[i].segment || !overlaps(&mem[i], slot))
            continue;
        return mem[i].disp == slot->disp && mem[i].size == slot->size ? FOUND_DEF : FOUND_UNKNOWN;
    }
    return FOUND_NONE;
}

static finding writes(const cfg_work *w, const isa_insn *in, const wanted *what)
{
    if (what->slot) return slot_written(w, in, what->slot);
    return cfg_changes(w, in) >> what->reg & 1 ? FOUND_DEF : FOUND_NONE;
}

/* Looks at the instructions of a block before `index`, the last one first. True: the walk ends here. */
static bool search_block(cfg_view *v, uint32_t block, uint32_t index, const wanted *what, cfg_defs *out)
{
    uint32_t count;
    if (!what->slot && index == CFG_NONE && !(cfg_view_writes(v, block) >> what->reg & 1)) return false;
    const isa_insn *in = cfg_view_insns(v, block, &count);
    if (index > count) index = count;
    while (index-- > 0) {
        finding f = writes(v->work, &in[index], what);
        if (f == FOUND_NONE) continue;
        if (f == FOUND_UNKNOWN) out->unknown = true;
        else add_def(out, block, index, &in[index]);
        return true;
    }
    return false;
}

static void reach(cfg_view *v, const wanted *what, cfg_point at, cfg_defs *out)
{
    *out = (cfg_defs){0};
    if (search_block(v, at.block, at.index, what, out)) return;
    begin_walk(v);
    if (ends_at_entry(v, at.block)) out->unknown = true;
    push_preds(v, at.block);
    while (v->stack.count) {
        uint32_t block = v->stack.items[--v->stack.count];
        if (v->budget == 0) {
            out->unknown = true;
            return;
        }
        v->budget--;
        if (search_block(v, block, CFG_NONE, what, out)) continue;
        if (ends_at_entry(v, block)) out->unknown = true;
        push_preds(v, block);
    }
}

void cfg_reach(cfg_view *v, unsigned reg, cfg_point at, cfg_defs *out)
{
    wanted what = {.reg = reg};
    reach(v, &what, at, out);
}

void cfg_reach_slot(cfg_view *v, const isa_mem *slot, cfg_point at, cfg_defs *out)
{
    wanted what = {.slot = slot};
    reach(v, &what, at, out);
}

bool cfg_is_slot(const cfg_work *w, const isa_mem *m)
{
    return (m->base == w->machine->stack || m->base == w->machine->frame) && m->index == ISA_NO_REG && !m->segment &&
           !(m->bits & ISA_MEM_PCREL);
}

void cfg_shape_of(const cfg_work *w, const isa_insn *in, cfg_shape *out) { w->machine->shape(w, in, out); }

/* --- constants ---
 *
 * A register may get its constant in several places: from a spill slot that it was put into, from either
 * side of a loop. All places that can be evaluated must agree; those that cannot, and numbers that are no
 * address where others are, are passed over, but then no single instruction names the constant. Since no compiler lets
 * two tables share one jump, a constant that reaches a jump on one path is the one on all. */

enum { max_depth = 12, max_done = 64 };

typedef struct done { /* a definition that has been evaluated */
    uint64_t addr;
    cfg_constant value;
    bool known;
} done;

typedef struct search {
    cfg_view *v;
    uint64_t busy[max_depth]; /* definitions that are being evaluated */
    unsigned depth;
    done done[max_done]; /* in a row of copies around loops the same ones are met again and again */
    unsigned done_count;
    bool cut_short; /* what is not known may be known elsewhere: a definition came round from itself, or the way is long
                     */
} search;

static bool constant(search *s, unsigned reg, cfg_point at, cfg_constant *out);
static bool constant_in_slot(search *s, const isa_mem *slot, cfg_point at, cfg_constant *out);

static bool by_lea(search *s, const cfg_def *d, const cfg_shape *c, cfg_constant *out)
{
    if (!c->has_mem || c->mem.index != ISA_NO_REG) return false;
    *out = (cfg_constant){(uint64_t)c->mem.disp, d->in.addr};
    if (c->mem.base == ISA_NO_REG || c->mem.bits & ISA_MEM_PCREL) return true;
    if (!constant(s, c->mem.base, d->at, out)) return false;
    *out = (cfg_constant){out->value + (uint64_t)c->mem.disp, c->mem.disp ? 0 : out->named_at};
    return true;
}

static bool by_copy(search *s, const cfg_def *d, const cfg_shape *c, cfg_constant *out)
{
    if (c->src.kind == ISA_OPERAND_IMM) {
        uint64_t value = (uint64_t)c->src.imm;
        *out = (cfg_constant){c->dst.size == 4 ? (uint32_t)value : value, d->in.addr};
        return c->dst.size >= 4;
    }
    if (c->dst.size < 8) return false;
    if (c->src.kind == ISA_OPERAND_REG) return constant(s, c->src.reg, d->at, out);
    return c->dst.kind == ISA_OPERAND_REG && c->has_mem && cfg_is_slot(s->v->work, &c->mem) &&
           constant_in_slot(s, &c->mem, d->at, out);
}

static bool by_def(search *s, const cfg_def *d, cfg_constant *out)
{
    cfg_shape c;
    cfg_shape_of(s->v->work, &d->in, &c);
    if (!c.has_dst || !c.has_src) return false;
    switch (c.sem) {
    case SEM_LEA: return by_lea(s, d, &c, out);
    case SEM_MOV: return by_copy(s, d, &c, out);
    case SEM_ADD:
    case SEM_SUB:
        if (c.dst.kind != ISA_OPERAND_REG || c.src.kind != ISA_OPERAND_IMM || c.dst.size != 8 ||
            !constant(s, c.dst.reg, d->at, out))
            return false;
        out->value += c.sem == SEM_ADD ? (uint64_t)c.src.imm : -(uint64_t)c.src.imm;
        out->named_at = 0;
        return true;
    default: return false;
    }
}

static bool is_busy(const search *s, uint64_t addr)
{
    for (unsigned i = 0; i < s->depth; i++)
        if (s->busy[i] == addr) return true;
    return false;
}

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

/* by_def, once for each. */
static bool evaluate(search *s, const cfg_def *d, cfg_constant *out)
{
    const uint64_t addr = d->in.addr;
    for (unsigned i = 0; i < s->done_count; i++) {
        if (s->done[i].addr != addr) continue;
        *out = s->done[i].value;
        return s->done[i].known;
    }
    const bool before = s->cut_short;
    s->cut_short = false;
    s->busy[s->depth++] = addr;
    bool known = by_def(s, d, out);
    s->depth--;
    if ((known || !s->cut_short) && s->done_count < max_done) s->done[s->done_count++] = (done){addr, *out, known};
    s->cut_short |= before;
    return known;
}

/* What all definitions agree on. Who arrives from behind a call that in truth does not return may bring anything. */
static bool agreed(search *s, const cfg_defs *d, cfg_constant *out)
{
    bool got = false, sure = !d->unknown, open = false;
    if (s->depth == max_depth) {
        s->cut_short = true;
        return false;
    }
    for (unsigned i = 0; i < d->count; i++) {
        cfg_constant one = {0};
        if (is_busy(s, d->def[i].in.addr)) { /* comes round from itself */
            s->cut_short = true;
            continue;
        }
        if (!evaluate(s, &d->def[i], &one)) {
            sure = false;
            continue;
        }
        if (got && one.value != out->value) {
            int better = likelier(s, out->value, one.value);
            if (!better && leads_to_code(s, one.value)) return false;
            sure = false;
            open = better ? open && better < 0 : true; /* neither is a table: one may come yet */
            if (better <= 0) continue;
        }
        if (got && one.named_at != out->named_at) one.named_at = 0;
        *out = one;
        got = true;
    }
    if (got && !sure) out->named_at = 0;
    return got && !open;
}

static bool constant_in_slot(search *s, const isa_mem *slot, cfg_point at, cfg_constant *out)
{
    cfg_defs d;
    cfg_reach_slot(s->v, slot, at, &d);
    return agreed(s, &d, out);
}

static bool constant(search *s, unsigned reg, cfg_point at, cfg_constant *out)
{
    cfg_defs d;
    cfg_reach(s->v, reg, at, &d);
    return agreed(s, &d, out);
}

bool cfg_constant_of(cfg_view *v, unsigned reg, cfg_point at, cfg_constant *out)
{
    search s = {.v = v};
    return constant(&s, reg, at, out);
}
