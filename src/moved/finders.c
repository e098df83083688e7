/* Who in a process that ran already looks up what code belongs to: the dynamic linker knows nothing of new code there,
 * so the procedures that it is asked by lead here first. Called by the program, on its stack, with its thread pointer,
 * at any time: nothing here takes a lock, needs memory or thread-local storage.
 *
 *     _dl_find_object               libgcc, since 2.35 of glibc: an unwind table for an address
 *     dl_iterate_phdr               other unwinders: all images, one after the other
 *     _dl_find_dso_for_object       dlsym and its like: whose code calls?
 *     _dl_addr                      dladdr, backtrace_symbols: what is an address called? */
#include "moved/pieces.h"

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
static int (*next_name)(const void *, Dl_info *, struct link_map **, const void **);

/* The unwind table of the moved code that an address is in; 0: there is none. */
static uint64_t unwind_of(const moved_image *i, uint64_t pc)
{
    const moved_piece *piece = moved_piece_at(pc);
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    if (piece) return piece->unwind;
    for (uint64_t k = 0; k < count; k++)
        if (images[k].links.bias == i->bias) return images[k].unwind;
    return 0;
}

static int find_object(void *pc, found_object *out)
{
    const moved_image *i = moved_at((uint64_t)(uintptr_t)pc);
    uint64_t unwind = i ? unwind_of(i, (uint64_t)(uintptr_t)pc) : 0;
    if (!unwind) return next_object(pc, out);
    int answer = next_object((void *)(uintptr_t)i->map_base, out);
    if (answer) return answer;
    out->low = (void *)(uintptr_t)i->text;
    out->high = (void *)(uintptr_t)(i->text + i->text_size);
    out->unwind = (void *)(uintptr_t)unwind;
    return 0;
}

static void *find_image(uint64_t pc)
{
    const moved_image *i = moved_at(pc);
    return next_image(i ? i->map_base : pc);
}

/* Who asks for the image as well is backtrace_symbols, which says how far behind the symbol the address is. */
static int find_name(const void *address, Dl_info *info, struct link_map **map, const void **symbol)
{
    uint64_t at = (uint64_t)(uintptr_t)address;
    const moved_image *i = moved_at(at);
    if (!i) return next_name(address, info, map, symbol);
    uint64_t original = moved_original((real_addr){at}).at - i->to_assumed;
    int answer = next_name((const void *)(uintptr_t)original, info, map, symbol);
    if (answer && map && info->dli_saddr) info->dli_saddr = (char *)info->dli_saddr + (at - original);
    return answer;
}

/* As if it were one more image. */
static int show(uint64_t bias, uint64_t text, uint64_t text_size, uint64_t unwind,
                int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const ElfW(Phdr) ph[] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_vaddr = text - bias,
         .p_filesz = text_size,
         .p_memsz = text_size},
        {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = unwind - bias},
    };
    struct dl_phdr_info info = {.dlpi_addr = bias, .dlpi_name = "", .dlpi_phdr = ph, .dlpi_phnum = 2};
    return each(&info, sizeof info, arg);
}

static int show_image(const move_live_image *told, int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const move_boot_links *l = &told->links;
    return show(l->bias, l->text + l->bias, l->text_size, told->unwind, each, arg);
}

static int iterate(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    int answer = next_phdr(each, arg);
    for (uint64_t k = 0; k < count && !answer; k++)
        if (images[k].unwind) answer = show_image(&images[k], each, arg);
    for (uint64_t k = 0; k < moved_pieces_now.count && !answer; k++) {
        const moved_piece *p = &moved_pieces_now.all[k];
        if (p->image.text_size && p->unwind)
            answer = show(p->image.bias, p->image.text, p->image.text_size, p->unwind, each, arg);
    }
    return answer;
}

const moved_finder moved_finders[] = {
    {"_dl_find_object", find_object, &next_object, true},
    {"dl_iterate_phdr", iterate, &next_phdr, true},
    {"_dl_find_dso_for_object", find_image, &next_image, false},
    {"_dl_addr", find_name, &next_name, false},
    {NULL, NULL, NULL, false},
};
