/* Procedures: handles are made when first asked for, one for each entry of the image's table. All
 * under the engine's lock. */
#include "tool/state.h"

#include <stdlib.h>
#include <string.h>

static unsigned next_id;
static size_t record_size_now;

static bool ask_procs(inlay_image *i)
{
    if (!i->procs_asked) {
        i->procs_asked = true;
        i->proc_count = image_procs(i->m->image, &i->procs);
        i->made = calloc(i->proc_count + 1, sizeof(inlay_proc *));
        if (!i->made) i->proc_count = 0;
    }
    return i->proc_count != 0;
}

static inlay_proc *proc_by_index(inlay_image *i, size_t index)
{
    if (index >= i->proc_count) return NULL;
    if (i->made[index]) return i->made[index];
    inlay_proc *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->image = i;
    p->p = &i->procs[index];
    p->low = p->p->addr + i->m->bias;
    p->high = p->low + p->p->size;
    p->index = index;
    p->id = next_id++;
    p->wanted = i->wanted && tool_proc_matches(p->p->name, p->p->aliases);
    return i->made[index] = p;
}

static bool covers(const image_proc *p, uint64_t addr)
{
    return addr >= p->addr && addr - p->addr < p->size;
}

/* The index of the procedure that covers a link-time address, or proc_count. */
static size_t find(inlay_image *i, uint64_t addr)
{
    if (i->last < i->proc_count && covers(&i->procs[i->last], addr)) return i->last;
    size_t low = 0, high = i->proc_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (i->procs[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !covers(&i->procs[low - 1], addr)) return i->proc_count;
    return i->last = low - 1;
}

inlay_proc *tool_proc_at(uint64_t address)
{
    inlay_image *i = tool_image_at(address);
    if (!i || !ask_procs(i)) return NULL;
    return proc_by_index(i, find(i, address - i->m->bias));
}

inlay_proc *inlay_proc_at(uint64_t address)
{
    bool entered = tool_enter();
    inlay_proc *p = tool_proc_at(address);
    tool_leave(entered);
    return p;
}

inlay_proc *inlay_image_proc_first(inlay_image *i)
{
    bool entered = tool_enter();
    inlay_proc *p = ask_procs(i) ? proc_by_index(i, 0) : NULL;
    tool_leave(entered);
    return p;
}

inlay_proc *inlay_proc_next(const inlay_proc *p)
{
    bool entered = tool_enter();
    inlay_proc *next = proc_by_index(p->image, p->index + 1);
    tool_leave(entered);
    return next;
}

inlay_proc *inlay_image_proc_named(inlay_image *i, const char *name)
{
    bool entered = tool_enter();
    const image_proc *p = ask_procs(i) ? image_proc_named(i->m->image, name) : NULL;
    inlay_proc *found = p ? proc_by_index(i, find(i, p->addr)) : NULL;
    tool_leave(entered);
    return found;
}

const char *inlay_proc_name(const inlay_proc *p) { return p->p->name; }

const char *inlay_demangle(const char *name, char *out, size_t size)
{
    return image_demangle(name, out, size);
}

const char *inlay_proc_display_name(const inlay_proc *p)
{
    const char *name = p->p->name;
    char text[4096];
    bool entered = tool_enter();
    inlay_proc *own = p->image->made[p->index];
    if (!own->display && image_demangle(name, text, sizeof text) != name) own->display = strdup(text);
    if (own->display) name = own->display;
    tool_leave(entered);
    return name;
}

uint64_t inlay_proc_address(const inlay_proc *p) { return p->low; }
uint64_t inlay_proc_size(const inlay_proc *p) { return p->p->size; }
inlay_image *inlay_proc_image(const inlay_proc *p) { return p->image; }
bool inlay_proc_wanted(const inlay_proc *p) { return p->wanted; }
unsigned inlay_proc_id(const inlay_proc *p) { return p->id; }

void *inlay_proc_record(inlay_proc *p, size_t size)
{
    bool entered = tool_enter();
    if (!p->record && (record_size_now == 0 || size == record_size_now)) {
        record_size_now = size;
        p->record = tool_alloc(size);
        p->record_size = size;
    }
    void *record = p->record_size == size ? p->record : NULL;
    tool_leave(entered);
    if (size != record_size_now)
        tool_say_limited("procedure records of two sizes, %zu and %zu bytes", record_size_now,
                         size);
    return record;
}

bool inlay_line_at(uint64_t address, const char **file, unsigned *line)
{
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    bool found = i && image_line_at(i->m->image, address - i->m->bias, file, line);
    tool_leave(entered);
    return found;
}

bool inlay_proc_line(const inlay_proc *p, const char **file, unsigned *line)
{
    return inlay_line_at(p->low, file, line);
}
