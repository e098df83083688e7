/* Call frame instructions and the numbers that they are made of: where the frame begins at each place of a
 * procedure whose rows lie as far apart as each way of advancing allows. */
#include "image/entries.h"

#include "image_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    uint8_t bytes[10];
    unsigned size;
    uint64_t plain, with_sign;
} numbers[] = {
    {{0x00}, 1, 0, 0},
    {{0x3f}, 1, 63, 63},
    {{0x40}, 1, 64, (uint64_t)-64},
    {{0x7f}, 1, 127, (uint64_t)-1},
    {{0xff, 0x00}, 2, 127, 127},
    {{0x80, 0x01}, 2, 128, 128},
    {{0x80, 0x7f}, 2, 0x3f80, (uint64_t)-128},
    {{0xc0, 0x00}, 2, 64, 64},
    {{0x80, 0x80, 0x40}, 3, 0x100000, (uint64_t)-0x100000},
    {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, 0xffffffff, 0xffffffff},
    {{0xff, 0xff, 0xff, 0xff, 0x7f}, 5, 0x7ffffffff, (uint64_t)-1},
    {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 10, 1ull << 63, 1ull << 63},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, ~0ull, ~0ull},
};

static void variable_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (int with_sign = 0; with_sign < 2; with_sign++) {
            image_cursor c = {numbers[i].bytes, numbers[i].bytes + numbers[i].size, 1000};
            uint64_t value = 0;
            assert_true(image_take_leb(&c, with_sign, &value));
            assert_true(value == (with_sign ? numbers[i].with_sign : numbers[i].plain));
            assert_true(c.at == c.end && c.addr == 1000 + numbers[i].size);
            c = (image_cursor){numbers[i].bytes, numbers[i].bytes + numbers[i].size - 1, 1000};
            assert_false(image_take_leb(&c, with_sign, &value)); /* cut off */
        }
    }
}

static uint64_t fixed(uint8_t encoding, unsigned size)
{
    static const uint8_t bytes[8] = {0x01, 0x80, 0xfe, 0xff, 0x02, 0x03, 0x04, 0x85};
    image_cursor c = {bytes, bytes + size, 0x1000};
    uint64_t value = 0;
    assert_true(image_take_pointer(&c, encoding, 0x50, &value));
    assert_true(c.at == c.end);
    return value;
}

static void fixed_numbers(void **state)
{
    (void)state;
    assert_int_equal(fixed(IMAGE_PE_UDATA2, 2), 0x8001);
    assert_int_equal(fixed(IMAGE_PE_SDATA2, 2), 0xffffffffffff8001);
    assert_int_equal(fixed(IMAGE_PE_UDATA4, 4), 0xfffe8001);
    assert_int_equal(fixed(IMAGE_PE_SDATA4, 4), 0xfffffffffffe8001);
    assert_int_equal(fixed(IMAGE_PE_SDATA8, 8), 0x85040302fffe8001);
    assert_int_equal(fixed(IMAGE_PE_SDATA4 | IMAGE_PE_PCREL, 4), 0xfffffffffffe9001);
    assert_int_equal(fixed(IMAGE_PE_SDATA4 | IMAGE_PE_DATAREL, 4), 0xfffffffffffe8051);
}

/* Each row is told by the offset: 16, 32, 48 ... */
#define ROW(distance, offset) ".skip " distance ", 0x90\n.cfi_def_cfa_offset " offset "\n"
static const char source[] = ".text\n.globl rows\n.type rows,@function\nrows:\n.cfi_startproc\n" ROW("1", "16")
    ROW("31", "32") ROW("32", "48") ROW("63", "64") ROW("64", "80") ROW("255", "96") ROW("256", "112")
        ROW("65535", "128")
            ROW("65536", "144") "ret\n.cfi_endproc\n.size rows,.-rows\n"
                                ".globl rules\n.type rules,@function\nrules:\n.cfi_startproc\n"
                                "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp,-16\n"
                                "mov %rsp,%rbp\n.cfi_def_cfa_register rbp\n"
                                ".cfi_remember_state\nleave\n.cfi_def_cfa rsp,8\n.cfi_restore rbp\nret\n"
                                ".cfi_restore_state\nnop\n.cfi_escape 0x0f,2,0x77,8\nnop\n.cfi_def_cfa rsp,24\nret\n"
                                ".cfi_endproc\n.size rules,.-rules\n"
                                ".section .note.GNU-stack,\"\",@progbits\n";

static image *im;
static uint64_t base;

static void begin(const char *name)
{
    uint64_t size;
    if (!image_symbol(im, name, &base, &size)) fail_msg("no symbol %s", name);
}

static void frame(uint64_t at, unsigned reg, int64_t offset)
{
    unsigned r = 99;
    int64_t o = 0;
    if (!image_frame_at(im, base + at, &r, &o)) fail_msg("%#lx: no frame", (long)at);
    if (r != reg || o != offset) fail_msg("%#lx: %u%+ld instead of %u%+ld", (long)at, r, (long)o, reg, (long)offset);
}

enum { RBP = 6, RSP = 7 };

static void rows_far_apart(void **state)
{
    static const uint32_t distances[] = {1, 31, 32, 63, 64, 255, 256, 65535, 65536};
    uint64_t at = 0;
    (void)state;
    begin("rows");
    frame(0, RSP, 8);
    for (unsigned i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        at += distances[i];
        frame(at - 1, RSP, i ? 16 * i : 8);
        frame(at, RSP, 16 * (i + 1));
    }
}

static void rules_of_the_frame(void **state)
{
    unsigned reg;
    int64_t offset;
    (void)state;
    begin("rules");
    frame(0, RSP, 8);
    frame(1, RSP, 16);
    frame(3, RSP, 16);
    frame(4, RBP, 16);
    frame(5, RSP, 8);                                          /* leave is one byte */
    frame(6, RBP, 16);                                         /* as remembered */
    assert_false(image_frame_at(im, base + 7, &reg, &offset)); /* an expression */
    frame(8, RSP, 24);
    assert_false(image_frame_at(im, 1, &reg, &offset));
}

/* Bytes of the sample from an address on. */
static image_cursor sample_bytes(uint64_t addr)
{
    const uint8_t *bytes = NULL;
    size_t have = image_bytes(im, addr, &bytes);
    return (image_cursor){bytes, bytes ? bytes + have : bytes, addr};
}

/* What a row of the search table leads to is what the section says. */
static void expect_found(const image_search *s, const image_unwind_range *r, uint64_t next)
{
    uint64_t record, begin, behind;
    image_record of;
    image_cie cie;
    image_range_entry entry;
    assert_true(image_search_find(s, r->addr + r->size - 1, &record, &begin, &behind));
    assert_true(record == r->fde && begin == r->addr && behind == next);
    assert_true(image_record_at(sample_bytes(record), &of) && of.whole && !of.is_common);
    assert_true(image_cie_at(sample_bytes(of.common), &cie));
    assert_false(cie.signal || cie.odd);
    assert_true(image_entry_read(&of, &cie, s->header, &entry));
    assert_true(entry.addr == r->addr && entry.size == r->size && entry.lsda == 0);
}

static void found_by_the_table(void **state)
{
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(im, &r);
    uint64_t record, begin, behind;
    image_search s;
    (void)state;
    assert_int_equal(count, 2);
    assert_true(image_search_at(sample_bytes(im->unwind_header.p_vaddr), &s));
    assert_int_equal(s.count, count);
    for (size_t i = 0; i < count; i++) expect_found(&s, &r[i], i + 1 < count ? r[i + 1].addr : 0);
    assert_false(image_search_find(&s, r[0].addr - 1, &record, &begin, &behind));
    assert_true(behind == r[0].addr);
    s.count = 1000; /* a table that promises more than there is ends with its bytes */
    s.table.end = s.table.at + 8;
    assert_true(image_search_find(&s, ~0ull, &record, &begin, &behind));
    assert_true(record == r[0].fde && behind == 0);
}

/* A common entry byte by byte; what it refers to need not be there. */
static const uint8_t common[] = {0x1c, 0,    0,    0,         0, 0, 0, 0, 1,    'z',  'P',       'L', 'R', 'S',  0, 1,
                                 0x78, 0x10, 0x07, /**/ 0x9b, 4, 0, 0, 0, 0x1b, 0x1b, /**/ 0x0c, 7,   8,   0x90, 1, 0};

static void common_entries(void **state)
{
    image_cie cie;
    uint8_t bytes[sizeof common];
    (void)state;
    memcpy(bytes, common, sizeof bytes);
    assert_true(image_cie_at((image_cursor){bytes, bytes + sizeof bytes, 0x1000}, &cie));
    assert_true(cie.signal && !cie.odd && cie.has_augmentation);
    assert_int_equal(cie.personality, 0x1000 + 20 + 4); /* where the pointer to it stands */
    assert_int_equal(cie.data_align, -8);
    assert_int_equal(cie.return_reg, 16);
    assert_true(cie.encoding == 0x1b && cie.lsda_encoding == 0x1b && cie.program.at == bytes + 26);
    for (size_t cut = 0; cut < sizeof bytes; cut++)
        assert_false(image_cie_at((image_cursor){bytes, bytes + cut, 0x1000}, &cie));
    bytes[13] = 'B'; /* not written anew, but the ranges are known */
    assert_true(image_cie_at((image_cursor){bytes, bytes + sizeof bytes, 0x1000}, &cie));
    assert_true(cie.odd && !cie.signal);
    bytes[13] = 'Q';
    assert_false(image_cie_at((image_cursor){bytes, bytes + sizeof bytes, 0x1000}, &cie));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variable_numbers),   cmocka_unit_test(fixed_numbers),      cmocka_unit_test(rows_far_apart),
        cmocka_unit_test(rules_of_the_frame), cmocka_unit_test(found_by_the_table), cmocka_unit_test(common_entries),
    };
    im = sample_open(sample_build("gcc", "frames", "s", source, "-shared -nostdlib"));
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    image_close(im);
    return status;
}
