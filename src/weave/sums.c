/* What an analysis routine does to memory (routine.h).
 *
 * Code is followed with what is known of each register: a value as a tree over arguments and variables, or at
 * least the object or the pointer variable that an address was computed from. A small leaf, whose jumps go
 * forward, is followed from its begin to its end, and what comes together at a jump's target is what both ways
 * agree on. Larger routines are followed piece by piece with all that they call; at the begin of each piece
 * nothing is known. Their frames are nobody else's business: what is addressed by the stack pointer is left out.
 */
#include "weave/body.h"
#include "weave/routine.h"

#include "base/map.h"
#include "base/vec.h"

enum { MAX_INSNS = 4000, MAX_DEPTH = 8, FLAGS_AHEAD = 12 };
static const uint64_t LOW_32 = 0xffffffff;

/* Of the process, as in clobber.c: routines stay what they are. Under the engine's lock, like all weaving. */
static inl_map known;
static inl_arena trees;

typedef enum origin { NOWHERE, OBJECT, POINTER } origin;
typedef struct value {   /* of a register */
    const snippet *tree; /* NULL: not known */
    uint8_t origin;      /* an address computed from that of an object, or from a pointer variable's content */
    uint64_t at;
} value;

typedef struct state {
    value regs[WEAVE_MAX_REGS];
} state;
typedef struct later {
    uint64_t target;
    state st;
} later; /* what is known where a jump leads to */

typedef struct walk {
    const weave_isa *isa;
    weave_memory *m;
    size_t access_room, sum_room;
    state st;
    bool lost; /* only a jump leads here */
    later jumps[BODY_INSNS];
    unsigned jump_count;
    uint64_t furthest; /* target of the jumps seen */
    bool leaf;         /* one piece, a candidate for sums */
    bool failed;
    inl_map seen;
    INL_VEC(uint64_t) todo;
    unsigned count;
} walk;

static const value unknown = {NULL, NOWHERE, 0};

/* --- trees --- */

static const snippet *constant(uint64_t v)
{
    snippet *s = snippet_new(&trees, SNIPPET_CONST);
    if (s) s->value = v;
    return s;
}

static unsigned depth_of(const snippet *s)
{
    if (!s || s->kind != SNIPPET_BINARY) return 0;
    unsigned a = depth_of(s->a), b = depth_of(s->b);
    return 1 + (a > b ? a : b);
}

static const snippet *combined(unsigned op, const snippet *a, const snippet *b)
{
    if (!a || !b || depth_of(a) >= MAX_DEPTH || depth_of(b) >= MAX_DEPTH) return NULL;
    snippet *s = snippet_new(&trees, SNIPPET_BINARY);
    if (!s) return NULL;
    s->op = (uint8_t)op;
    s->a = a;
    s->b = b;
    return snippet_simplify(&trees, s);
}

static const snippet *low_half(const snippet *s) { return combined(SNIPPET_AND, s, constant(LOW_32)); }

static const snippet *sign_extended(const snippet *s, unsigned bits)
{
    const snippet *by = constant(64 - bits);
    return combined(SNIPPET_SAR, combined(SNIPPET_SHL, s, by), by);
}

static value of_constant(uint64_t v) { return (value){constant(v), NOWHERE, 0}; }

static bool is_constant(value v, uint64_t *out)
{
    if (!v.tree || v.tree->kind != SNIPPET_CONST) return false;
    *out = v.tree->value;
    return true;
}

/* Adding a number to an address leaves it in its object; which of the two is the number is known by the other. */
static value sum_of(value a, value b)
{
    value v = {combined(SNIPPET_ADD, a.tree, b.tree), NOWHERE, 0};
    if (a.origin != NOWHERE && b.origin != NOWHERE) return v;
    v.origin = a.origin | b.origin;
    v.at = a.at | b.at;
    return v;
}

/* --- operands --- */

static value register_value(const walk *w, unsigned reg) { return reg < WEAVE_MAX_REGS ? w->st.regs[reg] : unknown; }

static value address_of(const walk *w, const isa_mem *m)
{
    if (m->segment || m->bits & (ISA_MEM_ADDR32 | ISA_MEM_VECTOR_INDEX | ISA_MEM_BIT_OFFSET | ISA_MEM_INDEX8))
        return unknown;
    if (m->bits & ISA_MEM_PCREL) return (value){constant((uint64_t)m->disp), OBJECT, (uint64_t)m->disp};
    value v = of_constant((uint64_t)m->disp);
    if (m->base != ISA_NO_REG) v = sum_of(register_value(w, m->base), v);
    if (m->index == ISA_NO_REG) return v;
    value index = register_value(w, m->index);
    if (m->scale > 1) index = (value){combined(SNIPPET_MUL, index.tree, constant(m->scale)), NOWHERE, 0};
    return sum_of(v, index);
}

/* Is what is on the stack meant, which lives no longer than the call, or a variable of the thread's? */
static bool is_private(const walk *w, const isa_mem *m)
{
    if (m->segment) return m->base == ISA_NO_REG && m->index == ISA_NO_REG;
    return m->base == w->isa->isa->stack_reg;
}

static void add_access(walk *w, weave_access a)
{
    weave_memory *m = w->m;
    for (uint32_t i = 0; i < m->access_count; i++) {
        const weave_access *b = &m->accesses[i];
        if (b->place == a.place && b->writes == a.writes && b->adds == a.adds && b->size == a.size && b->at == a.at)
            return;
    }
    if (!inl_vec_reserve_((void **)&m->accesses, &w->access_room, m->access_count + 1, sizeof a)) w->failed = true;
    else m->accesses[m->access_count++] = a;
}

static void note_access(walk *w, const isa_mem *m, bool adds)
{
    if (m->access == ISA_ADDRESS_ONLY || m->access == ISA_PREFETCH || is_private(w, m)) return;
    value v = address_of(w, m);
    weave_access a = {WEAVE_SOMEWHERE, m->access & ISA_WRITE, adds, (uint32_t)m->size * (m->count ? m->count : 1), 0};
    bool whole = m->size && !(m->bits & (ISA_MEM_REPEATED | ISA_MEM_VARIABLE)) && !m->mask;
    if (!is_constant(v, &a.at) || !whole) a.at = v.at;
    if (v.tree && v.tree->kind == SNIPPET_CONST && whole) a.place = WEAVE_AT;
    else if (v.origin == OBJECT) a.place = WEAVE_IN;
    else if (v.origin == POINTER) a.place = WEAVE_THROUGH;
    else a.at = 0;
    add_access(w, a);
}

/* --- additions --- */

/* Are the flags that `in` sets forgotten before anybody asks? */
static bool flags_unused(const weave_isa *isa, const isa_insn *in)
{
    isa_effects fx;
    isa_insn next = *in;
    isa->isa->effects(in, &fx);
    uint32_t live = (fx.flags_written | fx.flags_undefined) & isa->flags;
    for (unsigned n = 0; n < FLAGS_AHEAD && live; n++) {
        uint64_t at = next.addr + next.len;
        if (weave_decode_at(at, &next) != ISA_OK) return false;
        if (next.flow == ISA_FLOW_RETURN || next.flow == ISA_FLOW_CALL || next.flow == ISA_FLOW_SYSCALL) return true;
        isa->isa->effects(&next, &fx);
        if (next.flow != ISA_FLOW_NEXT || fx.flags_read & live) return false;
        live &= ~fx.flags_kill;
    }
    return !live;
}

static value operand_value(const walk *w, const isa_operand *o)
{
    if (o->kind == ISA_OPERAND_IMM) return of_constant((uint64_t)o->imm);
    if (o->kind == ISA_OPERAND_REG && !o->high_byte && o->size >= 4) return register_value(w, o->reg);
    return unknown;
}

/* Does the instruction do nothing but add to memory? *amount is what, as far as known. */
static bool is_addition(const walk *w, const isa_insn *in, const weave_form *f, value *amount, unsigned *size)
{
    bool steps = f->kind == WEAVE_FORM_STEP;
    if ((f->kind != WEAVE_FORM_ALU && !steps) || (f->op != SNIPPET_ADD && f->op != SNIPPET_SUB)) return false;
    if (f->dst.kind != ISA_OPERAND_MEM || !flags_unused(w->isa, in)) return false;
    *amount = steps ? of_constant(1) : operand_value(w, &f->b);
    if (f->op == SNIPPET_SUB) amount->tree = combined(SNIPPET_SUB, constant(0), amount->tree);
    *size = f->dst.size;
    return true;
}

static void add_sum(walk *w, const isa_insn *in, const isa_mem *m, value amount, unsigned size)
{
    value address = address_of(w, m);
    if (!w->leaf || w->furthest > in->addr || !address.tree || !amount.tree || (size != 4 && size != 8)) return;
    weave_sum s = {(uint8_t)(w->count - 1), (uint8_t)size, address.tree, amount.tree};
    if (!inl_vec_reserve_((void **)&w->m->sums, &w->sum_room, w->m->sum_count + 1, sizeof s)) w->failed = true;
    else w->m->sums[w->m->sum_count++] = s;
}

static void note_memory(walk *w, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    weave_form f;
    value amount;
    unsigned size;
    if (!(in->bits & ISA_BIT_MEM)) return;
    int n = w->isa->isa->memory(in, mem);
    w->isa->form(in, &f);
    bool adds = n == 1 && is_addition(w, in, &f, &amount, &size);
    for (int i = 0; i < n; i++) note_access(w, &mem[i], adds);
    if (adds) add_sum(w, in, &mem[0], amount, size);
}

/* --- what an instruction computes --- */

static value loaded(const walk *w, const isa_insn *in)
{
    isa_mem m[ISA_MAX_MEM];
    uint64_t at;
    if (w->isa->isa->memory(in, m) != 1 || m[0].size != 8 || !is_constant(address_of(w, &m[0]), &at)) return unknown;
    snippet *s = snippet_new(&trees, SNIPPET_LOAD);
    const snippet *from = constant(at);
    if (!s || !from) return unknown;
    s->a = from;
    s->size = 8;
    return (value){s, POINTER, at};
}

static value moved(const walk *w, const isa_insn *in, const weave_form *f)
{
    isa_mem m[ISA_MAX_MEM];
    switch (f->kind) {
    case WEAVE_FORM_ADDRESS: return w->isa->isa->memory(in, m) == 1 ? address_of(w, &m[0]) : unknown;
    case WEAVE_FORM_SIGN:
        if (f->a.kind == ISA_OPERAND_MEM || f->a.size != 4) return unknown;
        return (value){sign_extended(operand_value(w, &f->a).tree, 32), NOWHERE, 0};
    case WEAVE_FORM_MOVE: return f->a.kind == ISA_OPERAND_MEM ? loaded(w, in) : operand_value(w, &f->a);
    default: return unknown;
    }
}

static value computed(const walk *w, const weave_form *f)
{
    bool shifts = f->kind == WEAVE_FORM_SHIFT && f->op == SNIPPET_SHL && f->b.kind == ISA_OPERAND_IMM;
    bool multiplies = f->kind == WEAVE_FORM_MULTIPLY;
    if (f->kind == WEAVE_FORM_STEP)
        return sum_of(operand_value(w, &f->a), of_constant(f->op == SNIPPET_ADD ? 1 : ~0ull));
    if ((f->kind != WEAVE_FORM_ALU && !multiplies && !shifts) || f->b.kind == ISA_OPERAND_MEM) return unknown;
    if (f->a.kind != ISA_OPERAND_REG) return unknown;
    if (f->op == SNIPPET_XOR && f->b.kind == ISA_OPERAND_REG && f->b.reg == f->a.reg) return of_constant(0);
    value a = operand_value(w, &f->a), b = operand_value(w, &f->b);
    if (!multiplies && f->op == SNIPPET_ADD) return sum_of(a, b);
    value v = {combined(multiplies ? SNIPPET_MUL : f->op, a.tree, b.tree), NOWHERE, 0};
    if (multiplies || f->op != SNIPPET_SUB || b.origin != NOWHERE) return v;
    v.origin = a.origin;
    v.at = a.at;
    return v;
}

static void take_effect(walk *w, const isa_insn *in)
{
    isa_effects fx;
    weave_form f;
    w->isa->form(in, &f);
    const isa_operand *d = &f.dst;
    bool plain = d->kind == ISA_OPERAND_REG && !d->implicit && !d->high_byte && d->size >= 4;
    value v = unknown;
    if (plain) v = d->access == ISA_WRITE ? moved(w, in, &f) : computed(w, &f);
    if (plain && d->size == 4) v = (value){low_half(v.tree), NOWHERE, 0};
    w->isa->isa->effects(in, &fx);
    for (unsigned r = 0; r < w->isa->reg_count; r++)
        if (fx.writes >> r & 1) w->st.regs[r] = plain && r == d->reg ? v : unknown;
}

/* --- leaves --- */

static void meet(const weave_isa *isa, state *a, const state *b)
{
    for (unsigned r = 0; r < isa->reg_count; r++) {
        if (a->regs[r].tree != b->regs[r].tree) a->regs[r].tree = NULL;
        if (a->regs[r].origin == b->regs[r].origin && a->regs[r].at == b->regs[r].at) continue;
        a->regs[r].origin = NOWHERE;
        a->regs[r].at = 0;
    }
}

static void arrive(walk *w, uint64_t at)
{
    for (unsigned j = 0; j < w->jump_count; j++) {
        if (w->jumps[j].target != at) continue;
        if (w->lost) w->st = w->jumps[j].st;
        else meet(w->isa, &w->st, &w->jumps[j].st);
        w->lost = false;
    }
}

static void set_arguments(walk *w)
{
    const weave_abi *abi = &w->isa->abi;
    for (unsigned i = 0; i < abi->arg_count; i++) {
        snippet *s = snippet_new(&trees, SNIPPET_ARG);
        if (s) s->index = i;
        w->st.regs[abi->args[i]].tree = s;
    }
}

/* Bytes of a routine whose calls at points are inlined for certain; 0: it is another one. */
static uint32_t leaf_length(uint64_t fn)
{
    void (*f)(void) = (void (*)(void))(uintptr_t)fn;
    const weave_routine *r = weave_routine_of(f);
    if (!r || r->inline_len || !r->body_len) return r ? r->inline_len : 0;
    const weave_body *b = weave_body_of(r, f);
    return b && b->renamable ? r->body_len : 0;
}

static void note_jump(walk *w, const isa_insn *in, uint64_t end)
{
    uint64_t target = in->flow == ISA_FLOW_RETURN ? end : in->target;
    w->jumps[w->jump_count++] = (later){target, w->st};
    w->lost = in->flow != ISA_FLOW_COND;
    if (target > w->furthest) w->furthest = target;
}

/* False: it is followed like any other routine. */
static bool follow_leaf(walk *w, uint64_t fn)
{
    isa_insn in;
    uint64_t end = fn + leaf_length(fn);
    w->leaf = true;
    set_arguments(w);
    for (uint64_t at = fn; at < end && w->jump_count < BODY_INSNS; at += in.len) {
        if (weave_decode_at(at, &in) != ISA_OK) return false;
        arrive(w, at);
        w->count++;
        if (in.flow == ISA_FLOW_RETURN && at + in.len == end) return true;
        note_memory(w, &in);
        if (in.flow != ISA_FLOW_NEXT) note_jump(w, &in, end);
        take_effect(w, &in);
    }
    return false;
}

/* --- any other routine --- */

static bool push(walk *w, uint64_t at)
{
    uint64_t ignored;
    if (inl_map_get(&w->seen, at, &ignored)) return true;
    return inl_map_put(&w->seen, at, 1) && inl_vec_push(&w->todo, at);
}

static void forget_registers(walk *w, isa_regs set)
{
    for (unsigned r = 0; r < w->isa->reg_count; r++)
        if (set >> r & 1) w->st.regs[r] = unknown;
}

static bool follow_piece(walk *w, uint64_t at)
{
    isa_insn in;
    uint64_t ignored;
    forget_registers(w, w->isa->all);
    for (;;) {
        if (w->count++ >= MAX_INSNS || weave_decode_at(at, &in) != ISA_OK) return false;
        note_memory(w, &in);
        switch (in.flow) {
        case ISA_FLOW_NEXT: take_effect(w, &in); break;
        case ISA_FLOW_JUMP: return push(w, in.target);
        case ISA_FLOW_COND:
        case ISA_FLOW_COND_REG:
            if (!push(w, in.target)) return false;
            break;
        case ISA_FLOW_CALL:
            if (!push(w, in.target)) return false;
            forget_registers(w, w->isa->abi.caller_saved);
            break;
        case ISA_FLOW_SYSCALL:
            add_access(w, (weave_access){WEAVE_SOMEWHERE, true, false, 0, 0});
            forget_registers(w, w->isa->abi.caller_saved);
            break;
        case ISA_FLOW_RETURN:
        case ISA_FLOW_TRAP: return true;
        default: return false;
        }
        at += in.len;
        if (inl_map_get(&w->seen, at, &ignored)) return true;
    }
}

static bool follow_all(walk *w, uint64_t fn)
{
    bool good = push(w, fn);
    while (good && w->todo.count) good = follow_piece(w, w->todo.items[--w->todo.count]);
    return good;
}

static void analyse(uint64_t fn, weave_memory *m)
{
    const weave_routine *r = weave_routine_of((void (*)(void))(uintptr_t)fn);
    walk *w = calloc(1, sizeof *w);
    m->open = true;
    if (!w || !r) {
        free(w);
        return;
    }
    w->isa = weave_isa_here();
    w->m = m;
    bool good = leaf_length(fn) && follow_leaf(w, fn);
    if (!good) {
        m->sum_count = 0;
        w->leaf = false;
        w->count = 0;
        good = follow_all(w, fn);
    }
    m->open = !good || w->failed;
    inl_map_free(&w->seen);
    inl_vec_free(&w->todo);
    free(w);
}

const weave_memory *weave_memory_of(void (*fn)(void))
{
    uint64_t key = (uint64_t)(uintptr_t)fn, value = 0;
    if (inl_map_get(&known, key, &value)) return (weave_memory *)(uintptr_t)value;
    weave_memory *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    analyse(key, m);
    if (inl_map_put(&known, key, (uint64_t)(uintptr_t)m)) return m;
    free(m->accesses);
    free(m->sums);
    free(m);
    return NULL;
}

/* --- what is left when sums are left out --- */

typedef struct remains {
    const isa *isa;
    isa_insn insns[BODY_INSNS + 1];
    cfg_need live[BODY_INSNS + 1]; /* before each; the last one is the return */
    unsigned count;                /* without that return */
} remains;

static bool read_body(uint64_t fn, remains *b)
{
    uint64_t end = fn + leaf_length(fn);
    for (uint64_t at = fn; at < end && b->count <= BODY_INSNS; b->count++) {
        isa_insn *in = &b->insns[b->count];
        if (weave_decode_at(at, in) != ISA_OK) return false;
        at += in->len;
        if (in->flow == ISA_FLOW_RETURN && at == end) return true;
    }
    return false;
}

static unsigned number_of(const remains *b, uint64_t addr)
{
    unsigned k = 0;
    while (k < b->count && b->insns[k].addr != addr) k++;
    return k;
}

/* A jump over nothing can go. */
static bool is_needed_jump(remains *b, unsigned k, uint64_t out)
{
    const isa_insn *in = &b->insns[k];
    isa_effects fx;
    unsigned to = in->flow == ISA_FLOW_RETURN ? b->count : number_of(b, in->target);
    uint64_t between = ((1ull << to) - 1) & ~((2ull << k) - 1);
    b->live[k] = b->live[to];
    if (in->flow != ISA_FLOW_COND) return true;
    if (!(between & ~out)) return false;
    b->isa->effects(in, &fx);
    b->live[k].regs |= b->live[k + 1].regs;
    b->live[k].flags |= b->live[k + 1].flags | fx.flags_read;
    return true;
}

/* Does instruction k have to stay? Says what is live before it. */
static bool is_needed(remains *b, unsigned k, uint64_t out)
{
    const isa_insn *in = &b->insns[k];
    isa_effects fx;
    cfg_need live = b->live[k + 1];
    if (in->flow != ISA_FLOW_NEXT) return is_needed_jump(b, k, out);
    b->isa->effects(in, &fx);
    bool used = fx.writes & live.regs || (fx.flags_written | fx.flags_undefined) & live.flags;
    bool writes = isa_writes_memory(b->isa, in);
    if (!used && !writes && !fx.other_writes && !fx.vec_writes && !fx.mask_writes) return false;
    b->live[k].regs = (live.regs & ~fx.kills) | fx.reads;
    b->live[k].flags = (live.flags & ~fx.flags_kill) | fx.flags_read;
    return true;
}

uint64_t weave_sums_mask(void (*fn)(void), uint64_t chosen, bool *all)
{
    const weave_memory *m = weave_memory_of(fn);
    remains b = {.isa = weave_isa_here()->isa};
    uint64_t sums = 0, out = 0;
    *all = false;
    if (!m || !read_body((uint64_t)(uintptr_t)fn, &b)) return 0;
    for (uint32_t i = 0; i < m->sum_count && i < 64; i++)
        if (chosen >> i & 1) sums |= 1ull << m->sums[i].insn;
    *all = true;
    for (unsigned k = b.count; k-- > 0;) {
        if (!(sums >> k & 1) && is_needed(&b, k, out)) {
            *all &= b.insns[k].flow != ISA_FLOW_NEXT;
            continue;
        }
        out |= 1ull << k;
        b.live[k] = b.live[k + 1];
    }
    return out;
}

bool weave_sees_counters(const snippet *s)
{
    if (!s) return false;
    if (s->kind == SNIPPET_COUNTER || s->kind == SNIPPET_APPEND) return true; /* what empties the buffer may look */
    if (s->kind == SNIPPET_CALL) {
        const weave_routine *r = weave_routine_of(s->fn);
        if (!r || !r->body_len) return true;
    }
    for (unsigned i = 0; i < s->nargs; i++)
        if (weave_sees_counters(s->args[i])) return true;
    return weave_sees_counters(s->a) || weave_sees_counters(s->b) || weave_sees_counters(s->c);
}
