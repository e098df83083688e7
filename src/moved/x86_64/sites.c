/* System calls of x86-64 that are found in memory, and what is put in their place. Code that sets GS base (wrgsbase)
 * and has not moved is a site as well: what it sets is the frame's copy of the program's. */
#include <string.h>

#include "isa/x86_64/x86.h"
#include "moved/private.h"
#include "moved/sites.h"

enum { ESCAPE = 0x0f, SYSCALL = 0x05, BASES = 0xae, REPEATED = 0xf3, REX_W = 8, REX_B = 1 };

/* 0f `second`, the rarer byte; `before` bytes are in front of it. */
static const uint8_t *find(const uint8_t *from, const uint8_t *end, uint8_t second, unsigned before)
{
    const uint8_t *at = from + before + 1;
    for (; at < end && (at = memchr(at, second, (size_t)(end - at))); at++)
        if (at[-1] == ESCAPE) return at - 1;
    return NULL;
}

/* f3 [REX] 0f ae /3 with a register */
static const uint8_t *find_set_base(const uint8_t *from, const uint8_t *end)
{
    for (const uint8_t *at = from; (at = find(at, end, BASES, 1)); at++) {
        bool has_rex = at - from >= 2 && (at[-1] & 0xf0) == 0x40;
        const uint8_t *begin = at - 1 - has_rex;
        if (end - at > 2 && (at[2] & 0xf8) == 0xd8 && *begin == REPEATED) return begin;
    }
    return NULL;
}

const uint8_t *moved_next_site(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *call = find(from, end, SYSCALL, 0), *base = find_set_base(from, call ? call : end);
    return base ? base : call;
}

bool moved_sets_block(const uint8_t *at) { return *at == REPEATED; }

static bool sets_base(const isa_insn *in)
{
    return x86_is_rdfsbase_family(in) && (in->raw[in->modrm_at] & 0xf8) == 0xd8;
}

/* mov $N, %eax ; mov $N, %rax ; or, further up, as musl begins threads: xor %eax, %eax ; mov $N, %al */
static bool loads_number(const uint8_t *bytes, uint64_t before)
{
    enum { LOAD = 5, MOV_EAX = 0xb8, WIDE_LOAD = 7 };
    static const uint8_t wide[] = {0x48, 0xc7, 0xc0};
    static const uint8_t by_halves[] = {0x31, 0xc0, 0xb0};
    if (before == LOAD && *bytes == MOV_EAX && !bytes[3] && !bytes[4]) return true;
    if (before == WIDE_LOAD && !memcmp(bytes, wide, sizeof wide) && !bytes[5] && !bytes[6]) return true;
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

bool moved_is_site(const isa_insn *in) { return in->flow == ISA_FLOW_SYSCALL || sets_base(in); }

/* mov REG, %gs:copy ; of the half of a register: movl $0, %gs:copy + 4 */
void moved_put_other(isa_code *c, const isa_insn *in)
{
    const uint8_t before = in->raw[in->modrm_at - 3], rex = (before & 0xf0) == 0x40 ? before : 0x40;
    uint32_t at = offsetof(run_thread, frame.app_gs_base);
    const uint8_t wide = rex & REX_W ? 0x48 : 0x40, high = rex & REX_B ? 4 : 0;
    const uint8_t store[] = {0x65, wide | high, 0x89, (uint8_t)((in->raw[in->modrm_at] & 7) << 3 | 4), 0x25};
    static const uint8_t store_0[] = {0x65, 0xc7, 0x04, 0x25}, nothing[4];
    isa_put(c, store, sizeof store);
    isa_put(c, &at, sizeof at);
    if (rex & REX_W) return;
    at += 4;
    isa_put(c, store_0, sizeof store_0);
    isa_put(c, &at, sizeof at);
    isa_put(c, nothing, sizeof nothing);
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
