/* Who in a process that ran already looks up what code belongs to: the dynamic linker knows nothing of new code there,
 * so the procedures that it is asked by lead here first. Called by the program, on its stack, with its thread pointer,
 * at any time: nothing here takes a lock, needs memory or thread-local storage.
 *
 *     _dl_find_object               libgcc, since 2.35 of glibc: an unwind table for an address
 *     dl_iterate_phdr               other unwinders: all images, one after the other
 *     _dl_find_dso_for_object       dlsym and its like: whose code calls? */
#include "moved/private.h"
#include "move/live.h"

#include <link.h>
#include <string.h>

/* As glibc has it. */
typedef struct found_object {
    unsigned long long flags;
    void *low, *high;
    struct link_map *map;
    void *unwind;
} found_object;

static int (*next_object)(void *, found_object *);
static int (*next_phdr)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
static void *(*next_image)(uint64_t);

static const move_live_image *told_of(const moved_image *i)
{
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    for (uint64_t k = 0; k < count; k++)
        if (images[k].links.bias == i->bias) return &images[k];
    return NULL;
}

static int find_object(void *pc, found_object *out)
{
    const moved_image *i = moved_at((uint64_t)(uintptr_t)pc);
    const move_live_image *told = i ? told_of(i) : NULL;
    if (!told || !told->unwind) return next_object(pc, out);
    int answer = next_object((void *)(uintptr_t)i->map_base, out);
    if (answer) return answer;
    out->low = (void *)(uintptr_t)i->text;
    out->high = (void *)(uintptr_t)(i->text + i->text_size);
    out->unwind = (void *)(uintptr_t)told->unwind;
    return 0;
}

static void *find_image(uint64_t pc)
{
    const moved_image *i = moved_at(pc);
    return next_image(i ? i->map_base : pc);
}

/* As if it were one more image. */
static int show(const move_live_image *told, int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const move_boot_links *l = &told->links;
    const ElfW(Phdr) ph[] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_vaddr = l->text,
         .p_filesz = l->text_size,
         .p_memsz = l->text_size},
        {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = told->unwind - l->bias},
    };
    struct dl_phdr_info info = {.dlpi_addr = l->bias, .dlpi_name = "", .dlpi_phdr = ph, .dlpi_phnum = 2};
    return each(&info, sizeof info, arg);
}

static int iterate(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    int answer = next_phdr(each, arg);
    for (uint64_t k = 0; k < count && !answer; k++)
        if (images[k].unwind) answer = show(&images[k], each, arg);
    return answer;
}

const moved_finder moved_finders[] = {
    {"_dl_find_object", find_object, &next_object, true},
    {"dl_iterate_phdr", iterate, &next_phdr, true},
    {"_dl_find_dso_for_object", find_image, &next_image, false},
    {NULL, NULL, NULL, false},
};
