/* Appending records to thread-private buffers, and code that lies out of line.
 *
 * The buffer's end is checked before the store, so that a buffer that was never allocated (next and
 * limit both 0) asks for its memory first. The check takes no flags where they are live:
 *
 *     r := next
 *     to the cold code if r = limit
 * back:
 *     [r] := field ... ; next := r + record
 *
 * The cold code calls `full`, restores the state it was entered with, and goes back.
 */
#include "weave/buffer.h"
#include "weave/weaver.h"

struct weave_cold {
    weave_cold *next;
    const snippet_buffer *buffer;
    isa_label from;
    uint64_t back;
    unsigned reg;
    bool in_cold; /* it is itself in code out of line: on a taken edge */
    weave_spot spot;
};

/* Where a field of the buffer lies in the frame. */
static int32_t field(const weaver *w, const snippet_buffer *b, size_t offset)
{
    return w->isa->frame.buffers + (int32_t)(b->slot * sizeof(weave_buffer_slot) + offset);
}

void weave_append_cold(weaver *w, const snippet_buffer *buffer, unsigned reg, isa_label from)
{
    weave_cold *cold = inl_arena_alloc(w->run->arena, sizeof *cold);
    if (!cold) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    *cold = (weave_cold){.buffer = buffer,
                         .from = from,
                         .back = isa_here(w->c),
                         .reg = reg,
                         .in_cold = w->main != NULL,
                         .spot = weave_spot_of(w)};
    *w->cold_end = cold;
    w->cold_end = &cold->next;
}

void weave_emit_cold(weaver *w)
{
    for (weave_cold *k = w->cold; k && !w->status; k = k->next) {
        snippet slot = {.kind = SNIPPET_CONST, .value = k->buffer->slot};
        const snippet *args[] = {&slot};
        snippet full = {.kind = SNIPPET_CALL, .nargs = 1, .args = args, .fn = (void (*)(void))k->buffer->full};
        weave_spot_return(w, &k->spot);
        weave_unlock(w, k->reg);
        if (k->in_cold) w->isa->bind(w->c, k->from);
        else weave_bind_cold(w, k->from);
        weave_drop(w, weave_call(w, &full, false));
        weave_arm_end(w, k->spot.st);
        w->isa->frame_load(w, k->reg, field(w, k->buffer, offsetof(weave_buffer_slot, next)));
        w->isa->jump_to(w->c, k->back);
    }
}

/* Jumps to the cold code when the buffer that r points into is full. */
static void check_limit(weaver *w, const snippet_buffer *buffer, unsigned r)
{
    int32_t limit = field(w, buffer, offsetof(weave_buffer_slot, limit));
    if (w->opt->appends_ahead && w->isa->branch_if_beyond && buffer->slack) { /* others may have gone behind it */
        weave_append_cold(w, buffer, r, w->isa->branch_if_beyond(w, r, limit));
        return;
    }
    weave_fixed held;
    isa_label full = w->isa->branch_if_full(w, r, limit, &held);
    weave_append_cold(w, buffer, r, full);
    if (held.reg != ISA_NO_REG) weave_fixed_end(w, held);
}

static void put_field(weaver *w, weave_val v, unsigned size, unsigned r, int32_t at)
{
    if (v.kind == WEAVE_IMM && w->isa->store_constant(w->c, size, r, at, v.imm)) return;
    weave_in_reg(w, &v, 0);
    w->isa->store(w->c, size, r, at, v.reg);
    weave_drop(w, v);
}

void weave_append(weaver *w, const snippet *s)
{
    const snippet_buffer *buffer = s->buffer;
    if (buffer->slot >= w->isa->frame.buffer_count) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "too many buffers");
        return;
    }
    for (unsigned i = 0; i < s->nargs; i++) {
        if (!snippet_has(s->args[i], SNIPPET_APPEND)) continue;
        weave_fail(w, INL_ERR_UNSUPPORTED, "a record's field cannot itself append");
        return;
    }
    unsigned r = weave_take(w, w->isa->full_borrows, ISA_NO_REG);
    w->isa->frame_load(w, r, field(w, buffer, offsetof(weave_buffer_slot, next)));
    check_limit(w, buffer, r);
    int32_t at = 0;
    for (unsigned i = 0; i < s->nargs; i++) {
        put_field(w, weave_eval(w, s->args[i], ISA_NO_REG), s->arg_sizes[i], r, at);
        at += s->arg_sizes[i];
    }
    w->isa->add(w->c, r, r, (int32_t)buffer->record_size);
    w->isa->frame_store(w, field(w, buffer, offsetof(weave_buffer_slot, next)), r);
    weave_unlock(w, r);
}
