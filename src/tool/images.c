/* Images: a handle hangs on each module of the engine. All under the engine's lock.
 *
 * The instrumentor's modules are the images that it rewrites. Their handles travel, with copies of what
 * they say; in the carried tool there are no modules, and the list of handles is all there is. */
#include "tool/state.h"
#include "moved/moved.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *tool_handle_alloc(size_t bytes) { return tool_heap() ? tool_carried_alloc(bytes) : calloc(1, bytes); }

void tool_handle_free(void *p)
{
    if (!tool_heap()) free(p);
}

const char *tool_handle_string(const char *s)
{
    if (!tool_heap() || !s) return s;
    char *copy = tool_carried_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

static void stamp(const char *path, int64_t *size, int64_t *time)
{
    struct stat st;
    *size = *time = -1;
    if (stat(path, &st) != 0) return;
    *size = st.st_size;
    *time = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* Into the list of the handles that travel, at its end. */
static void chain(inlay_image *i)
{
    tool_heap_root *heap = tool_heap();
    if (!heap) return;
    stamp(i->path, &i->file_size, &i->file_time);
    inlay_image *last = heap->roots[ROOT_IMAGES];
    while (last && last->next) last = last->next;
    if (last) last->next = i;
    else heap->roots[ROOT_IMAGES] = i;
}

inlay_image *tool_image_of(module *m)
{
    if (!m || m->user) return m ? m->user : NULL;
    inlay_image *i = tool_handle_alloc(sizeof *i);
    if (!i) return NULL;
    *i = (inlay_image){
        .process = &tool_now->process,
        .m = m,
        .path = tool_handle_string(image_path(m->image)),
        .name = tool_handle_string(image_name(m->image)),
        .low = m->low,
        .high = m->high,
        .bias = m->bias,
        .id = m->id,
        .is_main = m->is_main,
        .wanted = tool_image_matches(image_path(m->image), image_name(m->image)),
    };
    chain(i);
    return m->user = i;
}

static inlay_image *first_carried(void)
{
    return tool_handoff_data.role == TOOL_CARRIED ? tool_heap()->roots[ROOT_IMAGES] : NULL;
}

void tool_images_attach(void)
{
    for (inlay_image *i = first_carried(); i; i = i->next) {
        i->process = &tool_now->process;
        i->m = NULL;
        i->procs = NULL;
        i->file = NULL;
        i->code = NULL;
        i->procs_asked = i->file_asked = false;
    }
}

void tool_images_begin(void)
{
    for (inlay_image *i = first_carried(); i; i = i->next) i->shift = moved_shift(i->low);
}

image *tool_image_file(inlay_image *i)
{
    if (i->m) return i->m->image;
    if (i->file_asked) return i->file;
    i->file_asked = true;
    int64_t size, time;
    stamp(i->path, &size, &time);
    if (size < 0 || size != i->file_size || time != i->file_time) return NULL;
    if (image_open(i->path, &i->file, NULL) != INL_OK) i->file = NULL;
    return i->file;
}

inlay_image *tool_image_at(uint64_t address)
{
    inlay_process *p = &tool_now->process;
    if (p->last_found && address >= p->last_found->low && address < p->last_found->high) return p->last_found;
    inlay_image *i = first_carried();
    while (i && (address < i->low || address >= i->high)) i = i->next;
    if (!i) i = tool_image_of(run_here.modules ? module_at(run_here.modules, address) : NULL);
    return p->last_found = i;
}

void tool_image_forget(inlay_image *i)
{
    if (i->process->last_found == i) i->process->last_found = NULL;
    tool_code_forget(i);
    i->m->user = NULL;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        if (i->made[k]) tool_handle_free(i->made[k]->display);
        tool_handle_free(i->made[k]);
    }
    tool_handle_free(i->made);
    tool_handle_free(i);
}

const char *inlay_image_path(const inlay_image *i) { return i->path; }
const char *inlay_image_name(const inlay_image *i) { return i->name; }
uint64_t inlay_image_low(const inlay_image *i) { return i->low; }
uint64_t inlay_image_high(const inlay_image *i) { return i->high; }
uint64_t inlay_image_bias(const inlay_image *i) { return i->bias; }
bool inlay_image_is_main(const inlay_image *i) { return i->is_main; }
unsigned inlay_image_id(const inlay_image *i) { return i->id; }
bool inlay_image_wanted(const inlay_image *i) { return i->wanted; }

inlay_image *inlay_process_image_first(inlay_process *p)
{
    (void)p;
    bool entered = tool_enter();
    inlay_image *i = first_carried();
    if (!i && run_here.modules) i = tool_image_of(module_first(run_here.modules));
    tool_leave(entered);
    return i;
}

inlay_image *inlay_image_next(const inlay_image *i)
{
    bool entered = tool_enter();
    inlay_image *next = i->m ? tool_image_of(i->m->next) : i->next;
    tool_leave(entered);
    return next;
}

inlay_image *inlay_process_image_at(inlay_process *p, uint64_t address)
{
    (void)p;
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    tool_leave(entered);
    return i;
}

inlay_image *inlay_image_first(void) { return inlay_process_image_first(inlay_process_self()); }
inlay_image *inlay_image_at(uint64_t address) { return inlay_process_image_at(inlay_process_self(), address); }

uint64_t inlay_image_symbol(inlay_image *i, const char *name)
{
    uint64_t address = 0, size;
    bool entered = tool_enter();
    image *file = tool_image_file(i);
    bool found = file && image_symbol(file, name, &address, &size);
    tool_leave(entered);
    return found ? address + i->bias : 0;
}
