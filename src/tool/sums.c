/* Additions of analysis routines that wait for the end.
 *
 * What a routine adds to a variable, by an amount and at an address that are known where its call is inserted, need
 * not be done there and then, if nobody looks at the variable before the end. In the instrumentor, when all calls
 * are known and nothing has been woven, such an addition becomes a count:
 *
 *     call Count(3, 7)   with   executed[proc] += n;     ->   count counter(executed + 24) += 7
 *     call Reference(ea) with   references++; ...        ->   count counter(references) += 1
 *                                                             call Reference(ea), without its first line
 *
 * which costs little where it stands and usually need not stand there at all (rewrite/count.c). What the counters
 * say is added to the variables when the program ends (sums_run.c).
 *
 * Nobody looks: the tool says so of its callbacks (inlay_sums_may_wait); of the routines at points it is found in
 * their code (weave/routine.h, alias.c), all of them taken together. One that cannot be followed ends it all. */
#include "tool/sums.h"
#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>

enum { MAX_PARTS = 16, REG_ARGS = 6 };

typedef struct group { /* cells of one size behind one pointer */
    uint64_t variable;
    uint32_t size;
    inl_map cells; /* at -> sum, or 0: somebody sees it */
} group;

typedef struct routine {
    void (*fn)(void);
    const weave_memory *memory;
    uint64_t chosen, mask; /* the last answer of weave_sums_mask */
    bool all, asked;
} routine;

typedef struct work {
    bool open; /* something does what could not be followed */
    INL_VEC(routine) routines;
    INL_VEC(weave_access) accesses; /* of all code at points */
    INL_VEC(group) groups;
    inl_map constants;   /* value -> node */
    const snippet *last; /* count that was made */
    alias_view alias;
} work;

void inlay_sums_may_wait(void) { tool_now->sums_may_wait = true; }

/* --- what code at points accesses --- */

static void note_accesses(work *w, const weave_access *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!inl_vec_push(&w->accesses, a[i])) w->open = true;
}

static routine *routine_of(work *w, void (*fn)(void))
{
    for (size_t i = 0; i < w->routines.count; i++)
        if (w->routines.items[i].fn == fn) return &w->routines.items[i];
    routine r = {.fn = fn, .memory = weave_memory_of(fn)};
    if (!r.memory || r.memory->open || !inl_vec_push(&w->routines, r)) {
        w->open = true;
        return NULL;
    }
    note_accesses(w, r.memory->accesses, r.memory->access_count);
    return &w->routines.items[w->routines.count - 1];
}

static void note_memory(work *w, const snippet *s)
{
    weave_access a = {.place = WEAVE_SOMEWHERE, .writes = s->kind != SNIPPET_LOAD, .size = s->size};
    if (s->a->kind == SNIPPET_CONST) {
        a.place = WEAVE_AT;
        a.at = s->a->value;
    }
    note_accesses(w, &a, 1);
}

static void see(void *arg, const snippet *s)
{
    work *w = arg;
    if (!s || w->open) return;
    if (s->kind == SNIPPET_APPEND) w->open = true; /* whoever gets the records runs at a point */
    else if (s->kind == SNIPPET_CALL) routine_of(w, s->fn);
    else if (s->kind >= SNIPPET_LOAD && s->kind <= SNIPPET_ADD_TO) note_memory(w, s);
    see(w, s->a);
    see(w, s->b);
    see(w, s->c);
    for (unsigned i = 0; i < s->nargs; i++) see(w, s->args[i]);
}

static void see_list(void *w, weave_run *run, weave_list *list)
{
    (void)run;
    for (const weave_insert *i = list->first; i; i = i->next) see(w, i->code);
}

/* --- one call --- */

typedef struct place { /* a value, perhaps relative to what a variable holds */
    bool known;
    uint64_t variable, at;
} place;

static uint64_t computed(unsigned op, uint64_t a, uint64_t b)
{
    switch (op) {
    case SNIPPET_MUL: return a * b;
    case SNIPPET_AND: return a & b;
    case SNIPPET_OR: return a | b;
    case SNIPPET_XOR: return a ^ b;
    case SNIPPET_SHL: return a << (b & 63);
    case SNIPPET_SHR: return a >> (b & 63);
    default: return (uint64_t)((int64_t)a >> (b & 63)); /* SAR */
    }
}

static place evaluate(const snippet *s, const snippet *call);

static place evaluate_binary(const snippet *s, const snippet *call)
{
    static const place unknown;
    place a = evaluate(s->a, call), b = evaluate(s->b, call);
    if (!a.known || !b.known) return unknown;
    if (s->op == SNIPPET_ADD && a.variable && b.variable) return unknown;
    if (s->op == SNIPPET_ADD) return (place){true, a.variable | b.variable, a.at + b.at};
    if (b.variable) return unknown;
    if (s->op == SNIPPET_SUB) return (place){true, a.variable, a.at - b.at};
    bool can = s->op == SNIPPET_MUL || (s->op >= SNIPPET_AND && s->op <= SNIPPET_SAR);
    return can && !a.variable ? (place){true, 0, computed(s->op, a.at, b.at)} : unknown;
}

static place evaluate(const snippet *s, const snippet *call)
{
    switch (s->kind) {
    case SNIPPET_CONST: return (place){true, 0, s->value};
    case SNIPPET_ARG:
        if (s->index >= call->nargs || call->args[s->index]->kind != SNIPPET_CONST) return (place){0};
        return (place){true, 0, call->args[s->index]->value};
    case SNIPPET_LOAD: return (place){s->a->kind == SNIPPET_CONST, s->a->value, 0};
    case SNIPPET_BINARY: return evaluate_binary(s, call);
    default: return (place){0};
    }
}

/* A value that can be computed or not, and nobody notices. */
static bool is_pure(const snippet *s)
{
    if (!s) return true;
    bool leaf = s->kind < SNIPPET_LOAD;
    if (!leaf && s->kind != SNIPPET_LOAD && s->kind != SNIPPET_BINARY && s->kind != SNIPPET_UNARY) return false;
    return is_pure(s->a) && is_pure(s->b);
}

static bool is_candidate(const snippet *s)
{
    if (s->kind != SNIPPET_CALL || s->value || s->nargs > REG_ARGS || !snippet_call_is_plain(s)) return false;
    for (unsigned i = 0; i < s->nargs; i++)
        if (!is_pure(s->args[i])) return false;
    return true;
}

/* --- cells --- */

static group *group_of(work *w, const sum_cell *c)
{
    for (size_t i = 0; i < w->groups.count; i++)
        if (w->groups.items[i].variable == c->variable && w->groups.items[i].size == c->size)
            return &w->groups.items[i];
    group g = {.variable = c->variable, .size = c->size};
    return inl_vec_push(&w->groups, g) ? &w->groups.items[w->groups.count - 1] : NULL;
}

static sum *new_sum(work *w, const sum_cell *c)
{
    if (!alias_is_private(&w->alias, c, w->accesses.items, w->accesses.count)) return NULL;
    sum *s = tool_carried_alloc(sizeof *s);
    uint32_t counter = s ? tool_counter_fresh(true) : 0;
    if (!counter) return NULL;
    *s = (sum){.next = tool_heap()->roots[ROOT_SUMS], .cell = *c, .counter = counter};
    tool_heap()->roots[ROOT_SUMS] = s;
    return s;
}

/* The sum of a cell; NULL: it is not private, or there are no more counters. */
static sum *sum_of_cell(work *w, const sum_cell *c)
{
    uint64_t found;
    group *g = group_of(w, c);
    if (!g) return NULL;
    if (inl_map_get(&g->cells, c->at, &found)) return (sum *)(uintptr_t)found;
    sum *s = new_sum(w, c);
    return inl_map_put(&g->cells, c->at, (uint64_t)(uintptr_t)s) ? s : NULL;
}

/* --- nodes --- */

static const snippet *constant(work *w, uint64_t value)
{
    uint64_t found;
    if (inl_map_get(&w->constants, value, &found)) return (const snippet *)(uintptr_t)found;
    snippet *s = tool_alloc(sizeof *s);
    if (!s) return NULL;
    s->kind = SNIPPET_CONST;
    s->value = value;
    return inl_map_put(&w->constants, value, (uint64_t)(uintptr_t)s) ? s : NULL;
}

static const snippet *count(work *w, uint32_t counter, uint64_t amount)
{
    const snippet *last = w->last;
    if (last && last->index == counter && last->a->value == amount) return last;
    const snippet *by = constant(w, amount);
    snippet *s = by ? tool_alloc(sizeof *s) : NULL;
    if (!s) return NULL;
    s->kind = SNIPPET_COUNT;
    s->index = counter;
    s->a = by;
    return w->last = s;
}

static const snippet *without(const snippet *call, uint64_t mask)
{
    snippet *s = tool_alloc(sizeof *s);
    if (!s) return NULL;
    *s = *call;
    s->value = mask;
    return s;
}

static uint64_t mask_of(routine *r, uint64_t chosen, bool *all)
{
    if (!r->asked || r->chosen != chosen) r->mask = weave_sums_mask(r->fn, chosen, &r->all);
    r->asked = true;
    r->chosen = chosen;
    *all = r->all;
    return r->mask;
}

/* What a call becomes: counts, and what is left of it. 0: it stays as it is. */
static unsigned split(work *w, const snippet *call, const snippet *parts[MAX_PARTS])
{
    routine *r = is_candidate(call) ? routine_of(w, call->fn) : NULL;
    uint64_t chosen = 0;
    unsigned n = 0;
    for (uint32_t k = 0; r && k < r->memory->sum_count && n + 1 < MAX_PARTS; k++) {
        const weave_sum *s = &r->memory->sums[k];
        place amount = evaluate(s->amount, call), at = evaluate(s->address, call);
        sum_cell cell = {at.variable, at.at, s->size};
        if (!amount.known || amount.variable || !at.known) continue;
        sum *to = sum_of_cell(w, &cell);
        const snippet *c = to ? count(w, to->counter, amount.at) : NULL;
        if (!c) continue;
        parts[n++] = c;
        chosen |= 1ull << k;
    }
    if (!n) return 0;
    bool all;
    uint64_t mask = mask_of(r, chosen, &all);
    if (!all && !(parts[n++] = without(call, mask))) return 0;
    return n;
}

/* --- everywhere --- */

static void split_list(void *w, weave_run *run, weave_list *list)
{
    const snippet *parts[MAX_PARTS];
    for (weave_insert *i = list->first; i; i = i->next) {
        unsigned n = i->predicated ? 0 : split(w, i->code, parts);
        for (unsigned k = n; k-- > 1;) { /* behind it, the last one first */
            weave_insert *more = inl_arena_alloc(run->arena, sizeof *more);
            if (!more) tool_fail(TOOL_EXIT_FAILED, "out of memory");
            *more = (weave_insert){.next = i->next, .code = parts[k]};
            i->next = more;
            if (list->last == i) list->last = more;
        }
        if (n) i->code = parts[0];
        for (unsigned k = 1; k < n; k++) i = i->next;
    }
}

static void split_inserts(work *w, proc_insert *i)
{
    const snippet *parts[MAX_PARTS];
    for (; i; i = i->next) {
        unsigned n = i->predicated ? 0 : split(w, i->code, parts);
        if (n) i->code = parts[0];
        for (unsigned k = 1; k < n; k++) {
            proc_insert *more = tool_alloc(sizeof *more);
            if (!more) tool_fail(TOOL_EXIT_FAILED, "out of memory");
            *more = (proc_insert){.next = i->next, .code = parts[k], .returns_only = i->returns_only};
            i->next = more;
            i = more;
        }
    }
}

static void each_proc(inlay_image *image, void (*f)(work *, proc_insert *), work *w)
{
    for (size_t k = 0; image->made && k < image->proc_count; k++) {
        if (!image->made[k]) continue;
        f(w, image->made[k]->entry);
        f(w, image->made[k]->exit);
    }
}

static void see_inserts(work *w, proc_insert *i)
{
    for (; i; i = i->next) see(w, i->code);
}

static void decide(work *w, inlay_image *const *images, size_t count)
{
    tool_code_visitor seeing = {w, see_list, see}, splitting = {w, split_list, NULL};
    for (size_t i = 0; i < count; i++) {
        tool_code_visit(images[i], &seeing);
        each_proc(images[i], see_inserts, w);
    }
    if (!w->open && alias_begin(&w->alias)) {
        for (size_t i = 0; i < count; i++) {
            tool_code_visit(images[i], &splitting);
            each_proc(images[i], split_inserts, w);
        }
    }
    alias_end(&w->alias);
}

void tool_sums_decide(inlay_image *const *images, size_t count)
{
    callback **on = tool_now->callbacks;
    work w = {0};
    if (!tool_now->sums_may_wait || tool_now->options.no_sums || on[ON_PROC] || on[ON_BLOCK] || on[ON_INSN]) return;
    decide(&w, images, count);
    for (size_t i = 0; i < w.groups.count; i++) inl_map_free(&w.groups.items[i].cells);
    inl_vec_free(&w.groups);
    inl_vec_free(&w.accesses);
    inl_vec_free(&w.routines);
    inl_map_free(&w.constants);
}
