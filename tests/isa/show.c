/* The decoder of AArch64 as a program, for compare.py: reads words from standard input and says of each what it
 * is, in one line:
 *
 *     text | result flow target general: reads writes kills vectors: reads writes kills flags: r w memory: n base
 *     index disp size access ... | what decoding, encoding and decoding again gives
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "isa/aarch64/encode.h"

static void show_memory(const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = isa_aarch64.memory(in, mem);
    printf(" %d", n);
    for (int i = 0; i < n; i++)
        printf(" %u %u %" PRId64 " %u %u", mem[i].base, mem[i].index, mem[i].disp, mem[i].size, mem[i].access);
}

/* The same word again; a word that encodes what another does, too; or a fault. */
static const char *round_trip(const isa_insn *in)
{
    isa_operand ops[ISA_MAX_OPERANDS], again_ops[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    uint32_t word;
    char text[128], again_text[128];
    isa_insn again;
    isa_aarch64.operands(in, ops);
    isa_aarch64.memory(in, mem);
    if (!a64_encode(in->row, a64_word(in), ops, mem, in->addr, &word)) return "refused";
    if (word == a64_word(in)) return "same";
    if (isa_aarch64.decode((const uint8_t *)&word, 4, in->addr, &again) != ISA_OK) return "wrong";
    isa_aarch64.operands(&again, again_ops);
    isa_aarch64.format(in, text, sizeof text);
    isa_aarch64.format(&again, again_text, sizeof again_text);
    return in->row == again.row && strcmp(text, again_text) == 0 ? "equal" : "wrong";
}

int main(int argc, char **argv)
{
    uint64_t addr = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    uint8_t word[4];
    for (; fread(word, 4, 1, stdin) == 1; addr += 4) {
        isa_insn in;
        isa_effects fx;
        char text[128];
        isa_result r = isa_aarch64.decode(word, 4, addr, &in);
        if (r != ISA_OK) {
            printf("? | %d %d\n", r, in.bits);
            continue;
        }
        isa_aarch64.format(&in, text, sizeof text);
        isa_aarch64.effects(&in, &fx);
        printf("%s | %d %d %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %x %x %x %x %x", text, r, in.flow, in.target,
               fx.reads, fx.writes, fx.kills, fx.vec_reads, fx.vec_writes, fx.vec_kills, fx.flags_read,
               fx.flags_written);
        show_memory(&in);
        printf(" | %s %s\n", round_trip(&in), isa_aarch64.category(in.op));
    }
    return 0;
}
