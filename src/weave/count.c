/* Counting by constants: the commonest snippet, made nearly free.
 *
 * Within a stretch of a block that is executed whole unless an instruction faults, all constant
 * counts of one counter are one addition, placed where the flags are dead if such a place exists.
 * A stretch ends at a control transfer and around snippets that could look at a counter (calls of
 * analysis routines, small leaves excepted, SNIPPET_COUNTER); a count at the same instruction as such a snippet stays
 * in its place among them.
 *
 * Stretches that follow each other with only side exits between form a chain, and a counter that
 * several of them count has one addition for the whole chain, late in it; a side exit on the way adds,
 * out of line, what has been executed up to there (or takes off what has not).
 *
 *     jcc a          \ cold:  a:  counter += 1, exit
 *     jcc b           |       b:  counter += 2, exit
 *     counter += 3    |
 *     jcc c          /            (c: all is counted)
 *
 * Where the engine has counters that stand for several others (joint.c), the chain's end adds to one of these, as does
 * each side exit, with what its taken edge counts.
 *
 * What was merged is recorded in the output, so that the engine can set the counters right when a
 * fault leaves the run in its middle.
 */
#include "weave/weaver.h"
#include "weave/routine.h"

bool weave_is_const_count(const weave_insert *n)
{
    return n->code->kind == SNIPPET_COUNT && n->code->a->kind == SNIPPET_CONST && !n->predicated;
}

static bool looks_at_counters(const weave_list *list)
{
    for (const weave_insert *n = list->first; n; n = n->next) {
        if (!weave_is_const_count(n) && weave_sees_counters(n->code)) return true;
    }
    return false;
}

/* In front of an instruction. Records that are appended ahead are counts of their buffer's `next`. */
static bool looks_before(const weaver *w, uint32_t insn)
{
    return !(w->ahead && w->ahead[insn]) && looks_at_counters(&w->run->insns[insn].before);
}

bool weave_count_merged(const weaver *w, uint32_t insn, const weave_insert *n)
{
    return weave_is_const_count(n) && !looks_before(w, insn);
}

static weave_count *new_group(weaver *w, uint32_t counter, uint32_t first, uint32_t last)
{
    weave_output *out = w->out;
    if (out->count_count == w->count_room) {
        uint32_t room = w->count_room ? 2 * w->count_room : 8;
        weave_count *bigger = inl_arena_alloc(w->run->arena, room * sizeof *bigger);
        if (!bigger) return NULL;
        for (uint32_t i = 0; i < out->count_count; i++) bigger[i] = out->counts[i];
        out->counts = bigger;
        w->count_room = room;
    }
    weave_count *g = &out->counts[out->count_count++];
    *g = (weave_count){.counter = counter, .first = first, .last = last, .position = UINT32_MAX};
    return g;
}

/* The group of `counter` among those from index `from` on, made when there is none. */
static weave_count *group_of(weaver *w, uint32_t from, uint32_t counter, uint32_t first, uint32_t last)
{
    for (uint32_t i = from; i < w->out->count_count; i++)
        if (w->out->counts[i].counter == counter) return &w->out->counts[i];
    return new_group(w, counter, first, last);
}

/* Adds to the weight of instruction first + k of a group. */
static bool add_weight(weaver *w, weave_count *g, uint32_t k, int64_t amount)
{
    if (!g->weights) {
        int64_t *weights = inl_arena_alloc(w->run->arena, (g->last - g->first + 1) * sizeof *weights);
        if (!weights) return false;
        g->weights = weights;
    }
    ((int64_t *)g->weights)[k] += amount;
    g->total += amount;
    return true;
}

/* Gives the room of the weights back where two numbers say the same. */
static void compact(weave_count *g)
{
    uint32_t n = g->last - g->first + 1;
    int64_t each = n > 1 ? g->weights[1] : 0;
    for (uint32_t k = 1; k < n; k++)
        if (g->weights[k] != each) return;
    g->each = each;
    g->extra = g->weights[0] - each;
    g->weights = NULL;
}

static bool flags_dead(const weaver *w, uint32_t insn)
{
    return !(w->live[w->step_in[insn]].seen.flags & w->isa->flags);
}

/* Registers that are dead in front of an instruction. */
static unsigned dead_at(const weaver *w, uint32_t insn)
{
    return (unsigned)__builtin_popcountll(~w->live[w->step_in[insn]].seen.regs & w->isa->all);
}

/* Between a load-exclusive and its store nothing may access memory; there may be branches out between them. Pairs that
 * are further apart need not succeed at all. */
static bool is_exclusive(const weaver *w, uint32_t insn)
{
    enum { FURTHEST = 32 };
    for (uint32_t i = insn; i-- > 0 && insn - i <= FURTHEST;) {
        const isa_insn *in = &w->run->insns[i].in;
        if (in->bits & ISA_BIT_EXCLUSIVE_STORE) return false;
        if (in->bits & ISA_BIT_EXCLUSIVE_LOAD) return true;
        if (in->flow != ISA_FLOW_NEXT && in->flow != ISA_FLOW_COND && in->flow != ISA_FLOW_COND_REG) return false;
    }
    return false;
}

/* Nothing has to be saved for a count there. */
static bool is_free(const weaver *w, uint32_t insn)
{
    bool flags = w->live[w->step_in[insn]].seen.flags & w->isa->count_flags;
    return !flags && dead_at(w, insn) >= w->isa->count_regs && !is_exclusive(w, insn);
}

/* Without dead flags: where a register is dead; in the middle of things, none is as good as any. */
static uint32_t best_position(const weaver *w, uint32_t first, uint32_t last)
{
    for (uint32_t p = first; p <= last; p++)
        if (is_free(w, p)) return p;
    for (uint32_t p = first; p <= last; p++)
        if (dead_at(w, p) && !is_exclusive(w, p)) return p;
    for (uint32_t p = first; p <= last; p++)
        if (!is_exclusive(w, p)) return p;
    return first;
}

/* The last place between two instructions where a count is free, or `last` itself. */
static uint32_t late_position(const weaver *w, uint32_t first, uint32_t last)
{
    for (uint32_t p = last + 1; p-- > first;)
        if (is_free(w, p)) return p;
    return best_position(w, last, last);
}

/* Adds are emitted in the order of their positions. */
static bool new_add(weaver *w, uint32_t counter, uint32_t position, int64_t amount)
{
    if (w->add_count == w->add_room) {
        uint32_t room = w->add_room ? 2 * w->add_room : 8;
        weave_add *bigger = inl_arena_alloc(w->run->arena, room * sizeof *bigger);
        if (!bigger) return false;
        for (uint32_t i = 0; i < w->add_count; i++) bigger[i] = w->adds[i];
        w->adds = bigger;
        w->add_room = room;
    }
    uint32_t at = w->add_count++;
    for (; at && w->adds[at - 1].position > position; at--) w->adds[at] = w->adds[at - 1];
    w->adds[at] = (weave_add){counter, position, amount};
    return true;
}

/* --- chains: stretches one behind the other, divided by side exits that make up for the difference --- */

/* At most so many counters of a chain are added in one place: each costs code at every side exit. */
enum { MAX_JOINED = 2 };

/* `next` of a buffer is added to when all records are written: another thread may look at it. */
static uint32_t position_of(const weaver *w, const weave_count *first, const weave_count *last)
{
    if (weave_is_next(first->counter)) return last->last;
    return first == last ? best_position(w, first->first, first->last) : late_position(w, first->first, last->last);
}

/* One addition for all records of the counter in the chain. */
static bool join(weaver *w, uint32_t first, uint32_t last)
{
    weave_count *counts = w->out->counts;
    uint32_t position = position_of(w, &counts[first], &counts[last]);
    int64_t amount = 0;
    for (uint32_t i = first; i <= last; i++) {
        if (counts[i].counter != counts[first].counter) continue;
        counts[i].from = counts[first].first;
        counts[i].to = counts[last].last;
        counts[i].position = position;
        amount += counts[i].total;
    }
    return new_add(w, counts[first].counter, position, amount);
}

/* The last record of the same counter as `first`, which is its first; UINT32_MAX: it is not. */
static uint32_t last_of(const weaver *w, uint32_t first)
{
    const weave_count *counts = w->out->counts;
    uint32_t last = first;
    for (uint32_t i = w->chain; i < first; i++)
        if (counts[i].counter == counts[first].counter) return UINT32_MAX;
    for (uint32_t i = first + 1; i < w->out->count_count; i++)
        if (counts[i].counter == counts[first].counter) last = i;
    return last;
}

/* Before a chain appends to a buffer. */
static bool look_for_room(weaver *w)
{
    const weave_output *out = w->out;
    bool alone = true;
    for (uint32_t i = w->chain; i < out->count_count; i++) alone &= weave_is_next(out->counts[i].counter);
    for (uint32_t i = w->chain; i < out->count_count; i++) {
        const weave_count *g = &out->counts[i];
        if (!weave_is_next(g->counter) || last_of(w, i) == UINT32_MAX) continue;
        if (!weave_ahead_look(w, g->counter - WEAVE_NEXT_OF, out->counts[w->chain].first, g->first, alone))
            return false;
    }
    return true;
}

/* Several counters of a chain are counted at its end by one addition, to a counter that stands for them. False: there
 * is none, or no memory. */
static bool join_all(weaver *w)
{
    weave_count *counts = w->out->counts, *first = NULL, *last = NULL;
    weave_terms terms = {0};
    if (!w->opt->joint) return false;
    for (uint32_t i = w->chain; i < w->out->count_count; i++) {
        if (weave_is_next(counts[i].counter)) continue;
        if (!weave_terms_add(&terms, counts[i].counter, counts[i].total)) return false;
        first = first ? first : &counts[i];
        last = &counts[i];
    }
    uint32_t counter = terms.count > 1 ? weave_joint(w, &terms) : 0;
    uint32_t position = counter ? position_of(w, first, first->last == last->last ? first : last) : 0;
    if (!counter || !new_add(w, counter, position, 1)) return false;
    for (uint32_t i = w->chain; i < w->out->count_count; i++) {
        if (weave_is_next(counts[i].counter)) continue;
        counts[i].from = first->first;
        counts[i].to = last->last;
        counts[i].position = position;
    }
    return true;
}

/* Decides where the counts of the chain are added, and begins the next one. */
static bool close_chain(weaver *w)
{
    unsigned joined = 0;
    weave_output *out = w->out;
    bool all = join_all(w);
    bool several = w->chain < out->count_count &&
                   out->counts[w->chain].first != out->counts[out->count_count - 1].first;
    if (!look_for_room(w)) return false;
    for (uint32_t i = w->chain; i < out->count_count && several; i++) {
        uint32_t last = last_of(w, i);
        bool next = weave_is_next(out->counts[i].counter);
        if (all && !next) continue;
        if (last == UINT32_MAX || last == i || (joined == MAX_JOINED && !next)) continue;
        if (!join(w, i, last)) return false;
        joined += !next;
    }
    for (uint32_t i = w->chain; i < out->count_count; i++) {
        weave_count *g = &out->counts[i];
        if (g->position != UINT32_MAX) continue;
        bool same = i > w->chain && g[-1].last == g->last && g[-1].from == g->first && g[-1].to == g->last;
        g->position = same && !weave_is_next(g[-1].counter) ? g[-1].position : position_of(w, g, g);
        g->from = g->first;
        g->to = g->last;
        if (!new_add(w, g->counter, g->position, g->total)) return false;
    }
    w->chain = out->count_count;
    return true;
}

/* May a chain go on behind instruction i? Backward branches are taken more often than not: what leaves
 * by them should not have to make up for anything, unless it has to count anyway. */
static bool goes_on_behind(const weaver *w, uint32_t i)
{
    const weave_insn *insn = &w->run->insns[i];
    if (i + 1 == w->run->insn_count || looks_at_counters(&insn->after)) return false;
    if (looks_at_counters(&w->run->blocks[insn[1].block].anywhere) ||
        looks_at_counters(&w->run->blocks[insn->block].anywhere))
        return false;
    if (insn->elided) return !looks_at_counters(&insn->taken);
    if (insn->in.flow != ISA_FLOW_COND || !w->opt->cold_exits) return false;
    return insn->taken.first ? weave_taken_joins(w, insn) : insn->in.target > insn->in.addr;
}

/* The counts of first..last, one record for each counter. */
static bool plan_stretch(weaver *w, const weave_block *block, uint32_t first, uint32_t last, bool in_place)
{
    if (in_place && !close_chain(w)) return false;
    uint32_t from = w->out->count_count;
    for (uint32_t i = first; i <= last; i++) {
        const weave_list *lists[2] = {&w->run->insns[i].before, NULL};
        if (i == block->first && !in_place) lists[1] = &block->anywhere;
        for (unsigned l = 0; l < 2 && lists[l]; l++)
            for (const weave_insert *n = lists[l]->first; n; n = n->next) {
                const snippet *code = n->code;
                bool appends = l == 0 && code->kind == SNIPPET_APPEND && w->ahead && w->ahead[i];
                if (!weave_is_const_count(n) && !appends) continue;
                uint32_t counter = appends ? WEAVE_NEXT_OF + code->buffer->slot : code->index;
                weave_count *g = group_of(w, from, counter, first, last);
                uint64_t amount = appends ? code->buffer->record_size : code->a->value;
                if (!g || !add_weight(w, g, i - first, (int64_t)amount)) return false;
            }
    }
    for (uint32_t i = from; i < w->out->count_count; i++) {
        weave_count *g = &w->out->counts[i];
        compact(g);
        if (!in_place) continue;
        g->in_place = true;
        g->position = g->from = first;
        g->to = last;
    }
    if (in_place) w->chain = w->out->count_count;
    return in_place || goes_on_behind(w, last) || close_chain(w);
}

/* The block's own counts where its first instruction is a stretch of its own. */
static bool plan_entry_counts(weaver *w, const weave_block *block)
{
    if (!close_chain(w)) return false;
    uint32_t from = w->out->count_count;
    for (const weave_insert *n = block->anywhere.first; n; n = n->next) {
        if (!weave_is_const_count(n)) continue;
        weave_count *g = group_of(w, from, n->code->index, block->first, block->first);
        if (!g) return false;
        g->extra += (int64_t)n->code->a->value;
        g->total = g->extra;
    }
    return close_chain(w);
}

static uint32_t chain_begins(const weaver *w, uint32_t first)
{
    return w->chain < w->out->count_count ? w->out->counts[w->chain].first : first;
}

static bool plan_block(weaver *w, const weave_block *block)
{
    uint32_t end = block->first + block->count, first = block->first;
    if (looks_before(w, first) && !plan_entry_counts(w, block)) return false;
    for (uint32_t i = first; i < end; i++) {
        const weave_insn *insn = &w->run->insns[i];
        bool looks = looks_before(w, i);
        if (weave_ahead_is_full(w, chain_begins(w, first), i)) {
            if (first < i && !plan_stretch(w, block, first, i - 1, false)) return false;
            if (!close_chain(w)) return false;
            first = i;
        }
        if (looks) {
            if (first < i && !plan_stretch(w, block, first, i - 1, false)) return false;
            if (!plan_stretch(w, block, i, i, true)) return false;
            first = i + 1;
        } else if (i + 1 == end || insn->in.flow != ISA_FLOW_NEXT || looks_at_counters(&insn->after)) {
            if (!plan_stretch(w, block, first, i, false)) return false;
            first = i + 1;
        }
    }
    return true;
}

/* --- banks --- */

static unsigned next_bank(const weaver *w, uint32_t counter)
{
    const weave_places *places = w->opt->places;
    return places && counter < WEAVE_BANKED ? places->next[counter] % WEAVE_BANKS : 0;
}

/* Each place adds to another bank than the place before; side exits, of which few are taken, do not count. */
static unsigned take_bank(weaver *w, uint32_t counter)
{
    unsigned bank = next_bank(w, counter);
    if (w->opt->places && counter < WEAVE_BANKED) w->opt->places->next[counter]++;
    return bank;
}

static void add_const(weaver *w, uint32_t counter, int64_t amount, unsigned bank)
{
    bool next = weave_is_next(counter);
    int32_t at = next ? weave_next_at(w, counter) : weave_counter_at(w->isa->frame.counters, counter, bank);
    if (amount) w->isa->count(w, at, amount);
}

void weave_count_aside(weaver *w, uint32_t counter, int64_t amount)
{
    add_const(w, counter, amount, next_bank(w, counter));
}

/* Where the block's other anywhere snippets go: they are not taken back after a fault, so no
 * instruction that may fault comes before them. */
static uint32_t place_anywhere(const weaver *w, const weave_block *block)
{
    const weave_insn *head = &w->run->insns[block->first];
    for (const weave_insert *n = block->anywhere.first; n; n = n->next) {
        cfg_need reads = weave_reads(w, n->code, head);
        if (weave_is_const_count(n)) continue;
        if (reads.regs || reads.flags || snippet_has(n->code, SNIPPET_CALL)) return block->first;
    }
    for (uint32_t i = block->first; i < block->first + block->count; i++) {
        const isa_insn *in = &w->run->insns[i].in;
        if (flags_dead(w, i)) return i;
        if (in->flow != ISA_FLOW_NEXT || weave_may_fault(w->isa, in)) break;
    }
    return block->first;
}

bool weave_plan_counts(weaver *w)
{
    const weave_run *run = w->run;
    w->anywhere_at = inl_arena_alloc(run->arena, run->block_count * sizeof *w->anywhere_at);
    if (!w->anywhere_at && run->block_count) return false;
    for (uint32_t b = 0; b < run->block_count; b++) {
        if (!plan_block(w, &run->blocks[b])) return false;
        w->anywhere_at[b] = place_anywhere(w, &run->blocks[b]);
    }
    return true;
}

void weave_emit_anywhere(weaver *w, uint32_t insn)
{
    const weave_block *block = &w->run->blocks[w->run->insns[insn].block];
    if (!block->anywhere.first || w->anywhere_at[w->run->insns[insn].block] != insn) return;
    for (const weave_insert *n = block->anywhere.first; n; n = n->next) {
        if (weave_is_const_count(n)) continue;
        w->sets_regs = snippet_has(n->code, SNIPPET_SET_REG);
        weave_run_for_effect(w, n->code);
    }
}

void weave_emit_counts(weaver *w, uint32_t insn)
{
    while (w->next_add < w->add_count && w->adds[w->next_add].position <= insn) {
        const weave_add *a = &w->adds[w->next_add++];
        if (weave_is_next(a->counter)) weave_ahead_advance(w, a->counter - WEAVE_NEXT_OF, a->amount);
        else weave_count_const(w, a->counter, a->amount);
    }
}

void weave_count_const(weaver *w, uint32_t counter, int64_t amount)
{
    add_const(w, counter, amount, take_bank(w, counter));
}

void weave_count_add(weaver *w, const snippet *s)
{
    if (s->a->kind == SNIPPET_CONST) {
        weave_count_const(w, s->index, (int64_t)s->a->value);
        return;
    }
    weave_val v = weave_eval(w, s->a, ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    w->isa->count_value(w, weave_counter_at(w->isa->frame.counters, s->index, take_bank(w, s->index)), v);
}
