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
#include "weave/body.h"

typedef struct inlining {
    const snippet *s;
    const weave_body *body;
    weave_folded folded;
    weave_val args[WEAVE_MAX_ARGS];
    bool absent[WEAVE_MAX_ARGS]; /* not computed: the body does not look at it */
    weave_naming names;
    bool mine[BODY_VARIABLES]; /* locked here */
    bool has_far;
} inlining;

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
    case SNIPPET_THREAD_DATA:
    case SNIPPET_OWN_CYCLES:
    case SNIPPET_THREAD: return false;
    default: return true;
    }
}

static void arguments(weaver *w, inlining *n)
{
    for (unsigned i = 0; i < n->s->nargs && !w->status; i++) {
        const snippet *s = n->s->args[i];
        n->absent[i] = !(n->body->wanted & WEAVE_BIT(w->isa->abi.args[i])) && !has_effect(s);
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
        known.which |= WEAVE_BIT(w->isa->abi.args[i]);
        known.value[w->isa->abi.args[i]] = n->args[i].imm;
    }
    weave_fold(n->body, n->s->value, &known, wanted, &n->folded);
    for (unsigned i = 0; i < n->s->nargs; i++) {
        if (n->absent[i] || n->folded.entry & WEAVE_BIT(w->isa->abi.args[i])) continue;
        weave_drop(w, n->args[i]);
        n->absent[i] = true;
    }
}

/* --- registers --- */

static void give(inlining *n, unsigned variable, unsigned reg)
{
    n->names.map[variable] = (uint8_t)reg;
    n->mine[variable] = true;
}

/* Those that instructions insist on; whoever sits there gives way. */
static void pin(weaver *w, inlining *n)
{
    isa_regs fixed = n->folded.fixed;
    for (unsigned i = 0; i < n->s->nargs; i++) {
        weave_val *v = &n->args[i];
        bool held = !n->absent[i] && (v->kind == WEAVE_REG || v->kind == WEAVE_PROG);
        if (held && v->kind == WEAVE_REG && v->reg == w->isa->abi.args[i]) continue;
        if (held && fixed & WEAVE_BIT(v->reg)) weave_own(w, v, fixed, ISA_NO_REG);
    }
    for (unsigned i = 0; i < n->s->nargs; i++) {
        if (n->absent[i] || !(fixed & WEAVE_BIT(w->isa->abi.args[i]))) continue;
        weave_into(w, &n->args[i], w->isa->abi.args[i]);
        give(n, w->isa->abi.args[i], w->isa->abi.args[i]);
    }
    for (unsigned r = 0; r < w->isa->reg_count; r++) {
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
        unsigned variable = w->isa->abi.args[i];
        if (n->absent[i] || n->mine[variable]) continue;
        bool changed = n->folded.written & WEAVE_BIT(variable);
        if (changed) weave_own(w, v, 0, ISA_NO_REG);
        else weave_in_reg(w, v, w->isa->reserved); /* which cannot be everything that a register can */
        give(n, variable, v->reg);
    }
}

/* An address from which all those are counted that have no encoding here. */
static void find_far(const weaver *w, inlining *n)
{
    for (unsigned i = 0; i < n->folded.count; i++) {
        const item *it = &n->folded.items[i];
        uint64_t at = (uint64_t)it->mem.disp;
        if (!is_absolute(it) || !w->isa->is_far(w, n->names.here, at)) continue;
        if (!n->has_far) n->names.far = at;
        n->has_far = true;
    }
}

static void place_others(weaver *w, inlining *n)
{
    for (unsigned r = 0; r < w->isa->reg_count; r++) {
        if (!(n->folded.used & WEAVE_BIT(r)) || n->mine[r]) continue;
        give(n, r, weave_take(w, 0, ISA_NO_REG));
    }
    n->names.here = isa_here(w->c);
    find_far(w, n);
    if (!n->has_far) return;
    give(n, BODY_FAR, weave_take(w, 0, ISA_NO_REG));
    w->isa->set(w->c, n->names.map[BODY_FAR], n->names.far);
}

static void let_go(weaver *w, const inlining *n)
{
    for (unsigned v = 0; v < BODY_VARIABLES; v++)
        if (n->mine[v]) weave_unlock(w, n->names.map[v]);
}

/* --- the code --- */

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
    isa_label entry;
    uint64_t back;
    uint32_t at; /* instruction of the run */
};

static void put_off(weaver *w, const inlining *n, const arm *a, isa_label entry)
{
    weave_arm *later = inl_arena_alloc(w->run->arena, sizeof *later);
    if (!later) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    *later = (weave_arm){w->arms, *n, *a, entry, isa_here(w->c), w->at};
    w->arms = later;
}

static void put_apart(weaver *w, const inlining *n, const arm *a, uint64_t back)
{
    w->out_of_line = true;
    put_range(w, n, a->from, a->to);
    w->isa->jump_to(w->c, back);
    w->out_of_line = false;
}

void weave_emit_arms(weaver *w)
{
    for (const weave_arm *a = w->arms; a && !w->status; a = a->next) {
        w->at = a->at;
        w->isa->bind(w->c, a->entry);
        put_apart(w, &a->inlined, &a->arm, a->back);
    }
}

/* `entry`: the jump that leads to the arm; control comes back here. */
static void put_arm(weaver *w, const inlining *n, const arm *a, isa_label entry)
{
    isa_code *main = w->c, *cold = w->engine->cold;
    if (!cold) {
        put_off(w, n, a, entry);
        return;
    }
    uint64_t back = isa_here(main);
    w->isa->bind_to(main, entry, isa_here(cold));
    w->c = cold;
    put_apart(w, n, a, back);
    w->c = main;
}

static void put_range(weaver *w, const inlining *n, unsigned from, unsigned to)
{
    const weave_folded *f = &n->folded;
    isa_label label[BODY_INSNS], entry = {0, 0};
    bool bound[BODY_INSNS] = {false}; /* jumps whose label is to be bound */
    arm second = {false, false, 0, 0, 0};
    for (unsigned i = from; i <= to; i++) {
        for (unsigned j = from; j < i; j++)
            if (bound[j] && f->items[j].target == i) w->isa->bind(w->c, label[j]);
        if (i == to) return;
        if (second.apart && i == second.over) {
            put_arm(w, n, &second, entry);
            second.apart = false;
            i = second.to - 1;
            continue;
        }
        const item *it = &f->items[i];
        if (it->of && it->kind != ITEM_GONE && (it->has_mem || w->isa->may_fault(&it->of->in)))
            weave_note_inlined(w, &it->of->in);
        bool near = items_between(f, i, it->target) <= w->isa->near_items;
        if (it->kind == ITEM_JUMP) {
            arm a = second.apart ? second : arm_of(w, f, i);
            if (!second.apart && a.apart && a.second) {
                entry = w->isa->branch(w->c, it->op, false);
                second = a;
            } else if (!second.apart && a.apart) {
                put_arm(w, n, &a, w->isa->branch_unless(w->c, it->op, false));
                i = a.to - 1;
            } else {
                label[i] = w->isa->branch(w->c, it->op, near);
                bound[i] = true;
            }
        } else if (it->kind == ITEM_ALWAYS) {
            label[i] = w->isa->jump(w->c, near);
            bound[i] = true;
        } else if (!w->isa->put_item(w, &n->names, it)) {
            weave_fail(w, INL_ERR_UNSUPPORTED, "an instruction of an analysis routine cannot be written here");
        }
    }
}

void weave_note_inlined(weaver *w, const isa_insn *in)
{
    weave_output *out = w->out;
    if (!weave_may_fault(w->isa, in)) return;
    if (out->inlined_count == w->inlined_room) {
        uint32_t room = w->inlined_room ? 2 * w->inlined_room : 16;
        weave_inlined *bigger = inl_arena_alloc(w->run->arena, room * sizeof *bigger);
        if (!bigger) {
            weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
            return;
        }
        for (uint32_t i = 0; i < out->inlined_count; i++) bigger[i] = out->inlined[i];
        out->inlined = bigger;
        w->inlined_room = room;
    }
    out->inlined[out->inlined_count++] = (weave_inlined){isa_here(w->c), in->addr, w->at};
}

/* Before anything is emitted: nothing may go wrong afterwards. */
static bool is_possible(const weaver *w, const snippet *s, const weave_body *b)
{
    if (!snippet_call_is_plain(s)) return false;
    isa_regs regs = 0;
    for (unsigned i = 0; i < b->count; i++) regs |= b->insns[i].fx.reads | b->insns[i].fx.writes;
    for (unsigned i = 0; i < s->nargs; i++) regs |= WEAVE_BIT(w->isa->abi.args[i]);
    if (w->locked & b->fixed) return false;
    return (unsigned)__builtin_popcountll(w->locked) + (unsigned)__builtin_popcountll(regs) <= w->isa->inline_regs;
}

bool weave_inline(weaver *w, const snippet *s, const weave_routine *r, bool wanted, weave_val *result)
{
    if (!r->body_len || w->opt->save_all || s->nargs > w->isa->abi.arg_count) return false;
    inlining n = {.s = s, .body = weave_body_of(r, s->fn)};
    if (!n.body || !n.body->renamable) return r->inline_len && weave_inline_copied(w, s, r, wanted, result);
    if (!is_possible(w, s, n.body)) return false;
    for (unsigned v = 0; v < BODY_VARIABLES; v++) n.names.map[v] = (uint8_t)v;
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
    unsigned reg = n.names.map[w->isa->abi.result];
    weave_lock(w, reg);
    *result = weave_owned(reg);
    return true;
}
