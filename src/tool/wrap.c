/* Procedures that the tool stands in for, and calls (wrap.h of the public headers).
 *
 * At a procedure's beginning `entered` is called with the program's registers, and never returns there, but for the
 * original's sake: it calls the tool's routine, and sends the program on behind the procedure, with what the routine
 * has returned. When the routine calls the original, the program goes on at the procedure's beginning, and the routine
 * waits on the thread's private stack, of which what is below is all that the thread has meanwhile:
 *
 *     stack's end ->  | entered | routine | tool_wrap_original |  <- tool_stack now   | dispatcher, other routines ...
 *
 * The engine sees to it that the original's return comes here (run_engine.call, run_client.returned): the stack is set
 * back, and the call in the routine returns. Between two instructions of the program's nothing of it is in the frame
 * but the registers, which go to and fro in `now`; the vector state is in the thread's vector area all the time.
 *
 * Where that stack gets short another one goes on (wrap_stacks.c).
 *
 * Who stands in for a procedure is in a list that hangs on the thread, the innermost first; all but the innermost wait.
 * A routine whose original is left by a jump past it is never come back to. It is taken out when its place on the
 * program's stack is used again, when an outer one returns, or when room runs out; till then it does no harm. */
#include "tool/wrap.h"
#include "base/log.h"
#include "run/kernel.h"
#include "tool/state.h"
#include INL_ARCH_HEADER(run, abi)

#include <inlay/wrap.h>

enum {
    LEAST_ROOM = 256 << 10, /* for all that is not nested: translation, callbacks, the report */
    STACK_ALIGN = 64,
    BELOW_VALUES = 64, /* what interrupts a routine looks for its return address a few words below tool_stack */
};

typedef struct wrapped { /* on the thread's private stack */
    run_call call;       /* first: the list is of these */
    const tool_wrap *of;
    weave_context now;       /* the program's registers: as at the beginning, or as the original has returned */
    const weave_context *at; /* of a call behind which the routine goes on: those of the place */
    bool has_begun;          /* the original, that it waits for */
    tool_wrap_values *values;
    uint64_t in_tool; /* of the thread's frame, while the routine runs */
    uint64_t end;     /* what was free of the stack when it began */
    uint64_t lowest;  /* `frame` of it and all outer ones */
    uint64_t mask;    /* of a call behind which the routine goes on: of signals, when it has come back */
} wrapped;

static wrapped *innermost(const run_thread *t) { return (wrapped *)t->calls; }

/* --- the stack --- */

/* What is below is free. */
static void set_stack(run_thread *t, uint64_t end)
{
    tool_wrap_stack_at(t, end);
    t->frame.tool_stack = t->runtime_stack = end;
}

static uint64_t below(const wrapped *w)
{
    return ((uint64_t)(uintptr_t)w->values - BELOW_VALUES) & -(uint64_t)STACK_ALIGN;
}

static uint64_t room_of(const run_thread *t) { return t->frame.tool_stack - (uint64_t)(uintptr_t)t->stack_low; }

static uint64_t lowest_of(const run_thread *t, uint64_t frame)
{
    return t->calls && innermost(t)->lowest < frame ? innermost(t)->lowest : frame;
}

static void drop(run_thread *t)
{
    wrapped *w = innermost(t);
    inl_log(INL_LOG_THREAD, "thread %d: the routine in place of %s is given up", t->tid, w->of->name);
    t->calls = w->call.outer;
    if (w->call.waits && run_here.engine->called) run_here.engine->called(t, &w->call);
    set_stack(t, w->end);
}

/* Where an engine leaves the program's return address in its place (the JIT): has the innermost original ended with a
 * jump to this procedure, which returns for both? */
static bool is_jumped_from(const run_thread *t, const tool_wrap *of, uint64_t frame, uint64_t behind)
{
    const wrapped *w = innermost(t);
    if (!w || run_here.engine->is_native || !w->call.waits) return false;
    return w->of != of && w->of->jumps_on && w->call.frame == frame && w->call.behind == behind;
}

/* Whose place on the program's stack is used again has been left, and so have those within. When room gets short those
 * too that lie below it: on the same stack they are dead. Was there any? */
static bool forget_left(run_thread *t, const tool_wrap *of, uint64_t frame, uint64_t behind)
{
    const run_call *before = t->calls, *same = before;
    if (is_jumped_from(t, of, frame, behind)) return false;
    while (same && same->frame != frame) same = frame < ((const wrapped *)same)->lowest ? NULL : same->outer;
    while (same && t->calls != same->outer) drop(t);
    while (t->calls && t->calls->frame < frame && room_of(t) < 2 * LEAST_ROOM) drop(t);
    return t->calls != before;
}

/* --- a routine in place of its procedure --- */

static void go_on(run_thread *t) __attribute__((noreturn));
static void go_on(run_thread *t)
{
    run_here.engine->resume(t);
    tool_fail(TOOL_EXIT_FAILED, "the program cannot go on: not on this processor");
}

/* Room for one more: another stack, where need be. */
static bool made_room(run_thread *t, const tool_wrap *of)
{
    if (room_of(t) >= LEAST_ROOM) return false;
    if (!tool_wrap_stack_more(t))
        tool_fail(TOOL_EXIT_FAILED, "%s cannot be stood in for: too many routines that do so are under way at once",
                  of->name);
    t->frame.tool_stack = t->runtime_stack = (uint64_t)(uintptr_t)t->stack_low + t->stack_size;
    return true;
}

static void stand_in(const tool_wrap *of, const weave_context *c, uint64_t frame, uint64_t behind)
    __attribute__((noreturn));
static void stand_in(const tool_wrap *of, const weave_context *c, uint64_t frame, uint64_t behind)
{
    run_thread *t = run_self();
    wrapped w = {.of = of,
                 .now = *c,
                 .call = {.frame = frame, .behind = behind, .entry = of->entry},
                 .end = t->frame.tool_stack};
    tool_wrap_values values, before;
    uint64_t stack[TOOL_WRAP_WORDS];
    if (forget_left(t, of, frame, behind) || made_room(t, of)) { /* once more, with all of the stack that is free now */
        t->ctx = *c;
        t->ctx.pc = inlay_address_real(c->pc);
        go_on(t);
    }
    if (!run_read(stack, frame + sizeof(uint64_t), of->words * sizeof *stack))
        tool_fail(TOOL_EXIT_FAILED, "the arguments of %s cannot be read", of->name);
    w.call.outer = t->calls;
    w.lowest = lowest_of(t, frame);
    t->calls = &w.call;
    tool_wrap_take(c, &values, WRAP_ARGUMENTS);
    before = values;
    tool_wrap_call(of->routine, &values, stack, of->words);
    t->calls = w.call.outer;
    set_stack(t, w.end);
    const cfg_changed alone = {~of->changes.regs, ~of->changes.vectors};
    tool_wrap_put(&w.now, &before, WRAP_ARGUMENTS, alone);
    tool_wrap_put(&w.now, &values, WRAP_RESULTS, of->changes);
    w.now.pc = w.call.behind;
    run_set_sp(&w.now, frame + sizeof(uint64_t));
    t->ctx = w.now;
    if (!run_here.engine->is_native && run_call_back(t)) { /* who jumped here returns with it */
        t->where = RUN_IN_RUNTIME;
        t->frame.in_tool = 0;
        tool_wrap_returned(NULL, t, true);
    }
    go_on(t);
}

/* A jump of the original's own to its beginning is no call. */
static bool is_original(const run_thread *t, const tool_wrap *of, uint64_t sp)
{
    wrapped *w = innermost(t);
    if (!w || !w->call.waits || w->of != of || w->call.begin_sp != sp) return false;
    if (w->has_begun) return of->has_loop;
    return w->has_begun = true;
}

static void entered(const tool_wrap *of, const weave_context *c)
{
    uint64_t behind = 0, sp = run_sp(c);
    if (is_original(run_self(), of, sp)) return;
    if (!run_read(&behind, sp, sizeof behind)) return; /* the original is about to fault */
    stand_in(of, c, sp, behind);
}

/* The procedure is elsewhere, and is called from here only by the engine. */
static void called(const tool_wrap *of, const weave_context *c, uint64_t behind)
{
    stand_in(of, c, run_sp(c) - sizeof(uint64_t), inlay_address_real(behind));
}

static void jumped_to(const tool_wrap *of, const weave_context *c)
{
    uint64_t behind = 0, sp = run_sp(c);
    if (run_read(&behind, sp, sizeof behind)) stand_in(of, c, sp, behind);
}

const snippet *tool_wrap_code(const tool_wrap *of, tool_wrap_where where, const snippet *context)
{
    inlay_expr what = inlay_pointer(of), now = (inlay_expr)context;
    if (where == WRAP_CALL) return inlay_call(called, what, now, inlay_fall_through());
    return where == WRAP_JUMP ? inlay_call(jumped_to, what, now) : inlay_call(entered, what, now);
}

/* --- the original --- */

void (*inlay_original(void))(void)
{
    run_thread *t = tool_handoff_data.role == TOOL_INSTRUMENTOR ? NULL : run_self();
    if (!t || !t->calls || t->calls->waits)
        tool_fail(TOOL_EXIT_FAILED, "inlay_original: no routine runs that stands in for a procedure");
    return tool_wrap_original;
}

void tool_wrap_begin(tool_wrap_values *values, const uint64_t *stack)
{
    run_thread *t = run_self();
    wrapped *w = innermost(t);
    if (!w || w->call.waits)
        tool_fail(TOOL_EXIT_FAILED, "an original is called outside of the routine that stands in for it");
    w->values = values;
    w->in_tool = t->frame.in_tool;
    w->has_begun = false;
    w->call.words = w->of->words;
    w->call.stack = stack;
    tool_wrap_put(&w->now, values, WRAP_ARGUMENTS, (cfg_changed){~(isa_regs)0, UINT32_MAX});
    t->ctx = w->now;
    t->ctx.pc = inlay_address_real(w->of->entry);
    w->call.waits = true;
    if (!run_here.engine->call(t, &w->call))
        tool_fail(TOOL_EXIT_FAILED, "what stands in for %s cannot call it here", w->of->name);
    set_stack(t, below(w));
    go_on(t);
}

void tool_wrap_returned(void *arg, run_thread *t, bool is_intact)
{
    (void)arg;
    run_call *back = run_call_back(t);
    if (!back && !is_intact)
        tool_fail(TOOL_EXIT_FAILED, "a procedure that the tool stands in for has returned a second time");
    if (!back) return;
    while (t->calls != back) drop(t);
    wrapped *w = innermost(t);
    w->call.waits = false;
    if (w->call.goes_on) w->mask = run_kernel_mask_all(); /* till all of the frame is as it was */
    if (run_here.engine->called) run_here.engine->called(t, &w->call);
    w->now = t->ctx;
    w->now.vectors = t->frame.vector_area;
    tool_wrap_take(&w->now, w->values, WRAP_RESULTS);
    set_stack(t, w->end);
    if (!w->call.goes_on) /* where `entered` was called is no place any more */
        ((uint64_t *)t->frame.tool_stack)[-(int64_t)w->in_tool] = 0;
    t->frame.app_tls_base = t->ctx.tls_base;
    t->frame.in_tool = w->in_tool;
    t->where = RUN_IN_CODE;
    tool_wrap_back(w->values);
}

/* --- other procedures of the program's --- */

/* Where the routine that runs returns to, which has been exchanged where a signal waits for that. */
static uint64_t returns_to(const run_thread *t, const uint64_t *slot)
{
    uint64_t there = *(const volatile uint64_t *)slot;
    return run_here.engine->is_native && *(const volatile bool *)&t->pending.present ? t->leave_arg : there;
}

/* All signals are blocked. One that came between the procedure and the routine waits for nobody: once more. */
static void let_signals_in(run_thread *t, uint64_t mask)
{
    if (t->pending.present) {
        run_hung_end(t);
        t->pending.present = t->mask_is_ours = false;
        run_signal_send_back(&t->pending.info);
        mask = t->pending.mask;
    }
    run_kernel_mask_set(mask);
}

static bool is_here(const run_thread *t, const wrapped *w)
{
    return w->end - 1 - (uint64_t)(uintptr_t)t->stack_low < t->stack_size;
}

/* What calls that were left by a jump past them have of the stack in use, when it gets short. The routine that runs
 * stays where it is, so its return address is so much further below the end. */
static void take_back_left(run_thread *t, uint64_t sp)
{
    uint64_t before = t->frame.tool_stack;
    if (room_of(t) > 2 * LEAST_ROOM) return;
    uint64_t mask = run_kernel_mask_all();
    while (t->calls && t->calls->waits && t->calls->frame < sp && is_here(t, innermost(t))) drop(t);
    t->frame.in_tool += (t->frame.tool_stack - before) / sizeof before;
    run_kernel_mask_set(mask);
}

bool tool_wrap_caller(const run_thread *t, weave_context *out)
{
    const wrapped *w = innermost(t);
    if (!w || w->call.waits || w->call.goes_on) return false;
    *out = w->now;
    out->pc = w->call.behind;
    run_set_sp(out, w->call.frame + sizeof(uint64_t));
    return true;
}

/* A thread that runs on may change what is read. */
stack_passed tool_wrap_passes(const stack_process *p, const run_call *calls, uint64_t stack, stack_caller *out)
{
    enum { MOST = 1 << 16 };
    wrapped w;
    for (unsigned n = 0; calls && n < MOST && p->read(p->of, &w, (uintptr_t)calls, sizeof w); n++) {
        calls = w.call.outer;
        if (!w.call.waits || w.call.begin_sp + sizeof(uint64_t) != stack) continue;
        if (w.call.goes_on)
            return p->read(p->of, &out->at, (uintptr_t)w.at, sizeof out->at) ? STACK_PASSED_SNIPPET : STACK_PASSED_NOT;
        out->back = w.call.behind;
        out->stack = w.call.frame + sizeof(uint64_t);
        return STACK_PASSED_CALL;
    }
    return STACK_PASSED_NOT;
}

unsigned tool_wrap_depth(const run_thread *t, const weave_context *c)
{
    unsigned n = 0;
    for (const run_call *k = t->calls; k; k = k->outer) n += k->goes_on && k->frame >= run_sp(c);
    return n;
}

bool tool_wrap_program(const tool_wrap *of, const weave_context *c, tool_wrap_values *values, const uint64_t *stack)
{
    run_thread *t = run_self();
    size_t bytes = run_vector_room();
    if (room_of(t) < LEAST_ROOM + bytes) return false;
    take_back_left(t, run_sp(c));
    const weave_context at = *c;
    wrapped w = {.of = of,
                 .now = *c,
                 .at = &at,
                 .call = {.entry = of->entry, .goes_on = true, .outer = t->calls},
                 .end = t->frame.tool_stack};
    uint64_t *slot = (uint64_t *)t->frame.tool_stack - t->frame.in_tool, behind = returns_to(t, slot);
    weave_frame before = t->frame;
    uint8_t vectors[bytes];
    memcpy(vectors, c->vectors, bytes);
    w.call.frame = tool_wrap_fresh(&w.now, of->words);
    w.lowest = lowest_of(t, w.call.frame);
    t->calls = &w.call;
    tool_wrap_call(tool_wrap_original, values, stack, of->words);
    t->calls = w.call.outer;
    memcpy(t->frame.vector_area, vectors, bytes);
    tool_wrap_put_frame(t, &before);
    *slot = behind;
    let_signals_in(t, w.mask);
    return true;
}

void tool_wrap_leave(run_thread *t)
{
    if (t->calls && !t->calls->waits) drop(t);
}
