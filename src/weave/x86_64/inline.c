/* A small leaf routine's body in place of a call of it.
 *
 * Arguments are computed into whatever registers are free, or used where the program has them; the body is
 * folded with those that are constant (fold.c); each of its variables that is left gets a register, the
 * argument's where there is one; and the instructions are written with these. Registers that an instruction
 * insists on stay what they are. The stack is not switched, since the body does not use it, and the
 * return at the end is left out.
 *
 * The routine's own variables are reached by their addresses where those are displacements, else relative to
 * the program counter, else from a register that holds an address near them.
 */
#include "weave/x86_64/body.h"

#include "isa/x86_64/rename.h"

enum { REACH = 0x7ff00000, ARGS = 6, NEAR_ITEMS = 8, MOST_REGS = 13 };

static const uint8_t arg_regs[ARGS] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};

typedef struct inlining {
    const snippet *s;
    const weave_body *body;
    weave_folded folded;
    weave_val args[ARGS];
    bool absent[ARGS];           /* not computed: the body does not look at it */
    uint8_t map[BODY_VARIABLES]; /* the register of each variable, or ISA_NO_REG */
    bool mine[BODY_VARIABLES];   /* locked here */
    uint64_t far;                /* what BODY_FAR holds */
    bool has_far;
    uint64_t here;
} inlining;

static bool fits32(uint64_t v) { return v == (uint64_t)(int64_t)(int32_t)v; }

/* Relative to the program counter, which must not depend on where the code will run. */
static bool is_near(const weaver *w, uint64_t here, uint64_t address)
{
    int64_t distance = (int64_t)(address - here);
    return !w->opt->pc_relative && distance < REACH && distance > -REACH;
}

static bool is_absolute(const item *it)
{
    return it->has_mem && it->mem.base == ISA_NO_REG && it->mem.index == ISA_NO_REG;
}

/* --- arguments --- */

static bool has_effect(const snippet *s)
{
    switch (s->kind) {
    case SNIPPET_CONST:
    case SNIPPET_REG:
    case SNIPPET_PC:
    case SNIPPET_EA:
    case SNIPPET_ACCESS_SIZE:
    case SNIPPET_FALLTHROUGH:
    case SNIPPET_ARG:
    case SNIPPET_THREAD: return false;
    default: return true;
    }
}

static void arguments(weaver *w, inlining *n)
{
    for (unsigned i = 0; i < n->s->nargs && !w->status; i++) {
        const snippet *s = n->s->args[i];
        n->absent[i] = !(n->body->wanted & WEAVE_BIT(arg_regs[i])) && !has_effect(s);
        if (n->absent[i]) continue;
        n->args[i] = weave_eval(w, s, ISA_NO_REG);
        for (unsigned k = 0; k <= i; k++)
            if (!n->absent[k]) weave_park(w, &n->args[k]);
    }
}

static void fold(weaver *w, inlining *n, bool wanted)
{
    weave_known known = {0};
    for (unsigned i = 0; i < n->s->nargs; i++) {
        if (n->absent[i] || n->args[i].kind != WEAVE_IMM) continue;
        known.which |= WEAVE_BIT(arg_regs[i]);
        known.value[arg_regs[i]] = n->args[i].imm;
    }
    weave_fold(n->body, n->s->value, &known, wanted, &n->folded);
    for (unsigned i = 0; i < n->s->nargs; i++) {
        if (n->absent[i] || n->folded.entry & WEAVE_BIT(arg_regs[i])) continue;
        weave_drop(w, n->args[i]);
        n->absent[i] = true;
    }
}

/* --- registers --- */

static void give(inlining *n, unsigned variable, unsigned reg)
{
    n->map[variable] = (uint8_t)reg;
    n->mine[variable] = true;
}

/* Those that instructions insist on; whoever sits there gives way. */
static void pin(weaver *w, inlining *n)
{
    uint16_t fixed = n->folded.fixed;
    for (unsigned i = 0; i < n->s->nargs; i++) {
        weave_val *v = &n->args[i];
        bool held = !n->absent[i] && (v->kind == WEAVE_REG || v->kind == WEAVE_PROG);
        if (held && v->kind == WEAVE_REG && v->reg == arg_regs[i]) continue;
        if (held && fixed & WEAVE_BIT(v->reg)) weave_own(w, v, fixed, ISA_NO_REG);
    }
    for (unsigned i = 0; i < n->s->nargs; i++) {
        if (n->absent[i] || !(fixed & WEAVE_BIT(arg_regs[i]))) continue;
        weave_into(w, &n->args[i], arg_regs[i]);
        give(n, arg_regs[i], arg_regs[i]);
    }
    for (unsigned r = 0; r < X86_REGS; r++) {
        if (!(fixed & WEAVE_BIT(r)) || n->mine[r]) continue;
        weave_claim(w, r);
        weave_lock(w, r);
        give(n, r, r);
    }
}

static void place_arguments(weaver *w, inlining *n)
{
    for (unsigned i = 0; i < n->s->nargs; i++) {
        weave_val *v = &n->args[i];
        unsigned variable = arg_regs[i];
        if (n->absent[i] || n->mine[variable]) continue;
        bool changed = n->folded.written & WEAVE_BIT(variable);
        if (changed) weave_own(w, v, 0, ISA_NO_REG);
        else weave_in_reg(w, v, WEAVE_BIT(X86_RSP)); /* which cannot be everything that a register can */
        give(n, variable, v->reg);
    }
}

/* An address from which all those are counted that have no encoding here. */
static void find_far(const weaver *w, inlining *n)
{
    for (unsigned i = 0; i < n->folded.count; i++) {
        const item *it = &n->folded.items[i];
        uint64_t at = (uint64_t)it->mem.disp;
        if (!is_absolute(it) || fits32(at) || is_near(w, n->here, at)) continue;
        if (!n->has_far) n->far = at;
        n->has_far = true;
    }
}

static void put_const(weaver *w, unsigned reg, uint64_t v)
{
    bool shorter = v >> 32 && !fits32(v) && is_near(w, x86_here(w->c), v);
    if (shorter) x86_lea(w->c, reg, x86_rip(v));
    else x86_mov_ri(w->c, reg, v);
}

static void place_others(weaver *w, inlining *n)
{
    for (unsigned r = 0; r < X86_REGS; r++) {
        if (!(n->folded.used & WEAVE_BIT(r)) || n->mine[r]) continue;
        give(n, r, weave_take(w, 0, ISA_NO_REG));
    }
    n->here = x86_here(w->c);
    find_far(w, n);
    if (!n->has_far) return;
    give(n, BODY_FAR, weave_take(w, 0, ISA_NO_REG));
    x86_mov_ri(w->c, n->map[BODY_FAR], n->far);
}

static void let_go(weaver *w, const inlining *n)
{
    for (unsigned v = 0; v < BODY_VARIABLES; v++)
        if (n->mine[v]) weave_unlock(w, n->map[v]);
}

/* --- the code --- */

static x86_addr address(const weaver *w, const inlining *n, const item *it)
{
    x86_addr a = it->mem;
    if (is_absolute(it)) {
        uint64_t at = (uint64_t)a.disp;
        if (is_near(w, n->here, at)) return x86_rip(at);
        if (fits32(at)) return a;
        return x86_at(n->map[BODY_FAR], (int32_t)(at - n->far));
    }
    if (a.base != ISA_NO_REG) a.base = n->map[a.base];
    if (a.index != ISA_NO_REG) a.index = n->map[a.index];
    return a;
}

static bool put_item(weaver *w, const inlining *n, const item *it)
{
    x86_addr mem = it->has_mem ? address(w, n, it) : x86_abs(0);
    unsigned dst = n->map[it->dst], src = n->map[it->src];
    x86_code *c = w->c;
    switch (it->kind) {
    case ITEM_COPY: return x86_rename(c, &it->of->in, n->map, it->has_mem ? &mem : NULL) || c->full;
    case ITEM_CONST: put_const(w, dst, it->imm); return true;
    case ITEM_ALU_RI: return x86_alu_ri(c, (x86_alu)it->op, it->width, dst, (int64_t)it->imm);
    case ITEM_ALU_MI: return x86_alu_mi(c, (x86_alu)it->op, it->width, mem, (int64_t)it->imm);
    case ITEM_STORE: return x86_store_imm(c, it->width, mem, (int64_t)it->imm);
    case ITEM_TEST_RI: x86_test_ri(c, it->width, dst, (int32_t)it->imm); return true;
    case ITEM_SHIFT: x86_shift_ri(c, (x86_shift)it->op, it->width, dst, (unsigned)it->imm); return true;
    case ITEM_SX: x86_movsx_rr(c, 4, dst, src); return true;
    default: return true;
    }
}

static unsigned items_between(const weave_folded *f, unsigned from, unsigned to)
{
    unsigned count = 0;
    for (unsigned i = from + 1; i < to; i++) count += f->items[i].kind != ITEM_GONE;
    return count;
}

/* Are the items from..to entered only from `by`, and left only for `to`? */
static bool is_apart(const weave_folded *f, unsigned by, unsigned from, unsigned to)
{
    for (unsigned j = 0; j < f->count; j++) {
        const item *it = &f->items[j];
        if (it->kind != ITEM_JUMP && it->kind != ITEM_ALWAYS) continue;
        bool inside = j >= from && j < to;
        if (inside && it->target > to) return false;
        if (!inside && j != by && it->target >= from && it->target < to) return false;
    }
    return true;
}

/* What is worth two jumps when it does run: more than a move. */
static bool is_worth(const weave_folded *f, unsigned from, unsigned to)
{
    unsigned count = 0;
    for (unsigned i = from; i < to; i++) {
        count += f->items[i].kind != ITEM_GONE;
        if (f->items[i].has_mem) return true;
    }
    return count > 2;
}

/* A condition's arm that goes out of line, since it is run less often than not: what is skipped otherwise,
 * or, where there are two ways, the second. */
typedef struct arm {
    bool apart, second;
    unsigned from, to, over; /* the jump over it */
} arm;

static arm arm_of(const weaver *w, const weave_folded *f, unsigned i)
{
    unsigned t = f->items[i].target;
    arm none = {false, false, 0, 0, 0};
    unsigned end = t; /* of what is in front of the target */
    while (end > i + 1 && f->items[end - 1].kind == ITEM_GONE) end--;
    if (w->out_of_line || w->c == w->engine->cold) return none;
    const item *last = end > i + 1 ? &f->items[end - 1] : NULL;
    if (last && last->kind == ITEM_ALWAYS) {
        if (last->target <= t || !is_apart(f, i, t, last->target) || !is_worth(f, t, last->target)) return none;
        return (arm){true, true, t, last->target, end - 1};
    }
    if (!is_apart(f, i, i + 1, t) || !is_worth(f, i + 1, t)) return none;
    return (arm){true, false, i + 1, t, 0};
}

static void put_range(weaver *w, const inlining *n, unsigned from, unsigned to);

/* Of an engine without a place for code out of line: until the run's end. */
struct weave_arm {
    weave_arm *next;
    inlining inlined;
    arm arm;
    x86_label entry;
    uint64_t back;
};

static void put_off(weaver *w, const inlining *n, const arm *a, x86_label entry)
{
    weave_arm *later = inl_arena_alloc(w->run->arena, sizeof *later);
    if (!later) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    *later = (weave_arm){w->arms, *n, *a, entry, x86_here(w->c)};
    w->arms = later;
}

static void put_apart(weaver *w, const inlining *n, const arm *a, uint64_t back)
{
    w->out_of_line = true;
    put_range(w, n, a->from, a->to);
    x86_jmp_to(w->c, back);
    w->out_of_line = false;
}

void weave_emit_arms(weaver *w)
{
    for (const weave_arm *a = w->arms; a && !w->status; a = a->next) {
        x86_bind(w->c, a->entry);
        put_apart(w, &a->inlined, &a->arm, a->back);
    }
}

/* `entry`: the jump that leads to the arm; control comes back here. */
static void put_arm(weaver *w, const inlining *n, const arm *a, x86_label entry)
{
    x86_code *main = w->c, *cold = w->engine->cold;
    if (!cold) {
        put_off(w, n, a, entry);
        return;
    }
    uint64_t back = x86_here(main), at = x86_here(cold);
    if (!main->full && !x86_patch_rel32(main->write + entry.at, main->exec + entry.at, at)) main->unreachable = true;
    w->c = cold;
    put_apart(w, n, a, back);
    w->c = main;
}

static void put_range(weaver *w, const inlining *n, unsigned from, unsigned to)
{
    const weave_folded *f = &n->folded;
    x86_label label[BODY_INSNS], entry = {0, 0};
    bool bound[BODY_INSNS] = {false}; /* jumps whose label is to be bound */
    arm second = {false, false, 0, 0, 0};
    for (unsigned i = from; i <= to; i++) {
        for (unsigned j = from; j < i; j++)
            if (bound[j] && f->items[j].target == i) x86_bind(w->c, label[j]);
        if (i == to) return;
        if (second.apart && i == second.over) {
            put_arm(w, n, &second, entry);
            second.apart = false;
            i = second.to - 1;
            continue;
        }
        const item *it = &f->items[i];
        unsigned width = items_between(f, i, it->target) <= NEAR_ITEMS ? 1 : 4;
        if (it->kind == ITEM_JUMP) {
            arm a = second.apart ? second : arm_of(w, f, i);
            if (!second.apart && a.apart && a.second) {
                entry = x86_jcc_label(w->c, it->op, 4);
                second = a;
            } else if (!second.apart && a.apart) {
                put_arm(w, n, &a, x86_jcc_label(w->c, it->op ^ 1u, 4));
                i = a.to - 1;
            } else {
                label[i] = x86_jcc_label(w->c, it->op, width);
                bound[i] = true;
            }
        } else if (it->kind == ITEM_ALWAYS) {
            label[i] = x86_jmp_label(w->c, width);
            bound[i] = true;
        } else if (!put_item(w, n, it)) {
            weave_fail(w, INL_ERR_UNSUPPORTED, "an instruction of an analysis routine cannot be written here");
        }
    }
}

/* Before anything is emitted: nothing may go wrong afterwards. */
static bool is_possible(const weaver *w, const snippet *s, const weave_body *b)
{
    unsigned locked = 0, used = 0;
    if (!snippet_call_is_plain(s)) return false;
    uint16_t regs = 0;
    for (unsigned i = 0; i < b->count; i++) regs |= (uint16_t)(b->insns[i].fx.reads | b->insns[i].fx.writes);
    for (unsigned i = 0; i < s->nargs; i++) regs |= (uint16_t)WEAVE_BIT(arg_regs[i]);
    used = (unsigned)__builtin_popcount(regs);
    for (unsigned r = 0; r < X86_REGS; r++) {
        locked += w->lock[r] != 0;
        if (w->lock[r] && b->fixed >> r & 1) return false;
    }
    return locked + used <= MOST_REGS;
}

bool weave_inline(weaver *w, const snippet *s, const weave_routine *r, bool wanted, weave_val *result)
{
    if (!r->body_len || w->opt->use_xsave_all || s->nargs > ARGS) return false;
    inlining n = {.s = s, .body = weave_body_of(r, s->fn)};
    if (!n.body || !n.body->renamable) return r->inline_len && weave_inline_copied(w, s, r, wanted, result);
    if (!is_possible(w, s, n.body)) return false;
    for (unsigned v = 0; v < BODY_VARIABLES; v++) n.map[v] = (uint8_t)v;
    arguments(w, &n);
    fold(w, &n, wanted);
    if (n.folded.flags) weave_flags_clobber(w);
    pin(w, &n);
    place_arguments(w, &n);
    place_others(w, &n);
    if (w->status) return true;
    put_range(w, &n, 0, n.folded.count);
    let_go(w, &n);
    if (!wanted) return true;
    if (n.folded.result_known) {
        *result = weave_imm(n.folded.result);
        return true;
    }
    unsigned reg = n.map[X86_RAX];
    weave_lock(w, reg);
    *result = (weave_val){WEAVE_REG, (uint8_t)reg, 0, 0};
    return true;
}
