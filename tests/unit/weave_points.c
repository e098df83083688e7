/* Points and snippet nodes that the random test leaves out: taken edges, targets, assignment and
 * references to registers, contexts, buffers, operands in the GS segment, far operands, refusals. */
#include "weave_gen.h"

#include "weave/x86_64/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static machine start, native, woven;

static snippet *node(unsigned kind, const snippet *a)
{
    snippet *s = snippet_new(&bench.arena, (snippet_kind)kind);
    s->a = a;
    return s;
}

static const snippet *reg_value(unsigned r)
{
    snippet *s = node(SNIPPET_REG, NULL);
    s->reg = (uint8_t)r;
    return s;
}

static const snippet *count(unsigned counter, uint64_t amount)
{
    snippet *s = node(SNIPPET_COUNT, gen_const(amount));
    s->index = counter;
    return s;
}

static const snippet *call(void (*fn)(void), unsigned n, const snippet *a, const snippet *b)
{
    snippet *s = node(SNIPPET_CALL, NULL);
    const snippet **args = inl_arena_alloc(&bench.arena, 2 * sizeof *args);
    args[0] = a, args[1] = b;
    s->fn = fn, s->nargs = (uint8_t)n, s->args = args;
    return s;
}
#define CALL(fn, n, a, b) call((void (*)(void))(fn), n, a, b)

static const snippet *store_word(unsigned word, const snippet *v)
{
    snippet *s = node(SNIPPET_STORE, gen_const((uintptr_t)&real_effects.words[word]));
    s->b = v, s->size = 8;
    return s;
}

static void insert(weave_run *run, weave_where where, uint32_t i, const snippet *s)
{
    const char *why = "";
    if (!weave_insert_at(run, where, i, s, false, &why)) fail_msg("%s", why);
}

static weave_run *program(void (*make)(x86_code *))
{
    uint8_t bytes[512];
    harness_catch_faults();
    x86_code c = {.write = bytes, .exec = (uintptr_t)bench.app, .size = sizeof bytes};
    make(&c);
    assert_false(c.full || c.unreachable);
    weave_run *run = harness_run(bytes, c.at);
    assert_non_null(run);
    memset(&real_effects, 0, sizeof real_effects);
    memset(bench.counters, 0, GEN_COUNTERS * 8);
    return run;
}

/* Both runs from the same state; the outcomes are left in `native` and `woven`. */
static void run_both(weave_run *run)
{
    inl_error e;
    for (unsigned far = 0; far < 2; far++) {
        inl_status status = harness_weave(run, NULL, far, &e);
        if (status) fail_msg("%s", e.text);
        memset(&real_effects, 0, sizeof real_effects);
        memset(bench.counters, 0, GEN_COUNTERS * 8);
        harness_fill_memory(1);
        native = start;
        harness_native(run, run->insn_count, &native);
        harness_fill_memory(1);
        woven = start;
        harness_woven(&woven);
    }
}

static void same_machine(void)
{
    assert_int_equal(native.exit, woven.exit);
    assert_memory_equal(native.gpr, woven.gpr, sizeof native.gpr);
    assert_int_equal(native.flags & X86_ARITH, woven.flags & X86_ARITH);
    assert_memory_equal(native.ymm, woven.ymm, sizeof native.ymm);
}

static void compare_and_branch(x86_code *c)
{
    x86_alu_ri(c, X86_CMP, 8, X86_RAX, 5);
    x86_jcc_rel32(c, X86_E, harness_exit(1), false);
    x86_mov_ri(c, X86_RCX, 1);
}

static void taken_edges(void **state)
{
    (void)state;
    for (uint64_t rax = 4; rax < 6; rax++) {
        weave_run *run = program(compare_and_branch);
        harness_random_state(&start);
        start.gpr[X86_RAX] = rax;
        insert(run, WEAVE_TAKEN, 1, count(0, 3));
        insert(run, WEAVE_BEFORE, 1, store_word(0, node(SNIPPET_TAKEN, NULL)));
        insert(run, WEAVE_TAKEN, 1, store_word(1, reg_value(X86_RAX)));
        run_both(run);
        same_machine();
        assert_int_equal(bench.counters[0], rax == 5 ? 3 : 0);
        assert_int_equal(real_effects.words[0], rax == 5);
        assert_int_equal(real_effects.words[1], rax == 5 ? 5 : 0);
    }
}

static void loop_back(x86_code *c)
{
    uint8_t loop[] = {0xe2, (uint8_t)-7};
    x86_bytes(c, loop, 2);
    x86_mov_ri(c, X86_RDX, 9);
}

static void taken_edge_of_loop(void **state)
{
    (void)state;
    for (uint64_t rcx = 1; rcx < 3; rcx++) {
        weave_run *run = program(loop_back);
        harness_random_state(&start);
        start.gpr[X86_RCX] = rcx;
        insert(run, WEAVE_TAKEN, 0, count(0, 1));
        insert(run, WEAVE_TAKEN, 0, store_word(1, reg_value(X86_RCX)));
        run_both(run);
        assert_memory_equal(native.gpr, woven.gpr, sizeof native.gpr);
        assert_int_equal(bench.counters[0], rcx == 2);
        assert_int_equal(real_effects.words[1], rcx == 2);
    }
}

static void return_to_exit(x86_code *c)
{
    x86_mov_ri(c, X86_RAX, harness_exit(3));
    x86_push(c, X86_RAX);
    x86_ret(c);
}

static void target_of_return(void **state)
{
    (void)state;
    weave_run *run = program(return_to_exit);
    harness_random_state(&start);
    insert(run, WEAVE_BEFORE, 2, store_word(0, node(SNIPPET_TARGET, NULL)));
    insert(run, WEAVE_TAKEN, 2, store_word(1, node(SNIPPET_RETADDR, NULL)));
    run_both(run);
    same_machine();
    assert_int_equal(real_effects.words[0], harness_exit(3));
    assert_int_equal(real_effects.words[1], harness_exit(3));
}

static void add_registers(x86_code *c)
{
    x86_alu_rr(c, X86_ADD, 8, X86_RAX, X86_RBX);
    x86_alu_rr(c, X86_ADD, 8, X86_RAX, X86_RDI);
    x86_alu_rr(c, X86_ADC, 8, X86_RAX, X86_RCX);
}

static void assigned_registers(void **state)
{
    (void)state;
    weave_run *run = program(add_registers);
    harness_random_state(&start);
    snippet *set = node(SNIPPET_SET_REG, gen_const(1000));
    set->reg = X86_RDI;
    insert(run, WEAVE_BEFORE, 1, set);
    snippet *twice = node(SNIPPET_SET_REG, NULL), *sum = node(SNIPPET_BINARY, reg_value(X86_RDI));
    sum->op = SNIPPET_ADD, sum->b = reg_value(X86_RDI);
    twice->reg = X86_RDI, twice->a = sum;
    insert(run, WEAVE_BEFORE, 1, twice);
    run_both(run);
    uint64_t sum1 = start.gpr[X86_RAX] + start.gpr[X86_RBX], sum2 = sum1 + 2000;
    assert_int_equal(woven.gpr[X86_RDI], 2000);
    assert_int_equal(woven.gpr[X86_RAX], sum2 + start.gpr[X86_RCX] + (sum2 < sum1));
}

static void (*volatile store_pointer)(uint64_t *, uint64_t);
static void store_through(uint64_t *p, uint64_t v) { *p = v; }
static uint64_t change(uint64_t *p, uint64_t v)
{
    real_effects.words[0] = *p;
    store_pointer(p, *p + v);
    return 0;
}

static void referenced_registers(void **state)
{
    (void)state;
    store_pointer = store_through;
    for (unsigned r = 0; r < 2; r++) {
        weave_run *run = program(add_registers);
        harness_random_state(&start);
        unsigned reg = r ? X86_RDI : X86_RBX;
        snippet *ref = node(SNIPPET_REG_REF, NULL);
        ref->reg = (uint8_t)reg;
        insert(run, WEAVE_BEFORE, 0, CALL(change, 2, ref, gen_const(77)));
        run_both(run);
        assert_int_equal(real_effects.words[0], start.gpr[reg]);
        assert_int_equal(woven.gpr[reg], start.gpr[reg] + 77);
        uint64_t sum1 = start.gpr[X86_RAX] + woven.gpr[X86_RBX], sum2 = sum1 + woven.gpr[X86_RDI];
        assert_int_equal(woven.gpr[X86_RAX], sum2 + start.gpr[X86_RCX] + (sum2 < sum1));
        assert_memory_equal(woven.ymm, start.ymm, sizeof woven.ymm);
    }
}

static weave_context seen;
static uint8_t seen_xmm[16];
static void look(const weave_context *c)
{
    seen = *c;
    memcpy(seen_xmm, (uint8_t *)c->vectors + 160 + 16 * 5, 16); /* XMM5 in the legacy area */
}

static void whole_context(void **state)
{
    (void)state;
    weave_run *run = program(add_registers);
    harness_random_state(&start);
    insert(run, WEAVE_BEFORE, 2, CALL(look, 1, node(SNIPPET_CONTEXT, NULL), NULL));
    run_both(run);
    same_machine();
    machine at = start;
    harness_native(run, 2, &at);
    assert_memory_equal(seen.gpr, at.gpr, sizeof at.gpr);
    assert_int_equal((seen.flags ^ at.flags) & X86_ARITH, 0);
    assert_int_equal(seen.pc, run->insns[2].in.addr);
    assert_int_equal(seen.tls_base, bench.frame->tool_tls_base);
    assert_memory_equal(seen_xmm, start.ymm[5], 16);
}

/* --- buffers --- */
enum { RECORDS = 3, RECORD = 24 };
static uint8_t buffer[RECORDS * RECORD];
static unsigned full_calls;
static uint64_t drained[64];
static unsigned drained_count;

static void drain(weave_buffer_slot *b)
{
    for (uint64_t at = b->base; b->base && at < b->next; at += RECORD) {
        memcpy(&drained[drained_count++ & 63], (void *)(uintptr_t)at, 8);
        memcpy(&drained[drained_count++ & 63], (void *)(uintptr_t)(at + 8), 8);
        uint32_t half;
        memcpy(&half, (void *)(uintptr_t)(at + 16), 4);
        drained[drained_count++ & 63] = half;
    }
    b->base = b->next = (uintptr_t)buffer;
    b->limit = b->base + sizeof buffer;
}

static void on_full(uint32_t slot)
{
    full_calls++;
    drain(&bench.frame->buffers[slot]);
}

static void touch_memory(x86_code *c)
{
    for (unsigned i = 0; i < 5; i++)
        x86_alu_mr(c, i % 2 ? X86_ADC : X86_ADD, 8, x86_indexed(X86_RBX, X86_RSI, 8, 16 * (int)i), X86_RAX);
}

static void appended_records(void **state)
{
    (void)state;
    static const snippet_buffer b = {2, RECORD, on_full, 0};
    static const uint8_t sizes[] = {8, 8, 4};
    weave_run *run = program(touch_memory);
    harness_random_state(&start);
    start.gpr[X86_RBX] = (uintptr_t)bench.data + 512;
    start.gpr[X86_RSI] = 7;
    for (uint32_t i = 0; i < 5; i++) {
        snippet *s = node(SNIPPET_APPEND, NULL);
        const snippet **args = inl_arena_alloc(&bench.arena, 3 * sizeof *args);
        args[0] = node(SNIPPET_PC, NULL);
        args[1] = node(SNIPPET_EA, NULL);
        args[2] = node(SNIPPET_ACCESS_SIZE, NULL);
        s->args = args, s->nargs = 3, s->arg_sizes = sizes, s->buffer = &b;
        insert(run, WEAVE_BEFORE, i, s);
    }
    memset(&bench.frame->buffers[2], 0, sizeof bench.frame->buffers[2]);
    full_calls = drained_count = 0;
    run_both(run); /* twice: near and far */
    same_machine();
    drain(&bench.frame->buffers[2]);
    assert_int_equal(drained_count, 30);
    assert_int_equal(full_calls, 4);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(drained[3 * i], run->insns[i % 5].in.addr);
        assert_int_equal(drained[3 * i + 1], start.gpr[X86_RBX] + 56 + 16 * (i % 5));
        assert_int_equal(drained[3 * i + 2], 8);
    }
}

/* What empties a buffer may look at counters: all that came before is counted then. */
static uint64_t counted_when_full[8];
static unsigned times_full;

static void look_when_full(uint32_t slot)
{
    if (times_full < 8) counted_when_full[times_full++] = bench.counters[1];
    drain(&bench.frame->buffers[slot]);
}

static void counts_before_a_full_buffer(void **state)
{
    (void)state;
    static const snippet_buffer b = {2, RECORD, look_when_full, 0};
    static const uint8_t sizes[] = {8, 8, 4};
    weave_run *run = program(touch_memory);
    harness_random_state(&start);
    start.gpr[X86_RBX] = (uintptr_t)bench.data + 512;
    start.gpr[X86_RSI] = 7;
    for (uint32_t i = 0; i < 5; i++) {
        snippet *s = node(SNIPPET_APPEND, NULL);
        const snippet **args = inl_arena_alloc(&bench.arena, 3 * sizeof *args);
        args[0] = args[1] = args[2] = gen_const(i);
        s->args = args, s->nargs = 3, s->arg_sizes = sizes, s->buffer = &b;
        insert(run, WEAVE_BEFORE, i, count(1, 1));
        insert(run, WEAVE_BEFORE, i, s);
    }
    memset(&bench.frame->buffers[2], 0, sizeof bench.frame->buffers[2]);
    times_full = 0;
    run_both(run); /* twice: 10 records, with room for 3 */
    assert_int_equal(times_full, 4);
    assert_int_equal(counted_when_full[0], 1); /* the first has no buffer yet */
    assert_int_equal(counted_when_full[1], 4);
    assert_int_equal(counted_when_full[2], 2); /* counters begin anew with each run */
    assert_int_equal(counted_when_full[3], 5);
}

/* --- divisions --- */

static const struct {
    uint8_t bytes[3], length;
} divisions[] = {{{0xf6, 0xf1}, 2}, {{0xf6, 0xf9}, 2}, {{0x66, 0xf7, 0xf1}, 3}, {{0x66, 0xf7, 0xf9}, 3},
                 {{0xf7, 0xf1}, 2}, {{0xf7, 0xf9}, 2}, {{0x48, 0xf7, 0xf1}, 3}, {{0x48, 0xf7, 0xf9}, 3}};
static unsigned division;

/* The flags and rbx are overwritten behind the division: only a handler of its fault can see them. */
static void divide_by_nothing(x86_code *c)
{
    x86_alu_ri(c, X86_CMP, 8, X86_RSI, 5);
    x86_mov_ri(c, X86_RBX, 0x1234567);
    x86_bytes(c, divisions[division].bytes, divisions[division].length);
    x86_mov_ri(c, X86_RBX, 1);
    x86_mov_ri(c, X86_RDI, 1);
    x86_alu_rr(c, X86_XOR, 8, X86_RDI, X86_RDI);
}

static void divisions_fault_in_the_programs_state(void **state)
{
    (void)state;
    for (division = 0; division < sizeof divisions / sizeof divisions[0]; division++) {
        for (unsigned rsi = 4; rsi < 7; rsi++) {
            weave_run *run = program(divide_by_nothing);
            harness_random_state(&start);
            start.gpr[X86_RCX] = 0;
            start.gpr[X86_RSI] = rsi;
            insert(run, WEAVE_ANYWHERE, 0, count(1, 1));
            insert(run, WEAVE_BEFORE, 2, store_word(0, reg_value(X86_RSI)));
            insert(run, WEAVE_BEFORE, 2, CALL(change, 2, gen_const((uintptr_t)&real_effects.words[2]), gen_const(1)));
            run_both(run);
            assert_int_equal(native.fault_pc, run->insns[2].in.addr);
            assert_int_equal(woven.fault_pc, native.fault_pc);
            same_machine();
        }
    }
}

/* --- what a routine does to flags and to the floating-point environment --- */

#define ROUTINE(name, code)                                                                                            \
    void name(void);                                                                                                   \
    __asm__(".pushsection .text\n.type " #name ", @function\n" #name ":\n" code "\nret\n.popsection")
ROUTINE(only_undefined, "mov %rdi, %rax\n mov $0, %edx\n mov $3, %ecx\n div %rcx");
ROUTINE(no_flags, "lea (%rdi,%rdi), %rax\n not %rax");
ROUTINE(needs_rounding, "cvtsi2sd %rdi, %xmm0\n movq %xmm0, %rax");
ROUTINE(needs_no_rounding, "movq %rdi, %xmm0\n movq %xmm0, %rax");

static void routines_are_known_by_what_they_change(void **state)
{
    (void)state;
    assert_true(weave_routine_of(only_undefined)->flags);
    assert_false(weave_routine_of(no_flags)->flags);
    assert_true(weave_routine_of(needs_rounding)->fp);
    assert_false(weave_routine_of(needs_no_rounding)->fp);
}

ROUTINE(x87_changed, "fld1\n fstp %st(0)");
ROUTINE(x87_read, "fnstcw (%rdi)");
ROUTINE(mask_changed, "kxnorw %k1, %k1, %k1");
ROUTINE(upper_cleared, "vpxor %xmm1, %xmm1, %xmm1");
ROUTINE(thread_pointer_changed, "wrfsbase %rdi");
ROUTINE(gs_written, "mov %rdi, %gs:0x10");
ROUTINE(thread_pointer_used, "mov %fs:0x800, %rax\n mov %rax, (%rdi)");
ROUTINE(direction_changed, "cld");
ROUTINE(direction_used, "mov $0, %ecx\n rep stosb");
ROUTINE(low_vectors, "pcmpeqd %xmm0, %xmm0\n pcmpeqd %xmm1, %xmm1\n pcmpeqd %xmm2, %xmm2\n pcmpeqd %xmm3, %xmm3\n"
                     "pcmpeqd %xmm4, %xmm4\n pcmpeqd %xmm5, %xmm5\n pcmpeqd %xmm6, %xmm6\n pcmpeqd %xmm7, %xmm7");
ROUTINE(high_vectors, "pxor %xmm8, %xmm8\n pxor %xmm9, %xmm9\n pxor %xmm10, %xmm10\n pxor %xmm11, %xmm11\n"
                      "pxor %xmm12, %xmm12\n pxor %xmm13, %xmm13\n pxor %xmm14, %xmm14\n pxor %xmm15, %xmm15");

static void routines_are_unknown_by_what_cannot_be_saved_singly(void **state)
{
    (void)state;
    assert_true(weave_routine_of(x87_changed)->unknown);
    assert_true(weave_routine_of(x87_read)->unknown);
    assert_true(weave_routine_of(mask_changed)->unknown);
    assert_true(weave_routine_of(upper_cleared)->unknown);
    assert_true(weave_routine_of(thread_pointer_changed)->unknown);
    assert_true(weave_routine_of(gs_written)->unknown);
    const weave_routine *tls = weave_routine_of(thread_pointer_used), *first = weave_routine_of(direction_changed),
                        *second = weave_routine_of(direction_used);
    assert_true(tls->tls && !tls->unknown);
    assert_true(first->modes && !first->unknown && !first->tls);
    assert_true(second->modes && !second->unknown);
}

static void vectors_are_saved_one_by_one(void **state)
{
    (void)state;
    for (unsigned high = 0; high < 2; high++) {
        void (*fn)(void) = high ? high_vectors : low_vectors;
        weave_run *run = program(add_registers);
        harness_random_state(&start);
        assert_false(weave_routine_of(fn)->unknown);
        assert_int_equal(weave_routine_of(fn)->vecs, high ? 0xff00 : 0xff);
        insert(run, WEAVE_BEFORE, 1, CALL(fn, 0, NULL, NULL));
        run_both(run);
        same_machine();
    }
}

/* The routine has the tool's thread pointer, and the program its own behind the call. Between the two, nothing here
 * may ask the C library for anything. */
static void the_thread_pointer_is_swapped(void **state)
{
    (void)state;
    enum { MARK_AT = 0x800 };
    static uint64_t other_thread[512];
    uint64_t own, now, mark = 0x1122334455667788;
    __asm__ volatile("rdfsbase %0" : "=r"(own));
    memcpy(other_thread, (void *)(uintptr_t)own, MARK_AT); /* guards of stacks and pointers */
    other_thread[MARK_AT / 8] = mark;
    for (unsigned far = 0; far < 2; far++) {
        inl_error e;
        weave_run *run = program(add_registers);
        harness_random_state(&start);
        for (unsigned last = 0; last < 2; last++) /* behind the last one, flags are still wanted */
            insert(run, last ? WEAVE_AFTER : WEAVE_BEFORE, last ? run->insn_count - 1 : 1,
                   CALL(thread_pointer_used, 1, gen_const((uintptr_t)&real_effects.words[0]), NULL));
        assert_int_equal(harness_weave(run, NULL, far, &e), INL_OK);
        native = woven = start;
        harness_native(run, run->insn_count, &native);
        bench.frame->tool_tls_base = (uintptr_t)other_thread;
        harness_woven(&woven);
        __asm__ volatile("rdfsbase %0\n wrfsbase %1" : "=&r"(now) : "r"(own) : "memory");
        bench.frame->tool_tls_base = own;
        assert_true(now == own);
        assert_true(bench.frame->app_tls_base == own);
        assert_true(real_effects.words[0] == mark);
        same_machine();
    }
}

static double third;
static uint32_t mxcsr_there;
static uint16_t control_there;
static long x87_third;

static void in_double(uint64_t three)
{
    double one = 1;
    __asm__ volatile("" : "+x"(one));
    third = one / (double)three;
}
static void in_x87(uint64_t three)
{
    long double x = 1000000;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr_there));
    __asm__ volatile("fnstcw %0" : "=m"(control_there));
    __asm__ volatile("" : "+t"(x));
    x = x / (long double)three + 0.25L;
    __asm__ volatile("fldt %1\n fistpll %0" : "=m"(x87_third) : "m"(x) : "memory");
}

static void rounding_is_the_routines_own(void **state)
{
    (void)state;
    enum { TOWARDS_ZERO = 0x7f80, DEFAULT = 0x1f80, CONTROL_DOWN = 0x77f, CONTROL_DEFAULT = 0x37f };
    for (unsigned x87 = 0; x87 < 2; x87++) {
        weave_run *run = program(add_registers);
        uint16_t control = CONTROL_DOWN, before, after;
        harness_random_state(&start);
        start.mxcsr = TOWARDS_ZERO;
        insert(run, WEAVE_BEFORE, 1,
               x87 ? CALL(in_x87, 1, gen_const(3), NULL) : CALL(in_double, 1, gen_const(3), NULL));
        third = 0, x87_third = 0;
        __asm__ volatile("fnstcw %0\n fldcw %1" : "=m"(before) : "m"(control));
        run_both(run);
        __asm__ volatile("fnstcw %0\n fldcw %1" : "=m"(after) : "m"(before));
        same_machine();
        assert_int_equal(woven.mxcsr, native.mxcsr);
        assert_int_equal(after, control);
        uint64_t bits, near = 0x3fd5555555555555;
        memcpy(&bits, &third, 8);
        if (!x87) {
            assert_int_equal(bits, near);
        } else {
            assert_int_equal(mxcsr_there & 0xffc0, DEFAULT);
            assert_int_equal(control_there, CONTROL_DEFAULT);
            assert_int_equal(x87_third, 333334); /* rounded down, it is 333333 */
        }
    }
}

/* The program's own use of GS: native code cannot run it here, so the outcome is stated. */
static void use_gs(x86_code *c)
{
    static const uint8_t wrgsbase_rax[] = {0xf3, 0x48, 0x0f, 0xae, 0xd8};
    static const uint8_t rdgsbase_r9[] = {0xf3, 0x49, 0x0f, 0xae, 0xc9};
    static const uint8_t load[] = {0x65, 0x48, 0x8b, 0x54, 0xd9, 0x10};      /* rdx = gs:[rcx+rbx*8+16] */
    static const uint8_t add[] = {0x65, 0x4d, 0x01, 0x24, 0x25, 8, 0, 0, 0}; /* gs:[8] += r12 */
    x86_bytes(c, wrgsbase_rax, sizeof wrgsbase_rax);
    x86_bytes(c, rdgsbase_r9, sizeof rdgsbase_r9);
    x86_bytes(c, load, sizeof load);
    x86_bytes(c, add, sizeof add);
}

static void program_in_gs(void **state)
{
    (void)state;
    for (unsigned with = 0; with < 2; with++) {
        inl_error e;
        weave_run *run = program(use_gs);
        harness_random_state(&start);
        harness_fill_memory(3);
        start.gpr[X86_RAX] = (uintptr_t)bench.data;
        start.gpr[X86_RCX] = 100, start.gpr[X86_RBX] = 5;
        uint64_t loaded, added;
        memcpy(&loaded, bench.data + 156, 8);
        memcpy(&added, bench.data + 8, 8);
        if (with)
            for (uint32_t i = 0; i < 4; i++) insert(run, WEAVE_BEFORE, i, store_word(i, reg_value(X86_R9)));
        assert_int_equal(harness_weave(run, NULL, false, &e), INL_OK);
        woven = start;
        harness_woven(&woven);
        assert_int_equal(woven.gpr[X86_R9], (uintptr_t)bench.data);
        assert_int_equal(woven.gpr[X86_RDX], loaded);
        uint64_t now;
        memcpy(&now, bench.data + 8, 8);
        assert_int_equal(now, added + start.gpr[X86_R12]);
        assert_int_equal(bench.frame->app_gs_base, (uintptr_t)bench.data);
    }
}

static void refusals(void **state)
{
    (void)state;
    const char *why = NULL;
    weave_run *run = program(compare_and_branch);
    assert_false(weave_insert_at(run, WEAVE_AFTER, 1, count(0, 1), false, &why));
    assert_non_null(why);
    assert_false(weave_insert_at(run, WEAVE_TAKEN, 0, count(0, 1), false, &why));
    assert_false(weave_insert_at(run, WEAVE_BEFORE, 0, store_word(0, node(SNIPPET_EA, NULL)), false, &why));
    assert_false(weave_insert_at(run, WEAVE_BEFORE, 0, store_word(0, node(SNIPPET_TARGET, NULL)), false, &why));
    assert_false(weave_insert_at(run, WEAVE_ANYWHERE, 9, count(0, 1), false, &why));
}

static void merged_counts(void **state)
{
    (void)state;
    inl_error e;
    weave_run *run = program(add_registers);
    harness_random_state(&start);
    for (uint32_t i = 0; i < 3; i++) insert(run, WEAVE_BEFORE, i, count(1, 1));
    insert(run, WEAVE_ANYWHERE, 0, count(2, 1));
    assert_int_equal(harness_weave(run, NULL, false, &e), INL_OK);
    assert_int_equal(bench.out.count_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_null(bench.out.counts[i].weights);
        assert_int_equal(bench.out.counts[i].position, 0); /* its flags are dead */
    }
    assert_true(bench.code.at < 80);
    run_both(run);
    same_machine();
    assert_int_equal(bench.counters[1], 3);
    assert_int_equal(bench.counters[2], 1);
}

/* bts %rax, 16(%rbx); btc %ecx, (%rbx,%rsi,8); btr %dx, (%rbx) */
static void bits_by_number(x86_code *c) { x86_bytes(c, "\x48\x0f\xab\x43\x10\x0f\xbb\x0c\xf3\x66\x0f\xb3\x13", 13); }

/* A bit that a register numbers is accessed in the word where it lies. */
static void places_of_numbered_bits(void **state)
{
    (void)state;
    static const int64_t distance[] = {16 + 16 * 8, 7 * 8 - 5 * 4, -2 * 2};
    weave_run *run = program(bits_by_number);
    harness_random_state(&start);
    start.gpr[X86_RBX] = (uintptr_t)bench.data + 512;
    start.gpr[X86_RSI] = 7;
    start.gpr[X86_RAX] = 16 * 64 + 5;
    start.gpr[X86_RCX] = (uint32_t)(-5 * 32 + 9);
    start.gpr[X86_RDX] = 0x10000 - 2 * 16 + 3;
    for (uint32_t i = 0; i < 3; i++) {
        insert(run, WEAVE_BEFORE, i, store_word(i, node(SNIPPET_EA, NULL)));
        insert(run, WEAVE_AFTER, i, store_word(4 + i, node(SNIPPET_MEM_VALUE, NULL)));
    }
    run_both(run);
    same_machine();
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t at = start.gpr[X86_RBX] + (uint64_t)distance[i], value = 0;
        assert_int_equal(real_effects.words[i], at);
        memcpy(&value, (void *)(uintptr_t)at, 8u >> i);
        assert_int_equal(real_effects.words[4 + i], value);
    }
}

static void code_too_small(void **state)
{
    (void)state;
    inl_error e;
    weave_run *run = program(touch_memory);
    for (unsigned with = 0; with < 2; with++) {
        if (with)
            for (uint32_t i = 0; i < 5; i++) insert(run, WEAVE_BEFORE, i, CALL(look, 1, gen_const(1), NULL));
        bench.room = 0;
        while (harness_weave(run, NULL, false, &e) == INL_ERR_RANGE) bench.room += 7;
        assert_true(bench.code.at <= bench.room);
        bench.room = 1 << 20;
        assert_int_equal(e.code, INL_ERR_RANGE);
    }
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_edges),
        cmocka_unit_test(taken_edge_of_loop),
        cmocka_unit_test(target_of_return),
        cmocka_unit_test(assigned_registers),
        cmocka_unit_test(referenced_registers),
        cmocka_unit_test(whole_context),
        cmocka_unit_test(appended_records),
        cmocka_unit_test(program_in_gs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(merged_counts),
        cmocka_unit_test(places_of_numbered_bits),
        cmocka_unit_test(code_too_small),
        cmocka_unit_test(counts_before_a_full_buffer),
        cmocka_unit_test(divisions_fault_in_the_programs_state),
        cmocka_unit_test(routines_are_known_by_what_they_change),
        cmocka_unit_test(rounding_is_the_routines_own),
        cmocka_unit_test(routines_are_unknown_by_what_cannot_be_saved_singly),
        cmocka_unit_test(vectors_are_saved_one_by_one),
        cmocka_unit_test(the_thread_pointer_is_swapped),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
