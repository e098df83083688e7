/* x86-64: which instructions carry values along, what a comparison says, padding, prologues. */
#include "cfg/work.h"
#include "isa/x86_64/x86.h"

#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool starts(const uint8_t *p, size_t have, const char *bytes, size_t size)
{
    return have >= size && memcmp(p, bytes, size) == 0;
}

static bool skippable(uint8_t byte) { return byte == 0xf0; }

/* nop in all its sizes, int3, and lea 0(%rsi),%rsi as old assemblers have it. Not zero bytes: they may be
 * somebody's constants. */
static size_t padding(const isa *a, const uint8_t *p, size_t have)
{
    isa_insn in;
    if (have == 0) return 0;
    if (p[0] == 0x90 || p[0] == 0xcc) return 1;
    if (p[0] != 0x66 && p[0] != 0x0f && p[0] != 0x2e && p[0] != 0x8d && p[0] != 0x48) return 0;
    if (starts(p, have, "\x48\x8d\xb4\x26\0\0\0\0", 8)) return 8;
    if (starts(p, have, "\x8d\xb4\x26\0\0\0\0", 7) || starts(p, have, "\x8d\xb6\0\0\0\0", 6))
        return p[1] == 0xb4 ? 7 : 6;
    size_t at = 0; /* prefixes, then 90 or 0f 1f */
    while (at < have && (p[at] == 0x66 || p[at] == 0x2e)) at++;
    if (at < have && p[at] == 0x90) return at + 1;
    if (at + 1 >= have || p[at] != 0x0f || p[at + 1] != 0x1f) return 0;
    return a->decode(p, have, 0, &in) == ISA_OK ? in.len : 0;
}

static bool filler(const uint8_t *p, size_t have) { return have >= 2 && p[0] == 0 && p[1] == 0; }

static bool prologue(const uint8_t *p, size_t have)
{
    return starts(p, have, "\xf3\x0f\x1e\xfa", 4) || /* endbr64 */
           starts(p, have, "\x55\x48\x89\xe5", 4) || /* push %rbp; mov %rsp,%rbp */
           starts(p, have, "\x55\x53", 2) ||         /* push %rbp; push %rbx */
           starts(p, have, "\x53\x48", 2) || starts(p, have, "\x55\x48", 2) ||
           starts(p, have, "\x48\x83\xec", 3) || /* sub $n,%rsp */
           starts(p, have, "\x48\x81\xec", 3) ||
           (have >= 4 && p[0] == 0x41 && p[1] >= 0x54 && p[1] <= 0x57); /* push %r12..%r15 */
}

static void shape(const cfg_work *w, const isa_insn *in, cfg_shape *out)
{
    isa_operand o[ISA_MAX_OPERANDS];
    isa_mem mem[ISA_MAX_MEM];
    int count = w->isa->operands(in, o), seen = 0;
    int mems = in->bits & ISA_BIT_MEM || in->modrm_at ? w->isa->memory(in, mem) : 0;
    *out = (cfg_shape){.sem = w->sems[in->op]};
    for (int i = 0; i < count; i++) {
        if (o[i].implicit) continue;
        if (o[i].kind == ISA_OPERAND_MEM && o[i].mem < mems) {
            out->mem = mem[o[i].mem];
            out->has_mem = true;
        }
        if (seen == 0) out->dst = o[i], out->has_dst = true;
        if (seen == 1) out->src = o[i], out->has_src = true;
        seen++;
    }
}

static uint32_t constant_at(const isa_insn *in, unsigned at)
{
    uint32_t value;
    memcpy(&value, in->raw + at, 4);
    return value;
}

/* Regions may lie apart. */
static bool in_span_of_text(const cfg_work *w, uint64_t addr) { return addr - w->low < w->high - w->low; }

/* The address of something in the text that the instruction itself holds. */
static bool holds_address(const cfg_work *w, const isa_insn *in, uint64_t *at)
{
    if (in->bits & ISA_BIT_PCREL_MEM) *at = in->target;
    else if (w->fixed && in->imm_len == 4) *at = constant_at(in, in->imm_at);
    else return false;
    return in_span_of_text(w, *at);
}

/* Along a straight run of instructions: does this one read or write by a register that has got the address of something
 * in the text? Hand-written code has its constants there. */
static bool uses_address(const cfg_work *w, const isa_insn *in, cfg_trail *trail, uint64_t *at)
{
    cfg_shape s;
    uint64_t gets = 0;
    bool holds = holds_address(w, in, &gets);
    if (!trail->known && !holds) return false;
    shape(w, in, &s);
    bool by = s.has_mem && s.mem.index == ISA_NO_REG && !s.mem.segment && s.mem.base < 64 &&
              trail->known >> s.mem.base & 1;
    if (by) *at = trail->value[s.mem.base] + (uint64_t)s.mem.disp;
    if (by && s.sem == SEM_LEA) gets = *at;
    trail->known &= ~cfg_insn_writes(w, in);
    bool address = s.sem == SEM_LEA ? holds || by : s.sem == SEM_MOV && holds && !s.has_mem;
    if (address && in_span_of_text(w, gets) && s.dst.kind == ISA_OPERAND_REG && s.dst.reg < 64) {
        trail->value[s.dst.reg] = gets;
        trail->known |= 1ull << s.dst.reg;
    }
    return by && s.mem.access & ISA_READ_WRITE;
}

/* What is relative to the program counter is an address; in images at a fixed place any constant may be one, in others
 * one of 64 bits may be an offset from the global offset table (-mcmodel=large). */
static unsigned names(const cfg_work *w, const isa_insn *in, cfg_trail *trail, cfg_name out[CFG_MAX_NAMES])
{
    unsigned n = 0;
    uint64_t used;
    if (in->bits & ISA_BIT_PCREL_MEM) { /* but for lea it may be something inside, as an entry of a table */
        bool lea = w->sems[in->op] == SEM_LEA;
        bool itself = in->target == in->addr; /* where it is, for sums with what lies so far from there */
        if (!itself) out[n++] = (cfg_name){in->target, lea, lea, !lea};
    } else if (w->fixed) {
        if (in->imm_len == 4 && in->flow == ISA_FLOW_NEXT)
            out[n++] = (cfg_name){.to = constant_at(in, in->imm_at), .of_code = true};
        if (in->disp_len == 4) out[n++] = (cfg_name){.to = constant_at(in, in->disp_at)};
    } else if (w->got && in->imm_len == 8) {
        uint64_t offset;
        memcpy(&offset, in->raw + in->imm_at, sizeof offset);
        out[n++] = (cfg_name){.to = w->got + offset, .of_code = true};
    }
    if (uses_address(w, in, trail, &used)) out[n++] = (cfg_name){.to = used, .operand = true};
    return n;
}

/* clang-format off */
const cfg_machine cfg_machine_x86_64 = {
    .isa = &isa_x86_64,
    .call_clobbers = 1u << X86_RAX | 1u << X86_RCX | 1u << X86_RDX | 1u << X86_RSI | 1u << X86_RDI |
                     1u << X86_R8 | 1u << X86_R9 | 1u << X86_R10 | 1u << X86_R11,
    .stack = X86_RSP,
    .frame = X86_RBP,
    .dwarf_stack = 7,
    .pushed = 8,
    .unit = 1,
    .results = 1u << X86_RAX | 1u << X86_RDX,
    .sems = {
        [SEM_MOV] = LIST("mov"),
        [SEM_LEA] = LIST("lea"),
        [SEM_MOVSX] = LIST("movsxd", "movsx"),
        [SEM_MOVZX] = LIST("movzx"),
        [SEM_ADD] = LIST("add"),
        [SEM_SUB] = LIST("sub"),
        [SEM_AND] = LIST("and"),
        [SEM_XOR] = LIST("xor"),
        [SEM_CMP] = LIST("cmp"),
        [SEM_TEST] = LIST("test"),
        [SEM_SHL] = LIST("shl", "sal"),
        [SEM_SHR] = LIST("shr"),
        [SEM_PUSH] = LIST("push"),
        [SEM_POP] = LIST("pop"),
        [SEM_LEAVE] = LIST("leave"),
        [SEM_CDQE] = LIST("cdqe"),
        [SEM_NOP] = LIST("nop", "endbr64", "endbr32"),
        [SEM_INT3] = LIST("int3", "int", "int1"),
        [SEM_HALT] = LIST("hlt", "ud2", "ud0", "ud1"),
        [SEM_INC] = LIST("inc", "dec"),
        [SEM_SELECT] = LIST("cmovo", "cmovno", "cmovb", "cmovnb", "cmovz", "cmovnz", "cmovbe", "cmovnbe", "cmovs",
                            "cmovns", "cmovp", "cmovnp", "cmovl", "cmovnl", "cmovle", "cmovnle"),
        [SEM_SYSCALL] = LIST("syscall"),
        [SEM_SCAN] = LIST("bsf", "bsr", "tzcnt", "lzcnt"),
    },
    .conds = {.at_most = X86_BE, .below = X86_B, .equal = X86_E},
    .skippable = skippable,
    .padding = padding,
    .filler = filler,
    .prologue = prologue,
    .shape = shape,
    .names = names,
};
/* clang-format on */
