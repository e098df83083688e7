/* How many values an index can have where a table is read: from a comparison that guards the way there
 * (cmp $5; ja default), a mask, or the width it was extended from.
 *
 * The walk goes backwards from the table's load and carries the names that the index's value has at each
 * place: registers, and the one memory operand it was last loaded from. At a block's start it goes on in
 * the predecessor over whose edge control came; where several meet, all must bound the index, and the
 * largest bound counts. A mask or a width says no more than that the index is not larger: the compiler may
 * have known better and made the table shorter, so such a bound is not firm. */
#include "cfg/work.h"

#include <string.h>

enum { max_depth = 24, max_visits = 200 };

typedef struct names { /* of the index, at one place */
    uint64_t regs;     /* these registers hold it in their low `width` bytes */
    isa_mem mem;       /* ... and so does this operand, when has_mem */
    bool has_mem;
    unsigned width;    /* bytes that make up the index; what is above is zero or ignored */
    uint64_t add;      /* index = named value + add */
} names;

typedef struct search {
    cfg_view *v;
    unsigned visits;
    bool firm; /* every bound so far comes from a comparison */
} search;

static uint64_t bound_in(search *s, uint32_t block, uint32_t index, names n, unsigned depth);

static bool same_operand(const isa_mem *a, const isa_mem *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale && a->disp == b->disp &&
           a->segment == b->segment && a->size == b->size;
}

static uint64_t operand_regs(const isa_mem *m)
{
    uint64_t set = 0;
    if (m->base < 64) set |= 1ull << m->base;
    if (m->index < 64) set |= 1ull << m->index;
    return set;
}

static bool names_reg(const names *n, const isa_operand *o)
{
    return o->kind == ISA_OPERAND_REG && !o->high_byte && o->reg < 64 && n->regs >> o->reg & 1;
}

static uint64_t limit_of(const names *n, uint64_t most)
{
    uint64_t count = most + 1 + n->add;
    return n->add > 1 << 20 ? 0 : count; /* an index counted from below zero: not understood */
}

/* One instruction above a comparison of `reg`: is it what makes reg another name of the index? Otherwise
 * the names are carried back over it. */
static bool makes_copy(const cfg_work *w, const isa_insn *in, unsigned reg, names *n)
{
    cfg_shape c;
    uint64_t writes = cfg_insn_writes(w, in);
    cfg_shape_of(w, in, &c);
    bool move = c.sem == SEM_MOV && c.has_src;
    if (move && c.dst.kind == ISA_OPERAND_MEM && c.src.kind == ISA_OPERAND_REG && n->has_mem &&
        c.mem.base == n->mem.base && c.mem.index == n->mem.index && c.mem.disp == n->mem.disp) {
        n->regs |= 1ull << (c.src.reg & 63);
        return c.src.reg == reg; /* reg was stored to where the index is loaded from */
    }
    if (writes >> reg & 1)
        return move && (names_reg(n, &c.src) || (c.src.kind == ISA_OPERAND_MEM && n->has_mem &&
                                                             same_operand(&c.mem, &n->mem)));
    if (n->has_mem && writes & operand_regs(&n->mem)) n->has_mem = false;
    if (!(writes & n->regs)) return false;
    bool copy = move && names_reg(n, &c.dst) && c.src.kind == ISA_OPERAND_REG && !c.src.high_byte;
    n->regs &= ~writes;
    if (!copy) return false;
    n->regs |= 1ull << (c.src.reg & 63);
    return c.src.reg == reg;
}

/* Is the register that was compared at `at` another name of the index? Looks for the copy above. */
static bool is_copy(search *s, uint32_t block, uint32_t at, unsigned reg, names n)
{
    uint32_t count;
    const isa_insn *in = cfg_view_insns(s->v, block, &count);
    bool changed = false;
    while (at-- > 0 && !changed) {
        if (makes_copy(s->v->work, &in[at], reg, &n)) return true;
        changed = cfg_insn_writes(s->v->work, &in[at]) >> reg & 1;
    }
    return false;
}

/* The comparison that decides the branch at the end of `block`: does it bound the index? */
static uint64_t guard(search *s, uint32_t block, const names *n, uint8_t kind)
{
    uint32_t count;
    const cfg_work *w = s->v->work;
    const isa_insn *in = cfg_view_insns(s->v, block, &count);
    if (count == 0 || in[count - 1].flow != ISA_FLOW_COND) return 0;
    unsigned cond = in[count - 1].cond;
    uint64_t after = 0; /* registers written between comparison and branch */
    for (uint32_t i = count - 1; i-- > 0;) {
        isa_effects fx;
        w->isa->effects(&in[i], &fx);
        if (!fx.flags_written && !fx.flags_undefined) {
            after |= fx.writes;
            continue;
        }
        cfg_shape c;
        uint64_t most;
        cfg_shape_of(w, &in[i], &c);
        if ((c.sem != SEM_CMP && c.sem != SEM_SUB) || !c.has_src || c.src.kind != ISA_OPERAND_IMM)
            return 0;
        uint64_t constant = (uint64_t)c.src.imm;
        if (c.dst.size < 8) constant &= (1ull << 8 * c.dst.size) - 1;
        if (!w->machine->bounds(cond, kind == CFG_EDGE_TAKEN, constant, &most)) return 0;
        if (c.dst.size < n->width || most > 0xffffff) return 0;
        if (c.dst.kind == ISA_OPERAND_MEM)
            return n->has_mem && c.mem.base == n->mem.base && c.mem.index == n->mem.index &&
                           c.mem.disp == n->mem.disp && c.mem.scale == n->mem.scale
                       ? limit_of(n, most) : 0;
        if (c.dst.kind != ISA_OPERAND_REG || c.dst.high_byte) return 0;
        names early = *n;
        early.regs &= ~after;
        bool same = c.sem == SEM_CMP && names_reg(&early, &c.dst);
        if (!same) same = is_copy(s, block, i, c.dst.reg, early);
        return same ? limit_of(n, most) : 0;
    }
    return 0;
}

static uint64_t at_start(search *s, uint32_t block, names n, unsigned depth)
{
    const cfg_view *v = s->v;
    const cfg_view_block *b = &v->blocks.items[block];
    const uint8_t *m = cfg_mark(v->work, b->addr);
    uint64_t worst = 0;
    if (b->pred_count == 0 || *m & (MARK_ENTRY | MARK_ROOT) || depth == max_depth) return 0;
    for (uint32_t i = 0; i < b->pred_count; i++) {
        const cfg_view_edge e = v->edges.items[v->preds.items[b->first_pred + i]];
        if (e.kind == CFG_EDGE_TABLE || ++s->visits > max_visits) return 0;
        uint64_t one = guard(s, e.from, &n, e.kind);
        if (!one) one = bound_in(s, e.from, CFG_NONE, n, depth + 1);
        if (!one) return 0;
        if (one > worst) worst = one;
    }
    return worst;
}

/* The index gets a new name where it is copied, loaded or extended. */
static bool renamed(const cfg_shape *c, names *n, uint64_t *bound)
{
    unsigned dst = c->dst.reg, size = c->src.size;
    n->regs &= ~(1ull << dst);
    if (!c->has_src) return false;
    if (c->sem == SEM_MOVZX && size < 4) {
        *bound = limit_of(n, (1ull << 8 * size) - 1); /* at least this */
        if (size < n->width) n->width = size;
    } else if (c->sem == SEM_MOVSX) {
        if (size < n->width && size < 4) return false;
        if (size < n->width) n->width = size;
    } else if (c->sem == SEM_MOV) {
        if (c->dst.size < 4 && c->dst.size < n->width) return false;
        if (size < n->width) n->width = size;
    } else {
        return false;
    }
    if (c->src.kind == ISA_OPERAND_REG && !c->src.high_byte && c->src.reg < 64) {
        n->regs |= 1ull << c->src.reg;
        return true;
    }
    if (c->src.kind != ISA_OPERAND_MEM || !c->has_mem || c->mem.segment) return false;
    n->mem = c->mem;
    n->has_mem = true;
    return true;
}

/* Goes back over one instruction. True: the search is over, with *bound. */
static bool step_back(search *s, const isa_insn *in, names *n, uint64_t *bound, uint64_t *floor)
{
    const cfg_work *w = s->v->work;
    cfg_shape c;
    uint64_t writes = cfg_insn_writes(w, in), least = 0;
    bool touches = in->bits & ISA_BIT_MEM;
    *bound = *floor;
    if (!(writes & n->regs) && !(n->has_mem && (touches || writes & operand_regs(&n->mem)))) return false;
    cfg_shape_of(w, in, &c);
    if (n->has_mem && writes & operand_regs(&n->mem)) n->has_mem = false;
    if (n->has_mem && touches && c.has_mem && c.dst.kind == ISA_OPERAND_MEM && c.sem != SEM_CMP &&
        c.sem != SEM_TEST) {
        if (same_operand(&c.mem, &n->mem) && c.sem == SEM_MOV && c.src.kind == ISA_OPERAND_REG) {
            n->regs |= 1ull << c.src.reg;
            n->has_mem = false;
        } else if (!cfg_is_slot(w, &n->mem) || !cfg_is_slot(w, &c.mem)) {
            n->has_mem = cfg_is_slot(w, &n->mem);
        } else if (c.mem.base == n->mem.base && c.mem.disp < n->mem.disp + 8 &&
                   n->mem.disp < c.mem.disp + (int64_t)c.mem.size) {
            n->has_mem = false;
        }
    }
    if (in->flow != ISA_FLOW_NEXT && !cfg_is_slot(w, &n->mem)) n->has_mem = false;
    if (writes & n->regs) {
        bool plain = c.has_dst && c.dst.kind == ISA_OPERAND_REG && c.dst.reg < 64 &&
                     writes == 1ull << c.dst.reg;
        if (plain && c.sem == SEM_AND && c.has_src && c.src.kind == ISA_OPERAND_IMM && c.src.imm >= 0 &&
            c.src.imm < 1 << 20 && c.dst.size >= n->width) {
            *bound = limit_of(n, (uint64_t)c.src.imm);
            return true;
        }
        if (!plain || !renamed(&c, n, &least)) n->regs &= ~writes;
        if (least && (!*floor || least < *floor)) *floor = least;
    }
    *bound = *floor;
    return n->regs == 0 && !n->has_mem;
}

static uint64_t bound_in(search *s, uint32_t block, uint32_t index, names n, unsigned depth)
{
    uint32_t count;
    uint64_t bound = 0, floor = 0;
    cfg_view_insns(s->v, block, &count);
    if (index > count) index = count;
    while (index-- > 0) {
        const isa_insn *in = cfg_view_insns(s->v, block, &count);
        if (step_back(s, &in[index], &n, &bound, &floor)) {
            s->firm = false;
            return bound;
        }
    }
    bool firm = s->firm;
    bound = at_start(s, block, n, depth);
    if (bound && (!floor || bound < floor)) return bound;
    s->firm = false;
    if (!bound && !floor) s->firm = firm;
    return floor;
}

uint64_t cfg_bound(cfg_view *v, unsigned reg, unsigned size, cfg_point at, bool *firm)
{
    search s = {.v = v, .firm = true};
    names n = {.regs = 1ull << reg, .width = size};
    uint64_t bound = bound_in(&s, at.block, at.index, n, 0);
    *firm = bound && s.firm;
    return bound;
}
