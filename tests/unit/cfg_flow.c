/* Liveness over a procedure's blocks: a hand-made procedure, its answers known. */
#include "cfg/flow.h"
#include "isa/x86_64/x86.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
    s->blocks[0] = (cfg_block){.addr = 0, .size = 2, .insn_count = 1, .edge_count = 1, .flags = CFG_BLOCK_ENTRY};
    s->blocks[1] = (cfg_block){.addr = 2, .size = 6, .insn_count = 3, .first_edge = 1, .edge_count = 2};
    s->blocks[2] = (cfg_block){.addr = 8, .size = 3, .insn_count = 2, .first_edge = 3, .flags = CFG_BLOCK_RETURN};
    s->edges[0] = (cfg_edge){.target = 2, .from = 0, .to = 1, .kind = CFG_EDGE_FALL};
    s->edges[1] = (cfg_edge){.target = 2, .from = 1, .to = 1, .kind = CFG_EDGE_TAKEN, .back = true};
    s->edges[2] = (cfg_edge){.target = 8, .from = 1, .to = 2, .kind = CFG_EDGE_NOT_TAKEN};
    s->program = (cfg_program){.isa = &isa_x86_64,
                               .procs = &s->proc,
                               .blocks = s->blocks,
                               .edges = s->edges,
                               .proc_count = 1,
                               .block_count = 3,
                               .edge_count = 3};
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

/* --- at the rim: what is wanted of one block that does nothing, by what comes behind it --- */

enum { AT_ENTRY = X86_CF, AT_OUTSIDE = X86_ZF, AT_RETURN = X86_PF, NO_BLOCK = 99 };

/*  0: nop                  block 0, the one that is looked at
 *  1: sets %al             block 1, of the same procedure
 *  4: ret                                                                                      */
static const uint8_t rim_code[] = {0x90, 0x0f, 0x98, 0xc0, 0xc3};

static cfg_need wanted(uint32_t flags, uint32_t to, cfg_edge_kind kind)
{
    static const cfg_facts facts = {
        .flags_at_entry = AT_ENTRY, .flags_at_return = AT_RETURN, .flags_at_outside = AT_OUTSIDE};
    cfg_proc procs[3] = {{.size = sizeof rim_code, .block_count = 2},
                         {.addr = 16, .first_block = 2, .block_count = 2, .flags = CFG_PROC_CALLED},
                         {.addr = 32, .first_block = 4, .block_count = 1}};
    cfg_block blocks[5] = {{.size = 1, .insn_count = 1, .edge_count = to != NO_BLOCK, .flags = flags},
                           {.addr = 1, .size = 4, .insn_count = 2, .first_edge = 1, .flags = CFG_BLOCK_RETURN},
                           {.addr = 16, .proc = 1, .flags = CFG_BLOCK_ENTRY},
                           {.addr = 20, .proc = 1, .flags = CFG_BLOCK_OUTSIDE},
                           {.addr = 32, .proc = 2, .flags = CFG_BLOCK_ENTRY}};
    cfg_edge edge = {.to = to, .kind = kind};
    cfg_program program = {.isa = &isa_x86_64,
                           .procs = procs,
                           .blocks = blocks,
                           .edges = &edge,
                           .proc_count = 3,
                           .block_count = 5,
                           .edge_count = 1};
    isa_insn insns[3];
    inl_arena arena = {0};
    unsigned n = 0;
    for (size_t at = 0; at < sizeof rim_code; at += insns[n++].len)
        assert_int_equal(isa_x86_64.decode(rim_code + at, sizeof rim_code - at, at, &insns[n]), ISA_OK);
    cfg_flow_code c = {insns, sizeof insns[0], NULL, NULL};
    const cfg_live *at = cfg_flow_solve(&program, &facts, 0, &c, &arena);
    assert_non_null(at);
    cfg_need need = at[0].live;
    inl_arena_free(&arena);
    return need;
}

static void wants(cfg_need need, uint32_t flags)
{
    assert_true(need.regs == ~0ull);
    assert_int_equal(need.flags, flags);
}

static void what_leaves(void **state)
{
    (void)state;
    wants(wanted(CFG_BLOCK_RETURN, NO_BLOCK, 0), AT_RETURN);
    wants(wanted(CFG_BLOCK_TAIL_IND, NO_BLOCK, 0), AT_ENTRY);
    wants(wanted(CFG_BLOCK_UNRESOLVED, NO_BLOCK, 0), AT_ENTRY | AT_OUTSIDE);
    wants(wanted(0, NO_BLOCK, 0), 0); /* a trap */
}

/* The callee's entry asks, and of what is wanted behind the call only what a callee may leave: not the sign. */
static void calls(void **state)
{
    (void)state;
    wants(wanted(CFG_BLOCK_CALL, NO_BLOCK, 0), AT_ENTRY);
    wants(wanted(CFG_BLOCK_CALL, 1, CFG_EDGE_RETURNED), AT_ENTRY | AT_RETURN);
    wants(wanted(0, 1, CFG_EDGE_FALL), AT_RETURN | X86_SF);
}

static void other_procedures(void **state)
{
    (void)state;
    wants(wanted(0, 2, CFG_EDGE_TAKEN), AT_ENTRY);
    wants(wanted(0, 3, CFG_EDGE_TAKEN), AT_OUTSIDE);
    wants(wanted(0, 4, CFG_EDGE_TAKEN), AT_OUTSIDE); /* a part that only jumps lead to */
    wants(wanted(0, CFG_NONE, CFG_EDGE_TAKEN), AT_ENTRY);
    wants(wanted(CFG_BLOCK_RETURN, 3, CFG_EDGE_TAKEN), AT_RETURN | AT_OUTSIDE);
}

/* --- facts of a whole file: what solving all of its procedures, registers and all, would say --- */

static bool is_called(const cfg_program *p, const cfg_block *b)
{
    enum { CALLED = CFG_PROC_CALLED | CFG_PROC_ADDRESS_TAKEN | CFG_PROC_EXPORTED };
    return b->flags & CFG_BLOCK_ENTRY && p->procs[b->proc].flags & CALLED;
}

static void note_returns(const cfg_program *p, const cfg_block *b, const cfg_live *at, cfg_facts *facts)
{
    const cfg_proc *of = &p->procs[b->proc];
    for (uint32_t i = 0; i < b->edge_count && b->flags & CFG_BLOCK_CALL; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        if (e->kind != CFG_EDGE_RETURNED || e->to == CFG_NONE) continue;
        if (e->to - of->first_block < of->block_count) facts->flags_at_return |= at[e->to - of->first_block].live.flags;
        else if (!(p->blocks[e->to].flags & CFG_BLOCK_ENTRY)) facts->flags_at_return = ~0u;
    }
}

static void note_proc(const cfg_program *p, uint32_t proc, inl_arena *arena, cfg_facts *facts)
{
    static const cfg_facts hoped;
    const cfg_proc *of = &p->procs[proc];
    uint32_t n = 0;
    for (uint32_t k = 0; k < of->block_count; k++) n += p->blocks[of->first_block + k].insn_count;
    isa_insn *insns = inl_arena_alloc(arena, n * sizeof *insns);
    n = 0;
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        const uint8_t *bytes;
        size_t have = image_bytes(p->image, b->addr, &bytes), at = 0;
        for (uint32_t i = 0; i < b->insn_count; i++, n++) {
            assert_true(p->isa->decode(bytes + at, have - at, b->addr + at, &insns[n]) <= ISA_UNKNOWN ||
                        insns[n].flow == ISA_FLOW_TRAP);
            at += insns[n].len;
        }
    }
    cfg_flow_code all = {.first = insns, .stride = sizeof *insns};
    const cfg_live *at = cfg_flow_solve(p, &hoped, proc, &all, arena);
    for (uint32_t k = 0; k < of->block_count; k++) {
        const cfg_block *b = &p->blocks[of->first_block + k];
        if (is_called(p, b)) facts->flags_at_entry |= at[k].live.flags;
        else if (b->flags & (CFG_BLOCK_ENTRY | CFG_BLOCK_OUTSIDE)) facts->flags_at_outside |= at[k].live.flags;
        note_returns(p, b, at, facts);
    }
}

static void check_facts(const char *path)
{
    image *im;
    inl_error e;
    cfg_program *p;
    cfg_facts found, all = {0};
    inl_arena arena = {0};
    assert_int_equal(image_open(path, &im, &e), INL_OK);
    assert_int_equal(cfg_program_analyse(im, NULL, &p, &e), INL_OK);
    for (uint32_t k = 0; k < p->proc_count; k++) {
        inl_arena_reset(&arena);
        if (!(p->procs[k].flags & CFG_PROC_GUESSED) && p->procs[k].block_count) note_proc(p, k, &arena, &all);
    }
    all.flags_at_return |= all.flags_at_entry;
    assert_true(cfg_facts_find(p, &found));
    assert_int_equal(found.flags_at_entry, all.flags_at_entry);
    assert_int_equal(found.flags_at_outside, all.flags_at_outside);
    assert_int_equal(found.flags_at_return, all.flags_at_return);
    inl_arena_free(&arena);
    cfg_program_free(p);
    image_close(im);
}

/* Of this program and what it is loaded with. */
static void facts_of_files(void **state)
{
    (void)state;
    char line[512], path[256];
    unsigned count = 1;
    check_facts("/proc/self/exe");
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%*s r-xp %*s %*s %*s %255s", path) == 1 && strstr(path, ".so")) check_facts(path), count++;
    fclose(maps);
    assert_true(count > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers),      cmocka_unit_test(flags), cmocka_unit_test(snippets_read_too),
        cmocka_unit_test(what_leaves),    cmocka_unit_test(calls), cmocka_unit_test(other_procedures),
        cmocka_unit_test(facts_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
