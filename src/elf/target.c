/* The file as a target: what has been committed, kept until the file is written. Nothing of it runs meanwhile, so any
 * dead code may be overwritten; and it takes a plan as a whole. */
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
    if (image_is_static(t->image)) return false; /* an entry point alone says nothing: mold's libraries have one */
    return p->procs[proc].flags & CFG_PROC_IFUNC || (name && !strcmp(name, "__libc_early_init"));
}

/* The text itself is written with the plan, all of it at once. */
static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    elf_target *t = arg;
    if (!inl_vec_reserve(&t->patches, t->patches.count + d->patch_count))
        return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(t->image));
    for (size_t i = 0; i < d->patch_count; i++) t->patches.items[t->patches.count++] = d->patches[i];
    return INL_OK;
}

void elf_target_begin(elf_target *t, image *im)
{
    *t = (elf_target){.image = im};
    t->target = (move_target){
        .arg = t, .read = read_bytes, .room = room, .runs_before_tool = runs_before_tool, .commit = commit};
}

void elf_target_end(elf_target *t) { inl_vec_free(&t->patches); }
