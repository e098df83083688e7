/* Arena, vector and map against simple models, under random operations with a fixed seed; memory that grows in its
 * place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/region.h"
#include "base/vec.h"

static uint64_t seed;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t below(uint64_t n) { return next_random() % n; }

static int set_seed(void **state)
{
    (void)state;
    seed = 0x9e3779b97f4a7c15u;
    return 0;
}

/* Arena: each allocation is remembered with the byte it was filled with, and must keep it. */

enum { BLOCKS = 600 };
typedef struct block {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
} block;

static size_t random_size(void)
{
    switch (below(20)) {
    case 0: return 0;
    case 1: return 5000 + below(100000);
    case 2: return (size_t)1 << below(18);
    default: return 1 + below(300);
    }
}

static void check_blocks(const block *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < b[i].bytes; k++)
            if (b[i].at[k] != b[i].fill) fail_msg("block %zu changed at byte %zu", i, k);
}

static void test_arena_keeps_blocks_apart(void **state)
{
    (void)state;
    inl_arena a = {0};
    static block blocks[BLOCKS];
    for (unsigned round = 0; round < 12; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            block *b = &blocks[i];
            *b = (block){NULL, random_size(), (unsigned char)(1 + i % 255)};
            b->at = inl_arena_alloc(&a, b->bytes);
            assert_non_null(b->at);
            assert_int_equal((uintptr_t)b->at % 16, 0);
            for (size_t k = 0; k < b->bytes; k++) assert_int_equal(b->at[k], 0);
            memset(b->at, b->fill, b->bytes);
        }
        check_blocks(blocks, BLOCKS);
        if (below(3)) inl_arena_reset(&a);
        else inl_arena_free(&a);
    }
    inl_arena_free(&a);
    inl_arena_free(&a);
}

static void test_arena_refuses_absurd_sizes(void **state)
{
    (void)state;
    inl_arena a = {0};
    assert_null(inl_arena_alloc(&a, SIZE_MAX));
    assert_null(inl_arena_alloc(&a, SIZE_MAX - 15));
    char *s = inl_arena_strdup(&a, "text");
    assert_string_equal(s, "text");
    assert_null(inl_arena_alloc(&a, SIZE_MAX / 2 + 1));
    assert_string_equal(inl_arena_strdup(&a, ""), "");
    assert_string_equal(s, "text");
    inl_arena_free(&a);
}

static void test_arena_reset_reuses_memory(void **state)
{
    (void)state;
    inl_arena a = {0};
    void *first = inl_arena_alloc(&a, 100);
    memset(first, 0xff, 100);
    inl_arena_reset(&a);
    unsigned char *again = inl_arena_alloc(&a, 100);
    assert_ptr_equal(again, first);
    for (unsigned i = 0; i < 100; i++) assert_int_equal(again[i], 0);
    inl_arena_free(&a);
}

/* Vector: item i is always f(i), so the model needs no memory. */

typedef struct wide {
    uint64_t a, b, c;
} wide;

static void test_vector_keeps_items(void **state)
{
    (void)state;
    INL_VEC(wide) v = {0};
    size_t expected = 0;
    for (unsigned step = 0; step < 20000; step++) {
        switch (below(10)) {
        case 0:
            if (expected) v.count = --expected;
            break;
        case 1: assert_true(inl_vec_reserve(&v, expected + below(40))); break;
        case 2:
            if (below(500) == 0) inl_vec_free(&v), expected = 0;
            break;
        default: assert_true(inl_vec_push(&v, (wide){expected, ~expected, expected * 3})); expected++;
        }
        assert_int_equal(v.count, expected);
        assert_true(v.capacity >= v.count);
    }
    for (size_t i = 0; i < v.count; i++) {
        assert_int_equal(v.items[i].a, i);
        assert_int_equal(v.items[i].b, ~i);
        assert_int_equal(v.items[i].c, i * 3);
    }
    assert_false(inl_vec_reserve(&v, SIZE_MAX));
    assert_false(inl_vec_reserve(&v, SIZE_MAX / sizeof(wide) + 1));
    assert_int_equal(v.count, expected); /* unharmed */
    assert_int_equal(v.items[v.count - 1].a, v.count - 1);
    inl_vec_free(&v);
    assert_null(v.items);
}

/* Map: keys come from a small table, so that the model is an array beside it. */

enum { KEYS = 700 };
typedef struct model {
    uint64_t key[KEYS], value[KEYS];
    bool present[KEYS];
    size_t count;
} model;

/* Dense numbers, aligned addresses, keys that differ in high bits only, extremes. */
static uint64_t model_key(unsigned kind, unsigned i)
{
    switch (kind) {
    case 0: return i;
    case 1: return 0x7f0000000000u + 4096u * (uint64_t)i;
    case 2: return (uint64_t)i << 52 | (uint64_t)i << 32;
    case 3: return UINT64_MAX - i;
    default: return next_random();
    }
}

static void check_map(const inl_map *m, const model *k)
{
    assert_int_equal(m->count, k->count);
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t value = 0;
        assert_int_equal(inl_map_get(m, k->key[i], &value), k->present[i]);
        if (k->present[i]) assert_int_equal(value, k->value[i]);
    }
    uint64_t key, value, keys = 0, expected = 0;
    size_t at = 0, seen = 0;
    while (inl_map_next(m, &at, &key, &value)) {
        seen++;
        keys += key * 31 + value;
    }
    for (unsigned i = 0; i < KEYS; i++)
        if (k->present[i]) expected += k->key[i] * 31 + k->value[i];
    assert_int_equal(seen, k->count);
    assert_int_equal(keys, expected);
}

static void step_map(inl_map *m, model *k, unsigned remove_share)
{
    unsigned i = (unsigned)below(KEYS);
    if (below(100) < remove_share) {
        assert_int_equal(inl_map_remove(m, k->key[i]), k->present[i]);
        k->count -= k->present[i];
        k->present[i] = false;
        return;
    }
    k->value[i] = next_random();
    assert_true(inl_map_put(m, k->key[i], k->value[i]));
    k->count += !k->present[i];
    k->present[i] = true;
}

static void test_map_agrees_with_model(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 10; kind++) {
        static model k;
        memset(&k, 0, sizeof k);
        for (unsigned i = 0; i < KEYS; i++) k.key[i] = model_key(kind % 5, i);
        inl_map m = {.of_code = kind >= 5};
        check_map(&m, &k);
        for (unsigned phase = 0; phase < 60; phase++) {
            unsigned share = (unsigned)below(101);
            for (unsigned step = 0; step < 500; step++) step_map(&m, &k, share);
            if (phase % 20 == 19) {
                inl_map_clear(&m);
                memset(k.present, 0, sizeof k.present);
                k.count = 0;
            }
            check_map(&m, &k);
        }
        assert_true(m.capacity <= 2048); /* removals do not make it grow */
        inl_map_free(&m);
    }
}

static void test_map_stays_small_under_churn(void **state)
{
    (void)state;
    inl_map m = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        assert_true(inl_map_put(&m, i * 16, i));
        if (i >= 10) assert_true(inl_map_remove(&m, (i - 10) * 16));
    }
    assert_int_equal(m.count, 10);
    assert_true(m.capacity <= 64);
    inl_map_free(&m);
}

/* However full: a key that is not there is looked for to the end. */
static void test_map_finds_nothing_among_tombs(void **state)
{
    (void)state;
    for (uint64_t live = 1; live <= 100; live++) {
        inl_map m = {0};
        for (uint64_t i = 0; i < 3000; i++) {
            assert_true(inl_map_put(&m, i * 0x9e3779b97f4a7c15u, i));
            if (i >= live) assert_true(inl_map_remove(&m, (i - live) * 0x9e3779b97f4a7c15u));
            assert_false(inl_map_get(&m, ~i, NULL));
        }
        assert_int_equal(m.count, live);
        inl_map_free(&m);
    }
}

static void test_map_allows_absent_outputs(void **state)
{
    (void)state;
    inl_map m = {0};
    size_t at = 0;
    assert_false(inl_map_get(&m, 0, NULL));
    assert_false(inl_map_remove(&m, 0));
    assert_false(inl_map_next(&m, &at, NULL, NULL));
    inl_map_clear(&m);
    assert_true(inl_map_put(&m, UINT64_MAX, 0));
    assert_true(inl_map_get(&m, UINT64_MAX, NULL));
    assert_true(inl_map_next(&m, &at, NULL, NULL));
    inl_map_free(&m);
}

/* A room takes address space for what is mapped of it alone, and grows where it is. */
static void test_room_grows_in_its_place(void **state)
{
    (void)state;
    const uint64_t low = 0x200000000000;
    inl_room r, next;
    inl_region_set(low, low + (1ull << 36));
    assert_true(inl_room_take(&r, 64 << 20, 4096));
    assert_true(inl_room_take(&next, 64 << 20, 4096));
    assert_true(r.at >= low && r.mapped == 4096 && next.at >= r.at + r.size);
    *(char *)r.at = 1;
    assert_true(inl_room_grow(&r, 32 << 20));
    assert_true(inl_room_grow(&r, 4096));
    assert_int_equal(r.mapped, 32 << 20);
    assert_int_equal(*(char *)r.at, 1);
    assert_int_equal(*(char *)(r.at + r.mapped - 1), 0);
    assert_false(inl_room_grow(&r, r.size + 4096));
    /* Somebody is there. */
    void *there = mmap((void *)(r.at + (48 << 20)), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_true(there != MAP_FAILED);
    assert_false(inl_room_grow(&r, r.size));
    assert_int_equal(r.mapped, 32 << 20);
    munmap(there, 4096);
    inl_room_give_back(&r);
    inl_room_give_back(&next);
    inl_region_set(0, 0);
}

/* When nothing can be mapped the spare is given up, once. */
static void test_spare_is_given_up(void **state)
{
    (void)state;
    struct rlimit before, none;
    getrlimit(RLIMIT_AS, &before);
    none = (struct rlimit){0, before.rlim_max};
    inl_spare_keep(4 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    uint64_t p = inl_region_map(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    bool again = inl_spare_drop();
    setrlimit(RLIMIT_AS, &before);
    assert_true(p == 0); /* the limit is below what there is */
    assert_false(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_arena_keeps_blocks_apart, set_seed),
        cmocka_unit_test(test_arena_refuses_absurd_sizes),
        cmocka_unit_test(test_arena_reset_reuses_memory),
        cmocka_unit_test_setup(test_vector_keeps_items, set_seed),
        cmocka_unit_test_setup(test_map_agrees_with_model, set_seed),
        cmocka_unit_test(test_map_stays_small_under_churn),
        cmocka_unit_test(test_map_finds_nothing_among_tombs),
        cmocka_unit_test(test_map_allows_absent_outputs),
        cmocka_unit_test(test_room_grows_in_its_place),
        cmocka_unit_test(test_spare_is_given_up),
    };
    return cmocka_run_group_tests_name("base: memory", tests, NULL, NULL);
}
