/* Records that are appended ahead are those that are appended one by one: random programs with random records, woven in
 * both ways, run to the end, to a side exit or to a fault; the program itself is disturbed by neither. */
#include "weave_gen.h"

#include "weave/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { BUFFERS = 2, ROOM = 8, SLACK = 9, FIELDS = 4, BYTES = 1 << 16 };

typedef struct trace {
    uint8_t bytes[BUFFERS][BYTES];
    size_t size[BUFFERS];
    uint64_t counters[GEN_COUNTERS];
    machine at;
} trace;

static void on_full(uint32_t slot);
static const uint8_t field_sizes[BUFFERS][FIELDS] = {{8, 8, 2, 4}, {1, 8, 4, 8}};
static const snippet_buffer buffers[BUFFERS] = {{2, 22, on_full, SLACK}, {5, 21, on_full, SLACK / 3}};
static uint8_t memory[BUFFERS][(ROOM + SLACK) * 22];
static trace one_by_one, ahead, *now;
static size_t records_seen, looks_seen, faults_seen;

static unsigned number_of(uint32_t slot) { return slot == buffers[1].slot; }

static void keep(unsigned k, uint64_t bytes)
{
    weave_buffer_slot *b = &bench.frame->buffers[buffers[k].slot];
    assert_true(bytes <= (ROOM + buffers[k].slack) * buffers[k].record_size); /* none behind what there is */
    assert_true(now->size[k] + bytes <= BYTES);
    if (bytes) memcpy(now->bytes[k] + now->size[k], (const void *)(uintptr_t)b->base, bytes);
    now->size[k] += bytes;
}

/* As many as the buffer has room for, as the tool part does it. */
static void on_full(uint32_t slot)
{
    unsigned k = number_of(slot);
    weave_buffer_slot *b = &bench.frame->buffers[slot];
    if (b->base) keep(k, b->next - b->base);
    b->base = b->next = (uintptr_t)memory[k];
    b->limit = b->base + ROOM * buffers[k].record_size;
}

static const snippet *record_of(const weave_insn *insn, unsigned k)
{
    snippet *s = snippet_new(&bench.arena, SNIPPET_APPEND);
    const snippet **args = inl_arena_alloc(&bench.arena, FIELDS * sizeof *args);
    isa_mem mem[ISA_MAX_MEM];
    bool has_memory = isa_x86_64.memory(&insn->in, mem) > 0 && !(mem[0].bits & ISA_MEM_VECTOR_INDEX);
    for (unsigned i = 0; i < FIELDS; i++) {
        unsigned kind = harness_random() % 8;
        if (kind < 3) args[i] = gen_const(harness_random() % 4 ? 0x10001 : harness_random() * 0x100000001ull);
        else if (kind == 3) args[i] = snippet_new(&bench.arena, SNIPPET_PC);
        else if (kind == 4 || !has_memory) args[i] = gen_value(insn, false, harness_random() % 8 ? 0 : 2);
        else args[i] = snippet_new(&bench.arena, SNIPPET_EA);
    }
    s->args = args, s->nargs = FIELDS, s->arg_sizes = field_sizes[k], s->buffer = &buffers[k];
    return s;
}

static void insert(weave_run *run, weave_where where, uint32_t i, const snippet *s, bool predicated)
{
    const char *why;
    s = snippet_simplify(&bench.arena, s);
    if (snippet_check(s, &why)) weave_insert_at(run, where, i, s, predicated, &why);
}

static const snippet *plain_count(void)
{
    snippet *s = snippet_new(&bench.arena, SNIPPET_COUNT);
    s->index = harness_random() % GEN_COUNTERS;
    s->a = gen_const(1 + harness_random() % 3);
    return s;
}

/* Mostly records in front of instructions; now and then what they must make way for. */
static void insert_all(weave_run *run)
{
    bool counts = harness_random() & 1;
    unsigned other = harness_random() % 3 ? 0 : 12;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        for (unsigned n = harness_random() % 3; n; n--)
            insert(run, WEAVE_BEFORE, i, record_of(insn, harness_random() % 4 == 0),
                   other && harness_random() % 9 == 0);
        if (counts && harness_random() % 2) insert(run, WEAVE_BEFORE, i, plain_count(), false);
        if (!other || harness_random() % other) continue;
        bool after = insn->in.flow == ISA_FLOW_NEXT && harness_random() & 1;
        if (harness_random() & 1)
            insert(run, after ? WEAVE_AFTER : WEAVE_BEFORE, i, gen_snippet(insn, after, 1), false);
        else if (after) insert(run, WEAVE_AFTER, i, record_of(insn, 0), false);
        else if (insn->in.flow == ISA_FLOW_COND) insert(run, WEAVE_TAKEN, i, record_of(insn, 1), false);
    }
    for (uint32_t b = 0; counts && b < run->block_count; b++) insert(run, WEAVE_ANYWHERE, b, plain_count(), false);
}

static void run_woven(trace *t, const machine *start, uint32_t fill)
{
    now = t;
    memset(t->size, 0, sizeof t->size);
    memset(bench.frame->buffers, 0, sizeof bench.frame->buffers);
    memset(bench.counters, 0, GEN_COUNTERS * 8);
    memset(memory, 0xee, sizeof memory);
    memset(&real_effects, 0, sizeof real_effects);
    harness_fill_memory(fill);
    t->at = *start;
    for (unsigned times = 0; times < 3; times++) { /* buffers fill up */
        machine again = *start;
        harness_fill_memory(fill);
        harness_woven(times ? &again : &t->at);
    }
    harness_save_memory(bench.woven_memory);
    for (unsigned k = 0; k < BUFFERS; k++) {
        weave_buffer_slot *b = &bench.frame->buffers[buffers[k].slot];
        keep(k, b->next - b->base);
    }
    memcpy(t->counters, bench.counters, sizeof t->counters);
}

static bool is_the_programs(const machine *native, const machine *woven)
{
    return !memcmp(native->gpr, woven->gpr, sizeof native->gpr) && !((native->flags ^ woven->flags) & X86_ARITH) &&
           !memcmp(bench.native_memory, bench.woven_memory, sizeof bench.native_memory);
}

static const char *difference(const machine *native)
{
    if (!is_the_programs(native, &ahead.at)) return "the program is disturbed";
    if (memcmp(one_by_one.counters, ahead.counters, sizeof ahead.counters)) return "counters differ";
    for (unsigned k = 0; k < BUFFERS; k++)
        if (one_by_one.size[k] != ahead.size[k] || memcmp(one_by_one.bytes[k], ahead.bytes[k], ahead.size[k]))
            return k ? "records of the second buffer differ" : "records differ";
    return NULL;
}

static void complain(const weave_run *run, uint32_t seed, const char *what)
{
    fprintf(stderr, "seed %u: %s\n", seed, what);
    for (uint32_t i = 0; i < run->insn_count; i++) {
        char text[256];
        isa_x86_64.format(&run->insns[i].in, text, sizeof text);
        fprintf(stderr, "%3u  %s\n", i, text);
        for (const weave_insert *n = run->insns[i].before.first; n; n = n->next) {
            snippet_print(n->code, text, sizeof text);
            fprintf(stderr, "       %s\n", text);
        }
    }
    fail();
}

static void one(uint32_t seed, bool faults, weave_options options)
{
    uint8_t bytes[1024];
    machine start, native;
    inl_error e;
    harness_seed(seed);
    size_t size = gen_program(bytes, sizeof bytes, 4 + harness_random() % 24, faults);
    gen_state(&start);
    if (!size) return;
    weave_run *run = harness_run(bytes, size);
    insert_all(run);
    bool far = harness_random() % 2;
    options.cold_exits = seed & 1;
    options.seed = seed;
    for (unsigned way = 0; way < 2; way++) {
        options.appends_ahead = way;
        if (harness_weave(run, &options, far, &e)) {
            if (strstr(e.text, "more registers") || strstr(e.text, "too many values")) return;
            complain(run, seed, e.text);
        }
        run_woven(way ? &ahead : &one_by_one, &start, seed);
        for (uint32_t i = 0; way && i < bench.out.count_count; i++)
            looks_seen += weave_is_next(bench.out.counts[i].counter);
    }
    records_seen += ahead.size[0] + ahead.size[1];
    faults_seen += ahead.at.fault_pc != 0;
    harness_fill_memory(seed);
    native = start;
    harness_native(run, run->insn_count, &native);
    harness_save_memory(bench.native_memory);
    const char *what = difference(&native);
    if (what) complain(run, seed, what);
}

static void sweep(bool faults, weave_options options)
{
    const char *n = getenv("WEAVE_ROUNDS"), *first = getenv("WEAVE_SEED");
    unsigned rounds = n ? (unsigned)atoi(n) : 1500;
    harness_catch_faults();
    for (unsigned i = 0; i < rounds; i++) one((first ? (uint32_t)atoi(first) : 1) + i, faults, options);
}

static void to_the_end(void **state)
{
    (void)state;
    sweep(false, (weave_options){0});
}

static void to_a_fault(void **state)
{
    (void)state;
    sweep(true, (weave_options){0});
}

static void with_stress(void **state)
{
    (void)state;
    sweep(true, (weave_options){.stress = WEAVE_STRESS_RANDOM_REGS});
    sweep(true, (weave_options){.stress = WEAVE_STRESS_NO_DEAD});
    sweep(false, (weave_options){.hide_dead = true});
}

static void it_was_tried(void **state)
{
    (void)state;
    if (getenv("WEAVE_ROUNDS")) return;
    assert_true(records_seen > 1000000);
    assert_true(looks_seen > 5000);
    assert_true(faults_seen > 500);
}

int main(void)
{
    if (!harness_open()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(to_a_fault),
        cmocka_unit_test(with_stress),
        cmocka_unit_test(it_was_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
