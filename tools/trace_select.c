/* Which calls are recorded, of the procedures that are: those within others (--inside), one in so many (--every), fewer
 * and fewer of a procedure that is called very often (--thin).
 *
 * A call is recorded whole or not at all: the exit belongs to the stack pointer that the entry had. Where it cannot be
 * known whether a call is within another (an exception has left that one, another stack is in use), it is recorded, and
 * whoever reads the file leaves it out. State is each thread's own, so that nothing waits. */
#include "trace.h"

#include <stddef.h>
#include <string.h>

enum { SLOTS = 1 << 20, STACKS = 16, NEAR = 1 << 20, STUB = 16, TEN = 10 };

/* A procedure's. */
typedef struct slot {
    uint64_t sp;          /* of the call that is being recorded; 0: none is */
    uint32_t left, every; /* calls until the next one is recorded; one in so many is, 0: all */
    uint64_t recorded;    /* --thin: since `every` grew */
    uint64_t base;        /* --thin: calls that had been recorded when it grew and are not over began above */
} slot;

typedef struct select_state {
    uint64_t inside, count; /* not 0: calls are recorded; `open` */
    uint64_t open[STACKS];  /* stack pointers of the outermost calls of triggers, one for each stack */
    slot slots[SLOTS];      /* by number */
} select_state;

static inlay_local *states;
static const trace_settings *asked;

bool trace_select_samples(const trace_settings *s) { return s->every > 1 || s->thin; }

bool trace_select_prepare(const trace_settings *s)
{
    asked = s;
    if (!s->inside && !trace_select_samples(s)) return true;
    return (states = inlay_local_new(sizeof(select_state))) != NULL;
}

/* --- triggers --- */

bool trace_select_is_trigger(inlay_proc *proc)
{
    char pattern[1024];
    for (const char *at = asked->inside; at && *at;) {
        size_t n = strcspn(at, "|");
        if (n < sizeof pattern) {
            memcpy(pattern, at, n);
            pattern[n] = 0;
            if (inlay_proc_matches(proc, pattern)) return true;
        }
        at += n + (at[n] == '|');
    }
    return false;
}

static bool is_below(uint64_t sp, uint64_t of) { return sp <= of && of - sp < NEAR; }

/* Calls that are not there any more began at this stack pointer or below; within one that is, another changes nothing.
 */
static void enter_trigger(select_state *s, uint64_t sp)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        if (sp != s->open[i] && is_below(sp, s->open[i])) return;
        if (!is_below(s->open[i], sp)) s->open[kept++] = s->open[i];
    }
    s->count = kept;
    if (s->count < STACKS) s->open[s->count++] = sp;
    s->inside = 1;
}

static void leave_trigger(select_state *s, uint64_t sp, uint64_t stub)
{
    for (uint64_t i = 0; i < s->count; i++) {
        if (s->open[i] - sp > stub) continue;
        s->open[i] = s->open[--s->count];
        s->inside = s->count != 0;
        return;
    }
}

/* --- what is inserted --- */

static inlay_expr at(size_t offset)
{
    return inlay_binary(INLAY_ADD, inlay_local_address(states), inlay_const(offset));
}

static inlay_expr field(size_t offset, unsigned size) { return inlay_load(at(offset), size); }

static inlay_expr only_inside(inlay_expr record)
{
    return inlay_if(field(offsetof(select_state, inside), 8), record, NULL);
}

/* Every so many records of a procedure, ten times fewer of its calls are recorded. */
static void grow_rarer(slot *s, uint64_t sp)
{
    if (++s->recorded < asked->thin) return;
    uint64_t every = (s->every ? s->every : 1) * (uint64_t)TEN;
    s->every = every < UINT32_MAX ? (uint32_t)every : UINT32_MAX;
    s->recorded = 0;
    if (s->base < sp) s->base = sp;
}

/* Whether a call whose turn it is is recorded: not within another one that is. That one is gone where this begins at
 * its stack pointer or above, or far below it, on another stack. */
static uint64_t takes(slot *s, uint64_t sp)
{
    if (s->every && s->sp > sp && s->sp - sp < NEAR) return 0;
    s->sp = sp;
    if (asked->thin) grow_rarer(s, sp);
    else s->every = (uint32_t)asked->every;
    s->left = s->every ? s->every - 1 : 0;
    return 1;
}

/* Whether an exit is recorded. One too many of those open when `every` grew does no harm. */
static uint64_t leaves(slot *s, uint64_t sp, uint64_t stub)
{
    if (s->sp - sp <= stub) {
        s->sp = 0;
        return 1;
    }
    if (!s->every) return 1;
    if (!asked->thin || sp <= s->base) return 0;
    s->base = sp;
    return 1;
}

/* The same beforehand, and nothing changes. */
static uint64_t will_leave(const slot *s, uint64_t sp)
{
    return s->sp == sp || !s->every || (asked->thin && sp > s->base);
}

static inlay_expr sampled_entry(size_t slot_at, inlay_expr record)
{
    size_t left = slot_at + offsetof(slot, left);
    inlay_expr fewer = inlay_store(at(left), inlay_binary(INLAY_SUB, field(left, 4), inlay_const(1)), 4);
    inlay_expr turn = inlay_if(inlay_call(takes, at(slot_at), inlay_stack_pointer()), record, NULL);
    return inlay_if(field(left, 4), fewer, turn);
}

static inlay_expr sampled_exit(size_t slot_at, inlay_expr stub, inlay_expr record)
{
    inlay_expr over = inlay_call(leaves, at(slot_at), inlay_stack_pointer(), stub);
    return inlay_if(over, record, NULL);
}

static bool has_slot(const trace_proc *p) { return trace_select_samples(asked) && p->number < SLOTS; }

static size_t slot_of(const trace_proc *p) { return offsetof(select_state, slots) + p->number * sizeof(slot); }

inlay_expr trace_select_entry(trace_proc *p, inlay_expr record)
{
    if (p->is_trigger) record = inlay_sequence(inlay_call(enter_trigger, at(0), inlay_stack_pointer()), record);
    if (has_slot(p)) record = sampled_entry(slot_of(p), record);
    if (asked->inside && !p->is_trigger) record = only_inside(record);
    return trace_select_samples(asked) ? inlay_sequence(inlay_count(&p->calls, 1), record) : record;
}

inlay_expr trace_select_exit(trace_proc *p, inlay_expr record)
{
    inlay_expr stub = inlay_const(p->how == INLAY_TRACE_STUB ? STUB : 0);
    if (p->is_trigger) record = inlay_sequence(record, inlay_call(leave_trigger, at(0), inlay_stack_pointer(), stub));
    if (has_slot(p)) return sampled_exit(slot_of(p), stub, record);
    return asked->inside && !p->is_trigger ? only_inside(record) : record;
}

inlay_expr trace_select_result(trace_proc *p, inlay_expr result)
{
    if (has_slot(p)) return inlay_if(inlay_call(will_leave, at(slot_of(p)), inlay_stack_pointer()), result, NULL);
    return asked->inside && !p->is_trigger ? only_inside(result) : result;
}
