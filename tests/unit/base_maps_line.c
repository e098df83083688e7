/* Lines of /proc/self/maps: each of this process's, put together again, is as it was. */
#include "base/maps_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static void test_own(void **unused)
{
    (void)unused;
    char text[4096], copy[4096], again[5000];
    int lines = 0, named = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (fgets(text, sizeof text, f)) {
        inl_maps_line l;
        text[strcspn(text, "\n")] = 0;
        strcpy(copy, text);
        assert_true(inl_maps_line_read(copy, &l));
        int n = sprintf(again, "%08lx-%08lx %s %08lx %s %lu ", (long)l.low, (long)l.high, l.perms, (long)l.offset,
                        l.device, (long)l.inode);
        if (*l.name) sprintf(again + n, "%*s%s", n < 73 ? 73 - n : 0, "", l.name);
        assert_string_equal(again, text);
        assert_int_equal(l.prot & PROT_READ, text[strcspn(text, " ") + 1] == 'r' ? PROT_READ : 0);
        assert_int_equal(!!(l.prot & PROT_EXEC), l.perms[2] == 'x');
        lines++;
        named += *l.name != 0;
    }
    fclose(f);
    assert_true(lines > 10 && named > 5);
}

static void test_kinds(void **unused)
{
    (void)unused;
    inl_maps_line l;
    char shared[] = "7f00-8f00 rw-s 00001000 fd:01 42        /a b\\012c (deleted)";
    assert_true(inl_maps_line_read(shared, &l));
    assert_int_equal(l.low, 0x7f00);
    assert_int_equal(l.high, 0x8f00);
    assert_int_equal(l.offset, 0x1000);
    assert_int_equal(l.inode, 42);
    assert_int_equal(l.prot, PROT_READ | PROT_WRITE);
    assert_true(l.shared);
    assert_string_equal(l.device, "fd:01");
    assert_string_equal(l.name, "/a b\\012c (deleted)");
    inl_maps_name_unescape(l.name);
    assert_string_equal(l.name, "/a b\nc (deleted)");
    char wrong[][64] = {
        "", "Size:  4 kB", "7f00-8f00", "7f00 8f00 r--p 0 0:0 0 ", "7f00-8f00 r--p 0 0:0", "7f00-8f00 r-- 0 0:0 1 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(inl_maps_line_read(wrong[i], &l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own), cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
