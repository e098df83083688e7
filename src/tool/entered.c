/* Values of procedures' entries (entered.h), where code is instrumented. */
#include "tool/entered.h"
#include "tool/state.h"

#include <inlay/code.h>
#include <inlay/point.h>
#include <inlay/snippet.h>

#include <string.h>
#include <time.h>

enum { MOST = 64 /* values of a procedure */, MOST_AT_ONCE = 8 /* procedures in one snippet */ };

struct tool_entered {
    tool_entered *next;
    const void *owner;
    inlay_proc *proc;
    const char *name; /* of the procedure; travels */
    uint64_t id;      /* the first value's number; no two have the same, in whichever process */
    const snippet *values[MOST];
    inlay_insertion *kept_by[MOST]; /* NULL: by none yet */
    unsigned count;
    unsigned uses; /* insertions that need them */
    bool gone;     /* the last one has been removed: what is inserted now would find what is long over */
};

/* --- the values --- */

static bool is_same(const snippet *a, const snippet *b)
{
    if (a == b) return true;
    if (!a || !b || a->kind != b->kind || a->op != b->op || a->size != b->size || a->is_signed != b->is_signed)
        return false;
    if (a->reg != b->reg || a->nargs != b->nargs || a->index != b->index || a->value != b->value || a->fn != b->fn)
        return false;
    for (unsigned i = 0; i < a->nargs; i++)
        if (!is_same(a->args[i], b->args[i])) return false;
    return is_same(a->a, b->a) && is_same(a->b, b->b) && is_same(a->c, b->c);
}

/* A program that is written is the same each time. A mutator may come to a process after others. */
static uint64_t fresh_id(const tool_entered *last)
{
    struct timespec now = {0};
    if (last) return last->id + MOST;
    if (tool_now->options.mutating) clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec) * MOST;
}

static tool_entered *entered_for(snippet_maker *m, const void *owner, inlay_proc *proc)
{
    tool_entered *e = tool_now->entered;
    while (e && (e->gone || e->owner != owner || e->proc != proc)) e = e->next;
    if (e) return e;
    e = m->alloc(m->arg, sizeof *e);
    char *name = tool_carried_alloc(strlen(proc->name) + 1);
    if (!e || !name) return NULL;
    *e = (tool_entered){.next = tool_now->entered,
                        .owner = owner,
                        .proc = proc,
                        .name = strcpy(name, proc->name),
                        .id = fresh_id(tool_now->entered)};
    return tool_now->entered = e;
}

const snippet *tool_entered_value(snippet_maker *m, const void *owner, inlay_proc *proc, const snippet *value,
                                  const snippet *frame)
{
    if (!value || !frame) return NULL;
    tool_entered *e = entered_for(m, owner, proc);
    const snippet **args = m->alloc(m->arg, 2 * sizeof *args);
    snippet *s = typed_node(m, SNIPPET_CALL, value->type, NULL, NULL);
    if (!e || !args || !s) return typed_refuse(m, "out of memory");
    unsigned k = 0;
    while (k < e->count && !is_same(e->values[k], value)) k++;
    if (k == MOST) return typed_refuse(m, "too much is asked for of what %s was called with", e->name);
    if (k == e->count) e->values[e->count++] = value;
    args[0] = typed_constant(m, image_ctype_int(8, false), e->id + k);
    args[1] = frame;
    s->fn = (void (*)(void))tool_entered_find;
    s->args = args;
    s->nargs = 2;
    return args[0] ? s : NULL;
}

/* --- in expressions --- */

static bool is_value(const snippet *s) { return s->kind == SNIPPET_CALL && s->fn == (void (*)(void))tool_entered_find; }

bool tool_entered_is_in(const snippet *s)
{
    if (!s) return false;
    if (is_value(s) || tool_entered_is_in(s->a) || tool_entered_is_in(s->b) || tool_entered_is_in(s->c)) return true;
    for (unsigned i = 0; i < s->nargs; i++)
        if (tool_entered_is_in(s->args[i])) return true;
    return false;
}

typedef struct asked { /* what an expression asks for */
    struct {
        tool_entered *of;
        const snippet *first[MOST]; /* where; NULL: nowhere */
    } list[MOST_AT_ONCE];
    unsigned count;
    bool too_many;
} asked;

static void note(asked *a, const snippet *s)
{
    uint64_t number = s->args[0]->value;
    tool_entered *e = tool_now->entered;
    unsigned k = 0;
    while (e && number - e->id >= MOST) e = e->next;
    while (k < a->count && a->list[k].of != e) k++;
    if (!e || k == MOST_AT_ONCE) {
        a->too_many = true;
        return;
    }
    if (k == a->count) a->list[a->count++].of = e;
    a->list[k].first[number - e->id] = s;
}

static void gather(asked *a, const snippet *s)
{
    if (!s) return;
    if (is_value(s)) note(a, s);
    gather(a, s->a);
    gather(a, s->b);
    gather(a, s->c);
    for (unsigned i = 0; i < s->nargs; i++) gather(a, s->args[i]);
}

/* --- keeping them --- */

/* Round a loop the first instruction would be met again, with other values. */
static bool is_entered_from_within(inlay_proc *p)
{
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        for (unsigned k = 0; k < inlay_block_successor_count(b); k++)
            if (inlay_block_successor(b, k).target == inlay_proc_address(p)) return true;
    return false;
}

static bool keep(tool_entered *e, unsigned k)
{
    const inlay_expr args[] = {inlay_const(e->id + k), inlay_stack_pointer(), e->values[k]};
    inlay_expr code = inlay_call_returning((void (*)(void))tool_entered_keep, 0, 3, args);
    e->kept_by[k] = code ? inlay_insert_first(inlay_proc_entry(e->proc), code) : NULL;
    return e->kept_by[k];
}

static const char *begin(tool_entered *e, const snippet *const *wanted)
{
    if (e->gone)
        return "what the procedure was called with is not kept any more, since what asked for it was removed: the "
               "expression is to be made again";
    if (tool_here.run_arena)
        return "what the procedure was called with is kept for what is inserted in procedure and image callbacks";
    if (!e->uses && is_entered_from_within(e->proc))
        return "what the procedure was called with cannot be kept: its first instruction is also that of a loop";
    for (unsigned k = 0; k < e->count; k++)
        if (wanted[k] && !e->kept_by[k] && !keep(e, k))
            return "what the procedure was called with cannot be kept: nothing can be inserted at its entry";
    e->uses++;
    return NULL;
}

static void end(tool_entered *e)
{
    if (--e->uses) return;
    e->gone = true;
    for (unsigned k = 0; k < e->count; k++)
        if (e->kept_by[k]) inlay_remove(e->kept_by[k]);
}

static inlay_expr known(const snippet *value)
{
    return inlay_call_returning((void (*)(void))tool_entered_has, 1, 2, value->args);
}

/* The code, if all is known that it asks for. One condition within the other: so none waits for the next. */
static inlay_expr guarded(const asked *a, const snippet *code)
{
    const inlay_expr name[] = {inlay_const((uint64_t)(uintptr_t)a->list[0].of->name)};
    inlay_expr say = inlay_call_returning((void (*)(void))tool_entered_say, 0, 1, name);
    for (unsigned i = 0; i < a->count; i++)
        for (unsigned k = 0; k < MOST; k++)
            if (a->list[i].first[k]) code = inlay_if(known(a->list[i].first[k]), code, say);
    return code;
}

const snippet *tool_entered_begin(const snippet *code, const char **why)
{
    asked a = {.count = 0};
    gather(&a, code);
    *why = a.too_many ? "it asks for what too many procedures were called with" : NULL;
    unsigned done = 0;
    while (!*why && done < a.count)
        if (!(*why = begin(a.list[done].of, a.list[done].first))) done++;
    inlay_expr s = *why ? NULL : guarded(&a, code);
    if (!s && !*why) *why = "out of memory";
    while (!s && done) end(a.list[--done].of);
    return s;
}

void tool_entered_end(const snippet *code)
{
    asked a = {.count = 0};
    gather(&a, code);
    for (unsigned i = 0; i < a.count; i++) end(a.list[i].of);
}
