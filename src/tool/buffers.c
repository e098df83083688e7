/* Trace buffers.
 *
 * Each thread's frame has a slot for each buffer: next, limit, base. Woven code appends at `next`,
 * and calls the buffer's `full` first when next == limit; so a thread that never appended (all three
 * zero) gets its memory at its first record. What stands in [base, next) has not been handed out.
 *
 * At the end of the process the thread that ends it empties the buffers of all others, which may
 * still run: `flushing` keeps both from handing out the same records, and after `done` is set a
 * thread's further records are dropped.
 *
 * A buffer that is fed has its memory from the tool, which keeps what is in it: nothing is handed out.
 */
#include "tool/state.h"
#include INL_ARCH_HEADER(run, abi)

#include <inlay/buffer.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_AHEAD = 8192, MOST_RECORDS_AHEAD = 255 }; /* bytes and records that a stretch of code may append at once */

static tool_buffers *state(void) { return &tool_now->buffers; }
static inlay_buffer *table(void) { return state()->table ? state()->table : state()->own; }

static uint64_t take_memory(unsigned slot)
{
    inl_lock_take(&tool_now->locks.small);
    uint64_t *spare = state()->spare, p = spare[slot];
    if (p) spare[slot] = *(uint64_t *)p;
    inl_lock_release(&tool_now->locks.small);
    const inlay_buffer *b = &table()[slot];
    return p ? p : (uint64_t)(uintptr_t)tool_alloc(b->bytes + (size_t)b->woven.slack * b->woven.record_size);
}

static void give_memory(unsigned slot, uint64_t p)
{
    inl_lock_take(&tool_now->locks.small);
    *(uint64_t *)p = state()->spare[slot];
    state()->spare[slot] = p;
    inl_lock_release(&tool_now->locks.small);
}

/* As many records at once as the buffer was made for, which leaves those behind its end; `all`: these, too. */
static void hand_out(run_thread *t, unsigned slot, bool all)
{
    weave_buffer_slot *s = &t->frame.buffers[slot];
    const inlay_buffer *b = &table()[slot];
    if (!s->base || s->next == s->base || b->next) return;
    tool_here.owner = t;
    uint64_t left = s->next - s->base;
    TOOL_DOING(ON_BUFFER_FULL)
    for (; left >= b->bytes || (left && all); left = s->next - s->base) {
        uint64_t bytes = left < b->bytes ? left : b->bytes;
        b->full((const void *)s->base, bytes / b->woven.record_size, (unsigned)t->frame.thread_number, b->arg);
        s->next = s->base + left - bytes;
        memmove((void *)s->base, (const void *)(s->base + bytes), left - bytes);
    }
    tool_here.owner = NULL;
}

static size_t count_of(const weave_buffer_slot *s, const inlay_buffer *b)
{
    return (s->next - s->base) / b->woven.record_size;
}

static void feed(run_thread *t, unsigned slot)
{
    weave_buffer_slot *s = &t->frame.buffers[slot];
    const inlay_buffer *b = &table()[slot];
    size_t room = 0;
    uint64_t begun = run_cycles();
    TOOL_DOING(ON_BUFFER_FULL)
    s->base = (uint64_t)(uintptr_t)b->next((void *)s->base, count_of(s, b), (unsigned)t->frame.thread_number, &room,
                                           b->arg);
    if (!s->base || !room) tool_fail(TOOL_EXIT_FAILED, "no memory for a trace buffer");
    s->next = s->base;
    s->limit = s->base + room * b->woven.record_size;
    if (!t->no_cycles) t->frame.own_cycles += run_cycles() - begun;
}

/* The thread ends. */
static void take_back(run_thread *t, unsigned slot)
{
    weave_buffer_slot *s = &t->frame.buffers[slot];
    const inlay_buffer *b = &table()[slot];
    TOOL_DOING(ON_BUFFER_FULL)
    b->next((void *)s->base, count_of(s, b), (unsigned)t->frame.thread_number, NULL, b->arg);
}

/* Called by woven code, in the thread. */
static void when_full(uint32_t slot)
{
    run_thread *t = run_self();
    weave_buffer_slot *s = &t->frame.buffers[slot];
    if (table()[slot].next) {
        feed(t, slot);
        return;
    }
    tool_thread *own = tool_thread_of(t);
    if (!s->base) {
        s->base = s->next = take_memory(slot);
        if (!s->base || !own) tool_fail(TOOL_EXIT_FAILED, "out of memory for a trace buffer");
        s->limit = s->base + table()[slot].bytes;
        return;
    }
    inl_lock_take(&own->flushing);
    if (own->done) s->next = s->base;
    else hand_out(t, slot, false);
    inl_lock_release(&own->flushing);
}

/* Carried: main makes its buffers again, with the same numbers. */
void tool_buffers_attach(void)
{
    if (tool_heap()->roots[ROOT_BUFFERS]) state()->table = tool_heap()->roots[ROOT_BUFFERS];
}

void tool_buffers_begin(void)
{
    if (state()->count < tool_heap()->numbers[ROOT_BUFFERS])
        state()->count = (unsigned)tool_heap()->numbers[ROOT_BUFFERS];
}

static bool make_table_travel(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap || heap->roots[ROOT_BUFFERS]) return true;
    inlay_buffer *copy = tool_carried_alloc(sizeof state()->own);
    if (!copy) return false;
    heap->roots[ROOT_BUFFERS] = state()->table = copy;
    return true;
}

static inlay_buffer *make(unsigned record_size, unsigned records, bool is_whole, void *arg)
{
    if (!record_size || !records || !is_whole || state()->count == WEAVE_BUFFERS) {
        tool_say(state()->count == WEAVE_BUFFERS ? "more than %d trace buffers"
                                                 : "a trace buffer of nothing (at most %d)",
                 WEAVE_BUFFERS);
        return NULL;
    }
    if (!make_table_travel()) return NULL;
    inlay_buffer *b = &table()[state()->count];
    b->woven = (snippet_buffer){state()->count++, record_size, when_full, 0};
    b->bytes = (size_t)record_size * (records > 8 ? records : 8);
    b->full = NULL;
    b->next = NULL;
    b->arg = arg;
    if (tool_heap() && tool_heap()->numbers[ROOT_BUFFERS] < state()->count)
        tool_heap()->numbers[ROOT_BUFFERS] = state()->count;
    return b;
}

inlay_buffer *inlay_buffer_new(unsigned record_size, unsigned records, tool_full_callback *full, void *arg)
{
    inlay_buffer *b = make(record_size, records, full, arg);
    if (!b) return NULL;
    b->full = full;
    b->woven.slack = MOST_AHEAD / record_size < MOST_RECORDS_AHEAD ? MOST_AHEAD / record_size : MOST_RECORDS_AHEAD;
    return b;
}

inlay_buffer *inlay_buffer_fed(unsigned record_size, tool_next_callback *next, void *arg)
{
    inlay_buffer *b = make(record_size, 1, next, arg);
    if (b) b->next = next;
    return b;
}

inlay_expr inlay_append_array(inlay_buffer *b, unsigned count, const inlay_field *fields)
{
    if (!b) tool_mistake("a record for no buffer");
    else if (count == 0 || count > SNIPPET_MAX_ARGS)
        tool_mistake("a record of %u fields: from 1 to %u", count, (unsigned)SNIPPET_MAX_ARGS);
    else if (!fields) tool_mistake("a record whose fields are NULL");
    if (!b || !fields || count == 0 || count > SNIPPET_MAX_ARGS) return NULL;
    const snippet *args[SNIPPET_MAX_ARGS];
    uint8_t sizes[SNIPPET_MAX_ARGS];
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!fields[i].value) {
            tool_mistake("field %u of a record's %u has no value", i + 1, count);
            return NULL;
        }
        args[i] = fields[i].value;
        sizes[i] = (uint8_t)(fields[i].size < UINT8_MAX ? fields[i].size : UINT8_MAX); /* which is refused */
        sum += fields[i].size;
    }
    if (sum != b->woven.record_size) {
        tool_mistake("the fields of a trace record have %u bytes, the record %u", sum, b->woven.record_size);
        return NULL;
    }
    return tool_snippet_of((snippet){
        .kind = SNIPPET_APPEND, .nargs = (uint8_t)count, .args = args, .arg_sizes = sizes, .buffer = &b->woven});
}

static void flush(run_thread *t, bool last)
{
    tool_thread *own = state()->count ? tool_thread_of(t) : NULL;
    if (!own) return;
    inl_lock_take(&own->flushing);
    for (unsigned i = 0; i < state()->count && !own->done; i++) hand_out(t, i, true);
    own->done = last;
    inl_lock_release(&own->flushing);
}

void tool_buffers_flush(run_thread *t) { flush(t, false); }

/* The list is copied under the lock, which the callbacks may want themselves. A thread that ends
 * meanwhile empties its own buffers; its block stays mapped. */
static void flush_all_but(const run_thread *but, bool last)
{
    bool entered = tool_enter();
    size_t count = 0, n = 0;
    for (run_thread *t = run_here.threads; t; t = t->next) count++;
    run_thread **list = calloc(count + 1, sizeof *list);
    for (run_thread *t = run_here.threads; t && list; t = t->next)
        if (t != but) list[n++] = t;
    tool_leave(entered);
    for (size_t i = 0; i < n; i++) flush(list[i], last);
    free(list);
}

void tool_buffers_flush_all(void)
{
    if (state()->count) flush_all_but(NULL, true);
}

/* Before an exec, which ends the other threads. */
void tool_buffers_flush_others(run_thread *t)
{
    if (state()->count) flush_all_but(t, false);
}

void tool_buffers_end(run_thread *t)
{
    flush(t, false);
    for (unsigned i = 0; i < state()->count; i++) {
        weave_buffer_slot *s = &t->frame.buffers[i];
        if (s->base && table()[i].next) take_back(t, i);
        else if (s->base) give_memory(i, s->base);
        *s = (weave_buffer_slot){0};
    }
}

/* What the parent's thread had not handed out is the parent's. */
void tool_buffers_fork_child(run_thread *t)
{
    for (unsigned i = 0; i < state()->count; i++) {
        weave_buffer_slot *s = &t->frame.buffers[i];
        if (table()[i].next) *s = (weave_buffer_slot){0}; /* the parent's, too, if it is shared */
        else s->next = s->base;
    }
    tool_thread *own = t->client;
    if (own) inl_lock_reset(&own->flushing);
}
