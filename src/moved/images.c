/* What is mapped into a rewritten program when it starts: the program itself, from the auxiliary vector,
 * and what the dynamic linker has loaded, from its list, which is looked at again whenever the linker has changed it
 * (sites.c). A rewritten image is known by its note (see elf_notes.c), which holds its assumed bias. */
#include "moved/pieces.h"
#include "base/page.h"
#include "base/search.h"
#include "base/sys.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { NOTE_LINKS = 1 };

/* --- lookup --- */

const moved_image *moved_image_at(uint64_t pc)
{
    const moved_image *end = moved_now.images + moved_now.image_count;
    for (const moved_image *i = moved_now.images; i < end; i++)
        if (pc - i->low < i->high - i->low) return i;
    return NULL;
}

const moved_image *moved_at(uint64_t pc)
{
    const moved_image *end = moved_now.images + moved_now.image_count;
    for (const moved_image *i = moved_now.images; i < end; i++)
        if (pc - i->text < i->text_size) return i;
    const moved_piece *piece = moved_pieces_now.count ? moved_piece_at(pc) : NULL;
    return piece ? &piece->image : NULL;
}

/* The block at or before `off` in moved code; NULL: none. */
static const uint32_t *block_at(const move_carried_map *map, uint64_t off)
{
    size_t behind = INL_FIRST(map->count, k, map->entries[k].new_off > off);
    return behind ? &map->entries[behind - 1].new_off : NULL;
}

uint32_t moved_block_of(const moved_image *i, uint32_t off)
{
    const uint32_t *block = i->map ? block_at(i->map, off) : NULL;
    return block ? (uint32_t)((block - &i->map->entries[0].new_off) / 2) : UINT32_MAX;
}

/* What is behind a call that seems not to return, if `off` lies there in its block; else the block. */
static uint32_t old_of(const move_carried_map *map, const uint32_t *block, uint64_t off)
{
    size_t behind = INL_FIRST(map->behind_count, k, map->entries[map->count + k].new_off >= off);
    const uint32_t *call = behind ? &map->entries[map->count + behind - 1].new_off : NULL;
    return call && call[0] >= block[0] ? call[1] : block[1];
}

assumed_addr moved_original(real_addr a)
{
    const moved_image *moved = moved_at(a.at), *i = moved ? moved : moved_image_at(a.at);
    uint64_t off = moved ? a.at - moved->text : 0;
    const uint32_t *block = moved && moved->map ? block_at(moved->map, off) : NULL;
    if (!i || (moved && !block)) return (assumed_addr){a.at};
    return (assumed_addr){(moved ? moved->map_base + old_of(moved->map, block, off) : a.at) + i->to_assumed};
}

uint64_t moved_shift(assumed_addr low)
{
    for (size_t k = 0; k < moved_now.image_count; k++) {
        const moved_image *i = &moved_now.images[k];
        if (i->is_rewritten && i->low + i->to_assumed == low.at) return -i->to_assumed;
    }
    return 0;
}

bool moved_others(size_t k, moved_mapped *out)
{
    if (k >= moved_now.image_count) return false;
    const moved_image *i = &moved_now.images[k];
    bool other = i->phdr && (!i->is_rewritten || moved_is_live()) && i->name && i->name[0];
    *out = (moved_mapped){other ? i->name : NULL, i->low, i->high, i->bias};
    return true;
}

/* --- finding --- */

static const move_boot_links *links_in_notes(const char *at, size_t size)
{
    const char *end = at + size;
    while (at + sizeof(Elf64_Nhdr) <= end) {
        const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
        const char *name = at + sizeof *n, *content = name + ((n->n_namesz + 3u) & ~3u);
        at = content + ((n->n_descsz + 3u) & ~3u);
        if (at > end) break;
        if (n->n_type == NOTE_LINKS && n->n_namesz == sizeof "Inlay" && !memcmp(name, "Inlay", 6) &&
            n->n_descsz == sizeof(move_boot_links))
            return (const move_boot_links *)content;
    }
    return NULL;
}

/* NULL: it is not all there. */
static const move_carried_map *map_at(const moved_image *i, uint64_t at)
{
    const move_carried_map *map = (const void *)at;
    uint64_t room = moved_mapped_from(i, at);
    uint64_t most = room < sizeof *map ? 0 : (room - sizeof *map) / sizeof *map->entries;
    if (room < sizeof *map || map->count > most || map->behind_count > most - map->count) return NULL;
    return map->states <= room ? map : NULL;
}

/* Fills in what a rewritten image's links say; they may not be aligned. One that was rewritten with another program
 * counts in that one's counters. */
static void adopt_links(moved_image *i, const void *at)
{
    move_boot_links links;
    memcpy(&links, at, sizeof links);
    if (links.set && links.set != moved_handoff_data.data->id)
        run_say("%s was rewritten with another program, what it counts is wrong; rewrite both together (--lib)",
                i->name);
    i->is_rewritten = true;
    i->text = i->bias + links.text;
    i->text_size = links.text_size;
    if (links.map) i->map = moved_is_live() ? (const void *)(i->bias + links.map) : map_at(i, i->bias + links.map);
    i->map_base = i->bias + links.low;
    i->to_assumed = links.bias - i->bias;
}

/* Readers take no lock: a place is taken again only when there is no new one. */
static moved_image *free_place(void)
{
    if (moved_now.image_count < MOVED_MAX_IMAGES) return &moved_now.images[moved_now.image_count];
    for (size_t k = 1; k < MOVED_MAX_IMAGES; k++)
        if (!moved_now.images[k].phdr) return &moved_now.images[k];
    return NULL;
}

/* What its program headers say; the links of a rewritten image, or NULL. */
static const move_boot_links *outline(moved_image *i)
{
    const Elf64_Phdr *ph = i->phdr;
    const move_boot_links *links = NULL;
    i->low = ~0ull;
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t at = i->bias + ph[k].p_vaddr;
        if (ph[k].p_type == PT_NOTE && !links && moved_is_mapped(i, at, ph[k].p_filesz))
            links = links_in_notes((const char *)at, ph[k].p_filesz);
        if (ph[k].p_type != PT_LOAD) continue;
        if (at < i->low) i->low = inl_page_down(at);
        if (at + ph[k].p_memsz > i->high) i->high = at + ph[k].p_memsz;
    }
    return links;
}

/* False: memory is used up. Smaller copies stay: somebody may be reading them. */
static bool has_room(moved_image *place, unsigned count)
{
    Elf64_Phdr *copies = count > place->room ? malloc(count * sizeof *copies) : NULL;
    if (copies) {
        place->copies = copies;
        place->room = count;
    }
    return count <= place->room;
}

/* Who reads the place meanwhile finds the headers of one or the other, or none. Without memory for copies they are
 * those that are mapped. */
static void set(moved_image *place, moved_image new)
{
    __atomic_store_n(&place->phnum, 0, __ATOMIC_RELEASE);
    if (new.phnum && has_room(place, new.phnum))
        new.phdr = memcpy(place->copies, new.phdr, new.phnum * sizeof *place->copies);
    new.copies = place->copies;
    new.room = place->room;
    const unsigned count = new.phnum;
    new.phnum = 0;
    *place = new;
    __atomic_store_n(&place->phnum, count, __ATOMIC_RELEASE);
}

static void add(const void *phdr, unsigned phnum, uint64_t bias, const char *name, bool main)
{
    moved_image *place = free_place();
    moved_image new = {.bias = bias, .phdr = phdr, .phnum = phnum, .name = name, .is_new = true}, *i = &new;
    const move_boot_links *links = place ? outline(i) : NULL;
    if (!place || i->low >= i->high) return;
    if (moved_is_live()) links = moved_live_links(bias);
    else if (main) links = moved_handoff_data.links;
    if (links) adopt_links(i, links);
    set(place, new);
    if (place == &moved_now.images[moved_now.image_count])
        __atomic_fetch_add(&moved_now.image_count, 1, __ATOMIC_RELEASE);
}

static uint64_t aux(uint64_t type)
{
    for (const Elf64_auxv_t *a = moved_handoff_data.auxv; a->a_type; a++)
        if (a->a_type == type) return a->a_un.a_val;
    return 0;
}

/* Its program headers are at the same distance as in the file, behind everything perhaps. */
static const Elf64_Phdr *headers_at(uint64_t base, unsigned *count)
{
    Elf64_Ehdr h;
    Elf64_Phdr last;
    if (!run_read(&h, base, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_phentsize != sizeof last ||
        !h.e_phnum)
        return NULL;
    uint64_t at = base + h.e_phoff;
    *count = h.e_phnum;
    return run_read(&last, at + (h.e_phnum - 1) * sizeof last, sizeof last) ? (const Elf64_Phdr *)at : NULL;
}

/* glibc's variable, or where musl's leads: for programs whose dynamic section has no room for the word (tcc's), or
 * cannot be written (-z rodynamic). */
static uint64_t word_in_linker(void)
{
    moved_image linker = {.bias = aux(AT_BASE)};
    linker.phdr = linker.bias ? headers_at(linker.bias, &linker.phnum) : NULL;
    if (!linker.phdr) return 0;
    outline(&linker);
    uint64_t at = moved_symbol(&linker, "_r_debug"), leads = at ? 0 : moved_symbol(&linker, "_dl_debug_addr");
    if (leads && !run_read(&at, leads, sizeof at)) return 0;
    return at;
}

uint64_t moved_linker_state(struct r_debug *out)
{
    uint64_t at, ignored;
    if (moved_is_live() && (at = moved_live_word(&ignored)) != 0) return run_read(out, at, sizeof *out) ? at : 0;
    if (!moved_now.image_count) return 0;
    /* 0: a static program, which has none yet */
    if (!moved_dynamic_value(&moved_now.images[0], DT_DEBUG, &at) || !at) at = word_in_linker();
    return at && run_read(out, at, sizeof *out) ? at : 0;
}

uint64_t moved_linker_tells(void)
{
    struct r_debug debug;
    uint64_t tells = 0;
    if (moved_is_live() && moved_live_word(&tells) && tells) return tells; /* the word may be empty yet */
    return moved_linker_state(&debug) ? debug.r_brk : 0;
}

/* The list may name what the process has unmapped or moved (its vdso), and no fault can be caught yet. */
static bool is_mapped_there(uint64_t at)
{
    unsigned char in_core;
    return !sys_call3(SYS_mincore, (long)inl_page_down(at), 1, (long)&in_core);
}

/* Is all of a library mapped that comes from its file? */
static bool is_whole(const Elf64_Phdr *ph, unsigned count, uint64_t bias)
{
    enum { AT_ONCE = 1024 };
    unsigned char in_core[AT_ONCE];
    for (unsigned k = 0; k < count; k++) {
        uint64_t at = inl_page_down(bias + ph[k].p_vaddr), end = inl_page_up(bias + ph[k].p_vaddr + ph[k].p_filesz);
        for (uint64_t size; ph[k].p_type == PT_LOAD && at < end; at += size) {
            size = end - at < (uint64_t)AT_ONCE * INL_PAGE ? end - at : (uint64_t)AT_ONCE * INL_PAGE;
            if (sys_call3(SYS_mincore, (long)at, (long)size, (long)in_core)) return false;
        }
    }
    return true;
}

void moved_images_look(void)
{
    for (size_t k = 1; k < moved_now.image_count; k++) {
        moved_image *i = &moved_now.images[k];
        if (i->phdr && !is_mapped_there(i->low)) i->phnum = 0;
    }
}

static void add_library(const struct link_map *m, bool changes)
{
    unsigned count;
    const Elf64_Phdr *headers = m->l_addr && is_mapped_there(m->l_addr) ? headers_at(m->l_addr, &count) : NULL;
    if (headers && (!changes || is_whole(headers, count, m->l_addr))) add(headers, count, m->l_addr, m->l_name, false);
}

static moved_image *known(const struct link_map *m)
{
    for (size_t k = 1; k < moved_now.image_count; k++)
        if (moved_now.images[k].phdr && moved_now.images[k].bias == m->l_addr) return &moved_now.images[k];
    return NULL;
}

/* The linker has given back the name of one that is gone. */
static void tell(const moved_image *i, bool gone)
{
    if (moved_now.hooks.listed && i) moved_now.hooks.listed(gone ? NULL : i->name, i->bias, gone);
}

/* While the linker changes a list, what is new in it is not all mapped, and what goes is still there. When the tool
 * comes (`first`) all that is mapped counts: threads may run it, so that it cannot be changed any more when the linker
 * has done. */
static void compare_list(const struct r_debug *debug, const struct link_map *program, bool first)
{
    for (const struct link_map *m = debug->r_map; m; m = m->l_next) {
        if (m == program || m->l_addr == aux(AT_SYSINFO_EHDR)) continue;
        bool is_new = !known(m) && (first || debug->r_state == RT_CONSISTENT);
        if (is_new) add_library(m, debug->r_state != RT_CONSISTENT);
        moved_image *i = known(m);
        if (i) i->is_there = true;
        if (i && i->is_unlisted && debug->r_state == RT_CONSISTENT) { /* the tool was there before the linker's list */
            i->name = m->l_name;
            i->is_unlisted = false;
        }
        if (is_new) tell(i, false);
    }
}

/* A list for each namespace (dlmopen, auditors): glibc chains them behind the first, since 2.35. One of them may be the
 * tool's own (shown.c). */
static bool compare_lists(bool first)
{
    enum { MOST = 64 };
    struct r_debug debug;
    moved_namespace n;
    uint64_t at = moved_linker_state(&debug);
    if (!at) return false;
    for (size_t k = 1; k < moved_now.image_count; k++) moved_now.images[k].is_there = false;
    compare_list(&debug, debug.r_map, first);
    n.next = NULL;
    if (debug.r_version > 1 && !run_read(&n, at, sizeof n)) n.next = NULL;
    for (unsigned k = 0; k < MOST && n.next; k++) {
        bool own = n.next == &moved_now.entered.own;
        if (!run_read(&n, (uint64_t)(uintptr_t)n.next, sizeof n)) break;
        if (!own) compare_list(&n.debug, NULL, first);
    }
    return true;
}

/* Of what was mapped when the tool came, some is in no list that can be found: a namespace of an older linker's, or
 * what a static program without names has opened. It stays known. */
static void add_unlisted(void)
{
    const move_live_image *told;
    uint64_t count = moved_is_live() ? moved_live_images(&told) : 0;
    for (uint64_t k = 0; k < count; k++) {
        struct link_map m = {.l_addr = told[k].links.bias, .l_name = ""};
        if (m.l_addr == moved_now.images[0].bias || known(&m)) continue;
        add_library(&m, false);
        if (known(&m)) known(&m)->is_there = known(&m)->is_unlisted = true;
    }
}

static void forget_gone(run_thread *t)
{
    for (size_t k = 1; k < moved_now.image_count; k++) {
        moved_image *i = &moved_now.images[k];
        if (i->is_there || i->is_unlisted) continue;
        if (i->phdr) tell(i, true);
        if (i->phdr && moved_is_live()) moved_later_close(t, i);
        set(i, (moved_image){0});
    }
}

static void open_new(run_thread *t)
{
    for (size_t k = 1; k < moved_now.image_count; k++) {
        moved_image *i = &moved_now.images[k];
        const moved_later *l = i->phdr && i->is_new && !i->text_size ? moved_later_open(t, i) : NULL;
        if (l) adopt_links(i, &l->told.links);
    }
}

void moved_images_find(void)
{
    add((const void *)aux(AT_PHDR), (unsigned)aux(AT_PHNUM), moved_handoff_data.bias, "", true);
    compare_lists(true);
    add_unlisted();
    forget_gone(NULL);
}

void moved_images_changed(run_thread *t)
{
    if (!compare_lists(false)) return;
    forget_gone(t);
    if (moved_is_live()) open_new(t);
    moved_patch_sites();
    if (!moved_owner_refusal()) return;
    run_say("%s: it ends here; run it under the JIT engine (inlay run)", moved_owner_refusal());
    run_process_exit(t, 1);
}
