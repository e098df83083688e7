/* What calling an analysis routine may change, found by decoding it and all that it calls directly.
 *
 * The ABI is trusted for callee-saved registers; everything else is read off the code. Whatever
 * cannot be followed (indirect calls and jumps, unknown instructions, more code than the bound), or changes what
 * is not saved bit by bit (wide vectors, masks, the thread pointer), makes the routine "unknown": all
 * caller-saved registers, the whole vector state and the thread pointer are then taken care of. Results are kept for
 * the life of the process.
 */
#include "weave/weaver.h"

#include "base/map.h"
#include "base/page.h"
#include "base/vec.h"

enum { MAX_INSNS = 4000, INLINE_INSNS = 30 };

/* Of the process, whoever weaves: a routine of the tool is what it is as long as the process lives, engines come and
 * go. Under the engine's lock, like all weaving. */
static inl_map known;

typedef struct walk {
    const weave_isa *isa;
    weave_routine *r;
    inl_map seen;
    INL_VEC(uint64_t) todo;
    unsigned count;
} walk;

isa_result weave_decode_at(uint64_t at, isa_insn *in)
{
    size_t page_rest = INL_PAGE - (at & (INL_PAGE - 1));
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)at; /* a routine of this very process */
    const isa *set = weave_isa_here()->isa;
    isa_result r = set->decode(bytes, page_rest < set->max_insn ? page_rest : set->max_insn, at, in);
    if (r == ISA_TRUNCATED && page_rest < set->max_insn) r = set->decode(bytes, set->max_insn, at, in);
    return r;
}

static void note(const weave_isa *isa, weave_routine *r, const isa_insn *in)
{
    isa_effects fx;
    isa->isa->effects(in, &fx);
    r->regs |= fx.writes & isa->abi.caller_saved;
    if (fx.writes & ~isa->all) r->unknown = true;
    if ((fx.flags_written | fx.flags_undefined) & isa->flags) r->flags = true;
    if (fx.flags_written & ~isa->flags) r->modes = true;
    r->vecs |= fx.vec_writes;
    if (fx.mask_writes) r->unknown = true;
    if (fx.other_writes & (ISA_OTHER_OLD_FP | ISA_OTHER_ALL_VEC | ISA_OTHER_TLS_BASE | ISA_OTHER_BASE_2))
        r->unknown = true;
    if (fx.other_reads & ISA_OTHER_OLD_FP) r->unknown = true;
    if ((fx.other_reads | fx.other_writes) & ISA_OTHER_FP_STATUS) r->fp = true;
    isa->note_routine(r, in, &fx);
}

static bool push_target(walk *w, uint64_t at)
{
    uint64_t ignored;
    if (inl_map_get(&w->seen, at, &ignored)) return true;
    return inl_map_put(&w->seen, at, 1) && inl_vec_push(&w->todo, at);
}

/* Follows straight-line code from `at`; false when the routine must count as unknown. */
static bool follow(walk *w, uint64_t at)
{
    isa_insn in;
    uint64_t ignored;
    for (;; at += in.len) {
        if (w->count++ >= MAX_INSNS || weave_decode_at(at, &in) != ISA_OK) return false;
        if (in.flow != ISA_FLOW_SYSCALL && in.flow != ISA_FLOW_TRAP) note(w->isa, w->r, &in);
        switch (in.flow) {
        case ISA_FLOW_NEXT: break;
        case ISA_FLOW_JUMP: return push_target(w, in.target);
        case ISA_FLOW_COND:
        case ISA_FLOW_COND_REG:
        case ISA_FLOW_CALL:
            if (!push_target(w, in.target)) return false;
            break;
        case ISA_FLOW_SYSCALL: w->r->regs |= w->isa->abi.syscall_writes; break;
        case ISA_FLOW_RETURN:
        case ISA_FLOW_TRAP: return true;
        default: return false;
        }
        if (inl_map_get(&w->seen, at + in.len, &ignored)) return true;
        if (!inl_map_put(&w->seen, at + in.len, 1)) return false;
    }
}

/* Bytes of a leaf that can be copied: one return at its end, jumps forward within, no stack. With `many`,
 * returns and unconditional jumps in the middle too. */
static uint32_t inline_length(const weave_isa *isa, uint64_t fn, bool many)
{
    isa_insn in;
    isa_effects fx;
    uint64_t at = fn, furthest = fn;
    for (unsigned n = 0; n < INLINE_INSNS; n++, at += in.len) {
        if (weave_decode_at(at, &in) != ISA_OK) return 0;
        bool returns = in.flow == ISA_FLOW_RETURN && in.imm_len == 0;
        if (returns && furthest <= at) return (uint32_t)(at - fn) + in.len;
        if (returns && many) continue;
        if (in.flow == ISA_FLOW_COND || (in.flow == ISA_FLOW_JUMP && many)) {
            if (in.target <= at) return 0;
            if (in.target > furthest) furthest = in.target;
        } else if (in.flow != ISA_FLOW_NEXT) {
            return 0;
        }
        isa->isa->effects(&in, &fx);
        if ((fx.reads | fx.writes) & isa->reserved) return 0;
        if (fx.writes & ~isa->abi.caller_saved) return 0;
        if (in.bits & (ISA_BIT_SERIALIZES | ISA_BIT_PRIV)) return 0;
    }
    return 0;
}

static void analyse(uint64_t fn, weave_routine *r)
{
    const weave_isa *isa = weave_isa_here();
    walk w = {.isa = isa, .r = r};
    bool ok = push_target(&w, fn);
    while (ok && w.todo.count) ok = follow(&w, w.todo.items[--w.todo.count]);
    if (!ok) r->unknown = true;
    inl_map_free(&w.seen);
    inl_vec_free(&w.todo);
    if (__builtin_popcount(r->vecs) > 8) r->unknown = true;
    if (r->unknown) {
        r->regs = isa->abi.caller_saved;
        r->flags = r->tls = r->fp = r->modes = true;
        return;
    }
    if (r->tls || r->modes || r->fp || r->vecs) return;
    r->inline_len = inline_length(isa, fn, false);
    r->body_len = inline_length(isa, fn, true);
}

const weave_routine *weave_routine_of(void (*fn)(void))
{
    uint64_t key = (uint64_t)(uintptr_t)fn, value = 0;
    weave_routine *r = inl_map_get(&known, key, &value) ? (weave_routine *)(uintptr_t)value : NULL;
    if (!r && (r = calloc(1, sizeof *r))) {
        analyse(key, r);
        if (!inl_map_put(&known, key, (uint64_t)(uintptr_t)r)) {
            free(r);
            r = NULL;
        }
    }
    return r;
}
