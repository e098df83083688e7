#include "tool/finders.h"
#include "tool/state.h"
#include "moved/moved.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)MOVED_FINDERS <= (int)LIVE_HOOKS, "an image has room for all");

static bool is_in_process(const char *symbol)
{
    uint64_t at, size;
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (!m->is_vdso && image_symbol(m->image, symbol, &at, &size)) return true;
    return false;
}

/* Tables of cleanups alone are C's: they are for threads that are cancelled, and nothing is caught by them. */
static bool catches(image *im, const image_unwind_range *range, image_lsda *l)
{
    if (!image_lsda_read(im, range->lsda, range->addr, l)) return true;
    for (size_t i = 0; i < l->count; i++)
        if (l->sites[i].landing_pad && l->sites[i].action) return true;
    return false;
}

static bool has_handlers(image *im)
{
    const image_unwind_range *ranges;
    size_t n = image_unwind_ranges(im, &ranges);
    image_lsda l = {0};
    bool any = false;
    for (size_t k = 0; k < n && !any; k++) any = ranges[k].lsda && catches(im, &ranges[k], &l);
    image_lsda_free(&l);
    return any;
}

/* Of a static program, if neither is found by its name: exceptions are not all that it may unwind for. */
static finders_unnamed find_unnamed(void)
{
    if (is_in_process("_dl_find_object") || is_in_process("dl_iterate_phdr")) return (finders_unnamed){0};
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (m->is_main && image_is_static(m->image)) return finders_find_unnamed(m->image);
    return (finders_unnamed){0};
}

/* A static program has of its unwinder what it uses: Rust's, with LLVM's unwinder, raise nothing by force. */
static bool may_lack(image *im, const moved_finder *f)
{
    return f->kind == MOVED_WALKS && strcmp(f->name, "_Unwind_Backtrace") != 0 && image_is_static(im);
}

/* An unwinder's procedures know each other's contexts: all are one image's. */
static bool has_walks(image *im)
{
    uint64_t at, size;
    bool all = true;
    for (const moved_finder *f = moved_finders; f->name && all; f++)
        all = f->kind != MOVED_WALKS || image_symbol(im, f->name, &at, &size) || may_lack(im, f);
    return all;
}

/* The program's own comes first. */
const image *finders_walker(void)
{
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (!m->is_vdso && has_walks(m->image)) return m->image;
    return NULL;
}

/* The type of program header that only unwinders ask for stands in its code, or beside it. */
static bool looks_for_tables(const image *im)
{
    const uint32_t type = PT_GNU_EH_FRAME;
    const image_segment *s;
    size_t n = image_segments(im, &s);
    for (size_t k = 0; k < n; k++) {
        const uint8_t *bytes;
        size_t have = s[k].exec ? image_bytes(im, s[k].addr, &bytes) : 0;
        if (have && memmem(bytes, have, &type, sizeof type)) return true;
    }
    return false;
}

/* An unwinder of its own may be part of any image: libunwind, or libgcc's of before 2.35 of glibc. */
static bool goes_by_list(image *im)
{
    return !strncmp(image_name(im), "libunwind", sizeof "libunwind" - 1) ||
           (image_has_dynamic(im, "dl_iterate_phdr", false) && looks_for_tables(im));
}

/* Programs look at the list of images for other ends as well: it is only changed where an unwinder goes by it. */
bool finders_go_by_list(void)
{
    tool_now->unnamed = find_unnamed();
    for (module *m = module_first(run_here.modules); m; m = m->next)
        if (!m->is_vdso && goes_by_list(m->image)) return true;
    return !tool_now->unnamed.object && !is_in_process("_dl_find_object");
}

/* The link-time address of a finder that is wanted; 0: it is not in the image. */
static uint64_t place_of(image *im, const moved_finder *f, bool by_list)
{
    uint64_t at, size;
    bool is_list = !strcmp(f->name, "dl_iterate_phdr");
    const finders_unnamed *u = &tool_now->unnamed;
    if ((!by_list && is_list) || (f->kind == MOVED_WALKS && tool_now->walker != im)) return 0;
    if (image_symbol(im, f->name, &at, &size)) return at;
    if (u->of != im) return 0;
    return is_list ? u->list : !strcmp(f->name, "_dl_find_object") ? u->object : 0;
}

/* Each has one place where it leads on: those of the program's own libraries are hooked. */
bool finders_are_in(const live_process *p, const module *m, bool by_list)
{
    for (const moved_finder *f = moved_finders; f->name && !live_is_apart(p, m); f++)
        if (place_of(m->image, f, by_list)) return true;
    return false;
}

void finders_note(rewriter_image *i, bool by_list)
{
    size_t n = 0;
    if (live_is_apart(i->live.process, i->m)) return;
    for (const moved_finder *f = moved_finders; f->name && n < REWRITER_FINDERS; f++)
        i->finders[n++] = place_of(i->im, f, by_list);
}

bool finders_is_one(const rewriter_image *i, uint64_t at)
{
    for (int k = 0; k < REWRITER_FINDERS; k++)
        if (i->finders[k] == at) return true;
    return false;
}

static bool is_finder(void *arg, const cfg_program *p, uint32_t proc)
{
    return finders_is_one(arg, p->procs[proc].addr);
}

inl_status finders_plan(rewriter_image *i, inl_error *e)
{
    i->live.lacks_lines = true; /* of a few procedures, for which the C library's lines would be read */
    move_client client = {.arg = i, .wanted = is_finder};
    inl_status s = i->cfg ? INL_OK : tool_analyse(i->im, NULL, &i->cfg, e);
    if (s == INL_OK) s = move_plan_make(i->cfg, i->bias, i->target, &client, &i->plan, e);
    if (s == INL_OK) s = move_commit(i->plan, i->target, e);
    return s == INL_OK ? live_target_settle(&i->live, i->plan, e) : s;
}

/* The procedure that begins at a link-time address, if it has moved; else CFG_NONE. */
static uint32_t moved_from(const rewriter_image *i, uint64_t at)
{
    uint32_t k = cfg_proc_covering(i->cfg, at);
    return k != CFG_NONE && i->cfg->procs[k].addr == at && i->plan->procs[k].how == MOVE_MOVED ? k : CFG_NONE;
}

static bool can_walk(const rewriter_image *i)
{
    for (const moved_finder *f = moved_finders; f->name; f++) {
        uint64_t at = f->kind == MOVED_WALKS ? place_of(i->im, f, false) : 0;
        if (f->kind == MOVED_WALKS && (at || !may_lack(i->im, f)) && moved_from(i, at) == CFG_NONE) return false;
    }
    return true;
}

static live_hook hook_of(const rewriter_image *i, const moved_finder *f, uint64_t at, uint32_t proc)
{
    return (live_hook){.at = at + i->bias,
                       .next = i->plan->procs[proc].new_addr,
                       .function = (uint64_t)(uintptr_t)f->function,
                       .next_at = (uint64_t)(uintptr_t)f->next};
}

/* *unwinds: exceptions are found their way. */
static size_t hooks_of(const rewriter_image *i, bool by_list, live_hook *out, bool *unwinds)
{
    size_t n = 0;
    if (live_is_apart(i->live.process, i->m)) return 0;
    const bool walks = tool_now->walker == i->im && can_walk(i);
    for (const moved_finder *f = moved_finders; f->name; f++) {
        uint64_t at = place_of(i->im, f, by_list);
        uint32_t k = at ? moved_from(i, at) : CFG_NONE;
        if (k == CFG_NONE || (f->kind == MOVED_WALKS && !walks)) continue;
        *unwinds = *unwinds || f->kind == MOVED_UNWINDS;
        out[n++] = hook_of(i, f, at, k);
    }
    return n;
}

bool finders_note_opened(rewriter_image *i)
{
    size_t n = 0;
    const bool walks = !moved_walks() && has_walks(i->im);
    tool_now->walker = walks ? i->im : NULL;
    for (const moved_finder *f = moved_finders; f->name && walks; f++)
        if (f->kind == MOVED_WALKS) i->finders[n++] = place_of(i->im, f, false);
    return walks;
}

size_t finders_hooks_opened(const rewriter_image *i, live_hook out[LIVE_HOOKS])
{
    size_t n = 0;
    if (tool_now->walker != i->im || !can_walk(i)) return 0;
    for (const moved_finder *f = moved_finders; f->name; f++) {
        uint64_t at = f->kind == MOVED_WALKS ? place_of(i->im, f, false) : 0;
        if (at) out[n++] = hook_of(i, f, at, moved_from(i, at));
    }
    return n;
}

inl_status finders_list(const rewriter_image *images, size_t count, bool by_list, live_image **out, inl_error *e)
{
    bool unwinds = false;
    const char *handlers = NULL;
    live_image *list = calloc(count, sizeof *list + LIVE_HOOKS * sizeof(live_hook));
    live_hook *hooks = (live_hook *)(list + count);
    *out = list;
    if (!list) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    for (size_t k = 0; k < count; k++) {
        const rewriter_image *i = &images[k];
        list[k] = (live_image){.target = (live_target *)&i->live, .plan = i->plan, .hooks = hooks + k * LIVE_HOOKS};
        list[k].hook_count = hooks_of(i, by_list, hooks + k * LIVE_HOOKS, &unwinds);
        if (has_handlers(i->im)) handlers = i->name;
    }
    if (!handlers || unwinds) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "exceptions of %s could not be passed through moved code: neither _dl_find_object nor "
                    "dl_iterate_phdr is found in the process, by its name or by who calls it",
                    handlers);
}
