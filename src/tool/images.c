/* Images: a handle hangs on each module of the engine. All under the engine's lock.
 *
 * The instrumentor's modules are the images that it rewrites. Their handles travel, with copies of what
 * they say; in the carried tool there are no modules, and the list of handles is all there is. */
#include "tool/state.h"
#include "moved/moved.h"

#include <elf.h>
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

static void section_of(const inlay_image *i, const image_section *from, inlay_section *to)
{
    *to = (inlay_section){
        .name = tool_handle_string(from->name),
        .address = from->addr ? from->addr + i->bias : 0,
        .size = from->size,
        .is_code = from->flags & SHF_EXECINSTR,
        .is_writable = from->flags & SHF_WRITE,
        .has_bytes = from->type != SHT_NOBITS,
    };
}

/* The first one of a file's table is none. */
static void take_sections(inlay_image *i)
{
    const image_section *all;
    image *file = tool_image_file(i);
    size_t n = file ? image_sections(file, &all) : 0, from = n && !all[0].type ? 1 : 0;
    i->sections_asked = true;
    if (n <= from) return;
    i->sections = tool_handle_alloc((n - from) * sizeof *i->sections);
    if (!i->sections) return;
    for (size_t k = from; k < n; k++) section_of(i, &all[k], &i->sections[i->section_count++]);
}

/* Into the list of the handles that travel, at its end. */
static void chain(inlay_image *i)
{
    tool_heap_root *heap = tool_heap();
    if (!heap) return;
    stamp(i->path, &i->file_size, &i->file_time);
    take_sections(i);
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
        .process = tool_now->process,
        .m = m,
        .path = tool_handle_string(image_path(m->image)),
        .name = tool_handle_string(image_name(m->image)),
        .low = m->low,
        .high = m->high,
        .bias = m->bias,
        .id = m->id,
        .is_main = m->is_main,
        .entry = image_is_program(m->image) || m->is_interp ? image_entry(m->image) + m->bias : 0,
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
        i->process = tool_now->process;
        i->m = NULL;
        i->procs = NULL;
        i->file = NULL;
        i->code = NULL;
        i->points = NULL;
        i->procs_asked = i->file_asked = false;
    }
}

unsigned tool_image_fresh_id(void)
{
    unsigned id = 0;
    for (const inlay_image *i = first_carried(); i; i = i->next)
        if (i->id > id) id = i->id;
    for (const inlay_image *i = tool_now->process->others; i; i = i->next)
        if (i->id > id) id = i->id;
    return id + 1;
}

/* As those that travelled are found: what its module knew is asked of the file again. */
void tool_image_settle(inlay_image *i)
{
    tool_code_forget(i);
    if (i->m) i->m->user = NULL;
    i->m = NULL;
    i->procs = NULL;
    i->procs_asked = false;
}

inlay_image *tool_image_carried(uint64_t low)
{
    inlay_image *i = first_carried();
    while (i && (i->low != low || i->is_gone)) i = i->next;
    return i;
}

void tool_image_gone(inlay_image *i)
{
    i->is_gone = true;
    if (i->process->last_found == i) i->process->last_found = NULL;
}

void tool_images_begin(void)
{
    for (inlay_image *i = first_carried(); i; i = i->next) i->shift = moved_shift((assumed_addr){i->low});
}

/* --- images that are not rewritten, in a rewritten program ---
 *
 * A handle is made for each when somebody asks; one whose image has gone keeps what it knows, but covers nothing. */
static inlay_image *adopt(const moved_mapped *m)
{
    inlay_image *i = calloc(1, sizeof *i), **end = &tool_now->process->others;
    char *path = i ? realpath(m->path, NULL) : NULL, *mapped = i ? strdup(m->path) : NULL;
    if (mapped && !path) path = strdup(mapped); /* the vdso; another root */
    if (!mapped || !path) {
        free(path);
        free(mapped);
        free(i);
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    *i = (inlay_image){.process = tool_now->process, .path = path, .name = slash ? slash + 1 : path, .low = m->low};
    i->high = m->high;
    i->bias = m->bias;
    i->is_other = true;
    i->mapped = mapped;
    stamp(path, &i->file_size, &i->file_time);
    i->id = tool_image_fresh_id();
    while (*end) end = &(*end)->next;
    return *end = i;
}

static inlay_image *known_other(const moved_mapped *m)
{
    inlay_image *i = tool_now->process->others;
    while (i && (i->low != m->low || strcmp(i->mapped, m->path))) i = i->next;
    return i;
}

static bool is_carried(const moved_mapped *m)
{
    const inlay_image *i = first_carried();
    while (i && (i->is_gone || i->low >= m->high || m->low >= i->high)) i = i->next;
    return i != NULL;
}

/* Looks at what is mapped now. Of the linker procedures may have moved, and nothing of it is the tool's for all that.
 */
static void find_others(void)
{
    moved_mapped m;
    for (inlay_image *i = tool_now->process->others; i; i = i->next) i->is_gone = true;
    for (size_t k = 0; moved_others(k, &m); k++) {
        if (!m.path || is_carried(&m)) continue;
        inlay_image *i = known_other(&m);
        if (!i) i = adopt(&m);
        if (i) i->is_gone = false;
    }
}

static inlay_image *other_at(uint64_t address)
{
    if (tool_handoff_data.role != TOOL_CARRIED) return NULL;
    find_others();
    inlay_image *i = tool_now->process->others;
    while (i && (i->is_gone || address < i->low || address >= i->high)) i = i->next;
    return i;
}

/* Behind one of either list. */
static inlay_image *next_of(const inlay_image *i)
{
    inlay_image *next = i->next;
    if (!next && !i->is_other && tool_handoff_data.role == TOOL_CARRIED) {
        find_others();
        next = tool_now->process->others;
    }
    while (next && next->is_gone) next = next->next;
    return next;
}

image *tool_image_file(inlay_image *i)
{
    if (!i) return NULL;
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
    inlay_process *p = tool_now->process;
    if (p->last_found && !p->last_found->is_other && address >= p->last_found->low && address < p->last_found->high)
        return p->last_found;
    inlay_image *i = first_carried();
    while (i && (i->is_gone || address < i->low || address >= i->high)) i = i->next;
    if (!i) i = tool_image_of(run_here.modules ? module_at(run_here.modules, address) : NULL);
    if (!i) i = other_at(address);
    return p->last_found = i;
}

void tool_image_forget(inlay_image *i)
{
    if (i->process->last_found == i) i->process->last_found = NULL;
    tool_code_forget(i);
    mutator_points_free(i);
    i->m->user = NULL;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        if (i->made[k]) tool_handle_free(i->made[k]->display);
        tool_handle_free(i->made[k]);
    }
    tool_handle_free(i->made);
    tool_handle_free(i->sections);
    tool_handle_free(i);
}

/* Of no image (NULL) all is 0, NULL and false. */
static const inlay_image *asked(const inlay_image *i)
{
    static const inlay_image none = {.is_other = true};
    return i ? i : &none;
}

const char *inlay_image_path(const inlay_image *i) { return asked(i)->path; }
const char *inlay_image_name(const inlay_image *i) { return asked(i)->name; }
uint64_t inlay_image_low(const inlay_image *i) { return asked(i)->low; }
uint64_t inlay_image_high(const inlay_image *i) { return asked(i)->high; }
uint64_t inlay_image_bias(const inlay_image *i) { return asked(i)->bias; }
bool inlay_image_is_main(const inlay_image *i) { return asked(i)->is_main; }
unsigned inlay_image_id(const inlay_image *i) { return asked(i)->id; }
bool inlay_image_is_instrumented(const inlay_image *i) { return !asked(i)->is_other; }
uint64_t inlay_image_entry(const inlay_image *i) { return asked(i)->entry; }
bool inlay_image_wanted(const inlay_image *i) { return asked(i)->wanted; }
bool inlay_image_chosen(const inlay_image *i) { return asked(i)->wanted && tool_filter_images(); }
inlay_process *inlay_image_process(const inlay_image *i) { return asked(i)->process; }

inlay_image *inlay_process_image_first(inlay_process *p)
{
    if (!tool_process_mean(p)) return NULL;
    bool entered = tool_enter();
    inlay_image *i = first_carried();
    if (!i && run_here.modules) i = tool_image_of(module_first(run_here.modules));
    tool_leave(entered);
    return i;
}

inlay_image *inlay_image_next(const inlay_image *i)
{
    if (!i) return NULL;
    bool entered = tool_enter();
    inlay_image *next = i->m && !tool_here.plans ? tool_image_of(i->m->next) : next_of(i);
    tool_leave(entered);
    return next;
}

inlay_image *inlay_process_image_at(inlay_process *p, uint64_t address)
{
    if (!tool_process_mean(p)) return NULL;
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
    bool found = file && name && image_symbol(file, name, &address, &size);
    tool_leave(entered);
    return found ? address + i->bias : 0;
}

unsigned inlay_image_symbols(inlay_image *i, void (*each)(const inlay_symbol *, void *), void *arg)
{
    if (!i || !each) return 0;
    image_named *list = NULL;
    bool entered = tool_enter();
    image *file = tool_image_file(i);
    size_t n = file ? image_symbol_list(file, &list) : 0;
    tool_leave(entered);
    for (size_t k = 0; k < n; k++) {
        const image_named *s = &list[k];
        each(&(inlay_symbol){s->name, s->addr + i->bias, s->size, s->is_code, s->is_global}, arg);
    }
    free(list);
    return (unsigned)n;
}

/* --- sections --- */

bool inlay_image_section(inlay_image *i, unsigned k, inlay_section *out)
{
    if (!i || !out) return false;
    bool entered = tool_enter();
    if (!i->sections_asked) take_sections(i);
    bool there = k < i->section_count;
    if (there) *out = i->sections[k];
    tool_leave(entered);
    return there;
}

bool inlay_image_section_named(inlay_image *i, const char *name, inlay_section *out)
{
    for (unsigned k = 0; name && inlay_image_section(i, k, out); k++)
        if (!strcmp(out->name, name)) return true;
    return false;
}

/* --- addresses of rewritten programs --- */

uint64_t inlay_address_real(uint64_t address)
{
    if (tool_handoff_data.role != TOOL_CARRIED) return address;
    bool entered = tool_enter();
    const inlay_image *i = tool_image_at(address);
    uint64_t real = i ? address + i->shift : address;
    tool_leave(entered);
    return real;
}

uint64_t inlay_address_shown(uint64_t real) { return moved_original((real_addr){real}).at; }
