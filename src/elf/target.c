/* The file as a target: what has been committed and what was taken back, kept until the file is written. Nothing of it
 * runs meanwhile, so any dead code may be overwritten. */
#include "elf/private.h"

#include <string.h>

static size_t read_bytes(void *arg, link_addr at, const uint8_t **bytes)
{
    const elf_target *t = arg;
    return image_bytes(t->image, at.at, bytes);
}

static link_addr room(void *arg)
{
    const elf_target *t = arg;
    return (link_addr){elf_new_base(t->image)};
}

/* In a dynamic program or a library, IFUNC resolvers run while relocations are applied. A static program's tool comes
 * first of all. */
static bool runs_before_tool(void *arg, const cfg_program *p, uint32_t proc)
{
    const elf_target *t = arg;
    const char *name = p->procs[proc].name;
    if (!image_interp(t->image) && image_entry(t->image)) return false;
    return p->procs[proc].flags & CFG_PROC_IFUNC || (name && !strcmp(name, "__libc_early_init"));
}

static bool add(elf_target *t, const move_patch *patches, size_t count, bool over_text)
{
    for (size_t i = 0; i < count; i++)
        if (!(over_text ? inl_vec_push(&t->links, patches[i]) : inl_vec_push(&t->patches, patches[i]))) return false;
    return true;
}

/* The text itself is written with the plan, all of it at once. */
static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    elf_target *t = arg;
    size_t before = t->patches.count;
    if (add(t, d->patches, d->patch_count, false)) return INL_OK;
    t->patches.count = before;
    return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(t->image));
}

static inl_status take_back(void *arg, const move_delta *d, inl_error *e)
{
    elf_target *t = arg;
    size_t kept = 0, before = t->links.count;
    if (!add(t, d->links, d->link_count, true)) {
        t->links.count = before;
        return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(t->image));
    }
    for (size_t i = 0; i < t->patches.count; i++)
        if (t->patches.items[i].proc != d->proc) t->patches.items[kept++] = t->patches.items[i];
    t->patches.count = kept;
    return INL_OK;
}

void elf_target_begin(elf_target *t, image *im)
{
    *t = (elf_target){.image = im};
    t->target = (move_target){.arg = t,
                              .read = read_bytes,
                              .room = room,
                              .runs_before_tool = runs_before_tool,
                              .commit = commit,
                              .take_back = take_back};
}

void elf_target_end(elf_target *t)
{
    inl_vec_free(&t->patches);
    inl_vec_free(&t->links);
}
