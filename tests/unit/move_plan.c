/* The plan by itself, of this program and of others on the machine: what it says must hold together.
 * move_plan_check reads the new code back; here the map, the patches and the report are compared with
 * what was asked for. */
#include "isa/x86_64/x86.h"
#include "base/bytes.h"
#include "elf/elf.h"
#include "move/plan.h"
#include "moved/states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct sample {
    image *image;
    cfg_program *program;
    elf_target target;
    move_plan *plan;
    inl_arena arena;
    const snippet *one;
    uint32_t only; /* the procedure that is wanted, CFG_NONE: all */
    uint32_t shown;
} sample;

static const uint64_t bias = 0x555555554000;
static const char *self = "/proc/self/exe";

static void open_sample(sample *s, const char *path)
{
    inl_error e = {0};
    *s = (sample){.only = CFG_NONE};
    if (image_open(path, &s->image, &e) || cfg_program_analyse(s->image, NULL, &s->program, &e))
        fail_msg("%s: %s", path, e.text);
    elf_target_begin(&s->target, s->image);
    snippet *count = snippet_new(&s->arena, SNIPPET_COUNT), *amount = snippet_new(&s->arena, SNIPPET_CONST);
    amount->value = 1;
    count->a = amount;
    s->one = count;
}

static void close_sample(sample *s)
{
    elf_target_end(&s->target);
    move_plan_free(s->plan);
    cfg_program_free(s->program);
    image_close(s->image);
    inl_arena_free(&s->arena);
}

static bool wanted(void *arg, const cfg_program *p, uint32_t proc)
{
    const sample *s = arg;
    (void)p;
    return s->only == CFG_NONE || s->only == proc;
}

/* A count before every instruction. */
static void instrument(void *arg, const cfg_program *p, uint32_t proc, weave_run *run)
{
    sample *s = arg;
    const char *why;
    s->shown++;
    assert_int_equal(run->block_count, p->procs[proc].block_count);
    assert_true(run->insns[0].in.addr == p->procs[proc].addr + bias);
    for (uint32_t i = 0; i < run->insn_count; i++)
        assert_true(weave_insert_at(run, WEAVE_BEFORE, i, s->one, false, &why));
}

static void make(sample *s, bool counts)
{
    inl_error e = {0};
    move_client client = {.arg = s, .wanted = wanted, .instrument = counts ? instrument : NULL};
    if (move_plan_make(s->program, bias, &s->target.target, &client, &s->plan, &e) || move_plan_check(s->plan, &e))
        fail_msg("%s: %s (%#llx)", image_name(s->image), e.text, (unsigned long long)e.address);
}

/* Follows the patches from an old address; the new one, or 0. */
static uint64_t follow(const sample *s, uint64_t at)
{
    for (unsigned hops = 0; hops < 2; hops++) {
        for (size_t i = 0; i < s->plan->patch_count; i++) {
            const move_patch *x = &s->plan->patches[i];
            isa_insn in;
            if (x->at.at != at) continue;
            assert_int_equal(isa_x86_64.decode(x->now, x->size, x->at.at, &in), ISA_OK);
            assert_int_equal(in.flow, ISA_FLOW_JUMP);
            at = in.target;
            break;
        }
        if (at - s->plan->text_addr < s->plan->text_size) return at;
    }
    return 0;
}

static void check_map(const sample *s)
{
    for (size_t i = 0; i < s->plan->map_count; i += 1 + i / 1000) {
        const move_map m = move_map_at(s->plan, i);
        const assumed_addr old = {m.old_addr}, now = move_new_address(s->plan, old, true);
        assert_true(now.at == s->plan->text_addr + m.code_off);
        assert_true(move_old_address(s->plan, now).at == m.old_addr);
        assert_true(move_new_address(s->plan, old, false).at <= now.at);
    }
    assert_true(move_old_address(s->plan, (assumed_addr){s->plan->text_addr + s->plan->text_size}).at == 0);
    assert_true(move_new_address(s->plan, (assumed_addr){1}, true).at == 0);
}

static void same_place(weave_parked a, weave_parked b)
{
    assert_int_equal(a.spilled, b.spilled);
    assert_int_equal(a.junk, b.junk);
    assert_int_equal(a.flags_saved != 0, b.flags_saved != 0);
    assert_int_equal(a.pending != 0, b.pending != 0);
}

/* What is carried of each instruction reads as it was written. */
static void check_states(const sample *s)
{
    static const move_state clean;
    const move_plan *p = s->plan;
    inl_bytes b = {0};
    move_states_put(p, (assumed_addr){bias}, &b);
    assert_false(b.failed);
    const move_carried_states *carried = (const void *)b.data;
    for (size_t i = 0, k = 0; i < p->map_count; i++) {
        const move_map m = move_map_at(p, i);
        const move_state *state = k < p->state_count && p->states[k].index == i ? &p->states[k++] : &clean;
        moved_spot spot = {0};
        if (i % 7 && state == &clean) continue;
        assert_true(moved_states_find(carried, m.new_off, &spot));
        assert_true(spot.old_off + bias == m.old_addr && spot.new_off == m.new_off && spot.code_off == m.code_off);
        same_place(spot.before, state->before);
        same_place(spot.at, state->at);
        assert_true(moved_states_find_old(carried, (uint32_t)(m.old_addr - bias), &spot));
        assert_int_equal(spot.new_off, m.new_off);
    }
    for (size_t i = 0; i < p->fault_count; i++) {
        const move_carried_fault *f = moved_states_fault(carried, p->faults[i].to - 1);
        assert_non_null(f);
        assert_int_equal(f->spilled, p->faults[i].spilled);
        assert_true(f->old_off + bias == move_map_at(p, p->faults[i].index).old_addr);
    }
    inl_bytes_free(&b);
}

static void check_procs(const sample *s)
{
    uint64_t moved = 0;
    for (uint32_t i = 0; i < s->program->proc_count; i++) {
        const move_proc *r = &s->plan->procs[i];
        const cfg_proc *p = &s->program->procs[i];
        bool is_moved = r->how <= MOVE_MOVED_QUIETLY;
        assert_int_equal(is_moved, r->new_addr != 0);
        if (r->how == MOVE_LEFT) assert_non_null(r->reason);
        moved += is_moved;
        if (!is_moved || i % 37) continue;
        uint64_t to = follow(s, p->addr + bias);
        /* Only a part that nothing but jumps of moved code leads to can do without a jump over its old entry. */
        const unsigned ways = CFG_PROC_IFUNC | CFG_PROC_ADDRESS_TAKEN | CFG_PROC_EXPORTED | CFG_PROC_CALLED;
        if (to == 0) assert_false(p->flags & ways);
        else assert_true(to == r->new_addr);
        assert_true(move_new_address(s->plan, (assumed_addr){p->addr + bias}, false).at == r->new_addr);
    }
    assert_int_equal(moved, s->plan->moved_procs);
}

static void whole(const char *path, bool counts)
{
    sample s;
    open_sample(&s, path);
    make(&s, counts);
    assert_true(s.plan->moved_procs > 0);
    assert_int_equal(s.plan->uses_frame, counts);
    if (!counts) assert_false(s.plan->has_syscalls);
    check_map(&s);
    check_states(&s);
    check_procs(&s);
    close_sample(&s);
}

static void of_itself(void **state)
{
    (void)state;
    whole(self, false);
    whole(self, true);
}

static void of_others(void **state)
{
    static const char *const paths[] = {"/usr/bin/bash", "/usr/bin/perl", "/lib/x86_64-linux-gnu/libc.so.6",
                                        "/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/gawk"};
    (void)state;
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (access(paths[i], R_OK)) continue;
        whole(paths[i], false);
        whole(paths[i], true);
    }
}

/* The one that is wanted moves; nothing else changes. */
static void of_one(void **state)
{
    (void)state;
    sample s;
    open_sample(&s, self);
    for (uint32_t i = 0; i < s.program->proc_count; i++)
        if (s.program->procs[i].name && !strcmp(s.program->procs[i].name, "main")) s.only = i;
    assert_true(s.only != CFG_NONE);
    make(&s, true);
    assert_int_equal(s.shown, 1);
    assert_int_equal(s.plan->moved_procs, 1);
    assert_true(s.plan->procs[s.only].points > 0);
    assert_int_equal(s.plan->procs[s.only].refused, 0);
    assert_int_equal(s.plan->procs[s.only == 0].how == MOVE_MOVED, 0);
    check_map(&s);
    close_sample(&s);
}

static link_addr odd_room(void *arg)
{
    (void)arg;
    return (link_addr){0x1234};
}

static void misuse(void **state)
{
    (void)state;
    sample s;
    inl_error e = {0};
    open_sample(&s, self);
    move_target odd = s.target.target;
    odd.room = odd_room;
    assert_int_equal(move_plan_make(s.program, 0, &odd, NULL, &s.plan, &e), INL_ERR_USAGE);
    assert_null(s.plan);
    close_sample(&s);
}

int main(void)
{
    if (getenv("MOVE_SELF")) self = getenv("MOVE_SELF");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_itself),
        cmocka_unit_test(of_others),
        cmocka_unit_test(of_one),
        cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
