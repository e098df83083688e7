/* System calls of x86-64 that are found in memory, and what is put in their place. */
#include <string.h>

#include "moved/private.h"
#include "moved/sites.h"

const uint8_t *moved_next_site(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *at = from + 1; /* 0f 05; the second byte is the rarer one */
    for (; at < end && (at = memchr(at, 0x05, (size_t)(end - at))); at++)
        if (at[-1] == 0x0f) return at - 1;
    return NULL;
}

/* mov $N, %eax ; or, further up, as musl begins threads: xor %eax, %eax ; mov $N, %al */
static bool loads_number(const uint8_t *bytes, uint64_t before)
{
    enum { LOAD = 5, MOV_EAX = 0xb8 };
    static const uint8_t by_halves[] = {0x31, 0xc0, 0xb0};
    if (before == LOAD && *bytes == MOV_EAX && !bytes[3] && !bytes[4]) return true;
    return before >= LOAD && !memcmp(bytes, by_halves, sizeof by_halves);
}

bool moved_lone_site(uint64_t at, uint64_t from, uint64_t *low, uint64_t *high)
{
    enum { CALL = 2, FURTHEST = 40 };
    uint64_t before = 1;
    while (before <= FURTHEST && before <= at - from && !loads_number((const uint8_t *)at - before, before)) before++;
    if (before > FURTHEST || before > at - from) return false;
    *low = at - before;
    *high = at + CALL;
    return true;
}

bool moved_is_site(const isa_insn *in) { return in->flow == ISA_FLOW_SYSCALL; }

void moved_put_other(isa_code *c, const isa_insn *in)
{
    (void)in;
    c->unreachable = true;
}

long moved_constant_in(const isa_insn *in, unsigned reg)
{
    isa_operand o[ISA_MAX_OPERANDS];
    const char *name = isa_x86_64.mnemonic(in->op);
    if (isa_x86_64.operands(in, o) < 2 || o[0].kind != ISA_OPERAND_REG || o[0].reg != reg || o[0].size < 4) return -1;
    if (!strcmp(name, "xor") && o[1].kind == ISA_OPERAND_REG && o[1].reg == reg) return 0;
    if (strcmp(name, "mov") || o[1].kind != ISA_OPERAND_IMM) return -1;
    return (int32_t)o[1].imm;
}

int moved_copied_into(const isa_insn *in, unsigned reg)
{
    isa_operand o[ISA_MAX_OPERANDS];
    if (strcmp(isa_x86_64.mnemonic(in->op), "mov") || isa_x86_64.operands(in, o) < 2) return -1;
    if (o[0].kind != ISA_OPERAND_REG || o[1].kind != ISA_OPERAND_REG || o[0].reg != reg || o[0].size < 4) return -1;
    return o[1].reg;
}

bool moved_is_padding(const isa_insn *in) { return !strcmp(isa_x86_64.mnemonic(in->op), "nop"); }

unsigned moved_mark_size(const uint8_t *at)
{
    static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    return memcmp(at, endbr64, sizeof endbr64) ? 0 : sizeof endbr64;
}

void moved_put_jump(isa_code *c, uint64_t to)
{
    int64_t distance = (int64_t)(to - (isa_here(c) + MOVED_JUMP));
    int32_t rel = (int32_t)distance;
    uint8_t bytes[MOVED_JUMP] = {0xe9};
    if (distance != rel) c->unreachable = true;
    memcpy(bytes + 1, &rel, sizeof rel);
    isa_put(c, bytes, sizeof bytes);
}

void moved_put_gate(isa_code *c)
{
    static const uint8_t lea[] = {0x48, 0x8d, 0x0d, 8, 0, 0, 0}; /* lea 8(%rip), %rcx */
    static const uint8_t jmp[] = {0x65, 0xff, 0x24, 0x25};       /* jmp *%gs:... */
    uint32_t at = MOVED_GATE;
    isa_put(c, lea, sizeof lea);
    isa_put(c, jmp, sizeof jmp);
    isa_put(c, &at, sizeof at);
}

uint64_t moved_put_call(isa_code *c)
{
    static const uint8_t before[] = {0x50, 0x51, 0x41, 0x53, 0xb8}, after[] = {0x41, 0x5b, 0x59, 0x58, 0xc3};
    uint32_t number = MOVED_IMAGES_CALL;
    isa_put(c, before, sizeof before); /* push rax, rcx, r11; mov $number, %eax */
    isa_put(c, &number, sizeof number);
    moved_put_gate(c);
    uint64_t returns = isa_here(c);
    isa_put(c, after, sizeof after);
    return returns;
}
