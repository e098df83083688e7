/* What Zydis does not say, or says wrongly, and Inlay must get right: each row names one instruction
 * and its exact effects; then memory operands, flow, unknown instructions, idioms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isa/x86_64/x86.h"

enum { A = 1, C = 2, D = 4, B = 8, SP = 16, BP = 32, SI = 64, DI = 128, R11 = 1 << 11, ANY = 0xffff };

static isa_result decode_hex(const char *hex, isa_insn *in)
{
    uint8_t bytes[16] = {0};
    size_t n = 0;
    unsigned byte;
    int used;
    while (sscanf(hex, " %2x%n", &byte, &used) == 1) {
        bytes[n++] = byte;
        hex += used;
    }
    return isa_x86_64.decode(bytes, n, 0x401000, in);
}

static isa_insn good(const char *hex)
{
    isa_insn in;
    isa_result r = decode_hex(hex, &in);
    if (r != ISA_OK) fail_msg("%s: result %d", hex, r);
    return in;
}

static void registers(void **state)
{
    static const struct {
        const char *hex, *text;
        uint64_t reads, writes, kills;
    } rows[] = {
        {"31 c0", "xor eax, eax", 0, A, A},
        {"30 c0", "xor al, al", 0, A, 0},
        {"30 e0", "xor al, ah", A, A, 0},
        {"48 29 db", "sub rbx, rbx", 0, B, B},
        {"01 c3", "add ebx, eax", A | B, B, B},
        {"66 01 c3", "add bx, ax", A | B, B, 0},
        {"88 e3", "mov bl, ah", A, B, 0},
        {"40 88 e3", "mov bl, spl", SP, B, 0},
        {"48 89 c3", "mov rbx, rax", A, B, B},
        {"0f 44 c3", "cmovz eax, ebx", B, A, 0},
        {"0f bc c3", "bsf eax, ebx", B, A, 0},
        {"0f 94 c0", "setz al", 0, A, 0},
        {"f3 48 0f b8 c3", "popcnt rax, rbx", B, A, A},
        {"48 8d 04 1b", "lea rax, [rbx+rbx]", B, A, A},
        {"0f 1f 44 18 00", "nop", 0, 0, 0},
        {"f7 e3", "mul ebx", A | B, A | D, A | D},
        {"f6 e3", "mul bl", A | B, A, 0},
        {"48 f7 f3", "div rbx", A | B | D, A | D, A | D},
        {"0f b0 0b", "cmpxchg [rbx], cl", A | B | C, A, 0},
        {"0f a2", "cpuid", A | C, A | B | C | D, A | B | C | D},
        {"a4", "movsb", SI | DI, SI | DI, SI | DI},
        {"f3 a4", "rep movsb", SI | DI | C, SI | DI | C, 0},
        {"f3 a6", "repe cmpsb", SI | DI | C, SI | DI | C, 0},
        {"f2 ae", "repne scasb", A | DI | C, DI | C, 0},
        {"aa", "stosb", A | DI, DI, DI},
        {"ac", "lodsb", SI, A | SI, SI},
        {"d7", "xlat", A | B, A, 0},
        {"50", "push rax", A | SP, SP, SP},
        {"c9", "leave", BP | SP, BP | SP, BP | SP},
        {"e2 00", "loop", C, C, C},
        {"e3 00", "jrcxz", C, 0, 0},
        {"f3 48 0f 1e c8", "rdsspq rax", 0, A, 0},
        {"0f 05", "syscall", ANY, A | C | R11, C | R11},
        {"0f 0b", "ud2", ANY, 0, 0},
        {"cc", "int3", ANY, 0, 0},
        {"c4 e2 f3 f6 c3", "mulx rax, rcx, rbx", B | D, A | C, A | C},
        {"d5 19 01 c0", "add r24, rax (REX2)", A | 1 << 24, 1 << 24, 1 << 24},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        isa_effects e;
        isa_x86_64.effects(&in, &e);
        if (e.reads != rows[i].reads || e.writes != rows[i].writes || e.kills != rows[i].kills)
            fail_msg("%s (%s): reads %llx writes %llx kills %llx", rows[i].text, rows[i].hex,
                     (unsigned long long)e.reads, (unsigned long long)e.writes, (unsigned long long)e.kills);
    }
}

static void flags(void **state)
{
    enum { ALL = X86_ARITH, NOT_CF = X86_ARITH & ~X86_CF, NOT_AF = X86_ARITH & ~X86_AF };
    static const struct {
        const char *hex, *text;
        uint32_t read, written, undefined, kill;
    } rows[] = {
        {"01 c3", "add", 0, ALL, 0, ALL},
        {"11 c3", "adc", X86_CF, ALL, 0, ALL},
        {"ff c0", "inc", 0, NOT_CF, 0, NOT_CF},
        {"21 c3", "and", 0, NOT_AF, X86_AF, ALL},
        {"c1 e0 05", "shl eax, 5", 0, NOT_AF, X86_AF, ALL},
        {"c1 e0 00", "shl eax, 0", 0, 0, 0, 0},
        {"c1 e0 20", "shl eax, 32", 0, 0, 0, 0},
        {"48 c1 e0 20", "shl rax, 32", 0, NOT_AF, X86_AF, ALL},
        {"48 c1 e0 40", "shl rax, 64", 0, 0, 0, 0},
        {"d3 e0", "shl eax, cl", 0, NOT_AF, X86_AF, 0},
        {"d1 c0", "rol eax, 1", 0, X86_CF | X86_OF, 0, X86_CF | X86_OF},
        {"d0 c1", "rol cl, 1", 0, X86_CF | X86_OF, 0, X86_CF | X86_OF},
        {"a6", "cmpsb", X86_DF, ALL, 0, ALL},
        {"f3 a6", "repe cmpsb", X86_DF | X86_ZF, ALL, 0, 0},
        {"a4", "movsb", X86_DF, 0, 0, 0},
        {"0f 84 00 00 00 00", "jz", X86_ZF, 0, 0, 0},
        {"7e 00", "jle", X86_ZF | X86_SF | X86_OF, 0, 0, 0},
        {"0f 44 c3", "cmovz", X86_ZF, 0, 0, 0},
        {"f8", "clc", 0, X86_CF, 0, X86_CF},
        {"fc", "cld", 0, X86_DF, 0, X86_DF},
        {"f7 d0", "not", 0, 0, 0, 0},
        {"48 8d 03", "lea", 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        isa_effects e;
        isa_x86_64.effects(&in, &e);
        if (e.flags_read != rows[i].read || e.flags_written != rows[i].written ||
            e.flags_undefined != rows[i].undefined || e.flags_kill != rows[i].kill)
            fail_msg("%s (%s): read %x written %x undefined %x kill %x", rows[i].text, rows[i].hex, e.flags_read,
                     e.flags_written, e.flags_undefined, e.flags_kill);
    }
}

static void vectors(void **state)
{
    static const struct {
        const char *hex, *text;
        uint32_t reads, writes, kills;
        uint8_t mr, mw;
    } rows[] = {
        {"0f 58 c1", "addps xmm0, xmm1", 3, 1, 0, 0, 0},
        {"66 0f ef c0", "pxor xmm0, xmm0", 0, 1, 0, 0, 0},
        {"c5 f9 ef c0", "vpxor xmm0, xmm0, xmm0", 0, 1, 1, 0, 0},
        {"c5 f1 ef c0", "vpxor xmm0, xmm1, xmm0", 3, 1, 1, 0, 0},
        {"c5 f8 77", "vzeroupper", 0, 0xffff, 0, 0, 0},
        {"c5 fc 77", "vzeroall", 0, 0xffff, 0xffff, 0, 0},
        {"c5 fa 58 c1", "vaddss xmm0, xmm0, xmm1", 3, 1, 1, 0, 0},
        {"62 f1 7c 48 58 c1", "vaddps zmm0, zmm0, zmm1", 3, 1, 1, 0, 0},
        {"62 f1 7c 49 58 c1", "vaddps zmm0 {k1}", 3, 1, 0, 2, 0},
        {"62 f1 7c c9 58 c1", "vaddps zmm0 {k1} {z}", 3, 1, 1, 2, 0},
        {"62 f2 7d 49 92 04 98", "vgatherdps zmm0 {k1}, [rax+zmm3*4]", 8 | 1, 1, 0, 2, 2},
        {"c4 e2 69 92 04 98", "vgatherdps xmm0, [rax+xmm3*4], xmm2", 8 | 4 | 1, 5, 5, 0, 0},
        {"c4 e3 71 4a c2 30", "vblendvps xmm0, xmm1, xmm2, xmm3", 14, 1, 1, 0, 0},
        {"62 f2 6f 48 9a 01", "v4fmaddps zmm0, zmm0..3, [rcx]", 1 | 15, 1, 1, 0, 0},
        {"62 f2 6f 48 68 d9", "vp2intersectd k3, zmm2, zmm1", 6, 0, 0, 0, 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        isa_effects e;
        isa_x86_64.effects(&in, &e);
        /* Merging and gathering keep old elements; whether that is said as a read is left open. */
        if ((e.vec_reads | (rows[i].reads & e.vec_writes)) != rows[i].reads || e.vec_writes != rows[i].writes ||
            (e.vec_kills & ~rows[i].kills) || e.mask_reads != rows[i].mr || e.mask_writes != rows[i].mw)
            fail_msg("%s (%s): reads %x writes %x kills %x masks %x %x", rows[i].text, rows[i].hex, e.vec_reads,
                     e.vec_writes, e.vec_kills, e.mask_reads, e.mask_writes);
    }
}

static void memory(void **state)
{
    static const struct {
        const char *hex, *text;
        int which;
        unsigned base;
        int64_t disp;
        unsigned access, size, bits;
    } rows[] = {
        {"50", "push rax", 0, X86_RSP, -8, ISA_WRITE, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"66 50", "push ax", 0, X86_RSP, -2, ISA_WRITE, 2, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"58", "pop rax", 0, X86_RSP, 0, ISA_READ, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"e8 00 00 00 00", "call", 0, X86_RSP, -8, ISA_WRITE, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c3", "ret", 0, X86_RSP, 0, ISA_READ, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c2 08 00", "ret 8", 0, X86_RSP, 0, ISA_READ, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c9", "leave", 0, X86_RBP, 0, ISA_READ, 8, ISA_MEM_IMPLICIT},
        {"c8 10 00 00", "enter", 0, X86_RSP, -8, ISA_WRITE, 8, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c8 10 00 01", "enter of one frame", 0, X86_RSP, -16, ISA_WRITE, 16, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c8 10 00 03", "enter of three", 0, X86_RSP, -32, ISA_WRITE, 32, ISA_MEM_IMPLICIT | ISA_MEM_STACK},
        {"c8 10 00 03", "enter of three", 1, X86_RBP, -16, ISA_READ, 16, ISA_MEM_IMPLICIT},
        {"66 c8 10 00 22", "enter of two, of 16 bits", 1, X86_RBP, -2, ISA_READ, 2, ISA_MEM_IMPLICIT},
        {"ff 74 24 08", "push [rsp+8]", 0, X86_RSP, 8, ISA_READ, 8, 0},
        {"8f 44 24 08", "pop [rsp+8]", 0, X86_RSP, 16, ISA_WRITE, 8, 0},
        {"8f 45 08", "pop [rbp+8]", 0, X86_RBP, 8, ISA_WRITE, 8, 0},
        {"f3 a4", "rep movsb", 0, X86_RDI, 0, ISA_WRITE, 1, ISA_MEM_IMPLICIT | ISA_MEM_REPEATED},
        {"f3 a4", "rep movsb", 1, X86_RSI, 0, ISA_READ, 1, ISA_MEM_IMPLICIT | ISA_MEM_REPEATED},
        {"48 a7", "cmpsq", 1, X86_RDI, 0, ISA_READ, 8, ISA_MEM_IMPLICIT},
        {"67 aa", "stosb [edi]", 0, X86_RDI, 0, ISA_WRITE, 1, ISA_MEM_IMPLICIT | ISA_MEM_ADDR32},
        {"d7", "xlat", 0, X86_RBX, 0, ISA_READ, 1, ISA_MEM_IMPLICIT | ISA_MEM_INDEX8},
        {"48 0f ab 03", "bts [rbx], rax", 0, X86_RBX, 0, ISA_READ_WRITE, 8, ISA_MEM_BIT_OFFSET},
        {"0f ba 2b 05", "bts [rbx], 5", 0, X86_RBX, 0, ISA_READ_WRITE, 4, 0},
        {"0f ae 23", "xsave [rbx]", 0, X86_RBX, 0, ISA_READ_WRITE, 0, ISA_MEM_VARIABLE},
        {"0f ae 03", "fxsave [rbx]", 0, X86_RBX, 0, ISA_WRITE, 512, 0},
        {"0f 18 0b", "prefetcht0 [rbx]", 0, X86_RBX, 0, ISA_PREFETCH, 1, 0},
        {"48 8d 43 10", "lea [rbx+16]", 0, X86_RBX, 16, ISA_ADDRESS_ONLY, 8, 0},
        {"0f 1f 43 10", "nop [rbx+16]", 0, X86_RBX, 16, ISA_ADDRESS_ONLY, 4, 0},
        {"a1 08 07 06 05 04 03 02 01", "mov eax, [moffs]", 0, ISA_NO_REG, 0x0102030405060708, ISA_READ, 4, 0},
        {"8b 05 10 00 00 00", "mov eax, [rip+16]", 0, ISA_NO_REG, 0x401016, ISA_READ, 4, ISA_MEM_PCREL},
        {"62 f1 7c 58 58 43 02", "vaddps zmm0, zmm0, [rbx+8]{1to16}", 0, X86_RBX, 8, ISA_READ, 4, 0},
        {"62 f1 7c 48 58 43 02", "vaddps zmm0, zmm0, [rbx+128]", 0, X86_RBX, 128, ISA_READ, 64, 0},
        {"66 0f f7 c1", "maskmovdqu", 0, X86_RDI, 0, ISA_WRITE, 16, ISA_MEM_IMPLICIT | ISA_MEM_MASKED},
        {"66 0f 38 f8 03", "movdir64b rax, [rbx]", 1, X86_RAX, 0, ISA_WRITE, 64, ISA_MEM_IMPLICIT},
        {"c4 e2 69 92 04 98", "vgatherdps", 0, X86_RAX, 0, ISA_READ, 4, ISA_MEM_VECTOR_INDEX | ISA_MEM_MASKED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        isa_mem m[ISA_MAX_MEM];
        int n = isa_x86_64.memory(&in, m), k = rows[i].which;
        if (k >= n || m[k].base != rows[i].base || m[k].disp != rows[i].disp || m[k].access != rows[i].access ||
            m[k].size != rows[i].size || m[k].bits != rows[i].bits)
            fail_msg("%s (%s): %d operands, base %u disp %llx access %u size %u bits %x", rows[i].text, rows[i].hex, n,
                     m[k].base, (long long)m[k].disp, m[k].access, m[k].size, m[k].bits);
    }
}

static void gather_counts(void **state)
{
    static const struct {
        const char *hex;
        unsigned size, count;
    } rows[] = {
        {"c4 e2 69 92 04 98", 4, 4},     {"c4 e2 6d 92 04 98", 4, 8},    /* vgatherdps xmm, ymm */
        {"c4 e2 69 93 04 98", 4, 2},     {"c4 e2 ed 92 04 98", 8, 4},    /* vgatherqps; dpd ymm */
        {"62 f2 7d 49 92 04 98", 4, 16}, {"62 f2 fd 49 a3 04 98", 8, 8}, /* zmm: dps; scatterqpd */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        isa_mem m[ISA_MAX_MEM];
        assert_int_equal(isa_x86_64.memory(&in, m), 1);
        assert_int_equal(m[0].size, rows[i].size);
        assert_int_equal(m[0].count, rows[i].count);
        assert_int_equal(m[0].index, 3);
    }
}

/* clang-format off */
static void flows(void **state)
{
    static const struct { const char *hex; unsigned flow; } rows[] = {
        {"90", ISA_FLOW_NEXT}, {"eb 00", ISA_FLOW_JUMP}, {"74 00", ISA_FLOW_COND}, {"e3 00", ISA_FLOW_COND_REG},
        {"e0 00", ISA_FLOW_COND_REG}, {"e8 00 00 00 00", ISA_FLOW_CALL}, {"ff e0", ISA_FLOW_JUMP_IND},
        {"ff 20", ISA_FLOW_JUMP_IND}, {"ff d0", ISA_FLOW_CALL_IND}, {"c3", ISA_FLOW_RETURN},
        {"c2 00 00", ISA_FLOW_RETURN}, {"0f 05", ISA_FLOW_SYSCALL}, {"0f 34", ISA_FLOW_SYSCALL},
        {"cd 80", ISA_FLOW_SYSCALL}, {"cd 81", ISA_FLOW_TRAP}, {"cc", ISA_FLOW_TRAP}, {"f1", ISA_FLOW_TRAP},
        {"0f 0b", ISA_FLOW_TRAP}, {"0f b9 c0", ISA_FLOW_TRAP}, {"f4", ISA_FLOW_TRAP}, {"cb", ISA_FLOW_FAR},
        {"ff 18", ISA_FLOW_FAR}, {"ff 28", ISA_FLOW_FAR}, {"48 cf", ISA_FLOW_FAR}, {"0f 07", ISA_FLOW_FAR},
        {"c7 f8 00 00 00 00", ISA_FLOW_TX}, {"0f 01 d5", ISA_FLOW_NEXT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (good(rows[i].hex).flow != rows[i].flow) fail_msg("%s: flow %d", rows[i].hex, good(rows[i].hex).flow);
    isa_insn syscall = good("0f 05"), int80 = good("cd 80"), fs = good("f3 48 0f ae c0"), load = good("64 8b 00");
    assert_true(x86_is_syscall(&syscall) && !x86_is_syscall(&int80));
    assert_true(x86_is_int80(&int80) && !x86_is_int80(&syscall));
    assert_true(x86_is_rdfsbase_family(&fs) && !x86_is_rdfsbase_family(&load));
}
/* clang-format on */

/* Newer than the tables, but of known length; and what must not be taken for them. */
static void unknown(void **state)
{
    static const struct {
        const char *hex;
        isa_result result;
        unsigned length;
    } rows[] = {
        {"c4 e2 7b d2 c1", ISA_UNKNOWN, 5},                 /* vpdpwuud-like, VEX map 2 */
        {"0f 38 e0 01", ISA_UNKNOWN, 4},                    /* not assigned; elsewhere in this map things are */
        {"62 f4 7c 18 81 c0 01 02 03 04", ISA_UNKNOWN, 10}, /* APX: add with new destination */
        {"62 f4 7d 18 81 c0 01 02", ISA_UNKNOWN, 8},
        {"62 f4 7c 18 83 04 98 01", ISA_UNKNOWN, 8},
        {"62 fc 7c 08 10 00", ISA_UNKNOWN, 6},          /* vmovups xmm0, [r16] */
        {"c4 e7 7b f8 c0 01 00 00 00", ISA_UNKNOWN, 9}, /* urdmsr */
        {"06", ISA_INVALID, 1},
        {"0f 04", ISA_INVALID, 2},
        {"d5 00 a1 00 00 00 00 00 00 00 00", ISA_INVALID, 11}, /* jmpabs: a branch, never copied */
        {"d5 00 70 00", ISA_INVALID, 3},
        {"f0 90", ISA_INVALID, 2},
        {"48", ISA_TRUNCATED, 0},
        {"e8 00 00", ISA_TRUNCATED, 0},
        {"", ISA_TRUNCATED, 0},
        {"c4 e2 7b d2", ISA_TRUNCATED, 0},
        {"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", ISA_INVALID, 15},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in;
        isa_result r = decode_hex(rows[i].hex, &in);
        if (r != rows[i].result || in.len != rows[i].length)
            fail_msg("%s: result %d, length %u", rows[i].hex, r, in.len);
        if (r != ISA_UNKNOWN) continue;
        isa_effects e;
        isa_x86_64.effects(&in, &e);
        assert_true(e.reads == ~0ull && e.writes == ~0ull && !e.kills && !e.flags_kill && !e.vec_kills);
        assert_int_equal(in.flow, ISA_FLOW_NEXT);
    }
}

static void texts(void **state)
{
    static const struct {
        const char *hex, *text, *category;
    } rows[] = {
        {"48 83 44 8b 10 01", "add qword ptr [rbx+rcx*4+0x10], 0x1", "arithmetic"},
        {"8b 05 10 00 00 00", "mov eax, dword ptr [0x401016]", "data transfer"},
        {"64 48 8b 04 25 28 00 00 00", "mov rax, qword ptr fs:[0x28]", "data transfer"},
        {"f3 48 ab", "rep stosq", "string"},
        {"f2 ae", "repne scasb", "string"},
        {"f0 0f b1 0b", "lock cmpxchg dword ptr [rbx], ecx", "atomic"},
        {"0f 84 fa ff ff ff", "jz 0x401000", "conditional branch"},
        {"62 f1 7c d9 58 01", "vaddps zmm0 {k1} {z}, zmm0, dword ptr [rcx] {1to16}", "AVX-512"},
        {"62 f1 7c 18 58 c1", "vaddps zmm0, zmm0, zmm1 {rn-sae}", "AVX-512"},
        {"62 f2 7d 49 92 04 98", "vgatherdps zmm0 {k1}, dword ptr [rax+zmm3*4]", "AVX-512"},
        {"c4 e2 69 93 04 98", "vgatherqps xmm0, dword ptr [rax+xmm3*4], xmm2", "AVX2"},
        {"d3 e0", "shl eax, cl", "shift"},
        {"88 e3", "mov bl, ah", "data transfer"},
        {"c3", "ret", "return"},
        {"0f 01 d5", "xend", "transaction"},
        {"c6 f8 03", "xabort 0x3", "transaction"},
        {"c4 e2 71 50 c2", "vpdpbusd xmm0, xmm1, xmm2", "AVX-VNNI"},
        {"d8 c1", "fadd st0, st1", "x87"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        isa_insn in = good(rows[i].hex);
        char text[96], small[8];
        int n = isa_x86_64.format(&in, text, sizeof text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(n, strlen(text));
        assert_int_equal(isa_x86_64.format(&in, small, sizeof small), n);
        assert_memory_equal(small, text, strlen(small));
        assert_string_equal(isa_x86_64.category(in.op), rows[i].category);
    }
    assert_string_equal(isa_x86_64.reg_name(X86_R12), "r12");
    assert_ptr_equal(isa_for_machine(isa_x86_64.elf_machine), &isa_x86_64);
    assert_null(isa_for_machine(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers),     cmocka_unit_test(flags), cmocka_unit_test(vectors), cmocka_unit_test(memory),
        cmocka_unit_test(gather_counts), cmocka_unit_test(flows), cmocka_unit_test(unknown), cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
