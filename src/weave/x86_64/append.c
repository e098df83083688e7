/* Appending records to thread-private buffers, and code that lies out of line.
 *
 * The buffer's end is checked before the store, so that a buffer that was never allocated (next and
 * limit both 0) asks for its memory first. The check takes no flags where they are live:
 *
 *     mov r, gs:[next]
 *     cmp r, gs:[limit] ; je cold               flags free
 *     mov rcx, gs:[limit] ; not rcx ; lea rcx, [rcx+r+1] ; jrcxz hop     flags live
 * back:
 *     mov [r], field ...  ;  lea r, [r+record] ; mov gs:[next], r
 *
 * The cold code calls `full`, restores the state it was entered with, and goes back.
 */
#include "weave/x86_64/weaver.h"

struct weave_cold {
    weave_cold *next;
    const snippet_buffer *buffer;
    x86_label from;
    uint64_t back;
    unsigned reg;
    weave_state st;
    uint8_t lock[X86_REGS];
    uint32_t temps, at;
    bool after;
    cfg_need need, living;
};

static x86_addr buffer_field(const snippet_buffer *b, size_t offset)
{
    return x86_gs(WEAVE_OFF(buffers) + (int32_t)(b->slot * sizeof(weave_buffer_slot) + offset));
}

/* clang-format off */
static void add_cold(weaver *w, const snippet_buffer *buffer, unsigned reg, x86_label from)
{
    weave_cold *cold = inl_arena_alloc(w->run->arena, sizeof *cold);
    if (!cold) {
        weave_fail(w, INL_ERR_NO_MEMORY, "memory is used up while weaving");
        return;
    }
    *cold = (weave_cold){.buffer = buffer, .from = from, .back = x86_here(w->c), .reg = reg,
                         .st = w->st, .temps = w->temps, .at = w->at, .after = w->after,
                         .need = w->need, .living = w->living};
    for (unsigned r = 0; r < X86_REGS; r++) cold->lock[r] = w->lock[r];
    *w->cold_end = cold;
    w->cold_end = &cold->next;
}
/* clang-format on */

void weave_emit_cold(weaver *w)
{
    for (weave_cold *k = w->cold; k && !w->status; k = k->next) {
        snippet slot = {.kind = SNIPPET_CONST, .value = k->buffer->slot};
        const snippet *args[] = {&slot};
        snippet full = {.kind = SNIPPET_CALL, .nargs = 1, .args = args, .fn = (void (*)(void))k->buffer->full};
        w->st = k->st, w->temps = k->temps, w->at = k->at, w->after = k->after;
        w->need = k->need, w->living = k->living;
        for (unsigned r = 0; r < X86_REGS; r++) w->lock[r] = k->lock[r];
        weave_unlock(w, k->reg);
        weave_bind_cold(w, k->from);
        weave_drop(w, weave_call(w, &full, false));
        weave_arm_end(w, k->st);
        x86_load(w->c, 8, k->reg, buffer_field(k->buffer, offsetof(weave_buffer_slot, next)));
        x86_jmp_to(w->c, k->back);
    }
}

/* Jumps to the cold code when the buffer that r points into is full. */
static void check_limit(weaver *w, const snippet_buffer *buffer, unsigned r)
{
    x86_addr limit = buffer_field(buffer, offsetof(weave_buffer_slot, limit));
    if (weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_alu_rm(w->c, X86_CMP, 8, r, limit);
        x86_label full = x86_jcc_label(w->c, X86_E, 4);
        add_cold(w, buffer, r, full);
        return;
    }
    weave_fixed rcx = weave_fixed_begin(w, X86_RCX);
    x86_load(w->c, 8, X86_RCX, limit);
    x86_not(w->c, 8, X86_RCX);
    x86_lea(w->c, X86_RCX, x86_indexed(X86_RCX, r, 1, 1));
    x86_label hop = x86_jrcxz_label(w->c);
    x86_label on = x86_jmp_label(w->c, 1);
    x86_bind(w->c, hop);
    x86_label full = x86_jmp_label(w->c, 4);
    x86_bind(w->c, on);
    add_cold(w, buffer, r, full);
    weave_fixed_end(w, rcx);
}

static void put_field(weaver *w, weave_val v, unsigned size, unsigned r, int32_t at)
{
    if (v.kind == WEAVE_IMM && x86_store_imm(w->c, size, x86_at(r, at), (int64_t)v.imm)) return;
    weave_in_reg(w, &v, 0);
    x86_store(w->c, size, x86_at(r, at), v.reg);
    weave_drop(w, v);
}

void weave_append(weaver *w, const snippet *s)
{
    const snippet_buffer *buffer = s->buffer;
    if (buffer->slot >= WEAVE_BUFFERS) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "too many buffers");
        return;
    }
    for (unsigned i = 0; i < s->nargs; i++) {
        if (!snippet_has(s->args[i], SNIPPET_APPEND)) continue;
        weave_fail(w, INL_ERR_UNSUPPORTED, "a record's field cannot itself append");
        return;
    }
    unsigned r = weave_take(w, WEAVE_BIT(X86_RCX), ISA_NO_REG);
    x86_load(w->c, 8, r, buffer_field(buffer, offsetof(weave_buffer_slot, next)));
    check_limit(w, buffer, r);
    int32_t at = 0;
    for (unsigned i = 0; i < s->nargs; i++) {
        put_field(w, weave_eval(w, s->args[i], ISA_NO_REG), s->arg_sizes[i], r, at);
        at += s->arg_sizes[i];
    }
    x86_lea(w->c, r, x86_at(r, (int32_t)buffer->record_size));
    x86_store(w->c, 8, buffer_field(buffer, offsetof(weave_buffer_slot, next)), r);
    weave_unlock(w, r);
}
