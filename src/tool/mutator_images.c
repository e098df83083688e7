/* What was found out about the images of a process stays when its handle goes: the next process, or the same one once
 * more, mostly has the same files. One that is mapped at the same address finds all of it again, decoded code, names
 * and handles included; one elsewhere the file as it was read and its analysis. The files that were met last are kept,
 * as many as there is room for by the size of their code.
 *
 * A file that has changed since is another one: its size, time and number tell. Code in memory is held against the file
 * for each process anyway (live/target.c). */
#include "tool/mutator.h"
#include "tool/code.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROOM = 256 << 20 }; /* bytes of images */

struct mutator_kept {
    mutator_kept *next;
    inlay_image *handle; /* without a module */
    image *file;
    dev_t device;
    ino_t inode;
    uint64_t bytes;
};

/* Still the file that the handle was made for? */
static bool is_file(const inlay_image *i, struct stat *st)
{
    return stat(i->path, st) == 0 && st->st_size == i->file_size &&
           st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec == i->file_time;
}

static void end(mutator_kept *k)
{
    tool_code_forget(k->handle);
    mutator_points_free(k->handle);
    image_close(k->file);
    free(k);
}

/* The oldest ones go. */
static void keep_to_room(void)
{
    uint64_t sum = 0;
    for (mutator_kept **at = &tool_now->mutating.kept; *at;) {
        mutator_kept *k = *at;
        sum += k->bytes;
        if (sum <= ROOM) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        end(k);
    }
}

/* True: something was inserted. */
static bool clear_procs(inlay_image *i)
{
    bool any = false;
    for (size_t k = 0; i->made && k < i->proc_count; k++) {
        inlay_proc *p = i->made[k];
        if (!p) continue;
        any |= p->entry || p->exit;
        p->entry = p->exit = NULL;
        p->record = NULL;
        p->announced = false;
    }
    return any;
}

bool mutator_keep_image(module *x)
{
    inlay_image *i = x->user;
    struct stat st;
    if (x->is_vdso || !is_file(i, &st)) return false;
    mutator_kept *k = calloc(1, sizeof *k);
    if (!k) return false;
    bool inserted = clear_procs(i);
    if (inserted || tool_code_has_any(i)) {
        mutator_points_free(i);
        tool_code_reset(i);
    }
    *k = (mutator_kept){tool_now->mutating.kept, i, x->image, st.st_dev, st.st_ino, x->high - x->low};
    tool_now->mutating.kept = k;
    if (i->process->last_found == i) i->process->last_found = NULL;
    i->m = NULL;
    x->user = x->image = NULL;
    keep_to_room();
    return true;
}

static void move(inlay_image *i, const module *x)
{
    uint64_t by = x->bias - i->bias;
    mutator_points_free(i);
    tool_code_reset(i);
    i->low = x->low;
    i->high = x->high;
    i->bias = x->bias;
    if (i->entry) i->entry += by;
    for (unsigned k = 0; k < i->section_count; k++)
        if (i->sections[k].address) i->sections[k].address += by;
    for (size_t k = 0; i->made && k < i->proc_count; k++)
        if (i->made[k]) i->made[k]->low += by, i->made[k]->high += by;
}

static mutator_kept *find(const module *x, const struct stat *st, bool same_place)
{
    mutator_kept **at = &tool_now->mutating.kept;
    for (; *at; at = &(*at)->next) {
        mutator_kept *k = *at;
        struct stat now;
        if (k->device != st->st_dev || k->inode != st->st_ino || strcmp(k->handle->path, image_path(x->image)) != 0 ||
            (same_place && k->handle->bias != x->bias) || !is_file(k->handle, &now))
            continue;
        *at = k->next;
        return k;
    }
    return NULL;
}

static void take(mutatee *m, module *x)
{
    struct stat st;
    if (x->is_vdso || x->user || stat(image_path(x->image), &st) != 0) return;
    mutator_kept *k = find(x, &st, true);
    if (!k) k = find(x, &st, false);
    if (!k) return;
    inlay_image *i = k->handle;
    image_close(x->image);
    x->image = k->file;
    x->user = i;
    free(k);
    if (i->bias != x->bias) move(i, x);
    i->m = x;
    i->process = &m->process;
    i->id = x->id;
    i->is_main = x->is_main;
}

void mutator_take_images(mutatee *m)
{
    for (module *x = tool_now->mutating.kept ? module_first(m->modules) : NULL; x; x = x->next) take(m, x);
}

void mutator_tell_images(const mutatee *m)
{
    for (inlay_image *i = tool_heap()->roots[ROOT_IMAGES]; i; i = i->next)
        i->is_gone = i->process != &m->process || !i->m;
}
