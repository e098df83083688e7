/* Counters and buffers in the frame: memory takes part in arithmetic where the flags are free; else a register and
 * lea do. */
#include "weave/x86_64/machine.h"

void weave_x86_count(weaver *w, int32_t offset, int64_t amount)
{
    x86_addr at = x86_gs(offset);
    if (amount == (int32_t)amount && weave_flags_free(w)) {
        weave_flags_clobber(w);
        if (amount == 1) x86_inc_m(w->c, 8, at);
        else x86_alu_mi(w->c, X86_ADD, 8, at, amount);
        return;
    }
    unsigned t = weave_take(w, 0, ISA_NO_REG);
    if (amount == (int32_t)amount) {
        x86_load(w->c, 8, t, at);
        x86_lea(w->c, t, x86_at(t, (int32_t)amount));
        x86_store(w->c, 8, at, t);
    } else {
        weave_flags_clobber(w);
        x86_mov_ri(w->c, t, (uint64_t)amount);
        x86_alu_mr(w->c, X86_ADD, 8, at, t);
    }
    weave_unlock(w, t);
}

void weave_x86_count_value(weaver *w, int32_t offset, weave_val v)
{
    x86_addr at = x86_gs(offset);
    if (weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_alu_mr(w->c, X86_ADD, 8, at, v.reg);
    } else {
        unsigned t = weave_take(w, 0, ISA_NO_REG);
        x86_load(w->c, 8, t, at);
        x86_lea(w->c, t, x86_indexed(v.reg == X86_RSP ? v.reg : t, v.reg == X86_RSP ? t : v.reg, 1, 0));
        x86_store(w->c, 8, at, t);
        weave_unlock(w, t);
    }
    weave_drop(w, v);
}

void weave_x86_add_to(weaver *w, unsigned size, unsigned base, unsigned reg)
{
    weave_flags_clobber(w);
    x86_lock_xadd(w->c, size, x86_at(base, 0), reg);
    if (size < 4) x86_movzx_rr(w->c, size, reg, reg);
}

/*     cmp r, gs:[limit] ; je full                                              flags free
 *     mov rcx, gs:[limit] ; not rcx ; lea rcx, [rcx+r+1] ; jrcxz hop           flags live
 *     jmp on ; hop: jmp full ; on:
 */
isa_label weave_x86_branch_if_full(weaver *w, unsigned reg, int32_t limit, weave_fixed *held)
{
    held->reg = ISA_NO_REG;
    if (weave_flags_free(w)) {
        weave_flags_clobber(w);
        x86_alu_rm(w->c, X86_CMP, 8, reg, x86_gs(limit));
        return x86_jcc_label(w->c, X86_E, 4);
    }
    *held = weave_fixed_begin(w, X86_RCX);
    x86_load(w->c, 8, X86_RCX, x86_gs(limit));
    x86_not(w->c, 8, X86_RCX);
    x86_lea(w->c, X86_RCX, x86_indexed(X86_RCX, reg, 1, 1));
    x86_label hop = x86_jrcxz_label(w->c);
    x86_label on = x86_jmp_label(w->c, 1);
    x86_bind(w->c, hop);
    x86_label full = x86_jmp_label(w->c, 4);
    x86_bind(w->c, on);
    return full;
}

isa_label weave_x86_branch_if_beyond(weaver *w, unsigned reg, int32_t limit)
{
    weave_flags_clobber(w);
    x86_alu_rm(w->c, X86_CMP, 8, reg, x86_gs(limit));
    return x86_jcc_label(w->c, X86_AE, 4);
}
