/* A snippet that is executed once, by the mutator: it walks the tree, and reads, writes and calls in the process, which
 * stands still. So nothing has to be put into the process for it. */
#include "tool/mutator.h"
#include "snippet/real.h"
#include "tool/call.h"

#include <string.h>

enum { STEPS = 1 << 24, PATIENCE = 10, CALLERS = 1024 };
static const uint64_t ROOM_AT = 0xfff1000000000000; /* where no process has memory */

typedef struct local {
    const struct local *outer;
    uint32_t index;
    uint64_t *value;
} local;

typedef struct once {
    mutatee *m;
    remote *r;
    const local *locals;
    uint8_t *room; /* TOOL_CALL_ROOM bytes, which the snippet sees at ROOM_AT: what procedures have given as a whole */
    uint64_t steps;
    bool breaks; /* out of the innermost loop */
    inl_status s;
    inl_error *e;
} once;

static uint64_t value_of(once *o, const snippet *s);

/* --- what can be --- */

typedef uint64_t real_routine(uint64_t a, uint64_t b);

/* Routines that only compute. */
static bool is_pure(void (*fn)(void))
{
#define F(name) (void (*)(void)) real_##name
    static void (*const all[])(void) = {F(add),
                                        F(sub),
                                        F(mul),
                                        F(div),
                                        F(min),
                                        F(max),
                                        F(eq),
                                        F(ne),
                                        F(lt),
                                        F(le),
                                        F(true),
                                        F(round),
                                        F(widen),
                                        F(narrow),
                                        F(from_int),
                                        F(from_uint),
                                        F(float_from_int),
                                        F(float_from_uint),
                                        F(to_int),
                                        F(to_uint),
                                        F(from_long),
                                        F(long_low),
                                        F(long_high)};
#undef F
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] == fn) return true;
    return false;
}

/* Of the mutator's; its vector arguments are numbers, not the program's registers. */
static const char *refuses_routine(const snippet *s)
{
    unsigned reals = 0;
    for (unsigned i = 0; i < s->nargs; i++) reals += s->args[i]->kind == SNIPPET_REAL_ARG;
    return reals <= MUTATOR_REALS && s->nargs - reals <= MUTATOR_INTS ? NULL : "a routine gets more than it can have";
}

static const char *refuses_call(const snippet *s, mutator_needs *needs)
{
    const tool_call *of = tool_call_of(s);
    if (!of && is_pure(s->fn)) return NULL;
    needs->calls = true;
    if (!of) needs->tool = true;
    if (!of) return refuses_routine(s);
    return of->stack <= REMOTE_WORDS ? NULL : "it passes more on the stack than a call that is made once can have";
}

const char *mutator_run_refuses(const snippet *s, mutator_needs *needs)
{
    const char *why = NULL;
    if (!s) return NULL;
    if (s->kind == SNIPPET_CALL) why = refuses_call(s, needs);
    else if (s->kind < SNIPPET_LOAD && s->kind != SNIPPET_CONST && s->kind != SNIPPET_REG && s->kind != SNIPPET_FLAGS &&
             s->kind != SNIPPET_PC && s->kind != SNIPPET_THREAD && s->kind != SNIPPET_THREAD_POINTER)
        why = "it has something that belongs to a point";
    else if (s->kind == SNIPPET_COUNT || s->kind == SNIPPET_COUNTER || s->kind == SNIPPET_APPEND)
        why = "it has counters or buffers, which belong to inserted code";
    if (!why) why = mutator_run_refuses(s->a, needs);
    if (!why) why = mutator_run_refuses(s->b, needs);
    if (!why) why = mutator_run_refuses(s->c, needs);
    for (unsigned i = tool_call_of(s) ? 2 : 0; i < s->nargs && !why; i++) why = mutator_run_refuses(s->args[i], needs);
    return why;
}

/* --- memory and registers --- */

void *mutator_run_room(uint8_t *room, uint64_t at, uint64_t size)
{
    uint64_t offset = at - ROOM_AT;
    return offset < TOOL_CALL_ROOM && size <= TOOL_CALL_ROOM - offset ? room + offset : NULL;
}

static uint64_t load(once *o, uint64_t from, unsigned size, bool is_signed)
{
    uint64_t value = 0;
    const void *own = mutator_run_room(o->room, from, size);
    if (own) memcpy(&value, own, size);
    else if (o->s == INL_OK && inlay_process_read(&o->m->process, &value, from, size) != size)
        o->s = inl_fail_at(o->e, INL_ERR_USAGE, from, "process %d has nothing to read at 0x%llx", o->m->live.pid,
                           (unsigned long long)from);
    return snippet_extend(value, size, is_signed);
}

static uint64_t store(once *o, uint64_t to, uint64_t value, unsigned size)
{
    void *own = mutator_run_room(o->room, to, size);
    if (own) memcpy(own, &value, size);
    else if (o->s == INL_OK && inlay_process_write(&o->m->process, to, &value, size) != size)
        o->s = inl_fail_at(o->e, INL_ERR_USAGE, to, "process %d cannot write at 0x%llx", o->m->live.pid,
                           (unsigned long long)to);
    return value;
}

static bool has_registers(once *o)
{
    if (o->s == INL_OK && (!o->r || !mutator_in_program(o->m, o->r)))
        o->s = inl_fail(o->e, INL_ERR_UNSUPPORTED,
                        "the thread's registers are not at hand: it does not stand in the program's own code");
    return o->s == INL_OK;
}

static uint64_t from_thread(once *o, const snippet *s)
{
    weave_context c;
    if (!has_registers(o)) return 0;
    remote_context(o->r, &c);
    return s->kind == SNIPPET_REG ? c.gpr[s->reg] : s->kind == SNIPPET_PC ? c.pc : c.flags;
}

/* Wherever the thread stands. */
static uint64_t thread_pointer(once *o)
{
    weave_context c = {0};
    if (o->r) remote_context(o->r, &c);
    return c.tls_base;
}

static uint64_t set_register(once *o, const snippet *s)
{
    weave_context c;
    uint64_t value = value_of(o, s->a);
    if (!has_registers(o)) return 0;
    remote_context(o->r, &c);
    c.gpr[s->reg] = value;
    remote_set_context(o->r, &c);
    return value;
}

/* --- calls --- */

static void pass(once *o, live_call *c, const tool_call_word *w, uint64_t value)
{
    if (w->kind == 'f') value = real_narrow(value);
    if (w->kind == 'm') {
        for (unsigned i = 0, n; i < w->size; i += n) {
            for (n = 8; n > w->size - i;) n /= 2;
            uint64_t part = load(o, value + i, n, false);
            memcpy((char *)&c->words[w->number] + i, &part, n);
        }
        return;
    }
    (w->to == CALL_INTEGER ? c->ints : w->to == CALL_VECTOR ? c->reals : c->words)[w->number] = value;
    if (w->to == CALL_INTEGER && w->number >= c->int_count) c->int_count = w->number + 1u;
}

/* What the procedure writes there is fetched into the room, before the thread's own stack is used again. */
static void make_call(once *o, live_call *c, const tool_call *of)
{
    uint8_t *to = o->room + of->place;
    if (of->result == 'p') {
        c->ints[0] = (remote_registers_sp(&o->r->regs) - CALLERS - of->size) & ~15ull;
        c->below = remote_registers_sp(&o->r->regs) - c->ints[0];
        if (!c->int_count) c->int_count = 1;
    }
    o->s = mutator_call(o->m, o->r, c, o->e);
    if (o->s == INL_OK && of->result == 'p') o->s = remote_read(o->r, c->ints[0], to, of->size, o->e);
    for (unsigned i = 0; of->result == 'm' && i < of->piece_count; i++) {
        const passed_piece *p = &of->pieces[i];
        memcpy(to + 8 * i, &(p->vector ? c->real_results : c->results)[p->number], p->size);
    }
}

static uint64_t call_program(once *o, const snippet *s, const tool_call *of)
{
    live_call c = {
        .pc = value_of(o, s->args[2]), .patience = PATIENCE, .real_count = of->vectors, .word_count = of->stack};
    for (unsigned i = 0; i < of->count; i++) pass(o, &c, &of->words[i], value_of(o, s->args[3 + i]));
    if (o->s == INL_OK) make_call(o, &c, of);
    if (of->result == 'm' || of->result == 'p') return ROOM_AT + of->place;
    if (of->result == 'i') return c.results[0];
    return of->result == 'f' ? real_widen(c.real_results[0] & UINT32_MAX) : c.real_results[0];
}

static uint64_t call_routine(once *o, const snippet *s)
{
    mutator_routine q = {.fn = s->fn, .is_real = s->size != 0};
    for (unsigned i = 0; i < s->nargs; i++) {
        const snippet *a = s->args[i];
        bool real = a->kind == SNIPPET_REAL_ARG;
        uint64_t value = value_of(o, real ? a->a : a);
        if (real) q.reals[q.real_count++] = value;
        else q.ints[q.int_count++] = value;
    }
    if (o->s == INL_OK) o->s = mutator_call_routine(o->m, o->r, &q, o->e);
    return s->size == 4 ? q.answer & UINT32_MAX : q.answer;
}

static uint64_t call(once *o, const snippet *s)
{
    const tool_call *of = tool_call_of(s);
    if (of) return call_program(o, s, of);
    if (!is_pure(s->fn)) return call_routine(o, s);
    uint64_t a = s->nargs > 0 ? value_of(o, s->args[0]) : 0, b = s->nargs > 1 ? value_of(o, s->args[1]) : 0;
    return ((real_routine *)s->fn)(a, b);
}

/* --- the tree --- */

static uint64_t binary(once *o, const snippet *s)
{
    uint64_t a = value_of(o, s->a);
    if (s->op == SNIPPET_LAND || s->op == SNIPPET_LOR)
        return (s->op == SNIPPET_LOR) == (a != 0) ? a != 0 : value_of(o, s->b) != 0;
    return snippet_compute(s->op, a, value_of(o, s->b), s->is_signed);
}

static uint64_t unary(once *o, const snippet *s)
{
    uint64_t a = value_of(o, s->a);
    return s->op == SNIPPET_EXTEND ? snippet_extend(a, s->size, s->is_signed)
                                   : snippet_compute(s->op, a, 0, s->is_signed);
}

static void loop(once *o, const snippet *s)
{
    while (o->s == INL_OK && value_of(o, s->a) && o->s == INL_OK && !o->breaks) value_of(o, s->b);
    o->breaks = false;
}

static uint64_t let(once *o, const snippet *s)
{
    uint64_t value = value_of(o, s->a);
    local mine = {o->locals, s->index, &value};
    o->locals = &mine;
    uint64_t answer = value_of(o, s->b);
    o->locals = mine.outer;
    return answer;
}

static uint64_t *local_of(const once *o, uint32_t index)
{
    const local *l = o->locals;
    while (l && l->index != index) l = l->outer;
    return l ? l->value : NULL;
}

static uint64_t set_local(once *o, const snippet *s)
{
    uint64_t value = value_of(o, s->a), *at = local_of(o, s->index);
    if (at) *at = value;
    return value;
}

static uint64_t in_order(once *o, const snippet *s)
{
    uint64_t first = value_of(o, s->a);
    return o->breaks ? first : value_of(o, s->b);
}

static uint64_t add_to(once *o, const snippet *s)
{
    uint64_t at = value_of(o, s->a), by = value_of(o, s->b), was = load(o, at, s->size, false);
    store(o, at, was + by, s->size);
    return was;
}

static uint64_t compute(once *o, const snippet *s)
{
    switch (s->kind) {
    case SNIPPET_CONST: return s->value;
    case SNIPPET_REG:
    case SNIPPET_PC:
    case SNIPPET_FLAGS: return from_thread(o, s);
    case SNIPPET_THREAD: return o->r ? (uint64_t)mutator_thread_number(o->m, o->r->pid) : 0;
    case SNIPPET_THREAD_POINTER: return thread_pointer(o);
    case SNIPPET_LOAD: return load(o, value_of(o, s->a), s->size, s->is_signed);
    case SNIPPET_STORE: {
        uint64_t at = value_of(o, s->a);
        return store(o, at, value_of(o, s->b), s->size);
    }
    case SNIPPET_ADD_TO: return add_to(o, s);
    case SNIPPET_SET_REG: return set_register(o, s);
    case SNIPPET_BINARY: return binary(o, s);
    case SNIPPET_UNARY: return unary(o, s);
    case SNIPPET_IF: return value_of(o, value_of(o, s->a) ? s->b : s->c);
    case SNIPPET_WHILE: loop(o, s); return 0;
    case SNIPPET_BREAK: o->breaks = true; return 0;
    case SNIPPET_SEQ: return in_order(o, s);
    case SNIPPET_CALL: return call(o, s);
    case SNIPPET_LET: return let(o, s);
    case SNIPPET_LOCAL: return local_of(o, s->index) ? *local_of(o, s->index) : 0;
    case SNIPPET_SET_LOCAL: return set_local(o, s);
    default: break;
    }
    o->s = inl_fail(o->e, INL_ERR_UNSUPPORTED, "this is not executed once: insert it");
    return 0;
}

static uint64_t value_of(once *o, const snippet *s)
{
    if (!s || o->s != INL_OK) return 0;
    if (o->steps++ < STEPS) return compute(o, s);
    o->s = inl_fail(o->e, INL_ERR_RANGE, "the snippet does not come to its end");
    return 0;
}

inl_status mutator_run(mutatee *m, remote *r, const snippet *s, uint8_t *room, uint64_t *value, inl_error *e)
{
    once o = {.m = m, .r = r, .room = room, .e = e};
    *value = value_of(&o, s);
    return o.s;
}
