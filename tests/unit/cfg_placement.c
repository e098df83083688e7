/* Counters on chords only: on random procedures and random walks through them, walks that end at calls
 * included, what is derived is what was executed. */
#include "cfg/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 24, WALKS = 60, STEPS = 400, ROUNDS = 3000 };

static uint64_t seed;
static uint32_t any(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

typedef struct sample {
    cfg_program cfg;
    cfg_proc proc;
    cfg_block blocks[BLOCKS];
    cfg_edge edges[BLOCKS * 4];
    uint8_t watched[BLOCKS];
} sample;

static void add_edge(sample *s, uint32_t from, uint32_t to, cfg_edge_kind kind)
{
    s->edges[s->cfg.edge_count++] = (cfg_edge){.target = to == CFG_NONE ? 1000 : to + 1,
                                               .from = from,
                                               .to = to,
                                               .kind = kind,
                                               .back = to != CFG_NONE && to <= from};
    s->blocks[from].edge_count++;
}

static void make_block(sample *s, uint32_t i, uint32_t n)
{
    cfg_block *b = &s->blocks[i];
    b->addr = i + 1;
    b->size = 1;
    b->first_edge = s->cfg.edge_count;
    uint32_t next = i + 1 < n ? i + 1 : CFG_NONE;
    switch (any(8)) {
    case 0: b->flags |= CFG_BLOCK_RETURN; break;
    case 1:
        b->flags |= CFG_BLOCK_CALL;
        if (next != CFG_NONE) add_edge(s, i, next, CFG_EDGE_RETURNED);
        break;
    case 2: add_edge(s, i, any(n), CFG_EDGE_JUMP); break;
    case 3:
        for (uint32_t k = 2 + any(2); k; k--) add_edge(s, i, any(n), CFG_EDGE_TABLE);
        break;
    case 4:
        if (next != CFG_NONE) add_edge(s, i, next, CFG_EDGE_FALL);
        else b->flags |= CFG_BLOCK_TAIL_IND;
        break;
    default:
        add_edge(s, i, any(9) ? any(n) : CFG_NONE, CFG_EDGE_TAKEN);
        if (s->edges[s->cfg.edge_count - 1].to == CFG_NONE) s->edges[s->cfg.edge_count - 1].kind = CFG_EDGE_TAIL;
        add_edge(s, i, next, next == CFG_NONE ? CFG_EDGE_TAIL : CFG_EDGE_NOT_TAKEN);
    }
    if (any(12) == 0) b->flags |= CFG_BLOCK_LANDING;
    s->watched[i] = any(15) == 0;
}

static void make(sample *s)
{
    memset(s, 0, sizeof *s);
    uint32_t n = 1 + any(BLOCKS);
    s->blocks[0].flags = CFG_BLOCK_ENTRY;
    for (uint32_t i = 0; i < n; i++) make_block(s, i, n);
    s->proc.block_count = n;
    s->cfg.procs = &s->proc;
    s->cfg.blocks = s->blocks;
    s->cfg.edges = s->edges;
    s->cfg.proc_count = 1;
    s->cfg.block_count = n;
}

static uint32_t entered(const sample *s)
{
    for (;;) {
        uint32_t b = any(s->cfg.block_count);
        if (s->blocks[b].flags & (CFG_BLOCK_ENTRY | CFG_BLOCK_LANDING)) return b;
    }
}

/* One activation; it ends where the procedure is left, or, as an exit in a callee would, at a call. */
static bool walk(const sample *s, const cfg_flow_graph *g, uint64_t *truth)
{
    uint32_t b = entered(s);
    for (int step = 0; step < STEPS; step++) {
        const cfg_block *k = &s->blocks[b];
        truth[b]++;
        if (k->edge_count == 0 || (k->flags & CFG_BLOCK_CALL && any(4) == 0)) return true;
        uint32_t edge = k->first_edge + any(k->edge_count);
        uint32_t i = cfg_flow_transfer(g, s->cfg.block_count, edge);
        if (i != CFG_NONE) truth[i]++;
        if (s->edges[edge].to == CFG_NONE) return true;
        b = s->edges[edge].to;
    }
    return false; /* round and round: what was cut says nothing */
}

static void check_round(sample *s)
{
    inl_arena arena = {0};
    cfg_flow_graph *g = cfg_flow_build(&s->cfg, 0, s->watched, &arena);
    assert_non_null(g);
    uint64_t truth[BLOCKS * 5] = {0}, before[BLOCKS * 5], flow[BLOCKS * 5] = {0};
    for (int w = 0; w < WALKS; w++) {
        memcpy(before, truth, sizeof truth);
        if (!walk(s, g, truth)) memcpy(truth, before, sizeof truth);
    }
    for (uint32_t i = 0; i < g->edge_count; i++) {
        if (!g->chord[i]) continue;
        flow[i] = truth[i];
        /* Falling through, with another way to go, is nothing that could be counted. */
        const cfg_edge *e = g->edges[i].edge == CFG_NONE ? NULL : &s->edges[g->edges[i].edge];
        assert_false(e && e->kind == CFG_EDGE_NOT_TAKEN && cfg_flow_is_fall(&s->cfg, e) &&
                     g->edges[i].from != g->edges[i].to);
    }
    assert_true(cfg_flow_derive(g, flow, &arena));
    for (uint32_t i = 0; i < g->edge_count; i++) assert_int_equal(flow[i], truth[i]);
    inl_arena_free(&arena);
}

static void test_random_procedures(void **state)
{
    (void)state;
    for (seed = 1; seed < ROUNDS; seed++) {
        uint64_t keep = seed;
        sample s;
        make(&s);
        check_round(&s);
        seed = keep;
    }
}

/* A loop with a diamond in it and no calls: two counters, none of them in the loop's head. */
static void test_loop(void **state)
{
    (void)state;
    sample s;
    memset(&s, 0, sizeof s);
    s.cfg = (cfg_program){.procs = &s.proc, .blocks = s.blocks, .edges = s.edges};
    s.proc.block_count = s.cfg.block_count = 6;
    s.blocks[0].flags = CFG_BLOCK_ENTRY;
    static const struct {
        uint32_t from, to;
        cfg_edge_kind kind;
    } e[] = {{0, 1, CFG_EDGE_FALL}, {1, 3, CFG_EDGE_TAKEN}, {1, 2, CFG_EDGE_NOT_TAKEN}, {2, 4, CFG_EDGE_JUMP},
             {3, 4, CFG_EDGE_FALL}, {4, 1, CFG_EDGE_TAKEN}, {4, 5, CFG_EDGE_NOT_TAKEN}};
    for (uint32_t i = 0; i < sizeof e / sizeof *e; i++) {
        if (i == 0 || e[i].from != e[i - 1].from) s.blocks[e[i].from].first_edge = i;
        add_edge(&s, e[i].from, e[i].to, e[i].kind);
    }
    s.blocks[5].flags = CFG_BLOCK_RETURN;
    inl_arena arena = {0};
    cfg_flow_graph *g = cfg_flow_build(&s.cfg, 0, NULL, &arena);
    assert_non_null(g);
    unsigned chords = 0;
    for (uint32_t i = 0; i < g->edge_count; i++) chords += g->chord[i];
    assert_int_equal(chords, 3); /* the two ways through the loop, and once a call */
    assert_false(g->chord[1]);
    inl_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_procedures),
        cmocka_unit_test(test_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
