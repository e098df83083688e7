/* Operands as tools see them: rows written by hand; and over random instructions, that each register which the text
 * names is an operand of that name, in the text's order. (That the decoder's operands are Zydis' is isa_corpus.c's.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isa_zydis.h"
#include "tool/operands.h"

static size_t bytes_of(const char *hex, uint8_t bytes[16])
{
    size_t n = 0;
    unsigned byte;
    int used;
    for (; sscanf(hex, " %2x%n", &byte, &used) == 1; hex += used) bytes[n++] = (uint8_t)byte;
    return n;
}

/* "rbx:rw8 [0]:r8 5:1 (rsp):rw8": implicit ones in parentheses */
static void put(char *out, size_t size, const inlay_operand *o)
{
    static const char *const accesses[] = {"", "r", "w", "rw"};
    char what[32] = "?";
    if (o->kind == INLAY_OPERAND_REGISTER) snprintf(what, sizeof what, "%s", inlay_reg_name(o->reg));
    if (o->kind == INLAY_OPERAND_MEMORY) snprintf(what, sizeof what, "[%u]", o->memory);
    if (o->kind == INLAY_OPERAND_IMMEDIATE) snprintf(what, sizeof what, "%lld", (long long)o->value);
    if (o->kind == INLAY_OPERAND_TARGET) snprintf(what, sizeof what, "0x%llx", (long long)o->value);
    snprintf(out, size, "%s%s%s%s:%s%u ", o->implicit ? "(" : "", what, o->count > 1 ? "+" : "", o->implicit ? ")" : "",
             accesses[o->read | o->write << 1], o->size);
}

static void rows(void **state)
{
    static const struct {
        const char *hex, *operands;
    } list[] = {
        {"48 01 d8", "rax:rw8 rbx:r8 "},
        {"00 e7", "bh:rw1 ah:r1 "},
        {"40 00 e7", "dil:rw1 spl:r1 "},
        {"66 45 01 c7", "r15w:rw2 r8w:r2 "},
        {"44 8b 44 8b 10", "r8d:w4 [0]:r4 "},
        {"48 8d 04 1b", "rax:w8 [0]:8 "},
        {"48 83 c0 ff", "rax:rw8 -1:r1 "},
        {"c4 e3 fd 00 ca 4e", "ymm1:w32 ymm2:r32 78:r1 "},
        {"62 f1 7c 49 28 08", "zmm1:rw64 k1:r8 [0]:r64 "},
        {"0f 6f c1", "mm0:w8 mm1:r8 "},
        {"d8 c1", "st0:rw10 st1:r10 (x87_status):w2 "},
        {"8e d8", "ds:w2 ax:r2 "},
        {"0f ae 10", "[0]:r4 (mxcsr):w4 "},
        {"e8 00 00 00 00", "0x401005:r4 (rsp):rw8 ([0]):w8 "},
        {"f7 e3", "ebx:r4 (eax):rw4 (edx):w4 "},
        {"50", "rax:r8 (rsp):rw8 ([0]):w8 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        uint8_t bytes[16] = {0};
        isa_insn in;
        isa_operand o[ISA_MAX_OPERANDS];
        char all[256] = "";
        size_t n = bytes_of(list[i].hex, bytes);
        assert_int_equal(isa_x86_64.decode(bytes, n, 0x401000, &in), ISA_OK);
        int count = isa_x86_64.operands(&in, o);
        for (int k = 0; k < count; k++) {
            inlay_operand one = tool_operand(&o[k]);
            put(all + strlen(all), sizeof all - strlen(all), &one);
        }
        if (strcmp(all, list[i].operands)) fail_msg("%s: %s, not %s", list[i].hex, all, list[i].operands);
    }
}

static void names(void **state)
{
    uint64_t seed = 7;
    unsigned seen = 0;
    (void)state;
    for (unsigned i = 0; i < 400000; i++) {
        uint8_t bytes[32];
        isa_insn in;
        isa_operand o[ISA_MAX_OPERANDS];
        char text[160], *at;
        isa_random_bytes(&seed, i & 1, bytes);
        if (isa_x86_64.decode(bytes, sizeof bytes, 0x401000, &in) != ISA_OK) continue;
        isa_x86_64.format(&in, text, sizeof text);
        at = strchr(text, ' ');
        int count = isa_x86_64.operands(&in, o);
        for (int k = 0; k < count; k++) {
            inlay_operand one = tool_operand(&o[k]);
            if (one.implicit || one.kind != INLAY_OPERAND_REGISTER || one.reg - INLAY_K0 < 8) continue;
            at = at ? strstr(at, inlay_reg_name(one.reg)) : NULL;
            if (!at) fail_msg("%s: operand %d is %s", text, k, inlay_reg_name(one.reg));
            assert_int_equal(one.size <= inlay_reg_bits(one.reg) / 8, true);
            at++, seen++;
        }
    }
    assert_true(seen > 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
