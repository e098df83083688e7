/* An engine that knows what is wanted where a run ends. The run is one block out of the middle of a longer
 * program, as a rewriter hands it over; the hooks' questions are recorded, and what they leave out must
 * cost nothing: no register spilled, no flags saved. */
#include "weave_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ALL = 0xffff, MOST = 8 };
typedef struct asked {
    unsigned count, behind_count;
    uint64_t targets[MOST];
    uint32_t behind[MOST];
    uint64_t regs[MOST], behind_regs; /* the answers, in turn */
    uint32_t flags, behind_flags;
} asked;
static asked hooks;
static machine start, native, woven;

static void live_at(void *arg, uint64_t target, uint64_t *regs, uint32_t *flags)
{
    asked *a = arg;
    unsigned k = a->count < MOST ? a->count++ : MOST - 1;
    a->targets[k] = target;
    *regs = a->regs[k];
    *flags = a->flags;
}

static void live_behind(void *arg, const weave_run *run, uint32_t i, uint64_t *regs, uint32_t *flags)
{
    asked *a = arg;
    assert_true(i < run->insn_count);
    a->behind[a->behind_count++ & (MOST - 1)] = i;
    *regs = a->behind_regs;
    *flags = a->behind_flags;
}

/* In turn: a part that is left out, the block, the way it ends. */
static weave_run *whole(void (*end)(x86_code *))
{
    uint8_t bytes[256];
    x86_code c = {.write = bytes, .exec = (uintptr_t)bench.app, .size = sizeof bytes};
    x86_mov_ri(&c, X86_RBX, 9);
    x86_jcc_rel32(&c, X86_E, harness_exit(7), false);
    x86_alu_rr(&c, X86_ADD, 8, X86_RAX, X86_RSI);
    x86_alu_ri(&c, X86_CMP, 8, X86_RAX, 5);
    if (end) end(&c);
    assert_false(c.full || c.unreachable);
    weave_run *run = harness_run(bytes, c.at);
    assert_non_null(run);
    return run;
}

/* A run of its own for the block that begins with instruction `first`. */
static weave_run *middle(const weave_run *of, uint32_t first)
{
    weave_run *run = inl_arena_alloc(&bench.arena, sizeof *run);
    *run = *of;
    run->insn_count = of->insn_count - first;
    run->insns = inl_arena_alloc(&bench.arena, run->insn_count * sizeof *run->insns);
    run->blocks = inl_arena_alloc(&bench.arena, sizeof *run->blocks);
    run->block_count = 1;
    run->blocks[0] = (weave_block){.run = run, .count = run->insn_count, .head = true};
    for (uint32_t i = 0; i < run->insn_count; i++) {
        run->insns[i] = of->insns[first + i];
        run->insns[i].run = run;
        run->insns[i].index = i;
        run->insns[i].block = 0;
    }
    return run;
}

/* A snippet that wants two scratch registers and the flags, before instruction i. */
static void insert(weave_run *run, uint32_t i)
{
    static uint64_t words[4];
    const char *why;
    snippet *store = snippet_new(&bench.arena, SNIPPET_STORE);
    snippet *sum = snippet_new(&bench.arena, SNIPPET_BINARY), *pc = snippet_new(&bench.arena, SNIPPET_PC);
    snippet *thread = snippet_new(&bench.arena, SNIPPET_THREAD);
    sum->op = SNIPPET_XOR, sum->a = thread, sum->b = pc;
    store->a = gen_const((uintptr_t)words), store->b = sum, store->size = 8;
    assert_true(weave_insert_at(run, WEAVE_BEFORE, i, store, false, &why));
}

typedef struct cost {
    unsigned slots, flags;
} cost;

/* What the woven code stores for the program's sake. */
static cost weave(weave_run *run, bool hide_dead)
{
    inl_error e;
    weave_options options = {.hide_dead = hide_dead};
    cost k = {0, 0};
    isa_insn in;
    hooks.count = hooks.behind_count = 0;
    bench.hook_arg = &hooks;
    inl_status status = harness_weave(run, &options, false, &e);
    if (status) fail_msg("%s", e.text);
    for (size_t at = 0; at < bench.code.at; at += in.len) {
        isa_mem mem[ISA_MAX_MEM];
        if (isa_x86_64.decode(bench.code.write + at, bench.code.at - at, 0, &in) != ISA_OK) break;
        int n = isa_x86_64.memory(&in, mem);
        for (int i = 0; i < n; i++) {
            if (mem[i].segment != X86_SEG_GS || mem[i].access != ISA_WRITE) continue;
            k.slots += mem[i].disp >= WEAVE_SLOT(0) && mem[i].disp < WEAVE_SLOT(16);
            k.flags += mem[i].disp == WEAVE_OFF(flags);
        }
    }
    return k;
}

static void set_hooks(bool at, bool behind)
{
    memset(&hooks, 0, sizeof hooks);
    for (unsigned i = 0; i < MOST; i++) hooks.regs[i] = ALL;
    hooks.flags = hooks.behind_flags = X86_ARITH;
    hooks.behind_regs = ALL;
    bench.live_at = at ? live_at : NULL;
    bench.live_behind = behind ? live_behind : NULL;
    harness_catch_faults();
}

/* Runs both; registers of `wanted` and, when asked, the flags must agree. */
static void run_both(const weave_run *run, uint64_t wanted, bool flags)
{
    harness_fill_memory(1);
    native = woven = start;
    x86_code hop = {.write = bench.app, .exec = (uintptr_t)bench.app, .size = 16};
    x86_jmp_to(&hop, run->insns[0].in.addr); /* over the part that is left out */
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);
    harness_fill_memory(1);
    harness_woven(&woven);
    harness_save_memory(bench.woven_memory);
    assert_int_equal(native.exit, woven.exit);
    for (unsigned r = 0; r < 16; r++)
        if (wanted >> r & 1) assert_int_equal(native.gpr[r], woven.gpr[r]);
    if (flags) assert_int_equal((native.flags ^ woven.flags) & X86_ARITH, 0);
    assert_memory_equal(bench.native_memory, bench.woven_memory, sizeof bench.woven_memory);
}

static void falls_out(void **state)
{
    (void)state;
    const uint64_t rax = 1 << X86_RAX | 1 << X86_RSP;
    for (unsigned hooked = 0; hooked < 3; hooked++) {
        set_hooks(hooked, false);
        if (hooked == 2) hooks.regs[0] = rax, hooks.flags = 0;
        weave_run *run = middle(whole(NULL), 2);
        insert(run, 1); /* behind it: cmp, and the end */
        cost k = weave(run, false);
        const isa_insn *last = &run->insns[1].in;
        assert_int_equal(hooks.count, hooked > 0);
        if (hooked) assert_int_equal(hooks.targets[0], last->addr + last->len);
        assert_int_equal(k.slots > 0, hooked < 2);
        assert_int_equal(k.flags, 0); /* cmp sets them all */
        harness_random_state(&start);
        run_both(run, hooked == 2 ? rax : ALL, hooked < 2);
    }
}

static void flags_at_the_end(void **state)
{
    (void)state;
    for (unsigned hooked = 0; hooked < 3; hooked++) {
        set_hooks(hooked, false);
        if (hooked == 2) hooks.regs[0] = 1 << X86_RAX, hooks.flags = 0;
        uint8_t bytes[] = {0x48, 0x01, 0xf0, 0x90}; /* add rax, rsi; nop */
        weave_run *run = harness_run(bytes, sizeof bytes);
        insert(run, 1);
        cost k = weave(run, false);
        assert_int_equal(k.flags > 0, hooked < 2);
        assert_int_equal(k.slots > 0, hooked < 2);
    }
}

static void branch(x86_code *c) { x86_jcc_rel32(c, X86_E, harness_exit(1), false); }

static void each_successor_its_own(void **state)
{
    (void)state;
    const uint64_t always = 1 << X86_RAX | 1 << X86_RSP;
    for (unsigned turn = 0; turn < 4; turn++) {
        set_hooks(true, false);
        hooks.regs[0] = always | 1 << X86_RDX;
        hooks.regs[1] = always | 1 << X86_R8;
        hooks.flags = 0;
        weave_run *run = middle(whole(branch), 2);
        insert(run, 1);
        cost k = weave(run, turn & 1);
        const isa_insn *last = &run->insns[2].in;
        assert_int_equal(hooks.count, 2);
        assert_int_equal(hooks.targets[0], harness_exit(1));
        assert_int_equal(hooks.targets[1], last->addr + last->len);
        assert_int_equal(k.slots + k.flags, 0);
        assert_int_equal(bench.out.entry_regs & ALL, always | 1 << X86_RDX | 1 << X86_R8 | 1 << X86_RSI);
        harness_random_state(&start);
        start.gpr[X86_RAX] = 5, start.gpr[X86_RSI] = turn / 2;
        run_both(run, always | 1 << (turn / 2 ? X86_R8 : X86_RDX), false);
    }
}

static void call_exit(x86_code *c) { x86_call_to(c, harness_exit(2)); }
static void just_return(x86_code *c) { x86_ret(c); }

/* Nobody knows what a caller or a callee wants, unless the engine does. */
static void behind_calls_and_returns(void **state)
{
    (void)state;
    void (*const ends[])(x86_code *) = {call_exit, just_return};
    const uint64_t rax = 1 << X86_RAX | 1 << X86_RSP;
    for (unsigned turn = 0; turn < 8; turn++) {
        bool asks = turn & 2, dead = turn & 4;
        set_hooks(true, asks);
        memset(hooks.regs, 0, sizeof hooks.regs); /* would be taken for dead, if it were asked */
        hooks.flags = 0;
        if (dead) hooks.behind_regs = rax, hooks.behind_flags = 0;
        weave_run *run = middle(whole(ends[turn & 1]), 2);
        insert(run, 2);
        cost k = weave(run, true);
        assert_int_equal(hooks.count, 0);
        assert_int_equal(hooks.behind_count, asks);
        if (asks) assert_int_equal(hooks.behind[0], 2);
        assert_int_equal(k.slots > 0, !(asks && dead));
        assert_int_equal(k.flags > 0, !(asks && dead));
        harness_random_state(&start);
        uint64_t to = harness_exit(3);
        uint8_t *stack = (uint8_t *)(uintptr_t)start.gpr[X86_RSP];
        if (turn & 1) start.gpr[X86_RSP] = (uintptr_t)bench.bad - 64, stack = bench.bad - 64;
        memcpy(stack, &to, 8); /* outside what is filled anew */
        run_both(run, asks && dead ? rax : ALL, !(asks && dead));
    }
}

/* words[1] = v, or words[2] = v where words[0] + v is 0; v is the thread's number and 7. */
static void insert_condition(weave_run *run, uint32_t i, uint64_t words[3])
{
    const char *why;
    snippet *v = snippet_new(&bench.arena, SNIPPET_LET), *value = snippet_new(&bench.arena, SNIPPET_BINARY);
    snippet *local = snippet_new(&bench.arena, SNIPPET_LOCAL), *choice = snippet_new(&bench.arena, SNIPPET_IF);
    snippet *sum = snippet_new(&bench.arena, SNIPPET_BINARY), *load = snippet_new(&bench.arena, SNIPPET_LOAD);
    snippet *arms[2];
    for (unsigned k = 0; k < 2; k++) {
        arms[k] = snippet_new(&bench.arena, SNIPPET_STORE);
        arms[k]->a = gen_const((uintptr_t)&words[1 + k]), arms[k]->b = local, arms[k]->size = 8;
    }
    load->a = gen_const((uintptr_t)words), load->size = 8;
    sum->op = SNIPPET_ADD, sum->a = load, sum->b = local;
    choice->a = sum, choice->b = arms[0], choice->c = arms[1];
    value->op = SNIPPET_ADD, value->a = snippet_new(&bench.arena, SNIPPET_THREAD), value->b = gen_const(7);
    v->a = value, v->b = choice;
    assert_true(weave_insert_at(run, WEAVE_BEFORE, i, v, false, &why));
}

static void move(x86_code *c) { x86_mov_rr(c, 8, X86_RBX, X86_RAX); }

/* Where rcx is dead a variable does not take it: the condition has no use for another one, but for the flags. */
static void variable_beside_a_condition(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 2; turn++) {
        uint64_t words[3] = {0}, v = bench.frame->thread_number + 7;
        if (turn) words[0] = -v;
        set_hooks(true, false);
        hooks.regs[0] = ALL & ~(1u << X86_RCX);
        weave_run *run = middle(whole(move), 2);
        insert_condition(run, 2, words);
        assert_int_equal(weave(run, false).flags, 0);
        harness_random_state(&start);
        run_both(run, hooks.regs[0], true);
        assert_int_equal(words[1], turn ? 0 : v);
        assert_int_equal(words[2], turn ? v : 0);
    }
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(falls_out),
        cmocka_unit_test(flags_at_the_end),
        cmocka_unit_test(each_successor_its_own),
        cmocka_unit_test(behind_calls_and_returns),
        cmocka_unit_test(variable_beside_a_condition),
    };
    if (getenv("WEAVE_TEST")) cmocka_set_test_filter(getenv("WEAVE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
