/* The records of constant counts that were merged, or placed elsewhere, written: see records.h. */
#include "base/bytes.h"
#include "base/leb.h"
#include "move/plan.h"

#include <string.h>

static bool put(move_work *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        if (!inl_vec_push(&w->counts, (uint8_t)(v | 0x80))) return false;
    return inl_vec_push(&w->counts, (uint8_t)v);
}

static bool put_signed(move_work *w, int64_t v) { return put(w, inl_zigzag(v)); }

static int64_t weight(const weave_count *c, uint32_t k)
{
    return c->weights ? c->weights[k] : c->each + (k == 0 ? c->extra : 0);
}

static unsigned flags_of(const move_work *w, const weave_count *c, bool derived)
{
    int64_t sum = 0;
    bool same = true; /* but for the first */
    uint32_t n = c->last - c->first + 1;
    for (uint32_t k = 0; k < n; k++) {
        sum += weight(c, k);
        same &= k < 2 || weight(c, k) == weight(c, 1);
    }
    unsigned flags = derived ? MOVE_COUNT_DERIVED : 0;
    if (!same) flags |= MOVE_COUNT_WEIGHTS;
    else if (weight(c, 0) == 1 && (n == 1 || weight(c, 1) == 1)) flags |= MOVE_COUNT_ONES;
    if (c->counter == w->counts_last.counter[derived]) flags |= MOVE_COUNT_SAME_COUNTER;
    if (n == 1) flags |= MOVE_COUNT_ALONE;
    if (c->from == c->first && c->to == c->last) flags |= MOVE_COUNT_WHOLE;
    if (c->total == sum) flags |= MOVE_COUNT_SUM;
    return flags;
}

static bool put_weights(move_work *w, const weave_count *c, unsigned flags)
{
    uint32_t n = c->last - c->first + 1;
    if (flags & MOVE_COUNT_ONES) return true;
    for (uint32_t k = 0; flags & MOVE_COUNT_WEIGHTS && k < n; k++)
        if (!put_signed(w, weight(c, k))) return false;
    if (flags & MOVE_COUNT_WEIGHTS) return true;
    int64_t each = n > 1 ? weight(c, 1) : 0;
    return put_signed(w, each) && put_signed(w, weight(c, 0) - each);
}

static bool put_count(move_work *w, const weave_count *c, bool derived)
{
    unsigned flags = flags_of(w, c, derived);
    uint32_t *last = &w->counts_last.counter[derived];
    bool good = put(w, flags) &&
                (flags & MOVE_COUNT_SAME_COUNTER || put_signed(w, (int64_t)c->counter - (int64_t)*last));
    *last = c->counter;
    good = good && put(w, c->first) && (flags & MOVE_COUNT_ALONE || put(w, c->last - c->first));
    if (!derived) good = good && put_signed(w, (int64_t)c->position - (int64_t)c->first);
    if (!(flags & MOVE_COUNT_WHOLE))
        good = good && put_signed(w, (int64_t)c->from - (int64_t)c->first) &&
               put_signed(w, (int64_t)c->to - (int64_t)c->last);
    if (!(flags & MOVE_COUNT_SUM)) good = good && put_signed(w, c->total);
    return good && put_weights(w, c, flags);
}

/* Counts of a block that follow from its flow: as if they were added when it is entered. */
static bool put_derived(move_work *w, const move_weights *from, uint32_t first, uint32_t count)
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
static bool is_partial(const move_weights *from, uint32_t count)
{
    for (uint32_t k = 1; from->weights && k < count; k++)
        if (from->weights[k]) return true;
    return false;
}

/* Those of blocks [k, k + blocks): how many, and written if `write`. */
static bool each_derived(move_work *w, uint32_t k, uint32_t blocks, bool write, uint32_t *n)
{
    uint32_t first = 0;
    for (uint32_t i = k; w->weights && i < k + blocks; first += w->run.blocks[i++].count)
        for (const move_weights *from = &w->weights[i]; from; from = from->next) {
            if (!is_partial(from, w->run.blocks[i].count)) continue;
            ++*n;
            if (write && !put_derived(w, from, first, w->run.blocks[i].count)) return false;
        }
    return true;
}

static bool open_run(move_work *w, uint32_t first)
{
    move_counts_last *last = &w->counts_last;
    if (w->run_counts.count == 0 || last->runs == MOVE_COUNT_RUNS) {
        *last = (move_counts_last){.first = first};
        if (!inl_vec_push(&w->run_counts, (move_run_counts){first, (uint32_t)w->counts.count})) return false;
    }
    uint32_t distance = first - last->first;
    last->first = first;
    last->runs++;
    return put(w, distance);
}

bool move_note_counts(move_work *w, const weave_output *out, uint32_t first, uint32_t k, uint32_t blocks)
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

/* Of a procedure whose offsets count from a place in the text. */
static void put_flows(const move_plan *p, const move_placed *of, uint64_t text, inl_bytes *b)
{
    move_carried_flows f = {(uint32_t)(p->procs[of->proc].new_addr - text), p->cfg->procs[of->proc].block_count,
                            of->flows};
    inl_bytes_put(b, &f, sizeof f);
}

void move_counts_put(const move_plan *p, move_carried_states *head, size_t at, inl_bytes *b)
{
    inl_bytes_align(b, 8);
    head->runs = (uint32_t)(b->size - at);
    head->run_count = (uint32_t)p->run_count;
    inl_bytes_put(b, p->runs, p->run_count * sizeof *p->runs);
    head->counts = (uint32_t)(b->size - at);
    head->counts_size = (uint32_t)p->counts_size;
    inl_bytes_put(b, p->counts, p->counts_size);
    inl_bytes_align(b, 8);
    head->flows = (uint32_t)(b->size - at);
    head->flows_count = (uint32_t)p->placed_count;
    for (size_t i = 0; i < p->placed_count; i++) put_flows(p, &p->placed[i], p->text_addr, b);
}

/* --- those of a part of the map, told anew: what they tell by how far it is from the last is another --- */

static void put_number(inl_bytes *b, uint64_t v)
{
    uint8_t bytes[10];
    inl_bytes_put(b, bytes, (size_t)(inl_leb_put(bytes, v) - bytes));
}

/* The record that begins at `from`; `to` is where the last one that was put has left off. */
static void put_record(const uint8_t **from, move_counts_last *last, move_counts_last *to, inl_bytes *b)
{
    const uint8_t *rest = *from + 1;
    unsigned flags = **from;
    bool derived = flags & MOVE_COUNT_DERIVED;
    move_record r;
    if (!(flags & MOVE_COUNT_SAME_COUNTER)) inl_leb_take(&rest);
    move_take_record(from, last, &r);
    int64_t step = (int64_t)r.counter - (int64_t)to->counter[derived];
    to->counter[derived] = r.counter;
    flags = (flags & ~(unsigned)MOVE_COUNT_SAME_COUNTER) | (step ? 0 : MOVE_COUNT_SAME_COUNTER);
    inl_bytes_number(b, flags, 1);
    if (step) put_number(b, inl_zigzag(step));
    inl_bytes_put(b, rest, (size_t)(*from - rest));
}

typedef struct runs_part {
    INL_VEC(move_run_counts) groups;
    inl_bytes counts;
    move_counts_last last;
} runs_part;

/* A run and its records, where `put`; else they are passed by. */
static bool put_run(const uint8_t **from, move_counts_last *last, runs_part *to, const move_delta *d)
{
    uint32_t insns, records;
    move_record unused;
    move_take_run(from, last, &insns, &records);
    bool put = last->first >= d->first && last->first < d->last;
    uint32_t first = last->first - (uint32_t)d->first;
    if (put && (to->groups.count == 0 || to->last.runs == MOVE_COUNT_RUNS)) {
        to->last = (move_counts_last){.first = first};
        if (!inl_vec_push(&to->groups, (move_run_counts){first, (uint32_t)to->counts.size})) return false;
    }
    if (put) {
        put_number(&to->counts, first - to->last.first);
        put_number(&to->counts, insns);
        put_number(&to->counts, records);
        to->last.first = first;
        to->last.runs++;
    }
    while (records--)
        if (put) put_record(from, last, &to->last, &to->counts);
        else move_take_record(from, last, &unused);
    return !to->counts.failed;
}

static bool put_runs(const move_plan *p, const move_delta *d, runs_part *to)
{
    uint32_t group = move_run_group(p->runs, (uint32_t)p->run_count, (uint32_t)d->first);
    for (group -= group > 0; group < p->run_count && p->runs[group].first < d->last; group++) {
        const uint8_t *from = p->counts + p->runs[group].at;
        const uint8_t *end = p->counts + (group + 1 < p->run_count ? p->runs[group + 1].at : p->counts_size);
        move_counts_last last = {.first = p->runs[group].first};
        while (from < end)
            if (!put_run(&from, &last, to, d)) return false;
    }
    return true;
}

void move_counts_put_part(const move_plan *p, const move_delta *d, move_carried_states *head, size_t at, inl_bytes *b)
{
    runs_part part = {0};
    if (!put_runs(p, d, &part)) b->failed = true;
    inl_bytes_align(b, 8);
    head->runs = (uint32_t)(b->size - at);
    head->run_count = (uint32_t)part.groups.count;
    inl_bytes_put(b, part.groups.items, part.groups.count * sizeof *part.groups.items);
    head->counts = (uint32_t)(b->size - at);
    head->counts_size = (uint32_t)part.counts.size;
    inl_bytes_put(b, part.counts.data, part.counts.size);
    inl_bytes_align(b, 8);
    head->flows = (uint32_t)(b->size - at);
    for (size_t i = 0; i < p->placed_count; i++) {
        if (p->placed[i].proc != d->proc) continue;
        put_flows(p, &p->placed[i], d->at.at, b);
        head->flows_count++;
    }
    inl_vec_free(&part.groups);
    inl_bytes_free(&part.counts);
}

void move_counts_cut(move_work *w, size_t count)
{
    move_counts_last now = {0};
    move_record r;
    uint32_t groups = count ? move_run_group(w->run_counts.items, (uint32_t)w->run_counts.count, (uint32_t)count - 1)
                            : 0;
    if (w->run_counts.count == 0 || w->counts_last.first < count) return;
    if (groups < w->run_counts.count) w->counts.count = w->run_counts.items[groups].at;
    w->run_counts.count = groups;
    w->counts_last = now;
    if (groups == 0) return;
    now.first = w->run_counts.items[groups - 1].first;
    const uint8_t *p = w->counts.items + w->run_counts.items[groups - 1].at, *end = w->counts.items + w->counts.count;
    for (;;) {
        const uint8_t *begin = p;
        move_counts_last before = now;
        uint32_t insns, records = 0;
        if (p < end) move_take_run(&p, &now, &insns, &records);
        if (begin == end || now.first >= count) {
            w->counts.count = (size_t)(begin - w->counts.items);
            w->counts_last = before;
            return;
        }
        while (records--) move_take_record(&p, &now, &r);
    }
}
