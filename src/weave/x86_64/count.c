/* Counting by constants: the commonest snippet, made nearly free.
 *
 * Within a stretch of a block that is executed whole unless an instruction faults, all constant
 * counts of one counter are one addition, placed where the flags are dead if such a place exists.
 * A stretch ends at a control transfer and around snippets that could look at a counter (analysis
 * calls, SNIPPET_COUNTER); a count at the same instruction as such a snippet stays in its place
 * among them. What was merged is recorded in the output, so that the engine can set the counters
 * right when a fault leaves the stretch in its middle.
 */
#include "weave/x86_64/weaver.h"

static bool is_const_count(const weave_insert *n)
{
    return n->code->kind == SNIPPET_COUNT && n->code->a->kind == SNIPPET_CONST && !n->predicated;
}

static bool looks_at_counters(const weave_list *list)
{
    for (const weave_insert *n = list->first; n; n = n->next) {
        if (is_const_count(n)) continue;
        if (snippet_has(n->code, SNIPPET_CALL) || snippet_has(n->code, SNIPPET_COUNTER)) return true;
    }
    return false;
}

bool weave_count_merged(const weaver *w, uint32_t insn, const weave_insert *n)
{
    return is_const_count(n) && !looks_at_counters(&w->run->insns[insn].before);
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
    *g = (weave_count){.counter = counter, .first = first, .last = last, .position = first};
    return g;
}

/* The group of `counter` among those from index `from` on, made when there is none. */
static weave_count *group_of(weaver *w, uint32_t from, uint32_t counter, uint32_t first,
                             uint32_t last)
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
    return !(w->live[w->step_in[insn]].seen.flags & X86_ARITH);
}

/* Without dead flags: where a register is dead; in the middle of things, none is as good as any. */
static uint32_t best_position(const weaver *w, uint32_t first, uint32_t last)
{
    for (uint32_t p = first; p <= last; p++)
        if (flags_dead(w, p)) return p;
    for (uint32_t p = first; p <= last; p++)
        if (~w->live[w->step_in[p]].seen.regs & WEAVE_ALL_REGS) return p;
    return first;
}

static bool plan_stretch(weaver *w, const weave_block *block, uint32_t first, uint32_t last,
                         bool in_place)
{
    uint32_t from = w->out->count_count;
    for (uint32_t i = first; i <= last; i++) {
        const weave_list *lists[2] = {&w->run->insns[i].before, NULL};
        if (i == block->first && !in_place) lists[1] = &block->anywhere;
        for (unsigned l = 0; l < 2 && lists[l]; l++)
            for (const weave_insert *n = lists[l]->first; n; n = n->next) {
                if (!is_const_count(n)) continue;
                weave_count *g = group_of(w, from, n->code->index, first, last);
                if (!g || !add_weight(w, g, i - first, (int64_t)n->code->a->value)) return false;
            }
    }
    uint32_t position = in_place || from == w->out->count_count ? first : best_position(w, first, last);
    for (uint32_t i = from; i < w->out->count_count; i++) {
        w->out->counts[i].position = position;
        w->out->counts[i].in_place = in_place;
        compact(&w->out->counts[i]);
    }
    return true;
}

/* The block's own counts where its first instruction is a stretch of its own. */
static bool plan_entry_counts(weaver *w, const weave_block *block)
{
    uint32_t from = w->out->count_count;
    for (const weave_insert *n = block->anywhere.first; n; n = n->next) {
        if (!is_const_count(n)) continue;
        weave_count *g = group_of(w, from, n->code->index, block->first, block->first);
        if (!g) return false;
        g->extra += (int64_t)n->code->a->value;
        g->total = g->extra;
    }
    return true;
}

static bool plan_block(weaver *w, const weave_block *block)
{
    uint32_t end = block->first + block->count, first = block->first;
    if (looks_at_counters(&w->run->insns[first].before) && !plan_entry_counts(w, block)) return false;
    for (uint32_t i = first; i < end; i++) {
        const weave_insn *insn = &w->run->insns[i];
        bool looks = looks_at_counters(&insn->before);
        if (looks) {
            if (first < i && !plan_stretch(w, block, first, i - 1, false)) return false;
            if (!plan_stretch(w, block, i, i, true)) return false;
            first = i + 1;
        } else if (i + 1 == end || insn->in.flow != ISA_FLOW_NEXT ||
                   looks_at_counters(&insn->after)) {
            if (!plan_stretch(w, block, first, i, false)) return false;
            first = i + 1;
        }
    }
    return true;
}

/* Where the block's other anywhere snippets go: they are not taken back after a fault, so no
 * instruction that may fault comes before them. */
static uint32_t place_anywhere(const weaver *w, const weave_block *block)
{
    const weave_insn *head = &w->run->insns[block->first];
    for (const weave_insert *n = block->anywhere.first; n; n = n->next) {
        cfg_need reads = weave_reads(w, n->code, head);
        if (is_const_count(n)) continue;
        if (reads.regs || reads.flags || snippet_has(n->code, SNIPPET_CALL)) return block->first;
    }
    for (uint32_t i = block->first; i < block->first + block->count; i++) {
        const isa_insn *in = &w->run->insns[i].in;
        uint8_t op = in->raw[in->opcode_at];
        if (flags_dead(w, i)) return i;
        if (in->flow != ISA_FLOW_NEXT || op == 0xf6 || op == 0xf7) break;
        if (in->bits & (ISA_BIT_MEM | ISA_BIT_UNKNOWN | ISA_BIT_PRIV | ISA_BIT_FP)) break;
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
        if (is_const_count(n)) continue;
        w->sets_regs = snippet_has(n->code, SNIPPET_SET_REG);
        weave_run_for_effect(w, n->code);
    }
}

void weave_emit_counts(weaver *w, uint32_t insn)
{
    while (w->next_count < w->out->count_count) {
        const weave_count *g = &w->out->counts[w->next_count];
        if (g->position > insn) return;
        if (!g->in_place) weave_count_const(w, g->counter, g->total);
        w->next_count++;
    }
}

static x86_addr counter_addr(uint32_t counter)
{
    return x86_gs(WEAVE_COUNTERS + 8 * (int32_t)counter);
}

void weave_count_const(weaver *w, uint32_t counter, int64_t amount)
{
    x86_addr at = counter_addr(counter);
    if (amount == 0) return;
    if (amount == (int32_t)amount && weave_flags_free(w)) {
        weave_flags_clobber(w);
        if (amount == 1) x86_inc_m(w->c, 8, at);
        else x86_alu_mi(w->c, X86_ADD, 8, at, amount);
        return;
    }
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    if (amount == (int32_t)amount) {
        x86_load(w->c, 8, t, at);
        x86_lea(w->c, t, x86_at(t, (int32_t)amount));
        x86_store(w->c, 8, at, t);
    } else {
        weave_flags_clobber(w);
        x86_mov_ri(w->c, t, (uint64_t)amount);
        x86_alu_mr(w->c, X86_ADD, 8, at, t);
    }
    weave_unlock(w, t);
}

void weave_count_add(weaver *w, const snippet *s)
{
    if (s->a->kind == SNIPPET_CONST) {
        weave_count_const(w, s->index, (int64_t)s->a->value);
        return;
    }
    x86_addr at = counter_addr(s->index);
    weave_val v = weave_eval(w, s->a, ISA_NO_REG);
    weave_in_reg(w, &v, 0);
    if (weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_alu_mr(w->c, X86_ADD, 8, at, v.reg);
    } else {
        unsigned t = weave_take(w, 0, ISA_NO_REG);
        x86_load(w->c, 8, t, at);
        x86_lea(w->c, t, x86_indexed(v.reg == X86_RSP ? v.reg : t, v.reg == X86_RSP ? t : v.reg, 1, 0));
        x86_store(w->c, 8, at, t);
        weave_unlock(w, t);
    }
    weave_drop(w, v);
}
