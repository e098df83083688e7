/* Routines in place of calls do what the calls would do: many small ones, as compilers write them, with
 * arguments of every kind, in random programs with every pressure on registers; near the tool, too far from
 * it for PC-relative operands, and with a tool that lies so low that addresses are displacements. */
#include "weave_gen.h"
#include "weave_routines.h"

#include "weave/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

uint64_t cells[CELLS];
uint64_t *cell_pointer;
extern const routine_set routines_o1, routines_o2, routines_os, routines_native;
extern const routine_set routines_clang __attribute__((weak));
extern const char __executable_start[], _end[];

typedef uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
enum { NEAR, FAR, LOW, PLACES, MOST_CALLS = 8, TRIES = 12 };

/* One of the tool's two images: this program, or its copy at a low address. */
typedef struct image {
    int64_t shift;
    uint64_t *cells, **pointer;
} image;
static image here = {0, cells, &cell_pointer}, low;

typedef struct placed {
    uint32_t at;
    const routine *r;
    const snippet *call;
    bool wanted;
} placed;
static placed calls[MOST_CALLS];
static unsigned call_count;
static uint64_t results[MOST_CALLS], right[MOST_CALLS], right_cells[CELLS];

/* Over everything that a sanitizer has put between variables. */
static void copy_bytes(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static void copy_low(void)
{
    size_t size = (size_t)(_end - __executable_start);
    void *p = mmap((void *)0x70000000, size, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(p, (void *)0x70000000);
    for (size_t at = 0; at < size; at += 4096) { /* pages between segments may not be there */
        uint8_t there;
        if (mincore((void *)(__executable_start + at), 4096, &there) == 0) {
            size_t rest = size - at < 4096 ? size - at : 4096;
            copy_bytes((char *)p + at, __executable_start + at, rest);
        }
    }
    low.shift = 0x70000000 - (int64_t)(intptr_t)__executable_start;
    low.cells = (uint64_t *)((char *)cells + low.shift);
    low.pointer = (uint64_t **)((char *)&cell_pointer + low.shift);
}

static void fill_cells(const image *m, uint32_t seed)
{
    for (unsigned i = 0; i < CELLS; i++) {
        seed = seed * 1664525 + 1013904223;
        m->cells[i] = seed % 5 ? seed >> 28 : (uint64_t)seed << 22;
    }
    *m->pointer = m->cells + 64;
}

static const snippet *argument(const weave_insn *insn)
{
    static const uint64_t constants[] = {0, 1, 2, 3, 0xff, 0x7fffffff, 0x80000000, ~0ull, 0x123456789abc, -5ull};
    switch (harness_random() % 6) {
    case 0:
    case 1: return gen_const(constants[harness_random() % 10]);
    case 2: return gen_const(harness_random() % 40);
    default: return gen_value(insn, false, harness_random() % 4 == 0);
    }
}

static const snippet *make_call(const weave_insn *insn, const routine *r, const image *m)
{
    snippet *s = snippet_new(&bench.arena, SNIPPET_CALL);
    const snippet **args = inl_arena_alloc(&bench.arena, 6 * sizeof *args);
    s->fn = (void (*)(void))((uintptr_t)r->fn + (uintptr_t)m->shift);
    s->nargs = (uint8_t)r->nargs;
    for (unsigned i = 0; i < r->nargs; i++) {
        do args[i] = argument(insn);
        while (snippet_has(args[i], SNIPPET_CALL) || snippet_has(args[i], SNIPPET_COUNTER) ||
               snippet_has(args[i], SNIPPET_COUNT) || snippet_has(args[i], SNIPPET_LOAD) ||
               snippet_has(args[i], SNIPPET_STORE) || snippet_has(args[i], SNIPPET_SET_REG));
        args[i] = snippet_simplify(&bench.arena, args[i]);
    }
    s->args = args;
    return s;
}

static void insert(weave_run *run, const routine *r, const image *m)
{
    const char *why;
    for (uint32_t i = 0; i < run->insn_count && call_count < MOST_CALLS; i++) {
        if (harness_random() % 3) continue;
        placed *p = &calls[call_count];
        *p = (placed){i, r, make_call(&run->insns[i], r, m), harness_random() % 2};
        const snippet *code = p->call;
        if (p->wanted) {
            snippet *store = snippet_new(&bench.arena, SNIPPET_STORE);
            store->a = gen_const((uintptr_t)&results[call_count]);
            store->b = p->call, store->size = 8;
            code = store;
        }
        if (weave_insert_at(run, WEAVE_BEFORE, i, code, false, &why)) call_count++;
    }
}

/* By calling: at each instruction that is reached. */
static void expect(const weave_run *run, const machine *start, uint32_t seed, const image *m)
{
    memset(right, 0, sizeof right);
    fill_cells(m, seed);
    for (unsigned k = 0; k < call_count; k++) {
        const weave_insn *insn = &run->insns[calls[k].at];
        machine at = *start;
        harness_fill_memory(seed);
        harness_native(run, calls[k].at, &at);
        if (at.exit != insn->in.addr) break;
        uint64_t a[6] = {0};
        for (unsigned i = 0; i < calls[k].r->nargs; i++) a[i] = model_run(calls[k].call->args[i], insn, &at, &at);
        function fn = (function)calls[k].call->fn;
        uint64_t v = fn(a[0], a[1], a[2], a[3], a[4], a[5]);
        if (calls[k].wanted) right[k] = v;
    }
    memcpy(right_cells, m->cells, sizeof right_cells);
}

static void complain(const weave_run *run, const routine_set *set, const routine *r, uint32_t seed, const char *what)
{
    char text[512];
    fprintf(stderr, "%s of %s, seed %u: %s\n", r->name, set->how, seed, what);
    for (uint32_t i = 0; i < run->insn_count; i++) {
        for (unsigned k = 0; k < call_count; k++) {
            if (calls[k].at != i) continue;
            snippet_print(calls[k].call, text, sizeof text);
            fprintf(stderr, "     %u %s %s\n", k, calls[k].wanted ? "=" : " ", text);
        }
        isa_x86_64.format(&run->insns[i].in, text, sizeof text);
        fprintf(stderr, "%3u  %s\n", i, text);
    }
    const char *file = getenv("WEAVE_DUMP");
    FILE *f = file ? fopen(file, "wb") : NULL;
    if (f) fwrite(bench.code.write, 1, bench.code.at, f), fclose(f);
    fail();
}

static uint64_t exit_of(uint64_t at) { return at == (uintptr_t)bench.app - 5 ? harness_exit(MAX_EXITS - 1) : at; }

/* Flags that the program leaves undefined where it leaves: some processor makes them of what went before. */
static uint32_t undefined_flags(const weave_run *run, uint64_t exit)
{
    uint32_t undefined = 0, at_exit = 0;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const isa_insn *in = &run->insns[i].in;
        isa_effects fx;
        isa_x86_64.effects(in, &fx);
        undefined = (undefined & ~fx.flags_kill) | fx.flags_undefined;
        if (in->flow != ISA_FLOW_NEXT && exit_of(in->target) == exit_of(exit)) at_exit |= undefined;
    }
    return at_exit | undefined;
}

static void compare(const weave_run *run, const routine_set *set, const routine *r, uint32_t seed, const image *m,
                    const machine *native, const machine *woven)
{
    char text[160];
    if (exit_of(native->exit) != exit_of(woven->exit)) complain(run, set, r, seed, "left elsewhere");
    for (unsigned g = 0; g < 16; g++)
        if (native->gpr[g] != woven->gpr[g]) complain(run, set, r, seed, "a register of the program differs");
    uint32_t defined = X86_ARITH & ~undefined_flags(run, native->exit);
    if ((native->flags ^ woven->flags) & defined) complain(run, set, r, seed, "the program's flags differ");
    if (memcmp(bench.native_memory, bench.woven_memory, sizeof bench.native_memory))
        complain(run, set, r, seed, "the program's memory differs");
    for (unsigned i = 0; i < CELLS; i++)
        if (m->cells[i] != right_cells[i]) {
            snprintf(text, sizeof text, "cell %u is %#lx, should be %#lx", i, (long)m->cells[i], (long)right_cells[i]);
            complain(run, set, r, seed, text);
        }
    for (unsigned k = 0; k < call_count; k++)
        if (results[k] != right[k]) {
            snprintf(text, sizeof text, "result %u is %#lx, should be %#lx", k, (long)results[k], (long)right[k]);
            complain(run, set, r, seed, text);
        }
}

static void one(const routine_set *set, const routine *r, uint32_t seed, unsigned place, weave_options options)
{
    uint8_t bytes[1024];
    machine start, native, woven;
    inl_error e;
    const image *m = place == LOW ? &low : &here;
    harness_seed(seed);
    size_t size = gen_program(bytes, sizeof bytes, 2 + harness_random() % 8, false);
    gen_state(&start);
    if (!size) return;
    weave_run *run = harness_run(bytes, size);
    assert_non_null(run);
    call_count = 0;
    insert(run, r, m);
    options.seed = seed;
    bench.apart = seed & 1;
    bench.moved_by = seed & 2 ? 0x123440 : 0;
    if (harness_weave(run, &options, place != NEAR, &e)) {
        if (strstr(e.text, "more registers")) return;
        complain(run, set, r, seed, e.text);
    }
    expect(run, &start, seed, m);
    harness_fill_memory(seed);
    native = start;
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);
    memset(results, 0, sizeof results);
    fill_cells(m, seed);
    harness_fill_memory(seed);
    woven = start;
    harness_woven(&woven);
    harness_save_memory(bench.woven_memory);
    compare(run, set, r, seed, m, &native, &woven);
}

static void sweep(const routine_set *set)
{
    static const weave_options all[] = {
        {0}, {.hide_dead = true}, {.stress = WEAVE_STRESS_RANDOM_REGS}, {.stress = WEAVE_STRESS_NO_DEAD}};
    const char *tries = getenv("WEAVE_ROUNDS");
    unsigned times = tries ? (unsigned)atoi(tries) : TRIES;
    if (!set) skip();
    for (unsigned i = 0; i < set->count; i++)
        for (uint32_t k = 0; k < times * PLACES; k++)
            one(set, &set->list[i], 1 + i * 7919 + k, k % PLACES, all[k / PLACES % 4]);
}

/* clang-format off */
static void gcc_o1(void **state) { (void)state; sweep(&routines_o1); }
static void gcc_o2(void **state) { (void)state; sweep(&routines_o2); }
static void gcc_os(void **state) { (void)state; sweep(&routines_os); }
static void with_all_the_processor_has(void **state) { (void)state; sweep(&routines_native); }
static void of_clang(void **state) { (void)state; sweep(&routines_clang); }

/* Few are written as they are, or called: what is not for renaming must stay the exception. */
static void most_are_written_anew(void **state)
{
    const routine_set *sets[] = {&routines_o1, &routines_o2, &routines_os, &routines_clang};
    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        unsigned anew = 0;
        for (unsigned i = 0; sets[k] && i < sets[k]->count; i++) {
            const routine *r = &sets[k]->list[i];
            const weave_routine *known = weave_routine_of(r->fn);
            bool good = known && known->body_len && weave_body_of(known, r->fn)->renamable;
            anew += good;
            if (!good && getenv("WEAVE_TEST")) fprintf(stderr, "%s of %s\n", r->name, sets[k]->how);
        }
        assert_true(!sets[k] || anew + 4 >= sets[k]->count);
    }
}
/* clang-format on */

__asm__(".text\ninline_parts:\n addq $1, cells(%rip)\n addq %rdi, cells+8(%rip)\n mov %rsi, %rax\n"
        " cmp $3, %esi\n jne 1f\n addq %rsi, cells+16(%rip)\n1: ret\n"
        ".globl inline_parts\n");
void inline_parts(void);

/* Runs one call with constant arguments before a `nop`; the bytes of its code. */
static size_t run_parts(uint64_t mask, uint64_t a, uint64_t b)
{
    static const uint8_t nop[] = {0x90};
    const char *why;
    inl_error e;
    machine m;
    weave_run *run = harness_run(nop, sizeof nop);
    snippet *s = snippet_new(&bench.arena, SNIPPET_CALL);
    const snippet *args[] = {gen_const(a), gen_const(b)};
    s->fn = inline_parts, s->nargs = 2, s->args = args, s->value = mask;
    assert_true(weave_insert_at(run, WEAVE_BEFORE, 0, s, false, &why));
    assert_int_equal(harness_weave(run, NULL, false, &e), INL_OK);
    memset(cells, 0, sizeof cells);
    harness_random_state(&m);
    harness_woven(&m);
    return bench.out.map[0].code_at;
}

static void parts_are_left_out(void **state)
{
    (void)state;
    size_t whole = run_parts(0, 5, 3);
    assert_int_equal(cells[0], 1);
    assert_int_equal(cells[1], 5);
    assert_int_equal(cells[2], 3);
    size_t less = run_parts(1, 5, 3);
    assert_true(less < whole);
    assert_int_equal(cells[0], 0);
    assert_int_equal(cells[1], 5);
    run_parts(2, 5, 3);
    assert_int_equal(cells[0], 1);
    assert_int_equal(cells[1], 0);
}

static void decided_conditions_cost_nothing(void **state)
{
    (void)state;
    size_t taken = run_parts(3, 5, 3), skipped = run_parts(3, 5, 4);
    assert_int_equal(cells[2], 0);
    assert_int_equal(skipped, 0 + (run_parts(3 | 16 | 32 | 8, 5, 4)));
    assert_true(skipped < taken);
}

int main(void)
{
    if (!harness_open()) return 77;
    copy_low();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gcc_o1),
        cmocka_unit_test(gcc_o2),
        cmocka_unit_test(gcc_os),
        cmocka_unit_test(with_all_the_processor_has),
        cmocka_unit_test(of_clang),
        cmocka_unit_test(most_are_written_anew),
        cmocka_unit_test(parts_are_left_out),
        cmocka_unit_test(decided_conditions_cost_nothing),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
