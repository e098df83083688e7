/* Images: a handle hangs on each module of the engine. All under the engine's lock. */
#include "tool/state.h"

#include <stdlib.h>
#include <string.h>

static module *last_found; /* by tool_image_at */

inlay_image *tool_image_of(module *m)
{
    if (!m || m->user) return m ? m->user : NULL;
    inlay_image *i = calloc(1, sizeof *i);
    if (!i) return NULL;
    i->m = m;
    i->wanted = tool_image_matches(image_path(m->image), image_name(m->image));
    return m->user = i;
}

inlay_image *tool_image_at(uint64_t address)
{
    module *m = last_found;
    if (!m || address < m->low || address >= m->high) {
        m = jit.modules ? module_at(jit.modules, address) : NULL;
        last_found = m;
    }
    return tool_image_of(m);
}

void tool_image_forget(inlay_image *i)
{
    if (last_found == i->m) last_found = NULL;
    i->m->user = NULL;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        if (i->made[k]) free(i->made[k]->display);
        free(i->made[k]);
    }
    free(i->made);
    free(i);
}

const char *inlay_image_path(const inlay_image *i) { return image_path(i->m->image); }
const char *inlay_image_name(const inlay_image *i) { return image_name(i->m->image); }
uint64_t inlay_image_low(const inlay_image *i) { return i->m->low; }
uint64_t inlay_image_high(const inlay_image *i) { return i->m->high; }
uint64_t inlay_image_bias(const inlay_image *i) { return i->m->bias; }
bool inlay_image_is_main(const inlay_image *i) { return i->m->is_main; }
unsigned inlay_image_id(const inlay_image *i) { return i->m->id; }
bool inlay_image_wanted(const inlay_image *i) { return i->wanted; }

inlay_image *inlay_image_first(void)
{
    bool entered = tool_enter();
    inlay_image *i = jit.modules ? tool_image_of(module_first(jit.modules)) : NULL;
    tool_leave(entered);
    return i;
}

inlay_image *inlay_image_next(const inlay_image *i)
{
    bool entered = tool_enter();
    inlay_image *next = tool_image_of(i->m->next);
    tool_leave(entered);
    return next;
}

inlay_image *inlay_image_at(uint64_t address)
{
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    tool_leave(entered);
    return i;
}

uint64_t inlay_image_symbol(inlay_image *i, const char *name)
{
    uint64_t address = 0, size;
    bool entered = tool_enter();
    bool found = image_symbol(i->m->image, name, &address, &size);
    tool_leave(entered);
    return found ? address + i->m->bias : 0;
}
