/* --image, --proc and --not-proc. Every pattern is tried, so that those which match nothing can be told. */
#include "tool/state.h"

#include <fnmatch.h>
#include <string.h>

bool tool_filter_images(void) { return tool_now->options.images.count != 0; }
bool tool_filter_procs(void) { return tool_now->options.procs.count || tool_now->options.not_procs.count; }

bool tool_image_matches(const char *path, const char *name)
{
    const tool_globs *g = &tool_now->options.images;
    bool any = g->count == 0;
    for (unsigned i = 0; i < g->count; i++) {
        const char *text = strchr(g->items[i].pattern, '/') ? path : name;
        if (fnmatch(g->items[i].pattern, text, 0) == 0) any = g->items[i].hit = true;
    }
    return any;
}

bool tool_filter_follows(const char *path)
{
    const tool_options *o = &tool_now->options;
    const char *slash = strrchr(path, '/');
    if (o->no_follow) return false;
    for (unsigned i = 0; i < o->follow.count; i++) {
        const char *pattern = o->follow.items[i].pattern, *text = strchr(pattern, '/') || !slash ? path : slash + 1;
        if (fnmatch(pattern, text, 0) == 0) return true;
    }
    return o->follow.count == 0;
}

/* By its name, one of its other names, or its address. */
static bool is_meant(const char *pattern, const inlay_image *i, const image_proc *p)
{
    image_place place;
    if (image_place_read(pattern, &place))
        return image_place_is_in(&place, i->path, i->name, i->is_main) && image_place_has(&place, p->addr, p->size);
    bool hit = image_name_matches(p->name, pattern);
    for (const char *const *a = p->aliases; a && *a && !hit; a++) hit = image_name_matches(*a, pattern);
    return hit;
}

static bool any_matches(const tool_globs *g, const inlay_image *image, const image_proc *p)
{
    bool any = false;
    for (unsigned i = 0; i < g->count; i++)
        if (is_meant(g->items[i].pattern, image, p)) any = g->items[i].hit = true;
    return any;
}

bool tool_proc_matches(const inlay_image *i, const image_proc *p)
{
    const tool_globs *g = &tool_now->options.procs;
    bool any = any_matches(g, i, p) || g->count == 0;
    return !any_matches(&tool_now->options.not_procs, i, p) && any;
}

static bool has_missed(const tool_globs *g)
{
    for (unsigned i = 0; i < g->count; i++)
        if (!g->items[i].hit) return true;
    return false;
}

/* Procedures that the engine has had no reason to look at. */
static void try_procs(inlay_image *i)
{
    const image_proc *procs;
    image *file = i->wanted ? tool_image_file(i) : NULL;
    size_t n = file ? image_procs(file, &procs) : 0;
    for (size_t k = 0; k < n; k++) tool_proc_matches(i, &procs[k]);
}

/* By the option as it was given. */
static void tell_missed(const tool_globs *g, const char *name, const char *what)
{
    for (const tool_glob *one = g->items; one < g->items + g->count; one++) {
        const char letter[] = {one->letter, 0};
        if (!one->hit)
            tool_say("warning: %s%s '%s' matches no %s", *letter ? "-" : "--", *letter ? letter : name, one->pattern,
                     what);
    }
}

void tool_filter_warn_images(void)
{
    const tool_globs *g = &tool_now->options.images;
    for (inlay_image *i = has_missed(g) ? inlay_image_first() : NULL; i; i = inlay_image_next(i))
        tool_image_matches(i->path, i->name);
    tell_missed(g, "image", "image of the program");
}

/* Of a program that is only beginning, images may be mapped later: it warns itself when it ends (client.c). */
void tool_filter_warn(void)
{
    const tool_options *o = &tool_now->options;
    bool procs = has_missed(&o->procs) || has_missed(&o->not_procs);
    if (!has_missed(&o->images) && !procs) return;
    for (inlay_image *i = inlay_image_first(); i; i = inlay_image_next(i))
        if (procs) try_procs(i);
    if (!tool_handoff_data.target) tool_filter_warn_images();
    tell_missed(&o->procs, "proc", "procedure of the images that are looked at");
    tell_missed(&o->not_procs, "not-proc", "procedure of the images that are looked at");
}

bool tool_address_wanted(uint64_t address)
{
    if (tool_filter_procs()) {
        inlay_proc *p = tool_proc_at(address);
        return p && p->wanted;
    }
    if (tool_filter_images()) {
        inlay_image *i = tool_image_at(address);
        return i && i->wanted;
    }
    return true;
}
