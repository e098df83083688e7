/* Who in a process that ran already looks up what code belongs to: the dynamic linker knows nothing of new code there,
 * so the procedures that it is asked by lead here first.
 *
 *     _dl_find_object               libgcc, since 2.35 of glibc: an unwind table for an address
 *     dl_iterate_phdr               other unwinders: all images, one after the other
 *     _dl_find_dso_for_object       dlopen and its like: whose code calls?
 *     _dl_sym, _dl_vsym             dlsym and dlvsym, RTLD_NEXT above all: likewise; found where the C library has its
 *                                   symbols
 *     dladdr, dladdr1, backtrace_symbols, backtrace_symbols_fd
 *                                   what is an address called?
 *     _Unwind_GetIP, _Unwind_GetIPInfo and what they go with: walks.c */
#include "moved/passage.h"
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
static void *(*next_symbol)(void *, const char *, uint64_t);
static void *(*next_version)(void *, const char *, const char *, uint64_t);
static int (*next_name)(const void *, Dl_info *);
static int (*next_name_and)(const void *, Dl_info *, void **, int);
static char **(*next_names)(void *const *, int);
static void (*next_names_to)(void *const *, int, int);

/* The unwind table of the moved code that an address is in; 0: there is none. */
static uint64_t unwind_of(const moved_image *i, uint64_t pc)
{
    const moved_piece *piece = moved_piece_at(pc);
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    if (piece) return piece->unwind;
    for (uint64_t k = 0; k < count; k++)
        if (images[k].links.bias == i->bias) return images[k].unwind;
    const moved_later *later = moved_later_of(i->bias);
    return later ? later->told.unwind : 0;
}

/* What the linker would say of an image, but with this code and its table. */
static int object_like(uint64_t in_image, uint64_t text, uint64_t size, uint64_t unwind, found_object *out)
{
    int answer = next_object((void *)(uintptr_t)in_image, out);
    if (answer) return answer;
    out->low = (void *)(uintptr_t)text;
    out->high = (void *)(uintptr_t)(text + size);
    out->unwind = (void *)(uintptr_t)unwind;
    return 0;
}

/* The boot code belongs to no image: it is taken for a piece of the first. */
static int find_object(void *pc, found_object *out)
{
    MOVED_PASSES;
    uint64_t at = (uint64_t)(uintptr_t)pc;
    const move_live_image *boot = moved_live_boot(), *images;
    if (boot->unwind && at - boot->links.text < boot->links.text_size && moved_live_images(&images))
        return object_like(images->links.low + images->links.bias, boot->links.text, boot->links.text_size,
                           boot->unwind, out);
    const moved_image *i = moved_at(at);
    uint64_t unwind = i ? unwind_of(i, at) : 0;
    return unwind ? object_like(i->map_base, i->text, i->text_size, unwind, out) : next_object(pc, out);
}

static void *find_image(uint64_t pc)
{
    MOVED_PASSES;
    const moved_image *i = moved_at(pc);
    return next_image(i ? i->map_base : pc);
}

static void *find_symbol(void *handle, const char *name, uint64_t caller)
{
    MOVED_PASSES;
    return next_symbol(handle, name, moved_old_address(caller));
}

static void *find_version(void *handle, const char *name, const char *version, uint64_t caller)
{
    MOVED_PASSES;
    return next_version(handle, name, version, moved_old_address(caller));
}

static const void *old_place(const void *address)
{
    return (const void *)(uintptr_t)moved_old_address((uint64_t)(uintptr_t)address);
}

static int find_name(const void *address, Dl_info *info)
{
    MOVED_PASSES;
    return next_name(old_place(address), info);
}

static int find_name_and(const void *address, Dl_info *info, void **more, int what)
{
    MOVED_PASSES;
    return next_name_and(old_place(address), info, more, what);
}

/* More of them than anybody prints are passed on as they are. */
enum { MOST_FRAMES = 512 };
static void *const *old_places(void *const *from, int count, void *room[MOST_FRAMES])
{
    if (count > MOST_FRAMES) return from;
    for (int k = 0; k < count; k++) room[k] = (void *)(uintptr_t)old_place(from[k]);
    return room;
}

static char **find_names(void *const *addresses, int count)
{
    MOVED_PASSES;
    void *room[MOST_FRAMES];
    return next_names(old_places(addresses, count, room), count);
}

static void find_names_to(void *const *addresses, int count, int fd)
{
    MOVED_PASSES;
    void *room[MOST_FRAMES];
    next_names_to(old_places(addresses, count, room), count, fd);
}

/* As if it were one more image, which begins with this code: LLVM's unwinder passes over images that are loaded behind
 * what it looks for, and reads no more of a table than its header's size. */
static int show(uint64_t text, uint64_t text_size, uint64_t unwind, int (*each)(struct dl_phdr_info *, size_t, void *),
                void *arg)
{
    const uint64_t unwind_size = moved_index_size(unwind);
    const ElfW(Phdr) ph[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = text_size, .p_memsz = text_size},
        {.p_type = PT_GNU_EH_FRAME,
         .p_flags = PF_R,
         .p_vaddr = unwind - text,
         .p_filesz = unwind_size,
         .p_memsz = unwind_size},
    };
    struct dl_phdr_info info = {.dlpi_addr = text, .dlpi_name = "", .dlpi_phdr = ph, .dlpi_phnum = 2};
    return each(&info, sizeof info, arg);
}

static int show_image(const move_live_image *told, int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    const move_boot_links *l = &told->links;
    return show(l->text + l->bias, l->text_size, told->unwind, each, arg);
}

static int iterate(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    MOVED_PASSES;
    const move_live_image *images;
    uint64_t count = moved_live_images(&images);
    int answer = next_phdr(each, arg);
    if (!answer && moved_live_boot()->unwind) answer = show_image(moved_live_boot(), each, arg);
    for (uint64_t k = 0; k < count && !answer; k++)
        if (images[k].unwind) answer = show_image(&images[k], each, arg);
    for (const moved_later *l = moved_later_first(); l && !answer; l = l->next)
        if (l->told.unwind) answer = show_image(&l->told, each, arg);
    for (uint64_t k = 0; k < moved_pieces_now.count && !answer; k++) {
        const moved_piece *p = &moved_pieces_now.all[k];
        if (p->image.text_size && p->unwind) answer = show(p->image.text, p->image.text_size, p->unwind, each, arg);
    }
    return answer;
}

const moved_finder moved_finders[MOVED_FINDERS + 1] = {
    {"_dl_find_object", find_object, &next_object, MOVED_UNWINDS},
    {"dl_iterate_phdr", iterate, &next_phdr, MOVED_UNWINDS},
    {"_dl_find_dso_for_object", find_image, &next_image, MOVED_FINDS},
    {"dladdr", find_name, &next_name, MOVED_FINDS},
    {"dladdr1", find_name_and, &next_name_and, MOVED_FINDS},
    {"backtrace_symbols", find_names, &next_names, MOVED_FINDS},
    {"backtrace_symbols_fd", find_names_to, &next_names_to, MOVED_FINDS},
    {"_dl_sym", find_symbol, &next_symbol, MOVED_FINDS},
    {"_dl_vsym", find_version, &next_version, MOVED_FINDS},
    {"_Unwind_Backtrace", moved_walk_begins, &moved_next_walk, MOVED_WALKS},
    {"_Unwind_GetIP", moved_find_ip, &moved_next_ip, MOVED_WALKS},
    {"_Unwind_GetIPInfo", moved_find_ip_info, &moved_next_ip_info, MOVED_WALKS},
    {"_Unwind_RaiseException", moved_raise_begins, &moved_next_raise, MOVED_WALKS},
    {"_Unwind_ForcedUnwind", moved_forced_begins, &moved_next_forced, MOVED_WALKS},
    {"_Unwind_Resume", moved_resume_begins, &moved_next_resume, MOVED_WALKS},
    {"_Unwind_Resume_or_Rethrow", moved_rethrow_begins, &moved_next_rethrow, MOVED_WALKS},
};
