/* What lies behind an image's new code: hooks, map, unwind table and what debuggers are told. Made as soon as the plan
 * is, so that room for the next image begins where this one's ends. */
#include "live/live.h"
#include "base/page.h"
#include "moved/moved.h"

uint64_t live_hook_at(const move_plan *plan, size_t n)
{
    return plan->text_addr + ((plan->text_size + 15) & ~(size_t)15) + n * LIVE_HOOK_SIZE;
}

/* What the tool would have to look for while everybody waits. */
static void put_sites(live_target *t, inl_bytes *b)
{
    const image *im = t->module->image;
    const image_segment *s;
    size_t n = image_segments(im, &s);
    inl_bytes_align(b, 8);
    t->sites = inl_bytes_here(b) + t->module->bias;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *bytes, *end, *at;
        if (!s[i].exec || s[i].write || image_bytes(im, s[i].addr, &bytes) < s[i].file_size) continue;
        for (at = bytes, end = bytes + s[i].file_size; (at = moved_next_site(at, end)); at++, t->site_count++) {
            uint64_t addr = s[i].addr + (uint64_t)(at - bytes);
            inl_bytes_put(b, &addr, sizeof addr);
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
    inl_status st = live_unwind_put(plan, b, &t->unwind, e);
    if (st != INL_OK) return st;
    if (t->lists_sites) put_sites(t, b);
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
