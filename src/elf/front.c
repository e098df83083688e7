/* Room for more program headers at the file's front.
 *
 * Tools that rebuild a file (strip, objcopy, eu-strip, patchelf) put the program headers right behind the ELF
 * header, and so do linkers; a table anywhere else does not survive them. It grows at its place, over what stands
 * behind it: notes, the interpreter's name, dynamic tables. Nothing but program headers and dynamic entries says
 * where those are, so they go to the new read-only segment:
 *
 *     ELF header | program headers | .interp | notes | .gnu.hash | .dynsym ...
 *     ELF header | program headers . . . . . . . . . |           | .dynsym ...        what is left
 *
 * What moves together is a *unit*: the range of a program header, or a dynamic table's section. Anything else in
 * the way (a note of an unknown owner, relocations that a static program's code finds by itself) takes the room
 * away. Then the new segments become one, a second header of the same note goes, and if that is not enough the
 * table goes behind the original's segments, where kernel and dynamic linkers find it, but not those tools.
 */
#include "elf/private.h"

enum { AT_FRONT = sizeof(Elf64_Ehdr), ENTRY = sizeof(Elf64_Phdr) };

/* --- what can move --- */

static size_t padded(uint32_t n) { return ((size_t)n + 3) & ~(size_t)3; }

typedef struct note {
    const char *owner;
    size_t desc, desc_size, next; /* offsets */
} note;

static bool read_note(const uint8_t *bytes, size_t size, size_t at, uint64_t align, note *out)
{
    Elf64_Nhdr n;
    if (size < sizeof n || at > size - sizeof n) return false;
    memcpy(&n, bytes + at, sizeof n);
    size_t name = at + sizeof n;
    if (n.n_namesz == 0 || n.n_namesz > size - name || padded(n.n_namesz) > size - name || bytes[name + n.n_namesz - 1])
        return false;
    *out = (note){.owner = (const char *)bytes + name, .desc = name + padded(n.n_namesz), .desc_size = n.n_descsz};
    if (n.n_descsz > size - out->desc) return false;
    out->next = (out->desc + n.n_descsz + align - 1) & ~(size_t)(align - 1);
    return true;
}

/* Chromium's crash handler: the distance from the word itself to a variable. */
static bool is_crashpad(const note *n) { return strcmp(n->owner, "Crashpad") == 0 && n->desc_size == 8; }

static bool is_known(const note *n)
{
    static const char *const owners[] = {"GNU", "Go", "FDO"};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        if (strcmp(n->owner, owners[i]) == 0) return true;
    return is_crashpad(n);
}

static bool notes_can_move(const elf_writer *w, const Elf64_Phdr *p)
{
    const uint8_t *bytes = image_view_bytes(&w->im->view, p->p_offset, p->p_filesz);
    uint64_t align = p->p_align == 8 ? 8 : 4;
    note n;
    for (size_t at = 0; bytes && at < p->p_filesz; at = n.next)
        if (!read_note(bytes, p->p_filesz, at, align, &n) || !is_known(&n)) return false;
    return bytes != NULL;
}

static void add_unit(elf_writer *w, elf_unit unit)
{
    uint64_t in_file = elf_phdr(w, PT_LOAD)->p_filesz, offset = unit.addr - w->front.low;
    if (unit.size == 0 || w->front.count == ELF_UNITS) return;
    if (offset > in_file || unit.size > in_file - offset || unit.align > INL_PAGE) return;
    for (size_t i = 0; i < w->front.count; i++) { /* notes that two program headers name */
        elf_unit *u = &w->front.units[i];
        if (unit.tag || u->tag || unit.addr >= u->addr + u->size || u->addr >= unit.addr + unit.size) continue;
        uint64_t end = unit.addr + unit.size > u->addr + u->size ? unit.addr + unit.size : u->addr + u->size;
        if (unit.addr < u->addr) u->addr = unit.addr;
        if (unit.align > u->align) u->align = unit.align;
        u->size = end - u->addr;
        return;
    }
    w->front.units[w->front.count++] = unit;
}

static void find_by_headers(elf_writer *w)
{
    for (size_t i = 0; i < w->phdr_count; i++) {
        const Elf64_Phdr *p = &w->phdrs[i];
        if (p->p_type != PT_INTERP && (p->p_type != PT_NOTE || !notes_can_move(w, p))) continue;
        add_unit(w, (elf_unit){.addr = p->p_vaddr,
                               .size = p->p_filesz,
                               .align = p->p_align ? p->p_align : 1,
                               .is_note = p->p_type == PT_NOTE});
    }
}

static void find_by_tags(elf_writer *w)
{
    static const int64_t tags[] = {DT_HASH, DT_GNU_HASH, DT_SYMTAB, DT_STRTAB, DT_VERSYM, DT_VERNEED, DT_VERDEF};
    const Elf64_Phdr *p = elf_phdr(w, PT_DYNAMIC);
    const uint8_t *bytes = p ? image_view_bytes(&w->im->view, p->p_offset, p->p_filesz) : NULL;
    for (size_t at = 0; bytes && at + sizeof(Elf64_Dyn) <= p->p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        Elf64_Shdr s;
        memcpy(&d, bytes + at, sizeof d);
        if (d.d_tag == DT_NULL) return;
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
            uint32_t section = d.d_tag == tags[i] ? elf_section_at(w, d.d_un.d_ptr, SHT_NULL) : 0;
            if (section && image_view_section(&w->im->view, section, &s))
                add_unit(w, (elf_unit){.addr = s.sh_addr, .size = s.sh_size, .align = 8, .tag = d.d_tag});
        }
    }
}

/* --- is there room? --- */

/* The unit that holds the byte at an offset of the file's front, or NULL. */
static elf_unit *unit_at(elf_writer *w, uint64_t low, uint64_t offset)
{
    for (size_t i = 0; i < w->front.count; i++)
        if (low + offset - w->front.units[i].addr < w->front.units[i].size) return &w->front.units[i];
    return NULL;
}

/* Where something that cannot move begins behind the program headers, at most `limit`. Old section headers do not
 * count: Go's linker has them there. */
static uint64_t room_end(elf_writer *w, uint64_t low, uint64_t limit)
{
    const Elf64_Ehdr *h = &w->im->view.header;
    for (uint64_t at = AT_FRONT + w->phdr_count * ENTRY; at < limit; at++) {
        bool is_free = w->old[at] == 0 || at - h->e_shoff < w->im->view.section_count * sizeof(Elf64_Shdr);
        if (!is_free && !unit_at(w, low, at)) return at;
    }
    return limit;
}

/* A unit of notes that begins there: Inlay's own go with it, under its program header. */
static elf_unit *notes_before(elf_writer *w, uint64_t end)
{
    for (size_t i = 0; i < w->front.count; i++)
        if (w->front.units[i].is_note && w->front.units[i].align <= 4 && w->front.units[i].addr < end)
            return &w->front.units[i];
    return NULL;
}

/* How many program headers there will be at most, notes aside. */
static size_t headers_needed(elf_writer *w)
{
    const Elf64_Phdr *dynamic = elf_phdr(w, PT_DYNAMIC);
    const image_unwind_range *ranges;
    bool unwinds = image_unwind_ranges(w->im, &ranges) && !elf_phdr(w, PT_GNU_EH_FRAME);
    bool writes = dynamic && (image_interp(w->im) || w->options->run_path || w->im->view.header.e_type == ET_DYN);
    return w->phdr_count + 2 + writes + unwinds;
}

/* `less`: how many program headers to save. */
static bool try(elf_writer *w, const Elf64_Phdr *first, unsigned less)
{
    uint64_t low = w->front.low, limit = AT_FRONT + (headers_needed(w) + 1 - less) * ENTRY;
    if (limit > first->p_filesz) return false;
    uint64_t end = room_end(w, low, limit);
    w->front.notes = notes_before(w, low + end);
    if (end < limit - (w->front.notes ? ENTRY : 0)) return false;
    w->front.fits = true;
    for (size_t i = 0; i < w->front.count; i++) w->front.units[i].moves = w->front.units[i].addr < low + limit;
    return true;
}

/* Who looks for properties takes PT_GNU_PROPERTY, which is the same range, where it is there. */
static Elf64_Phdr *second_of_properties(elf_writer *w)
{
    const Elf64_Phdr *properties = elf_phdr(w, PT_GNU_PROPERTY);
    for (size_t i = 0; properties && i < w->phdr_count; i++)
        if (w->phdrs[i].p_type == PT_NOTE && w->phdrs[i].p_vaddr == properties->p_vaddr &&
            w->phdrs[i].p_filesz == properties->p_filesz)
            return &w->phdrs[i];
    return NULL;
}

static bool try_with_less(elf_writer *w, const Elf64_Phdr *first)
{
    Elf64_Phdr *second = second_of_properties(w);
    if (try(w, first, 1)) {
        w->front.one_segment = true;
        return true;
    }
    if (!second || !try(w, first, 2)) return false;
    w->front.one_segment = true;
    w->phdr_count--;
    memmove(second, second + 1, (size_t)(w->phdrs + w->phdr_count - second) * sizeof *second);
    return true;
}

void elf_front_plan(elf_writer *w)
{
    const Elf64_Phdr *first = elf_phdr(w, PT_LOAD);
    if (first && first->p_offset == 0 && w->header.e_phoff == AT_FRONT) {
        w->front.low = first->p_vaddr;
        find_by_headers(w);
        find_by_tags(w);
        if (try(w, first, 0) || try_with_less(w, first)) return;
    }
    w->front.notes = NULL;
    elf_notice(w, "its program headers could not stay at its front: strip and objcopy would damage it");
}

/* --- moving --- */

static void aim_crashpad(inl_bytes *b, size_t from, const elf_unit *u)
{
    note n;
    uint64_t align = u->align == 8 ? 8 : 4;
    for (size_t at = 0; u->is_note && read_note(b->data + from, u->size, at, align, &n); at = n.next) {
        uint64_t distance;
        if (!is_crashpad(&n)) continue;
        memcpy(&distance, b->data + from + n.desc, sizeof distance);
        distance += u->addr - u->to;
        inl_bytes_set(b, from + n.desc, &distance, sizeof distance);
    }
}

/* Edits of what has moved are made there. */
static void take_edits(elf_writer *w, uint64_t offset, size_t to, uint64_t size)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->edits.count; i++) {
        elf_edit edit = w->edits.items[i];
        if (edit.offset >= offset && edit.offset + edit.size <= offset + size)
            inl_bytes_set(&w->ro, to + (size_t)(edit.offset - offset), edit.bytes, edit.size);
        else w->edits.items[kept++] = edit;
    }
    w->edits.count = kept;
}

static void move(elf_writer *w, elf_unit *u)
{
    uint64_t offset = u->addr - w->front.low;
    inl_bytes_align(&w->ro, u->align);
    size_t at = w->ro.size;
    u->to = inl_bytes_here(&w->ro);
    inl_bytes_put(&w->ro, w->old + offset, u->size);
    if (w->ro.failed) return;
    take_edits(w, offset, at, u->size);
    aim_crashpad(&w->ro, at, u);
}

void elf_front_move(elf_writer *w)
{
    if (!w->front.fits) return;
    if (w->front.notes) move(w, w->front.notes);
    for (size_t i = 0; i < w->front.count; i++) {
        elf_unit *u = &w->front.units[i];
        if (u->moves && !u->tag && u != w->front.notes) move(w, u);
    }
    for (size_t i = 0; i < w->phdr_count; i++) {
        Elf64_Phdr *p = &w->phdrs[i];
        uint64_t to = p->p_type == PT_LOAD ? p->p_vaddr : elf_front_moved(w, p->p_vaddr);
        if (to == p->p_vaddr || p->p_type == PT_PHDR) continue;
        p->p_vaddr = p->p_paddr = to;
        p->p_offset = to - w->shift;
    }
}

uint64_t elf_front_move_table(elf_writer *w, int64_t tag, uint64_t addr)
{
    for (size_t i = 0; w->front.fits && i < w->front.count; i++) {
        elf_unit *u = &w->front.units[i];
        if (!u->moves || u->tag != tag || u->addr != addr) continue;
        move(w, u);
        return u->to;
    }
    return addr;
}

uint64_t elf_front_moved(const elf_writer *w, uint64_t addr)
{
    for (size_t i = 0; w->front.fits && i < w->front.count; i++) {
        const elf_unit *u = &w->front.units[i];
        if (u->to && addr - u->addr < u->size) return addr - u->addr + u->to;
    }
    return addr;
}

/* The finished table is put at its place. */
bool elf_front_put(elf_writer *w, uint64_t *addr)
{
    *addr = w->front.low + AT_FRONT;
    w->header.e_phoff = AT_FRONT;
    return elf_add_edit(w, AT_FRONT, w->phdrs, w->phdr_count * ENTRY);
}
