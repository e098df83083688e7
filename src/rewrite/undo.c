/* Counts, where a signal's handler leaves a run of instructions in its middle for good, or enters one.
 *
 * Constant counts of a run are merged and added in one place (weave/x86_64/count.c): what was added in advance is
 * taken off again, what was still to be added is added. For this each image carries the weaver's records:
 *
 *     groups of up to 32 runs: where they begin | runs, ascending by their first instruction
 *     a run:     how far its first instruction is from the last run's, instructions, records: how many; records
 *     a record:  a byte of flags, then what they do not say: counter (from that of the last one of its sort), first,
 *                last, position, from, to (from the first or the last instruction), total; weights of first..last, or
 *                what each counts and how much more the first does
 *
 * all LEB128, of zigzag where they may be negative. And counts that are placed elsewhere (count.c) follow from flows:
 * there the flow ends, or begins, in a block. Which flows are whose is carried as well, and records of what of a
 * block's counts belongs to which of its instructions (DERIVED): the flow speaks for all of them as soon as the
 * first is behind. */
#include "rewrite/states.h"
#include "base/leb.h"
#include "rewrite/bytes.h"
#include "rewrite/plan.h"

#include <string.h>

enum { /* flags of a record */
       WEIGHTS = 1,
       DERIVED = 2,
       ONES = 4, /* each instruction counts one */
       SAME_COUNTER = 8,
       ALONE = 16, /* first is last */
       WHOLE = 32, /* from the first to the last; so it is where it is derived */
       SUM = 64,   /* the total is that of the weights; likewise */
};
enum { RUNS = 32 }; /* in a group */

/* --- writing --- */

static bool put(rewrite_work *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        if (!inl_vec_push(&w->counts, (uint8_t)(v | 0x80))) return false;
    return inl_vec_push(&w->counts, (uint8_t)v);
}

static bool put_signed(rewrite_work *w, int64_t v) { return put(w, inl_zigzag(v)); }

static int64_t weight(const weave_count *c, uint32_t k)
{
    return c->weights ? c->weights[k] : c->each + (k == 0 ? c->extra : 0);
}

static unsigned flags_of(const rewrite_work *w, const weave_count *c, bool derived)
{
    int64_t sum = 0;
    bool same = true; /* but for the first */
    uint32_t n = c->last - c->first + 1;
    for (uint32_t k = 0; k < n; k++) {
        sum += weight(c, k);
        same &= k < 2 || weight(c, k) == weight(c, 1);
    }
    unsigned flags = derived ? DERIVED : 0;
    if (!same) flags |= WEIGHTS;
    else if (weight(c, 0) == 1 && (n == 1 || weight(c, 1) == 1)) flags |= ONES;
    if (c->counter == w->counts_last.counter[derived]) flags |= SAME_COUNTER;
    if (n == 1) flags |= ALONE;
    if (c->from == c->first && c->to == c->last) flags |= WHOLE;
    if (c->total == sum) flags |= SUM;
    return flags;
}

static bool put_weights(rewrite_work *w, const weave_count *c, unsigned flags)
{
    uint32_t n = c->last - c->first + 1;
    if (flags & ONES) return true;
    for (uint32_t k = 0; flags & WEIGHTS && k < n; k++)
        if (!put_signed(w, weight(c, k))) return false;
    if (flags & WEIGHTS) return true;
    int64_t each = n > 1 ? weight(c, 1) : 0;
    return put_signed(w, each) && put_signed(w, weight(c, 0) - each);
}

static bool put_count(rewrite_work *w, const weave_count *c, bool derived)
{
    unsigned flags = flags_of(w, c, derived);
    uint32_t *last = &w->counts_last.counter[derived];
    bool good = put(w, flags) && (flags & SAME_COUNTER || put_signed(w, (int64_t)c->counter - (int64_t)*last));
    *last = c->counter;
    good = good && put(w, c->first) && (flags & ALONE || put(w, c->last - c->first));
    if (!derived) good = good && put_signed(w, (int64_t)c->position - (int64_t)c->first);
    if (!(flags & WHOLE))
        good = good && put_signed(w, (int64_t)c->from - (int64_t)c->first) &&
               put_signed(w, (int64_t)c->to - (int64_t)c->last);
    if (!(flags & SUM)) good = good && put_signed(w, c->total);
    return good && put_weights(w, c, flags);
}

/* Counts of a block that follow from its flow: as if they were added when it is entered. */
static bool put_derived(rewrite_work *w, const rewrite_weights *from, uint32_t first, uint32_t count)
{
    weave_count c = {.counter = from->counter,
                     .first = first,
                     .last = first + count - 1,
                     .position = first,
                     .from = first,
                     .to = first + count - 1,
                     .weights = from->weights};
    for (uint32_t k = 0; k < count; k++) c.total += from->weights[k];
    return put_count(w, &c, true);
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

static bool open_run(rewrite_work *w, uint32_t first)
{
    rewrite_counts_last *last = &w->counts_last;
    if (w->run_counts.count == 0 || last->runs == RUNS) {
        *last = (rewrite_counts_last){.first = first};
        if (!inl_vec_push(&w->run_counts, (rewrite_run_counts){first, (uint32_t)w->counts.count})) return false;
    }
    uint32_t distance = first - last->first;
    last->first = first;
    last->runs++;
    return put(w, distance);
}

bool rewrite_note_counts(rewrite_work *w, const weave_output *out, uint32_t first, uint32_t k, uint32_t blocks)
{
    uint32_t n = out ? out->count_count : 0, insns = 0, again = 0;
    each_derived(w, k, blocks, false, &n);
    if (!n) return true;
    for (uint32_t i = k; i < k + blocks; i++) insns += w->run.blocks[i].count;
    if (!open_run(w, first) || !put(w, insns) || !put(w, n)) return false;
    for (uint32_t i = 0; out && i < out->count_count; i++)
        if (!put_count(w, &out->counts[i], false)) return false;
    return each_derived(w, k, blocks, true, &again);
}

static void put_placed(const rewrite_plan *p, rewrite_bytes *b)
{
    const cfg_program *cfg = p->cfg;
    for (size_t i = 0; i < p->placed_count; i++) {
        const cfg_proc *of = &cfg->procs[p->placed[i].proc];
        rewrite_carried_flows f = {(uint32_t)(p->procs[p->placed[i].proc].new_addr - p->text_addr), of->block_count,
                                   p->placed[i].flows};
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
    head->counts_size = (uint32_t)p->counts_size;
    rewrite_put(b, p->counts, p->counts_size);
    rewrite_align(b, 8);
    head->flows = (uint32_t)(b->size - at);
    head->flows_count = (uint32_t)p->placed_count;
    put_placed(p, b);
}

/* --- reading --- */

typedef struct record {
    const uint8_t *weights; /* or what each counts */
    int64_t total, each, extra;
    uint32_t counter, first, last, position, from, to;
    unsigned flags;
} record;

static void take_weights(const uint8_t **p, record *r)
{
    int64_t sum = 0;
    r->weights = *p;
    r->each = r->flags & ONES ? 1 : 0;
    r->extra = 0;
    if (r->flags & WEIGHTS) {
        for (uint64_t k = r->first; k <= r->last; k++) sum += inl_leb_take_signed(p);
    } else {
        if (!(r->flags & ONES)) r->each = inl_leb_take_signed(p), r->extra = inl_leb_take_signed(p);
        sum = r->each * (int64_t)(r->last - r->first + 1) + r->extra;
    }
    if (r->flags & SUM) r->total = sum;
}

static void take_record(const uint8_t **p, rewrite_counts_last *last, record *r)
{
    r->flags = *(*p)++;
    uint32_t *counter = &last->counter[(r->flags & DERIVED) != 0];
    if (!(r->flags & SAME_COUNTER)) *counter += (uint32_t)inl_leb_take_signed(p);
    r->counter = *counter;
    r->first = r->position = r->from = (uint32_t)inl_leb_take(p);
    r->last = r->to = r->first + (r->flags & ALONE ? 0 : (uint32_t)inl_leb_take(p));
    if (!(r->flags & DERIVED)) r->position += (uint32_t)inl_leb_take_signed(p);
    if (!(r->flags & WHOLE)) {
        r->from += (uint32_t)inl_leb_take_signed(p);
        r->to += (uint32_t)inl_leb_take_signed(p);
    }
    if (!(r->flags & SUM)) r->total = inl_leb_take_signed(p);
    take_weights(p, r);
}

/* The begin of the next run. */
static void take_run(const uint8_t **p, rewrite_counts_last *last, uint32_t *insns, uint32_t *records)
{
    last->first += (uint32_t)inl_leb_take(p);
    last->runs++;
    *insns = (uint32_t)inl_leb_take(p);
    *records = (uint32_t)inl_leb_take(p);
}

/* What its counter has too much at instruction i of the run; see weave_undo. */
static int64_t surplus_of(const record *r, uint32_t i, bool before)
{
    const uint8_t *p = r->weights;
    int64_t executed = 0;
    if (i < r->from || i > r->to || (r->flags & DERIVED && i == r->first)) return 0;
    for (uint32_t k = r->first; k <= r->last && k < i; k++)
        executed += r->flags & WEIGHTS ? inl_leb_take_signed(&p) : r->each + (k == r->first ? r->extra : 0);
    return (before ? i > r->position : i >= r->position) ? r->total - executed : -executed;
}

/* The last group whose runs begin at or before an instruction, plus 1. */
static uint32_t group_behind(const rewrite_run_counts *groups, uint32_t count, uint32_t index)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (groups[mid].first <= index) low = mid + 1;
        else high = mid;
    }
    return low;
}

void rewrite_counts_cut(rewrite_work *w, size_t count)
{
    rewrite_counts_last now = {0};
    record r;
    uint32_t groups = count ? group_behind(w->run_counts.items, (uint32_t)w->run_counts.count, (uint32_t)count - 1) : 0;
    if (w->run_counts.count == 0 || w->counts_last.first < count) return;
    if (groups < w->run_counts.count) w->counts.count = w->run_counts.items[groups].at;
    w->run_counts.count = groups;
    w->counts_last = now;
    if (groups == 0) return;
    now.first = w->run_counts.items[groups - 1].first;
    const uint8_t *p = w->counts.items + w->run_counts.items[groups - 1].at, *end = w->counts.items + w->counts.count;
    for (;;) {
        const uint8_t *begin = p;
        rewrite_counts_last before = now;
        uint32_t insns, records = 0;
        if (p < end) take_run(&p, &now, &insns, &records);
        if (begin == end || now.first >= count) {
            w->counts.count = (size_t)(begin - w->counts.items);
            w->counts_last = before;
            return;
        }
        while (records--) take_record(&p, &now, &r);
    }
}

void rewrite_states_undo(const rewrite_carried_states *s, const rewrite_spot *spot, bool before,
                         void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg)
{
    const rewrite_run_counts *groups = (const void *)((const char *)s + s->runs);
    const uint8_t *counts = (const uint8_t *)s + s->counts;
    uint32_t group = group_behind(groups, s->run_count, spot->index);
    if (!group) return;
    const uint8_t *p = counts + groups[group - 1].at;
    const uint8_t *end = counts + (group < s->run_count ? groups[group].at : s->counts_size);
    rewrite_counts_last last = {.first = groups[group - 1].first};
    while (p < end) {
        uint32_t insns, records;
        record r;
        take_run(&p, &last, &insns, &records);
        if (last.first > spot->index) return;
        bool here = spot->index - last.first < insns;
        while (records--) {
            take_record(&p, &last, &r);
            int64_t surplus = here ? surplus_of(&r, spot->index - last.first, before) : 0;
            if (surplus) subtract(arg, r.counter, surplus);
        }
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
