/* System calls of AArch64 that are found in memory, and what is put in their place. Code that sets the thread pointer
 * is a site as well: the word by which the thread's block is found goes to the new one first. */
#include <string.h>

#include "isa/aarch64/emit.h"
#include "moved/private.h"
#include "moved/sites.h"

enum { SVC = 0xd4000001, SET_TLS = 0xd51bd040 /* msr tpidr_el0, x0 */, NOP = 0xd503201f, PUSHED = 16 };

static bool sets_tls(uint32_t word) { return (word & ~31u) == SET_TLS && (word & 31) != 31; }

const uint8_t *moved_next_site(const uint8_t *from, const uint8_t *end)
{
    uint32_t word;
    from = (const uint8_t *)(((uintptr_t)from + 3) & ~(uintptr_t)3);
    for (; from + sizeof word <= end; from += sizeof word) {
        memcpy(&word, from, sizeof word);
        if (word == SVC || sets_tls(word)) return from;
    }
    return NULL;
}

bool moved_lone_site(uint64_t at, uint64_t from, uint64_t *low, uint64_t *high)
{
    (void)at, (void)from, (void)low, (void)high;
    return false;
}

/* The thread pointer remains the program's own. */
bool moved_sets_block(const uint8_t *at) { return (void)at, false; }

bool moved_is_site(const isa_insn *in) { return in->flow == ISA_FLOW_SYSCALL || sets_tls(a64_word(in)); }

/* msr tpidr_el0, reg */
void moved_put_other(isa_code *c, const isa_insn *in)
{
    unsigned reg = a64_word(in) & 31, with = reg == A64_IP0 ? A64_IP1 : A64_IP0;
    a64_store(c, 8, a64_pre(A64_SP, -PUSHED), with);
    a64_read_tls(c, with);
    a64_load(c, 8, with, a64_at(with, WEAVE_FRAME_WORD));
    a64_store(c, 8, a64_at(reg, WEAVE_FRAME_WORD), with);
    a64_load(c, 8, with, a64_post(A64_SP, PUSHED));
    a64_put(c, a64_word(in));
}

long moved_constant_in(const isa_insn *in, unsigned reg)
{
    uint32_t word = a64_word(in);
    if ((word & 0x7fe00000) != 0x52800000 || (word & 31) != reg) return -1; /* movz, not shifted */
    return word >> 5 & 0xffff;
}

int moved_copied_into(const isa_insn *in, unsigned reg)
{
    uint32_t word = a64_word(in);
    if ((word & 0x7fe0ffe0) != 0x2a0003e0 || (word & 31) != reg) return -1; /* orr reg, zr, other */
    return (int)(word >> 16 & 31) == 31 ? -1 : (int)(word >> 16 & 31);
}

bool moved_is_padding(const isa_insn *in) { return a64_word(in) == NOP; }

unsigned moved_mark_size(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return (word & ~0xc0u) == 0xd503241f && word & 0xc0 ? sizeof word : 0; /* bti c, j, jc */
}

void moved_put_jump(isa_code *c, uint64_t to) { a64_b(c, to); }

/* As gate.S wants to be entered; MOVED_SITE_BYTES up to where it goes back to. */
void moved_put_gate(isa_code *c)
{
    a64_store_pair(c, 8, a64_pre(A64_SP, -PUSHED), A64_IP0, A64_LR);
    a64_read_tls(c, A64_IP0);
    a64_load(c, 8, A64_IP0, a64_at(A64_IP0, WEAVE_FRAME_WORD));
    a64_load(c, 8, A64_IP0, a64_at(A64_IP0, MOVED_GATE));
    a64_blr(c, A64_IP0);
    a64_load_pair(c, 8, A64_IP0, A64_LR, a64_post(A64_SP, PUSHED));
}

uint64_t moved_put_call(isa_code *c)
{
    a64_store_pair(c, 8, a64_pre(A64_SP, -PUSHED), A64_X0, A64_X8);
    a64_mov_ri(c, A64_X8, MOVED_IMAGES_CALL);
    uint64_t site = isa_here(c);
    moved_put_gate(c);
    a64_load_pair(c, 8, A64_X0, A64_X8, a64_post(A64_SP, PUSHED));
    a64_ret(c, A64_LR);
    return site + MOVED_SITE_BYTES;
}
