/* Modules (inlay/module.h): an image's compile units, and procedures by pattern. Handles are made when first asked for,
 * all of an image at once, from its debug information; the last one is for what that does not tell of. A carried tool
 * has those that the instrumentor made, and others as far as the image's file is still there. */
#include "tool/state.h"
#include "base/near.h"

#include <inlay/module.h>

#include <fnmatch.h>
#include <regex.h>
#include <string.h>

struct inlay_module {
    inlay_image *image;
    const char *name, *folder;
};

/* --- units --- */

/* Lock held. */
static bool ask_modules(inlay_image *i)
{
    if (!i) return false;
    if (i->modules) return true;
    image *file = tool_image_file(i);
    size_t count = file ? image_unit_count(file) : 0;
    inlay_module *all = tool_handle_alloc((count + 1) * sizeof *all);
    if (!all) return false;
    for (size_t k = 0; k <= count; k++) {
        image_source of = k < count ? image_unit(file, k) : (image_source){i->name, ""};
        all[k] = (inlay_module){i, tool_handle_string(of.name), tool_handle_string(of.folder)};
    }
    i->modules = all;
    i->module_count = count + 1;
    return true;
}

inlay_module *inlay_image_module_first(inlay_image *i)
{
    bool entered = tool_enter();
    bool good = ask_modules(i);
    tool_leave(entered);
    return good ? &i->modules[0] : NULL;
}

inlay_module *inlay_module_next(const inlay_module *m)
{
    if (!m) return NULL;
    size_t k = (size_t)(m - m->image->modules) + 1;
    return k < m->image->module_count ? &m->image->modules[k] : NULL;
}

bool inlay_module_is_rest(const inlay_module *m)
{
    return m && m - m->image->modules + 1 == (ptrdiff_t)m->image->module_count;
}
const char *inlay_module_name(const inlay_module *m) { return m ? m->name : NULL; }
const char *inlay_module_folder(const inlay_module *m) { return m ? m->folder : NULL; }
inlay_image *inlay_module_image(const inlay_module *m) { return m ? m->image : NULL; }

/* As a whole, or from a component on. */
static bool is_named(const char *name, const char *wanted)
{
    for (; name; name = strchr(name, '/')) {
        name += *name == '/' && *wanted != '/';
        if (!strcmp(name, wanted) || fnmatch(wanted, name, 0) == 0) return true;
        name += *name == '/';
    }
    return false;
}

inlay_module *inlay_image_module_named(inlay_image *i, const char *name)
{
    inlay_module *m = name ? inlay_image_module_first(i) : NULL;
    while (m && !is_named(m->name, name)) m = inlay_module_next(m);
    return m;
}

inlay_module *inlay_proc_module(const inlay_proc *p)
{
    inlay_image *i = inlay_proc_image(p);
    if (!i) return NULL;
    bool entered = tool_enter();
    bool good = ask_modules(i);
    image *file = tool_image_file(i);
    size_t k = file ? image_unit_number_at(file, p->low - i->bias) : i->module_count;
    tool_leave(entered);
    return good ? &i->modules[k < i->module_count ? k : i->module_count - 1] : NULL;
}

static inlay_proc *first_of(const inlay_module *m, inlay_proc *p)
{
    while (p && inlay_proc_module(p) != m) p = inlay_proc_next(p);
    return p;
}

inlay_proc *inlay_module_proc_first(const inlay_module *m)
{
    return first_of(m, inlay_image_proc_first(inlay_module_image(m)));
}
inlay_proc *inlay_module_proc_next(const inlay_module *m, const inlay_proc *p)
{
    return first_of(m, inlay_proc_next(p));
}

/* --- procedures by pattern --- */

typedef struct wanted {
    const char *glob; /* NULL: a regular expression */
    regex_t expression;
} wanted;

static bool is_meant(const char *name, const void *expression) { return regexec(expression, name, 0, NULL, 0) == 0; }

static bool is_name(const char *name, const wanted *w)
{
    return w->glob ? image_name_matches(name, w->glob) : image_name_is(name, is_meant, &w->expression);
}

/* False, and a message: it is wrong. */
static bool read_pattern(const char *pattern, wanted *w)
{
    char text[4096], why[256];
    size_t n = strlen(pattern);
    *w = (wanted){.glob = pattern};
    if (n < 2 || pattern[0] != '/' || pattern[n - 1] != '/' || n - 2 >= sizeof text) return true;
    memcpy(text, pattern + 1, n - 2);
    text[n - 2] = 0;
    w->glob = NULL;
    int error = regcomp(&w->expression, text, REG_EXTENDED | REG_NOSUB);
    if (!error) return true;
    regerror(error, &w->expression, why, sizeof why);
    tool_say_limited("%s: %s", pattern, why);
    return false;
}

static bool is_one(const inlay_proc *p, const wanted *w)
{
    const inlay_image *i = p->image;
    const char *const *a = i->procs ? i->procs[p->index].aliases : NULL;
    bool hit = is_name(p->name, w);
    for (; a && *a && !hit; a++) hit = is_name(*a, w);
    return hit;
}

int inlay_image_procs_matching(inlay_image *i, const char *pattern, void (*each)(inlay_proc *, void *), void *arg)
{
    wanted w;
    int count = 0;
    if (!pattern || !each) return 0;
    if (!read_pattern(pattern, &w)) return -1;
    for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
        if (!is_one(p, &w)) continue;
        each(p, arg);
        count++;
    }
    if (!w.glob) regfree(&w.expression);
    return count;
}

bool inlay_proc_matches(const inlay_proc *p, const char *pattern)
{
    wanted w;
    if (!p || !pattern || !read_pattern(pattern, &w)) return false;
    bool is = is_one(p, &w);
    if (!w.glob) regfree(&w.expression);
    return is;
}

/* --- names that are nearly right --- */

/* Of what a template was made with, which ends in front of `end`: where it begins; 0: nowhere. */
static size_t opens(const char *name, size_t end)
{
    unsigned depth = 0;
    for (; end; end--) {
        depth += name[end - 1] == '>';
        if (name[end - 1] == '<' && !--depth) return end - 1;
    }
    return 0;
}

/* The last parts of a name as people write it, as many as `wanted` has, without what its template was made with. NULL:
 * it has not so many, or no room, or stands behind a result. */
static const char *last_parts(const char *name, const char *wanted, char *out, size_t size)
{
    int parts = 1;
    size_t end = strlen(name), begin = 0;
    for (const char *c = strstr(wanted, "::"); c; c = strstr(c + 2, "::")) parts++;
    if (end && name[end - 1] == '>') end = opens(name, end);
    for (size_t at = end; at; at--) {
        char c = name[at - 1];
        if (c == ' ') return NULL;
        if (c == ':' && --parts == 0) begin = at;
        if (c == ':' && at > 1) at--;
        if (c == '>') at = opens(name, at) + 1;
    }
    if (parts > 1 || end - begin >= size) return NULL;
    memcpy(out, name + begin, end - begin);
    out[end - begin] = 0;
    return out;
}

/* In each form that people write it in. */
static bool offer(const char *name, const void *arg)
{
    char parts[INL_NEAR_LONGEST];
    inl_near *near = *(inl_near *const *)arg;
    inl_near_offer(near, name);
    if (!strchr(name, '(') && last_parts(name, near->wanted, parts, sizeof parts)) inl_near_offer_as(near, parts, name);
    return false;
}

const char *inlay_process_procs_near(inlay_process *of, const char *name, char *out, size_t size)
{
    inl_near near, *all = &near;
    if (!out || !size) return out;
    inl_near_begin(&near, name ? name : "");
    for (inlay_image *i = inlay_process_image_first(of); i; i = inlay_image_next(i))
        for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
            const char *const *a = i->procs ? i->procs[p->index].aliases : NULL;
            if (!strchr(p->name, '@')) image_name_is(p->name, offer, &all);
            for (; a && *a; a++) image_name_is(*a, offer, &all);
        }
    return inl_near_text(&near, out, size);
}
