/* What debuggers that come later see of a tool in a process that ran already, and of moved code.
 *
 * gdb knows of an image what the dynamic linker's list says, and of code that no image holds what an image tells by
 * gdb's JIT interface (run/debugger.h). So the tool's file is in such a list: one of its own, which glibc keeps for
 * each namespace (dlmopen), and chains behind its main one (r_next, since 2.35). The dynamic linker itself finds images
 * by other lists, and so does all that the program can ask it; it follows this chain when it adds a namespace, only.
 *
 * Other dynamic linkers have one list, which they go by themselves: nothing is entered there. */
#include "moved/pieces.h"
#include "base/own.h"
#include "run/run.h"

#include <elf.h>
#include <string.h>

/* The first version whose r_debug has a successor: the name is among those of its symbols' versions. */
static bool has_namespaces(const struct r_debug *debug)
{
    static const char since[] = "GLIBC_2.35";
    for (size_t k = 1; k < moved_now.image_count; k++) {
        const moved_image *i = &moved_now.images[k];
        uint64_t size, at = i->phdr && i->low == debug->r_ldbase ? moved_dynamic_address(i, DT_STRTAB) : 0;
        if (!at || !moved_dynamic_value(i, DT_STRSZ, &size) || !moved_is_mapped(i, at, size)) continue;
        return memmem((const void *)at, size, since, sizeof since) != NULL;
    }
    return false;
}

static uint64_t dynamic_of(const Elf64_Ehdr *h)
{
    const Elf64_Phdr *ph = (const void *)((const char *)h + h->e_phoff);
    for (unsigned k = 0; k < h->e_phnum; k++)
        if (ph[k].p_type == PT_DYNAMIC) return inl_own_base() + ph[k].p_vaddr;
    return 0;
}

/* Behind the last of those that are there. */
static void enter(moved_namespace *first, const char *file)
{
    moved_entered *s = &moved_now.entered;
    moved_namespace copy, **last = &first->next;
    s->map = (struct link_map){.l_addr = inl_own_base(),
                               .l_name = (char *)file,
                               .l_ld = (void *)dynamic_of((const Elf64_Ehdr *)inl_own_base())};
    s->own.debug = (struct r_debug){.r_version = 2, .r_map = &s->map, .r_state = RT_CONSISTENT};
    if (first->debug.r_version > 1)
        for (unsigned n = 0; *last && n < 64; n++) {
            if (!run_read(&copy, (uint64_t)(uintptr_t)*last, sizeof copy)) return;
            last = &(*last)->next;
        }
    s->before = last;
    s->first = first;
    *last = &s->own;
    if (first->debug.r_version == 1) {
        first->debug.r_version = 2;
        s->first_alone = true;
    }
}

static void leave(void)
{
    moved_entered *s = &moved_now.entered;
    if (!s->first) return;
    *s->before = s->own.next;
    if (s->first_alone && !s->first->next) s->first->debug.r_version = 1;
    s->first = NULL;
}

void moved_shown_begin(void)
{
    struct r_debug debug;
    uint64_t at = moved_linker_state(&debug);
    move_live_image *images = moved_live_shown();
    const move_live_image *known;
    for (uint64_t k = moved_live_images(&known); k-- > 0;)
        if (images[k].shown.size) run_debugger_tell(&images[k].shown, true);
    ((move_told *)MOVE_TOLD_BASE)->threads = (uint64_t)(uintptr_t)&run_here.threads;
    ((move_told *)MOVE_TOLD_BASE)->workers = (uint64_t)(uintptr_t)&run_here.workers;
    const char *file = moved_live_file();
    /* A program that looks at the word itself sees another version in it. One that runs under the tool from its first
     * instruction on has no debugger that comes later and knows nothing of the tool. */
    if (at && file && !moved_began_here() && has_namespaces(&debug)) enter((moved_namespace *)at, file);
}

void moved_shown_end(void) { leave(); }

/* What goes is still mapped, its size is 0. */
void moved_pieces_shown(void)
{
    moved_piece *all = (moved_piece *)moved_pieces_now.all;
    for (uint64_t k = 0; k < moved_pieces_now.count; k++) {
        moved_piece *p = &all[k];
        bool shows = p->image.text_size && p->shown.size;
        if (shows == p->is_shown) continue;
        p->is_shown = shows;
        run_debugger_tell(&p->shown, shows);
        if (!shows) p->shown = (run_debug_file){0};
    }
}
