/* How many values an index can have where a table is read: from a comparison that guards the way there
 * (cmp $5; ja default), a mask or a shift, or the width it was extended from.
 *
 * The walk goes backwards from the table's load and carries the names that the index's value has at each
 * place: registers, and the one memory operand it was last loaded from. At a block's start it goes on in
 * the predecessors over whose edges control came, each once with the same names: a way that comes round to where
 * it has been says nothing new. All ways must bound the index, and the largest bound counts. A mask or a
 * width says no more than that the index is not larger: the compiler may have known better and made the table
 * shorter. */
#include "cfg/work.h"

#include <string.h>

enum { max_ways = 256 };

typedef struct names { /* of the index, at one place */
    uint64_t regs;     /* these registers hold it in their low `width` bytes */
    isa_mem mem;       /* ... and so does this operand, when has_mem */
    bool has_mem;
    unsigned width; /* bytes that make up the index; what is above is zero or ignored */
    int64_t add;    /* index = named value + add */
    uint64_t floor; /* so many values by its width, 0: not narrow */
} names;

typedef struct way { /* that is still to be walked back, from before an instruction */
    uint32_t block, index;
    names n;
} way;

typedef struct search {
    cfg_view *v;
    INL_VEC(way) ways; /* all that were ever begun */
    cfg_limit worst;
    bool open; /* some way bounds nothing */
} search;

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

/* The named value is at most `most`. */
static cfg_limit limit_of(const names *n, uint64_t most, uint8_t kind)
{
    int64_t count = (int64_t)most + 1 + n->add;
    if (most > 0xffffff || count <= 0) return (cfg_limit){0};
    return (cfg_limit){(uint64_t)count, n->add ? CFG_LIMIT_MOST : kind};
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
        return move &&
               (names_reg(n, &c.src) || (c.src.kind == ISA_OPERAND_MEM && n->has_mem && same_operand(&c.mem, &n->mem)));
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

/* What is compared with: a constant, be it in a register. */
static bool compared_with(cfg_view *v, const cfg_shape *c, cfg_point at, uint64_t *constant)
{
    cfg_constant k;
    if (!c->has_src || (c->sem != SEM_CMP && c->sem != SEM_SUB)) return false;
    if (c->src.kind == ISA_OPERAND_IMM) k.value = (uint64_t)c->src.imm;
    else if (c->src.kind != ISA_OPERAND_REG || c->src.high_byte) return false;
    else if (!cfg_constant_of(v, c->src.reg, at, &k)) return false;
    *constant = k.value;
    if (c->dst.size < 8) *constant &= (1ull << 8 * c->dst.size) - 1;
    return true;
}

static bool same_place(const isa_mem *a, const isa_mem *b)
{
    return a->base == b->base && a->index == b->index && a->disp == b->disp && a->scale == b->scale &&
           a->segment == b->segment;
}

/* The instruction that sets the flags for the branch at the end of a block. */
static bool flags_set_at(search *s, const isa_insn *in, uint32_t count, uint32_t *at)
{
    for (uint32_t i = count - 1; i-- > 0;) {
        isa_effects fx;
        s->v->work->isa->effects(&in[i], &fx);
        *at = i;
        if (fx.flags_written || fx.flags_undefined) return true;
    }
    return false;
}

/* After comparing x with the constant and branching on condition `cond`, x is at most *most, unsigned. False: nothing
 * follows. */
static bool bounds(const cfg_machine *m, unsigned cond, uint64_t constant, uint64_t *most)
{
    *most = cond == m->conds.below ? constant - 1 : constant;
    return cond == m->conds.at_most || cond == m->conds.equal || (cond == m->conds.below && constant);
}

/* A mask of whole bytes extends (and $0xff,%eax), and so does a register with itself (and %eax,%eax): as a copy from
 * its own lower part. */
static void as_extension(const cfg_work *w, const isa_insn *in, cfg_shape *c)
{
    isa_effects fx;
    if (c->sem != SEM_AND || !c->has_dst || !c->has_src || c->dst.kind != ISA_OPERAND_REG || c->dst.size < 4) return;
    const bool itself = c->src.kind == ISA_OPERAND_REG && c->src.reg == c->dst.reg;
    const bool mask = c->src.kind == ISA_OPERAND_IMM && (c->src.imm == 0xff || c->src.imm == 0xffff);
    w->isa->effects(in, &fx);
    if (!(itself || mask) || fx.reads != 1ull << (c->dst.reg & 63)) return;
    const unsigned size = itself ? c->dst.size : c->src.imm == 0xff ? 1 : 2;
    c->sem = itself ? SEM_MOV : SEM_MOVZX;
    c->src = c->dst;
    c->src.size = (uint8_t)size;
}

/* Is what a register holds at a place extended with zeros from no more than its low `size` bytes? */
static bool is_extended(cfg_view *v, unsigned reg, unsigned size, cfg_point at, unsigned depth)
{
    cfg_defs d;
    cfg_reach(v, reg, at, &d);
    if (d.unknown || d.count == 0 || depth == 0) return false;
    for (unsigned i = 0; i < d.count; i++) {
        cfg_shape c;
        cfg_shape_of(v->work, &d.def[i].in, &c);
        as_extension(v->work, &d.def[i].in, &c);
        bool whole = c.has_src && c.dst.kind == ISA_OPERAND_REG && c.dst.size >= 4;
        if (whole && c.sem == SEM_MOVZX && c.src.size <= size) continue;
        if (whole && c.sem == SEM_XOR && c.src.kind == ISA_OPERAND_REG && c.src.reg == c.dst.reg) continue;
        if (whole && c.sem == SEM_MOV && c.src.kind == ISA_OPERAND_IMM && (uint64_t)c.src.imm >> 8 * size == 0)
            continue;
        if (!whole || c.sem != SEM_MOV || c.src.kind != ISA_OPERAND_REG || c.src.reg >= 64 ||
            !is_extended(v, c.src.reg, size, d.def[i].at, depth - 1))
            return false;
    }
    return true;
}

static bool step_back(search *, const isa_insn *, names *, cfg_limit *);

/* The comparison that decides the branch at the end of `block`: does it bound the index? */
static cfg_limit guard(search *s, uint32_t block, const names *n, uint8_t kind)
{
    const cfg_limit nothing = {0};
    uint32_t count, i;
    uint64_t constant, most;
    const cfg_work *w = s->v->work;
    const isa_insn *in = cfg_view_insns(s->v, block, &count);
    if (count == 0 || in[count - 1].flow != ISA_FLOW_COND || !flags_set_at(s, in, count, &i)) return nothing;
    unsigned cond = in[count - 1].cond ^ (kind == CFG_EDGE_TAKEN ? 0 : 1);
    cfg_shape c;
    cfg_shape_of(w, &in[i], &c);
    if (!compared_with(s->v, &c, (cfg_point){block, i}, &constant) || !bounds(w->machine, cond, constant, &most))
        return nothing;
    bool same = false;
    names early = *n; /* as they are at the comparison */
    cfg_limit other;
    for (uint32_t k = count - 1; k-- > i + 1;)
        if (step_back(s, &in[k], &early, &other)) return nothing;
    if (c.dst.kind == ISA_OPERAND_MEM) {
        same = c.sem == SEM_CMP && early.has_mem && same_place(&c.mem, &early.mem);
    } else if (c.dst.kind == ISA_OPERAND_REG && !c.dst.high_byte) {
        same = c.sem == SEM_CMP && names_reg(&early, &c.dst);
        if (!same) same = is_copy(s, block, i, c.dst.reg, early);
    }
    if (same && c.dst.size < early.width)
        same = c.dst.kind == ISA_OPERAND_REG && is_extended(s->v, c.dst.reg, c.dst.size, (cfg_point){block, i}, 4);
    return same ? limit_of(&early, most, CFG_LIMIT_COMPARED) : nothing;
}

static void record(search *s, const names *n, cfg_limit one)
{
    if (n->floor && (one.kind == CFG_LIMIT_NONE || one.count > n->floor)) one = (cfg_limit){n->floor, CFG_LIMIT_MOST};
    if (one.kind == CFG_LIMIT_NONE) s->open = true;
    if (s->worst.kind == CFG_LIMIT_NONE || one.kind < s->worst.kind) s->worst.kind = one.kind;
    if (one.count > s->worst.count) s->worst.count = one.count;
}

static bool same_names(const names *a, const names *b)
{
    return a->regs == b->regs && a->has_mem == b->has_mem && (!a->has_mem || same_operand(&a->mem, &b->mem)) &&
           a->width == b->width && a->add == b->add && a->floor == b->floor;
}

/* The index has these names at the block's end. */
static void begin_way(search *s, uint32_t block, const names *n)
{
    for (size_t i = 0; i < s->ways.count; i++) {
        const way *old = &s->ways.items[i];
        if (old->block == block && old->index == CFG_NONE && same_names(&old->n, n)) return;
    }
    if (s->ways.count >= max_ways || !inl_vec_push(&s->ways, (way){block, CFG_NONE, *n})) s->open = true;
}

static void at_start(search *s, uint32_t block, const names *n)
{
    const cfg_view *v = s->v;
    const cfg_view_block *b = &v->blocks.items[block];
    const uint8_t *m = cfg_mark(v->work, b->addr);
    if (b->pred_count == 0 || *m & (MARK_ENTRY | MARK_ROOT)) {
        record(s, n, (cfg_limit){0});
        return;
    }
    for (uint32_t i = 0; i < b->pred_count && !s->open; i++) {
        const cfg_view_edge e = v->edges.items[v->preds.items[b->first_pred + i]];
        cfg_limit one = guard(s, e.from, n, e.kind);
        if (one.kind != CFG_LIMIT_NONE) record(s, n, one);
        else begin_way(s, e.from, n);
    }
}

/* The index gets a new name where it is copied, loaded or extended. */
static bool renamed(const cfg_shape *c, names *n)
{
    unsigned dst = c->dst.reg, size = c->src.size;
    n->regs &= ~(1ull << dst);
    if (!c->has_src) return false;
    if (c->sem == SEM_MOVZX && size < 4) {
        uint64_t least = limit_of(n, (1ull << 8 * size) - 1, CFG_LIMIT_MOST).count;
        if (least && (!n->floor || least < n->floor)) n->floor = least;
    } else if (c->sem == SEM_MOVSX) {
        if (size < n->width && size < 4) return false;
    } else if (c->sem == SEM_MOV) {
        if (c->dst.size < 4 && c->dst.size < n->width) return false;
    } else {
        return false;
    }
    if (size < n->width) n->width = size;
    if (c->src.kind == ISA_OPERAND_REG && !c->src.high_byte && c->src.reg < 64) {
        n->regs |= 1ull << c->src.reg;
        return true;
    }
    if (c->src.kind != ISA_OPERAND_MEM || !c->has_mem || c->mem.segment) return false;
    n->mem = c->mem;
    n->has_mem = true;
    return true;
}

/* A constant was added to what was named: the index is counted from elsewhere. A narrow one goes round when the
 * sum is too small for it; a wide one would lie far outside the table then. */
static bool shifted(const cfg_shape *c, names *n)
{
    enum { furthest = 1 << 20 };
    unsigned from = c->dst.reg;
    int64_t by;
    if (n->regs != 1ull << c->dst.reg || n->has_mem || n->floor || n->width < 4 || c->dst.size < n->width) return false;
    if (c->sem == SEM_LEA && c->has_mem && c->mem.base < 64 && c->mem.index == ISA_NO_REG &&
        !(c->mem.bits & ISA_MEM_PCREL)) {
        from = c->mem.base;
        by = c->mem.disp;
    } else if ((c->sem == SEM_ADD || c->sem == SEM_SUB) && c->has_src && c->src.kind == ISA_OPERAND_IMM) {
        by = c->sem == SEM_ADD ? c->src.imm : -c->src.imm;
    } else {
        return false;
    }
    if (by > furthest || by < -furthest || n->add > furthest || n->add < -furthest) return false;
    n->regs = 1ull << from;
    n->add += by;
    return true;
}

/* A mask, or what a shift to the right leaves. */
static bool masked(const cfg_shape *c, const names *n, cfg_limit *out)
{
    enum { widest = 16 };
    if (!c->has_src || c->src.kind != ISA_OPERAND_IMM || c->dst.size < n->width) return false;
    uint64_t constant = (uint64_t)c->src.imm, most;
    unsigned bits = 8 * c->dst.size;
    if (bits < 64 && c->sem == SEM_AND) constant &= (1ull << bits) - 1;
    if (c->sem == SEM_AND) most = constant;
    else if (c->sem == SEM_SHR && constant < bits && bits - constant <= widest) most = (1ull << (bits - constant)) - 1;
    else return false;
    *out = most < 1ull << widest ? limit_of(n, most, CFG_LIMIT_MOST) : (cfg_limit){0};
    return out->kind != CFG_LIMIT_NONE;
}

/* Does what is stored here end the memory operand's being a name? */
static void store_over(const cfg_work *w, const cfg_shape *c, names *n)
{
    if (same_operand(&c->mem, &n->mem) && c->sem == SEM_MOV && c->src.kind == ISA_OPERAND_REG) {
        n->regs |= 1ull << c->src.reg;
        n->has_mem = false;
    } else if (!cfg_is_slot(w, &n->mem) || !cfg_is_slot(w, &c->mem)) {
        n->has_mem = cfg_is_slot(w, &n->mem);
    } else if (c->mem.base == n->mem.base && c->mem.disp < n->mem.disp + 8 &&
               n->mem.disp < c->mem.disp + (int64_t)c->mem.size) {
        n->has_mem = false;
    }
}

/* Goes back over one instruction. True: the way is over, with *out. */
static bool step_back(search *s, const isa_insn *in, names *n, cfg_limit *out)
{
    const cfg_work *w = s->v->work;
    cfg_shape c;
    uint64_t writes = cfg_insn_writes(w, in);
    bool touches = in->bits & ISA_BIT_MEM;
    *out = (cfg_limit){0};
    if (!(writes & n->regs) && !(n->has_mem && (touches || writes & operand_regs(&n->mem)))) return false;
    cfg_shape_of(w, in, &c);
    if (n->has_mem && writes & operand_regs(&n->mem)) n->has_mem = false;
    if (n->has_mem && touches && c.has_mem && c.dst.kind == ISA_OPERAND_MEM && c.sem != SEM_CMP && c.sem != SEM_TEST)
        store_over(w, &c, n);
    if (in->flow != ISA_FLOW_NEXT && !cfg_is_slot(w, &n->mem)) n->has_mem = false;
    if (writes & n->regs) {
        bool plain = c.has_dst && c.dst.kind == ISA_OPERAND_REG && !c.dst.high_byte && c.dst.reg < 64 &&
                     writes == 1ull << c.dst.reg;
        if (plain) as_extension(w, in, &c);
        if (plain && masked(&c, n, out)) return true;
        if (!(plain && shifted(&c, n)) && (!plain || !renamed(&c, n))) n->regs &= ~writes;
    }
    return n->regs == 0 && !n->has_mem;
}

static void walk(search *s, way now)
{
    uint32_t count;
    cfg_limit out;
    cfg_view_insns(s->v, now.block, &count);
    if (now.index > count) now.index = count;
    while (now.index-- > 0) {
        const isa_insn *in = cfg_view_insns(s->v, now.block, &count);
        if (!step_back(s, &in[now.index], &now.n, &out)) continue;
        record(s, &now.n, out);
        return;
    }
    at_start(s, now.block, &now.n);
}

cfg_limit cfg_bound(cfg_view *v, unsigned reg, unsigned size, cfg_point at)
{
    search s = {.v = v};
    names n = {.regs = 1ull << reg, .width = size};
    if (!inl_vec_push(&s.ways, (way){at.block, at.index, n})) s.open = true;
    for (size_t i = 0; i < s.ways.count && !s.open; i++) walk(&s, s.ways.items[i]);
    inl_vec_free(&s.ways);
    return s.open ? (cfg_limit){0} : s.worst;
}
