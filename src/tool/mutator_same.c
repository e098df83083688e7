/* What a mutator makes again and again is there once: it may insert and remove the same for days. Expressions that are
 * equal are the same one, for ever; an image has a point for each place that was asked for, and takes what belonged to
 * an insertion that was removed for the next one. */
#include "tool/mutator.h"
#include "tool/code.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number(const void *p) { return (uint64_t)(uintptr_t)p; }

/* --- expressions --- */

static uint64_t sum_of(const snippet *s)
{
    const uint64_t fields[] = {s->kind | (uint64_t)s->op << 8 | (uint64_t)s->size << 16 | (uint64_t)s->is_signed << 24 |
                                   (uint64_t)s->reg << 32 | (uint64_t)s->nargs << 40 | (uint64_t)s->role << 48 |
                                   (uint64_t)s->no_value << 56,
                               s->index,
                               s->value,
                               number(s->a),
                               number(s->b),
                               number(s->c),
                               (uint64_t)(uintptr_t)s->fn,
                               number(s->buffer),
                               number(s->type)};
    uint64_t sum = 1;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) sum = mutator_mix(sum, fields[i]);
    for (unsigned i = 0; i < s->nargs; i++)
        sum = mutator_mix(sum, number(s->args[i]) * 16 + (s->arg_sizes ? s->arg_sizes[i] : 0));
    return sum;
}

static bool is_same(const snippet *x, const snippet *y)
{
    bool same = x->kind == y->kind && x->op == y->op && x->size == y->size && x->is_signed == y->is_signed &&
                x->reg == y->reg && x->nargs == y->nargs && x->role == y->role && x->no_value == y->no_value &&
                x->index == y->index && x->value == y->value && x->a == y->a && x->b == y->b && x->c == y->c &&
                x->fn == y->fn && x->buffer == y->buffer && x->type == y->type && !x->arg_sizes == !y->arg_sizes;
    if (!same || !x->nargs) return same;
    if (memcmp(x->args, y->args, x->nargs * sizeof *x->args) != 0) return false;
    return !x->arg_sizes || memcmp(x->arg_sizes, y->arg_sizes, x->nargs) == 0;
}

inlay_expr mutator_same(const snippet *like)
{
    inl_map *all = &tool_now->mutating.expressions;
    uint64_t sum = sum_of(like), found;
    bool known = inl_map_get(all, sum, &found);
    if (known && is_same((const snippet *)(uintptr_t)found, like)) return (const snippet *)(uintptr_t)found;
    const snippet *fresh = tool_snippet_new(like);
    if (fresh && !known) inl_map_put(all, sum, number(fresh)); /* without it the next one is another */
    return fresh;
}

/* --- what an image has --- */

struct mutator_points {
    inl_arena memory;
    inl_map points, simple; /* by place; expression -> as simple as it gets */
    proc_insert *inserts;   /* removed ones, */
    inlay_insertion *handles;
};

static mutator_points *points_of(inlay_image *i)
{
    if (!i->points) i->points = calloc(1, sizeof *i->points);
    return i->points;
}

void mutator_points_free(inlay_image *i)
{
    mutator_points *p = i->points;
    if (!p) return;
    inl_arena_free(&p->memory);
    inl_map_free(&p->points);
    inl_map_free(&p->simple);
    free(p);
    i->points = NULL;
}

static inlay_image *image_of(const inlay_point *p)
{
    return p->run ? code_view_behind(p->run)->code->image : p->proc->image;
}

bool mutator_keeps_points(const weave_run *run)
{
    return tool_now->options.mutating && !tool_here.run_arena && (!run || run->view);
}

static bool is_place(const inlay_point *x, const inlay_point *y)
{
    return x->kind == y->kind && x->index == y->index && x->run == y->run && x->proc == y->proc && x->guard == y->guard;
}

inlay_point *mutator_point(const inlay_point *like)
{
    mutator_points *all = points_of(image_of(like));
    uint64_t sum = mutator_mix(number(like->run) ^ number(like->proc), like->index * 16ull + like->kind), found;
    if (!all) return NULL;
    sum = mutator_mix(sum, number(like->guard));
    bool known = inl_map_get(&all->points, sum, &found);
    if (known && is_place((const inlay_point *)(uintptr_t)found, like)) return (inlay_point *)(uintptr_t)found;
    inlay_point *fresh = inl_arena_alloc(&all->memory, sizeof *fresh);
    if (!fresh) return NULL;
    *fresh = *like;
    if (!known) inl_map_put(&all->points, sum, number(fresh));
    return fresh;
}

inlay_expr mutator_simplify(const inlay_point *at, inlay_expr code)
{
    mutator_points *all = points_of(image_of(at));
    uint64_t found;
    if (!all) return NULL;
    if (inl_map_get(&all->simple, number(code), &found)) return (inlay_expr)(uintptr_t)found;
    inlay_expr simple = snippet_simplify(&all->memory, code);
    if (simple) inl_map_put(&all->simple, number(code), number(simple));
    return simple;
}

inlay_insertion *mutator_handle(const inlay_point *at)
{
    mutator_points *all = points_of(image_of(at));
    inlay_insertion *i = all ? all->handles : NULL;
    if (i) all->handles = i->next;
    return i || !all ? i : inl_arena_alloc(&all->memory, sizeof *i);
}

proc_insert *mutator_proc_insert(const inlay_point *at)
{
    mutator_points *all = points_of(image_of(at));
    proc_insert *n = all ? all->inserts : NULL;
    if (n) all->inserts = n->next;
    return n || !all ? n : inl_arena_alloc(&all->memory, sizeof *n);
}

void mutator_removed(inlay_insertion *i)
{
    mutator_points *all = points_of(image_of(i->at));
    if (!all) return;
    if (i->at->run) {
        weave_run *run = i->at->run;
        if (i->node) i->node->next = run->spare, run->spare = i->node;
    } else {
        i->kept->next = all->inserts;
        all->inserts = i->kept;
    }
    if (i == &i->at->first) return; /* the point has it */
    i->next = all->handles;
    all->handles = i;
}
