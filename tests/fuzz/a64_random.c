/* Random words as instructions of AArch64: whatever is asked of one, the answer stays within its bounds, what
 * moved still names what it named, and what decodes encodes. Under the sanitizers; a64_random MILLIONS SEED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/aarch64/encode.h"
#include "isa/aarch64/move.h"

static uint64_t state;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void fail(const isa_insn *in, const char *what)
{
    char text[128];
    isa_aarch64.format(in, text, sizeof text);
    printf("%08x at %llx, %s: %s\n", a64_word(in), (unsigned long long)in->addr, text, what);
    exit(1);
}

static void ask_everything(const isa_insn *in)
{
    isa_effects fx;
    isa_operand ops[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    char text[128];
    uint32_t word;
    isa_aarch64.effects(in, &fx);
    if (fx.reads >> 32 || fx.writes >> 32 || fx.kills & ~fx.writes) fail(in, "registers that there are not");
    int n = isa_aarch64.operands(in, ops), m = isa_aarch64.memory(in, mem);
    if (n > ISA_MAX_OPERANDS || m > ISA_MAX_MEM) fail(in, "too many operands");
    if (!(in->bits & ISA_BIT_MEM) && m && mem[0].access != ISA_ADDRESS_ONLY) fail(in, "memory unannounced");
    for (int i = 0; i < m; i++)
        if (mem[i].base < 32 && !(fx.reads >> mem[i].base & 1)) fail(in, "an address that is not read");
    if (isa_aarch64.format(in, text, sizeof text) >= (int)sizeof text) fail(in, "a long text");
    for (size_t size = 0; size < 8; size++) isa_aarch64.format(in, text, size);
    if (!isa_aarch64.mnemonic(in->op)[0] || !isa_aarch64.category(in->op)[0]) fail(in, "no name");
    if (!(in->bits & ISA_BIT_UNKNOWN) && !a64_encode(in->row, a64_word(in), ops, mem, in->addr, &word))
        fail(in, "not encoded");
}

static void move(const isa_insn *in)
{
    uint8_t out[16], len;
    isa_insn now;
    uint64_t to = (in->addr + (uint64_t)((int64_t)random_bits() >> (random_bits() % 40 + 20))) & ~3ull;
    isa_move how = isa_aarch64.relocate(in, to, out, &len);
    if (len > sizeof out || len % 4 || (how == ISA_MOVE_COPIED) != (len && how != ISA_MOVE_BRANCH)) fail(in, "moved");
    for (unsigned i = 0; i < len; i += 4)
        if (isa_aarch64.decode(out + i, 4, to + i, &now) == ISA_INVALID) fail(in, "moved to what is none");
    if (in->target && how == ISA_MOVE_BRANCH) {
        unsigned n = a64_move_branch(in, to, in->target, out);
        if (!n) return;
        isa_aarch64.decode(out + n - 4, 4, to + n - 4, &now);
        if (now.target != in->target) fail(in, "a branch that leads elsewhere");
    }
    isa_aarch64.rebase(in, random_bits() % 40, out, &len);
}

int main(int argc, char **argv)
{
    long millions = argc > 1 ? atol(argv[1]) : 1;
    unsigned long known = 0;
    state = argc > 2 ? strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull : 1;
    for (long i = 0; i < millions * 1000000; i++) {
        uint32_t word = (uint32_t)(random_bits() >> 20);
        uint64_t addr = random_bits() >> 17 & ~3ull;
        isa_insn in;
        isa_result r = isa_aarch64.decode((const uint8_t *)&word, 4, addr, &in);
        if (r == ISA_INVALID) continue;
        known += r == ISA_OK;
        ask_everything(&in);
        move(&in);
    }
    printf("%lu words known of %ld million\n", known, millions);
    return known < (unsigned long)millions * 200000;
}
