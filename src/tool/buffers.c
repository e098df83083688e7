/* Trace buffers.
 *
 * Each thread's frame has a slot for each buffer: next, limit, base. Woven code appends at `next`,
 * and calls the buffer's `full` first when next == limit; so a thread that never appended (all three
 * zero) gets its memory at its first record. What stands in [base, next) has not been handed out.
 *
 * At the end of the process the thread that ends it empties the buffers of all others, which may
 * still run: `flushing` keeps both from handing out the same records, and after `done` is set a
 * thread's further records are dropped.
 */
#include "tool/state.h"

#include <inlay/buffer.h>

#include <stdlib.h>
#include <string.h>

typedef void full_callback(const void *records, size_t count, unsigned thread_id, void *arg);

struct inlay_buffer {
    snippet_buffer woven;
    size_t bytes;
    full_callback *full;
    void *arg;
};

/* The table travels with the carried heap, in case a callback made one of them. */
static inlay_buffer own_buffers[WEAVE_BUFFERS], *buffers = own_buffers;
static unsigned buffer_count;

/* Memory of ended threads, by buffer; each piece begins with the next one's address. */
static uint64_t spare[WEAVE_BUFFERS];

static uint64_t take_memory(unsigned slot)
{
    inl_lock_take(&tool_small_lock);
    uint64_t p = spare[slot];
    if (p) spare[slot] = *(uint64_t *)p;
    inl_lock_release(&tool_small_lock);
    return p ? p : (uint64_t)(uintptr_t)tool_alloc(buffers[slot].bytes);
}

static void give_memory(unsigned slot, uint64_t p)
{
    inl_lock_take(&tool_small_lock);
    *(uint64_t *)p = spare[slot];
    spare[slot] = p;
    inl_lock_release(&tool_small_lock);
}

static void hand_out(run_thread *t, unsigned slot)
{
    weave_buffer_slot *s = &t->frame.buffers[slot];
    const inlay_buffer *b = &buffers[slot];
    if (!s->base || s->next == s->base) return;
    b->full((const void *)s->base, (s->next - s->base) / b->woven.record_size, (unsigned)t->frame.thread_number,
            b->arg);
    s->next = s->base;
}

/* Called by woven code, in the thread. */
static void when_full(uint32_t slot)
{
    run_thread *t = run_self();
    weave_buffer_slot *s = &t->frame.buffers[slot];
    tool_thread *own = tool_thread_of(t);
    if (!s->base) {
        s->base = s->next = take_memory(slot);
        if (!s->base || !own) tool_fail(TOOL_EXIT_FAILED, "out of memory for a trace buffer");
        s->limit = s->base + buffers[slot].bytes;
        return;
    }
    inl_lock_take(&own->flushing);
    if (own->done) s->next = s->base;
    else hand_out(t, slot);
    inl_lock_release(&own->flushing);
}

/* Carried: main makes its buffers again, with the same numbers. */
void tool_buffers_attach(void)
{
    if (tool_heap()->roots[ROOT_BUFFERS]) buffers = tool_heap()->roots[ROOT_BUFFERS];
}

void tool_buffers_begin(void)
{
    if (buffer_count < tool_heap()->numbers[ROOT_BUFFERS]) buffer_count = (unsigned)tool_heap()->numbers[ROOT_BUFFERS];
}

static bool make_table_travel(void)
{
    tool_heap_root *heap = tool_heap();
    if (!heap || heap->roots[ROOT_BUFFERS]) return true;
    inlay_buffer *table = tool_carried_alloc(sizeof own_buffers);
    if (!table) return false;
    heap->roots[ROOT_BUFFERS] = buffers = table;
    return true;
}

inlay_buffer *inlay_buffer_new(unsigned record_size, unsigned records, full_callback *full, void *arg)
{
    if (!record_size || !records || !full || buffer_count == WEAVE_BUFFERS) {
        tool_say(buffer_count == WEAVE_BUFFERS ? "more than %d trace buffers"
                                               : "a trace buffer of nothing (at most %d)",
                 WEAVE_BUFFERS);
        return NULL;
    }
    if (!make_table_travel()) return NULL;
    inlay_buffer *b = &buffers[buffer_count];
    b->woven = (snippet_buffer){buffer_count++, record_size, when_full};
    b->bytes = (size_t)record_size * (records > 8 ? records : 8);
    b->full = full;
    b->arg = arg;
    if (tool_heap() && tool_heap()->numbers[ROOT_BUFFERS] < buffer_count)
        tool_heap()->numbers[ROOT_BUFFERS] = buffer_count;
    return b;
}

inlay_expr inlay_append_array(inlay_buffer *b, unsigned count, const inlay_field *fields)
{
    if (!b || count == 0 || count > SNIPPET_MAX_ARGS) return NULL;
    snippet *s = tool_snippet_alloc(sizeof *s);
    const snippet **args = tool_snippet_alloc(count * sizeof *args);
    uint8_t *sizes = tool_snippet_alloc(count);
    if (!s || !args || !sizes) return NULL;
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!fields[i].value) return NULL;
        args[i] = fields[i].value;
        sizes[i] = (uint8_t)fields[i].size;
        sum += fields[i].size;
    }
    if (sum != b->woven.record_size) {
        tool_say_limited("the fields of a trace record have %u bytes, the record %u", sum, b->woven.record_size);
        return NULL;
    }
    s->kind = SNIPPET_APPEND;
    s->nargs = (uint8_t)count;
    s->args = args;
    s->arg_sizes = sizes;
    s->buffer = &b->woven;
    return s;
}

static void flush(run_thread *t, bool last)
{
    tool_thread *own = buffer_count ? tool_thread_of(t) : NULL;
    if (!own) return;
    inl_lock_take(&own->flushing);
    for (unsigned i = 0; i < buffer_count && !own->done; i++) hand_out(t, i);
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
    if (buffer_count) flush_all_but(NULL, true);
}

/* Before an exec, which ends the other threads. */
void tool_buffers_flush_others(run_thread *t)
{
    if (buffer_count) flush_all_but(t, false);
}

void tool_buffers_end(run_thread *t)
{
    flush(t, false);
    for (unsigned i = 0; i < buffer_count; i++) {
        weave_buffer_slot *s = &t->frame.buffers[i];
        if (s->base) give_memory(i, s->base);
        *s = (weave_buffer_slot){0};
    }
}

/* What the parent's thread had not handed out is the parent's. */
void tool_buffers_fork_child(run_thread *t)
{
    for (unsigned i = 0; i < buffer_count; i++) t->frame.buffers[i].next = t->frame.buffers[i].base;
    tool_thread *own = t->client;
    if (own) inl_lock_reset(&own->flushing);
}
