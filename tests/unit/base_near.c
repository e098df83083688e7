/* Names that are spelled nearly as another. */
#include "base/near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *near_to(const char *wanted, const char *const *names, char *out, size_t size)
{
    inl_near n;
    inl_near_begin(&n, wanted);
    for (; *names; names++) inl_near_offer(&n, *names);
    return inl_near_text(&n, out, size);
}

static const char *const names[] = {"malloc", "calloc", "realloc", "mallopt", "valloc", "free",   "malloc",
                                    "write",  "pwrite", "read",    "a",       "",       "getenv", NULL};

static void the_nearest_come_first_and_once(void **state)
{
    (void)state;
    char out[200];
    assert_string_equal(near_to("maloc", names, out, sizeof out), "'malloc'");
    assert_string_equal(near_to("balloc", names, out, sizeof out), "'malloc', 'calloc', 'valloc'");
    assert_string_equal(near_to("relaloc", names, out, sizeof out), "'realloc'");
}

static void letters_that_have_changed_places_are_one_mistake(void **state)
{
    (void)state;
    char out[200];
    assert_string_equal(near_to("wirte", names, out, sizeof out), "'write'");
    assert_string_equal(near_to("raed", names, out, sizeof out), "'read'");
}

static void what_is_far_short_or_equal_is_not_told(void **state)
{
    (void)state;
    char out[200], longest[200];
    assert_string_equal(near_to("connect", names, out, sizeof out), "");
    assert_string_equal(near_to("b", names, out, sizeof out), "");
    assert_string_equal(near_to("", names, out, sizeof out), "");
    assert_string_equal(near_to("getenv", names, out, sizeof out), "");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_string_equal(near_to(longest, names, out, sizeof out), "");
    assert_string_equal(near_to("maloc", names, out, 5), "'mal");
}

static void another_spelling_may_be_right(void **state)
{
    (void)state;
    char out[200], longest[200];
    inl_near n;
    inl_near_begin(&n, "total");
    inl_near_offer_as(&n, "totals", "shop::totals");
    inl_near_offer_as(&n, "total", "shop::basket::total");
    inl_near_offer_as(&n, "total", "total");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    inl_near_offer_as(&n, "total", longest);
    assert_string_equal(inl_near_text(&n, out, sizeof out), "'shop::basket::total', 'shop::totals'");
}

/* All pairs of short words: by the same table in full. */
static size_t slow(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), d[8][8];
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            size_t best = i && j ? d[i - 1][j - 1] + (a[i - 1] != b[j - 1]) : i + j;
            if (i && d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (j && d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

static void random_words_are_as_near_as_a_full_table_says(void **state)
{
    (void)state;
    unsigned told = 0;
    srand(1);
    for (unsigned round = 0; round < 200000; round++) {
        char a[8], b[8];
        size_t n = 3 + (size_t)rand() % 5, m = 1 + (size_t)rand() % 7;
        for (size_t i = 0; i <= n; i++) a[i] = i < n ? (char)('a' + rand() % 3) : 0;
        for (size_t i = 0; i <= m; i++) b[i] = i < m ? (char)('a' + rand() % 3) : 0;
        inl_near near;
        inl_near_begin(&near, a);
        inl_near_offer(&near, b);
        size_t d = slow(a, b);
        assert_int_equal(near.count, d && d <= n / 3);
        if (near.count) assert_int_equal(near.distance[0], d);
        told += near.count;
    }
    assert_true(told > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_come_first_and_once),
        cmocka_unit_test(letters_that_have_changed_places_are_one_mistake),
        cmocka_unit_test(what_is_far_short_or_equal_is_not_told),
        cmocka_unit_test(another_spelling_may_be_right),
        cmocka_unit_test(random_words_are_as_near_as_a_full_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
