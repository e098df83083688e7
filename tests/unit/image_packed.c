/* Relocations that the linker has packed into bit maps (DT_RELR), read from this very program: every word that the
 * dynamic linker has relocated is among them, with the address that it holds now, and no other is. Distances between
 * the pointers vary, so that entries are addresses, single maps, and maps that follow each other. */
#include "image/file.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int here;
#define P   &here,
#define N   0,
#define P8  P P P P P P P P
#define N8  N N N N N N N N
#define P64 P8 P8 P8 P8 P8 P8 P8 P8
#define N64 N8 N8 N8 N8 N8 N8 N8 N8
static void *volatile const words[] = {
    P N P8 N8 P P64 P64 P64 N64 P N P N N8 P N64 P64 N8 P8 N64 N64 P N8 N8 N8 P N P P P64 N P};
static void *volatile changing[] = {N P N8 P8 P64 N64 P P64 N P};

static int find_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the first is the program */
}

static uint64_t bias_of_this(void)
{
    uint64_t bias = 0;
    dl_iterate_phdr(find_bias, &bias);
    return bias;
}

static const image_reloc *at(const image_reloc *r, size_t count, uint64_t offset)
{
    for (size_t i = 0; i < count; i++)
        if (r[i].offset == offset) return &r[i];
    return NULL;
}

static void check(const image_reloc *r, size_t count, void *const volatile *array, size_t n)
{
    uint64_t bias = bias_of_this();
    for (size_t i = 0; i < n; i++) {
        const image_reloc *found = at(r, count, (uint64_t)(uintptr_t)&array[i] - bias);
        if (!found != !array[i]) fail_msg("word %zu: %s", i, found ? "is no pointer" : "has no relocation");
        if (found) assert_true(found->value + bias == (uint64_t)(uintptr_t)array[i]);
    }
}

static void bit_maps(void **state)
{
    image *im;
    inl_error e = {0};
    const image_reloc *r;
    (void)state;
    if (image_open("/proc/self/exe", &im, &e)) fail_msg("%s", e.text);
    assert_true(image_dynamic_info(im)->relr_size > 0);
    size_t count = image_relocs(im, &r);
    assert_true(count > 400);
    check(r, count, words, sizeof words / sizeof *words);
    check(r, count, changing, sizeof changing / sizeof *changing);
    image_close(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bit_maps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
