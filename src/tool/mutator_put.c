/* The tool gets into a process: with no code of its own yet but the procedures that must know of new code (finders.h).
 * They stay for good. */
#include "tool/mutator.h"
#include "base/own.h"
#include "base/page.h"
#include "tool/finders.h"
#include "tool/code.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct putting {
    mutatee *m;
    rewriter_image *images;
    size_t count;
    live_image *list;
    elf_carry carry;
    bool by_list;
    live_put *put;
} putting;

static inl_status add_image(putting *p, module *x, inl_error *e)
{
    inlay_image *image = tool_image_of(x);
    tool_code *code = image ? code_of(image) : NULL;
    rewriter_image *i = &p->images[p->count];
    if (!code) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    if (!code->cfg) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s cannot be analysed", image->path);
    *i = (rewriter_image){.path = (char *)image->path,
                          .name = (char *)image->name,
                          .out = (char *)image->path,
                          .im = x->image,
                          .m = x,
                          .bias = x->bias,
                          .cfg = code->cfg,
                          .is_program = x->is_main};
    p->count++;
    live_target_begin(&i->live, &p->m->live, x, false);
    i->live.lists_sites = true;
    i->target = &i->live.target;
    finders_note(i, p->by_list);
    inl_status s = live_compare_untouched(&i->live, e);
    return s == INL_OK ? finders_plan(i, e) : s;
}

/* The program first, whose links the tool is started by. */
static inl_status add_images(putting *p, inl_error *e)
{
    size_t n = 1;
    for (module *x = module_first(p->m->modules); x; x = x->next) n++;
    p->images = calloc(n, sizeof *p->images);
    inl_status s = p->images ? INL_OK : inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (int main = 1; main >= 0; main--)
        for (module *x = module_first(p->m->modules); x && s == INL_OK; x = x->next)
            if (!x->is_vdso && x->is_main == main && (main || finders_are_in(&p->m->live, x, p->by_list)))
                s = add_image(p, x, e);
    if (s == INL_OK && (!p->count || !p->images[0].is_program))
        s = inl_fail(e, INL_ERR_UNSUPPORTED, "the program of process %d is not among what is mapped", p->m->live.pid);
    return s;
}

static inl_status pack(putting *p, inl_error *e)
{
    elf_pack_image *images = calloc(p->count, sizeof *images);
    const char *argv[] = {tool_name(), "--"};
    tool_heap_root *heap = tool_heap();
    if (!images) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t k = 0; k < p->count; k++) {
        const rewriter_image *i = &p->images[k];
        images[k] = (elf_pack_image){.path = i->path, .soname = k ? i->name : NULL, .bias = i->bias};
        rewriter_extent(i->im, &images[k].link_low, &images[k].link_high);
    }
    heap->next_there = MUTATOR_HEAP_THERE;
    mutator_tell_images(p->m);
    elf_pack what = {.tool_path = "/proc/self/exe",
                     .tool_base = inl_own_base(),
                     .heap = heap,
                     .heap_size = tool_heap_size(),
                     .argc = 2,
                     .argv = argv,
                     .images = images,
                     .image_count = p->count};
    inl_status s = elf_carry_pack(&what, &p->carry, e);
    p->m->heap_sent = heap->next;
    p->m->heap_mapped = MOVE_HEAP_BASE + tool_heap_size();
    free(images);
    return s;
}

static inl_status map(mutatee *m, void *arg, bool runs_on, inl_error *e)
{
    (void)m;
    return live_put_map(((putting *)arg)->put, runs_on, e);
}

static inl_status fill(mutatee *m, void *arg, inl_error *e)
{
    (void)m;
    return live_put_fill(((putting *)arg)->put, e);
}

static void give_up(mutatee *m, void *arg)
{
    (void)m;
    live_put_give_up(((putting *)arg)->put);
}

static inl_status finish(mutatee *m, void *arg, void *answer, inl_error *e)
{
    (void)answer;
    const live_text area = {
        .at = MUTATOR_AREA, .room = MUTATOR_STACK_TOP - MUTATOR_AREA, .prot = PROT_READ | PROT_WRITE};
    moved_pieces pieces = {(const moved_piece *)MUTATOR_AREA, 0, (move_live *)MUTATOR_ASKED_AT};
    live_put *put = ((putting *)arg)->put;
    inl_status s = live_map(&m->live, &area, e); /* what there may be no room for comes before it is in */
    if (s != INL_OK) live_put_give_up(put);
    if (s != INL_OK) return s;
    s = live_put_finish(put, e);
    if (s != INL_OK) live_unmap(&m->live, MUTATOR_AREA, MUTATOR_STACK_TOP);
    if (s != INL_OK) return s;
    return remote_write(&m->live.threads.items[0], (uint64_t)(uintptr_t)&moved_pieces_now, &pieces, sizeof pieces, e);
}

static inl_status put_in(mutatee *m, putting *p, inl_error *e)
{
    static const mutator_steps steps = {map, fill, give_up, finish};
    live_carry c = {.packed = &p->carry,
                    .tool = tool_name(),
                    .options = tool_now->mutating.arguments,
                    .holder = &tool_now->mutating.self};
    inl_status s = live_put_begin(&m->live, p->list, p->count, &c, &p->put, e);
    if (s == INL_OK) s = mutator_work_in_steps(m, &steps, p, NULL, 0, e);
    live_put_end(p->put);
    return s;
}

/* What has moved stays so; no other patch may lie over these. */
static inl_status keep(mutatee *m, rewriter_image *i, inl_error *e)
{
    mutated_image *mi = mutator_image(m, tool_image_of(i->m));
    if (!mi) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    mi->fixed = i->plan;
    for (size_t k = 0; k < i->live.patches.count; k++)
        if (!mutator_own(m, i->live.patches.items[k].at.at, i->live.patches.items[k].size, MUTATOR_FINDERS))
            return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    return INL_OK;
}

inl_status mutator_put(mutatee *m, inl_error *e)
{
    putting p = {.m = m, .by_list = finders_go_by_list()};
    inl_status s = add_images(&p, e);
    if (s == INL_OK) s = finders_list(p.images, p.count, p.by_list, &p.list, e);
    if (s == INL_OK) s = pack(&p, e);
    if (s == INL_OK) s = put_in(m, &p, e);
    if (s == INL_OK) {
        m->has_tool = true;
        for (size_t k = 0; k < p.count && s == INL_OK; k++) s = keep(m, &p.images[k], e);
    }
    for (size_t k = 0; k < p.count; k++) {
        live_target_end(&p.images[k].live);
        if (s != INL_OK && !m->has_tool) move_plan_free(p.images[k].plan);
    }
    if (p.carry.data) elf_carry_free(&p.carry);
    free(p.list);
    free(p.images);
    return s;
}
