/* Liveness over a procedure's blocks: a hand-made procedure, its answers known. */
#include "cfg/flow.h"
#include "isa/x86_64/x86.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define REG(r) (1ull << X86_##r)

/*  0: xor %ecx,%ecx            block 0, falls into 1
 *  2: add (%rdi),%ecx          block 1, a loop
 *  4: dec %esi
 *  6: jne 2
 *  8: mov %ecx,%eax            block 2
 * 10: ret                                                                                      */
static const uint8_t code[] = {0x31, 0xc9, 0x03, 0x0f, 0xff, 0xce, 0x75, 0xfa, 0x89, 0xc8, 0xc3};

typedef struct sample {
    cfg_program program;
    cfg_proc proc;
    cfg_block blocks[3];
    cfg_edge edges[4];
    isa_insn insns[6];
    inl_arena arena;
} sample;

static void make(sample *s)
{
    memset(s, 0, sizeof *s);
    s->proc = (cfg_proc){.addr = 0, .size = sizeof code, .block_count = 3};
    s->blocks[0] = (cfg_block){.addr = 0, .size = 2, .insn_count = 1, .edge_count = 1,
                               .flags = CFG_BLOCK_ENTRY};
    s->blocks[1] = (cfg_block){.addr = 2, .size = 6, .insn_count = 3, .first_edge = 1, .edge_count = 2};
    s->blocks[2] = (cfg_block){.addr = 8, .size = 3, .insn_count = 2, .first_edge = 3,
                               .flags = CFG_BLOCK_RETURN};
    s->edges[0] = (cfg_edge){.target = 2, .from = 0, .to = 1, .kind = CFG_EDGE_FALL};
    s->edges[1] = (cfg_edge){.target = 2, .from = 1, .to = 1, .kind = CFG_EDGE_TAKEN, .back = true};
    s->edges[2] = (cfg_edge){.target = 8, .from = 1, .to = 2, .kind = CFG_EDGE_NOT_TAKEN};
    s->program = (cfg_program){.isa = &isa_x86_64, .procs = &s->proc, .blocks = s->blocks,
                               .edges = s->edges, .proc_count = 1, .block_count = 3, .edge_count = 3};
    unsigned n = 0;
    for (size_t at = 0; at < sizeof code; at += s->insns[n++].len)
        assert_int_equal(isa_x86_64.decode(code + at, sizeof code - at, at, &s->insns[n]), ISA_OK);
    assert_int_equal(n, 6);
}

static const cfg_live *solve(sample *s, const cfg_facts *facts, const cfg_need *before)
{
    cfg_flow_code c = {s->insns, sizeof s->insns[0], before, NULL};
    const cfg_live *at = cfg_flow_solve(&s->program, facts, 0, &c, &s->arena);
    assert_non_null(at);
    return at;
}

static void registers(void **state)
{
    (void)state;
    sample s;
    cfg_facts facts = {0};
    make(&s);
    const cfg_live *at = solve(&s, &facts, NULL);
    assert_false(at[0].live.regs & REG(RCX));
    assert_true(at[0].live.regs & REG(RDI) && at[0].live.regs & REG(RSI));
    assert_true(at[1].live.regs & REG(RCX));
    assert_false(at[1].live.regs & REG(RAX));
    assert_true(at[1].seen.regs & REG(RAX)); /* the load may fault */
    assert_true(at[2].live.regs & REG(RCX));
    assert_false(at[2].live.regs & REG(RAX));
    assert_true(at[2].live.regs & REG(R11)); /* a caller may want it */
    inl_arena_free(&s.arena);
}

static void flags(void **state)
{
    (void)state;
    sample s;
    cfg_facts none = {0}, returns = {.flags_at_return = ~0u};
    make(&s);
    const cfg_live *at = solve(&s, &none, NULL);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(at[i].live.flags & X86_ARITH, 0);
    at = solve(&s, &returns, NULL);
    assert_int_equal(at[2].live.flags & X86_ARITH, X86_ARITH);
    assert_false(at[1].live.flags & X86_ZF);
    inl_arena_free(&s.arena);
}

static void snippets_read_too(void **state)
{
    (void)state;
    sample s;
    cfg_facts facts = {0};
    cfg_need before[6] = {[4] = {REG(RAX), X86_ZF}}; /* in front of the mov */
    make(&s);
    const cfg_live *at = solve(&s, &facts, before);
    assert_true(at[2].live.regs & REG(RAX));
    assert_true(at[1].live.regs & REG(RAX));
    assert_true(at[0].live.regs & REG(RAX));
    assert_true(at[2].live.flags & X86_ZF);
    assert_false(at[1].live.flags & X86_ZF);
    inl_arena_free(&s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers),
        cmocka_unit_test(flags),
        cmocka_unit_test(snippets_read_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
