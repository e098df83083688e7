/* Where the value of a register or a stack slot comes from: the definitions that reach a place, found by
 * walking backwards over a procedure's blocks.
 *
 * The walk goes over the paths that are known so far. Indirect jumps are looked at again when a procedure
 * has grown, so that what is believed in the end has been checked against all paths. Stack slots are
 * taken for variables that are only written through their own name: true for what compilers spill. */
#include "cfg/work.h"

bool cfg_ends_at_entry(const cfg_view *v, uint32_t block)
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

static void add_def(cfg_defs *d, const cfg_def *one)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->def[i].in.addr == one->in.addr) return;
    if (d->count == CFG_MAX_DEFS) d->unknown = true;
    else d->def[d->count++] = *one;
}

static bool overlaps(const isa_mem *a, const isa_mem *b)
{
    return a->disp < b->disp + b->size && b->disp < a->disp + a->size;
}

static cfg_finding slot_written(const cfg_work *w, const isa_insn *in, const isa_mem *slot)
{
    isa_mem mem[ISA_MAX_MEM];
    if (slot->base == w->machine->frame && cfg_insn_writes(w, in) >> slot->base & 1) return CFG_FOUND_UNKNOWN;
    int count = in->bits & ISA_BIT_MEM ? w->isa->memory(in, mem) : 0;
    if (slot->base == w->machine->stack && in->flow == ISA_FLOW_NEXT && cfg_insn_writes(w, in) >> slot->base & 1)
        return CFG_FOUND_UNKNOWN;
    for (int i = 0; i < count; i++) {
        if (!(mem[i].access & ISA_WRITE) || mem[i].base != slot->base || mem[i].index != ISA_NO_REG ||
            mem[i].bits & ISA_MEM_IMPLICIT || mem[i].segment || !overlaps(&mem[i], slot))
            continue;
        return mem[i].disp == slot->disp && mem[i].size == slot->size ? CFG_FOUND_DEF : CFG_FOUND_UNKNOWN;
    }
    return CFG_FOUND_NONE;
}

static cfg_finding writes(const cfg_work *w, const isa_insn *in, const cfg_wanted *what)
{
    if (what->slot) return slot_written(w, in, what->slot);
    return cfg_changes(w, in) >> what->reg & 1 ? CFG_FOUND_DEF : CFG_FOUND_NONE;
}

cfg_finding cfg_search_block(cfg_view *v, uint32_t block, uint32_t index, const cfg_wanted *what, cfg_def *out)
{
    uint32_t count;
    if (!what->slot && index == CFG_NONE && !(cfg_view_writes(v, block) >> what->reg & 1)) return CFG_FOUND_NONE;
    const isa_insn *in = cfg_view_insns(v, block, &count);
    if (index > count) index = count;
    while (index-- > 0) {
        cfg_finding f = writes(v->work, &in[index], what);
        if (f == CFG_FOUND_NONE) continue;
        if (f == CFG_FOUND_DEF) *out = (cfg_def){{block, index}, in[index]};
        return f;
    }
    return CFG_FOUND_NONE;
}

/* True: the walk ends in this block. */
static bool search_block(cfg_view *v, cfg_point at, const cfg_wanted *what, cfg_defs *out)
{
    cfg_def d;
    cfg_finding f = cfg_search_block(v, at.block, at.index, what, &d);
    if (f == CFG_FOUND_DEF) add_def(out, &d);
    if (f == CFG_FOUND_UNKNOWN) out->unknown = true;
    return f != CFG_FOUND_NONE;
}

static void reach(cfg_view *v, const cfg_wanted *what, cfg_point at, cfg_defs *out)
{
    *out = (cfg_defs){0};
    if (search_block(v, at, what, out)) return;
    begin_walk(v);
    if (cfg_ends_at_entry(v, at.block)) out->unknown = true;
    push_preds(v, at.block);
    while (v->stack.count) {
        uint32_t block = v->stack.items[--v->stack.count];
        if (v->budget == 0) {
            out->unknown = true;
            return;
        }
        v->budget--;
        if (search_block(v, (cfg_point){block, CFG_NONE}, what, out)) continue;
        if (cfg_ends_at_entry(v, block)) out->unknown = true;
        push_preds(v, block);
    }
}

void cfg_reach(cfg_view *v, unsigned reg, cfg_point at, cfg_defs *out)
{
    cfg_wanted what = {.reg = reg};
    reach(v, &what, at, out);
}

void cfg_reach_slot(cfg_view *v, const isa_mem *slot, cfg_point at, cfg_defs *out)
{
    cfg_wanted what = {.slot = slot};
    reach(v, &what, at, out);
}

/* --- what a register certainly holds --- */

typedef struct exactly {
    cfg_view *v;
    bool any; /* of several known values: one of them will do */
} exactly;

static bool exact(const exactly *x, unsigned reg, cfg_point at, unsigned depth, uint64_t *value);

/* An operand that is read before `at`: a number, a register, a slot. */
static bool exact_source(const exactly *x, const cfg_shape *c, cfg_point at, unsigned depth, uint64_t *value)
{
    *value = (uint64_t)c->src.imm;
    if (c->src.kind == ISA_OPERAND_IMM) return true;
    if (c->src.kind == ISA_OPERAND_REG) return c->src.size == 8 && exact(x, c->src.reg, at, depth, value);
    if (c->src.kind != ISA_OPERAND_MEM || c->mem.size != 8 || !cfg_is_slot(x->v->work, &c->mem)) return false;
    cfg_defs d;
    cfg_shape store;
    cfg_reach_slot(x->v, &c->mem, at, &d);
    if (d.unknown || d.count != 1) return false;
    cfg_shape_of(x->v->work, &d.def[0].in, &store);
    return store.sem == SEM_MOV && store.has_src && exact_source(x, &store, d.def[0].at, depth, value);
}

static bool exact_address(const exactly *x, const isa_mem *m, cfg_point at, unsigned depth, uint64_t *value)
{
    uint64_t base = 0, index = 0;
    bool by_place = m->bits & ISA_MEM_PCREL; /* disp is the address */
    if (m->segment || m->index_low) return false;
    if (m->base != ISA_NO_REG && !by_place && !exact(x, m->base, at, depth, &base)) return false;
    if (m->index != ISA_NO_REG && !exact(x, m->index, at, depth, &index)) return false;
    *value = (uint64_t)m->disp + base + index * m->scale;
    return true;
}

static bool exact_result(const exactly *x, unsigned reg, const cfg_def *d, unsigned depth, uint64_t *value)
{
    cfg_shape c;
    uint64_t to, by;
    cfg_shape_of(x->v->work, &d->in, &c);
    if (!c.has_dst || c.dst.kind != ISA_OPERAND_REG || c.dst.reg != reg || c.dst.size != 8 || !c.has_src) return false;
    if (c.sem == SEM_LEA) return exact_address(x, &c.mem, d->at, depth, value);
    if (c.sem == SEM_MOV) return exact_source(x, &c, d->at, depth, value);
    if (c.sem != SEM_ADD && c.sem != SEM_SUB) return false;
    if (!exact_source(x, &c, d->at, depth, &by) || !exact(x, reg, d->at, depth, &to)) return false;
    *value = c.sem == SEM_ADD ? to + by : to - by;
    return true;
}

static bool exact(const exactly *x, unsigned reg, cfg_point at, unsigned depth, uint64_t *value)
{
    enum { MANY = 16 };
    cfg_defs d;
    uint64_t one;
    if (reg >= 64 || depth == 0 || x->v->budget == 0) return false;
    x->v->budget--; /* each sum asks twice, each definition anew */
    cfg_reach(x->v, reg, at, &d);
    if (d.unknown || d.count == 0 || d.count > MANY) return false;
    for (unsigned i = 0; i < d.count; i++) {
        if (!exact_result(x, reg, &d.def[i], depth - 1, &one) || (i && one != *value && !x->any)) return false;
        *value = one;
    }
    return true;
}

enum { DEEPEST = 8 };

bool cfg_exact_value(cfg_view *v, unsigned reg, cfg_point at, uint64_t *value)
{
    return exact(&(exactly){.v = v}, reg, at, DEEPEST, value);
}

bool cfg_is_exact(cfg_view *v, unsigned reg, cfg_point at)
{
    uint64_t one;
    return exact(&(exactly){.v = v, .any = true}, reg, at, DEEPEST, &one);
}

bool cfg_is_slot(const cfg_work *w, const isa_mem *m)
{
    return (m->base == w->machine->stack || m->base == w->machine->frame) && m->index == ISA_NO_REG && !m->segment &&
           !(m->bits & ISA_MEM_PCREL);
}

void cfg_shape_of(const cfg_work *w, const isa_insn *in, cfg_shape *out) { w->machine->shape(w, in, out); }
