/* The tool was put into a process that ran already (src/live): its other threads, which stand still, get their blocks,
 * and each is told where to go on: in moved code, or in the piece that has taken a system call's place. */
#include "moved/private.h"
#include "base/own.h"
#include "move/live.h"
#include INL_ARCH_HEADER(run, abi)

#include <signal.h>

static move_live *found(void) { return (move_live *)moved_handoff_data.data->live; }

bool moved_is_live(void) { return moved_handoff_data.carried && moved_handoff_data.data->live != 0; }

/* Process id of whoever put the tool in, where that was a child of this process; or 0. */
static int helper(void) { return (int)found()->helper; }

bool moved_is_starting(void) { return moved_is_live() && !((const move_told *)MOVE_TOLD_BASE)->started; }

bool moved_is_being_put(void) { return moved_is_starting() && !helper(); }

bool moved_began_here(void) { return moved_is_live() && helper() != 0; }

const char *moved_live_tool(void) { return (const char *)((const move_told *)MOVE_TOLD_BASE)->tool; }

uint64_t moved_live_word(uint64_t *tells)
{
    *tells = found()->tells;
    return found()->word;
}

uint64_t moved_live_images(const move_live_image **images)
{
    *images = (const move_live_image *)found()->images;
    return found()->image_count;
}

move_live_image *moved_live_shown(void) { return (move_live_image *)found()->images; }

const char *moved_live_file(void) { return (const char *)found()->tool; }

const move_live_image *moved_live_boot(void) { return &found()->boot; }

const move_boot_links *moved_live_links(uint64_t bias)
{
    const move_live *live = found();
    const move_live_image *images = (const move_live_image *)live->images;
    for (uint64_t i = 0; i < live->image_count; i++)
        if (images[i].links.bias == bias) return &images[i].links;
    return NULL;
}

uint64_t moved_live_sites(uint64_t bias, const uint64_t **sites)
{
    const move_live *live = moved_is_live() ? found() : NULL;
    const move_live_image *images = live ? (const move_live_image *)live->images : NULL;
    for (uint64_t i = 0; live && i < live->image_count; i++) {
        if (images[i].links.bias != bias || !images[i].sites) continue;
        *sites = (const uint64_t *)images[i].sites;
        return images[i].site_count;
    }
    return 0;
}

/* Another may be mapped there one day. */
void moved_live_forget(uint64_t bias)
{
    move_live_image *images = (move_live_image *)found()->images;
    for (uint64_t i = 0; i < found()->image_count; i++) {
        if (images[i].links.bias != bias) continue;
        moved_walks_forget(images[i].links.text + bias, images[i].links.text_size);
        if (images[i].shown.size) run_debugger_tell(&images[i].shown, false);
        images[i].unwind = images[i].shown.size = images[i].sites = 0;
        images[i].links.bias = ~0ull;
    }
}

static stack_t alternate_of(const move_live_thread *t)
{
    stack_t s = {.ss_sp = (void *)t->stack, .ss_flags = (int)t->stack_flags & ~SS_ONSTACK, .ss_size = t->stack_size};
    return s.ss_flags & SS_DISABLE ? (stack_t){.ss_flags = s.ss_flags} : s;
}

/* What the kernel is to be told. */
static void answer(move_live_thread *as, const run_thread *t)
{
    stack_t own = run_altstack_own(t);
    as->block = (uint64_t)(uintptr_t)t;
    as->stack = (uint64_t)(uintptr_t)own.ss_sp;
    as->stack_size = own.ss_size;
    as->stack_flags = (uint64_t)(uint32_t)own.ss_flags;
}

void moved_live_first(run_thread *t)
{
    move_live_thread *as = &found()->threads[0];
    t->altstack = alternate_of(as);
    run_bases_take(t, &as->ctx);
    answer(as, t);
}

inl_status moved_live_others(void (*begins)(void *arg, run_thread *), void *arg, inl_error *e)
{
    move_live *live = found();
    for (uint64_t i = 1; i < live->thread_count; i++) {
        move_live_thread *as = &live->threads[i];
        stack_t alternate = alternate_of(as);
        run_thread *t = run_thread_adopt((int)as->tid, &as->ctx, as->sigmask, &alternate, e);
        if (!t) return e ? e->code : INL_ERR_NO_MEMORY;
        moved_of(t)->mask = as->sigmask;
        answer(as, t);
        if (begins) begins(arg, t);
    }
    return INL_OK;
}

static void put_hooks(const move_live *live)
{
    const move_live_hook *hooks = (const move_live_hook *)live->hooks;
    for (uint64_t i = 0; i < live->hook_count; i++) *(uint64_t *)hooks[i].at = hooks[i].value;
}

/* All other threads stand still. From here on the process is as it is with the tool, whoever may have died. */
static void settle(move_live *live)
{
    for (uint64_t i = 0; i < live->thread_count; i++) {
        const move_live_thread *as = &live->threads[i];
        moved_fill_slots((run_thread *)as->block, &as->ctx);
        moved_park_settle(as->slot, &as->ctx);
        moved_park_block(as->slot, as->block);
        moved_park_stack(as->slot, as->stack, as->stack_flags, as->stack_size);
    }
    put_hooks(live);
    moved_note_numbers();
    live->started = moved_jumps_put() ? MOVE_LIVE_STARTED : MOVE_LIVE_WITHOUT_JUMPS;
    if (live->threads[0].slot) ((move_park *)MOVE_PARK_DATA)->gone_count = 0;
}

void moved_live_places(void)
{
    move_live *live = found();
    for (uint64_t i = 0; i < live->thread_count; i++) {
        move_live_thread *as = &live->threads[i];
        uint64_t to = moved_to((real_addr){as->ctx.pc}).at;
        if (to) moved_enter_run((run_thread *)as->block, to, true);
        else to = moved_site_place(as->ctx.pc);
        if (to) as->ctx.pc = to;
    }
    move_told *r = (move_told *)MOVE_TOLD_BASE;
    r->tool_low = inl_own_base();
    r->tool_high = moved_handoff_data.tool_high;
    r->ask_entry = (uint64_t)(uintptr_t)moved_ask_entry;
    r->ask_until = (uint64_t)(uintptr_t)moved_ask_until;
    moved_shown_begin();
    r->started = MOVE_TOLD_STARTED;
    settle(live);
}
