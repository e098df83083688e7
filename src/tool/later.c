/* Libraries that a process opens when the tool is in it already (dlopen): instrumented when they are mapped, before
 * anything of them runs, by the tool itself, as the instrumentor has instrumented the others.
 *
 * The callbacks that see code run here as under the JIT, on the thread that opens the library, under the engine's lock;
 * what they leave for analysis code lies in the carried heap, which grows. Counts stay where they are inserted: flows
 * that the instrumentor has placed are not added to. What cannot be instrumented is said, and runs as it is.
 *
 * A C program opens the compiler's unwinder for its first backtrace: whatever the tool looks at, what walks there is
 * taken the place of, as in one that was there before (finders.h). */
#include "tool/finders.h"
#include "base/page.h"
#include "moved/moved.h"
#include "run/run.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct later {
    live_process process; /* this one */
    module_set *modules;  /* the image alone */
    rewriter_image image;
    rewriter r;
    bool walks; /* it has what walks over the stack */
    live_image put;
    live_hook hooks[LIVE_HOOKS];
    moved_later *answer;
    link_addr (*room_as_found)(void *arg); /* the target's own */
    uint64_t held;                         /* so much of the room for its new code */
} later;

static bool is_wanted(void)
{
    return !tool_now->options.mutating && (tool_client_sees_code() || rewriter_watches_syscalls());
}

/* Is there none yet that walks? A mutator's program keeps its own. */
static bool may_walk(void) { return !tool_now->options.mutating && !moved_walks(); }

/* --- what is carried beside its new code --- */

static int by_place(const void *x, const void *y)
{
    const move_told_table *a = x, *b = y;
    return a->now < b->now ? -1 : a->now > b->now;
}

static int by_address(const void *x, const void *y)
{
    const move_told_patch *a = x, *b = y;
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool tell_patches(const later *l)
{
    const live_target *t = &l->image.live;
    move_told_patch *all = calloc(t->patches.count + 1, sizeof *all);
    if (!all) return false;
    for (size_t k = 0; k < t->patches.count; k++) all[k] = live_told_patch(&l->put, &t->patches.items[k]);
    qsort(all, t->patches.count, sizeof *all, by_address);
    l->answer->patches = all;
    l->answer->patch_count = t->patches.count;
    return true;
}

static bool tell_tables(const later *l)
{
    size_t n = move_table_copies(l->image.plan, NULL, 0);
    move_table_copy *copies = calloc(n + 1, sizeof *copies);
    move_told_table *all = calloc(n + 1, sizeof *all);
    if (copies && all) move_table_copies(l->image.plan, copies, n);
    for (size_t k = 0; copies && all && k < n; k++) all[k] = (move_told_table){copies[k].now.at, copies[k].old.at};
    if (copies && all) qsort(all, n, sizeof *all, by_place);
    bool good = copies && all;
    free(copies);
    l->answer->tables = all;
    l->answer->table_count = n;
    return good;
}

static inl_status make_answer(later *l, inl_error *e)
{
    const rewriter_image *i = &l->image;
    const move_plan *plan = i->plan;
    const image_segment *s;
    image_segments(i->im, &s);
    l->put = (live_image){.target = (live_target *)&i->live, .plan = plan, .hooks = l->hooks};
    l->put.hook_count = l->walks ? finders_hooks_opened(i, l->hooks) : 0;
    l->answer = calloc(1, sizeof *l->answer);
    if (!l->answer || !tell_patches(l) || !tell_tables(l)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    l->answer->low = plan->text_addr;
    l->answer->told = (move_live_image){.links = {.text = plan->text_addr - i->bias,
                                                  .text_size = plan->text_size,
                                                  .map = i->live.tables.addr,
                                                  .bias = i->bias,
                                                  .low = s[0].addr},
                                        .unwind = i->live.unwind.header,
                                        .shown = {.at = i->live.unwind.at, .size = i->live.unwind.size}};
    moved_later_bytes b = {
        .tables = i->live.tables.data, .tables_size = i->live.tables.size, .tables_at = i->live.tables.addr + i->bias};
    uint8_t *text = live_text_of(&l->put, &b.text_size);
    if (!text) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    b.text = text;
    b.held = l->held;
    l->held = 0;
    inl_status st = moved_later_place(l->answer, &b, e);
    for (size_t k = 0; k < l->put.hook_count && st == INL_OK; k++) *(uint64_t *)l->hooks[k].next_at = l->hooks[k].next;
    free(text);
    return st;
}

/* --- the plan --- */

static inl_status find(later *l, const moved_mapped *m, inl_error *e)
{
    l->process = (live_process){.pid = inlay_pid()};
    l->modules = module_set_new();
    if (!l->modules) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    inl_status s = live_read_maps(&l->process, e);
    if (s == INL_OK) s = live_find_image(&l->process, m->low, m->high, l->modules, e);
    if (s != INL_OK) return s;
    module *found = module_first(l->modules);
    found->id = tool_image_fresh_id();
    l->image = (rewriter_image){.path = (char *)image_path(found->image),
                                .name = (char *)image_name(found->image),
                                .im = found->image,
                                .m = found,
                                .bias = found->bias};
    return INL_OK;
}

/* Others have mapped memory since the mappings were read, and go on: what is found is held. Where it cannot be, it is
 * taken as it is. */
static link_addr room(void *arg)
{
    enum { TRIES = 16 };
    later *l = (later *)((char *)arg - offsetof(later, image.live));
    live_target *t = arg;
    inl_error ignored;
    long got = -EEXIST;
    for (unsigned k = 0; k < TRIES && got == -EEXIST; k++) {
        if (t->room) live_keep_room(&l->process, t->room, 0);
        t->room = 0;
        if (live_read_maps(&l->process, &ignored) != INL_OK || !l->room_as_found(arg).at) return (link_addr){0};
        got = moved_later_hold(t->room, t->room_size);
    }
    l->held = got ? 0 : t->room_size;
    return (link_addr){t->room - t->module->bias};
}

static inl_status begin(later *l, inl_error *e)
{
    rewriter_image *i = &l->image;
    live_target_begin(&i->live, &l->process, i->m, true);
    l->room_as_found = i->live.target.room;
    i->live.target.room = room;
    i->target = &i->live.target;
    return live_compare(&i->live, e);
}

/* What walks, and nothing else of it. */
static inl_status plan_walks(later *l, inl_error *e)
{
    inl_status s = finders_plan(&l->image, e);
    return s == INL_OK ? make_answer(l, e) : s;
}

/* An image that --image leaves out is shown as well, and planned where the tool has inserted something in it. */
static bool is_shown(const later *l, bool *chosen)
{
    *chosen = is_wanted() && (!tool_filter_images() || tool_image_matches(l->image.path, l->image.name));
    return *chosen || (is_wanted() && tool_now->callbacks[ON_IMAGE_LOAD]);
}

static inl_status show(const later *l, inl_error *e)
{
    if (!tool_image_of(l->image.m)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    tool_client_image(l->image.m);
    return INL_OK;
}

static inl_status plan(later *l, inl_error *e)
{
    l->r = (rewriter){.images = &l->image, .count = 1, .counts_stay = true};
    rewriter_set_client(&l->r);
    inl_status s = rewriter_plan_image(&l->r, &l->image, e);
    if (s == INL_OK && !run_counters_extend(tool_counters_count()))
        s = inl_fail(e, INL_ERR_NO_MEMORY, "there is no memory for its counters");
    return s == INL_OK ? make_answer(l, e) : s;
}

static void end(later *l)
{
    rewriter_image *i = &l->image;
    inlay_image *handle = i->m ? i->m->user : NULL;
    bool is_codes = handle && tool_code_take(handle) == i->cfg;
    moved_later_let_go(i->live.room, l->held);
    if (i->plan) move_plan_free(i->plan);
    if (i->cfg && !is_codes) cfg_program_free(i->cfg);
    if (handle) tool_image_settle(handle);
    live_target_end(&i->live);
    live_close(&l->process);
    if (l->modules) module_set_free(l->modules);
}

static void give_up(later *l, const moved_mapped *m, const inl_error *e)
{
    tool_say_limited("%s, which was opened now, is not instrumented: %s", m->path, e->text);
    if (!l->answer) return;
    moved_later_drop(l->answer);
    free((void *)l->answer->patches);
    free((void *)l->answer->tables);
    free(l->answer);
    l->answer = NULL;
}

moved_later *tool_later_opened(run_thread *t, const moved_mapped *m)
{
    later l = {0};
    inl_error e = {0};
    (void)t;
    if (!is_wanted() && !may_walk()) return NULL;
    bool entered = tool_enter();
    tool_here.plans = true;
    inl_status s = find(&l, m, &e);
    bool chosen = false, shown = s == INL_OK && is_shown(&l, &chosen);
    l.walks = s == INL_OK && may_walk() && finders_note_opened(&l.image);
    if (chosen || l.walks) s = begin(&l, &e);
    if (s == INL_OK && shown) s = show(&l, &e);
    bool planned = shown && s == INL_OK && (chosen || tool_image_has_insertions(tool_image_of(l.image.m)));
    if (planned && !chosen && !l.walks) s = begin(&l, &e);
    if (planned && s == INL_OK) s = plan(&l, &e);
    else if (s == INL_OK && l.walks) s = plan_walks(&l, &e);
    if (s != INL_OK && (is_wanted() || l.walks)) give_up(&l, m, &e);
    end(&l);
    tool_here.plans = false;
    tool_leave(entered);
    return l.answer;
}

void tool_later_closed(run_thread *t, const moved_mapped *m)
{
    (void)t;
    if (!is_wanted()) return;
    bool entered = tool_enter();
    inlay_image *i = tool_image_carried(m->low);
    if (i) TOOL_CALL(ON_IMAGE_UNLOAD, void (*)(inlay_image *, void *), i);
    if (i) tool_image_gone(i);
    tool_leave(entered);
}
