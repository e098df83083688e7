/* Stretches of pages that are there: in this process's memory, of which most has never been touched; in words as
 * kernels write them that cannot be asked; and where nothing is told. */
#include "base/present.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/page.h"

enum { MOST = 300 };
typedef struct found {
    unsigned count;
    uint64_t low[MOST], high[MOST]; /* pages from the range's beginning on */
    uint64_t base;
} found;

static void note(void *arg, uint64_t low, uint64_t high)
{
    found *f = arg;
    assert_true(f->count < MOST && low < high);
    f->low[f->count] = (low - f->base) / INL_PAGE;
    f->high[f->count++] = (high - f->base) / INL_PAGE;
}

static void test_own(void **unused)
{
    (void)unused;
    const uint64_t size = 1ull << 33, last = size / INL_PAGE - 1;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pagemap < 0 || p == MAP_FAILED) skip();
    madvise(p, size, MADV_NOHUGEPAGE);
    const uint64_t touched[] = {0, 1, 2, 511, 512, 1000, last};
    for (unsigned k = 0; k < sizeof touched / sizeof *touched; k++) p[touched[k] * INL_PAGE] = 1;
    for (unsigned k = 0; k < 200; k++) p[(5000 + 2 * k) * (uint64_t)INL_PAGE] = 1; /* more than are told at once */
    found f = {.base = (uint64_t)(uintptr_t)p};
    inl_present_each(pagemap, f.base, f.base + 6000 * (uint64_t)INL_PAGE, note, &f);
    assert_int_equal(f.count, 203);
    assert_true(f.low[0] == 0 && f.high[0] == 3 && f.low[1] == 511 && f.high[1] == 513);
    assert_true(f.low[2] == 1000 && f.high[2] == 1001);
    for (unsigned k = 0; k < 200; k++) assert_true(f.low[3 + k] == 5000 + 2 * k && f.high[3 + k] == 5001 + 2 * k);
    f.count = 0;
    inl_present_each(pagemap, f.base + (last - 100) * INL_PAGE, f.base + size, note, &f);
    assert_true(f.count == 1 && f.low[0] == last && f.high[0] == last + 1);
    munmap(p, size);
    close(pagemap);
}

static void test_words(void **unused)
{
    (void)unused;
    const uint64_t present = 1ull << 63, swapped = 1ull << 62, neither = 1ull << 61 | 12345;
    int words = memfd_create("words", MFD_CLOEXEC);
    found f = {0};
    assert_int_equal(ftruncate(words, 2000 * sizeof(uint64_t)), 0);
    for (uint64_t k = 0; k < 2000; k++) {
        uint64_t word = k == 5 || (k >= 500 && k < 600) ? present : k == 6 ? swapped : k == 1999 ? present : neither;
        assert_int_equal(pwrite(words, &word, sizeof word, (off_t)(k * sizeof word)), sizeof word);
    }
    inl_present_each(words, 0, 2000 * INL_PAGE, note, &f);
    assert_int_equal(f.count, 3);
    assert_true(f.low[0] == 5 && f.high[0] == 7 && f.low[1] == 500 && f.high[1] == 600);
    assert_true(f.low[2] == 1999 && f.high[2] == 2000);
    close(words);
}

static void test_nothing_told(void **unused)
{
    (void)unused;
    found f = {.base = 3 * INL_PAGE};
    inl_present_each(-1, f.base, 3000 * INL_PAGE, note, &f);
    assert_true(f.count == 1 && f.low[0] == 0 && f.high[0] == 2997);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_nothing_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
