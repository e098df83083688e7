/* What a routine adds to memory is what is found in its code: routines of known instructions are looked at, and
 * compiled ones are called and their variables compared. */
#include "weave/routine.h"
#include "isa/x86_64/x86.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* --- what is found, made a number --- */

static uint64_t compute(unsigned op, uint64_t a, uint64_t b)
{
    switch (op) {
    case SNIPPET_ADD: return a + b;
    case SNIPPET_SUB: return a - b;
    case SNIPPET_MUL: return a * b;
    case SNIPPET_AND: return a & b;
    case SNIPPET_OR: return a | b;
    case SNIPPET_XOR: return a ^ b;
    case SNIPPET_SHL: return a << (b & 63);
    case SNIPPET_SHR: return a >> (b & 63);
    case SNIPPET_SAR: return (uint64_t)((int64_t)a >> (b & 63));
    default: fail_msg("an operation that nobody expects: %u", op); return 0;
    }
}

static uint64_t value(const snippet *s, const uint64_t *args)
{
    switch (s->kind) {
    case SNIPPET_CONST: return s->value;
    case SNIPPET_ARG: return args[s->index];
    case SNIPPET_LOAD: assert_int_equal(s->size, 8); return *(const uint64_t *)(uintptr_t)value(s->a, args);
    case SNIPPET_BINARY: return compute(s->op, value(s->a, args), value(s->b, args));
    default: fail_msg("a node that nobody expects: %u", s->kind); return 0;
    }
}

/* --- routines of known instructions --- */

long one_cell, two_cell, *cells;
void adds(void), conditional(void), asks(void), joined(void), calls(void), jumps(void), fed(void), string(void);
void returns(void), either(void);
__asm__(".text\n"
        "adds: add %rsi, one_cell(%rip); lock incl two_cell(%rip); subq $-3, 8(%rdi); ret\n"
        "conditional: test %rdi, %rdi; je 1f; incq one_cell(%rip); 1: decq two_cell(%rip); ret\n"
        "asks: decq one_cell(%rip); jne 1f; incq two_cell(%rip); 1: ret\n"
        "joined: mov %rdi, %rax; test %rsi, %rsi; je 1f; lea 8(%rax), %rax; 1: incq (%rax); ret\n"
        "calls: push %rbx; sub $8, %rsp; incq one_cell(%rip); call adds; add $8, %rsp; pop %rbx; ret\n"
        "jumps: jmp *cells(%rip)\n"
        "fed: mov cells(%rip), %rax; movslq %edi, %rdi; shl $3, %rdi; add %rsi, (%rax,%rdi); cmp $5, %rdx; je 1f\n"
        "     movq $1, one_cell(%rip); 1: ret\n"
        "returns: incq one_cell(%rip); test %rdi, %rdi; jne 1f; ret; 1: incq two_cell(%rip); ret\n"
        "either: test %rdi, %rdi; je 1f; mov %rsi, %rax; jmp 2f; 1: mov %rsi, %rax; incq one_cell(%rip)\n"
        "2: add %rax, cells(%rip); ret\n"
        "string: lea one_cell(%rip), %rdi; mov %edx, %ecx; rep stosb; ret\n");

static const weave_memory *look(void (*fn)(void))
{
    const weave_memory *m = weave_memory_of(fn);
    assert_non_null(m);
    assert_ptr_equal(m, weave_memory_of(fn));
    return m;
}

static bool has_access(const weave_memory *m, weave_place place, const void *at, bool writes, bool is_sum,
                       unsigned size)
{
    for (uint32_t i = 0; i < m->access_count; i++) {
        const weave_access *a = &m->accesses[i];
        if (a->place == place && a->at == (uintptr_t)at && a->writes == writes && a->adds == is_sum && a->size == size)
            return true;
    }
    return false;
}

static void sums_are_found(void **state)
{
    (void)state;
    const weave_memory *m = look(adds);
    const uint64_t args[] = {0x1000, 42};
    assert_false(m->open);
    assert_int_equal(m->sum_count, 3);
    assert_int_equal(value(m->sums[0].address, args), (uintptr_t)&one_cell);
    assert_int_equal(value(m->sums[0].amount, args), 42);
    assert_int_equal(m->sums[1].size, 4);
    assert_int_equal(value(m->sums[2].address, args), 0x1008);
    assert_int_equal(value(m->sums[2].amount, args), 3);
    assert_int_equal(m->access_count, 3);
    assert_true(has_access(m, WEAVE_AT, &two_cell, true, true, 4));
    assert_true(has_access(m, WEAVE_SOMEWHERE, NULL, true, true, 8));
}

static void sums_are_made_once(void **state)
{
    (void)state;
    const weave_memory *m = look(conditional);
    const uint64_t args[] = {0};
    assert_int_equal(m->sum_count, 1);
    assert_int_equal(value(m->sums[0].address, args), (uintptr_t)&two_cell);
    assert_int_equal(value(m->sums[0].amount, args), (uint64_t)-1);
    assert_true(has_access(m, WEAVE_AT, &one_cell, true, true, 8));
    m = look(asks);
    assert_int_equal(m->sum_count, 0);
    assert_true(has_access(m, WEAVE_AT, &one_cell, true, false, 8));
    assert_int_equal(look(joined)->sum_count, 0);
}

static void bodies_may_return_and_jump(void **state)
{
    (void)state;
    bool all;
    const weave_memory *m = look(returns);
    const uint64_t args[] = {0, 17};
    assert_false(m->open);
    assert_int_equal(m->sum_count, 1);
    assert_int_equal(value(m->sums[0].address, args), (uintptr_t)&one_cell);
    assert_int_equal(weave_sums_mask(returns, 1, &all), 1);
    assert_false(all);
    m = look(either);
    assert_int_equal(m->sum_count, 1);
    assert_int_equal(value(m->sums[0].address, args), (uintptr_t)&cells);
    assert_int_equal(value(m->sums[0].amount, args), 17);
    assert_int_equal(weave_sums_mask(either, 1, &all) & 0x54, 0x54);
    assert_false(all);
}

static void larger_routines_are_followed(void **state)
{
    (void)state;
    const weave_memory *m = look(calls);
    assert_false(m->open);
    assert_int_equal(m->sum_count, 0);
    assert_int_equal(m->access_count, 3);
    assert_true(has_access(m, WEAVE_AT, &one_cell, true, true, 8));
    assert_true(has_access(m, WEAVE_AT, &two_cell, true, true, 4));
    assert_true(look(jumps)->open);
    m = look(string);
    assert_true(has_access(m, WEAVE_IN, &one_cell, true, false, 1));
}

static void masks_take_what_feeds(void **state)
{
    bool all;
    (void)state;
    const weave_memory *m = look(fed);
    assert_int_equal(m->sum_count, 1);
    assert_true(has_access(m, WEAVE_THROUGH, &cells, true, true, 8));
    assert_true(has_access(m, WEAVE_AT, &cells, false, false, 8));
    assert_int_equal(weave_sums_mask(fed, 1, &all), 0xf);
    assert_false(all);
    assert_int_equal(weave_sums_mask(adds, 7, &all), 7);
    assert_true(all);
    assert_int_equal(weave_sums_mask(adds, 5, &all), 5);
    assert_false(all);
    assert_int_equal(weave_sums_mask(conditional, 1, &all), 8);
}

static void leaves_see_no_counters(void **state)
{
    (void)state;
    snippet call = {.kind = SNIPPET_CALL, .fn = adds}, counter = {.kind = SNIPPET_COUNTER};
    assert_false(weave_sees_counters(&call));
    call.fn = calls;
    assert_true(weave_sees_counters(&call));
    snippet either = {.kind = SNIPPET_SEQ, .a = &call, .b = &counter};
    call.fn = adds;
    assert_true(weave_sees_counters(&either));
}

/* --- compiled ones --- */

/* As they are without a sanitizer's checks. */
#define ROUTINE static __attribute__((noinline, no_sanitize("address", "undefined"))) void

/* clang-format off */
static struct { long a, b[40]; int c; unsigned d[40]; struct { char pad; long x; } e[40]; } v;
/* clang-format on */
static long *heap_like = v.b;

/* clang-format off */
ROUTINE plain(long k, long n) { (void)k, (void)n; v.a++; }
ROUTINE by_argument(long k, long n) { (void)k; v.a += 3 * n; }
ROUTINE array(long k, long n) { v.b[k] += n; }
ROUTINE by_int(int k, int n) { v.b[k] -= n; }
ROUTINE narrow(unsigned k, unsigned n) { v.d[k & 31] += n << 2; }
ROUTINE inside(long k, long n) { v.e[k].x += n ^ k; }
ROUTINE through(long k, long n) { heap_like[k + 1] += n | 1; }
ROUTINE several(long k, long n) { v.a += n; v.c -= 5; v.b[k]++; }
ROUTINE odd(long k, long n) { v.b[k % 7] += n / 3; }
ROUTINE maybe(long k, long n) { if (n > 10) v.b[k]++; v.a++; }

static const struct { const char *name; void (*fn)(void); unsigned most; } compiled[] = {
#define ROW(name, most) {#name, (void (*)(void))name, most}
    ROW(plain, 1), ROW(by_argument, 1), ROW(array, 1), ROW(by_int, 1), ROW(narrow, 1), ROW(inside, 1),
    ROW(through, 1), ROW(several, 3), ROW(odd, 1), ROW(maybe, 2),
};
/* clang-format on */

/* Takes what was found off again: nothing may be left, but for additions that are not always made. */
static void undo(const weave_memory *m, const uint64_t *args)
{
    for (uint32_t i = 0; i < m->sum_count; i++) {
        void *at = (void *)(uintptr_t)value(m->sums[i].address, args);
        uint64_t amount = value(m->sums[i].amount, args);
        if (m->sums[i].size == 8) *(uint64_t *)at -= amount;
        else *(uint32_t *)at -= (uint32_t)amount;
    }
}

static void compiled_sums_are_right(void **state)
{
    (void)state;
    unsigned found = 0;
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++) {
        const weave_memory *m = look(compiled[i].fn);
        assert_true(m->sum_count <= compiled[i].most);
        found += m->sum_count;
        for (uint64_t k = 0; k < 24; k++) {
            const uint64_t args[] = {k, k * k - 50};
            memset(&v, 0, sizeof v);
            ((void (*)(uint64_t, uint64_t))compiled[i].fn)(args[0], args[1]);
            undo(m, args);
            if (m->sum_count < compiled[i].most) continue;
            for (size_t b = 0; b < sizeof v; b++)
                if (((char *)&v)[b]) fail_msg("%s(%d): byte %zu differs", compiled[i].name, (int)k, b);
        }
    }
#ifdef __OPTIMIZE__
    assert_true(found >= 9);
#else
    (void)found;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_found),
        cmocka_unit_test(sums_are_made_once),
        cmocka_unit_test(bodies_may_return_and_jump),
        cmocka_unit_test(larger_routines_are_followed),
        cmocka_unit_test(masks_take_what_feeds),
        cmocka_unit_test(leaves_see_no_counters),
        cmocka_unit_test(compiled_sums_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
