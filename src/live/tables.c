/* What lies behind an image's new code: hooks, map, unwind table and what debuggers are told. Made as soon as the plan
 * is, so that room for the next image begins where this one's ends. */
#include "live/live.h"
#include "base/page.h"
#include "moved/moved.h"
#include "moved/sites.h"

uint64_t live_hook_at(const move_plan *plan, size_t n)
{
    return plan->text_addr + ((plan->text_size + 15) & ~(size_t)15) + n * LIVE_HOOK_SIZE;
}

/* The instruction at `at` of a block, where there is one: may the tool have to know of what it calls? It need not where
 * the call's number is put in by the same block. `bytes`: the block's. */
static bool may_matter(const cfg_program *cfg, const cfg_block *block, uint64_t at, const uint8_t *bytes)
{
    const uint64_t end = block->addr + block->size;
    long number = -1;
    for (uint64_t pc = block->addr; pc <= at;) {
        isa_insn in;
        isa_effects fx;
        if (cfg->isa->decode(bytes + (pc - block->addr), end - pc, pc, &in) != ISA_OK) return true;
        if (pc == at && in.flow == ISA_FLOW_SYSCALL) return number < 0 || moved_syscall_matters(number);
        if (pc == at) return moved_is_site(&in);
        cfg->isa->effects(&in, &fx);
        if (fx.writes >> MOVED_NUMBER & 1) number = moved_constant_in(&in, MOVED_NUMBER);
        pc += in.len;
    }
    return false;
}

/* The tool looks closer at those that are listed, while everybody waits. */
static bool is_listed(const live_target *t, const move_plan *plan, uint64_t at, const uint8_t *bytes)
{
    const cfg_program *cfg = plan->cfg;
    const uint32_t k = t->lists_all_sites ? CFG_NONE : cfg_block_covering(cfg, at);
    if (k == CFG_NONE || cfg->procs[cfg->blocks[k].proc].status != CFG_PROC_WHOLE) return true;
    return may_matter(cfg, &cfg->blocks[k], at, bytes - (at - cfg->blocks[k].addr));
}

/* What the tool would have to look for while everybody waits. */
static void put_sites(live_target *t, const move_plan *plan, inl_bytes *b)
{
    const image *im = t->module->image;
    const image_segment *s;
    size_t n = image_segments(im, &s);
    inl_bytes_align(b, 8);
    t->sites = inl_bytes_here(b) + t->module->bias;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *bytes, *end, *at;
        if (!s[i].exec || s[i].write || image_bytes(im, s[i].addr, &bytes) < s[i].file_size) continue;
        for (at = bytes, end = bytes + s[i].file_size; (at = moved_next_site(at, end)); at++) {
            uint64_t addr = s[i].addr + (uint64_t)(at - bytes);
            if (!is_listed(t, plan, addr, at)) continue;
            inl_bytes_put(b, &addr, sizeof addr);
            t->site_count++;
        }
    }
}

inl_status live_target_settle(live_target *t, const move_plan *plan, inl_error *e)
{
    const image_segment *s;
    uint64_t bias = t->module->bias;
    inl_bytes *b = &t->tables;
    *b = (inl_bytes){.addr = inl_page_up(live_hook_at(plan, LIVE_HOOKS)) - bias};
    image_segments(t->module->image, &s);
    move_map_put(plan, s[0].addr, b);
    inl_status st = live_unwind_put(plan, !t->lacks_lines, b, &t->unwind, e);
    if (st != INL_OK) return st;
    if (t->lists_sites) put_sites(t, plan, b);
    if (b->failed) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    uint64_t used = inl_page_up(b->addr + bias + b->size) - t->room;
    if (used > t->room_size)
        return inl_fail(
            e, INL_ERR_RANGE,
            "%s: its new code takes %llu MB, and there are %llu free in its reach (--image instruments fewer images)",
            image_path(t->module->image), (unsigned long long)(used >> 20), (unsigned long long)(t->room_size >> 20));
    live_keep_room(t->process, t->room, used);
    t->room_size = used;
    return INL_OK;
}
