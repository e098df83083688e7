/* The procedures that a thread is in (inlay/frames.h). No state but what the caller hands in, no memory taken: it runs
 * in analysis routines and in the reader of traces alike.
 *
 * Frames are in one array, each with the index of the one below; stacks hold the index of their top. Of the stacks that
 * run each but the first is on top of another, `under`; the innermost is `now`. A frame's `start` is moved on by the
 * time that its stack has waited, so now - start is its time whenever its stack runs. */
#include <inlay/frames.h>

void inlay_frames_init(inlay_frames *f, inlay_frame *frames, uint32_t room,
                       void (*closed)(inlay_frames *, const inlay_frame *, uint64_t now, void *arg), void *arg)
{
    *f = (inlay_frames){.closed = closed, .arg = arg, .frames = frames, .room = room, .used = 1};
}

static inlay_frame_stack *stack(inlay_frames *f, uint32_t number) { return &f->stacks[number - 1]; }
static inlay_frame *top_of(inlay_frames *f, const inlay_frame_stack *s) { return &f->frames[s->top]; }

const inlay_frame *inlay_frames_top(const inlay_frames *f)
{
    for (uint32_t n = f->now; n; n = f->stacks[n - 1].under)
        if (f->stacks[n - 1].top) return &f->frames[f->stacks[n - 1].top];
    return NULL;
}

const inlay_frame *inlay_frames_below(const inlay_frames *f, const inlay_frame *frame)
{
    if (frame->below) return &f->frames[frame->below];
    uint32_t n = f->now; /* its stack is the first whose lowest it is */
    for (bool passed = false; n; n = f->stacks[n - 1].under) {
        const inlay_frame_stack *s = &f->stacks[n - 1];
        if (passed && s->top) return &f->frames[s->top];
        uint32_t at = s->top;
        while (at && f->frames[at].below) at = f->frames[at].below;
        passed |= at && &f->frames[at] == frame;
    }
    return NULL;
}

/* --- frames of one stack --- */

static void pop(inlay_frames *f, inlay_frame_stack *s, uint64_t now)
{
    uint32_t at = s->top;
    inlay_frame *frame = &f->frames[at];
    if (f->closed) f->closed(f, frame, now, f->arg);
    if (frame->below) f->frames[frame->below].inner += now - frame->start;
    s->top = frame->below;
    frame->below = f->spare;
    f->spare = at;
}

/* What waits is closed as of then. */
static void close_waiting(inlay_frames *f, inlay_frame_stack *s)
{
    while (s->top) {
        pop(f, s, s->since);
        f->left++;
    }
}

/* Stacks that ran on top of a frame which is left: nothing comes back to them. A frame of the same number that began
 * after they had begun to wait is another one. */
static void abandon_above(inlay_frames *f, uint32_t at)
{
    for (uint32_t n = 1; n <= f->seen; n++) {
        inlay_frame_stack *s = stack(f, n);
        if (s->on == at && !s->runs && f->frames[at].start < s->since) close_waiting(f, s);
    }
}

/* Frames whose procedure began at `sp` or below it are not there any more. */
static void drop_up_to(inlay_frames *f, inlay_frame_stack *s, uint64_t sp, uint64_t now)
{
    while (s->top && top_of(f, s)->sp <= sp) {
        abandon_above(f, s->top);
        pop(f, s, now);
        f->left++;
    }
}

/* How far a stack pointer is from a stack's frames; 0: among them. Stacks do not overlap, and whoever is called begins
 * right below its caller, so the nearest is the one that it is on. One without frames is remembered by where they
 * began. */
static uint64_t distance(inlay_frames *f, const inlay_frame_stack *s, uint64_t sp)
{
    uint64_t low = s->top ? top_of(f, s)->sp : s->high;
    if (sp >= low) return sp <= s->high ? 0 : UINT64_MAX;
    return low - sp <= (s->runs ? INLAY_FRAME_NEAR : INLAY_FRAME_NEXT) ? low - sp : UINT64_MAX;
}

/* --- stacks --- */

/* The time of a stack that runs no longer was its caller's caller's. */
static void stop(inlay_frames *f, uint64_t now)
{
    inlay_frame_stack *s = stack(f, f->now);
    f->now = s->under;
    uint32_t n = f->now;
    while (n && !stack(f, n)->top) n = stack(f, n)->under;
    if (n) top_of(f, stack(f, n))->inner += now - s->since;
    s->runs = false;
    s->under = 0;
    s->since = now;
}

static void begin(inlay_frames *f, uint32_t number, uint64_t now)
{
    inlay_frame_stack *s = stack(f, number);
    for (uint32_t at = s->top; at; at = f->frames[at].below) f->frames[at].start += now - s->since;
    s->under = f->now;
    s->on = f->now ? stack(f, f->now)->top : 0;
    s->since = now;
    s->runs = true;
    f->now = number;
}

/* One that runs below: what is above it waits. One that waits: it goes on, on top of what runs. */
static void switch_to(inlay_frames *f, uint32_t number, uint64_t now)
{
    if (stack(f, number)->runs)
        while (f->now != number) stop(f, now);
    else begin(f, number, now);
}

/* A place that has not been used, one without frames, or that of the stack that has waited longest; 0: all run. */
static uint32_t place(inlay_frames *f)
{
    uint32_t oldest = 0;
    if (f->seen < INLAY_FRAME_STACKS) return f->seen + 1;
    for (uint32_t n = 1; n <= INLAY_FRAME_STACKS; n++) {
        const inlay_frame_stack *s = stack(f, n);
        if (s->runs) continue;
        if (!s->top) return n;
        if (!oldest || s->since < stack(f, oldest)->since) oldest = n;
    }
    if (oldest) close_waiting(f, stack(f, oldest));
    return oldest;
}

/* The stack that an entry with this stack pointer is on; 0: there is no room for another. */
static uint32_t stack_for(inlay_frames *f, uint64_t sp, uint64_t now)
{
    while (f->now && !stack(f, f->now)->top && stack(f, f->now)->under) stop(f, now);
    uint32_t best = f->now;
    uint64_t least = best ? distance(f, stack(f, best), sp) : UINT64_MAX;
    for (uint32_t n = 1; n <= f->seen && least; n++) {
        uint64_t apart = distance(f, stack(f, n), sp);
        if (apart >= least) continue;
        best = n;
        least = apart;
    }
    if (least != UINT64_MAX) {
        if (best != f->now) switch_to(f, best, now);
        return best;
    }
    inlay_frame_stack *s = f->now ? stack(f, f->now) : NULL;
    bool grows = s && (!s->top || (sp > s->high && sp - s->high <= INLAY_FRAME_NEAR));
    if (!grows) {
        uint32_t n = place(f);
        if (!n) return 0;
        *stack(f, n) = (inlay_frame_stack){0};
        if (n > f->seen) f->seen = n;
        begin(f, n, now);
    }
    stack(f, f->now)->high = sp;
    return f->now;
}

inlay_frame *inlay_frames_enter(inlay_frames *f, uint32_t proc, uint64_t sp, uint64_t now)
{
    uint32_t number = stack_for(f, sp, now);
    inlay_frame_stack *s = number ? stack(f, number) : NULL;
    if (s) drop_up_to(f, s, sp, now);
    uint32_t at = f->spare;
    if (!s || (!at && f->used == f->room)) {
        f->full++;
        return NULL;
    }
    if (at) f->spare = f->frames[at].below;
    else at = f->used++;
    f->frames[at] = (inlay_frame){.sp = sp, .start = now, .proc = proc, .below = s->top};
    s->top = at;
    return &f->frames[at];
}

static bool has_frame(inlay_frames *f, const inlay_frame_stack *s, uint64_t sp)
{
    uint32_t at = s->top;
    while (at && f->frames[at].sp < sp) at = f->frames[at].below;
    return at && f->frames[at].sp == sp;
}

/* A stack with a frame that began at `sp`. */
static bool find(inlay_frames *f, uint64_t sp, uint64_t now)
{
    if (f->now && has_frame(f, stack(f, f->now), sp)) return true;
    for (uint32_t n = 1; n <= f->seen; n++) {
        if (n == f->now || !has_frame(f, stack(f, n), sp)) continue;
        switch_to(f, n, now);
        return true;
    }
    return false;
}

static bool is_stubs(const inlay_frame *top, uint32_t proc, uint64_t sp)
{
    return top && top->proc == proc && top->sp - sp <= INLAY_FRAME_STUB;
}

/* A jump to a part of the procedure that lies elsewhere, in the midst of it: what was called is over. Or one of a call
 * that began before. */
static void no_exit(inlay_frames *f, inlay_frame_stack *s, uint64_t sp, uint64_t now)
{
    if (!s || distance(f, s, sp) == UINT64_MAX) f->unmatched++;
    else drop_up_to(f, s, sp, now);
}

void inlay_frames_leave(inlay_frames *f, uint32_t proc, bool is_stub, uint64_t sp, uint64_t now)
{
    inlay_frame_stack *s = f->now ? stack(f, f->now) : NULL;
    inlay_frame *top = s && s->top ? top_of(f, s) : NULL;
    if (is_stub && is_stubs(top, proc, sp)) {
        pop(f, s, now);
        return;
    }
    if (!top || top->sp != sp) {
        if (!find(f, sp, now)) {
            no_exit(f, s, sp, now);
            return;
        }
        s = stack(f, f->now);
        drop_up_to(f, s, sp - 1, now);
    }
    pop(f, s, now);
    if (!s->top && s->under) stop(f, now);
}

void inlay_frames_end(inlay_frames *f, uint64_t now)
{
    while (f->now) {
        inlay_frame_stack *s = stack(f, f->now);
        while (s->top) {
            pop(f, s, now);
            f->left++;
        }
        stop(f, now);
    }
    for (uint32_t n = 1; n <= f->seen; n++) close_waiting(f, stack(f, n));
}
