/* Side exits and counters. Where a run is left in the middle of a chain (count.c), its counters get what is due up to
 * there; and what the taken edge counts by constants goes with that. If those are several counters, and the engine has
 * joint counters, one addition does: the joint counter stands for them all, and who asks for a counter's value adds
 * what the joint ones say of it. So a run that counts in each block counts once for each way through it:
 *
 *     block a            a += 1          \
 *     jcc x              b += 1           |  cold:  x:  ax += 1, exit       ax: a, taken of a
 *     block b            ...             \|         y:  abx += 1, exit      aby: a, b, taken of b
 *     jcc y              abc += 1         /
 *     block c                                       abc: a, b, c
 */
#include "weave/weaver.h"

bool weave_terms_add(weave_terms *t, uint32_t counter, int64_t amount)
{
    uint32_t i = 0;
    while (i < t->count && t->of[i].counter != counter) i++;
    if (i == WEAVE_MAX_TERMS) return false;
    if (i == t->count) t->of[t->count++] = (weave_term){counter, 0};
    t->of[i].amount += amount;
    return true;
}

/* A counter that gets nothing is none of them. */
uint32_t weave_joint(const weaver *w, const weave_terms *t)
{
    weave_terms left = {0};
    for (uint32_t i = 0; i < t->count; i++)
        if (t->of[i].amount) left.of[left.count++] = t->of[i];
    return w->opt->joint && left.count > 1 ? w->opt->joint(left.of, left.count) : 0;
}

bool weave_taken_joins(const weaver *w, const weave_insn *insn)
{
    if (!w->opt->joint || !w->opt->cold_exits || insn->in.flow != ISA_FLOW_COND) return false;
    for (const weave_insert *n = insn->taken.first; n; n = n->next)
        if (!weave_is_const_count(n)) return false;
    return insn->taken.first;
}

/* What the counter of record k lacks (negative: has too much) where side exit i is taken; 0 when an
 * earlier record speaks for the counter. A record is a whole stretch, before the exit or behind it. */
static int64_t side_amount(const weave_output *out, uint32_t k, uint32_t i)
{
    const weave_count *g = &out->counts[k];
    int64_t amount = 0;
    for (uint32_t j = 0; j < out->count_count; j++) {
        const weave_count *h = &out->counts[j];
        if (h->counter != g->counter || i < h->from || i >= h->to) continue;
        if (j < k) return 0;
        amount += (h->last <= i ? h->total : 0) - (h->position <= i ? h->total : 0);
    }
    return amount;
}

static bool spans(const weave_count *g, uint32_t i)
{
    return i >= g->from && i < g->to && (g->from < g->first || g->to > g->last);
}

bool weave_side_counts(const weaver *w, uint32_t insn)
{
    const weave_output *out = w->out;
    if (weave_taken_joins(w, &w->run->insns[insn])) return true;
    for (uint32_t k = 0; k < out->count_count; k++)
        if (spans(&out->counts[k], insn) && side_amount(out, k, insn)) return true;
    return false;
}

/* Adds to one of the terms, or to the counter right away where there is no room for one more. */
static void due(weaver *w, weave_terms *terms, uint32_t counter, int64_t amount)
{
    if (!amount) return;
    if (weave_is_next(counter) || !weave_terms_add(terms, counter, amount)) weave_count_aside(w, counter, amount);
}

void weave_emit_side_counts(weaver *w, uint32_t insn)
{
    const weave_output *out = w->out;
    const weave_insn *at = &w->run->insns[insn];
    weave_terms terms = {0};
    for (uint32_t k = 0; k < out->count_count; k++)
        if (spans(&out->counts[k], insn)) due(w, &terms, out->counts[k].counter, side_amount(out, k, insn));
    bool joins = weave_taken_joins(w, at);
    for (const weave_insert *n = at->taken.first; n && joins; n = n->next)
        due(w, &terms, n->code->index, (int64_t)n->code->a->value);
    uint32_t joint = weave_joint(w, &terms);
    if (joint) weave_count_aside(w, joint, 1);
    for (uint32_t i = 0; i < terms.count && !joint; i++)
        if (terms.of[i].amount) weave_count_aside(w, terms.of[i].counter, terms.of[i].amount);
}
