/* A plan handed to a target that is memory: a copy of this program's code, and of the new code. Procedures come and go
 * in any order, also where the target fails now and then: what is in is entered by old code and led to by new, what is
 * out is whole, nothing is left behind. Where a target forbids it, old code is only overwritten where it is caught. And
 * what is carried for signals says of a procedure by itself what it says of all. (A target that runs: move_live.c.) */
#include "base/bytes.h"
#include "base/check.h"
#include "elf/elf.h"
#include "move/delta.h"
#include "moved/states.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

enum { bias = 0x10000 };
static const char *self = "/proc/self/exe";

typedef struct memory {
    move_target target;
    elf_target file; /* asked what the file says */
    image *im;
    cfg_program *program;
    move_plan *plan;
    uint64_t low, high; /* of the old code, link-time */
    uint8_t *old;
    const uint8_t *first; /* what it was */
    uint8_t *text;
    size_t texts, patches, links;
    unsigned fails_at, calls; /* 0: it never does */
} memory;

static uint8_t *place_of(memory *m, assumed_addr at, size_t size)
{
    uint64_t link = at.at - bias, text = at.at - m->plan->text_addr;
    if (text < m->plan->text_size) {
        assert_true(text + size <= m->plan->text_size);
        return m->text + text;
    }
    assert_true(link >= m->low && link + size <= m->high);
    return m->old + (link - m->low);
}

static size_t read_bytes(void *arg, link_addr at, const uint8_t **bytes)
{
    memory *m = arg;
    return image_bytes(m->im, at.at, bytes);
}

static link_addr room(void *arg) { return (link_addr){elf_new_base(((memory *)arg)->im)}; }

static bool never(void *arg, const cfg_program *p, uint32_t block)
{
    (void)arg, (void)p, (void)block;
    return false;
}

static void put(memory *m, const move_patch *x, bool back)
{
    uint8_t *at = place_of(m, x->at, x->size);
    assert_memory_equal(at, back ? x->now : x->before, x->size);
    memcpy(at, back ? x->before : x->now, x->size);
}

/* Changes nothing then. */
static bool fails(memory *m) { return ++m->calls == m->fails_at; }

static inl_status place(void *arg, const move_delta *d, inl_error *e)
{
    memory *m = arg;
    const move_proc *of = &m->plan->procs[d->proc];
    if (fails(m)) return inl_fail(e, INL_ERR_SYSTEM, "made to fail");
    assert_true(of->new_addr >= d->at.at && of->new_addr + of->new_size == d->at.at + d->size);
    for (size_t i = 0; i < d->fixup_count; i++) {
        uint64_t at = m->plan->text_addr + d->fixups[i].at;
        assert_true(at >= d->at.at && at < d->at.at + d->size);
        assert_int_not_equal(m->program->blocks[d->fixups[i].block].proc, d->proc);
    }
    assert_true(d->first < d->last);
    assert_true(move_map_at(m->plan, d->first).old_addr == m->program->procs[d->proc].addr + bias);
    memcpy(place_of(m, d->at, d->size), d->text, d->size);
    m->texts++;
    return INL_OK;
}

static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    memory *m = arg;
    if (fails(m)) return inl_fail(e, INL_ERR_SYSTEM, "made to fail");
    for (size_t i = 0; i < d->patch_count; i++) {
        assert_int_equal(d->patches[i].proc, d->proc);
        put(m, &d->patches[i], false);
    }
    for (size_t i = 0; i < d->link_count; i++) put(m, &d->links[i], false);
    m->patches += d->patch_count;
    m->links += d->link_count;
    return INL_OK;
}

static inl_status take_back(void *arg, const move_delta *d, inl_error *e)
{
    memory *m = arg;
    if (fails(m)) return inl_fail(e, INL_ERR_SYSTEM, "made to fail");
    for (size_t i = 0; i < d->patch_count; i++) put(m, &d->patches[i], true);
    for (size_t i = 0; i < d->link_count; i++) put(m, &d->links[i], false);
    m->links += d->link_count;
    return INL_OK;
}

/* The program's code as it is in the file, segment by segment. */
static void copy_code(memory *m)
{
    m->low = UINT64_MAX;
    for (uint32_t i = 0; i < m->program->proc_count; i++) {
        const cfg_proc *p = &m->program->procs[i];
        if (p->addr < m->low) m->low = p->addr;
        if (p->addr + p->size + p->padding > m->high) m->high = p->addr + p->size + p->padding;
    }
    m->old = calloc(m->high - m->low, 1);
    m->first = calloc(m->high - m->low, 1);
    assert_true(m->old && m->first);
    for (uint64_t at = m->low; at < m->high;) {
        const uint8_t *bytes;
        size_t n = image_bytes(m->im, at, &bytes);
        if (n > m->high - at) n = m->high - at;
        if (n) memcpy(m->old + (at - m->low), bytes, n);
        at += n ? n : 1;
    }
    memcpy((uint8_t *)m->first, m->old, m->high - m->low);
}

static void open_memory(memory *m, const char *path, bool forbids)
{
    inl_error e = {0};
    move_client client = {0};
    *m = (memory){.target = {.arg = m,
                             .read = read_bytes,
                             .room = room,
                             .may_overwrite = forbids ? never : NULL,
                             .one_by_one = forbids,
                             .place = place,
                             .commit = commit,
                             .take_back = take_back}};
    inl_debug = true;
    if (image_open(path, &m->im, &e) || cfg_program_analyse(m->im, NULL, &m->program, &e) ||
        move_plan_make(m->program, bias, &m->target, &client, &m->plan, &e) || move_plan_check(m->plan, &e))
        fail_msg("%s", e.text);
    copy_code(m);
    m->text = calloc(m->plan->text_size + 16, 1); /* it is decoded up to its end */
    assert_non_null(m->text);
}

static void close_memory(memory *m)
{
    free(m->old);
    free((void *)m->first);
    free(m->text);
    move_plan_free(m->plan);
    cfg_program_free(m->program);
    image_close(m->im);
}

static bool is_caught_by(const memory *m, const move_patch *x)
{
    const cfg_program *p = m->program;
    uint64_t at = x->at.at - bias;
    for (unsigned k = 0; k < x->size; k++) {
        uint32_t block = cfg_block_covering(p, at + k);
        if (block == CFG_NONE) continue; /* padding */
        if (p->blocks[block].proc != x->proc || block != cfg_block_at(p, at)) return false;
    }
    return true;
}

static size_t boards_in_code(const memory *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->plan->patch_count; i++) n += !is_caught_by(m, &m->plan->patches[i]);
    return n;
}

static void springboards(void **state)
{
    (void)state;
    memory m;
    open_memory(&m, self, false);
    assert_true(boards_in_code(&m) > 0);
    close_memory(&m);
    open_memory(&m, self, true);
    assert_int_equal(boards_in_code(&m), 0);
    assert_true(m.plan->moved_procs * 10 > m.program->proc_count * 5); /* most still move */
    close_memory(&m);
}

/* Handed over for good. */
static void as_a_whole(void **state)
{
    (void)state;
    memory m;
    inl_error e = {0};
    open_memory(&m, self, false);
    assert_int_equal(move_commit(m.plan, &m.target, &e), INL_OK);
    assert_int_equal(m.texts, m.plan->moved_procs);
    assert_int_equal(m.patches, m.plan->patch_count);
    assert_int_equal(m.links, 0);
    for (size_t i = 0; i < m.plan->patch_count; i++) {
        const move_patch *x = &m.plan->patches[i];
        assert_memory_equal(place_of(&m, x->at, x->size), x->now, x->size);
    }
    close_memory(&m);
}

/* --- what is carried of one --- */

typedef struct sum {
    uint64_t amounts, calls;
} sum;

static void add_up(void *arg, uint32_t counter, int64_t amount)
{
    sum *s = arg;
    s->amounts = s->amounts * 31 + counter * 0x9e3779b97f4a7c15u + (uint64_t)amount;
    s->calls++;
}

static void same_place(weave_parked a, weave_parked b)
{
    assert_true(a.spilled == b.spilled && a.junk == b.junk);
    assert_true(a.flags_saved == b.flags_saved && a.pending == b.pending);
}

/* A procedure's part says of an instruction what the whole says. */
static uint64_t same_entry(const move_carried_states *all, const move_carried_states *part, uint32_t text,
                           const move_map *m, size_t first)
{
    moved_spot x, y;
    sum of_all = {0}, of_part = {0};
    assert_true(moved_states_find(all, m->new_off, &x) && moved_states_find(part, m->new_off - text, &y));
    assert_true(x.old_off == y.old_off && x.code_off == y.code_off + text && x.index == y.index + first);
    same_place(x.before, y.before);
    same_place(x.at, y.at);
    for (unsigned before = 0; before < 2; before++) {
        moved_states_undo(all, &x, before, add_up, &of_all);
        moved_states_undo(part, &y, before, add_up, &of_part);
    }
    assert_true(of_all.amounts == of_part.amounts && of_all.calls == of_part.calls);
    const move_carried_fault *f = moved_states_fault(all, m->code_off - 1);
    const move_carried_fault *g = moved_states_fault(part, m->code_off - text - 1);
    assert_int_equal(f != NULL, g != NULL);
    if (f) assert_true(f->from == g->from + text && f->old_off == g->old_off && f->spilled == g->spilled);
    return of_all.calls;
}

static uint64_t same_part(const move_plan *p, const move_delta *d, const move_carried_states *all)
{
    uint32_t text = (uint32_t)(d->at.at - p->text_addr);
    inl_bytes bytes = {0};
    uint64_t undone = 0;
    move_delta_put(p, d, (assumed_addr){bias}, &bytes);
    assert_false(bytes.failed);
    const move_carried_states *part = (const void *)bytes.data;
    for (size_t i = d->first; i < d->last; i++) {
        const move_map m = move_map_at(p, i);
        undone += same_entry(all, part, text, &m, d->first);
    }
    uint32_t entry = (uint32_t)(p->procs[d->proc].new_addr - p->text_addr);
    const move_carried_flows *f = moved_states_flows(all, entry), *g = moved_states_flows(part, entry - text);
    if (f && f->new_off == entry) assert_true(g && g->new_off + text == entry && f->number == g->number);
    inl_bytes_free(&bytes);
    return undone;
}

typedef struct counting {
    inl_arena arena;
    uint32_t counters, flows;
} counting;

/* Counts of three counters, here and there. */
static void instrument(void *arg, const cfg_program *p, uint32_t proc, weave_run *run)
{
    counting *c = arg;
    const char *why;
    (void)p;
    for (uint32_t i = 0; i < run->insn_count; i += 1 + (proc + i) % 3) {
        snippet *count = snippet_new(&c->arena, SNIPPET_COUNT), *amount = snippet_new(&c->arena, SNIPPET_CONST);
        assert_true(count && amount);
        amount->value = 1 + (proc + i) % 5;
        count->a = amount;
        count->index = (proc + i) % 3;
        weave_insert_at(run, WEAVE_BEFORE, i, count, false, &why);
    }
}

static uint32_t new_counter(void *arg) { return 3 + ((counting *)arg)->counters++; }

static uint32_t placed(void *arg, const move_flows *flows)
{
    (void)flows;
    return ++((counting *)arg)->flows;
}

static void parts_of(bool flows)
{
    memory m;
    inl_error e = {0};
    counting c = {0};
    inl_bytes all = {0};
    move_patches sorted = {0};
    uint64_t undone = 0;
    open_memory(&m, self, true);
    move_plan_free(m.plan);
    move_client client = {.arg = &c,
                          .instrument = instrument,
                          .new_counter = flows ? new_counter : NULL,
                          .placed = flows ? placed : NULL};
    assert_int_equal(move_plan_make(m.program, bias, &m.target, &client, &m.plan, &e), INL_OK);
    move_states_put(m.plan, (assumed_addr){bias}, &all);
    assert_true(move_patches_sort(m.plan, &sorted));
    const uint32_t each = getenv("MOVE_STEPS") ? 5 : 1; /* of the procedures, where all would take too long */
    for (uint32_t i = 0; i < m.program->proc_count; i += each) {
        if (!m.plan->procs[i].new_addr) continue;
        move_delta d = move_delta_of(m.plan, i, &sorted);
        undone += same_part(m.plan, &d, (const void *)all.data);
    }
    assert_true(undone > 1000);
    assert_int_equal(flows, c.flows > 10);
    inl_vec_free(&sorted);
    inl_bytes_free(&all);
    inl_arena_free(&c.arena);
    close_memory(&m);
}

static void states_of_parts(void **state)
{
    (void)state;
    parts_of(false);
    parts_of(true);
}

/* --- coming and going --- */

static uint64_t leads_to(memory *m, uint64_t branch)
{
    isa_insn in;
    const uint8_t *at = place_of(m, (assumed_addr){branch}, 1);
    assert_int_equal(isa_x86_64.decode(at, 16, branch, &in), ISA_OK);
    return in.target;
}

/* A branch's instruction, by where its displacement is: call and jmp have one byte in front, jcc two. */
static uint64_t branch_at(memory *m, uint64_t displacement)
{
    const uint8_t *at = place_of(m, (assumed_addr){displacement}, 4);
    return displacement - (at[-1] == 0xe8 || at[-1] == 0xe9 ? 1 : 2);
}

static uint64_t is_at(const memory *m, const move_applied *a, uint64_t old)
{
    uint32_t block = cfg_block_at(m->program, old - bias);
    uint32_t proc = block == CFG_NONE ? CFG_NONE : m->program->blocks[block].proc;
    uint64_t now = proc == CFG_NONE || !move_is_applied(a, proc)
                       ? 0
                       : move_new_address(m->plan, (assumed_addr){old}, false).at;
    return now ? now : old;
}

/* Entries of the copies of tables in text that has been placed. */
static void check_entries(memory *m, const move_applied *a)
{
    const move_work *w = m->plan->priv;
    for (size_t i = 0; i < w->copies.count; i++) {
        const move_reaim *r = &w->copies.items[i];
        const cfg_table *t = &m->program->tables[r->table];
        uint32_t from = m->program->blocks[t->block].proc;
        for (uint32_t k = 0; move_is_placed(a, from) && k < t->count; k++) {
            uint64_t old = cfg_table_target(m->program, t, k);
            uint32_t block = cfg_block_at(m->program, old);
            if (block == CFG_NONE || m->program->blocks[block].proc == from) continue;
            int32_t entry;
            memcpy(&entry, place_of(m, (assumed_addr){r->now + 4ull * k}, 4), 4);
            if (t->kind != CFG_TABLE_RELATIVE) continue;
            assert_true(r->now + (uint64_t)(int64_t)entry == is_at(m, a, old + bias));
        }
    }
}

/* Every patch and every link is as it must be for what is in. */
static void check_all(memory *m, const move_applied *a)
{
    const move_work *w = m->plan->priv;
    for (size_t i = 0; i < m->plan->patch_count; i++) {
        const move_patch *x = &m->plan->patches[i];
        assert_memory_equal(place_of(m, x->at, x->size), move_is_applied(a, x->proc) ? x->now : x->before, x->size);
    }
    for (size_t i = 0; i < w->far.count; i++) {
        uint64_t branch = m->plan->text_addr + w->far.items[i].at;
        uint64_t old = m->program->blocks[w->far.items[i].block].addr + bias;
        uint64_t from = move_old_address(m->plan, (assumed_addr){branch}).at;
        uint32_t proc = cfg_proc_covering(m->program, from - bias);
        assert_true(from && proc != CFG_NONE);
        if (!move_is_placed(a, proc)) continue;
        assert_true(leads_to(m, branch_at(m, branch)) == is_at(m, a, old));
    }
    check_entries(m, a);
}

static uint32_t *all_moved(const memory *m, size_t *count)
{
    uint32_t *all = calloc(m->program->proc_count, sizeof *all);
    assert_non_null(all);
    *count = 0;
    for (uint32_t i = 0; i < m->program->proc_count; i++)
        if (m->plan->procs[i].new_addr) all[(*count)++] = i;
    return all;
}

static void all_and_back(void **state)
{
    (void)state;
    memory m;
    size_t count;
    inl_error e = {0};
    move_applied *a;
    open_memory(&m, self, true);
    uint32_t *all = all_moved(&m, &count);
    assert_int_equal(count, m.plan->moved_procs);
    assert_int_equal(move_applied_begin(m.plan, &m.target, &a, &e), INL_OK);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(move_apply(a, all, count, &e), INL_OK);
        assert_int_equal(m.patches, m.plan->patch_count * (round + 1));
        assert_int_equal(m.texts, count); /* it stays */
        check_all(&m, a);
        assert_int_equal(move_take_back(a, all, count, &e), INL_OK);
        check_all(&m, a);
        assert_memory_equal(m.old, m.first, m.high - m.low);
    }
    assert_true(m.links > 50);
    free(all);
    move_applied_end(a);
    close_memory(&m);
}

static uint32_t random_number(uint32_t below)
{
    static uint64_t seed = 88172645463325252;
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed >> 16) % below);
}

/* Any of them, in any order, one and many at a time; `failing`: often one of the target's calls fails. */
static void at_random(const char *path, bool failing)
{
    memory m;
    size_t count, failed = 0;
    inl_error e = {0};
    move_applied *a;
    open_memory(&m, path, true);
    uint32_t *all = all_moved(&m, &count), some[256];
    const char *steps = getenv("MOVE_STEPS");
    assert_int_equal(move_applied_begin(m.plan, &m.target, &a, &e), INL_OK);
    for (unsigned step = 0; step < (steps ? strtoul(steps, NULL, 10) : 400); step++) {
        size_t n = random_number(4) ? 1 + random_number(256) : 1;
        for (size_t i = 0; i < n; i++) some[i] = all[random_number((uint32_t)count)];
        bool in = random_number(2);
        m.calls = 0;
        m.fails_at = failing ? 1 + random_number(400) : 0;
        inl_status status = in ? move_apply(a, some, n, &e) : move_take_back(a, some, n, &e);
        if (status != INL_OK && !(failing && status == INL_ERR_SYSTEM)) fail_msg("%s", e.text);
        failed += status != INL_OK;
        for (size_t i = 0; i < n && !status; i++) assert_int_equal(move_is_applied(a, some[i]), in);
        if (step % 8 == 0) check_all(&m, a);
        uint32_t out = some[random_number((uint32_t)n)];
        if (!move_is_applied(a, out) && !move_drop(a, out, &e))
            memset(m.text + ((move_work *)m.plan->priv)->text_from[out], 0xcc, m.plan->procs[out].new_size);
    }
    assert_true(!failing || failed > (steps ? 2 : 20));
    m.fails_at = 0;
    assert_int_equal(move_take_back(a, all, count, &e), INL_OK);
    assert_memory_equal(m.old, m.first, m.high - m.low);
    free(all);
    move_applied_end(a);
    close_memory(&m);
}

static void any_order(void **state)
{
    /* has jump tables that lead into parts of procedures that stand elsewhere */
    static const char library[] = "/lib/x86_64-linux-gnu/libc.so.6";
    (void)state;
    at_random(self, false);
    if (!access(library, R_OK)) at_random(library, false);
}

static void with_failures(void **state)
{
    (void)state;
    at_random(self, true);
}

static void misuse(void **state)
{
    (void)state;
    memory m;
    inl_error e = {0};
    move_applied *a;
    elf_target file;
    open_memory(&m, self, false);
    size_t count, leaning = 0;
    uint32_t *all = all_moved(&m, &count);
    elf_target_begin(&file, m.im);
    assert_int_equal(move_applied_begin(m.plan, &file.target, &a, &e), INL_ERR_USAGE); /* a file takes all */
    elf_target_end(&file);
    assert_int_equal(move_applied_begin(m.plan, &m.target, &a, &e), INL_OK);
    assert_int_equal(move_apply(a, &m.program->proc_count, 1, &e), INL_ERR_USAGE);
    for (unsigned in = 0; in < 2; in++) { /* alone; with all in */
        if (in) assert_int_equal(move_apply(a, all, count, &e), INL_OK);
        for (size_t i = 0; i < m.plan->patch_count; i++) {
            const move_patch *x = &m.plan->patches[i];
            uint32_t block = cfg_block_covering(m.program, x->at.at - bias);
            uint32_t on = block == CFG_NONE ? x->proc : m.program->blocks[block].proc;
            if (on == x->proc) continue; /* else its springboard lies in another's code */
            assert_int_equal(in ? move_take_back(a, &on, 1, &e) : move_apply(a, &x->proc, 1, &e), INL_ERR_UNSUPPORTED);
            assert_int_equal(move_drop(a, on, &e), in ? INL_ERR_USAGE : INL_OK);
            leaning++;
        }
        check_all(&m, a);
    }
    free(all);
    move_applied_end(a);
    close_memory(&m);
    if (!leaning) skip(); /* as compiled, no procedure of this program has its springboard in another */
}

int main(void)
{
    if (getenv("MOVE_SELF")) self = getenv("MOVE_SELF");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(springboards),    cmocka_unit_test(as_a_whole),    cmocka_unit_test(all_and_back),
        cmocka_unit_test(any_order),       cmocka_unit_test(with_failures), cmocka_unit_test(misuse),
        cmocka_unit_test(states_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
