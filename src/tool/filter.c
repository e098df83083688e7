/* --image and --proc. */
#include "tool/state.h"

#include <fnmatch.h>
#include <string.h>

bool tool_filter_images(void) { return tool_options_now.images.count != 0; }
bool tool_filter_procs(void) { return tool_options_now.procs.count != 0; }

bool tool_image_matches(const char *path, const char *name)
{
    const tool_globs *g = &tool_options_now.images;
    for (unsigned i = 0; i < g->count; i++) {
        const char *text = strchr(g->items[i], '/') ? path : name;
        if (fnmatch(g->items[i], text, 0) == 0) return true;
    }
    return g->count == 0;
}

static bool name_matches(const char *pattern, const char *name)
{
    char plain[1024];
    if (fnmatch(pattern, name, 0) == 0) return true;
    const char *demangled = image_demangle(name, plain, sizeof plain);
    if (demangled == name) return false;
    if (fnmatch(pattern, demangled, 0) == 0) return true;
    /* "f" stands for "f(int, char)", too */
    size_t n = strcspn(demangled, "(");
    if (demangled[n] != '(' || n >= sizeof plain) return false;
    plain[n] = '\0';
    return demangled == plain && fnmatch(pattern, plain, 0) == 0;
}

bool tool_proc_matches(const char *name, const char *const *aliases)
{
    const tool_globs *g = &tool_options_now.procs;
    for (unsigned i = 0; i < g->count; i++) {
        if (name_matches(g->items[i], name)) return true;
        for (const char *const *a = aliases; a && *a; a++)
            if (name_matches(g->items[i], *a)) return true;
    }
    return g->count == 0;
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
