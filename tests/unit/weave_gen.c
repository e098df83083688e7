/* Random programs. Two registers hold data addresses throughout; all others are anybody's. */
#include "weave_gen.h"

#include <string.h>

static unsigned base0, base1;
static unsigned pushes;
static unsigned any(unsigned n) { return harness_random() % n; }

static unsigned reg(void) /* one that may be read */
{
    unsigned r;
    do r = any(16);
    while (r == X86_RSP);
    return r;
}

static unsigned dst(void)
{
    unsigned r;
    do r = reg();
    while (r == base0 || r == base1);
    return r;
}

static unsigned width(void) { return 1u << any(4); }

static x86_addr mem(void)
{
    if (any(4) == 0) return x86_rip((uintptr_t)bench.data + 8 * any(400));
    if (any(5) == 0) return x86_at(X86_RSP, (int)any(1500) - 128);
    return x86_at(any(2) ? base0 : base1, (int)any(3000) - 1500);
}

static void raw(x86_code *c, unsigned n, const uint8_t *b) { x86_bytes(c, b, n); }
#define RAW(c, ...)                                                                                                    \
    do {                                                                                                               \
        const uint8_t b_[] = {__VA_ARGS__};                                                                            \
        raw((c), sizeof b_, b_);                                                                                       \
    } while (0)

static void string_op(x86_code *c)
{
    unsigned s = WEAVE_BUFFERS ? base0 : 0;
    bool clash = false;
    unsigned bases[] = {base0, base1};
    for (unsigned i = 0; i < 2; i++) clash |= bases[i] == X86_RCX || bases[i] == X86_RSI || bases[i] == X86_RDI;
    if (clash) return;
    x86_mov_ri(c, X86_RCX, any(4));
    x86_lea(c, X86_RDI, x86_at(s, (int)any(100)));
    x86_lea(c, X86_RSI, x86_at(base1, (int)any(100)));
    switch (any(4)) {
    case 0: RAW(c, 0xf3, 0xa4); break;       /* rep movsb */
    case 1: RAW(c, 0xf3, 0x48, 0xab); break; /* rep stosq */
    case 2: RAW(c, 0xf3, 0xa6); break;       /* repe cmpsb */
    default: RAW(c, 0x48, 0xa5); break;      /* movsq */
    }
}

static void vector_op(x86_code *c)
{
    unsigned a = any(8), b = any(8);
    switch (any(4)) {
    case 0: x86_vec_load(c, any(2) ? 16 : 32, any(16), mem()); break;
    case 1: x86_vec_store(c, any(2) ? 16 : 32, mem(), any(16)); break;
    case 2: RAW(c, 0x66, 0x0f, 0xd4, (uint8_t)(0xc0 | a << 3 | b)); break;
    default: RAW(c, 0xc5, 0xfd, 0xd4, (uint8_t)(0xc0 | a << 3 | b)); break;
    }
}

static void branch_op(x86_code *c)
{
    if (any(4) == 0 && c->at < 100) {
        uint8_t op = (uint8_t)(0xe0 + any(4));
        if (op != 0xe3 && (base0 == X86_RCX || base1 == X86_RCX)) return;
        RAW(c, op, (uint8_t)(-5 - (int)c->at - 2));
        return;
    }
    x86_jcc_rel32(c, any(16), harness_exit(1 + any(MAX_EXITS - 2)), false);
}

static void misc_op(x86_code *c)
{
    unsigned d = dst();
    switch (any(12)) {
    case 0: x86_inc_m(c, 8, mem()); break;
    case 1: RAW(c, (uint8_t)(0x48 | d >> 3), 0xff, (uint8_t)(0xc0 | (d & 7))); break; /* inc */
    case 2: RAW(c, (uint8_t)(0x48 | d >> 3), 0xff, (uint8_t)(0xc8 | (d & 7))); break; /* dec */
    case 3: x86_neg(c, 8, d); break;
    case 4: x86_not(c, 4, d); break;
    case 5: x86_bswap(c, 8, d); break;
    case 6: RAW(c, 0xf8); break; /* clc */
    case 7: RAW(c, 0xf9); break; /* stc */
    case 8: RAW(c, 0xf5); break; /* cmc */
    case 9: x86_sahf(c); break;
    case 10:
        if (base0 != X86_RAX && base1 != X86_RAX) x86_lahf(c);
        break;
    default: x86_xchg_rr(c, 8, d, dst()); break;
    }
}

static void move_op(x86_code *c)
{
    switch (any(8)) {
    case 0: x86_mov_rr(c, width(), dst(), reg()); break;
    case 1: x86_mov_ri(c, dst(), harness_random()); break;
    case 2: x86_load(c, width(), dst(), mem()); break;
    case 3: x86_load_sx(c, 1u << any(3), dst(), mem()); break;
    case 4: x86_store(c, width(), mem(), reg()); break;
    case 5: x86_lea(c, dst(), x86_indexed(reg(), reg(), 1u << any(4), (int)any(999))); break;
    case 6: x86_movzx_rr(c, 1u << any(3), dst(), reg()); break;
    default: x86_store_imm(c, width(), mem(), 77); break;
    }
}

static void stack_op(x86_code *c)
{
    if (any(2) && pushes < 20) {
        pushes++;
        x86_push(c, reg());
    } else {
        x86_pop(c, dst());
    }
}

static void arith_op(x86_code *c)
{
    switch (any(12)) {
    case 10: x86_imul_rr(c, 8, dst(), reg()); break;
    case 11: x86_bt_mi(c, 8, mem(), any(64)); break;
    case 0:
    case 1: x86_alu_rr(c, (x86_alu)any(8), width(), dst(), reg()); break;
    case 2: x86_alu_ri(c, (x86_alu)any(8), width(), dst(), (int)any(200) - 100); break;
    case 3: x86_alu_rm(c, (x86_alu)any(8), width(), dst(), mem()); break;
    case 4: x86_alu_mr(c, (x86_alu)any(8), width(), mem(), reg()); break;
    case 5: x86_alu_mi(c, (x86_alu)any(8), width(), mem(), (int)any(100)); break;
    case 6: x86_test_rr(c, width(), reg(), reg()); break;
    case 7: x86_shift_ri(c, any(2) ? X86_SHL : X86_SHR, 8, dst(), 1 + any(2) * any(60)); break;
    case 8: x86_setcc(c, any(16), dst()); break;
    default: x86_cmov(c, any(16), 2u << any(3), dst(), reg()); break;
    }
}

size_t gen_program(uint8_t *out, size_t room, unsigned count, bool faults)
{
    x86_code c = {.write = out, .exec = (uintptr_t)bench.app, .size = room};
    base0 = X86_RSP;
    base0 = reg();
    do base1 = reg();
    while (base1 == base0);
    pushes = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned kind = any(40);
        if (faults && any(12) == 0) {
            if (any(4)) x86_alu_rm(&c, (x86_alu)any(8), 8, dst(), x86_rip((uintptr_t)bench.bad + 8 * any(9)));
            else x86_div_r(&c, 8, reg(), false);
        } else if (kind < 14) arith_op(&c);
        else if (kind < 26) move_op(&c);
        else if (kind < 30) stack_op(&c);
        else if (kind < 34) misc_op(&c);
        else if (kind < 36) vector_op(&c);
        else if (kind < 37) string_op(&c);
        else branch_op(&c);
    }
    return c.at;
}

void gen_state(machine *m)
{
    harness_random_state(m);
    if (any(4) == 0) m->flags |= X86_DF;
    m->gpr[base0] = (uintptr_t)bench.data + 1600;
    m->gpr[base1] = (uintptr_t)bench.data + 2000;
}
