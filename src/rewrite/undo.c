/* Counts, where a signal's handler leaves a run of instructions in its middle for good, or enters one.
 *
 * Constant counts of a run are merged and added in one place (weave/x86_64/count.c): what was added in advance is
 * taken off again, what was still to be added is added. For this each image carries the weaver's records:
 *
 *     runs, ascending by their first instruction | records
 *     a run:    instructions, records        a record:  counter, first, last, position, from, to, total,
 *                                                       form, each, extra  or  form, weights of first..last
 *
 * all LEB128, of zigzag where they may be negative. And counts that are placed elsewhere (count.c) follow from flows:
 * there the flow ends, or begins, in a block. Which flows are whose is carried as well, and records of what of a
 * block's counts belongs to which of its instructions (DERIVED): the flow speaks for all of them as soon as the
 * first is behind. */
#include "rewrite/states.h"
#include "rewrite/bytes.h"
#include "rewrite/plan.h"

enum { WEIGHTS = 1, DERIVED = 2 };

/* --- writing --- */

static bool put(rewrite_work *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        if (!inl_vec_push(&w->counts, (uint8_t)(v | 0x80))) return false;
    return inl_vec_push(&w->counts, (uint8_t)v);
}

static bool put_signed(rewrite_work *w, int64_t v) { return put(w, (uint64_t)v << 1 ^ (uint64_t)(v >> 63)); }

static bool put_head(rewrite_work *w, const weave_count *c, unsigned form)
{
    return put(w, c->counter) && put(w, c->first) && put(w, c->last) && put(w, c->position) && put(w, c->from) &&
           put(w, c->to) && put_signed(w, c->total) && put(w, form);
}

static bool put_weights(rewrite_work *w, const int64_t *weights, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (!put_signed(w, weights[k])) return false;
    return true;
}

static bool put_count(rewrite_work *w, const weave_count *c)
{
    if (!put_head(w, c, c->weights ? WEIGHTS : 0)) return false;
    if (c->weights) return put_weights(w, c->weights, c->last - c->first + 1);
    return put_signed(w, c->each) && put_signed(w, c->extra);
}

/* Counts of a block that follow from its flow: as if they were added when it is entered. */
static bool put_derived(rewrite_work *w, const rewrite_weights *from, uint32_t first, uint32_t count)
{
    weave_count c = {.counter = from->counter, .first = first, .last = first + count - 1, .position = first,
                     .from = first, .to = first + count - 1};
    bool same = count > 1;
    for (uint32_t k = 0; k < count; k++) {
        c.total += from->weights[k];
        same &= k == 0 || from->weights[k] == from->weights[1];
    }
    if (!put_head(w, &c, DERIVED | (same ? 0 : WEIGHTS))) return false;
    if (!same) return put_weights(w, from->weights, count);
    return put_signed(w, from->weights[1]) && put_signed(w, from->weights[0] - from->weights[1]);
}

/* Leaving a block early matters to its counts only when some belong to later instructions than the first. */
static bool is_partial(const rewrite_weights *from, uint32_t count)
{
    for (uint32_t k = 1; from->weights && k < count; k++)
        if (from->weights[k]) return true;
    return false;
}

/* Those of blocks [k, k + blocks): how many, and written if `write`. */
static bool each_derived(rewrite_work *w, uint32_t k, uint32_t blocks, bool write, uint32_t *n)
{
    uint32_t first = 0;
    for (uint32_t i = k; w->weights && i < k + blocks; first += w->run.blocks[i++].count)
        for (const rewrite_weights *from = &w->weights[i]; from; from = from->next) {
            if (!is_partial(from, w->run.blocks[i].count)) continue;
            ++*n;
            if (write && !put_derived(w, from, first, w->run.blocks[i].count)) return false;
        }
    return true;
}

bool rewrite_note_counts(rewrite_work *w, const weave_output *out, uint32_t first, uint32_t k, uint32_t blocks)
{
    rewrite_run_counts run = {first, (uint32_t)w->counts.count};
    uint32_t n = out ? out->count_count : 0, insns = 0, again = 0;
    each_derived(w, k, blocks, false, &n);
    if (!n) return true;
    for (uint32_t i = k; i < k + blocks; i++) insns += w->run.blocks[i].count;
    if (!inl_vec_push(&w->run_counts, run) || !put(w, insns) || !put(w, n)) return false;
    for (uint32_t i = 0; out && i < out->count_count; i++)
        if (!put_count(w, &out->counts[i])) return false;
    return each_derived(w, k, blocks, true, &again);
}

static void put_placed(const rewrite_plan *p, rewrite_bytes *b)
{
    const cfg_program *cfg = p->cfg;
    for (size_t i = 0; i < p->placed_count; i++) {
        const cfg_proc *of = &cfg->procs[p->placed[i].proc];
        rewrite_carried_flows f = {(uint32_t)(p->procs[p->placed[i].proc].new_addr - p->text_addr),
                                   of->block_count, p->placed[i].flows};
        rewrite_put(b, &f, sizeof f);
    }
}

void rewrite_counts_put(const rewrite_plan *p, rewrite_carried_states *head, size_t at, rewrite_bytes *b)
{
    rewrite_align(b, 8);
    head->runs = (uint32_t)(b->size - at);
    head->run_count = (uint32_t)p->run_count;
    rewrite_put(b, p->runs, p->run_count * sizeof *p->runs);
    head->counts = (uint32_t)(b->size - at);
    rewrite_put(b, p->counts, p->counts_size);
    rewrite_align(b, 8);
    head->flows = (uint32_t)(b->size - at);
    head->flows_count = (uint32_t)p->placed_count;
    put_placed(p, b);
}

/* --- reading --- */

static uint64_t take(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return v;
    }
}

static int64_t take_signed(const uint8_t **p)
{
    uint64_t v = take(p);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* What the counter of the next record has too much at instruction i of the run; see weave_undo. */
static int64_t take_surplus(const uint8_t **p, uint32_t i, bool before, uint32_t *counter)
{
    *counter = (uint32_t)take(p);
    uint64_t first = take(p), last = take(p), position = take(p), from = take(p), to = take(p);
    int64_t total = take_signed(p), executed = 0;
    uint64_t form = take(p);
    bool weighted = form & WEIGHTS;
    int64_t each = weighted ? 0 : take_signed(p), extra = weighted ? 0 : take_signed(p);
    for (uint64_t k = first; k <= last; k++) {
        int64_t weight = weighted ? take_signed(p) : each + (k == first ? extra : 0);
        if (k < i) executed += weight;
    }
    if (i < from || i > to || (form & DERIVED && i == first)) return 0;
    return (before ? i > position : i >= position) ? total - executed : -executed;
}

void rewrite_states_undo(const rewrite_carried_states *s, const rewrite_spot *spot, bool before,
                         void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg)
{
    const rewrite_run_counts *runs = (const void *)((const char *)s + s->runs);
    uint32_t low = 0, high = s->run_count, counter;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (runs[mid].first <= spot->index) low = mid + 1;
        else high = mid;
    }
    if (!low) return;
    const uint8_t *p = (const uint8_t *)s + s->counts + runs[low - 1].at;
    uint32_t i = spot->index - runs[low - 1].first;
    if (i >= take(&p)) return;
    for (uint64_t n = take(&p); n; n--) {
        int64_t surplus = take_surplus(&p, i, before, &counter);
        if (surplus) subtract(arg, counter, surplus);
    }
}

const rewrite_carried_flows *rewrite_states_flows(const rewrite_carried_states *s, uint32_t new_off)
{
    const rewrite_carried_flows *all = (const void *)((const char *)s + s->flows);
    uint32_t low = 0, high = s->flows_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (all[mid].new_off <= new_off) low = mid + 1;
        else high = mid;
    }
    return low ? &all[low - 1] : NULL;
}
