/* Counters and buffers in the frame. No flags take part. */
#include "weave/aarch64/machine.h"

void weave_a64_count(weaver *w, int32_t offset, int64_t amount)
{
    isa_code *c = w->c;
    unsigned base = weave_take(w, 0, ISA_NO_REG), t = weave_take(w, 0, ISA_NO_REG);
    bool small = amount > -(1 << 24) && amount < 1 << 24;
    unsigned by = small ? ISA_NO_REG : weave_take(w, 0, ISA_NO_REG);
    a64_addr at = a64_at(base, weave_a64_frame(c, base, offset));
    a64_load(c, 8, t, at);
    if (small) {
        a64_add_ri(c, t, t, amount);
    } else {
        a64_mov_ri(c, by, (uint64_t)amount);
        a64_arith_rr(c, A64_ARITH_ADD, 8, t, t, by, 0);
        weave_unlock(w, by);
    }
    a64_store(c, 8, at, t);
    weave_unlock(w, t);
    weave_unlock(w, base);
}

void weave_a64_count_value(weaver *w, int32_t offset, weave_val v)
{
    isa_code *c = w->c;
    unsigned base = weave_take(w, 0, ISA_NO_REG), t = weave_take(w, 0, ISA_NO_REG);
    a64_addr at = a64_at(base, weave_a64_frame(c, base, offset));
    a64_load(c, 8, t, at);
    a64_arith_rr(c, A64_ARITH_ADD, 8, t, t, v.reg, 0);
    a64_store(c, 8, at, t);
    weave_unlock(w, t);
    weave_unlock(w, base);
    weave_drop(w, v);
}

/*     again: ldaxr old, [base] ; add sum, old, reg ; stlxr status, sum, [base] ; cbnz status, again */
void weave_a64_add_to(weaver *w, unsigned size, unsigned base, unsigned reg)
{
    isa_code *c = w->c;
    unsigned old = weave_take(w, 0, ISA_NO_REG), sum = weave_take(w, 0, ISA_NO_REG);
    unsigned status = weave_take(w, 0, ISA_NO_REG);
    uint64_t again = isa_here(c);
    a64_load_exclusive(c, size, old, base);
    a64_arith_rr(c, A64_ARITH_ADD, 8, sum, old, reg, 0);
    a64_store_exclusive(c, size, status, base, sum);
    a64_cbz(c, true, 4, status, again);
    a64_mov_rr(c, 8, reg, old);
    weave_unlock(w, status);
    weave_unlock(w, sum);
    weave_unlock(w, old);
}

isa_label weave_a64_branch_if_full(weaver *w, unsigned reg, int32_t limit, weave_fixed *held)
{
    held->reg = ISA_NO_REG;
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    weave_a64_frame_load(w, t, limit);
    a64_arith_rr(w->c, A64_ARITH_SUB, 8, t, t, reg, 0);
    isa_label full = weave_a64_branch_if_zero(w, t);
    weave_unlock(w, t);
    return full;
}
