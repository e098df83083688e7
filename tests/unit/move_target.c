/* A plan handed to a target that is memory: a copy of this program's code, and of the new code. What is committed leads
 * from old code to new; what is taken back leaves nothing behind; and where a target forbids it, old code is only
 * overwritten where it is caught.
 */
#include "elf/elf.h"
#include "move/isa.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

enum { bias = 0x10000 };

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
    size_t deltas, patches, links;
    uint64_t text_end;
} memory;

static uint8_t *place(memory *m, assumed_addr at, size_t size)
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
    uint8_t *at = place(m, x->at, x->size);
    assert_memory_equal(at, back ? x->now : x->before, x->size);
    memcpy(at, back ? x->before : x->now, x->size);
}

static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    (void)e;
    memory *m = arg;
    const move_proc *of = &m->plan->procs[d->proc];
    assert_true(of->new_addr >= d->at.at && of->new_addr + of->new_size == d->at.at + d->size);
    assert_true(d->at.at >= m->text_end); /* they do not overlap, and ascend */
    m->text_end = d->at.at + d->size;
    assert_int_equal(d->link_count, 0);
    for (size_t i = 0; i < d->fixup_count; i++) {
        uint64_t at = m->plan->text_addr + d->fixups[i].at;
        assert_true(at >= d->at.at && at < m->text_end);
        assert_int_not_equal(m->program->blocks[d->fixups[i].block].proc, d->proc);
    }
    assert_true(d->first < d->last);
    assert_true(move_map_at(m->plan, d->first).old_addr == m->program->procs[d->proc].addr + bias);
    memcpy(place(m, d->at, d->size), d->text, d->size);
    for (size_t i = 0; i < d->patch_count; i++) {
        assert_int_equal(d->patches[i].proc, d->proc);
        put(m, &d->patches[i], false);
    }
    m->deltas++;
    m->patches += d->patch_count;
    return INL_OK;
}

static inl_status take_back(void *arg, const move_delta *d, inl_error *e)
{
    (void)e;
    memory *m = arg;
    for (size_t i = 0; i < d->patch_count; i++) put(m, &d->patches[i], true);
    for (size_t i = 0; i < d->link_count; i++) {
        isa_insn in;
        const move_patch *x = &d->links[i];
        put(m, x, false);
        uint8_t *at = place(m, x->at, x->size);
        /* call, jmp: one byte in front; jcc: two */
        unsigned back = at[-1] == 0xe8 || at[-1] == 0xe9 ? 1 : 2;
        assert_int_equal(isa_x86_64.decode(at - back, back + x->size, x->at.at - back, &in), ISA_OK);
        uint32_t block = cfg_block_at(m->program, in.target - bias);
        assert_true(block != CFG_NONE && m->program->blocks[block].proc == d->proc);
    }
    m->deltas--;
    m->links += d->link_count;
    return INL_OK;
}

static void open_memory(memory *m, bool forbids)
{
    inl_error e = {0};
    move_client client = {0};
    *m = (memory){.target = {m, read_bytes, room, forbids ? never : NULL, NULL, commit, take_back}};
    if (image_open("/proc/self/exe", &m->im, &e) || cfg_program_analyse(m->im, NULL, &m->program, &e) ||
        move_plan_make(m->program, bias, &m->target, &client, &m->plan, &e) || move_plan_check(m->plan, &e))
        fail_msg("%s", e.text);
    const cfg_proc *last = &m->program->procs[m->program->proc_count - 1];
    m->low = m->program->procs[0].addr;
    m->high = last->addr + last->size + last->padding;
    for (uint32_t i = 0; i < m->program->proc_count; i++) {
        const cfg_proc *p = &m->program->procs[i];
        if (p->addr + p->size + p->padding > m->high) m->high = p->addr + p->size + p->padding;
    }
    m->old = calloc(m->high - m->low, 1);
    m->first = calloc(m->high - m->low, 1);
    m->text = calloc(m->plan->text_size, 1);
    assert_true(m->old && m->first && m->text);
    for (uint64_t at = m->low; at < m->high;) { /* segment by segment */
        const uint8_t *bytes;
        size_t n = image_bytes(m->im, at, &bytes);
        if (n > m->high - at) n = m->high - at;
        if (n) memcpy(m->old + (at - m->low), bytes, n);
        at += n ? n : 1;
    }
    memcpy((uint8_t *)m->first, m->old, m->high - m->low);
    if (move_commit(m->plan, &m->target, &e)) fail_msg("%s", e.text);
    assert_int_equal(m->deltas, m->plan->moved_procs);
    assert_int_equal(m->patches, m->plan->patch_count);
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
    open_memory(&m, false);
    assert_true(boards_in_code(&m) > 0);
    close_memory(&m);
    open_memory(&m, true);
    assert_int_equal(boards_in_code(&m), 0);
    assert_true(m.plan->moved_procs * 10 > m.program->proc_count * 5); /* most still move */
    close_memory(&m);
}

static void all_back(void **state)
{
    (void)state;
    memory m;
    open_memory(&m, true);
    assert_memory_not_equal(m.old, m.first, m.high - m.low);
    uint8_t *left = calloc(m.high - m.low, 1);
    assert_non_null(left);
    for (uint32_t i = 0; i < m.program->proc_count; i++) {
        inl_error e = {0};
        if (!m.plan->procs[i].new_addr) continue;
        inl_status status = move_take_back(m.plan, &m.target, i, &e);
        if (status && status != INL_ERR_UNSUPPORTED) fail_msg("%s", e.text);
        for (size_t k = 0; status && k < m.plan->patch_count; k++) { /* said, and left as it is */
            const move_patch *x = &m.plan->patches[k];
            if (x->proc == i) memset(left + (x->at.at - bias - m.low), 1, x->size);
        }
        m.deltas -= status == INL_ERR_UNSUPPORTED;
    }
    assert_int_equal(m.deltas, 0);
    assert_true(m.links > 50);
    for (uint64_t i = 0; i < m.high - m.low; i++)
        if (!left[i]) assert_int_equal(m.old[i], m.first[i]);
    free(left);
    close_memory(&m);
}

static void misuse(void **state)
{
    (void)state;
    memory m;
    inl_error e = {0};
    open_memory(&m, false);
    assert_int_equal(move_take_back(m.plan, &m.target, m.program->proc_count, &e), INL_ERR_USAGE);
    uint32_t refused = 0;
    for (size_t i = 0; i < m.plan->patch_count; i++) { /* one whose code holds another's springboard */
        uint32_t block = cfg_block_covering(m.program, m.plan->patches[i].at.at - bias);
        if (block == CFG_NONE || m.program->blocks[block].proc == m.plan->patches[i].proc) continue;
        assert_int_equal(move_take_back(m.plan, &m.target, m.program->blocks[block].proc, &e), INL_ERR_UNSUPPORTED);
        refused++;
    }
    print_message("%u procedures hold springboards of others\n", refused);
    close_memory(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(springboards),
        cmocka_unit_test(all_back),
        cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
