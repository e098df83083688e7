/* The same once more: what was removed, and is inserted again, needs no new plan while the piece of new code that it
 * was in is still in the process, without effect. A key says what a piece holds: which procedures, and with what
 * inserted, by content, since handles are not used twice. */
#include "tool/mutator.h"

#include <stdlib.h>

uint64_t mutator_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    return x ^ x >> 32;
}

static uint64_t pointer(const void *p) { return (uint64_t)(uintptr_t)p; }

uint64_t mutator_content(const snippet *s)
{
    if (!s) return 1;
    const uint64_t fields[] = {s->kind,
                               s->op,
                               s->size,
                               s->is_signed,
                               s->reg,
                               s->nargs,
                               s->role,
                               s->no_value,
                               s->index,
                               s->value,
                               pointer(s->type),
                               (uint64_t)(uintptr_t)s->fn,
                               pointer(s->buffer),
                               pointer(s->arg_sizes)};
    uint64_t sum = 2;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) sum = mutator_mix(sum, fields[i]);
    sum = mutator_mix(sum, mutator_content(s->a));
    sum = mutator_mix(sum, mutator_content(s->b));
    sum = mutator_mix(sum, mutator_content(s->c));
    for (unsigned i = 0; s->args && i < s->nargs; i++) sum = mutator_mix(sum, mutator_content(s->args[i]));
    return sum;
}

bool mutator_contents(mutated_image *mi, uint64_t **out)
{
    bool callbacks = tool_now->callbacks[ON_PROC] || tool_now->callbacks[ON_BLOCK] || tool_now->callbacks[ON_INSN];
    *out = NULL;
    if (callbacks) return true; /* they may insert what they like */
    *out = calloc(mi->cfg->proc_count + 1u, sizeof **out);
    if (*out) mutator_read_contents(mi, *out);
    return *out != NULL;
}

uint64_t mutator_key(const mutated_image *mi, const uint64_t *contents, const uint8_t *marked)
{
    uint64_t key = 0;
    for (uint32_t i = 0; contents && i < mi->cfg->proc_count; i++)
        if (marked[i] && mi->wanted[i]) key += mutator_mix(contents[i], i + 1u);
    return key;
}

/* A piece may hold more than it was asked for: neighbours, which may not be wanted any more. */
static bool is_within(const mutator_piece *p, const uint8_t *marked)
{
    for (uint32_t i = 0; i < p->plan->cfg->proc_count; i++)
        if (p->plan->procs[i].new_addr && !marked[i]) return false;
    return true;
}

mutator_piece *mutator_find_dead(const mutatee *m, const mutated_image *mi, uint64_t key, const uint8_t *marked)
{
    for (mutator_piece *p = key ? m->dead : NULL; p; p = p->next)
        if (p->image == mi->image && p->is_there && (p->keys[0] == key || p->keys[1] == key) && is_within(p, marked))
            return p;
    return NULL;
}

void mutator_revive(mutatee *m, mutator_piece *p)
{
    mutator_piece **at = &m->dead;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
}
