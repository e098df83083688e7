/* Records that are appended ahead: a stretch of code looks once whether its buffer has room, and its `next` is counted
 * like a counter (count.c), once for the whole stretch:
 *
 *     r := next
 *     to the cold code unless r < limit        room for all records of the stretch is behind the limit
 *     [r] := field ... ; an instruction ; [r + record] := field ... ; an instruction ...
 *     next := r + all of them
 *
 * Where a fault, a guard or a side exit leaves the stretch, `next` gets what is due as counters do (weave_undo, side
 * counts): the records of instructions that were reached, that of the one which faults among them, and no other.
 *
 * r is no more than a scratch register of which is known what it holds (known.c): when the program or another snippet
 * takes it, `next` is loaded again. Constants that were made for one record are likewise used for the next ones.
 *
 * What is appended ahead: records at which nothing can fault, look at a counter or decide anything, in front of
 * instructions at which nothing else is done but counting by constants.
 */
#include "weave/weaver.h"

enum { LOOK_AHEAD = 40, WIDEST = 8 };

/* --- what can be --- */

static bool is_harmless(const weaver *w, const weave_insn *insn, const snippet *s)
{
    isa_mem mem[ISA_MAX_MEM];
    switch (s->kind) {
    case SNIPPET_CONST:
    case SNIPPET_PC:
    case SNIPPET_FALLTHROUGH:
    case SNIPPET_REG:
    case SNIPPET_EA:
    case SNIPPET_THREAD:
    case SNIPPET_THREAD_DATA: return true;
    case SNIPPET_ACCESS_SIZE:
        return (int)s->index < w->run->isa->memory(&insn->in, mem) && !(mem[s->index].bits & ISA_MEM_VARIABLE);
    case SNIPPET_UNARY: return is_harmless(w, insn, s->a);
    case SNIPPET_BINARY:
        if (s->op == SNIPPET_DIV || s->op == SNIPPET_MOD || s->op == SNIPPET_LAND || s->op == SNIPPET_LOR) return false;
        return is_harmless(w, insn, s->a) && is_harmless(w, insn, s->b);
    default: return false;
    }
}

static bool can_be_ahead(const weaver *w, const weave_insn *insn, const weave_insert *n)
{
    const snippet *s = n->code;
    if (s->kind != SNIPPET_APPEND || n->predicated || s->buffer->slot >= w->isa->frame.buffer_count) return false;
    for (unsigned i = 0; i < s->nargs; i++)
        if (!is_harmless(w, insn, s->args[i])) return false;
    return true;
}

/* How many records the snippets in front of an instruction append ahead; 0: none, or not ahead. */
static unsigned records_at(const weaver *w, const weave_insn *insn)
{
    unsigned records = 0, slack = UINT32_MAX;
    for (const weave_insert *n = insn->before.first; n; n = n->next) {
        bool counts = n->code->kind == SNIPPET_COUNT && n->code->a->kind == SNIPPET_CONST && !n->predicated;
        if (counts) continue;
        if (!can_be_ahead(w, insn, n)) return 0;
        records++;
        if (n->code->buffer->slack < slack) slack = n->code->buffer->slack;
    }
    return records <= slack && records <= UINT8_MAX ? records : 0;
}

/* Elsewhere in a block nothing is known of what is due. */
static bool appends_anywhere(const weave_run *run)
{
    for (uint32_t b = 0; b < run->block_count; b++)
        for (const weave_insert *n = run->blocks[b].anywhere.first; n; n = n->next)
            if (snippet_has(n->code, SNIPPET_APPEND)) return true;
    return false;
}

static uint32_t least_slack(const weave_insn *insn, uint32_t slack)
{
    for (const weave_insert *n = insn->before.first; n; n = n->next)
        if (n->code->kind == SNIPPET_APPEND && n->code->buffer->slack < slack) slack = n->code->buffer->slack;
    return slack;
}

bool weave_ahead_begin(weaver *w)
{
    const weave_run *run = w->run;
    if (!w->opt->appends_ahead || !w->isa->branch_if_beyond || appends_anywhere(run)) return true;
    inl_arena *arena = run->arena;
    uint8_t *ahead = inl_arena_alloc(arena, run->insn_count);
    w->ahead_sum = inl_arena_alloc(arena, (run->insn_count + 1) * sizeof *w->ahead_sum);
    w->due = inl_arena_alloc(arena, w->isa->frame.buffer_count * sizeof *w->due);
    w->added = inl_arena_alloc(arena, w->isa->frame.buffer_count * sizeof *w->added);
    w->pointed = inl_arena_alloc(arena, w->isa->frame.buffer_count * sizeof *w->pointed);
    if (!ahead || !w->ahead_sum || !w->due || !w->added || !w->pointed) return false;
    w->ahead_room = UINT32_MAX;
    w->ahead_sum[0] = 0;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        ahead[i] = (uint8_t)records_at(w, &run->insns[i]);
        w->ahead_sum[i + 1] = w->ahead_sum[i] + ahead[i];
        if (ahead[i]) w->ahead_room = least_slack(&run->insns[i], w->ahead_room);
    }
    for (unsigned k = 0; k < w->isa->frame.buffer_count; k++) w->due[k] = w->added[k] = w->pointed[k] = 0;
    w->ahead = w->ahead_sum[run->insn_count] ? ahead : NULL;
    return true;
}

bool weave_ahead_is_full(const weaver *w, uint32_t first, uint32_t insn)
{
    return w->ahead && w->ahead_sum[insn + 1] - w->ahead_sum[first] > w->ahead_room;
}

/* --- the look --- */

static const snippet_buffer *buffer_of(const weaver *w, uint32_t slot, uint32_t insn)
{
    for (const weave_insert *n = w->run->insns[insn].before.first; n; n = n->next)
        if (n->code->kind == SNIPPET_APPEND && n->code->buffer->slot == slot) return n->code->buffer;
    return NULL;
}

/* The first record of the buffer, and the place at or before it, from `chain` on, where the look costs no flags. What
 * empties the buffer may see counters, and they are right at the beginning only, if any are counted in the chain. */
bool weave_ahead_look(weaver *w, uint32_t slot, uint32_t chain, uint32_t first, bool alone)
{
    const snippet_buffer *buffer = NULL;
    uint32_t at = chain, k = w->look_count;
    while (!(w->ahead[first] && (buffer = buffer_of(w, slot, first)))) first++;
    for (uint32_t p = first + 1; alone && p-- > chain;) {
        at = p;
        if (!(w->live[w->step_in[p]].seen.flags & w->isa->flags)) break;
        if (p == chain) at = first;
    }
    if (!(k & (k - 1))) {
        weave_look *bigger = inl_arena_alloc(w->run->arena, (k ? 2 * k : 1) * sizeof *bigger);
        if (!bigger) return false;
        for (uint32_t i = 0; i < k; i++) bigger[i] = w->looks[i];
        w->looks = bigger;
    }
    for (; k && w->looks[k - 1].position > at; k--) w->looks[k] = w->looks[k - 1];
    w->looks[k] = (weave_look){at, buffer};
    w->look_count++;
    return true;
}

/* A register for a pointer that is to last: what it costs now, and whether it is wanted back before the last record. */
static unsigned pick(weaver *w)
{
    isa_regs left = w->isa->all & ~(w->isa->reserved | w->locked), set = left;
    uint32_t end = w->at + LOOK_AHEAD < w->run->insn_count ? w->at + LOOK_AHEAD : w->run->insn_count;
    unsigned best = ISA_NO_REG, least = UINT32_MAX;
    uint8_t reached[WEAVE_MAX_REGS] = {0};
    uint32_t last = w->at;
    if (!set || w->opt->stress & WEAVE_STRESS_RANDOM_REGS) return ISA_NO_REG;
    for (uint32_t i = w->at; i < end && left; i++) {
        isa_regs touched = left & (w->fx[i].reads | w->fx[i].writes);
        if (w->ahead[i]) last = i;
        for (left &= ~touched; touched; touched &= touched - 1)
            reached[__builtin_ctzll(touched)] = (uint8_t)(i - w->at);
        if (w->run->insns[i].in.flow != ISA_FLOW_NEXT && w->run->insns[i].in.flow != ISA_FLOW_COND &&
            !w->run->insns[i].elided)
            break;
    }
    for (isa_regs each = set; each; each &= each - 1) {
        unsigned r = (unsigned)__builtin_ctzll(each), cost = 0;
        isa_regs bit = WEAVE_BIT(r);
        if (w->st.in_reg & bit && w->need.regs & bit) cost += !(w->st.in_slot & bit) + !!(w->living.regs & bit);
        if (w->known_regs & bit) cost += 3;
        if (!(left & bit) && reached[r] <= last - w->at) cost += reached[r] ? 2 : 4;
        cost = cost * 64 - (left & bit ? LOOK_AHEAD : reached[r]);
        if (best != ISA_NO_REG && (int)cost >= (int)least) continue;
        best = r, least = cost;
    }
    return best;
}

static int32_t field(const weaver *w, const snippet_buffer *b, size_t offset)
{
    return weave_next_at(w, WEAVE_NEXT_OF + b->slot) + (int32_t)offset;
}

/* The register holds `next` as it is now. */
static void remember_next(weaver *w, const snippet_buffer *b, unsigned reg)
{
    weave_held known = {.kind = WEAVE_HELD_NEXT, .value = b->slot};
    w->pointed[b->slot] = w->added[b->slot];
    weave_remember(w, reg, known);
}

static void look(weaver *w, const snippet_buffer *b)
{
    weave_forget(w);
    weave_flags_clobber(w);
    unsigned r = weave_take(w, 0, pick(w));
    w->isa->frame_load(w, r, field(w, b, offsetof(weave_buffer_slot, next)));
    isa_label full = w->isa->branch_if_beyond(w, r, field(w, b, offsetof(weave_buffer_slot, limit)));
    weave_append_cold(w, b, r, full);
    remember_next(w, b, r);
    weave_unlock(w, r);
}

void weave_ahead_emit_looks(weaver *w, uint32_t insn)
{
    while (w->next_look < w->look_count && w->looks[w->next_look].position <= insn)
        look(w, w->looks[w->next_look++].buffer);
}

/* --- the records --- */

/* A register, locked, from which `next` is w->pointed[slot] away. */
static unsigned pointer(weaver *w, const snippet_buffer *b)
{
    weave_held what = {.kind = WEAVE_HELD_NEXT, .value = b->slot};
    unsigned r = weave_recall(w, &what);
    isa_regs touched = w->fx[w->at].reads | w->fx[w->at].writes;
    if (r != ISA_NO_REG && !(touched & WEAVE_BIT(r))) {
        weave_lock(w, r);
        return r;
    }
    unsigned from = r;
    if (from != ISA_NO_REG) weave_lock(w, from);
    r = weave_take(w, 0, pick(w));
    if (from != ISA_NO_REG) {
        w->isa->move(w->c, r, from);
        weave_forget_reg(w, from);
        weave_unlock(w, from);
        weave_remember(w, r, what);
        return r;
    }
    w->isa->frame_load(w, r, field(w, b, offsetof(weave_buffer_slot, next)));
    remember_next(w, b, r);
    return r;
}

/* Those that cost nothing: free, or dead. */
static isa_regs cheap_regs(const weaver *w)
{
    return w->isa->all & ~(w->isa->reserved | w->locked) & ~(w->st.in_reg & w->need.regs);
}

/* Records that are still to come up to the next look. */
static uint32_t records_left(const weaver *w)
{
    uint32_t end = w->next_look < w->look_count ? w->looks[w->next_look].position : w->run->insn_count;
    return w->ahead_sum[end] - w->ahead_sum[w->at];
}

/* One of which nothing is known: a cheap one, or where many records make up for it, one that has to be saved. */
static unsigned another_reg(weaver *w)
{
    enum { MANY = 4 };
    isa_regs cheap = cheap_regs(w) & ~w->known_regs;
    if (cheap) return (unsigned)__builtin_ctzll(cheap);
    return records_left(w) >= MANY ? pick(w) : ISA_NO_REG;
}

/* A register, locked, that holds the constant; ISA_NO_REG: it would cost more than stores of its halves. */
static unsigned constant_reg(weaver *w, uint64_t value, bool lasts)
{
    weave_held what = {.kind = WEAVE_HELD_CONSTANT, .value = value};
    int32_t distance = 0;
    unsigned r = weave_recall(w, &what);
    if (r != ISA_NO_REG) {
        weave_lock(w, r);
        return r;
    }
    unsigned near = weave_recall_near(w, value, &distance);
    if (near != ISA_NO_REG) {
        weave_lock(w, near);
        unsigned other = lasts ? another_reg(w) : ISA_NO_REG;
        r = other == ISA_NO_REG ? near : weave_take(w, 0, other);
        w->isa->add(w->c, r, near, distance);
        if (r != near) weave_unlock(w, near);
    } else {
        unsigned other = another_reg(w);
        if (other == ISA_NO_REG && !cheap_regs(w)) return ISA_NO_REG;
        r = weave_take(w, 0, other);
        w->isa->set(w->c, r, value);
    }
    weave_remember(w, r, what);
    return r;
}

static void store_small(weaver *w, unsigned size, unsigned r, int32_t at, uint64_t value)
{
    if (w->isa->store_constant(w->c, size, r, at, value)) return;
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    w->isa->set(w->c, t, value);
    w->isa->store(w->c, size, r, at, t);
    weave_unlock(w, t);
}

static void store_wide(weaver *w, unsigned r, int32_t at, uint64_t value, bool lasts)
{
    if (w->isa->store_constant(w->c, WIDEST, r, at, value)) return;
    unsigned t = constant_reg(w, value, lasts);
    if (t == ISA_NO_REG) {
        store_small(w, 4, r, at, (uint32_t)value);
        store_small(w, 4, r, at + 4, value >> 32);
        return;
    }
    w->isa->store(w->c, WIDEST, r, at, t);
    weave_unlock(w, t);
}

/* Constant bytes of a record that lie one behind the other are stored together. */
typedef struct constants {
    uint64_t value;
    unsigned bytes;
    int32_t at;
    bool pc; /* of no use to a later record */
} constants;

static void store_constants(weaver *w, constants *c, unsigned r)
{
    unsigned done = 0;
    while (done < c->bytes) {
        unsigned left = c->bytes - done, size = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        uint64_t value = c->value >> 8 * done;
        if (size < 8) value &= ((uint64_t)1 << 8 * size) - 1;
        if (size == 8) store_wide(w, r, c->at, value, !c->pc);
        else store_small(w, size, r, c->at + (int32_t)done, value);
        done += size;
    }
    *c = (constants){0};
}

static void put_constant(weaver *w, constants *c, uint64_t value, unsigned size, unsigned r, int32_t at, bool pc)
{
    if (c->bytes && c->bytes + size > WIDEST) store_constants(w, c, r);
    if (!c->bytes) c->at = at;
    if (size < 8) value &= ((uint64_t)1 << 8 * size) - 1;
    c->value |= value << 8 * c->bytes;
    c->bytes += size;
    c->pc = pc;
}

/* There is a register with an address, which will do for another one. */
static bool holds_address(const weaver *w)
{
    for (isa_regs left = w->known_regs & ~w->locked; left; left &= left - 1)
        if (w->known[__builtin_ctzll(left)].kind == WEAVE_HELD_ADDRESS) return true;
    return false;
}

/* The address of an operand, which the record before may have computed. */
static weave_val address(weaver *w, const snippet *s)
{
    isa_mem room[ISA_MAX_MEM];
    const isa_mem *m = weave_mem(w, s->index, room);
    weave_held what = {.kind = WEAVE_HELD_ADDRESS};
    enum { ODD = ISA_MEM_ADDR32 | ISA_MEM_PCREL | ISA_MEM_INDEX8 | ISA_MEM_VECTOR_INDEX | ISA_MEM_BIT_OFFSET };
    bool plain = m && !m->segment && !(m->bits & ODD);
    if (plain) {
        what.base = m->base, what.index = m->index, what.scale = m->scale, what.value = (uint64_t)m->disp;
        unsigned r = weave_recall(w, &what);
        if (r != ISA_NO_REG) {
            weave_lock(w, r);
            return weave_owned(r);
        }
    }
    weave_val v = weave_ea(w, s->index, holds_address(w) ? ISA_NO_REG : another_reg(w));
    if (plain && v.kind == WEAVE_REG && w->lock[v.reg] == 1) weave_remember(w, v.reg, what);
    return v;
}

void weave_ahead_append(weaver *w, const snippet *s)
{
    const snippet_buffer *b = s->buffer;
    constants pending = {0};
    w->sets_regs = false;
    unsigned r = pointer(w, b);
    int32_t at = (int32_t)(w->due[b->slot] - w->pointed[b->slot]);
    for (unsigned i = 0; i < s->nargs && !w->status; i++) {
        const snippet *arg = s->args[i];
        weave_val v = arg->kind == SNIPPET_EA ? address(w, arg) : weave_eval(w, arg, ISA_NO_REG);
        if (v.kind == WEAVE_IMM) {
            put_constant(w, &pending, v.imm, s->arg_sizes[i], r, at, arg->kind == SNIPPET_PC);
        } else {
            store_constants(w, &pending, r);
            weave_in_reg(w, &v, 0);
            w->isa->store(w->c, s->arg_sizes[i], r, at, v.reg);
            weave_drop(w, v);
        }
        at += s->arg_sizes[i];
    }
    store_constants(w, &pending, r);
    w->due[b->slot] += b->record_size;
    weave_unlock(w, r);
}

void weave_ahead_advance(weaver *w, uint32_t slot, int64_t bytes)
{
    weave_held what = {.kind = WEAVE_HELD_NEXT, .value = slot};
    int32_t next = weave_next_at(w, WEAVE_NEXT_OF + slot) + (int32_t)offsetof(weave_buffer_slot, next);
    unsigned r = weave_recall(w, &what);
    if (r == ISA_NO_REG) {
        r = weave_take(w, 0, pick(w));
        w->isa->frame_load(w, r, next);
        w->pointed[slot] = w->added[slot];
    } else {
        weave_lock(w, r);
    }
    w->isa->add(w->c, r, r, (int32_t)(w->added[slot] + bytes - w->pointed[slot]));
    w->isa->frame_store(w, next, r);
    w->added[slot] += bytes;
    w->pointed[slot] = w->added[slot];
    weave_remember(w, r, what);
    weave_unlock(w, r);
}
