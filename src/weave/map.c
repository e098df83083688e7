/* Reading what the weaver left for the engine: places in the code, and counts to take back. */
#include "weave/weave.h"
#include "weave/buffer.h"

#include "base/search.h"

int weave_locate(const weave_output *out, uint32_t at, weave_map_entry *entry)
{
    size_t behind = INL_FIRST(out->map_count, k, out->map[k].snippets_at > at);
    if (behind == 0) return -1;
    *entry = out->map[behind - 1];
    for (uint32_t i = 0; i < out->fault_count; i++) {
        const weave_fault *f = &out->faults[i];
        if (at < f->from || at >= f->to) continue;
        *entry = out->map[f->index];
        entry->spilled = f->spilled;
        entry->junk = f->junk;
        entry->flags_saved = f->flags_saved;
        entry->scratch = ISA_NO_REG;
        return (int)f->index;
    }
    return (int)behind - 1;
}

static int64_t weight(const weave_count *g, uint32_t k)
{
    if (g->weights) return g->weights[k];
    return g->each + (k == 0 ? g->extra : 0);
}

void weave_undo(const weave_output *out, uint32_t map_index, bool begun,
                void (*subtract)(void *arg, uint32_t counter, int64_t amount), void *arg)
{
    for (uint32_t i = 0; i < out->count_count; i++) {
        const weave_count *g = &out->counts[i];
        if (map_index < g->from || map_index > g->to) continue;
        int64_t surplus = map_index >= g->position ? g->total : 0;
        bool due = begun || weave_is_next(g->counter); /* a record is appended before its instruction */
        for (uint32_t k = g->first; k < map_index + due && k <= g->last; k++) surplus -= weight(g, k - g->first);
        if (surplus) subtract(arg, g->counter, surplus);
    }
}
