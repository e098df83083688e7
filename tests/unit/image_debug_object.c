/* The ELF file in memory for debuggers: elfutils finds in it the names, lines and frames that were put in. */
#include "image/debug_out.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char one_c[] = "/src/one.c", two_c[] = "src/two.c";
/* Two arenas: far apart, so two sections. */
static const debug_code code[] = {
    {0x10000, 0x20, "first"}, {0x10020, 0x10, "_Z6secondv"}, {0x7f0000000000, 0x40, "third"}};
static const debug_row rows[] = {{0x10000, one_c, NULL, 10, 0},         {0x10008, one_c, NULL, 12, 5},
                                 {0x10020, two_c, "/folder", 3, 41},    {0x10030, NULL, NULL, 0, 0},
                                 {0x7f0000000010, one_c, NULL, 99, 41}, {0x7f0000000040, NULL, NULL, 0, 0}};

typedef struct made {
    inl_bytes bytes;
    Elf *elf;
    Dwarf *dwarf;
} made;

static void put_frames(inl_bytes *b)
{
    size_t at = debug_length_begin(b);
    inl_bytes_number(b, UINT32_MAX, 4);
    inl_bytes_put(b, (uint8_t[]){3, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, 0, 0}, 12);
    debug_length_end(b, at);
    at = debug_length_begin(b);
    inl_bytes_number(b, 0, 4);
    inl_bytes_number(b, 0x10000, 8);
    inl_bytes_number(b, 0x20, 8);
    inl_bytes_put(b, (uint8_t[]){DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, 0}, 4);
    debug_length_end(b, at);
}

static int set_up(void **state)
{
    made *m = calloc(1, sizeof *m);
    inl_bytes frames = {0};
    put_frames(&frames);
    const debug_object o = {.machine = EM_X86_64,
                            .name = "test",
                            .code = code,
                            .code_count = 3,
                            .rows = rows,
                            .row_count = 6,
                            .frames = &frames};
    elf_version(EV_CURRENT);
    if (!m || !debug_object_put(&o, &m->bytes)) return -1;
    inl_bytes_free(&frames);
    m->elf = elf_memory((char *)m->bytes.data, m->bytes.size);
    m->dwarf = dwarf_begin_elf(m->elf, DWARF_C_READ, NULL);
    *state = m;
    return m->dwarf ? 0 : -1;
}

static int tear_down(void **state)
{
    made *m = *state;
    dwarf_end(m->dwarf);
    elf_end(m->elf);
    inl_bytes_free(&m->bytes);
    free(m);
    return 0;
}

/* Each symbol lies in the section that it says, and sections cover the code and no more. */
static void test_symbols(void **state)
{
    const made *m = *state;
    size_t seen = 0;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(m->elf, s));) {
        GElf_Shdr h;
        gelf_getshdr(s, &h);
        if (h.sh_type != SHT_SYMTAB) continue;
        Elf_Data *data = elf_getdata(s, NULL);
        for (int i = 1; i < 4; i++) {
            GElf_Sym sym;
            GElf_Shdr in;
            assert_non_null(gelf_getsym(data, i, &sym));
            assert_int_equal(sym.st_value, code[i - 1].addr);
            assert_int_equal(sym.st_size, code[i - 1].size);
            assert_string_equal(elf_strptr(m->elf, h.sh_link, sym.st_name), code[i - 1].name);
            gelf_getshdr(elf_getscn(m->elf, sym.st_shndx), &in);
            assert_true(in.sh_addr <= sym.st_value && sym.st_value + sym.st_size <= in.sh_addr + in.sh_size);
            assert_true(in.sh_size <= 0x40);
            seen++;
        }
    }
    assert_int_equal(seen, 3);
}

static Dwarf_Die *unit(const made *m, Dwarf_Die *die)
{
    Dwarf_Off next;
    size_t header;
    assert_int_equal(dwarf_nextcu(m->dwarf, 0, &next, &header, NULL, NULL, NULL), 0);
    return dwarf_offdie(m->dwarf, header, die);
}

static void expect_line(Dwarf_Die *die, uint64_t addr, const char *file, int line, int column)
{
    int number = 0;
    Dwarf_Line *l = dwarf_getsrc_die(die, addr);
    assert_non_null(l);
    dwarf_linecol(l, &number);
    assert_int_equal(number, column);
    dwarf_lineno(l, &number);
    assert_int_equal(number, line);
    assert_string_equal(dwarf_linesrc(l, NULL, NULL), file);
}

static void test_lines(void **state)
{
    Dwarf_Die die;
    assert_non_null(unit(*state, &die));
    expect_line(&die, 0x10007, one_c, 10, 0);
    expect_line(&die, 0x1001f, one_c, 12, 5);
    expect_line(&die, 0x10025, "/folder/src/two.c", 3, 41);
    expect_line(&die, 0x7f000000003f, one_c, 99, 41);
    assert_null(dwarf_getsrc_die(&die, 0x7f0000000008));
    assert_int_equal(dwarf_haspc(&die, 0x10020), 1);
    assert_int_equal(dwarf_haspc(&die, 0x7f000000003f), 1);
    assert_int_equal(dwarf_haspc(&die, 0x20000), 0);
}

/* Names that are mangled are left to the symbols. */
static void test_procedures(void **state)
{
    Dwarf_Die die, child;
    assert_non_null(unit(*state, &die));
    assert_int_equal(dwarf_child(&die, &child), 0);
    assert_string_equal(dwarf_diename(&child), "first");
    assert_int_equal(dwarf_siblingof(&child, &child), 0);
    assert_string_equal(dwarf_diename(&child), "third");
    assert_int_equal(dwarf_siblingof(&child, &child), 1);
}

static void expect_cfa(Dwarf_CFI *cfi, uint64_t addr, unsigned offset)
{
    Dwarf_Frame *frame;
    Dwarf_Op *ops;
    size_t count;
    assert_int_equal(dwarf_cfi_addrframe(cfi, addr, &frame), 0);
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(ops[0].number2, offset);
    free(frame);
}

static void test_frames(void **state)
{
    const made *m = *state;
    Dwarf_CFI *cfi = dwarf_getcfi(m->dwarf);
    assert_non_null(cfi);
    expect_cfa(cfi, 0x10003, 8);
    expect_cfa(cfi, 0x10004, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_symbols, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_procedures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frames, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
