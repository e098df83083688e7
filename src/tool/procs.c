/* Procedures: handles are made when first asked for, one for each entry of the image's table. All
 * under the engine's lock.
 *
 * In a carried tool the handles that the instrumentor made are there. Others are made from the image's
 * file as far as it still is what it was; without it the table is what was made. */
#include "tool/state.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

/* The file is gone: what remains are the handles, moved together. */
static void keep_made(inlay_image *i)
{
    size_t n = 0;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        if (!i->made[k]) continue;
        i->made[n] = i->made[k];
        i->made[n]->index = n;
        n++;
    }
    i->proc_count = n;
}

static bool ask_procs(inlay_image *i)
{
    if (i->procs_asked) return i->proc_count != 0;
    i->procs_asked = true;
    i->last = 0;
    image *file = tool_image_file(i);
    size_t count = file ? image_procs(file, &i->procs) : 0;
    if (i->made && count != i->proc_count) {
        i->procs = NULL;
        keep_made(i);
        return i->proc_count != 0;
    }
    if (!i->made) i->made = tool_handle_alloc((count + 1) * sizeof(inlay_proc *));
    i->proc_count = i->made ? count : 0;
    return i->proc_count != 0;
}

static inlay_proc *proc_by_index(inlay_image *i, size_t index)
{
    if (index >= i->proc_count) return NULL;
    if (i->made[index]) return i->made[index];
    inlay_proc *p = tool_handle_alloc(sizeof *p);
    if (!p) return NULL;
    const image_proc *from = &i->procs[index];
    tool_heap_root *heap = tool_heap();
    if (heap && !i->process->next_proc) i->process->next_proc = (unsigned)heap->numbers[ROOT_PROCS];
    p->image = i;
    p->name = tool_handle_string(from->name);
    p->low = from->addr + i->bias;
    p->high = p->low + from->size;
    p->index = index;
    p->id = i->process->next_proc++;
    p->wanted = i->wanted && tool_proc_matches(i, from);
    if (heap) heap->numbers[ROOT_PROCS] = i->process->next_proc;
    return i->made[index] = p;
}

static uint64_t low_of(const inlay_image *i, size_t k)
{
    return i->procs ? i->procs[k].addr + i->bias : i->made[k]->low;
}

static uint64_t size_of(const inlay_image *i, size_t k)
{
    return i->procs ? i->procs[k].size : i->made[k]->high - i->made[k]->low;
}

static bool covers(const inlay_image *i, size_t k, uint64_t address) { return address - low_of(i, k) < size_of(i, k); }

/* The index of the procedure that covers an address, or proc_count. */
static size_t find(inlay_image *i, uint64_t address)
{
    if (i->last < i->proc_count && covers(i, i->last, address)) return i->last;
    size_t low = INL_FIRST(i->proc_count, k, low_of(i, k) > address);
    if (low == 0 || !covers(i, low - 1, address)) return i->proc_count;
    return i->last = low - 1;
}

inlay_proc *tool_proc_at(uint64_t address)
{
    inlay_image *i = tool_image_at(address);
    if (!i || !ask_procs(i)) return NULL;
    return proc_by_index(i, find(i, address));
}

inlay_proc *inlay_process_proc_at(inlay_process *process, uint64_t address)
{
    if (!tool_process_mean(process)) return NULL;
    bool entered = tool_enter();
    inlay_proc *p = tool_proc_at(address);
    tool_leave(entered);
    return p;
}

inlay_proc *inlay_proc_at(uint64_t address) { return inlay_process_proc_at(inlay_process_self(), address); }

inlay_proc *inlay_image_proc_first(inlay_image *i)
{
    if (!i) return NULL;
    bool entered = tool_enter();
    inlay_proc *p = ask_procs(i) ? proc_by_index(i, 0) : NULL;
    tool_leave(entered);
    return p;
}

inlay_proc *inlay_proc_next(const inlay_proc *p)
{
    if (!p) return NULL;
    bool entered = tool_enter();
    inlay_proc *next = proc_by_index(p->image, p->index + 1);
    tool_leave(entered);
    return next;
}

inlay_proc *inlay_image_proc_named(inlay_image *i, const char *name)
{
    if (!i || !name) return NULL;
    bool entered = tool_enter();
    inlay_proc *found = NULL;
    if (ask_procs(i) && i->procs) {
        const image_proc *p = image_proc_named(tool_image_file(i), name);
        if (p) found = proc_by_index(i, find(i, p->addr + i->bias));
    } else {
        for (size_t k = 0; k < i->proc_count && !found; k++)
            if (!strcmp(i->made[k]->name, name)) found = i->made[k];
    }
    tool_leave(entered);
    return found;
}

const char *inlay_proc_name(const inlay_proc *p) { return p ? p->name : "?"; }

bool inlay_proc_is_resolver(const inlay_proc *p)
{
    const image_code_symbol *list;
    if (!p) return false;
    bool entered = tool_enter(), is = false;
    image *file = tool_image_file(p->image);
    uint64_t address = p->low - p->image->bias;
    size_t n = file ? image_code_symbols(file, &list) : 0, low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].addr < address) low = middle + 1;
        else high = middle;
    }
    for (; low < n && list[low].addr == address && !is; low++) is = list[low].resolver;
    tool_leave(entered);
    return is;
}

const char *inlay_demangle(const char *name, char *out, size_t size)
{
    return name && out ? image_demangle(name, out, size) : name;
}

const char *inlay_proc_display_name(const inlay_proc *p)
{
    const char *name = inlay_proc_name(p);
    char text[4096];
    if (!p) return name;
    bool entered = tool_enter();
    inlay_proc *own = p->image->made[p->index];
    if (!own->display && image_demangle(name, text, sizeof text) != name) {
        own->display = tool_handle_alloc(strlen(text) + 1);
        if (own->display) strcpy(own->display, text);
    }
    if (own->display) name = own->display;
    tool_leave(entered);
    return name;
}

uint64_t inlay_proc_address(const inlay_proc *p) { return p ? p->low : 0; }
uint64_t inlay_proc_size(const inlay_proc *p) { return p ? p->high - p->low : 0; }
inlay_image *inlay_proc_image(const inlay_proc *p) { return p ? p->image : NULL; }
bool inlay_proc_wanted(const inlay_proc *p) { return p && p->wanted; }
unsigned inlay_proc_id(const inlay_proc *p) { return p ? p->id : 0; }

void *inlay_proc_record(inlay_proc *p, size_t size)
{
    if (!p) return NULL;
    bool entered = tool_enter();
    size_t *common = &p->image->process->proc_record_size;
    if (!*common && p->record) *common = p->record_size; /* it has travelled */
    if (!p->record && (*common == 0 || size == *common)) {
        *common = size;
        p->record = tool_carried_alloc(size);
        p->record_size = size;
    }
    void *record = p->record_size == size ? p->record : NULL;
    tool_leave(entered);
    if (size != *common) tool_say_limited("procedure records of two sizes, %zu and %zu bytes", *common, size);
    return record;
}

bool inlay_line_at(uint64_t address, const char **file, unsigned *line)
{
    const char *unused_file;
    unsigned unused_line;
    if (!file) file = &unused_file;
    if (!line) line = &unused_line;
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    image *of = i ? tool_image_file(i) : NULL;
    bool found = of && image_line_at(of, address - i->bias, file, line);
    tool_leave(entered);
    return found;
}

/* Is `name`, or are its last components, `wanted`? */
static bool is_file(const char *name, const char *wanted)
{
    size_t n = strlen(name), m = strlen(wanted);
    return n >= m && !strcmp(name + n - m, wanted) && (n == m || name[n - m - 1] == '/' || wanted[0] == '/');
}

typedef struct line_search {
    inlay_image *image;
    const char *file;
    unsigned line, nearest;
    INL_VEC(uint64_t) found;
} line_search;

static void search_rows(void *arg, const image_source *source, const image_line *rows, size_t count)
{
    line_search *s = arg;
    (void)source;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].file || rows[i].line < s->line || !is_file(rows[i].file, s->file)) continue;
        if (!s->nearest || rows[i].line < s->nearest) s->nearest = rows[i].line;
        if (rows[i].line == s->line && !inl_vec_push(&s->found, rows[i].addr + s->image->bias)) return;
    }
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

unsigned inlay_line_addresses(inlay_image *i, const char *file, unsigned line, uint64_t *out, unsigned room,
                              unsigned *nearest)
{
    line_search s = {.image = i, .file = file, .line = line};
    bool entered = tool_enter();
    image *of = tool_image_file(i);
    if (of && file) image_sources(of, search_rows, &s);
    if (s.found.count) qsort(s.found.items, s.found.count, sizeof *s.found.items, by_address);
    unsigned n = 0;
    inlay_proc *last = NULL;
    for (size_t k = 0; k < s.found.count; k++) {
        inlay_proc *p = inlay_proc_at(s.found.items[k]);
        if (!p || p == last) continue;
        last = p;
        if (n < room) out[n] = s.found.items[k];
        n++;
    }
    if (nearest) *nearest = s.nearest;
    inl_vec_free(&s.found);
    tool_leave(entered);
    return n;
}

bool inlay_proc_line(const inlay_proc *p, const char **file, unsigned *line)
{
    return p && inlay_line_at(p->low, file, line);
}
