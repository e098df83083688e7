/* The thread's frame, reached from anywhere: through a register that holds nothing of the program's, or nothing that
 * anybody will look at; where there is none, through one that waits on the program's stack meanwhile. */
#include "weave/aarch64/machine.h"

enum { ADD_REACH = 0xfff000, LOAD_REACH = 32760, PUSHED = 16 };

int32_t weave_a64_frame(isa_code *c, unsigned base, int32_t offset)
{
    a64_read_tls(c, base);
    a64_load(c, 8, base, a64_at(base, WEAVE_FRAME_WORD));
    if (offset <= LOAD_REACH) return offset;
    for (; offset > ADD_REACH; offset -= ADD_REACH) a64_arith_ri(c, A64_ARITH_ADD, 8, base, base, ADD_REACH);
    if (offset & ~4095) a64_arith_ri(c, A64_ARITH_ADD, 8, base, base, offset & ~4095);
    return offset & 4095;
}

static unsigned best_of(isa_regs set)
{
    const isa_regs first = WEAVE_BIT(A64_IP0) | WEAVE_BIT(A64_IP1);
    return (unsigned)__builtin_ctzll(set & first ? set & first : set);
}

/* *pushed counts the bytes by which the stack pointer is off. */
static unsigned borrow(weaver *w, isa_regs avoid, unsigned *pushed)
{
    isa_regs set = w->isa->all & ~(avoid | w->locked | w->isa->reserved);
    isa_regs junk = set & ~w->st.in_reg, dead = set & ~w->need.regs;
    if (junk) return best_of(junk);
    if (dead) {
        unsigned reg = best_of(dead);
        weave_claim(w, reg);
        return reg;
    }
    unsigned reg = best_of(w->isa->all & ~(avoid | w->isa->reserved));
    a64_store(w->c, 8, a64_pre(A64_SP, -PUSHED), reg);
    *pushed += PUSHED;
    return reg;
}

void weave_a64_frame_load(weaver *w, unsigned dst, int32_t offset)
{
    unsigned pushed = 0, base = dst == A64_SP ? borrow(w, 0, &pushed) : dst;
    if (pushed) {
        weave_fail(w, INL_ERR_UNSUPPORTED, "no register is free to set the stack pointer with");
        return;
    }
    offset = weave_a64_frame(w->c, base, offset);
    a64_load(w->c, 8, base, a64_at(base, offset));
    if (dst == A64_SP) a64_mov_rr(w->c, 8, A64_SP, base);
}

void weave_a64_frame_store(weaver *w, int32_t offset, unsigned src)
{
    unsigned pushed_base = 0, pushed_value = 0, base = borrow(w, WEAVE_BIT(src), &pushed_base), value = src;
    if (src == A64_SP) {
        value = borrow(w, WEAVE_BIT(base), &pushed_value);
        a64_arith_ri(w->c, A64_ARITH_ADD, 8, value, A64_SP, pushed_base + pushed_value);
    }
    offset = weave_a64_frame(w->c, base, offset);
    a64_store(w->c, 8, a64_at(base, offset), value);
    if (pushed_value) a64_load(w->c, 8, value, a64_post(A64_SP, PUSHED));
    if (pushed_base) a64_load(w->c, 8, base, a64_post(A64_SP, PUSHED));
}

void weave_a64_frame_address(isa_code *c, unsigned dst, int32_t offset)
{
    offset = weave_a64_frame(c, dst, offset);
    if (!a64_add_ri(c, dst, dst, offset)) c->unreachable = true;
}
